//! A machine that does not stop sending.

use crate::mode::script;
use crate::net::{eventually, marks};
use crate::rack::Rack;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs::File;

pub(crate) fn under_traffic() {
    let mut rack = Rack::new();
    rack.open_all();
    let script = script(rack.folder.path(), "stream.py", include_str!("../real/stream.py"));
    let machine = &rack.machines[0];
    let line =
        format!("python3 {} eth0 {} {}", script.display(), machine.mac, machine.addresses[0]);
    let (first, second) = (rack.sniff(1), rack.sniff(3));
    let stream = machine.space.start(&line);
    stream.prints("ready");
    for epoch in 1..=4_i64 {
        let (old, new, vni) =
            if epoch % 2 == 1 { (&first, &second, 4097) } else { (&second, &first, 4096) };
        let before = marks(old).len();
        eventually("frames arrive in the tenant", || marks(old).len() > before + 50);
        let strangers = marks(new).len();
        rack.isolate(0, epoch);
        // The floor was reported: what a sniffer had not printed yet arrives, and then there is silence.
        std::thread::sleep(std::time::Duration::from_millis(100));
        let ended = marks(old).len();
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(marks(old).len(), ended, "frames arrive after the floor was reported");
        assert_eq!(marks(new).len(), strangers, "the next tenant received something early");
        rack.attach(0, epoch + 1, vni);
        eventually("frames arrive in the next tenant", || marks(new).len() > strangers + 50);
        assert_eq!(marks(old).len(), ended, "the tenant before received frames of the next one");
        let begun = marks(new)[strangers].0;
        let ended = marks(old).last().unwrap().0;
        assert!(begun > ended, "a silence between");
        println!("    epoch {epoch}: silent for {} ms", (begun - ended) / 1_000_000);
    }
    let numbers =
        |running| -> BTreeSet<String> { marks(running).into_iter().map(|mark| mark.1).collect() };
    let (first, second) = (numbers(&first), numbers(&second));
    assert!(first.len() > 100 && second.len() > 100);
    assert_eq!(first.intersection(&second).next(), None, "no frame is in both");
}

/// Two agents of one DPU: one of them is in the middle of an attach, which waits for the port, while the machine changes its
/// tenant. The machine sends all the time.
pub(crate) fn attach_held_until_reassigned() {
    let mut rack = Rack::new();
    for (number, vni) in [(1, 4096), (2, 4097), (3, 4097)] {
        rack.adopt(number);
        rack.attach(number, 1, vni);
    }
    rack.adopt(0);
    let script = script(rack.folder.path(), "stream.py", include_str!("../real/stream.py"));
    let machine = &rack.machines[0];
    let line =
        format!("python3 {} eth0 {} {}", script.display(), machine.mac, machine.addresses[0]);
    let (first, second) = (rack.sniff(1), rack.sniff(3));
    let stream = machine.space.start(&line);
    stream.prints("ready");
    for epoch in [1, 3] {
        let mut held = rack.another_agent(0);
        let (term, entry) = (held.term("p1"), rack.entry(0, epoch, 4096));
        // Whoever acts on the port now waits in its call.
        let port = File::open(rack.lock(0)).unwrap();
        flock(&port, FlockOperation::LockExclusive).unwrap();
        held.send(&format!("attach p1 {term} {entry}"));
        held.opens(&rack.lock(0));
        held.signal(Signal::STOP);
        held.is_held();
        drop(port);
        rack.isolate(0, epoch);
        rack.attach(0, epoch + 1, 4097);
        let before = marks(&second).len();
        eventually("frames arrive in the next tenant", || marks(&second).len() > before + 50);
        held.signal(Signal::CONT);
        let late = held.receive().unwrap();
        let because = format!("epoch {epoch} is revoked: the floor of port p1 is {epoch}");
        assert_eq!(late, format!("refused AtOrUnderTheFloor: {because}"));
        let before = marks(&second).len();
        eventually("the next tenant keeps its port", || marks(&second).len() > before + 50);
        assert_eq!(marks(&first), [], "the tenant before received something");
        rack.isolate(0, epoch + 1);
    }
}

/// The same with a term that ends meanwhile: the record is lost, or another node is at the port.
pub(crate) fn attach_held_until_the_term_is_over() {
    let mut rack = Rack::new();
    for number in [0, 1] {
        rack.adopt(number);
    }
    rack.attach(1, 1, 4096);
    let script = script(rack.folder.path(), "stream.py", include_str!("../real/stream.py"));
    let machine = &rack.machines[0];
    let line =
        format!("python3 {} eth0 {} {}", script.display(), machine.mac, machine.addresses[0]);
    let tenant = rack.sniff(1);
    let stream = machine.space.start(&line);
    stream.prints("ready");
    for is_lost in [true, false] {
        let mut held = rack.another_agent(0);
        let (term, entry) = (held.term("p1"), rack.entry(0, 1, 4096));
        held.signal(Signal::STOP);
        held.send(&format!("attach p1 {term} {entry}"));
        if is_lost {
            std::fs::remove_file(rack.lock(0).with_extension("record")).unwrap();
        } else {
            rack.machines[0].node = "5f0d3c3e-7a7e-4c55-8d0b-3c6a9f7b1e09".to_owned();
        }
        rack.adopt(0);
        held.signal(Signal::CONT);
        let late = held.receive().unwrap();
        assert!(late.starts_with("refused TermDiffers"), "{late}");
    }
    assert_eq!(marks(&tenant), [], "a late attach let frames through");
    // The sniffer counts what there is to count.
    rack.attach(0, 1, 4096);
    eventually("frames arrive in the tenant", || marks(&tenant).len() > 50);
}
