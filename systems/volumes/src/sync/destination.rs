//! What is a destination's own: what it asks for, what is seen of it, and why it cannot go on, in
//! words.

use super::decide::{Destination, Target as Bound};
use super::filed::DESTINATIONS_BY_CLAIM;
use super::intent::Intent;
use super::observe::Scene;
use super::origin::{self, Origin};
use super::repository::Unhealthy;
use super::snapshots::{self, SNAPSHOT_PREFIX};
use super::work::{Named, Target, Way, Work, given, is_ours, parameter, unread};
use super::{Here, Serves};
use crate::objects::{is_deleting, is_owned_by, name_of, namespace_of, uid_of};
use crate::outside::{Choice, Failure, Reason, Sync};
use interlock_api::names::PROVIDER_COPY;
use interlock_api::volumes::{
    CopyMethod, External, ReplicationDestinationRestic, ReplicationDestinationSpec, condition,
};
use interlock_kernel::{Object, Place, View};
use jiff::Timestamp;

/// What a destination asks for; None: it is not ours. The error names the fields that are not
/// supported.
pub(super) fn read(
    spec: &ReplicationDestinationSpec,
    serves: Serves,
) -> Option<Result<Work, String>> {
    is_ours(spec.external.as_ref(), serves).then(|| work(spec))
}

fn work(spec: &ReplicationDestinationSpec) -> Result<Work, String> {
    let movers = [
        (spec.rsync.is_some(), "rsync"),
        (spec.rsync_tls.is_some(), "rsyncTLS"),
        (spec.rclone.is_some(), "rclone"),
    ];
    let refused = given("spec", &movers);
    if !refused.is_empty() {
        let refused = refused.iter().map(|path| format!("{path} is not supported"));
        return Err(refused.collect::<Vec<_>>().join("; "));
    }
    match (&spec.restic, &spec.external) {
        (Some(_), Some(_)) => Err("spec.restic and spec.external: only one may be set".to_owned()),
        (Some(restic), None) => of_restic(restic),
        (None, Some(external)) => of_external(external),
        (None, None) => Err("spec.restic or spec.external is needed".to_owned()),
    }
}

/// The fields of a volume, typed or not.
struct Volume<'a> {
    path: &'a str,
    method: Option<CopyMethod>,
    given: Option<String>,
    capacity: Option<String>,
    access_modes: Vec<String>,
    class: Option<String>,
}

/// The volume that is written, and whether a snapshot of it is taken.
fn volume(volume: Volume<'_>) -> Result<(Target, bool), String> {
    let path = volume.path;
    let takes_snapshot = match volume.method {
        Some(CopyMethod::Snapshot) => true,
        Some(CopyMethod::Direct | CopyMethod::None) => false,
        Some(CopyMethod::Clone) => {
            return Err(format!("{path}.copyMethod Clone is not supported for destinations"));
        }
        None => return Err(format!("{path}.copyMethod is needed: one of Snapshot, Direct")),
    };
    if let Some(given) = volume.given.filter(|given| !given.is_empty()) {
        return Ok((Target::Given(given), takes_snapshot));
    }
    let capacity = volume.capacity.filter(|capacity| !capacity.is_empty());
    let Some(capacity) = capacity.filter(|_| !volume.access_modes.is_empty()) else {
        let either = format!("{path}.destinationPVC");
        let both = format!("{path}.capacity and {path}.accessModes");
        return Err(format!("{either}, or both {both}, are needed"));
    };
    let (access_modes, class) = (volume.access_modes, volume.class);
    Ok((Target::Own { capacity, access_modes, class }, takes_snapshot))
}

fn of_restic(restic: &ReplicationDestinationRestic) -> Result<Work, String> {
    if !restic.mover_volumes.is_empty() {
        return Err("spec.restic.moverVolumes is not supported".to_owned());
    }
    let previous = u32::try_from(restic.previous.unwrap_or_default())
        .map_err(|_| "spec.restic.previous must not be negative".to_owned())?;
    let (target, takes_snapshot) = volume(Volume {
        path: "spec.restic",
        method: restic.copy_method,
        given: restic.destination_pvc.clone(),
        capacity: restic.capacity.as_ref().map(ToString::to_string),
        access_modes: restic.access_modes.clone(),
        class: restic.storage_class_name.clone(),
    })?;
    let without = [
        (restic.cache_capacity.is_some(), "cacheCapacity"),
        (restic.cache_storage_class_name.is_some(), "cacheStorageClassName"),
        (!restic.cache_access_modes.is_empty(), "cacheAccessModes"),
        (restic.cleanup_cache_pvc, "cleanupCachePVC"),
        (restic.mover_security_context.is_some(), "moverSecurityContext"),
        (restic.mover_service_account.is_some(), "moverServiceAccount"),
        (!restic.mover_pod_labels.is_empty(), "moverPodLabels"),
        (restic.mover_resources.is_some(), "moverResources"),
        (restic.mover_affinity.is_some(), "moverAffinity"),
    ];
    Ok(Work {
        target,
        way: Way::Restore {
            choice: Choice::Newest {
                as_of: restic.restore_as_of.as_ref().map(|time| time.0),
                previous,
            },
            deletes_other_files: restic.enable_file_deletion,
            digest: None,
        },
        repository: Some(Named {
            secret: restic.repository.clone(),
            authority: restic.custom_ca.clone(),
        }),
        takes_snapshot,
        snapshot_class: restic.volume_snapshot_class_name.clone(),
        // A claim that is the product is not deleted, whatever is asked for.
        is_temporary: restic.cleanup_temp_pvc && takes_snapshot,
        ignored: given("spec.restic", &without),
    })
}

/// The parameters that both providers read.
const READ: [&str; 7] = [
    "copyMethod",
    "destinationPVC",
    "capacity",
    "accessModes",
    "storageClassName",
    "volumeSnapshotClassName",
    "cleanupTempPVC",
];

/// The parameters of a copy, besides.
const COPIED: [&str; 5] = ["source", "cluster", "snapshot", "digest", "snapshotUID"];

/// The parameters of a restore, besides.
const RESTORED: [&str; 6] =
    ["repository", "snapshotID", "digest", "restoreAsOf", "previous", "enableFileDeletion"];

fn of_external(external: &External) -> Result<Work, String> {
    const PATH: &str = "spec.external.parameters";
    let given = |key: &str| parameter(external, key);
    let method = match given("copyMethod").as_deref() {
        None | Some("Snapshot") => CopyMethod::Snapshot,
        Some("Direct" | "None") => CopyMethod::Direct,
        Some("Clone") => CopyMethod::Clone,
        Some(other) => return Err(format!("{PATH}.copyMethod {other:?} is not supported")),
    };
    let modes = given("accessModes").unwrap_or_default();
    let modes = modes.split(',').map(str::trim).filter(|mode| !mode.is_empty());
    let (target, takes_snapshot) = volume(Volume {
        path: PATH,
        method: Some(method),
        given: given("destinationPVC"),
        capacity: given("capacity"),
        access_modes: modes.map(str::to_owned).collect(),
        class: given("storageClassName"),
    })?;
    let (way, repository, own) = match external.provider == PROVIDER_COPY {
        true => (copy(&given)?, None, &COPIED[..]),
        false => {
            let secret = given("repository").unwrap_or_default();
            (restore(&given)?, Some(Named { secret, authority: None }), &RESTORED[..])
        }
    };
    Ok(Work {
        target,
        way,
        repository,
        takes_snapshot,
        snapshot_class: given("volumeSnapshotClassName"),
        is_temporary: takes_snapshot && given("cleanupTempPVC").as_deref() == Some("true"),
        ignored: unread(external, &[&READ[..], own].concat()),
    })
}

fn copy(given: &dyn Fn(&str) -> Option<String>) -> Result<Way, String> {
    if let Some(source) = given("source") {
        let others = ["cluster", "snapshot", "snapshotUID", "digest"];
        if let Some(other) = others.iter().find(|key| given(key).is_some()) {
            return Err(format!(
                "spec.external.parameters.source and .{other}: only one may be set"
            ));
        }
        return Origin::read(&source).map(Way::CopyOf);
    }
    let snapshot = given("snapshot")
        .or_else(|| given("snapshotUID").map(|uid| format!("{SNAPSHOT_PREFIX}{uid}")));
    let (Some(cluster), Some(snapshot)) = (given("cluster"), snapshot) else {
        return Err(
            "spec.external.parameters.source is needed, or both .cluster and .snapshot: the uid \
             of the cluster that has the snapshot, and its handle there"
                .to_owned(),
        );
    };
    Ok(Way::Copy { cluster, snapshot, digest: given("digest") })
}

fn restore(given: &dyn Fn(&str) -> Option<String>) -> Result<Way, String> {
    let choice = match given("snapshotID") {
        Some(id) => Choice::Id(id),
        None => Choice::Newest {
            as_of: given("restoreAsOf").map(|text| moment(&text)).transpose()?,
            previous: match given("previous") {
                Some(text) => text.parse().map_err(|_| {
                    format!("spec.external.parameters.previous {text:?} is not a number")
                })?,
                None => 0,
            },
        },
    };
    Ok(Way::Restore {
        choice,
        deletes_other_files: given("enableFileDeletion").as_deref() == Some("true"),
        digest: given("digest"),
    })
}

fn moment(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| format!("spec.external.parameters.restoreAsOf {text:?} is not a time"))
}

/// What is wrong with a destination, as far as others have a part in it.
pub(super) fn flaw(scene: &Scene, here: &Here, view: &dyn View) -> Option<String> {
    foreign(scene, here, view).or_else(|| other_writer(scene, view))
}

/// Why what it names is not its own to have.
fn foreign(scene: &Scene, here: &Here, view: &dyn View) -> Option<String> {
    let own = scene.task.namespace();
    match &scene.work.as_ref().ok()?.way {
        Way::CopyOf(origin) => origin.refused(own, here),
        Way::Copy { snapshot, .. } => origin::is_foreign(snapshot, own, view).then(|| {
            format!(
                "spec.external.parameters: snapshot {snapshot} belongs to another namespace than \
                 {own}"
            )
        }),
        Way::Restore { .. } | Way::Snapshot | Way::Backup { .. } | Way::Tidy(_) => None,
    }
}

/// An earlier destination that writes the same claim. A time of creation has whole seconds only:
/// within one second, a destination that was accepted already stays the writer.
fn other_writer(scene: &Scene, view: &dyn View) -> Option<String> {
    let name = &scene.claim_name;
    let claim = format!("{}/{name}", scene.task.namespace());
    let age = |object: &Object| {
        let created = object.metadata.creation_timestamp.as_ref().map(|created| created.0);
        (created, !is_accepted(object), uid_of(object).to_owned())
    };
    let mine = age(&scene.task.object);
    let writers = view.find(Place::CLUSTER, &DESTINATIONS_BY_CLAIM, &claim);
    let earlier = writers.iter().find(|other| {
        uid_of(other) != scene.task.uid()
            && !is_deleting(other)
            && writes(other, &claim)
            && age(other) < mine
    })?;
    let other = name_of(earlier);
    Some(format!("destinationPVC: claim {name} is written by ReplicationDestination {other}"))
}

fn is_accepted(destination: &Object) -> bool {
    let conditions = destination.data["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == condition::ACCEPTED && condition["status"] == "True")
}

/// Whether a destination writes a claim, as opposed to one that only has a name for it.
fn writes(destination: &Object, claim: &str) -> bool {
    let spec = &destination.data["spec"];
    let given =
        [&spec["restic"]["destinationPVC"], &spec["external"]["parameters"]["destinationPVC"]];
    let namespace = namespace_of(destination);
    let mut named = given.iter().filter_map(|name| name.as_str()).peekable();
    if named.peek().is_none() {
        return format!("{namespace}/volsync-{}-dest", name_of(destination)) == claim;
    }
    named.any(|name| format!("{namespace}/{name}") == claim)
}

/// What a decision sees of a destination only.
pub(super) fn side(scene: &Scene) -> Destination {
    let (task, work) = (&scene.task, scene.work.as_ref().ok());
    let is_own = |claim: &Object| is_owned_by(claim, task.uid()) && !is_deleting(claim);
    let snapshot = scene.snapshot.as_ref().filter(|_| work.is_some_and(|work| work.takes_snapshot));
    Destination {
        target: match &scene.claim {
            None => Bound::Missing,
            Some(claim) if is_deleting(claim) || snapshots::volume_of(claim).is_none() => {
                Bound::NotBound
            }
            Some(_) => Bound::Bound,
        },
        has_temporary_claim: work.is_some_and(|work| work.is_temporary)
            && scene.claim.as_ref().is_some_and(is_own),
        is_outcome_usable: match &scene.mover {
            Some(Sync::Done(outcome)) => !outcome.content.is_empty() || task.allows_empty(),
            Some(_) | None => false,
        },
        is_published: scene.latest_uid() == snapshot.map(|snapshot| uid_of(snapshot)),
    }
}

/// There is nothing in what was brought: most likely by accident.
pub(super) fn empty() -> Unhealthy {
    let what = "the restored snapshot is empty and is not published; if that is intended, \
        annotate the destination: interlock.dev/allow-empty=true";
    Unhealthy::new("SnapshotEmpty", what)
}

/// What a failure is called: the mover knows folders, and people know claims.
pub(super) fn reported(scene: &Scene, failure: &Failure) -> Failure {
    if failure.reason != Reason::SizeMismatch {
        return failure.clone();
    }
    let (claim, said) = (&scene.claim_name, &failure.message);
    let advice = match scene.work.as_ref().map(|work| &work.target) {
        Ok(Target::Given(_)) => "name a larger claim in destinationPVC",
        Ok(Target::Own { .. }) | Err(_) => "delete the claim, and set a larger capacity",
    };
    let message = format!("claim {claim} is too small: {said}; {advice}");
    Failure { reason: failure.reason, message }
}

/// The snapshot is not the one that was asked for.
pub(super) fn useless(intent: &Intent) -> Unhealthy {
    let what = format!(
        "snapshot {} of the restored data was deleted or is not of this sync; set a new trigger \
         to restore again",
        intent.snapshot
    );
    Unhealthy::new("SnapshotLost", what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read_own(value: Value) -> Result<Work, String> {
        let spec = serde_json::from_value(value).expect("a spec");
        read(&spec, Serves::Own).expect("it is ours")
    }

    #[test]
    fn what_is_not_supported_is_named_by_its_path() {
        for (spec, path) in [
            (json!({"rsync": {}, "rclone": {}}), "spec.rsync is not supported; spec.rclone"),
            (json!({"rsyncTLS": {}}), "spec.rsyncTLS"),
            (json!({}), "spec.restic or spec.external"),
            (json!({"restic": {"destinationPVC": "d"}}), "spec.restic.copyMethod"),
            (json!({"restic": {"destinationPVC": "d", "copyMethod": "Clone"}}), "Clone"),
            (json!({"restic": {"copyMethod": "Snapshot", "capacity": "1Gi"}}), "accessModes"),
            (json!({"restic": {"copyMethod": "Direct", "moverVolumes": [{}]}}), "moverVolumes"),
            (
                json!({"restic": {"copyMethod": "Direct", "destinationPVC": "d", "previous": -1}}),
                "spec.restic.previous",
            ),
            (
                json!({"external": {"provider": "interlock.dev/copy",
                    "parameters": {"destinationPVC": "d", "snapshot": "i"}}}),
                "both .cluster and .snapshot",
            ),
            (
                json!({"external": {"provider": "interlock.dev/copy", "parameters":
                    {"destinationPVC": "d", "source": "shop/data", "snapshot": "i"}}}),
                "source and .snapshot",
            ),
            (
                json!({"external": {"provider": "interlock.dev/copy",
                    "parameters": {"destinationPVC": "d", "source": "data"}}}),
                "<namespace>/<name>[@cluster]",
            ),
            (
                json!({"external": {"provider": "interlock.dev/restic",
                    "parameters": {"destinationPVC": "d", "restoreAsOf": "soon"}}}),
                "restoreAsOf",
            ),
        ] {
            let flaw = read_own(spec).expect_err("it is refused");
            assert!(flaw.contains(path), "{flaw:?} names {path:?}");
        }
    }

    #[test]
    fn a_copy_says_where_its_snapshot_is() {
        let parameters = json!({"cluster": "c-1", "snapshot": "snapshot-7", "digest": "d",
            "capacity": "1Gi", "accessModes": "ReadWriteOnce, ReadOnlyMany", "odd": "x"});
        let work = read_own(json!({"external":
            {"provider": "interlock.dev/copy", "parameters": parameters}}))
        .expect("it is served");
        let Way::Copy { cluster, snapshot, digest } = work.way else { panic!("no copy") };
        assert_eq!((cluster.as_str(), snapshot.as_str()), ("c-1", "snapshot-7"));
        assert_eq!(digest.as_deref(), Some("d"));
        let Target::Own { access_modes, .. } = work.target else { panic!("not its own") };
        assert_eq!(access_modes, ["ReadWriteOnce", "ReadOnlyMany"]);
        assert_eq!(work.ignored, ["spec.external.parameters.odd"]);
        assert!(work.takes_snapshot);
    }

    #[test]
    fn a_claim_that_is_the_product_is_not_temporary() {
        let restic = |method: &str| {
            json!({"restic": {"copyMethod": method, "capacity": 7, "cleanupTempPVC": true,
                "accessModes": ["ReadWriteOnce"], "cleanupCachePVC": true}})
        };
        assert!(read_own(restic("Snapshot")).expect("served").is_temporary);
        let direct = read_own(restic("Direct")).expect("served");
        assert!(!direct.is_temporary);
        assert_eq!(direct.ignored, ["spec.restic.cleanupCachePVC"]);
    }
}
