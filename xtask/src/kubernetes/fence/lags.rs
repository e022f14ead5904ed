//! An API server that does not see the new fence yet: nothing is written until it does.

use super::{APPLIER, CLUSTER, Stage, TIMEOUT, target};
use crate::kubernetes::link::Hold;
use crate::kubernetes::servers::Server;
use crate::kubernetes::updates::late_write;
use crate::program::eventually;
use crate::say;
use anyhow::bail;
use interlock_api::rollouts::{FENCE_NAME, SYSTEM_NAMESPACE};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// For how long nothing must be written. An update of this size takes a few seconds.
const HELD: Duration = Duration::from_secs(20);

pub(super) fn show(stage: &Stage<'_>) -> anyhow::Result<()> {
    let (old, begun) = (stage.token()?, stage.audit.now()?);
    stage.link.set(Hold::Watches);
    let request = stage.submit("v2", &target())?;
    eventually("the fence is raised", TIMEOUT, || Ok(fence(&stage.servers[0])? > old))?;
    is_behind(stage, old)?;
    say(&format!(
        "the fence is raised; the second API server still takes a write under token {old}, which the first one refuses"
    ));
    eventually("the agent sees that a server takes older writes", TIMEOUT, || {
        stage.has_said("first", "takes older writes")
    })?;
    sleep(HELD);
    is_behind(stage, old)?;
    let done = stage.audit.done(begun)?;
    if !done.is_empty() {
        bail!("written before the fence was proven on both servers: {done:?}");
    }
    let said = stage.about("rolloutreports")?["status"]["fence"].take();
    if !said["provenAt"].is_null() && said["token"] != old {
        bail!("a fence that one server does not see counts as proven: {said:#}");
    }
    say(&format!("nothing is written to {CLUSTER} for {} s", HELD.as_secs()));
    let released = Instant::now();
    stage.link.set(Hold::Nothing);
    stage.ends(&request, "Succeeded")?;
    let took = released.elapsed();
    stage.has_exactly(&target())?;
    let fence = stage.about("rolloutreports")?["status"]["fence"].take();
    if fence["mode"] != "Probed" || fence["provenAt"].is_null() || fence["token"] != old + 1 {
        bail!("v2 was applied without a proof of the fence: {fence:#}");
    }
    let counts = stage.audit.counts(begun)?;
    if counts.contains(&0) {
        bail!("the agent is to use both API servers, and they have {counts:?} of its requests");
    }
    say(&format!(
        "the second API server sees the fence: {CLUSTER} is updated to v2 {took:.1?} later; the servers answered {} and {} \
         requests of the agent about ConfigMaps",
        counts[0], counts[1]
    ));
    Ok(())
}

/// Whether a write under this token is refused by the first server, and taken by the second.
fn is_behind(stage: &Stage<'_>, token: i64) -> anyhow::Result<()> {
    let file = stage.fleet.folder.join(format!("{CLUSTER}-late.json"));
    std::fs::write(&file, late_write("of-a-late-applier", token).to_string())?;
    let file = file.to_string_lossy();
    let words = ["create", "--dry-run=server", "--as", APPLIER, "--filename", &file];
    let [first, second] = &stage.servers;
    match first.kubectl(&words) {
        Ok(_) => bail!("the first server takes a write under token {token}"),
        Err(refused) if format!("{refused:#}").contains("Fenced: the write has token") => {}
        Err(refused) => return Err(refused.context("it was refused for another reason")),
    }
    second.kubectl(&words).map(drop).map_err(|refused| {
        refused.context("what the second server sees is not held back: it refuses a late write")
    })
}

/// The token of the fence, as a server reads it from etcd.
fn fence(server: &Server) -> anyhow::Result<i64> {
    let words = ["--namespace", SYSTEM_NAMESPACE, "configmap", FENCE_NAME];
    let fence = server.get(&words)?;
    let token = fence["data"]["token"].as_str().and_then(|token| token.parse().ok());
    Ok(token.unwrap_or(0))
}
