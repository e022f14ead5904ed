//! One request: who calls, whether they may, what is decided, committed and answered.

use super::context::{Answer, Context};
use super::evaluate::Decision;
use super::fault::Fault;
use super::parameters::Parameters;
use super::rights::{Wanted, of_session};
use super::signature::Signed;
use super::state::{Change, State};
use super::sts::{Caller, caller_identity};
use super::{Iam, actions, fresh_id};
use crate::clock::http_date;
use crate::xml::Writer;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response};
use interlock_store::{CommitError, Store};

const IAM: &str = "2010-05-08";
const STS: &str = "2011-06-15";

/// A call, and which API it is of.
struct Called<'a> {
    action: &'a str,
    version: &'a str,
}

impl<S: Store> Iam<S> {
    /// Answers a request.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let parameters = Parameters::read(&body);
        let called = Called {
            action: parameters.get("Action").unwrap_or_default(),
            version: parameters.get("Version").unwrap_or_default(),
        };
        let answer = self.answer(&parts, &body, &parameters, &called).await;
        let (status, text) = match answer {
            Ok(result) => (200, written(&called, result.as_deref())),
            Err(fault) => {
                tracing::debug!(action = called.action, code = fault.code, "refused");
                (fault.status, refused(&called, &fault))
            }
        };
        let now_seconds = self.settings.clock.now_seconds();
        let response = Response::builder()
            .status(status)
            .header("content-type", "text/xml")
            .header("date", http_date(now_seconds));
        response.body(Bytes::from(text)).unwrap_or_default()
    }

    /// What is in the result element, or None if there is none.
    async fn answer(
        &self,
        parts: &Parts,
        body: &[u8],
        parameters: &Parameters,
        called: &Called<'_>,
    ) -> Result<Option<String>, Fault> {
        if parts.method != Method::POST || parts.uri.path() != "/" {
            let message = "Calls are POST requests to /, with a form as their body";
            return Err(Fault::new(404, "UnknownOperationException", message));
        }
        let unknown = || {
            let Called { action, version } = called;
            let message = format!("Could not find operation {action} for version {version}");
            Fault::new(400, "InvalidAction", message)
        };
        // Whoever exchanges a token has no key to sign with.
        if called.version == STS && called.action == "AssumeRoleWithWebIdentity" {
            return self.assume(parameters).await.map(Some);
        }
        let service = match called.version {
            IAM => "iam",
            STS => "sts",
            _ => return Err(unknown()),
        };
        let caller = self.caller(parts, body, service)?;
        if called.version == STS {
            return match called.action {
                "GetCallerIdentity" => {
                    self.is_alive(&caller).await?;
                    Ok(Some(caller_identity(&caller, &self.settings.account)))
                }
                _ => Err(unknown()),
            };
        }
        let handler = actions::find(called.action).ok_or_else(unknown)?;
        let decide = |state: &State| -> Result<Answer, Fault> {
            let context = Context {
                state,
                parameters,
                account: &self.settings.account,
                now_seconds: self.settings.clock.now_seconds(),
                fresh: &fresh_id,
                http_issuers: self.settings.http_issuers,
            };
            self.authorize(&context, &caller, called.action)?;
            handler(&context)
        };
        let is_read = ["Get", "List", "Simulate"].iter().any(|it| called.action.starts_with(it));
        if is_read {
            return Ok(decide(&*self.state.read().await)?.result);
        }
        let mut state = self.state.write().await;
        let Answer { result, change } = decide(&state)?;
        if let Some(change) = change {
            self.commit(&mut state, change).await?;
        }
        Ok(result)
    }

    async fn commit(&self, state: &mut State, change: Change) -> Result<(), Fault> {
        let error = match state.commit(&*self.store, change).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        tracing::warn!(because = %error, "IAM cannot write to the store");
        if let Ok(stored) = State::load(&*self.store, &self.settings.account).await {
            *state = stored;
        }
        Err(match error {
            CommitError::GuardFailed { .. } => {
                Fault::new(409, "ConcurrentModification", "Somebody else has changed it: try again")
            }
            CommitError::Refused(why) => Fault::new(503, "ServiceUnavailable", why.to_string()),
            CommitError::OutcomeUnknown => Fault::service_failure(error.to_string()),
        })
    }

    /// Whose key signed a request.
    fn caller(&self, parts: &Parts, body: &[u8], service: &str) -> Result<Caller, Fault> {
        let Some(signed) = Signed::read(parts)? else {
            let message = "Request is missing Authentication Token";
            return Err(Fault::new(403, "MissingAuthenticationToken", message));
        };
        if signed.service != service {
            let message = format!("Credential should be scoped to correct service: '{service}'.");
            return Err(Fault::new(403, "SignatureDoesNotMatch", message));
        }
        let unknown = || {
            let message = "The security token included in the request is invalid.";
            Fault::new(403, "InvalidClientTokenId", message)
        };
        let now_seconds = self.settings.clock.now_seconds();
        let token = parts.headers.get("x-amz-security-token").and_then(|it| it.to_str().ok());
        let root = &self.settings.root;
        let (caller, secret) = match token {
            None if signed.access_key_id == root.access_key_id => {
                (Caller::Root, root.secret_access_key.clone())
            }
            None => return Err(unknown()),
            Some(token) => {
                let session = self.secret.session(signed.access_key_id, token);
                let session = session.ok_or_else(unknown)?;
                let secret = self.secret.secret_of(&session.access_key_id);
                (Caller::Session(Box::new(session)), secret)
            }
        };
        signed.verify(parts, body, &secret, now_seconds)?;
        match &caller {
            Caller::Session(session) if session.expires_seconds <= now_seconds => {
                let message = "The security token included in the request is expired";
                Err(Fault::new(403, "ExpiredToken", message))
            }
            _ => Ok(caller),
        }
    }

    /// A session ends with its role.
    async fn is_alive(&self, caller: &Caller) -> Result<(), Fault> {
        let Caller::Session(session) = caller else { return Ok(()) };
        let state = self.state.read().await;
        if state.role(&session.role).is_ok_and(|role| role.id == session.role_id) {
            return Ok(());
        }
        let message = "The security token included in the request is invalid.";
        Err(Fault::new(403, "InvalidClientTokenId", message))
    }

    fn authorize(&self, context: &Context<'_>, caller: &Caller, action: &str) -> Result<(), Fault> {
        let Caller::Session(session) = caller else { return Ok(()) };
        let resource = actions::resource(context);
        let action = format!("iam:{action}");
        let wanted = Wanted { action: &action, resource: &resource };
        let why = match of_session(context.state, session, wanted, context.now_seconds) {
            Decision::Allowed => return Ok(()),
            Decision::ImplicitDeny => "because no identity-based policy allows the",
            Decision::ExplicitDeny => "with an explicit deny in an identity-based policy of the",
        };
        let arn = caller.arn(&self.settings.account);
        Err(Fault::access_denied(format!(
            "User: {arn} is not authorized to perform: {action} on resource: {resource} {why} role"
        )))
    }
}

/// The namespace of answers.
fn namespace(version: &str) -> &'static str {
    match version {
        STS => "https://sts.amazonaws.com/doc/2011-06-15/",
        _ => "https://iam.amazonaws.com/doc/2010-05-08/",
    }
}

/// A name for each answer, so that it can be found in logs.
fn request_id() -> String {
    fresh_id("").to_ascii_lowercase()
}

fn written(called: &Called<'_>, result: Option<&str>) -> String {
    let Called { action, version } = called;
    let mut writer = Writer::new();
    writer.within(&format!("{action}Response xmlns=\"{}\"", namespace(version)), |writer| {
        if let Some(result) = result {
            writer.within(&format!("{action}Result"), |writer| {
                writer.append(result);
            });
        }
        writer.within("ResponseMetadata", |writer| {
            writer.text("RequestId", &request_id());
        });
    });
    writer.finish()
}

fn refused(called: &Called<'_>, fault: &Fault) -> String {
    let kind = if fault.status < 500 { "Sender" } else { "Receiver" };
    let mut writer = Writer::new();
    writer.within(&format!("ErrorResponse xmlns=\"{}\"", namespace(called.version)), |writer| {
        writer
            .within("Error", |writer| {
                writer.text("Type", kind).text("Code", fault.code).text("Message", &fault.message);
            })
            .text("RequestId", &request_id());
    });
    writer.finish()
}
