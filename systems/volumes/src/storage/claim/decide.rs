//! What is done next about one claim. First matching rule wins.

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether the finalizer of claims in use is on it.
    pub is_protected: bool,
    /// Whether pods mount it.
    pub pods: Pods,
    /// The volume that it has.
    pub volume: Volume,
    /// Whether it says of itself what is true of its volume.
    pub is_reported: bool,
    /// Whether it was bound once.
    pub was_bound: bool,
    /// Whether it asks for more than its volume has.
    pub wants_more: bool,
    /// Who makes its volume.
    pub class: Class,
    /// Whether it asks for something that local storage does not have.
    pub is_unsupported: bool,
    /// What its volume is made of.
    pub source: Source,
    /// Whether it holds the image that it is made of.
    pub has_hold: bool,
    /// How far its volume is on the disk.
    pub made: Made,
    /// Whether its volume has a PersistentVolume, by a fresh look; None: nobody looked.
    pub has_record: Option<bool>,
}

/// The pods that mount a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pods {
    /// There is one.
    Some,
    /// The cache shows none, which proves nothing.
    NoneSeen,
    /// There is none.
    None,
}

/// The volume of a claim, as both sides say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volume {
    /// None names it, and it names none.
    None,
    /// One names this very claim, which does not name it yet.
    Offered,
    /// Each names the other.
    Mine,
    /// It names one that is for nobody.
    Free,
    /// It names one that, as the cache shows it, is for another or not there.
    NotSeen,
    /// It names one that is for another, or not there.
    Lost,
    /// The server says something else than the cache.
    Behind,
    /// It is not of local storage.
    Foreign,
}

/// Who makes the volume of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Local storage.
    Local,
    /// It names no class, and local storage is the default.
    Default,
    /// It names a class that is not there.
    Missing,
    /// Somebody else.
    Foreign,
}

/// What the volume of a claim is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Nothing.
    Empty,
    /// An image.
    Image(Image),
    /// Something that a populator fills it from.
    Populator,
}

/// The image that a claim is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    /// Not in the cache, or not the one that was meant.
    Missing,
    /// Not whole yet.
    NotReady,
    /// Whole, and larger than the claim.
    TooLarge,
    /// Whole.
    Ready,
    /// Being deleted.
    Dying,
}

/// How far something is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// Nobody asked.
    NotAsked,
    /// There is none.
    Missing,
    /// There is none, it could not be made, and it is not time to try again.
    MissingForNow,
    /// It is being made.
    Making,
    /// It is whole.
    Whole,
    /// It could not be made.
    Failed {
        /// Whether the claim says so.
        is_reported: bool,
    },
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Say on the claim what keeps it waiting.
    Say(Obstacle),
    /// Write the default class into it.
    TakeDefaultClass,
    /// Put the finalizer of claims in use on it.
    Protect,
    /// Hold the image that it is made of.
    Hold,
    /// See how far its volume is on the disk.
    AskDisk,
    /// Begin to make its volume.
    Make,
    /// Say why its volume could not be made.
    ReportFailure,
    /// Let the disk forget a failure that is reported.
    Forget,
    /// Make the PersistentVolume.
    Record,
    /// Have a free volume name this claim.
    Take,
    /// Have the claim name its volume.
    Bind,
    /// Say that it is bound, with what it got.
    ReportBound,
    /// See who the volume is for that it names.
    LookAtVolume,
    /// Say that its volume is lost.
    ReportLost,
    /// Let go of the image.
    DropHold,
    /// See whether a pod mounts it.
    LookForPods,
    /// See whether its volume has a PersistentVolume.
    LookForRecord,
    /// Delete what was made for it and never bound.
    Delete,
    /// Take the finalizer off.
    LetGo,
}

/// What keeps a claim waiting until a person or another object changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// Its class is not there.
    ClassMissing,
    /// It asks for what local storage does not have.
    NotSupported,
    /// Its image is not there.
    SourceMissing,
    /// Its image is being deleted.
    ImageGone,
    /// Its image is larger than the claim.
    SizeMismatch,
    /// It asks for more than its volume has.
    Expansion,
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Another storage makes its volume.
    NotOurs,
    /// A populator fills it.
    LeftToPopulator,
    /// It has its volume.
    Bound,
    /// It lost its volume.
    Lost,
    /// It names a volume that is not there yet.
    WaitsForVolume,
    /// The server says something else than the cache.
    CacheBehind,
    /// Its image is not whole yet.
    ImageNotReady,
    /// Its volume is being made.
    Making,
    /// Its volume could not be made, and is tried again later.
    BackingOff,
    /// It goes, and a pod still mounts it.
    InUse,
    /// It goes, and was never ours.
    Leaving,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_deleting {
        return leave(facts);
    }
    match facts.volume {
        Volume::Mine if !facts.is_reported => Decision::ReportBound,
        Volume::Mine if facts.has_hold => Decision::DropHold,
        Volume::Mine if facts.wants_more => Decision::Say(Obstacle::Expansion),
        Volume::Mine => Decision::Nothing(Why::Bound),
        Volume::Offered => Decision::Bind,
        Volume::Free => Decision::Take,
        // Only a claim that had its volume can lose it.
        Volume::NotSeen | Volume::Lost if !facts.was_bound => {
            Decision::Nothing(Why::WaitsForVolume)
        }
        Volume::NotSeen => Decision::LookAtVolume,
        Volume::Lost if facts.is_reported => Decision::Nothing(Why::Lost),
        Volume::Lost => Decision::ReportLost,
        Volume::Behind => Decision::Nothing(Why::CacheBehind),
        Volume::Foreign => Decision::Nothing(Why::NotOurs),
        Volume::None => make(facts),
    }
}

fn make(facts: &Facts) -> Decision {
    if facts.source == Source::Populator {
        return Decision::Nothing(Why::LeftToPopulator);
    }
    match facts.class {
        Class::Foreign => return Decision::Nothing(Why::NotOurs),
        Class::Missing => return Decision::Say(Obstacle::ClassMissing),
        Class::Default => return Decision::TakeDefaultClass,
        Class::Local if facts.is_unsupported => return Decision::Say(Obstacle::NotSupported),
        Class::Local if !facts.is_protected => return Decision::Protect,
        Class::Local => {}
    }
    if let Source::Image(image) = facts.source
        && let Some(decision) = keep(facts, image)
    {
        return decision;
    }
    match facts.made {
        Made::NotAsked => Decision::AskDisk,
        Made::Missing => Decision::Make,
        Made::MissingForNow => Decision::Nothing(Why::BackingOff),
        Made::Making => Decision::Nothing(Why::Making),
        Made::Failed { is_reported: false } => Decision::ReportFailure,
        Made::Failed { is_reported: true } => Decision::Forget,
        Made::Whole => Decision::Record,
    }
}

/// The image stays while the volume is made of it. One that is being deleted is not begun with: it
/// may be gone before the volume is whole. What was begun is held, and ends well.
fn keep(facts: &Facts, image: Image) -> Option<Decision> {
    match image {
        Image::Missing => Some(Decision::Say(Obstacle::SourceMissing)),
        Image::Dying if facts.has_hold => match facts.made {
            Made::NotAsked | Made::Making | Made::Whole => None,
            Made::Missing | Made::MissingForNow | Made::Failed { .. } => Some(Decision::DropHold),
        },
        Image::Dying => Some(Decision::Say(Obstacle::ImageGone)),
        Image::NotReady => Some(Decision::Nothing(Why::ImageNotReady)),
        Image::TooLarge => Some(Decision::Say(Obstacle::SizeMismatch)),
        Image::Ready if !facts.has_hold => Some(Decision::Hold),
        Image::Ready => None,
    }
}

/// A claim goes when no pod has it, and when what was made for it is gone or has a record of its
/// own, by which it is deleted later.
fn leave(facts: &Facts) -> Decision {
    if !facts.is_protected {
        return Decision::Nothing(Why::Leaving);
    }
    match facts.pods {
        Pods::Some => return Decision::Nothing(Why::InUse),
        Pods::NoneSeen => return Decision::LookForPods,
        Pods::None => {}
    }
    let has_record = matches!(facts.volume, Volume::Mine | Volume::Offered) || facts.was_bound;
    if !has_record {
        match (facts.has_record, facts.made) {
            (None, _) => return Decision::LookForRecord,
            (Some(true), _) => {}
            (Some(false), Made::NotAsked) => return Decision::AskDisk,
            (Some(false), Made::Making) => return Decision::Nothing(Why::Making),
            (Some(false), Made::Whole | Made::Failed { .. }) => return Decision::Delete,
            (Some(false), Made::Missing | Made::MissingForNow) => {}
        }
    }
    if facts.has_hold { Decision::DropHold } else { Decision::LetGo }
}
