//! Who our programs are on API servers, and what each of them may do there: what its controllers
//! say that they do, and nothing else.

use interlock_api::placement::{Ref, Syncer as Introduction};
use interlock_kernel::{Controller, Kind, Place, Right, Verb};
use interlock_placement::heartbeat::Heartbeat;
use interlock_placement::kinds::WORKLOAD_CLUSTER;
use interlock_placement::runtime::Runtime;
use interlock_placement::syncer::Syncer;
use interlock_placement::{claims, clusters, departed, fencing, scheduler};
use interlock_volumes::keeper::Keeper;
use interlock_volumes::populator::Populator;
use interlock_volumes::storage;
use interlock_volumes::sync::{Here, Replication, Serves};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The group of the kinds that say who may do what.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// The role of the hub's controllers.
pub(crate) const CONTROLLERS: &str = "interlock:controllers";
/// The role of every syncer: one at the hub, and one of the same name on its cluster.
pub(crate) const SYNCER: &str = "interlock:syncer";
/// The role of what runs pods as processes.
pub(crate) const RUNTIME: &str = "interlock:runtime";
/// The role of what makes, images and fills volumes.
pub(crate) const VOLUMES: &str = "interlock:volumes";
/// The role of what fills the caches that all controllers of one process share.
pub(crate) const CACHES: &str = "interlock:caches";

/// What a role allows, as it is built up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// The verbs by group, resource and the one name that they are for, if it is one.
    verbs: BTreeMap<(String, String, Option<String>), BTreeSet<&'static str>>,
}

impl Rules {
    /// What the hub's controllers do.
    pub(crate) fn of_controllers() -> Rules {
        Rules::default()
            .of(Place::HUB, &scheduler::Scheduler::default())
            .of(Place::HUB, &claims::Claims)
            .of(Place::HUB, &fencing::Fencing)
            .of(Place::HUB, &clusters::Clusters::default())
            .of(Place::HUB, &departed::Departed)
            .telling()
    }

    /// What the syncer of any cluster does at the hub. The status of its own WorkloadCluster is not
    /// in it: that goes by name.
    pub(crate) fn of_syncer_at_hub(further: &[Kind]) -> Rules {
        let (syncer, heartbeat) = agents(further);
        let rules = Rules::default().of(Place::HUB, &syncer).of(Place::HUB, &heartbeat).telling();
        rules.without(&WORKLOAD_CLUSTER, Verb::PatchStatus)
    }

    /// What only the syncer of this cluster does at the hub.
    pub(crate) fn of_syncer_of(cluster: &str) -> Rules {
        Rules::default().naming((interlock_api::GROUP, "workloadclusters/status"), cluster, "patch")
    }

    /// What a syncer does on its cluster.
    pub(crate) fn of_syncer_on_cluster(further: &[Kind]) -> Rules {
        let (syncer, heartbeat) = agents(further);
        Rules::default().of(Place::CLUSTER, &syncer).of(Place::CLUSTER, &heartbeat)
    }

    /// The same, where its volumes are imaged and filled by us.
    pub(crate) fn of_copying_syncer_on_cluster(further: &[Kind]) -> Rules {
        let (syncer, heartbeat) = agents(further);
        let (syncer, heartbeat) = (syncer.copying(), heartbeat.with_snapshot_classes());
        Rules::default().of(Place::CLUSTER, &syncer).of(Place::CLUSTER, &heartbeat)
    }

    /// What it takes to run pods as processes.
    pub(crate) fn of_runtime() -> Rules {
        Rules::default().of(Place::CLUSTER, &Runtime::new("").with_storage()).telling()
    }

    /// What it takes to make volumes, take images of them, and fill claims.
    pub(crate) fn of_volumes() -> Rules {
        Rules::default()
            .of(Place::CLUSTER, &storage::Claims)
            .of(Place::CLUSTER, &storage::Volumes)
            .of(Place::CLUSTER, &storage::Images)
            .of(Place::CLUSTER, &Populator)
            .of(Place::CLUSTER, &Replication::of_sources(Serves::Own))
            .of(Place::CLUSTER, &Replication::of_destinations(Serves::Own, Here::default()))
            .of(Place::CLUSTER, &Keeper)
            .telling()
    }

    /// What it takes to fill the caches that all controllers at a place share.
    pub(crate) fn of_caches(place: Place, further: &[Kind]) -> Rules {
        let all = match place {
            Place::HUB => Rules::of_controllers().and(Rules::of_syncer_at_hub(further)),
            _ => Rules::of_copying_syncer_on_cluster(further)
                .and(Rules::of_runtime())
                .and(Rules::of_volumes()),
        };
        let mut rules = Rules::default();
        for ((group, resource, name), verbs) in all.verbs {
            let reads = verbs.into_iter().filter(|verb| matches!(*verb, "list" | "watch"));
            let reads: BTreeSet<&str> = reads.collect();
            if reads.contains("watch") {
                rules.verbs.insert((group, resource, name), reads);
            }
        }
        rules
    }

    /// What it takes to enter a logical cluster of this server.
    pub(crate) fn to_enter(cluster: &str) -> Rules {
        Rules::default().naming((interlock_api::GROUP, "logicalclusters"), cluster, "access")
    }

    /// What it takes to lead, where the lease was made for it.
    pub(crate) fn to_lead(lease: &str) -> Rules {
        let leases = ("coordination.k8s.io", "leases");
        Rules::default().naming(leases, lease, "get").naming(leases, lease, "update")
    }

    /// These and what a controller does at a place.
    fn of<C: Controller>(mut self, place: Place, controller: &C) -> Rules {
        let watched = controller.watches().into_iter();
        let rights = watched.flat_map(|watch| Right::to_watch(&watch)).chain(controller.rights());
        for right in rights.filter(|right| right.place == place) {
            let (key, verb) = asked_for(&right.kind, right.verb);
            self.verbs.entry(key).or_default().insert(verb);
        }
        self
    }

    /// These and events. The shell sends them; no controller has to say so.
    fn telling(mut self) -> Rules {
        let key = ("events.k8s.io".to_owned(), "events".to_owned(), None);
        self.verbs.entry(key).or_default().extend(["create", "patch"]);
        self
    }

    fn naming(mut self, (group, resource): (&str, &str), name: &str, verb: &'static str) -> Rules {
        let key = (group.to_owned(), resource.to_owned(), Some(name.to_owned()));
        self.verbs.entry(key).or_default().insert(verb);
        self
    }

    fn without(mut self, kind: &Kind, verb: Verb) -> Rules {
        let (key, verb) = asked_for(kind, verb);
        if let Some(verbs) = self.verbs.get_mut(&key) {
            verbs.remove(verb);
        }
        self.verbs.retain(|_, verbs| !verbs.is_empty());
        self
    }

    /// These and those.
    #[must_use]
    pub(crate) fn and(mut self, others: Rules) -> Rules {
        for (key, verbs) in others.verbs {
            self.verbs.entry(key).or_default().extend(verbs);
        }
        self
    }

    /// As Kubernetes writes them: resources of one group that the same may be done to share a rule.
    pub(crate) fn written(&self) -> Value {
        let mut shared: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        for ((group, resource, name), verbs) in &self.verbs {
            let verbs: Vec<&str> = verbs.iter().copied().collect();
            shared.entry((group, name, verbs)).or_default().push(resource);
        }
        let rules = shared.into_iter().map(|((group, name, verbs), resources)| {
            let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
            if let Some(name) = name {
                rule["resourceNames"] = json!([name]);
            }
            rule
        });
        rules.collect()
    }
}

/// The controllers that speak for a cluster; which cluster does not matter to what they do.
fn agents(further: &[Kind]) -> (Syncer, Heartbeat) {
    let nobody = Ref::default();
    let syncer = Syncer::new(nobody.clone(), "").carrying(further.to_vec());
    (syncer, Heartbeat::new(nobody, Introduction::default()))
}

/// A verb on a kind, as an API server asks for it.
fn asked_for(kind: &Kind, verb: Verb) -> ((String, String, Option<String>), &'static str) {
    let (part, verb) = match verb {
        Verb::Get => ("", "get"),
        Verb::List => ("", "list"),
        Verb::Watch => ("", "watch"),
        Verb::Create => ("", "create"),
        Verb::Patch => ("", "patch"),
        Verb::PatchStatus => ("/status", "patch"),
        Verb::Delete => ("", "delete"),
    };
    ((kind.group.to_string(), format!("{}{part}", kind.plural), None), verb)
}

/// A ClusterRole.
pub(crate) fn cluster_role(name: &str, rules: &Rules) -> Value {
    json!({
        "apiVersion": RBAC, "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules.written(),
    })
}

/// Binds a ClusterRole to somebody, in the whole cluster.
pub(crate) fn cluster_role_binding(name: &str, role: &str, subject: &Value) -> Value {
    json!({
        "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(rules: &Rules, verb: &str, resource: &str) -> bool {
        let mut entries = rules.verbs.iter();
        entries.any(|((_, known, _), verbs)| known == resource && verbs.contains(verb))
    }

    #[test]
    fn nobody_but_the_hub_makes_grants_or_says_where_they_go() {
        let (hub, syncer) = (Rules::of_controllers(), Rules::of_syncer_at_hub(&[]));
        for verb in ["create", "patch", "delete"] {
            assert!(allows(&hub, verb, "grants"), "{verb}");
            assert!(!allows(&syncer, verb, "grants"), "{verb}");
        }
        assert!(allows(&syncer, "patch", "grants/status"));
    }

    #[test]
    fn nobody_declares_an_owner_gone_but_a_person() {
        let all = Rules::of_controllers().and(Rules::of_syncer_at_hub(&[]));
        for verb in ["create", "patch", "update", "delete"] {
            assert!(!allows(&all, verb, "forcereleases"), "{verb}");
        }
    }

    #[test]
    fn a_syncer_speaks_for_its_own_cluster_only() {
        assert!(!allows(&Rules::of_syncer_at_hub(&[]), "patch", "workloadclusters/status"));
        let own = Rules::of_syncer_of("west").written();
        assert_eq!(own[0]["resourceNames"], json!(["west"]));
    }

    #[test]
    fn further_kinds_are_allowed_only_where_they_are_carried() {
        let widget = Kind::namespaced(("example.com", "v1"), "Widget", "widgets");
        assert!(!allows(&Rules::of_syncer_on_cluster(&[]), "create", "widgets"));
        let widgets = [widget];
        assert!(allows(&Rules::of_syncer_on_cluster(&widgets), "create", "widgets"));
        assert!(allows(&Rules::of_syncer_at_hub(&widgets), "patch", "widgets/status"));
    }

    #[test]
    fn caches_only_read() {
        let rules = Rules::of_caches(Place::HUB, &[]).and(Rules::of_caches(Place::CLUSTER, &[]));
        let verbs: BTreeSet<&str> = rules.verbs.values().flatten().copied().collect();
        assert_eq!(verbs.into_iter().collect::<Vec<_>>(), ["list", "watch"]);
        assert!(allows(&rules, "watch", "grants") && allows(&rules, "watch", "pods"));
    }

    #[test]
    fn no_role_allows_everything_of_anything() {
        let hub = Rules::of_controllers().and(Rules::of_syncer_at_hub(&[]));
        let agents = Rules::of_syncer_on_cluster(&[]).and(Rules::of_runtime());
        let cluster = agents.and(Rules::of_volumes());
        let text = hub.and(cluster).written().to_string();
        assert!(!text.contains('*'), "{text}");
    }
}
