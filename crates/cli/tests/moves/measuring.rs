//! Each program says what it counts, also where it serves nothing else.

use super::fleet::{CONTROLLERS, Fleet, until};
use serde_json::json;

#[test]
fn programs_that_run_alone_serve_what_they_count() {
    let fleet = Fleet::of(&["west"]);
    let controllers = fleet.metrics(CONTROLLERS);
    assert!(controllers.contains("placement/scheduler"), "{controllers}");
    let within = "/clusters/west/apis/volsync.backube/v1alpha1/namespaces/interlock-system";
    let path = format!("{within}/replicationsources");
    let restic = json!({"repository": "none", "copyMethod": "Snapshot"});
    let spec = json!({"sourcePVC": "data", "trigger": {"manual": "a"}, "restic": restic});
    let source = json!({
        "apiVersion": "volsync.backube/v1alpha1", "kind": "ReplicationSource",
        "metadata": {"name": "data"}, "spec": spec,
    });
    fleet.client().must("POST", &path, Some(&source));
    let line = "volsync_volume_out_of_sync{cluster=\"west\",obj_name=\"data\",\
                obj_namespace=\"interlock-system\",role=\"source\",method=\"restic\"} 1";
    until("the syncer counts it", || {
        let page = fleet.metrics("west");
        if page.contains(line) { Ok(()) } else { Err(page) }
    });
    fleet.end(&[]);
}
