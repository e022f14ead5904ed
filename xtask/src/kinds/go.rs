//! Reads Go structs and their tags: enough of the language for upstream's types, and no more.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The structs of one Go package.
#[derive(Debug, Default)]
pub(super) struct Package {
    structs: BTreeMap<String, Vec<Line>>,
}

/// One line of a struct as it is written.
#[derive(Debug)]
struct Line {
    go_type: String,
    json: String,
    is_inline: bool,
    omits_empty: bool,
    omits_zero: bool,
    number: u32,
}

/// A field as JSON has it.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) json: String,
    /// How protobuf finds it: more than one number if JSON inlines what protobuf nests.
    pub(super) numbers: Vec<u32>,
    pub(super) is_pointer: bool,
    pub(super) omits_empty: bool,
    pub(super) omits_zero: bool,
}

impl Package {
    /// Reads each file of a directory that may declare types.
    pub(super) fn read(directory: &Path) -> Result<Package> {
        let mut package = Package::default();
        let entries = fs::read_dir(directory)
            .with_context(|| format!("cannot list {}", directory.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_types =
                name.ends_with(".go") && !name.ends_with("_test.go") && !name.contains("generated");
            if is_types {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                package.take_in(&text);
            }
        }
        Ok(package)
    }

    fn take_in(&mut self, text: &str) {
        let mut current: Option<(String, Vec<Line>)> = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("type ") {
                if let Some(name) = rest.strip_suffix(" struct {") {
                    current = Some((name.to_owned(), Vec::new()));
                }
                if let Some(name) = rest.strip_suffix(" struct{}") {
                    self.structs.insert(name.to_owned(), Vec::new());
                }
                continue;
            }
            if line.starts_with('}') {
                if let Some((name, lines)) = current.take() {
                    self.structs.insert(name, lines);
                }
                continue;
            }
            if let (Some((_, lines)), Some(field)) = (&mut current, Line::parse(line)) {
                lines.push(field);
            }
        }
    }

    /// The fields of a struct, with those of inlined structs in their places.
    pub(super) fn fields(&self, name: &str) -> Result<Vec<Field>> {
        let lines = self.structs.get(name).with_context(|| format!("no Go struct {name}"))?;
        let mut fields = Vec::new();
        for line in lines {
            if !line.is_inline {
                fields.push(Field {
                    json: line.json.clone(),
                    numbers: vec![line.number],
                    is_pointer: line.go_type.starts_with('*'),
                    omits_empty: line.omits_empty,
                    omits_zero: line.omits_zero,
                });
                continue;
            }
            for mut field in self.fields(&line.go_type)? {
                field.numbers.insert(0, line.number);
                fields.push(field);
            }
        }
        Ok(fields)
    }
}

impl Line {
    /// A field with both tags. What protobuf does not know (`TypeMeta`) is not a field for us.
    fn parse(line: &str) -> Option<Line> {
        let line = line.trim();
        if line.starts_with("//") {
            return None;
        }
        let (declared, tags) = line.split_once('`')?;
        let json = tag(tags, "json")?;
        let number = tag(tags, "protobuf")?.split(',').nth(1)?.parse().ok()?;
        let mut options = json.split(',');
        let name = options.next().unwrap_or_default();
        let mut parsed = Line {
            go_type: declared.split_whitespace().last()?.to_owned(),
            json: name.to_owned(),
            is_inline: name.is_empty(),
            omits_empty: false,
            omits_zero: false,
            number,
        };
        for option in options {
            match option {
                "omitempty" => parsed.omits_empty = true,
                "omitzero" => parsed.omits_zero = true,
                _ => {}
            }
        }
        Some(parsed)
    }
}

fn tag<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    let start = tags.find(&format!("{key}:\""))? + key.len() + 2;
    tags[start..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_struct_that_json_inlines_keeps_both_protobuf_numbers() {
        let mut package = Package::default();
        package.take_in(
            "type Volume struct {\n\
             \tName string `json:\"name\" protobuf:\"bytes,1,opt,name=name\"`\n\
             \t// Gone int `json:\"gone\" protobuf:\"varint,9,opt\"`\n\
             \tSource `json:\",inline\" protobuf:\"bytes,2,opt,name=source\"`\n}\n\
             type Source struct {\n\
             \tSize *int32 `json:\"size,omitempty\" protobuf:\"varint,7,opt\"`\n}\n",
        );
        let fields = package.fields("Volume").expect("the struct is declared");
        assert_eq!(fields.len(), 2);
        assert!(!fields[0].omits_empty && !fields[0].is_pointer);
        assert_eq!((fields[1].json.as_str(), fields[1].numbers.as_slice()), ("size", &[2, 7][..]));
        assert!(fields[1].omits_empty && fields[1].is_pointer);
    }
}
