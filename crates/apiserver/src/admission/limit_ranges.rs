//! LimitRanges: what containers get that say nothing, and what pods and claims may ask for.

use super::amounts::{Amounts, amounts, of_container, of_pod};
use crate::behaviour::read::{at, is_set, list, list_mut, text};
use crate::call::Call;
use crate::object;
use crate::status::Status;
use crate::storage::{self, Owner};
use interlock_quantity::Quantity;
use interlock_store::{Guard, KeyRange};
use serde_json::{Value, json};

/// The annotation that says which amounts the server filled in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The limit ranges of a namespace as they were read for one write.
#[derive(Default)]
pub(crate) struct LimitRanges {
    ranges: Vec<Value>,
    guards: Vec<Guard>,
}

/// Whether a new or changed object is subject to limits.
fn is_limited(call: &Call, is_new: bool) -> bool {
    if !call.resource.group.is_empty() || call.is_own {
        return false;
    }
    match (&*call.resource.plural, &*call.subresource) {
        // What a pod asks for can be changed in no other way.
        ("pods", "") => is_new,
        ("pods", "resize") | ("persistentvolumeclaims", "") => true,
        _ => false,
    }
}

impl LimitRanges {
    /// Those of the namespace that a call writes to, if it writes something that they limit.
    pub(crate) async fn read(call: &Call, is_new: bool) -> Result<LimitRanges, Status> {
        if !is_limited(call, is_new) {
            return Ok(LimitRanges::default());
        }
        let prefix = storage::prefix(Owner::Cluster(&call.cluster.id), Some(&call.namespace));
        let range = KeyRange::prefix(storage::table_of("", "limitranges", "-"), prefix);
        let page = call.server.storage().range(range, None, usize::MAX).await;
        let page = page.map_err(storage::read_refused)?;
        Ok(LimitRanges {
            ranges: page.items.iter().map(object::decode).collect(),
            guards: page
                .items
                .iter()
                .take(super::MOST_GUARDS)
                .map(|item| Guard::At(item.key.clone(), item.modified))
                .collect(),
        })
    }

    /// What must still be so when the write is committed.
    pub(crate) fn guards(&self) -> Vec<Guard> {
        self.guards.clone()
    }

    /// Gives the containers of a pod what they do not say.
    pub(crate) fn fill_in(&self, call: &Call, object: &mut Value) {
        if &*call.resource.plural != "pods" {
            return;
        }
        for range in &self.ranges {
            let mut filled = Vec::new();
            for (path, what) in
                [("spec.containers", "container"), ("spec.initContainers", "init container")]
            {
                for container in list_mut(object, path) {
                    fill_in_container(container, range, what, &mut filled);
                }
            }
            if !filled.is_empty() {
                let text = format!("LimitRanger plugin set: {}", filled.join("; "));
                object::put_at(object, &["metadata", "annotations", ANNOTATION], json!(text));
            }
        }
    }

    /// Whether the object keeps to the limits.
    pub(crate) fn check(&self, call: &Call, object: &Value) -> Result<(), Status> {
        let is_pod = &*call.resource.plural == "pods";
        for range in &self.ranges {
            let mut problems = Vec::new();
            for limit in list(range, "spec.limits") {
                match (text(limit, "type"), is_pod) {
                    ("Container", true) => {
                        for path in ["spec.containers", "spec.initContainers"] {
                            for container in list(object, path) {
                                let asked = Asked {
                                    requests: of_container(container, "requests"),
                                    limits: of_container(container, "limits"),
                                };
                                asked.check(limit, &mut problems);
                            }
                        }
                    }
                    ("Pod", true) => {
                        let (requests, limits) =
                            (of_pod(object, "requests"), of_pod(object, "limits"));
                        Asked { requests, limits }.check(limit, &mut problems);
                    }
                    ("PersistentVolumeClaim", false) => {
                        let requests = amounts(at(object, "spec.resources.requests"));
                        check_claim(&requests, limit, &mut problems);
                    }
                    _ => {}
                }
            }
            let why = match &problems[..] {
                [] => continue,
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            let (group, plural) = (&call.resource.group, &call.resource.plural);
            return Err(Status::forbidden(group, plural, object::name(object), why));
        }
        Ok(())
    }
}

fn fill_in_container(container: &mut Value, range: &Value, what: &str, filled: &mut Vec<String>) {
    let name = text(container, "name").to_owned();
    let mut said = Vec::new();
    for (field, from, word) in
        [("requests", "defaultRequest", "request"), ("limits", "default", "limit")]
    {
        let mut set = Vec::new();
        let limits = list(range, "spec.limits").iter();
        for limit in limits.filter(|limit| text(limit, "type") == "Container") {
            for (resource, amount) in at(limit, from).as_object().into_iter().flatten() {
                let is_said = is_set(container, "resources")
                    && container["resources"][field].get(resource).is_some();
                if !is_said && container.is_object() {
                    let path = ["resources", field, resource];
                    object::put_at(container, &path, amount.clone());
                    set.push(resource.clone());
                }
            }
        }
        if !set.is_empty() {
            set.sort();
            set.dedup();
            said.push(format!("{} {word} for {what} {name}", set.join(", ")));
        }
    }
    filled.append(&mut said);
}

/// What a container or a pod asks for.
struct Asked {
    requests: Amounts,
    limits: Amounts,
}

impl Asked {
    fn check(&self, limit: &Value, problems: &mut Vec<String>) {
        let kind = text(limit, "type");
        for (name, least) in amounts(at(limit, "min")) {
            problems.extend(self.below(kind, &name, &least));
        }
        for (name, most) in amounts(at(limit, "max")) {
            problems.extend(self.above(kind, &name, &most));
        }
        for (name, ratio) in amounts(at(limit, "maxLimitRequestRatio")) {
            problems.extend(self.too_far_apart(kind, &name, &ratio));
        }
    }

    fn below(&self, kind: &str, name: &str, least: &Quantity) -> Option<String> {
        let rule = format!("minimum {name} usage per {kind} is {least}");
        let Some(request) = self.requests.get(name) else {
            return Some(format!("{rule}.  No request is specified"));
        };
        if request < least {
            return Some(format!("{rule}, but request is {request}"));
        }
        let limit = self.limits.get(name).filter(|limit| *limit < least)?;
        Some(format!("{rule}, but limit is {limit}"))
    }

    fn above(&self, kind: &str, name: &str, most: &Quantity) -> Option<String> {
        let rule = format!("maximum {name} usage per {kind} is {most}");
        let Some(limit) = self.limits.get(name) else {
            return Some(format!("{rule}.  No limit is specified"));
        };
        if limit > most {
            return Some(format!("{rule}, but limit is {limit}"));
        }
        let request = self.requests.get(name).filter(|request| *request > most)?;
        Some(format!("{rule}, but request is {request}"))
    }

    fn too_far_apart(&self, kind: &str, name: &str, ratio: &Quantity) -> Option<String> {
        let rule = format!("{name} max limit to request ratio per {kind} is {ratio}");
        let is_some = |amount: &&Quantity| !amount.is_zero();
        let Some(request) = self.requests.get(name).filter(is_some) else {
            return Some(format!("{rule}, but no request is specified or request is 0"));
        };
        let Some(limit) = self.limits.get(name).filter(is_some) else {
            return Some(format!("{rule}, but no limit is specified or limit is 0"));
        };
        let found = limit.nanos() as f64 / request.nanos() as f64;
        let most = ratio.nanos() as f64 / 1e9;
        (found > most).then(|| format!("{rule}, but provided ratio is {found:.6}"))
    }
}

/// Claims have requests only.
fn check_claim(requests: &Amounts, limit: &Value, problems: &mut Vec<String>) {
    let kind = text(limit, "type");
    let asked = Asked { requests: requests.clone(), limits: Amounts::new() };
    for (name, least) in amounts(at(limit, "min")) {
        problems.extend(asked.below(kind, &name, &least));
    }
    for (name, most) in amounts(at(limit, "max")) {
        let rule = format!("maximum {name} usage per {kind} is {most}");
        match requests.get(&name) {
            None => problems.push(format!("{rule}.  No request is specified")),
            Some(request) if *request > most => {
                problems.push(format!("{rule}, but request is {request}"));
            }
            Some(_) => {}
        }
    }
}
