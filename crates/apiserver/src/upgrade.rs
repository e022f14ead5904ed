//! From a request of HTTP/1.1 to a connection of its own.

use crate::http::Body;
use crate::status::Status;
use ::http::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use ::http::request::Parts;
use ::http::{HeaderMap, Response, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::upgrade::OnUpgrade;

/// How SPDY names the protocol within, in requests and answers.
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
/// What an answer to a WebSocket is made of, beside the key: RFC 6455 has it.
const WEBSOCKET_ID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const SPDY: &str = "SPDY/3.1";

/// A request that asks for a connection of its own.
pub(crate) struct Upgrade {
    to: String,
    headers: HeaderMap,
    /// None for a call inside of the process: there is no connection.
    on: Option<OnUpgrade>,
}

/// Which protocols a stream can be had over, best first.
pub(crate) struct Protocols {
    /// Subprotocols of WebSocket.
    pub(crate) websocket: &'static [&'static str],
    /// Protocols over SPDY.
    pub(crate) spdy: &'static [&'static str],
}

/// What was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreed {
    WebSocket(&'static str),
    Spdy(&'static str),
}

/// An upgrade that the client will learn of.
pub(crate) struct Upgrading {
    pub(crate) agreed: Agreed,
    pub(crate) answer: Response<Body>,
    /// Gives the connection once the answer is on its way.
    pub(crate) on: OnUpgrade,
}

impl Upgrade {
    /// What a request asks for; None if it does not ask.
    pub(crate) fn of(parts: &Parts) -> Option<Upgrade> {
        let is_asked = words(&parts.headers, &CONNECTION).any(|word| is_same(word, "upgrade"));
        let to = parts.headers.get(UPGRADE)?.to_str().ok()?.trim().to_owned();
        is_asked.then(|| Upgrade {
            to,
            headers: parts.headers.clone(),
            on: parts.extensions.get::<OnUpgrade>().cloned(),
        })
    }

    fn agree(&self, known: &Protocols) -> Result<(Agreed, Response<Body>), Status> {
        if is_same(&self.to, "websocket") {
            let protocol = self.chosen(&SEC_WEBSOCKET_PROTOCOL, known.websocket)?;
            return Ok((Agreed::WebSocket(protocol), self.websocket_answer(protocol)?));
        }
        if is_same(&self.to, SPDY) {
            let protocol = self.chosen(&STREAM_PROTOCOL, known.spdy)?;
            let mut answer = switching(SPDY);
            answer.headers_mut().insert(STREAM_PROTOCOL, HeaderValue::from_static(protocol));
            return Ok((Agreed::Spdy(protocol), answer));
        }
        let why = format!("cannot upgrade to {:?}: WebSocket and {SPDY} are served", self.to);
        Err(Status::bad_request(why))
    }

    /// The first protocol of ours that the client names.
    fn chosen(
        &self,
        header: &HeaderName,
        known: &'static [&'static str],
    ) -> Result<&'static str, Status> {
        let named: Vec<&str> = words(&self.headers, header).collect();
        let chosen = known.iter().copied().find(|protocol| named.contains(protocol));
        chosen.ok_or_else(|| {
            let (known, named) = (known.join(", "), named.join(", "));
            let why = format!(
                "unable to upgrade: the server knows the protocols [{known}] here, the client \
                 [{named}]; a newer kubectl knows them"
            );
            Status::new(403, "Forbidden", why)
        })
    }

    fn websocket_answer(&self, protocol: &'static str) -> Result<Response<Body>, Status> {
        let version = self.headers.get(SEC_WEBSOCKET_VERSION).map(HeaderValue::as_bytes);
        if version != Some(b"13") {
            return Err(Status::bad_request("Sec-WebSocket-Version must be 13"));
        }
        let key = self.headers.get(SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
        let key = key
            .map(str::trim)
            .filter(|key| STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16));
        let why = "Sec-WebSocket-Key must be 16 bytes in base64";
        let key = key.ok_or_else(|| Status::bad_request(why))?;
        let mut answer = switching("websocket");
        let headers = answer.headers_mut();
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
        if let Ok(accept) = HeaderValue::from_str(&accept(key)) {
            headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        }
        Ok(answer)
    }
}

/// Agrees on a protocol, or says what is missing.
pub(crate) fn accept_upgrade(
    upgrade: Option<Upgrade>,
    known: &Protocols,
) -> Result<Upgrading, Status> {
    let why = "Upgrade request required: a WebSocket over HTTP/1.1";
    let upgrade = upgrade.ok_or_else(|| Status::bad_request(why))?;
    let (agreed, answer) = upgrade.agree(known)?;
    let why = "this request cannot be upgraded: it did not come over a connection of HTTP/1.1";
    let on = upgrade.on.ok_or_else(|| Status::bad_request(why))?;
    Ok(Upgrading { agreed, answer, on })
}

fn switching(to: &'static str) -> Response<Body> {
    let mut answer = Response::new(Body::default());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.headers_mut().insert(UPGRADE, HeaderValue::from_static(to));
    answer
}

/// What shows that the server has understood the key.
fn accept(key: &str) -> String {
    let digest = ring::digest::digest(
        &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}{WEBSOCKET_ID}").as_bytes(),
    );
    STANDARD.encode(digest)
}

/// The words of a header that has several, in one line or in many.
fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http::Request;

    const KNOWN: Protocols = Protocols {
        websocket: &["v5.channel.k8s.io", "v4.channel.k8s.io"],
        spdy: &["v4.channel.k8s.io"],
    };

    fn asked(headers: &[(&str, &str)]) -> Result<(Agreed, Response<Body>), Status> {
        let mut request = Request::builder().uri("/x");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        Upgrade::of(&parts).ok_or_else(|| Status::bad_request("not asked"))?.agree(&KNOWN)
    }

    const WEBSOCKET: &[(&str, &str)] = &[
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    #[test]
    fn a_websocket_is_answered_as_in_its_specification() {
        let protocols = ("sec-websocket-protocol", "v4.channel.k8s.io, v5.channel.k8s.io");
        let (agreed, answer) = asked(&[WEBSOCKET, &[protocols]].concat()).expect("it is right");
        assert_eq!(agreed, Agreed::WebSocket("v5.channel.k8s.io"));
        assert_eq!(answer.status(), 101);
        let header = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
        assert_eq!(header("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(header("sec-websocket-protocol"), "v5.channel.k8s.io");
    }

    #[test]
    fn spdy_is_answered_with_the_protocol_within() {
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", "SPDY/3.1"),
            ("x-stream-protocol-version", "v5.channel.k8s.io"),
            ("x-stream-protocol-version", "v4.channel.k8s.io"),
        ];
        let (agreed, answer) = asked(&headers).expect("it is right");
        assert_eq!(agreed, Agreed::Spdy("v4.channel.k8s.io"));
        assert_eq!(answer.headers()[STREAM_PROTOCOL], "v4.channel.k8s.io");
    }

    #[test]
    fn what_is_missing_is_said() {
        let with = |name: &'static str, value: &'static str| {
            let mut headers: Vec<_> =
                WEBSOCKET.iter().filter(|(key, _)| *key != name).copied().collect();
            headers.extend([("sec-websocket-protocol", "v4.channel.k8s.io"), (name, value)]);
            asked(&headers).map(|_| ()).map_err(|status| (status.code, status.message))
        };
        assert_eq!(with("x-other", "1"), Ok(()));
        for (name, value, code, said) in [
            ("sec-websocket-version", "8", 400, "must be 13"),
            ("sec-websocket-key", "short", 400, "16 bytes"),
            ("upgrade", "h2c", 400, "h2c"),
            ("connection", "close", 400, "not asked"),
        ] {
            let (got, message) = with(name, value).expect_err(name);
            assert!(got == code && message.contains(said), "{name}: {got} {message}");
        }
        let old = asked(&[WEBSOCKET, &[("sec-websocket-protocol", "channel.k8s.io")]].concat());
        let status = old.map(|_| ()).expect_err("it is too old");
        assert!(status.code == 403 && status.message.contains("newer kubectl"), "{status:?}");
    }
}
