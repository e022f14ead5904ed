//! Updates of a cluster whose API server is that of Kubernetes: the fence is probed, and what is older than it is refused.

use super::{Fleet, TIMEOUT};
use crate::program::eventually;
use crate::say;
use anyhow::bail;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Whom the fence is for.
const APPLIER: &str = "system:interlock:applier:west";

pub(super) fn tell(fleet: &Fleet) -> anyhow::Result<()> {
    let at = fleet.at("west");
    for version in ["v1", "v2"] {
        let folder = bundle(fleet, version)?;
        let folder = folder.to_string_lossy();
        fleet.interlock(&[
            "rollout",
            "submit",
            "west",
            "--directory",
            &folder,
            "--soak",
            "0s",
            "--wait",
        ])?;
        let map = at.get(&["configmap", "settings"])?;
        if map["data"]["version"] != version {
            bail!("the update to {version} succeeded, and west has {map:#}");
        }
        let fence = fence(fleet)?;
        if fence["mode"] != "Probed" || fence["provenAt"].is_null() {
            bail!("{version} was applied without a proof of the fence: {fence:#}");
        }
        say(&format!(
            "west is updated to {version}; its fence is proven at token {}",
            fence["token"]
        ));
    }
    if !at.get(&["configmap", "--all-namespaces"])?.to_string().contains("only-v2")
        || at.kubectl(&["get", "configmap", "only-v1"]).is_ok()
    {
        bail!("west has not exactly what version 2 has");
    }
    let late = fleet.folder.join("late.yaml");
    std::fs::write(&late, late_write("only-v1", 1).to_string())?;
    let late = late.to_string_lossy();
    let words = ["create", "--as", APPLIER, "-f", &late];
    let Err(refused) = at.kubectl(&words) else { bail!("a late create was taken") };
    if !format!("{refused:#}").contains("Fenced: the write has token 1") {
        return Err(refused.context("a late create was refused for another reason"));
    }
    say("a create under an older token is refused by the API server of Kubernetes");
    fleet.interlock(&["rollout", "rollback", "west", "--to", "1", "--wait"])?;
    eventually("west is back at v1", TIMEOUT, || {
        let map = at.get(&["configmap", "settings"])?;
        Ok(map["data"]["version"] == "v1" && at.kubectl(&["get", "configmap", "only-v2"]).is_err())
    })?;
    say("west is back at v1, and nothing of v2 is left");
    Ok(())
}

/// A folder with a bundle of a version.
fn bundle(fleet: &Fleet, version: &str) -> anyhow::Result<PathBuf> {
    let folder = fleet.folder.join(version);
    std::fs::create_dir_all(&folder)?;
    for name in ["settings".to_owned(), format!("only-{version}")] {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"version": version},
            "metadata": {"name": name, "namespace": "default"}});
        std::fs::write(folder.join(format!("{name}.json")), map.to_string())?;
    }
    Ok(folder)
}

/// What an applier would write that slept while the target changed.
pub(super) fn late_write(name: &str, token: i64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": name, "namespace": "default", "labels": {"interlock.dev/rollout": "any"},
        "annotations": {
            "interlock.dev/id": format!("/ConfigMap/default/{name}"),
            "interlock.dev/token": token.to_string(),
        },
    }})
}

/// What the agent of west says of its fence.
fn fence(fleet: &Fleet) -> anyhow::Result<Value> {
    let reports = fleet.hub().get(&["rolloutreports"])?;
    let mut reports = reports["items"].as_array().cloned().unwrap_or_default();
    let of_west = reports.iter_mut().find(|it| it["spec"]["cluster"]["name"] == "west");
    Ok(of_west.map(|report| report["status"]["fence"].take()).unwrap_or_default())
}
