//! The expressions of policies: what they may refer to, and what they must give.

use crate::schema::cel::{self, Names, Program, Ty};
use crate::schema::{Form, Schema, Shape, custom};
use crate::status::Path;
use serde_json::{Value, json};
use std::rc::Rc;
use std::sync::LazyLock;

/// The variables of a policy by name, with their types.
type Variables<'s> = Vec<(Box<str>, Ty<'s>)>;

/// What the expressions of one policy may refer to.
#[derive(Debug, Clone)]
pub(crate) struct Environment<'s> {
    /// The type of `object` and `oldObject`.
    object: Ty<'s>,
    /// The type of `params`, if the policy has any.
    params: Option<Ty<'s>>,
    /// The types of the variables so far; none if there are no variables at all.
    variables: Option<Rc<Variables<'s>>>,
    has_authorizer: bool,
}

/// What an expression must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gives {
    Anything,
    Bool,
    String,
    StringOrNull,
}

impl<'s> Environment<'s> {
    /// Objects of which nothing is known, as they are when a policy is evaluated.
    pub(crate) fn new(has_params: bool) -> Self {
        Environment {
            object: Ty::Dyn,
            params: has_params.then_some(Ty::Dyn),
            variables: None,
            has_authorizer: true,
        }
    }

    /// Objects, and parameters, of known kinds.
    pub(crate) fn typed(object: Ty<'s>, params: Option<Ty<'s>>) -> Self {
        Environment { object, params, variables: None, has_authorizer: true }
    }

    /// The same, in which variables can be referred to.
    pub(crate) fn with_variables(mut self) -> Self {
        self.variables = Some(Rc::default());
        self
    }

    /// The same for expressions that cannot ask what somebody may do.
    pub(crate) fn without_authorizer(&self) -> Self {
        Environment { has_authorizer: false, ..self.clone() }
    }

    /// Compiles a variable; those that follow can refer to it.
    pub(crate) fn variable(&mut self, name: &str, source: &str) -> Result<Program, String> {
        let compiled = cel::compile(source, self);
        let ty = compiled.as_ref().map_or(Ty::Dyn, |(_, ty)| ty.clone());
        if let Some(variables) = &mut self.variables {
            Rc::make_mut(variables).push((name.into(), ty));
        }
        compiled.map(|(program, _)| program).map_err(|why| format!("compilation failed: {why}"))
    }

    /// Compiles an expression.
    pub(crate) fn compile(&self, source: &str, gives: Gives) -> Result<Program, String> {
        let (program, ty) =
            cel::compile(source, self).map_err(|why| format!("compilation failed: {why}"))?;
        let is_right = match gives {
            Gives::Anything => true,
            Gives::Bool => matches!(ty, Ty::Plain('b')),
            Gives::String => matches!(ty, Ty::Plain('s')),
            Gives::StringOrNull => matches!(ty, Ty::Plain('s' | 'n')),
        };
        if is_right {
            return Ok(program);
        }
        let wanted = match gives {
            Gives::Anything | Gives::Bool => "bool",
            Gives::String => "string",
            Gives::StringOrNull => "one of [string null_type]",
        };
        Err(format!("must evaluate to {wanted} but got {ty}"))
    }
}

impl<'s> Names<'s> for Environment<'s> {
    fn type_of(&self, name: &str) -> Option<Ty<'s>> {
        match name {
            "object" | "oldObject" => Some(self.object.clone()),
            "params" => self.params.clone(),
            "request" | "namespaceObject" => known(name).map(Ty::of_whole),
            "authorizer" if self.has_authorizer => Some(Ty::Plain('Z')),
            "authorizer.requestResource" if self.has_authorizer => Some(Ty::Plain('R')),
            "variables" => self.variables.clone().map(Ty::Record),
            _ => None,
        }
    }
}

/// What `request` and `namespaceObject` look like.
fn known(name: &str) -> Option<Shape<'static>> {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        custom::compile(&known_types(), None, &Path::Root)
            .expect("the types are part of the program, and a test reads them")
    });
    let Form::Object(object) = &SCHEMA.shape().node().form else { return None };
    object.fields.get(name).map(|field| SCHEMA.at(field.node))
}

fn known_types() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let map = |values: &Value| json!({"type": "object", "additionalProperties": values});
    let time = json!({"type": "string", "format": "date-time"});
    let number = json!({"type": "integer"});
    let object = |fields: Value| json!({"type": "object", "properties": fields});
    let kind = object(json!({"group": text, "version": text, "kind": text}));
    let resource = object(json!({"group": text, "version": text, "resource": text}));
    let user = object(json!({
        "username": text, "uid": text, "groups": texts, "extra": map(&texts),
    }));
    let request = object(json!({
        "kind": kind, "resource": resource, "subResource": text,
        "requestKind": kind, "requestResource": resource, "requestSubResource": text,
        "name": text, "namespace": text, "operation": text, "userInfo": user,
        "dryRun": {"type": "boolean"},
        "options": {"x-kubernetes-preserve-unknown-fields": true},
    }));
    let metadata = object(json!({
        "name": text, "generateName": text, "namespace": text, "labels": map(&text),
        "annotations": map(&text), "uid": text, "UID": text, "creationTimestamp": time,
        "deletionGracePeriodSeconds": number, "deletionTimestamp": time,
        "generation": number, "resourceVersion": text, "finalizers": texts,
    }));
    let condition = object(json!({
        "status": text, "type": text, "lastTransitionTime": time, "message": text, "reason": text,
    }));
    let conditions = json!({"type": "array", "items": condition});
    let namespace = object(json!({
        "metadata": metadata, "spec": object(json!({"finalizers": texts})),
        "status": object(json!({"conditions": conditions, "phase": text})),
    }));
    object(json!({"request": request, "namespaceObject": namespace}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(source: &str) -> Result<(), String> {
        let mut environment = Environment::new(true).with_variables();
        environment.variable("small", "params.limit > 3").expect("it is sound");
        environment.compile(source, Gives::Bool).map(|_| ())
    }

    #[test]
    fn what_is_known_about_requests_is_checked() {
        for source in [
            "request.userInfo.username == 'a' && request.operation == 'CREATE'",
            "request.options.fieldManager == 'a'",
            "namespaceObject.metadata.labels.env == 'test'",
            "variables.small",
            "authorizer.group('apps').resource('deployments').namespace('a').check('get').allowed()",
            "authorizer.requestResource.check('approve').allowed()",
            "authorizer.serviceAccount('a', 'b').path('/healthz').check('get').errored()",
            "has(object.spec) && oldObject == null",
        ] {
            assert_eq!(compiled(source), Ok(()), "{source}");
        }
    }

    #[test]
    fn what_could_never_work_is_refused() {
        for (source, why) in [
            ("request.nothing == 'a'", "undefined field 'nothing'"),
            ("request.namespace == 1", "found no matching overload for '_==_'"),
            ("variables.large", "undefined field 'large'"),
            ("objekt.spec == 1", "undeclared reference to 'objekt' (in container '')"),
            ("authorizer.allowed()", "found no matching overload for 'allowed'"),
            ("object.spec.flag", "must evaluate to bool but got dyn"),
            ("'a'", "must evaluate to bool but got string"),
            ("request.namespaceObject == 1", "undefined field 'namespaceObject'"),
        ] {
            let refusal = compiled(source).expect_err(source);
            assert!(refusal.contains(why), "{source}: {refusal}");
        }
    }
}
