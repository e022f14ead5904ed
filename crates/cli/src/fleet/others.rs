//! What the fleet has besides placed namespaces: machines, cloud roles and updates. A part of `interlock status`, in which
//! each has a few lines.

use super::client::{Fleet, OurKind};
use crate::node::picture::rows;
use crate::rollout::{ClusterRow, cluster, objects_cell, together};
use crate::words::{age_or_dash, count, table};
use interlock_api::identities::{Role, condition};
use interlock_api::nodes::NodePhase;
use interlock_kernel::conditions;
use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;
use std::collections::BTreeMap;

/// Machines, cloud roles and updates, for programs: a contract. A field is null where the user may not list its kinds.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Others {
    /// How many machines there are, and whose.
    pub(crate) machines: Option<MachinesRow>,
    /// How many cloud roles are as declared.
    pub(crate) roles: Option<RolesRow>,
    /// Which version each cluster runs, and the update in flight; clusters without any request are left out.
    pub(crate) updates: Option<Vec<ClusterRow>>,
}

/// All machines, for programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct MachinesRow {
    /// How many there are.
    pub(crate) total: usize,
    /// How many are in each phase.
    pub(crate) phases: BTreeMap<String, usize>,
    /// How many each tenant has.
    pub(crate) tenants: BTreeMap<String, usize>,
    /// Those for which a person has to act, by name.
    pub(crate) need_a_person: Vec<String>,
}

/// All cloud roles, for programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct RolesRow {
    /// How many there are.
    pub(crate) total: usize,
    /// How many are as declared.
    pub(crate) as_declared: usize,
    /// Those that are not, by namespace and name.
    pub(crate) behind: Vec<RoleRow>,
}

/// A cloud role that is not as declared, for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RoleRow {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Why it is not as declared, in one word.
    pub(crate) reason: String,
    /// Why, in a sentence.
    pub(crate) message: String,
    /// Whether a person has to act.
    pub(crate) needs_a_person: bool,
}

impl Others {
    /// Asks the hub.
    pub(crate) async fn of(fleet: &Fleet) -> anyhow::Result<Others> {
        let machines = allowed(fleet.list_if_known().await)?;
        let roles: Option<Vec<Role>> = allowed(fleet.list_if_known().await)?;
        let records = allowed(fleet.list_if_known().await)?;
        let reports = allowed(fleet.list_if_known().await)?;
        let updates = match (records, reports) {
            (Some(records), Some(reports)) => {
                let known = together(&fleet.clusters().await?, &records, &reports);
                Some(known.iter().filter(|it| it.has_requests()).map(cluster).collect())
            }
            _ => None,
        };
        Ok(Others {
            machines: machines.map(|nodes: Vec<_>| machines_row(&rows(&nodes, &[]))),
            roles: roles.map(|roles| roles_row(&roles)),
            updates,
        })
    }

    /// Whether a person has to act.
    pub(crate) fn need_a_person(&self) -> bool {
        let machines = self.machines.iter().any(|row| !row.need_a_person.is_empty());
        let roles = self.roles.iter().flat_map(|row| &row.behind).any(|row| row.needs_a_person);
        let updates = self.updates.iter().flatten().any(ClusterRow::needs_a_person);
        machines || roles || updates
    }

    /// The same, for people: nothing about what the fleet does not have.
    pub(crate) fn text(&self, now: Timestamp) -> String {
        let lines: Vec<String> =
            [self.machines_line(), self.roles_line()].into_iter().flatten().collect();
        let mut text = String::new();
        if !lines.is_empty() {
            text += &format!("\n{}", lines.concat());
        }
        let updates = self.updates.as_deref().unwrap_or_default();
        if !updates.is_empty() {
            let rows: Vec<Vec<String>> = updates.iter().map(|row| update_cells(row, now)).collect();
            text += &format!("\n{}", table(&["CLUSTER", "VERSION", "UPDATE", "HEALTHY"], &rows));
        }
        text
    }

    /// Machines in a line.
    pub(crate) fn machines_line(&self) -> Option<String> {
        let row = self.machines.as_ref().filter(|row| row.total > 0)?;
        let phases = row.phases.iter().map(|(phase, n)| format!("{n} {phase}"));
        let tenants = row.tenants.iter().map(|(tenant, n)| format!("{tenant} has {n}"));
        let parts = [phases.collect::<Vec<_>>().join(", "), tenants.collect::<Vec<_>>().join(", ")];
        let parts: Vec<&str> =
            parts.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        let mut line = format!("{}: {}\n", count(row.total, "machine"), parts.join("; "));
        if let [first, ..] = row.need_a_person.as_slice() {
            let names = row.need_a_person.join(", ");
            line += &format!("  need a person: {names}; next: interlock node explain {first}\n");
        }
        Some(line)
    }

    /// Cloud roles in a line, and one for each that is not as declared.
    pub(crate) fn roles_line(&self) -> Option<String> {
        let row = self.roles.as_ref().filter(|row| row.total > 0)?;
        let mut line =
            format!("{}: {} as declared\n", count(row.total, "cloud role"), row.as_declared);
        for RoleRow { namespace, name, reason, message, .. } in &row.behind {
            line += &format!("  {namespace}/{name}: {reason}: {message}\n");
        }
        Some(line)
    }
}

/// What is missing because the user may not list it is no error.
fn allowed<K: OurKind>(listed: anyhow::Result<Vec<K>>) -> anyhow::Result<Option<Vec<K>>> {
    match listed {
        Ok(items) => Ok(Some(items)),
        Err(error) => match error.downcast_ref() {
            Some(kube::Error::Api(status)) if status.code == 403 => Ok(None),
            _ => Err(error),
        },
    }
}

fn machines_row(nodes: &[crate::node::picture::Row]) -> MachinesRow {
    let mut row = MachinesRow { total: nodes.len(), ..MachinesRow::default() };
    for node in nodes {
        *row.phases.entry(node.phase.to_string()).or_default() += 1;
        // One that is in no claim any more may be in quarantine, and is nobody's.
        if let Some(tenant) = node.tenant.as_ref().filter(|_| node.phase != NodePhase::Available) {
            *row.tenants.entry(tenant.clone()).or_default() += 1;
        }
        if node.needs_a_person {
            row.need_a_person.push(node.name.clone());
        }
    }
    row.need_a_person.sort_unstable();
    row
}

fn roles_row(roles: &[Role]) -> RolesRow {
    let behind = roles.iter().filter_map(|role| {
        let conditions = role.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let ready = conditions::find(conditions, condition::READY);
        if ready.is_some_and(|ready| ready.status == "True") {
            return None;
        }
        let unknown = "the controller of identities has not seen it yet";
        Some(RoleRow {
            namespace: role.namespace().unwrap_or_default(),
            name: role.name_any(),
            reason: ready.map_or_else(|| "NotSeen".to_owned(), |it| it.reason.clone()),
            message: ready.map_or_else(|| unknown.to_owned(), |it| it.message.clone()),
            needs_a_person: conditions::is_true(conditions, condition::STALLED),
        })
    });
    let mut behind: Vec<RoleRow> = behind.collect();
    behind.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    RolesRow { total: roles.len(), as_declared: roles.len() - behind.len(), behind }
}

/// A cluster as CLUSTER, VERSION, UPDATE and HEALTHY.
pub(crate) fn update_cells(row: &ClusterRow, now: Timestamp) -> Vec<String> {
    let update = row.active.as_ref().or(row.queued.as_ref()).map(|request| {
        let number = request.version.map_or_else(String::new, |it| format!("{it} "));
        format!("{number}{} for {}", request.phase, age_or_dash(now, request.since))
    });
    vec![
        row.cluster.clone(),
        row.good.map_or_else(|| "-".to_owned(), |it| it.to_string()),
        update.or_else(|| row.reason.clone()).unwrap_or_else(|| "-".to_owned()),
        objects_cell(row.objects.as_ref()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_api::nodes::PhysicalNode;
    use serde_json::{Value, json};

    fn node(name: &str, status: Value) -> PhysicalNode {
        serde_json::from_value(json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "PhysicalNode",
            "metadata": {"name": name, "uid": name},
            "spec": {"rack": "r1", "reclaimEpoch": 0, "dpus": []},
            "status": status,
        }))
        .expect("a node")
    }

    fn role(name: &str, conditions: Value) -> Role {
        serde_json::from_value(json!({
            "apiVersion": "irsa.voodoo.io/v1alpha1", "kind": "Role",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"serviceAccountName": "app"},
            "status": {"condition": "created", "reason": "", "conditions": conditions},
        }))
        .expect("a role")
    }

    fn says(kind: &str, status: &str, reason: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": "so it is",
            "lastTransitionTime": "1970-01-01T00:00:01Z"})
    }

    #[test]
    fn a_fleet_without_any_of_it_has_no_line() {
        let none = Others { machines: Some(MachinesRow::default()), ..Others::default() };
        assert_eq!(none.text(Timestamp::UNIX_EPOCH), "");
        assert!(!none.need_a_person());
    }

    #[test]
    fn machines_are_counted_by_phase_and_tenant() {
        let assignment = json!({"tenant": {"name": "blue", "uid": "b"},
            "claim": {"name": "c", "uid": "c"}, "epoch": 1, "vni": 4096});
        let nodes = [
            node("n1", json!({"phase": "Bound", "epoch": 1, "assignment": assignment})),
            node("n2", json!({"phase": "Available"})),
        ];
        let machines = Some(machines_row(&rows(&nodes, &[])));
        let others = Others { machines, ..Others::default() };
        let line = "2 machines: 1 Available, 1 Bound; blue has 1\n";
        assert_eq!(others.machines_line().as_deref(), Some(line));
    }

    #[test]
    fn a_role_that_is_stalled_needs_a_person_and_one_under_way_does_not() {
        let ready = role("a", json!([says("Ready", "True", "AsDeclared")]));
        let at_work = role("b", json!([says("Ready", "False", "Throttled")]));
        let stalled = role(
            "c",
            json!([says("Ready", "False", "Forbidden"), says("Stalled", "True", "Forbidden")]),
        );
        let of = |roles: &[Role]| Others { roles: Some(roles_row(roles)), ..Others::default() };
        assert!(!of(&[ready.clone(), at_work.clone()]).need_a_person());
        let all = of(&[ready, at_work, stalled]);
        assert!(all.need_a_person());
        let line = all.roles_line().expect("there are roles");
        assert!(line.starts_with("3 cloud roles: 1 as declared\n"), "{line}");
        assert!(line.contains("  shop/c: Forbidden: so it is\n"), "{line}");
    }
}
