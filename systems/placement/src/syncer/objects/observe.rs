//! The objects of a namespace at the hub, each with what is here of it.

use super::compare::contains;
use super::decide::{Awaits, Facts, Here, Live, LiveHere, MadeFrom, Stray, Way};
use super::desired::{desired, is_carried};
use super::status;
use crate::kinds::{CLAIM, POD, SERVICE_ACCOUNT, STATEFUL_SET};
use crate::syncer::marks::{from_uid, is_ours};
use crate::syncer::observe::StepInputs;
use interlock_api::names::FINALIZER_KEEP;
use interlock_api::placement::Fill;
use interlock_kernel::metadata::{has_finalizer, is_deleting, name_of, uid_of};
use interlock_kernel::{Address, Kind, Name, Object, Place};
use serde_json::Value;

/// An object at the hub, and whatever has its name here.
#[derive(Debug)]
pub(crate) struct Mirror {
    pub(in crate::syncer) kind: Kind,
    pub(in crate::syncer) hub: Object,
    pub(in crate::syncer) here: Option<Object>,
}

/// All objects of the namespace, in the order in which they are applied.
pub(in crate::syncer) fn observe(inputs: &StepInputs<'_>) -> (Vec<Facts>, Vec<Mirror>) {
    let kinds = inputs.syncer.kinds.carried().enumerate();
    kinds
        .flat_map(|(rank, kind)| {
            let hub = inputs.at_hub(kind).into_iter();
            hub.map(move |hub| observe_one(inputs, rank, kind, hub))
        })
        .unzip()
}

/// What is here of objects that the cache of the hub does not have: each with its kind.
pub(in crate::syncer) fn strays(
    inputs: &StepInputs<'_>,
    namespace: &str,
) -> (Vec<Stray>, Vec<(Kind, Object)>) {
    let at_hub = |here: &Object| Name::within(namespace, name_of(here));
    let is_stray = |kind: &Kind, here: &Object| {
        // What a controller makes on the cluster may have the marks of what it is made from.
        let is_applied = is_ours(here, inputs.name) && here.metadata.owner_references.is_none();
        let is_known = || inputs.view.get(Place::HUB, kind, &at_hub(here)).is_some();
        is_applied && from_uid(here).is_some() && !is_deleting(here) && !is_known()
    };
    let mut found = Vec::new();
    for kind in inputs.syncer.kinds.applied() {
        let mut here = inputs.view.list(Place::CLUSTER, kind, Some(inputs.name));
        here.retain(|here| is_stray(kind, here));
        found.extend(here.into_iter().map(|here| (kind.clone(), here)));
    }
    let observed = |(kind, here): &(Kind, Object)| {
        let source = inputs.live_reads.objects.get(&Address::new(Place::HUB, kind, at_hub(here)));
        let is_source = |it: &Object| Some(uid_of(it)) == from_uid(here);
        Stray {
            what: format!("{kind} {}", name_of(here)),
            is_source_there: source.map(|it| it.as_ref().is_some_and(is_source)),
        }
    };
    (found.iter().map(observed).collect(), found)
}

/// One object.
pub(in crate::syncer) fn observe_one(
    inputs: &StepInputs<'_>,
    rank: usize,
    kind: &Kind,
    hub: Object,
) -> (Facts, Mirror) {
    let address = Address::new(Place::CLUSTER, kind, Name::within(inputs.name, name_of(&hub)));
    let here = inputs.view.get(Place::CLUSTER, kind, &address.name);
    let way = way(inputs, kind, &hub);
    let facts = Facts {
        kind: kind.to_string(),
        name: name_of(&hub).to_owned(),
        rank,
        is_terminating: is_deleting(&hub),
        has_finalizer: has_finalizer(&hub, &inputs.syncer.finalizer),
        way,
        awaits: awaits(inputs, kind, &hub),
        is_workload: inputs.syncer.kinds.is_workload(kind),
        here: here.as_ref().map(|here| Here {
            is_ours: is_ours(here, inputs.name),
            // Each namespace has a default service account from the start.
            is_given: *kind == SERVICE_ACCOUNT && name_of(&hub) == "default",
            made_from: match from_uid(here) {
                None => MadeFrom::Unknown,
                Some(from) if from == uid_of(&hub) => MadeFrom::This,
                Some(_) => MadeFrom::Another,
            },
            is_terminating: is_deleting(here),
            is_kept: has_finalizer(here, FINALIZER_KEEP),
            is_in_use: *kind == CLAIM && is_deleting(&hub) && is_in_use(inputs, name_of(&hub)),
            is_up_to_date: way == Way::Down && is_up_to_date(kind, &hub, here, inputs.name),
            has_news: is_made_from(here, &hub, inputs.name) && status::news(&hub, here).is_some(),
        }),
        live_read: live_read(inputs, &address, kind, &hub),
    };
    (facts, Mirror { kind: kind.clone(), hub, here })
}

/// What live reads showed of the name of an object.
fn live_read(inputs: &StepInputs<'_>, here: &Address, kind: &Kind, hub: &Object) -> Option<Live> {
    let read = &inputs.live_reads.objects;
    let (here, at_hub) =
        (read.get(here)?, read.get(&Address::new(Place::HUB, kind, Name::of(hub)))?);
    Some(Live {
        is_wanted: at_hub.as_ref().is_some_and(|it| uid_of(it) == uid_of(hub) && !is_deleting(it)),
        here: match here {
            None => LiveHere::Absent,
            Some(here) if is_made_from(here, hub, inputs.name) => LiveHere::Its,
            Some(_) => LiveHere::Another,
        },
    })
}

/// Whether the syncer made it for this grant, from this very object.
fn is_made_from(here: &Object, hub: &Object, grant: &str) -> bool {
    is_ours(here, grant) && from_uid(here) == Some(uid_of(hub))
}

fn way(inputs: &StepInputs<'_>, kind: &Kind, hub: &Object) -> Way {
    if *kind == CLAIM || !is_carried(kind, hub) {
        Way::Other
    } else if is_made_by_another(inputs, hub) {
        Way::MadeThere
    } else if *kind == POD && is_finished(hub) {
        Way::Finished
    } else {
        Way::Down
    }
}

/// Whether a pod on the cluster has the claim.
fn is_in_use(inputs: &StepInputs<'_>, claim: &str) -> bool {
    let pods = inputs.view.list(Place::CLUSTER, &POD, Some(inputs.name));
    pods.iter().any(|pod| claims_of(&pod.data["spec"]).any(|used| used == claim))
}

fn is_up_to_date(kind: &Kind, hub: &Object, here: &Object, grant: &str) -> bool {
    let wanted = desired(kind, hub, grant);
    let metadata = serde_json::to_value(&here.metadata).unwrap_or_default();
    let (Some(fields), true) = (wanted.as_object(), contains(&metadata, &wanted["metadata"]))
    else {
        return false;
    };
    let mut fields = fields.iter().filter(|(field, _)| *field != "metadata");
    fields.all(|(field, value)| contains(&here.data[field.as_str()], value))
}

/// Whether a controller makes it from an object that goes down itself.
fn is_made_by_another(inputs: &StepInputs<'_>, hub: &Object) -> bool {
    let owners = hub.metadata.owner_references.iter().flatten();
    owners.filter(|owner| owner.controller == Some(true)).any(|owner| {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        inputs.syncer.kinds.carries(group, &owner.kind)
    })
}

/// Whether a pod ran to its end.
pub(super) fn is_finished(pod: &Object) -> bool {
    matches!(pod.data["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// What a workload has to wait for.
fn awaits(inputs: &StepInputs<'_>, kind: &Kind, hub: &Object) -> Option<Awaits> {
    if !inputs.syncer.kinds.is_workload(kind) {
        return None;
    }
    let spec = &hub.data["spec"];
    let templates = spec["volumeClaimTemplates"].as_array();
    if *kind == STATEFUL_SET && templates.is_some_and(|templates| !templates.is_empty()) {
        return Some(Awaits::ClaimTemplates);
    }
    let in_pods = claims_of(spec).chain(claims_of(&spec["template"]["spec"]));
    let mut used = in_pods.chain(claims_of(&spec["jobTemplate"]["spec"]["template"]["spec"]));
    let listed = inputs.grant.as_ref().map(|grant| grant.status.claims.as_slice());
    let is_filled = |claim: &str| {
        let listed = listed.unwrap_or_default().iter().find(|listed| listed.name == claim);
        listed.is_some_and(|listed| listed.fill == Fill::Filled)
    };
    used.find(|claim| !is_filled(claim)).map(|claim| Awaits::Claim(claim.to_owned()))
}

/// The claims that a pod uses.
fn claims_of(pod_spec: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod_spec["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
}
