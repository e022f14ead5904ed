//! What facts need to be read back from a record as they were: words of the program, and answers that say "none".

use serde::de::{Deserialize, Deserializer, Error};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// A word that the program itself says, such as the reason of a condition.
///
/// Facts that have one are read back with `#[serde(deserialize_with = "interlock_kernel::word")]`. It is an alias
/// because serde takes a field that is written as a reference for one that borrows from the text it is read from.
pub type Word = &'static str;

/// More words than this are not a program's: what is read is no record of a step.
const MOST_WORDS: usize = 4096;
/// No program says a longer word.
const LONGEST: usize = 256;

/// The words that were read. They are kept for as long as the process runs, each once.
static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Reads a word of the program.
pub fn word<'de, D: Deserializer<'de>>(from: D) -> Result<Word, D::Error> {
    kept(String::deserialize(from)?).map_err(D::Error::custom)
}

/// Reads a word of the program, or that there is none.
pub fn word_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Word>, D::Error> {
    let read = Option::<String>::deserialize(from)?;
    read.map(kept).transpose().map_err(D::Error::custom)
}

fn kept(read: String) -> Result<Word, &'static str> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(word) = known.get(read.as_str()) {
        return Ok(word);
    }
    if read.len() > LONGEST || known.len() >= MOST_WORDS {
        return Err("too many or too long words for those of one program");
    }
    let word: Word = Box::leak(read.into_boxed_str());
    known.insert(word);
    Ok(word)
}

/// An answer that may be "there is none", and whether it was asked for at all: JSON has only one `null`. For
/// `#[serde(with = "interlock_kernel::answered")]`.
pub mod answered {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// `null`: not asked; a list of one: the answer.
    pub fn serialize<T: Serialize, S: Serializer>(
        answer: &Option<Option<T>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        answer.as_ref().map(|answer| [answer]).serialize(to)
    }

    /// The same, read back.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Option<T>>, D::Error> {
        let read = Option::<[Option<T>; 1]>::deserialize(from)?;
        Ok(read.map(|[answer]| answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use serde_json::json;

    #[derive(Debug, PartialEq, serde::Deserialize, Serialize)]
    struct Said {
        #[serde(deserialize_with = "word")]
        reason: Word,
        #[serde(default, deserialize_with = "word_or_none")]
        further: Option<Word>,
    }

    #[test]
    fn a_word_is_read_back_as_it_was_said() {
        for said in [
            Said { reason: "Invalid", further: None },
            Said { reason: "Invalid", further: Some("Conflict") },
        ] {
            let text = serde_json::to_value(&said).expect("a struct of words is JSON");
            assert_eq!(serde_json::from_value::<Said>(text).expect("its own text"), said);
        }
    }

    #[test]
    fn what_no_program_says_is_not_kept() {
        let long = json!({"reason": "x".repeat(LONGEST + 1)});
        let error = serde_json::from_value::<Said>(long).expect_err("it is too long");
        assert!(error.to_string().contains("too long"), "{error}");
    }

    #[test]
    fn no_answer_differs_from_the_answer_that_there_is_none() {
        #[derive(Debug, PartialEq, serde::Deserialize, Serialize)]
        struct Asked(#[serde(with = "answered")] Option<Option<u8>>);
        for asked in [Asked(None), Asked(Some(None)), Asked(Some(Some(1)))] {
            let text = serde_json::to_value(&asked).expect("it is JSON");
            assert_eq!(serde_json::from_value::<Asked>(text).expect("its own text"), asked);
        }
    }
}
