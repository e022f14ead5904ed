//! A tenant whose control plane is a server of its own.

use super::{fleet, is, node, object, open_for, post, programmed, uid};
use crate::fleet::{GROUP, until, write_kubeconfig};
use crate::harness::{DataDirectory, TOKEN};
use crate::registering::Up;
use serde_json::json;

/// Whom both ports of n2 are open for.
fn opened(up: &Up) -> [Option<String>; 2] {
    [("r1.d1", "p2"), ("r1.d2", "p1")].map(|(dpu, port)| open_for(up, dpu, port))
}

#[test]
fn a_programmed_machine_is_reclaimed_while_the_control_plane_of_its_tenant_is_down() {
    let up = fleet();
    let at = DataDirectory::new();
    let mut plane = at.start();
    let kubeconfig = at.path("config");
    write_kubeconfig(&kubeconfig, &plane.address().to_string(), TOKEN);
    let text = std::fs::read_to_string(&kubeconfig).expect("it was written");
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "tenant-far", "namespace": "interlock-system"},
        "stringData": {"kubeconfig": text}});
    let secrets = "/api/v1/namespaces/interlock-system/secrets";
    up.process.client().must("POST", secrets, Some(&secret));
    let named = json!({"namespace": "interlock-system", "name": "tenant-far"});
    let far = json!({"plane": {"kubeconfigSecret": named}});
    post(&up, "tenants", &object("Tenant", "far", &far));
    let claim = object("NodeClaim", "web", &json!({"count": 1, "nodeNames": ["n2"]}));
    plane.client().must("POST", &format!("{GROUP}/nodeclaims"), Some(&claim));
    programmed(&up, "n2");
    let (first, green) = (uid(&up, "tenants/far"), uid(&up, "tenants/green"));
    assert_eq!(opened(&up), [Some(first.clone()), Some(first)]);

    plane.kill();
    up.run(&["node", "reclaim", "n2", "--wait", "--timeout", "120s"]);
    let back = is(&up, "n2", "Available");
    assert_eq!((&back["status"]["epoch"], &back["status"]["floor"]), (&json!(1), &json!(1)));
    assert!(
        back["status"]["fenced"].as_array().is_none_or(Vec::is_empty),
        "nobody declared anything"
    );
    assert_eq!(opened(&up), [None, None]);
    up.run(&["node", "assign", "green/web", "--machine", "n2", "--wait", "--timeout", "120s"]);
    assert_eq!(opened(&up), [Some(green.clone()), Some(green.clone())]);

    // What the plane says when it is back is of an epoch that is over. The machine stays where it is.
    let plane = at.start_again_on(plane.address());
    until("the claim knows that its machine is gone", || {
        let claims = format!("{GROUP}/nodeclaims/web");
        let claim = plane.client().must("GET", &claims, None);
        let listed = claim["status"]["nodes"].as_array().cloned().unwrap_or_default();
        let is_bound = listed.iter().any(|entry| entry["state"] == "Bound");
        if is_bound { Err(format!("{claim:#}")) } else { Ok(()) }
    });
    assert_eq!(node(&up, "n2")["status"]["epoch"], 2);
    assert_eq!(opened(&up), [Some(green.clone()), Some(green)]);
    up.end();
}
