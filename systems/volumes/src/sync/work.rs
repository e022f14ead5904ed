//! What an object that syncs asks for, read: in either direction the same words.

use super::origin::Origin;
use super::task::Known;
use super::{Direction, Serves, destination, source};
use crate::objects::name_of;
use crate::outside::{Choice, LeftByMoves, Mark};
use interlock_api::names::{PROVIDER_COPY, PROVIDER_RESTIC};
use interlock_api::volumes::{
    CustomAuthority, External, ReplicationDestinationSpec, ReplicationDestinationStatus,
    ReplicationSourceSpec, ReplicationSourceStatus, Retain, Trigger,
};
use interlock_kernel::{Object, read_part};

/// What an object asks for, and when.
#[derive(Debug)]
pub(crate) struct Asked {
    /// What; the error says what is not supported.
    pub(crate) work: Result<Work, String>,
    /// The claim that is read or written.
    pub(crate) claim: String,
    pub(crate) trigger: Option<Trigger>,
    pub(crate) is_paused: bool,
    pub(crate) known: Known,
}

/// What is to be done.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) target: Target,
    pub(crate) way: Way,
    /// The repository, for those that have one.
    pub(crate) repository: Option<Named>,
    /// Whether a snapshot is taken: of a source first, to be read instead of the volume; of a
    /// destination last, as the product.
    pub(crate) takes_snapshot: bool,
    pub(crate) snapshot_class: Option<String>,
    /// Whether a claim of our own goes after each sync.
    pub(crate) is_temporary: bool,
    /// Fields that have no effect here, by path.
    pub(crate) ignored: Vec<String>,
}

/// A repository, as it is named.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    pub(crate) secret: String,
    pub(crate) authority: Option<CustomAuthority>,
}

/// The claim that is read or written.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Somebody made it.
    Given(String),
    /// We make it.
    Own { capacity: String, access_modes: Vec<String>, class: Option<String> },
}

/// Where the data comes from or goes to.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// Nowhere: a snapshot is the product.
    Snapshot,
    /// Into a repository.
    Backup {
        mark: Mark,
        /// What stays in the repository; None: nothing is forgotten.
        tidy: Option<Box<Tidy>>,
    },
    /// Nowhere: what earlier moves left in a repository is removed from it.
    Tidy(LeftByMoves),
    /// From a repository.
    Restore { choice: Choice, deletes_other_files: bool, digest: Option<String> },
    /// From the latest snapshot of a source.
    CopyOf(Origin),
    /// From a snapshot on this machine.
    Copy { cluster: String, snapshot: String, digest: Option<String> },
}

/// What stays in a repository, as it is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tidy {
    pub(crate) retain: Option<Retain>,
    pub(crate) prune_interval_days: Option<i32>,
    pub(crate) unlock: String,
}

/// What an object asks for; None: it is not ours. The error: it cannot be read at all.
pub(crate) fn read(
    direction: Direction,
    object: &Object,
    serves: Serves,
) -> Result<Option<Asked>, String> {
    match direction {
        Direction::Source => {
            let spec: ReplicationSourceSpec = read_part(object, "spec")?.unwrap_or_default();
            let status: ReplicationSourceStatus = read_part(object, "status")?.unwrap_or_default();
            Ok(source::read(&spec, serves).map(|work| Asked {
                work,
                claim: spec.source_pvc,
                trigger: spec.trigger,
                is_paused: spec.paused,
                known: Known {
                    synced: status.last_sync_time.map(|time| time.0),
                    tag: status.last_manual_sync,
                    external: status.external,
                    conditions: status.conditions,
                    restic: status.restic.unwrap_or_default(),
                    latest_image: None,
                },
            }))
        }
        Direction::Destination => {
            let spec: ReplicationDestinationSpec = read_part(object, "spec")?.unwrap_or_default();
            let status: ReplicationDestinationStatus =
                read_part(object, "status")?.unwrap_or_default();
            Ok(destination::read(&spec, serves).map(|work| Asked {
                claim: match &work {
                    Ok(Work { target: Target::Given(name), .. }) => name.clone(),
                    // Our own has the name that VolSync gives it.
                    Ok(_) | Err(_) => format!("volsync-{}-dest", name_of(object)),
                },
                work,
                trigger: spec.trigger,
                is_paused: spec.paused,
                known: Known {
                    synced: status.last_sync_time.map(|time| time.0),
                    tag: status.last_manual_sync,
                    external: status.external,
                    conditions: status.conditions,
                    restic: Default::default(),
                    latest_image: status.latest_image.map(|snapshot| snapshot.name),
                },
            }))
        }
    }
}

/// Whether a replication is ours to serve.
pub(super) fn is_ours(external: Option<&External>, serves: Serves) -> bool {
    match external.map(|external| external.provider.as_str()) {
        Some(provider) => matches!(provider, PROVIDER_COPY | PROVIDER_RESTIC),
        None => serves == Serves::Own,
    }
}

/// Those of these fields that are given, by path.
pub(super) fn given(path: &str, fields: &[(bool, &str)]) -> Vec<String> {
    let given = fields.iter().filter(|(is_given, _)| *is_given);
    given.map(|(_, name)| format!("{path}.{name}")).collect()
}

/// A parameter of an external replication, if it has a value.
pub(super) fn parameter(external: &External, key: &str) -> Option<String> {
    external.parameters.get(key).filter(|value| !value.is_empty()).cloned()
}

/// The parameters that nobody reads, by path.
pub(super) fn unread(external: &External, read: &[&str]) -> Vec<String> {
    let others = external.parameters.keys().filter(|key| !read.contains(&key.as_str()));
    others.map(|key| format!("spec.external.parameters.{key}")).collect()
}
