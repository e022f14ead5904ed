//! Each row of what happens to the entries of a Grant.

use super::*;
use interlock_kernel::testing::{NoMachine, Run, TestServers, survives};
use serde_json::Value;

const GRANT_NAME: &str = "shop-n1";

fn grant(uids: &[(&str, &str)]) -> Value {
    let rights: Vec<Value> =
        uids.iter().map(|(uid, name)| json!({"uid": uid, "name": name})).collect();
    json!({"kind": "Grant", "metadata": {"name": GRANT_NAME, "uid": "g-1"},
        "spec": {"namespace": {"name": "shop", "uid": "n-1"}}, "status": {"rights": rights}})
}

fn role(uid: &str, name: &str) -> Value {
    json!({"kind": "Role", "metadata": {"namespace": "shop", "name": name, "uid": uid}})
}

fn settle(hub: &mut TestServers) -> Run<Nothing> {
    hub.settle(&Entries, &mut NoMachine, GRANT_NAME)
}

fn listed(hub: &TestServers) -> Vec<Value> {
    let grant = hub.json(Place::HUB, &GRANT, &Name::cluster_wide(GRANT_NAME));
    let rights = grant["status"]["rights"].as_array().cloned().unwrap_or_default();
    rights.iter().map(|entry| entry["uid"].clone()).collect()
}

#[test]
fn entries_of_roles_that_are_gone_or_are_others_of_that_name_are_taken_out() {
    let entries = [("u-1", "s3"), ("u-2", "sqs"), ("u-3", "sns")];
    let objects = [grant(&entries), role("u-1", "s3"), role("u-9", "sns")];
    let mut hub = TestServers::of(&Entries).with(objects);
    assert_eq!(settle(&mut hub).writes.len(), 1);
    assert_eq!(listed(&hub), ["u-1"]);
    assert!(settle(&mut hub).writes.is_empty());
}

#[test]
fn a_role_that_only_the_cache_lacks_stays_listed() {
    let hub = TestServers::of(&Entries).with([grant(&[("u-1", "s3")])]);
    let mut live_reads = LiveReads::default();
    let Step::LiveRead { reads, .. } = hub.view().step_with(&Entries, GRANT_NAME, &live_reads)
    else {
        panic!("it reads first")
    };
    let there = TestServers::of(&Entries).with([role("u-1", "s3")]);
    for read in reads {
        there.view().read_live(read, |question| match *question {}, &mut live_reads);
    }
    let step = hub.view().step_with(&Entries, GRANT_NAME, &live_reads);
    assert!(matches!(step, Step::Rest { .. }), "{step:?}");
}

#[test]
fn a_role_wakes_the_grant_of_its_namespace() {
    let namespace = json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "n-1"}});
    let hub = TestServers::of(&Entries).with([grant(&[]), role("u-1", "s3"), namespace]);
    let subjects = hub.subjects(&Entries);
    assert_eq!(subjects.into_iter().collect::<Vec<_>>(), [Subject::from(GRANT_NAME)]);
}

#[test]
fn broken_objects_do_not_break_it() {
    survives(&Entries, &NoMachine, &[grant(&[("u-1", "s3")]), role("u-1", "s3")]);
}
