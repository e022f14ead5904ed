//! What is a source's own: what it asks for, what is seen of it, and why it cannot go on, in words.

use super::Serves;
use super::decide::{Purpose, Source, Tidying};
use super::intent::Intent;
use super::observe::Scene;
use super::repository::Unhealthy;
use super::task::{NOT_HERE, Task};
use super::work::{Named, Target, Tidy, Way, Work, given, is_ours, parameter, unread};
use crate::kinds::{DESTINATION, NAMESPACE, POD};
use crate::objects::annotation;
use crate::outside::{Failure, Keep, LeftByMoves, Mark, Reason};
use crate::retention::{self, Wanted};
use interlock_api::names::{
    ANNOTATION_EPOCH, ANNOTATION_GRANT, ANNOTATION_RUNNING, PROVIDER_COPY, Permit,
};
use interlock_api::volumes::{
    CopyMethod, External, ReplicationSourceRestic, ReplicationSourceSpec, Retain,
};
use interlock_kernel::{Address, Name, Object, Place, View};

/// What a source asks for; None: it is not ours. The error names the fields that are not supported.
pub(super) fn read(spec: &ReplicationSourceSpec, serves: Serves) -> Option<Result<Work, String>> {
    is_ours(spec.external.as_ref(), serves).then(|| refused(spec).map_or_else(|| work(spec), Err))
}

/// Everything that is not supported, by path.
fn refused(spec: &ReplicationSourceSpec) -> Option<String> {
    let movers = [
        (spec.rsync.is_some(), "rsync"),
        (spec.rsync_tls.is_some(), "rsyncTLS"),
        (spec.rclone.is_some(), "rclone"),
    ];
    let mut paths = given("spec", &movers);
    paths.iter_mut().for_each(|path| path.push_str(" is not supported"));
    if spec.syncthing.is_some() {
        let why = "many live writers contradict the promise of one writer";
        paths.push(format!("spec.syncthing is not supported: {why}"));
    }
    match (&spec.restic, &spec.external) {
        (Some(_), Some(_)) => {
            paths.push("spec.restic and spec.external: only one may be set".into())
        }
        (None, None) if paths.is_empty() => {
            paths.push("spec.restic or spec.external is needed".into());
        }
        (Some(_) | None, Some(_) | None) => {}
    }
    if spec.source_pvc.is_empty() {
        paths.push("spec.sourcePVC is needed".into());
    }
    if let Some(restic) = &spec.restic {
        if !restic.mover_volumes.is_empty() {
            paths.push("spec.restic.moverVolumes is not supported".into());
        }
        if restic.copy_method.is_none() {
            let words = "one of Snapshot, Clone, Direct";
            paths.push(format!("spec.restic.copyMethod is needed: {words}"));
        }
        paths.extend(restic.retain.iter().flat_map(broken_retain));
    }
    (!paths.is_empty()).then(|| paths.join("; "))
}

fn broken_retain(retain: &Retain) -> Vec<String> {
    let numbers = [
        ("hourly", retain.hourly),
        ("daily", retain.daily),
        ("weekly", retain.weekly),
        ("monthly", retain.monthly),
        ("yearly", retain.yearly),
    ];
    let negative = numbers.iter().filter(|(_, number)| number.is_some_and(|number| number < 0));
    let mut flaws: Vec<String> = negative
        .map(|(name, _)| format!("spec.restic.retain.{name} must not be negative"))
        .collect();
    if retain.last.as_ref().is_some_and(|last| last.parse::<u32>().is_err()) {
        flaws.push("spec.restic.retain.last is not a number".to_owned());
    }
    if retain.within.as_ref().is_some_and(|within| !is_period(within)) {
        flaws.push("spec.restic.retain.within is not a time such as 7d or 1y6m".to_owned());
    }
    flaws
}

/// Whether restic would read it as a time span: `3h`, `7d`, `1y6m`.
fn is_period(text: &str) -> bool {
    let mut digits = 0;
    let mut is_whole = !text.is_empty();
    for letter in text.chars() {
        match letter {
            '0'..='9' => digits += 1,
            'h' | 'd' | 'm' | 'y' if digits > 0 => digits = 0,
            _ => is_whole = false,
        }
    }
    is_whole && digits == 0
}

fn work(spec: &ReplicationSourceSpec) -> Result<Work, String> {
    match (&spec.restic, &spec.external) {
        (Some(restic), _) => Ok(of_restic(spec, restic)),
        (None, Some(external)) => of_external(spec, external),
        (None, None) => Err("spec.restic or spec.external is needed".to_owned()),
    }
}

fn of_restic(spec: &ReplicationSourceSpec, restic: &ReplicationSourceRestic) -> Work {
    let without = [
        (restic.cache_capacity.is_some(), "cacheCapacity"),
        (restic.cache_storage_class_name.is_some(), "cacheStorageClassName"),
        (!restic.cache_access_modes.is_empty(), "cacheAccessModes"),
        (restic.mover_security_context.is_some(), "moverSecurityContext"),
        (restic.mover_service_account.is_some(), "moverServiceAccount"),
        (!restic.mover_pod_labels.is_empty(), "moverPodLabels"),
        (restic.mover_resources.is_some(), "moverResources"),
        (restic.mover_affinity.is_some(), "moverAffinity"),
    ];
    Work {
        target: Target::Given(spec.source_pvc.clone()),
        way: Way::Backup {
            mark: Mark::Volsync,
            tidy: Some(Box::new(Tidy {
                retain: restic.retain.clone(),
                prune_interval_days: restic.prune_interval_days,
                unlock: restic.unlock.clone(),
            })),
        },
        repository: Some(Named {
            secret: restic.repository.clone(),
            authority: restic.custom_ca.clone(),
        }),
        takes_snapshot: takes_snapshot(restic.copy_method),
        snapshot_class: restic.volume_snapshot_class_name.clone(),
        is_temporary: false,
        ignored: given("spec.restic", &without),
    }
}

fn takes_snapshot(method: Option<CopyMethod>) -> bool {
    match method {
        Some(CopyMethod::Snapshot | CopyMethod::Clone) | None => true,
        Some(CopyMethod::Direct | CopyMethod::None) => false,
    }
}

/// The parameters that both providers read.
const READ: [&str; 2] = ["copyMethod", "volumeSnapshotClassName"];

/// The parameters of those that go through a repository, besides.
const SAVED: [&str; 5] = ["repository", "epoch", "claim", "tidy", "pinned"];

fn of_external(spec: &ReplicationSourceSpec, external: &External) -> Result<Work, String> {
    let method = match parameter(external, "copyMethod").as_deref() {
        None => None,
        Some("Snapshot") => Some(CopyMethod::Snapshot),
        Some("Clone") => Some(CopyMethod::Clone),
        Some("Direct" | "None") => Some(CopyMethod::Direct),
        Some(other) => {
            return Err(format!("spec.external.parameters.copyMethod {other:?} is not supported"));
        }
    };
    let is_copy = external.provider == PROVIDER_COPY;
    if is_copy && !takes_snapshot(method) {
        return Err("spec.external.parameters.copyMethod must be Snapshot or Clone: \
            interlock.dev/copy keeps a snapshot"
            .to_owned());
    }
    let (way, repository, read) = match is_copy {
        true => (Way::Snapshot, None, READ.to_vec()),
        false => {
            let secret = parameter(external, "repository").unwrap_or_default();
            let named = Named { secret, authority: None };
            (through_repository(external)?, Some(named), [&READ[..], &SAVED[..]].concat())
        }
    };
    Ok(Work {
        target: Target::Given(spec.source_pvc.clone()),
        takes_snapshot: takes_snapshot(method) && !matches!(way, Way::Tidy(_)),
        way,
        repository,
        snapshot_class: parameter(external, "volumeSnapshotClassName"),
        is_temporary: false,
        ignored: unread(external, &read),
    })
}

fn through_repository(external: &External) -> Result<Way, String> {
    let given = |key: &str| parameter(external, key);
    if given("tidy").as_deref() != Some("true") {
        let tags = ["epoch", "claim"].into_iter();
        let tags = tags.filter_map(|key| given(key).map(|value| format!("{key}={value}")));
        // What a move has saved is forgotten by nobody but a move.
        return Ok(Way::Backup { mark: Mark::Move(tags.collect()), tidy: None });
    }
    let epoch = given("epoch").and_then(|epoch| epoch.parse().ok());
    let (Some(claim), Some(before_epoch)) = (given("claim"), epoch) else {
        return Err(
            "spec.external.parameters.tidy: .claim and .epoch are required: the uid of the claim \
             at the hub, and the epoch before which its snapshots are deleted"
                .to_owned(),
        );
    };
    let pinned = given("pinned").unwrap_or_default();
    let pinned = pinned.split(',').map(str::trim).filter(|id| !id.is_empty());
    let pinned = pinned.map(str::to_owned).collect();
    Ok(Way::Tidy(LeftByMoves { claim, before_epoch, pinned }))
}

/// Where it is recorded whether the namespace of a source runs here; None: a move made the source, which
/// runs exactly when the namespace does not.
pub(super) fn permit_address(task: &Task) -> Option<Address> {
    let is_of_a_move = annotation(&task.object, ANNOTATION_EPOCH).is_some();
    let name = Name::cluster_wide(task.namespace());
    (!is_of_a_move).then(|| Address::new(Place::CLUSTER, &NAMESPACE, name))
}

/// Whether a syncer has the namespace and permits nothing to run in it: it left, or is on its way.
pub(super) fn permits_nothing(namespace: &Object) -> bool {
    let permit = annotation(namespace, ANNOTATION_RUNNING).and_then(Permit::read);
    annotation(namespace, ANNOTATION_GRANT).is_some() && permit.is_none()
}

/// What stays in the repository after a backup, as of the beginning of the sync: what is said of it
/// at the end must be what was done.
pub(super) fn keep(task: &Task, intent: &Intent, tidy: &Tidy, view: &dyn View) -> Keep {
    let created = task.object.metadata.creation_timestamp.as_ref().map(|created| created.0);
    let restic = &task.known.restic;
    let wanted = Wanted {
        retain: tidy.retain.as_ref(),
        prune_interval_days: tidy.prune_interval_days,
        last_pruned: restic.last_pruned.as_ref().map(|time| time.0).or(created),
        unlocks: intent.unlock.as_ref().is_some_and(|word| *word != restic.last_unlocked),
    };
    let destinations = view.list(Place::CLUSTER, &DESTINATION, Some(task.namespace()));
    retention::keep(&wanted, &destinations, intent.began.0)
}

/// What a decision sees of a source only.
pub(super) fn side(scene: &Scene, view: &dyn View) -> Source {
    // Whoever takes a snapshot reads that.
    let is_direct = scene.work.as_ref().is_ok_and(|work| !work.takes_snapshot);
    Source {
        is_elsewhere: scene.is_elsewhere,
        purpose: purpose(scene),
        is_in_use: is_direct && is_in_use(scene, view),
    }
}

fn purpose(scene: &Scene) -> Option<Purpose> {
    match scene.work.as_ref().ok()?.way {
        Way::Snapshot => Some(Purpose::Snapshot),
        Way::Backup { .. } => {
            let keep = scene.keep.as_ref();
            let tidying = |keep: &Keep| Tidying { prunes: keep.prune, unlocks: keep.unlock };
            Some(Purpose::Backup { tidying: keep.map(tidying) })
        }
        Way::Tidy(_) => Some(Purpose::Tidy),
        Way::Restore { .. } | Way::CopyOf(_) | Way::Copy { .. } => None,
    }
}

/// Whether a pod may write to the claim while it is read.
fn is_in_use(scene: &Scene, view: &dyn View) -> bool {
    let pods = view.list(Place::CLUSTER, &POD, Some(scene.task.namespace()));
    pods.iter().any(|pod| {
        let phase = pod.data["status"]["phase"].as_str();
        let volumes = pod.data["spec"]["volumes"].as_array().into_iter().flatten();
        let mut claims = volumes.map(|volume| &volume["persistentVolumeClaim"]["claimName"]);
        !matches!(phase, Some("Succeeded" | "Failed"))
            && claims.any(|name| *name == scene.claim_name)
    })
}

/// Why nothing is saved from here.
pub(super) fn not_here(task: &Task) -> Unhealthy {
    let namespace = task.namespace();
    let what = format!(
        "namespace {namespace} does not run on this cluster, so this source makes no backups; \
         create the source on the owner, which `kubectl get grant {namespace}` at the hub shows"
    );
    Unhealthy::new(NOT_HERE, what)
}

/// There is nothing to back up: most likely by accident.
pub(super) fn empty(scene: &Scene) -> Unhealthy {
    let message = format!(
        "claim {} is empty, so no backup was made; if that is intended, annotate the source: \
         interlock.dev/allow-empty=true",
        scene.claim_name
    );
    Unhealthy::new(Reason::SourceEmpty.word(), message)
}

/// What a failure is called: the mover knows folders, and people know claims.
pub(super) fn reported(scene: &Scene, failure: &Failure) -> Failure {
    match failure.reason {
        Reason::SourceEmpty => Failure { reason: failure.reason, message: empty(scene).message },
        _ => failure.clone(),
    }
}

/// The snapshot is not the one that was asked for.
pub(super) fn useless(intent: &Intent) -> Unhealthy {
    Unhealthy::new(
        "SnapshotGone",
        format!("snapshot {} was deleted, or is not of this sync", intent.snapshot),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(value: Value) -> ReplicationSourceSpec {
        serde_json::from_value(value).expect("a spec")
    }

    fn flaw(value: Value) -> String {
        match read(&spec(value), Serves::Own) {
            Some(Err(flaw)) => flaw,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_supported_is_named_by_its_path() {
        let restic = json!({"repository": "r", "copyMethod": "Snapshot"});
        for (mover, path) in [
            (json!({"rsync": {}}), "spec.rsync "),
            (json!({"rsyncTLS": {}}), "spec.rsyncTLS "),
            (json!({"rclone": {}}), "spec.rclone "),
            (json!({"syncthing": {}}), "spec.syncthing "),
            (json!({"restic": restic, "external": {}}), "only one"),
            (json!({}), "spec.restic or spec.external"),
            (json!({"restic": {"copyMethod": "Clone", "moverVolumes": [{}]}}), "moverVolumes"),
            (json!({"restic": {"repository": "r"}}), "spec.restic.copyMethod"),
            (json!({"restic": {"copyMethod": "Clone", "retain": {"daily": -1}}}), "retain.daily"),
            (json!({"restic": {"copyMethod": "Clone", "retain": {"last": "x"}}}), "retain.last"),
            (json!({"restic": {"copyMethod": "Clone", "retain": {"within": "d"}}}), "within"),
            (json!({"restic": restic, "sourcePVC": ""}), "spec.sourcePVC"),
        ] {
            let mut value = mover;
            if value["sourcePVC"].is_null() {
                value["sourcePVC"] = json!("data");
            }
            // One with an external mover that is not ours is not ours to refuse.
            let is_both = value["external"].is_object();
            if is_both {
                value["external"] = json!({"provider": "interlock.dev/copy"});
            }
            let flaw = flaw(value);
            assert!(flaw.contains(path), "{flaw:?} names {path:?}");
        }
    }

    #[test]
    fn somebody_elses_replication_is_not_ours() {
        let theirs = json!({"sourcePVC": "d", "external": {"provider": "example.com/x"}});
        assert!(read(&spec(theirs), Serves::Own).is_none());
        let restic = json!({"sourcePVC": "d", "restic": {"copyMethod": "Direct"}});
        assert!(read(&spec(restic.clone()), Serves::External).is_none());
        assert!(read(&spec(restic), Serves::Own).is_some());
        let ours = json!({"sourcePVC": "d", "external": {"provider": "interlock.dev/copy"}});
        assert!(read(&spec(ours), Serves::External).is_some());
    }

    #[test]
    fn what_has_no_effect_is_named() {
        let restic = json!({"copyMethod": "Direct", "cacheCapacity": "1Gi", "moverAffinity": {},
            "moverPodLabels": {"a": "b"}});
        let work = read(&spec(json!({"sourcePVC": "d", "restic": restic})), Serves::Own);
        let work = work.expect("ours").expect("served");
        assert_eq!(
            work.ignored,
            [
                "spec.restic.cacheCapacity",
                "spec.restic.moverPodLabels",
                "spec.restic.moverAffinity"
            ]
        );
        assert!(!work.takes_snapshot);
    }

    #[test]
    fn a_move_saves_under_its_own_mark_or_has_what_others_left_removed() {
        let external = |parameters: Value| {
            let provider = "interlock.dev/restic";
            spec(json!({"sourcePVC": "d",
                "external": {"provider": provider, "parameters": parameters}}))
        };
        let work = |parameters| read(&external(parameters), Serves::External).expect("ours");
        let saves = work(json!({"repository": "r", "epoch": "7", "claim": "u",
            "copyMethod": "Direct"}))
        .expect("served");
        assert!(!saves.takes_snapshot);
        let Way::Backup { mark, tidy } = saves.way else { panic!("no backup") };
        assert_eq!(mark, Mark::Move(vec!["epoch=7".into(), "claim=u".into()]));
        assert!(tidy.is_none(), "it forgets nothing");
        let tidies = work(json!({"repository": "r", "epoch": "7", "claim": "u", "tidy": "true",
            "pinned": "one, two,"}))
        .expect("served");
        assert!(!tidies.takes_snapshot && tidies.ignored.is_empty());
        let Way::Tidy(left) = tidies.way else { panic!("no tidying") };
        let secret = tidies.repository.expect("a repository").secret;
        assert_eq!((secret.as_str(), left.before_epoch), ("r", 7));
        assert_eq!(left.pinned, ["one", "two"]);
        for parameters in [
            json!({"repository": "r", "tidy": "true", "claim": "u"}),
            json!({"repository": "r", "tidy": "true", "claim": "u", "epoch": "soon"}),
            json!({"repository": "r", "tidy": "true", "epoch": "7"}),
        ] {
            let flaw = work(parameters).expect_err("it is refused");
            assert!(flaw.contains("spec.external.parameters.tidy"), "{flaw}");
        }
    }

    #[test]
    fn time_spans_are_those_of_restic() {
        for (text, wanted) in [
            ("3h", true),
            ("1y6m", true),
            ("7", false),
            ("d", false),
            ("", false),
            ("7d 1h", false),
        ] {
            assert_eq!(is_period(text), wanted, "{text}");
        }
    }
}
