//! What built-in kinds do on a write: defaults, what the server decides, what is refused; all pure.
//!
//! The order on a write is [`defaults`], then [`prepare_create`] or [`prepare_update`], then
//! [`bump_generation`], then the checks. Custom kinds pass through where the same rules hold for
//! them.

mod canonical;
mod certificates;
mod defaults;
pub(crate) mod events;
#[cfg(test)]
pub(crate) mod every_kind;
mod faces;
mod fields;
mod immutable;
mod prepare;
pub(crate) mod read;
pub(crate) mod selector;
mod service;
#[cfg(test)]
mod tests;
mod validation;

pub(crate) use canonical::canonicalize;
pub(crate) use certificates::is_signed_anew;
pub(crate) use defaults::defaults;
pub(crate) use faces::{from_face, has_face, rename_managed, to_face};
pub(crate) use fields::selectable_fields;
pub(crate) use prepare::{
    Endpoint, bump_generation, complete_create, prepare_create, prepare_update,
};
pub(crate) use validation::{validate, validate_create, validate_update};

use crate::name::NameRule;
use crate::resource::Resource;

/// Which rule the names of a kind's objects follow.
pub(crate) fn name_rule(resource: &Resource) -> NameRule {
    if resource.is_custom() {
        return NameRule::Dns1123Subdomain;
    }
    match (&*resource.group, &*resource.kind) {
        ("", "Namespace") | ("apps", "StatefulSet") => NameRule::Dns1123Label,
        ("", "Service") => NameRule::Dns1035Label,
        // Core events are not checked by any rule but that of the path they are found at.
        ("", "Event") | ("rbac.authorization.k8s.io", _) => NameRule::PathSegment,
        ("certificates.k8s.io", "CertificateSigningRequest") => NameRule::PathSegment,
        ("apiregistration.k8s.io", "APIService") => NameRule::PathSegment,
        ("networking.k8s.io", "IPAddress") => NameRule::Address,
        _ => NameRule::Dns1123Subdomain,
    }
}

/// Whether the finalizers of this kind must say whose they are. Custom kinds and those of the extension servers do not
/// ask for it.
pub(crate) fn has_standard_finalizers(resource: &Resource) -> bool {
    !resource.is_custom()
        && !matches!(
            &*resource.group,
            "apiextensions.k8s.io" | "apiregistration.k8s.io" | "admissionregistration.k8s.io"
        )
}

/// Whether an update makes an object of this kind if there is none, as upstream has it.
pub(crate) fn may_be_put(resource: &Resource) -> bool {
    if resource.is_custom() {
        return false;
    }
    matches!(
        (&*resource.group, &*resource.kind),
        ("", "Endpoints" | "Event" | "LimitRange" | "Service")
            | ("events.k8s.io", "Event")
            | ("coordination.k8s.io", "Lease")
            | ("node.k8s.io", "RuntimeClass")
            | ("rbac.authorization.k8s.io", _)
    )
}

/// Whether an update of this kind that names no version overwrites whatever is there.
pub(crate) fn may_be_overwritten(resource: &Resource) -> bool {
    if resource.is_custom() {
        return false;
    }
    !matches!(
        (&*resource.group, &*resource.kind),
        ("admissionregistration.k8s.io" | "apiextensions.k8s.io" | "coordination.k8s.io", _)
            | ("snapshot.storage.k8s.io" | "storagemigration.k8s.io", _)
            | ("node.k8s.io", "RuntimeClass")
            | ("policy", "PodDisruptionBudget")
            | (
                "storage.k8s.io",
                "CSIDriver" | "CSINode" | "CSIStorageCapacity" | "VolumeAttachment"
            )
    )
}
