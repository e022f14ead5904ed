//! irsa-operator's kinds, `irsa.voodoo.io/v1alpha1`: a cloud role for a service account.
//!
//! The wire format is irsa-operator's: each object that it accepts is valid here, and `status.condition`
//! and `status.reason` have its words. Every other field is optional. Which fields have an effect is the
//! business of the system identities.

#![allow(
    unreachable_pub,
    reason = "the derived schemas hold a copy of each struct inside of a function, with its pub"
)]
#![allow(
    clippy::duplicated_attributes,
    reason = "every printer column has a type, and several have the same"
)]

mod account;
pub mod condition;
mod mark;
mod policy;
mod role;
mod statement;

pub use account::{IamRoleServiceAccount, IamRoleServiceAccountSpec, IamRoleServiceAccountStatus};
pub use mark::{Adopt, DeletionPolicy, Mark, OldCondition};
pub use policy::{Policy, PolicySpec, PolicyStatus};
pub use role::{Fence, Role, RoleSpec, RoleStatus};
pub use statement::{DeclaredPolicy, Effect, Statement};

/// The API group of irsa-operator's kinds.
pub const GROUP: &str = "irsa.voodoo.io";

/// The version of irsa-operator's kinds.
pub const VERSION: &str = "v1alpha1";

/// On an IamRoleServiceAccount: it stays while something that it asked for exists.
pub const FINALIZER_IRSA: &str = "irsa.irsa.voodoo.io";
/// On a Policy: it stays while its cloud policy exists or may still be created.
pub const FINALIZER_POLICY: &str = "policy.irsa.voodoo.io";
/// On a Role: it stays while its cloud role exists or may still be created.
pub const FINALIZER_ROLE: &str = "role.irsa.voodoo.io";

/// On a ServiceAccount: the role that its pods assume.
pub const ANNOTATION_ROLE_ARN: &str = "eks.amazonaws.com/role-arn";
/// On a ServiceAccount that Interlock manages.
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`LABEL_MANAGED_BY`].
pub const MANAGED_BY: &str = "interlock";

/// The tag of a cloud object: the fleet that it belongs to.
pub const TAG_FLEET: &str = "interlock.dev/fleet";
/// The tag of a cloud object: the object that it was made for, `role/<namespace>/<name>`.
pub const TAG_OWNER: &str = "interlock.dev/owner";
/// The tag of a cloud object: the uid of that object, which decides whose it is.
pub const TAG_OWNER_UID: &str = "interlock.dev/owner-uid";
