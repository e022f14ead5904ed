//! What happens next to the objects of a namespace: brought down, taken away, their status told.
//!
//! Nothing is deleted because it is not at the hub. An object is deleted on the cluster when the
//! very object at the hub that it was made from says that it is being deleted, or when another one has
//! taken its name there; our finalizer keeps it at the hub until a live read shows it gone here.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// An object at the hub, and what is here of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Its kind, for people.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The place of its kind in the order in which kinds are applied.
    pub rank: usize,
    /// Whether it is being deleted at the hub.
    pub is_terminating: bool,
    /// Whether our finalizer is on it at the hub.
    pub has_finalizer: bool,
    /// Whether it comes down to the cluster.
    pub way: Way,
    /// What it has to wait for before it may come down.
    pub awaits: Option<Awaits>,
    /// Whether a deleted object of this kind is made anew instead of changed, because it runs.
    pub is_workload: bool,
    /// Whatever has its name here.
    pub here: Option<Here>,
    /// What live reads showed of its name; None: not read.
    pub live_read: Option<Live>,
}

/// What live reads showed of the name of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Live {
    /// Whether the hub still has this very object, and keeps it: the cache may show one that is gone or
    /// goes.
    pub is_wanted: bool,
    /// What is here.
    pub here: LiveHere,
}

/// What a live read showed of whatever has the name of an object here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum LiveHere {
    /// There is none.
    Absent,
    /// It was made from this very object.
    Its,
    /// It is another one.
    Another,
}

/// An object here that was made from one that the cache of the hub does not have.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Stray {
    /// Its kind and name, for people.
    pub what: String,
    /// What a live read of the hub showed: whether the object that it was made from is there; None: not
    /// read.
    pub is_source_there: Option<bool>,
}

/// Whether an object at the hub comes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Way {
    /// It does.
    Down,
    /// A controller makes it on the cluster, from an object that comes down itself.
    MadeThere,
    /// It ran, and a pod runs once: on another cluster it would run again.
    Finished,
    /// Each cluster has its own, or it has another way down, as claims have.
    Other,
}

/// What an object waits for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Awaits {
    /// For ever: its claims would not be at the hub.
    ClaimTemplates,
    /// This claim, which the hub does not know to be filled: what is written to it could be left
    /// behind by a move.
    Claim(String),
}

/// What has the name of an object here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Here {
    /// Whether the syncer made it for this grant.
    pub is_ours: bool,
    /// Whether every namespace has it from the start.
    pub is_given: bool,
    /// Which object at the hub it was made from.
    pub made_from: MadeFrom,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether it is a volume that is kept.
    pub is_kept: bool,
    /// Whether a pod here uses it.
    pub is_in_use: bool,
    /// Whether it says what the hub says.
    pub is_up_to_date: bool,
    /// Whether its status is not the one at the hub.
    pub has_news: bool,
}

/// Which object at the hub something was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum MadeFrom {
    /// The one that is there now.
    This,
    /// One that had its name before.
    Another,
    /// It does not say.
    Unknown,
}

/// One thing to do about one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Chore {
    /// Put our finalizer on the object at the hub.
    PutFinalizer,
    /// Bring it to what the hub says.
    Apply,
    /// Let a volume go whose claim is being deleted at the hub.
    Unkeep,
    /// Delete the one here: it is being deleted at the hub, in the time that people gave it.
    Delete,
    /// Delete the one here: another one has its name at the hub.
    Replace,
    /// See for certain what has its name, here and at the hub.
    ReadLive,
    /// Take our finalizer off the object at the hub.
    TakeFinalizerOff,
    /// Tell the hub its status.
    TellStatus,
}

/// What there is to do about the objects of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// The next thing, and the place of its object.
    pub chore: Option<(usize, Chore)>,
    /// What cannot be brought down, and why; whole only if there is nothing to do.
    pub held_back: Vec<String>,
}

/// Whether one object is as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Fine,
    /// This has to be done.
    Do(Chore),
    /// It cannot be brought down, and why.
    HoldBack(String),
}

/// LiveReads at all objects of the namespace: first at those that go, what runs before what it needs;
/// then at those that come, in the other order.
pub fn survey(objects: &[Facts]) -> Survey {
    let mut terminating: Vec<usize> = (0..objects.len()).collect();
    terminating.sort_by_key(|place| Reverse(objects[*place].rank));
    let removal =
        terminating.into_iter().find_map(|place| Some((place, removal(&objects[place])?)));
    let mut survey = Survey { chore: removal, held_back: Vec::new() };
    if survey.chore.is_some() {
        return survey;
    }
    for (place, object) in objects.iter().enumerate() {
        match application(object) {
            Verdict::Fine => {}
            Verdict::HoldBack(why) => {
                survey.held_back.push(format!("{} {}: {why}", object.kind, object.name));
            }
            Verdict::Do(chore) => {
                survey.chore = Some((place, chore));
                return survey;
            }
        }
    }
    survey
}

/// The next object whose status the hub does not have.
pub fn news(objects: &[Facts]) -> Option<(usize, Chore)> {
    let has_news =
        |object: &Facts| object.has_finalizer && object.its().is_some_and(|here| here.has_news);
    objects.iter().position(has_news).map(|place| (place, Chore::TellStatus))
}

impl Facts {
    /// What was made from this very object.
    fn its(&self) -> Option<&Here> {
        let here = self.here.as_ref();
        here.filter(|here| here.is_ours && here.made_from == MadeFrom::This)
    }
}

fn removal(object: &Facts) -> Option<Chore> {
    if !object.is_terminating || !object.has_finalizer {
        return None;
    }
    let Some(here) = object.its() else {
        return match object.live_read {
            None => Some(Chore::ReadLive),
            // The cache will show it soon.
            Some(Live { here: LiveHere::Its, .. }) => None,
            Some(Live { here: LiveHere::Absent | LiveHere::Another, .. }) => {
                Some(Chore::TakeFinalizerOff)
            }
        };
    };
    match here {
        Here { is_in_use: true, .. } => None,
        Here { is_kept: true, .. } => Some(Chore::Unkeep),
        Here { is_terminating: true, .. } => None,
        _ => Some(Chore::Delete),
    }
}

/// What there is to do to have one object of the hub here.
pub fn application(object: &Facts) -> Verdict {
    if object.is_terminating || object.way != Way::Down {
        return Verdict::Fine;
    }
    match &object.awaits {
        None => {}
        Some(Awaits::ClaimTemplates) => {
            let why =
                "volumeClaimTemplates are not supported: their claims would not be at the hub";
            return Verdict::HoldBack(why.to_owned());
        }
        Some(Awaits::Claim(claim)) => {
            return Verdict::HoldBack(format!("waiting for claim {claim}"));
        }
    }
    if let Some(here) = &object.here {
        if !here.is_ours && !here.is_given {
            return Verdict::HoldBack("the name is taken on the cluster".to_owned());
        }
        if here.is_terminating {
            return Verdict::Fine;
        }
        if here.made_from == MadeFrom::Another && object.is_workload {
            return match object.live_read {
                None => Verdict::Do(Chore::ReadLive),
                Some(Live { is_wanted: true, .. }) => Verdict::Do(Chore::Replace),
                // What is here is newer than what the cache shows of the hub.
                Some(Live { is_wanted: false, .. }) => Verdict::Fine,
            };
        }
    }
    if !object.has_finalizer {
        return Verdict::Do(Chore::PutFinalizer);
    }
    match (&object.here, object.live_read) {
        (Some(here), _) if here.is_up_to_date => Verdict::Fine,
        // A write that makes an object cannot say that it saw none. Whoever lags would bring back a workload
        // that was deleted, or change the one that came after it.
        (None, None) if object.is_workload => Verdict::Do(Chore::ReadLive),
        (Some(_), _) | (None, None | Some(Live { is_wanted: true, here: LiveHere::Absent })) => {
            Verdict::Do(Chore::Apply)
        }
        // The caches will show it soon.
        (None, Some(_)) => Verdict::Fine,
    }
}

/// The next stray that is not known to belong here, and whether it is known not to. What was made from an
/// object that is gone was applied late: uids are not used twice, so that object never comes back.
pub fn stray(strays: &[Stray]) -> Option<(usize, bool)> {
    let place = strays.iter().position(|stray| stray.is_source_there != Some(true))?;
    Some((place, strays[place].is_source_there.is_some()))
}
