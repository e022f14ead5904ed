//! Each row of which attachments a claim has.

use super::*;
use interlock_api::nodes::FINALIZER_DPU_CLEAN;
use interlock_kernel::testing::{NoMachine, Run, TestServers, patched, survives};
use interlock_kernel::{Action, Name, Write};
use serde_json::{Value, json};

const SUBJECT: &str = "c1";

fn dpu(name: &str) -> Value {
    json!({"rack": "r1", "dpu": name})
}

fn listed(node: &str, epoch: i64, state: &str) -> Value {
    json!({"name": node, "uid": format!("uid-{node}"), "epoch": epoch, "state": state,
        "dpus": [dpu("d1"), dpu("d2")], "vni": 5000})
}

fn claim(entries: &[Value]) -> Value {
    json!({"kind": "NodeClaim", "metadata": {"name": "c1", "uid": "uid-c1", "generation": 1},
        "spec": {"count": 1}, "status": {"nodes": entries}})
}

fn terminating(entries: &[Value]) -> Value {
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["interlock.dev/node-release"]}});
    patched(claim(entries), &deleted)
}

fn attachment(node: &str, dpu: &str, epoch: i64, patch: &Value) -> Value {
    let name = format!("{node}.{dpu}.{epoch}");
    let object = json!({
        "kind": "DpuAttachment",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "finalizers": [FINALIZER_DPU_CLEAN],
            "labels": {"interlock.dev/dpu": format!("r1.{dpu}"), "interlock.dev/node": node,
                "interlock.dev/claim-uid": "uid-c1"}},
        "spec": {"node": {"name": node, "uid": format!("uid-{node}")}, "rack": "r1", "dpu": dpu,
            "claim": {"name": "c1", "uid": "uid-c1"}, "epoch": epoch},
    });
    patched(object, patch)
}

fn both(epoch: i64) -> Vec<Value> {
    ["d1", "d2"].map(|dpu| attachment("n1", dpu, epoch, &json!({}))).to_vec()
}

fn superseded() -> Value {
    json!({"status": {"conditions": [{"type": "Superseded", "status": "True", "reason": "EpochRevoked",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
}

fn deleted() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
}

fn plane(objects: Vec<Value>) -> TestServers {
    TestServers::of(&Requests).with(objects)
}

fn settled(objects: Vec<Value>) -> (TestServers, Run<Nothing>) {
    let mut plane = plane(objects);
    let run = plane.settle(&Requests, &mut NoMachine, SUBJECT);
    (plane, run)
}

/// The attachments that are there, and `-` before those that are being deleted.
fn names(plane: &TestServers) -> Vec<String> {
    let all = plane.list(TENANT_PLANE, &DPU_ATTACHMENT, None);
    let name = |object: &Object| {
        let is_deleting = object.metadata.deletion_timestamp.is_some();
        format!("{}{}", if is_deleting { "-" } else { "" }, name_of(object))
    };
    all.iter().map(name).collect()
}

// Row 1: what is bound has an attachment at each DPU.

#[test]
fn a_bound_node_gets_one_attachment_per_dpu_and_epoch() {
    let (plane, run) = settled(vec![claim(&[listed("n1", 7, "Bound")])]);
    assert_eq!(names(&plane), ["n1.d1.7", "n1.d2.7"]);
    assert_eq!(run.writes.len(), 2);
    let made = plane.json(TENANT_PLANE, &DPU_ATTACHMENT, &Name::cluster_wide("n1.d1.7"));
    let asked = attachment("n1", "d1", 7, &json!({}));
    assert_eq!(made["spec"], asked["spec"]);
    assert_eq!(made["metadata"]["labels"], asked["metadata"]["labels"]);
    assert_eq!(made["metadata"]["finalizers"], json!([FINALIZER_DPU_CLEAN]));
    assert!(
        made["metadata"]["ownerReferences"].is_null(),
        "a claim that vanishes takes nothing with it"
    );
}

#[test]
fn only_bound_entries_of_a_live_claim_get_attachments() {
    for state in ["Chosen", "Releasing", "Released"] {
        let (plane, _) = settled(vec![claim(&[listed("n1", 7, state)])]);
        assert!(names(&plane).is_empty(), "{state}");
    }
    let (plane, _) = settled(vec![terminating(&[listed("n1", 7, "Bound")])]);
    assert!(names(&plane).is_empty());
}

#[test]
fn an_epoch_that_follows_has_attachments_of_its_own() {
    let entries = [listed("n1", 7, "Released"), listed("n1", 8, "Bound")];
    let (plane, _) = settled([both(7), vec![claim(&entries)]].concat());
    assert_eq!(names(&plane), ["n1.d1.8", "n1.d2.8"], "those of epoch 7 are deleted, and released");
}

#[test]
fn the_addresses_of_a_machine_are_those_of_its_claim() {
    let spec =
        json!({"spec": {"addresses": [{"node": "n1", "addresses": ["10.0.0.1", "fd00::1"]}]}});
    let claimed = patched(claim(&[listed("n1", 7, "Bound")]), &spec);
    let (mut plane, _) = settled(vec![claimed]);
    let name = Name::cluster_wide("n1.d1.7");
    let made = plane.json(TENANT_PLANE, &DPU_ATTACHMENT, &name);
    assert_eq!(made["spec"]["addresses"], json!(["10.0.0.1", "fd00::1"]));
    // Other addresses: the attachment cannot change, so another one follows it.
    let spec = json!({"spec": {"addresses": null}});
    plane.change(TENANT_PLANE, &NODE_CLAIM, &Name::cluster_wide("c1"), &spec);
    let run = plane.settle(&Requests, &mut NoMachine, SUBJECT);
    assert_eq!(names(&plane), ["-n1.d1.7", "-n1.d2.7"], "{:?}", run.writes);
}

#[test]
fn a_name_that_another_claim_has_taken_is_left_alone() {
    let theirs = json!({"spec": {"claim": {"name": "c2", "uid": "uid-c2"}}});
    let taken = attachment("n1", "d1", 7, &theirs);
    let (plane, run) = settled(vec![claim(&[listed("n1", 7, "Bound")]), taken]);
    assert_eq!(names(&plane), ["n1.d1.7", "n1.d2.7"]);
    assert_eq!(run.writes.len(), 1);
}

// Row 2: what is not wanted any more is deleted.

#[test]
fn a_claim_that_is_being_deleted_loses_its_attachments() {
    let (plane, run) = settled([both(7), vec![terminating(&[listed("n1", 7, "Bound")])]].concat());
    assert_eq!(names(&plane), ["-n1.d1.7", "-n1.d2.7"]);
    let uids: Vec<&str> = run
        .writes
        .iter()
        .map(|write| match write {
            Write::Delete { uid, .. } => uid.as_str(),
            write @ (Write::Create { .. } | Write::Patch { .. } | Write::Apply { .. }) => {
                panic!("{write:?}")
            }
        })
        .collect();
    assert_eq!(
        uids,
        ["uid-n1.d1.7", "uid-n1.d2.7"],
        "a late deletion hits no attachment of that name"
    );
}

#[test]
fn an_epoch_that_is_revoked_loses_its_attachments_and_no_later_one_does() {
    for (entry, is_wanted) in [
        (listed("n1", 7, "Bound"), true),
        (listed("n1", 7, "Releasing"), false),
        (listed("n1", 8, "Releasing"), false),
        (listed("n1", 8, "Bound"), false),
    ] {
        let (plane, _) = settled([both(7), vec![claim(std::slice::from_ref(&entry))]].concat());
        let is_there = names(&plane).contains(&"n1.d1.7".to_owned());
        assert_eq!(is_there, is_wanted, "{entry}");
    }
    // A revocation of an earlier epoch is none of a later one.
    let entries = [listed("n1", 6, "Releasing"), listed("n1", 7, "Bound")];
    let (plane, _) = settled([both(7), vec![claim(&entries)]].concat());
    assert_eq!(names(&plane), ["n1.d1.7", "n1.d2.7"]);
}

#[test]
fn the_entry_of_another_uid_says_nothing_of_a_node() {
    let again = patched(listed("n1", 9, "Releasing"), &json!({"uid": "uid-again"}));
    let entries = [again, listed("n1", 7, "Bound")];
    let (plane, _) = settled([both(7), vec![claim(&entries)]].concat());
    assert_eq!(names(&plane), ["n1.d1.7", "n1.d2.7"]);
}

#[test]
fn what_its_dpu_calls_superseded_is_deleted_whatever_became_of_its_claim() {
    let over = || attachment("n1", "d1", 7, &superseded());
    for claims in [vec![], vec![claim(&[])], vec![claim(&[listed("n1", 8, "Bound")])]] {
        let (plane, run) = settled([claims, vec![over()]].concat());
        assert!(!names(&plane).contains(&"n1.d1.7".to_owned()), "{:?}", run.writes);
    }
    // The claim still lists the node: deleted, the attachment would be made again, and so on.
    let listing = claim(&[listed("n1", 7, "Bound")]);
    let (plane, _) = settled(vec![listing, over()]);
    assert_eq!(names(&plane), ["n1.d1.7", "n1.d2.7"]);
}

#[test]
fn a_node_whose_claim_vanished_keeps_its_attachments() {
    let (plane, run) = settled(both(7));
    assert_eq!(names(&plane), ["n1.d1.7", "n1.d2.7"], "the node may be held for its tenant");
    assert!(run.writes.is_empty());
    // A claim that was made again under its name is another one.
    let again = patched(claim(&[]), &json!({"metadata": {"uid": "uid-again"}}));
    let (plane, _) = settled([both(7), vec![again]].concat());
    assert_eq!(names(&plane), ["n1.d1.7", "n1.d2.7"]);
}

#[test]
fn attachments_of_other_claims_are_left_alone() {
    let theirs = json!({"spec": {"claim": {"name": "c1", "uid": "uid-before"}}});
    let other = attachment("n2", "d1", 3, &theirs);
    let (plane, _) = settled(vec![terminating(&[]), other]);
    assert_eq!(names(&plane), ["n2.d1.3"]);
}

#[test]
fn an_attachment_that_its_claim_does_not_list_is_deleted_after_a_live_read() {
    let (plane, _) = settled([both(7), vec![claim(&[])]].concat());
    assert_eq!(names(&plane), ["-n1.d1.7", "-n1.d2.7"]);
    // A list from before: the claim itself lists the node.
    let behind = TestServers::of(&Requests).with([both(7), vec![claim(&[])]].concat());
    for live in [vec![claim(&[listed("n1", 7, "Bound")])], vec![]] {
        let live = TestServers::of(&Requests).with(live);
        let step = behind.view().step_with(&Requests, SUBJECT, &LiveReads::default());
        let Step::LiveRead { reads, .. } = step else { panic!("{step:?}") };
        let mut live_reads = LiveReads::default();
        for read in reads {
            live.view().read_live(read, |it| match *it {}, &mut live_reads);
        }
        let step = behind.view().step_with(&Requests, SUBJECT, &live_reads);
        assert!(matches!(step, Step::Rest { .. }), "{step:?}");
    }
}

// Row 3: the finalizer of a DPU that is not there any more.

#[test]
fn the_finalizer_is_taken_off_only_once_the_hub_has_returned_the_node() {
    for (entry, is_held) in [
        (listed("n1", 7, "Bound"), true),
        (listed("n1", 7, "Releasing"), true),
        (listed("n1", 6, "Released"), true),
        (listed("n1", 7, "Released"), false),
        (listed("n1", 8, "Releasing"), false),
        (patched(listed("n1", 7, "Released"), &json!({"uid": "uid-again"})), true),
    ] {
        let objects =
            vec![attachment("n1", "d1", 7, &deleted()), claim(std::slice::from_ref(&entry))];
        let (plane, _) = settled(objects);
        assert_eq!(names(&plane).contains(&"-n1.d1.7".to_owned()), is_held, "{entry}");
    }
}

#[test]
fn a_claim_and_its_attachments_wake_the_claim() {
    let plane = plane([both(7), vec![claim(&[])]].concat());
    let woken: Vec<Subject> = plane.subjects(&Requests).into_iter().collect();
    assert_eq!(woken, [Subject::from("c1")]);
    assert!(Requests.rights().iter().all(|right| right.kind == DPU_ATTACHMENT));
}

#[test]
fn a_step_has_one_effect() {
    let plane = plane(vec![claim(&[listed("n1", 7, "Bound")])]);
    let Step::Act(effect) = plane.step(&Requests, &NoMachine, SUBJECT) else { panic!() };
    assert!(matches!(effect.action, Action::Write(Write::Create { .. })));
    assert_eq!(effect.because, "node n1 is the claim's at epoch 7");
}

#[test]
fn broken_objects_do_not_break_it() {
    let entries = [listed("n1", 7, "Bound"), listed("n2", 3, "Released")];
    let mut objects = both(7);
    objects.extend([claim(&entries), attachment("n2", "d1", 3, &deleted())]);
    survives(&Requests, &NoMachine, &objects);
}
