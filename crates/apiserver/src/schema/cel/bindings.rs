//! The values that the names in an expression stand for.

use super::Program;
use super::eval::{Evaluated, Fault, fault};
use super::value::Val;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// The values that an expression may refer to.
#[derive(Debug, Clone)]
pub(crate) enum Variables<'a> {
    /// Those of a rule in a schema.
    Rule {
        /// `self`: the value that the rule stands at.
        own: Val<'a>,
        /// `oldSelf`: what stood there before.
        old: Option<Val<'a>>,
    },
    /// Those of an admission policy.
    Admission(Rc<Admission<'a>>),
}

/// A variable of a policy: its name, and the expression that it stands for, or why there is none.
pub(crate) type Composed = (Box<str>, Result<Program, String>);

/// Expressions that refer to each other may be so deep together: they are walked recursively.
const MAX_COMPOSED_DEPTH: u16 = 240;

/// What the expressions of one policy refer to in one request. Variables are computed when they are first
/// asked for, and once.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    values: Vec<(&'static str, Val<'a>)>,
    composed: &'a [Composed],
    computed: RefCell<HashMap<&'a str, Result<Val<'a>, Fault>>>,
    /// Steps that are left for all expressions together.
    left: Cell<u64>,
    depth: Cell<u16>,
}

impl<'a> Admission<'a> {
    /// These values, and variables made of them, with a budget of steps for everything together.
    pub(crate) fn new(
        values: Vec<(&'static str, Val<'a>)>,
        composed: &'a [Composed],
        budget: u64,
    ) -> Rc<Self> {
        Rc::new(Admission {
            values,
            composed,
            computed: RefCell::default(),
            left: Cell::new(budget),
            depth: Cell::new(0),
        })
    }

    /// Whether the budget is used up.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }

    /// The value of an expression. It takes no more than `limit` steps, and those from the common budget.
    pub(crate) fn evaluate(
        self: &Rc<Self>,
        program: &'a Program,
        limit: u64,
    ) -> Result<Val<'a>, Fault> {
        let given = limit.min(self.left.get());
        let mut left = given;
        let depth = self.depth.get();
        self.depth.set(depth.saturating_add(program.depth()));
        let result = program.evaluate(Variables::Admission(Rc::clone(self)), &mut left);
        self.depth.set(depth);
        self.left.set(self.left.get().saturating_sub(given - left));
        result
    }

    pub(super) fn value(&self, name: &str) -> Option<Val<'a>> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }

    /// Whether there is a variable of this name.
    pub(super) fn has_composed(&self, name: &str) -> bool {
        self.composed.iter().any(|(known, _)| **known == *name)
    }

    /// The value of a variable.
    pub(super) fn composed(self: &Rc<Self>, name: &str) -> Evaluated<'a> {
        let Some((name, program)) = self.composed.iter().find(|(known, _)| **known == *name) else {
            return fault(format!("no such key: {name}"));
        };
        if let Some(known) = self.computed.borrow().get(&**name) {
            return known.clone();
        }
        let computed = match program {
            Err(why) => fault(format!("composited variable {name:?} fails to compile: {why}")),
            Ok(program) if self.depth.get() + program.depth() > MAX_COMPOSED_DEPTH => {
                fault(format!("composited variable {name:?} is nested too deep"))
            }
            Ok(program) => self.evaluate(program, super::STEPS_PER_EXPRESSION),
        };
        // Nothing may hide that all steps are used up.
        let computed = match computed {
            Err(_) if self.is_exhausted() => Err(Fault::Cost),
            Err(Fault::Other(text)) if text.starts_with("composited variable") => {
                Err(Fault::Other(text))
            }
            Err(why) => fault(format!("composited variable {name:?} fails to evaluate: {why}")),
            Ok(value) => Ok(value),
        };
        self.computed.borrow_mut().insert(name, computed.clone());
        computed
    }
}
