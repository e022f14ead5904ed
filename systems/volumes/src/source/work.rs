//! What a source asks for, read: a backup, an image, or something that is not supported.

use super::Serves;
use crate::outside::{LeftByMoves, Mark};
use interlock_api::names::{PROVIDER_COPY, PROVIDER_RESTIC};
use interlock_api::volumes::{
    CopyMethod, CustomAuthority, External, ReplicationSourceRestic, ReplicationSourceSpec, Retain,
};

/// What is to be done.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) claim: String,
    pub(super) way: Way,
    /// Whether an image is taken first; else the volume itself is read.
    pub(super) takes_image: bool,
    pub(super) snapshot_class: Option<String>,
    /// Fields that have no effect here, by path.
    pub(super) ignored: Vec<String>,
}

/// Where an image goes.
#[derive(Debug, Clone)]
pub(super) enum Way {
    /// Nowhere: it is the product.
    Image,
    /// Into a repository.
    Backup(Box<Backup>),
    /// Nowhere: what earlier moves left in a repository is removed from it.
    Tidy { secret: String, left: LeftByMoves },
}

/// A backup.
#[derive(Debug, Clone)]
pub(super) struct Backup {
    pub(super) secret: String,
    pub(super) authority: Option<CustomAuthority>,
    pub(super) mark: Mark,
    /// What stays in the repository; None: nothing is forgotten.
    pub(super) tidy: Option<Tidy>,
}

/// What stays in a repository, as it is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Tidy {
    pub(super) retain: Option<Retain>,
    pub(super) prune_interval_days: Option<i32>,
    pub(super) unlock: String,
}

/// What a source asks for; None: it is not ours. The error names the fields that are not supported.
pub(super) fn read(spec: &ReplicationSourceSpec, serves: Serves) -> Option<Result<Work, String>> {
    let provider = spec.external.as_ref().map(|external| external.provider.as_str());
    let is_ours = matches!(provider, Some(PROVIDER_COPY | PROVIDER_RESTIC));
    if !is_ours && (serves == Serves::External || provider.is_some()) {
        return None;
    }
    Some(refused(spec).map_or_else(|| work(spec), Err))
}

/// Everything that is not supported, by path.
fn refused(spec: &ReplicationSourceSpec) -> Option<String> {
    let mut paths = Vec::new();
    let movers = [
        (spec.rsync.is_some(), "spec.rsync"),
        (spec.rsync_tls.is_some(), "spec.rsyncTLS"),
        (spec.rclone.is_some(), "spec.rclone"),
    ];
    let given = movers.iter().filter(|(is_given, _)| *is_given);
    paths.extend(given.map(|(_, path)| format!("{path} is not supported")));
    if spec.syncthing.is_some() {
        let why = "many live writers contradict what is promised here";
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
    let mut flaws: Vec<String> =
        negative.map(|(name, _)| format!("spec.restic.retain.{name} is below zero")).collect();
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
    let given = without.iter().filter(|(is_given, _)| *is_given);
    Work {
        claim: spec.source_pvc.clone(),
        takes_image: takes_image(restic.copy_method),
        snapshot_class: restic.volume_snapshot_class_name.clone(),
        ignored: given.map(|(_, name)| format!("spec.restic.{name}")).collect(),
        way: Way::Backup(Box::new(Backup {
            secret: restic.repository.clone(),
            authority: restic.custom_ca.clone(),
            mark: Mark::Volsync,
            tidy: Some(Tidy {
                retain: restic.retain.clone(),
                prune_interval_days: restic.prune_interval_days,
                unlock: restic.unlock.clone(),
            }),
        })),
    }
}

fn takes_image(method: Option<CopyMethod>) -> bool {
    match method {
        Some(CopyMethod::Snapshot | CopyMethod::Clone) | None => true,
        Some(CopyMethod::Direct | CopyMethod::None) => false,
    }
}

fn of_external(spec: &ReplicationSourceSpec, external: &External) -> Result<Work, String> {
    let given = |key: &str| external.parameters.get(key).filter(|value| !value.is_empty()).cloned();
    let method = match given("copyMethod").as_deref() {
        None => None,
        Some("Snapshot") => Some(CopyMethod::Snapshot),
        Some("Clone") => Some(CopyMethod::Clone),
        Some("Direct" | "None") => Some(CopyMethod::Direct),
        Some(other) => {
            return Err(format!("spec.external.parameters.copyMethod {other:?} is not supported"));
        }
    };
    let is_copy = external.provider == PROVIDER_COPY;
    if is_copy && !takes_image(method) {
        return Err("spec.external.parameters.copyMethod: the image is the product of \
                    interlock.dev/copy; one of Snapshot, Clone"
            .to_owned());
    }
    let read: &[&str] = match is_copy {
        true => &["copyMethod", "volumeSnapshotClassName"],
        false => &[
            "copyMethod",
            "volumeSnapshotClassName",
            "repository",
            "epoch",
            "claim",
            "tidy",
            "pinned",
        ],
    };
    let others = external.parameters.keys().filter(|key| !read.contains(&key.as_str()));
    let way = match is_copy {
        true => Way::Image,
        false => through_repository(&given)?,
    };
    Ok(Work {
        claim: spec.source_pvc.clone(),
        takes_image: takes_image(method) && !matches!(way, Way::Tidy { .. }),
        snapshot_class: given("volumeSnapshotClassName"),
        ignored: others.map(|key| format!("spec.external.parameters.{key}")).collect(),
        way,
    })
}

fn through_repository(given: &dyn Fn(&str) -> Option<String>) -> Result<Way, String> {
    let secret = given("repository").unwrap_or_default();
    if given("tidy").as_deref() != Some("true") {
        let tags = ["epoch", "claim"].into_iter();
        let tags = tags.filter_map(|key| given(key).map(|value| format!("{key}={value}")));
        return Ok(Way::Backup(Box::new(Backup {
            secret,
            authority: None,
            mark: Mark::Move(tags.collect()),
            // What a move has saved is forgotten by nobody but a move.
            tidy: None,
        })));
    }
    let epoch = given("epoch").and_then(|epoch| epoch.parse().ok());
    let (Some(claim), Some(before_epoch)) = (given("claim"), epoch) else {
        return Err("spec.external.parameters.tidy: .claim and .epoch are needed: the uid of the \
                    claim at the hub, and the epoch before which snapshots of it go"
            .to_owned());
    };
    let pinned = given("pinned").unwrap_or_default();
    let pinned = pinned.split(',').map(str::trim).filter(|id| !id.is_empty());
    let pinned = pinned.map(str::to_owned).collect();
    Ok(Way::Tidy { secret, left: LeftByMoves { claim, before_epoch, pinned } })
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
        assert!(!work.takes_image);
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
        assert!(!saves.takes_image);
        let Way::Backup(backup) = saves.way else { panic!("no backup") };
        assert_eq!(backup.mark, Mark::Move(vec!["epoch=7".into(), "claim=u".into()]));
        assert!(backup.tidy.is_none(), "it forgets nothing");
        let tidies = work(json!({"repository": "r", "epoch": "7", "claim": "u", "tidy": "true",
            "pinned": "one, two,"}))
        .expect("served");
        assert!(!tidies.takes_image && tidies.ignored.is_empty());
        let Way::Tidy { secret, left } = tidies.way else { panic!("no tidying") };
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
