//! The rules of the runtime, row by row.

use super::*;

const MISSING: Description = Description::Missing { is_reported: false };
const NOT_SUPPORTED: Description = Description::NotSupported { is_reported: false };

const UNPERMITTED: Home = Home::Placed { running: Running::Nothing, released: 0 };
const WELL: Health = Health { is_started: true, is_ready: true };

/// What is said of a pod without probes.
fn reported(process: Process) -> Option<Report> {
    match process {
        Process::None => None,
        Process::Lives | Process::Stopping | Process::Killed => Some(Report::Running(WELL)),
        Process::Gone(exit) if exit.policy == RestartPolicy::Always => {
            Some(Report::StartsAgain(back_off(&exit).as_secs()))
        }
        Process::Gone(exit) if exit.is_success => Some(Report::Succeeded),
        Process::Gone(_) => Some(Report::Failed),
    }
}

fn wanted(process: Process, lock: Lock) -> Asked {
    let home = Home::Placed { running: Running::Permitted(3), released: 2 };
    let permit = Permit { is_pod_there: true, home, stamp: Stamp::Syncer };
    Asked {
        pod: Pod::Wanted,
        has_finalizer: true,
        stage: Stage::default(),
        process,
        lock,
        holder: Holder::NotAsked,
        home,
        stamp: Stamp::Syncer,
        is_stray_lock_held: false,
        permit: Some(permit).filter(|_| lock == Lock::Mine),
        description: Description::Complete,
        has_fields_without_effect: false,
        reported: reported(process),
        probing: Probing {
            startup: Finding::NoProbe,
            liveness: Finding::NoProbe,
            readiness: Finding::NoProbe,
            was: Health { is_started: false, is_ready: false },
        },
        is_grace_over: false,
        tokens: Tokens::None,
        has_token_files: false,
    }
}

fn exit(is_success: bool, policy: RestartPolicy) -> Exit {
    let (ran, ago) = (Duration::from_secs(5), Duration::from_secs(3600));
    Exit { is_success, policy, restarts: 0, ran, ago }
}

fn decided(facts: Asked) -> Decision {
    decide(&Facts::Asked(facts))
}

#[test]
fn the_machine_is_asked_before_anything_is_decided() {
    for (facts, expected) in [
        (Facts::NoPod { stray: Stray::NotAsked, holder: Holder::NotAsked }, Decision::AskForStray),
        (
            Facts::NoPod { stray: Stray::None, holder: Holder::None },
            Decision::Nothing(Why::NotInTheCache),
        ),
        (Facts::NoPod { stray: Stray::Held, holder: Holder::None }, Decision::LetGoOfStray),
        (Facts::NotAsked, Decision::AskMachine),
    ] {
        assert_eq!(decide(&facts), expected);
    }
}

#[test]
fn no_lock_is_taken_for_what_cannot_be_started() {
    let told = |is_reported| {
        [Description::Missing { is_reported }, Description::NotSupported { is_reported }]
    };
    let free = wanted(Process::None, Lock::Free);
    assert_eq!(decided(free), Decision::TakeLock);
    for description in told(false) {
        assert_eq!(decided(Asked { description, ..free }), Decision::ReportProblem);
        let ended = wanted(Process::Gone(exit(false, RestartPolicy::Always)), Lock::Free);
        let expected = Decision::Nothing(Why::CannotStart);
        assert_eq!(decided(Asked { description, ..ended }), expected, "how it ended stays");
        let mine = wanted(Process::None, Lock::Mine);
        assert_eq!(decided(Asked { description, ..mine }), Decision::LetGoUnstarted);
    }
    for description in told(true) {
        let expected = Decision::Nothing(Why::CannotStart);
        assert_eq!(decided(Asked { description, ..free }), expected);
    }
}

#[test]
fn without_a_permit_only_what_is_never_supported_is_reported() {
    let free = Asked { home: UNPERMITTED, ..wanted(Process::None, Lock::Free) };
    for (description, expected) in [
        (Description::Complete, Decision::Nothing(Why::NotPermitted)),
        (MISSING, Decision::Nothing(Why::NotPermitted)),
        (NOT_SUPPORTED, Decision::ReportProblem),
    ] {
        assert_eq!(decided(Asked { description, ..free }), expected);
    }
}

#[test]
fn fields_without_effect_are_reported_with_the_first_start_only() {
    let again = Process::Gone(exit(false, RestartPolicy::Always));
    for (process, has_fields_without_effect, expected) in [
        (Process::None, false, Decision::Start(3)),
        (Process::None, true, Decision::StartAndTell(3)),
        (again, true, Decision::Start(3)),
    ] {
        let facts = Asked { has_fields_without_effect, ..wanted(process, Lock::Mine) };
        assert_eq!(decided(facts), expected);
    }
}

#[test]
fn the_status_says_what_follows_an_exit() {
    use RestartPolicy::{Always, Never, OnFailure};
    for (is_success, policy, expected) in [
        (true, Always, Report::StartsAgain(0)),
        (false, Always, Report::StartsAgain(0)),
        (true, OnFailure, Report::Succeeded),
        (false, OnFailure, Report::StartsAgain(0)),
        (true, Never, Report::Succeeded),
        (false, Never, Report::Failed),
    ] {
        let process = Process::Gone(exit(is_success, policy));
        let facts = Asked { reported: None, ..wanted(process, Lock::Free) };
        assert_eq!(decided(facts), Decision::Report(expected));
    }
    let lives = wanted(Process::Lives, Lock::Taken);
    assert_eq!(decided(lives), Decision::Nothing(Why::Running));
    let stale = Asked { reported: Some(Report::Failed), ..lives };
    assert_eq!(decided(stale), Decision::Report(Report::Running(WELL)));
}

const FIRST_INIT: Stage = Stage { is_init: true, has_begun: false };
const SECOND_INIT: Stage = Stage { is_init: true, has_begun: true };
const AFTER_INITS: Stage = Stage { is_init: false, has_begun: true };

#[test]
fn what_an_init_container_does_is_reported_and_no_probe_restarts_it() {
    let lives = Asked { stage: FIRST_INIT, reported: None, ..wanted(Process::Lives, Lock::Taken) };
    assert_eq!(decided(lives), Decision::Report(Report::Initializing));
    let told = Asked { reported: Some(Report::Initializing), ..lives };
    assert_eq!(decided(told), Decision::Nothing(Why::Running));
    // Before the first one there is nothing to say; after each, that it is done, and only then the next is started.
    for (stage, expected) in [
        (Stage::default(), Decision::TakeLock),
        (FIRST_INIT, Decision::TakeLock),
        (SECOND_INIT, Decision::Report(Report::Initializing)),
        (AFTER_INITS, Decision::Report(Report::Initializing)),
    ] {
        let facts = Asked { stage, ..wanted(Process::None, Lock::Free) };
        assert_eq!(decided(facts), expected, "{stage:?}");
        let reported = Some(Report::Initializing).filter(|_| stage.has_begun);
        assert_eq!(decided(Asked { reported, ..facts }), Decision::TakeLock, "{stage:?}");
    }
}

#[test]
fn an_init_container_that_cannot_be_started_is_reported_once() {
    let next = Asked { stage: SECOND_INIT, ..wanted(Process::None, Lock::Free) };
    assert_eq!(decided(Asked { description: MISSING, ..next }), Decision::ReportProblem);
    let description = Description::Missing { is_reported: true };
    let told = Asked { description, ..next };
    assert_eq!(decided(told), Decision::Nothing(Why::CannotStart));
}

#[test]
fn an_init_container_that_fails_starts_again_or_ends_the_pod() {
    for (policy, expected) in
        [(RestartPolicy::OnFailure, Report::StartsAgain(0)), (RestartPolicy::Never, Report::Failed)]
    {
        let process = Process::Gone(exit(false, policy));
        let facts = Asked { stage: FIRST_INIT, reported: None, ..wanted(process, Lock::Free) };
        assert_eq!(decided(facts), Decision::Report(expected));
    }
    let over = Process::Gone(exit(false, RestartPolicy::Never));
    let reported = Some(Report::Failed);
    let over = Asked { stage: FIRST_INIT, reported, ..wanted(over, Lock::Free) };
    assert_eq!(decided(over), Decision::Nothing(Why::Finished));
}

#[test]
fn fields_without_effect_are_not_reported_again_for_each_container() {
    for (stage, expected) in [
        (FIRST_INIT, Decision::StartAndTell(3)),
        (SECOND_INIT, Decision::Start(3)),
        (AFTER_INITS, Decision::Start(3)),
    ] {
        let facts = Asked { stage, ..wanted(Process::None, Lock::Mine) };
        let reported = Some(Report::Initializing).filter(|_| stage.has_begun);
        let facts = Asked { has_fields_without_effect: true, reported, ..facts };
        assert_eq!(decided(facts), expected, "{stage:?}");
    }
}

#[test]
fn each_restart_waits_twice_as_long_up_to_five_minutes() {
    let ended = exit(false, RestartPolicy::Always);
    for (restarts, seconds) in [(0, 0), (1, 10), (2, 20), (5, 160), (6, 300), (60, 300)] {
        assert_eq!(back_off(&Exit { restarts, ..ended }), Duration::from_secs(seconds));
    }
    let steady = Exit { restarts: 5, ran: Duration::from_secs(601), ..ended };
    assert_eq!(back_off(&steady), Duration::ZERO);
    let lately = Exit { restarts: 2, ago: Duration::from_secs(5), ..ended };
    let facts = wanted(Process::Gone(lately), Lock::Free);
    let left = Duration::from_secs(15);
    assert_eq!(decided(facts), Decision::Nothing(Why::BackingOff(left)));
}

#[test]
fn a_token_is_written_before_the_lock_is_taken_and_while_the_process_lives() {
    let missing = Tokens::Failing { is_missing: true };
    let late = Tokens::Failing { is_missing: false };
    let running = Decision::Nothing(Why::Running);
    for (process, lock, tokens, expected) in [
        (Process::None, Lock::Free, Tokens::Due, Decision::WriteToken),
        (Process::None, Lock::Free, Tokens::Good, Decision::TakeLock),
        (Process::None, Lock::Free, late, Decision::TakeLock),
        (Process::None, Lock::Mine, Tokens::Due, Decision::Start(3)),
        (Process::Lives, Lock::Taken, Tokens::Due, Decision::WriteToken),
        (Process::Lives, Lock::Taken, Tokens::Good, running),
        (Process::Lives, Lock::Taken, late, running),
        (Process::Lives, Lock::Taken, missing, running),
        (Process::Stopping, Lock::Taken, Tokens::Due, Decision::Nothing(Why::Stopping)),
    ] {
        let facts = Asked { tokens, ..wanted(process, lock) };
        assert_eq!(decided(facts), expected, "{facts:?}");
    }
    let unpermitted =
        Asked { home: UNPERMITTED, tokens: Tokens::Due, ..wanted(Process::None, Lock::Free) };
    assert_eq!(decided(unpermitted), Decision::Nothing(Why::NotPermitted));
}

#[test]
fn a_pod_without_its_token_says_so_and_is_tried_again() {
    let tokens = Tokens::Failing { is_missing: true };
    let refused = Asked { description: MISSING, tokens, ..wanted(Process::None, Lock::Free) };
    assert_eq!(decided(refused), Decision::ReportProblem);
    let description = Description::Missing { is_reported: true };
    let told = Asked { description, ..refused };
    assert_eq!(decided(told), Decision::Nothing(Why::TokenNotIssued));
    let ended = Process::Gone(exit(false, RestartPolicy::Always));
    let again = Asked { description: MISSING, tokens, ..wanted(ended, Lock::Free) };
    assert_eq!(decided(again), Decision::Nothing(Why::TokenNotIssued));
}

#[test]
fn tokens_are_removed_when_nobody_reads_them_any_more() {
    let over = Process::Gone(exit(true, RestartPolicy::Never));
    for (pod, process, lock, expected) in [
        (Pod::Leaving, Process::None, Lock::Free, Decision::RemoveTokens),
        (Pod::Leaving, over, Lock::Free, Decision::RemoveTokens),
        (Pod::Leaving, Process::Lives, Lock::Taken, Decision::Terminate),
        (Pod::Leaving, over, Lock::Taken, Decision::AskForHolder),
        (Pod::Finished, over, Lock::Free, Decision::RemoveTokens),
        (Pod::Finished, Process::None, Lock::Free, Decision::RemoveTokens),
        (Pod::Wanted, Process::Lives, Lock::Taken, Decision::Nothing(Why::Running)),
    ] {
        let facts = Asked { pod, has_token_files: true, ..wanted(process, lock) };
        assert_eq!(decided(facts), expected, "{facts:?}");
    }
}

#[test]
fn a_pod_that_leaves_loses_our_finalizer_and_is_then_deleted() {
    for (process, lock, has_finalizer, expected) in [
        (Process::None, Lock::Free, true, Decision::TakeFinalizerOff),
        (Process::None, Lock::Free, false, Decision::DeletePod),
        (Process::None, Lock::Mine, true, Decision::LetGo),
        (Process::None, Lock::Taken, false, Decision::AskForHolder),
        (Process::Lives, Lock::Taken, true, Decision::Terminate),
    ] {
        let facts = Asked { pod: Pod::Leaving, has_finalizer, ..wanted(process, lock) };
        assert_eq!(decided(facts), expected);
    }
}

#[test]
fn a_pod_runs_in_its_own_epoch_only_and_without_a_permit_only_where_nothing_is_placed() {
    let placed = |epoch, released| Home::Placed { running: Running::Permitted(epoch), released };
    for (home, stamp, expected) in [
        (Home::Unplaced, Stamp::None, Ok(UNPLACED)),
        (Home::Unplaced, Stamp::Syncer, Err(Why::NotPermitted)),
        (Home::Unplaced, Stamp::Epoch(3), Err(Why::NotPermitted)),
        (Home::Closed, Stamp::None, Err(Why::NamespaceCloses)),
        (placed(3, 2), Stamp::Syncer, Ok(3)),
        (placed(3, 2), Stamp::Epoch(3), Ok(3)),
        (placed(3, 2), Stamp::Epoch(1), Err(Why::OtherEpoch)),
        (placed(3, 2), Stamp::Epoch(4), Err(Why::OtherEpoch)),
        (placed(3, 2), Stamp::None, Err(Why::NotOurs)),
        (placed(3, 3), Stamp::Epoch(3), Err(Why::NotPermitted)),
        (
            Home::Placed { running: Running::Lapsed(3), released: 2 },
            Stamp::Epoch(3),
            Err(Why::NotPermitted),
        ),
        (UNPERMITTED, Stamp::Syncer, Err(Why::NotPermitted)),
    ] {
        assert_eq!(may_start(home, stamp), expected, "{home:?} {stamp:?}");
        let free = Asked { home, stamp, ..wanted(Process::None, Lock::Free) };
        let locked = expected.map_or_else(Decision::Nothing, |_| Decision::TakeLock);
        assert_eq!(decided(free), locked, "{home:?} {stamp:?}");
        // Whatever the cache shows, the live read decides.
        let permit = Some(Permit { is_pod_there: true, home, stamp });
        let mine = Asked { permit, ..wanted(Process::None, Lock::Mine) };
        let started = expected.map_or(Decision::LetGo, Decision::Start);
        assert_eq!(decided(mine), started, "{home:?} {stamp:?}");
    }
}

#[test]
fn nothing_starts_in_a_namespace_that_is_not_placed_before_it_was_read_live() {
    let home = Home::Unplaced;
    let seen = Asked { home, stamp: Stamp::None, ..wanted(Process::None, Lock::Mine) };
    assert_eq!(decided(Asked { permit: None, ..seen }), Decision::ReadPermit);
}

#[test]
fn the_finalizer_comes_before_the_lock_and_back_if_somebody_takes_it_off() {
    for (process, lock) in [(Process::None, Lock::Free), (Process::Lives, Lock::Taken)] {
        let bare = Asked { has_finalizer: false, ..wanted(process, lock) };
        assert_eq!(decided(bare), Decision::PutFinalizer);
    }
    let bare = Asked { has_finalizer: false, ..wanted(Process::None, Lock::Free) };
    let closed = Asked { home: UNPERMITTED, ..bare };
    assert_eq!(decided(closed), Decision::Nothing(Why::NotPermitted));
}

#[test]
fn a_process_whose_pod_is_gone_is_stopped_and_one_whose_pod_is_there_is_not() {
    let orphan = |process, is_pod_gone, is_grace_over| {
        Holder::Process(Orphan { process, is_pod_gone, is_grace_over })
    };
    for (holder, expected) in [
        (Holder::NotAsked, Decision::AskForHolder),
        (Holder::None, Decision::Nothing(Why::LockTaken)),
        (orphan(Process::Lives, None, false), Decision::ReadWhetherOrphan),
        (orphan(Process::Lives, Some(false), true), Decision::Nothing(Why::LockTaken)),
        (orphan(Process::Lives, Some(true), false), Decision::TerminateOrphan),
        (orphan(Process::Stopping, Some(true), false), Decision::Nothing(Why::Stopping)),
        (orphan(Process::Stopping, Some(true), true), Decision::KillOrphan),
        (orphan(Process::Killed, Some(true), true), Decision::Nothing(Why::WillNotDie)),
    ] {
        let facts = Asked { holder, ..wanted(Process::None, Lock::Taken) };
        assert_eq!(decided(facts), expected, "{holder:?}");
        if holder != Holder::NotAsked && holder != Holder::None {
            let alone = Facts::NoPod { stray: Stray::None, holder };
            assert_eq!(decide(&alone), expected, "{holder:?}");
        }
    }
}

#[test]
fn readiness_is_reported_as_the_probes_find_it() {
    use Finding::{Failure, NoProbe, Nothing, Success};
    let none = Health { is_started: false, is_ready: false };
    let started = Health { is_started: true, is_ready: false };
    for (startup, readiness, was, expected) in [
        (NoProbe, NoProbe, none, WELL),
        (NoProbe, Nothing, none, started),
        (NoProbe, Success, none, WELL),
        (NoProbe, Failure, WELL, started),
        (Nothing, NoProbe, none, none),
        (Nothing, Success, none, none),
        (Success, Nothing, none, started),
        // The agent was restarted, and counts from the beginning.
        (NoProbe, Nothing, WELL, WELL),
        (Nothing, Nothing, WELL, WELL),
    ] {
        let probing = Probing { startup, liveness: NoProbe, readiness, was };
        assert_eq!(health(&probing), expected, "{probing:?}");
        let facts = Asked { probing, reported: None, ..wanted(Process::Lives, Lock::Taken) };
        assert_eq!(decided(facts), Decision::Report(Report::Running(expected)));
    }
}

#[test]
fn a_process_that_fails_a_probe_is_stopped_and_then_killed() {
    use Finding::{Failure, NoProbe, Nothing, Success};
    let none = Health { is_started: false, is_ready: false };
    let decides = |startup, liveness| {
        let probing = Probing { startup, liveness, readiness: NoProbe, was: none };
        let reported = Some(Report::Running(health(&probing)));
        decided(Asked { probing, reported, ..wanted(Process::Lives, Lock::Taken) })
    };
    let running = Decision::Nothing(Why::Running);
    assert_eq!(decides(NoProbe, Failure), Decision::Restart(FailedProbe::Liveness));
    assert_eq!(decides(Failure, Nothing), Decision::Restart(FailedProbe::Startup));
    assert_eq!(decides(Success, Failure), Decision::Restart(FailedProbe::Liveness));
    assert_eq!(decides(Nothing, Failure), running, "it has not started");
    assert_eq!(decides(NoProbe, Success), running);
    let stopping = wanted(Process::Stopping, Lock::Taken);
    assert_eq!(decided(stopping), Decision::Nothing(Why::Stopping));
    assert_eq!(decided(Asked { is_grace_over: true, ..stopping }), Decision::Kill);
}
