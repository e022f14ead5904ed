//! Bodies and answers: what goes over the wire, whatever the wire is.

pub use crate::body::Body;

use crate::negotiate::PROTOBUF;
use crate::object;
use crate::pipe;
use crate::protobuf;
use crate::status::Status;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body::Body as HttpBody;
use serde_json::Value;
use std::io::{self, Write};
use std::time::Duration;

/// A body that takes longer is not waited for. It is how long upstream lets a whole request take.
const BODY_LIMIT: Duration = Duration::from_secs(60);
/// A body is read up to here.
pub(crate) const BODY_LIMIT_BYTES: usize = 3 * 1024 * 1024;

/// Larger answers are not indented, nor what would become four times as large.
const INDENTED_BYTES: usize = 256 * 1024;
/// Larger answers are not encoded as protobuf: that takes longer than a worker may be busy.
const ENCODED_BYTES: usize = 1024 * 1024;

/// What is too large is read on up to here, so that the client gets its answer.
const PASSED_OVER_BYTES: usize = 16 * 1024 * 1024;
const PASSED_OVER: Duration = Duration::from_secs(5);

/// Reads a request's body, and stops at the limit of size and of time: whoever sends it drop by drop holds a
/// place that others wait for.
pub(crate) async fn read_body<B>(body: B, most_bytes: usize) -> Result<Bytes, Status>
where
    B: HttpBody<Data = Bytes>,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    match tokio::time::timeout(BODY_LIMIT, gather(body, most_bytes)).await {
        Ok(read) => read,
        Err(_) => Err(Status::new(
            408,
            "Timeout",
            format!("the request's body did not come within {} s", BODY_LIMIT.as_secs()),
        )),
    }
}

async fn gather<B>(body: B, most_bytes: usize) -> Result<Bytes, Status>
where
    B: HttpBody<Data = Bytes>,
{
    let too_large =
        || Status::too_large(format!("the request is too large: the limit is {most_bytes} bytes"));
    let mut body = std::pin::pin!(body);
    if body.size_hint().lower() > most_bytes as u64 {
        pass_over(body).await;
        return Err(too_large());
    }
    let mut first: Option<Bytes> = None;
    let mut gathered: Vec<u8> = Vec::new();
    let mut is_too_large = false;
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await
    {
        let frame = frame.map_err(|_| Status::bad_request("the request's body broke off"))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = first.as_ref().map_or(gathered.len(), Bytes::len);
        is_too_large = length + data.len() > most_bytes;
        if is_too_large {
            break;
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
    if is_too_large {
        pass_over(body).await;
        return Err(too_large());
    }
    Ok(first.unwrap_or_else(|| Bytes::from(gathered)))
}

/// Reads on without keeping anything. A client that is still sending sees a broken connection, not the answer, if
/// nobody takes what it sends; up to a limit, as Go's server does.
async fn pass_over<B>(mut body: std::pin::Pin<&mut B>)
where
    B: HttpBody<Data = Bytes>,
{
    let passed_over = async {
        let mut bytes = 0;
        while bytes <= PASSED_OVER_BYTES {
            let next = std::future::poll_fn(|context| {
                let frame = body.as_mut().poll_frame(context);
                frame.map(|frame| Some(frame?.ok()?.data_ref().map_or(0, Bytes::len)))
            });
            match next.await {
                Some(more) => bytes += more,
                None => return,
            }
        }
    };
    // Whoever sends no further is not waited for.
    let _ = tokio::time::timeout(PASSED_OVER, passed_over).await;
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

/// An answer with JSON that is made as it is asked for.
pub(crate) fn json_body(body: Body) -> Response<Body> {
    answer(200, "application/json", body)
}

/// An answer that goes on.
pub(crate) fn stream(content_type: &'static str, reader: pipe::Reader) -> Response<Body> {
    answer(200, content_type, Body::stream(reader))
}

/// A refusal.
pub(crate) fn refusal(status: &Status) -> Response<Body> {
    let mut response = json(status.code, &status.body());
    if let Some(seconds) = status.retry_after_seconds {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    warn(&mut response, &status.details.warnings);
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

/// The answer as the client wants it dressed: indented, called YAML (which all JSON is), or encoded as protobuf. What is
/// too large for that, or has no such form, stays JSON and says so: clients of protobuf read both.
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
    let body = if content_type == PROTOBUF {
        let encoded = body.take_whole().map(|json| (encoded(&json), json));
        match encoded {
            Ok((Some(encoded), _)) => Body::whole(encoded),
            Ok((None, json)) => return Response::from_parts(parts, Body::whole(json)),
            Err(other) => return Response::from_parts(parts, other),
        }
    } else {
        body
    };
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let body = match body.take_whole() {
        Ok(bytes) if is_pretty => Body::whole(indented(&bytes).unwrap_or(bytes)),
        Ok(bytes) => Body::whole(bytes),
        Err(other) => other,
    };
    Response::from_parts(parts, body)
}

/// The same answer as protobuf, if it is not too large and has that form.
fn encoded(json: &[u8]) -> Option<Bytes> {
    let json = Some(json).filter(|json| json.len() <= ENCODED_BYTES)?;
    protobuf::encode(&serde_json::from_slice(json).ok()?).map(Bytes::from)
}

/// The same JSON with line breaks, if it does not become too large with them: they are for people, and deep lists become
/// a hundred times as large.
fn indented(bytes: &[u8]) -> Option<Bytes> {
    if bytes.len() > INDENTED_BYTES {
        return None;
    }
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let mut text = Limited { text: Vec::new(), most: INDENTED_BYTES * 4 };
    serde_json::to_writer_pretty(&mut text, &value).ok()?;
    text.text.push(b'\n');
    Some(text.text.into())
}

/// Text that must not become too long.
struct Limited {
    text: Vec<u8>,
    most: usize,
}

impl Write for Limited {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.text.len() + more.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_become_far_too_large_is_not_indented() {
        assert_eq!(
            indented(br#"{"a":[1]}"#).as_deref(),
            Some(&b"{\n  \"a\": [\n    1\n  ]\n}\n"[..])
        );
        let deep = format!("{}{}1{}", "[".repeat(100), "1,".repeat(20_000), "]".repeat(100));
        assert_eq!(indented(deep.as_bytes()), None);
        let long = format!("\"{}\"", "x".repeat(INDENTED_BYTES));
        assert_eq!(indented(long.as_bytes()), None);
    }
}
