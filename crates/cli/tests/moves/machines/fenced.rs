//! A machine whose DPU loses power while it is programmed, until the DPU is back with an old disk.

use super::{Agents, Ends, fleet, is, node, object, post, programmed, uid, wired};
use crate::fleet::{GROUP, Said, condition, interlock, run, until};
use crate::registering::Up;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const BOOT_BEFORE: &str = "the boot before the loss of power";

/// A rack with one DPU, whose agent is a process of its own, and machine n5.
fn rack_apart(up: &Up) -> Agents {
    let dpus = json!([{"name": "d1", "vtep": "10.0.2.1"}]);
    let fencing = json!({"afterSeconds": 1});
    post(up, "racks", &object("Rack", "r2", &json!({"dpus": dpus, "fencing": fencing})));
    post(up, "physicalnodes", &object("PhysicalNode", "n5", &wired("r2", &[("d1", "p1")])));
    let mut agents = Agents::in_rack("r2", up, "d1");
    agents.start("d1");
    agents
}

/// Types the command that a condition says is next, with a reason.
pub(super) fn typed(up: &Up, next: &str) -> Said {
    let (_, line) = next.split_once("interlock ").expect("it names a command");
    let mut command = interlock();
    for word in line.split(' ') {
        let is_blank = word == "\"...\"";
        command.arg(if is_blank { "the DPU was taken out of the rack" } else { word });
    }
    command.arg("--yes").arg("--kubeconfig").arg(up.path("config"));
    run(command)
}

/// Nobody edits a declaration, not even who made it.
fn cannot_be_edited(up: &Up) {
    let fences = up.get(&format!("{GROUP}/nodefences"));
    let fence = &fences["items"][0];
    assert_eq!(fence["status"]["outcome"], "Applied", "{fences:#}");
    let path =
        format!("{GROUP}/nodefences/{}", fence["metadata"]["name"].as_str().expect("it has one"));
    for change in [json!({"reason": "another reason than before"}), json!({"epoch": 9})] {
        let body = json!({"spec": change});
        let answer = up.process.client().call("PATCH", &path, Some(&body));
        let answer = answer.expect("the hub answers");
        assert_eq!(answer.status, 422, "{}", answer.text);
        assert!(answer.text.contains("a NodeFence cannot be edited"), "{}", answer.text);
    }
    let now = up.get(&path);
    assert_eq!(now["spec"], fence["spec"]);
}

/// Whom a port is opened for after the loss of power, one after the other.
fn opened(record: &Path, is_over: &AtomicBool) -> Vec<(String, i64)> {
    let mut opened = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let read = std::fs::read(record).ok();
        let read: Value =
            read.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let entry = &read["entry"];
        if let Some(tenant) = entry["tenant"].as_str().filter(|_| read["boot"] != BOOT_BEFORE) {
            opened.push((tenant.to_owned(), entry["epoch"].as_i64().unwrap_or_default()));
            opened.dedup();
        }
        thread::sleep(Duration::from_millis(1));
    }
    opened
}

#[test]
fn a_programmed_machine_whose_dpu_dies_is_fenced_and_what_is_on_the_old_disk_opens_nothing() {
    let up = fleet();
    let mut agents = rack_apart(&up);
    is(&up, "n5", "Available");
    up.run(&["node", "assign", "blue/web", "--machine", "n5", "--wait", "--timeout", "120s"]);
    programmed(&up, "n5");
    let (blue, green) = (uid(&up, "tenants/blue"), uid(&up, "tenants/green"));
    assert_eq!(agents.port("d1", "p1"), Some((Some((blue, 1)), 0)));
    // Of two tenants, two racks and three machines it keeps what is its own.
    assert_eq!(["Tenant", "Rack", "PhysicalNode"].map(|kind| agents.kept(kind)), [1; 3]);
    let record = agents.record("d1", "p1");
    let disk = std::fs::read(&record).expect("it has a record");

    // The DPU loses power, and the tenant gives the machine back.
    agents.kill(0);
    up.run(&["node", "assign", "blue/web", "--count", "0"]);
    let next = until("the release is blocked", || {
        let found = node(&up, "n5");
        let blocked = condition(&found, "ReleaseBlocked");
        match blocked["next"].as_str().filter(|_| blocked["status"] == "True") {
            Some(next) => Ok(next.to_owned()),
            None => Err(format!("{found:#}\n{}", up.process.says())),
        }
    });
    let blocked = is(&up, "n5", "Releasing");
    assert_eq!((&blocked["status"]["epoch"], &blocked["status"]["floor"]), (&json!(1), &json!(1)));
    assert!(next.contains("node fence n5 --dpu r2/d1 --epoch 1"), "{next}");
    let fenced = typed(&up, &next);
    assert_eq!(fenced.code, Some(0), "{fenced:?}\n{}", up.process.says());
    is(&up, "n5", "Available");
    cannot_be_edited(&up);

    // The next tenant has it when the DPU is back, with the disk that it had when it was blue's.
    up.run(&["node", "assign", "green/web", "--machine", "n5"]);
    assert_eq!(is(&up, "n5", "Bound")["status"]["epoch"], 2);
    let mut old: Value = serde_json::from_slice(&disk).expect("it is JSON");
    assert_eq!(old["floor"], 0);
    old["boot"] = json!(BOOT_BEFORE);
    std::fs::write(&record, old.to_string()).expect("it is ours");
    let is_over = AtomicBool::new(false);
    let opened = thread::scope(|scope| {
        let watching = scope.spawn(|| opened(&record, &is_over));
        let ends = Ends(&is_over);
        agents.start("d1");
        programmed(&up, "n5");
        drop(ends);
        watching.join().expect("nobody panics there")
    });
    assert_eq!(opened, [(green, 2)], "it is opened for nobody else");

    // A tenant that has nothing here any more is nothing to the agent.
    up.run(&["node", "assign", "green/web", "--count", "0"]);
    is(&up, "n5", "Available");
    until("the agent keeps no tenant", || match agents.kept("Tenant") {
        0 => Ok(()),
        kept => Err(format!("{kept}: {:?}", std::fs::read_to_string(agents.log()))),
    });
    drop(agents);
    up.end();
}
