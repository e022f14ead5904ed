//! The marks that the syncer leaves on objects, and how they are read.
//!
//! Every object that it makes on a cluster carries the label [`LABEL_GRANT`] with the name of the
//! grant: an object without it is somebody else's, and is never changed nor deleted on its own.

use interlock_kernel::metadata::{annotation, label};
use kube_core::DynamicObject;

/// On every object that the syncer made on a cluster: the name of the grant.
pub const LABEL_GRANT: &str = interlock_api::names::ANNOTATION_GRANT;
/// On an object on a cluster: which object at the hub it was made from, and a digest of what it
/// said: `<uid>/<digest>`.
pub const ANNOTATION_FROM: &str = "interlock.dev/from";
/// On a claim on a cluster: the epoch that left it, and the volume that it left:
/// `<epoch>@<volume>`.
pub const ANNOTATION_LAST: &str = "interlock.dev/last";
/// On a pod that is a process: it stays until its process is seen gone, even if somebody deletes it
/// by force.
pub const FINALIZER_PROCESS: &str = "interlock.dev/process";

/// Whether the syncer made it for this grant.
pub fn is_ours(object: &DynamicObject, grant: &str) -> bool {
    label(object, LABEL_GRANT) == Some(grant)
}

/// The uid of the object at the hub that this one was made from.
pub fn from_uid(object: &DynamicObject) -> Option<&str> {
    annotation(object, ANNOTATION_FROM)?.split_once('/').map(|(uid, _)| uid)
}
