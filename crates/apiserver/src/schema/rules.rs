//! `x-kubernetes-validations`: rules in CEL, compiled with the schema and evaluated at each value
//! they stand at.

mod fields;

#[cfg(test)]
mod tests;

use crate::schema::cel::{self, Declarations, Fault, Program, Val, Variables};
use crate::schema::walk::{MAX_REPORTED, correlate, old_items};
use crate::schema::{Form, Shape};
use crate::status::{FieldError, Path, Problem};
use serde_json::Value;
use std::sync::Arc;

/// All evaluations for one object together may take so many.
const STEPS_PER_OBJECT: u64 = 10_000_000;
/// A message that an expression made may have so many bytes.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;
/// A value may have so many rules.
const MAX_RULES: usize = 256;

/// One rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    program: Program,
    message: Box<str>,
    message_program: Option<Program>,
    problem: Problem,
    /// The field that the error is about, relative to the value: `.spec.replicas`.
    field: Box<str>,
    has_optional_old_self: bool,
}

/// Where rules stand.
pub(super) struct Scope<'s> {
    /// What `self` looks like.
    pub(super) shape: Shape<'s>,
    /// Whether `self` is a whole object.
    pub(super) is_whole_object: bool,
    /// The place above where old and new values cannot be matched.
    pub(super) uncorrelatable: Option<&'s str>,
}

/// Compiles the rules of one value. `path` is that of the list of rules.
pub(super) fn compile(
    rules: &[Value],
    scope: &Scope<'_>,
    path: &Path<'_>,
) -> Result<Vec<Rule>, Vec<FieldError>> {
    if rules.len() > MAX_RULES {
        let detail = format!("must have at most {MAX_RULES} items");
        return Err(vec![FieldError::new(Problem::TooMany, path, detail)]);
    }
    let mut compiled = Vec::new();
    let mut errors = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        match compile_one(rule, scope, &path.index(index)) {
            Ok(rule) => compiled.push(rule),
            Err(mut found) => errors.append(&mut found),
        }
    }
    if errors.is_empty() { Ok(compiled) } else { Err(errors) }
}

fn compile_one(rule: &Value, scope: &Scope<'_>, path: &Path<'_>) -> Result<Rule, Vec<FieldError>> {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or("");
    let has_optional_old_self = rule.get("optionalOldSelf") == Some(&Value::Bool(true));
    let declarations = Declarations {
        shape: scope.shape,
        is_whole_object: scope.is_whole_object,
        has_optional_old_self,
    };
    let one = |error: FieldError| vec![error];
    let invalid = |field: &str, detail: String| FieldError {
        problem: Problem::Invalid,
        field: path.field(field).to_string(),
        value: shown(rule),
        detail,
    };
    let (program, result) = cel::compile(text("rule"), &declarations)
        .map_err(|error| one(invalid("rule", format!("compilation failed: {error}"))))?;
    let mut errors = Vec::new();
    if !result.may_be_bool() {
        errors.push(invalid("rule", "cel expression must evaluate to a bool".to_owned()));
    }
    let message_program = match text("messageExpression").trim() {
        "" => None,
        source => match cel::compile(source, &declarations) {
            Ok((program, result)) if result.may_be_string() => Some(program),
            Ok(_) => {
                let detail = "messageExpression must evaluate to a string".to_owned();
                errors.push(invalid("messageExpression", detail));
                None
            }
            Err(error) => {
                let detail = format!("messageExpression compilation failed: {error}");
                errors.push(invalid("messageExpression", detail));
                None
            }
        },
    };
    errors.extend(check_old_self(rule, &program, scope, path));
    let field = fields::relative(text("fieldPath"), scope.shape);
    if field.is_err() {
        let value = Value::from(text("fieldPath"));
        let detail = "must be a valid path";
        errors.push(FieldError::invalid(path.field("fieldPath"), &value, detail));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(Rule(Arc::new(Compiled {
        program,
        message: text("message").trim().into(),
        message_program,
        problem: problem(text("reason")),
        field: field.unwrap_or_default().into(),
        has_optional_old_self,
    })))
}

/// A rule as upstream shows it in errors: the fields of its own type, with what HTML might mistake
/// escaped.
fn shown(rule: &Value) -> String {
    let words = [
        ("Rule", "rule", "\"\""),
        ("Message", "message", "\"\""),
        ("MessageExpression", "messageExpression", "\"\""),
        ("Reason", "reason", "null"),
        ("FieldPath", "fieldPath", "\"\""),
        ("OptionalOldSelf", "optionalOldSelf", "null"),
    ];
    let parts: Vec<String> = words
        .iter()
        .map(|(name, word, nothing)| {
            let value = rule.get(*word).filter(|value| !value.is_null());
            let text = value.map_or_else(|| (*nothing).to_owned(), ToString::to_string);
            format!("\"{name}\":{text}")
        })
        .collect();
    let text = format!("{{{}}}", parts.join(","));
    text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

fn check_old_self(
    rule: &Value,
    program: &Program,
    scope: &Scope<'_>,
    path: &Path<'_>,
) -> Option<FieldError> {
    if !program.uses_old_self() {
        let value = rule.get("optionalOldSelf").filter(|value| !value.is_null())?;
        let detail = "may not be set if oldSelf is not used in rule";
        return Some(FieldError::invalid(path.field("optionalOldSelf"), value, detail));
    }
    let above = scope.uncorrelatable?;
    let detail = format!(
        "oldSelf cannot be used on the uncorrelatable portion of the schema within {above}"
    );
    let source = Value::from(program.source());
    Some(FieldError::invalid(path.field("rule"), &source, detail))
}

fn problem(reason: &str) -> Problem {
    match reason {
        "FieldValueForbidden" => Problem::Forbidden,
        "FieldValueRequired" => Problem::Required,
        "FieldValueDuplicate" => Problem::Duplicate,
        _ => Problem::Invalid,
    }
}

/// Whether a schema has any rules, so that nobody walks for nothing.
pub(super) fn has_rules(shape: Shape<'_>) -> bool {
    shape
        .schema
        .nodes
        .iter()
        .any(|node| node.checks.as_ref().is_some_and(|checks| !checks.rules.is_empty()))
}

/// Evaluates all rules of a value and of what is in it. Transition rules are left out where no old
/// value is known.
pub(crate) fn evaluate(
    value: &Value,
    old: Option<&Value>,
    shape: Shape<'_>,
    path: &Path<'_>,
) -> Vec<FieldError> {
    let mut walk = Walk { errors: Vec::new(), budget: STEPS_PER_OBJECT, is_over: false };
    let old = old.filter(|old| !old.is_null());
    let nearest = old.map(|old| (value, old));
    walk.visit(At { value, old, nearest, correlated: old.is_some() }, shape, path);
    walk.errors
}

struct Walk {
    errors: Vec<FieldError>,
    budget: u64,
    /// The budget is used up: no more rules are evaluated.
    is_over: bool,
}

/// A value, its old self, and the nearest pair above that could be matched.
#[derive(Clone, Copy)]
struct At<'v> {
    value: &'v Value,
    old: Option<&'v Value>,
    nearest: Option<(&'v Value, &'v Value)>,
    correlated: bool,
}

impl<'v> At<'v> {
    fn inside(self, value: &'v Value, old: Option<&'v Value>) -> At<'v> {
        let old = old.filter(|old| !old.is_null());
        let own = self.old.filter(|_| self.correlated).map(|old| (self.value, old));
        At { value, old, nearest: own.or(self.nearest), correlated: old.is_some() }
    }

    /// Whether what is wrong here was wrong before: the value, or what it is in, has not
    /// changed.
    fn is_unchanged(self) -> bool {
        match self.old {
            Some(old) => old == self.value,
            None => self.nearest.is_some_and(|(value, old)| value == old),
        }
    }
}

impl Walk {
    fn visit(&mut self, at: At<'_>, shape: Shape<'_>, path: &Path<'_>) {
        if at.value.is_null() || self.is_over || self.errors.len() >= MAX_REPORTED {
            return;
        }
        if let Some(checks) = shape.node().checks.as_deref() {
            for rule in &checks.rules {
                self.apply(rule, at, shape, path);
                if self.is_over {
                    return;
                }
            }
        }
        match (&shape.node().form, at.value) {
            (Form::Object(object), Value::Object(fields)) => {
                for (name, value) in fields {
                    let Some(field) = object.fields.get(name.as_str()) else { continue };
                    let old = at.old.filter(|_| !object.is_atomic).and_then(|old| old.get(name));
                    self.visit(at.inside(value, old), shape.at(field.node), &path.field(name));
                }
            }
            (Form::Map(map), Value::Object(fields)) => {
                for (key, value) in fields {
                    let old = at.old.filter(|_| !map.is_atomic).and_then(|old| old.get(key));
                    self.visit(at.inside(value, old), shape.at(map.values), &path.key(key));
                }
            }
            (Form::List(list), Value::Array(items)) => {
                let before = old_items(at.old, &list.kind);
                for (index, value) in items.iter().enumerate() {
                    let old = correlate(value, &list.kind, &before);
                    self.visit(at.inside(value, old), shape.at(list.items), &path.index(index));
                }
            }
            _ => {}
        }
    }

    fn apply(&mut self, rule: &Rule, at: At<'_>, shape: Shape<'_>, path: &Path<'_>) {
        let rule = &*rule.0;
        let uses_old = rule.program.uses_old_self();
        if uses_old && at.old.is_none() && !rule.has_optional_old_self {
            return;
        }
        let old = at.old.map(|old| Val::from_json(old, Some(shape)));
        let old = match (rule.has_optional_old_self, old) {
            (true, old) => Some(Val::Optional(old.map(Arc::new))),
            (false, old) => old,
        };
        let variables = Variables::Rule { own: Val::from_json(at.value, Some(shape)), old };
        let type_name = Value::from(type_name(shape));
        match self.run(&rule.program, variables.clone()) {
            Ok(Val::Bool(true)) => {}
            Ok(Val::Bool(false)) => {
                let detail = self.message(rule, variables);
                // What was broken before may stay so, unless the rule is about the change.
                if uses_old || !at.is_unchanged() {
                    self.errors.push(failure(rule, at.value, path, detail));
                }
            }
            Ok(_) | Err(Fault::NoSuchOverload) => {
                let detail = format!(
                    "'no such overload': call arguments did not match a supported operator, \
                     function or macro signature for rule: {}",
                    rule.name()
                );
                self.errors.push(FieldError::invalid(path, &type_name, detail));
            }
            Err(Fault::Cost) => {
                let detail = if self.budget == 0 {
                    "validation failed due to running out of cost budget, no further validation \
                     rules will be run"
                        .to_owned()
                } else {
                    format!(
                        "'{}': no further validation rules will be run due to call cost exceeds \
                         limit for rule: {}",
                        Fault::Cost,
                        rule.name()
                    )
                };
                self.errors.push(FieldError::invalid(path, &type_name, detail));
                self.is_over = true;
            }
            Err(fault @ Fault::Other(_)) => {
                let detail = format!("{fault} evaluating rule: {}", rule.name());
                self.errors.push(FieldError::invalid(path, &type_name, detail));
            }
        }
    }

    fn run<'a>(
        &mut self,
        program: &'a Program,
        variables: Variables<'a>,
    ) -> Result<Val<'a>, Fault> {
        let given = self.budget.min(cel::STEPS_PER_EXPRESSION);
        let mut left = given;
        let result = program.evaluate(variables, &mut left);
        self.budget -= given - left;
        result
    }

    /// The message that an expression makes, or the one that is written, or the rule itself.
    fn message<'a>(&mut self, rule: &'a Compiled, variables: Variables<'a>) -> String {
        if let Some(program) = &rule.message_program
            && let Ok(Val::String(text)) = self.run(program, variables)
        {
            let text = text.trim();
            if !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n') {
                return text.to_owned();
            }
        }
        if rule.message.is_empty() {
            return format!("failed rule: {}", rule.name());
        }
        rule.message.to_string()
    }
}

impl Compiled {
    /// The message, or the rule itself.
    fn name(&self) -> &str {
        if self.message.is_empty() { self.program.source().trim() } else { &self.message }
    }
}

fn failure(rule: &Compiled, value: &Value, path: &Path<'_>, detail: String) -> FieldError {
    let path = path.to_string();
    let field = match (path.as_str(), &*rule.field) {
        ("", field) => field.strip_prefix('.').unwrap_or(field).to_owned(),
        (path, field) => format!("{path}{field}"),
    };
    // Objects and lists are not shown: they may be long.
    let value = match value {
        Value::Object(_) | Value::Array(_) => String::new(),
        other => other.to_string(),
    };
    FieldError { problem: rule.problem, field, value, detail }
}

/// The word that JSON schemas have for the type.
fn type_name(shape: Shape<'_>) -> &'static str {
    match &shape.node().form {
        Form::Any | Form::IntOrString => "",
        Form::Boolean => "boolean",
        Form::Integer => "integer",
        Form::Number => "number",
        Form::String => "string",
        Form::Object(_) | Form::Map(_) => "object",
        Form::List(_) => "array",
    }
}
