//! Who reaches whom.

use crate::agent::{Agent, Start, Stop};
use crate::net::Space;
use crate::rack::Rack;
use std::path::Path;

pub(crate) fn entered() {
    // Neither namespace is this process's own, so it has no right in the one without having entered the other.
    let space = Space::new(true);
    let folder = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(&Start {
        user: Some(space.file("user")),
        network: space.file("net"),
        folder: &folder.path().join("records"),
        boot: "one",
        vtep: "192.0.2.1",
        ports: "p1,p2",
        nft: Path::new("nft"),
        stop: Stop::Never,
    });
    let device = agent.device();
    assert_eq!(device["filter"], serde_json::Value::Null, "it may use the packet filter there");
    assert_eq!(device["ports"].as_array().map(Vec::len), Some(0), "no port is there");
}

pub(crate) fn isolated() {
    let mut rack = Rack::new();
    let reached = |rack: &Rack| {
        let mut reached = Vec::new();
        for (from, machine) in rack.machines.iter().enumerate() {
            for (to, other) in rack.machines.iter().enumerate().filter(|(to, _)| *to != from) {
                if machine.space.reaches(&other.addresses[1]) {
                    reached.push((from + 1, to + 1));
                }
            }
        }
        reached
    };
    assert_eq!(reached(&rack), [], "nothing passes before anybody opened a port");
    rack.open_all();
    assert_eq!(reached(&rack), [(1, 2), (2, 1), (3, 4), (4, 3)]);
    // Equal addresses in both tenants: each request reaches the machine of its own.
    let sniffers: Vec<_> = (0..4).map(|number| rack.sniff(number)).collect();
    for machine in &rack.machines {
        let other = if machine.addresses[0].ends_with('1') { "2" } else { "1" };
        for address in [format!("10.0.0.{other}"), format!("fd00::{other}")] {
            assert!(machine.space.reaches(&address), "{} reaches {address}", machine.mac);
        }
    }
    for (number, sniffer) in sniffers.iter().enumerate() {
        let hex = |number: usize| rack.machines[number].mac.replace(':', "");
        let lines = sniffer.lines();
        let from = |other: usize| lines.iter().any(|line| line.contains(&hex(other)[..]));
        let partner = number ^ 1;
        let strangers = (0..4).filter(|other| ![number, partner].contains(other));
        assert!(from(partner), "machine {} received nothing of its tenant", number + 1);
        for stranger in strangers {
            assert!(!from(stranger), "{} received a frame of {}", number + 1, stranger + 1);
        }
    }
    no_frame_reaches_the_dpu(&rack);
}

/// A machine knows the address of its bridge and of the DPU, and sends to them.
fn no_frame_reaches_the_dpu(rack: &Rack) {
    let bridge = rack.dpus[0].run("cat /proc/net/dev | grep -c ilb4096");
    assert_eq!(bridge.trim(), "1");
    let link = rack.dpus[0].run("ip -o link show ilb4096");
    let mac = link.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap();
    let machine = &rack.machines[0].space;
    machine.run(&format!(
        "ip route add 192.0.2.1/32 dev eth0 && ip neigh replace 192.0.2.1 lladdr {mac} dev eth0"
    ));
    assert!(!machine.try_run("ping -c 2 -W 1 192.0.2.1").status.success());
    let counted = rack.dpus[0].run("grep ^Icmp: /proc/net/snmp");
    let mut lines = counted.lines();
    let names = lines.next().unwrap().split(' ');
    let received = names.zip(lines.next().unwrap().split(' ')).find(|it| it.0 == "InEchos");
    assert_eq!(received, Some(("InEchos", "0")), "the DPU itself received a request");
    rack.machines[0].space.run("ip route delete 192.0.2.1/32 dev eth0");
}
