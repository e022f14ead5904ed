//! The hub of the benchmark, over plain HTTP: what the platform team and the tenants write, and how far it is.

use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

const OWN: &str = "apis/interlock.dev/v1alpha1";
const MACHINES_IN_A_RACK: usize = 20;
const MACHINES_OF_A_TENANT: usize = 50;
/// The rack whose agent runs in a process of its own.
const APART: &str = "apart";
/// How many objects are listed at a time.
const PAGE: usize = 500;

/// How many of everything there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fleet {
    pub(super) machines: usize,
    racks: usize,
    tenants: usize,
}

impl Fleet {
    pub(super) fn of(machines: usize) -> Fleet {
        let racks = machines.div_ceil(MACHINES_IN_A_RACK);
        Fleet { machines, racks, tenants: machines.div_ceil(MACHINES_OF_A_TENANT) }
    }

    /// The racks, each with its first machine and the one after its last.
    fn racks(self) -> impl Iterator<Item = (String, std::ops::Range<usize>)> {
        (0..self.racks).map(move |rack| {
            let first = rack * MACHINES_IN_A_RACK;
            (format!("r{rack:03}"), first..self.machines.min(first + MACHINES_IN_A_RACK))
        })
    }

    /// The tenant that asks for the machines of a rack, in the first round and in the one after it.
    fn tenant(self, rack: usize, round: usize) -> String {
        format!("t{:03}", (rack + round) % self.tenants)
    }
}

pub(super) struct Hub {
    address: SocketAddr,
    token: String,
}

impl Hub {
    pub(super) fn new(address: SocketAddr, token: &str) -> Hub {
        Hub { address, token: token.to_owned() }
    }

    pub(super) fn kubeconfig(&self) -> String {
        let Hub { address, token } = self;
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: hub\n\
             clusters:\n- name: hub\n  cluster: {{server: \"http://{address}\"}}\n\
             contexts:\n- name: hub\n  context: {{cluster: hub, user: operator}}\n\
             users:\n- name: operator\n  user: {{token: {token}}}\n"
        )
    }

    pub(super) fn make_tenants(&self, fleet: Fleet) -> anyhow::Result<()> {
        for number in 0..fleet.tenants {
            let name = format!("t{number:03}");
            self.make("Tenant", "tenants", &name, &json!({"plane": {"logicalCluster": name}}))?;
        }
        Ok(())
    }

    /// Whether each tenant has a network, and a control plane that knows claims.
    pub(super) fn tenants_are_ready(&self, fleet: Fleet) -> anyhow::Result<bool> {
        let tenants = self.list(&format!("/{OWN}/tenants"))?;
        if tenants.iter().any(|tenant| tenant["status"]["vni"].is_null()) {
            return Ok(false);
        }
        for number in 0..fleet.tenants {
            let path = format!("/clusters/t{number:03}/{OWN}/nodeclaims?limit=1");
            if self.call("GET", &path, None)?.0 != 200 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn make_machines(&self, fleet: Fleet) -> anyhow::Result<()> {
        for (number, (rack, machines)) in fleet.racks().enumerate() {
            let vtep = format!("10.{}.{}.1", number / 250, number % 250);
            self.make_rack(&rack, &vtep, true)?;
            for machine in machines {
                self.make_machine(&rack, machine)?;
            }
        }
        Ok(())
    }

    /// A rack with as many machines as the others have, all of them its first tenant's.
    pub(super) fn make_rack_apart(&self, fleet: Fleet) -> anyhow::Result<()> {
        self.make_rack(APART, "10.255.0.1", false)?;
        for machine in fleet.machines..fleet.machines + MACHINES_IN_A_RACK {
            self.make_machine(APART, machine)?;
        }
        self.make_claim("t000", APART, MACHINES_IN_A_RACK)
    }

    pub(super) fn rack_apart_is_programmed(&self) -> anyhow::Result<bool> {
        let machines = self.list(&format!("/{OWN}/physicalnodes"))?;
        let mut apart = machines.iter().filter(|machine| machine["spec"]["rack"] == APART);
        Ok(apart.all(|machine| machine["status"]["phase"] == "Bound" && is_network_ready(machine)))
    }

    fn make_rack(&self, name: &str, vtep: &str, is_embedded: bool) -> anyhow::Result<()> {
        let rack = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "Rack",
            "metadata": {"name": name, "labels": {"interlock.dev/embedded": is_embedded.to_string()}},
            "spec": {"dpus": [{"name": "d1", "vtep": vtep}]},
        });
        self.must("POST", &format!("/{OWN}/racks"), Some(&rack)).map(drop)
    }

    fn make_machine(&self, rack: &str, number: usize) -> anyhow::Result<()> {
        let mac =
            format!("02:00:00:{:02x}:{:02x}:{:02x}", number >> 16, number >> 8 & 255, number & 255);
        let dpu = json!({"rack": rack, "dpu": "d1", "port": format!("p{number}"), "mac": mac});
        let spec = json!({"rack": rack, "dpus": [dpu]});
        self.make("PhysicalNode", "physicalnodes", &format!("n{number:05}"), &spec)
    }

    /// A claim for all machines of each rack, in the control plane of its tenant.
    pub(super) fn claim(&self, fleet: Fleet, round: usize) -> anyhow::Result<()> {
        for (number, (rack, machines)) in fleet.racks().enumerate() {
            self.make_claim(&fleet.tenant(number, round), &rack, machines.len())?;
        }
        Ok(())
    }

    fn make_claim(&self, tenant: &str, rack: &str, machines: usize) -> anyhow::Result<()> {
        let claim = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": rack},
            "spec": {"count": machines, "selector": {"rack": rack}},
        });
        let path = format!("/clusters/{tenant}/{OWN}/nodeclaims");
        self.must("POST", &path, Some(&claim)).map(drop)
    }

    pub(super) fn release(&self, fleet: Fleet, round: usize) -> anyhow::Result<()> {
        for (number, (rack, _)) in fleet.racks().enumerate() {
            let tenant = fleet.tenant(number, round);
            let path = format!("/clusters/{tenant}/{OWN}/nodeclaims/{rack}");
            self.must("DELETE", &path, None)?;
        }
        Ok(())
    }

    /// Whether all machines of the fleet are in this phase, and, if that is Bound, programmed.
    pub(super) fn all_are(&self, fleet: Fleet, phase: &str) -> anyhow::Result<bool> {
        let machines = self.list(&format!("/{OWN}/physicalnodes"))?;
        let of_fleet = machines.iter().filter(|machine| machine["spec"]["rack"] != APART);
        let is_done = |machine: &&Value| {
            machine["status"]["phase"] == phase && (phase != "Bound" || is_network_ready(machine))
        };
        Ok(of_fleet.filter(is_done).count() == fleet.machines)
    }

    /// Whether nobody claims anything but the rack apart, and no DPU is asked for anything else.
    pub(super) fn is_quiet(&self) -> anyhow::Result<bool> {
        let claims = self.list(&format!("/clusters/*/{OWN}/nodeclaims"))?;
        let attachments = self.list(&format!("/clusters/*/{OWN}/dpuattachments"))?;
        Ok(claims.iter().all(|claim| claim["metadata"]["name"] == APART)
            && attachments.iter().all(|attachment| attachment["spec"]["rack"] == APART))
    }

    /// What the controllers count.
    pub(super) fn metrics(&self) -> anyhow::Result<String> {
        let (status, page) = self.text("GET", "/metrics", None)?;
        if status != 200 {
            bail!("/metrics: {status}");
        }
        Ok(page)
    }

    fn make(&self, kind: &str, plural: &str, name: &str, spec: &Value) -> anyhow::Result<()> {
        let object = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        });
        self.must("POST", &format!("/{OWN}/{plural}"), Some(&object)).map(drop)
    }

    fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let (mut all, mut token) = (Vec::new(), String::new());
        loop {
            let page = self.must("GET", &format!("{path}?limit={PAGE}&continue={token}"), None)?;
            all.extend(page["items"].as_array().cloned().unwrap_or_default());
            match page["metadata"]["continue"].as_str().filter(|next| !next.is_empty()) {
                Some(next) => next.clone_into(&mut token),
                None => return Ok(all),
            }
        }
    }

    fn must(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let (status, answer) = self.call(method, path, body)?;
        if !(200..300).contains(&status) {
            bail!("{method} {path}: {status} {answer}");
        }
        Ok(answer)
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<(u16, Value)> {
        let (status, text) = self.text(method, path, body)?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::Null)))
    }

    fn text(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(u16, String)> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len(),
        );
        let mut stream = TcpStream::connect(self.address).context("cannot reach the hub")?;
        stream.write_all(request.as_bytes())?;
        // A server of HTTP 1.0 sends no chunks: the answer ends with the connection.
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).context("the hub does not answer")?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP")?;
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).context("no status")?;
        Ok((status, body.to_owned()))
    }
}

fn is_network_ready(machine: &Value) -> bool {
    let conditions = machine["status"]["conditions"].as_array();
    let is_ready = |it: &Value| it["type"] == "NetworkReady" && it["status"] == "True";
    conditions.is_some_and(|all| all.iter().any(is_ready))
}
