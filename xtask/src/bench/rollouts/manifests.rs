//! A bundle of any size: mostly ConfigMaps, and a few objects of other kinds, in one file.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Where all of it is.
pub(super) const NAMESPACE: &str = "bench";
/// What the names of all objects but the namespace begin with.
pub(super) const PREFIX: &str = "object-";
/// The kinds of a bundle but the namespace, as the API has them.
pub(super) const KINDS: [Kind; 5] = [
    Kind { api: "api/v1", plural: "configmaps" },
    Kind { api: "api/v1", plural: "secrets" },
    Kind { api: "api/v1", plural: "serviceaccounts" },
    Kind { api: "api/v1", plural: "services" },
    Kind { api: "apis/networking.k8s.io/v1", plural: "networkpolicies" },
];
/// Of so many objects, the last four are no ConfigMaps.
const GROUP: usize = 50;
/// A bundle has eight mebibytes at most, and ten thousand objects.
const DATA_BYTES: usize = 400;

/// A kind within a namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub(super) api: &'static str,
    pub(super) plural: &'static str,
}

/// Whether objects of a bundle are of this resource.
pub(super) fn has(resource: &str) -> bool {
    resource == "namespaces" || KINDS.iter().any(|kind| kind.plural == resource)
}

/// Writes so many objects, the namespace among them, into a folder. Those of another version have other data.
pub(super) fn write(folder: &Path, objects: usize, version: usize) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    // Every JSON is YAML, and the line before it says that this is YAML.
    let mut text = format!("---\n{namespace}\n");
    for number in 1..objects {
        text += &format!("---\n{}\n", object(number, version));
    }
    fs::write(folder.join("bundle.yaml"), text)?;
    Ok(())
}

fn object(number: usize, version: usize) -> Value {
    let name = format!("{PREFIX}{number:05}");
    let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": {"app": name}});
    match number % GROUP {
        46 => json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque",
            "data": {"key": "c2VjcmV0"},
        }),
        47 => json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        48 => {
            let port = json!({"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080});
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": {"selector": {"app": name}, "ports": [port]},
            })
        }
        49 => json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata,
            "spec": {"podSelector": {"matchLabels": {"app": name}}, "policyTypes": ["Ingress"]},
        }),
        _ => {
            let line = format!("{name}, version {version}. ");
            let text: String = line.chars().cycle().take(DATA_BYTES).collect();
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                "data": {"text": text},
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn most_objects_are_config_maps_and_each_hundred_has_some_of_every_other_kind() {
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for number in 1..100 {
            *kinds.entry(object(number, 1)["kind"].to_string()).or_default() += 1;
        }
        assert_eq!(kinds.len(), KINDS.len(), "{kinds:?}");
        assert_eq!(kinds["\"ConfigMap\""], 91, "{kinds:?}");
    }

    #[test]
    fn a_small_bundle_has_config_maps_only() {
        assert!((1..10).all(|number| object(number, 1)["kind"] == "ConfigMap"));
    }

    #[test]
    fn the_largest_bundle_has_less_than_eight_mebibytes() {
        let bytes: usize = (1..10_000).map(|number| object(number, 1).to_string().len()).sum();
        assert!((4 << 20..7 << 20).contains(&bytes), "{bytes}");
    }

    #[test]
    fn another_version_has_other_data() {
        assert_ne!(object(5, 1), object(5, 2));
        assert_eq!(object(5, 1), object(5, 1));
    }
}
