//! CEL, the expression language of validation rules: parsed and type-checked when a CRD is written,
//! evaluated within a budget of steps when an object is.
//!
//! It is our own because a rule runs on the path of every write, for tenants who may mean harm:
//! values are borrowed from the object instead of copied, every step is counted, and nothing in it
//! panics.

mod ast;
mod authorizer;
mod bindings;
mod check;
mod eval;
mod functions;
mod lex;
mod lists;
mod networks;
mod operators;
mod parse;
mod printf;
mod signatures;
mod strings;
mod time;
mod types;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use authorizer::{Asked, Authority, Who};
pub(crate) use bindings::{Admission, Composed, Variables};
pub(crate) use eval::Fault;
pub(crate) use lex::is_reserved;
pub(crate) use types::Ty;
pub(crate) use value::Val;

use crate::schema::Shape;
use crate::schema::checks::Pattern;
use ast::Expr;
use std::collections::HashMap;
use types::Visible;

/// Longer expressions are refused.
const MAX_EXPRESSION_BYTES: usize = 16 << 10;
/// One evaluation may take so many steps, as upstream has it.
pub(crate) const STEPS_PER_EXPRESSION: u64 = 1_000_000;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Program {
    source: Box<str>,
    expression: Expr,
    patterns: HashMap<Box<str>, Pattern>,
    /// The names that it refers to.
    names: Vec<Box<str>>,
}

/// What the names in an expression stand for, as far as types go.
pub(crate) trait Names<'s> {
    /// The type of a name; nothing if there is none of that name.
    fn type_of(&self, name: &str) -> Option<Ty<'s>>;
}

/// What an expression may refer to.
#[derive(Clone, Copy)]
pub(crate) struct Declarations<'s> {
    /// The shape of `self` and `oldSelf`.
    pub(crate) shape: Shape<'s>,
    /// Whether they are whole objects, of whose metadata only the names can be seen.
    pub(crate) is_whole_object: bool,
    /// Whether `oldSelf` is an optional.
    pub(crate) has_optional_old_self: bool,
}

impl<'s> Names<'s> for Declarations<'s> {
    fn type_of(&self, name: &str) -> Option<Ty<'s>> {
        let visible = if self.is_whole_object { Visible::Whole } else { Visible::All };
        let own = || Ty::of(self.shape, visible);
        match name {
            "self" => Some(own()),
            "oldSelf" if self.has_optional_old_self => Some(Ty::Optional(own().inside())),
            "oldSelf" => Some(own()),
            _ => None,
        }
    }
}

/// Compiles an expression and says what type its value has. The error is in the words of upstream's
/// compiler, with the place marked.
pub(crate) fn compile<'s>(
    source: &str,
    names: &dyn Names<'s>,
) -> Result<(Program, Ty<'s>), String> {
    if source.len() > MAX_EXPRESSION_BYTES {
        return Err(format!("expression is longer than {MAX_EXPRESSION_BYTES} bytes"));
    }
    let expression = parse::parse(source).map_err(|error| error.in_source(source))?;
    let checked = check::check(&expression, names);
    if !checked.errors.is_empty() {
        let texts: Vec<String> =
            checked.errors.iter().map(|error| error.in_source(source)).collect();
        return Err(texts.join("\n"));
    }
    let program = Program {
        source: source.into(),
        expression,
        patterns: checked.patterns,
        names: checked.names,
    };
    Ok((program, checked.result))
}

impl Program {
    /// The expression as it was written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether it compares with the value before.
    pub(crate) fn uses_old_self(&self) -> bool {
        self.uses("oldSelf")
    }

    /// Whether it refers to this name.
    pub(crate) fn uses(&self, name: &str) -> bool {
        self.names.iter().any(|used| **used == *name)
    }

    /// How deep it is nested.
    fn depth(&self) -> u16 {
        self.expression.depth()
    }

    /// The value of the expression. Takes the steps it needed from the budget.
    pub(crate) fn evaluate<'a>(
        &'a self,
        variables: Variables<'a>,
        budget: &mut u64,
    ) -> Result<Val<'a>, Fault> {
        eval::evaluate(&self.expression, &self.patterns, variables, budget)
    }
}

/// Something wrong at one place of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SourceError {
    at: u32,
    message: String,
}

impl SourceError {
    fn new(at: u32, message: impl Into<String>) -> Self {
        SourceError { at, message: message.into() }
    }

    /// The sentence with line, column, and the line itself with a mark below.
    fn in_source(&self, source: &str) -> String {
        let at = (self.at as usize).min(source.len());
        let before = source.get(..at).unwrap_or(source);
        let line_number = before.matches('\n').count() + 1;
        let line_start = before.rfind('\n').map_or(0, |place| place + 1);
        let column = before[line_start..].chars().count();
        let line = source[line_start..].lines().next().unwrap_or("");
        format!(
            "ERROR: <input>:{line_number}:{}: {}\n | {line}\n | {}^",
            column + 1,
            self.message,
            ".".repeat(column)
        )
    }
}
