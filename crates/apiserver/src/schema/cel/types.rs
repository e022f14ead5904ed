//! Types, as far as a schema tells them, and what operators and functions make of them.

use super::ast::Operator;
use super::value::declared;
use crate::schema::{Form, Shape};
use std::fmt;
use std::rc::Rc;

/// The type of an expression.
#[derive(Debug, Clone)]
pub(crate) enum Ty<'s> {
    /// Nothing is known.
    Dyn,
    /// One of the types that have a letter in the signatures.
    Plain(char),
    List(Rc<Ty<'s>>),
    Map(Rc<Ty<'s>>, Rc<Ty<'s>>),
    Optional(Rc<Ty<'s>>),
    /// An object with known fields; of a whole object's metadata, only the names are known to
    /// rules.
    Object(Shape<'s>, Visible),
    /// An object whose fields are expressions: `variables`.
    Record(Rc<Vec<(Box<str>, Ty<'s>)>>),
}

/// What of an object can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visible {
    All,
    /// A whole object: its metadata is of the next sort.
    Whole,
    /// Metadata.
    NamesOnly,
}

/// Types nested deeper than this are not distinguished.
const MAX_TYPE_DEPTH: u32 = 6;

pub(super) const BOOL: Ty<'static> = Ty::Plain('b');
pub(super) const INT: Ty<'static> = Ty::Plain('i');
pub(super) const STRING: Ty<'static> = Ty::Plain('s');

impl fmt::Display for Ty<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Dyn => formatter.write_str("dyn"),
            Ty::Plain(letter) => formatter.write_str(match letter {
                'b' => "bool",
                'i' => "int",
                'u' => "uint",
                'd' => "double",
                's' => "string",
                'y' => "bytes",
                't' => "timestamp",
                'r' => "duration",
                'n' => "null",
                'T' => "type",
                'Q' => "kubernetes.Quantity",
                'V' => "kubernetes.Semver",
                'P' => "net.IP",
                'C' => "net.CIDR",
                'U' => "kubernetes.URL",
                'Z' => "kubernetes.authorization.Authorizer",
                'p' => "kubernetes.authorization.PathCheck",
                'g' => "kubernetes.authorization.GroupCheck",
                'R' => "kubernetes.authorization.ResourceCheck",
                'D' => "kubernetes.authorization.Decision",
                _ => "kubernetes.NamedFormat",
            }),
            Ty::List(item) => write!(formatter, "list({item})"),
            Ty::Map(key, value) => write!(formatter, "map({key}, {value})"),
            Ty::Optional(inner) => write!(formatter, "optional_type({inner})"),
            Ty::Object(..) | Ty::Record(_) => formatter.write_str("object"),
        }
    }
}

impl<'s> Ty<'s> {
    /// The type of what a schema describes.
    pub(super) fn of(shape: Shape<'s>, visible: Visible) -> Ty<'s> {
        // Built-in types are known by their names.
        if let Some(name) = shape.node().name.as_deref()
            && (name.ends_with(".meta.v1.Time") || name.ends_with(".meta.v1.MicroTime"))
        {
            return Ty::Plain('t');
        }
        let checks = shape.node().checks.as_deref();
        if checks.is_some_and(|checks| checks.accepts_any_type) {
            return Ty::Dyn;
        }
        let format = checks.and_then(|checks| checks.format.as_deref());
        match &shape.node().form {
            Form::Any | Form::IntOrString => Ty::Dyn,
            Form::Boolean => BOOL,
            Form::Integer => INT,
            Form::Number => Ty::Plain('d'),
            Form::String => Ty::Plain(match format {
                Some("date-time" | "datetime" | "date") => 't',
                Some("duration") => 'r',
                Some("byte") => 'y',
                _ => 's',
            }),
            Form::Object(object) => {
                let is_whole = object.is_embedded_resource && visible == Visible::All;
                Ty::Object(shape, if is_whole { Visible::Whole } else { visible })
            }
            Form::Map(map) => {
                Ty::Map(Rc::new(STRING), Ty::of(shape.at(map.values), Visible::All).inside())
            }
            Form::List(list) => Ty::List(Ty::of(shape.at(list.items), Visible::All).inside()),
        }
    }

    /// The type of whole objects that a schema describes, with all of their metadata.
    pub(crate) fn of_whole(shape: Shape<'s>) -> Ty<'s> {
        Ty::of(shape, Visible::All)
    }

    /// Whether a value of the type can be a bool; what is not known may be.
    pub(crate) fn may_be_bool(&self) -> bool {
        matches!(self, Ty::Dyn | Ty::Plain('b'))
    }

    /// Whether a value of the type can be a text.
    pub(crate) fn may_be_string(&self) -> bool {
        matches!(self, Ty::Dyn | Ty::Plain('s'))
    }

    /// Whether it makes sense to compare a value of the type with `null`.
    pub(super) fn may_be_null(&self) -> bool {
        match self {
            Ty::Dyn | Ty::Object(..) | Ty::Record(_) | Ty::Optional(_) => true,
            Ty::Plain(letter) => !matches!(letter, 'b' | 'i' | 'u' | 'd' | 's' | 'y'),
            Ty::List(_) | Ty::Map(..) => false,
        }
    }

    /// How deep lists, maps and optionals are nested in it.
    fn depth(&self) -> u32 {
        match self {
            Ty::Dyn | Ty::Plain(_) | Ty::Object(..) | Ty::Record(_) => 0,
            Ty::List(inner) | Ty::Optional(inner) => 1 + inner.depth(),
            Ty::Map(key, value) => 1 + key.depth().max(value.depth()),
        }
    }

    /// As a part of another type. Types that a rule nests without end are not followed: their trees
    /// would double with each step.
    pub(super) fn inside(self) -> Rc<Ty<'s>> {
        Rc::new(if self.depth() < MAX_TYPE_DEPTH { self } else { Ty::Dyn })
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Ty::Plain('i' | 'u' | 'd'))
    }
}

pub(super) fn field<'s>(shape: Shape<'s>, visible: Visible, name: &str) -> Option<Ty<'s>> {
    if visible == Visible::NamesOnly {
        return matches!(name, "name" | "generateName").then_some(STRING);
    }
    let (_, inner) = declared(shape, name)?;
    if visible == Visible::Whole && name == "metadata" {
        return Some(Ty::Object(inner, Visible::NamesOnly));
    }
    Some(Ty::of(inner, Visible::All))
}

pub(super) fn unwrapped(ty: Ty<'_>) -> Ty<'_> {
    match ty {
        Ty::Optional(inner) => (*inner).clone(),
        other => other,
    }
}

/// The type that all have, or nothing is known.
pub(super) fn common<'s>(types: &[Ty<'s>]) -> Ty<'s> {
    let Some(first) = types.first() else { return Ty::Dyn };
    let is_same = types[1..].iter().all(|ty| matches(ty, first) && !matches!(ty, Ty::Dyn));
    if is_same { first.clone() } else { Ty::Dyn }
}

/// Whether a value of one type can stand where the other is wanted.
pub(super) fn matches(given: &Ty<'_>, wanted: &Ty<'_>) -> bool {
    match (given, wanted) {
        (Ty::Dyn, _) | (_, Ty::Dyn) => true,
        (Ty::Plain(one), Ty::Plain(other)) => one == other,
        (Ty::List(one), Ty::List(other)) | (Ty::Optional(one), Ty::Optional(other)) => {
            matches(one, other)
        }
        (Ty::Map(key, value), Ty::Map(other_key, other_value)) => {
            matches(key, other_key) && matches(value, other_value)
        }
        (Ty::Object(..) | Ty::Record(_), Ty::Object(..) | Ty::Record(_)) => true,
        _ => false,
    }
}

/// The type that an operator gives, if it takes such operands.
pub(super) fn binary<'s>(operator: Operator, left: &Ty<'s>, right: &Ty<'s>) -> Option<Ty<'s>> {
    let any_dyn = matches!(left, Ty::Dyn) || matches!(right, Ty::Dyn);
    match operator {
        Operator::Equal | Operator::NotEqual => {
            let is_null = |ty: &Ty<'_>| matches!(ty, Ty::Plain('n'));
            let has_null =
                (is_null(left) && right.may_be_null()) || (is_null(right) && left.may_be_null());
            (has_null || matches(left, right)).then_some(BOOL)
        }
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            let is_numeric = left.is_number() && right.is_number();
            let can_be_ordered = matches!(left, Ty::Plain('b' | 's' | 'y' | 't' | 'r'));
            let is_fine = any_dyn || is_numeric || (can_be_ordered && matches(left, right));
            is_fine.then_some(BOOL)
        }
        Operator::In => match right {
            Ty::Dyn => Some(BOOL),
            Ty::List(item) => matches(left, item).then_some(BOOL),
            Ty::Map(key, _) => matches(left, key).then_some(BOOL),
            _ => None,
        },
        Operator::Add | Operator::Subtract => arithmetic(operator, left, right),
        Operator::Multiply | Operator::Divide | Operator::Modulo => match (left, right) {
            (Ty::Dyn, Ty::Dyn) => Some(Ty::Dyn),
            (Ty::Dyn, ty) | (ty, Ty::Dyn) => ty.is_number().then(|| ty.clone()),
            (Ty::Plain('d'), Ty::Plain('d')) if operator == Operator::Modulo => None,
            _ => (left.is_number() && matches(left, right)).then(|| left.clone()),
        },
    }
}

fn arithmetic<'s>(operator: Operator, left: &Ty<'s>, right: &Ty<'s>) -> Option<Ty<'s>> {
    let is_sum = operator == Operator::Add;
    match (left, right) {
        // Only one way to do it takes the type that is known.
        (Ty::Dyn, known @ Ty::Plain('i' | 'u' | 'd'))
        | (known @ Ty::Plain('i' | 'u' | 'd'), Ty::Dyn) => Some(known.clone()),
        (Ty::Dyn, known @ Ty::Plain('s' | 'y')) | (known @ Ty::Plain('s' | 'y'), Ty::Dyn)
            if is_sum =>
        {
            Some(known.clone())
        }
        (Ty::Dyn, _) | (_, Ty::Dyn) => Some(Ty::Dyn),
        (Ty::Plain('t'), Ty::Plain('t')) if !is_sum => Some(Ty::Plain('r')),
        (Ty::Plain('t'), Ty::Plain('r')) => Some(Ty::Plain('t')),
        (Ty::Plain('r'), Ty::Plain('t')) if is_sum => Some(Ty::Plain('t')),
        (Ty::Plain(one @ ('i' | 'u' | 'd' | 'r')), Ty::Plain(other)) if one == other => {
            Some(left.clone())
        }
        (Ty::Plain(one @ ('s' | 'y')), Ty::Plain(other)) if one == other && is_sum => {
            Some(left.clone())
        }
        (Ty::List(one), Ty::List(other)) if is_sum && matches(one, other) => {
            Some(Ty::List(common(&[(**one).clone(), (**other).clone()]).inside()))
        }
        _ => None,
    }
}

/// What `A` and `B` stand for.
type Bindings<'s> = [Option<Ty<'s>>; 2];

/// The result of a call, if the signature fits it.
pub(super) fn apply<'s>(signature: &str, types: &[Ty<'s>], has_target: bool) -> Option<Ty<'s>> {
    let (parameters, result) = signature.split_once(':')?;
    if parameters.contains('.') != has_target {
        return None;
    }
    let mut letters = parameters.chars().filter(|letter| *letter != '.').peekable();
    let mut bindings: Bindings<'s> = [None, None];
    for ty in types {
        letters.peek()?;
        if !unify(&mut letters, Some(ty), &mut bindings) {
            return None;
        }
    }
    if letters.peek().is_some() {
        return None;
    }
    Some(read(&mut result.chars(), &bindings))
}

/// Reads one type off the letters and compares; without a type to compare with, only reads.
fn unify<'s>(
    letters: &mut impl Iterator<Item = char>,
    given: Option<&Ty<'s>>,
    bindings: &mut Bindings<'s>,
) -> bool {
    let inner = |wanted: char| match (wanted, given) {
        (_, None | Some(Ty::Dyn)) => Some(None),
        ('L', Some(Ty::List(item))) | ('O', Some(Ty::Optional(item))) => Some(Some(&**item)),
        _ => None,
    };
    match letters.next() {
        None => false,
        Some('*') => true,
        Some(letter @ ('A' | 'B')) => {
            let Some(given) = given else { return true };
            let place = usize::from(letter == 'B');
            match &bindings[place] {
                None => {
                    bindings[place] = Some(given.clone());
                    true
                }
                Some(bound) => matches(given, bound),
            }
        }
        Some(letter @ ('L' | 'O')) => match inner(letter) {
            Some(item) => unify(letters, item, bindings),
            None => false,
        },
        Some('M') => match given {
            None | Some(Ty::Dyn) => {
                unify(letters, None, bindings) && unify(letters, None, bindings)
            }
            Some(Ty::Map(key, value)) => {
                unify(letters, Some(key), bindings) && unify(letters, Some(value), bindings)
            }
            Some(_) => false,
        },
        Some(letter) => match given {
            None | Some(Ty::Dyn) => true,
            Some(Ty::Plain(given)) => *given == letter,
            Some(_) => false,
        },
    }
}

fn read<'s>(letters: &mut impl Iterator<Item = char>, bindings: &Bindings<'s>) -> Ty<'s> {
    match letters.next() {
        None | Some('*') => Ty::Dyn,
        Some('A') => bindings[0].clone().unwrap_or(Ty::Dyn),
        Some('B') => bindings[1].clone().unwrap_or(Ty::Dyn),
        Some('L') => Ty::List(read(letters, bindings).inside()),
        Some('O') => Ty::Optional(read(letters, bindings).inside()),
        Some('M') => {
            let key = read(letters, bindings);
            Ty::Map(key.inside(), read(letters, bindings).inside())
        }
        Some(letter) => Ty::Plain(letter),
    }
}
