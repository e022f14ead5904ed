//! `fieldPath`: which field below the value an error is about.

use crate::schema::{Form, Shape};

/// Reads a path such as `.spec.replicas` or `.labels['a.b']`, checks that it leads somewhere, and
/// writes it as error messages do: `.spec.replicas`, `.labels[a.b]`.
pub(super) fn relative(text: &str, shape: Shape<'_>) -> Result<String, ()> {
    let mut out = String::new();
    let mut rest = text;
    let mut shape = shape;
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix("['") {
            quoted_name(quoted)?
        } else {
            let plain = rest.strip_prefix('.').ok_or(())?;
            let end = plain.find(['.', '[']).unwrap_or(plain.len());
            (plain[..end].to_owned(), &plain[end..])
        };
        if name.is_empty() {
            return Err(());
        }
        let is_bracketed = rest.starts_with('[');
        let is_map = matches!(&shape.node().form, Form::Map(_));
        if is_map != is_bracketed && is_map {
            return Err(());
        }
        shape = shape.field(&name).ok_or(())?;
        out.push_str(&if is_map { format!("[{name}]") } else { format!(".{name}") });
        rest = after;
    }
    Ok(out)
}

fn quoted_name(quoted: &str) -> Result<(String, &str), ()> {
    let mut name = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' => {
                let after = quoted[at + 1..].strip_prefix(']').ok_or(())?;
                return Ok((name, after));
            }
            '\\' => match characters.next() {
                Some((_, escaped @ ('\'' | '\\'))) => name.push(escaped),
                Some((_, 'n')) => name.push('\n'),
                Some((_, 't')) => name.push('\t'),
                _ => return Err(()),
            },
            other => name.push(other),
        }
    }
    Err(())
}
