//! What is promised of every sync.

use super::Role;
use super::facts::is_empty;
use super::state::{Attempt, Content, Image, State};
use interlock_checker::{Formula, Invariant, Property, Reachable};

/// What must hold in every state.
pub(super) fn invariants(role: Role, has_holds: bool) -> Vec<Invariant<State>> {
    let has_latest = role != Role::Backups;
    vec![
        Invariant::new(
            "TagMeansAfter",
            "a tag that is answered was set before what answers it was read",
            |state: &State| {
                state.record.answered == 0
                    || matches!(state.product, Content::Whole { tag, .. }
                        if tag >= state.record.answered)
            },
        ),
        Invariant::new(
            "FilledOnce",
            "one mover writes at a time, and none for a sync whose image is taken or that is over",
            |state: &State| {
                let running: Vec<usize> = (0..state.movers.len())
                    .filter(|sync| state.movers[*sync].contains(&Attempt::Runs))
                    .collect();
                let is_over = |sync: usize| state.record.over.map(usize::from) == Some(sync);
                running.len() <= 1 && running.iter().all(|sync| !is_over(*sync))
            },
        ),
        Invariant::new(
            "ImageUntouched",
            "no mover writes a volume while an image of it is taken or after",
            move |state: &State| {
                role != Role::Destination
                    || (0..state.movers.len()).all(|sync| {
                        !state.movers[sync].contains(&Attempt::Runs)
                            || state.images[sync] == Image::None
                    })
            },
        )
        .unbreakable_if(role != Role::Destination, "only a destination writes a volume"),
        Invariant::new(
            "LatestImageExists",
            "the latest image is there, ready, and has all of the data, until the object goes",
            |state: &State| {
                let mut latest = [state.record.latest, state.record.named].into_iter().flatten();
                let is_whole =
                    |image| matches!(state.image(image), Image::Ready(Content::Whole { .. }));
                state.record.is_going || latest.all(is_whole)
            },
        )
        .unbreakable_if(!has_latest, "an image on the way to a repository is never the latest"),
        Invariant::new("HeldImageStays", "an image that is held is there", |state: &State| {
            (0..state.images.len()).all(|image| {
                !state.is_held(image) || matches!(state.images[image], Image::Ready(_))
            })
        })
        .unbreakable_if(!has_holds, "nobody holds an image in this size"),
        Invariant::new(
            "NoEmptyByAccident",
            "what is empty is not published, and answers no tag",
            |state: &State| {
                let latest = state.record.latest.map(|image| state.image(image));
                let is_latest_empty =
                    matches!(latest, Some(Image::Ready(content)) if is_empty(content));
                !is_latest_empty && (state.record.answered == 0 || !is_empty(state.product))
            },
        ),
    ]
}

/// What must be possible.
pub(super) fn reachable(tags: u8) -> Vec<Reachable<State>> {
    vec![
        Reachable::new("Answered", "the last tag is answered", move |state: &State| {
            state.record.answered == tags
        }),
        Reachable::new("GivenUp", "a sync is given up", |state: &State| state.record.given_up > 0),
    ]
}

/// What must happen.
pub(super) fn properties(tags: u8, has_holds: bool) -> Vec<Property<State>> {
    let answered = |tag: u8| {
        Formula::leads_to(
            move |state: &State| state.record.tag == tag,
            move |state: &State| {
                let record = &state.record;
                let is_over = record.answered == tag || record.given_up == tag;
                record.tag != tag || is_over || record.is_going
            },
        )
    };
    let mut properties = vec![
        Property::for_all(
            "TagIsAnswered",
            "a tag is answered or given up, unless another one is set or the object is deleted",
            (1..=tags).map(answered),
        ),
        Property::new(
            "IntentEnds",
            "an intent goes once its sync is over",
            Formula::leads_to(
                |state: &State| state.record.intent.is_some(),
                |state: &State| state.record.intent.is_none() || state.record.is_going,
            ),
        ),
    ];
    if has_holds {
        properties.push(Property::new(
            "DeletedGoes",
            "an object that is deleted goes once nobody holds an image of it",
            Formula::leads_to(|state: &State| state.record.is_going, |state: &State| state.is_gone),
        ));
    }
    properties
}
