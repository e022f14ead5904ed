//! Bodies and answers: what goes over the wire, whatever the wire is.

use crate::object;
use crate::status::Status;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// A body that takes longer is not waited for. It is how long upstream lets a whole request take.
const BODY_LIMIT: Duration = Duration::from_secs(60);
/// A body is read up to here.
pub(crate) const BODY_LIMIT_BYTES: usize = 3 * 1024 * 1024;

/// The body of an answer: all at once, or as it comes.
#[derive(Debug)]
pub struct Body(Kind);

#[derive(Debug)]
enum Kind {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl Body {
    /// A body that is there already.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Body(Kind::Whole(Some(bytes.into())))
    }

    /// A body that comes in parts, until the sender goes away.
    pub(crate) fn stream(parts: mpsc::Receiver<Bytes>) -> Self {
        Body(Kind::Stream(parts))
    }
}

impl Default for Body {
    fn default() -> Self {
        Body(Kind::Whole(None))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = match &mut self.get_mut().0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take()),
            Kind::Stream(parts) => parts.poll_recv(context),
        };
        part.map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

/// Reads a request's body, and stops at the limit of size and of time: whoever sends it drop by drop holds a
/// place that others wait for.
pub(crate) async fn read_body<B>(body: B) -> Result<Bytes, Status>
where
    B: HttpBody<Data = Bytes>,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    match tokio::time::timeout(BODY_LIMIT, gather(body)).await {
        Ok(read) => read,
        Err(_) => Err(Status::new(
            408,
            "Timeout",
            format!("the request's body did not come within {} s", BODY_LIMIT.as_secs()),
        )),
    }
}

async fn gather<B>(body: B) -> Result<Bytes, Status>
where
    B: HttpBody<Data = Bytes>,
{
    let too_large = || {
        Status::too_large(format!(
            "the request is too large: the limit is {BODY_LIMIT_BYTES} bytes"
        ))
    };
    if body.size_hint().lower() > BODY_LIMIT_BYTES as u64 {
        return Err(too_large());
    }
    let mut body = std::pin::pin!(body);
    let mut first: Option<Bytes> = None;
    let mut gathered: Vec<u8> = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await
    {
        let frame = frame.map_err(|_| Status::bad_request("the request's body broke off"))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = first.as_ref().map_or(gathered.len(), Bytes::len);
        if length + data.len() > BODY_LIMIT_BYTES {
            return Err(too_large());
        }
        match first.take() {
            None if gathered.is_empty() => first = Some(data),
            None => gathered.extend_from_slice(&data),
            Some(start) => {
                gathered.extend_from_slice(&start);
                gathered.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| Bytes::from(gathered)))
}

/// An answer with a JSON body.
pub(crate) fn json(code: u16, value: &Value) -> Response<Body> {
    let mut bytes = Vec::with_capacity(256);
    object::write_value(&mut bytes, value);
    json_bytes(code, bytes)
}

/// An answer whose JSON is written already.
pub(crate) fn json_bytes(code: u16, bytes: impl Into<Bytes>) -> Response<Body> {
    answer(code, "application/json", Body::whole(bytes))
}

/// An answer with a text for people.
pub(crate) fn text(code: u16, text: impl Into<String>) -> Response<Body> {
    answer(code, "text/plain; charset=utf-8", Body::whole(text.into()))
}

/// An answer that goes on.
pub(crate) fn stream(content_type: &'static str, parts: mpsc::Receiver<Bytes>) -> Response<Body> {
    answer(200, content_type, Body::stream(parts))
}

/// A refusal.
pub(crate) fn refusal(status: &Status) -> Response<Body> {
    let mut response = json(status.code, &status.body());
    if let Some(seconds) = status.retry_after_seconds {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn answer(code: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Adds `Warning: 299` headers, as many as fit.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    const WARNINGS_BYTES: usize = 4 * 1024;
    let mut bytes = 0;
    for warning in warnings {
        let shown: String =
            warning.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        let escaped = shown.replace('\\', "\\\\").replace('"', "\\\"");
        let header = format!("299 - \"{escaped}\"");
        bytes += header.len();
        if bytes > WARNINGS_BYTES {
            return;
        }
        if let Ok(value) = HeaderValue::from_bytes(header.as_bytes()) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
}

/// The answer as the client wants it dressed: indented, or called YAML (which all JSON is).
pub(crate) fn dressed(
    response: Response<Body>,
    is_pretty: bool,
    content_type: &'static str,
) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let is_json = parts.headers.get(CONTENT_TYPE).is_some_and(|held| held == "application/json");
    if !is_json {
        return Response::from_parts(parts, body);
    }
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let body = match body.0 {
        Kind::Whole(Some(bytes)) if is_pretty => {
            let indented = serde_json::from_slice::<Value>(&bytes)
                .and_then(|value| serde_json::to_vec_pretty(&value))
                .map(|mut text| {
                    text.push(b'\n');
                    Bytes::from(text)
                });
            Body::whole(indented.unwrap_or(bytes))
        }
        other => Body(other),
    };
    Response::from_parts(parts, body)
}
