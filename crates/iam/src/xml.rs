//! XML as the Query API has it: elements with text or elements in them, and nothing else.

use quick_xml::Reader;
use quick_xml::escape::escape;
use quick_xml::events::Event;

/// Deeper answers are not read.
const DEPTH: usize = 32;

/// An element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
}

/// Why a text is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum XmlError {
    #[error("not XML: {0}")]
    Syntax(String),
    #[error("the XML ends too early")]
    Truncated,
    #[error("the XML is nested too deeply")]
    TooDeep,
    #[error("<{0}> is missing")]
    Missing(String),
    #[error("<{name}> is {text:?}")]
    Value { name: String, text: String },
}

impl Element {
    /// The root element of a text.
    pub(crate) fn read(text: &str) -> Result<Element, XmlError> {
        let syntax = |error: quick_xml::Error| XmlError::Syntax(error.to_string());
        let mut reader = Reader::from_str(text);
        let mut open: Vec<Element> = Vec::new();
        loop {
            let ended = match reader.read_event().map_err(syntax)? {
                Event::Start(start) => {
                    if open.len() == DEPTH {
                        return Err(XmlError::TooDeep);
                    }
                    let name = start.local_name().as_ref().to_owned();
                    open.push(Element { name, ..Element::default() });
                    None
                }
                Event::Empty(start) => {
                    let name = start.local_name().as_ref().to_owned();
                    Some(Element { name, ..Element::default() })
                }
                Event::End(_) => open.pop(),
                Event::Text(more) => {
                    append(&mut open, &more.xml10_content());
                    None
                }
                Event::CData(more) => {
                    append(&mut open, &more.xml10_content());
                    None
                }
                Event::GeneralRef(name) => {
                    let letter = name.resolve_char_ref().map_err(syntax)?;
                    let letter = letter.or_else(|| predefined(&name.xml10_content()));
                    let Some(letter) = letter else {
                        return Err(XmlError::Syntax("an entity that is not known".to_owned()));
                    };
                    append(&mut open, letter.encode_utf8(&mut [0; 4]));
                    None
                }
                Event::Eof => return Err(XmlError::Truncated),
                _ => None,
            };
            let Some(mut ended) = ended else { continue };
            if !ended.children.is_empty() {
                ended.text.clear();
            }
            match open.last_mut() {
                Some(parent) => parent.children.push(ended),
                None => return Ok(ended),
            }
        }
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// An element that must be there.
    pub(crate) fn need(&self, name: &str) -> Result<&Element, XmlError> {
        self.child(name).ok_or_else(|| XmlError::Missing(name.to_owned()))
    }

    /// A text that must be there.
    pub(crate) fn text(&self, name: &str) -> Result<String, XmlError> {
        Ok(self.need(name)?.text.clone())
    }

    /// A text that may be there.
    pub(crate) fn optional(&self, name: &str) -> Option<String> {
        self.child(name).map(|child| child.text.clone()).filter(|text| !text.is_empty())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.child(name).is_some_and(|child| child.text == "true")
    }

    pub(crate) fn number(&self, name: &str) -> Result<u64, XmlError> {
        let text = self.text(name)?;
        text.trim().parse().map_err(|_| XmlError::Value { name: name.to_owned(), text })
    }

    /// What is in a list, which may be absent.
    pub(crate) fn members(&self, list: &str) -> impl Iterator<Item = &Element> {
        let members = self.child(list).map(|list| list.children.as_slice()).unwrap_or_default();
        members.iter().filter(|member| member.name == "member")
    }
}

fn append(open: &mut [Element], more: &str) {
    if let Some(last) = open.last_mut() {
        last.text.push_str(more);
    }
}

fn predefined(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "apos" => '\'',
        "quot" => '"',
        _ => return None,
    })
}

/// A text that is written element by element.
#[derive(Debug, Default)]
pub(crate) struct Writer(String);

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer::default()
    }

    /// An element with a text in it.
    pub(crate) fn text(&mut self, name: &str, text: &str) -> &mut Writer {
        self.within(name, |writer| writer.0.push_str(&escape(text)))
    }

    /// An element with a text in it, if there is one.
    pub(crate) fn optional(&mut self, name: &str, text: Option<&str>) -> &mut Writer {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    /// An element with others in it.
    pub(crate) fn within(&mut self, name: &str, write: impl FnOnce(&mut Writer)) -> &mut Writer {
        self.0.push('<');
        self.0.push_str(name);
        self.0.push('>');
        write(self);
        self.0.push_str("</");
        // A name may be followed by attributes.
        self.0.push_str(name.split(' ').next().unwrap_or_default());
        self.0.push('>');
        self
    }

    /// A list.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Writer, T),
    ) -> &mut Writer {
        self.within(name, |list| {
            for item in items {
                list.within("member", |member| write(member, item));
            }
        })
    }

    /// A text, escaped, where the writer is.
    pub(crate) fn raw_text(&mut self, text: &str) -> &mut Writer {
        self.0.push_str(&escape(text));
        self
    }

    /// What was written by another writer.
    pub(crate) fn append(&mut self, other: &str) -> &mut Writer {
        self.0.push_str(other);
        self
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut writer = Writer::new();
        writer.within("Answer xmlns=\"x\"", |answer| {
            answer.text("Name", "a<b>&\"c\" d'é");
            answer.list("Tags", ["x", "y"], |member, tag| {
                member.text("Key", tag);
            });
            answer.optional("Absent", None);
        });
        let read = Element::read(&format!("<?xml version=\"1.0\"?>\n{}", writer.finish())).unwrap();
        assert_eq!(read.name, "Answer");
        assert_eq!(read.text("Name").unwrap(), "a<b>&\"c\" d'é");
        let tags: Vec<String> = read.members("Tags").map(|tag| tag.text("Key").unwrap()).collect();
        assert_eq!(tags, ["x", "y"]);
        assert_eq!(read.optional("Absent"), None);
        assert_eq!(read.members("Absent").count(), 0);
    }

    #[test]
    fn character_references_are_resolved() {
        let read = Element::read("<a>&#x41;&#66;&amp;amp;<![CDATA[<c>]]></a>").unwrap();
        assert_eq!(read.text, "AB&amp;<c>");
    }

    #[test]
    fn every_part_of_an_answer_is_refused() {
        let whole = "<a><b>text</b><c><d/></c></a>";
        for cut in 0..whole.len() {
            assert!(Element::read(&whole[..cut]).is_err(), "{}", &whole[..cut]);
        }
        for bad in ["", "garbage", "<a></b>", "<a>&unknown;</a>", "{\"a\": 1}"] {
            assert!(Element::read(bad).is_err(), "{bad}");
        }
        assert_eq!(Element::read(&"<a>".repeat(100)), Err(XmlError::TooDeep));
    }
}
