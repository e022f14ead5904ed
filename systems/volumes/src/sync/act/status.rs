//! How a sync ended, in the status: what it brought, or why it was given up.

use super::on;
use crate::kinds::{CLAIM, SNAPSHOT_KIND};
use crate::objects::uid_of;
use crate::outside::{Failure, Mover, Outcome, Sync};
use crate::sync::decide::{Finish, Hopeless, Product};
use crate::sync::intent::Intent;
use crate::sync::observe::Scene;
use crate::sync::repository::Unhealthy;
use crate::sync::{Direction, destination, snapshots, source, words};
use interlock_kernel::{Object, Step};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

pub(super) fn finish(scene: &Scene, intent: &Intent, how: Finish) -> Step<Mover> {
    let task = &scene.task;
    let outcome = match &scene.mover {
        Some(Sync::Done(outcome)) => (**outcome).clone(),
        // A mover that died since does not know it any more.
        _ => Outcome::default(),
    };
    let product = product(scene, intent, how.product, &outcome);
    let mut say = task.done(intent, &outcome, product).and(words::accept(scene));
    if how.tells_ignored {
        say = say.telling_ignored(scene);
    }
    if let Some(tidying) = how.tidying {
        let mut restic = json!({ "lastUnlocked": intent.unlock });
        if tidying.prunes {
            restic["lastPruned"] = json!(Time(task.now));
        }
        say.status.insert("restic".to_owned(), restic);
    }
    let latest = match how.product {
        Product::LatestSnapshot => json!({
            "apiGroup": SNAPSHOT_KIND.group, "kind": SNAPSHOT_KIND.kind, "name": intent.snapshot,
        }),
        Product::Volume => json!({"apiGroup": "", "kind": CLAIM.kind, "name": scene.claim_name}),
        Product::VolumeSnapshot | Product::Snapshot | Product::Nothing => return say.step(task),
    };
    say.status.insert("latestImage".to_owned(), latest);
    say.step(task)
}

/// The snapshot that a sync brought, if it did.
pub(super) fn product_snapshot(scene: &Scene, product: Product) -> Option<&Object> {
    match product {
        Product::VolumeSnapshot | Product::LatestSnapshot => scene.snapshot.as_ref(),
        Product::Snapshot | Product::Nothing | Product::Volume => None,
    }
}

/// What a sync brought, in `status.external`.
fn product(scene: &Scene, intent: &Intent, product: Product, outcome: &Outcome) -> Value {
    if product == Product::Nothing {
        return json!({});
    }
    // No mover has a part in the snapshot of a source.
    let none = Outcome::default();
    let outcome = if product == Product::VolumeSnapshot { &none } else { outcome };
    let snapshot = product_snapshot(scene, product);
    let content = snapshot.and_then(|snapshot| snapshots::content_of(snapshot));
    let content = content.unwrap_or_else(|| outcome.content.clone());
    // Of what not read into there is no digest. A source says of each snapshot what is in it.
    let is_known = |digest: &&String| product == Product::VolumeSnapshot || !digest.is_empty();
    let digest = Some(&content.digest).filter(is_known);
    json!({
        "snapshot": snapshot.map(|_| &intent.snapshot), "snapshotUID": snapshot.map(|snapshot| uid_of(snapshot)),
        "snapshotID": outcome.snapshot,
        "digest": digest,
        "files": content.files.to_string(), "bytes": content.bytes.to_string(),
    })
}

/// Why the mover failed.
pub(super) fn failure(scene: &Scene) -> Option<Failure> {
    match &scene.mover {
        Some(Sync::Failed(failure)) => Some(failure.clone()),
        Some(_) | None => None,
    }
}

pub(super) fn give_up(scene: &Scene, intent: &Intent, why: Hopeless) -> Step<Mover> {
    let task = &scene.task;
    let reported = |failure: &Failure| match scene.direction {
        Direction::Source => source::reported(scene, failure),
        Direction::Destination => destination::reported(scene, failure),
    };
    let failure = failure(scene).map(|failure| reported(&failure));
    let flaw = match (why, scene.direction) {
        (Hopeless::MoverFailed, _) => {
            failure.map(|failure| Unhealthy::new(failure.reason.word(), failure.message))
        }
        (Hopeless::RetriesExhausted, _) => failure.map(|failure| intent.exhausted(&failure)),
        (Hopeless::Empty, Direction::Source) => Some(source::empty(scene)),
        (Hopeless::Empty, Direction::Destination) => Some(destination::empty()),
        (Hopeless::UselessSnapshot, Direction::Source) => Some(source::useless(intent)),
        (Hopeless::UselessSnapshot, Direction::Destination) => Some(destination::useless(intent)),
        (Hopeless::Refused, _) => {
            scene.work.as_ref().err().map(|flaw| Unhealthy::new("NotSupported", flaw))
        }
        (Hopeless::NotHere, _) => Some(source::not_here(task)),
    };
    on(flaw.as_ref(), |flaw| {
        let mut say = match why {
            // It begins anew when the namespace is back.
            Hopeless::NotHere => {
                task.ended_badly(&Intent { basis: scene.basis.clone(), ..intent.clone() }, flaw)
            }
            _ => task.ended_badly(intent, flaw),
        };
        if why == Hopeless::Refused {
            say.findings.extend(task.refused(&flaw.message).findings);
        }
        say.step(task)
    })
}
