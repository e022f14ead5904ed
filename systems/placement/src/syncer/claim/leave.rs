//! The next step by which what was written to a claim leaves this cluster: its last image is asked
//! for once the epoch is closed, held, and handed over.

use super::facts::{At, Facts as Claim, Obstacle, Pin, Source, Tidying};
use crate::syncer::decide::{Decision, Look};
use crate::syncer::facts::Facts;
use crate::syncer::leftover::decide as leftover;
use crate::syncer::tenancy::LastImage;
use interlock_api::placement::condition::DATA_SYNCED;
use interlock_kernel::conditions::Finding;
use serde::Serialize;
use std::time::Duration;

/// How soon a step is tried again that waits for a source, should nobody tell.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How often something is looked at again that time alone may change.
const ONCE_A_WHILE: Duration = Duration::from_secs(600);

/// One write by which the data of a claim leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Deed {
    /// Its last image is asked for, of a new source.
    CreateSource,
    /// The same, of the source that is there.
    AskSource,
    /// The image was deleted before it was held: it is taken once more.
    AskAgain,
    /// From here on only we can let the image go.
    Hold,
    /// Its volume stays in place as its last image.
    KeepInPlace,
    /// The repository is to lose what earlier moves left in it; nobody was asked for that before.
    Tidy,
    /// The same, of whoever was asked for an earlier epoch.
    TidyAgain,
}

/// What the next owner of a claim starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum HandedOver {
    /// The volume that was noted as what this epoch leaves.
    NotedVolume,
    /// The volume that is here.
    VolumeHere,
    /// The last image.
    LastImage,
    /// What this owner started from: nothing can have written to it.
    AsItCame,
}

impl HandedOver {
    /// Whether the data stays on this cluster, and is nowhere else.
    pub fn is_in_place(self) -> bool {
        matches!(self, HandedOver::NotedVolume | HandedOver::VolumeHere)
    }
}

/// Asks for the last image of a claim: one write, or what has to be waited for before.
pub fn ask(facts: &Facts, place: usize) -> Decision {
    let (claim, at) = (&facts.claims[place], &facts.at);
    let deed = |deed| Decision::Leave { place, deed };
    let name = &claim.name;
    if !at.is_copying {
        // The scheduler knows, and takes nothing back that would need it; but it may have looked
        // before the cluster changed.
        let message =
            format!("the data of claim {name} would have to be copied, which nothing here does");
        let obstacle = Obstacle::new("CopyNotSupported", message);
        return stands(facts, Obstacle { next: Some(stay(at)), ..obstacle });
    }
    if claim.own().is_none() {
        let message = format!("the volume of claim {name} is not here");
        return stands(facts, Obstacle::new("VolumeMissing", message));
    }
    match at.repository.as_deref().map(|secret| facts.bring(secret)) {
        None | Some(Ok(None)) => {}
        Some(Ok(Some(brings))) => return brings,
        Some(Err(obstacle)) => return stands(facts, obstacle),
    }
    match &claim.source {
        None => deed(Deed::CreateSource),
        Some(source) if !source.is_ours => {
            let message =
                format!("a ReplicationSource {} of somebody else is in its place", source.name);
            stands(facts, Obstacle::new("NameTaken", message))
        }
        // It stays while an image of it is held. One that no pin refers to is let go for that.
        Some(Source { is_going: true, .. }) => match facts.unpinned_image() {
            Some(part) => Decision::CleanUp {
                part,
                deed: leftover::Deed::LetGo,
                because: "somebody deletes its source, and no pin refers to this image",
            },
            None => wait("its source is going, and is made anew"),
        },
        Some(Source { is_syncing: true, .. }) => {
            let message =
                format!("an earlier image of claim {name} is being made; the last one follows");
            let found = Finding::fails(DATA_SYNCED, "Copying", message);
            facts.saying(found, wait("the tag before is not confirmed yet"))
        }
        // One that was for an earlier claim of that name is for this one now.
        Some(_) => deed(Deed::AskSource),
    }
}

/// The volume of a claim stays in place as its last image.
pub fn keep(facts: &Facts, place: usize) -> Decision {
    let claim = &facts.claims[place];
    if claim.own().is_some() {
        return Decision::Leave { place, deed: Deed::KeepInPlace };
    }
    let message = format!("the volume of claim {} is not here", claim.name);
    let found = Finding::fails(DATA_SYNCED, "VolumeMissing", message.clone());
    facts.saying_because(vec![found], "it cannot be handed over", Decision::rest(message))
}

/// Last images are being made: says what stands in the way, and heals an image that is gone again.
pub fn wait_for(facts: &Facts) -> Decision {
    let mut found: Option<Finding> = None;
    for (place, claim) in facts.needed() {
        if claim.last_image() != LastImage::Asked {
            continue;
        }
        let Some(source) = claim.own_source() else { continue };
        // Whoever mends the Secret at the hub mends it here.
        if let Some(secret) = &source.secret
            && let Ok(Some(brings)) = facts.bring(secret)
        {
            return brings;
        }
        let again = Decision::Leave { place, deed: Deed::AskAgain };
        if claim.confirmed_source().is_some()
            && claim.made_image().is_none_or(|image| image.is_going)
        {
            return look_for_image(source, place, again);
        }
        // Somebody deleted it while it was taken.
        if source.has_lost_image {
            return again;
        }
        let said = said(facts, claim, source);
        // What stands in the way is told before what goes its way.
        if found.is_none() || said.reason != "Copying" {
            found = Some(said);
        }
    }
    let waits = wait("last images are being made");
    match found {
        Some(found) => facts.saying(found, waits),
        None => waits,
    }
}

/// The source says that it is done, and the cache has no such image: either it lags, or somebody has
/// deleted the image. Then the source begins anew; the volume is closed and has all of the data.
fn look_for_image(source: &Source, place: usize, again: Decision) -> Decision {
    match source.image_look {
        // Who confirms without an image has made none.
        _ if !source.names_image => again,
        None => Decision::Look(Look::LastImage(place)),
        Some(true) => wait("the cache will show the image"),
        Some(false) => again,
    }
}

fn said(facts: &Facts, claim: &Claim, source: &Source) -> Finding {
    let (name, cluster) = (&claim.name, &facts.at.cluster);
    match &source.trouble {
        Some(trouble) => {
            let message = format!(
                "the last image of claim {name} cannot be taken: {}. It stays on {cluster}, and \
                 nothing is lost; asked to be there again, it goes on there",
                trouble.message
            );
            let next = trouble.next.clone().unwrap_or_else(|| stay(&facts.at));
            Finding::fails(DATA_SYNCED, trouble.reason, message).next(next)
        }
        None => {
            let message = format!("the last image of claim {name} is being made");
            Finding::fails(DATA_SYNCED, "Copying", message)
        }
    }
}

/// What the next owner starts from: the last image, the volume that stays here, or, if nothing can
/// have written to it, what it came with. None: it was written and has neither, and must not be
/// handed over.
pub fn hand_over(facts: &Facts, claim: &Claim) -> Option<HandedOver> {
    let at = &facts.at;
    let is_left_in_place = !claim.is_gone(at) && claim.is_left_in_place(at);
    if !claim.is_filled() && !is_left_in_place {
        return Some(HandedOver::AsItCame);
    }
    let own = claim.own();
    if own.is_some_and(|own| own.is_last) {
        return Some(HandedOver::NotedVolume);
    }
    // What was imaged and then wished for here again is here, and is not copied.
    if own.is_some_and(|own| at.stays && own.epoch == at.epoch) {
        return Some(HandedOver::VolumeHere);
    }
    let is_held = claim.made_image().is_some_and(|image| image.is_held);
    (claim.is_saved() || is_held).then_some(HandedOver::LastImage)
}

/// Whether the image that a claim came with is kept in mind: its volume stays in place and is nowhere
/// else, should its owner be declared gone.
pub fn remembers(claim: &Claim, handed_over: HandedOver) -> bool {
    handed_over.is_in_place() && matches!(claim.pin, Pin::Image { .. })
}

/// The next claim whose repository is to lose what earlier moves left in it. A snapshot of an earlier
/// epoch that no pin of this one refers to is never needed again: pins of later epochs are these, or
/// snapshots that are taken in this epoch or after it.
pub fn tidy(facts: &Facts) -> Option<Decision> {
    facts.needed().find_map(|(place, claim)| match claim.tidying {
        Tidying::Missing => Some(Decision::Leave { place, deed: Deed::Tidy }),
        Tidying::Earlier => Some(Decision::Leave { place, deed: Deed::TidyAgain }),
        Tidying::NotNeeded | Tidying::Asked => None,
    })
}

fn stands(facts: &Facts, obstacle: Obstacle) -> Decision {
    let message = obstacle.message.clone();
    facts.saying(obstacle.finding(DATA_SYNCED), Decision::wait(message, ONCE_A_WHILE))
}

/// The command by which a namespace that cannot leave goes on where it is.
fn stay(at: &At) -> String {
    format!("interlock move {} --to {}", at.namespace, at.cluster)
}

fn wait(because: &str) -> Decision {
    Decision::wait(because, LOOK_AGAIN)
}
