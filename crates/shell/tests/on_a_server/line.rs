//! The line between a client and a server in memory: counted, cut, held and taken down by tests.

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame};
use interlock_apiserver::access::identity::{MASTERS, Scope};
use interlock_apiserver::{Body, Identity, InProcess, Server};
use kube::Client;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::sync::watch;
use tower_service::Service;

/// What a test does to a line.
#[derive(Default)]
pub(crate) struct Trouble {
    pub(crate) watches: AtomicUsize,
    pub(crate) lists: AtomicUsize,
    /// Whether new requests fail.
    pub(crate) is_down: AtomicBool,
    /// Whether the next watch is reported that it is too far behind.
    pub(crate) is_too_old: AtomicBool,
    /// Replies that are under way break when this changes.
    pub(crate) cut: watch::Sender<u64>,
    /// Requests with this in their path wait until it is gone.
    pub(crate) held: watch::Sender<Option<&'static str>>,
    pub(crate) paths: Mutex<Vec<String>>,
}

impl Trouble {
    /// No new request comes through, and what is under way breaks.
    pub(crate) fn take_down(&self) {
        self.is_down.store(true, Ordering::SeqCst);
        self.cut.send_modify(|cut| *cut += 1);
    }

    pub(crate) fn repair(&self) {
        self.is_down.store(false, Ordering::SeqCst);
    }
}

#[derive(Clone)]
pub(crate) struct Line {
    server: InProcess,
    trouble: Arc<Trouble>,
}

/// A client of a server over a line of its own.
pub(crate) fn line(server: &Server) -> (Client, Arc<Trouble>) {
    let admin = Identity::authenticated("admin", vec![MASTERS.to_owned()], Scope::Hub);
    let trouble = Arc::new(Trouble::default());
    let line = Line { server: server.service(admin), trouble: Arc::clone(&trouble) };
    (Client::new(line, "default"), trouble)
}

impl<B> Service<Request<B>> for Line
where
    B: HttpBody<Data = Bytes> + Send + 'static,
{
    type Response = Response<Cut>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Cut>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut server, trouble) = (self.server.clone(), Arc::clone(&self.trouble));
        let path = request.uri().to_string();
        let is_get = request.method() == http::Method::GET;
        Box::pin(async move {
            if trouble.is_down.load(Ordering::SeqCst) {
                return Err(io::Error::other("the line is down"));
            }
            let mut held = trouble.held.subscribe();
            let passes = |held: &Option<&str>| held.is_none_or(|part| !path.contains(part));
            held.wait_for(passes).await.map_err(io::Error::other)?;
            let is_watch = path.contains("watch=true");
            if is_watch {
                trouble.watches.fetch_add(1, Ordering::SeqCst);
                if trouble.is_too_old.swap(false, Ordering::SeqCst) {
                    return Ok(too_old());
                }
            } else if is_get && path.contains("limit=") {
                trouble.lists.fetch_add(1, Ordering::SeqCst);
            }
            trouble.paths.lock().expect("no test panics with it").push(path);
            let mut cut = trouble.cut.subscribe();
            let Ok(response) = server.call(request).await;
            let cut = Box::pin(async move {
                let _ = cut.changed().await;
            });
            Ok(response.map(|body| Cut::From(body, cut)))
        })
    }
}

fn too_old() -> Response<Cut> {
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure",
        "message":"too old","reason":"Expired","code":410}"#;
    let mut response = Response::new(Cut::Whole(Some(Bytes::from_static(status.as_bytes()))));
    *response.status_mut() = http::StatusCode::GONE;
    response
}

/// A reply that breaks when the line is cut.
pub(crate) enum Cut {
    From(Body, Pin<Box<dyn Future<Output = ()> + Send>>),
    Whole(Option<Bytes>),
}

impl HttpBody for Cut {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Cut::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Cut::From(body, cut) => {
                if cut.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Some(Err(io::Error::other("the line was cut"))));
                }
                let frame = Pin::new(body).poll_frame(context);
                frame.map(|frame| frame.map(|frame| frame.map_err(io::Error::other)))
            }
        }
    }
}
