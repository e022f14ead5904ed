//! `interlock status nodes`: how many machines are in which phase, what each DPU and each tenant has, and which machines
//! wait for something.

use crate::location::Location;
use crate::node::hub::Hub;
use crate::node::picture::{Row, rows};
use crate::output::{Format, say, say_json};
use crate::words::{age, age_or_dash, table};
use interlock_api::nodes::condition::READY;
use interlock_api::nodes::{DpuName, DpuReport, NodePhase, PhysicalNode, Rack, Tenant};
use interlock_kernel::conditions;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use serde::Serialize;
use std::process::ExitCode;

/// Options of `status nodes`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    location: Location,
}

/// All machines, for programs: a contract.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    phases: Vec<PhaseRow>,
    dpus: Vec<DpuRow>,
    tenants: Vec<TenantRow>,
    /// The machines that wait for something, as `node list` has them.
    waiting: Vec<Row>,
    /// Whether a person has to act.
    needs_a_person: bool,
}

/// The machines in a phase, for programs.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct PhaseRow {
    phase: NodePhase,
    machines: usize,
    /// Since when the one is in the phase that has been there longest.
    since: Option<Timestamp>,
}

/// A DPU, for programs.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct DpuRow {
    dpu: DpuName,
    /// When its agent renewed its Lease last; null: never.
    renewed: Option<Timestamp>,
    /// Ready, Silent, NotReported, or the reason of its condition Ready: `NoPacketFilter`.
    state: String,
    /// What is wrong, in the words of the DPU; empty: nothing.
    message: String,
    /// Ports, how many of them are open, and how many reports are behind the floor of their machine.
    ports: usize,
    open: usize,
    behind: usize,
    networks: usize,
}

/// A tenant, for programs.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TenantRow {
    tenant: String,
    /// How many machines it has now, and how many it may have; null: as many as there are.
    machines: usize,
    quota: Option<u32>,
    /// How many of them are programmed in all their DPUs.
    ready: usize,
    vni: Option<u32>,
}

/// What is asked of the hub.
#[derive(Debug, Default)]
struct Seen {
    nodes: Vec<PhysicalNode>,
    reports: Vec<DpuReport>,
    racks: Vec<Rack>,
    tenants: Vec<Tenant>,
    leases: Vec<Lease>,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let hub = Hub::open(&args.location).await?;
    let seen = Seen {
        nodes: hub.nodes().await?,
        reports: hub.reports().await?,
        racks: hub.racks().await?,
        tenants: hub.tenants().await?,
        leases: hub.leases().await?,
    };
    let now = Timestamp::now();
    let report = seen.report(now);
    match args.output {
        Format::Json => say_json(&report)?,
        Format::Text => say(&report.page(now))?,
    }
    Ok(if report.needs_a_person { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Seen {
    fn report(&self, now: Timestamp) -> Report {
        let all = rows(&self.nodes, &self.reports);
        let phases = self.phases(&all);
        let dpus: Vec<DpuRow> = self.dpus().map(|dpu| self.dpu(dpu, now)).collect();
        let tenants = self.tenants.iter().map(|tenant| tenant_row(tenant, &all)).collect();
        let is_waiting = |row: &Row| row.needs_a_person || !row.waits_for.is_empty();
        let waiting: Vec<Row> = all.into_iter().filter(is_waiting).collect();
        let needs_a_person = waiting.iter().any(|row| row.needs_a_person)
            || dpus.iter().any(|dpu| dpu.state != READY);
        Report { phases, dpus, tenants, waiting, needs_a_person }
    }

    fn phases(&self, all: &[Row]) -> Vec<PhaseRow> {
        let order = [
            NodePhase::Available,
            NodePhase::Bound,
            NodePhase::Draining,
            NodePhase::Releasing,
            NodePhase::Quarantined,
        ];
        let of = |phase: NodePhase| {
            let rows = all.iter().filter(move |row| row.phase == phase);
            let since = rows.clone().filter_map(|row| row.since).min();
            PhaseRow { phase, machines: rows.count(), since }
        };
        order.map(of).into_iter().filter(|row| row.machines > 0).collect()
    }

    /// The DPUs of all racks, by name.
    fn dpus(&self) -> impl Iterator<Item = DpuName> {
        let mut names: Vec<DpuName> = self
            .racks
            .iter()
            .flat_map(|rack| {
                let of_rack = rack.spec.dpus.iter();
                of_rack.map(|dpu| DpuName::new(rack.name_any(), dpu.name.clone()))
            })
            .collect();
        names.sort_by_key(ToString::to_string);
        names.into_iter()
    }

    fn dpu(&self, dpu: DpuName, now: Timestamp) -> DpuRow {
        let report = self.reports.iter().find(|report| report.dpu_name() == dpu);
        let status = report.and_then(|report| report.status.clone());
        let lease = self.leases.iter().find(|lease| lease.name_any() == dpu.lease());
        let spec = lease.and_then(|lease| lease.spec.as_ref());
        let renewed = spec.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0);
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
        let is_silent = renewed
            .is_none_or(|at| now.as_second().saturating_sub(at.as_second()) > i64::from(seconds));
        let ready = status.as_ref().and_then(|it| conditions::find(&it.conditions, READY));
        let complaint = ready.filter(|ready| ready.status != "True");
        let (state, message) = match (complaint, &status) {
            (_, None) => ("NotReported", String::new()),
            (_, Some(_)) if is_silent => ("Silent", String::new()),
            (Some(ready), _) => (ready.reason.as_str(), ready.message.clone()),
            (None, Some(_)) => (READY, String::new()),
        };
        let state = state.to_owned();
        let behind = self.nodes.iter().filter(|node| is_behind(node, &dpu, report)).count();
        let ports = status.as_ref().map(|status| status.ports.as_slice()).unwrap_or_default();
        DpuRow {
            renewed,
            state,
            message,
            ports: ports.len(),
            open: ports.iter().filter(|port| port.applied.is_some()).count(),
            behind,
            networks: status.as_ref().map_or(0, |status| status.vnis.len()),
            dpu,
        }
    }
}

/// Whether a DPU has not reported yet that it refuses what is revoked of a machine.
fn is_behind(node: &PhysicalNode, dpu: &DpuName, report: Option<&DpuReport>) -> bool {
    let status = node.status_or_default();
    let Some(wired) = node.spec.at(dpu).filter(|_| status.floor > 0) else { return false };
    let reported = report.and_then(|report| report.status.as_ref());
    let port = reported.and_then(|reported| reported.port(&wired.port));
    let uid = node.uid().unwrap_or_default();
    !port.is_some_and(|port| {
        port.floor >= status.floor && port.node.as_ref().is_some_and(|node| node.uid == uid)
    })
}

fn tenant_row(tenant: &Tenant, all: &[Row]) -> TenantRow {
    let name = tenant.name_any();
    let has = |row: &&Row| row.phase.is_assigned() && row.tenant.as_ref() == Some(&name);
    TenantRow {
        machines: all.iter().filter(has).count(),
        ready: all.iter().filter(has).filter(|row| row.network_ready).count(),
        quota: tenant.spec.node_quota,
        vni: tenant.status_or_default().vni,
        tenant: name,
    }
}

impl Report {
    fn page(&self, now: Timestamp) -> String {
        if self.phases.is_empty() && self.dpus.is_empty() {
            return "no machines\nnext: kubectl apply a Rack and a PhysicalNode (docs/nodes.md)\n"
                .to_owned();
        }
        let dash = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |it| it.to_string());
        let phases = self.phases.iter().map(|row| {
            vec![row.phase.to_string(), row.machines.to_string(), age_or_dash(now, row.since)]
        });
        let dpus = self.dpus.iter().map(|row| {
            let DpuRow { dpu, state, ports, open, behind, networks, renewed, .. } = row;
            let numbers = [ports, open, behind, networks].map(ToString::to_string);
            let name = format!("{}/{}", dpu.rack, dpu.dpu);
            let heard = renewed.map_or_else(|| "never".to_owned(), |at| age(now, at));
            [vec![name, state.clone()], numbers.to_vec(), vec![heard]].concat()
        });
        let tenants = self.tenants.iter().map(|row| {
            let numbers = [row.machines.to_string(), row.ready.to_string()];
            let rest = [dash(row.quota), dash(row.vni)];
            [vec![row.tenant.clone()], numbers.to_vec(), rest.to_vec()].concat()
        });
        let waiting = self.waiting.iter().map(|row| {
            let since = age_or_dash(now, row.since);
            vec![row.name.clone(), row.phase.to_string(), since, row.waits_for.join("; ")]
        });
        let parts: [(&[&str], Vec<Vec<String>>); 4] = [
            (&["PHASE", "MACHINES", "LONGEST"], phases.collect()),
            (&["DPU", "STATE", "PORTS", "OPEN", "BEHIND", "NETWORKS", "HEARTBEAT"], dpus.collect()),
            (&["TENANT", "MACHINES", "READY", "QUOTA", "VNI"], tenants.collect()),
            (&["MACHINE", "PHASE", "FOR", "WAITS FOR"], waiting.collect()),
        ];
        let tables = parts.iter().filter(|(_, rows)| !rows.is_empty());
        let tables: Vec<String> = tables.map(|(head, rows)| table(head, rows)).collect();
        tables.join("\n") + &self.next()
    }

    /// What is wrong in words, and what to do about it.
    fn next(&self) -> String {
        let mut text = String::new();
        for row in &self.dpus {
            let name = format!("{}/{}", row.dpu.rack, row.dpu.dpu);
            match row.state.as_str() {
                READY => {}
                "Silent" | "NotReported" => {
                    text += &format!(
                        "next for DPU {name}: start its agent: interlock dpu-agent {name}\n"
                    );
                }
                _ => text += &format!("DPU {name}: {}\n", row.message),
            }
        }
        for row in &self.waiting {
            if let Some(next) = row.next.as_ref().filter(|_| row.needs_a_person) {
                text += &format!("next for {}: {next}\n", row.name);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    const NOW: i64 = 1_000_000_000;

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).expect("a time")
    }

    fn own<K: DeserializeOwned>(kind: &str, name: &str, spec: &Value, status: &Value) -> K {
        serde_json::from_value(json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": kind, "spec": spec, "status": status,
            "metadata": {"name": name, "uid": format!("uid-{name}")},
        }))
        .expect("an object")
    }

    fn lease(dpu: &str, seconds_ago: i64) -> Lease {
        let at = Timestamp::from_second(NOW - seconds_ago).expect("a time");
        serde_json::from_value(json!({
            "metadata": {"name": format!("dpu-r1.{dpu}")},
            "spec": {"renewTime": format!("{at:.6}"), "leaseDurationSeconds": 40},
        }))
        .expect("a Lease")
    }

    fn node(name: &str, status: &Value) -> PhysicalNode {
        let dpus = json!([{"rack": "r1", "dpu": "d1", "port": name, "mac": "02:00:00:00:00:01"}]);
        own("PhysicalNode", name, &json!({"rack": "r1", "dpus": dpus}), status)
    }

    fn reported(ports: &Value, ready: &Value) -> DpuReport {
        let status = json!({"bootID": "b", "vnis": [4096], "ports": ports, "conditions": [ready]});
        own("DpuReport", "r1.d1", &json!({"rack": "r1", "dpu": "d1"}), &status)
    }

    fn ready(status: &str, reason: &str) -> Value {
        json!({"type": "Ready", "status": status, "reason": reason, "message": "nft: not found",
            "lastTransitionTime": "2001-01-01T00:00:00Z"})
    }

    /// A machine in use by tenant blue, and one whose epoch 1 is revoked and not reported.
    fn seen() -> Seen {
        let assignment = json!({"tenant": {"name": "blue", "uid": "uid-blue"},
            "claim": {"name": "web", "uid": "c"}, "epoch": 1, "vni": 4096});
        let since = "2001-09-09T01:45:40Z";
        let programmed = json!([{"type": "NetworkReady", "status": "True", "reason": "Programmed",
            "message": "", "lastTransitionTime": since}]);
        let bound = json!({"phase": "Bound", "phaseSince": since, "epoch": 1, "floor": 0,
            "assignment": assignment, "conditions": programmed});
        let releasing = json!({"phase": "Releasing", "phaseSince": since, "epoch": 1, "floor": 1});
        let ports = json!([
            {"port": "n1", "node": {"name": "n1", "uid": "uid-n1"}, "floor": 0, "clean": false,
                "applied": {"tenant": "uid-blue", "claimUID": "c", "epoch": 1}},
            {"port": "n2", "node": {"name": "n2", "uid": "uid-n2"}, "floor": 0, "clean": true},
        ]);
        let rack = json!({"dpus": [{"name": "d1", "vtep": "10.0.0.1"}]});
        let tenant = json!({"plane": {"logicalCluster": "blue"}, "nodeQuota": 5});
        Seen {
            nodes: vec![node("n1", &bound), node("n2", &releasing)],
            reports: vec![reported(&ports, &ready("True", "Ready"))],
            racks: vec![own("Rack", "r1", &rack, &json!({}))],
            tenants: vec![own("Tenant", "blue", &tenant, &json!({"vni": 4096}))],
            leases: vec![lease("d1", 5)],
        }
    }

    #[test]
    fn machines_are_counted_by_phase_and_dpus_and_tenants_have_a_line_each() {
        let report = seen().report(now());
        assert!(!report.needs_a_person, "{report:?}");
        assert_eq!(
            report.page(now()),
            "PHASE      MACHINES  LONGEST\n\
             Bound      1         60s\n\
             Releasing  1         60s\n\
             \n\
             DPU    STATE  PORTS  OPEN  BEHIND  NETWORKS  HEARTBEAT\n\
             r1/d1  Ready  2      1     1       1         5s\n\
             \n\
             TENANT  MACHINES  READY  QUOTA  VNI\n\
             blue    1         1      5      4096\n\
             \n\
             MACHINE  PHASE      FOR  WAITS FOR\n\
             n2       Releasing  60s  DPU r1.d1 has not revoked epoch 1 yet (its floor is 0)\n"
        );
    }

    #[test]
    fn a_dpu_that_is_silent_or_not_ready_needs_a_person() {
        let silent = Seen { leases: vec![lease("d1", 41)], ..seen() };
        let report = silent.report(now());
        assert_eq!((report.dpus[0].state.as_str(), report.needs_a_person), ("Silent", true));
        assert!(report.page(now()).ends_with("start its agent: interlock dpu-agent r1/d1\n"));
        let reports = vec![reported(&json!([]), &ready("False", "NoPacketFilter"))];
        let report = Seen { reports, ..seen() }.report(now());
        assert_eq!(report.dpus[0].state, "NoPacketFilter");
        assert!(report.page(now()).contains("DPU r1/d1: nft: not found\n"));
        let report = Seen { reports: Vec::new(), ..seen() }.report(now());
        assert_eq!((report.dpus[0].state.as_str(), report.needs_a_person), ("NotReported", true));
    }

    #[test]
    fn a_hub_without_machines_says_what_to_do() {
        let report = Seen::default().report(now());
        assert!(!report.needs_a_person);
        assert!(report.page(now()).starts_with("no machines\nnext: "));
    }
}
