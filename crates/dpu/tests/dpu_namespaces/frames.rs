//! What a machine may send.

use crate::mode::script;
use crate::net::{eventually, marks};
use crate::rack::Rack;
use std::collections::BTreeSet;

pub(crate) fn of_18_kinds() {
    let mut rack = Rack::new();
    rack.open_all();
    let script = script(rack.folder.path(), "frames.py", include_str!("../real/frames.py"));
    let machine = &rack.machines[0];
    let line = format!(
        "python3 {} eth0 {} {} {}",
        script.display(),
        machine.mac,
        machine.addresses[0],
        machine.addresses[2]
    );
    let (near, far) = (rack.sniff(2), rack.sniff(1));
    let (other, dpu) = (rack.sniff(3), &rack.dpus[machine.dpu]);
    let printed = machine.space.run(&line);
    let sent = |kind: &str| -> BTreeSet<String> {
        let names = printed.lines().filter_map(|line| line.strip_prefix(kind));
        names.map(|name| name.trim().to_owned()).collect()
    };
    let (mut legal, illegal) = (sent("legal "), sent("illegal "));
    assert_eq!((legal.len(), illegal.len()), (5, 13));
    // Sent last, over the same way.
    eventually("the last frame arrives", || marks(&far).iter().any(|mark| mark.1 == "end"));
    legal.insert("end".to_owned());
    let arrived: BTreeSet<String> = marks(&far).into_iter().map(|mark| mark.1).collect();
    assert_eq!(arrived, legal);
    for stranger in [&near, &other] {
        assert_eq!(marks(stranger), [], "the other tenant received something");
    }
    // All of them are frames that a bridge passes on, if nothing holds them up.
    dpu.run("nft flush chain bridge interlock port-p1");
    let unchecked = rack.sniff(1);
    machine.space.run(&line);
    eventually("the last frame arrives", || marks(&unchecked).iter().any(|mark| mark.1 == "end"));
    let arrived: BTreeSet<String> = marks(&unchecked).into_iter().map(|mark| mark.1).collect();
    assert_eq!(arrived, legal.union(&illegal).cloned().collect());
}
