//! Streams of pods: logs, commands in them, their ports.
//!
//! The server runs no pods. A program that does registers itself for a logical cluster, as [`PodStreams`]; from
//! then on the requests `pods/log`, `pods/exec`, `pods/attach` and `pods/portforward` of that cluster are
//! answered with what it says. Here is everything that has to do with a request: rights, limits, which container
//! is meant, what comes over the wire. In a cluster without one the answer is that the pod does not run.
//! Whoever connects to a pod passes admission first, as the operation `CONNECT`.
//!
//! Pods that run in another logical cluster than the one that has them are found by [`PodPlaces`]. Rights are those
//! in the cluster that was asked; connections pass the admission of both.
//!
//! | file | what it does |
//! |---|---|
//! | `options` | parameters of a request |
//! | `elsewhere` | pods that run in another logical cluster |
//! | `target` | the pod and the container that are meant, and whether they can be asked |
//! | `until` | ends a stream with the right to it, and with the server |
//! | `log` | logs as the body of an answer |
//! | `websocket` | frames of WebSocket |
//! | `command` | commands, over the channels of a WebSocket or the streams of SPDY |
//! | `spdy` | as much of SPDY/3.1 as kubectl speaks |
//! | `forward` | connections to ports, over SPDY |

mod command;
mod elsewhere;
mod forward;
mod log;
mod options;
mod spdy;
mod target;
mod until;
mod websocket;

pub use crate::pod_streams::{
    Answer, Command, Connection, Ended, Input, LogOptions, Output, PodContainer, PodPlace,
    PodPlaces, PodStreams, Registration, Session, Size, Wanted,
};

use crate::admission;
use crate::brought::{Brought, not_allowed};
use crate::call::{Call, Notes};
use crate::http::Body;
use crate::pod_streams::Answering;
use crate::request::{RequestInfo, Verb};
use crate::status::Status;
use ::http::Response;
use serde_json::Value;
use std::sync::Arc;

/// Whether a request is one for a stream: it lasts as a watch does, and is written down whatever its verb is.
pub(crate) fn is_stream(info: &RequestInfo) -> bool {
    let Some(asked) = &info.resource else { return false };
    let subresource = asked.subresource.as_deref().unwrap_or_default();
    let is_one = matches!(info.verb, Verb::Get | Verb::Create);
    is_one
        && (asked.group.as_str(), asked.resource.as_str()) == ("", "pods")
        && matches!(subresource, "log" | "exec" | "attach" | "portforward")
}

/// A pod, and who runs it.
struct Running {
    /// About the pod where it runs.
    call: Call,
    pod: Value,
    streams: Arc<dyn PodStreams>,
    /// The notes of the request, if it was made in another cluster than the one that the pod runs in.
    asked: Option<Arc<Notes>>,
}

/// Serves a request for a stream of a pod.
pub(crate) async fn serve(mut call: Call, brought: Brought) -> Result<Response<Body>, Status> {
    if call.subresource == "log" {
        let running = running(call).await?;
        return log::serve(&running, brought).await;
    }
    if brought.lasting.is_none() {
        return Err(not_allowed());
    }
    // As upstream since 1.35: a WebSocket begins with GET, and whoever may only read must not run commands.
    call.check_verb("create").await?;
    let options = options::of_connection(&call.subresource, &brought.query)?;
    let options = admission::connect(&mut call, options).await?;
    let mut running = running(call).await?;
    let options = elsewhere::admit(&mut running, options).await?;
    match running.call.subresource.as_str() {
        "portforward" => forward::serve(running, brought).await,
        _ => command::serve(&running, brought, &options).await,
    }
}

async fn running(call: Call) -> Result<Running, Status> {
    let pod = call.found().await?.object;
    match call.server.streams().of(&call.cluster.name) {
        Some(Answering::Running(streams)) => Ok(Running { call, pod, streams, asked: None }),
        Some(Answering::Knowing(places)) => elsewhere::find(&call, pod, &*places).await,
        None => {
            let why =
                format!("pod {} does not run: this server keeps pods, but runs none", call.name);
            Err(Status::new(404, "NotFound", why).about("", "pods", &call.name))
        }
    }
}
