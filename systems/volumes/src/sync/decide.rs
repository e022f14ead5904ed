//! What is done next about an object that syncs. First matching row wins.

pub use super::facts::{
    Destination, Facts, Mover, Next, Picture, Purpose, Said, Side, Slot, Snapshot, Source, Sync,
    Target, Tidying, Trouble, Verdict, Why,
};
use serde::Serialize;

/// How many snapshots stay, at least, of those that outlive their sync.
pub const KEPT: usize = 2;

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Say in the status why nothing is done.
    Say(Say),
    /// Ask the mover.
    AskMover,
    /// Ask the mover, and then look at the object and its snapshot afresh.
    LiveRead,
    /// Write the intent, with the tag that is set now.
    WriteIntent {
        /// Whether our finalizer goes on with the same write.
        keeps: bool,
    },
    /// Make the claim of the volume that is written.
    MakeTarget,
    /// Have the snapshot taken.
    TakeSnapshot,
    /// Take a place.
    TakeSlot,
    /// Begin the attempt.
    Begin(Begin),
    /// Write onto the object which snapshot is the latest.
    Publish(Product),
    /// Say that it is done.
    Finish(Finish),
    /// The mover forgets an earlier attempt.
    ForgetEarlier,
    /// The mover forgets this attempt.
    Forget,
    /// Give the place back.
    GiveSlotBack,
    /// The next attempt, later.
    Retry,
    /// The next attempt at once, with what has changed.
    Renew,
    /// Say that it is given up.
    GiveUp(Hopeless),
    /// The snapshot at this place goes: nobody needs it.
    DeleteSnapshot(usize),
    /// The snapshot at this place is left to the person who wants to keep it.
    LeaveSnapshot(usize),
    /// The claim is being deleted that was made for one sync.
    DeleteTarget,
    /// Take the intent off.
    RemoveIntent,
    /// Take the finalizer off.
    LetGo,
}

/// What the status is to say while nothing is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Say {
    /// Why nothing is done.
    pub why: Why,
    /// Whether it says that what was wrong without a sync is mended.
    pub mends: bool,
    /// Whether an event tells what has no effect.
    pub tells_ignored: bool,
}

/// How a mover begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Begin {
    /// Whether the snapshot is read, and not the volume itself.
    pub reads_snapshot: bool,
    /// What is removed from the repository; None: nothing is.
    pub tidying: Option<Tidying>,
    /// Whether an event warns that what is saved is of no one moment.
    pub warns: bool,
}

/// How a sync ends that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Finish {
    /// What it brought.
    pub product: Product,
    /// What was removed from the repository; None: nothing was.
    pub tidying: Option<Tidying>,
    /// Whether an event tells what has no effect.
    pub tells_ignored: bool,
}

/// What a sync brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Product {
    /// A VolumeSnapshot of the claim of a source.
    VolumeSnapshot,
    /// A snapshot in a repository.
    Snapshot,
    /// Nothing: something was removed.
    Nothing,
    /// A snapshot of what a destination brought.
    LatestSnapshot,
    /// What a destination brought, in its volume.
    Volume,
}

/// Why a sync cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Hopeless {
    /// What the mover says.
    MoverFailed,
    /// What the mover says of the last attempt; all before it failed too.
    RetriesExhausted,
    /// There is nothing in what was taken or brought.
    Empty,
    /// The snapshot is not the one that was asked for.
    UselessSnapshot,
    /// The object asks for something else now, which is not supported.
    Refused,
    /// The namespace left before the mover began: whoever runs it saves it.
    NotHere,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_terminating {
        return leave(facts);
    }
    if facts.verdict == Verdict::BrokenIntent {
        return wait(facts, Why::BrokenIntent);
    }
    match facts.sync {
        None => rest(facts),
        Some(sync) if sync.is_over => clear(facts, sync),
        Some(sync) => go_on(facts, sync),
    }
}

/// Nothing is done, once the status says why.
fn wait(facts: &Facts, why: Why) -> Decision {
    let is_calm = matches!(why, Why::NotDue(_) | Why::SnapshotNotReady(Trouble::None));
    let mends = is_calm && facts.said.is_something_wrong;
    if facts.said.reasons.contains(&why) && !mends {
        return Decision::Nothing(why);
    }
    // Who holds the snapshots of an object that is being deleted has nothing to do with what it asks for.
    let tells_ignored = facts.said.is_ignored_news && why != Why::Held;
    Decision::Say(Say { why, mends, tells_ignored })
}

/// The object is being deleted.
fn leave(facts: &Facts) -> Decision {
    if let Some(sync) = facts.sync.filter(|sync| sync.slot == Slot::Mine) {
        // A mover that runs needs its place until it ends, whatever became of its object.
        return match sync.mover {
            Mover::NotAsked => Decision::AskMover,
            Mover::Runs { .. } => Decision::Nothing(Why::Runs { is_news: false }),
            Mover::Unknown | Mover::Done | Mover::Failed { .. } => Decision::GiveSlotBack,
        };
    }
    if facts.has_held_snapshot {
        return match facts.side {
            Side::Source(_) => Decision::Nothing(Why::Held),
            Side::Destination(_) => wait(facts, Why::Held),
        };
    }
    if !facts.is_kept {
        return Decision::Nothing(Why::Terminating);
    }
    // What is not known of is left to the garbage collector, which looks at no hold.
    if !facts.is_fresh || !facts.are_snapshots_fresh {
        return Decision::LiveRead;
    }
    drop_snapshot(facts).unwrap_or(Decision::LetGo)
}

/// No sync is on its way.
fn rest(facts: &Facts) -> Decision {
    // Which snapshots may go rests on what the status says, and that may be old in the cache.
    if let Some(drop) = drop_snapshot(facts) {
        return if facts.is_fresh { drop } else { Decision::LiveRead };
    }
    match facts.side {
        Side::Source(source) if source.is_elsewhere => return wait(facts, Why::NotHere),
        Side::Source(_) | Side::Destination(_) => {}
    }
    if let Some(blocked) = blocked(facts, wait(facts, Why::Refused)) {
        return blocked;
    }
    match facts.next {
        // Snapshots that outlive their sync must not be lost with the object.
        Next::Now => {
            Decision::WriteIntent { keeps: are_snapshots_lasting(facts) && !facts.is_kept }
        }
        // What went wrong stays where it was said.
        Next::Change => Decision::Nothing(Why::NotDue(Next::Change)),
        next => wait(facts, Why::NotDue(next)),
    }
}

/// What is done instead of a sync that cannot begin.
fn blocked(facts: &Facts, if_refused: Decision) -> Option<Decision> {
    match facts.verdict {
        Verdict::Served => None,
        Verdict::Refused => Some(if_refused),
        Verdict::Hindered => Some(wait(facts, Why::Hindered)),
        Verdict::BrokenIntent => Some(wait(facts, Why::BrokenIntent)),
    }
}

/// The sync is over: what it needed goes, the intent last.
fn clear(facts: &Facts, sync: Sync) -> Decision {
    if !facts.is_fresh {
        return Decision::LiveRead;
    }
    if sync.is_earlier_known {
        return Decision::ForgetEarlier;
    }
    match sync.mover {
        Mover::Done | Mover::Failed { .. } => return Decision::Forget,
        Mover::Runs { is_news } => return wait(facts, Why::Runs { is_news }),
        Mover::NotAsked | Mover::Unknown => {}
    }
    if let Some(drop) = drop_snapshot(facts) {
        return drop;
    }
    match (facts.side, sync.slot) {
        (Side::Destination(destination), _) if destination.has_temporary_claim => {
            Decision::DeleteTarget
        }
        (_, Slot::Mine) => Decision::GiveSlotBack,
        (_, Slot::NotNeeded | Slot::Free | Slot::Full) => Decision::RemoveIntent,
    }
}

/// The sync is on its way.
fn go_on(facts: &Facts, sync: Sync) -> Decision {
    // What can only be waited for is not worth a question.
    if sync.backs_off {
        // Whoever mends something does not wait for the end of a pause.
        return if sync.is_changed { Decision::Renew } else { wait(facts, Why::BacksOff) };
    }
    if let Snapshot::NotReady(trouble) = sync.snapshot {
        return wait(facts, Why::SnapshotNotReady(trouble));
    }
    match facts.side {
        Side::Source(source) => save(facts, sync, source),
        Side::Destination(destination) => bring(facts, sync, destination),
    }
}

/// A source: snapshot, place, mover.
fn save(facts: &Facts, sync: Sync, source: Source) -> Decision {
    let is_snapshot_only = source.purpose == Some(Purpose::Snapshot);
    // Without its snapshot a sync does not wait for a place.
    if !is_snapshot_only && let Some(asked) = ask(facts, sync, sync.snapshot != Snapshot::Missing) {
        return asked;
    }
    if let Some(answered) = hear(facts, sync) {
        return answered;
    }
    if sync.mover == Mover::Done {
        return saved(facts, sync, source);
    }
    // A snapshot that waits here until the namespace comes back would be old news by then, and yet
    // the newest in the repository.
    if source.is_elsewhere {
        return Decision::GiveUp(Hopeless::NotHere);
    }
    if let Some(blocked) = blocked(facts, Decision::GiveUp(Hopeless::Refused)) {
        return blocked;
    }
    match sync.snapshot {
        Snapshot::Missing => return Decision::TakeSnapshot,
        Snapshot::Useless => return Decision::GiveUp(Hopeless::UselessSnapshot),
        Snapshot::Ready { is_usable: false } => return Decision::GiveUp(Hopeless::Empty),
        Snapshot::Ready { is_usable: true } | Snapshot::NotNeeded | Snapshot::NotReady(_) => {}
    }
    match source.purpose {
        Some(Purpose::Snapshot) => saved(facts, sync, source),
        Some(Purpose::Backup { tidying }) => {
            let reads_snapshot = sync.snapshot != Snapshot::NotNeeded;
            let warns = !reads_snapshot && source.is_in_use;
            begin(facts, sync, Begin { reads_snapshot, tidying, warns })
        }
        Some(Purpose::Tidy) | None => begin(facts, sync, Begin::PLAIN),
    }
}

/// All of the data is where it is to go.
fn saved(facts: &Facts, sync: Sync, source: Source) -> Decision {
    match source.purpose {
        None => Decision::GiveUp(Hopeless::Refused),
        Some(Purpose::Tidy) => finish(facts, Product::Nothing, None),
        Some(Purpose::Backup { tidying }) => finish(facts, Product::Snapshot, tidying),
        // It was a backup until the spec changed.
        Some(Purpose::Snapshot) if sync.snapshot == Snapshot::Missing => {
            finish(facts, Product::Snapshot, None)
        }
        Some(Purpose::Snapshot) => finish(facts, Product::VolumeSnapshot, None),
    }
}

/// A destination: volume, place, mover, snapshot. Once there is a snapshot of a sync, its mover is never
/// begun again: a snapshot that is being taken is not written to.
fn bring(facts: &Facts, sync: Sync, destination: Destination) -> Decision {
    let is_refused = facts.verdict == Verdict::Refused;
    match sync.snapshot {
        Snapshot::Ready { .. } | Snapshot::Useless if !facts.is_fresh => return Decision::LiveRead,
        // What was brought is not what the spec asks for any more, whatever that is.
        Snapshot::Ready { .. } | Snapshot::Useless if is_refused => {
            return Decision::GiveUp(Hopeless::Refused);
        }
        Snapshot::Useless => return Decision::GiveUp(Hopeless::UselessSnapshot),
        Snapshot::Ready { is_usable: false } => return Decision::GiveUp(Hopeless::Empty),
        Snapshot::Ready { is_usable: true } => {
            return publish(facts, destination, Product::LatestSnapshot);
        }
        Snapshot::NotNeeded | Snapshot::Missing | Snapshot::NotReady(_) => {}
    }
    if let Some(asked) = ask(facts, sync, true) {
        return asked;
    }
    if let Some(answered) = hear(facts, sync) {
        return answered;
    }
    if sync.mover == Mover::Done {
        return match sync.snapshot {
            _ if is_refused => Decision::GiveUp(Hopeless::Refused),
            _ if !destination.is_outcome_usable => Decision::GiveUp(Hopeless::Empty),
            Snapshot::Missing => Decision::TakeSnapshot,
            Snapshot::NotNeeded
            | Snapshot::NotReady(_)
            | Snapshot::Ready { .. }
            | Snapshot::Useless => publish(facts, destination, Product::Volume),
        };
    }
    if let Some(blocked) = blocked(facts, Decision::GiveUp(Hopeless::Refused)) {
        return blocked;
    }
    match destination.target {
        Target::Missing => Decision::MakeTarget,
        Target::NotBound => wait(facts, Why::TargetNotBound),
        Target::Bound => begin(facts, sync, Begin::PLAIN),
    }
}

/// All of the data is in the volume, and in its snapshot if there is to be one.
fn publish(facts: &Facts, destination: Destination, product: Product) -> Decision {
    match destination.is_published {
        false => Decision::Publish(product),
        true => finish(facts, product, None),
    }
}

/// The mover is asked and waited for; None: it has answered, and does not run.
fn ask(facts: &Facts, sync: Sync, waits_for_place: bool) -> Option<Decision> {
    match sync.mover {
        Mover::NotAsked if waits_for_place && sync.slot == Slot::Full => {
            Some(wait(facts, Why::SlotsFull))
        }
        Mover::NotAsked => Some(Decision::AskMover),
        Mover::Runs { is_news } => Some(wait(facts, Why::Runs { is_news })),
        Mover::Unknown | Mover::Done | Mover::Failed { .. } => None,
    }
}

/// What the mover answered is compared with what is so now, and what failed is tried again; None:
/// nothing failed.
fn hear(facts: &Facts, sync: Sync) -> Option<Decision> {
    if !facts.is_fresh {
        return Some(Decision::LiveRead);
    }
    if sync.is_earlier_known {
        return Some(Decision::ForgetEarlier);
    }
    match (sync.mover, sync.slot) {
        (Mover::Failed { may_heal: false }, _) => Some(Decision::GiveUp(Hopeless::MoverFailed)),
        (Mover::Failed { may_heal: true }, _) if sync.is_last_attempt => {
            Some(Decision::GiveUp(Hopeless::RetriesExhausted))
        }
        (Mover::Failed { may_heal: true }, Slot::Mine) => Some(Decision::GiveSlotBack),
        (Mover::Failed { may_heal: true }, Slot::NotNeeded | Slot::Free | Slot::Full) => {
            Some(Decision::Retry)
        }
        (Mover::NotAsked | Mover::Unknown | Mover::Runs { .. } | Mover::Done, _) => None,
    }
}

/// The mover begins once there is a place for it.
fn begin(facts: &Facts, sync: Sync, begin: Begin) -> Decision {
    match sync.slot {
        Slot::Mine | Slot::NotNeeded => Decision::Begin(begin),
        Slot::Free => Decision::TakeSlot,
        Slot::Full => wait(facts, Why::SlotsFull),
    }
}

impl Begin {
    /// Nothing is removed, and there is nothing to warn of.
    const PLAIN: Begin = Begin { reads_snapshot: false, tidying: None, warns: false };
}

fn finish(facts: &Facts, product: Product, tidying: Option<Tidying>) -> Decision {
    let tells_ignored = facts.said.is_ignored_news;
    Decision::Finish(Finish { product, tidying, tells_ignored })
}

/// Whether snapshots outlive their sync; else they are only on the way to somewhere. As long as it is
/// not known what they are for, they are not thrown away.
fn are_snapshots_lasting(facts: &Facts) -> bool {
    match facts.side {
        Side::Destination(_) => true,
        Side::Source(source) => match source.purpose {
            Some(Purpose::Snapshot) | None => true,
            Some(Purpose::Backup { .. } | Purpose::Tidy) => false,
        },
    }
}

/// What happens to the snapshot that is being deleted next; None: all stay.
fn drop_snapshot(facts: &Facts) -> Option<Decision> {
    let place = spare(facts)?;
    match facts.snapshots[place].is_kept {
        true => Some(Decision::LeaveSnapshot(place)),
        false => Some(Decision::DeleteSnapshot(place)),
    }
}

/// The snapshot that is being deleted next. One that is held never goes, nor does the latest while the object
/// stays.
fn spare(facts: &Facts) -> Option<usize> {
    let may_go = |snapshot: &Picture| !snapshot.is_terminating && !snapshot.is_held;
    let first = |may: &dyn Fn(&Picture) -> bool| {
        facts.snapshots.iter().position(|snapshot| may_go(snapshot) && may(snapshot))
    };
    if facts.is_terminating {
        return first(&|_| true);
    }
    let is_over = facts.sync.is_none_or(|sync| sync.is_over);
    let is_lasting = are_snapshots_lasting(facts);
    // One that could not be published never will be.
    let left =
        first(&|snapshot| is_over && !snapshot.is_latest && (snapshot.is_own || !is_lasting));
    if left.is_some() {
        return left;
    }
    let counts = |snapshot: &&Picture| !snapshot.is_terminating && !snapshot.is_kept;
    if facts.snapshots.iter().filter(counts).count() <= KEPT {
        return None;
    }
    let is_needed = |snapshot: &Picture| snapshot.is_latest || (snapshot.is_own && !is_over);
    first(&|snapshot| !snapshot.is_kept && !is_needed(snapshot))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object with nothing to do.
    fn resting(side: Side) -> Facts {
        Facts {
            is_terminating: false,
            is_kept: false,
            has_held_snapshot: false,
            snapshots: Vec::new(),
            is_fresh: true,
            are_snapshots_fresh: true,
            verdict: Verdict::Served,
            next: Next::Tag,
            said: Said { reasons: [Why::NotDue(Next::Tag)].into(), ..Said::default() },
            side,
            sync: None,
        }
    }

    fn source(purpose: Purpose) -> Facts {
        let purpose = Some(purpose);
        resting(Side::Source(Source { is_elsewhere: false, purpose, is_in_use: true }))
    }

    fn destination() -> Facts {
        resting(Side::Destination(Destination {
            target: Target::Bound,
            has_temporary_claim: false,
            is_outcome_usable: true,
            is_published: false,
        }))
    }

    const BACKUP: Purpose = Purpose::Backup { tidying: None };

    /// The same in the middle of a sync, with a snapshot and a place, before the mover began.
    fn syncing(facts: Facts, change: impl FnOnce(&mut Sync)) -> Facts {
        let mut sync = Sync {
            is_over: false,
            backs_off: false,
            is_changed: false,
            is_last_attempt: false,
            snapshot: Snapshot::Ready { is_usable: true },
            slot: Slot::Mine,
            mover: Mover::Unknown,
            is_earlier_known: false,
        };
        change(&mut sync);
        Facts { sync: Some(sync), ..facts }
    }

    #[test]
    fn why_nothing_is_done_is_said_once() {
        let why = Why::NotDue(Next::Tag);
        assert_eq!(decide(&destination()), Decision::Nothing(why));
        let silent = Facts { said: Said::default(), ..destination() };
        let say = Say { why, mends: false, tells_ignored: false };
        assert_eq!(decide(&silent), Decision::Say(say));
        let said = Said { is_something_wrong: true, is_ignored_news: true, ..destination().said };
        let mended = Facts { said, ..destination() };
        assert_eq!(decide(&mended), Decision::Say(Say { why, mends: true, tells_ignored: true }));
    }

    #[test]
    fn what_was_given_up_stays_as_it_was_said() {
        let said = Said { is_something_wrong: true, ..Said::default() };
        let given_up = Facts { next: Next::Change, said, ..destination() };
        assert_eq!(decide(&given_up), Decision::Nothing(Why::NotDue(Next::Change)));
    }

    #[test]
    fn an_object_is_kept_from_its_first_intent_if_its_snapshots_outlive_their_syncs() {
        for (facts, keeps) in
            [(source(BACKUP), false), (source(Purpose::Snapshot), true), (destination(), true)]
        {
            let due = Facts { next: Next::Now, ..facts };
            assert_eq!(decide(&due), Decision::WriteIntent { keeps });
            let kept = Facts { is_kept: true, ..due };
            assert_eq!(decide(&kept), Decision::WriteIntent { keeps: false });
        }
    }

    #[test]
    fn a_snapshot_that_a_person_wants_to_keep_is_left_and_not_deleted() {
        let terminating = |is_kept| {
            let snapshots = vec![Picture { is_kept, ..Picture::default() }];
            Facts { is_terminating: true, is_kept: true, snapshots, ..source(BACKUP) }
        };
        assert_eq!(decide(&terminating(false)), Decision::DeleteSnapshot(0));
        assert_eq!(decide(&terminating(true)), Decision::LeaveSnapshot(0));
    }

    #[test]
    fn only_what_nobody_needs_goes_and_the_oldest_first() {
        let latest = Picture { is_latest: true, ..Picture::default() };
        let held = Picture { is_held: true, ..Picture::default() };
        let (old, snapshots) =
            (Picture::default(), |snapshots| Facts { snapshots, ..destination() });
        assert_eq!(decide(&snapshots(vec![latest, held, old, old])), Decision::DeleteSnapshot(2));
        for all_stay in [vec![old, latest], vec![latest, held, held]] {
            assert!(matches!(decide(&snapshots(all_stay)), Decision::Nothing(_)));
        }
        let behind = Facts { is_fresh: false, ..snapshots(vec![old, old, latest]) };
        assert_eq!(decide(&behind), Decision::LiveRead, "the cache may not know the latest");
    }

    #[test]
    fn progress_is_said_when_it_is_news_and_else_waited_for() {
        let runs = |is_news| {
            let runs = syncing(source(BACKUP), |sync| sync.mover = Mover::Runs { is_news });
            let reasons = [Why::Runs { is_news: false }].into();
            decide(&Facts { said: Said { reasons, ..Said::default() }, ..runs })
        };
        assert_eq!(runs(false), Decision::Nothing(Why::Runs { is_news: false }));
        assert!(matches!(runs(true), Decision::Say(Say { why: Why::Runs { is_news: true }, .. })));
    }

    #[test]
    fn a_mover_begins_with_what_it_is_to_remove_and_a_warning_if_it_reads_what_is_in_use() {
        let tidying = Some(Tidying { prunes: true, unlocks: false });
        let facts = || source(Purpose::Backup { tidying });
        let begin = Begin { reads_snapshot: true, tidying, warns: false };
        assert_eq!(decide(&syncing(facts(), |_| {})), Decision::Begin(begin));
        let direct = syncing(facts(), |sync| sync.snapshot = Snapshot::NotNeeded);
        let begin = Begin { reads_snapshot: false, tidying, warns: true };
        assert_eq!(decide(&direct), Decision::Begin(begin));
    }

    #[test]
    fn a_sync_ends_as_its_mover_failed_or_after_its_last_attempt() {
        for facts in [source(BACKUP), destination()] {
            let failed = |may_heal, is_last_attempt| {
                decide(&syncing(facts.clone(), |sync| {
                    sync.snapshot = Snapshot::NotNeeded;
                    sync.mover = Mover::Failed { may_heal };
                    sync.slot = Slot::Free;
                    sync.is_last_attempt = is_last_attempt;
                }))
            };
            assert_eq!(failed(true, false), Decision::Retry);
            assert_eq!(failed(true, true), Decision::GiveUp(Hopeless::RetriesExhausted));
            assert_eq!(failed(false, false), Decision::GiveUp(Hopeless::MoverFailed));
        }
    }

    #[test]
    fn an_object_that_is_being_deleted_keeps_its_place_until_its_mover_has_ended() {
        for facts in [source(Purpose::Backup { tidying: None }), destination()] {
            let goes = |mover| {
                let facts = Facts { is_terminating: true, ..facts.clone() };
                decide(&syncing(facts, |sync| {
                    sync.slot = Slot::Mine;
                    sync.mover = mover;
                }))
            };
            assert_eq!(goes(Mover::NotAsked), Decision::AskMover);
            let runs = Mover::Runs { is_news: true };
            assert_eq!(goes(runs), Decision::Nothing(Why::Runs { is_news: false }));
            assert_eq!(goes(Mover::Unknown), Decision::GiveSlotBack);
            assert_eq!(goes(Mover::Done), Decision::GiveSlotBack);
        }
    }

    #[test]
    fn once_there_is_a_snapshot_the_mover_of_a_destination_does_not_begin() {
        for mover in [Mover::NotAsked, Mover::Unknown, Mover::Done] {
            let ready = syncing(destination(), |sync| sync.mover = mover);
            assert_eq!(decide(&ready), Decision::Publish(Product::LatestSnapshot));
        }
        let missing = syncing(destination(), |sync| sync.snapshot = Snapshot::Missing);
        assert!(matches!(decide(&missing), Decision::Begin(_)));
    }
}
