//! Machines behind DPUs that change their tenants. Whom a port is open for is read from the record beside it, and not
//! from what anybody reports.

use super::client::Client;
use super::fleet::{DPUS, GROUP, RACK, TIMEOUT};
use crate::program::eventually;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub(crate) const TENANTS: [&str; 2] = ["blue", "green"];
/// How many machines there are.
pub(crate) const COUNT: u64 = 2;
/// The machines, each with its ports: a DPU, and a port of it.
const MACHINES: [(&str, &[(&str, &str)]); COUNT as usize] =
    [("n1", &[("d1", "p1")]), ("n2", &[("d1", "p2"), ("d2", "p1")])];

/// The machines, as they are seen from outside.
pub(crate) struct Machines {
    /// Where the agents of DPUs keep the records of their ports.
    folder: PathBuf,
    /// How many machines each tenant asks for.
    pub(crate) desired: BTreeMap<String, u64>,
    /// The highest floor that was seen of each port.
    floors: BTreeMap<String, i64>,
}

/// What the record of a port says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Port {
    /// The tenant and the epoch that it is open for.
    open: Option<Open>,
    floor: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Open {
    tenant: String,
    epoch: i64,
}

/// Where the claim of a tenant is.
pub(crate) fn claim_of(tenant: &str) -> String {
    format!("/clusters/{tenant}{GROUP}/nodeclaims/web")
}

/// Makes a rack, its machines and the tenants, who ask for no machine yet.
pub(crate) fn create(client: &Client) -> anyhow::Result<()> {
    let make = |path: &str, body: &Value| {
        eventually(&format!("{path} can be made"), TIMEOUT, || {
            let made = client.call("POST", path, Some(body))?;
            if ![201, 409].contains(&made.status) {
                bail!("{} {}", made.status, made.body);
            }
            Ok(true)
        })
    };
    let object = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        })
    };
    let dpu = |place: usize| json!({"name": DPUS[place], "vtep": format!("10.0.0.{}", place + 1)});
    let dpus: Vec<Value> = (0..DPUS.len()).map(dpu).collect();
    make(&format!("{GROUP}/racks"), &object("Rack", RACK, json!({"dpus": dpus})))?;
    for (number, (name, ports)) in MACHINES.into_iter().enumerate() {
        let mut wired = Vec::new();
        for (at, (dpu, port)) in ports.iter().enumerate() {
            let mac = format!("02:00:00:00:{number:02x}:{at:02x}");
            wired.push(json!({"rack": RACK, "dpu": dpu, "port": port, "mac": mac}));
        }
        let spec = json!({"rack": RACK, "dpus": wired});
        make(&format!("{GROUP}/physicalnodes"), &object("PhysicalNode", name, spec))?;
    }
    for tenant in TENANTS {
        let plane = object("LogicalCluster", tenant, json!({}));
        make(&format!("{GROUP}/logicalclusters"), &plane)?;
        let spec = json!({"plane": {"logicalCluster": tenant}, "nodeQuota": COUNT});
        make(&format!("{GROUP}/tenants"), &object("Tenant", tenant, spec))?;
        let claim = object("NodeClaim", "web", json!({"count": 0, "selector": {"rack": RACK}}));
        make(&format!("/clusters/{tenant}{GROUP}/nodeclaims"), &claim)?;
    }
    Ok(())
}

impl Machines {
    pub(crate) fn of(folder: PathBuf) -> Machines {
        let desired = TENANTS.map(|tenant| (tenant.to_owned(), 0)).into();
        Machines { folder, desired, floors: BTreeMap::new() }
    }

    fn port(&self, dpu: &str, port: &str) -> Option<Port> {
        let file = self.folder.join(format!("{RACK}.{dpu}")).join(format!("{port}.record"));
        let record: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        let entry = &record["entry"];
        let tenant = entry["tenant"].as_str().map(str::to_owned);
        let epoch = entry["epoch"].as_i64().unwrap_or_default();
        let open = tenant.map(|tenant| Open { tenant, epoch });
        Some(Port { open, floor: record["floor"].as_i64().unwrap_or_default() })
    }

    /// Reads the records; what must never be in them.
    pub(crate) fn judge(&mut self) -> Vec<String> {
        let mut broken = Vec::new();
        for (name, ports) in MACHINES {
            for (dpu, port) in ports {
                let Some(read) = self.port(dpu, port) else { continue };
                let of = format!("port {port} of {dpu} ({name})");
                let before = self.floors.insert(of.clone(), read.floor).unwrap_or(i64::MIN);
                if read.floor < before {
                    broken.push(format!("the floor of {of} fell from {before} to {}", read.floor));
                }
                if read.open.as_ref().is_some_and(|open| open.epoch <= read.floor) {
                    broken.push(format!("{of} is open at or under its floor: {read:?}"));
                }
                broken.extend(self.differs(dpu, port, ports));
            }
        }
        broken
    }

    /// Whether another port of the same machine is open for another tenant at one moment: this one is read again, since
    /// the machine may change its tenant between two reads.
    fn differs(&self, dpu: &str, port: &str, ports: &[(&str, &str)]) -> Option<String> {
        let first = self.port(dpu, port)?.open?;
        for (other_dpu, other_port) in ports {
            let other = self.port(other_dpu, other_port).and_then(|read| read.open);
            let Some(other) = other.filter(|other| other.tenant != first.tenant) else { continue };
            if self.port(dpu, port).and_then(|read| read.open).as_ref() == Some(&first) {
                return Some(format!(
                    "{dpu}/{port} is open for {first:?}, and {other_dpu}/{other_port} for {other:?}"
                ));
            }
        }
        None
    }

    /// What is missing until every tenant has the machines that it asks for, and no port is open for anybody else.
    pub(crate) fn waits(&self, client: &Client) -> Option<String> {
        self.compare(client).unwrap_or_else(|error| Some(format!("{error:#}")))
    }

    fn compare(&self, client: &Client) -> anyhow::Result<Option<String>> {
        let mut uids = BTreeMap::new();
        for tenant in TENANTS {
            let found = client.get(&format!("{GROUP}/tenants/{tenant}"))?;
            let uid = found["metadata"]["uid"].as_str().context("a tenant is not there")?;
            uids.insert(tenant.to_owned(), uid.to_owned());
        }
        let mut have: BTreeMap<String, u64> = TENANTS.map(|tenant| (tenant.to_owned(), 0)).into();
        for (name, ports) in MACHINES {
            let status = client.get(&format!("{GROUP}/physicalnodes/{name}"))?["status"].clone();
            let tenant = status["assignment"]["tenant"]["name"].as_str();
            let is_wrong = match tenant {
                Some(_) => !is_true(&status, "NetworkReady"),
                None => status["phase"] != "Available",
            };
            if is_wrong {
                return Ok(Some(format!("{name}: {status}")));
            }
            if let Some(count) = tenant.and_then(|tenant| have.get_mut(tenant)) {
                *count += 1;
            }
            let uid = tenant.and_then(|tenant| uids.get(tenant));
            for (dpu, port) in ports {
                let read = self.port(dpu, port);
                let open = read.as_ref().and_then(|read| read.open.as_ref());
                if open.map(|open| &open.tenant) != uid {
                    return Ok(Some(format!("{name} is {tenant:?}'s; {dpu}/{port}: {read:?}")));
                }
            }
        }
        let wrong = || format!("tenants have {have:?} machines and ask for {:?}", self.desired);
        Ok((have != self.desired).then(wrong))
    }
}

fn is_true(status: &Value, condition: &str) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == condition && it["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tenants_and_what_is_open_under_its_floor_are_found() {
        let folder = std::env::temp_dir().join(format!("records-{}", std::process::id()));
        let write = |dpu: &str, port: &str, tenant: &str, floor: i64| {
            let at = folder.join(format!("{RACK}.{dpu}"));
            std::fs::create_dir_all(&at).expect("it is ours");
            let record = json!({"floor": floor, "entry": {"tenant": tenant, "epoch": 2}});
            let written = std::fs::write(at.join(format!("{port}.record")), record.to_string());
            written.expect("it is ours");
        };
        let mut machines = Machines::of(folder.clone());
        assert!(machines.judge().is_empty(), "nothing is there");
        write("d1", "p2", "blue", 1);
        write("d2", "p1", "blue", 1);
        assert!(machines.judge().is_empty());
        write("d2", "p1", "green", 1);
        let found = machines.judge();
        assert!(found.iter().any(|it| it.contains("d2/p1")), "{found:?}");
        write("d2", "p1", "blue", 2);
        let found = machines.judge();
        assert!(found.iter().any(|it| it.contains("under its floor")), "{found:?}");
        write("d2", "p1", "blue", 0);
        let found = machines.judge();
        assert!(found.iter().any(|it| it.contains("fell from 2 to 0")), "{found:?}");
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
