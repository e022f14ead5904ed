//! Logs of pods as the body of an answer: parts are made as they are taken.

use super::target::{self, Purpose};
use super::{Running, options, until};
use crate::brought::{Brought, Lasting, not_allowed};
use crate::http::{self, Body};
use crate::pipe;
use crate::request::Verb;
use crate::server::Server;
use crate::status::Status;
use ::http::Response;
use bytes::Bytes;
use std::time::Duration;
use tokio::sync::mpsc;

/// A client that takes nothing for so long, while there is something to take, is cut off. Somebody may be reading what
/// it shows, page by page.
const STALL: Duration = Duration::from_secs(15 * 60);

/// Serves the log of a container.
pub(super) async fn serve(running: &Running, brought: Brought) -> Result<Response<Body>, Status> {
    let Running { call, pod, streams, .. } = running;
    if brought.verb != Verb::Get {
        return Err(not_allowed());
    }
    let lasting = brought.lasting.ok_or_else(not_allowed)?;
    let options = options::log(&brought.query, &call.name, call.now)?;
    let purpose = if options.previous { Purpose::LogBefore } else { Purpose::Log };
    let container = target::container(call, pod, options::container(&brought.query), purpose)?;
    let parts = streams.logs(container, options).await?;
    let (writer, reader) = pipe::pipe();
    tokio::spawn(pass_on(call.server.clone(), lasting, parts, writer));
    Ok(http::stream("text/plain", reader))
}

/// Passes the parts on, one at a time.
async fn pass_on(
    server: Server,
    lasting: Lasting,
    mut parts: mpsc::Receiver<Bytes>,
    writer: pipe::Writer,
) {
    let passing = async {
        loop {
            tokio::select! {
                part = parts.recv() => {
                    let Some(part) = part else { break };
                    writer.put(part);
                }
                () = writer.reader_gone() => return,
            }
            match tokio::time::timeout(STALL, writer.room()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => {
                    // What the client did not take is freed.
                    writer.put(Bytes::new());
                    return;
                }
            }
        }
    };
    tokio::select! {
        () = passing => {}
        () = until::it_must_end(&server, &lasting.standing) => {}
    }
    drop(lasting.permit);
}
