//! What the syncer of one cluster does next about one grant: at most one write.
//!
//! The rules of [`tenancy`] come first: whether the namespace may be here, and how far it has come.
//! What they leave open (which write gives a claim its volume, which object comes down next, which
//! part of a copy is being deleted) is decided in `claim`, `objects` and `leftover`.

use super::claim::facts::Progress;
use super::claim::leave::HandedOver;
use super::claim::{arrive, leave};
use super::facts::{Facts, Rights, Runs, Unready};
use super::leftover::decide as leftover;
use super::objects::decide::{self as objects, Chore, Survey};
use super::tenancy::{self, Decision as Rule, Epoch, Why};
use interlock_api::placement::CopyState;
use interlock_api::placement::condition::{FILLED, RIGHTS_READY, RUNNING, STOPPED};
use interlock_kernel::conditions::{self, Finding};
use serde::Serialize;
use std::time::Duration;

/// How soon a look is taken again at something that the API does not tell of, such as a lock.
const REQUEUE_AFTER: Duration = Duration::from_secs(1);
/// How soon a step is tried again that waits for a cache to come up to the truth.
const CACHE_LAG: Duration = Duration::from_secs(5);
/// How often something is checked again that time alone may change.
const ONCE_A_WHILE: Duration = Duration::from_secs(600);

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing until something changes, and why.
    Rest(String),
    /// Nothing until something changes or this time has passed, and why.
    Wait {
        /// Why.
        because: String,
        /// How long at most.
        at_most: Duration,
    },
    /// Say something about the grant.
    Say {
        /// What, none of which it says already.
        findings: Vec<Finding>,
        /// What for.
        because: &'static str,
    },
    /// See something for certain.
    LiveRead(LiveRead),
    /// Take the permit back.
    Withdraw,
    /// Tell the first thing that runs to stop.
    Stop,
    /// Note, for ever, that this epoch cannot run here any more.
    Close(Epoch),
    /// Make the namespace here.
    CreateHere {
        /// The epoch that arrives.
        epoch: Epoch,
        /// Whether that cannot run here any more.
        is_closed: bool,
    },
    /// Note that an epoch arrives.
    NoteEpoch(Epoch),
    /// Let this epoch run.
    Permit(Epoch),
    /// Put our finalizer on the namespace at the hub.
    PutFinalizer,
    /// Take our finalizer off an object in the namespace at the hub.
    TakeFinalizerOffObject,
    /// Take our finalizer off the namespace at the hub.
    TakeFinalizerOff,
    /// Tell people that a pod of a namespace that leaves does not run any more.
    SayPodMoves,
    /// Tell the hub: stopped, and here is what the next owner of each claim starts from.
    Acknowledge(Vec<Handed>),
    /// Tell the hub: stopped; the namespace is deleted with its data.
    AcknowledgeDeletion,
    /// Tell the hub what became of the data here, after we were declared gone.
    SettleCopy(CopyState),
    /// The same, where nothing ever ran: what we were granted since takes its place.
    TakeCopyOver,
    /// Tell the hub that there is no copy here any more.
    ForgetCopy,
    /// Tell the hub that all claims are filled.
    TellFilled {
        /// The claims that are, by place.
        claims: Vec<usize>,
        /// Whether it starts after that.
        is_starting: bool,
    },
    /// Tell the hub how far the data of claims, by place, has come.
    TellProgress(Vec<(usize, Progress)>),
    /// Give a claim its volume.
    Arrive {
        /// The claim, by place.
        place: usize,
        /// One write.
        action: arrive::Action,
    },
    /// Have the data of a claim leave.
    Leave {
        /// The claim, by place.
        place: usize,
        /// One write.
        action: leave::Action,
    },
    /// Do something about the Secret of a repository.
    BringSecret {
        /// Its name.
        secret: String,
        /// One write.
        chore: Chore,
    },
    /// Do something about an object of the namespace.
    Mirror {
        /// The object, by place.
        place: usize,
        /// One write, or a look.
        chore: Chore,
    },
    /// Delete what was made from an object that is gone at the hub, by place.
    RemoveStray(usize),
    /// Do something to a part of what is left here.
    CleanUp {
        /// The part, by place.
        part: usize,
        /// One write.
        action: leftover::Action,
        /// What for.
        because: &'static str,
    },
    /// Delete the namespace here, which is empty.
    DeleteNamespace,
}

/// What is seen for certain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum LiveRead {
    /// The first thing that runs, and then our notes: if those are still the ones that have to be
    /// left, what was there before is not of a later epoch. A cache does not say so: whoever missed a
    /// move away and back would stop what runs rightly.
    ToStop,
    /// Whether anything could still write.
    WhetherStill,
    /// Whether our finalizer is on the namespace at the hub.
    WhetherHeld,
    /// Whether we may run.
    WhetherGranted,
    /// Whether these claims, by place, are gone at the hub, that were filled and seem gone: two caches
    /// that lag would otherwise lose their data.
    GoneClaims(Vec<usize>),
    /// Whether it ever ran here. That it did not is believed of the server only: a cache may be from
    /// before the namespace came, and what was written in it would pass for what somebody else has.
    WhetherItRan,
    /// Whether the namespace is gone here.
    WhetherGone,
    /// Which objects in the namespace at the hub have our finalizer. A cache may not show yet that we
    /// put it on one: that one would keep it, and a namespace that is deleted would stay for ever.
    FinalizedObjects,
    /// Whether an object at the hub is gone that a stray, by place, was made from.
    Stray(usize),
    /// The snapshot that the source of a claim, by place, says it made.
    LastSnapshot(usize),
    /// The snapshot that the destination of a claim, by place, says it brought.
    ArrivedSnapshot(usize),
}

/// What the next owner of a claim starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Handed {
    /// The claim, by place.
    pub place: usize,
    /// What it is.
    pub from: HandedOver,
    /// Whether the snapshot that it came with is kept in mind.
    pub remembers: bool,
}

impl Decision {
    /// Nothing until something changes.
    pub fn rest(because: impl Into<String>) -> Decision {
        Decision::Rest(because.into())
    }

    /// Nothing until something changes or this time has passed.
    pub fn wait(because: impl Into<String>, at_most: Duration) -> Decision {
        Decision::Wait { because: because.into(), at_most }
    }
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    // The rules know only of the claims that anybody needs.
    let needed: Vec<usize> = facts.needed().map(|(place, _)| place).collect();
    let survey = objects::survey(&facts.objects);
    match tenancy::decide(&facts.outline(&survey)) {
        Rule::Nothing(why) => nothing(facts, why, &survey),
        Rule::Withdraw => Decision::Withdraw,
        Rule::StopOne => stop(facts),
        Rule::ReadWhetherStill => Decision::LiveRead(LiveRead::WhetherStill),
        Rule::Close(epoch) => Decision::Close(epoch),
        Rule::CreateClosed(epoch) => Decision::CreateHere { epoch, is_closed: true },
        Rule::CreateHere(epoch) => Decision::CreateHere { epoch, is_closed: false },
        Rule::NoteEpoch(epoch) => Decision::NoteEpoch(epoch),
        Rule::ReadWhetherHeld => Decision::LiveRead(LiveRead::WhetherHeld),
        Rule::ReadWhetherGranted => Decision::LiveRead(LiveRead::WhetherGranted),
        Rule::Permit(epoch) => Decision::Permit(epoch),
        Rule::AskLastSnapshot(claim) => leave::ask(facts, needed[claim]),
        Rule::KeepInPlace(claim) => leave::keep(facts, needed[claim]),
        Rule::HoldLastSnapshot(claim) => {
            Decision::Leave { place: needed[claim], action: leave::Action::Hold }
        }
        Rule::CreateClaim(claim) => arrive::make(facts, needed[claim]),
        Rule::Acknowledge => acknowledge(facts),
        Rule::SettleCopy(state) => settle(facts, state),
        Rule::TakeFinalizerOff if facts.has_finalized_object => Decision::TakeFinalizerOffObject,
        // The namespace comes last: without its finalizer nobody would look for the objects any more.
        Rule::TakeFinalizerOff => match facts.finalized_read {
            None => Decision::LiveRead(LiveRead::FinalizedObjects),
            Some(true) => Decision::TakeFinalizerOffObject,
            Some(false) => Decision::TakeFinalizerOff,
        },
        Rule::PutFinalizer => match facts.namespace {
            None => Decision::rest("the namespace is not in the cache"),
            Some(namespace) if namespace.is_terminating => {
                Decision::rest("the namespace is being deleted; the grant will be revoked")
            }
            Some(_) => Decision::PutFinalizer,
        },
        Rule::MarkSuperseded => match facts.to_mark() {
            Some(part) => Decision::CleanUp {
                part,
                action: leftover::Action::Mark,
                because: "another cluster has all data of the namespace",
            },
            None => Decision::rest("every volume is marked"),
        },
        Rule::DeleteLeftover => match leftover::next(&facts.parts) {
            Some((part, action)) => {
                Decision::CleanUp { part, action, because: "this copy is not needed any more" }
            }
            None => Decision::DeleteNamespace,
        },
        Rule::ForgetCopy => match facts.is_still_here {
            None => Decision::LiveRead(LiveRead::WhetherGone),
            Some(true) => {
                Decision::rest("the namespace still exists on this cluster; the cache will show it")
            }
            Some(false) => Decision::ForgetCopy,
        },
        Rule::ReportFilled => {
            let is_filled = |place: &usize| {
                facts.claims[*place].volume(&facts.at) == Ok(tenancy::Volume::Filled)
            };
            let claims = needed.into_iter().filter(is_filled).collect();
            Decision::TellFilled { claims, is_starting: !facts.is_permitted() }
        }
        Rule::ApplyOne => match survey.chore {
            Some((place, chore)) => Decision::Mirror { place, chore },
            None => Decision::rest("every object matches the hub"),
        },
    }
}

fn stop(facts: &Facts) -> Decision {
    match (facts.stop_read, facts.are_notes_current) {
        (None, _) => Decision::LiveRead(LiveRead::ToStop),
        (Some(true), Some(true)) => Decision::Stop,
        _ => Decision::wait("the live state of the cluster differs from the cache", CACHE_LAG),
    }
}

/// The write that lets another cluster begin. A claim that was filled and seems gone is left out only
/// if the hub itself says that it is gone.
fn acknowledge(facts: &Facts) -> Decision {
    if facts.grant.as_ref().is_some_and(|grant| grant.is_deletion) {
        return Decision::AcknowledgeDeletion;
    }
    let is_left_out = |place: &usize| {
        let claim = &facts.claims[*place];
        claim.is_filled() && claim.is_gone(&facts.at)
    };
    let (gone, handed): (Vec<usize>, Vec<usize>) = (0..facts.claims.len()).partition(is_left_out);
    if gone.iter().any(|place| facts.claims[*place].hub_read.is_none()) {
        return Decision::LiveRead(LiveRead::GoneClaims(gone));
    }
    if gone.iter().any(|place| facts.claims[*place].hub_read == Some(true)) {
        return Decision::rest("a claim is still at the hub; the cache will show it");
    }
    if facts.has_pod_said_to_run {
        return Decision::SayPodMoves;
    }
    let handed = handed.into_iter().map(|place| {
        let claim = &facts.claims[place];
        let from = leave::hand_over(facts, claim)?;
        Some(Handed { place, from, remembers: leave::remembers(claim, from) })
    });
    match handed.collect::<Option<Vec<Handed>>>() {
        Some(handed) => Decision::Acknowledge(handed),
        None => {
            Decision::rest("the last snapshot of a claim cannot be read; the cache will show it")
        }
    }
}

fn settle(facts: &Facts, state: CopyState) -> Decision {
    let has_live =
        facts.grant.as_ref().is_some_and(|grant| grant.copies.contains(&CopyState::Live));
    match facts.are_notes_current {
        _ if state == CopyState::Diverged => Decision::SettleCopy(state),
        None => Decision::LiveRead(LiveRead::WhetherItRan),
        Some(false) => Decision::rest("the cache will show the live state"),
        Some(true) if has_live => Decision::TakeCopyOver,
        Some(true) => Decision::SettleCopy(state),
    }
}

/// The rules have nothing to do: people are informed why, where that is not plain.
fn nothing(facts: &Facts, why: Why, survey: &Survey) -> Decision {
    let (cluster, epoch) = (&facts.at.cluster, facts.at.epoch);
    match why {
        Why::NotInTheCache => Decision::rest(
            "the grant is not in the cache; only a live read can show that it is gone",
        ),
        Why::NameTaken => {
            let name = &facts.at.grant;
            let message =
                format!("a namespace {name} that Interlock did not create is on {cluster}");
            let found = Finding::fails(FILLED, "NameTaken", message.clone());
            facts.saying(found, Decision::rest(message))
        }
        Why::OldNews => {
            Decision::wait("the cache is older than the record on this cluster", CACHE_LAG)
        }
        Why::NotOurs => {
            Decision::rest("this cluster does not own the namespace and has nothing of it")
        }
        Why::Stopping => {
            let there: Vec<String> =
                facts.running.iter().map(|Runs { what, .. }| what.clone()).collect();
            let message = format!("stopping: {}", listed(&there));
            let found = Finding::fails(STOPPED, "Stopping", message);
            let waits = "a pod that was stopped has not ended yet";
            facts.saying(found, Decision::wait(waits, REQUEUE_AFTER))
        }
        Why::MayStillWrite => {
            let stirring = facts.stirring.as_deref().unwrap_or_default();
            let message = format!("may still write on {cluster}: {}", listed(stirring));
            let found = Finding::fails(STOPPED, "MayStillWrite", message.clone());
            facts.saying(found, Decision::wait(message, REQUEUE_AFTER))
        }
        Why::Copying => leave::wait_for(facts),
        Why::Filling => arrive::tell(facts),
        Why::CacheBehind => {
            Decision::wait("the live state at the hub differs from the cache", CACHE_LAG)
        }
        Why::Forced => {
            let message = format!("a ForceRelease for epoch {epoch} is pending");
            let found = Finding::fails(RUNNING, "ForceRelease", message.clone());
            facts.saying(found, Decision::rest(message))
        }
        // The grant is watched: what its roles say is news.
        Why::AwaitingRights => {
            let fresh = facts.fresh.as_ref().and_then(|fresh| fresh.grant.as_ref());
            let found = fresh.and_then(|grant| about_rights(facts, &grant.rights));
            let waits = Decision::rest("a cloud role of the namespace does not trust this cluster");
            match found {
                Some(found) => facts.saying(found, waits),
                None => waits,
            }
        }
        Why::Cleaning => Decision::rest("the remaining objects on this cluster are being deleted"),
        Why::Keeping => Decision::wait(
            "the remaining copies on this cluster are kept for now",
            until_settled(facts),
        ),
        Why::Running => running(facts, survey),
    }
}

/// Everything is as it should be; what is true here goes up, and what earlier epochs left here goes.
fn running(facts: &Facts, survey: &Survey) -> Decision {
    let (cluster, epoch) = (&facts.at.cluster, facts.at.epoch);
    let runs = format!("epoch {epoch} runs on {cluster}");
    let mut findings = vec![match survey.held_back.is_empty() {
        true => Finding::holds(RUNNING, "Running", runs),
        false => {
            let shown = listed(&survey.held_back);
            Finding::holds(
                RUNNING,
                "HeldBack",
                format!("{runs}; not copied to the cluster: {shown}"),
            )
        }
    }];
    if conditions::is_true(&facts.conditions, STOPPED) {
        findings.push(Finding::fails(
            STOPPED,
            "Running",
            format!("the namespace runs on {cluster}"),
        ));
    }
    let rights = facts.grant.as_ref().map(|grant| &grant.rights);
    findings.extend(rights.and_then(|rights| about_rights(facts, rights)));
    let otherwise = match objects::news(&facts.objects) {
        Some((place, chore)) => Decision::Mirror { place, chore },
        None => match objects::stray(&facts.strays) {
            Some((place, true)) => Decision::RemoveStray(place),
            Some((place, false)) => Decision::LiveRead(LiveRead::Stray(place)),
            None => outlived(facts),
        },
    };
    facts.saying_because(findings, "it runs here", otherwise)
}

/// What the cloud roles of the namespace say of its owner. Nothing of one that has none, unless it
/// was said before that it waits for one.
fn about_rights(facts: &Facts, rights: &Rights) -> Option<Finding> {
    let (cluster, epoch) = (&facts.at.cluster, facts.at.epoch);
    if !rights.has_roles {
        let is_said = conditions::find(&facts.conditions, RIGHTS_READY).is_some();
        let message = "no cloud role of the namespace is left to wait for";
        return is_said.then(|| Finding::holds(RIGHTS_READY, "NoRoles", message));
    }
    if rights.unready.is_empty() {
        let message = format!("every cloud role trusts cluster {cluster} for epoch {epoch}");
        return Some(Finding::holds(RIGHTS_READY, "Trusted", message));
    }
    let role = |Unready { role, because }: &Unready| match because.as_str() {
        "" => format!("role {role}"),
        because => format!("role {role} ({because})"),
    };
    let roles: Vec<String> = rights.unready.iter().map(role).collect();
    let waits = match rights.are_awaited {
        true => "; the pods start when it does, or when the Placement says awaitRights: false",
        false => "",
    };
    let message = format!(
        "cluster {cluster} is not trusted for epoch {epoch} yet by {}{waits}",
        listed(&roles)
    );
    Some(Finding::fails(RIGHTS_READY, "Waiting", message))
}

/// What earlier epochs left on the cluster that has the namespace now, and that nobody needs: a
/// destination when its claim has its volume; snapshots and volumes when what runs now has run for as
/// long as old copies are kept. Volumes that may have what no snapshot has are left to a person.
fn outlived(facts: &Facts) -> Decision {
    let (at, parts) = (&facts.at, &facts.parts);
    let done = facts.needed().filter(|(_, claim)| claim.has_its_data());
    let done: Vec<&str> = done.map(|(_, claim)| claim.uid.as_str()).collect();
    if let Some(part) = leftover::done_destination(parts, &done) {
        let because = "the claim has its volume";
        return Decision::CleanUp { part, action: leftover::Action::Delete, because };
    }
    let clean_up = |part, action| {
        let because = "the object is of an earlier epoch, and a later epoch has run long enough";
        Decision::CleanUp { part, action, because }
    };
    let snapshot = facts.unpinned_snapshot().filter(|_| at.written_until == 0);
    let snapshot = snapshot.map(|part| clean_up(part, leftover::Action::LetGo));
    let volume = leftover::outlived_volume(parts, at.written_until, at.epoch);
    let volume = volume.map(|part| clean_up(part, leftover::Action::GiveBack));
    match snapshot.or(volume).or_else(|| leave::tidy(facts)) {
        None => Decision::rest("the namespace runs on this cluster and matches the hub"),
        Some(next) if facts.has_settled() => next,
        Some(_) => {
            let because = "the namespace runs on this cluster and matches the hub; copies of \
                earlier epochs are kept for now";
            Decision::wait(because, until_settled(facts))
        }
    }
}

/// How soon it is checked again whether old copies may go.
fn until_settled(facts: &Facts) -> Duration {
    let left = facts.grant.as_ref().and_then(|grant| grant.settles_in);
    left.filter(|left| !left.is_zero()).unwrap_or(ONCE_A_WHILE).min(ONCE_A_WHILE)
}

/// The first few of many, so that a message stays readable.
fn listed(all: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
