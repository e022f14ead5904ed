//! Admission webhooks: other programs that change a write, or say whether it may be.
//!
//! A webhook is called before the write takes the lock of the policies, a quota or a transaction: a webhook that
//! hangs, or writes to this server while it is called, holds up nobody but the write that it is called for. Each
//! logical cluster has a limited number of writes that wait for webhooks.

mod client;
mod mutate;
mod resolve;
mod review;
mod rounds;
mod run;
mod validate;
mod validation;

pub(super) use mutate::mutate_options;
pub(crate) use mutate::{mutate, mutate_posted};
pub(crate) use rounds::Admitting;
pub(crate) use validate::validate as ask;
pub(super) use validation::configuration;

use crate::admission_registration::WebhookReach;
use crate::clusters::Cluster;
use crate::server::Server;

/// Where the webhooks of a cluster may be.
fn reach_of<'s>(server: &'s Server, cluster: &Cluster) -> &'s WebhookReach {
    if cluster.is_root() {
        &server.config().root_webhooks
    } else {
        &server.config().tenant_webhooks
    }
}

/// The flag that says where the webhooks of a cluster may be.
fn flag_of(cluster: &Cluster) -> &'static str {
    if cluster.is_root() { "--root-webhooks" } else { "--tenant-webhooks" }
}
