//! A write that an API server has taken before the fence, and that reaches etcd after the rollback was verified. With
//! `settleSeconds: 0` nothing waits for it; it is found, removed, and reported.

use super::{CLUSTER, Stage, TIMEOUT, map, target};
use crate::kubernetes::link::Hold;
use crate::program::eventually;
use crate::say;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::time::Instant;

/// How often it is tried: an API server gives a write up after half a minute, and on a slow machine the rollback takes as long.
const TRIES: usize = 3;

pub(super) fn show(stage: &Stage<'_>) -> anyhow::Result<()> {
    for attempt in 1..=TRIES {
        if is_taken_back(stage, attempt)? {
            return Ok(());
        }
        say("the API server gave the write up before that; once more");
    }
    bail!("in {TRIES} tries the rollback took longer than an API server waits for etcd")
}

/// Whether a late write came into being, and was taken back.
fn is_taken_back(stage: &Stage<'_>, attempt: usize) -> anyhow::Result<bool> {
    let (late, version) = (format!("late-{attempt}"), format!("v4-{attempt}"));
    let text = format!("this is held between its admission and etcd, try {attempt}");
    let mut object = map(&late, &version);
    object["data"]["text"] = json!(text);
    stage.link.set(Hold::CallsWith(text));
    let begun = stage.audit.now()?;
    let request = stage.submit(&version, &[map("settings", "v4"), object])?;
    eventually("a write is held", TIMEOUT, || Ok(stage.link.caught() > 0))?;
    let (token, held) = (stage.token()?, Instant::now());
    say(&format!(
        "the second API server has taken the create of {late} under token {token}, and it does not reach etcd"
    ));
    stage.cancel(&request)?;
    stage.ends(&request, "RolledBack")?;
    stage.has_exactly(&target())?;
    let is_given_up = stage.link.given_up() > 0;
    if !is_given_up {
        say(&format!(
            "v4 is rolled back and that is verified, {:.1?} later, without waiting for anything to settle",
            held.elapsed()
        ));
    }
    stage.link.set(Hold::Nothing);
    if is_given_up {
        return Ok(false);
    }
    let is_it = |event: &Value| event["message"].as_str().is_some_and(|it| it.contains(&late));
    let mut event = None;
    let reason = ["events", "--field-selector", "reason=LateWriteRemoved"];
    eventually("the late write is found and removed", TIMEOUT, || {
        let events = stage.fleet.hub().get(&reason)?;
        event = events["items"].as_array().into_iter().flatten().find(|it| is_it(it)).cloned();
        Ok(event.is_some())
    })?;
    stage.has_exactly(&target())?;
    let done = stage.audit.done(begun)?;
    if !done.iter().any(|it| it.name == late && it.verb == "patch") {
        bail!("no API server says that it made {late}: {done:?}");
    }
    let event = event.context("the event was seen")?;
    let message = event["message"].as_str().unwrap_or_default();
    say(&format!("the write reaches etcd, and is taken back: LateWriteRemoved: {message}"));
    say(&format!("{CLUSTER} has exactly what the target has"));
    Ok(true)
}
