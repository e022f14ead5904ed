//! Sessions: what their tokens say, and the secrets that sign for them.
//!
//! Nothing of a session is stored: the token says what it is, authenticated by the server's secret,
//! and the key's own secret is made of that and the key's id.

use crate::Credentials;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::hmac;
use serde::{Deserialize, Serialize};

/// What a temporary key begins with.
pub(super) const PREFIX: &str = "ASIA";

/// A session of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The key that signs for it.
    pub access_key_id: String,
    /// The name of the role when it was assumed.
    pub role: String,
    /// The id of the role: another role of that name has another.
    pub role_id: String,
    /// What the caller named it.
    pub name: String,
    /// When it began. Fences are about this.
    pub issued_seconds: i64,
    /// When it ends.
    pub expires_seconds: i64,
    /// The ARN of the provider that vouched for it.
    pub provider: String,
    /// Of the token that it was given for.
    pub subject: String,
}

/// The server's secret.
pub(super) struct Secret(hmac::Key);

impl Secret {
    pub(super) fn new(bytes: &[u8]) -> Secret {
        Secret(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// What a session's caller is given.
    pub(super) fn credentials(&self, session: &Session) -> Credentials {
        let says = serde_json::to_vec(session).unwrap_or_default();
        let seal = hmac::sign(&self.0, &sealed(&says));
        Credentials {
            access_key_id: session.access_key_id.clone(),
            secret_access_key: self.secret_of(&session.access_key_id),
            session_token: Some(format!("{}.{}", BASE64.encode(says), BASE64.encode(seal))),
        }
    }

    /// The session of a token, if this server made it for this key.
    pub(super) fn session(&self, access_key_id: &str, token: &str) -> Option<Session> {
        let (says, seal) = token.split_once('.')?;
        let (says, seal) = (BASE64.decode(says).ok()?, BASE64.decode(seal).ok()?);
        hmac::verify(&self.0, &sealed(&says), &seal).ok()?;
        let session: Session = serde_json::from_slice(&says).ok()?;
        (session.access_key_id == access_key_id).then_some(session)
    }

    pub(super) fn secret_of(&self, access_key_id: &str) -> String {
        let text = format!("secret access key\n{access_key_id}");
        BASE64.encode(hmac::sign(&self.0, text.as_bytes()))
    }
}

/// Seals and secrets must never be taken for each other.
fn sealed(says: &[u8]) -> Vec<u8> {
    [b"session token\n", says].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_key_and_its_server_only() {
        let session = Session {
            access_key_id: "ASIA1".to_owned(),
            role: "r".to_owned(),
            role_id: "AROA1".to_owned(),
            name: "s".to_owned(),
            issued_seconds: 1,
            expires_seconds: 2,
            provider: "p".to_owned(),
            subject: "x".to_owned(),
        };
        let secret = Secret::new(&[1; 32]);
        let token = secret.credentials(&session).session_token.unwrap();
        assert_eq!(secret.session("ASIA1", &token), Some(session));
        assert_eq!(secret.session("ASIA2", &token), None);
        assert_eq!(Secret::new(&[2; 32]).session("ASIA1", &token), None);
        for place in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(secret.session("ASIA1", &changed), None, "byte {place}");
        }
    }
}
