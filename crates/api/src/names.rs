//! The keys that Interlock writes on other people's objects, and names that are made of others.

/// The runtime class of pods that are local processes.
pub const RUNTIME_CLASS: &str = "interlock-process";
/// What the runtime class selects nodes by. No node has it: what is a process of a machine must not be
/// a pod of a node, too.
pub const NODE_LABEL: &str = "interlock.dev/runs-processes";

/// On a hub Namespace: `"true"` opts in to placement.
pub const LABEL_PLACED: &str = "interlock.dev/placed";
/// The value of [`LABEL_PLACED`] that opts in.
pub const PLACED_TRUE: &str = "true";
/// On a hub Namespace: the name of the desired cluster; wins over any Placement.
pub const ANNOTATION_CLUSTER: &str = "interlock.dev/cluster";

/// The value of a [`state_label`]: assigned, not to be used.
pub const STATE_EMPTY: &str = "";
/// The value of a [`state_label`]: may be used.
pub const STATE_SYNC: &str = "Sync";
/// The prefix of every [`state_label`].
pub const STATE_PREFIX: &str = "state.interlock.dev/";
/// The prefix of every [`deletion_annotation`].
pub const DELETION_PREFIX: &str = "deletion.interlock.dev/";
/// The prefix of every [`syncer_finalizer`].
pub const SYNCER_FINALIZER_PREFIX: &str = "interlock.dev/syncer-";

/// On a hub Namespace: it stays while its Grant is not done with it.
pub const FINALIZER_GRANT: &str = "interlock.dev/grant";
/// On a hub PVC: it stays while a cluster still has it.
pub const FINALIZER_CLAIM: &str = "interlock.dev/claim";

/// On a downstream Namespace: the uid of its Grant.
pub const ANNOTATION_GRANT: &str = "interlock.dev/grant";
/// On a downstream Namespace: the epoch that arrives or has arrived here.
pub const ANNOTATION_EPOCH: &str = "interlock.dev/epoch";
/// On a downstream Namespace: the highest epoch that is closed here. It never falls.
pub const ANNOTATION_RELEASED: &str = "interlock.dev/released";
/// On a downstream Namespace: the [`Permit`] that holds now, or nothing.
pub const ANNOTATION_RUNNING: &str = "interlock.dev/running";
/// On a downstream Namespace: the last epoch that was ever permitted here.
pub const ANNOTATION_RAN: &str = "interlock.dev/ran";

/// On a downstream PVC: a move never deletes a volume.
pub const FINALIZER_KEEP: &str = "interlock.dev/keep";
/// On a downstream PVC: the epoch that has all its data since.
pub const LABEL_SUPERSEDED_BY: &str = "interlock.dev/superseded-by";
/// On a downstream PersistentVolume: the reclaim policy that it had before it was managed.
pub const ANNOTATION_RECLAIM: &str = "interlock.dev/reclaim";

/// The storage class, the snapshot class, and the driver of local volumes.
pub const LOCAL_CLASS: &str = "interlock-local";
/// The driver of local volumes: what their PersistentVolumes and contents name.
pub const LOCAL_DRIVER: &str = "local.interlock.dev";
/// The provider of a replication whose data never leaves the machine.
pub const PROVIDER_COPY: &str = "interlock.dev/copy";
/// The provider of a replication through a restic repository.
pub const PROVIDER_RESTIC: &str = "interlock.dev/restic";

/// On a ReplicationSource or -Destination: the intent of the sync that runs, written before its
/// first effect.
pub const ANNOTATION_SYNC: &str = "interlock.dev/sync";
/// On a ReplicationDestination: the uid of its latest snapshot, which decides; the name is for reading.
pub const ANNOTATION_LATEST_IMAGE_UID: &str = "interlock.dev/latest-image-uid";
/// On a PVC: the uid of the one snapshot that it is filled from.
pub const ANNOTATION_SNAPSHOT: &str = "interlock.dev/snapshot";
/// On a VolumeSnapshot: the digest of what is in it.
pub const ANNOTATION_DIGEST: &str = "interlock.dev/digest";
/// On a VolumeSnapshot: how many files are in it.
pub const ANNOTATION_FILES: &str = "interlock.dev/files";
/// On a VolumeSnapshot: how many bytes are in it.
pub const ANNOTATION_BYTES: &str = "interlock.dev/bytes";
/// On a VolumeSnapshot: the sync that it was taken for.
pub const ANNOTATION_SYNC_ID: &str = "interlock.dev/sync-id";
/// On a source, a destination or a PVC: `"true"`: emptiness is meant.
pub const ANNOTATION_ALLOW_EMPTY: &str = "interlock.dev/allow-empty";
/// On an auxiliary PVC: the uid of the PVC that it is poured for.
pub const LABEL_PRIME_FOR: &str = "interlock.dev/prime-for";
/// On a PersistentVolume: the PVC that it is handed to, `<namespace>/<name>/<uid>`, from before its
/// reclaim policy is changed until it is restored.
pub const ANNOTATION_POPULATES: &str = "interlock.dev/populates";
/// On a PVC: what populating it made is undone before it is deleted.
pub const FINALIZER_POPULATE: &str = "interlock.dev/populate";
/// On a ReplicationDestination: it stays while a snapshot of it is held.
pub const FINALIZER_SNAPSHOTS: &str = "interlock.dev/snapshots";
/// On a Lease that is a place at a repository: which repository, as a hash.
pub const LABEL_SLOT: &str = "interlock.dev/slot";
/// On a Lease that is a place at a repository: the object whose sync has it.
pub const ANNOTATION_SLOT_OF: &str = "interlock.dev/slot-of";
/// On a VolumeSnapshot, VolSync's own: a person wants to keep it.
pub const LABEL_DO_NOT_DELETE: &str = "volsync.backube/do-not-delete";
/// On a PVC, VolSync's own: no snapshot may be taken before somebody says so.
pub const ANNOTATION_USE_COPY_TRIGGER: &str = "volsync.backube/use-copy-trigger";
/// On a VolumeSnapshot: the prefix of every [`hold_finalizer`].
pub const HOLD_PREFIX: &str = "interlock.dev/hold-";

/// On a VolumeSnapshot: it is in use by the object with this uid, a PVC that is being filled or a
/// Grant whose pin it is.
pub fn hold_finalizer(uid: &str) -> String {
    format!("{HOLD_PREFIX}{uid}")
}

/// On a WorkloadCluster: it stays while a Grant is owned by it or has data on it.
pub const FINALIZER_LIVE_GRANTS: &str = "interlock.dev/live-grants";
/// On a WorkloadCluster: it stays while an OIDC provider that was made for it exists or may still be created.
pub const FINALIZER_PROVIDER: &str = "interlock.dev/oidc-provider";
/// On a WorkloadCluster: what the controller of OIDC providers knows of its provider, in JSON.
pub const ANNOTATION_PROVIDER: &str = "interlock.dev/oidc-provider";
/// On a WorkloadCluster: the uid of a Grant whose copy there a person gives up.
pub const ANNOTATION_FORGET_COPIES: &str = "interlock.dev/forget-copies";

/// The longest name of a namespace.
const NAMESPACE_CHARACTERS: usize = 63;
/// How much of a uid, or of a digest, goes into a name.
const SHORT_CHARACTERS: usize = 8;

/// On a hub Namespace or PVC: what that cluster may do with it. Absent, [`STATE_EMPTY`] or
/// [`STATE_SYNC`]. It mirrors the Grant and decides nothing.
pub fn state_label(cluster_uid: &str) -> String {
    format!("{STATE_PREFIX}{cluster_uid}")
}

/// On a hub Namespace or PVC: since when that cluster has to let go of it. It tells a leaving state
/// from an arriving one.
pub fn deletion_annotation(cluster_uid: &str) -> String {
    format!("{DELETION_PREFIX}{cluster_uid}")
}

/// On a hub Namespace: that cluster has, or may have, something of it.
pub fn syncer_finalizer(cluster_uid: &str) -> String {
    format!("{SYNCER_FINALIZER_PREFIX}{cluster_uid}")
}

/// The name of the Grant of a namespace: `<namespace>-<8 of its uid>`.
///
/// The whole has at most 63 characters. Of a namespace whose name is too long, the beginning and a
/// digest of the whole name are taken: `<beginning>-<8 of the digest>-<8 of the uid>`.
///
/// Eight characters of a uid are for telling things apart at a glance. Whoever finds an object by
/// this name compares the whole uid before believing it.
pub fn grant_name(namespace: &str, uid: &str) -> String {
    let uid: String =
        uid.chars().filter(char::is_ascii_alphanumeric).take(SHORT_CHARACTERS).collect();
    let room = NAMESPACE_CHARACTERS - 1 - SHORT_CHARACTERS;
    if namespace.len() <= room {
        return format!("{namespace}-{uid}");
    }
    let room = room - 1 - SHORT_CHARACTERS;
    let beginning: String = namespace.chars().take(room).collect();
    let beginning = beginning.trim_end_matches('-');
    format!("{beginning}-{:08x}-{uid}", digest(namespace))
}

/// The name of a hub namespace on the cluster that runs it; the same form as [`grant_name`], so that
/// a namespace made again under its name never meets what is left of the one before.
pub fn downstream_namespace(namespace: &str, uid: &str) -> String {
    grant_name(namespace, uid)
}

/// FNV-1a: it must give the same on every machine and in every version, and guards against nobody.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The value of [`ANNOTATION_RUNNING`]: which epoch may run now, and in which boot of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// The epoch that may run.
    pub epoch: i64,
    /// The boot that it may run in; after the next one it has to be checked again.
    pub boot_id: String,
}

impl Permit {
    /// Reads `<epoch>@<bootID>`; anything else, and nothing, permits nothing.
    pub fn read(value: &str) -> Option<Self> {
        let (epoch, boot_id) = value.split_once('@')?;
        if boot_id.is_empty() {
            return None;
        }
        Some(Self { epoch: epoch.parse().ok()?, boot_id: boot_id.to_owned() })
    }
}

impl std::fmt::Display for Permit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}@{}", self.epoch, self.boot_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0f3a9c1e-5b77-4c52-9d0e-2f4e6a8b1c3d";

    #[test]
    fn a_grant_is_named_for_its_namespace_and_uid() {
        assert_eq!(grant_name("shop", UID), "shop-0f3a9c1e");
        assert_eq!(downstream_namespace("shop", UID), "shop-0f3a9c1e");
    }

    #[test]
    fn a_namespace_made_again_has_another_name() {
        let again = "1f3a9c1e-5b77-4c52-9d0e-2f4e6a8b1c3d";
        assert_ne!(grant_name("shop", UID), grant_name("shop", again));
    }

    #[test]
    fn the_longest_name_that_fits_is_kept_whole() {
        let namespace = "n".repeat(54);
        assert_eq!(grant_name(&namespace, UID), format!("{namespace}-0f3a9c1e"));
    }

    #[test]
    fn long_names_are_cut_to_63_characters_and_stay_apart() {
        let (one, two) = (format!("{}a", "n".repeat(62)), format!("{}b", "n".repeat(62)));
        assert_eq!(grant_name(&one, UID).len(), 63);
        assert_ne!(grant_name(&one, UID), grant_name(&two, UID));
        assert_eq!(
            grant_name(&one, UID),
            format!("{}-{:08x}-0f3a9c1e", "n".repeat(45), digest(&one))
        );
    }

    #[test]
    fn the_digest_is_the_published_one() {
        assert_eq!(digest(""), 0x811c_9dc5);
        assert_eq!(digest("a"), 0xe40c_292c);
        assert_eq!(digest("foobar"), 0xbf9c_f968);
    }

    #[test]
    fn keys_carry_the_uid_of_the_cluster() {
        assert_eq!(state_label(UID), format!("state.interlock.dev/{UID}"));
        assert_eq!(deletion_annotation(UID), format!("deletion.interlock.dev/{UID}"));
        assert_eq!(syncer_finalizer(UID), format!("interlock.dev/syncer-{UID}"));
    }

    #[test]
    fn a_permit_reads_as_it_is_written() {
        let permit = Permit { epoch: 7, boot_id: "b-1".to_owned() };
        assert_eq!(permit.to_string(), "7@b-1");
        assert_eq!(Permit::read("7@b-1"), Some(permit));
    }

    #[test]
    fn a_broken_permit_permits_nothing() {
        for value in ["", "7", "7@", "@b-1", "x@b-1", "7.0@b-1"] {
            assert_eq!(Permit::read(value), None, "{value}");
        }
    }
}
