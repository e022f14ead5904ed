//! What a destination asks for, read: a restore, a copy, or something that is not supported.

use super::Serves;
use super::origin::Origin;
use crate::outside::Choice;
use crate::sync::images::IMAGE_PREFIX;
use interlock_api::names::{PROVIDER_COPY, PROVIDER_RESTIC};
use interlock_api::volumes::{
    CopyMethod, CustomAuthority, External, ReplicationDestinationRestic, ReplicationDestinationSpec,
};
use jiff::Timestamp;

/// What is to be done.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) target: Target,
    pub(super) way: Way,
    /// Whether an image of the volume is the product; else the volume itself is.
    pub(super) takes_image: bool,
    pub(super) snapshot_class: Option<String>,
    /// Whether a claim of our own goes after each sync.
    pub(super) is_temporary: bool,
    /// Fields that have no effect here, by path.
    pub(super) ignored: Vec<String>,
}

/// The claim that is written.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// Somebody made it.
    Given(String),
    /// We make it.
    Own { capacity: String, access_modes: Vec<String>, class: Option<String> },
}

/// Where the data comes from.
#[derive(Debug, Clone)]
pub(super) enum Way {
    /// From a repository.
    Restore {
        secret: String,
        authority: Option<CustomAuthority>,
        choice: Choice,
        deletes_other_files: bool,
        digest: Option<String>,
    },
    /// From the latest image of a source.
    CopyOf(Origin),
    /// From an image on this machine.
    Copy { cluster: String, image: String, digest: Option<String> },
}

/// What a destination asks for; None: it is not ours. The error names the fields that are not
/// supported.
pub(super) fn read(
    spec: &ReplicationDestinationSpec,
    serves: Serves,
) -> Option<Result<Work, String>> {
    let provider = spec.external.as_ref().map(|external| external.provider.as_str());
    let is_ours = matches!(provider, Some(PROVIDER_COPY | PROVIDER_RESTIC));
    if !is_ours && (serves == Serves::External || provider.is_some()) {
        return None;
    }
    let movers = [
        (spec.rsync.is_some(), "spec.rsync"),
        (spec.rsync_tls.is_some(), "spec.rsyncTLS"),
        (spec.rclone.is_some(), "spec.rclone"),
    ];
    let given = movers.iter().filter(|(is_given, _)| *is_given);
    let refused: Vec<String> = given.map(|(_, path)| format!("{path} is not supported")).collect();
    if !refused.is_empty() {
        return Some(Err(refused.join("; ")));
    }
    Some(match (&spec.restic, &spec.external) {
        (Some(_), Some(_)) => Err("spec.restic and spec.external: only one may be set".to_owned()),
        (Some(restic), None) => of_restic(restic),
        (None, Some(external)) => of_external(external),
        (None, None) => Err("spec.restic or spec.external is needed".to_owned()),
    })
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

/// The volume that is written, and whether an image of it is taken.
fn volume(volume: Volume<'_>) -> Result<(Target, bool), String> {
    let path = volume.path;
    let takes_image = match volume.method {
        Some(CopyMethod::Snapshot) => true,
        Some(CopyMethod::Direct | CopyMethod::None) => false,
        Some(CopyMethod::Clone) => {
            return Err(format!("{path}.copyMethod Clone is not supported for destinations"));
        }
        None => return Err(format!("{path}.copyMethod is needed: one of Snapshot, Direct")),
    };
    if let Some(given) = volume.given.filter(|given| !given.is_empty()) {
        return Ok((Target::Given(given), takes_image));
    }
    let capacity = volume.capacity.filter(|capacity| !capacity.is_empty());
    let Some(capacity) = capacity.filter(|_| !volume.access_modes.is_empty()) else {
        let either = format!("{path}.destinationPVC");
        let both = format!("{path}.capacity and {path}.accessModes");
        return Err(format!("{either}, or both {both}, are needed"));
    };
    let (access_modes, class) = (volume.access_modes, volume.class);
    Ok((Target::Own { capacity, access_modes, class }, takes_image))
}

fn of_restic(restic: &ReplicationDestinationRestic) -> Result<Work, String> {
    if !restic.mover_volumes.is_empty() {
        return Err("spec.restic.moverVolumes is not supported".to_owned());
    }
    let previous = u32::try_from(restic.previous.unwrap_or_default())
        .map_err(|_| "spec.restic.previous is below zero".to_owned())?;
    let (target, takes_image) = volume(Volume {
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
    let given = without.iter().filter(|(is_given, _)| *is_given);
    Ok(Work {
        target,
        takes_image,
        snapshot_class: restic.volume_snapshot_class_name.clone(),
        // A claim that is the product is not deleted, whatever is asked for.
        is_temporary: restic.cleanup_temp_pvc && takes_image,
        ignored: given.map(|(_, name)| format!("spec.restic.{name}")).collect(),
        way: Way::Restore {
            secret: restic.repository.clone(),
            authority: restic.custom_ca.clone(),
            choice: Choice::Newest {
                as_of: restic.restore_as_of.as_ref().map(|time| time.0),
                previous,
            },
            deletes_other_files: restic.enable_file_deletion,
            digest: None,
        },
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

/// The parameters of a restore.
const RESTORED: [&str; 6] =
    ["repository", "snapshotID", "digest", "restoreAsOf", "previous", "enableFileDeletion"];

fn of_external(external: &External) -> Result<Work, String> {
    const PATH: &str = "spec.external.parameters";
    let given = |key: &str| external.parameters.get(key).filter(|value| !value.is_empty()).cloned();
    let method = match given("copyMethod").as_deref() {
        None | Some("Snapshot") => CopyMethod::Snapshot,
        Some("Direct" | "None") => CopyMethod::Direct,
        Some("Clone") => CopyMethod::Clone,
        Some(other) => return Err(format!("{PATH}.copyMethod {other:?} is not supported")),
    };
    let modes = given("accessModes").unwrap_or_default();
    let modes = modes.split(',').map(str::trim).filter(|mode| !mode.is_empty());
    let (target, takes_image) = volume(Volume {
        path: PATH,
        method: Some(method),
        given: given("destinationPVC"),
        capacity: given("capacity"),
        access_modes: modes.map(str::to_owned).collect(),
        class: given("storageClassName"),
    })?;
    let (way, own) = match external.provider == PROVIDER_COPY {
        true => (copy(&given)?, &["source", "cluster", "image", "digest", "snapshotUID"][..]),
        false => (restore(&given)?, &RESTORED[..]),
    };
    let is_read = |key: &&String| !READ.contains(&key.as_str()) && !own.contains(&key.as_str());
    Ok(Work {
        target,
        way,
        takes_image,
        snapshot_class: given("volumeSnapshotClassName"),
        is_temporary: takes_image && given("cleanupTempPVC").as_deref() == Some("true"),
        ignored: external
            .parameters
            .keys()
            .filter(is_read)
            .map(|key| format!("{PATH}.{key}"))
            .collect(),
    })
}

fn copy(given: &dyn Fn(&str) -> Option<String>) -> Result<Way, String> {
    if let Some(source) = given("source") {
        let others = ["cluster", "image", "snapshotUID", "digest"];
        if let Some(other) = others.iter().find(|key| given(key).is_some()) {
            return Err(format!(
                "spec.external.parameters.source and .{other}: only one may be set"
            ));
        }
        return Origin::read(&source).map(Way::CopyOf);
    }
    let image =
        given("image").or_else(|| given("snapshotUID").map(|uid| format!("{IMAGE_PREFIX}{uid}")));
    let (Some(cluster), Some(image)) = (given("cluster"), image) else {
        return Err("spec.external.parameters.source is needed, or both .cluster and .image: the \
                    uid of the cluster that has the image, and its handle there"
            .to_owned());
    };
    Ok(Way::Copy { cluster, image, digest: given("digest") })
}

fn restore(given: &dyn Fn(&str) -> Option<String>) -> Result<Way, String> {
    let choice = match given("snapshotID") {
        Some(id) => Choice::Id(id),
        None => Choice::Newest {
            as_of: given("restoreAsOf").map(|text| moment(&text)).transpose()?,
            previous: match given("previous") {
                Some(text) => text.parse().map_err(|_| {
                    format!("spec.external.parameters.previous {text:?} is no number")
                })?,
                None => 0,
            },
        },
    };
    Ok(Way::Restore {
        secret: given("repository").unwrap_or_default(),
        authority: None,
        choice,
        deletes_other_files: given("enableFileDeletion").as_deref() == Some("true"),
        digest: given("digest"),
    })
}

fn moment(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| format!("spec.external.parameters.restoreAsOf {text:?} is no time"))
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
                    "parameters": {"destinationPVC": "d", "image": "i"}}}),
                "both .cluster and .image",
            ),
            (
                json!({"external": {"provider": "interlock.dev/copy", "parameters":
                    {"destinationPVC": "d", "source": "shop/data", "image": "i"}}}),
                "source and .image",
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
    fn a_copy_says_where_its_image_is() {
        let parameters = json!({"cluster": "c-1", "image": "snapshot-7", "digest": "d",
            "capacity": "1Gi", "accessModes": "ReadWriteOnce, ReadOnlyMany", "odd": "x"});
        let work = read_own(json!({"external":
            {"provider": "interlock.dev/copy", "parameters": parameters}}))
        .expect("it is served");
        let Way::Copy { cluster, image, digest } = work.way else { panic!("no copy") };
        assert_eq!((cluster.as_str(), image.as_str()), ("c-1", "snapshot-7"));
        assert_eq!(digest.as_deref(), Some("d"));
        let Target::Own { access_modes, .. } = work.target else { panic!("not its own") };
        assert_eq!(access_modes, ["ReadWriteOnce", "ReadOnlyMany"]);
        assert_eq!(work.ignored, ["spec.external.parameters.odd"]);
        assert!(work.takes_image);
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
