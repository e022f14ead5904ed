//! ServiceAccount tokens: JWTs signed with ES256, each good for one logical cluster.
//!
//! Every logical cluster is an issuer of its own, so that a verifier that trusts one cluster refuses
//! the tokens of every other one. The clusters share the key.
//!
//! A token is only as good as its account: whoever verifies one must still look whether the account
//! exists with the same uid ([`Claims::account`]), and whether the object it is bound to does
//! ([`Claims::bound`]).

use super::identity::{CREDENTIAL_ID, Identity, ServiceAccount};
use super::{LEEWAY_SECONDS, private_file};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde_json::{Map, Value, json};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Longer tokens are not read.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The API server as clients inside of a cluster name it: an audience of every token that names none,
/// as upstream has it, and where issuers are as long as nobody knows where the server is reached.
const IN_CLUSTER: &str = "https://kubernetes.default.svc.cluster.local";
/// Under this path of the server every logical cluster has its documents for verifiers, by its id.
pub(crate) const ISSUERS: &str = "issuers";
/// The claim that says which logical cluster a token is good for.
const CLUSTER_CLAIM: &str = "interlock.dev/cluster";

/// Why the signing key could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file could not be read or written.
    #[error("cannot use the token key {path}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds no key.
    #[error("{path} holds no ECDSA P-256 key")]
    Content {
        /// Which file.
        path: PathBuf,
    },
    /// The system gave no random bytes.
    #[error("cannot make a token key")]
    Random,
}

/// Why a token is refused. Nothing of the token is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// Not a token, not ours, or damaged: which of these is nobody's business.
    #[error("invalid bearer token")]
    Invalid,
    /// It was good once.
    #[error("service account token has expired")]
    Expired,
    /// It is not good yet.
    #[error("service account token is not valid yet")]
    NotYetValid,
    /// It is for somebody else.
    #[error("token audiences do not include any of the expected ones")]
    WrongAudience,
    /// It could not be signed.
    #[error("the token could not be signed")]
    NotSigned,
}

fn new_document() -> Result<Vec<u8>, TokenError> {
    EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
        .map(|document| document.as_ref().to_vec())
        .map_err(|_| TokenError::Random)
}

/// What a token is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSpec {
    /// The id of the logical cluster.
    pub cluster: String,
    /// The account's namespace.
    pub namespace: String,
    /// The account's name.
    pub name: String,
    /// The account's uid.
    pub uid: String,
    /// For whom the token is. Empty means the API server itself.
    pub audiences: Vec<String>,
    /// How long it is good.
    pub lifetime_seconds: i64,
    /// The object with which it ends.
    pub bound: Option<Bound>,
    /// The node of the pod that it is bound to.
    pub node: Option<Reference>,
    /// After how long its use is worth a warning.
    pub warn_after_seconds: Option<i64>,
}

/// The object with which a token ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// What sort of object.
    pub kind: BoundKind,
    /// Which one.
    pub object: Reference,
}

/// What a token can be bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundKind {
    /// A Pod in the account's namespace.
    Pod,
    /// A Secret in the account's namespace.
    Secret,
    /// A Node.
    Node,
}

impl BoundKind {
    fn claim(self) -> &'static str {
        match self {
            BoundKind::Pod => "pod",
            BoundKind::Secret => "secret",
            BoundKind::Node => "node",
        }
    }
}

/// A name and a uid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference {
    /// The name.
    pub name: String,
    /// The uid; may be empty for the node of a pod.
    pub uid: String,
}

impl Reference {
    fn claim(&self) -> Value {
        let mut claim = Map::new();
        claim.insert("name".to_owned(), json!(self.name));
        if !self.uid.is_empty() {
            claim.insert("uid".to_owned(), json!(self.uid));
        }
        Value::Object(claim)
    }

    fn from_claim(claim: &Value) -> Option<Reference> {
        let name = claim.get("name")?.as_str()?.to_owned();
        let uid = claim.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        (!name.is_empty()).then_some(Reference { name, uid })
    }
}

/// What a good token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The id of the logical cluster that the token is good for.
    pub cluster: String,
    /// The account's namespace.
    pub namespace: String,
    /// The account's name.
    pub name: String,
    /// The account's uid when the token was issued. If the account has another one now, the token
    /// is worthless.
    pub uid: String,
    /// For whom the token is.
    pub audiences: Vec<String>,
    /// When it ends.
    pub expires_at_seconds: i64,
    /// Its own id.
    pub id: String,
    /// The object with which it ends.
    pub bound: Option<Bound>,
    /// The node of the pod that it is bound to.
    pub node: Option<Reference>,
    /// From when on its use is worth a warning.
    pub warn_after_seconds: Option<i64>,
}

impl Claims {
    /// The account whose existence the verifier must check.
    pub fn account(&self) -> ServiceAccount<'_> {
        ServiceAccount { namespace: &self.namespace, name: &self.name, uid: &self.uid }
    }

    /// Whom the token stands for, once the account is known to exist.
    pub fn identity(&self) -> Identity {
        let mut identity = Identity::service_account(&self.account(), self.cluster.clone());
        let mut say = |key: &str, value: String| {
            if !value.is_empty() {
                let key = format!("authentication.kubernetes.io/{key}");
                identity.extra.insert(key, vec![value]);
            }
        };
        let bound_to = |wanted| {
            self.bound.as_ref().filter(|bound| bound.kind == wanted).map(|bound| &bound.object)
        };
        if let Some(pod) = bound_to(BoundKind::Pod) {
            say("pod-name", pod.name.clone());
            say("pod-uid", pod.uid.clone());
        }
        if let Some(node) = bound_to(BoundKind::Node).or(self.node.as_ref()) {
            say("node-name", node.name.clone());
            say("node-uid", node.uid.clone());
        }
        identity.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={}", self.id)]);
        identity
    }
}

/// The key that signs tokens and knows them again.
pub struct TokenKey {
    key: EcdsaKeyPair,
    key_id: String,
    /// Where verifiers reach the server: known once it listens.
    external_url: OnceLock<String>,
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TokenKey").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

impl TokenKey {
    /// The key in `service-account.key` of this directory; made on the first start.
    pub fn load_or_create(pki: &Path) -> Result<Self, TokenError> {
        let path = pki.join("service-account.key");
        let in_file = |source| TokenError::File { path: path.clone(), source };
        let document = match private_file::read(&path).map_err(in_file)? {
            Some(pem) => pkcs8_of(&pem).ok_or(TokenError::Content { path: path.clone() })?,
            None => {
                let document = new_document()?;
                private_file::replace(&path, pem_of(&document).as_bytes()).map_err(in_file)?;
                document
            }
        };
        TokenKey::of(&document).ok_or(TokenError::Content { path })
    }

    /// A key that is forgotten with the process, for servers without a data directory.
    pub fn generate() -> Result<Self, TokenError> {
        TokenKey::of(&new_document()?).ok_or(TokenError::Random)
    }

    fn of(document: &[u8]) -> Option<Self> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document, &SystemRandom::new()).ok()?;
        let key_id = BASE64.encode(digest::digest(&digest::SHA256, key.public_key().as_ref()));
        Some(TokenKey { key, key_id, external_url: OnceLock::new() })
    }

    /// Says where verifiers reach the server. The first word counts: an issuer does not change while
    /// the server runs.
    pub fn reached_at(&self, url: &str) {
        let _ = self.external_url.set(url.trim_end_matches('/').to_owned());
    }

    /// Where the tokens of the cluster with this id say they are from. Ids are never used again, so
    /// neither is an issuer.
    pub fn issuer(&self, cluster: &str) -> String {
        let url = self.external_url.get().map_or(IN_CLUSTER, String::as_str);
        format!("{url}/{ISSUERS}/{cluster}")
    }

    /// The audiences of the API server itself, for tokens of the cluster with this id.
    pub fn own_audiences(&self, cluster: &str) -> [String; 2] {
        [self.issuer(cluster), IN_CLUSTER.to_owned()]
    }

    /// A token. It is a secret.
    pub fn issue(&self, spec: &TokenSpec, now_seconds: i64) -> Result<String, TokenRefusal> {
        let random = SystemRandom::new();
        let header = json!({"alg": "ES256", "kid": self.key_id});
        let claims = self.claims(spec, now_seconds, &random)?;
        let encode = |value: &Value| BASE64.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature =
            self.key.sign(&random, signed.as_bytes()).map_err(|_| TokenRefusal::NotSigned)?;
        Ok(format!("{signed}.{}", BASE64.encode(signature)))
    }

    fn claims(
        &self,
        spec: &TokenSpec,
        now_seconds: i64,
        random: &SystemRandom,
    ) -> Result<Value, TokenRefusal> {
        let mut kubernetes = json!({
            "namespace": spec.namespace,
            "serviceaccount": {"name": spec.name, "uid": spec.uid},
        });
        if let Some(node) = &spec.node {
            kubernetes["node"] = node.claim();
        }
        if let Some(bound) = &spec.bound {
            kubernetes[bound.kind.claim()] = bound.object.claim();
        }
        if let Some(seconds) = spec.warn_after_seconds {
            kubernetes["warnafter"] = json!(now_seconds.saturating_add(seconds));
        }
        let audiences = match spec.audiences.as_slice() {
            [] => json!(self.own_audiences(&spec.cluster)),
            some => json!(some),
        };
        let account =
            ServiceAccount { namespace: &spec.namespace, name: &spec.name, uid: &spec.uid };
        Ok(json!({
            "iss": self.issuer(&spec.cluster),
            "sub": account.user(),
            "aud": audiences,
            "iat": now_seconds,
            "nbf": now_seconds,
            "exp": now_seconds.saturating_add(spec.lifetime_seconds),
            "jti": random_uuid(random).ok_or(TokenRefusal::NotSigned)?,
            "kubernetes.io": kubernetes,
            CLUSTER_CLAIM: spec.cluster,
        }))
    }

    /// What a token says, if we signed it, it is good now, and it is for one of these audiences; None
    /// stands for the API server itself. Of the claims' audiences only those that were asked about
    /// are returned.
    pub fn verify(
        &self,
        token: &str,
        audiences: Option<&[&str]>,
        now_seconds: i64,
    ) -> Result<Claims, TokenRefusal> {
        let payload = self.signed_payload(token).ok_or(TokenRefusal::Invalid)?;
        let claims: Value = serde_json::from_slice(&payload).map_err(|_| TokenRefusal::Invalid)?;
        let moment = |name: &str| claims.get(name).and_then(Value::as_i64);
        let expires_at_seconds = moment("exp").ok_or(TokenRefusal::Invalid)?;
        if expires_at_seconds.saturating_add(LEEWAY_SECONDS) <= now_seconds {
            return Err(TokenRefusal::Expired);
        }
        let starts = [moment("nbf"), moment("iat")].into_iter().flatten();
        if starts.max().is_some_and(|start| start.saturating_sub(LEEWAY_SECONDS) > now_seconds) {
            return Err(TokenRefusal::NotYetValid);
        }
        let issuer = claims.get("iss").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut claims = read_claims(&claims, expires_at_seconds).ok_or(TokenRefusal::Invalid)?;
        if !is_issuer_of(&issuer, &claims.cluster) {
            return Err(TokenRefusal::Invalid);
        }
        match audiences {
            Some(some) => claims.audiences.retain(|audience| some.contains(&audience.as_str())),
            None => {
                let own = self.own_audiences(&claims.cluster);
                claims.audiences.retain(|audience| own.contains(audience));
            }
        }
        if claims.audiences.is_empty() {
            return Err(TokenRefusal::WrongAudience);
        }
        Ok(claims)
    }

    /// The payload, if header and signature are ours. It is not parsed before the signature is
    /// known to be good, and the header chooses nothing: there is one key and one algorithm.
    fn signed_payload(&self, token: &str) -> Option<Vec<u8>> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        let signature = BASE64.decode(signature).ok()?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key())
            .verify(signed.as_bytes(), &signature)
            .ok()?;
        let header: Value = serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?;
        if header.get("alg").and_then(Value::as_str) != Some("ES256") {
            return None;
        }
        BASE64.decode(payload).ok()
    }

    /// The key set at `/openid/v1/jwks` of an issuer, for others who verify our tokens.
    pub fn key_set(&self) -> Value {
        // An uncompressed point: one byte that says so, then both coordinates.
        let point = self.key.public_key().as_ref();
        let half = point.len().saturating_sub(1) / 2;
        let coordinate =
            |from: usize| BASE64.encode(point.get(from..from + half).unwrap_or_default());
        json!({"keys": [{
            "use": "sig", "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": self.key_id,
            "x": coordinate(1), "y": coordinate(1 + half),
        }]})
    }

    /// The document at `/.well-known/openid-configuration` of the cluster with this id.
    pub fn discovery(&self, cluster: &str) -> Value {
        let issuer = self.issuer(cluster);
        json!({
            "jwks_uri": format!("{issuer}/openid/v1/jwks"),
            "issuer": issuer,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }
}

/// Whether an issuer is that of a cluster. A server that moved to another URL still knows the tokens
/// that it signed before: the key says that they are its own, and the id whose they are.
fn is_issuer_of(issuer: &str, cluster: &str) -> bool {
    let url = issuer.strip_suffix(cluster).and_then(|url| url.strip_suffix('/'));
    url.and_then(|url| url.strip_suffix(ISSUERS)).is_some_and(|url| url.ends_with('/'))
}

fn read_claims(claims: &Value, expires_at_seconds: i64) -> Option<Claims> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let kubernetes = claims.get("kubernetes.io")?;
    let account = kubernetes.get("serviceaccount")?;
    let reference = |name: &str| kubernetes.get(name).and_then(Reference::from_claim);
    let bound = [BoundKind::Pod, BoundKind::Secret, BoundKind::Node]
        .into_iter()
        .find_map(|kind| reference(kind.claim()).map(|object| Bound { kind, object }));
    let audiences = match claims.get("aud")? {
        Value::String(one) => vec![one.clone()],
        Value::Array(many) => many.iter().filter_map(text).collect(),
        _ => return None,
    };
    Some(Claims {
        cluster: text(claims.get(CLUSTER_CLAIM)?)?,
        namespace: text(kubernetes.get("namespace")?)?,
        name: text(account.get("name")?)?,
        uid: text(account.get("uid")?)?,
        audiences,
        expires_at_seconds,
        id: text(claims.get("jti")?)?,
        node: reference("node")
            .filter(|_| bound.as_ref().is_some_and(|bound| bound.kind == BoundKind::Pod)),
        bound,
        warn_after_seconds: kubernetes.get("warnafter").and_then(Value::as_i64),
    })
}

/// A version 4 UUID.
fn random_uuid(random: &SystemRandom) -> Option<String> {
    let mut bytes = [0_u8; 16];
    random.fill(&mut bytes).ok()?;
    let number = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | 4 << 76 | 0x2 << 62;
    let hex = format!("{number:032x}");
    Some([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

fn pem_of(key: &[u8]) -> String {
    let body = base64::engine::general_purpose::STANDARD.encode(key);
    let lines: Vec<_> = body.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("{BEGIN}\n{}\n{END}\n", lines.join("\n"))
}

fn pkcs8_of(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once(BEGIN)?;
    let (body, _) = rest.split_once(END)?;
    let body: String = body.split_whitespace().collect();
    base64::engine::general_purpose::STANDARD.decode(body).ok()
}

#[cfg(test)]
mod tests;
