//! Options as the programs of Kubernetes take them: `--name=value`, `--name value`, or `--name` alone.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// The options of one command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(BTreeMap<String, Vec<String>>);

impl Flags {
    /// Reads a command line; a word that is no option is an error.
    pub(super) fn read(words: &[OsString]) -> Result<Flags, String> {
        let mut flags = Flags::default();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let word = word.to_str().ok_or("an option is no text")?;
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                return Err(format!("{word:?} is no option"));
            };
            let is_value = |next: &&&OsString| !next.to_string_lossy().starts_with('-');
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => match words.next_if(|next| is_value(&next)) {
                    Some(value) => (flag, value.to_string_lossy().into_owned()),
                    None => (flag, String::new()),
                },
            };
            flags.0.entry(name.to_owned()).or_default().push(value);
        }
        Ok(flags)
    }

    /// The last value of an option, if it has one.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name)?.last()?.as_str();
        (!value.is_empty()).then_some(value)
    }

    /// Whether an option was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The names of all options.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn flags(line: &str) -> Result<Flags, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Flags::read(&words)
    }

    #[test]
    fn options_are_read_in_each_of_their_forms() {
        let read = flags("--a=1 --b 2 --c --d=x=y -e=5 --a=9").expect("they are options");
        assert_eq!(read.last("a"), Some("9"));
        assert_eq!(read.last("b"), Some("2"));
        assert_eq!((read.has("c"), read.last("c")), (true, None));
        assert_eq!(read.last("d"), Some("x=y"));
        assert_eq!(read.last("e"), Some("5"));
        assert!(!read.has("f"));
        assert_eq!(flags("stray").expect_err("it is none"), "\"stray\" is no option");
    }
}
