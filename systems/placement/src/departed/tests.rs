//! The finalizers of a cluster that is gone come off, and those of no other.

use super::*;
use crate::kinds::CLAIM;
use crate::testing::{claim, cluster, grant, granted, namespace, reference};
use interlock_kernel::testing::{NoMachine, Run, TestServers, survives};
use interlock_kernel::{Controller, Name};
use serde_json::{Value, json};

const GONE: &str = "interlock.dev/syncer-uid-gone";
const THERE: &str = "interlock.dev/syncer-uid-a";

/// A controller that shows claims to the test world, as the hub's other controllers do.
struct SeesClaims;

impl Watcher for SeesClaims {
    fn name(&self) -> &'static str {
        "watcher"
    }
    fn watches(&self) -> Vec<Watch> {
        vec![Watch::all(Place::HUB, &CLAIM)]
    }
    fn subjects(&self, _: &Watch, _: &Object, _: &dyn View) -> Vec<Subject> {
        Vec::new()
    }
}

impl Controller for SeesClaims {
    type Outside = Nothing;
    fn step(&self, _: &Subject, _: &dyn View, _: &LiveReads<Nothing>) -> Step<Nothing> {
        Step::rest("it only watches")
    }
}

fn hub(objects: Vec<Value>) -> TestServers {
    let mut hub = TestServers::of(&Departed);
    hub.show(&SeesClaims);
    hub.with(objects)
}

fn settled(objects: Vec<Value>) -> (TestServers, Run<Nothing>) {
    let mut hub = hub(objects);
    let run = hub.settle(&Departed, &mut NoMachine, "shop");
    (hub, run)
}

fn held(by: &[&str]) -> Vec<Value> {
    let finalizers = json!({"metadata": {"finalizers": by}});
    vec![namespace("shop", finalizers.clone()), claim("shop", "data", finalizers)]
}

fn finalizers(hub: &TestServers) -> [Value; 2] {
    let shop = hub.json(Place::HUB, &NAMESPACE, &Name::cluster_wide("shop"));
    let data = hub.json(Place::HUB, &CLAIM, &Name::within("shop", "data"));
    [shop, data].map(|object| object["metadata"]["finalizers"].clone())
}

#[test]
fn what_a_cluster_that_is_gone_held_is_let_go_objects_first() {
    let mut objects = held(&["interlock.dev/grant", GONE, THERE]);
    objects.extend([cluster("a", json!({})), granted("shop", "a", json!({}))]);
    let (hub, run) = settled(objects);
    let left = json!(["interlock.dev/grant", THERE]);
    assert_eq!(finalizers(&hub), [left.clone(), left]);
    let kinds: Vec<&str> = run.writes.iter().map(|write| &*write.address().kind.kind).collect();
    assert_eq!(kinds, ["PersistentVolumeClaim", "Namespace"]);
    assert_eq!(run.events.len(), 1);
    assert!(hub.subjects(&Departed).is_empty());
}

#[test]
fn a_cluster_that_the_cache_does_not_show_yet_keeps_its_finalizers() {
    let hub = hub(held(&[GONE]));
    let step = Departed.step(&Subject::from("shop"), &hub.view(), &LiveReads::default());
    let Step::LiveRead { reads, .. } = step else { panic!("it rests on a cache: {step:?}") };
    let mut live_reads = LiveReads::default();
    for read in reads {
        let interlock_kernel::Read::List { place, kind, namespace } = read else { panic!() };
        let fresh = TestServers::of(&Departed).with([cluster("gone", json!({}))]);
        let found = fresh.list(place, &kind, namespace.as_deref());
        live_reads.lists.insert((place, kind, namespace), found);
    }
    let step = Departed.step(&Subject::from("shop"), &hub.view(), &live_reads);
    assert!(matches!(step, Step::Rest { .. }), "{step:?}");
}

#[test]
fn a_cluster_that_a_grant_still_names_keeps_its_finalizers() {
    let copies = json!([{"cluster": reference("gone"), "epoch": 3, "state": "Unclosed"}]);
    for named in [
        granted("shop", "gone", json!({})),
        grant("blog", json!({"status": {"phase": "Released", "copies": copies}})),
    ] {
        let mut objects = held(&[GONE]);
        objects.push(named);
        let (hub, run) = settled(objects);
        assert!(run.writes.is_empty(), "{:?}", run.writes);
        assert_eq!(finalizers(&hub)[0], json!([GONE]));
    }
}

#[test]
fn a_grant_that_the_cache_does_not_show_yet_counts_too() {
    let hub = hub(held(&[GONE]));
    let fresh = TestServers::of(&Departed).with([granted("shop", "gone", json!({}))]);
    let mut live_reads = LiveReads::default();
    for kind in [WORKLOAD_CLUSTER, GRANT] {
        let found = fresh.list(Place::HUB, &kind, None);
        live_reads.lists.insert((Place::HUB, kind, None), found);
    }
    let step = Departed.step(&Subject::from("shop"), &hub.view(), &live_reads);
    assert!(matches!(step, Step::Rest { .. }), "{step:?}");
}

#[test]
fn only_what_a_cluster_left_behind_wakes_it() {
    let mut objects = held(&[THERE]);
    objects.extend([cluster("a", json!({})), granted("shop", "a", json!({}))]);
    assert!(hub(objects).subjects(&Departed).is_empty());
    assert_eq!(hub(held(&[GONE])).subjects(&Departed).len(), 1);
    // A grant that names it no more, since a person gave its copy up.
    let mut objects = held(&[GONE]);
    objects.push(granted("shop", "a", json!({})));
    let hub = hub(objects);
    let name = Name::cluster_wide(&crate::testing::grant_of("shop"));
    let found = hub.get(Place::HUB, &GRANT, &name).expect("a grant");
    let woken = Departed.subjects(&Watch::all(Place::HUB, &GRANT), &found, &hub.view());
    assert_eq!(woken, [Subject::from("shop")]);
}

#[test]
fn broken_objects_do_not_break_it() {
    let mut objects = held(&[GONE, THERE]);
    objects.extend([cluster("a", json!({})), granted("shop", "gone", json!({}))]);
    survives(&Departed, &NoMachine, &objects);
}
