//! YAML into values: one document, no anchors, keys that stand twice are noted.

use super::{DEPTH_LIMIT, DUPLICATES_LIMIT, Decoded, Duplicates, scalar};
use crate::status::Status;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Decodes a YAML text. What is none is 400, with its line.
///
/// Anchors and aliases are refused, because a short text with them can mean gigabytes; so are merge
/// keys, which are of no use without. A second document is refused too, where upstream would
/// silently drop it.
pub(crate) fn yaml(bytes: &[u8]) -> Result<Decoded, Status> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
        refused(line, "invalid UTF-8")
    })?;
    let mut builder = Builder::default();
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| refused(error.marker().line(), error.info()))?;
        let line = span.start.line();
        match event {
            Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
            Event::StreamEnd => break,
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    return Err(refused(line, "more than one document"));
                }
            }
            Event::Alias(_) => return Err(refused(line, "aliases are not supported")),
            Event::Scalar(text, style, anchor, tag) => {
                refuse_anchor(anchor, line)?;
                builder.scalar(&text, style, tag, line)?;
            }
            Event::SequenceStart(anchor, _) => {
                refuse_anchor(anchor, line)?;
                builder.open(Frame::List(Vec::new()), line)?;
            }
            Event::MappingStart(anchor, _) => {
                refuse_anchor(anchor, line)?;
                let frame = Frame::Map { map: Map::new(), key: None, line };
                builder.open(frame, line)?;
            }
            Event::SequenceEnd | Event::MappingEnd => builder.close(),
        }
    }
    Ok(Decoded { value: builder.value, duplicates: builder.duplicates.paths, lines: builder.lines })
}

fn refused(line: usize, why: &str) -> Status {
    Status::bad_request(format!("error converting YAML to JSON: yaml: line {line}: {why}"))
}

fn refuse_anchor(anchor: usize, line: usize) -> Result<(), Status> {
    if anchor == 0 { Ok(()) } else { Err(refused(line, "anchors are not supported")) }
}

/// A list or a map that is not complete yet.
enum Frame {
    List(Vec<Value>),
    Map {
        map: Map<String, Value>,
        key: Option<String>,
        /// Where the value of that key starts.
        line: usize,
    },
}

/// Puts values together. It keeps its own stack, so that no text can exhaust the thread's.
#[derive(Default)]
struct Builder {
    stack: Vec<Frame>,
    value: Value,
    duplicates: Duplicates,
    lines: Vec<String>,
}

impl Builder {
    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<Cow<'_, Tag>>,
        line: usize,
    ) -> Result<(), Status> {
        let is_key = matches!(self.stack.last(), Some(Frame::Map { key: None, .. }));
        let is_plain = matches!(style, ScalarStyle::Plain) && tag.is_none();
        if is_key && is_plain && text == "<<" {
            return Err(refused(line, "merge keys are not supported"));
        }
        let value = match tag.as_deref() {
            None if is_plain => scalar::plain(text).map_err(|why| refused(line, why))?,
            None => Value::String(text.to_owned()),
            Some(tag) if tag.is_yaml_core_schema() => scalar::tagged(&tag.suffix, text)
                .ok_or_else(|| refused(line, &format!("cannot decode a !!{}", tag.suffix)))?,
            // Tags of one's own mean nothing here.
            Some(_) => Value::String(text.to_owned()),
        };
        if !is_key {
            self.mark_line(line);
            self.put(value);
            return Ok(());
        }
        let key = scalar::key(&value).ok_or_else(|| refused(line, "unsupported map key: null"))?;
        if let Some(Frame::Map { key: place, .. }) = self.stack.last_mut() {
            *place = Some(key);
        }
        Ok(())
    }

    fn open(&mut self, frame: Frame, line: usize) -> Result<(), Status> {
        if matches!(self.stack.last(), Some(Frame::Map { key: None, .. })) {
            return Err(refused(line, "unsupported map key: only scalars can be keys"));
        }
        if self.stack.len() + 1 >= DEPTH_LIMIT {
            return Err(refused(line, "nested too deeply"));
        }
        self.mark_line(line);
        self.stack.push(frame);
        Ok(())
    }

    fn close(&mut self) {
        let value = match self.stack.pop() {
            Some(Frame::List(list)) => Value::Array(list),
            Some(Frame::Map { map, .. }) => Value::Object(map),
            None => return,
        };
        self.put(value);
    }

    /// Remembers where the value begins that the map on top is waiting for.
    fn mark_line(&mut self, value_line: usize) {
        if let Some(Frame::Map { line, .. }) = self.stack.last_mut() {
            *line = value_line;
        }
    }

    fn put(&mut self, value: Value) {
        let duplicate = match self.stack.last_mut() {
            None => {
                self.value = value;
                None
            }
            Some(Frame::List(list)) => {
                list.push(value);
                None
            }
            Some(Frame::Map { map, key, line }) => {
                let key = key.take().unwrap_or_default();
                let is_duplicate = map.contains_key(&key);
                let duplicate = is_duplicate.then(|| (key.clone(), *line));
                map.insert(key, value);
                duplicate
            }
        };
        let Some((key, line)) = duplicate else { return };
        if self.lines.len() < DUPLICATES_LIMIT && !self.duplicates.is_full() {
            self.lines.push(format!("line {line}: key {key:?} already set in map"));
        }
        // The path reads the stack, so it is taken before the note is.
        let mut duplicates = std::mem::take(&mut self.duplicates);
        duplicates.note(|| self.path(&key));
        self.duplicates = duplicates;
    }

    /// The path of a key in the map on top.
    fn path(&self, key: &str) -> String {
        let mut path = String::new();
        let below = self.stack.len().saturating_sub(1);
        for frame in &self.stack[..below] {
            match frame {
                Frame::List(list) => path.push_str(&format!("[{}]", list.len())),
                Frame::Map { key, .. } => append(&mut path, key.as_deref().unwrap_or_default()),
            }
        }
        append(&mut path, key);
        path
    }
}

fn append(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}
