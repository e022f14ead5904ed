//! Who the programs are that hand machines to tenants, and what each may do: at the hub, and on the control planes of
//! tenants.

use super::{CACHES, CACHES_USER, ENTER, Grant, Rules, asked_for, granted};
use crate::{Account, DpuAgent, DpuTenant, Listed, Machines, TenantPlane, list};
use interlock_api::nodes::DpuName;
use interlock_kernel::{Kind, Place, Right, Verb, Watch};
use interlock_nodes::kinds::{DPU_REPORT, LEASE, PHYSICAL_NODE, RACK, TENANT, TENANT_PLANE};

/// Who enters a logical cluster of this server, where that is the control plane of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnPlane {
    /// At the hub.
    pub at_hub: Vec<Grant>,
    /// On the control plane.
    pub on_plane: Vec<Grant>,
}

/// What the controllers of machines and their caches need at the hub.
pub fn at_hub() -> Vec<Grant> {
    let rooms = list(&Machines);
    let rules = Rules::of(&rooms, Account::Machines, Place::HUB);
    let all = [rooms, of_tenant(), of_dpu()].concat();
    let caches = Rules::at(&all, Place::HUB).watched();
    vec![
        granted(Account::Machines.role(), rules, vec![Account::Machines.user(None)]),
        granted(&format!("{CACHES}:machines"), caches, vec![CACHES_USER.to_owned()]),
    ]
}

/// What the controllers of a tenant need, by the name of the tenant and of the logical cluster that is its control
/// plane. Nobody of another tenant enters it.
pub fn on_plane(tenant: &str, logical_cluster: &str) -> OnPlane {
    let rooms = of_tenant();
    let users = [Account::Claims, Account::Attachments].map(|account| account.user(Some(tenant)));
    let [claims, attachments] = users.clone();
    let caches = vec![CACHES_USER.to_owned()];
    let enter = Rules::to_enter(logical_cluster);
    let entering = users.into_iter().chain(caches.clone()).collect();
    let at_hub = vec![
        granted(&format!("{ENTER}:tenant:{tenant}"), enter, entering),
        of_tenant_at_hub(tenant),
    ];
    let of = |account| Rules::of(&rooms, account, TENANT_PLANE);
    let cached = Rules::at(&[rooms.clone(), of_dpu()].concat(), TENANT_PLANE).watched();
    let on_plane = vec![
        granted(Account::Claims.role(), of(Account::Claims), vec![claims]),
        granted(Account::Attachments.role(), of(Account::Attachments), vec![attachments]),
        granted(CACHES, cached, caches),
    ];
    OnPlane { at_hub, on_plane }
}

/// What the controllers of a tenant need at the hub, wherever its control plane is.
pub fn of_tenant_at_hub(tenant: &str) -> Grant {
    let role = format!("{}:{tenant}", Account::Claims.role());
    let rules = Rules::of(&of_tenant(), Account::Claims, Place::HUB).of_tenant(tenant);
    granted(&role, rules, vec![Account::Claims.user(Some(tenant))])
}

/// What the agent of a DPU needs at the hub: it reads machines and tenants, and writes its own report and Lease only.
pub fn of_dpu_at_hub(dpu: &DpuName) -> Grant {
    let rules = Rules::of(&of_dpu(), Account::Dpu, Place::HUB).of_dpu(dpu);
    let role = format!("{}:{dpu}", Account::Dpu.role());
    granted(&role, rules, vec![Account::Dpu.user(Some(&dpu.to_string()))])
}

/// What the agent of a DPU needs for a tenant, on the control plane of the tenant, and to enter it.
pub fn of_dpu_on_plane(dpu: &DpuName, tenant: &str, logical_cluster: &str) -> OnPlane {
    let user = Account::Dpu.user(Some(&dpu.to_string()));
    let enter = Rules::to_enter(logical_cluster);
    let rules = Rules::of(&of_dpu(), Account::Dpu, TENANT_PLANE);
    OnPlane {
        at_hub: vec![granted(&format!("{ENTER}:dpu:{dpu}:{tenant}"), enter, vec![user.clone()])],
        on_plane: vec![granted(&format!("{}:{dpu}", Account::Dpu.role()), rules, vec![user])],
    }
}

/// What one process needs at the hub that runs the controllers of all tenants under one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfAllTenants {
    /// In the whole hub.
    pub in_cluster: Rules,
    /// In the namespace of what is Interlock's alone: the Leases of networks, and the kubeconfigs of control planes.
    pub in_namespace: Rules,
}

/// What the controllers of all tenants together need at the hub, where they are one process.
pub fn of_all_tenants_at_hub() -> OfAllTenants {
    let rules = Rules::at(&of_tenant(), Place::HUB);
    let leases = rules.clone().about(&LEASE, Part::Only);
    let secrets = Rules::default().and_to("", "secrets", "get");
    OfAllTenants {
        in_cluster: rules.about(&LEASE, Part::Others).and(read_to_serve()),
        in_namespace: leases.and(secrets),
    }
}

/// What the agent of a DPU needs at the hub, where it is a process of its own that fills its own caches. Its Lease is made
/// beforehand, so that it needs no right to make any.
pub fn of_dpu_apart(dpu: &DpuName) -> Rules {
    let rules = Rules::of(&of_dpu(), Account::Dpu, Place::HUB).without(&LEASE, Verb::Create);
    let own = rules.confined(&DPU_REPORT, &dpu.to_string()).confined(&LEASE, &dpu.lease());
    own.and(read_to_serve())
}

/// What a process reads at the hub to see which tenants and DPUs it serves.
fn read_to_serve() -> Rules {
    let mut rules = Rules::default();
    for kind in [TENANT, RACK, PHYSICAL_NODE] {
        for right in Right::to_watch(&Watch::all(Place::HUB, &kind)) {
            let (key, verb) = asked_for(&right.kind, right.verb);
            rules.verbs.entry(key).or_default().insert(verb);
        }
    }
    rules
}

/// Which rules are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Those about a kind.
    Only,
    /// Those about any other kind.
    Others,
}

impl Rules {
    /// Those of these that are about a kind, or the others.
    fn about(mut self, kind: &Kind, part: Part) -> Rules {
        let (group, resource) = (kind.group.to_string(), kind.plural.to_string());
        self.verbs.retain(|(of, about, _), _| {
            (*of == group && *about == resource) == (part == Part::Only)
        });
        self
    }

    /// The same, with all that is about a kind for one object of it only.
    fn confined(self, kind: &Kind, name: &str) -> Rules {
        let (group, resource) = (kind.group.to_string(), kind.plural.to_string());
        let status = format!("{resource}/status");
        let mut rules = Rules::default();
        for ((of, about, known), verbs) in self.verbs {
            let is_of_kind = of == group && (about == resource || about == status);
            let known = if is_of_kind { Some(name.to_owned()) } else { known };
            rules.verbs.entry((of, about, known)).or_default().extend(verbs);
        }
        rules
    }

    /// These and a verb on a resource.
    fn and_to(mut self, group: &str, resource: &str, verb: &'static str) -> Rules {
        let key = (group.to_owned(), resource.to_owned(), None);
        self.verbs.entry(key).or_default().insert(verb);
        self
    }
}

fn of_tenant() -> Vec<Listed> {
    list(&TenantPlane::default())
}

fn of_dpu() -> Vec<Listed> {
    [list(&DpuAgent::default()), list(&DpuTenant::of_any())].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verbs(grants: &[Grant], resource: &str) -> Vec<String> {
        let rules: Vec<serde_json::Value> = grants
            .iter()
            .flat_map(|grant| grant.rules.written().as_array().cloned().unwrap_or_default())
            .collect();
        let about = rules.iter().filter(|rule| {
            let resources = rule["resources"].as_array().into_iter().flatten();
            resources.into_iter().any(|it| it == resource)
        });
        let verbs = about.flat_map(|rule| rule["verbs"].as_array().cloned().unwrap_or_default());
        verbs.filter_map(|verb| verb.as_str().map(str::to_owned)).collect()
    }

    #[test]
    fn nobody_declares_a_machine_off_but_a_person() {
        let dpu = DpuName::new("r1", "d1");
        let OnPlane { at_hub: plane, .. } = on_plane("blue", "blue");
        let all = [at_hub(), plane, vec![of_dpu_at_hub(&dpu)]].concat();
        for verb in ["create", "patch", "update", "delete"] {
            assert!(!verbs(&all, "nodefences").contains(&verb.to_owned()), "{verb}");
        }
    }

    #[test]
    fn an_agent_of_a_dpu_writes_only_its_own_report() {
        let grant = of_dpu_at_hub(&DpuName::new("r1", "d1"));
        let rules = grant.rules.written();
        let rules = rules.as_array().expect("rules");
        let writes = rules.iter().filter(|rule| {
            let verbs = rule["verbs"].as_array().into_iter().flatten();
            verbs.into_iter().any(|verb| verb == "patch") && rule["apiGroups"][0] != "events.k8s.io"
        });
        for rule in writes {
            let names = rule["resourceNames"].as_array().expect("it names what it writes");
            assert!(names == &["r1.d1"] || names == &["dpu-r1.d1"], "{rule}");
        }
        assert!(verbs(&[grant], "physicalnodes/status").is_empty());
    }

    fn written(rules: &Rules) -> Vec<serde_json::Value> {
        rules.written().as_array().cloned().expect("rules")
    }

    #[test]
    fn an_agent_with_an_account_of_its_own_sees_no_other_report_and_no_other_lease() {
        let rules = written(&of_dpu_apart(&DpuName::new("r1", "d1")));
        let about = |resource: &str| {
            let is_about = |rule: &&serde_json::Value| {
                let resources = rule["resources"].as_array().into_iter().flatten();
                resources.into_iter().any(|it| it == resource)
            };
            rules.iter().filter(is_about).cloned().collect::<Vec<_>>()
        };
        for (resource, name) in
            [("dpureports", "r1.d1"), ("dpureports/status", "r1.d1"), ("leases", "dpu-r1.d1")]
        {
            let found = about(resource);
            assert!(!found.is_empty(), "{resource}");
            for rule in found {
                assert_eq!(rule["resourceNames"], serde_json::json!([name]), "{rule}");
            }
        }
        let verbs = rules.iter().flat_map(|rule| rule["verbs"].as_array().cloned());
        let events = about("events").len();
        let makes = verbs.flatten().filter(|verb| verb == "create").count();
        assert_eq!((events, makes), (1, 1), "it makes events and nothing else");
        assert!(about("secrets").is_empty());
    }

    #[test]
    fn who_serves_tenants_or_dpus_reads_what_says_which() {
        let OfAllTenants { in_cluster, in_namespace } = of_all_tenants_at_hub();
        for rules in [in_cluster, of_dpu_apart(&DpuName::new("r1", "d1"))] {
            let grant = [granted("any", rules, Vec::new())];
            for resource in ["tenants", "racks", "physicalnodes"] {
                for verb in ["get", "list", "watch"] {
                    let known = verbs(&grant, resource);
                    assert!(known.contains(&verb.to_owned()), "{verb} {resource}: {known:?}");
                }
            }
            assert!(!verbs(&grant, "nodefences").contains(&"create".to_owned()));
        }
        let grant = [granted("any", in_namespace, Vec::new())];
        assert_eq!(verbs(&grant, "leases"), ["create", "get"]);
        assert_eq!(verbs(&grant, "secrets"), ["get"]);
    }

    #[test]
    fn the_controllers_of_a_tenant_enter_its_control_plane_and_no_other() {
        let OnPlane { at_hub, .. } = on_plane("blue", "plane-of-blue");
        let entered: Vec<_> = at_hub
            .iter()
            .flat_map(|grant| grant.rules.written().as_array().cloned().unwrap_or_default())
            .filter(|rule| rule["resources"][0] == "logicalclusters")
            .map(|rule| rule["resourceNames"].clone())
            .collect();
        assert_eq!(entered, [serde_json::json!(["plane-of-blue"])]);
    }
}
