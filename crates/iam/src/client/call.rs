//! One call: parameters out, signed; an answer in, read and classified.

use super::{Client, Dated};
use crate::Credentials;
use crate::clock::seconds_of_http_date;
use crate::http::{Endpoint, Failure};
use crate::outcome::{Class, Outcome, Refusal, Unknown};
use crate::xml::{Element, XmlError};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use std::sync::PoisonError;
use std::time::{Duration, Instant, UNIX_EPOCH};

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
/// The most that a list gives at once.
const PAGE: &str = "1000";

/// Which API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Iam,
    Sts,
}

impl Api {
    fn version(self) -> &'static str {
        match self {
            Api::Iam => "2010-05-08",
            Api::Sts => "2011-06-15",
        }
    }

    fn service(self) -> &'static str {
        match self {
            Api::Iam => "iam",
            Api::Sts => "sts",
        }
    }
}

/// An action and its parameters.
#[derive(Debug, Clone)]
pub(super) struct Call {
    action: &'static str,
    parameters: Vec<(String, String)>,
}

impl Call {
    pub(super) fn new(action: &'static str) -> Call {
        Call { action, parameters: Vec::new() }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Call {
        self.parameters.push((name.to_owned(), value.into()));
        self
    }

    pub(super) fn with_some(self, name: &str, value: Option<impl Into<String>>) -> Call {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(super) fn with_list<'a>(
        mut self,
        name: &str,
        values: impl IntoIterator<Item = &'a String>,
    ) -> Call {
        for (index, value) in values.into_iter().enumerate() {
            self = self.with(&format!("{name}.member.{}", index + 1), value.as_str());
        }
        self
    }

    pub(super) fn with_tags(mut self, tags: &super::Tags) -> Call {
        for (index, (key, value)) in tags.iter().enumerate() {
            let at = format!("Tags.member.{}", index + 1);
            self = self.with(&format!("{at}.Key"), key).with(&format!("{at}.Value"), value);
        }
        self
    }

    /// Anybody may ask for a session with a token: there is nobody to sign for yet.
    fn is_anonymous(&self) -> bool {
        self.action == "AssumeRoleWithWebIdentity"
    }

    fn body(&self, api: Api) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("Action", self.action).append_pair("Version", api.version());
        form.extend_pairs(&self.parameters);
        form.finish()
    }
}

impl Client {
    /// The clock of the cloud is at least here, as the last answer has shown it and this process has
    /// counted since. None before the first answer.
    pub fn cloud_seconds(&self) -> Option<i64> {
        let dated = *self.date.lock().unwrap_or_else(PoisonError::into_inner);
        let dated = dated?;
        let since = i64::try_from(dated.at.elapsed().as_secs()).unwrap_or(i64::MAX);
        Some(dated.seconds.saturating_add(since))
    }

    /// A call whose answer is not read.
    pub(super) async fn act(&self, api: Api, call: Call) -> Outcome<()> {
        self.ask(api, call, |_| Ok(())).await
    }

    /// A call, and what is read of its answer.
    pub(super) async fn ask<T>(
        &self,
        api: Api,
        call: Call,
        read: impl Fn(&Element) -> Result<T, XmlError>,
    ) -> Outcome<T> {
        let result = match self.send(api, &call).await {
            Outcome::Done(result) => result,
            Outcome::Refused(refusal) => return Outcome::Refused(refusal),
            Outcome::Unknown(why) => return Outcome::Unknown(why),
        };
        match read(&result) {
            Ok(value) => Outcome::Done(value),
            Err(error) => Outcome::Unknown(Unknown::Unreadable(error.to_string())),
        }
    }

    /// All of a list, page by page.
    pub(super) async fn list<T>(
        &self,
        call: Call,
        list: &str,
        read: impl Fn(&Element) -> Result<T, XmlError>,
    ) -> Outcome<Vec<T>> {
        let mut all = Vec::new();
        let mut marker: Option<String> = None;
        loop {
            let page = call.clone().with("MaxItems", PAGE).with_some("Marker", marker.clone());
            let read_page = |result: &Element| {
                let items = result.members(list).map(&read).collect::<Result<Vec<T>, _>>()?;
                let next = match result.is_true("IsTruncated") {
                    true => Some(result.text("Marker")?),
                    false => None,
                };
                Ok((items, next))
            };
            let (items, next) = match self.ask(Api::Iam, page, read_page).await {
                Outcome::Done(page) => page,
                Outcome::Refused(refusal) => return Outcome::Refused(refusal),
                Outcome::Unknown(why) => return Outcome::Unknown(why),
            };
            all.extend(items);
            if next.is_none() {
                return Outcome::Done(all);
            }
            if next == marker {
                let why = "a list that does not end: its marker stays the same".to_owned();
                return Outcome::Unknown(Unknown::Unreadable(why));
            }
            marker = next;
        }
    }

    /// The result element of an answer.
    async fn send(&self, api: Api, call: &Call) -> Outcome<Element> {
        let endpoint = match api {
            Api::Iam => &self.iam,
            Api::Sts => &self.sts,
        };
        // Finding credentials is a part of the time that a call may take.
        let began = Instant::now();
        let credentials = match call.is_anonymous() {
            true => None,
            false => match tokio::time::timeout(self.deadline, self.keys.current()).await {
                Ok(Ok(credentials)) => Some(credentials),
                Ok(Err(why)) => return Outcome::Refused(Refusal::no_credentials(why)),
                Err(_) => return Outcome::Refused(Refusal::no_credentials("none in time")),
            },
        };
        let request = match self.signed(api, endpoint, call, credentials.as_ref()) {
            Ok(request) => request,
            Err(why) => return Outcome::Refused(Refusal::not_sent(why)),
        };
        let left = self.deadline.saturating_sub(began.elapsed());
        match self.http.exchange(endpoint, request, left).await {
            Ok(response) => {
                self.note_date(&response);
                read_response(call.action, &response)
            }
            Err(Failure::NotSent(why)) => Outcome::Refused(Refusal::not_sent(why)),
            Err(Failure::Late) => Outcome::Unknown(Unknown::Deadline),
            Err(Failure::Broken(why)) => Outcome::Unknown(Unknown::Broken(why)),
        }
    }

    fn note_date(&self, response: &Response<Bytes>) {
        let date = response.headers().get(http::header::DATE).and_then(|date| date.to_str().ok());
        if let Some(seconds) = date.and_then(seconds_of_http_date) {
            let dated = Dated { seconds, at: Instant::now() };
            *self.date.lock().unwrap_or_else(PoisonError::into_inner) = Some(dated);
        }
    }

    fn signed(
        &self,
        api: Api,
        endpoint: &Endpoint,
        call: &Call,
        credentials: Option<&Credentials>,
    ) -> Result<Request<Full<Bytes>>, String> {
        let body = Bytes::from(call.body(api));
        let request = Request::post(&endpoint.path)
            .header("host", &endpoint.authority)
            .header("content-type", FORM);
        let signed = match credentials {
            None => Vec::new(),
            Some(credentials) => self.signature(api, endpoint, &body, credentials)?,
        };
        let request =
            signed.iter().fold(request, |request, (name, value)| request.header(name, value));
        request.body(Full::new(body)).map_err(|error| error.to_string())
    }

    fn signature(
        &self,
        api: Api,
        endpoint: &Endpoint,
        body: &[u8],
        credentials: &Credentials,
    ) -> Result<Vec<(String, String)>, String> {
        let credentials = aws_credential_types::Credentials::new(
            &credentials.access_key_id,
            &credentials.secret_access_key,
            credentials.session_token.clone(),
            None,
            "interlock",
        );
        let identity = credentials.into();
        let seconds = u64::try_from(self.clock.now_seconds()).unwrap_or_default();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(api.service())
            .time(UNIX_EPOCH + Duration::from_secs(seconds))
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| error.to_string())?
            .into();
        let headers = [("host", endpoint.authority.as_str()), ("content-type", FORM)];
        let url = endpoint.url();
        let signable =
            SignableRequest::new("POST", &*url, headers.into_iter(), SignableBody::Bytes(body));
        let signable = signable.map_err(|error| error.to_string())?;
        let signed = sign(signable, &parameters).map_err(|error| error.to_string())?;
        let (instructions, _) = signed.into_parts();
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Ok(instructions.headers().map(owned).collect())
    }
}

/// What an answer says of a call.
fn read_response(action: &str, response: &Response<Bytes>) -> Outcome<Element> {
    let status = response.status();
    let unreadable = |why: String| Outcome::Unknown(Unknown::Unreadable(why));
    let parsed = match std::str::from_utf8(response.body()) {
        Ok(text) => Element::read(text).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if status.is_success() {
        let root = match parsed {
            Ok(root) => root,
            Err(why) => return unreadable(why),
        };
        if root.name != format!("{action}Response") {
            return unreadable(format!("<{}> answers another call than {action}", root.name));
        }
        let result = root.child(&format!("{action}Result")).cloned();
        return Outcome::Done(result.unwrap_or_default());
    }
    let error = parsed.ok().filter(|root| root.name == "ErrorResponse");
    let error = error.as_ref().and_then(|root| root.child("Error"));
    let text = |name: &str| error.and_then(|error| error.optional(name)).unwrap_or_default();
    let code = text("Code");
    if Class::of(&code) == Class::Throttled {
        return Outcome::Refused(Refusal::of(&code, &text("Message")));
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        return Outcome::Refused(Refusal::of("Throttling", &text("Message")));
    }
    // Whoever answers without a code is not IAM, and does not know what IAM has done.
    if status.is_client_error() && !code.is_empty() {
        return Outcome::Refused(Refusal::of(&code, &text("Message")));
    }
    Outcome::Unknown(Unknown::ServerError { status: status.as_u16(), code })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Outcome<Element> {
        let body = Bytes::from(body.to_owned());
        read_response("GetRole", &Response::builder().status(status).body(body).unwrap())
    }

    fn error(code: &str) -> String {
        format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>m</Message>\
             </Error><RequestId>1</RequestId></ErrorResponse>"
        )
    }

    #[test]
    fn what_is_certainly_not_done_differs_from_what_may_be_done() {
        let refused = |status, body: &str| answer(status, body).class();
        assert_eq!(refused(404, &error("NoSuchEntity")), Some(Class::NoSuchEntity));
        assert_eq!(refused(400, &error("Throttling")), Some(Class::Throttled));
        assert_eq!(refused(503, &error("Throttling")), Some(Class::Throttled));
        assert_eq!(refused(429, "slow down"), Some(Class::Throttled));
        for (status, body) in [
            (500, error("ServiceFailure")),
            (503, error("ServiceUnavailable")),
            (502, "<html>".to_owned()),
            (403, "a proxy says no".to_owned()),
            (404, "<a/>".to_owned()),
            (200, "garbage".to_owned()),
            (200, "<GetPolicyResponse/>".to_owned()),
            (200, "<GetRoleResponse><GetRoleResult>".to_owned()),
            (301, String::new()),
        ] {
            assert!(answer(status, &body).is_unknown(), "{status} {body}");
        }
        assert!(answer(200, "<GetRoleResponse/>").done().is_some());
    }

    #[test]
    fn lists_and_tags_are_numbered() {
        let tags = super::super::Tags::from([("k".to_owned(), "a b&c".to_owned())]);
        let call = Call::new("X").with_tags(&tags).with_list("L", &["y".to_owned()]);
        assert_eq!(
            call.body(Api::Sts),
            "Action=X&Version=2011-06-15&Tags.member.1.Key=k&Tags.member.1.Value=a+b%26c&L.member.1=y"
        );
    }
}
