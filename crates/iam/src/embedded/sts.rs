//! STS: who calls, and sessions for the tokens of service accounts.

use super::evaluate::{Decision, Facts, Question, decide};
use super::fault::Fault;
use super::parameters::Parameters;
use super::session::{PREFIX, Session};
use super::state::State;
use super::token::{Claimed, Claims, Refused};
use super::{Iam, fresh_id, limits};
use crate::arn::{Arn, without_scheme};
use crate::clock::iso8601;
use crate::document::Document;
use crate::xml::Writer;
use interlock_store::Store;
use serde_json::Value;

const ACTION: &str = "sts:AssumeRoleWithWebIdentity";

/// Who calls.
#[derive(Debug, Clone)]
pub(super) enum Caller {
    /// The keys that may do everything.
    Root,
    /// A session of a role.
    Session(Box<Session>),
}

impl Caller {
    pub(super) fn arn(&self, account: &str) -> String {
        match self {
            Caller::Root => format!("arn:aws:iam::{account}:root"),
            Caller::Session(session) => assumed(account, &session.role, &session.name),
        }
    }
}

fn assumed(account: &str, role: &str, session: &str) -> String {
    format!("arn:aws:sts::{account}:assumed-role/{role}/{session}")
}

/// Nobody is denied to ask who they are, as AWS documents it.
pub(super) fn caller_identity(caller: &Caller, account: &str) -> String {
    let mut writer = Writer::new();
    let id = match caller {
        Caller::Root => account.to_owned(),
        Caller::Session(session) => format!("{}:{}", session.role_id, session.name),
    };
    writer.text("Arn", &caller.arn(account)).text("UserId", &id).text("Account", account);
    writer.finish()
}

fn invalid_token(message: impl Into<String>) -> Fault {
    Fault::new(400, "InvalidIdentityToken", message)
}

fn not_authorized() -> Fault {
    Fault::access_denied(format!("Not authorized to perform {ACTION}"))
}

/// What the caller asks for.
struct Asked<'a> {
    role: &'a str,
    session: &'a str,
    seconds: Option<u64>,
}

impl<'a> Asked<'a> {
    fn read(parameters: &'a Parameters) -> Result<Asked<'a>, Fault> {
        let role = parameters.need("RoleArn")?;
        if role.parse::<Arn>().is_err() {
            return Err(Fault::new(400, "ValidationError", format!("{role} is invalid")));
        }
        let session = parameters.need("RoleSessionName")?;
        if limits::name("RoleSessionName", session, 64)?.len() < 2 {
            let rule = "Member must have length greater than or equal to 2";
            return Err(Fault::validation("RoleSessionName", rule));
        }
        // To leave these out would give more rights than were asked for.
        if parameters.get("Policy").is_some() || !parameters.list("PolicyArns").is_empty() {
            let rule = "session policies are not implemented";
            return Err(Fault::validation("Policy", rule));
        }
        let seconds = parameters.number("DurationSeconds", 900..=43_200)?;
        Ok(Asked { role, session, seconds })
    }
}

/// Who is asking, as their issuer says it.
struct Vouched {
    issuer: String,
    audience: String,
    subject: String,
}

impl<S: Store> Iam<S> {
    /// AssumeRoleWithWebIdentity: a session, if the token is good and the role trusts its subject.
    pub(super) async fn assume(&self, parameters: &Parameters) -> Result<String, Fault> {
        let asked = Asked::read(parameters)?;
        let vouched = self.vouched(parameters.need("WebIdentityToken")?).await?;
        // Trust is read after the keys were fetched, and the session is issued before anybody can
        // change it: a session of a role whose trust was closed was issued before.
        let state = self.state.read().await;
        let now_seconds = self.settings.clock.now_seconds();
        let session = self.issue(&state, &asked, &vouched, now_seconds)?;
        Ok(self.write_session(&session, &vouched))
    }

    /// What an issuer that this account accepts says of a token.
    async fn vouched(&self, token: &str) -> Result<Vouched, Fault> {
        let Some(claimed) = Claimed::read(token) else {
            return Err(invalid_token("The web identity token could not be read"));
        };
        let issuer = claimed.issuer().unwrap_or_default().to_owned();
        let audiences = {
            let state = self.state.read().await;
            let provider = state.provider(without_scheme(&issuer));
            let Some(provider) = provider.filter(|it| it.url == issuer) else {
                return Err(invalid_token(format!(
                    "No OpenIDConnect provider found in your account for {issuer}"
                )));
            };
            provider.audiences.clone()
        };
        let key_set = self.key_set(&issuer).await?;
        let claims = claimed.verify(&key_set, self.settings.clock.now_seconds());
        let Claims { subject, audiences: of_token } = claims.map_err(|refused| match refused {
            Refused::Invalid(why) => invalid_token(why),
            Refused::Expired => {
                Fault::new(400, "ExpiredTokenException", "Token expired: it must be renewed")
            }
        })?;
        let audience = of_token.into_iter().find(|it| audiences.contains(it));
        let audience = audience.ok_or_else(|| invalid_token("Incorrect token audience"))?;
        Ok(Vouched { issuer, audience, subject })
    }

    async fn key_set(&self, issuer: &str) -> Result<Value, Fault> {
        let failed = |why: String| {
            tracing::warn!(issuer, because = %why, "the keys of an issuer cannot be read");
            Fault::new(400, "IDPCommunicationError", format!("{issuer} cannot be read: {why}"))
        };
        let json = async |url: String| -> Result<Value, String> {
            let bytes = self.settings.keys.fetch(&url).await?;
            serde_json::from_slice(&bytes).map_err(|error| format!("{url}: {error}"))
        };
        let discovery = json(format!("{issuer}/.well-known/openid-configuration"));
        let discovery = discovery.await.map_err(failed)?;
        let text = |name: &str| discovery.get(name).and_then(Value::as_str);
        if text("issuer") != Some(issuer) {
            return Err(invalid_token("The issuer does not match that of its own document"));
        }
        let keys = text("jwks_uri").ok_or_else(|| failed("it names no jwks_uri".to_owned()))?;
        json(keys.to_owned()).await.map_err(failed)
    }

    fn issue(
        &self,
        state: &State,
        asked: &Asked<'_>,
        vouched: &Vouched,
        now_seconds: i64,
    ) -> Result<Session, Fault> {
        let account = &self.settings.account;
        let provider = Arn::provider(account, &vouched.issuer).to_string();
        let (Some(role), Some(_)) =
            (state.role_by_arn(asked.role), state.provider_by_arn(&provider))
        else {
            return Err(not_authorized());
        };
        let issuer = without_scheme(&vouched.issuer);
        let one = |key: String, value: &str| (key.to_ascii_lowercase(), vec![value.to_owned()]);
        let facts = Facts::from([
            one(format!("{issuer}:sub"), &vouched.subject),
            one(format!("{issuer}:aud"), &vouched.audience),
            one("aws:FederatedProvider".to_owned(), &provider),
            one("aws:CurrentTime".to_owned(), &iso8601(now_seconds)),
            one("sts:RoleSessionName".to_owned(), asked.session),
        ]);
        let question =
            Question { action: ACTION, resource: None, provider: Some(&provider), facts: &facts };
        let trust = Document::read(&role.trust).map_err(|_| not_authorized())?;
        if decide([&trust], &question) != Decision::Allowed {
            return Err(not_authorized());
        }
        let seconds = asked.seconds.unwrap_or(3_600);
        if seconds > role.most_session_seconds {
            let message =
                "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.";
            return Err(Fault::new(400, "ValidationError", message));
        }
        let mut access_key_id = fresh_id(PREFIX);
        access_key_id.truncate(20);
        Ok(Session {
            access_key_id,
            role: role.name.clone(),
            role_id: role.id.clone(),
            name: asked.session.to_owned(),
            issued_seconds: now_seconds,
            expires_seconds: now_seconds.saturating_add_unsigned(seconds),
            provider,
            subject: vouched.subject.clone(),
        })
    }

    fn write_session(&self, session: &Session, vouched: &Vouched) -> String {
        let credentials = self.secret.credentials(session);
        let mut writer = Writer::new();
        writer
            .text("SubjectFromWebIdentityToken", &vouched.subject)
            .text("Audience", &vouched.audience)
            .within("AssumedRoleUser", |writer| {
                writer
                    .text("Arn", &assumed(&self.settings.account, &session.role, &session.name))
                    .text("AssumedRoleId", &format!("{}:{}", session.role_id, session.name));
            })
            .within("Credentials", |writer| {
                writer
                    .text("AccessKeyId", &credentials.access_key_id)
                    .text("SecretAccessKey", &credentials.secret_access_key)
                    .optional("SessionToken", credentials.session_token.as_deref())
                    .text("Expiration", &iso8601(session.expires_seconds));
            })
            .text("Provider", &session.provider);
        writer.finish()
    }
}
