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

/// Whether it is the same object, and as much being deleted.
pub(crate) fn is_same_object(before: &Cached, after: &Cached) -> bool {
    before.metadata.uid == after.metadata.uid
        && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
}
