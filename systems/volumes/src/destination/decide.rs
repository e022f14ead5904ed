//! What is done next about a destination. First matching row wins.

pub use crate::sync::facts::{Hopeless, Image, Mover, Slot, Verdict};

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether it is being deleted.
    pub is_going: bool,
    /// Whether our finalizer keeps it.
    pub is_kept: bool,
    /// Whether an image of it is held.
    pub has_held_image: bool,
    /// Whether an image is left that goes with it, or that nobody needs any more.
    pub has_spare_image: bool,
    /// Whether it is seen afresh, after the mover was asked.
    pub is_fresh: bool,
    /// Whether its images are all listed afresh, which is asked for once it is known to go.
    pub are_images_fresh: bool,
    /// Whether what it asks for is served, and nothing is in the way.
    pub verdict: Verdict,
    /// Whether a sync is to begin now.
    pub is_due: bool,
    /// The sync that its intent names.
    pub sync: Option<Sync>,
}

/// A sync, from its intent to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sync {
    /// Whether the status says that it is over.
    pub is_over: bool,
    /// Whether the next attempt is still to wait.
    pub backs_off: bool,
    /// Whether the spec or the Secret has changed since the last attempt failed.
    pub is_changed: bool,
    /// Whether this attempt is the last.
    pub is_last_attempt: bool,
    /// Its image.
    pub image: Image,
    /// The volume that is written.
    pub target: Target,
    /// Whether the claim of that volume was made for one sync only, and is there.
    pub has_temporary_claim: bool,
    /// Its place at the repository.
    pub slot: Slot,
    /// What the mover says of this attempt.
    pub mover: Mover,
    /// Whether what the mover brought may be used: it has content, or emptiness is allowed.
    pub is_outcome_usable: bool,
    /// Whether the mover still knows an earlier attempt.
    pub is_earlier_known: bool,
    /// Whether the uid of the latest image is the one of this sync.
    pub is_published: bool,
}

/// The volume that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// There is no claim yet, and we make it.
    Missing,
    /// The claim has no volume yet.
    NotBound,
    /// It is there.
    Bound,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Ask the mover.
    AskMover,
    /// Ask the mover, and then look at the object and its image afresh.
    Look,
    /// Write the intent, with the tag that is set now.
    WriteIntent,
    /// Make the claim of the volume that is written.
    MakeTarget,
    /// Take a place.
    TakeSlot,
    /// Begin the attempt.
    Begin,
    /// Have the image taken.
    TakeImage,
    /// Write the uid of the image onto the object.
    Publish,
    /// Say that it is done.
    Finish,
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
    /// An image goes that nobody needs.
    DeleteImage,
    /// The claim goes that was made for one sync.
    DeleteTarget,
    /// Take the intent off.
    RemoveIntent,
    /// Take the finalizer off.
    LetGo,
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is paused, or not due.
    NotDue,
    /// It asks for what is not supported.
    Refused,
    /// Something is in the way.
    Hindered,
    /// Its intent cannot be read.
    BrokenIntent,
    /// It goes, and somebody needs an image of it.
    Held,
    /// It goes.
    Going,
    /// The next attempt is still to wait.
    BacksOff,
    /// The claim has no volume yet.
    TargetNotBound,
    /// The image is being taken.
    ImageNotReady,
    /// All places are taken.
    SlotsFull,
    /// The mover runs.
    Runs,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_going {
        return leave(facts);
    }
    if facts.verdict == Verdict::BrokenIntent {
        return Decision::Nothing(Why::BrokenIntent);
    }
    match facts.sync {
        None => rest(facts),
        Some(sync) if sync.is_over => clear(facts, sync),
        Some(sync) => go_on(facts, sync),
    }
}

fn leave(facts: &Facts) -> Decision {
    match facts.sync.map(|sync| sync.slot) {
        Some(Slot::Mine) => return Decision::GiveSlotBack,
        Some(Slot::NotNeeded | Slot::Free | Slot::Full) | None => {}
    }
    if facts.has_held_image {
        return Decision::Nothing(Why::Held);
    }
    if !facts.is_kept {
        return Decision::Nothing(Why::Going);
    }
    // What is not known of is left to the garbage collector, which looks at no hold.
    match facts.is_fresh && facts.are_images_fresh {
        false => Decision::Look,
        true if facts.has_spare_image => Decision::DeleteImage,
        true => Decision::LetGo,
    }
}

fn rest(facts: &Facts) -> Decision {
    // Which image is the latest may be old news in the cache.
    if facts.has_spare_image {
        return if facts.is_fresh { Decision::DeleteImage } else { Decision::Look };
    }
    match facts.verdict {
        Verdict::BrokenIntent => Decision::Nothing(Why::BrokenIntent),
        Verdict::Refused => Decision::Nothing(Why::Refused),
        Verdict::Hindered => Decision::Nothing(Why::Hindered),
        Verdict::Served if facts.is_due => Decision::WriteIntent,
        Verdict::Served => Decision::Nothing(Why::NotDue),
    }
}

/// The sync is over: what it needed goes, the intent last.
fn clear(facts: &Facts, sync: Sync) -> Decision {
    if !facts.is_fresh {
        return Decision::Look;
    }
    if sync.is_earlier_known {
        return Decision::ForgetEarlier;
    }
    match sync.mover {
        Mover::Done | Mover::Failed { .. } => return Decision::Forget,
        Mover::Runs => return Decision::Nothing(Why::Runs),
        Mover::NotAsked | Mover::Unknown => {}
    }
    if facts.has_spare_image {
        return Decision::DeleteImage;
    }
    if sync.has_temporary_claim {
        return Decision::DeleteTarget;
    }
    match sync.slot {
        Slot::Mine => Decision::GiveSlotBack,
        Slot::NotNeeded | Slot::Free | Slot::Full => Decision::RemoveIntent,
    }
}

fn go_on(facts: &Facts, sync: Sync) -> Decision {
    // What can only be waited for is not worth a question.
    if sync.backs_off {
        // Whoever mends something does not wait for the end of a pause.
        return if sync.is_changed { Decision::Renew } else { Decision::Nothing(Why::BacksOff) };
    }
    match sync.image {
        Image::NotReady => return Decision::Nothing(Why::ImageNotReady),
        Image::Ready { .. } | Image::Useless if !facts.is_fresh => return Decision::Look,
        // What was brought is not what the spec asks for any more, whatever that is.
        Image::Ready { .. } | Image::Useless if facts.verdict == Verdict::Refused => {
            return Decision::GiveUp(Hopeless::Refused);
        }
        Image::Useless => return Decision::GiveUp(Hopeless::UselessImage),
        Image::Ready { is_usable: false } => return Decision::GiveUp(Hopeless::Empty),
        Image::Ready { is_usable: true } if !sync.is_published => return Decision::Publish,
        Image::Ready { is_usable: true } => return Decision::Finish,
        Image::NotNeeded | Image::Missing => {}
    }
    match sync.mover {
        Mover::NotAsked if sync.slot == Slot::Full => return Decision::Nothing(Why::SlotsFull),
        Mover::NotAsked => return Decision::AskMover,
        Mover::Runs => return Decision::Nothing(Why::Runs),
        Mover::Unknown | Mover::Done | Mover::Failed { .. } => {}
    }
    if !facts.is_fresh {
        return Decision::Look;
    }
    if sync.is_earlier_known {
        return Decision::ForgetEarlier;
    }
    match sync.mover {
        Mover::Done if facts.verdict == Verdict::Refused => Decision::GiveUp(Hopeless::Refused),
        Mover::Done => restored(sync),
        Mover::Failed { may_heal } if may_heal && !sync.is_last_attempt => match sync.slot {
            Slot::Mine => Decision::GiveSlotBack,
            Slot::NotNeeded | Slot::Free | Slot::Full => Decision::Retry,
        },
        Mover::Failed { .. } => Decision::GiveUp(Hopeless::MoverFailed),
        Mover::NotAsked | Mover::Unknown | Mover::Runs => start(facts, sync),
    }
}

/// All of the data is in the volume.
fn restored(sync: Sync) -> Decision {
    if !sync.is_outcome_usable {
        return Decision::GiveUp(Hopeless::Empty);
    }
    match sync.image {
        Image::Missing => Decision::TakeImage,
        Image::NotNeeded if !sync.is_published => Decision::Publish,
        Image::NotNeeded => Decision::Finish,
        Image::NotReady | Image::Ready { .. } | Image::Useless => {
            Decision::Nothing(Why::ImageNotReady)
        }
    }
}

/// Volume, place, mover.
fn start(facts: &Facts, sync: Sync) -> Decision {
    match facts.verdict {
        Verdict::Served => {}
        Verdict::Refused => return Decision::GiveUp(Hopeless::Refused),
        Verdict::Hindered | Verdict::BrokenIntent => return Decision::Nothing(Why::Hindered),
    }
    match sync.target {
        Target::Missing => return Decision::MakeTarget,
        Target::NotBound => return Decision::Nothing(Why::TargetNotBound),
        Target::Bound => {}
    }
    match sync.slot {
        Slot::Mine | Slot::NotNeeded => Decision::Begin,
        Slot::Free => Decision::TakeSlot,
        Slot::Full => Decision::Nothing(Why::SlotsFull),
    }
}
