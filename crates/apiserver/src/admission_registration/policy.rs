//! ValidatingAdmissionPolicies and their bindings, compiled.

use super::expressions::{Environment, Gives};
use super::matching::Matching;
use crate::behaviour::read::{at, is_set, list, text};
use crate::object;
use crate::resource::Resource;
use crate::schema::cel::{Composed, Program};
use crate::selector::LabelSelector;
use interlock_store::{Revision, Versioned};
use serde_json::Value;
use std::sync::Arc;

/// The policies of one cluster that have bindings, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct PolicySet {
    pub(crate) policies: Vec<Bound>,
}

/// A policy with its bindings.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) policy: Arc<Policy>,
    pub(crate) bindings: Vec<Binding>,
}

/// A compiled policy.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) name: String,
    revision: Revision,
    /// Whether a policy that cannot be evaluated lets writes pass.
    pub(crate) ignores_failures: bool,
    pub(crate) matching: Matching,
    pub(crate) param_kind: Option<ParamKind>,
    pub(crate) conditions: Vec<Expression>,
    pub(crate) variables: Vec<Composed>,
    pub(crate) validations: Vec<Validation>,
    pub(crate) annotations: Vec<Annotation>,
}

/// The kind of a policy's parameters.
#[derive(Debug)]
pub(crate) struct ParamKind {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// An expression, or why it cannot be evaluated.
pub(crate) type Expression = Result<Program, String>;

/// One of a policy's validations.
#[derive(Debug)]
pub(crate) struct Validation {
    pub(crate) expression: Expression,
    pub(crate) source: String,
    pub(crate) message: String,
    pub(crate) message_expression: Option<Expression>,
    /// The reason of the refusal, and its code.
    pub(crate) reason: Reason,
}

/// Why a write is refused, as the Status says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) word: &'static str,
    pub(crate) code: u16,
}

impl Reason {
    /// What a refusal is unless a validation says something else.
    pub(crate) const INVALID: Reason = Reason { word: "Invalid", code: 422 };

    fn read(word: &str) -> Reason {
        match word {
            "Unauthorized" => Reason { word: "Unauthorized", code: 401 },
            "Forbidden" => Reason { word: "Forbidden", code: 403 },
            "RequestEntityTooLarge" => Reason { word: "RequestEntityTooLarge", code: 413 },
            _ => Reason::INVALID,
        }
    }
}

/// One of a policy's audit annotations.
#[derive(Debug)]
pub(crate) struct Annotation {
    pub(crate) key: String,
    pub(crate) value: Expression,
}

/// A binding of a policy.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) name: String,
    pub(crate) matching: Option<Matching>,
    pub(crate) param_ref: Option<ParamRef>,
    pub(crate) actions: Vec<String>,
}

/// Which parameters a binding uses.
#[derive(Debug)]
pub(crate) struct ParamRef {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Those with these labels, if it does not name one.
    pub(crate) selector: Option<Result<LabelSelector, String>>,
    pub(crate) denies_without: bool,
}

impl PolicySet {
    /// Compiles what is stored. What did not change is taken from an earlier set.
    pub(crate) fn read(
        policies: &[Versioned],
        bindings: &[Versioned],
        before: Option<&PolicySet>,
    ) -> PolicySet {
        let bindings: Vec<Value> = bindings.iter().map(object::decode).collect();
        let mut set = PolicySet::default();
        for stored in policies {
            let policy = object::decode(stored);
            let name = object::name(&policy);
            let is_own = |binding: &&Value| text(binding, "spec.policyName") == name;
            let bindings: Vec<Binding> =
                bindings.iter().filter(is_own).map(Binding::read).collect();
            if bindings.is_empty() {
                continue;
            }
            let same = before.and_then(|set| set.compiled(name, stored.modified));
            let policy = same.unwrap_or_else(|| Arc::new(Policy::read(&policy, stored.modified)));
            set.policies.push(Bound { policy, bindings });
        }
        set
    }

    fn compiled(&self, name: &str, revision: Revision) -> Option<Arc<Policy>> {
        let is_same =
            |bound: &&Bound| bound.policy.name == name && bound.policy.revision == revision;
        self.policies.iter().find(is_same).map(|bound| Arc::clone(&bound.policy))
    }

    /// Whether objects of this resource are parameters that bindings find by their labels.
    pub(crate) fn finds_by_labels(&self, resource: &Resource) -> bool {
        self.policies.iter().any(|bound| {
            let is_its_kind = bound.policy.param_kind.as_ref().is_some_and(|kind| {
                let (group, _) = kind.api_version.split_once('/').unwrap_or(("", ""));
                group == &*resource.group && kind.kind == *resource.kind
            });
            let by_labels = |binding: &Binding| {
                binding.param_ref.as_ref().is_some_and(|params| params.selector.is_some())
            };
            is_its_kind && bound.bindings.iter().any(by_labels)
        })
    }
}

impl Policy {
    fn read(policy: &Value, revision: Revision) -> Policy {
        let spec = at(policy, "spec");
        let has_params = is_set(spec, "paramKind");
        let simple = Environment::new(has_params);
        let mut environment = Environment::new(has_params);
        if !list(spec, "variables").is_empty() {
            environment = environment.with_variables();
        }
        let mut variables = Vec::new();
        for variable in list(spec, "variables") {
            let name = text(variable, "name");
            let program = environment.variable(name, text(variable, "expression"));
            variables.push((name.into(), program));
        }
        let condition =
            |condition: &Value| simple.compile(text(condition, "expression"), Gives::Bool);
        let annotation = |annotation: &Value| Annotation {
            key: text(annotation, "key").to_owned(),
            value: environment.compile(text(annotation, "valueExpression"), Gives::StringOrNull),
        };
        Policy {
            name: object::name(policy).to_owned(),
            revision,
            ignores_failures: text(spec, "failurePolicy") == "Ignore",
            matching: Matching::read(at(spec, "matchConstraints")),
            param_kind: has_params.then(|| ParamKind {
                api_version: text(spec, "paramKind.apiVersion").to_owned(),
                kind: text(spec, "paramKind.kind").to_owned(),
            }),
            conditions: list(spec, "matchConditions").iter().map(condition).collect(),
            validations: list(spec, "validations")
                .iter()
                .map(|validation| Validation::read(validation, &environment))
                .collect(),
            annotations: list(spec, "auditAnnotations").iter().map(annotation).collect(),
            variables,
        }
    }

    /// Whether any of its expressions refers to this name.
    pub(crate) fn uses(&self, name: &str) -> bool {
        let messages = self.validations.iter().filter_map(|one| one.message_expression.as_ref());
        self.conditions
            .iter()
            .chain(self.variables.iter().map(|(_, program)| program))
            .chain(self.validations.iter().map(|one| &one.expression))
            .chain(messages)
            .chain(self.annotations.iter().map(|one| &one.value))
            .any(|program| program.as_ref().is_ok_and(|program| program.uses(name)))
    }
}

impl Validation {
    fn read(validation: &Value, environment: &Environment<'_>) -> Validation {
        let source = text(validation, "expression");
        let message = text(validation, "messageExpression");
        Validation {
            expression: environment.compile(source, Gives::Bool),
            source: source.trim().to_owned(),
            message: text(validation, "message").trim().to_owned(),
            message_expression: (!message.trim().is_empty())
                .then(|| environment.without_authorizer().compile(message, Gives::String)),
            reason: Reason::read(text(validation, "reason")),
        }
    }
}

impl Binding {
    fn read(binding: &Value) -> Binding {
        let spec = at(binding, "spec");
        let actions = list(spec, "validationActions").iter().filter_map(Value::as_str);
        Binding {
            name: object::name(binding).to_owned(),
            matching: is_set(spec, "matchResources")
                .then(|| Matching::read(at(spec, "matchResources"))),
            param_ref: is_set(spec, "paramRef").then(|| ParamRef {
                name: text(spec, "paramRef.name").to_owned(),
                namespace: text(spec, "paramRef.namespace").to_owned(),
                selector: is_set(spec, "paramRef.selector").then(|| {
                    LabelSelector::from_object(at(spec, "paramRef.selector"))
                        .map_err(|status| status.message)
                }),
                denies_without: text(spec, "paramRef.parameterNotFoundAction") == "Deny",
            }),
            actions: actions.map(str::to_owned).collect(),
        }
    }
}
