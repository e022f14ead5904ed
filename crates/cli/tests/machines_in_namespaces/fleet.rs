//! The hub with the control planes of its tenants, the controllers, and the agents of the DPUs with accounts of their own.

use crate::harness::{DataDirectory, Process, TOKEN, interlock, until, write_kubeconfig};
use crate::net::Running;
use crate::rack::{HUB, Rack};
use serde_json::{Value, json};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

const GROUP: &str = "/apis/interlock.dev/v1alpha1";
const BOOT_BEFORE: &str = "the boot before the loss of power";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tenant {
    Blue,
    Green,
}

impl Tenant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tenant::Blue => "blue",
            Tenant::Green => "green",
        }
    }

    /// Its control plane.
    fn plane(self) -> String {
        format!("/clusters/{}", self.name())
    }
}

/// What is dropped first is killed first.
pub(crate) struct Fleet {
    agents: [Option<Running>; 2],
    programs: Vec<Running>,
    hub: Process,
    pub(crate) rack: Rack,
    at: DataDirectory,
}

fn own(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "interlock.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

/// Lets the DPUs reach the hub, which listens on loopback only.
fn pass_on(hub: SocketAddr) {
    let listener = TcpListener::bind(HUB).unwrap();
    thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let far = TcpStream::connect(hub).unwrap();
            let ways = [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)];
            for (mut from, mut to) in ways {
                thread::spawn(move || {
                    // Whoever ends it, the other end learns of it.
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
}

impl Fleet {
    pub(crate) fn start() -> Fleet {
        let (rack, at) = (Rack::new(), DataDirectory::new());
        let hub = at.start();
        pass_on(hub.address());
        write_kubeconfig(&at.path("admin.config"), &hub.address().to_string(), TOKEN);
        let mut fleet = Fleet { agents: [None, None], programs: Vec::new(), hub, rack, at };
        fleet.fill();
        let admin = fleet.at.path("admin.config");
        let line = format!("controllers --machines --no-install --kubeconfig {}", admin.display());
        let controllers = fleet.program("controllers", &line);
        fleet.programs.push(controllers);
        fleet.start_agent(1);
        fleet.start_agent(2);
        fleet
    }

    /// Where a test may put files.
    pub(crate) fn folder(&self) -> PathBuf {
        self.at.path("")
    }

    fn program(&self, name: &str, line: &str) -> Running {
        let (home, log) = (self.at.path("home"), self.log(name));
        let binary = interlock().get_program().to_string_lossy().into_owned();
        self.rack.here.start(&format!(
            "env HOME={} NO_COLOR=1 {binary} {line} 2>>{}",
            home.display(),
            log.display()
        ))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.at.path(&format!("{name}.log"))
    }

    fn logs(&self) -> String {
        let read = |name| std::fs::read_to_string(self.log(name)).unwrap_or_default();
        ["controllers", "d1", "d2"].map(|name| format!("{name}:\n{}", read(name))).join("\n")
    }

    fn fill(&self) {
        for args in [&["hub"][..], &["dpu", "r1/d1"], &["dpu", "r1/d2"]] {
            self.hub.client().apply_manifests("", args);
        }
        for tenant in [Tenant::Blue, Tenant::Green] {
            let name = tenant.name();
            self.hub.client().make("", &own("LogicalCluster", name, &json!({})));
            self.hub.client().apply_manifests(
                &tenant.plane(),
                &["tenant", name, "--dpu", "r1/d1", "--dpu", "r1/d2"],
            );
            self.hub
                .client()
                .make("", &own("Tenant", name, &json!({"plane": {"logicalCluster": name}})));
        }
        let dpus =
            json!([{"name": "d1", "vtep": "192.0.2.1"}, {"name": "d2", "vtep": "192.0.2.2"}]);
        let rack = json!({"dpus": dpus, "fencing": {"afterSeconds": 5}});
        self.hub.client().make("", &own("Rack", "r1", &rack));
        for machine in &self.rack.machines {
            self.hub.client().make("", &own("PhysicalNode", &machine.name, &machine.spec()));
        }
    }

    /// A kubeconfig with a token of an account, for where the DPUs see the hub.
    fn admit(&self, cluster: &str, account: &str, file: &Path) {
        let token = self.hub.client().token_of(cluster, account);
        write_kubeconfig(file, &format!("{HUB}{cluster}"), &token);
    }

    /// Starts the agent of a DPU, counted from 1, in the namespace of the DPU.
    pub(crate) fn start_agent(&mut self, number: usize) {
        let dpu = format!("d{number}");
        let account = format!("interlock-dpu-r1.{dpu}");
        let config = self.at.path(&format!("{dpu}.config"));
        self.admit("", &account, &config);
        let tenants = self.at.path(&format!("{dpu}-tenants"));
        std::fs::create_dir_all(&tenants).unwrap();
        for tenant in [Tenant::Blue, Tenant::Green] {
            self.admit(&tenant.plane(), &account, &tenants.join(tenant.name()));
        }
        let line = format!(
            "dpu-agent r1/{dpu} --driver linux --port p1 --port p2 --network-namespace {} \
             --state-dir {} --kubeconfig {} --tenants-dir {}",
            self.rack.namespace(number).display(),
            self.at.path(&dpu).display(),
            config.display(),
            tenants.display()
        );
        self.agents[number - 1] = Some(self.program(&dpu, &line));
    }

    /// The first DPU loses its power: what is left is what its disk has.
    pub(crate) fn power_off(&mut self) {
        drop(self.agents[0].take());
        self.rack.forget();
        for port in ["p1", "p2"] {
            let file = self.at.path("d1").join(format!("{port}.record"));
            let text = std::fs::read(&file).unwrap();
            let mut record: Value = serde_json::from_slice(&text).unwrap();
            record["boot"] = json!(BOOT_BEFORE);
            std::fs::write(&file, record.to_string()).unwrap();
        }
    }

    /// A machine, counted from 0, when this is true of it.
    pub(crate) fn machine(&self, number: usize, holds: impl Fn(&Value) -> bool) -> Value {
        let name = &self.rack.machines[number].name;
        until(name, || {
            let path = format!("{GROUP}/physicalnodes/{name}");
            let found = self.hub.client().call("GET", &path, None);
            let found = found.map_err(|why| why.to_string())?.json();
            if holds(&found) { Ok(found) } else { Err(format!("{found:#}\n{}", self.logs())) }
        })
    }

    pub(crate) fn is_in_the_pool(&self, number: usize) {
        self.machine(number, |it| it["status"]["phase"] == "Available");
    }

    /// Waits until a machine is a tenant's, at this epoch.
    pub(crate) fn is_of(&self, number: usize, tenant: Tenant, epoch: i64) -> Value {
        self.machine(number, |it| {
            let status = &it["status"];
            status["phase"] == "Bound"
                && status["epoch"] == epoch
                && status["assignment"]["tenant"]["name"] == tenant.name()
        })
    }

    /// Waits until a machine is programmed for a tenant, at this epoch.
    pub(crate) fn is_programmed(&self, number: usize, tenant: Tenant, epoch: i64) {
        self.is_of(number, tenant, epoch);
        let said = format!("programmed for epoch {epoch}");
        self.machine(number, |it| {
            let ready = condition(it, "NetworkReady");
            let message = ready["message"].as_str().unwrap_or_default();
            ready["status"] == "True" && message.ends_with(&said)
        });
    }

    /// Waits until the release of the first machine waits for the first DPU, and says so.
    pub(crate) fn is_blocked(&self, epoch: i64) {
        let blocked = self.machine(0, |it| {
            let (status, said) = (&it["status"], condition(it, "ReleaseBlocked"));
            status["phase"] == "Releasing" && status["floor"] == epoch && said["status"] == "True"
        });
        let said = condition(&blocked, "ReleaseBlocked");
        assert_eq!(said["reason"], "DpuSilent");
        let next = said["next"].as_str().unwrap_or_default();
        assert!(next.contains(&format!("node fence n1 --dpu r1/d1 --epoch {epoch}")), "{next}");
        assert_eq!(blocked["status"]["epoch"], epoch, "nobody else has it");
    }

    fn claim_name(&self, number: usize, epoch: i64) -> String {
        format!("{}-{epoch}", self.rack.machines[number].name)
    }

    /// A tenant asks for a machine, which it is to have at this epoch.
    pub(crate) fn claim(&self, number: usize, tenant: Tenant, epoch: i64) {
        let machine = &self.rack.machines[number];
        let addresses = json!([{"node": machine.name, "addresses": machine.addresses}]);
        let spec = json!({"count": 1, "nodeNames": [machine.name], "addresses": addresses});
        let claim = own("NodeClaim", &self.claim_name(number, epoch), &spec);
        self.hub.client().make(&tenant.plane(), &claim);
    }

    /// A tenant gives a machine back that it has at this epoch.
    pub(crate) fn give_back(&self, number: usize, tenant: Tenant, epoch: i64) {
        let claim = self.claim_name(number, epoch);
        let path = format!("{}{GROUP}/nodeclaims/{claim}", tenant.plane());
        self.hub.client().must("DELETE", &path, None);
    }

    /// A person declares that the first DPU is off.
    pub(crate) fn fence(&self, epoch: i64) {
        let mut command = interlock();
        command.args(["node", "fence", "n1", "--dpu", "r1/d1", "--epoch", &epoch.to_string()]);
        command.args(["--attest", "dpu-powered-off", "--reason", "it is out of the rack", "--yes"]);
        command.arg("--kubeconfig").arg(self.at.path("admin.config"));
        let said = command.env("HOME", self.at.path("home")).output().unwrap();
        assert!(said.status.success(), "{said:?}\n{}", self.logs());
    }
}
