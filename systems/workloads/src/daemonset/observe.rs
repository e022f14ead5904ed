//! What is seen of a DaemonSet, of its pods, its revisions, and of the nodes.

use super::decide::{Bound, Facts, Member, Node, Set, Strategy};
use super::fit::fit;
use super::status::Status;
use crate::kinds::{DAEMON_SET, NODE, POD};
use crate::live::Listing;
use crate::owned::{Claim, Owner, name_in, selector_of};
use crate::pod::Pod;
use crate::revisions::{self, LABEL_REVISION};
use crate::slots::base;
use crate::template::Home;
use interlock_kernel::metadata::{is_deleting, label, name_of, namespace_of, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Nothing, Object, Observed, Place, Subject, View};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Where a pod that is on no node asks for one by its name, as upstream's do.
const ASKED_NODE: &str = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                          /nodeSelectorTerms/0/matchFields/0/values/0";

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) set: Object,
    pub(super) home: Home,
    /// Its pods, and those that it could have, by name.
    pub(super) pods: BTreeMap<String, Object>,
    /// Its revisions by name.
    pub(super) revisions: BTreeMap<String, Object>,
}

/// Reads what a step is about.
pub(super) fn observe(
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let address = Address::new(Place::CLUSTER, &DAEMON_SET, name_in(subject));
    let Some(set) = view.get(Place::CLUSTER, &DAEMON_SET, &address.name) else {
        return Observed::nothing("the cache shows no such DaemonSet");
    };
    let selector = match selector_of(&set) {
        Ok(selector) => selector,
        Err(flaw) => return Observed::nothing(flaw),
    };
    let listing = Listing { owner: &address, kind: &POD };
    let (source, pods) = listing.list(Some(&set), view, live_reads);
    let (revisions, revision_objects) =
        revisions::Of { kind: &DAEMON_SET, owner: &set }.observe(view);
    let owner = Owner { uid: uid_of(&set), selector: &selector };
    let least = set.data["spec"]["minReadySeconds"].as_i64().unwrap_or(0);
    let now = view.now();
    let member = |pod: &Object| Member {
        pod: Pod::of(pod, least, now),
        claim: owner.claim(pod),
        node: node_of(pod).to_owned(),
        hash: label(pod, LABEL_REVISION).unwrap_or_default().to_owned(),
    };
    let members = pods.iter().map(member);
    let (members, others): (Vec<Member>, Vec<Member>) =
        members.partition(|member| member.claim != Claim::Foreign);
    let taken: BTreeSet<&str> = others.iter().map(|it| it.pod.name.as_str()).collect();
    let facts = Facts {
        set: set_fact(&set),
        home: Home::of(view, namespace_of(&set)),
        revisions,
        nodes: nodes(&set, &members, &taken, &Reads { view, live_reads }),
        pods: members,
        source,
        reported: Status::read(&set),
    };
    let scene = Scene {
        now,
        home: facts.home.clone(),
        pods: pods.into_iter().map(|pod| (name_of(&pod).to_owned(), pod)).collect(),
        revisions: revision_objects,
        set,
    };
    Observed::Seen { facts, scene }
}

/// What a step may read.
struct Reads<'a> {
    view: &'a dyn View,
    live_reads: &'a LiveReads<Nothing>,
}

fn set_fact(set: &Object) -> Set {
    let spec = &set.data["spec"];
    let update = &spec["updateStrategy"];
    let rolling = &update["rollingUpdate"];
    let limit = spec["revisionHistoryLimit"].as_i64();
    Set {
        is_terminating: is_deleting(set),
        generation: set.metadata.generation.unwrap_or(0),
        strategy: match update["type"].as_str() {
            Some("OnDelete") => Strategy::OnDelete,
            _ => Strategy::Rolling {
                most_unavailable: bound(&rolling["maxUnavailable"]).unwrap_or(Bound::Count(1)),
            },
        },
        history_limit: limit.map_or(10, |limit| usize::try_from(limit).unwrap_or(0)),
        refusal: refusal(&rolling["maxSurge"]),
    }
}

/// A second pod of a node would have the name of the first.
fn refusal(surge: &Value) -> Option<String> {
    let is_none = matches!(bound(surge), None | Some(Bound::Count(0) | Bound::Percent(0)));
    (!is_none).then(|| {
        format!(
            "spec.updateStrategy.rollingUpdate.maxSurge is {surge}, and a node never has two pods \
             of a DaemonSet here; set it to 0, and maxUnavailable to 1 or more"
        )
    })
}

/// A number or a share; None: neither.
fn bound(value: &Value) -> Option<Bound> {
    if let Some(count) = value.as_u64() {
        return Some(Bound::Count(u32::try_from(count).unwrap_or(u32::MAX)));
    }
    let percent = value.as_str()?.strip_suffix('%')?;
    Some(Bound::Percent(percent.parse().ok()?))
}

/// The node that a pod is for. One that is no process is on none, and only asks for it.
fn node_of(pod: &Object) -> &str {
    let spec = &pod.data["spec"];
    let on = spec["nodeName"].as_str().filter(|name| !name.is_empty());
    on.or_else(|| spec.pointer(ASKED_NODE)?.as_str()).unwrap_or_default()
}

/// The name of the pod of a node.
pub(super) fn pod_name(set: &Object, node: &str) -> String {
    base(&format!("{}-{node}", name_of(set)), 0)
}

fn nodes(
    set: &Object,
    members: &[Member],
    taken: &BTreeSet<&str>,
    reads: &Reads<'_>,
) -> BTreeMap<String, Node> {
    let spec = &set.data["spec"]["template"]["spec"];
    let all = reads.view.list(Place::CLUSTER, &NODE, None);
    let seen = |node: &Object| {
        let name = name_of(node);
        let is_name_taken = taken.contains(pod_name(set, name).as_str());
        (name.to_owned(), Node::Seen { fit: fit(spec, node), is_name_taken })
    };
    // One that is being deleted gets nothing new, and takes nothing with it before it is gone.
    let mut nodes: BTreeMap<String, Node> =
        all.iter().filter(|node| !is_deleting(node)).map(seen).collect();
    for member in members {
        if !member.node.is_empty() && !nodes.contains_key(&member.node) {
            let address = Address::new(Place::CLUSTER, &NODE, Name::cluster_wide(&member.node));
            let is_leaving = all.iter().any(|node| name_of(node) == member.node);
            let live = reads.live_reads.objects.get(&address).map(Option::is_some);
            let is_there = if is_leaving { Some(true) } else { live };
            nodes.insert(member.node.clone(), Node::Unseen { is_there });
        }
    }
    nodes
}
