//! Keys that sign requests. They never appear in logs.

use std::fmt;

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
}

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
