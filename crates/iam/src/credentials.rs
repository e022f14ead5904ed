//! Keys that sign requests. They never appear in logs.

use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// A key, its secret, and the token of a session if the key is temporary.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Names the key.
    pub access_key_id: String,
    /// Signs requests.
    pub secret_access_key: String,
    /// Proves what a temporary key may do.
    pub session_token: Option<String>,
}

impl Credentials {
    /// Keys that do not expire.
    pub fn lasting(id: impl Into<String>, secret: impl Into<String>) -> Credentials {
        Credentials {
            access_key_id: id.into(),
            secret_access_key: secret.into(),
            session_token: None,
        }
    }

    /// New keys that nobody else has.
    pub fn random() -> Result<Credentials, NoRandom> {
        let letters = |count: usize| {
            let mut bytes = vec![0_u8; count];
            SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandom)?;
            Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
        };
        let (id, secret): (String, String) = (letters(16)?, letters(40)?);
        Ok(Credentials::lasting(format!("AKIA{id}"), secret))
    }
}

/// Where credentials come from that do not last. They are asked for before each request.
pub trait Source: fmt::Debug + Send + Sync {
    /// Credentials that are good now, or why there are none.
    fn current(&self) -> Pin<Box<dyn Future<Output = Result<Credentials, String>> + Send + '_>>;
}

/// What requests are signed with.
#[derive(Debug, Clone)]
pub enum Keys {
    /// Always the same.
    Fixed(Credentials),
    /// Others from time to time.
    From(Arc<dyn Source>),
}

impl Keys {
    /// Credentials that are good now, or why there are none.
    pub async fn current(&self) -> Result<Credentials, String> {
        match self {
            Keys::Fixed(credentials) => Ok(credentials.clone()),
            Keys::From(source) => source.current().await,
        }
    }
}

impl From<Credentials> for Keys {
    fn from(credentials: Credentials) -> Keys {
        Keys::Fixed(credentials)
    }
}

/// Each letter is equally likely.
const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The machine gives no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the machine gives no random bytes")]
pub struct NoRandom;

impl fmt::Debug for Credentials {
    // The id of a key is no secret, and tells which key was refused.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.session_token.is_some() { "Session" } else { "Key" };
        write!(formatter, "{name}({})", self.access_key_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_keys_differ_and_look_like_those_of_aws() {
        let (one, other) = (Credentials::random().unwrap(), Credentials::random().unwrap());
        assert_ne!(one, other);
        assert!(one.access_key_id.starts_with("AKIA"), "{one:?}");
        assert_eq!((one.access_key_id.len(), one.secret_access_key.len()), (20, 40));
    }

    #[test]
    fn secrets_are_not_printed() {
        let credentials = Credentials {
            access_key_id: "ASIAEXAMPLE".to_owned(),
            secret_access_key: "very".to_owned(),
            session_token: Some("secret".to_owned()),
        };
        let text = format!("{credentials:?}");
        assert_eq!(text, "Session(ASIAEXAMPLE)");
    }
}
