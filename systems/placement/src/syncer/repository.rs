//! Moves through a restic repository: the Secret that opens it, and what earlier moves left in it.
//!
//! The Secret is an object of the namespace like others, but it is needed before them: whoever takes
//! or brings an image opens the repository with it, and workloads come down only after that.

use super::Locks;
use super::claims::{At, ClaimSeen, Obstacle};
use super::copying::{asked, confirmed, short};
use super::marks::{ANNOTATION_FROM, LABEL_GRANT, is_going, is_ours, name};
use super::objects::{self, next};
use super::observe::Scene;
use crate::kinds::{SECRET, SOURCE};
use interlock_api::names::{ANNOTATION_EPOCH, PROVIDER_RESTIC};
use interlock_api::placement::{Image, Pin, Transport};
use interlock_kernel::{Address, Name, Object, Part, Place, Step, Write};
use kube_core::DynamicObject;
use serde_json::{Value, json};

/// The Secret of the repository that data leaves through, if it leaves through one.
pub(super) fn leaves_through<'a>(scene: &'a Scene<'_>) -> Option<&'a str> {
    let policy = &scene.grant.as_ref()?.spec.volumes;
    policy.repository.as_deref().filter(|_| policy.transport == Transport::Restic)
}

/// Whether a source or destination works on a repository.
pub(super) fn is_through(object: &DynamicObject) -> bool {
    object.data["spec"]["external"]["provider"] == PROVIDER_RESTIC
}

/// The Secret that opens the repository of a source or destination.
pub(super) fn secret_of(object: &DynamicObject) -> Option<&str> {
    object.data["spec"]["external"]["parameters"]["repository"].as_str()
}

/// What has to be done before the repository can be opened here; None: nothing.
pub(super) fn bring_secret(
    scene: &Scene<'_>,
    secret: &str,
) -> Result<Option<Step<Locks>>, Obstacle> {
    let incomplete = |message| Obstacle { reason: "SecretIncomplete", message };
    let mut at_hub = scene.at_hub(&SECRET).into_iter();
    let Some(at_hub) = at_hub.find(|found| name(found) == secret && !is_going(found)) else {
        let namespace = scene.grant.as_ref().map(|grant| grant.spec.namespace.name.as_str());
        let namespace = namespace.unwrap_or_default();
        return Err(incomplete(format!(
            "there is no Secret {secret} in namespace {namespace}, which its placement names as the \
             repository. next: kubectl create secret generic {secret} -n {namespace} \
             --from-literal=RESTIC_REPOSITORY=... --from-literal=RESTIC_PASSWORD=..."
        )));
    };
    let chore = next::bring(scene, &SECRET, &at_hub)
        .map_err(|why| incomplete(format!("Secret {secret} cannot be brought here: {why}")))?;
    Ok(chore.map(|chore| objects::act(scene, &chore)))
}

/// The trigger that asks to remove what earlier epochs left in the repository.
fn tidy_tag(at: At<'_>) -> String {
    format!("tidy-{}", at.epoch)
}

fn tidy_name(claim: &str) -> String {
    format!("tidy-{}", short(claim))
}

/// The next write that has the repository rid of what earlier moves left in it; None: it was asked
/// for. A snapshot of an earlier epoch that no pin of this one refers to is never needed again: pins
/// of later epochs are these, or snapshots that are taken in this epoch or after it.
pub(super) fn tidy(scene: &Scene<'_>) -> Option<Step<Locks>> {
    scene.claims.iter().find_map(|claim| tidy_claim(scene, claim))
}

fn tidy_claim(scene: &Scene<'_>, claim: &ClaimSeen) -> Option<Step<Locks>> {
    let at = scene.at();
    let Some(Pin { image: Image::Restic { secret, .. }, .. }) = &claim.pin else { return None };
    let pins = claim.pin.iter().chain(&claim.listed.last_image);
    let pinned: Vec<&str> = pins
        .filter_map(|pin| match &pin.image {
            Image::Restic { snapshot_id, .. } => Some(snapshot_id.as_str()),
            Image::VolumeSnapshot { .. } | Image::InPlace { .. } | Image::Fresh {} => None,
        })
        .collect();
    let wanted = json!({
        "metadata": {
            "labels": {LABEL_GRANT: at.grant},
            "annotations": {
                ANNOTATION_FROM: format!("{}/tidy", claim.listed.uid),
                ANNOTATION_EPOCH: at.epoch.to_string(),
            },
        },
        "spec": {
            "sourcePVC": claim.listed.name,
            "trigger": {"manual": tidy_tag(at)},
            "external": {"provider": PROVIDER_RESTIC, "parameters": {
                "repository": secret,
                "tidy": "true",
                "claim": claim.listed.uid,
                "epoch": at.epoch.to_string(),
                "pinned": pinned.join(","),
            }},
        },
    });
    let because = "it runs for long enough: what earlier moves saved is not needed any more";
    let address = Address::new(
        Place::CLUSTER,
        &SOURCE,
        Name::within(scene.name, &tidy_name(&claim.listed.name)),
    );
    let write = match scene.view.get(Place::CLUSTER, &SOURCE, &address.name) {
        None => Write::Create { address, object: wanted },
        Some(there) if is_asked(&there, at) => return None,
        Some(there) => Write::patch(Place::CLUSTER, &SOURCE, &there, (Part::Main, wanted)),
    };
    Some(Step::write(write, because))
}

/// Whether nothing is to be asked of it: it was asked, it is at work for an earlier epoch, it goes,
/// or it is somebody else's.
fn is_asked(there: &Object, at: At<'_>) -> bool {
    let is_at_work = asked(there) != confirmed(there);
    !is_ours(there, at.grant)
        || is_going(there)
        || is_at_work
        || asked(there) == Some(&tidy_tag(at))
}

/// The parameters by which the last image of a claim goes into a repository. The volume is closed, so
/// it is read as it is.
pub(super) fn parameters(claim: &ClaimSeen, secret: &str, at: At<'_>) -> Value {
    json!({
        "copyMethod": "Direct",
        "repository": secret,
        "claim": claim.listed.uid,
        "epoch": at.epoch.to_string(),
    })
}
