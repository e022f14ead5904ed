//! Tenants who ask for too much, write what is not theirs to write, and forge: each gets its own reason, and nothing is
//! programmed.

use super::{fleet, is, node, object, open_for, post, uid, wired};
use crate::fleet::{GROUP, condition, until};
use crate::registering::Up;
use interlock_api::nodes::LABEL_DPU;
use serde_json::{Value, json};

/// Where the objects of a tenant are.
fn in_plane(tenant: &str, path: &str) -> String {
    format!("/clusters/{tenant}{GROUP}/{path}")
}

/// Waits until a condition of an object has this reason; the condition.
fn says(up: &Up, path: &str, kind: &str, reason: &str) -> Value {
    until(&format!("{kind} of {path} says {reason}"), || {
        let found = up.get(path);
        let said = condition(&found, kind);
        let is_said = said["reason"] == reason && said["status"] == "False";
        if is_said { Ok(said) } else { Err(format!("{found:#}\n{}", up.process.says())) }
    })
}

/// A claim that asks for one machine more than its tenant may have, though that machine is free.
fn over_quota(up: &Up) {
    let more = object("NodeClaim", "more", &json!({"count": 1, "nodeNames": ["n3"]}));
    up.process.client().must("POST", &in_plane("green", "nodeclaims"), Some(&more));
    let said = says(up, &in_plane("green", "nodeclaims/more"), "Accepted", "OverQuota");
    assert_eq!(
        said["message"],
        "Tenant green may have 1 nodes and has 1; NodeClaim more wants 1 more"
    );
    assert!(said["next"].as_str().is_some_and(|next| next.contains("nodeQuota")), "{said}");
}

/// The status of a claim says that a free machine is chosen, and that another tenant's is its own.
fn tampered(up: &Up) {
    let [free, of_blue] = ["n3", "n2"].map(|name| uid(up, &format!("physicalnodes/{name}")));
    let nodes = json!([{"name": "n3", "uid": free, "state": "Chosen"},
        {"name": "n2", "uid": of_blue, "epoch": 1, "state": "Bound"}]);
    let status = json!({"status": {"nodes": nodes}});
    let claim = in_plane("green", "nodeclaims/more");
    up.process.client().must("PATCH", &format!("{claim}/status"), Some(&status));
    until("the claim lists nothing that is not its own", || {
        let found = up.get(&claim);
        let listed = found["status"]["nodes"].as_array().cloned().unwrap_or_default();
        let states: Vec<_> = listed.iter().map(|it| (&it["name"], &it["state"])).collect();
        let is_right = states == [(&json!("n2"), &json!("Released"))];
        if is_right { Ok(()) } else { Err(format!("{found:#}\n{}", up.process.says())) }
    });
    says(up, &claim, "Accepted", "OverQuota");
}

/// An attachment that asks the DPU for a port of another tenant's machine.
fn forged(up: &Up) {
    // Of a claim that there is, the attachment would be deleted as one that the claim does not have.
    let claim = json!({"name": "invented", "uid": "invented"});
    let machine = json!({"name": "n1", "uid": uid(up, "physicalnodes/n1")});
    let spec = json!({"node": machine, "rack": "r1", "dpu": "d1", "epoch": 1, "claim": claim});
    let mut attachment = object("DpuAttachment", "n1.d1.1", &spec);
    attachment["metadata"]["labels"] = json!({LABEL_DPU: "r1.d1"});
    let path = in_plane("blue", "dpuattachments");
    up.process.client().must("POST", &path, Some(&attachment));
    for kind in ["Programmed", "Superseded"] {
        let said = says(up, &format!("{path}/n1.d1.1"), kind, "NotAssigned");
        let message = said["message"].as_str().unwrap_or_default();
        // Whose it is otherwise is not for this tenant to know.
        assert!(message.contains("delete DpuAttachment n1.d1.1"), "{message}");
        assert!(!message.contains("green"), "{message}");
    }
    until("the hub has heard of it", || {
        let events = up.get("/apis/events.k8s.io/v1/events");
        let mut all = events["items"].as_array().into_iter().flatten();
        let is_it = |event: &Value| {
            event["reason"] == "AttachmentRefused" && event["regarding"]["name"] == "blue"
        };
        if all.any(is_it) { Ok(()) } else { Err(format!("{events:#}")) }
    });
}

/// A claim that vanishes without having given its machine back: somebody took the finalizer off it.
fn stripped(up: &Up) {
    let claim = in_plane("blue", "nodeclaims/web");
    until("the claim is gone without its finalizer", || {
        let bare = json!({"metadata": {"finalizers": null}});
        let changed = up.process.client().must("PATCH", &claim, Some(&bare));
        // Only as it was changed: the controller of claims puts it on again.
        let version = &changed["metadata"]["resourceVersion"];
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"resourceVersion": version}});
        let answer = up.process.client().call("DELETE", &claim, Some(&options));
        let answer = answer.expect("the server answers");
        if answer.status == 200 { Ok(()) } else { Err(answer.text) }
    });
    assert!(up.get(&claim).is_null());
    says(up, &format!("{GROUP}/physicalnodes/n2"), "ClaimPresent", "ClaimMissing");
}

#[test]
fn what_a_tenant_may_not_have_or_write_gets_its_own_reason_and_nothing_is_programmed() {
    let up = fleet();
    post(&up, "physicalnodes", &object("PhysicalNode", "n3", &wired("r1", &[("d1", "p3")])));
    let one = json!({"spec": {"nodeQuota": 1}});
    up.process.client().must("PATCH", &format!("{GROUP}/tenants/green"), Some(&one));
    for name in ["n1", "n2", "n3"] {
        is(&up, name, "Available");
    }
    for (claim, machine) in [("green/web", "n1"), ("blue/web", "n2")] {
        up.run(&["node", "assign", claim, "--machine", machine, "--wait", "--timeout", "120s"]);
    }
    over_quota(&up);
    tampered(&up);
    forged(&up);
    stripped(&up);
    let (blue, green) = (uid(&up, "tenants/blue"), uid(&up, "tenants/green"));
    let ports = [("r1.d1", "p1"), ("r1.d1", "p2"), ("r1.d2", "p1"), ("r1.d1", "p3")];
    let open = ports.map(|(dpu, port)| open_for(&up, dpu, port));
    assert_eq!(open, [Some(green), Some(blue.clone()), Some(blue), None]);
    for (name, phase, epoch) in [("n1", "Bound", 1), ("n2", "Bound", 1), ("n3", "Available", 0)] {
        let found = node(&up, name);
        assert_eq!(found["status"]["phase"], phase, "{found:#}");
        assert_eq!(found["status"]["epoch"], epoch, "{found:#}");
    }
    up.end();
}
