//! What is done next about a source. First matching row wins.

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
    /// Whether its namespace does not run here, and no move asks for it: its owner saves it.
    pub is_elsewhere: bool,
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
    /// Whether the image itself is what the sync is for, and there is no mover.
    pub is_image_only: bool,
    /// Its image.
    pub image: Image,
    /// Its place at the repository.
    pub slot: Slot,
    /// What the mover says of this attempt.
    pub mover: Mover,
    /// Whether the mover still knows an earlier attempt.
    pub is_earlier_known: bool,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Ask the mover.
    AskMover,
    /// Ask the mover, and then look at the object afresh.
    Look,
    /// Write the intent, with the tag that is set now.
    WriteIntent,
    /// Have the image taken.
    TakeImage,
    /// Take a place.
    TakeSlot,
    /// Begin the attempt.
    Begin,
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
    /// Say that it ends here: whoever runs the namespace saves it.
    LeaveToOwner,
    /// Say that it is done.
    Finish,
    /// An image goes that nobody needs.
    DeleteImage,
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
    /// Its namespace does not run here: its owner saves it.
    NotHere,
    /// Its intent cannot be read.
    BrokenIntent,
    /// It goes, and somebody needs an image of it.
    Held,
    /// It goes.
    Going,
    /// The next attempt is still to wait.
    BacksOff,
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
    // Which images may go rests on what the status says, and that may be old in the cache.
    if facts.has_spare_image {
        return if facts.is_fresh { Decision::DeleteImage } else { Decision::Look };
    }
    if facts.is_elsewhere {
        return Decision::Nothing(Why::NotHere);
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
    if sync.image == Image::NotReady {
        return Decision::Nothing(Why::ImageNotReady);
    }
    if !sync.is_image_only {
        match sync.mover {
            Mover::NotAsked if sync.slot == Slot::Full && sync.image != Image::Missing => {
                return Decision::Nothing(Why::SlotsFull);
            }
            Mover::NotAsked => return Decision::AskMover,
            Mover::Runs => return Decision::Nothing(Why::Runs),
            Mover::Unknown | Mover::Done | Mover::Failed { .. } => {}
        }
    }
    if !facts.is_fresh {
        return Decision::Look;
    }
    if sync.is_earlier_known {
        return Decision::ForgetEarlier;
    }
    match sync.mover {
        Mover::Done => return Decision::Finish,
        Mover::Failed { may_heal } if may_heal && !sync.is_last_attempt => {
            return match sync.slot {
                Slot::Mine => Decision::GiveSlotBack,
                Slot::NotNeeded | Slot::Free | Slot::Full => Decision::Retry,
            };
        }
        Mover::Failed { .. } => return Decision::GiveUp(Hopeless::MoverFailed),
        Mover::NotAsked | Mover::Unknown | Mover::Runs => {}
    }
    // An image that waits here until the namespace comes back would be old news by then, and yet the
    // newest in the repository.
    if facts.is_elsewhere {
        return Decision::LeaveToOwner;
    }
    match facts.verdict {
        Verdict::Served => {}
        Verdict::Refused => return Decision::GiveUp(Hopeless::Refused),
        Verdict::Hindered | Verdict::BrokenIntent => return Decision::Nothing(Why::Hindered),
    }
    make(sync)
}

/// Image, place, mover.
fn make(sync: Sync) -> Decision {
    match sync.image {
        Image::Missing => return Decision::TakeImage,
        Image::NotReady => return Decision::Nothing(Why::ImageNotReady),
        Image::Useless => return Decision::GiveUp(Hopeless::UselessImage),
        Image::Ready { is_usable: false } => return Decision::GiveUp(Hopeless::Empty),
        Image::Ready { is_usable: true } | Image::NotNeeded => {}
    }
    if sync.is_image_only {
        return Decision::Finish;
    }
    match sync.slot {
        Slot::Mine | Slot::NotNeeded => Decision::Begin,
        Slot::Free => Decision::TakeSlot,
        Slot::Full => Decision::Nothing(Why::SlotsFull),
    }
}
