//! Evaluation, step by counted step.

use super::ast::{Entry, Expr, Index, Kind, Literal, Macro, MacroKind, Select, SelectMode};
use super::bindings::Variables;
use super::value::{ListVal, MapVal, Text, Val};
use super::{functions, operators};
use crate::schema::checks::Pattern;
use std::collections::HashMap;
use std::sync::Arc;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// It took too many steps. Nothing may hide this.
    Cost,
    /// No operator or function takes such values.
    NoSuchOverload,
    /// Anything else: `no such key: x`, `division by zero`.
    Other(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Cost => formatter.write_str("operation cancelled: actual cost limit exceeded"),
            Fault::NoSuchOverload => formatter.write_str("no such overload"),
            Fault::Other(text) => formatter.write_str(text),
        }
    }
}

pub(super) type Evaluated<'a> = Result<Val<'a>, Fault>;

pub(super) fn fault<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Other(text.into()))
}

/// What the variables of a macro stand for once: a key and its value, or an index and its element.
#[derive(Clone)]
struct Iteration<'a> {
    key: Val<'a>,
    value: Val<'a>,
}

pub(super) struct Evaluator<'a> {
    variables: Variables<'a>,
    /// The variables of the macros around, innermost last.
    scope: Vec<(&'a str, Val<'a>)>,
    patterns: &'a HashMap<Box<str>, Pattern>,
    /// Patterns that were made by the expression.
    made: HashMap<Box<str>, Pattern>,
    left: u64,
}

pub(super) fn evaluate<'a>(
    expression: &'a Expr,
    patterns: &'a HashMap<Box<str>, Pattern>,
    variables: Variables<'a>,
    budget: &mut u64,
) -> Evaluated<'a> {
    let mut evaluator =
        Evaluator { variables, scope: Vec::new(), patterns, made: HashMap::new(), left: *budget };
    let result = evaluator.value(expression);
    *budget = evaluator.left;
    // An operator that forgives errors may have hidden that the steps ran out.
    if evaluator.left == 0 { Err(Fault::Cost) } else { result }
}

impl<'a> Evaluator<'a> {
    /// Takes steps from the budget.
    pub(super) fn charge(&mut self, steps: usize) -> Result<(), Fault> {
        self.left = self.left.saturating_sub(steps as u64);
        if self.left == 0 { Err(Fault::Cost) } else { Ok(()) }
    }

    /// Texts cost a step for each ten bytes that are read.
    pub(super) fn charge_text(&mut self, bytes: usize) -> Result<(), Fault> {
        self.charge(1 + bytes / 10)
    }

    pub(super) fn value(&mut self, expression: &'a Expr) -> Evaluated<'a> {
        self.charge(1)?;
        match &expression.kind {
            Kind::Literal(literal) => Ok(from_literal(literal)),
            Kind::Ident(name) => self.variable(name),
            Kind::Select(select) => self.select(select),
            Kind::Index(index) => self.index(index),
            Kind::Call(call) => functions::call(self, call),
            Kind::List(elements) => {
                let mut items = Vec::with_capacity(elements.len());
                for element in elements {
                    let value = self.value(&element.value)?;
                    match (element.is_optional, value) {
                        (true, Val::Optional(None)) => {}
                        (true, Val::Optional(Some(value))) => items.push((*value).clone()),
                        (_, value) => items.push(value),
                    }
                }
                Ok(Val::list(items))
            }
            Kind::Map(entries) => self.map(entries),
            Kind::And(terms) => self.junction(terms, false),
            Kind::Or(terms) => self.junction(terms, true),
            Kind::If(parts) => {
                let [condition, then, otherwise] = &**parts;
                match self.value(condition)? {
                    Val::Bool(true) => self.value(then),
                    Val::Bool(false) => self.value(otherwise),
                    _ => Err(Fault::NoSuchOverload),
                }
            }
            Kind::Not(inner) => match self.value(inner)? {
                Val::Bool(value) => Ok(Val::Bool(!value)),
                _ => Err(Fault::NoSuchOverload),
            },
            Kind::Negate(inner) => {
                let value = self.value(inner)?;
                operators::negate(&value)
            }
            Kind::Binary(operator, sides) => {
                let left = self.value(&sides[0])?;
                let right = self.value(&sides[1])?;
                operators::binary(self, *operator, left, right)
            }
            Kind::Macro(inner) => self.expand(inner),
        }
    }

    fn variable(&self, name: &str) -> Evaluated<'a> {
        if let Some((_, value)) = self.scope.iter().rev().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        let given = match (&self.variables, name) {
            (Variables::Rule { own, .. }, "self") => Some(own.clone()),
            (Variables::Rule { old: Some(old), .. }, "oldSelf") => Some(old.clone()),
            (Variables::Rule { .. }, _) => None,
            (Variables::Admission(admission), name) => admission.value(name),
        };
        match given {
            Some(value) => Ok(value),
            None => match super::signatures::type_named(name) {
                Some(name) => Ok(Val::Type(name)),
                None => fault(format!("no such attribute(s): {name}")),
            },
        }
    }

    /// `&&` and `||`: one term that decides makes errors in the others not matter.
    fn junction(&mut self, terms: &'a [Expr], decides: bool) -> Evaluated<'a> {
        let mut first_fault = None;
        for term in terms {
            match self.value(term) {
                Ok(Val::Bool(value)) if value == decides => return Ok(Val::Bool(decides)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => first_fault = first_fault.or(Some(Fault::NoSuchOverload)),
                Err(Fault::Cost) => return Err(Fault::Cost),
                Err(fault) => first_fault = first_fault.or(Some(fault)),
            }
        }
        first_fault.map_or(Ok(Val::Bool(!decides)), Err)
    }

    /// What is behind `variables.x` and `authorizer.requestResource`, which are no fields of a value.
    fn dotted(&self, select: &Select) -> Option<Evaluated<'a>> {
        let (Variables::Admission(admission), Kind::Ident(first)) =
            (&self.variables, &select.operand.kind)
        else {
            return None;
        };
        if self.scope.iter().any(|(known, _)| **known == **first) {
            return None;
        }
        match (&**first, select.mode) {
            ("variables", SelectMode::Get) => Some(admission.composed(&select.field)),
            ("variables", SelectMode::Test) => {
                Some(Ok(Val::Bool(admission.has_composed(&select.field))))
            }
            ("variables", SelectMode::Optional) => {
                Some(admission.composed(&select.field).map(Val::some))
            }
            ("authorizer", SelectMode::Get) if &*select.field == "requestResource" => {
                admission.value("authorizer.requestResource").map(Ok)
            }
            _ => None,
        }
    }

    fn select(&mut self, select: &'a Select) -> Evaluated<'a> {
        if let Some(value) = self.dotted(select) {
            return value;
        }
        let operand = self.value(&select.operand)?;
        let field = &*select.field;
        match (operand, select.mode) {
            // What is null has no fields: nothing is in it, and nothing can be read.
            (Val::Null, SelectMode::Test) => Ok(Val::Bool(false)),
            (Val::Null, SelectMode::Get) => fault(format!("no such key: {field}")),
            (Val::Null, SelectMode::Optional) => Ok(Val::Optional(None)),
            (Val::Optional(None), SelectMode::Test) => Ok(Val::Bool(false)),
            (Val::Optional(None), _) => Ok(Val::Optional(None)),
            (Val::Optional(Some(inner)), mode) => match (&*inner, mode) {
                (Val::Map(map), SelectMode::Test) => Ok(Val::Bool(map.field(field).is_some())),
                (Val::Map(map), _) => Ok(Val::Optional(map.field(field).map(Arc::new))),
                _ => Err(Fault::NoSuchOverload),
            },
            (Val::Map(map), SelectMode::Get) => match map.field(field) {
                Some(value) => Ok(value),
                None => fault(format!("no such key: {field}")),
            },
            (Val::Map(map), SelectMode::Test) => Ok(Val::Bool(map.field(field).is_some())),
            (Val::Map(map), SelectMode::Optional) => {
                Ok(Val::Optional(map.field(field).map(Arc::new)))
            }
            _ => Err(Fault::NoSuchOverload),
        }
    }

    fn index(&mut self, index: &'a Index) -> Evaluated<'a> {
        let operand = self.value(&index.operand)?;
        let key = self.value(&index.index)?;
        let (operand, is_optional) = match operand {
            Val::Optional(None) => return Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, index.is_optional),
        };
        let found = match &operand {
            Val::List(list) => match whole(&key) {
                Some(place) => usize::try_from(place).ok().and_then(|place| list.get(place)),
                None => return Err(Fault::NoSuchOverload),
            },
            Val::Map(map) => {
                if let MapVal::Made(entries) = map {
                    self.charge(entries.len())?;
                }
                map.get(&key)
            }
            _ => return Err(Fault::NoSuchOverload),
        };
        match (found, is_optional) {
            (found, true) => Ok(Val::Optional(found.map(Arc::new))),
            (Some(value), false) => Ok(value),
            (None, false) => {
                let key = functions::shown(&key);
                match operand {
                    Val::List(_) => fault(format!("index out of bounds: {key}")),
                    _ => fault(format!("no such key: {key}")),
                }
            }
        }
    }

    fn map(&mut self, entries: &'a [Entry]) -> Evaluated<'a> {
        let mut out: Vec<(Val<'a>, Val<'a>)> = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = self.value(&entry.key)?;
            let value = self.value(&entry.value)?;
            let value = match (entry.is_optional, value) {
                (true, Val::Optional(None)) => continue,
                (true, Val::Optional(Some(value))) => (*value).clone(),
                (_, value) => value,
            };
            self.insert(&mut out, key, value)?;
        }
        Ok(Val::Map(MapVal::Made(Arc::new(out))))
    }

    fn insert(
        &mut self,
        entries: &mut Vec<(Val<'a>, Val<'a>)>,
        key: Val<'a>,
        value: Val<'a>,
    ) -> Result<(), Fault> {
        if !matches!(key, Val::String(_) | Val::Int(_) | Val::Uint(_) | Val::Bool(_)) {
            return fault("unsupported key type");
        }
        self.charge(entries.len())?;
        if entries.iter().any(|(other, _)| operators::is_same_scalar(other, &key)) {
            return fault(format!("Failed with repeated key: {}", functions::shown(&key)));
        }
        entries.push((key, value));
        Ok(())
    }

    /// What a macro runs over.
    fn iterations(&mut self, range: Val<'a>) -> Result<Vec<Iteration<'a>>, Fault> {
        match range {
            Val::List(list) => {
                self.charge(list.len())?;
                let number = |index: usize| Val::Int(i64::try_from(index).unwrap_or(i64::MAX));
                let iteration = |(index, value)| Iteration { key: number(index), value };
                Ok(list.iter().enumerate().map(iteration).collect())
            }
            Val::Map(map) => {
                let keys = map.keys();
                self.charge(keys.len())?;
                if let MapVal::Made(entries) = &map {
                    let iteration = |(key, value): &(Val<'a>, Val<'a>)| Iteration {
                        key: key.clone(),
                        value: value.clone(),
                    };
                    return Ok(entries.iter().map(iteration).collect());
                }
                let value = |key: &Val<'a>| map.get(key).unwrap_or(Val::Null);
                Ok(keys
                    .iter()
                    .map(|key| Iteration { key: key.clone(), value: value(key) })
                    .collect())
            }
            _ => Err(Fault::NoSuchOverload),
        }
    }

    /// Evaluates with the macro's variables set.
    fn within(
        &mut self,
        inner: &'a Macro,
        iteration: Iteration<'a>,
        body: &'a Expr,
        is_map: bool,
    ) -> Evaluated<'a> {
        let Iteration { key, value } = iteration;
        let before = self.scope.len();
        match &inner.second {
            Some(second) => {
                self.scope.push((&inner.first, key));
                self.scope.push((second, value));
            }
            // With one variable, a map gives its keys and a list its elements.
            None => self.scope.push((&inner.first, if is_map { key } else { value })),
        }
        let result = self.value(body);
        self.scope.truncate(before);
        result
    }

    fn expand(&mut self, inner: &'a Macro) -> Evaluated<'a> {
        let range = self.value(&inner.range)?;
        if matches!(inner.kind, MacroKind::OptMap | MacroKind::OptFlatMap) {
            return self.map_optional(inner, range);
        }
        let is_map = matches!(range, Val::Map(_));
        let iterations = self.iterations(range)?;
        match inner.kind {
            MacroKind::All => self.quantify(inner, iterations, is_map, false),
            MacroKind::Exists => self.quantify(inner, iterations, is_map, true),
            MacroKind::ExistsOne => {
                let mut found = 0;
                for iteration in iterations {
                    match self.within(inner, iteration, &inner.body, is_map)? {
                        Val::Bool(value) => found += usize::from(value),
                        _ => return Err(Fault::NoSuchOverload),
                    }
                }
                Ok(Val::Bool(found == 1))
            }
            _ => self.transform(inner, iterations, is_map),
        }
    }

    fn map_optional(&mut self, inner: &'a Macro, range: Val<'a>) -> Evaluated<'a> {
        let Val::Optional(found) = range else { return Err(Fault::NoSuchOverload) };
        let Some(value) = found else { return Ok(Val::Optional(None)) };
        let iteration = Iteration { key: Val::Null, value: (*value).clone() };
        let result = self.within(inner, iteration, &inner.body, false)?;
        match (inner.kind, result) {
            (MacroKind::OptMap, value) => Ok(Val::some(value)),
            (_, value @ Val::Optional(_)) => Ok(value),
            _ => Err(Fault::NoSuchOverload),
        }
    }

    fn quantify(
        &mut self,
        inner: &'a Macro,
        iterations: Vec<Iteration<'a>>,
        is_map: bool,
        decides: bool,
    ) -> Evaluated<'a> {
        let mut last_fault = None;
        for iteration in iterations {
            match self.within(inner, iteration, &inner.body, is_map) {
                Ok(Val::Bool(value)) if value == decides => return Ok(Val::Bool(decides)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => last_fault = Some(Fault::NoSuchOverload),
                Err(Fault::Cost) => return Err(Fault::Cost),
                Err(fault) => last_fault = Some(fault),
            }
        }
        last_fault.map_or(Ok(Val::Bool(!decides)), Err)
    }

    /// The macros that make lists and maps.
    fn transform(
        &mut self,
        inner: &'a Macro,
        iterations: Vec<Iteration<'a>>,
        is_map: bool,
    ) -> Evaluated<'a> {
        let mut items = Vec::new();
        let mut entries = Vec::new();
        for iteration in iterations {
            if let Some(filter) = &inner.filter {
                match self.within(inner, iteration.clone(), filter, is_map)? {
                    Val::Bool(true) => {}
                    Val::Bool(false) => continue,
                    _ => return Err(Fault::NoSuchOverload),
                }
            }
            let Iteration { key, value } = iteration.clone();
            let result = self.within(inner, iteration, &inner.body, is_map)?;
            match (inner.kind, result) {
                (MacroKind::Filter, Val::Bool(true)) => {
                    items.push(if is_map { key } else { value })
                }
                (MacroKind::Filter, Val::Bool(false)) => {}
                (MacroKind::Filter, _) => return Err(Fault::NoSuchOverload),
                (MacroKind::SortBy, by) => entries.push((by, value)),
                (MacroKind::TransformMap, result) => self.insert(&mut entries, key, result)?,
                (MacroKind::TransformMapEntry, Val::Map(map)) => {
                    for key in map.keys() {
                        let value = map.get(&key).unwrap_or(Val::Null);
                        self.insert(&mut entries, key, value)?;
                    }
                }
                (MacroKind::TransformMapEntry, _) => return Err(Fault::NoSuchOverload),
                (_, result) => items.push(result),
            }
        }
        match inner.kind {
            MacroKind::SortBy => super::lists::sort_by(self, entries),
            MacroKind::TransformMap | MacroKind::TransformMapEntry => {
                Ok(Val::Map(MapVal::Made(Arc::new(entries))))
            }
            _ => Ok(Val::list(items)),
        }
    }

    /// A pattern: those that are written in the expression were compiled with it.
    pub(super) fn pattern(&mut self, source: &str) -> Result<Pattern, Fault> {
        if let Some(known) = self.patterns.get(source).or_else(|| self.made.get(source)) {
            return Ok(known.clone());
        }
        // Compiling costs far more than matching.
        self.charge(1_000 + 10 * source.len())?;
        match Pattern::new(source, 64 << 10) {
            Ok(pattern) => {
                self.made.insert(source.into(), pattern.clone());
                Ok(pattern)
            }
            Err(error) => fault(format!("Illegal regex: {error}")),
        }
    }
}

/// A whole number: an index may be written as a double without a fraction.
fn whole(value: &Val<'_>) -> Option<i64> {
    match value {
        Val::Int(value) => Some(*value),
        Val::Uint(value) => Some(i64::try_from(*value).unwrap_or(i64::MAX)),
        Val::Double(value) if value.fract() == 0.0 => Some(*value as i64),
        _ => None,
    }
}

fn from_literal(literal: &Literal) -> Val<'_> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(value) => Val::Bool(*value),
        Literal::Int(value) => Val::Int(*value),
        Literal::Uint(value) => Val::Uint(*value),
        Literal::Double(value) => Val::Double(*value),
        Literal::String(text) => Val::String(Text::Borrowed(text)),
        Literal::Bytes(bytes) => Val::Bytes(Arc::clone(bytes)),
    }
}

/// The list that a function was given.
pub(super) fn as_list<'v, 'a>(value: &'v Val<'a>) -> Result<&'v ListVal<'a>, Fault> {
    match value {
        Val::List(list) => Ok(list),
        _ => Err(Fault::NoSuchOverload),
    }
}
