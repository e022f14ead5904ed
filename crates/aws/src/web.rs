//! Requests of AWS's crate, sent as ours are. Its own client would bring another TLS library.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http_body_util::Full;
use interlock_iam::http::{Endpoint, Failure, Http};
use std::fmt;
use std::time::Duration;

/// How long one request may take.
const DEADLINE: Duration = Duration::from_secs(3);
/// Whether an instance says who it is. On any other machine nobody answers there.
const CONNECT: Duration = Duration::from_secs(1);

/// What sends requests.
#[derive(Clone)]
pub(crate) struct Web {
    http: Http,
    deadline: Duration,
}

impl Web {
    pub(crate) fn new(http: Http) -> Web {
        Web { http, deadline: DEADLINE }
    }

    async fn send(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let wrong = |why: String| ConnectorError::user(why.into());
        // Metadata of containers and instances has no TLS, and is on the way to nowhere else. Which addresses
        // without TLS may be asked is for AWS's crate to say: it takes none but these.
        let endpoint =
            Endpoint::of(request.uri(), true).map_err(|error| wrong(error.to_string()))?;
        let body = request.body().bytes().map(Bytes::copy_from_slice);
        let body = body.ok_or_else(|| wrong("a request of unknown length".to_owned()))?;
        let request = request.try_into_http1x().map_err(|error| wrong(error.to_string()))?;
        let (mut head, _) = request.into_parts();
        if !head.headers.contains_key("host") {
            let host = endpoint.authority.parse().map_err(|_| wrong("a wrong host".to_owned()))?;
            head.headers.insert("host", host);
        }
        head.uri = endpoint.path.parse().map_err(|_| wrong("a wrong path".to_owned()))?;
        let request = http::Request::from_parts(head, Full::new(body));
        let answer = self.http.exchange(&endpoint, request, self.deadline).await;
        let response = answer.map_err(|failure| match failure {
            Failure::NotSent(why) | Failure::Broken(why) => ConnectorError::io(why.into()),
            Failure::Late => ConnectorError::timeout("no answer in time".into()),
        })?;
        let response = response.map(SdkBody::from);
        HttpResponse::try_from(response).map_err(|error| ConnectorError::other(error.into(), None))
    }
}

impl HttpConnector for Web {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().send(request))
    }
}

impl HttpClient for Web {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        // A short time to connect is all that tells a machine of AWS from others.
        let is_local = settings.connect_timeout().is_some_and(|time| time <= CONNECT);
        let deadline = if is_local { CONNECT } else { DEADLINE };
        SharedHttpConnector::new(Web { deadline, ..self.clone() })
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Web").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
