//! `interlock rollout cancel`: ends a request.

use super::Common;
use super::picture::RequestRow;
use super::record::{open, request};
use super::wait::{Waiting, answer, until_ended};
use interlock_api::rollouts::ClusterUpdate;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::process::ExitCode;

/// Options of `rollout cancel`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The ClusterUpdate: NAME, or NAMESPACE/NAME
    #[arg(value_name = "REQUEST")]
    request: String,
    /// The namespace of the request
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: String,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let hub = open(&args.common).await?;
    let found = request(&hub, &args.namespace, &args.request).await?;
    if found.status_or_default().phase.is_terminal() {
        // An outcome never changes, so there is nothing to write.
        return answer(args.common.output, &RequestRow::from(&found), true);
    }
    let namespace = found.namespace().unwrap_or_default();
    let updates: Api<ClusterUpdate> = Api::namespaced(hub.client.clone(), &namespace);
    // The uid keeps a request that was created again under the name out of this.
    let change = json!({"metadata": {"uid": found.uid()}, "spec": {"cancel": true}});
    let written =
        updates.patch(&found.name_any(), &PatchParams::default(), &Patch::Merge(&change)).await;
    let written = written.map_err(|error| hub.told(error, "write the ClusterUpdate"))?;
    let last = match args.waiting.is_wanted() {
        true => until_ended(&hub, &written, &args.waiting).await?,
        false => written,
    };
    let has_ended = last.status_or_default().phase.is_terminal();
    answer(args.common.output, &RequestRow::from(&last), has_ended || !args.waiting.is_wanted())
}
