//! Discovery: which groups, versions and resources are served, as clients ask for it.
//!
//! Pure functions over the resources that one cluster serves, built in and custom alike. There are
//! two forms: a document for each group and version, and one list for everything
//! (`apidiscovery.k8s.io/v2`).

use crate::kinds::built_in;
use crate::resource::Resource;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Upstream's order of its own groups. Others follow by name.
const GROUP_ORDER: [&str; 21] = [
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// What can be done to a custom resource.
const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// `/api`: the versions of the core group, and the address that clients reach us by (`host:port`).
pub(crate) fn core_versions(server_address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs":
            [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    })
}

/// `/apis`: all groups but core.
pub(crate) fn groups(resources: &[Arc<Resource>]) -> Value {
    let served = Served::of(resources);
    let groups: Vec<Value> =
        served.named_groups().map(|(name, versions)| group_body(name, versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`: one group, if it is served.
pub(crate) fn group(resources: &[Arc<Resource>], name: &str) -> Option<Value> {
    let served = Served::of(resources);
    let (_, versions) = served.named_groups().find(|(other, _)| *other == name)?;
    let mut body = group_body(name, versions);
    body["kind"] = "APIGroup".into();
    body["apiVersion"] = "v1".into();
    Some(body)
}

/// `/api/v1` and `/apis/<group>/<version>`: the resources of one version, if there are any.
pub(crate) fn group_version(
    resources: &[Arc<Resource>],
    group: &str,
    version: &str,
) -> Option<Value> {
    let served = Served::of(resources);
    let found = served.groups.get(&Rank::of(group))?.iter().find(|(v, _)| v.0 == version)?.1;
    let mut list = Vec::new();
    for resource in found {
        let described = Described::of(resource);
        let mut entry = json!({
            "name": &*resource.plural, "singularName": &*resource.singular,
            "namespaced": resource.is_namespaced, "kind": &*resource.kind,
            "verbs": described.verbs,
        });
        put_words(&mut entry, "shortNames", &resource.short_names);
        put_words(&mut entry, "categories", &resource.categories);
        if !described.storage_version_hash.is_empty() {
            entry["storageVersionHash"] = (&*described.storage_version_hash).into();
        }
        list.push(entry);
        for sub in described.subresources {
            let mut entry = json!({
                "name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
                "namespaced": resource.is_namespaced, "kind": sub.kind, "verbs": sub.verbs,
            });
            if (sub.group, sub.version) != (group, version) {
                entry["group"] = sub.group.into();
                entry["version"] = sub.version.into();
            }
            list.push(entry);
        }
    }
    let mut body = json!({"kind": "APIResourceList", "resources": list});
    body["groupVersion"] = group_version_text(group, version).into();
    // The core group's document has no version of its own, as upstream has it.
    if !group.is_empty() {
        body["apiVersion"] = "v1".into();
    }
    Some(body)
}

/// `/api` in the aggregated form: the core group.
pub(crate) fn aggregated_core(resources: &[Arc<Resource>]) -> Value {
    aggregated(&Served::of(resources), |name| name.is_empty())
}

/// `/apis` in the aggregated form: all groups but core.
pub(crate) fn aggregated_groups(resources: &[Arc<Resource>]) -> Value {
    aggregated(&Served::of(resources), |name| !name.is_empty())
}

/// An `ETag` for a document: the same content has the same one, over restarts too.
pub(crate) fn etag(document: &Value) -> String {
    format!("\"{}\"", hash(document))
}

/// A hash of a document's content, in hexadecimal (FNV-1a with 128 bits).
pub(crate) fn hash(document: &Value) -> String {
    let mut state = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for byte in document.to_string().bytes() {
        state = (state ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    format!("{state:032X}")
}

/// `apps/v1`, or `v1` for core.
pub(crate) fn group_version_text(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn group_body(name: &str, versions: &Versions<'_>) -> Value {
    let versions: Vec<Value> = versions
        .keys()
        .map(|v| json!({"groupVersion": format!("{name}/{}", v.0), "version": v.0}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

fn put_words(entry: &mut Value, key: &str, words: &[Arc<str>]) {
    if !words.is_empty() {
        entry[key] = words.iter().map(|word| Value::from(&**word)).collect();
    }
}

fn aggregated(served: &Served<'_>, wanted: impl Fn(&str) -> bool) -> Value {
    let mut items = Vec::new();
    for (rank, versions) in served.groups.iter().filter(|(rank, _)| wanted(rank.1)) {
        let versions: Vec<Value> = versions
            .iter()
            .map(|(version, resources)| {
                let resources: Vec<Value> = resources.iter().map(|r| aggregated_entry(r)).collect();
                json!({"version": version.0, "freshness": "Current", "resources": resources})
            })
            .collect();
        let mut metadata = json!({"creationTimestamp": null});
        if !rank.1.is_empty() {
            metadata["name"] = rank.1.into();
        }
        items.push(json!({"metadata": metadata, "versions": versions}));
    }
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items,
    })
}

fn aggregated_entry(resource: &Resource) -> Value {
    let described = Described::of(resource);
    let mut entry = json!({
        "resource": &*resource.plural, "singularResource": &*resource.singular,
        "responseKind": kind_body(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.is_namespaced { "Namespaced" } else { "Cluster" },
        "verbs": described.verbs,
    });
    put_words(&mut entry, "shortNames", &resource.short_names);
    put_words(&mut entry, "categories", &resource.categories);
    let subresources: Vec<Value> = described
        .subresources
        .into_iter()
        .map(|sub| {
            json!({"subresource": sub.name, "verbs": sub.verbs,
                "responseKind": kind_body(sub.group, sub.version, sub.kind)})
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}

fn kind_body(group: &str, version: &str, kind: &str) -> Value {
    let mut body = Map::new();
    for (key, text) in [("group", group), ("version", version), ("kind", kind)] {
        body.insert(key.to_owned(), text.into());
    }
    Value::Object(body)
}

/// The resources of each version of each group, in the order in which clients see them.
struct Served<'a> {
    groups: BTreeMap<Rank<'a>, Versions<'a>>,
}

type Versions<'a> = BTreeMap<Version<'a>, Vec<&'a Resource>>;

impl<'a> Served<'a> {
    fn of(resources: &'a [Arc<Resource>]) -> Self {
        let mut groups: BTreeMap<Rank<'a>, Versions<'a>> = BTreeMap::new();
        for resource in resources {
            let versions = groups.entry(Rank::of(&resource.group)).or_default();
            versions.entry(Version(&resource.version)).or_default().push(resource);
        }
        for resources in groups.values_mut().flat_map(BTreeMap::values_mut) {
            resources.sort_by(|a, b| a.plural.cmp(&b.plural));
        }
        Served { groups }
    }

    fn named_groups(&self) -> impl Iterator<Item = (&'a str, &Versions<'a>)> {
        self.groups.iter().filter(|(rank, _)| !rank.1.is_empty()).map(|(rank, v)| (rank.1, v))
    }
}

/// A group's place among the others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'a>(usize, &'a str);

impl<'a> Rank<'a> {
    fn of(group: &'a str) -> Self {
        let place = GROUP_ORDER.iter().position(|other| *other == group);
        Rank(place.unwrap_or(GROUP_ORDER.len()), group)
    }
}

/// A version. The first in order is the one to prefer.
#[derive(PartialEq, Eq)]
struct Version<'a>(&'a str);

impl Version<'_> {
    /// `v2` is (stable, 2, 0), `v1beta2` is (beta, 1, 2); anything else is no Kubernetes version.
    fn parts(&self) -> Option<(u8, u64, u64)> {
        let rest = self.0.strip_prefix('v')?;
        let (stability, major, minor) = match (rest.split_once("beta"), rest.split_once("alpha")) {
            (Some((major, minor)), _) => (1, major, Some(minor)),
            (None, Some((major, minor))) => (0, major, Some(minor)),
            (None, None) => (2, rest, None),
        };
        let number = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            (is_number && !text.starts_with('0')).then(|| text.parse().ok()).flatten()
        };
        Some((stability, number(major)?, minor.map_or(Some(0), number)?))
    }
}

impl Ord for Version<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.parts(), other.parts()) {
            (Some(a), Some(b)) => b.cmp(&a).then_with(|| self.0.cmp(other.0)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => self.0.cmp(other.0),
        }
    }
}

impl PartialOrd for Version<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What can be done to a resource, and what is below it.
pub(crate) struct Described<'a> {
    pub(crate) verbs: &'a [&'static str],
    pub(crate) subresources: Vec<Below<'a>>,
    storage_version_hash: Cow<'static, str>,
}

/// What is below a resource.
pub(crate) struct Below<'a> {
    pub(crate) name: &'a str,
    pub(crate) verbs: &'a [&'static str],
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
}

impl<'a> Described<'a> {
    pub(crate) fn of(resource: &'a Resource) -> Self {
        if let Some(found) = built_in().of(resource) {
            let below = found.subresources.iter().map(|sub| Below {
                name: sub.name,
                verbs: &sub.verbs,
                group: sub.group,
                version: sub.version,
                kind: sub.kind,
            });
            return Described {
                verbs: &found.verbs,
                subresources: below.collect(),
                storage_version_hash: found.storage_version_hash.into(),
            };
        }
        let verbs = &SUBRESOURCE_VERBS[..];
        let mut subresources = Vec::new();
        if resource.scale.is_some() {
            let (group, version, kind) = ("autoscaling", "v1", "Scale");
            subresources.push(Below { name: "scale", verbs, group, version, kind });
        }
        if resource.has_status {
            let (group, version, kind) = (&*resource.group, &*resource.version, &*resource.kind);
            subresources.push(Below { name: "status", verbs, group, version, kind });
        }
        let storage_version_hash = storage_version_hash(resource).into();
        Described { verbs: &VERBS, subresources, storage_version_hash }
    }
}

/// What tells clients that objects of a kind are stored in another version than before: the same as upstream's.
fn storage_version_hash(resource: &Resource) -> String {
    let text = format!("{}/{}/{}", resource.group, resource.storage_version, resource.kind);
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    STANDARD.encode(&hash.as_ref()[..8])
}

/// The groups and versions that are served, in the order in which clients see them.
pub(crate) fn group_versions(resources: &[Arc<Resource>]) -> Vec<(Arc<str>, Arc<str>)> {
    let served = Served::of(resources);
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for resource in served.groups.values().flat_map(BTreeMap::values).flatten() {
        let pair = (resource.group.clone(), resource.version.clone());
        if seen.insert(pair.clone()) {
            all.push(pair);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Scale;

    fn custom(group: &str, version: &str, kind: &str) -> Arc<Resource> {
        let namespaces = built_in().find("", "v1", "namespaces").expect("it is built in");
        let mut resource = Resource::clone(&namespaces.resource);
        let plural = format!("{}s", kind.to_lowercase());
        (resource.group, resource.version) = (group.into(), version.into());
        (resource.kind, resource.plural) = (kind.into(), plural.as_str().into());
        (resource.singular, resource.short_names) = (kind.to_lowercase().into(), Vec::new());
        (resource.identity, resource.is_namespaced) = ("hub".into(), true);
        resource.scale = Some(Scale::default());
        Arc::new(resource)
    }

    fn with_custom() -> Vec<Arc<Resource>> {
        let mut all = vec![
            custom("zoo.example", "v1alpha1", "Lion"),
            custom("zoo.example", "v1", "Lion"),
            custom("zoo.example", "v2beta1", "Lion"),
            custom("zoo.example", "v11alpha2", "Lion"),
            custom("zoo.example", "foo10", "Lion"),
            custom("zoo.example", "v10", "Lion"),
            custom("a.example", "v1", "Ant"),
        ];
        all.extend(built_in().resources.iter().cloned());
        all
    }

    #[test]
    fn groups_come_in_upstreams_order_and_then_by_name() {
        let all = groups(&with_custom());
        let names: Vec<&str> = all["groups"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|g| g["name"].as_str())
            .collect();
        assert_eq!(&names[..3], ["apiregistration.k8s.io", "apps", "events.k8s.io"]);
        let own = "flowcontrol.apiserver.k8s.io";
        let tail = [own, "a.example", "snapshot.storage.k8s.io", "zoo.example"];
        assert_eq!(&names[names.len() - 4..], tail);
    }

    #[test]
    fn the_preferred_version_is_the_most_stable_and_newest() {
        let zoo = group(&with_custom(), "zoo.example").expect("it is served");
        let versions: Vec<&str> = zoo["versions"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|v| v["version"].as_str())
            .collect();
        assert_eq!(versions, ["v10", "v1", "v2beta1", "v11alpha2", "v1alpha1", "foo10"]);
        assert_eq!(zoo["preferredVersion"]["groupVersion"], "zoo.example/v10");
        assert_eq!(zoo["kind"], "APIGroup");
        assert!(group(&with_custom(), "").is_none());
    }

    #[test]
    fn a_version_lists_its_resources_and_their_subresources() {
        let apps = group_version(&built_in().resources, "apps", "v1").expect("it is served");
        let resources = apps["resources"].as_array().expect("a list");
        let names: Vec<&str> = resources.iter().filter_map(|r| r["name"].as_str()).collect();
        assert_eq!(names[..2], ["controllerrevisions", "daemonsets"]);
        let scale =
            resources.iter().find(|r| r["name"] == "deployments/scale").expect("it is there");
        assert_eq!(
            scale,
            &json!({"name": "deployments/scale", "singularName": "", "namespaced": true,
                "group": "autoscaling", "version": "v1", "kind": "Scale",
                "verbs": ["get", "patch", "update"]})
        );
        let core = group_version(&built_in().resources, "", "v1").expect("it is served");
        assert_eq!((core.get("apiVersion"), &core["groupVersion"]), (None, &json!("v1")));
        assert!(group_version(&built_in().resources, "apps", "v2").is_none());
    }

    #[test]
    fn the_aggregated_form_has_the_core_group_without_a_name() {
        let core = aggregated_core(&built_in().resources);
        let items = core["items"].as_array().expect("a list");
        assert_eq!(items.len(), 1);
        assert_eq!(items[0]["metadata"].get("name"), None);
        let resources = items[0]["versions"][0]["resources"].as_array().expect("a list");
        let namespaces =
            resources.iter().find(|r| r["resource"] == "namespaces").expect("it is there");
        assert_eq!(namespaces["scope"], "Cluster");
        assert_eq!(namespaces["shortNames"], json!(["ns"]));
        assert_eq!(namespaces["subresources"][0]["subresource"], "finalize");
    }

    #[test]
    fn a_custom_kind_has_the_hash_that_upstream_computes() {
        let cron_tab = custom("stable.example.com", "v1", "CronTab");
        let text = ring::digest::digest(&ring::digest::SHA256, b"stable.example.com/v1/CronTab");
        let expected = STANDARD.encode(&text.as_ref()[..8]);
        let found = group_version(&[cron_tab], "stable.example.com", "v1").expect("it is served");
        assert_eq!(found["resources"][0]["storageVersionHash"], json!(expected));
        // The same function, on a kind whose hash upstream publishes.
        let pods = Resource::clone(&built_in().find("", "v1", "pods").expect("built in").resource);
        assert_eq!(storage_version_hash(&pods), "xPOwRZ+Yhw8=");
    }

    #[test]
    fn the_same_content_has_the_same_etag() {
        let all = with_custom();
        let mut other = all.clone();
        other.reverse();
        assert_eq!(etag(&aggregated_groups(&all)), etag(&aggregated_groups(&other)));
        assert_ne!(etag(&aggregated_groups(&all)), etag(&aggregated_groups(&all[1..])));
    }
}
