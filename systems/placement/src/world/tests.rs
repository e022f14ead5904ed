//! The world in its small sizes.

use super::*;
use crate::kinds::GRANT;
use interlock_checker::{Options, Report, Size, Verdict, check};
use interlock_kernel::{Object, Observed, Place, Room};

fn report(size: &str) -> (Report, u64) {
    let size = Size::parse(size).expect("a size");
    let world = World::new(Namespaces::from_size(&size).expect("a size"));
    let report = check(NAME, &world, &Options::default()).expect("it is explored");
    (report, world.calls())
}

fn holds(size: &str, states: u64) {
    let (report, calls) = report(size);
    assert!(report.all_hold(), "{size}: {report:?}");
    assert!(report.complete);
    assert_eq!(report.distinct_states, states, "{size}");
    assert!(calls > 0 && report.steps_called == calls);
}

#[test]
fn a_namespace_is_moved_though_programs_crash_and_whoever_gains_work_is_woken() {
    holds("moves=1,flights=0,stale=0,crash=1,wakes=1", 385);
}

#[test]
fn every_controller_at_the_hub_takes_part() {
    holds("moves=1,flights=0,stale=0,crash=1,wakes=1,all=1", 10_212);
}

#[test]
fn steps_come_apart_and_caches_are_out_of_date() {
    holds("moves=1,flights=1,stale=0", 5_660);
    holds("moves=1,flights=0,stale=1", 7_812);
}

#[test]
fn a_pod_that_is_deleted_and_made_again_runs_whoever_lags() {
    holds("moves=0,flights=0,late=2,stale=1,crash=0,pods=1,begun=3,syncers=2", 77);
    holds("moves=0,flights=1,late=1,stale=1,crash=0,pods=1,begun=3,syncers=2", 4_932);
    holds("moves=0,flights=1,late=1,stale=0,crash=0,pods=1,begun=2,syncers=2,live=1", 12_913);
    holds("moves=1,flights=1,stale=0,crash=1,pods=1,begun=3", 8_306);
    holds("moves=1,flights=0,stale=1,crash=1,pods=1,begun=3", 10_122);
}

#[test]
fn in_the_end_the_namespace_runs_where_people_want_it() {
    holds("moves=1,flights=0,stale=0,crash=1,live=1", 674);
}

/// How many states a system has as it is explored, and how many where its servers show what the canonical form drops.
fn states_both_ways(system: &Namespaces) -> [u64; 2] {
    [World::new(system.clone()), World::showing_otherwise(system.clone())].map(|world| {
        let report = check(NAME, &world, &Options::default()).expect("it is explored");
        report.distinct_states
    })
}

/// The canonical form drops the order of finalizers and conditions, and empty fields. A room that decided by one of them would
/// be explored on objects that no server shows.
///
/// Only the end of a namespace is compared. With a move there are more states (moves=1,flights=0,stale=0,crash=0: 413 and not
/// 385), and it is not known yet which room is shown an empty field there for an absent one.
#[test]
fn no_decision_about_an_end_depends_on_what_the_canonical_form_drops() {
    let size = Size::parse("moves=0,flights=0,stale=0,crash=0,deletes=2,begun=3").expect("a size");
    let [canonical, otherwise] = states_both_ways(&Namespaces::from_size(&size).expect("a size"));
    assert_eq!(canonical, otherwise);
}

#[test]
fn a_room_that_decides_by_the_order_of_conditions_is_seen() {
    const BY_ORDER: &[mistakes::Bend] =
        &[mistakes::Bend::SyncerObserves(|syncer, subject, view, live_reads| {
            let grant = view.get(Place::HUB, &GRANT, &Name::cluster_wide(subject));
            let first = |grant: Object| grant.data["status"]["conditions"][0]["type"].clone();
            match grant.map(first) {
                Some(first) if first == "Running" => Observed::Nothing("it runs".to_owned()),
                _ => syncer.observe(subject, view, live_reads),
            }
        })];
    let size = Size::parse("moves=1,flights=0,stale=0,crash=0").expect("a size");
    let system = Namespaces::from_size(&size).expect("a size");
    let [canonical, otherwise] = states_both_ways(&Namespaces { bends: BY_ORDER, ..system });
    assert_ne!(otherwise, canonical);
}

/// Each promise by itself could be too weak to see it; the protocol is not.
#[test]
fn a_mistake_is_no_step_of_the_protocol() {
    for name in ["stillness-assumed", "grant-without-release", "epoch-not-grown"] {
        let mistake = mistakes::mistakes().into_iter().find(|mistake| mistake.name == name);
        let system = mistake.expect("there is one of that name").system;
        let world = World::new(Namespaces { is_refined: true, ..system });
        let report = check(NAME, &world, &Options::default()).expect("it is explored");
        let verdict = report.refines.values().next().map(|finding| finding.verdict);
        assert_eq!(verdict, Some(Verdict::Violated), "{name}");
    }
}

/// The others take longer, and are run in release: `interlock check placement --mutants`.
#[test]
fn mistakes_are_found() {
    let world = ENTRY.in_size("").expect("a world");
    let names = [
        "grant-without-release",
        "silence-is-release",
        "revoke-with-no-target",
        "stillness-assumed",
        "look-before-withdraw",
        "locks-ignored",
        "delete-on-absence",
        "force-while-running",
        "refuses-from-cache",
        "ran-ignored",
        "grant-wakes-nobody",
        "nothing-is-stopped",
        "always-forced",
        "desired-ignored",
        "released-ignored",
        "boot-read-late",
        "start-unfilled",
        "loss-kept-quiet",
        "first-claim-only",
        "tag-set-early",
        "key-by-name",
        "cluster-by-name",
        "gone-cluster-is-release",
        "finalizer-stripped-with-the-cluster",
        "granted-to-a-cluster-that-was-let-go",
        "let-go-under-a-grant",
        "target-kept",
        "namespace-let-go-on-absence",
        "owners-copy-forgotten",
        "copy-overlooked",
        "namespace-let-go-first",
        "mirror-beside-tenancy",
        "copies-never-gone",
        "syncer-left-behind",
        "old-grant-orphaned",
        "old-copies-stay",
        "old-label-left-on",
        "claim-not-mirrored",
        "rights-not-awaited",
        "rights-awaited-in-vain",
        "issuer-ignored",
        "live-read-blind-to-drains",
        "drained-while-it-is-a-target",
        "drained-by-the-cache",
        "drained-by-an-old-list",
        "drains-never-told",
        "stamp-ignored",
        "unplaced-from-the-cache",
    ];
    assert_eq!(ENTRY.survivors(&*world, &names).expect("they are checked"), [""; 0]);
}

/// A fault that catches no mistake would be decoration.
#[test]
fn each_fault_catches_a_mistake_that_nothing_else_catches() {
    const CALM: &str = "moves=1,flights=0,stale=0,crash=0";
    for (name, size) in [
        ("released-ignored", "moves=1,flights=0,stale=0,crash=0,syncers=2"),
        ("hub-unguarded", "moves=1,flights=0,stale=0,crash=0,syncers=2"),
        ("close-unguarded", "moves=1,flights=1,late=1,stale=1,crash=0"),
        ("look-before-withdraw", CALM),
        ("silence-is-release", CALM),
        ("revoke-with-no-target", CALM),
        ("boot-ignored", "moves=0,flights=0,stale=1,crash=0"),
        ("boot-read-late", "moves=0,flights=1,late=1,stale=0,crash=0"),
        ("permit-ignores-force", CALM),
        ("first-claim-only", "moves=1,flights=0,stale=0,crash=0,claims=1,begun=3"),
        ("tag-set-early", "moves=1,flights=0,stale=0,crash=0,claims=1,begun=3"),
    ] {
        let mistake = mistakes::mistakes().into_iter().find(|mistake| mistake.name == name);
        let mistake = mistake.expect("there is one of that name");
        let size = Size::parse(size).expect("a size");
        let system = Namespaces::from_size(&size).expect("a size");
        let system = Namespaces { bends: mistake.system.bends, is_refined: false, ..system };
        let only = mistake.breaks.iter().map(|name| (*name).to_owned()).collect();
        let options = Options { only, ..Options::default() };
        let report = check(NAME, &World::new(system), &options).expect("it is explored");
        assert!(report.complete && report.all_hold(), "{name}: {report:?}");
    }
}

#[test]
fn an_owner_that_is_silent_keeps_the_namespace_and_a_cluster_that_takes_nothing_gets_nothing() {
    holds("moves=1,flights=0,stale=1,crash=0,silent=1", 25_036);
    holds("moves=1,flights=0,stale=1,crash=1,unfit=1", 736);
}

#[test]
fn a_namespace_with_a_cloud_role_starts_when_the_role_trusts_its_cluster() {
    holds("moves=1,flights=0,stale=0,crash=1,rights=1,live=1,wakes=1", 1_813);
    holds("moves=1,flights=0,stale=0,crash=0,rights=1,unfit=1", 468);
}

#[test]
fn the_data_of_a_second_claim_goes_along() {
    holds("moves=1,flights=0,stale=0,crash=0,claims=2,begun=3", 12_987);
}

#[test]
fn a_snapshot_that_is_under_way_is_not_taken_for_the_last_one() {
    holds("moves=1,flights=0,stale=0,crash=1,claims=1,slow=1,begun=3", 2_179);
}

#[test]
fn a_process_that_ends_by_itself_runs_again() {
    holds("moves=1,flights=0,stale=0,crash=0,exits=1,live=1,wakes=1", 851);
}

#[test]
fn a_copy_that_is_alone_in_having_something_is_known() {
    holds("moves=0,flights=0,stale=0,crash=0,force=1,claims=1,before=1,begun=3", 1_904);
}

/// All of it takes a minute in release: 131,932 states.
#[test]
fn a_namespace_stays_in_place_when_people_want_it_back() {
    let size = Size::parse("moves=2,flights=0,stale=0,crash=0,claims=1,begun=3").expect("a size");
    let world = World::new(Namespaces::from_size(&size).expect("a size"));
    let options = Options { max_depth: Some(26), ..Options::default() };
    let report = check(NAME, &world, &options).expect("it is explored");
    let comes_back = report.reachable.iter().find(|finding| finding.name == "DesiredComesBack");
    assert_eq!(comes_back.and_then(|finding| finding.steps), Some(25));
}

#[test]
fn a_namespace_that_is_deleted_in_the_middle_of_a_move_goes_and_nothing_is_left_of_it() {
    holds("moves=1,flights=0,stale=0,crash=0,deletes=1,live=1,wakes=1", 4_492);
    holds("moves=0,flights=1,stale=0,crash=1,deletes=1,wakes=1", 3_050);
    holds("moves=0,flights=0,stale=1,crash=0,deletes=1", 5_515);
}

#[test]
fn a_namespace_that_is_deleted_in_the_middle_of_a_move_goes_though_its_data_cannot_be_copied() {
    holds("moves=1,flights=0,stale=0,crash=0,claims=1,slow=2,deletes=1,begun=3,live=1", 2_610);
}

#[test]
fn a_namespace_that_is_made_again_under_its_name_inherits_nothing() {
    holds("moves=0,flights=0,stale=0,crash=0,deletes=2,strip=1,live=1", 3_489);
}

#[test]
fn a_cluster_stays_while_it_has_something_and_is_not_taken_for_the_next_of_its_name() {
    holds("moves=0,flights=0,stale=0,crash=0,deletes=1,retire=2,live=1,wakes=1", 4_000);
    holds("moves=0,flights=0,stale=0,crash=1,retire=1,replace=1,strip=1,live=1", 469);
}

#[test]
fn a_cluster_that_was_let_go_is_granted_nothing_however_late_a_hub_hears_of_it() {
    holds("moves=0,flights=0,stale=1,crash=0,retire=1,hubs=2", 1_237);
}

#[test]
fn people_give_up_what_a_cluster_has_and_never_what_its_owner_has() {
    holds("moves=0,flights=0,stale=0,crash=0,deletes=1,forget=1,live=1,wakes=1", 861);
    holds("moves=0,flights=0,stale=0,crash=0,deletes=1,retire=1,forget=1,strip=1,wakes=1", 7_688);
}

#[test]
fn what_a_move_left_behind_goes_in_time_and_labels_follow_the_grant() {
    holds("moves=1,flights=0,stale=0,crash=0,later=1,live=1", 406);
    holds("moves=0,flights=0,stale=0,crash=1,claims=1,before=1,later=1,live=1", 421);
}

#[test]
fn a_cluster_is_granted_nothing_while_it_says_that_it_is_empty() {
    holds("moves=1,flights=0,stale=0,crash=0,drains=1,live=1,wakes=1", 12_053);
}

#[test]
fn however_late_a_hub_hears_of_a_drain_it_grants_nothing() {
    holds("moves=0,flights=0,stale=1,crash=0,drains=1,hubs=2", 8_491);
}

#[test]
fn steps_about_drains_come_apart() {
    holds("moves=0,flights=1,stale=0,crash=0,drains=1", 4_187);
}

#[test]
fn a_pod_that_a_maker_creates_late_runs_in_no_epoch_but_its_own() {
    holds("moves=2,flights=0,stale=0,crash=0,makers=1,begun=2", 20_350);
}

#[test]
fn what_a_person_ran_under_the_name_of_the_grant_never_runs_beside_it() {
    holds("moves=0,flights=0,stale=1,crash=1,unplaced=1", 3_633);
    holds("moves=0,flights=1,stale=0,crash=0,unplaced=1", 4_507);
}
