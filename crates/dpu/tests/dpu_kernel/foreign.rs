//! Interfaces and changes that are not ours.

use crate::agent::Agent;
use crate::scene::{NODE, Scene, entry, entry_in};
use serde_json::json;

pub(crate) fn interfaces() {
    let scene = Scene::new();
    scene.dpu.run("ip link add ilb5000 type bridge && ip link add ilx5001 type bridge");
    let before = scene.dpu.run("ip -d link show ilb5000; ip -d link show ilx5001");
    let mut agent = scene.agent();
    agent.done("adopt", "p1", &format!("{NODE} 1"));
    for (vni, name) in [(5000, "ilb5000"), (5001, "ilx5001")] {
        let refused = agent.act("attach", "p1", &entry_in(2, vni));
        let begin = format!("refused ForeignLink: the interface {name} was not made by Interlock");
        assert!(refused.starts_with(&begin), "{refused}");
        assert_eq!(scene.link("p1"), (false, "none".to_owned()));
        let refused = agent.ask(&format!("forget {vni}")).unwrap();
        assert!(refused.starts_with("refused ForeignLink"), "{refused}");
    }
    let networks = agent.device()["networks"].clone();
    assert_eq!(
        networks.as_array().unwrap().len(),
        1,
        "the bridge that was made for 5001: {networks}"
    );
    assert_eq!(scene.dpu.run("ip -d link show ilb5000; ip -d link show ilx5001"), before);

    // A port that somebody put into a bridge of their own, or brought up.
    let foreign = |agent: &mut Agent, words: &str| {
        let gate = agent.read("p1")["gate"].clone();
        assert!(gate["Foreign"].as_str().unwrap().contains(words), "{gate}");
        let refused = agent.act("attach", "p1", &entry(2));
        assert!(refused.starts_with("refused PortNotClosed"), "{refused}");
    };
    scene.dpu.run("ip link set p1 master ilb5000");
    foreign(&mut agent, "the link is down, in ");
    scene.dpu.run("ip link set p1 up");
    foreign(&mut agent, "the link is up, in ");
    scene.dpu.run("ip link set p1 nomaster");
    foreign(&mut agent, "the link is up, in no bridge");
    agent.done("detach", "p1", &format!("{NODE} 2"));
    foreign(&mut agent, "the link is up, in no bridge");
    agent.done("detach", "p1", "-");
    assert_eq!(agent.read("p1")["gate"], json!("Closed"));
    agent.done("attach", "p1", &entry(2));
}

pub(crate) fn changes() {
    let scene = Scene::new();
    let mut agent = scene.agent();
    agent.done("adopt", "p1", &format!("{NODE} 1"));
    let changes = [
        ("ip link set p1 down", "the link is down"),
        ("ip link set p1 alias mine", "the tag of the link is not that of its entry"),
        ("ip link set p1 nomaster", "the link is not in bridge ilb4096"),
        ("ip link set ilx4096 down", "network 4096 is not set up"),
        ("ip link delete ilx4096", "the VXLAN ilx4096 of its network is not there"),
        ("nft flush chain bridge interlock port-p1", "the rules of p1 are not those of its entry"),
        (
            "nft add rule bridge interlock port-p1 accept",
            "the rules of p1 are not those of its entry",
        ),
        (
            "nft insert rule bridge interlock pre accept",
            "chain pre of nft table bridge interlock was changed",
        ),
        ("nft flush map bridge interlock ports", "p1 is not in the map ports"),
        (
            "nft delete element bridge interlock inside '{ ilx4096 }'",
            "ilx4096 is not in the map inside",
        ),
        ("nft delete table bridge interlock", "its rules cannot be read"),
    ];
    for (change, words) in changes {
        agent.done("attach", "p1", &entry(2));
        scene.dpu.run(change);
        for gate in [agent.read("p1")["gate"].clone(), agent.device()["ports"][0]["gate"].clone()] {
            let said = gate["Foreign"].as_str().unwrap_or_else(|| panic!("{change}: {gate}"));
            // The whole table is listed at once, or what concerns the port.
            let is_gone = change.contains("delete table");
            assert!(said.starts_with(words) || is_gone, "{change}: {said}");
        }
        agent.done("detach", "p1", "-");
        assert_eq!(scene.link("p1"), (false, "none".to_owned()), "{change}");
    }
    agent.done("attach", "p1", &entry(2));
}
