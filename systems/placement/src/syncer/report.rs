//! What the syncer tells the hub in the status of a grant: each is one write over the version that
//! was seen.

use super::Locks;
use super::claims::{ClaimSeen, Obstacle, identity, noted_epoch};
use super::decide::{Here, Running, Volume};
use super::marks::{name, uid};
use super::observe::Scene;
use crate::kinds::CLAIM;
use crate::record::GrantRecord;
use interlock_api::placement::condition::{DATA_SYNCED, DIVERGED, FILLED, RUNNING, STOPPED};
use interlock_api::placement::{Claim, CopyState, DataCopy, Fill, Image, Phase, Pin};
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::{Address, Event, Importance, Name, Place, Read, Step, Write};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

/// One write to the grant's status: some fields, and some conditions.
fn write(scene: &Scene<'_>, fields: Value, findings: &[Finding]) -> Option<Write> {
    let grant = scene.grant.as_ref()?;
    let mut status = fields;
    if !findings.is_empty() {
        status["conditions"] = json!(grant.conditions_with(findings, scene.view.now()));
    }
    Some(grant.write_status(status))
}

fn step(write: Option<Write>, because: &str) -> Step<Locks> {
    match write {
        Some(write) => Step::write(write, because),
        None => Step::rest("the grant is not in the cache"),
    }
}

/// Says something about the grant, if it does not say so already.
pub(super) fn say(scene: &Scene<'_>, findings: &[Finding], because: &str) -> Option<Step<Locks>> {
    let grant = scene.grant.as_ref().filter(|_| is_ours_to_say(scene))?;
    let is_new = |found: &&Finding| !found.is_in(&grant.status.conditions);
    let new: Vec<Finding> = findings.iter().filter(is_new).cloned().collect();
    if new.is_empty() {
        return None;
    }
    write(scene, json!({}), &new).map(|write| Step::write(write, because))
}

/// Says at the hub what is waited for, if it does not stand there yet; else the step.
pub(super) fn saying(scene: &Scene<'_>, found: Finding, otherwise: Step<Locks>) -> Step<Locks> {
    say(scene, &[found], "people should know what it waits for").unwrap_or(otherwise)
}

/// Only the owner speaks for a grant.
fn is_ours_to_say(scene: &Scene<'_>) -> bool {
    scene.is_mine(&[Phase::Granted, Phase::Revoking])
}

/// What the owner of the namespace is told.
pub(super) fn event(scene: &Scene<'_>, reason: &'static str, note: String) -> Option<Event> {
    scene.grant.as_ref().map(|grant| grant.tells(Importance::Normal, reason, note))
}

/// A step with an event, if there is anybody to tell.
pub(super) fn telling(step: Step<Locks>, event: Option<Event>) -> Step<Locks> {
    match event {
        Some(event) => step.telling(event),
        None => step,
    }
}

/// Every claim that anybody needs is filled here.
pub(super) fn filled(scene: &Scene<'_>) -> Step<Locks> {
    let Some(grant) = &scene.grant else { return step(None, "") };
    let (at, cluster) = (scene.at(), &scene.syncer.cluster);
    let is_filled = |listed: &Claim| {
        let seen = scene.claims.iter().find(|claim| claim.listed.uid == listed.uid);
        seen.is_some_and(|claim| claim.volume(at) == Ok(Volume::Filled))
    };
    let mut claims = grant.status.claims.clone();
    for claim in claims.iter_mut().filter(|claim| is_filled(claim)) {
        claim.fill = Fill::Filled;
        claim.progress = None;
    }
    let message = format!("every claim is filled on {cluster}");
    let mut findings = vec![Finding::holds(FILLED, "Filled", message.clone())];
    if !is_permitted(scene) {
        let message = format!("epoch {} starts on {cluster}", at.epoch);
        findings.push(Finding::fails(RUNNING, "Starting", message));
    }
    let write = write(scene, json!({"claims": claims}), &findings);
    let step = step(write, "every volume is here, and has what its pin says");
    telling(step, event(scene, "Filled", format!("{message}; its workloads start now")))
}

fn is_permitted(scene: &Scene<'_>) -> bool {
    let epoch = scene.at().epoch;
    matches!(scene.notes, Here::Noted(notes) if notes.running == Running::Permitted(epoch))
}

/// Stopped, and here is what the next owner starts from: the write that lets another cluster begin.
pub(super) fn acknowledge(scene: &Scene<'_>, is_deletion: bool) -> Step<Locks> {
    let Some(grant) = &scene.grant else { return step(None, "") };
    if !is_deletion {
        if let Some(step) = look_at_gone_claims(scene) {
            return step;
        }
        if let Some(write) = super::objects::status::next_leaving(scene) {
            return Step::write(write, "its pod has stopped, and must not be said to run");
        }
    }
    let cluster = &scene.syncer.cluster;
    let released = with_own_copy(scene, grant, (CopyState::Live, CopyState::Superseded));
    let mut fields = json!({"copies": released});
    if !is_deletion {
        let is_gone = |claim: &&Claim| {
            !scene.gone_claims.iter().any(|gone| gone.listed.uid == claim.uid && was_filled(gone))
        };
        let claims: Vec<&Claim> = grant.status.claims.iter().filter(is_gone).collect();
        let Some(pins) = pins(scene, &claims) else {
            return Step::rest("the last image of a claim cannot be read; the cache will show it");
        };
        fields["claims"] = json!(with_last_images(grant, &claims, &pins));
        fields["pins"] = json!(pins);
    }
    let stopped = format!("nothing of epoch {} can run on {cluster} any more", grant.status.epoch);
    let findings = [
        Finding::fails(RUNNING, "Released", format!("stopped on {cluster}")),
        Finding::holds(STOPPED, "Closed", stopped),
        Finding::holds(DATA_SYNCED, "Pinned", "every claim has what its next owner starts from"),
    ];
    let note = format!("stopped on {cluster} and released; it starts again where it goes");
    let now = scene.view.now();
    fields["conditions"] = json!(grant.conditions_with(&findings, now));
    let write = grant.write_phase((Phase::Released, now), fields);
    let step = step(Some(write), "closed, and every claim has its pin");
    telling(step, event(scene, "Released", note))
}

fn was_filled(claim: &ClaimSeen) -> bool {
    claim.listed.fill == Fill::Filled
}

/// A claim that was filled and seems gone is left out only if the hub itself says that it is gone:
/// two caches that lag would otherwise lose its data.
fn look_at_gone_claims(scene: &Scene<'_>) -> Option<Step<Locks>> {
    let namespace = &scene.grant.as_ref()?.spec.namespace.name;
    let gone = scene.gone_claims.iter().filter(|claim| was_filled(claim));
    let asked: Vec<(Address, &str)> = gone
        .map(|claim| {
            let name = Name::within(namespace, &claim.listed.name);
            (Address::new(Place::HUB, &CLAIM, name), claim.listed.uid.as_str())
        })
        .collect();
    if asked.iter().any(|(address, _)| !scene.looks.objects.contains_key(address)) {
        let reads = asked.into_iter().map(|(address, _)| Read::Object(address)).collect();
        let because = "a claim is left out only when it is seen to be gone".to_owned();
        return Some(Step::Look { reads, because });
    }
    let is_there = asked.iter().any(|(address, claim)| {
        let found = scene.looks.objects.get(address).and_then(Option::as_ref);
        found.is_some_and(|found| uid(found) == *claim)
    });
    is_there.then(|| Step::rest("a claim is still at the hub; the cache will show it"))
}

/// A pin for each claim: its last image, the volume that stays here, or, if nothing can have written
/// to it, what it came with. None: one that was written has neither, and must not be handed over.
fn pins(scene: &Scene<'_>, claims: &[&Claim]) -> Option<Vec<Pin>> {
    let at = scene.at();
    let (cluster, now) = (&scene.syncer.cluster, scene.view.now());
    let pin = |listed: &&Claim, epoch, image| Pin {
        claim: listed.name.clone(),
        claim_uid: listed.uid.clone(),
        epoch,
        taken: Time(now),
        files: 0,
        bytes: 0,
        digest: String::new(),
        image,
    };
    let target = scene.grant.as_ref().and_then(|grant| grant.spec.target.as_ref());
    let stays = target.is_some_and(|target| target.is_same(cluster));
    let of = |listed: &&Claim| {
        let is_it = |claim: &&ClaimSeen| claim.listed.uid == listed.uid;
        let there = scene.claims.iter().find(is_it);
        let seen = there.or_else(|| scene.gone_claims.iter().find(is_it));
        let is_left_in_place = there.is_some_and(|claim| claim.is_left_in_place(at));
        if let Some(claim) = seen.filter(|claim| was_filled(claim) || is_left_in_place) {
            // What was imaged and then wished for here again is here, and is not copied.
            let here = claim.volume_here(at).filter(|here| stays && noted_epoch(here) == at.epoch);
            if let Some(volume) = claim.last(at).or(here.map(|here| identity(here))) {
                let (cluster, volume) = (cluster.clone(), volume.to_owned());
                return Some(pin(listed, at.epoch, Image::InPlace { cluster, volume }));
            }
            return claim.image_pin(at, now);
        }
        let incoming = seen.and_then(|claim| claim.pin.clone());
        Some(incoming.unwrap_or_else(|| pin(listed, 0, Image::Fresh {})))
    };
    claims.iter().map(of).collect()
}

/// The claims with the image that each falls back to, should its owner be declared gone: a volume that
/// stays in place is nowhere else, so the image that it once came from is kept in mind.
fn with_last_images(grant: &GrantRecord, claims: &[&Claim], pins: &[Pin]) -> Vec<Claim> {
    let with = |claim: &&Claim| {
        let mut claim = Claim { progress: None, ..(*claim).clone() };
        let of_claim = |pins: &[Pin]| pins.iter().find(|pin| pin.claim_uid == claim.uid).cloned();
        let is_in_place = |pin: &Pin| matches!(pin.image, Image::InPlace { .. });
        if of_claim(pins).is_some_and(|pin| is_in_place(&pin)) {
            let came_with = of_claim(&grant.status.pins);
            let is_image = |pin: &Pin| {
                matches!(pin.image, Image::VolumeSnapshot { .. } | Image::Restic { .. })
            };
            claim.last_image = came_with.filter(is_image).or(claim.last_image);
        }
        claim
    };
    claims.iter().map(with).collect()
}

/// The copies with the state of ours changed, if it was the first of these. One cluster may have
/// two: what it wrote after it was declared gone stays beside what it was granted since.
fn with_own_copy(
    scene: &Scene<'_>,
    grant: &GrantRecord,
    (was, state): (CopyState, CopyState),
) -> Vec<DataCopy> {
    let cluster = &scene.syncer.cluster;
    let mut copies = grant.status.copies.clone();
    let is_meant = |copy: &DataCopy| copy.cluster.is_same(cluster) && copy.state == was;
    match copies.iter_mut().find(|copy| is_meant(copy)) {
        Some(copy) => copy.state = state,
        None => {
            let (cluster, epoch) = (cluster.clone(), grant.status.epoch);
            copies.push(DataCopy { cluster, epoch, state });
        }
    }
    copies
}

/// What became of the data here after we were declared gone.
pub(super) fn settle_copy(scene: &Scene<'_>, state: CopyState) -> Step<Locks> {
    let Some(grant) = &scene.grant else { return step(None, "") };
    if let Some(step) = look_whether_it_ran(scene).filter(|_| state != CopyState::Diverged) {
        return step;
    }
    let cluster = &scene.syncer.cluster;
    let mut findings = Vec::new();
    if state == CopyState::Diverged {
        let epoch = match scene.notes {
            Here::Noted(notes) => notes.ran,
            Here::Missing | Here::Foreign => 0,
        };
        let message = format!(
            "cluster {cluster} ran epoch {epoch} and may have written what no image has; its \
             volumes are kept until a person gives them up"
        );
        findings.push(Finding::holds(DIVERGED, "MayHaveWritten", message));
    }
    let fields = json!({"copies": with_own_copy(scene, grant, (CopyState::Unclosed, state))});
    step(write(scene, fields, &findings), "stopped for certain, after it was declared gone")
}

/// That nothing ever ran here is believed of the server only. A cache may be from before the namespace
/// came, and what was written in it would pass for what somebody else has.
fn look_whether_it_ran(scene: &Scene<'_>) -> Option<Step<Locks>> {
    match scene.are_notes_current() {
        Some(true) => None,
        Some(false) => Some(Step::rest("the cache will show what is here")),
        None => Some(Step::Look {
            reads: vec![Read::Object(scene.truth_addresses().0)],
            because: "only what never ran has written nothing, and a cache may be behind"
                .to_owned(),
        }),
    }
}

/// There is no copy here any more.
pub(super) fn forget_copy(scene: &Scene<'_>) -> Step<Locks> {
    let Some(grant) = &scene.grant else { return step(None, "") };
    let copies = grant.status.copies.iter();
    let others = copies.filter(|copy| !copy.cluster.is_same(&scene.syncer.cluster));
    let others: Vec<&DataCopy> = others.collect();
    step(write(scene, json!({"copies": others}), &[]), "nothing of it is left here")
}

/// It runs, and this is what could not be brought down.
pub(super) fn running(scene: &Scene<'_>) -> Vec<Finding> {
    let Some(grant) = &scene.grant else { return Vec::new() };
    let cluster = &scene.syncer.cluster;
    let runs = format!("epoch {} runs on {cluster}", grant.status.epoch);
    let held_back = &scene.survey().held_back;
    let running = match held_back.is_empty() {
        true => Finding::holds(RUNNING, "Running", runs),
        false => {
            let shown = listed(held_back);
            Finding::holds(RUNNING, "HeldBack", format!("{runs}; not brought down: {shown}"))
        }
    };
    let mut findings = vec![running];
    if conditions::is_true(&grant.status.conditions, STOPPED) {
        findings.push(Finding::fails(STOPPED, "Running", format!("it runs on {cluster}")));
    }
    findings
}

/// The first few of many, so that a message stays readable.
pub(super) fn listed(all: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Why claims are not filled.
pub(super) fn filling(scene: &Scene<'_>) -> Finding {
    let at = scene.at();
    let obstacle = scene.claims.iter().find_map(|claim| match claim.volume(at) {
        Ok(Volume::Filling) => claim.delay(at),
        Ok(Volume::Filled | Volume::Missing) => None,
        Err(obstacle) => Some(obstacle),
    });
    let Obstacle { reason, message } = obstacle.unwrap_or_else(|| Obstacle {
        reason: "Filling",
        message: "data is on its way".to_owned(),
    });
    Finding::fails(FILLED, reason, message)
}

/// How far the data has come, if that is news.
pub(super) fn progress(scene: &Scene<'_>) -> Option<Step<Locks>> {
    let grant = scene.grant.as_ref().filter(|_| is_ours_to_say(scene))?;
    let (at, now) = (scene.at(), scene.view.now());
    let mut claims = grant.status.claims.clone();
    let mut is_news = false;
    for claim in &mut claims {
        let seen = scene.claims.iter().find(|seen| seen.listed.uid == claim.uid);
        let filling = seen.filter(|seen| seen.volume(at) == Ok(Volume::Filling));
        if let Some(progress) = filling.and_then(|seen| seen.progress(at, now)) {
            claim.fill = Fill::Filling;
            claim.progress = Some(progress);
            is_news = true;
        }
    }
    let write = write(scene, json!({"claims": claims}), &[]).filter(|_| is_news)?;
    Some(Step::write(write, "more of the data has arrived"))
}

/// A volume here, for people.
pub(super) fn describe(claim: &interlock_kernel::Object) -> String {
    format!("volume {} of claim {}", identity(claim), name(claim))
}
