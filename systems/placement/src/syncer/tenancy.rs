//! Whether a namespace may be on a cluster, and how it comes and goes. First matching rule wins.
//!
//! The rules are the table "syncer" of the design. What they promise is in `spec`; that they keep it,
//! whatever crashes or lags, is checked in `world`.

use interlock_api::placement::{CopyState, Phase};
use serde::{Deserialize, Serialize};

/// How often a namespace was granted.
pub type Epoch = i64;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The grant as the cache shows it; None: it is not in the cache, which proves nothing.
    pub grant: Option<Grant>,
    /// What this cluster noted of it.
    pub here: Here,
    /// Whether our finalizer is on the namespace at the hub.
    pub has_finalizer: bool,
    /// What a live read of the hub showed: whether it is. The cache may show it from before we took it off.
    pub has_finalizer_still: Option<bool>,
    /// Whether our finalizer is on an object in it.
    pub has_finalized_object: bool,
    /// What runs here, as the cache shows it.
    pub workload: Workload,
    /// Whether something of that was put here by us, and was not asked to stop.
    pub has_own_workload: bool,
    /// The claims that the grant lists, in its order.
    pub claims: Vec<Claim>,
    /// Whether each volume that is left behind is marked so.
    pub is_marked_superseded: bool,
    /// What is left here of a copy that nobody needs.
    pub leftover: Leftover,
    /// Whether some object is missing or different here.
    pub has_objects_to_apply: bool,
    /// What a live read of this cluster showed: whether anything could still write.
    pub stillness: Option<Stillness>,
    /// What a live read of the hub showed: whether we may run.
    pub truth: Option<Truth>,
}

/// A grant, seen from one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// What is true of the owner.
    pub phase: Phase,
    /// Whose it is, or was last.
    pub owner: Party,
    /// Since which grant.
    pub epoch: Epoch,
    /// Who is to have it.
    pub target: Party,
    /// Whether it is revoked because the namespace is being deleted.
    pub is_deletion: bool,
    /// Whether the hub knows that all claims are filled here.
    pub is_filled: bool,
    /// What the hub says of the data here.
    pub copy: Option<CopyState>,
    /// Whether the next owner ran long enough for the data here to go.
    pub is_settled: bool,
}

/// Somebody, seen from one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Party {
    /// Nobody.
    Nobody,
    /// This cluster.
    Me,
    /// Another cluster.
    Other,
}

/// What the namespace on this cluster says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Here {
    /// There is none.
    Missing,
    /// There is one of that name that belongs to somebody else.
    Foreign,
    /// It is ours.
    Noted(Notes),
}

/// The annotations of our namespace on this cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Notes {
    /// The last epoch that arrived.
    pub epoch: Epoch,
    /// The highest epoch that was closed: it can never run here again.
    pub released: Epoch,
    /// What may run.
    pub running: Running,
    /// The last epoch that ever was permitted here.
    pub ran: Epoch,
}

/// What may run on a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Running {
    /// Nothing.
    Nothing,
    /// This epoch.
    Permitted(Epoch),
    /// A permit from before the machine was started: it permits nothing, and is withdrawn.
    Lapsed(Epoch),
}

/// What runs here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Nothing that the cache knows of.
    None,
    /// Something that was not asked to stop.
    Some,
    /// All that is here was asked to stop, and has not stopped yet.
    Stopping,
}

/// One claim of the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Its volume for this epoch.
    pub volume: Volume,
    /// Whether the hub knows that it is filled. Only then may anything have written to it.
    pub is_filled: bool,
    /// Its last snapshot of this epoch.
    pub last: LastSnapshot,
}

/// The volume of a claim on this cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volume {
    /// Not there.
    Missing,
    /// It is there; data is on its way.
    Filling,
    /// All of its data is there, and equals the pin.
    Filled,
}

/// The last snapshot of a claim, taken after the epoch was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastSnapshot {
    /// Nobody asked for it.
    None,
    /// It is being made.
    Asked,
    /// It is made, and might be deleted still.
    Made,
    /// It is made and held, or the volume stays in place.
    Held,
}

/// What is left of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    /// Nothing.
    None,
    /// Volumes, or the namespace.
    Some,
    /// It was asked to stop.
    Terminating,
}

/// What a live read of this cluster showed, made after the permit was seen withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stillness {
    /// No pod, no attachment, every volume's lock is free.
    Still,
    /// Something may still write.
    Astir,
}

/// What a live read of the hub showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truth {
    /// The epoch that is granted to this cluster, and filled.
    pub granted: Option<Epoch>,
    /// Whether somebody asked to take that epoch by force.
    pub is_forced: bool,
    /// Whether a cloud role that the start waits for does not trust this cluster for that epoch.
    pub is_awaiting_rights: bool,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Take the permit back.
    Withdraw,
    /// Tell one thing that runs to stop.
    StopOne,
    /// See for certain whether anything could still write.
    ReadWhetherStill,
    /// Note, for ever, that this epoch cannot run here any more.
    Close(Epoch),
    /// The same, where there is no namespace to note it on yet: make one.
    CreateClosed(Epoch),
    /// Ask for the last snapshot of a claim, by its place in the list.
    AskLastSnapshot(usize),
    /// Keep the volume of a claim in place as its last snapshot.
    KeepInPlace(usize),
    /// Hold the last snapshot of a claim.
    HoldLastSnapshot(usize),
    /// Tell the hub: stopped, and here are all snapshots.
    Acknowledge,
    /// Tell the hub what became of the data here, after we were declared gone.
    SettleCopy(CopyState),
    /// Take our finalizer off the namespace at the hub.
    TakeFinalizerOff,
    /// Mark a volume that is left behind.
    MarkSuperseded,
    /// Delete a part of a copy that nobody needs.
    DeleteLeftover,
    /// Tell the hub that there is no copy here any more.
    ForgetCopy,
    /// Put our finalizer on the namespace at the hub.
    PutFinalizer,
    /// Ask the hub itself whether our finalizer is on the namespace.
    ReadWhetherHeld,
    /// Make the namespace on this cluster.
    CreateHere(Epoch),
    /// Note that an epoch arrives.
    NoteEpoch(Epoch),
    /// Make the volume of a claim and begin to fill it.
    CreateClaim(usize),
    /// Tell the hub that all claims are filled.
    ReportFilled,
    /// Ask the hub itself whether we may run.
    ReadWhetherGranted,
    /// Let this epoch run.
    Permit(Epoch),
    /// Bring one object to what the hub says.
    ApplyOne,
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The grant is not in the cache.
    NotInTheCache,
    /// A namespace of that name belongs to somebody else.
    NameTaken,
    /// The cache shows a time before what this cluster knows.
    OldNews,
    /// It is not ours, and nothing of it is here.
    NotOurs,
    /// Something was asked to stop and has not.
    Stopping,
    /// Something may still write.
    MayStillWrite,
    /// The last snapshots are being made.
    Copying,
    /// Claims are being filled.
    Filling,
    /// The hub says something else than the cache.
    CacheBehind,
    /// The owner was asked to give it up by force.
    Forced,
    /// The cloud roles of the namespace do not all trust this cluster yet.
    AwaitingRights,
    /// The rest is being deleted.
    Cleaning,
    /// A copy is kept until its successor has proved itself, or a person says so.
    Keeping,
    /// Everything is as it should be.
    Running,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    let Some(grant) = facts.grant else { return Decision::Nothing(Why::NotInTheCache) };
    let notes = match facts.here {
        Here::Foreign => return Decision::Nothing(Why::NameTaken),
        Here::Missing => None,
        Here::Noted(notes) => Some(notes),
    };
    if notes.is_some_and(|notes| grant.epoch < notes.epoch.max(notes.released)) {
        return Decision::Nothing(Why::OldNews);
    }
    if let Some(epoch) = leaving(&grant, notes) {
        return leave(facts, notes, epoch);
    }
    // A process that lags, or a request that was on its way for long, applies an object after the epoch was
    // closed. Nothing of it ever starts; but a pod that uses a claim keeps that from being deleted.
    if facts.has_own_workload && notes.is_some_and(|notes| notes.running == Running::Nothing) {
        return Decision::StopOne;
    }
    if grant.owner == Party::Me && grant.phase == Phase::Revoking {
        return hand_over(facts);
    }
    if grant.owner == Party::Me && grant.phase == Phase::Granted {
        return arrive(facts, &grant, notes);
    }
    clean_up(facts, &grant, notes)
}

/// The epoch that may still run here and must not, if there is one.
///
/// It is not enough to look at revocations: an owner that was declared gone, and hears of it late,
/// finds its epoch fenced, granted to another, or granted to itself anew.
fn leaving(grant: &Grant, notes: Option<Notes>) -> Option<Epoch> {
    let is_mine = grant.owner == Party::Me;
    let released = notes.map_or(0, |notes| notes.released);
    if is_mine && grant.phase == Phase::Revoking {
        return (released < grant.epoch).then_some(grant.epoch);
    }
    let notes = notes?;
    let is_current = is_mine && grant.phase == Phase::Granted && grant.epoch == notes.epoch;
    (!is_current && notes.released < notes.epoch).then_some(notes.epoch)
}

/// Stop, see that it stopped, close: in this order, and each seen before the next.
fn leave(facts: &Facts, notes: Option<Notes>, epoch: Epoch) -> Decision {
    let Some(notes) = notes else { return Decision::CreateClosed(epoch) };
    if notes.running != Running::Nothing {
        return Decision::Withdraw;
    }
    match facts.workload {
        Workload::Some => return Decision::StopOne,
        Workload::Stopping => return Decision::Nothing(Why::Stopping),
        Workload::None => {}
    }
    // The permit was gone when the look began, so whoever took a lock after the look cannot start.
    match facts.stillness {
        None => Decision::ReadWhetherStill,
        Some(Stillness::Astir) => Decision::Nothing(Why::MayStillWrite),
        Some(Stillness::Still) => Decision::Close(epoch),
    }
}

/// Closed: every claim needs its last snapshot, then the hub is informed, in one write.
fn hand_over(facts: &Facts) -> Decision {
    let Some(grant) = facts.grant else { return Decision::Nothing(Why::NotInTheCache) };
    if grant.is_deletion {
        return Decision::Acknowledge;
    }
    // Nothing wrote to a claim that never filled: the snapshot that it came with is still right.
    let written = || facts.claims.iter().enumerate().filter(|(_, claim)| claim.is_filled);
    for (place, claim) in written() {
        match claim.last {
            LastSnapshot::Held => {}
            LastSnapshot::Made => return Decision::HoldLastSnapshot(place),
            // This cluster is the desired one again: the data stays where it is, and a copy under way is not awaited.
            LastSnapshot::None | LastSnapshot::Asked if grant.target == Party::Me => {
                return Decision::KeepInPlace(place);
            }
            LastSnapshot::None => return Decision::AskLastSnapshot(place),
            LastSnapshot::Asked => {}
        }
    }
    if written().any(|(_, claim)| claim.last == LastSnapshot::Asked) {
        return Decision::Nothing(Why::Copying);
    }
    Decision::Acknowledge
}

/// Granted to us: make room, fill, ask once more, run.
fn arrive(facts: &Facts, grant: &Grant, notes: Option<Notes>) -> Decision {
    // We were declared gone before anything ran, and are the owner again: until that is said, the
    // volumes here count as written to, and are not used.
    if grant.copy == Some(CopyState::Unclosed) && !has_run(notes) {
        return Decision::SettleCopy(CopyState::Superseded);
    }
    if !facts.has_finalizer {
        return Decision::PutFinalizer;
    }
    let notes = match notes {
        Some(notes) if notes.released >= grant.epoch => return Decision::Nothing(Why::OldNews),
        Some(notes) if notes.epoch >= grant.epoch => notes,
        Some(_) | None => return begin(facts, grant, notes),
    };
    if let Some(place) = facts.claims.iter().position(|claim| claim.volume == Volume::Missing) {
        return Decision::CreateClaim(place);
    }
    if facts.claims.iter().any(|claim| claim.volume == Volume::Filling) {
        return Decision::Nothing(Why::Filling);
    }
    if !grant.is_filled {
        return Decision::ReportFilled;
    }
    if notes.running != Running::Permitted(grant.epoch) {
        return permit(facts, grant);
    }
    if facts.has_objects_to_apply {
        return Decision::ApplyOne;
    }
    Decision::Nothing(Why::Running)
}

/// An epoch begins only on a namespace that is ours to find again. A cache may show our finalizer from
/// before an earlier epoch ended: what we carry would have it, and its namespace would not.
fn begin(facts: &Facts, grant: &Grant, notes: Option<Notes>) -> Decision {
    match facts.has_finalizer_still {
        None => Decision::ReadWhetherHeld,
        Some(false) => Decision::Nothing(Why::CacheBehind),
        Some(true) if notes.is_none() => Decision::CreateHere(grant.epoch),
        Some(true) => Decision::NoteEpoch(grant.epoch),
    }
}

/// A cache may show a grant that was taken back, so the hub itself is asked, after the version of
/// our notes that the permit will be written over was seen.
fn permit(facts: &Facts, grant: &Grant) -> Decision {
    let Some(truth) = facts.truth else { return Decision::ReadWhetherGranted };
    if truth.granted != Some(grant.epoch) {
        return Decision::Nothing(Why::CacheBehind);
    }
    if truth.is_forced {
        return Decision::Nothing(Why::Forced);
    }
    // A role that trusts this cluster for this epoch trusts no earlier owner, and denies the sessions
    // of one that was declared gone: what starts here is alone with its rights, too.
    if truth.is_awaiting_rights {
        return Decision::Nothing(Why::AwaitingRights);
    }
    Decision::Permit(grant.epoch)
}

/// Whether anything of the namespace was ever permitted here.
fn has_run(notes: Option<Notes>) -> bool {
    notes.is_some_and(|notes| notes.ran > 0)
}

/// Not ours any more, and closed: say so, and in time tidy up.
fn clean_up(facts: &Facts, grant: &Grant, notes: Option<Notes>) -> Decision {
    if grant.copy == Some(CopyState::Unclosed) {
        // What ran here after we were given up may have written what no snapshot has.
        let state = if has_run(notes) { CopyState::Diverged } else { CopyState::Superseded };
        return Decision::SettleCopy(state);
    }
    if facts.has_finalizer || facts.has_finalized_object {
        return Decision::TakeFinalizerOff;
    }
    if notes.is_none() && grant.copy.is_none() {
        return Decision::Nothing(Why::NotOurs);
    }
    if !facts.is_marked_superseded {
        return Decision::MarkSuperseded;
    }
    let may_go = match grant.copy {
        Some(CopyState::Superseded) => grant.is_settled || grant.phase == Phase::Deleting,
        Some(CopyState::Live) => grant.phase == Phase::Deleting,
        // Only a person gives up data that nobody else has.
        Some(CopyState::Diverged | CopyState::Unclosed) | None => false,
    };
    match facts.leftover {
        _ if !may_go => Decision::Nothing(Why::Keeping),
        Leftover::Some => Decision::DeleteLeftover,
        Leftover::Terminating => Decision::Nothing(Why::Cleaning),
        Leftover::None if grant.copy.is_some() => Decision::ForgetCopy,
        Leftover::None => Decision::Nothing(Why::NotOurs),
    }
}
