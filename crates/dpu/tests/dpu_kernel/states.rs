//! What is read of a port through its life.

use crate::agent::Stop;
use crate::scene::{NODE, OTHER, Scene, entry, entry_in};
use serde_json::json;
use std::path::Path;

pub(crate) fn opened_and_closed() {
    let scene = Scene::new();
    let mut agent = scene.agent();
    let port = agent.read("p1");
    assert_eq!((&port["gate"], &port["record"]["floor"]), (&json!("Closed"), &json!(0)));
    assert_eq!(port["record"]["node"], json!(null));

    agent.done("adopt", "p1", &format!("{NODE} 1"));
    let refused = agent.act("attach", "p1", &entry(1));
    assert!(refused.starts_with("refused AtOrUnderTheFloor"), "{refused}");
    let refused = agent.act("attach", "p1", &entry(2).replace(NODE, OTHER));
    assert!(refused.starts_with("refused NodeDiffers"), "{refused}");
    agent.done("attach", "p1", &entry(2));
    assert_eq!(scene.link("p1"), (true, "ilb4096".to_owned()));
    let open = agent.read("p1")["gate"]["Open"].clone();
    assert_eq!(open["addresses"], json!(["10.0.0.2", "fd00::1", "10.0.0.1"]), "in their order");
    assert_eq!((&open["vni"], &open["tag"]["epoch"]), (&json!(4096), &json!(2)));
    let alias = scene.dpu.run("cat /sys/class/net/p1/ifalias 2>/dev/null || ip link show p1");
    assert!(alias.contains("interlock vni=4096 epoch=2 node=5f0d3c3e"), "{alias}");
    let refused = agent.act("attach", "p1", &entry(3));
    assert!(refused.starts_with("refused PortNotClosed"), "{refused}");

    // Another agent of the same DPU reads the same.
    assert_eq!(scene.agent().read("p1")["gate"]["Open"], open);
    agent.done("isolate", "p1", &format!("{NODE} 1"));
    assert_eq!(agent.read("p1")["gate"]["Open"], open, "what is above the floor stays");
    agent.done("isolate", "p1", &format!("{NODE} 2"));
    assert_eq!(agent.read("p1")["gate"], json!("Closed"));
    assert_eq!(scene.link("p1"), (false, "none".to_owned()));
    agent.done("attach", "p1", &entry_in(3, 4097));
    agent.done("detach", "p1", &format!("{NODE} 2"));
    assert_eq!(scene.link("p1"), (true, "ilb4097".to_owned()), "another tag is left alone");
    agent.done("detach", "p1", &format!("{NODE} 3"));
    assert_eq!(scene.link("p1"), (false, "none".to_owned()));
    let refused = agent.ask("read eth0").unwrap();
    assert_eq!(
        refused,
        "refused NoSuchPort: port eth0 is not one that this agent may change; it has p1, p2"
    );
}

pub(crate) fn networks() {
    let scene = Scene::new();
    let mut agent = scene.agent();
    for (port, vni) in [("p1", 4096), ("p2", 70_000)] {
        agent.done("adopt", port, &format!("{NODE} 0"));
        agent.done("attach", port, &entry_in(1, vni));
    }
    let device = agent.device();
    assert_eq!(device["filter"], json!(null));
    let of =
        |vni: u32, vteps: &[&str], is_used| json!({"vni": vni, "vteps": vteps, "is_used": is_used});
    let both = ["192.0.2.2", "192.0.2.3"];
    assert_eq!(device["networks"], json!([of(4096, &both, true), of(70_000, &both, true)]));
    assert_eq!(device["ports"].as_array().unwrap().len(), 2);
    for port in device["ports"].as_array().unwrap() {
        assert_eq!(port["gate"]["Open"]["tag"]["epoch"], json!(1), "{port}");
    }
    assert_eq!(agent.ask("flood 4096 192.0.2.3,192.0.2.9").unwrap(), "ok");
    let line = agent.ask("read p1").unwrap();
    assert!(
        line.contains(r#""networks":[{"vni":4096,"vteps":["192.0.2.3","192.0.2.9"]"#),
        "{line}"
    );
    let refused = agent.ask("flood 4096 192.0.2.1").unwrap();
    assert!(
        refused.starts_with("refused Invalid: VTEP 192.0.2.1: it is this DPU's own"),
        "{refused}"
    );
    let refused = agent.ask("flood 5000 192.0.2.3").unwrap();
    assert!(refused.starts_with("refused NoSuchNetwork"), "{refused}");
    let refused = agent.ask("forget 4096").unwrap();
    assert!(refused.starts_with("refused NetworkInUse: port p1 is in network 4096"), "{refused}");
    agent.done("isolate", "p1", &format!("{NODE} 1"));
    assert_eq!(agent.device()["networks"][0]["is_used"], json!(false));
    assert_eq!(agent.ask("forget 4096").unwrap(), "ok");
    assert_eq!(agent.ask("forget 4096").unwrap(), "ok");
    assert_eq!(agent.device()["networks"], json!([of(70_000, &both, true)]));
    assert!(!scene.dpu.try_run("ip link show ilb4096").status.success());
    let forwarding = scene.dpu.run("cat /proc/sys/net/ipv6/conf/ilb70000/disable_ipv6");
    assert_eq!(forwarding.trim(), "1");
    assert_eq!(scene.dpu.run("ip -o address show dev ilb70000").trim(), "", "it has no address");
}

pub(crate) fn without_nft() {
    let scene = Scene::new();
    let mut before = scene.agent();
    for port in ["p1", "p2"] {
        before.done("adopt", port, &format!("{NODE} 1"));
    }
    before.done("attach", "p2", &entry(2));
    let mut agent = scene.agent_with(Path::new("/nowhere/nft"), Stop::Never, "one");
    let filter = agent.device()["filter"].clone();
    assert_eq!(filter["reason"], json!("NoPacketFilter"));
    let words = filter["message"].as_str().unwrap();
    assert!(words.contains("cannot start /nowhere/nft") && words.contains("install"), "{words}");
    let refused = agent.act("attach", "p1", &entry(2));
    assert!(refused.starts_with("refused NoPacketFilter"), "{refused}");
    assert_eq!(scene.link("p1"), (false, "none".to_owned()));
    let gate = agent.read("p2")["gate"].clone();
    assert!(gate["Foreign"].as_str().unwrap().starts_with("its rules cannot be read"), "{gate}");
    agent.done("isolate", "p2", &format!("{NODE} 2"));
    let port = agent.read("p2");
    assert_eq!((&port["gate"], &port["record"]["floor"]), (&json!("Closed"), &json!(2)));
    agent.done("adopt", "p1", &format!("{OTHER} 7"));
    assert_eq!(agent.read("p1")["record"]["floor"], json!(7));

    // An nft that may do nothing.
    let nft = crate::mode::script(
        scene.folder.path(),
        "nft",
        "#!/bin/sh\necho 'Error: Could not process rule: Operation not permitted' >&2\nexit 1\n",
    );
    let mut agent = scene.agent_with(&nft, Stop::Never, "one");
    let words = agent.device()["filter"]["message"].as_str().unwrap().to_owned();
    assert!(
        words.ends_with("nft says: Error: Could not process rule: Operation not permitted"),
        "{words}"
    );
}
