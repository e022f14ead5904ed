//! What a controller may do on API servers: the ground that its role is written from.

use crate::kind::{Kind, Place};
use crate::step::{Outside, Part, Read, Write};
use crate::watch::Watch;

/// What may be done to an object, as an API server checks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// See one.
    Get,
    /// See all.
    List,
    /// Watch changes.
    Watch,
    /// Make one.
    Create,
    /// Change one, its status excepted.
    Patch,
    /// Change the status of one.
    PatchStatus,
    /// Delete one.
    Delete,
}

/// Something that a controller does to the objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Right {
    /// On which server.
    pub place: Place,
    /// To objects of which kind.
    pub kind: Kind,
    /// What.
    pub verb: Verb,
}

impl Right {
    /// These things, to objects of one kind.
    pub fn to(place: Place, kind: &Kind, verbs: &[Verb]) -> Vec<Right> {
        verbs.iter().map(|verb| Right { place, kind: kind.clone(), verb: *verb }).collect()
    }

    /// The same for several kinds, each with its own.
    pub fn to_each(place: Place, kinds: &[(&Kind, &[Verb])]) -> Vec<Right> {
        kinds.iter().flat_map(|(kind, verbs)| Right::to(place, kind, verbs)).collect()
    }

    /// What it takes to watch something, and to look at it afresh.
    pub fn to_watch(watch: &Watch) -> Vec<Right> {
        Right::to(watch.place, &watch.kind, &[Verb::Get, Verb::List, Verb::Watch])
    }

    /// What a write takes. To apply an object makes it where there is none.
    pub fn to_write(write: &Write) -> Vec<Right> {
        let address = write.address();
        let verbs: &[Verb] = match write {
            Write::Create { .. } => &[Verb::Create],
            Write::Patch { part: Part::Main, .. } => &[Verb::Patch],
            Write::Patch { part: Part::Status, .. } | Write::Apply { part: Part::Status, .. } => {
                &[Verb::PatchStatus]
            }
            Write::Apply { part: Part::Main, .. } => &[Verb::Create, Verb::Patch],
            Write::Delete { .. } => &[Verb::Delete],
        };
        Right::to(address.place, &address.kind, verbs)
    }

    /// What a live read takes: nothing where it does not read an API server. A dry run takes what
    /// the write takes.
    pub fn to_read<O: Outside>(read: &Read<O>) -> Vec<Right> {
        match read {
            Read::Object(address) => Right::to(address.place, &address.kind, &[Verb::Get]),
            Read::List { place, kind, .. } | Read::Selected { place, kind, .. } => {
                Right::to(*place, kind, &[Verb::List])
            }
            Read::DryRun(dry_run) => Right::to_write(&dry_run.write()),
            Read::Ask(_) => Vec::new(),
        }
    }

    /// Whether who has this may do the other: a right to every kind is one to each.
    pub fn covers(&self, needed: &Right) -> bool {
        let is_of_kind = self.kind == Kind::EVERY || self.kind == needed.kind;
        is_of_kind && (self.place, self.verb) == (needed.place, needed.verb)
    }
}
