//! One policy, one write, one parameter: what the policy says.

use crate::admission_registration::policy::{Expression, Policy, Reason, Validation};
use crate::schema::cel::{Admission, Fault, Program, STEPS_PER_EXPRESSION, Val};
use std::rc::Rc;

/// All expressions of a policy together may take so many steps, as upstream has it.
const STEPS_PER_POLICY: u64 = 10_000_000;
/// Its match conditions may take so many.
const STEPS_OF_CONDITIONS: u64 = 2_500_000;
/// A message that an expression made may have so many bytes.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The values that expressions refer to.
pub(super) type Values<'a> = Vec<(&'static str, Val<'a>)>;

/// What a policy says about a write.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// The validations that do not hold.
    pub(super) failures: Vec<Failure>,
    /// What is to be written into the audit log.
    pub(super) annotations: Vec<(String, String)>,
    /// Annotations that could not be made; they refuse the write.
    pub(super) broken_annotations: Vec<String>,
}

/// A validation that does not hold.
#[derive(Debug)]
pub(super) struct Failure {
    /// Its place in the policy.
    pub(super) index: usize,
    pub(super) message: String,
    pub(super) reason: Reason,
}

impl Verdict {
    /// What a policy that cannot be evaluated says.
    fn failed(policy: &Policy, message: String) -> Verdict {
        let mut verdict = Verdict::default();
        if !policy.ignores_failures {
            verdict.failures.push(Failure { index: 0, message, reason: Reason::INVALID });
        }
        verdict
    }
}

/// Evaluates a policy. The `namespaceObject` is not there for match conditions, as upstream has it.
pub(super) fn evaluate<'a>(policy: &'a Policy, values: &Values<'a>) -> Verdict {
    match conditions_hold(&policy.conditions, policy.ignores_failures, values) {
        Ok(true) => {}
        Ok(false) => return Verdict::default(),
        Err(message) => return Verdict::failed(policy, message),
    }
    let admission = Admission::new(values.clone(), &policy.variables, STEPS_PER_POLICY);
    let mut verdict = Verdict::default();
    for (index, validation) in policy.validations.iter().enumerate() {
        match run(&admission, &validation.expression) {
            Ok(Val::Bool(true)) => {}
            Ok(_) => verdict.failures.push(Failure {
                index,
                message: message(&admission, validation),
                reason: validation.reason,
            }),
            Err(_) if admission.is_exhausted() => {
                return Verdict::failed(policy, OUT_OF_BUDGET.to_owned());
            }
            Err(_) if policy.ignores_failures => {}
            Err(message) => {
                verdict.failures.push(Failure { index, message, reason: Reason::INVALID });
            }
        }
    }
    annotate(policy, values, &mut verdict);
    verdict
}

/// Whether all match conditions hold. One that does not decides, whatever became of the others.
pub(super) fn conditions_hold<'a>(
    conditions: &'a [Expression],
    ignores_failures: bool,
    values: &Values<'a>,
) -> Result<bool, String> {
    if conditions.is_empty() {
        return Ok(true);
    }
    let mut values = values.clone();
    for (name, value) in &mut values {
        if *name == "namespaceObject" {
            *value = Val::Null;
        }
    }
    let admission = Admission::new(values, &[], STEPS_OF_CONDITIONS);
    let mut problems = Vec::new();
    for condition in conditions {
        match run(&admission, condition) {
            Ok(Val::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(_) if admission.is_exhausted() => {
                problems = vec![OUT_OF_BUDGET.to_owned()];
                break;
            }
            Err(problem) => problems.push(problem),
        }
    }
    match &problems[..] {
        [] => Ok(true),
        _ if ignores_failures => Ok(false),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// The value of an expression, or the sentence that says why it has none.
fn run<'a>(admission: &Rc<Admission<'a>>, expression: &'a Expression) -> Result<Val<'a>, String> {
    let program: &'a Program = match expression {
        Ok(program) => program,
        Err(why) => return Err(format!("compilation error: {why}")),
    };
    admission.evaluate(program, STEPS_PER_EXPRESSION).map_err(|fault: Fault| {
        format!("expression '{}' resulted in error: {fault}", program.source())
    })
}

/// The message that an expression makes, or the one that is written, or the expression itself.
fn message<'a>(admission: &Rc<Admission<'a>>, validation: &'a Validation) -> String {
    if let Some(expression) = &validation.message_expression
        && let Ok(Val::String(text)) = run(admission, expression)
    {
        let text = text.trim();
        if !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n') {
            return text.to_owned();
        }
    }
    if validation.message.is_empty() {
        format!("failed expression: {}", validation.source)
    } else {
        validation.message.clone()
    }
}

fn annotate<'a>(policy: &'a Policy, values: &Values<'a>, verdict: &mut Verdict) {
    if policy.annotations.is_empty() {
        return;
    }
    let admission = Admission::new(values.clone(), &policy.variables, STEPS_PER_POLICY);
    for annotation in &policy.annotations {
        match run(&admission, &annotation.value) {
            Ok(Val::String(text)) => {
                let text = text.trim();
                if !text.is_empty() {
                    verdict.annotations.push((annotation.key.clone(), text.to_owned()));
                }
            }
            Ok(_) => {}
            Err(_) if policy.ignores_failures => {}
            Err(why) => verdict.broken_annotations.push(why),
        }
    }
}
