//! Who is calling, and what they may do: certificates, tokens, RBAC and the reviews that answer
//! about both.
//!
//! There are two sorts of identity. Hub identities come from certificates without a cluster and
//! from static tokens; they enter a logical cluster only if the hub's RBAC lets them. Cluster
//! identities come from ServiceAccount tokens and from certificates that name a cluster, and are
//! nobody anywhere else. Nothing here does HTTP, and nothing here reads a clock: time is handed in,
//! in seconds since 1970.

pub mod bootstrap;
pub mod certificates;
pub mod escalation;
pub mod identity;
pub mod private_file;
pub mod rbac;
pub mod reviews;
pub mod static_tokens;
pub mod token_request;
pub mod tokens;
pub mod validation;

mod aggregation;
mod rules;

pub(crate) use bootstrap::stable_uid;
pub use identity::{Identity, Scope};
pub use rbac::{Attributes, Decision, RoleSet};
pub use rules::Rule;

/// How far clocks may disagree before a token or a certificate is refused.
pub const LEEWAY_SECONDS: i64 = 300;
