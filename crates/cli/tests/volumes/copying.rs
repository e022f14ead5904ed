//! The latest snapshot of a source is copied into another claim, without any repository.

use super::contents::{fill, same};
use super::harness::until;
use super::up::{Space, Up, condition};
use serde_json::{Value, json};

const SOURCE: &str = "ReplicationSource";
const DESTINATION: &str = "ReplicationDestination";

fn copy(space: &Space<'_>, name: &str, parameters: &Value) {
    let mut all = json!({"capacity": "16Mi", "accessModes": "ReadWriteOnce"});
    for (key, value) in parameters.as_object().expect("parameters") {
        all[key] = value.clone();
    }
    let external = json!({"provider": "interlock.dev/copy", "parameters": all});
    let spec = json!({"trigger": {"manual": "now"}, "external": external});
    space.create(DESTINATION, &json!({"metadata": {"name": name}, "spec": spec}));
}

#[test]
fn the_latest_snapshot_of_a_source_fills_another_claim_and_is_nobody_elses() {
    let up = Up::start();
    let shop = up.namespace("shop");
    copy(&shop, "back", &json!({"source": "shop/data@west"}));
    let message = shop.fails(DESTINATION, "back", "SourceMissing");
    assert!(message.contains("ReplicationSource data does not exist"), "{message}");
    shop.claim("data", "16Mi");
    fill(&shop.bound("data"), 7);
    let external = json!({"provider": "interlock.dev/copy"});
    let spec = json!({"sourcePVC": "data", "trigger": {"manual": "a"}, "external": external});
    shop.create(SOURCE, &json!({"metadata": {"name": "data"}, "spec": spec}));
    let source = shop.answers(SOURCE, "data", "a");
    shop.answers(DESTINATION, "back", "now");
    shop.claim_of("back", "copy", &json!({}));
    let (wanted, found) = (shop.contents("data"), shop.contents("copy"));
    same(&wanted, &found);

    // Another namespace does not get it, however it is named.
    let bank = up.namespace("bank");
    let west = up.get("/apis/interlock.dev/v1alpha1/workloadclusters/west");
    let uid = &source["status"]["external"]["snapshotUID"];
    for (name, parameters, word) in [
        ("by-name", json!({"source": "shop/data"}), "namespace shop is not bank"),
        ("elsewhere", json!({"source": "bank/data@east"}), "another cluster"),
        (
            "by-uid",
            json!({"cluster": west["metadata"]["uid"], "snapshotUID": uid}),
            "belongs to another namespace",
        ),
    ] {
        copy(&bank, name, &parameters);
        until(&format!("{name} is refused"), || {
            let object = bank.get(DESTINATION, name);
            let accepted = condition(&object, "interlock.dev/Accepted");
            let message = accepted["message"].as_str().unwrap_or_default();
            let is_said = accepted["status"] == "False" && message.contains(word);
            if is_said { Ok(()) } else { Err(format!("{object:#}")) }
        });
    }
    assert!(bank.all("PersistentVolumeClaim").is_empty() && bank.all("VolumeSnapshot").is_empty());
}
