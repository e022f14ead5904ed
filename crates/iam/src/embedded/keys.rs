//! Where the keys of issuers come from.

use crate::EndpointError;
use crate::http::{Endpoint, Failure, Http};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use rustls::pki_types::CertificateDer;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// What a document is read with, or why it cannot be read.
pub type Fetched<'a> = Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send + 'a>>;

/// Reads the documents of issuers. In one process with the API server no network is needed.
pub trait Keys: Send + Sync + 'static {
    /// The document at a URL.
    fn fetch<'a>(&'a self, url: &'a str) -> Fetched<'a>;
}

/// Reads the documents of issuers over HTTPS; over HTTP on this machine only.
pub struct HttpKeys {
    http: Http,
    deadline: Duration,
}

impl HttpKeys {
    /// Trusts what the machine trusts, and these certificates.
    pub fn new(certificates: &[CertificateDer<'static>]) -> Result<HttpKeys, EndpointError> {
        Ok(HttpKeys { http: Http::new(certificates)?, deadline: Duration::from_secs(5) })
    }
}

impl Keys for HttpKeys {
    fn fetch<'a>(&'a self, url: &'a str) -> Fetched<'a> {
        Box::pin(async move {
            let endpoint = Endpoint::of(url, false).map_err(|error| error.to_string())?;
            let request = Request::get(&endpoint.path)
                .header("host", &endpoint.authority)
                .header("accept", "application/json")
                .body(Full::new(Bytes::new()))
                .map_err(|error| error.to_string())?;
            let response = self.http.exchange(&endpoint, request, self.deadline).await;
            let response = response.map_err(|failure| match failure {
                Failure::NotSent(why) | Failure::Broken(why) => why,
                Failure::Late => "no answer within the deadline".to_owned(),
            })?;
            if !response.status().is_success() {
                return Err(format!("{url} answers with status {}", response.status()));
            }
            Ok(response.into_body())
        })
    }
}
