//! An applier that is stopped between its last question and its write, and wakes up after the rollback: API servers of
//! Kubernetes refuse the write.
//!
//! It must not know better when it wakes up. So it is cut off from the hub meanwhile, and its lease is taken from it, which
//! it believes to hold for minutes: a machine whose clock stands still while it is suspended believes the same.

use super::{CLUSTER, Stage, TIMEOUT, map, target};
use crate::chaos::processes::signal;
use crate::chaos::proxy::Network;
use crate::kubernetes::audit::{Asked, Mark};
use crate::program::eventually;
use crate::say;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Enough objects that it can be stopped between two of them.
const OBJECTS: usize = 180;
/// How often it is tried: whether an answer to it waits when it wakes up is a matter of chance, and it waits for
/// answers for half a minute only.
const TRIES: usize = 4;
/// How soon after it wakes up it is seen to write.
const SOON: Duration = Duration::from_secs(10);

pub(super) fn show(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    for attempt in 1..=TRIES {
        if attempt > 1 {
            stage.start_agents()?;
        }
        if wakes_up_late(stage, attempt)? {
            // From here on the other one is alone.
            stage.first = None;
            return Ok(());
        }
    }
    bail!("in {TRIES} tries no applier was stopped between its last question and its write")
}

/// What no controller of the cluster ever makes healthy: the version that has it does not succeed.
fn gate() -> Value {
    let labels = json!({"app": "gate"});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "gate", "image": "none"}]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "gate", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": pod}})
}

/// Whether it did write when it woke up, and was refused.
fn wakes_up_late(stage: &Stage<'_>, attempt: usize) -> anyhow::Result<bool> {
    let agent = stage.first.as_ref().context("the first agent runs")?.pid();
    let named = |number: usize| map(&format!("try-{attempt}-{number}"), "v3");
    let mut objects: Vec<Value> = (0..OBJECTS).map(named).collect();
    objects.extend([map("settings", "v3"), gate()]);
    let begun = stage.audit.now()?;
    let request = stage.submit(&format!("v3-{attempt}"), &objects)?;
    let Some(stopped) = stop(stage, agent, begun)? else {
        say("its applier was through before it could be stopped; once more");
        stage.cancel(&request)?;
        stage.ends(&request, "RolledBack")?;
        return Ok(false);
    };
    let token = stage.token()?;
    let (made, slept) = (stage.has()?.len(), Instant::now());
    say(&format!(
        "its applier is stopped in mid-apply of v3 under token {token}: {made} objects are on {CLUSTER}, and {} are checked \
         and not written yet",
        stopped.len()
    ));
    stage.to_hub.set(Network::Stalls);
    stage.cancel(&request)?;
    eventually("the target is the version before", TIMEOUT, || Ok(stage.token()? > token))?;
    stage.end_lease()?;
    stage.ends(&request, "RolledBack")?;
    stage.has_exactly(&target())?;
    say(&format!("another applier has rolled it back, {:.1?} later", slept.elapsed()));

    let woken = stage.audit.now()?;
    signal(agent, "CONT");
    let refused = refused(stage, woken)?;
    stage.to_hub.set(Network::Works);
    // It may have more to write.
    sleep(Duration::from_secs(3));
    let done = stage.audit.done(woken)?;
    if !done.is_empty() {
        bail!("the applier that slept wrote after the rollback: {done:?}");
    }
    stage.has_exactly(&target())?;
    let Some(first) = refused.first() else {
        say("it wakes up and writes nothing; once more");
        return Ok(false);
    };
    say(&format!(
        "it wakes up, and the API server refuses {} of its writes and takes none; the first: {}",
        refused.len(),
        first.message
    ));
    say(&format!("{CLUSTER} has exactly what the target has"));
    Ok(true)
}

/// Stops an agent once there are objects of which it knows what the server would make of them, and which it did not
/// begin to write; which. None: it was through before that.
fn stop(stage: &Stage<'_>, agent: u32, begun: Mark) -> anyhow::Result<Option<BTreeSet<String>>> {
    let submitted = Instant::now();
    while stage.audit.done(begun)?.is_empty() {
        if submitted.elapsed() > TIMEOUT {
            bail!("nothing of v3 is written within {} s", TIMEOUT.as_secs());
        }
        // All of it takes less than a second.
        sleep(Duration::from_millis(2));
    }
    loop {
        signal(agent, "STOP");
        // What is under way at the servers ends.
        eventually("the servers have answered all", TIMEOUT, || {
            Ok(stage.audit.since(begun)?.iter().all(|asked| asked.code.is_some()))
        })?;
        let asked = stage.audit.since(begun)?;
        let of = |is_dry_run: bool| {
            let all = asked.iter().filter(move |it| it.is_dry_run == is_dry_run);
            all.map(|it| it.name.clone()).collect::<BTreeSet<String>>()
        };
        let checked: BTreeSet<String> = of(true).difference(&of(false)).cloned().collect();
        if !checked.is_empty() {
            return Ok(Some(checked));
        }
        let is_through = of(false).len() >= OBJECTS;
        signal(agent, "CONT");
        if is_through {
            return Ok(None);
        }
        sleep(Duration::from_millis(10));
    }
}

/// The writes that were refused soon after a moment because they are older than the fence.
fn refused(stage: &Stage<'_>, since: Mark) -> anyhow::Result<Vec<Asked>> {
    let began = Instant::now();
    loop {
        let asked = stage.audit.since(since)?;
        let refused: Vec<Asked> =
            asked.into_iter().filter(|it| !it.is_dry_run && it.is_fenced()).collect();
        if !refused.is_empty() || began.elapsed() > SOON {
            return Ok(refused);
        }
        sleep(Duration::from_millis(200));
    }
}
