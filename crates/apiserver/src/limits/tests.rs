use super::*;
use std::time::Duration;

fn by<'a>(cluster: &'a str, user: &'a str) -> Caller<'a> {
    Caller { cluster, user, is_privileged: false }
}

fn caps() -> Caps {
    Caps {
        in_flight: 8,
        reserved_in_flight: 4,
        in_flight_per_cluster: 6,
        in_flight_per_caller: 6,
        watches: 5,
        watches_per_cluster: 3,
        watches_per_caller: 2,
        writes_per_second: 10,
        write_burst: 3,
        unsent_bytes: 100,
        unsent_bytes_per_cluster: 60,
        unsent_bytes_per_caller: 40,
        stored_bytes_per_cluster: 0,
    }
}

/// Takes places until there are none.
fn fill(limits: &Limits, caller: &Caller<'_>, work: Work) -> Vec<Permit> {
    let now = limits.began;
    std::iter::from_fn(|| limits.enter(caller, work, now).ok()).take(1000).collect()
}

fn read(limits: &Limits, cluster: &str) -> Result<Permit, Status> {
    limits.enter(&by(cluster, "u"), Work::Read, limits.began)
}

#[test]
fn a_cluster_may_use_its_cap_while_there_is_room() {
    let limits = Limits::new(caps());
    let held = fill(&limits, &by("a", "u"), Work::Read);
    assert_eq!(held.len(), 6);
    let refused = read(&limits, "a").expect_err("full");
    assert_eq!((refused.code, refused.retry_after_seconds), (429, Some(1)));
    drop(held);
    assert!(read(&limits, "a").is_ok());
}

#[test]
fn a_cluster_at_its_limit_leaves_a_share_to_others() {
    let limits = Limits::new(caps());
    let greedy = fill(&limits, &by("a", "u"), Work::Read);
    let modest = read(&limits, "b");
    assert!(modest.is_ok());
    assert!(read(&limits, "a").is_err());
    assert!(read(&limits, "c").is_ok());
    drop(greedy);
    assert_eq!(fill(&limits, &by("b", "u"), Work::Read).len(), 5);
}

#[test]
fn when_it_is_tight_nobody_goes_beyond_an_equal_share() {
    let limits = Limits::new(caps());
    let five: Vec<Permit> = (0..5).map(|_| read(&limits, "a").expect("room")).collect();
    let one = read(&limits, "b").expect("room");
    assert_eq!(five.len(), 5);
    // Six of eight are used, so this is the last quarter: a has its half already, b has not.
    assert!(read(&limits, "a").is_err());
    assert!(read(&limits, "b").is_ok());
    drop(one);
}

#[test]
fn nobody_can_take_the_reserved_places() {
    let limits = Limits::new(caps());
    let mut held = Vec::new();
    for cluster in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        held.extend(fill(&limits, &by(cluster, "u"), Work::Read));
    }
    assert_eq!(held.len(), 8);
    for cluster in ["a", "b", "c", "d"] {
        let hub = Caller { is_privileged: true, ..by(cluster, "hub") };
        held.push(limits.enter(&hub, Work::Write, limits.began).expect("a reserved place"));
    }
    let hub = Caller { is_privileged: true, ..by("z", "hub") };
    assert!(limits.enter(&hub, Work::Read, limits.began).is_err());
}

#[test]
fn one_cluster_cannot_take_all_reserved_places() {
    let limits = Limits::new(caps());
    let leases = Caller { is_privileged: true, ..by("a", "u") };
    // One reserved place, and then the six that any caller of the cluster may have.
    assert_eq!(fill(&limits, &leases, Work::Read).len(), 7);
}

#[test]
fn one_caller_cannot_fill_a_cluster() {
    let limits = Limits::new(Caps { in_flight_per_caller: 2, ..caps() });
    let held = fill(&limits, &by("a", "u"), Work::Read);
    assert_eq!(held.len(), 2);
    assert!(limits.enter(&by("a", "v"), Work::Read, limits.began).is_ok());
    assert!(read(&limits, "b").is_ok());
}

#[test]
fn watches_are_counted_by_themselves() {
    let limits = Limits::new(caps());
    let of = |cluster, user| fill(&limits, &by(cluster, user), Work::Watch);
    let held = [of("a", "u"), of("a", "v"), of("b", "u"), of("c", "u")];
    assert_eq!(held.each_ref().map(Vec::len), [2, 1, 2, 0]);
    let hub = Caller { is_privileged: true, ..by("c", "hub") };
    assert!(limits.enter(&hub, Work::Watch, limits.began).is_ok());
    assert_eq!(fill(&limits, &by("a", "u"), Work::Read).len(), 6);
    assert_eq!(limits.in_flight().watches, 5);
}

#[test]
fn writes_come_in_a_burst_and_then_at_a_steady_rate() {
    let limits = Limits::new(caps());
    let at = |caller: Caller<'_>, millis: u64| {
        let now = limits.began + Duration::from_millis(millis);
        limits.enter(&caller, Work::Write, now).map(drop)
    };
    let user = by("a", "u");
    assert!(at(user, 0).is_ok() && at(user, 0).is_ok() && at(user, 0).is_ok());
    assert_eq!(at(user, 0).expect_err("burst is over").retry_after_seconds, Some(1));
    assert!(at(user, 99).is_err());
    assert!(at(user, 100).is_ok());
    assert!(at(user, 100).is_err());
    assert!(at(by("b", "u"), 100).is_ok());
    assert!(at(Caller { is_privileged: true, ..user }, 100).is_ok());
}

#[test]
fn a_clock_that_stands_still_or_runs_back_locks_nobody_out() {
    let limits = Limits::new(caps());
    let late = limits.began + Duration::from_secs(100);
    assert!(limits.enter(&by("a", "u"), Work::Write, late).is_ok());
    assert!(limits.enter(&by("a", "u"), Work::Read, limits.began).is_ok());
}

#[test]
fn going_quiet_for_a_moment_does_not_renew_the_burst() {
    let limits = Limits::new(caps());
    let at = |millis| limits.began + Duration::from_millis(millis);
    let count = |millis| {
        let write = |_: &u32| limits.enter(&by("a", "u"), Work::Write, at(millis)).is_ok();
        (0..100).filter(write).count()
    };
    assert_eq!(count(0), 3);
    for millis in 1..50 {
        let _ = limits.enter(&by("b", "u"), Work::Read, at(millis));
    }
    assert_eq!(count(50), 0);
    assert_eq!(count(1000), 3);
}

#[test]
fn quiet_clusters_are_forgotten() {
    let limits = Limits::new(Caps::default());
    for number in 0..1000 {
        let name = format!("c{number}");
        let _ = limits.enter(&by(&name, "u"), Work::Write, limits.began);
    }
    let later = limits.began + Duration::from_secs(60);
    for _ in 0..1000 {
        let _ = limits.enter(&by("z", "u"), Work::Read, later);
    }
    assert!(limits.in_flight().clusters <= 3, "{:?}", limits.in_flight());
    assert_eq!(limits.in_flight().reads + limits.in_flight().writes, 0);
}

#[test]
fn any_order_of_entering_and_leaving_adds_up_to_nothing() {
    let limits = Limits::new(caps());
    let mut held: Vec<Permit> = Vec::new();
    let mut state = 0x1234_5678_9ABC_DEF1_u64;
    let mut next = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits") % bound
    };
    let clusters = ["a", "b", "c", "d"];
    let users = ["u", "v"];
    for step in 0..20_000 {
        if next(2) == 0 && !held.is_empty() {
            let place = next(held.len());
            held.swap_remove(place);
            continue;
        }
        let work = [Work::Read, Work::Write, Work::Watch][next(3)];
        let caller =
            Caller { is_privileged: next(5) == 0, ..by(clusters[next(4)], users[next(2)]) };
        let now = limits.began + Duration::from_millis(step * 7);
        held.extend(limits.enter(&caller, work, now).ok());
        let total = limits.in_flight();
        assert!(total.reads + total.writes <= 12);
    }
    drop(held);
    let state = lock(&limits.state);
    assert_eq!((state.total, state.reserved, state.active), (InFlight::default(), 0, 0));
    assert!(state.clusters.values().all(|cluster| cluster.callers.is_empty()));
    assert!(state.clusters.values().all(|cluster| cluster.is_in_quiet_list));
}

fn unsent(limits: &Limits, cluster: &str, user: &str) -> Option<Unsent> {
    let permit = limits.enter(&by(cluster, user), Work::Watch, limits.began).expect("a place");
    permit.unsent(20).ok()
}

#[test]
fn bytes_that_nobody_reads_have_budgets_and_are_given_back() {
    let limits = Limits::new(caps());
    let mut held: Vec<_> = (0..2).map(|_| unsent(&limits, "a", "u").expect("room")).collect();
    assert!(unsent(&limits, "a", "u").is_none(), "the caller's budget is used up");
    held.push(unsent(&limits, "a", "v").expect("another caller has room"));
    assert!(unsent(&limits, "a", "w").is_none(), "the cluster's budget is used up");
    held.extend((0..2).map(|_| unsent(&limits, "b", "u").expect("another cluster has room")));
    assert_eq!(limits.in_flight().unsent_bytes, 100);
    // The server's budget is used up, too: who has less than an equal share goes on all the same.
    let modest = unsent(&limits, "c", "u").expect("a share");
    assert!(unsent(&limits, "b", "v").is_none());
    drop(held);
    drop(modest);
    assert_eq!(limits.in_flight().unsent_bytes, 0);
    assert!(unsent(&limits, "a", "u").is_some());
}

#[test]
fn an_answer_outlives_its_place_and_is_still_counted() {
    let limits = Limits::new(caps());
    let unread = unsent(&limits, "a", "u").expect("room");
    for number in 0..20 {
        drop(read(&limits, &format!("other{number}")));
    }
    assert_eq!(limits.in_flight().unsent_bytes, 20);
    drop(unread);
    assert_eq!(
        limits.in_flight(),
        InFlight { clusters: limits.in_flight().clusters, ..InFlight::default() }
    );
}
