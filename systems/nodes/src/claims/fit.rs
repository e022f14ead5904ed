//! Which nodes of the pool fit a claim, and which of them it chooses. Only the nodes that the narrowest part of the
//! selector leaves are compared, never the fleet.

use super::facts::Candidate;
use crate::choice::rank;
use crate::filed::{ANY, NODES_IN_POOL, dpu_key, is_in_pool, label_key, rack_key};
use crate::kinds::PHYSICAL_NODE;
use crate::record::NodeRecord;
use crate::reported::is_ahead;
use interlock_api::nodes::NodeClaimSpec;
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{Name, Object, Place, View};

/// Among so many nodes a claim chooses by its order before the others are looked for: enough for many claims that choose
/// at the same time, and few beside a fleet.
const ENOUGH: usize = 512;

/// Whether a node is what a claim selects, and in order. Whether it is free is another matter.
pub(super) fn fits(node: &NodeRecord, spec: &NodeClaimSpec) -> bool {
    let selector = &spec.selector;
    let labels = node.object.metadata.labels.as_ref();
    let has = |key: &String, value: &String| labels.and_then(|all| all.get(key)) == Some(value);
    let is_named =
        spec.node_names.is_empty() || spec.node_names.iter().any(|name| name == node.name());
    let is_in_rack = selector.rack.as_ref().is_none_or(|rack| *rack == node.spec.rack);
    let is_at_dpu =
        selector.dpu.as_ref().is_none_or(|dpu| node.spec.dpus.iter().any(|one| one.dpu == *dpu));
    let is_labelled = selector.labels.iter().all(|(key, value)| has(key, value));
    is_named
        && is_in_rack
        && is_at_dpu
        && is_labelled
        && node.is_consistent()
        && !node.is_terminating()
        && node.spec.quarantine.is_none()
}

/// The node that a claim chooses next, if one is free and fits. Nodes are compared in the order of the claim until one
/// fits, so that most are never read.
pub(super) fn candidate(
    claim_uid: &str,
    spec: &NodeClaimSpec,
    view: &dyn View,
    is_listed: impl Fn(&str) -> bool,
) -> Option<Candidate> {
    let first_fit = |mut pool: Vec<Object>| {
        pool.sort_by_cached_key(|node| rank(claim_uid, name_of(node)));
        let read = pool.iter().filter(|node| is_in_pool(node) && !is_listed(uid_of(node)));
        let mut read = read.filter_map(|node| NodeRecord::read(node).ok());
        let found = read.find(|node| fits(node, spec) && !is_ahead(node, view))?;
        Some(Candidate { name: found.name().to_owned(), uid: found.uid().to_owned() })
    };
    if !spec.node_names.is_empty() {
        let get = |name: &String| view.get(Place::HUB, &PHYSICAL_NODE, &Name::cluster_wide(name));
        return first_fit(spec.node_names.iter().filter_map(get).collect());
    }
    let keys = parts(spec).into_iter().map(|(key, _)| key).chain([ANY.to_owned()]);
    let narrowest = keys.min_by_key(|key| view.count(Place::HUB, &NODES_IN_POOL, key))?;
    let some = view.find_some(Place::HUB, &NODES_IN_POOL, &narrowest, ENOUGH);
    let is_all = some.len() < ENOUGH;
    let rest = || first_fit(view.find(Place::HUB, &NODES_IN_POOL, &narrowest));
    first_fit(some).or_else(|| if is_all { None } else { rest() })
}

/// The parts of a selector: how the pool is filed by it, and what it is in words.
fn parts(spec: &NodeClaimSpec) -> Vec<(String, String)> {
    let selector = &spec.selector;
    let mut parts = Vec::new();
    parts.extend(selector.rack.iter().map(|rack| (rack_key(rack), format!("in rack {rack}"))));
    parts.extend(selector.dpu.iter().map(|dpu| (dpu_key(dpu), format!("wired to DPU {dpu}"))));
    let labels = selector.labels.iter();
    parts.extend(
        labels.map(|(key, value)| (label_key(key, value), format!("labelled {key}={value}"))),
    );
    parts
}

/// How many nodes are in the pool, and how many of them fail on which part of the selector.
pub(super) fn shortage(spec: &NodeClaimSpec, view: &dyn View) -> String {
    let all = view.count(Place::HUB, &NODES_IN_POOL, ANY);
    let mut words = vec![match all {
        0 => return "no node is available".to_owned(),
        1 => "1 node is available".to_owned(),
        many => format!("{many} nodes are available"),
    }];
    words.extend(parts(spec).into_iter().map(|(key, part)| {
        let fitting = view.count(Place::HUB, &NODES_IN_POOL, &key);
        format!("{} of them not {part}", all.saturating_sub(fitting))
    }));
    if !spec.node_names.is_empty() {
        let get = |name: &&String| view.get(Place::HUB, &PHYSICAL_NODE, &Name::cluster_wide(name));
        let is_free = |name: &&String| get(name).is_some_and(|node| is_in_pool(&node));
        let free = spec.node_names.iter().filter(is_free).count();
        words.push(format!("{free} of the {} named ones", spec.node_names.len()));
    }
    words.join(", ")
}
