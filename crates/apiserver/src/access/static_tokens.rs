//! Static tokens from a file: `token,user,uid,"group1,group2"`. Only their hashes are kept.

use super::identity::{Identity, Scope};
use ring::digest::{self, SHA256};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a token file is not used. It names the line, never what is there.
#[derive(Debug, thiserror::Error)]
pub enum StaticTokensError {
    /// It could not be read.
    #[error("cannot read the token file {path}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("line {line} of the token file {problem}")]
    Line {
        /// Counted from one.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Tokens that are good until the file changes, for users of the hub.
#[derive(Default)]
pub struct StaticTokens {
    entries: Vec<([u8; 32], Identity)>,
}

impl fmt::Debug for StaticTokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StaticTokens({} tokens)", self.entries.len())
    }
}

impl StaticTokens {
    /// The tokens in a file.
    pub fn read(path: &Path) -> Result<Self, StaticTokensError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| StaticTokensError::Read { path: path.to_owned(), source })?;
        StaticTokens::parse(&text)
    }

    /// The tokens in a text. Empty lines and lines that begin with `#` are skipped.
    pub fn parse(text: &str) -> Result<Self, StaticTokensError> {
        let mut entries: Vec<([u8; 32], Identity)> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let at = |problem| StaticTokensError::Line { line: index + 1, problem };
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (hash, identity) = entry(line).map_err(at)?;
            if entries.iter().any(|(other, _)| *other == hash) {
                return Err(at("repeats a token"));
            }
            entries.push((hash, identity));
        }
        Ok(StaticTokens { entries })
    }

    /// Whom a token stands for. The time it takes says nothing about which tokens there are: hashes
    /// are compared whole, and all of them.
    pub fn identity_of(&self, token: &str) -> Option<&Identity> {
        let presented = hash(token);
        let mut found = None;
        for (known, identity) in &self.entries {
            let difference = known.iter().zip(&presented).fold(0, |sum, (a, b)| sum | (a ^ b));
            if std::hint::black_box(difference) == 0 {
                found = Some(identity);
            }
        }
        found
    }
}

fn hash(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

fn entry(line: &str) -> Result<([u8; 32], Identity), &'static str> {
    let columns = columns(line)?;
    let [token, user, uid, rest @ ..] = columns.as_slice() else {
        return Err("must have at least 3 columns: token, user name, user uid");
    };
    if token.is_empty() {
        return Err("has an empty token");
    }
    if user.is_empty() {
        return Err("has an empty user name");
    }
    let groups = rest.first().map(String::as_str).unwrap_or_default();
    let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty());
    let mut identity =
        Identity::authenticated(user.clone(), groups.map(str::to_owned).collect(), Scope::Hub);
    identity.uid = uid.clone();
    Ok((hash(token), identity))
}

/// The columns of one line of CSV. A quoted column may hold commas, and quotes written twice.
fn columns(line: &str) -> Result<Vec<String>, &'static str> {
    let mut columns = Vec::new();
    let mut letters = line.chars().peekable();
    loop {
        let mut column = String::new();
        if letters.next_if_eq(&'"').is_some() {
            loop {
                match letters.next() {
                    Some('"') if letters.next_if_eq(&'"').is_some() => column.push('"'),
                    Some('"') => break,
                    Some(letter) => column.push(letter),
                    None => return Err("has a quote that does not end"),
                }
            }
            columns.push(column);
        } else {
            while let Some(letter) = letters.next_if(|letter| *letter != ',') {
                column.push(letter);
            }
            columns.push(column.trim().to_owned());
        }
        match letters.next() {
            None => return Ok(columns),
            Some(',') => {}
            Some(_) => return Err("has something after a quoted column"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_stands_for_its_user() {
        let text =
            "# who, what\n\nt1,alice,u1,\"dev, ops\"\nt2 , bob ,\n\"t,3\",carol,u3,dev,extra\n";
        let tokens = StaticTokens::parse(text).expect("a good file");
        let alice = tokens.identity_of("t1").expect("known");
        assert_eq!((alice.user.as_str(), alice.uid.as_str()), ("alice", "u1"));
        assert_eq!(alice.groups, ["dev", "ops", "system:authenticated"]);
        assert_eq!(alice.scope, Scope::Hub);
        assert_eq!(tokens.identity_of("t2").expect("known").user, "bob");
        assert_eq!(tokens.identity_of("t,3").expect("known").user, "carol");
        for unknown in ["", "t", "t1 ", "alice", "T1"] {
            assert_eq!(tokens.identity_of(unknown), None);
        }
    }

    #[test]
    fn a_bad_line_is_named_without_its_content() {
        for (text, line, word) in [
            ("hunter2,alice", 1, "3 columns"),
            ("t,a,u\n,alice,u", 2, "empty token"),
            ("hunter2,,u", 1, "empty user"),
            ("hunter2,alice,u,\"dev", 1, "does not end"),
            ("\"hunter2\"x,alice,u", 1, "after a quoted"),
            ("hunter2,a,u\nhunter2,b,u", 2, "repeats"),
        ] {
            let error = StaticTokens::parse(text).expect_err("a bad file").to_string();
            assert!(error.starts_with(&format!("line {line} ")), "{error}");
            assert!(error.contains(word), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn neither_tokens_nor_their_hashes_are_printed() {
        let tokens = StaticTokens::parse("hunter2,alice,u1").expect("a good file");
        assert_eq!(format!("{tokens:?}"), "StaticTokens(1 tokens)");
    }

    #[test]
    fn garbage_is_refused_or_read_but_never_panics() {
        let letters: Vec<char> = "ab,\"\n\r# \tü\0".chars().collect();
        let mut state = 88_172_645_463_325_252_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..24 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                text.push(letters[usize::try_from(state >> 40).expect("24 bits") % letters.len()]);
            }
            if let Ok(tokens) = StaticTokens::parse(&text) {
                assert_eq!(tokens.identity_of(""), None);
            }
        }
    }
}
