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

    /// What a live read takes; None: it does not read an API server.
    pub fn to_read<O: Outside>(read: &Read<O>) -> Option<Right> {
        match read {
            Read::Object(address) => {
                Some(Right { place: address.place, kind: address.kind.clone(), verb: Verb::Get })
            }
            Read::List { place, kind, .. } => {
                Some(Right { place: *place, kind: kind.clone(), verb: Verb::List })
            }
            Read::Ask(_) => None,
        }
    }
}
