//! Connections to pods: who runs a command in one, attaches to it or reaches its ports passes admission first.

use super::judge::judge;
use super::request::{Change, Operation};
use super::webhooks::{self, Admitting};
use crate::call::Call;
use crate::status::Status;
use serde_json::Value;
use std::sync::Arc;

/// Whether somebody may connect with these options (a PodExecOptions, say). Gives the options as mutating webhooks
/// made them. As upstream, it comes before the pod is looked for: a refusal says nothing about it.
///
/// What the policies judged by need not stay as it is: nothing is committed.
pub(crate) async fn connect(call: &mut Call, options: Value) -> Result<Arc<Value>, Status> {
    let options = webhooks::mutate_options(call, options).await?;
    let change = Change { operation: Operation::Connect, old: None, new: None };
    webhooks::ask(call, &change, &mut Admitting::new(call)).await?;
    judge(call, &change).await?;
    Ok(options)
}
