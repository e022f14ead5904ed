//! Pods that run in another logical cluster than the one that has them.
//!
//! Rights are those to the pod in the cluster that was asked. They say nothing about the other one, so the request
//! goes on to one pod only, which somebody vouches for, and never to a name or a namespace that the client chose.

use super::{PodPlaces, Running};
use crate::access::{Identity, Scope};
use crate::admission;
use crate::call::{Admitted, Call, Shown};
use crate::clusters::Cluster;
use crate::object;
use crate::pod_streams::Answering;
use crate::status::Status;
use serde_json::Value;
use std::sync::Arc;

/// Finds the pod where it runs.
pub(super) async fn find(
    call: &Call,
    pod: Value,
    places: &dyn PodPlaces,
) -> Result<Running, Status> {
    let about = |status: Status| status.about("", "pods", &call.name);
    let place = places.place(pod).await.map_err(about)?;
    let cluster = call.server.clusters().named(&place.cluster);
    let (Some(cluster), Some(Answering::Running(streams))) =
        (cluster, call.server.streams().of(&place.cluster))
    else {
        let why = format!(
            "pod {} runs in logical cluster {}, whose agent does not serve its pods now: try again",
            call.name, place.cluster
        );
        return Err(about(Status::unavailable(why, 1)));
    };
    let there = Call {
        identity: seen_from_outside(&call.identity, &call.cluster),
        cluster,
        notes: Arc::default(),
        shown: Shown::Object,
        ..call.for_name(&call.name, &place.namespace)
    };
    let pod = there.found().await?.object;
    if object::uid(&pod) != place.uid {
        let why = format!("another pod {} has taken its place: try again", call.name);
        return Err(call.conflict(why));
    }
    Ok(Running { call: there, pod, streams, asked: Some(Arc::clone(&call.notes)) })
}

/// Lets a connection pass the admission of the cluster that the pod runs in, if that is not the one that was asked:
/// what its policies refuse must not be had by another way.
pub(super) async fn admit(
    running: &mut Running,
    options: Arc<Value>,
) -> Result<Arc<Value>, Status> {
    let Some(asked) = &running.asked else { return Ok(options) };
    let there = &mut running.call;
    let admitted = admission::connect(there, Value::clone(&options)).await;
    let (warnings, annotations) = (there.notes.warnings(), there.notes.annotations());
    let of = format!("{}/{}", there.cluster.name, there.name);
    asked.admitted(&of, Admitted { warnings, annotations });
    admitted
}

/// Who asks, as the policies of another cluster see it. An account of one cluster is nobody in another one, whatever
/// its name: there it has the name of its cluster before its own, and no groups.
fn seen_from_outside(identity: &Identity, home: &Cluster) -> Identity {
    match &identity.scope {
        Scope::Hub => identity.clone(),
        Scope::Cluster(_) => {
            let user = format!("{}:{}", home.name, identity.user);
            Identity::authenticated(user, Vec::new(), Scope::Hub)
        }
    }
}
