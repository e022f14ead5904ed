//! Types of expressions, as far as a schema tells them: catches what could never work before any
//! object is written.

use super::ast::{Call, Expr, Index, Kind, Literal, Macro, MacroKind, Select, SelectMode};
use super::signatures::{overloads, type_named};
use super::types::{BOOL, INT, Ty, apply, binary, common, field, matches, unwrapped};
use super::{Names, SourceError};
use crate::schema::checks::Pattern;
use crate::schema::formats;
use std::collections::HashMap;

pub(super) struct Checked<'s> {
    pub(super) result: Ty<'s>,
    pub(super) errors: Vec<SourceError>,
    pub(super) patterns: HashMap<Box<str>, Pattern>,
    pub(super) names: Vec<Box<str>>,
}

/// Checks an expression.
pub(super) fn check<'s>(expression: &Expr, names: &dyn Names<'s>) -> Checked<'s> {
    let mut checker = Checker {
        declared: names,
        scope: Vec::new(),
        errors: Vec::new(),
        patterns: HashMap::new(),
        names: Vec::new(),
    };
    let result = checker.ty(expression);
    Checked { result, errors: checker.errors, patterns: checker.patterns, names: checker.names }
}

struct Checker<'e, 's> {
    declared: &'e dyn Names<'s>,
    scope: Vec<(&'e str, Ty<'s>)>,
    errors: Vec<SourceError>,
    patterns: HashMap<Box<str>, Pattern>,
    names: Vec<Box<str>>,
}

/// At most so many errors are reported about one expression.
const MAX_ERRORS: usize = 20;

impl<'e, 's> Checker<'e, 's> {
    fn complain(&mut self, at: u32, message: String) -> Ty<'s> {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(SourceError::new(at, message));
        }
        Ty::Dyn
    }

    fn no_overload(&mut self, at: u32, name: &str, types: &[Ty<'s>], has_target: bool) -> Ty<'s> {
        let texts: Vec<String> = types.iter().map(ToString::to_string).collect();
        let applied = match (has_target, &texts[..]) {
            (true, [target, rest @ ..]) => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", texts.join(", ")),
        };
        let message = format!("found no matching overload for '{name}' applied to '{applied}'");
        self.complain(at, message)
    }

    fn ty(&mut self, expression: &'e Expr) -> Ty<'s> {
        let at = expression.at;
        match &expression.kind {
            Kind::Literal(literal) => Ty::Plain(match literal {
                Literal::Null => 'n',
                Literal::Bool(_) => 'b',
                Literal::Int(_) => 'i',
                Literal::Uint(_) => 'u',
                Literal::Double(_) => 'd',
                Literal::String(_) => 's',
                Literal::Bytes(_) => 'y',
            }),
            Kind::Ident(name) => self.variable(at, name),
            Kind::Select(select) => self.select(at, select),
            Kind::Index(index) => self.index(at, index),
            Kind::Call(call) => self.call(at, call),
            Kind::List(elements) => {
                let parts = elements.iter().map(|element| (&element.value, element.is_optional));
                let ty = self.alike(parts);
                Ty::List(ty.inside())
            }
            Kind::Map(entries) => {
                let key = self.alike(entries.iter().map(|entry| (&entry.key, false)));
                let value =
                    self.alike(entries.iter().map(|entry| (&entry.value, entry.is_optional)));
                Ty::Map(key.inside(), value.inside())
            }
            Kind::And(terms) | Kind::Or(terms) => {
                for term in terms {
                    let ty = self.ty(term);
                    if !ty.may_be_bool() {
                        let message = format!("expected type 'bool' but found '{ty}'");
                        self.complain(term.at, message);
                    }
                }
                BOOL
            }
            Kind::If(parts) => {
                let types: Vec<Ty<'s>> = parts.iter().map(|part| self.ty(part)).collect();
                if !types[0].may_be_bool() || !matches(&types[1], &types[2]) {
                    return self.no_overload(at, "_?_:_", &types, false);
                }
                common(&types[1..])
            }
            Kind::Not(inner) => {
                let ty = self.ty(inner);
                if ty.may_be_bool() { BOOL } else { self.no_overload(at, "!_", &[ty], false) }
            }
            Kind::Negate(inner) => match self.ty(inner) {
                ty @ (Ty::Dyn | Ty::Plain('i' | 'd' | 'r')) => ty,
                ty => self.no_overload(at, "-_", &[ty], false),
            },
            Kind::Binary(operator, sides) => {
                let left = self.ty(&sides[0]);
                let right = self.ty(&sides[1]);
                match binary(*operator, &left, &right) {
                    Some(ty) => ty,
                    None => self.no_overload(at, operator.name(), &[left, right], false),
                }
            }
            Kind::Macro(inner) => self.expand(at, inner),
        }
    }

    /// The type that the parts of a literal have in common: they may not differ.
    fn alike(&mut self, parts: impl Iterator<Item = (&'e Expr, bool)>) -> Ty<'s> {
        let mut types: Vec<Ty<'s>> = Vec::new();
        for (part, is_optional) in parts {
            let ty = self.ty(part);
            let ty = if is_optional { unwrapped(ty) } else { ty };
            if let Some(first) = types.first()
                && !matches(&ty, first)
            {
                let message = format!("expected type '{first}' but found '{ty}'");
                self.complain(part.at, message);
            }
            types.push(ty);
        }
        common(&types)
    }

    fn variable(&mut self, at: u32, name: &str) -> Ty<'s> {
        if let Some((_, ty)) = self.scope.iter().rev().find(|(known, _)| *known == name) {
            return ty.clone();
        }
        if let Some(ty) = self.declared(name) {
            return ty;
        }
        match name {
            _ if type_named(name).is_some() => Ty::Plain('T'),
            _ => self.complain(at, format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    /// The type of a name that is given from outside; it is noted that the expression refers to it.
    fn declared(&mut self, name: &str) -> Option<Ty<'s>> {
        let ty = self.declared.type_of(name)?;
        if !self.names.iter().any(|known| **known == *name) {
            self.names.push(name.into());
        }
        Some(ty)
    }

    /// `authorizer.requestResource` is a name with a dot in it.
    fn dotted(&mut self, select: &Select) -> Option<Ty<'s>> {
        let Kind::Ident(first) = &select.operand.kind else { return None };
        if select.mode != SelectMode::Get || self.scope.iter().any(|(known, _)| **known == **first)
        {
            return None;
        }
        self.declared(&format!("{first}.{}", select.field))
    }

    fn select(&mut self, at: u32, select: &'e Select) -> Ty<'s> {
        if let Some(ty) = self.dotted(select) {
            return ty;
        }
        let operand = self.ty(&select.operand);
        let (operand, is_optional) = match operand {
            Ty::Optional(inner) => ((*inner).clone(), true),
            other => (other, select.mode == SelectMode::Optional),
        };
        let found = match operand {
            Ty::Dyn => Ty::Dyn,
            Ty::Map(_, value) => (*value).clone(),
            Ty::Object(shape, visible) => match field(shape, visible, &select.field) {
                Some(ty) => ty,
                None => self.complain(at, format!("undefined field '{}'", select.field)),
            },
            Ty::Record(fields) => {
                let field = fields.iter().find(|(name, _)| **name == *select.field);
                match field.map(|(_, ty)| ty.clone()) {
                    Some(ty) => ty,
                    None => self.complain(at, format!("undefined field '{}'", select.field)),
                }
            }
            other => {
                let message = format!("type '{other}' does not support field selection");
                self.complain(at, message)
            }
        };
        match select.mode {
            SelectMode::Test => BOOL,
            _ if is_optional => Ty::Optional(found.inside()),
            _ => found,
        }
    }

    fn index(&mut self, at: u32, index: &'e Index) -> Ty<'s> {
        let operand = self.ty(&index.operand);
        let key = self.ty(&index.index);
        let (inner, is_optional) = match &operand {
            Ty::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), index.is_optional),
        };
        let found = match &inner {
            Ty::Dyn => Ty::Dyn,
            Ty::List(item) if matches!(key, Ty::Dyn | Ty::Plain('i')) => (**item).clone(),
            Ty::Map(of, value) if matches(&key, of) => (**value).clone(),
            // A field whose name is no identifier is reached like this by some; whether it is
            // there, only the object tells.
            Ty::Object(..) if matches!(key, Ty::Dyn) => Ty::Dyn,
            _ => return self.no_overload(at, "_[_]", &[operand, key], false),
        };
        if is_optional { Ty::Optional(found.inside()) } else { found }
    }

    fn call(&mut self, at: u32, call: &'e Call) -> Ty<'s> {
        let name = &*call.function;
        let mut types: Vec<Ty<'s>> = call.target.iter().map(|target| self.ty(target)).collect();
        for argument in &call.arguments {
            types.push(match &argument.kind {
                // What is put into a text may be of all sorts.
                Kind::List(elements) if name == "format" => {
                    for element in elements {
                        self.ty(&element.value);
                    }
                    Ty::List(Ty::Dyn.inside())
                }
                _ => self.ty(argument),
            });
        }
        let Some(signatures) = overloads(name) else {
            let message = format!("undeclared reference to '{name}' (in container '')");
            return self.complain(at, message);
        };
        self.check_literals(call);
        let has_target = call.target.is_some();
        let mut results = Vec::new();
        for signature in signatures.split(' ') {
            if let Some(result) = apply(signature, &types, has_target) {
                results.push(result);
            }
        }
        match results.len() {
            0 => self.no_overload(at, name, &types, has_target),
            _ => common(&results),
        }
    }

    /// Patterns, durations and timestamps that are written out are checked, and patterns compiled,
    /// once.
    fn check_literals(&mut self, call: &'e Call) {
        let literal = |expression: &'e Expr| match &expression.kind {
            Kind::Literal(Literal::String(text)) => Some((expression.at, &**text)),
            _ => None,
        };
        let arguments = &call.arguments;
        let first = arguments.first().and_then(literal);
        match (&*call.function, first) {
            ("matches" | "find" | "findAll", _) => {
                let place = usize::from(call.target.is_none());
                let Some((at, source)) = arguments.get(place).and_then(literal) else { return };
                match Pattern::new(source, 256 << 10) {
                    Ok(pattern) => {
                        self.patterns.insert(source.into(), pattern);
                    }
                    Err(_) => {
                        self.complain(at, format!("invalid {} argument", call.function));
                    }
                }
            }
            ("duration", Some((at, text))) if formats::parse_duration(text).is_none() => {
                self.complain(at, "invalid duration argument".to_owned());
            }
            ("timestamp", Some((at, text))) if formats::parse_rfc3339(text).is_none() => {
                self.complain(at, "invalid timestamp argument".to_owned());
            }
            _ => {}
        }
    }

    fn expand(&mut self, at: u32, inner: &'e Macro) -> Ty<'s> {
        let range = self.ty(&inner.range);
        let is_optional = matches!(inner.kind, MacroKind::OptMap | MacroKind::OptFlatMap);
        let (key, value) = match (&range, is_optional) {
            (Ty::Dyn, _) => (Ty::Dyn, Ty::Dyn),
            (Ty::List(item), false) => (INT, (**item).clone()),
            (Ty::Map(key, value), false) => ((**key).clone(), (**value).clone()),
            (Ty::Optional(item), true) => (Ty::Dyn, (**item).clone()),
            (Ty::Optional(_), false) => (Ty::Dyn, Ty::Dyn),
            _ => {
                let message = format!(
                    "expression of type '{range}' cannot be range of a comprehension \
                     (must be list, map, or dynamic)"
                );
                self.complain(inner.range.at, message);
                (Ty::Dyn, Ty::Dyn)
            }
        };
        let before = self.scope.len();
        match &inner.second {
            Some(second) => {
                self.scope.push((&inner.first, key.clone()));
                self.scope.push((second, value.clone()));
            }
            None => {
                let is_map = matches!(range, Ty::Map(..));
                let one = if is_map { key.clone() } else { value.clone() };
                self.scope.push((&inner.first, one));
            }
        }
        if let Some(filter) = &inner.filter {
            let ty = self.ty(filter);
            if !ty.may_be_bool() {
                self.no_overload(at, "_?_:_", &[ty], false);
            }
        }
        let body = self.ty(&inner.body);
        self.scope.truncate(before);
        let wants_bool = matches!(
            inner.kind,
            MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne | MacroKind::Filter
        );
        if wants_bool && !body.may_be_bool() {
            return self.no_overload(at, "_&&_", &[BOOL, body], false);
        }
        match inner.kind {
            MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne => BOOL,
            MacroKind::Filter if matches!(range, Ty::Map(..)) => Ty::List(key.inside()),
            MacroKind::Filter | MacroKind::SortBy => Ty::List(value.inside()),
            MacroKind::Map | MacroKind::TransformList => Ty::List(body.inside()),
            MacroKind::TransformMap => Ty::Map(key.inside(), body.inside()),
            MacroKind::TransformMapEntry | MacroKind::OptFlatMap => body,
            MacroKind::OptMap => Ty::Optional(body.inside()),
        }
    }
}
