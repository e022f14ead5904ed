//! Calls inside of the process: the same requests and answers, with no socket in between.
//!
//! `kube::Client::new(server.service(identity), "default")` makes a client of it.

use crate::access::Identity;
use crate::gate::Caller;
use crate::http::Body;
use crate::server::Server;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as HttpBody;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// A server as a tower service, for one identity and one logical cluster.
#[derive(Clone)]
pub struct InProcess {
    server: Server,
    caller: Arc<Caller>,
    prefix: Arc<str>,
}

impl Server {
    /// The server as a service for somebody the wiring vouches for.
    pub fn service(&self, identity: Identity) -> InProcess {
        InProcess {
            server: self.clone(),
            caller: Arc::new(Caller { identity: Some(identity), ..Caller::default() }),
            prefix: Arc::from(""),
        }
    }
}

impl InProcess {
    /// The same service, for a logical cluster; `*` is all of them.
    #[must_use]
    pub fn in_cluster(mut self, name: &str) -> Self {
        self.prefix = Arc::from(format!("/clusters/{name}"));
        self
    }
}

impl<B> Service<Request<B>> for InProcess
where
    B: HttpBody<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if !self.prefix.is_empty() {
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
            if let Ok(uri) = format!("{}{path}", self.prefix).parse() {
                *request.uri_mut() = uri;
            }
        }
        let (server, caller) = (self.server.clone(), Arc::clone(&self.caller));
        Box::pin(async move { Ok(server.handle(request, &caller).await) })
    }
}
