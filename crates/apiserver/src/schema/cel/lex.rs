//! The words of an expression.

use super::SourceError;
use super::ast::Literal;

#[derive(Debug, Clone)]
pub(super) enum Token {
    Ident(Box<str>),
    Literal(Literal),
    Symbol(&'static str),
    End,
}

pub(super) struct Lexed {
    pub(super) at: u32,
    pub(super) token: Token,
}

const SYMBOLS: [&str; 26] = [
    "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "!", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}", "=", "&",
];

/// Words that no identifier may be.
pub(super) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a word is a literal, an operator or reserved: none of them can be an identifier.
pub(crate) fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "in") || RESERVED.contains(&word)
}

/// Cuts the source into words; the last one is always the end.
pub(super) fn lex(source: &str) -> Result<Vec<Lexed>, SourceError> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let byte = source.as_bytes()[at];
        if byte.is_ascii_whitespace() || byte == 0x0b {
            at += 1;
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let place = u32::try_from(at).unwrap_or(u32::MAX);
        let (token, length) = next(rest, place)?;
        out.push(Lexed { at: place, token });
        at += length;
    }
    let end = u32::try_from(source.len()).unwrap_or(u32::MAX);
    out.push(Lexed { at: end, token: Token::End });
    Ok(out)
}

fn next(rest: &str, at: u32) -> Result<(Token, usize), SourceError> {
    let byte = rest.as_bytes()[0];
    let starts_number = byte.is_ascii_digit()
        || (byte == b'.' && rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit));
    if starts_number {
        return number(rest, at);
    }
    if let Some(quoted) = string(rest, at)? {
        return Ok(quoted);
    }
    if byte.is_ascii_alphabetic() || byte == b'_' {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let token = match &rest[..length] {
            "true" => Token::Literal(Literal::Bool(true)),
            "false" => Token::Literal(Literal::Bool(false)),
            "null" => Token::Literal(Literal::Null),
            "in" => Token::Symbol("in"),
            word => Token::Ident(word.into()),
        };
        return Ok((token, length));
    }
    match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
        Some(symbol) => Ok((Token::Symbol(symbol), symbol.len())),
        None => {
            let character = rest.chars().next().unwrap_or(' ');
            let message = format!("Syntax error: token recognition error at: '{character}'");
            Err(SourceError::new(at, message))
        }
    }
}

fn number(rest: &str, at: u32) -> Result<(Token, usize), SourceError> {
    let bytes = rest.as_bytes();
    let is_hex = rest.starts_with("0x") || rest.starts_with("0X");
    let start = if is_hex { 2 } else { 0 };
    let count = |from: usize, hex: bool| {
        let is_digit =
            |byte: &&u8| if hex { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
        bytes[from..].iter().take_while(is_digit).count()
    };
    let mut end = start + count(start, is_hex);
    let mut is_double = false;
    if !is_hex {
        if bytes.get(end) == Some(&b'.') && count(end + 1, false) > 0 {
            is_double = true;
            end += 1 + count(end + 1, false);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let digits = bytes.get(end + 1 + sign..).map_or(0, |_| count(end + 1 + sign, false));
            if digits > 0 {
                is_double = true;
                end += 1 + sign + digits;
            }
        }
    }
    let text = &rest[start..end];
    let radix = if is_hex { 16 } else { 10 };
    if is_double {
        let value: f64 =
            text.parse().map_err(|_| SourceError::new(at, "invalid double literal"))?;
        return Ok((Token::Literal(Literal::Double(value)), end));
    }
    if matches!(bytes.get(end), Some(b'u' | b'U')) {
        let value = u64::from_str_radix(text, radix)
            .map_err(|_| SourceError::new(at, "invalid uint literal"))?;
        return Ok((Token::Literal(Literal::Uint(value)), end + 1));
    }
    // The smallest number has no positive twin: it comes as an unsigned one, for the minus before
    // it to fix.
    match u64::from_str_radix(text, radix) {
        Ok(value) if i64::try_from(value).is_ok() => {
            Ok((Token::Literal(Literal::Int(value.cast_signed())), end))
        }
        Ok(value) if value == 1 << 63 => Ok((Token::Literal(Literal::Int(i64::MIN)), end)),
        _ => Err(SourceError::new(at, "invalid int literal")),
    }
}

/// A quoted text or bytes, if there is one here.
fn string(rest: &str, at: u32) -> Result<Option<(Token, usize)>, SourceError> {
    let prefix = rest.bytes().take_while(|byte| b"rRbB".contains(byte)).count().min(2);
    let (letters, quoted) = rest.split_at(prefix);
    let Some(quote) = ["\"\"\"", "'''", "\"", "'"].iter().find(|quote| quoted.starts_with(**quote))
    else {
        return Ok(None);
    };
    let is_raw = letters.contains(['r', 'R']);
    let is_bytes = letters.contains(['b', 'B']);
    let body = &quoted[quote.len()..];
    let mut end = 0;
    loop {
        let Some(character) = body[end..].chars().next() else {
            return Err(SourceError::new(at, "Syntax error: unterminated string"));
        };
        if body[end..].starts_with(*quote) {
            break;
        }
        if quote.len() == 1 && matches!(character, '\n' | '\r') {
            return Err(SourceError::new(at, "Syntax error: unterminated string"));
        }
        end += character.len_utf8();
        if character == '\\' && !is_raw {
            end += body[end..].chars().next().map_or(0, char::len_utf8);
        }
    }
    let length = prefix + quote.len() + end + quote.len();
    let text = &body[..end];
    let literal = if is_bytes {
        let bytes = if is_raw { text.as_bytes().to_vec() } else { unescape(text, true, at)? };
        Literal::Bytes(bytes.into())
    } else if is_raw {
        Literal::String(text.into())
    } else {
        let bytes = unescape(text, false, at)?;
        let text =
            String::from_utf8(bytes).map_err(|_| SourceError::new(at, "invalid string literal"))?;
        Literal::String(text.into())
    };
    Ok(Some((Token::Literal(literal), length)))
}

fn unescape(text: &str, is_bytes: bool, at: u32) -> Result<Vec<u8>, SourceError> {
    let wrong = || SourceError::new(at, "invalid escape sequence in string literal");
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..place]);
        let escaped = rest[place + 1..].chars().next().ok_or_else(wrong)?;
        rest = &rest[place + 1 + escaped.len_utf8()..];
        let (digits, radix) = match escaped {
            'x' | 'X' => (2, 16),
            'u' if !is_bytes => (4, 16),
            'U' if !is_bytes => (8, 16),
            '0'..='3' => (2, 8),
            _ => {
                let byte = match escaped {
                    'a' => 7,
                    'b' => 8,
                    'f' => 12,
                    'n' => b'\n',
                    'r' => b'\r',
                    't' => b'\t',
                    'v' => 11,
                    '\\' | '?' | '"' | '\'' | '`' => escaped as u8,
                    _ => return Err(wrong()),
                };
                out.push(byte);
                continue;
            }
        };
        let code = rest.get(..digits).ok_or_else(wrong)?;
        rest = &rest[digits..];
        let high = if radix == 8 { u32::from(escaped as u8 - b'0') * 64 } else { 0 };
        let value = high + u32::from_str_radix(code, radix).map_err(|_| wrong())?;
        if is_bytes {
            out.push(u8::try_from(value).map_err(|_| wrong())?);
        } else {
            let character = char::from_u32(value).ok_or_else(wrong)?;
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}
