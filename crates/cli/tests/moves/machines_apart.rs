//! Machines on servers of one's own: the controllers and the agent of a DPU are processes of their own, with the accounts of
//! `interlock manifests` and no others.

use super::fleet::{GROUP, interlock, until, write_kubeconfig};
use super::harness::{DataDirectory, Process, TOKEN};
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SYSTEM: &str = "interlock-system";
const AGENT: &str = "interlock-dpu-r1.d1";

/// A server that is the hub and has the control planes of tenants, and the programs that work on it.
struct Apart {
    programs: Vec<Child>,
    hub: Process,
    at: DataDirectory,
}

impl Apart {
    fn start() -> Apart {
        let at = DataDirectory::new();
        let hub = at.start();
        Apart { programs: Vec::new(), hub, at }
    }

    /// A kubeconfig of an account, and where it is.
    fn kubeconfig(&self, cluster: &str, account: &str) -> PathBuf {
        let token = self.hub.client().token_of(cluster, account);
        let file = self.at.path(&format!("{}-{account}.config", cluster.replace('/', "-")));
        write_kubeconfig(&file, &format!("{}{cluster}", self.hub.address()), &token);
        file
    }

    /// A Secret of the hub that has this kubeconfig as an entry.
    fn keep(&self, secret: &str, key: &str, kubeconfig: &Path) {
        let text = std::fs::read_to_string(kubeconfig).expect("it was written");
        let object = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": secret, "namespace": SYSTEM}, "stringData": {key: text},
        });
        self.hub.client().make("", &object);
    }

    fn run(&mut self, name: &str, command: &mut Command) {
        let log = File::options().create(true).append(true).open(self.log(name));
        command.stderr(log.expect("the directory is ours")).env("HOME", self.at.path("home"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.programs.push(command.spawn().expect("the binary runs"));
    }

    fn log(&self, name: &str) -> PathBuf {
        self.at.path(&format!("{name}.log"))
    }

    fn says(&self, name: &str) -> String {
        std::fs::read_to_string(self.log(name)).unwrap_or_default()
    }

    /// A machine, when this is true of it.
    fn machine(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        until(what, || {
            let path = format!("{GROUP}/physicalnodes/n1");
            let found = self.hub.client().call("GET", &path, None);
            let found = found.map_err(|why| why.to_string())?.json();
            let logs = || format!("{}\n{}", self.says("controllers"), self.says("agent"));
            if holds(&found) { Ok(found) } else { Err(format!("{found:#}\n{}", logs())) }
        })
    }

    /// The uid of the tenant that the port of the machine is open for, by the record of its driver.
    fn open_for(&self) -> Option<String> {
        let record = self.at.path("records").join("r1.d1").join("p1.record");
        let record: Value = serde_json::from_slice(&std::fs::read(record).ok()?).ok()?;
        record["entry"]["tenant"].as_str().map(str::to_owned)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        for program in &mut self.programs {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

fn own(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "interlock.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn is_programmed(machine: &Value) -> bool {
    let conditions = machine["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|it| it["type"] == "NetworkReady" && it["status"] == "True")
}

fn is_of(machine: &Value, tenant: &str) -> bool {
    machine["status"]["assignment"]["tenant"]["name"] == tenant
}

/// A fleet with one machine, two tenants, and an agent that has an account on the control plane of blue only.
fn fleet() -> Apart {
    let mut fleet = Apart::start();
    for args in [vec!["hub"], vec!["machines"], vec!["dpu", "r1/d1"]] {
        fleet.hub.client().apply_manifests("", &args);
    }
    for tenant in ["blue", "green"] {
        let plane = format!("/clusters/{tenant}");
        fleet.hub.client().make("", &own("LogicalCluster", tenant, &json!({})));
        let agents = if tenant == "blue" { vec!["--dpu", "r1/d1"] } else { Vec::new() };
        fleet.hub.client().apply_manifests(&plane, &[vec!["tenant", tenant], agents].concat());
        let secret = format!("tenant-{tenant}");
        fleet.keep(&secret, "kubeconfig", &fleet.kubeconfig(&plane, "interlock-machines"));
        let plane = json!({"kubeconfigSecret": {"namespace": SYSTEM, "name": secret}});
        fleet.hub.client().make("", &own("Tenant", tenant, &json!({"plane": plane})));
    }
    let tenants = format!("{AGENT}-tenants");
    fleet.keep(&tenants, "blue", &fleet.kubeconfig("/clusters/blue", AGENT));
    let dpus = json!([{"name": "d1", "vtep": "10.0.0.1"}]);
    fleet.hub.client().make("", &own("Rack", "r1", &json!({"dpus": dpus})));
    let port = json!({"rack": "r1", "dpu": "d1", "port": "p1", "mac": "02:00:00:00:00:01"});
    fleet.hub.client().make("", &own("PhysicalNode", "n1", &json!({"rack": "r1", "dpus": [port]})));
    let mut controllers = interlock();
    controllers.args(["controllers", "--machines", "--no-install", "--kubeconfig"]);
    controllers.arg(fleet.kubeconfig("", "interlock-controllers"));
    fleet.run("controllers", &mut controllers);
    let mut agent = interlock();
    agent.args(["dpu-agent", "r1/d1", "--tenants-secret", &tenants, "--state-dir"]);
    agent.arg(fleet.at.path("records")).arg("--kubeconfig").arg(fleet.kubeconfig("", AGENT));
    fleet.run("agent", &mut agent);
    fleet
}

#[test]
fn each_process_works_with_its_own_account_and_a_tenant_that_let_no_agent_in_is_not_programmed() {
    let fleet = fleet();
    fleet.machine("n1 is in the pool", |it| it["status"]["phase"] == "Available");
    fleet.hub.client().make("/clusters/blue", &own("NodeClaim", "web", &json!({"count": 1})));
    let found = fleet.machine("n1 is programmed", |it| is_of(it, "blue") && is_programmed(it));
    let uid = found["status"]["assignment"]["tenant"]["uid"].as_str().expect("it has one");
    assert_eq!(fleet.open_for().as_deref(), Some(uid));
    let path = format!("/clusters/blue{GROUP}/nodeclaims/web");
    fleet.hub.client().must("DELETE", &path, None);
    fleet.machine("n1 is back", |it| it["status"]["phase"] == "Available");
    assert_eq!(fleet.open_for(), None);
    fleet.hub.client().make("/clusters/green", &own("NodeClaim", "web", &json!({"count": 1})));
    fleet.machine("n1 is green's", |it| is_of(it, "green"));
    until("the agent says what is missing", || {
        let says = fleet.says("agent");
        if says.contains("has no entry `green`") { Ok(()) } else { Err(says) }
    });
    assert_eq!(fleet.open_for(), None);
    // Nobody asked for what their role does not allow.
    for name in ["controllers", "agent"] {
        let says = fleet.says(name);
        let refused = says.lines().find(|line| line.contains("cannot") && line.contains("User"));
        assert_eq!(refused, None, "{name}");
    }
}

#[test]
fn the_account_of_a_dpu_writes_its_own_report_and_lease_and_reads_its_own_secret() {
    let fleet = fleet();
    fleet.machine("n1 is in the pool", |it| it["status"]["phase"] == "Available");
    let text = std::fs::read_to_string(fleet.kubeconfig("", AGENT)).expect("it was written");
    let token = text.split("token: ").nth(1).and_then(|rest| rest.split('}').next());
    let token = token.expect("the kubeconfig has a token").to_owned();
    assert_ne!(token, TOKEN);
    let answer = |method: &str, path: &str| {
        let mut client = fleet.hub.client().with_token(Some(&token));
        let body = json!({});
        let body = (method != "GET").then_some(&body);
        client.call(method, path, body).expect("the hub answers").status
    };
    let (secrets, leases) = (
        format!("/api/v1/namespaces/{SYSTEM}/secrets"),
        format!("/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"),
    );
    for (method, path) in [
        ("PATCH", format!("{GROUP}/dpureports/r1.d1/status")),
        ("PATCH", format!("{leases}/dpu-r1.d1")),
        ("GET", format!("{secrets}/{AGENT}-tenants")),
        ("GET", format!("{GROUP}/racks")),
    ] {
        assert_eq!(answer(method, &path), 200, "{method} {path}");
    }
    for (method, path) in [
        ("PATCH", format!("{GROUP}/dpureports/r1.d2/status")),
        ("GET", format!("{GROUP}/dpureports")),
        ("PATCH", format!("{leases}/dpu-r1.d2")),
        ("PATCH", format!("{leases}/interlock-controllers")),
        ("POST", leases.clone()),
        ("GET", format!("{secrets}/tenant-blue")),
        ("GET", secrets.clone()),
        ("PATCH", format!("{GROUP}/physicalnodes/n1/status")),
        ("POST", format!("{GROUP}/nodefences")),
    ] {
        assert_eq!(answer(method, &path), 403, "{method} {path}");
    }
}
