//! Each row of the syncer's table: what is seen, and the one effect that follows.

use super::world::{BOOT, TestFleet};
use crate::kinds::{CLAIM, CONFIG_MAP, DEPLOYMENT, FORCE_RELEASE, GRANT, NAMESPACE, POD};
use crate::syncer::{Locks, Syncer};
use interlock_kernel::{Action, Kind, LiveReads, Name, Read, Step, Write};
use serde_json::{Value, json};

/// A grant of the namespace `shop` as cluster `a` sees it.
struct Case {
    world: TestFleet,
}

/// What the namespace on the cluster says: epoch, released, running.
type Notes<'a> = (i64, i64, &'a str);

impl Case {
    fn of(status: Value, notes: Option<Notes<'_>>) -> Case {
        let mut world = TestFleet::new(&["a", "b"]);
        let grant = json!({
            "metadata": {"uid": "g-uid"},
            "spec": {"namespace": {"name": "shop", "uid": "n-uid"}},
            "status": with_uids(&world, status),
        });
        world.put(&GRANT, Name::cluster_wide("g"), "", grant);
        let namespace = json!({"metadata": {"uid": "n-uid", "finalizers": [finalizer(&world)]}});
        world.put(&NAMESPACE, Name::cluster_wide("shop"), "", namespace);
        if let Some((epoch, released, running)) = notes {
            let here = json!({"metadata": {"annotations": {
                "interlock.dev/grant": "g-uid", "interlock.dev/epoch": epoch.to_string(),
                "interlock.dev/released": released.to_string(), "interlock.dev/running": running,
                "interlock.dev/ran": epoch.to_string(),
            }}});
            world.put(&NAMESPACE, Name::cluster_wide("g"), "a", here);
        }
        Case { world }
    }

    fn with(mut self, cluster: &str, kind: &Kind, name: &str, object: Value) -> Case {
        let within = if cluster.is_empty() { "shop" } else { "g" };
        self.world.put(kind, Name::within(within, name), cluster, object);
        self
    }

    fn step(&self) -> Step<Locks> {
        self.world.step(&self.world.syncer("a"), "a", "g")
    }

    fn step_with(&self, syncer: &Syncer, live_reads: &LiveReads<Locks>) -> Step<Locks> {
        self.world.step_with(syncer, "a", "g", live_reads)
    }

    #[track_caller]
    fn write(&self) -> Write {
        match self.step() {
            Step::Act(effect) => match effect.action {
                Action::Write(write) => write,
                Action::Outside(action) => match action {},
            },
            step => panic!("no write: {step:?}"),
        }
    }

    /// The change that a patch makes, after the place and the kind of what it changes.
    #[track_caller]
    fn patch(&self) -> (String, Value) {
        match self.write() {
            Write::Patch { address, change, .. } => (address.to_string(), change),
            write => panic!("no patch: {write:?}"),
        }
    }

    #[track_caller]
    fn notes_change(&self) -> Value {
        let (what, change) = self.patch();
        assert_eq!(what, "Namespace g at the cluster");
        change["metadata"]["annotations"].clone()
    }

    #[track_caller]
    fn rests(&self) -> String {
        match self.step() {
            Step::Rest { because } | Step::Wait { because, .. } => because,
            step => panic!("it does something: {step:?}"),
        }
    }
}

fn finalizer(world: &TestFleet) -> String {
    interlock_api::names::syncer_finalizer(&world.cluster("a").uid)
}

/// Puts references to the clusters in the place of their names.
fn with_uids(world: &TestFleet, mut status: Value) -> Value {
    let reference = |value: &Value| json!(world.cluster(value.as_str().expect("a cluster")));
    if status["owner"].is_string() {
        status["owner"] = reference(&status["owner"]);
    }
    let copies = status.get_mut("copies").and_then(Value::as_array_mut);
    for copy in copies.into_iter().flatten() {
        copy["cluster"] = reference(&copy["cluster"]);
    }
    status
}

fn granted(epoch: i64) -> Value {
    json!({"phase": "Granted", "owner": "a", "epoch": epoch})
}

fn revoking(epoch: i64) -> Value {
    let copies = json!([{"cluster": "a", "epoch": epoch, "state": "Live"}]);
    json!({"phase": "Revoking", "owner": "a", "epoch": epoch, "because": "Move", "copies": copies})
}

fn elsewhere(epoch: i64, state: &str) -> Value {
    let copies = json!([{"cluster": "a", "epoch": 1, "state": state}]);
    json!({"phase": "Granted", "owner": "b", "epoch": epoch, "copies": copies})
}

fn permit(epoch: i64) -> String {
    format!("{epoch}@{BOOT}")
}

fn ours() -> Value {
    json!({"metadata": {"labels": {"interlock.dev/grant": "g"}}})
}

#[test]
fn a_grant_that_is_not_in_the_cache_changes_nothing() {
    let mut case = Case::of(granted(1), Some((1, 0, &permit(1)))).with("a", &POD, "p", ours());
    case.world.delete("", &GRANT, &Name::cluster_wide("g"));
    assert_eq!(
        case.rests(),
        "the grant is not in the cache; only a live read can show that it is gone"
    );
}

#[test]
fn an_owner_that_was_declared_gone_before_anything_ran_takes_its_copy_over() {
    let copy = |epoch, state| json!({"cluster": "a", "epoch": epoch, "state": state});
    let mut status = granted(2);
    status["copies"] = json!([copy(1, "Unclosed"), copy(2, "Live")]);
    let mut case = Case::of(status, Some((1, 1, "")));
    let never = json!({"metadata": {"annotations": {"interlock.dev/ran": null}}});
    case.world.change("a", &NAMESPACE, &Name::cluster_wide("g"), &never);
    let (what, change) = case.patch();
    assert_eq!(what, "Grant g at the hub");
    let copies = change["status"]["copies"].as_array().unwrap();
    assert_eq!((copies.len(), &copies[0]["state"]), (1, &json!("Live")));
}

#[test]
fn old_news_changes_nothing() {
    let case = Case::of(granted(1), Some((2, 0, &permit(2))));
    assert_eq!(case.rests(), "the cache is older than the record on this cluster");
}

#[test]
fn a_namespace_of_somebody_else_is_left_alone() {
    let mut case = Case::of(elsewhere(2, "Superseded"), Some((1, 1, "")));
    let theirs = json!({"metadata": {"annotations": {"interlock.dev/grant": "another"}}});
    case.world.change("a", &NAMESPACE, &Name::cluster_wide("g"), &theirs);
    assert_eq!(case.rests(), "a namespace g that Interlock did not create is on a");
}

#[test]
fn a_grant_of_another_cluster_costs_nothing() {
    let case = Case::of(json!({"phase": "Granted", "owner": "b", "epoch": 1}), None);
    let mut world = case.world;
    let bare = json!({"metadata": {"finalizers": null}});
    world.change("", &NAMESPACE, &Name::cluster_wide("shop"), &bare);
    world.put(&CONFIG_MAP, Name::within("shop", "c"), "", json!({}));
    assert!(world.view("a").subjects(&world.syncer("a")).is_empty());
    assert_eq!(world.view("b").subjects(&world.syncer("b")).len(), 1);
}

#[test]
fn leaving_withdraws_the_permit_first() {
    let case = Case::of(revoking(1), Some((1, 0, &permit(1)))).with("a", &POD, "p", ours());
    assert_eq!(case.notes_change(), json!({"interlock.dev/running": ""}));
}

#[test]
fn leaving_stops_what_makes_pods_before_the_pods() {
    let case = Case::of(revoking(1), Some((1, 0, ""))).with("a", &POD, "p", json!({})).with(
        "a",
        &DEPLOYMENT,
        "d",
        json!({}),
    );
    let Write::Delete { address, .. } = case.write() else { panic!("no deletion") };
    assert_eq!(address.kind, DEPLOYMENT);
}

/// What the cluster had when a look began, and a cache may still have later.
fn live(case: &Case) -> LiveReads<Locks> {
    let syncer = case.world.syncer("a");
    let mut live_reads = LiveReads::default();
    match case.world.step_with(&syncer, "a", "g", &live_reads) {
        Step::LiveRead { reads, .. } => {
            reads.into_iter().for_each(|read| case.world.live_read("a", read, &mut live_reads));
        }
        step => panic!("no look: {step:?}"),
    }
    live_reads
}

#[test]
fn what_came_with_a_later_epoch_is_not_stopped() {
    // The cache of the notes is behind, and those of the grant and of the pods are not: the
    // namespace went away and came back.
    let case = Case::of(granted(3), Some((1, 0, ""))).with("a", &POD, "p", ours());
    assert!(matches!(case.write(), Write::Delete { .. }), "if its epoch leaves, it is stopped");
    let mut truth = Case::of(granted(3), Some((1, 0, ""))).with("a", &POD, "p", ours());
    let notes = json!({"metadata": {"annotations": {
        "interlock.dev/epoch": "3", "interlock.dev/released": "1", "interlock.dev/running": permit(3),
    }}});
    truth.world.change("a", &NAMESPACE, &Name::cluster_wide("g"), &notes);
    let mut live_reads = live(&case);
    let seen = live_reads.objects.keys().cloned().collect::<Vec<_>>();
    seen.into_iter()
        .for_each(|address| truth.world.live_read("a", Read::Object(address), &mut live_reads));
    let step = case.world.step_with(&case.world.syncer("a"), "a", "g", &live_reads);
    let Step::Wait { because, .. } = step else { panic!("it does something: {step:?}") };
    assert_eq!(because, "the live state of the cluster differs from the cache");
}

#[test]
fn a_namesake_of_what_was_read_is_not_stopped() {
    let mut case = Case::of(revoking(1), Some((1, 0, ""))).with("a", &POD, "p", ours());
    let live_reads = live(&case);
    case.world.delete("a", &POD, &Name::within("g", "p"));
    let case = case.with("a", &POD, "p", ours());
    let step = case.world.step_with(&case.world.syncer("a"), "a", "g", &live_reads);
    assert!(matches!(step, Step::Wait { .. }), "{step:?}");
}

#[test]
fn what_was_asked_to_stop_is_waited_for_and_is_reported() {
    let mut case = Case::of(revoking(1), Some((1, 0, "")));
    let pod = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    case = case.with("a", &POD, "p", pod);
    let (what, change) = case.patch();
    assert_eq!(what, "Grant g at the hub");
    assert_eq!(change["status"]["conditions"][0]["reason"], "Stopping");
    case.world.change("", &GRANT, &Name::cluster_wide("g"), &change);
    assert_eq!(case.rests(), "a pod that was stopped has not ended yet");
}

#[test]
fn nothing_is_closed_while_a_lock_is_held() {
    let mut case = Case::of(revoking(1), Some((1, 0, "")));
    let run = crate::runtime::outside::Started { pid: 7, since: case.world.now };
    let machine = case.world.machines.get_mut("a").unwrap();
    machine.known.insert("p".to_owned(), crate::runtime::outside::Known::Lives(run));
    let (_, change) = case.patch();
    let said = &change["status"]["conditions"][0];
    assert_eq!(said["reason"], "MayStillWrite");
    assert_eq!(said["message"], "may still write on a: process 7");
}

#[test]
fn still_means_closed_for_ever() {
    let case = Case::of(revoking(3), Some((3, 2, "")));
    assert_eq!(case.notes_change(), json!({"interlock.dev/released": "3"}));
}

#[test]
fn a_look_from_before_the_notes_changed_closes_nothing() {
    let mut case = Case::of(revoking(3), Some((3, 2, "")));
    let syncer = case.world.syncer("a");
    let mut live_reads = LiveReads::default();
    let Step::LiveRead { reads, .. } = case.world.step_with(&syncer, "a", "g", &live_reads) else {
        panic!("it does not look")
    };
    reads.into_iter().for_each(|read| case.world.live_read("a", read, &mut live_reads));
    let permitted = json!({"metadata": {"annotations": {"interlock.dev/running": permit(3)}}});
    let withdrawn = json!({"metadata": {"annotations": {"interlock.dev/running": ""}}});
    case.world.change("a", &NAMESPACE, &Name::cluster_wide("g"), &permitted);
    case.world.change("a", &NAMESPACE, &Name::cluster_wide("g"), &withdrawn);
    let step = case.world.step_with(&syncer, "a", "g", &live_reads);
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
}

#[test]
fn an_owner_that_was_fenced_closes_its_own_epoch_and_no_other() {
    let case = Case::of(elsewhere(5, "Unclosed"), Some((3, 2, "")));
    assert_eq!(case.notes_change(), json!({"interlock.dev/released": "3"}));
}

#[test]
fn what_never_arrived_is_closed_too() {
    let case = Case::of(revoking(1), None);
    let Write::Create { object, .. } = case.write() else { panic!("no creation") };
    assert_eq!(object["metadata"]["annotations"]["interlock.dev/released"], "1");
}

#[test]
fn a_release_is_one_write_with_every_pin() {
    let mut status = revoking(2);
    status["claims"] = json!([{"name": "c", "uid": "c-uid", "fill": "Waiting"}]);
    let pin = json!({"claim": "c", "claimUID": "c-uid", "epoch": 1,
        "taken": "2026-01-01T00:00:00Z", "snapshot": {"fresh": {}}});
    status["pins"] = json!([pin]);
    let claim = json!({"metadata": {"uid": "c-uid"}});
    let case = Case::of(status, Some((2, 2, ""))).with("", &CLAIM, "c", claim);
    let (what, change) = case.patch();
    assert_eq!(what, "Grant g at the hub");
    assert_eq!(change["status"]["phase"], "Released");
    assert_eq!(change["status"]["pins"][0]["snapshot"], json!({"fresh": {}}));
    assert_eq!(change["status"]["copies"][0]["state"], "Superseded");
}

#[test]
fn a_volume_that_stays_is_kept_and_then_pinned_in_place() {
    let mut status = revoking(2);
    status["claims"] = json!([{"name": "c", "uid": "c-uid", "fill": "Filled"}]);
    let claim = json!({"metadata": {"uid": "c-uid"}});
    let volume = json!({
        "metadata": {"labels": {"interlock.dev/grant": "g"},
            "annotations": {"interlock.dev/from": "c-uid/claim", "interlock.dev/epoch": "2"}},
        "spec": {"volumeName": "pv-1"},
    });
    let mut case = Case::of(status, Some((2, 2, "")))
        .with("", &CLAIM, "c", claim)
        .with("a", &CLAIM, "c", volume);
    let target = json!({"spec": {"target": case.world.cluster("a")}});
    case.world.change("", &GRANT, &Name::cluster_wide("g"), &target);
    let (what, change) = case.patch();
    assert_eq!(what, "PersistentVolumeClaim g/c at the cluster");
    assert_eq!(change["metadata"]["annotations"]["interlock.dev/last"], "2@pv-1");
    case.world.change("a", &CLAIM, &Name::within("g", "c"), &change);
    let (_, change) = case.patch();
    assert_eq!(change["status"]["phase"], "Released");
    assert_eq!(change["status"]["pins"][0]["snapshot"]["inPlace"]["volume"], "pv-1");
}

#[test]
fn data_that_would_have_to_be_copied_is_not_given_away() {
    let mut status = revoking(2);
    status["claims"] = json!([{"name": "c", "uid": "c-uid", "fill": "Filled"}]);
    let claim = json!({"metadata": {"uid": "c-uid"}});
    let case = Case::of(status, Some((2, 2, ""))).with("", &CLAIM, "c", claim);
    let (_, change) = case.patch();
    assert_eq!(change["status"]["conditions"][0]["reason"], "CopyNotSupported");
    assert_eq!(change["status"]["phase"], Value::Null);
}

#[test]
fn one_that_was_forced_says_what_became_of_its_data() {
    let case = Case::of(elsewhere(2, "Unclosed"), Some((1, 1, "")));
    let (_, change) = case.patch();
    assert_eq!(change["status"]["copies"][0]["state"], "Diverged");
    assert_eq!(change["status"]["conditions"][0]["type"], "Diverged");
}

#[test]
fn that_nothing_ran_here_is_not_believed_of_a_cache_from_before_the_namespace_came() {
    let case = Case::of(elsewhere(2, "Unclosed"), None);
    let there = Case::of(elsewhere(2, "Unclosed"), Some((1, 0, &permit(1))));
    let syncer = case.world.syncer("a");
    let mut live_reads = LiveReads::default();
    let Step::LiveRead { reads, .. } = case.world.step_with(&syncer, "a", "g", &live_reads) else {
        panic!("it does not look");
    };
    let [Read::Object(notes)] = reads.as_slice() else { panic!("{reads:?}") };
    live_reads.objects.insert(notes.clone(), there.world.all("a", &NAMESPACE).pop());
    let step = case.world.step_with(&syncer, "a", "g", &live_reads);
    assert!(matches!(&step, Step::Rest { .. }), "{step:?}");
    live_reads.objects.insert(notes.clone(), None);
    let step = case.world.step_with(&syncer, "a", "g", &live_reads);
    assert!(matches!(&step, Step::Act(_)), "{step:?}");
}

/// The world found it: a namespace that was deleted stayed for ever.
#[test]
fn a_finalizer_that_the_cache_does_not_show_yet_comes_off_before_that_of_the_namespace() {
    let case = || Case::of(elsewhere(2, "Superseded"), Some((1, 1, "")));
    let behind = case().with("", &CONFIG_MAP, "config", json!({}));
    let held = json!({"metadata": {"finalizers": [finalizer(&behind.world)]}});
    let server = case().with("", &CONFIG_MAP, "config", held);
    let syncer = behind.world.syncer("a");
    let mut live_reads = LiveReads::default();
    let Step::LiveRead { reads, .. } = behind.step_with(&syncer, &live_reads) else {
        panic!("no look")
    };
    reads.into_iter().for_each(|read| server.world.live_read("a", read, &mut live_reads));
    let Step::Act(effect) = behind.step_with(&syncer, &live_reads) else { panic!("no write") };
    let Action::Write(write) = effect.action else { panic!("no write") };
    assert_eq!(write.address().to_string(), "ConfigMap shop/config at the hub");
}

#[test]
fn finalizers_go_when_nothing_can_run_here_any_more() {
    let mut case = Case::of(elsewhere(2, "Superseded"), Some((1, 1, "")));
    let config = json!({"metadata": {"finalizers": [finalizer(&case.world), "other"]}});
    case = case.with("", &CONFIG_MAP, "c", config);
    let (what, change) = case.patch();
    assert_eq!(what, "ConfigMap shop/c at the hub");
    assert_eq!(change, json!({"metadata": {"finalizers": ["other"]}}));
}

#[test]
fn a_copy_is_kept_until_its_successor_ran_for_long_enough() {
    let mut case = Case::of(elsewhere(2, "Superseded"), Some((1, 1, "")));
    let bare = json!({"metadata": {"finalizers": null}});
    case.world.change("", &NAMESPACE, &Name::cluster_wide("shop"), &bare);
    assert_eq!(case.rests(), "the remaining copies on this cluster are kept for now");
    let running = |at: &str| {
        json!({"status": {"conditions": [{"type": "Running", "status": "True",
        "reason": "Running", "message": "", "lastTransitionTime": at}]}})
    };
    let name = Name::cluster_wide("g");
    case.world.change("", &GRANT, &name, &running("1970-01-11T00:00:00Z"));
    assert_eq!(case.rests(), "the remaining copies on this cluster are kept for now");
    case.world.change("", &GRANT, &name, &running("1970-01-01T00:00:00Z"));
    let Write::Delete { address, .. } = case.write() else { panic!("no deletion") };
    assert_eq!(address.kind, NAMESPACE);
}

#[test]
fn a_diverged_copy_is_kept_even_when_the_namespace_is_deleted() {
    let mut status = elsewhere(2, "Diverged");
    status["phase"] = json!("Deleting");
    let mut case = Case::of(status, Some((1, 1, "")));
    let bare = json!({"metadata": {"finalizers": null}});
    case.world.change("", &NAMESPACE, &Name::cluster_wide("shop"), &bare);
    assert_eq!(case.rests(), "the remaining copies on this cluster are kept for now");
}

#[test]
fn a_volume_that_is_being_deleted_loses_its_finalizer_first_and_the_namespace_is_deleted_last() {
    let mut status = elsewhere(2, "Superseded");
    status["phase"] = json!("Deleting");
    let mut volume = ours();
    volume["metadata"]["finalizers"] = json!(["interlock.dev/keep"]);
    let mut case = Case::of(status, Some((1, 1, ""))).with("a", &CLAIM, "c", volume);
    let bare = json!({"metadata": {"finalizers": null}});
    case.world.change("", &NAMESPACE, &Name::cluster_wide("shop"), &bare);
    let (what, change) = case.patch();
    assert_eq!(what, "PersistentVolumeClaim g/c at the cluster");
    assert_eq!(change, json!({"metadata": {"finalizers": []}}));
    case.world.change("a", &CLAIM, &Name::within("g", "c"), &change);
    let Write::Delete { address, .. } = case.write() else { panic!("no deletion") };
    assert_eq!(address.kind, CLAIM);
    case.world.delete("a", &CLAIM, &Name::within("g", "c"));
    let Write::Delete { address, .. } = case.write() else { panic!("no deletion") };
    assert_eq!(address.kind, NAMESPACE);
    case.world.delete("a", &NAMESPACE, &Name::cluster_wide("g"));
    let (what, change) = case.patch();
    assert_eq!((what.as_str(), &change["status"]["copies"]), ("Grant g at the hub", &json!([])));
}

#[test]
fn an_arrival_makes_room_and_asks_the_hub_before_it_runs() {
    let case = Case::of(granted(1), None);
    let Write::Create { object, .. } = case.write() else { panic!("no creation") };
    assert_eq!(object["metadata"]["annotations"]["interlock.dev/epoch"], "1");
    let case = Case::of(granted(4), Some((2, 2, "")));
    assert_eq!(case.notes_change(), json!({"interlock.dev/epoch": "4"}));
    let case = Case::of(granted(4), Some((4, 2, "")));
    let expected = json!({"interlock.dev/running": permit(4), "interlock.dev/ran": "4"});
    assert_eq!(case.notes_change(), expected);
}

#[test]
fn a_permit_of_another_boot_is_given_anew() {
    let case = Case::of(granted(1), Some((1, 0, "1@boot-0")));
    assert_eq!(case.notes_change()["interlock.dev/running"], permit(1));
}

#[test]
fn nothing_runs_that_somebody_wants_to_take_by_force() {
    let mut case = Case::of(granted(1), Some((1, 0, "")));
    let me = case.world.cluster("a");
    let force = |epoch: i64| {
        json!({"spec": {"grant": {"name": "g", "uid": "g-uid"}, "owner": me,
        "epoch": epoch, "attestation": "PoweredOff", "reason": "it burns down", "requester": "me"}})
    };
    let name = Name::cluster_wide("f");
    case.world.put(&FORCE_RELEASE, name.clone(), "", force(2));
    assert_eq!(case.notes_change()["interlock.dev/running"], permit(1));
    case.world.put(&FORCE_RELEASE, name.clone(), "", force(1));
    let (_, change) = case.patch();
    assert_eq!(change["status"]["conditions"][0]["reason"], "ForceRelease");
    let mut refused = force(1);
    refused["status"] = json!({"outcome": "Refused"});
    case.world.put(&FORCE_RELEASE, name, "", refused);
    assert_eq!(case.notes_change()["interlock.dev/running"], permit(1));
}

#[test]
fn a_volume_that_was_filled_and_is_missing_is_not_made_anew() {
    let mut status = granted(1);
    status["claims"] = json!([{"name": "c", "uid": "c-uid", "fill": "Filled"}]);
    let claim = json!({"metadata": {"uid": "c-uid"}});
    let case = Case::of(status, Some((1, 0, ""))).with("", &CLAIM, "c", claim);
    let (_, change) = case.patch();
    assert_eq!(change["status"]["conditions"][0]["reason"], "VolumeMissing");
}

#[test]
fn a_storage_class_is_called_by_its_name_on_the_cluster() {
    let mut status = granted(1);
    status["claims"] = json!([{"name": "c", "uid": "c-uid"}]);
    let mut case = Case::of(status, Some((1, 0, "")));
    let claim = json!({
        "metadata": {"uid": "c-uid", "finalizers": [finalizer(&case.world)]},
        "spec": {"storageClassName": "fast", "volumeName": "hub-volume"},
    });
    case = case.with("", &CLAIM, "c", claim);
    let volumes = json!({"spec": {"volumes": {"storageClasses": {"fast": "nvme"}}}});
    case.world.change("", &GRANT, &Name::cluster_wide("g"), &volumes);
    let Write::Create { object, .. } = case.write() else { panic!("no creation") };
    assert_eq!(object["spec"], json!({"storageClassName": "nvme"}));
}

#[test]
fn a_name_that_is_taken_is_reported_and_not_written_over() {
    let case = Case::of(granted(1), Some((1, 0, &permit(1))))
        .with("", &CONFIG_MAP, "c", json!({"data": {"a": "1"}}))
        .with("a", &CONFIG_MAP, "c", json!({"data": {"a": "2"}}));
    let (what, change) = case.patch();
    assert_eq!(what, "Grant g at the hub");
    let message = change["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.ends_with("ConfigMap c: the name is taken on the cluster"), "{message}");
}

#[test]
fn a_pod_waits_for_a_claim_that_the_hub_does_not_know_to_be_filled() {
    let pod = json!({"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}});
    let case = Case::of(granted(1), Some((1, 0, &permit(1)))).with("", &POD, "p", pod);
    let (what, change) = case.patch();
    assert_eq!(what, "Grant g at the hub");
    let message = change["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("Pod p: waiting for claim c"), "{message}");
}

#[test]
fn what_is_not_at_the_hub_is_not_deleted_on_the_cluster() {
    let case = Case::of(granted(1), Some((1, 0, &permit(1)))).with("a", &CONFIG_MAP, "c", ours());
    let (what, change) = case.patch();
    assert_eq!(what, "Grant g at the hub");
    assert_eq!(change["status"]["conditions"][0]["reason"], "Running");
}
