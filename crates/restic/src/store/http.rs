//! Requests to servers that have repositories, tried again when it makes sense.

use super::StoreError;
use crate::failure::{Failure, Reason};
use bytes::Bytes;
use std::time::Duration;
use ureq::http::{HeaderMap, Request, StatusCode};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// How long is waited before each further attempt.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(8),
];

/// A client.
pub(super) struct Http(ureq::Agent);

/// An answer, whole.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Http {
    /// A client that believes the well-known authorities, or the given ones (PEM) alone.
    pub(super) fn new(authority: Option<&str>) -> Result<Self, Failure> {
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent("interlock")
            .timeout_resolve(Some(Duration::from_secs(30)))
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(Duration::from_secs(300)))
            .timeout_per_read(Some(Duration::from_secs(120)))
            .timeout_per_write(Some(Duration::from_secs(120)))
            .max_idle_connections_per_host(16);
        if let Some(pem) = authority {
            let wrong = || {
                Failure::new(
                    Reason::SecretIncomplete,
                    "the certificate authority in customCA is no certificate in PEM",
                )
            };
            let mut certificates = Vec::new();
            for item in parse_pem(pem.as_bytes()) {
                if let PemItem::Certificate(certificate) = item.map_err(|_| wrong())? {
                    certificates.push(certificate);
                }
            }
            if certificates.is_empty() {
                return Err(wrong());
            }
            let roots = RootCerts::new_with_certs(&certificates);
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Ok(Http(config.build().new_agent()))
    }

    /// Sends what `request` makes until there is an answer that another attempt would not change.
    /// What is sent may arrive twice, so it must be the same to send it twice.
    pub(super) fn send(
        &self,
        request: impl Fn() -> Result<Request<Vec<u8>>, ureq::http::Error>,
    ) -> Result<Answer, StoreError> {
        let mut pauses = PAUSES.iter();
        loop {
            let made = request().map_err(|error| {
                StoreError::Unreachable(format!("the address makes no sense: {error}"))
            })?;
            let outcome = self.once(made);
            let is_final = match &outcome {
                Ok(answer) => !may_pass(answer.status),
                // An address or a certificate that is wrong stays wrong.
                Err(ureq::Error::BadUri(_) | ureq::Error::Tls(_) | ureq::Error::Rustls(_)) => true,
                Err(_) => false,
            };
            match (is_final, pauses.next()) {
                (false, Some(pause)) => std::thread::sleep(*pause),
                _ => {
                    return outcome.map_err(|error| {
                        StoreError::Unreachable(format!("the server does not answer: {error}"))
                    });
                }
            }
        }
    }

    fn once(&self, request: Request<Vec<u8>>) -> Result<Answer, ureq::Error> {
        let (parts, body) = request.into_parts();
        let response = match body.is_empty() && !has_body(&parts.method) {
            true => self.0.run(Request::from_parts(parts, ()))?,
            false => self.0.run(Request::from_parts(parts, body))?,
        };
        let (parts, body) = response.into_parts();
        let body = body.into_with_config().limit(u64::MAX).read_to_vec()?;
        Ok(Answer { status: parts.status, headers: parts.headers, body: body.into() })
    }
}

fn has_body(method: &ureq::http::Method) -> bool {
    matches!(method.as_str(), "POST" | "PUT")
}

fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

impl Answer {
    /// The answer if it is a good one, else what it means for this file.
    pub(super) fn good(self, what: &str) -> Result<Self, StoreError> {
        match self.status.as_u16() {
            200..=299 => Ok(self),
            404 => Err(StoreError::Missing(what.to_owned())),
            412 => Err(StoreError::Exists(what.to_owned())),
            413 | 507 => Err(StoreError::Full(what.to_owned())),
            401 | 403 => Err(StoreError::Denied(format!(
                "the server refuses {what} with status {}{}",
                self.status.as_u16(),
                self.code()
            ))),
            status => Err(StoreError::Unreachable(format!(
                "the server answers {status}{} for {what}",
                self.code()
            ))),
        }
    }

    /// The code of an error as S3 servers say it. Nothing else of the answer is repeated: it may have
    /// in it what it was asked with.
    pub(super) fn code(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
        match code {
            Some((code, _)) if code.len() < 64 => format!(" ({code})"),
            _ => String::new(),
        }
    }

    /// The part that was asked for with a range, also where the server sent everything.
    pub(super) fn part(self, what: &str, from: u64, bytes: usize) -> Result<Bytes, StoreError> {
        let is_all = self.status == StatusCode::OK;
        let answer = match self.status {
            StatusCode::RANGE_NOT_SATISFIABLE => return Err(shorter(what)),
            _ => self.good(what)?,
        };
        let start = if is_all { usize::try_from(from).unwrap_or(usize::MAX) } else { 0 };
        let end = start.checked_add(bytes).filter(|end| *end <= answer.body.len());
        let end = end.ok_or_else(|| shorter(what))?;
        Ok(answer.body.slice(start..end))
    }
}

fn shorter(what: &str) -> StoreError {
    StoreError::Damaged(format!("{what} is shorter than its index says"))
}
