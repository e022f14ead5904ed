//! The tree of an expression.

use super::SourceError;
use std::sync::Arc;

/// Trees may be so deep: they are walked recursively, on stacks that are not ours to size.
const MAX_DEPTH: u16 = 120;

/// An expression, and where in the source it is.
#[derive(Debug)]
pub(super) struct Expr {
    pub(super) at: u32,
    depth: u16,
    pub(super) kind: Kind,
}

impl Expr {
    /// An expression, unless it would be too deep.
    pub(super) fn new(at: u32, kind: Kind) -> Result<Self, SourceError> {
        let depth = 1 + match &kind {
            Kind::Literal(_) | Kind::Ident(_) => 0,
            Kind::Select(select) => select.operand.depth,
            Kind::Index(index) => index.operand.depth.max(index.index.depth),
            Kind::Call(call) => deepest(call.target.iter().chain(&call.arguments)),
            Kind::List(elements) => deepest(elements.iter().map(|element| &element.value)),
            Kind::Map(entries) => {
                deepest(entries.iter().flat_map(|entry| [&entry.key, &entry.value]))
            }
            Kind::And(terms) | Kind::Or(terms) => deepest(terms),
            Kind::If(parts) => deepest(parts.iter()),
            Kind::Not(inner) | Kind::Negate(inner) => inner.depth,
            Kind::Binary(_, sides) => deepest(sides.iter()),
            Kind::Macro(inner) => {
                deepest([&inner.range, &inner.body].into_iter().chain(&inner.filter))
            }
        };
        if depth > MAX_DEPTH {
            let message = format!("expression recursion limit exceeded: {MAX_DEPTH}");
            return Err(SourceError::new(at, message));
        }
        Ok(Expr { at, depth, kind })
    }

    /// How deep it is nested.
    pub(super) fn depth(&self) -> u16 {
        self.depth
    }
}

fn deepest<'e>(inner: impl IntoIterator<Item = &'e Expr>) -> u16 {
    inner.into_iter().map(|expression| expression.depth).max().unwrap_or(0)
}

#[derive(Debug)]
pub(super) enum Kind {
    Literal(Literal),
    Ident(Box<str>),
    Select(Box<Select>),
    Index(Box<Index>),
    Call(Box<Call>),
    List(Vec<Element>),
    Map(Vec<Entry>),
    /// All of several; the operators `&&` and `||` are flat, so that long chains are not deep.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    If(Box<[Expr; 3]>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(Operator, Box<[Expr; 2]>),
    Macro(Box<Macro>),
}

#[derive(Debug, Clone)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

#[derive(Debug)]
pub(super) struct Select {
    pub(super) operand: Expr,
    pub(super) field: Box<str>,
    pub(super) mode: SelectMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SelectMode {
    /// `a.b`
    Get,
    /// `has(a.b)`
    Test,
    /// `a.?b`
    Optional,
}

#[derive(Debug)]
pub(super) struct Index {
    pub(super) operand: Expr,
    pub(super) index: Expr,
    pub(super) is_optional: bool,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) function: Box<str>,
    pub(super) target: Option<Expr>,
    pub(super) arguments: Vec<Expr>,
}

#[derive(Debug)]
pub(super) struct Element {
    pub(super) value: Expr,
    pub(super) is_optional: bool,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Expr,
    pub(super) value: Expr,
    pub(super) is_optional: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Operator {
    /// Its name in error messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Operator::Add => "_+_",
            Operator::Subtract => "_-_",
            Operator::Multiply => "_*_",
            Operator::Divide => "_/_",
            Operator::Modulo => "_%_",
            Operator::Equal => "_==_",
            Operator::NotEqual => "_!=_",
            Operator::Less => "_<_",
            Operator::LessOrEqual => "_<=_",
            Operator::Greater => "_>_",
            Operator::GreaterOrEqual => "_>=_",
            Operator::In => "@in",
        }
    }
}

/// A macro with variables of its own: `list.all(x, ...)`.
#[derive(Debug)]
pub(super) struct Macro {
    pub(super) kind: MacroKind,
    pub(super) range: Expr,
    pub(super) first: Box<str>,
    pub(super) second: Option<Box<str>>,
    pub(super) filter: Option<Expr>,
    pub(super) body: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MacroKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
    TransformList,
    TransformMap,
    TransformMapEntry,
    OptMap,
    OptFlatMap,
    SortBy,
}
