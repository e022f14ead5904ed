//! Files of YAML or JSON, document by document, so that a flaw has a line.

use super::flaw::{Flaw, FlawReason};
use super::object::{At, Manifest, expand};
use serde_json::Value;

/// A file of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct File {
    /// Its name, for reading.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Adds the objects of a file.
pub(super) fn read(file: &File, found: &mut Vec<Manifest>, flaws: &mut Vec<Flaw>) {
    for document in documents(&file.text) {
        let at = At { file: file.name.clone(), line: document.line };
        match serde_saphyr::from_str::<Value>(&document.text) {
            Ok(Value::Null) => {}
            Ok(object) => expand(object, &at, found, flaws),
            Err(error) => {
                let place = error.location();
                let below = place.map_or(1, |place| usize::try_from(place.line()).unwrap_or(1));
                let at = At { line: document.first + below.max(1) - 1, ..at };
                let words = error.without_snippet().to_string();
                flaws.push(Flaw::at(&at, FlawReason::NotYaml, "", one_line(&words)));
            }
        }
    }
}

fn one_line(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    words.join(" ")
}

/// A document of a file.
struct Document {
    /// The line of the file that its text begins with, counted from 1.
    first: usize,
    /// The line of the file where there is something to read.
    line: usize,
    text: String,
}

/// The documents of a file. A line that begins with --- begins the next one, wherever it is: no string of YAML goes
/// on over such a line.
fn documents(text: &str) -> Vec<Document> {
    let mut documents = vec![Document { first: 1, line: 0, text: String::new() }];
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
        let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r']));
        let line = match rest {
            Some(rest) => {
                documents.push(Document { first: number, line: 0, text: String::new() });
                rest
            }
            None => line,
        };
        let Some(last) = documents.last_mut() else { continue };
        let words = line.trim();
        if last.line == 0 && !words.is_empty() && !words.starts_with('#') {
            last.line = number;
        }
        last.text.push_str(line);
        last.text.push('\n');
    }
    // What has comments only is no document.
    documents.retain(|document| document.line > 0);
    documents
}
