//! Machines and their DPUs, as `interlock up` serves them with the local driver. What a port is open for is read from the
//! files of the driver, and not from what anybody reports.

mod elsewhere;
mod fenced;
mod tampered;
mod undrained;

use super::fleet::{GROUP, interlock, metrics_of, run, until};
use super::processes::signal;
use super::registering::Up;
use serde_json::{Value, json};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "interlock.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn post(up: &Up, plural: &str, body: &Value) {
    up.process.client().must("POST", &format!("{GROUP}/{plural}"), Some(body));
}

/// What the hub says to an object that it refuses.
fn refusal(up: &Up, plural: &str, body: &Value) -> String {
    let answer = up.process.client().call("POST", &format!("{GROUP}/{plural}"), Some(body));
    let answer = answer.expect("the hub answers");
    assert!((400..500).contains(&answer.status), "{}: {}", answer.status, answer.text);
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

fn wired(rack: &str, ports: &[(&str, &str)]) -> Value {
    let port = |(number, (dpu, port)): (usize, &(&str, &str))| {
        let mac = format!("02:00:00:00:{:02x}:{number:02x}", port.len() + number);
        json!({"rack": rack, "dpu": dpu, "port": port, "mac": mac})
    };
    json!({"rack": rack, "dpus": ports.iter().enumerate().map(port).collect::<Vec<_>>()})
}

/// A rack with two DPUs, machines n1 (at d1) and n2 (at both), and tenants blue and green.
fn fleet() -> Up {
    let up = Up::start();
    let dpus = json!([{"name": "d1", "vtep": "10.0.0.1"}, {"name": "d2", "vtep": "10.0.0.2"}]);
    let mut rack = object("Rack", "r1", &json!({"dpus": dpus}));
    rack["metadata"]["labels"] = json!({"interlock.dev/embedded": "true"});
    post(&up, "racks", &rack);
    post(&up, "physicalnodes", &object("PhysicalNode", "n1", &wired("r1", &[("d1", "p1")])));
    let both = wired("r1", &[("d1", "p2"), ("d2", "p1")]);
    post(&up, "physicalnodes", &object("PhysicalNode", "n2", &both));
    for tenant in ["blue", "green"] {
        let plane = json!({"plane": {"logicalCluster": tenant}, "nodeQuota": 2});
        post(&up, "tenants", &object("Tenant", tenant, &plane));
    }
    up
}

fn node(up: &Up, name: &str) -> Value {
    up.get(&format!("{GROUP}/physicalnodes/{name}"))
}

fn is(up: &Up, name: &str, phase: &str) -> Value {
    until(&format!("{name} is {phase}"), || {
        let found = node(up, name);
        if found["status"]["phase"] == phase {
            Ok(found)
        } else {
            Err(format!("{found:#}\n{}", up.process.says()))
        }
    })
}

/// The tenant that a port is open for, by the record of its driver.
fn open_for(up: &Up, dpu: &str, port: &str) -> Option<String> {
    let record = up.path("data").join("dpus").join(dpu).join(format!("{port}.record"));
    let record: Value = serde_json::from_slice(&std::fs::read(record).ok()?).ok()?;
    record["entry"]["tenant"].as_str().map(str::to_owned)
}

fn uid(up: &Up, path: &str) -> String {
    up.get(&format!("{GROUP}/{path}"))["metadata"]["uid"].as_str().expect("it is there").to_owned()
}

fn programmed(up: &Up, name: &str) -> Value {
    until(&format!("{name} is programmed"), || {
        let found = node(up, name);
        let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_ready =
            conditions.iter().any(|it| it["type"] == "NetworkReady" && it["status"] == "True");
        if is_ready { Ok(found) } else { Err(format!("{found:#}\n{}", up.process.says())) }
    })
}

#[test]
fn machines_go_to_a_tenant_and_come_back_and_no_dpu_has_two() {
    let up = fleet();
    is(&up, "n1", "Available");
    is(&up, "n2", "Available");
    up.run(&["node", "assign", "blue/web", "--count", "2", "--wait", "--timeout", "120s"]);
    let (blue, green) = (uid(&up, "tenants/blue"), uid(&up, "tenants/green"));
    for (dpu, port) in [("r1.d1", "p1"), ("r1.d1", "p2"), ("r1.d2", "p1")] {
        assert_eq!(open_for(&up, dpu, port).as_deref(), Some(blue.as_str()), "{dpu}/{port}");
    }
    let list: Value =
        serde_json::from_str(&up.run(&["node", "list", "-o", "json"])).expect("it is JSON");
    assert!(list.as_array().is_some_and(|rows| rows.iter().all(|row| row["tenant"] == "blue")));
    // A programmed machine is taken back without any failure, and goes to the other tenant. The claim of the first
    // still asks for two, and gets what is free again.
    up.run(&["node", "assign", "blue/web", "--count", "1"]);
    let freed = until("one of them is back", || {
        let free =
            ["n1", "n2"].into_iter().find(|name| node(&up, name)["status"]["phase"] == "Available");
        free.ok_or_else(|| up.process.says())
    });
    up.run(&["node", "assign", "green/web", "--wait", "--timeout", "120s"]);
    let found = programmed(&up, freed);
    assert_eq!(found["status"]["assignment"]["tenant"]["name"], "green");
    assert_eq!(found["status"]["epoch"], 2);
    let ports = found["spec"]["dpus"].as_array().cloned().unwrap_or_default();
    for port in ports {
        let dpu = format!("r1.{}", port["dpu"].as_str().unwrap_or_default());
        let open = open_for(&up, &dpu, port["port"].as_str().unwrap_or_default());
        assert_eq!(open.as_deref(), Some(green.as_str()), "{dpu}");
    }
    up.run(&["node", "explain", freed]);
    up.end();
}

#[test]
fn what_cannot_be_is_refused_with_what_would_be_right() {
    let up = fleet();
    let elsewhere = json!({"rack": "r1", "dpus": [
        {"rack": "r2", "dpu": "d1", "port": "p9", "mac": "02:00:00:00:00:09"}]});
    let said = refusal(&up, "physicalnodes", &object("PhysicalNode", "n9", &elsewhere));
    assert!(said.contains("r2/d1") && said.contains("rack r1"), "{said}");
    // A port that an older machine has, and a DPU that the rack does not have: never assigned. Ages are whole seconds.
    thread::sleep(Duration::from_millis(1_100));
    post(&up, "physicalnodes", &object("PhysicalNode", "n3", &wired("r1", &[("d1", "p1")])));
    post(&up, "physicalnodes", &object("PhysicalNode", "n4", &wired("r1", &[("d9", "p1")])));
    for name in ["n3", "n4"] {
        until(&format!("{name} is inconsistent"), || {
            let found = node(&up, name);
            let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let bad = conditions.into_iter().find(|it| it["type"] == "ConfigurationConsistent");
            match bad {
                Some(bad) if bad["status"] == "False" => Ok(()),
                _ => Err(format!("{found:#}\n{}", up.process.says())),
            }
        });
    }
    let fence = json!({"node": {"name": "n1", "uid": "x"}, "epoch": 0, "phaseSince": "2001-01-01T00:00:00Z",
        "attestation": "AcceptUndrained", "reason": "short", "requester": "kim"});
    let said = refusal(&up, "nodefences", &object("NodeFence", "f", &fence));
    assert!(said.contains("spec.reason"), "{said}");
    up.end();
}

#[test]
fn a_machine_whose_dpu_is_off_comes_back_by_a_declaration_and_not_by_time() {
    let up = fleet();
    // Nobody runs the agent of this rack's DPU.
    let dpus = json!([{"name": "d1", "vtep": "10.0.1.1"}]);
    let fencing = json!({"afterSeconds": 1});
    post(&up, "racks", &object("Rack", "dark", &json!({"dpus": dpus, "fencing": fencing})));
    post(&up, "physicalnodes", &object("PhysicalNode", "n5", &wired("dark", &[("d1", "p1")])));
    let found = is(&up, "n5", "Releasing");
    assert_eq!(found["status"]["floor"], 0);
    let fence = |epoch: &str| {
        let mut command = interlock();
        command.args(["node", "fence", "n5", "--dpu", "dark/d1", "--epoch", epoch, "--yes"]);
        command.args([
            "--attest",
            "dpu-powered-off",
            "--reason",
            "the DPU was taken out of the rack",
        ]);
        command.arg("--kubeconfig").arg(up.path("config"));
        run(command)
    };
    let wrong = fence("3");
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("the epoch of n5 is 0"), "{wrong:?}");
    let right = fence("0");
    assert_eq!(right.code, Some(0), "{right:?}\n{}", up.process.says());
    is(&up, "n5", "Available");
    up.end();
}

/// The cluster west runs on machine n1 of blue, and has a namespace that has nowhere else to go; the path of the cluster.
fn west_on_a_machine(up: &Up) -> String {
    is(up, "n1", "Available");
    up.run(&["node", "assign", "blue/web", "--machine", "n1", "--wait", "--timeout", "120s"]);
    let bound = is(up, "n1", "Bound");
    let machine = json!({"node": {"name": "n1", "uid": bound["metadata"]["uid"]}, "epoch": 1});
    let west = format!("{GROUP}/workloadclusters/west");
    let machines = json!({"spec": {"machines": [machine]}});
    up.process.client().must("PATCH", &west, Some(&machines));
    until("the machine knows its cluster", || {
        let found = node(up, "n1");
        if found["status"]["cluster"]["name"] == "west" {
            Ok(())
        } else {
            Err(format!("{found:#}"))
        }
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"interlock.dev/placed": "true"}}});
    up.process.client().must("POST", "/api/v1/namespaces", Some(&namespace));
    until("west owns the namespace", || {
        let grants = up.get(&format!("{GROUP}/grants"));
        let is_granted = grants["items"][0]["status"]["phase"] == "Granted";
        if is_granted { Ok(()) } else { Err(format!("{grants:#}")) }
    });
    west
}

#[test]
fn a_machine_that_runs_a_cluster_is_released_once_the_cluster_is_empty() {
    let up = fleet();
    let west = west_on_a_machine(&up);
    up.run(&["node", "reclaim", "n1"]);
    is(&up, "n1", "Draining");
    until("west says what keeps it", || {
        let cluster = up.get(&west);
        let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let drained = conditions.into_iter().find(|it| it["type"] == "Drained");
        match drained {
            Some(drained) if drained["status"] == "False" && drained["reason"] == "GrantsLeft" => {
                Ok(())
            }
            _ => Err(format!("{cluster:#}")),
        }
    });
    // Its network stays until then.
    assert!(open_for(&up, "r1.d1", "p1").is_some());
    assert_eq!(node(&up, "n1")["status"]["floor"], 0);
    up.delete("/api/v1/namespaces/shop");
    let back = until("n1 is released", || {
        let found = node(&up, "n1");
        if found["status"]["floor"] == 1 {
            Ok(found)
        } else {
            Err(format!("{found:#}\n{}", up.process.says()))
        }
    });
    assert!(back["status"]["undrainedBy"].is_null(), "nobody declared anything: {back:#}");
    until("the drain ends with it", || {
        let cluster = up.get(&west);
        if cluster["spec"]["drains"][0].is_null() { Ok(()) } else { Err(format!("{cluster:#}")) }
    });
    up.end();
}

/// The agents of a DPU, as processes of their own that share its records.
struct Agents {
    running: Vec<Child>,
    rack: &'static str,
    state: PathBuf,
    config: PathBuf,
}

impl Agents {
    fn of(up: &Up, dpu: &str) -> Agents {
        Agents::in_rack("r1", up, dpu)
    }

    fn in_rack(rack: &'static str, up: &Up, dpu: &str) -> Agents {
        let state = up.path(&format!("records-{rack}-{dpu}"));
        Agents { running: Vec::new(), rack, state, config: up.path("config") }
    }

    fn start(&mut self, dpu: &str) {
        let mut command = interlock();
        let here = format!("{}/{dpu}", self.rack);
        command.args(["dpu-agent", &here, "--state-dir"]).arg(&self.state);
        command.arg("--kubeconfig").arg(&self.config);
        command.args(["--metrics-listen", "127.0.0.1:0"]);
        let log = File::options().create(true).append(true).open(self.log());
        let log = log.expect("the directory is ours");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.running.push(command.spawn().expect("the binary runs"));
    }

    fn kill(&mut self, number: usize) {
        let mut child = self.running.remove(number);
        child.kill().expect("it is our child");
        child.wait().expect("it is our child");
    }

    fn log(&self) -> PathBuf {
        self.state.with_extension("log")
    }

    /// How many objects of a kind the last one that was started keeps of the hub.
    fn kept(&self, kind: &str) -> usize {
        let page = metrics_of(&self.log());
        let labels = format!("interlock_shell_cache_objects{{server=\"hub\",kind=\"{kind}\"");
        let line = page.lines().find(|line| line.starts_with(&labels));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
    }

    /// The file of the record of a port.
    fn record(&self, dpu: &str, port: &str) -> PathBuf {
        self.state.join(format!("{}.{dpu}", self.rack)).join(format!("{port}.record"))
    }

    /// The tenant and the epoch that a port is open for, and its floor.
    fn port(&self, dpu: &str, port: &str) -> Option<(Option<(String, i64)>, i64)> {
        let file = self.record(dpu, port);
        let record: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        let entry = &record["entry"];
        let tenant = entry["tenant"].as_str().map(str::to_owned);
        let open = tenant.map(|tenant| (tenant, entry["epoch"].as_i64().unwrap_or_default()));
        Some((open, record["floor"].as_i64().unwrap_or_default()))
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        for child in &mut self.running {
            signal(child.id(), "CONT");
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Ends the watch, also where a test fails: a thread of a scope is waited for.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Looks at the records of a machine with two ports while all goes on, and keeps what must never be.
fn watch(agents: [&Agents; 2], is_over: &AtomicBool) -> Vec<String> {
    let [first, second] = agents;
    let (mut seen, mut floor) = (Vec::new(), [0; 2]);
    while !is_over.load(Ordering::Relaxed) {
        // The first is read again: between two reads a machine may change its tenant.
        let reads = [first.port("d1", "p2"), second.port("d2", "p1"), first.port("d1", "p2")];
        if let [Some((Some(one), _)), Some((Some(other), _)), Some((Some(again), _))] = &reads
            && one == again
            && one.0 != other.0
        {
            seen.push(format!("d1 is open for {one:?}, and d2 for {other:?}"));
        }
        for (number, read) in reads.iter().take(2).enumerate() {
            let Some((open, now)) = read else { continue };
            if *now < floor[number] {
                seen.push(format!(
                    "the floor of port {number} fell from {} to {now}",
                    floor[number]
                ));
            }
            floor[number] = *now;
            if open.as_ref().is_some_and(|(_, epoch)| epoch <= now) {
                seen.push(format!(
                    "port {number} is open for {open:?}, at or under its floor {now}"
                ));
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    seen
}

/// Two agents for each of two DPUs; one of them is stopped or killed whenever the machine changes its tenant.
#[test]
fn a_machine_changes_its_tenant_under_kills_and_no_moment_has_two() {
    let up = fleet();
    let dpus = json!([{"name": "d1", "vtep": "10.0.0.1"}, {"name": "d2", "vtep": "10.0.0.2"}]);
    let patch =
        json!({"metadata": {"labels": {"interlock.dev/embedded": null}}, "spec": {"dpus": dpus}});
    up.process.client().must("PATCH", &format!("{GROUP}/racks/r1"), Some(&patch));
    let mut agents = [Agents::of(&up, "d1"), Agents::of(&up, "d2")];
    let names = ["d1", "d2"];
    for (agents, name) in agents.iter_mut().zip(names) {
        agents.start(name);
        agents.start(name);
    }
    is(&up, "n2", "Available");
    let is_over = AtomicBool::new(false);
    let watched = [Agents::of(&up, "d1"), Agents::of(&up, "d2")];
    let broken = thread::scope(|scope| {
        let watching = scope.spawn(|| watch([&watched[0], &watched[1]], &is_over));
        let ends = Ends(&is_over);
        for round in 0..6 {
            let (from, to) = if round % 2 == 0 { ("green", "blue") } else { ("blue", "green") };
            up.run(&["node", "assign", &format!("{from}/web"), "--count", "0"]);
            let at = round % 2;
            // One agent wakes up late, with what it had read; another one dies.
            let late = agents[at].running[0].id();
            signal(late, "STOP");
            agents[1 - at].kill(0);
            agents[1 - at].start(names[1 - at]);
            up.run(&["node", "assign", &format!("{to}/web"), "--machine", "n2"]);
            // It may have been stopped with the lock of a port, so nothing is waited for before it goes on.
            thread::sleep(Duration::from_millis(1_500));
            signal(late, "CONT");
            until(&format!("n2 is {to}'s"), || {
                let found = node(&up, "n2");
                let is_its = found["status"]["assignment"]["tenant"]["name"] == to;
                if is_its { Ok(()) } else { Err(format!("{found:#}")) }
            });
            programmed(&up, "n2");
        }
        drop(ends);
        watching.join().expect("nobody panics there")
    });
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(node(&up, "n2")["status"]["epoch"].as_i64() >= Some(6));
    drop(agents);
    up.end();
}
