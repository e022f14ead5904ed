//! What `kubectl explain` says about built-in types and their fields, in our own words.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../kinds/descriptions.txt");

static SENTENCES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    TEXT.lines().filter(|line| !line.starts_with('#')).filter_map(|l| l.split_once(": ")).collect()
});

/// Puts a description into a schema, if there is one for the field of a type, or for the type
/// itself.
pub(super) fn put(mut schema: Value, type_name: &str, field: &str) -> Value {
    let found = match field {
        "" => SENTENCES.get(type_name),
        field => SENTENCES
            .get(&*format!("{type_name}.{field}"))
            .or_else(|| SENTENCES.get(&*format!(".{field}"))),
    };
    if let (Some(sentence), Value::Object(schema)) = (found, &mut schema) {
        schema.insert("description".to_owned(), (*sentence).into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::built_in;

    #[test]
    fn every_kind_is_described() {
        for kind in built_in().all() {
            assert!(SENTENCES.contains_key(&*kind.resource.kind), "{}", kind.resource.kind);
        }
    }

    #[test]
    fn every_line_is_a_sentence_about_something() {
        for line in TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            assert!(line.contains(": ") && line.ends_with('.'), "{line}");
        }
    }
}
