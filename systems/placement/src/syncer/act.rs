//! A decision of the syncer as one step: one write, one look, or a reason to wait.

use super::claims::{ClaimSeen, keep_in_place, new_claim, take_over};
use super::decide::{Decision, Epoch, Here, Volume, Why};
use super::marks::{
    LABEL_GRANT, has_finalizer, is_going, name, put_finalizer, take_finalizer_off, uid,
};
use super::observe::Scene;
use super::{Locks, filling, images, leftover, objects, report, repository};
use crate::kinds::{CLAIM, FORCE_RELEASE, NAMESPACE, VOLUME_ATTACHMENT};
use interlock_api::names::{
    ANNOTATION_EPOCH, ANNOTATION_GRANT, ANNOTATION_RAN, ANNOTATION_RELEASED, ANNOTATION_RUNNING,
    Permit,
};
use interlock_api::placement::RevokedBecause;
use interlock_api::placement::condition::{DATA_SYNCED, FILLED, RUNNING, STOPPED};
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Address, Name, Part, Place, Read, Step, Write};
use serde_json::{Value, json};
use std::time::Duration;

/// How soon a look is taken again at something that the API does not tell of, such as a lock.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How soon a step is tried again that waits for a cache to come up to the truth.
const CACHE_LAG: Duration = Duration::from_secs(5);
/// How soon it is told again how far the data has come.
const TELL_AGAIN: Duration = Duration::from_secs(1);

pub(super) fn act(scene: &Scene<'_>, decision: Decision) -> Step<Locks> {
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::Withdraw => {
            let change = json!({ANNOTATION_RUNNING: ""});
            note(scene, &change, "it leaves this cluster: nothing may start any more")
        }
        Decision::StopOne => stop_one(scene),
        Decision::LookWhetherStill => look_whether_still(scene),
        Decision::Close(epoch) => close(scene, epoch),
        Decision::CreateClosed(epoch) => create(scene, epoch, true),
        Decision::CreateHere(epoch) => create(scene, epoch, false),
        Decision::NoteEpoch(epoch) => {
            let change = json!({ANNOTATION_EPOCH: epoch.to_string()});
            note(scene, &change, "another epoch arrives")
        }
        Decision::Permit(epoch) => permit(scene, epoch),
        Decision::AskLastImage(place) => images::ask(scene, place),
        Decision::HoldLastImage(place) => images::hold(scene, place),
        Decision::KeepInPlace(place) => keep(scene, place),
        Decision::Acknowledge => {
            let because = scene.grant.as_ref().and_then(|grant| grant.status.because);
            report::acknowledge(scene, because == Some(RevokedBecause::Deletion))
        }
        Decision::SettleCopy(state) => report::settle_copy(scene, state),
        Decision::TakeFinalizerOff => finalizer_off(scene),
        Decision::PutFinalizer => finalizer_on(scene),
        Decision::MarkSuperseded => leftover::mark(scene),
        Decision::DeleteLeftover => leftover::delete_one(scene),
        Decision::ForgetCopy => leftover::forget(scene),
        Decision::CreateClaim(place) => create_claim(scene, place),
        Decision::ReportFilled => report::filled(scene),
        Decision::LookWhetherGranted => look_whether_granted(scene),
        Decision::ApplyOne => match &scene.survey().chore {
            Some(chore) => objects::act(scene, chore),
            None => Step::rest("every object is as the hub says"),
        },
    }
}

/// One write to the notes, over the version that was seen.
fn note(scene: &Scene<'_>, annotations: &Value, because: &str) -> Step<Locks> {
    let Some(here) = &scene.here else { return Step::rest("there is no namespace here") };
    let change = json!({"metadata": {"annotations": annotations}});
    let write = Write::patch(Place::CLUSTER, &NAMESPACE, here, (Part::Main, change));
    Step::write(write, because)
}

fn create(scene: &Scene<'_>, epoch: Epoch, is_closed: bool) -> Step<Locks> {
    let Some(grant) = &scene.grant else { return Step::rest("the grant is not in the cache") };
    let mut annotations = json!({
        ANNOTATION_GRANT: uid(&grant.object),
        ANNOTATION_EPOCH: epoch.to_string(),
        ANNOTATION_RUNNING: "",
    });
    if is_closed {
        annotations[ANNOTATION_RELEASED] = json!(epoch.to_string());
    }
    let write = Write::Create {
        address: Address::new(Place::CLUSTER, &NAMESPACE, Name::cluster_wide(scene.name)),
        object: json!({"metadata": {
            "annotations": annotations, "labels": {LABEL_GRANT: scene.name},
        }}),
    };
    let because = match is_closed {
        true => "it never arrived here, and the note that it cannot needs a place",
        false => "it is granted to this cluster",
    };
    Step::write(write, because)
}

/// First the object is looked at, then the notes: if those are still the ones that have to be left,
/// what was there before is not of a later epoch. A cache does not say so: whoever missed a move away
/// and back would stop what runs rightly.
fn stop_one(scene: &Scene<'_>) -> Step<Locks> {
    let Some((kind, object)) = scene.running().find(|(_, object)| !is_going(object)) else {
        return Step::rest("everything was told to stop");
    };
    let (notes, _) = scene.truth_addresses();
    let address = Address::new(Place::CLUSTER, &kind, Name::of(&object));
    let Some(there) = scene.looks.objects.get(&address) else {
        let reads = vec![Read::Object(address), Read::Object(notes)];
        let because = "it is stopped only if it is of the epoch that leaves".to_owned();
        return Step::Look { reads, because };
    };
    let is_same = there.as_ref().is_some_and(|there| uid(there) == uid(&object));
    if !is_same || scene.are_notes_current() != Some(true) {
        let because = "the cluster shows something else than the cache".to_owned();
        return Step::Wait { because, at_most: CACHE_LAG };
    }
    let write = Write::delete(Place::CLUSTER, &kind, &object);
    Step::write(write, format!("{kind} leaves this cluster"))
}

/// In this order: what the API shows first, the locks last. Whoever takes a lock after that looks
/// at the permit, which is withdrawn.
fn look_whether_still(scene: &Scene<'_>) -> Step<Locks> {
    let Some(question) = scene.locks_question() else {
        return Step::rest("there is no namespace here");
    };
    let kinds = scene.syncer.kinds.running();
    let mut reads: Vec<Read<Locks>> = kinds
        .into_iter()
        .rev()
        .map(|kind| Read::List {
            place: Place::CLUSTER,
            kind,
            namespace: Some(scene.name.to_owned()),
        })
        .collect();
    if scene.syncer.sees_attachments {
        reads.push(Read::List { place: Place::CLUSTER, kind: VOLUME_ATTACHMENT, namespace: None });
    }
    reads.push(Read::Ask(question));
    Step::Look { reads, because: "it is closed only when nothing can write any more".to_owned() }
}

fn close(scene: &Scene<'_>, epoch: Epoch) -> Step<Locks> {
    let released = match scene.notes {
        Here::Noted(notes) => notes.released.max(epoch),
        Here::Missing | Here::Foreign => return Step::rest("there is no namespace here"),
    };
    let change = json!({ANNOTATION_RELEASED: released.to_string()});
    let step = note(scene, &change, "nothing runs, nothing is attached, no lock is held");
    let cluster = &scene.syncer.cluster;
    let said =
        format!("everything of epoch {epoch} has stopped on {cluster}; it is handed over next");
    report::telling(step, report::event(scene, "Stopped", said))
}

fn look_whether_granted(scene: &Scene<'_>) -> Step<Locks> {
    let (notes, grant) = scene.truth_addresses();
    let forces = Read::List { place: Place::HUB, kind: FORCE_RELEASE, namespace: None };
    Step::Look {
        reads: vec![Read::Object(notes), Read::Object(grant), forces],
        because: "only the hub itself can say whether it may run".to_owned(),
    }
}

fn permit(scene: &Scene<'_>, epoch: Epoch) -> Step<Locks> {
    let permit = Permit { epoch, boot_id: scene.syncer.boot_id.clone() }.to_string();
    let change = json!({ANNOTATION_RUNNING: permit, ANNOTATION_RAN: epoch.to_string()});
    let step = note(scene, &change, "the hub says that it is granted here, and not taken by force");
    let said = format!("epoch {epoch} may run on {}", scene.syncer.cluster);
    report::telling(step, report::event(scene, "Started", said))
}

fn finalizer_on(scene: &Scene<'_>) -> Step<Locks> {
    let Some(namespace) = &scene.hub_namespace else {
        return Step::rest("the namespace is not in the cache");
    };
    if is_going(namespace) {
        return Step::rest("the namespace is being deleted; it will be revoked");
    }
    let change = put_finalizer(namespace, &scene.syncer.finalizer);
    let write = Write::patch(Place::HUB, &NAMESPACE, namespace, (Part::Main, change));
    Step::write(write, "it goes down to this cluster, and must not vanish first")
}

/// First off the objects, then off the namespace.
fn finalizer_off(scene: &Scene<'_>) -> Step<Locks> {
    let because = "it is closed here, and not this cluster's any more";
    let finalizer = &scene.syncer.finalizer;
    if let Some((kind, object)) = scene.finalized_object() {
        let change = take_finalizer_off(&object, finalizer);
        return Step::write(
            Write::patch(Place::HUB, &kind, &object, (Part::Main, change)),
            because,
        );
    }
    match scene.hub_namespace.as_ref().filter(|namespace| has_finalizer(namespace, finalizer)) {
        Some(namespace) => {
            let change = take_finalizer_off(namespace, finalizer);
            let write = Write::patch(Place::HUB, &NAMESPACE, namespace, (Part::Main, change));
            Step::write(write, because)
        }
        None => Step::rest("no finalizer of ours is on it"),
    }
}

fn create_claim(scene: &Scene<'_>, place: usize) -> Step<Locks> {
    let (Some(claim), Some(grant)) = (scene.claims.get(place), &scene.grant) else {
        return Step::rest("the claim is not in the cache");
    };
    let at = scene.at();
    if let Some(origin) = claim.origin() {
        return filling::fill(scene, claim, origin);
    }
    if let Some(here) = claim.volume_here(at) {
        let change = take_over(here, at.epoch);
        let write = Write::patch(Place::CLUSTER, &CLAIM, here, (Part::Main, change));
        return Step::write(
            write,
            format!("epoch {} takes the {}", at.epoch, report::describe(here)),
        );
    }
    let Some(at_hub) = &claim.at_hub else {
        return Step::rest("the claim at the hub is not in the cache");
    };
    if !has_finalizer(at_hub, &scene.syncer.finalizer) {
        let change = put_finalizer(at_hub, &scene.syncer.finalizer);
        let write = Write::patch(Place::HUB, &CLAIM, at_hub, (Part::Main, change));
        return Step::write(
            write,
            "its volume goes down to this cluster, and it must not vanish first",
        );
    }
    let name = Name::within(scene.name, name(at_hub));
    let write = Write::Create {
        address: Address::new(Place::CLUSTER, &CLAIM, name),
        object: new_claim(at_hub, &grant.spec.volumes, at),
    };
    Step::write(write, "the claim was never used: a new volume will do")
}

fn keep(scene: &Scene<'_>, place: usize) -> Step<Locks> {
    let at = scene.at();
    let Some(claim) = scene.claims.get(place) else {
        return Step::rest("the claim is not in the cache");
    };
    match claim.volume_here(at) {
        Some(here) => {
            let change = keep_in_place(here, at.epoch);
            let write = Write::patch(Place::CLUSTER, &CLAIM, here, (Part::Main, change));
            Step::write(
                write,
                format!("the {} stays, and is taken again here", report::describe(here)),
            )
        }
        None => {
            let message = format!("the volume of claim {} is not here", claim.listed.name);
            let found = Finding::fails(DATA_SYNCED, "VolumeMissing", message.clone());
            let said = report::say(scene, &[found], "it cannot be handed over");
            said.unwrap_or_else(|| Step::rest(message))
        }
    }
}

fn nothing(scene: &Scene<'_>, why: Why) -> Step<Locks> {
    let cluster = &scene.syncer.cluster;
    let wait = |because: &str, at_most| Step::Wait { because: because.to_owned(), at_most };
    match why {
        Why::NotInTheCache => Step::rest("the grant is not in the cache, which proves nothing"),
        Why::NameTaken => {
            let message = format!("a namespace {} of somebody else is on {cluster}", scene.name);
            let found = Finding::fails(FILLED, "NameTaken", message.clone());
            report::saying(scene, found, Step::rest(message))
        }
        Why::OldNews => wait("the cache shows a time before what is noted here", CACHE_LAG),
        Why::NotOurs => Step::rest("it is not this cluster's, and nothing of it is here"),
        Why::Stopping => {
            let there = scene.running().map(|(kind, object)| format!("{kind} {}", name(&object)));
            let shown = report::listed(&there.collect::<Vec<_>>());
            let found = Finding::fails(STOPPED, "Stopping", format!("told to stop: {shown}"));
            report::saying(
                scene,
                found,
                wait("something was told to stop and has not yet", LOOK_AGAIN),
            )
        }
        Why::MayStillWrite => {
            let shown = report::listed(&scene.stirring().unwrap_or_default());
            let message = format!("may still write on {cluster}: {shown}");
            let found = Finding::fails(STOPPED, "MayStillWrite", message.clone());
            report::saying(scene, found, wait(&message, LOOK_AGAIN))
        }
        Why::Copying => images::wait_for(scene),
        Why::Filling => tell_filling(scene),
        Why::CacheBehind => wait("the hub says something else than the cache", CACHE_LAG),
        Why::Forced => {
            let message = format!("somebody asked to take epoch {} by force", scene.at().epoch);
            let found = Finding::fails(RUNNING, "ForceRelease", message.clone());
            report::saying(scene, found, Step::rest(message))
        }
        Why::Cleaning => Step::rest("what is left here is going"),
        Why::Keeping => wait("what is left here is kept for now", scene.until_settled()),
        Why::Running => running(scene),
    }
}

/// Data is on its way: how far it has come is told now and then, and what is in its way at once.
fn tell_filling(scene: &Scene<'_>) -> Step<Locks> {
    // Whoever mends the Secret of a repository at the hub mends it here.
    let secrets = scene.claims.iter().filter_map(|claim| claim.origin()?.secret());
    for secret in secrets {
        if let Ok(Some(step)) = repository::bring_secret(scene, secret) {
            return step;
        }
    }
    let filling = |claim: &&ClaimSeen| claim.volume(scene.at()) == Ok(Volume::Filling);
    let mut filling = scene.claims.iter().filter(filling);
    if let Some(step) = filling.find_map(|claim| filling::bring_again(scene, claim)) {
        return step;
    }
    let found = report::filling(scene);
    let because = found.message.clone();
    let waits = Step::Wait { because, at_most: TELL_AGAIN };
    let progress = report::progress(scene).unwrap_or(waits);
    report::saying(scene, found, progress)
}

/// Everything is as it should be; what is true here goes up.
fn running(scene: &Scene<'_>) -> Step<Locks> {
    if let Some(step) = report::say(scene, &report::running(scene), "it runs here") {
        return step;
    }
    if let Some(write) = objects::status::next(scene) {
        return Step::write(write, "its status here has changed");
    }
    match leftover::outlived(scene) {
        Some(step) => step,
        None => Step::rest("it runs here as the hub says"),
    }
}
