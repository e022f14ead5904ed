//! The definitions as text: what is committed in `crates/api/crds`, and what can be installed with
//! `kubectl apply`.

use crate::{
    definitions, identity_definitions, node_definitions, tenant_definitions, volume_definitions,
};
use serde_json::Value;
use std::fmt::Write;

/// A definition as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The file's name: the plural of the kind, and `.yaml`.
    pub file_name: String,
    /// Its text, which is YAML.
    pub text: String,
}

/// All definitions, in the order of [`definitions`], [`volume_definitions`], [`identity_definitions`],
/// [`node_definitions`] and [`tenant_definitions`].
pub fn manifests() -> Vec<Manifest> {
    let of_nodes = [node_definitions(), tenant_definitions()].concat();
    let all = [definitions(), volume_definitions(), identity_definitions(), of_nodes].concat();
    let files = all.into_iter().map(|definition| {
        let file_name = format!("{}.yaml", definition.spec.names.plural);
        let value = serde_json::to_value(&definition).expect("a definition has only string keys");
        let text = format!("# Made by `cargo xtask crds`.\n{}", yaml(&value));
        Manifest { file_name, text }
    });
    files.collect()
}

/// An object as YAML.
pub fn yaml(object: &Value) -> String {
    let mut text = String::new();
    write_fields(&mut text, object, 0);
    text
}

/// Writes what follows a key or a dash, its line break included.
fn write_value(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            text.push('\n');
            write_fields(text, value, indent);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            for item in items {
                write_item(text, item, indent);
            }
        }
        Value::String(string) if is_block(string) => {
            text.push_str(" |-\n");
            for line in string.lines() {
                let indent = if line.is_empty() { 0 } else { indent };
                let _ = writeln!(text, "{:indent$}{line}", "");
            }
        }
        Value::String(string) if is_plain(string) => {
            let _ = writeln!(text, " {string}");
        }
        // JSON is YAML.
        other => {
            let _ = writeln!(text, " {other}");
        }
    }
}

fn write_fields(text: &mut String, value: &Value, indent: usize) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let key = if is_plain(key) { key.clone() } else { Value::from(key.as_str()).to_string() };
        let _ = write!(text, "{:indent$}{key}:", "");
        write_value(text, value, indent + 2);
    }
}

/// Writes an item of a list; the first field of an object goes on the line of the dash.
fn write_item(text: &mut String, item: &Value, indent: usize) {
    let _ = write!(text, "{:indent$}-", "");
    if item.as_object().is_none_or(|fields| fields.is_empty()) {
        return write_value(text, item, indent + 2);
    }
    let mut fields = String::new();
    write_fields(&mut fields, item, indent + 2);
    let _ = write!(text, " {}", fields.trim_start());
}

/// Whether a string has several lines that a block can hold as they are.
fn is_block(string: &str) -> bool {
    string.contains('\n')
        && string.lines().all(|line| line.trim() == line)
        && string.trim() == string
        && !string.contains('\r')
}

/// Whether nobody takes the string for anything else, however old their YAML.
fn is_plain(string: &str) -> bool {
    let mut characters = string.chars();
    let starts_plain = characters.next().is_some_and(|first| first.is_ascii_alphabetic());
    let goes_on_plain = characters
        .all(|other| other.is_ascii_alphanumeric() || matches!(other, ' ' | '-' | '.' | ',' | '/'));
    let word = string.to_ascii_lowercase();
    let has_meaning = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    starts_plain && goes_on_plain && !string.ends_with(' ') && !has_meaning.contains(&word.as_str())
}
