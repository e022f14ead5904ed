//! What built-in kinds do on a write: defaults, what the server decides, what is refused; all pure.
//!
//! The order on a write is [`defaults`], then [`prepare_create`] or [`prepare_update`], then
//! [`bump_generation`], then the checks. Custom kinds pass through where the same rules hold for
//! them.

mod canonical;
mod defaults;
pub(crate) mod events;
#[cfg(test)]
pub(crate) mod every_kind;
mod fields;
mod immutable;
mod prepare;
pub(crate) mod quantity;
pub(crate) mod read;
pub(crate) mod selector;
mod service;
#[cfg(test)]
mod tests;
mod validation;

pub(crate) use defaults::defaults;
pub(crate) use fields::selectable_fields;
pub(crate) use prepare::{Endpoint, bump_generation, prepare_create, prepare_update};
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
        _ => NameRule::Dns1123Subdomain,
    }
}
