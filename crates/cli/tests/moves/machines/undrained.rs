//! A machine whose cluster is not drained in time.

use super::fenced::typed;
use super::{fleet, is, node, open_for, uid, west_on_a_machine};
use crate::fleet::{GROUP, condition, until};
use serde_json::json;

#[test]
fn past_the_deadline_of_a_drain_the_network_stays_until_a_person_fences_the_machine() {
    let up = fleet();
    let west = west_on_a_machine(&up);
    up.run(&["node", "reclaim", "n1"]);
    until("west says what keeps it", || {
        let cluster = up.get(&west);
        let said = condition(&cluster, "Drained");
        let is_said = said["status"] == "False" && said["reason"] == "GrantsLeft";
        if is_said { Ok(()) } else { Err(format!("{cluster:#}")) }
    });
    let before = condition(&node(&up, "n1"), "ReleaseBlocked");
    assert_ne!(before["status"], "True", "the deadline is an hour: {before:#}");
    let deadline = json!({"spec": {"fencing": {"drainSeconds": 1}}});
    up.process.client().must("PATCH", &format!("{GROUP}/racks/r1"), Some(&deadline));
    let blocked = until("the release is blocked", || {
        let found = node(&up, "n1");
        let said = condition(&found, "ReleaseBlocked");
        let is_said = said["status"] == "True" && said["reason"] == "NotDrained";
        if is_said { Ok(found) } else { Err(format!("{found:#}\n{}", up.process.says())) }
    });
    assert_eq!(blocked["status"]["phase"], "Draining");
    let said = condition(&blocked, "ReleaseBlocked");
    let message = said["message"].as_str().unwrap_or_default();
    assert!(message.contains("WorkloadCluster west on node n1 is not drained"), "{message}");
    assert!(message.contains("keeps its network"), "{message}");

    // Another tenant asks for the machine, and its own one asks for it no more. The deadline is for a person: nothing ends.
    up.run(&["node", "assign", "blue/web", "--count", "0"]);
    up.run(&["node", "assign", "green/web", "--machine", "n1"]);
    until("the claim of green finds no machine", || {
        let claim = up.get(&format!("/clusters/green{GROUP}/nodeclaims/web"));
        let said = condition(&claim, "Bound");
        if said["reason"] == "NoNodeAvailable" { Ok(()) } else { Err(format!("{claim:#}")) }
    });
    let (blue, green) = (uid(&up, "tenants/blue"), uid(&up, "tenants/green"));
    let kept = node(&up, "n1");
    assert_eq!(
        (&kept["status"]["phase"], &kept["status"]["floor"]),
        (&json!("Draining"), &json!(0))
    );
    assert_eq!(open_for(&up, "r1.d1", "p1"), Some(blue));

    let next = said["next"].as_str().expect("it says what to do");
    assert!(next.contains("node fence n1 --epoch 1 --attest machine-powered-off"), "{next}");
    let fenced = typed(&up, next);
    assert_eq!(fenced.code, Some(0), "{fenced:?}\n{}", up.process.says());
    until("the machine is green's", || {
        let found = node(&up, "n1");
        let assigned = &found["status"]["assignment"];
        let is_its = assigned["tenant"]["name"] == "green" && assigned["epoch"] == 2;
        let is_open = open_for(&up, "r1.d1", "p1").as_deref() == Some(green.as_str());
        if is_its && is_open { Ok(()) } else { Err(format!("{found:#}\n{}", up.process.says())) }
    });
    assert_eq!(is(&up, "n1", "Bound")["status"]["floor"], 1);
    up.delete("/api/v1/namespaces/shop");
    up.end();
}
