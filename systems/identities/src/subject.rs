//! Objects in namespaces as the subjects of steps.

use interlock_kernel::metadata::{name_of, namespace_of};
use interlock_kernel::{Name, Object, Subject};
use std::ops::Deref;

/// `<namespace>/<name>`
pub(crate) fn subject_of(object: &Object) -> Subject {
    format!("{}/{}", namespace_of(object), name_of(object)).into()
}

/// The name of the object that a step is about.
pub(crate) fn name_in(subject: &Subject) -> Option<Name> {
    let (namespace, name) = subject.split_once('/')?;
    Some(Name::within(namespace, name))
}

/// An object as a cache has it.
pub(crate) type Cached = <Object as Deref>::Target;

/// Whether nothing but the end of a mark is new, under which the cloud was found as declared. It is compared again
/// with the next resync.
pub(crate) fn is_only_unmarked(before: &Cached, after: &Cached) -> bool {
    let mark = |object: &Cached| object.data["status"]["mark"].clone();
    let rest = |object: &Cached| {
        let mut data = object.data.clone();
        if let Some(status) = data["status"].as_object_mut() {
            status.remove("mark");
        }
        let mut metadata = object.metadata.clone();
        (metadata.resource_version, metadata.managed_fields) = (None, None);
        (data, metadata)
    };
    mark(before)["settled"] == true && mark(after).is_null() && rest(before) == rest(after)
}

/// Whether it is the same object, and as much being deleted.
pub(crate) fn is_same_object(before: &Cached, after: &Cached) -> bool {
    before.metadata.uid == after.metadata.uid
        && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
}
