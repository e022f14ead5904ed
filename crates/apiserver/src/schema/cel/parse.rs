//! From words to a tree. Macros are recognised here.

use super::SourceError;
use super::ast::{
    Call, Element, Entry, Expr, Index, Kind, Literal, Macro, MacroKind, Operator, Select,
    SelectMode,
};
use super::lex::{Lexed, RESERVED, Token, lex};
use super::signatures::is_qualified;

/// Parentheses and operators may nest so deep: they are read recursively.
const MAX_NESTING: u32 = 96;

/// Reads an expression.
pub(super) fn parse(source: &str) -> Result<Expr, SourceError> {
    let mut parser = Parser { words: lex(source)?, next: 0, depth: 0 };
    let expression = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(expression),
        _ => Err(parser.unexpected()),
    }
}

struct Parser {
    words: Vec<Lexed>,
    next: usize,
    depth: u32,
}

type Parsed = Result<Expr, SourceError>;

const RELATIONS: [(&str, Operator); 7] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("in", Operator::In),
];
const SUMS: [(&str, Operator); 2] = [("+", Operator::Add), ("-", Operator::Subtract)];
const PRODUCTS: [(&str, Operator); 3] =
    [("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Modulo)];

impl Parser {
    fn peek(&self) -> &Token {
        &self.words[self.next.min(self.words.len() - 1)].token
    }

    fn at(&self) -> u32 {
        self.words[self.next.min(self.words.len() - 1)].at
    }

    fn is_at(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(found) if *found == symbol)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.is_at(symbol);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), SourceError> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> SourceError {
        let word = match self.peek() {
            Token::End => "<EOF>".to_owned(),
            Token::Ident(word) => format!("'{word}'"),
            Token::Symbol(symbol) => format!("'{symbol}'"),
            Token::Literal(_) => "literal".to_owned(),
        };
        SourceError::new(self.at(), format!("Syntax error: unexpected {word}"))
    }

    /// One level deeper in the calls that make the tree.
    fn deeper(&mut self) -> Result<(), SourceError> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let message = format!("expression recursion limit exceeded: {MAX_NESTING}");
            return Err(SourceError::new(self.at(), message));
        }
        Ok(())
    }

    fn expression(&mut self) -> Parsed {
        self.deeper()?;
        let condition = self.either()?;
        let at = self.at();
        let result = if self.take("?") {
            let then = self.either()?;
            self.expect(":")?;
            let otherwise = self.expression()?;
            Expr::new(at, Kind::If(Box::new([condition, then, otherwise])))?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(result)
    }

    fn either(&mut self) -> Parsed {
        let first = self.both()?;
        let at = self.at();
        if !self.is_at("||") {
            return Ok(first);
        }
        let mut terms = vec![first];
        while self.take("||") {
            terms.push(self.both()?);
        }
        Expr::new(at, Kind::Or(terms))
    }

    fn both(&mut self) -> Parsed {
        let first = self.chain(0)?;
        let at = self.at();
        if !self.is_at("&&") {
            return Ok(first);
        }
        let mut terms = vec![first];
        while self.take("&&") {
            terms.push(self.chain(0)?);
        }
        Expr::new(at, Kind::And(terms))
    }

    /// Operators that bind to the left, one level of precedence each: relations, sums, products.
    fn chain(&mut self, level: usize) -> Parsed {
        let operators: &[(&str, Operator)] = match level {
            0 => &RELATIONS,
            1 => &SUMS,
            2 => &PRODUCTS,
            _ => return self.unary(),
        };
        let mut left = self.chain(level + 1)?;
        loop {
            let at = self.at();
            let found = operators.iter().find(|(symbol, _)| self.is_at(symbol));
            let Some((_, operator)) = found else { break };
            self.next += 1;
            let right = self.chain(level + 1)?;
            left = Expr::new(at, Kind::Binary(*operator, Box::new([left, right])))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        let at = self.at();
        if self.take("!") {
            self.deeper()?;
            let inner = self.unary()?;
            self.depth -= 1;
            return Expr::new(at, Kind::Not(Box::new(inner)));
        }
        if self.take("-") {
            if let Token::Literal(literal @ (Literal::Int(_) | Literal::Double(_))) = self.peek() {
                let literal = match literal {
                    Literal::Int(value) => Literal::Int(value.wrapping_neg()),
                    Literal::Double(value) => Literal::Double(-value),
                    other => other.clone(),
                };
                self.next += 1;
                return self.members(Expr::new(at, Kind::Literal(literal))?);
            }
            self.deeper()?;
            let inner = self.unary()?;
            self.depth -= 1;
            return Expr::new(at, Kind::Negate(Box::new(inner)));
        }
        if let Token::Literal(Literal::Int(i64::MIN)) = self.peek() {
            return Err(SourceError::new(at, "invalid int literal"));
        }
        let first = self.primary()?;
        self.members(first)
    }

    fn members(&mut self, mut left: Expr) -> Parsed {
        loop {
            let at = self.at();
            if self.take(".") {
                let is_optional = self.take("?");
                let Token::Ident(name) = self.peek().clone() else { return Err(self.unexpected()) };
                self.next += 1;
                let call_at = self.at();
                left = if !is_optional && self.take("(") {
                    let arguments = self.arguments()?;
                    method(left, name, arguments, call_at)?
                } else {
                    let mode = if is_optional { SelectMode::Optional } else { SelectMode::Get };
                    let select = Select { operand: left, field: name, mode };
                    Expr::new(at, Kind::Select(Box::new(select)))?
                };
            } else if self.take("[") {
                let is_optional = self.take("?");
                let index = self.expression()?;
                self.expect("]")?;
                let index = Index { operand: left, index, is_optional };
                left = Expr::new(at, Kind::Index(Box::new(index)))?;
            } else if self.is_at("{") {
                return Err(SourceError::new(at, "messages cannot be made in validation rules"));
            } else {
                return Ok(left);
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        let at = self.at();
        if self.take("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take("[") {
            return self.list(at);
        }
        if self.take("{") {
            return self.map(at);
        }
        self.take(".");
        match self.peek().clone() {
            Token::Literal(literal) => {
                self.next += 1;
                Expr::new(at, Kind::Literal(literal))
            }
            Token::Ident(name) => {
                if RESERVED.contains(&&*name) {
                    let message = format!("reserved identifier: {name}");
                    return Err(SourceError::new(at, message));
                }
                self.next += 1;
                let call_at = self.at();
                if self.take("(") {
                    let arguments = self.arguments()?;
                    return function(name, arguments, call_at);
                }
                Expr::new(at, Kind::Ident(name))
            }
            Token::Symbol(_) | Token::End => Err(self.unexpected()),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, SourceError> {
        let mut out = Vec::new();
        if self.take(")") {
            return Ok(out);
        }
        loop {
            out.push(self.expression()?);
            if self.take(")") {
                return Ok(out);
            }
            self.expect(",")?;
        }
    }

    fn list(&mut self, at: u32) -> Parsed {
        let mut elements = Vec::new();
        while !self.take("]") {
            let is_optional = self.take("?");
            elements.push(Element { value: self.expression()?, is_optional });
            if !self.take(",") && !self.is_at("]") {
                return Err(self.unexpected());
            }
        }
        Expr::new(at, Kind::List(elements))
    }

    fn map(&mut self, at: u32) -> Parsed {
        let mut entries = Vec::new();
        while !self.take("}") {
            let is_optional = self.take("?");
            let key = self.expression()?;
            self.expect(":")?;
            entries.push(Entry { key, value: self.expression()?, is_optional });
            if !self.take(",") && !self.is_at("}") {
                return Err(self.unexpected());
            }
        }
        Expr::new(at, Kind::Map(entries))
    }
}

fn function(name: Box<str>, mut arguments: Vec<Expr>, at: u32) -> Parsed {
    if &*name == "has" && arguments.len() == 1 {
        let argument = arguments.remove(0);
        return match argument.kind {
            Kind::Select(mut select) if select.mode == SelectMode::Get => {
                select.mode = SelectMode::Test;
                Expr::new(at, Kind::Select(select))
            }
            _ => Err(SourceError::new(argument.at, "invalid argument to has() macro")),
        };
    }
    let call = Call { function: name, target: None, arguments };
    Expr::new(at, Kind::Call(Box::new(call)))
}

fn method(target: Expr, name: Box<str>, arguments: Vec<Expr>, at: u32) -> Parsed {
    if let Some(kind) = macro_kind(&name, arguments.len()) {
        return expand(kind, target, arguments, at);
    }
    if let Kind::Ident(space) = &target.kind {
        let qualified = format!("{space}.{name}");
        if is_qualified(&qualified) {
            let call = Call { function: qualified.into(), target: None, arguments };
            return Expr::new(at, Kind::Call(Box::new(call)));
        }
    }
    let call = Call { function: name, target: Some(target), arguments };
    Expr::new(at, Kind::Call(Box::new(call)))
}

fn macro_kind(name: &str, arguments: usize) -> Option<MacroKind> {
    Some(match (name, arguments) {
        ("all", 2 | 3) => MacroKind::All,
        ("exists", 2 | 3) => MacroKind::Exists,
        ("exists_one", 2) | ("existsOne", 3) => MacroKind::ExistsOne,
        ("filter", 2) => MacroKind::Filter,
        ("map", 2 | 3) => MacroKind::Map,
        ("transformList", 3 | 4) => MacroKind::TransformList,
        ("transformMap", 3 | 4) => MacroKind::TransformMap,
        ("transformMapEntry", 3 | 4) => MacroKind::TransformMapEntry,
        ("optMap", 2) => MacroKind::OptMap,
        ("optFlatMap", 2) => MacroKind::OptFlatMap,
        ("sortBy", 2) => MacroKind::SortBy,
        _ => return None,
    })
}

/// Takes the variables off the front of the arguments, the body off their end; what is between is a
/// filter.
fn expand(kind: MacroKind, range: Expr, mut arguments: Vec<Expr>, at: u32) -> Parsed {
    let has_two = match kind {
        MacroKind::TransformList | MacroKind::TransformMap | MacroKind::TransformMapEntry => true,
        MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne => arguments.len() == 3,
        MacroKind::Filter
        | MacroKind::Map
        | MacroKind::OptMap
        | MacroKind::OptFlatMap
        | MacroKind::SortBy => false,
    };
    let body = arguments.pop();
    let mut names = arguments.into_iter();
    let first = variable(names.next())?;
    let second = if has_two { Some(variable(names.next())?) } else { None };
    let filter = names.next();
    let Some(body) = body else {
        return Err(SourceError::new(at, "Syntax error: argument missing"));
    };
    if second.as_deref() == Some(&*first) {
        return Err(SourceError::new(at, "duplicate variable name"));
    }
    let inner = Macro { kind, range, first, second, filter, body };
    Expr::new(at, Kind::Macro(Box::new(inner)))
}

fn variable(argument: Option<Expr>) -> Result<Box<str>, SourceError> {
    match argument {
        Some(Expr { kind: Kind::Ident(name), .. }) => Ok(name),
        Some(other) => Err(SourceError::new(other.at, "argument must be a simple name")),
        None => Err(SourceError::new(0, "argument must be a simple name")),
    }
}
