//! Web identity tokens: who issued one, whether the issuer's key signed it, what it says.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::Value;

/// Longer tokens are not read: STS's own limit.
const MOST_BYTES: usize = 20_000;
/// Clocks may differ by this much.
const LEEWAY_SECONDS: i64 = 10;

/// Why a token is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// Not a token, or not signed by its issuer.
    Invalid(&'static str),
    /// It was good once.
    Expired,
}

/// What a token claims. Nothing of it is known to be true before `verify`.
#[derive(Debug, Clone)]
pub(super) struct Claimed<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    algorithm: String,
    key_id: Option<String>,
    claims: Value,
}

/// What a token says, known to be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claims {
    pub(super) subject: String,
    pub(super) audiences: Vec<String>,
}

impl<'a> Claimed<'a> {
    pub(super) fn read(token: &'a str) -> Option<Claimed<'a>> {
        if token.len() > MOST_BYTES {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        let header: Value = serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?;
        let claims: Value = serde_json::from_slice(&BASE64.decode(payload).ok()?).ok()?;
        Some(Claimed {
            signed,
            signature: BASE64.decode(signature).ok()?,
            algorithm: header.get("alg")?.as_str()?.to_owned(),
            key_id: header.get("kid").and_then(Value::as_str).map(str::to_owned),
            claims,
        })
    }

    /// Where the keys would have to come from.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss")?.as_str()
    }

    /// What it says, if one of the issuer's keys signed it and it is good now.
    pub(super) fn verify(&self, key_set: &Value, now_seconds: i64) -> Result<Claims, Refused> {
        let keys = key_set.get("keys").and_then(Value::as_array);
        let mut keys = keys.into_iter().flatten().filter(|key| {
            let id = key.get("kid").and_then(Value::as_str);
            self.key_id.is_none() || id == self.key_id.as_deref()
        });
        if !keys.any(|key| self.is_signed_with(key)) {
            return Err(Refused::Invalid(
                "Couldn't retrieve verification key from your identity provider, or the signature is not its own",
            ));
        }
        let moment = |name: &str| self.claims.get(name).and_then(Value::as_i64);
        let Some(expires) = moment("exp") else {
            return Err(Refused::Invalid("The token has no expiration"));
        };
        if expires.saturating_add(LEEWAY_SECONDS) <= now_seconds {
            return Err(Refused::Expired);
        }
        let starts = [moment("nbf"), moment("iat")].into_iter().flatten().max();
        if starts.is_some_and(|start| start.saturating_sub(LEEWAY_SECONDS) > now_seconds) {
            return Err(Refused::Invalid("The token is not valid yet"));
        }
        let subject = self.claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        if subject.is_empty() {
            return Err(Refused::Invalid("The token has no subject"));
        }
        let audiences = match self.claims.get("aud") {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(many)) => {
                many.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        Ok(Claims { subject: subject.to_owned(), audiences })
    }

    /// The algorithm is that of the key; the header must agree with it.
    fn is_signed_with(&self, key: &Value) -> bool {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        let bytes = |name: &str| text(name).and_then(|text| BASE64.decode(text).ok());
        match (text("kty"), self.algorithm.as_str()) {
            (Some("EC"), "ES256") if text("crv") == Some("P-256") => {
                let (Some(x), Some(y)) = (bytes("x"), bytes("y")) else { return false };
                let point = [&[4], x.as_slice(), y.as_slice()].concat();
                let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                public.verify(self.signed.as_bytes(), &self.signature).is_ok()
            }
            (Some("RSA"), "RS256") => {
                let (Some(n), Some(e)) = (bytes("n"), bytes("e")) else { return false };
                let public = RsaPublicKeyComponents { n, e };
                public
                    .verify(&RSA_PKCS1_2048_8192_SHA256, self.signed.as_bytes(), &self.signature)
                    .is_ok()
            }
            _ => false,
        }
    }
}
