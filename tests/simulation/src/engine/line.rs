//! The line between an actor and a server: every request waits until the simulation lets it through,
//! loses it, or loses its reply.

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body as HttpBody;
use interlock_apiserver::access::identity::{MASTERS, Scope};
use interlock_apiserver::{Body, Identity, InProcess, Server};
use kube::Client;
use std::collections::BTreeMap;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tower_service::Service;

/// What happens to a request, or of a question to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It goes through, and so does its reply.
    Through,
    /// It never arrives, and nobody says so.
    RequestLost,
    /// It is done, and its reply never arrives.
    ReplyLost,
    /// It is on its way while its sender dies, and arrives later.
    LeftBehind,
}

/// What a step waits to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errand {
    /// A request to a server, or a question or a action to a machine.
    Any,
    /// To start a process, or to open a port.
    Start,
}

/// A request that outlived its sender.
type LeftBehind = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where all that steps ask and do waits for its turn. The simulation polls one step at a time, so
/// whoever arrives here is the step that is being polled.
#[derive(Default)]
pub(crate) struct Gate {
    inner: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    polled: Option<u64>,
    let_through: BTreeMap<u64, Way>,
    waiting: BTreeMap<u64, Errand>,
    left_behind: Vec<LeftBehind>,
}

impl Gate {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the step's turn. What the simulation itself asks goes through at once.
    pub(crate) async fn turn(&self, errand: Errand) -> Way {
        let Some(step) = self.inside().polled else { return Way::Through };
        poll_fn(|_| {
            let mut inside = self.inside();
            match inside.let_through.remove(&step) {
                Some(way) => Poll::Ready(way),
                None => {
                    inside.waiting.insert(step, errand);
                    // No waker: the simulation polls again when it lets the step go on.
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Lets a step go on until it waits here again, or ends.
    pub(crate) async fn drive<T>(
        &self,
        step: u64,
        way: Way,
        future: &mut Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> Option<T> {
        let is_waiting = self.inside().waiting.remove(&step).is_some();
        if is_waiting {
            self.inside().let_through.insert(step, way);
        }
        poll_fn(|context| {
            self.inside().polled = Some(step);
            let polled = future.as_mut().poll(context);
            self.inside().polled = None;
            match polled {
                Poll::Ready(ended) => Poll::Ready(Some(ended)),
                Poll::Pending if self.inside().waiting.contains_key(&step) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// What a step waits to do, if it waits here.
    pub(crate) fn errand(&self, step: u64) -> Option<Errand> {
        self.inside().waiting.get(&step).copied()
    }

    /// A step was given up.
    pub(crate) fn forget(&self, step: u64) {
        let mut inside = self.inside();
        inside.waiting.remove(&step);
        inside.let_through.remove(&step);
    }

    /// The oldest request that outlived its sender.
    pub(crate) fn take_left_behind(&self) -> Option<LeftBehind> {
        let mut inside = self.inside();
        (!inside.left_behind.is_empty()).then(|| inside.left_behind.remove(0))
    }

    /// A request outlives its sender, who waits for ever: the simulation ends it.
    pub(crate) async fn leave_behind(&self, request: LeftBehind) {
        {
            let mut inside = self.inside();
            inside.left_behind.push(request);
            if let Some(step) = inside.polled {
                inside.waiting.insert(step, Errand::Any);
            }
        }
        pending().await
    }
}

/// A write that a server was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// By whom.
    pub(crate) who: Arc<str>,
    /// `hub`, or the name of a cluster.
    pub(crate) to: Arc<str>,
    /// POST, PATCH, DELETE.
    pub(crate) method: Method,
    /// Without the query.
    pub(crate) path: String,
    /// Whether the server did it.
    pub(crate) is_done: bool,
}

/// All writes since somebody last looked.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Vec<Sent>>);

impl Journal {
    /// What was sent since this was asked last.
    pub(crate) fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One end of a line.
#[derive(Clone)]
pub(crate) struct Line {
    who: Arc<str>,
    to: Arc<str>,
    server: InProcess,
    gate: Arc<Gate>,
    journal: Arc<Journal>,
    is_cut: Arc<AtomicBool>,
}

/// What lines are made of.
pub(crate) struct Lines {
    /// The server at their other end.
    pub(crate) server: Server,
    /// Where requests wait.
    pub(crate) gate: Arc<Gate>,
    /// Where writes are noted.
    pub(crate) journal: Arc<Journal>,
}

impl Lines {
    /// A client for somebody who may do everything: a person, or the simulation itself.
    pub(crate) fn admin(&self, who: &str, to: &str) -> Client {
        let identity = Identity::authenticated(who, vec![MASTERS.to_owned()], Scope::Hub);
        self.client(who, identity, to, &Arc::default())
    }

    /// A client for a program, as one of its accounts; the line is shared by all of them.
    pub(crate) fn account(
        &self,
        who: &str,
        user: &str,
        to: &str,
        is_cut: &Arc<AtomicBool>,
    ) -> Client {
        self.client(who, Identity::authenticated(user, Vec::new(), Scope::Hub), to, is_cut)
    }

    fn client(&self, who: &str, identity: Identity, to: &str, is_cut: &Arc<AtomicBool>) -> Client {
        let logical = if to == crate::HUB { "root" } else { to };
        let line = Line {
            who: Arc::from(who),
            to: Arc::from(to),
            server: self.server.service(identity).in_cluster(logical),
            gate: Arc::clone(&self.gate),
            journal: Arc::clone(&self.journal),
            is_cut: Arc::clone(is_cut),
        };
        Client::new(line, "default")
    }
}

impl Line {
    async fn send<B>(mut self, request: Request<B>) -> io::Result<Response<Body>>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
    {
        let (gate, journal) = (Arc::clone(&self.gate), Arc::clone(&self.journal));
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let way = gate.turn(Errand::Any).await;
        if way == Way::RequestLost || self.is_cut.load(Ordering::Relaxed) {
            return Err(io::Error::other("the line is cut"));
        }
        let (who, to) = (Arc::clone(&self.who), Arc::clone(&self.to));
        let deliver = async move {
            let Ok(response) = self.server.call(request).await;
            if method != Method::GET {
                let is_done = response.status().is_success();
                let mut sent = journal.0.lock().unwrap_or_else(PoisonError::into_inner);
                sent.push(Sent { who, to, method, path, is_done });
            }
            response
        };
        if way == Way::LeftBehind {
            gate.leave_behind(Box::pin(async { drop(deliver.await) })).await;
        } else {
            let response = deliver.await;
            if way == Way::Through {
                return Ok(response);
            }
        }
        Err(io::Error::other("the reply is lost"))
    }
}

impl<B> Service<Request<B>> for Line
where
    B: HttpBody<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
