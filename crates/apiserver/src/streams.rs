//! Streams of pods: logs, commands in them, their ports.
//!
//! The server runs no pods. A program that does registers itself for a logical cluster, as [`PodStreams`]; from
//! then on the requests `pods/log`, `pods/exec`, `pods/attach` and `pods/portforward` of that cluster are
//! answered with what it says. Here is everything that has to do with a request: rights, limits, which container
//! is meant, what comes over the wire. In a cluster without one the answer is that the pod does not run.
//! Whoever connects to a pod passes admission first, as the operation `CONNECT`.
//!
//! | file | what it does |
//! |---|---|
//! | `options` | parameters of a request |
//! | `target` | the pod and the container that are meant, and whether they can be asked |
//! | `until` | ends a stream with the right to it, and with the server |
//! | `log` | logs as the body of an answer |
//! | `websocket` | frames of WebSocket |
//! | `command` | commands, over the channels of a WebSocket or the streams of SPDY |
//! | `spdy` | as much of SPDY/3.1 as kubectl speaks |
//! | `forward` | connections to ports, over SPDY |

mod command;
mod forward;
mod log;
mod options;
mod spdy;
mod target;
mod until;
mod websocket;

pub use crate::pod_streams::{
    Answer, Command, Connection, Ended, Input, LogOptions, Output, PodContainer, PodStreams,
    Registration, Session, Size, Wanted,
};

use crate::access::Attributes;
use crate::admission;
use crate::brought::{Brought, not_allowed};
use crate::call::Call;
use crate::http::Body;
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
    pod: Value,
    streams: Arc<dyn PodStreams>,
}

/// Serves a request for a stream of a pod.
pub(crate) async fn serve(mut call: Call, brought: Brought) -> Result<Response<Body>, Status> {
    if call.subresource == "log" {
        let Running { pod, streams } = running(&call).await?;
        return log::serve(&call, brought, &pod, &*streams).await;
    }
    if brought.lasting.is_none() {
        return Err(not_allowed());
    }
    // As upstream since 1.35: a WebSocket begins with GET, and whoever may only read must not run commands.
    call.check_verb("create").await?;
    let options = options::of_connection(&call.subresource, &brought.query)?;
    let options = admission::connect(&mut call, options).await?;
    let running = running(&call).await?;
    match call.subresource.as_str() {
        "portforward" => forward::serve(&call, brought, &running.pod, running.streams).await,
        _ => command::serve(&call, brought, &options, &running).await,
    }
}

async fn running(call: &Call) -> Result<Running, Status> {
    let pod = call.found().await?.object;
    let Some(streams) = call.server.streams().of(&call.cluster.name) else {
        let why = format!("pod {} does not run: this server keeps pods, but runs none", call.name);
        return Err(Status::new(404, "NotFound", why).about("", "pods", &call.name));
    };
    Ok(Running { pod, streams })
}

impl Call {
    /// Whether the caller may do something else with what the call is about.
    async fn check_verb(&self, verb: &'static str) -> Result<(), Status> {
        let attributes = Attributes {
            verb,
            group: &self.resource.group,
            resource: &self.resource.plural,
            subresource: &self.subresource,
            name: &self.name,
            namespace: &self.namespace,
            ..Attributes::default()
        };
        self.server.check(&self.identity, &self.cluster, &attributes).await
    }
}
