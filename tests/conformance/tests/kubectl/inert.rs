//! What is stored but does nothing here: workloads, nodes; and what is not served, refused clearly.

use crate::world::each;

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_rollout_waits_for_a_deployment_that_nobody_runs() {
    each(|k| {
        k.says("create deployment web --image=nginx", "deployment.apps/web created");
        let said = k.run("rollout status deployment/web --timeout=1s", "");
        assert_eq!(said.code, Some(1), "{said:?}");
        assert_eq!(said.out, "Waiting for deployment spec update to be observed...\n", "{said:?}");
        k.mentions("rollout history deployment/web", &["No rollout history found."]);
        k.says("rollout restart deployment/web", "deployment.apps/web restarted");
        k.says("rollout pause deployment/web", "deployment.apps/web paused");
        k.says("rollout resume deployment/web", "deployment.apps/web resumed");
        k.refuses("", "rollout undo deployment/web", &["no rollout history found"]);
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_gets_the_answer_that_no_container_runs() {
    each(|k| {
        k.says("run single --image=nginx", "pod/single created");
        let why = "pod single does not run: this server keeps pods, but runs none";
        k.fails("logs single", &format!("Error from server (NotFound): {why}"));
        k.refuses("", "exec single -- ls", &[why]);
        k.refuses("", "logs nosuch", &["(NotFound): pods \"nosuch\" not found"]);
        k.refuses("", "top pods", &["Metrics API not available"]);
        k.refuses("", "top nodes", &["Metrics API not available"]);
        if k.since(25) {
            k.ok("debug single --image=busybox");
            k.says("get pod single -o jsonpath={.spec.ephemeralContainers[0].image}", "busybox");
        }
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_cordons_taints_and_drains_a_node() {
    each(|k| {
        k.given(
            r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}"#,
            "create -f -",
            "node/n1 created",
        );
        k.table("get nodes", &["NAME STATUS ROLES AGE VERSION", "n1 Unknown <none> <age>"]);
        k.says("taint node n1 gpu=yes:NoSchedule", "node/n1 tainted");
        k.says(
            "get node n1 -o jsonpath={.spec.taints}",
            r#"[{"effect":"NoSchedule","key":"gpu","value":"yes"}]"#,
        );
        k.says("taint node n1 gpu-", "node/n1 untainted");
        k.says("cordon n1", "node/n1 cordoned");
        k.table("get nodes --no-headers", &["n1 Unknown,SchedulingDisabled <none> <age>"]);
        k.says("uncordon n1", "node/n1 uncordoned");
        k.given(
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"x"}]}}"#,
            "create -f -",
            "pod/p created",
        );
        k.refuses("", "drain n1", &["cannot delete"]);
        k.mentions("describe node n1", &["Unschedulable:      true", "Non-terminated Pods:"]);
        k.mentions(
            "drain n1 --force --grace-period=0 --timeout=30s",
            &["evicting pod default/p", "node/n1 "],
        );
        k.says("get pods -o name", "");
    });
}
