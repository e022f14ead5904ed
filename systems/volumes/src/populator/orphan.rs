//! A volume that is to be handed to a claim that is gone: it is given back its policy.

use super::act::settle;
use super::decide::{Policy, settled};
use super::observe::{claim_address, is_for, seen};
use crate::filed::VOLUMES_BY_HEIR;
use crate::kinds::VOLUME;
use crate::objects::{annotation, uid_of};
use interlock_api::names::{ANNOTATION_POPULATES, ANNOTATION_RECLAIM};
use interlock_kernel::{Address, LiveReads, Name, Nothing, Object, Place, Read, Step, View};
use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the claim and the volume were read live.
    pub is_fresh: bool,
    /// Whether the volume says which policy it had before it was made to stay.
    pub is_policy_noted: bool,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// See the claim and the volume afresh.
    LiveRead,
    /// Give the volume back its policy.
    Settle {
        /// Which one it gets.
        policy: Policy,
    },
}

/// The objects that a step is about.
#[derive(Debug)]
pub struct Scene {
    volume: Object,
    /// The claim and the volume.
    truth: Vec<Address>,
}

/// The first such volume of a claim that had this name.
pub(super) fn observe(
    name: &Name,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Option<(Facts, Scene)> {
    let address = claim_address(name);
    let claim = seen(&address, view, live_reads);
    let volumes = view.find(Place::CLUSTER, &VOLUMES_BY_HEIR, &name.to_string());
    let is_orphan = |volume: &&Object| !claim.as_ref().is_some_and(|it| is_for(volume, it));
    let volume = volumes.iter().find(is_orphan)?;
    let of_volume = Address::new(Place::CLUSTER, &VOLUME, Name::of(volume));
    let volume = match live_reads.objects.get(&of_volume) {
        Some(found) => found.clone().filter(|found| {
            uid_of(found) == uid_of(volume) && annotation(found, ANNOTATION_POPULATES).is_some()
        })?,
        None => volume.clone(),
    };
    let truth = vec![address, of_volume];
    let facts = Facts {
        is_fresh: truth.iter().all(|address| live_reads.objects.contains_key(address)),
        is_policy_noted: annotation(&volume, ANNOTATION_RECLAIM).is_some(),
    };
    Some((facts, Scene { volume, truth }))
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    match facts.is_fresh {
        true => Decision::Settle { policy: settled(facts.is_policy_noted) },
        false => Decision::LiveRead,
    }
}

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::LiveRead => Step::LiveRead {
            reads: scene.truth.iter().cloned().map(Read::Object).collect(),
            because: "the claim of the volume is not in the cache; only a live read can show that \
                it is gone"
                .to_owned(),
        },
        Decision::Settle { policy } => settle(&scene.volume, policy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_given_back_its_policy_only_after_a_live_read() {
        let facts = Facts { is_fresh: false, is_policy_noted: true };
        assert_eq!(decide(&facts), Decision::LiveRead);
        let fresh = Facts { is_fresh: true, ..facts };
        assert_eq!(decide(&fresh), Decision::Settle { policy: Policy::Noted });
        let bare = Facts { is_policy_noted: false, ..fresh };
        assert_eq!(decide(&bare), Decision::Settle { policy: Policy::Delete });
    }
}
