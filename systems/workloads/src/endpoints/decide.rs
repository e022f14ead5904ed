//! Which slices a Service has. First matching rule wins.
//!
//! An endpoint stays in the slice that has it, so that a change of one pod is a write to one slice. What is added is
//! written before what is left out: no endpoint is missing in between.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// How many endpoints a slice has at most.
pub const MOST_ENDPOINTS: usize = 100;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// The Service.
    pub service: Service,
    /// Its slices that are made here, by slot. Those that are being deleted are not among them.
    pub slices: BTreeMap<u32, Slice>,
    /// The slots whose names other objects have.
    pub taken: BTreeSet<u32>,
}

/// A Service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Service {
    /// The cache does not show it.
    Unseen {
        /// Whether a live read showed it; None: there was none.
        is_there: Option<bool>,
    },
    /// It is being deleted.
    Leaving,
    /// It selects no pods.
    WithoutSelector,
    /// It selects pods.
    Selecting(Selecting),
}

/// The pods that a Service selects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Selecting {
    /// Those that have an address, by name.
    pub candidates: Vec<Candidate>,
}

/// A pod that a Service selects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Candidate {
    /// The ports of the Service at this pod.
    pub ports: BTreeSet<Port>,
    /// The pod as an endpoint.
    pub endpoint: Endpoint,
}

/// A port of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Port {
    /// As the Service calls it; empty if it has only one.
    pub name: String,
    /// `TCP`
    pub protocol: String,
    /// Where the pod listens.
    pub number: u16,
    /// What is spoken there.
    pub application: Option<String>,
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Endpoint {
    /// The name of the pod.
    pub pod: String,
    /// Its identity.
    pub uid: String,
    /// Where it is.
    pub address: Ipv4Addr,
    /// Whether it is to get new connections.
    pub is_ready: bool,
    /// Whether it answers, terminating or not.
    pub is_serving: bool,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Its node.
    pub node: Option<String>,
    /// Its own name under the name of the Service.
    pub hostname: Option<String>,
}

/// A slice as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Slice {
    /// Whether its labels, its owner and the form of its endpoints are what is written here.
    pub is_as_written: bool,
    /// Its ports.
    pub ports: BTreeSet<Port>,
    /// Its endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// What a slice is to say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// Its ports.
    pub ports: BTreeSet<Port>,
    /// Its endpoints, by the name of the pod.
    pub endpoints: Vec<Endpoint>,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing until the cache shows the Service that a live read showed.
    WaitForCache,
    /// Read the Service live: its slices are only deleted if it is gone.
    ReadService,
    /// Make the slice of this slot.
    Create(u32, Contents),
    /// Rewrite the slice of this slot.
    Rewrite(u32, Contents),
    /// Delete the slice of this slot, and why.
    Delete(u32, &'static str),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    let selecting = match &facts.service {
        Service::Unseen { is_there } => return without_service(facts, *is_there),
        Service::Leaving => return Decision::Rest("the Service is being deleted"),
        Service::WithoutSelector => return Decision::Rest("the Service has no selector"),
        Service::Selecting(selecting) => selecting,
    };
    let plan = plan(facts, selecting);
    let differing = || plan.iter().filter(|(slot, contents)| facts.differs(**slot, contents));
    let adding = differing().find(|(slot, contents)| facts.adds(**slot, contents));
    if let Some((slot, contents)) = adding.or_else(|| differing().next()) {
        return match facts.slices.contains_key(slot) {
            true => Decision::Rewrite(*slot, contents.clone()),
            false => Decision::Create(*slot, contents.clone()),
        };
    }
    match facts.slices.keys().find(|slot| !plan.contains_key(slot)) {
        Some(slot) => Decision::Delete(*slot, "its endpoints are in other slices, or gone"),
        None => Decision::Rest("the slices of the Service have its endpoints"),
    }
}

fn without_service(facts: &Facts, is_there: Option<bool>) -> Decision {
    match (facts.slices.keys().next(), is_there) {
        (None, _) => Decision::Rest("there is no such Service, and no slice of it"),
        (Some(_), None) => Decision::ReadService,
        (Some(_), Some(true)) => Decision::WaitForCache,
        (Some(slot), Some(false)) => Decision::Delete(*slot, "its Service is gone"),
    }
}

impl Facts {
    fn differs(&self, slot: u32, contents: &Contents) -> bool {
        self.slices.get(&slot).is_none_or(|slice| {
            let is_same = slice.ports == contents.ports && slice.endpoints == contents.endpoints;
            !slice.is_as_written || !is_same
        })
    }

    /// Whether a slice is to say something that it does not say yet.
    fn adds(&self, slot: u32, contents: &Contents) -> bool {
        self.slices.get(&slot).is_none_or(|slice| {
            let is_new = |endpoint: &Endpoint| !slice.endpoints.contains(endpoint);
            slice.ports != contents.ports || contents.endpoints.iter().any(is_new)
        })
    }

    /// The lowest slot that is neither planned nor taken.
    fn free_slot(&self, plan: &BTreeMap<u32, Contents>) -> Option<u32> {
        (0..=u32::MAX).find(|slot| !plan.contains_key(slot) && !self.taken.contains(slot))
    }
}

/// What each slice is to say.
fn plan(facts: &Facts, selecting: &Selecting) -> BTreeMap<u32, Contents> {
    let mut groups: BTreeMap<&BTreeSet<Port>, Vec<&Endpoint>> = BTreeMap::new();
    for candidate in &selecting.candidates {
        groups.entry(&candidate.ports).or_default().push(&candidate.endpoint);
    }
    let mut plan = BTreeMap::new();
    for (slot, slice) in &facts.slices {
        let Some(waiting) = groups.get_mut(&slice.ports) else { continue };
        let kept = take_known(waiting, slice);
        if !kept.is_empty() {
            plan.insert(*slot, Contents { ports: slice.ports.clone(), endpoints: kept });
        }
    }
    for (ports, waiting) in groups {
        place(facts, &mut plan, ports, waiting);
    }
    if plan.is_empty() {
        // A Service without endpoints has one slice that says so.
        let slot = facts.slices.keys().next().copied().or_else(|| facts.free_slot(&plan));
        plan.extend(slot.map(|slot| (slot, Contents::default())));
    }
    for contents in plan.values_mut() {
        contents.endpoints.sort_by(|one, other| one.pod.cmp(&other.pod));
    }
    plan
}

/// Takes the endpoints that a slice has already, as they are now.
fn take_known(waiting: &mut Vec<&Endpoint>, slice: &Slice) -> Vec<Endpoint> {
    let is_known = |endpoint: &Endpoint| slice.endpoints.iter().any(|it| it.uid == endpoint.uid);
    let mut kept = Vec::new();
    waiting.retain(|endpoint| {
        let takes = kept.len() < MOST_ENDPOINTS && is_known(endpoint);
        if takes {
            kept.push((*endpoint).clone());
        }
        !takes
    });
    kept
}

/// Places the endpoints that no slice has: where there is room, then in slices whose ports nobody
/// needs any more, then in new ones.
fn place(
    facts: &Facts,
    plan: &mut BTreeMap<u32, Contents>,
    ports: &BTreeSet<Port>,
    waiting: Vec<&Endpoint>,
) {
    let mut waiting = waiting.into_iter().cloned().peekable();
    for contents in plan.values_mut().filter(|contents| contents.ports == *ports) {
        let room = MOST_ENDPOINTS.saturating_sub(contents.endpoints.len());
        contents.endpoints.extend(waiting.by_ref().take(room));
    }
    while waiting.peek().is_some() {
        let spare = facts.slices.keys().find(|slot| !plan.contains_key(slot)).copied();
        let Some(slot) = spare.or_else(|| facts.free_slot(plan)) else { return };
        let endpoints = waiting.by_ref().take(MOST_ENDPOINTS).collect();
        plan.insert(slot, Contents { ports: ports.clone(), endpoints });
    }
}

impl Port {
    /// As a slice has it; None: it is not one that is written here.
    pub(super) fn read(port: &Value) -> Option<Port> {
        Some(Port {
            name: port["name"].as_str()?.to_owned(),
            protocol: port["protocol"].as_str()?.to_owned(),
            number: u16::try_from(port["port"].as_u64()?).ok()?,
            application: port["appProtocol"].as_str().map(str::to_owned),
        })
    }

    /// As a slice has it.
    pub(super) fn written(&self) -> Value {
        let (name, protocol, number) = (&self.name, &self.protocol, self.number);
        let mut port = json!({"name": name, "protocol": protocol, "port": number});
        if let Some(application) = &self.application {
            port["appProtocol"] = json!(application);
        }
        port
    }
}

impl Endpoint {
    /// As a slice has it; None: it is not one that is written here.
    pub(super) fn read(endpoint: &Value) -> Option<Endpoint> {
        let [address] = endpoint["addresses"].as_array()?.as_slice() else { return None };
        let conditions = &endpoint["conditions"];
        Some(Endpoint {
            pod: endpoint["targetRef"]["name"].as_str()?.to_owned(),
            uid: endpoint["targetRef"]["uid"].as_str()?.to_owned(),
            address: address.as_str()?.parse().ok()?,
            is_ready: conditions["ready"].as_bool()?,
            is_serving: conditions["serving"].as_bool()?,
            is_terminating: conditions["terminating"].as_bool()?,
            node: endpoint["nodeName"].as_str().map(str::to_owned),
            hostname: endpoint["hostname"].as_str().map(str::to_owned),
        })
    }

    /// As a slice has it.
    pub(super) fn written(&self, namespace: &str) -> Value {
        let mut endpoint = json!({
            "addresses": [self.address.to_string()],
            "conditions": {"ready": self.is_ready, "serving": self.is_serving,
                "terminating": self.is_terminating},
            "targetRef": {"kind": "Pod", "namespace": namespace, "name": self.pod,
                "uid": self.uid},
        });
        let named = [("nodeName", &self.node), ("hostname", &self.hostname)];
        for (field, value) in
            named.into_iter().filter_map(|(field, it)| Some((field, it.as_ref()?)))
        {
            endpoint[field] = json!(value);
        }
        endpoint
    }
}
