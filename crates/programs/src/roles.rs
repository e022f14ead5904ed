//! Who our programs are on API servers, and what each of them may do there: what its controllers
//! say that they do, and nothing else.

pub mod machines;

use crate::{
    Account, Agent, Applier, Hub, Identities, Listed, Machine, Rollouts, Workloads, accounts, list,
};
use interlock_api::nodes::DpuName;
use interlock_api::placement::Ref;
use interlock_kernel::{Kind, Place, Verb};
use interlock_placement::kinds::WORKLOAD_CLUSTER;
use interlock_placement::runtime::Scope;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The group of the kinds that say who may do what.
pub const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// The role of what fills the caches that all controllers of one process share.
pub const CACHES: &str = "interlock:caches";

/// The role of those who enter a logical cluster; with the name of the cluster behind it.
const ENTER: &str = "interlock:enter";
/// Who fills those caches.
pub const CACHES_USER: &str = "system:interlock:caches";

/// A role, and who has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The name of the role, and of what binds it.
    pub role: String,
    /// What it allows.
    pub rules: Rules,
    /// The users that it is bound to.
    pub to: Vec<String>,
}

impl Grant {
    /// The ClusterRole and the ClusterRoleBinding.
    pub fn written(&self) -> [Value; 2] {
        let mut binding = cluster_role_binding(&self.role, &self.role, &Value::Null);
        let subject = |user: &String| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user});
        binding["subjects"] = self.to.iter().map(subject).collect();
        [cluster_role(&self.role, &self.rules), binding]
    }
}

/// What the hub's controllers and their caches need at the hub.
pub fn at_hub() -> Vec<Grant> {
    let rooms = of_hub();
    let caches = Rules::of_caches(Place::HUB, &[]);
    let mut grants = vec![granted(CACHES, caches, vec![CACHES_USER.to_owned()])];
    grants.extend(accounts(&rooms).into_keys().map(|account| {
        granted(account.role(), Rules::of(&rooms, account, Place::HUB), vec![account.user(None)])
    }));
    grants
}

/// What the controllers of cloud identities and their caches need at the hub, beside what the hub's own
/// controllers and their caches have.
pub fn of_identities_at_hub() -> Vec<Grant> {
    let (rooms, account) = (of_identities(), Account::Identities);
    let rules = Rules::of(&rooms, account, Place::HUB);
    let cached = format!("{CACHES}:{account}");
    let caches = Rules::at(&rooms, Place::HUB).watched();
    vec![
        granted(&cached, caches, vec![CACHES_USER.to_owned()]),
        granted(account.role(), rules, vec![account.user(None)]),
    ]
}

/// What the controllers of updates and their caches need at the hub.
pub fn of_rollouts_at_hub() -> Vec<Grant> {
    let (rooms, account) = (of_rollouts(), Account::Rollouts);
    let rules = Rules::of(&rooms, account, Place::HUB);
    let cached = format!("{CACHES}:{account}");
    let caches = Rules::at(&rooms, Place::HUB).watched();
    vec![
        granted(&cached, caches, vec![CACHES_USER.to_owned()]),
        granted(account.role(), rules, vec![account.user(None)]),
    ]
}

/// What the agent of a cluster and its caches need where all are logical clusters of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfCluster {
    /// At the hub.
    pub at_hub: Vec<Grant>,
    /// On the cluster.
    pub on_cluster: Vec<Grant>,
}

/// What the agent of a cluster needs, by its name and that of its logical cluster.
pub fn of_cluster(name: &str, logical_cluster: &str, further: &[Kind]) -> OfCluster {
    let rooms = [of_agent(true, further), of_workloads(), of_applier()].concat();
    let accounts = accounts(&rooms);
    let caches = vec![CACHES_USER.to_owned()];
    let mut users: Vec<String> = accounts.keys().map(|of| of.user(Some(name))).collect();
    users.extend(caches.clone());
    let enter = Rules::to_enter(logical_cluster);
    let mut at_hub = vec![granted(&format!("{ENTER}:{name}"), enter, users)];
    let mut on_cluster = Vec::new();
    for (account, places) in accounts {
        let (who, role) = (vec![account.user(Some(name))], account.role());
        if places.contains(&Place::HUB) {
            let own = Rules::of(&rooms, account, Place::HUB).and(Rules::of_syncer_of(name));
            at_hub.push(granted(&format!("{role}:{name}"), own, who.clone()));
        }
        let own = match account {
            Account::Applier => Rules::of_applier(),
            _ => Rules::of(&rooms, account, Place::CLUSTER),
        };
        on_cluster.push(granted(role, own, who));
    }
    let cached = format!("{CACHES}:{name}");
    let watched = Rules::at(&rooms, Place::HUB).watched();
    at_hub.push(granted(
        &cached,
        Rules::of_caches(Place::HUB, further).and(watched),
        caches.clone(),
    ));
    let cached = Rules::at(&rooms, Place::CLUSTER).watched();
    on_cluster.push(granted(CACHES, Rules::of_caches(Place::CLUSTER, further).and(cached), caches));
    OfCluster { at_hub, on_cluster }
}

/// What the applier of a cluster needs there.
pub fn of_applier_on_cluster(cluster: &str) -> Grant {
    let account = Account::Applier;
    granted(account.role(), Rules::of_applier(), vec![account.user(Some(cluster))])
}

fn granted(role: &str, rules: Rules, to: Vec<String>) -> Grant {
    Grant { role: role.to_owned(), rules, to }
}

/// What a role allows, as it is built up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The verbs by group, resource and the one name that they are for, if it is one.
    verbs: BTreeMap<(String, String, Option<String>), BTreeSet<&'static str>>,
}

impl Rules {
    /// What an account of a program does at a place. The status of a WorkloadCluster is not in it for
    /// those who serve one: they write that of their own only, and the right to it goes by name.
    pub fn of(rooms: &[Listed], account: Account, place: Place) -> Rules {
        let mut rules = Rules::default();
        for room in rooms.iter().filter(|room| room.account == account) {
            for right in room.rights.iter().filter(|right| right.place == place) {
                let (key, verb) = asked_for(&right.kind, right.verb);
                rules.verbs.entry(key).or_default().insert(verb);
            }
        }
        if account.is_of_cluster() {
            rules = rules.without(&WORKLOAD_CLUSTER, Verb::PatchStatus);
        }
        if reports_at(rooms, account) == Some(place) { rules.telling() } else { rules }
    }

    /// What all accounts of a program together do at a place.
    pub fn at(rooms: &[Listed], place: Place) -> Rules {
        let each = accounts(rooms).into_keys().map(|account| Rules::of(rooms, account, place));
        each.fold(Rules::default(), Rules::and)
    }

    /// What only the syncer of this cluster does at the hub.
    pub fn of_syncer_of(cluster: &str) -> Rules {
        Rules::default().naming(interlock_api::GROUP, "workloadclusters/status", cluster, "patch")
    }

    /// The same of one tenant's controllers: they write the status of their own Tenant only.
    fn of_tenant(mut self, tenant: &str) -> Rules {
        for resource in ["tenants", "tenants/status"] {
            self = self.narrowed(interlock_api::GROUP, resource, tenant);
        }
        self
    }

    /// The same of the agent of one DPU: it writes its own report and its own Lease only.
    fn of_dpu(self, dpu: &DpuName) -> Rules {
        let own = self.narrowed(interlock_api::GROUP, "dpureports/status", &dpu.to_string());
        own.narrowed("coordination.k8s.io", "leases", &dpu.lease())
    }

    /// The same, with changes to one object of a resource only.
    fn narrowed(mut self, group: &str, resource: &str, name: &str) -> Rules {
        let key = (group.to_owned(), resource.to_owned(), None);
        let Some(verbs) = self.verbs.get_mut(&key) else { return self };
        let had = verbs.remove("patch");
        self.verbs.retain(|_, verbs| !verbs.is_empty());
        if had { self.naming(group, resource, name, "patch") } else { self }
    }

    /// What it takes to fill the caches that all controllers at a place share.
    pub fn of_caches(place: Place, further: &[Kind]) -> Rules {
        Rules::at(&of_hub(), place).and(Rules::at(&of_agent(true, further), place)).watched()
    }

    /// What it takes to watch whatever these watch.
    fn watched(self) -> Rules {
        let mut rules = Rules::default();
        for ((group, resource, name), verbs) in self.verbs {
            let reads = verbs.into_iter().filter(|verb| matches!(*verb, "list" | "watch"));
            let reads: BTreeSet<&str> = reads.collect();
            if reads.contains("watch") {
                rules.verbs.insert((group, resource, name), reads);
            }
        }
        rules
    }

    /// What the applier does on a cluster. Nobody knows beforehand which kinds a bundle has, roles included. What it may
    /// not do all the same, the policy of the fence refuses.
    pub fn of_applier() -> Rules {
        let mut rules = Rules::of(&of_applier(), Account::Applier, Place::CLUSTER);
        let mut allow = |group: &str, resource: &str, verbs: &[&'static str]| {
            let key = (group.to_owned(), resource.to_owned(), None);
            rules.verbs.entry(key).or_default().extend(verbs);
        };
        allow("*", "*", &["get", "list", "watch", "create", "patch", "delete"]);
        for resource in ["roles", "clusterroles"] {
            allow("rbac.authorization.k8s.io", resource, &["bind", "escalate"]);
        }
        rules
    }

    /// What it takes to enter a logical cluster of this server.
    pub fn to_enter(cluster: &str) -> Rules {
        Rules::default().naming(interlock_api::GROUP, "logicalclusters", cluster, "access")
    }

    /// What it takes to act as a user.
    pub fn to_act_as(user: &str) -> Rules {
        Rules::default().naming("", "users", user, "impersonate")
    }

    /// What it takes to lead, where the lease was made for it.
    pub fn to_lead(lease: &str) -> Rules {
        let verbs = ["get", "update"].into_iter();
        verbs.fold(Rules::default(), |rules, verb| {
            rules.naming("coordination.k8s.io", "leases", lease, verb)
        })
    }

    /// What it takes to read one Secret, in the namespace where a Role says so.
    pub fn to_read_secret(name: &str) -> Rules {
        Rules::default().naming("", "secrets", name, "get")
    }

    /// These and events. The shell sends them; no controller has to say so.
    fn telling(mut self) -> Rules {
        let key = ("events.k8s.io".to_owned(), "events".to_owned(), None);
        self.verbs.entry(key).or_default().extend(["create", "patch"]);
        self
    }

    fn naming(mut self, group: &str, resource: &str, name: &str, verb: &'static str) -> Rules {
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
    pub fn and(mut self, others: Rules) -> Rules {
        for (key, verbs) in others.verbs {
            self.verbs.entry(key).or_default().extend(verbs);
        }
        self
    }

    /// As Kubernetes writes them: resources of one group that the same may be done to share a rule.
    pub fn written(&self) -> Value {
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

/// The controllers of the hub.
pub fn of_hub() -> Vec<Listed> {
    list(&Hub::default())
}

/// The controllers of cloud identities.
pub fn of_identities() -> Vec<Listed> {
    list(&Identities::of_any())
}

/// The controllers of the agent of any cluster: on a machine that runs its pods and has its volumes,
/// or on a cluster with nodes.
pub fn of_agent(is_on_machine: bool, further: &[Kind]) -> Vec<Listed> {
    let machine =
        is_on_machine.then_some(Machine { is_root: false, has_volumes: true, scope: Scope::All });
    list(&Agent::of_any(machine, further))
}

/// The controllers of Deployments and the like, on any embedded cluster.
pub fn of_workloads() -> Vec<Listed> {
    list(&Workloads::of_any())
}

/// The controllers of updates at the hub.
pub fn of_rollouts() -> Vec<Listed> {
    list(&Rollouts)
}

/// The controllers that bring any cluster to its target.
pub fn of_applier() -> Vec<Listed> {
    list(&Applier::of(Ref::default()))
}

/// Where the events of an account are sent: to the hub, where people look, if it works there.
fn reports_at(rooms: &[Listed], account: Account) -> Option<Place> {
    let places = accounts(rooms).remove(&account)?;
    if places.contains(&Place::HUB) { Some(Place::HUB) } else { places.into_iter().next() }
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
pub fn cluster_role(name: &str, rules: &Rules) -> Value {
    json!({
        "apiVersion": RBAC, "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules.written(),
    })
}

/// Binds a ClusterRole to somebody, in the whole cluster.
pub fn cluster_role_binding(name: &str, role: &str, subject: &Value) -> Value {
    json!({
        "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_kernel::GroupVersion;

    fn allows(rules: &Rules, verb: &str, resource: &str) -> bool {
        let mut entries = rules.verbs.iter();
        entries.any(|((_, known, _), verbs)| known == resource && verbs.contains(verb))
    }

    fn hub() -> Rules {
        Rules::at(&of_hub(), Place::HUB)
    }

    fn syncer(place: Place, further: &[Kind]) -> Rules {
        Rules::of(&of_agent(false, further), Account::Syncer, place)
    }

    #[test]
    fn nobody_but_the_hub_makes_grants_or_says_where_they_go() {
        let (hub, syncer) = (hub(), syncer(Place::HUB, &[]));
        for verb in ["create", "patch", "delete"] {
            assert!(allows(&hub, verb, "grants"), "{verb}");
            assert!(!allows(&syncer, verb, "grants"), "{verb}");
        }
        assert!(allows(&syncer, "patch", "grants/status"));
    }

    #[test]
    fn nobody_declares_an_owner_gone_but_a_person() {
        let all = hub().and(Rules::at(&of_agent(true, &[]), Place::HUB));
        for verb in ["create", "patch", "update", "delete"] {
            assert!(!allows(&all, verb, "forcereleases"), "{verb}");
        }
    }

    #[test]
    fn a_syncer_speaks_for_its_own_cluster_only() {
        assert!(!allows(&syncer(Place::HUB, &[]), "patch", "workloadclusters/status"));
        let own = Rules::of_syncer_of("west").written();
        assert_eq!(own[0]["resourceNames"], json!(["west"]));
    }

    #[test]
    fn one_role_at_the_hub_fits_every_syncer() {
        let copying = Rules::of(&of_agent(true, &[]), Account::Syncer, Place::HUB);
        assert_eq!(copying, syncer(Place::HUB, &[]));
    }

    #[test]
    fn further_kinds_are_allowed_only_where_they_are_carried() {
        let widget = Kind::namespaced(GroupVersion::new("example.com", "v1"), "Widget", "widgets");
        assert!(!allows(&syncer(Place::CLUSTER, &[]), "create", "widgets"));
        let widgets = [widget];
        assert!(allows(&syncer(Place::CLUSTER, &widgets), "create", "widgets"));
        assert!(allows(&syncer(Place::HUB, &widgets), "patch", "widgets/status"));
    }

    #[test]
    fn caches_only_read() {
        let rules = Rules::of_caches(Place::HUB, &[]).and(Rules::of_caches(Place::CLUSTER, &[]));
        let verbs: BTreeSet<&str> = rules.verbs.values().flatten().copied().collect();
        assert_eq!(verbs.into_iter().collect::<Vec<_>>(), ["list", "watch"]);
        assert!(allows(&rules, "watch", "grants") && allows(&rules, "watch", "pods"));
    }

    #[test]
    fn the_controllers_of_identities_write_identities_and_what_pods_run_as() {
        let rules = Rules::of(&of_identities(), Account::Identities, Place::HUB);
        let writes = |(key, verbs): (&(String, String, Option<String>), &BTreeSet<&str>)| {
            let reads = ["get", "list", "watch"];
            verbs.iter().any(|verb| !reads.contains(verb)).then(|| key.1.clone())
        };
        let written: BTreeSet<String> = rules.verbs.iter().filter_map(writes).collect();
        let identities =
            ["iamroleserviceaccounts", "policies", "roles", "serviceaccounts", "events", "grants"];
        let is_known = |resource: &String| {
            let resource = resource.trim_end_matches("/status");
            identities.contains(&resource) || resource == "workloadclusters"
        };
        assert!(written.iter().all(is_known), "{written:?}");
        assert!(!allows(&rules, "patch", "grants") && !allows(&rules, "create", "grants"));
        assert!(!allows(&rules, "get", "secrets"));
        // The roles of the cloud, and not those of Kubernetes.
        let groups = rules.verbs.keys().map(|(group, ..)| group.as_str());
        assert!(groups.into_iter().all(|group| group != "rbac.authorization.k8s.io"));
    }

    #[test]
    fn what_the_controllers_of_identities_watch_is_cached() {
        let grants = of_identities_at_hub();
        let caches = grants.iter().find(|grant| grant.to == [CACHES_USER]).expect("it is there");
        assert_eq!(caches.role, "interlock:caches:identities");
        assert!(allows(&caches.rules, "watch", "iamroleserviceaccounts"));
        let verbs: BTreeSet<&str> = caches.rules.verbs.values().flatten().copied().collect();
        assert_eq!(verbs.into_iter().collect::<Vec<_>>(), ["list", "watch"]);
    }

    #[test]
    fn no_role_allows_everything_of_anything() {
        let agent = of_agent(true, &[]);
        let agent = Rules::at(&agent, Place::HUB).and(Rules::at(&agent, Place::CLUSTER));
        let text = hub().and(agent).written().to_string();
        assert!(!text.contains('*'), "{text}");
    }
}
