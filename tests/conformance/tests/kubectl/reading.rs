//! Finding out what is there: versions, kinds, lists, descriptions, watches.

use crate::world::{TestServer, each};

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_finds_out_what_the_server_is_and_serves() {
    each(|k| {
        let version: serde_json::Value =
            serde_json::from_str(&k.ok("version --output=json")).expect("kubectl prints JSON");
        assert_eq!(version["serverVersion"]["gitVersion"], "v1.35.0+interlock");

        let versions = k.ok("api-versions");
        for served in ["apps/v1", "interlock.dev/v1alpha1", "rbac.authorization.k8s.io/v1", "v1"] {
            assert!(versions.lines().any(|line| line == served), "no {served} in {versions}");
        }
        k.table(
            "api-resources --api-group=apps",
            &[
                "NAME SHORTNAMES APIVERSION NAMESPACED KIND",
                "controllerrevisions apps/v1 true ControllerRevision",
                "daemonsets ds apps/v1 true DaemonSet",
                "deployments deploy apps/v1 true Deployment",
                "replicasets rs apps/v1 true ReplicaSet",
                "statefulsets sts apps/v1 true StatefulSet",
            ],
        );
        k.says(
            "api-resources --namespaced=false --verbs=deletecollection --api-group=node.k8s.io -o name",
            "runtimeclasses.node.k8s.io",
        );
        k.mentions("cluster-info", &["is running at", "https://127.0.0.1:"]);
        k.table(
            "config get-contexts",
            &["CURRENT NAME CLUSTER AUTHINFO NAMESPACE", "* root root interlock-admin"],
        );
        k.says("get --raw /readyz", "ok");
        k.fails("get nosuch", "error: the server doesn't have a resource type \"nosuch\"");
    });
}

fn five_maps(k: &TestServer) {
    for number in 1..=5 {
        let made = format!("configmap/c{number} created");
        k.says(&format!("create configmap c{number} --from-literal=n={number}"), &made);
    }
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_get_shows_objects_in_every_form() {
    each(|k| {
        five_maps(k);
        k.says("label configmap c1 c2 tier=front", "configmap/c1 labeled\nconfigmap/c2 labeled");

        let all = [
            "NAME DATA AGE",
            "c1 1 <age>",
            "c2 1 <age>",
            "c3 1 <age>",
            "c4 1 <age>",
            "c5 1 <age>",
            "kube-root-ca.crt 1 <age>",
        ];
        k.table("get configmaps", &all);
        k.table("get configmaps -o wide", &all);
        k.table("get configmaps --chunk-size=2", &all);
        k.table("get cm/c1 secret/nosuch --ignore-not-found", &["NAME DATA AGE", "c1 1 <age>"]);
        k.table("get cm c1 --show-labels --no-headers", &["c1 1 <age> tier=front"]);
        k.table("get cm c1 c3 -L tier", &["NAME DATA AGE TIER", "c1 1 <age> front", "c3 1 <age>"]);
        k.says("get cm -l tier=front -o name", "configmap/c1\nconfigmap/c2");
        k.says(
            "get cm -l '!tier,metadata notin (x)' -o name",
            "configmap/c3\nconfigmap/c4\nconfigmap/c5\nconfigmap/kube-root-ca.crt",
        );
        k.table(
            "get cm -A --field-selector metadata.name=c4",
            &["NAMESPACE NAME DATA AGE", "default c4 1 <age>"],
        );
        k.says("get cm c4 -o jsonpath={.data.n}/{.metadata.namespace}", "4/default");
        k.says(
            "get cm -l tier --sort-by={.data.n} -o custom-columns=NAME:.metadata.name,N:.data.n",
            "NAME   N\nc1     1\nc2     2",
        );
        k.says("get cm c4 -o go-template={{.kind}}", "ConfigMap");

        let json: serde_json::Value =
            serde_json::from_str(&k.ok("get cm c4 -o json")).expect("kubectl prints JSON");
        assert_eq!(json["data"], serde_json::json!({"n": "4"}));
        assert_eq!(json["apiVersion"], "v1");
        for field in ["uid", "resourceVersion", "creationTimestamp"] {
            assert!(json["metadata"][field].is_string(), "{field}: {json}");
        }
        k.mentions(
            "get cm c4 -o yaml",
            &["apiVersion: v1\ndata:\n  \"n\": \"4\"\nkind: ConfigMap"],
        );
        k.fails("get cm nosuch", "Error from server (NotFound): configmaps \"nosuch\" not found");
        k.refuses("", "get cm --field-selector data.x=1", &["(BadRequest)", "data.x"]);
        k.refuses("", "get cm -l '=='", &["selector"]);
        let none = k.run("get pods", "");
        assert_eq!((none.code, none.out.as_str()), (Some(0), ""));
        assert_eq!(none.error.trim_end(), "No resources found in default namespace.");
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_get_watch_follows_changes() {
    each(|k| {
        k.says("create cm seen --from-literal=a=1", "configmap/seen created");
        let watching = k.start_watching("get cm --watch --field-selector metadata.name!=other");
        watching.prints("NAME DATA AGE");
        watching.prints("kube-root-ca.crt 1 <age>");
        watching.prints("seen 1 <age>");
        k.says("create cm other", "configmap/other created");
        k.says("create cm later", "configmap/later created");
        watching.prints("later 0 <age>");
        k.says("patch cm seen -p '{\"data\":{\"b\":\"2\"}}'", "configmap/seen patched");
        watching.prints("seen 2 <age>");
        k.deletes("delete cm later", &["configmap \"later\" deleted"]);
        watching.prints("later 0 <age>");
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_get_all_shows_the_columns_of_each_kind() {
    each(|k| {
        k.says("create deployment web --image=nginx --replicas=2", "deployment.apps/web created");
        k.says("create service clusterip web --tcp=80:8080", "service/web created");
        k.says("create job once --image=busybox -- echo hi", "job.batch/once created");
        k.says("run single --image=nginx", "pod/single created");
        k.table(
            "get all",
            &[
                "NAME READY STATUS RESTARTS AGE",
                "pod/single 0/1 Pending 0 <age>",
                "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE",
                "service/web ClusterIP <none> <none> 80/TCP <age>",
                "service/kubernetes ClusterIP 10.0.0.1 <none> 443/TCP <age>",
                "NAME READY UP-TO-DATE AVAILABLE AGE",
                "deployment.apps/web 0/2 0 0 <age>",
                "NAME STATUS COMPLETIONS DURATION AGE",
                "job.batch/once Running 0/1 <age>",
            ],
        );
        k.table(
            "get deployment web -o wide",
            &[
                "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR",
                "web 0/2 0 0 <age> nginx nginx app=web",
            ],
        );
        k.table(
            "get pods -A -o wide",
            &[
                "NAMESPACE NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES",
                "default single 0/1 Pending 0 <age> <none> <none> <none> <none>",
            ],
        );
        k.says("get pods --field-selector status.phase=Pending -o name", "pod/single");
        k.says("get pods --field-selector status.phase=Running -o name", "");
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_describe_tells_all_about_an_object() {
    each(|k| {
        k.says("create namespace shop", "namespace/shop created");
        k.says("create quota few -n shop --hard=pods=3", "resourcequota/few created");
        k.says("create cm a -n shop --from-literal=x=1", "configmap/a created");
        k.says("create deployment web -n shop --image=nginx", "deployment.apps/web created");
        k.says("run single -n shop --image=nginx", "pod/single created");
        k.mentions(
            "describe configmap a -n shop",
            &[
                "Name:         a\nNamespace:    shop\n",
                "Data\n====\nx:\n----\n1\n",
                "Events:  <none>",
            ],
        );
        k.mentions(
            "describe namespace shop",
            &[
                "Labels:       kubernetes.io/metadata.name=shop",
                "Status:       Active",
                "Resource Quotas",
                "few",
                "No LimitRange resource.",
            ],
        );
        k.mentions(
            "describe deployment web -n shop",
            &[
                "Selector:               app=web",
                "Replicas:               1 desired | 0 updated | 0 total | 0 available | 0 unavailable",
                "RollingUpdateStrategy:  25% max unavailable, 25% max surge",
                "Events:",
            ],
        );
        k.mentions(
            "describe pod single -n shop",
            &["Labels:       run=single", "Status:       Pending", "QoS Class:", "BestEffort"],
        );
        k.fails("describe pod nosuch", "Error from server (NotFound): pods \"nosuch\" not found");
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_explain_reads_the_schemas() {
    each(|k| {
        k.mentions(
            "explain pod.spec.containers",
            &["KIND:", "Pod", "VERSION:", "v1", "imagePullPolicy\t<string>", "env\t<"],
        );
        k.mentions(
            "explain deployment --recursive",
            &["rollingUpdate\t<", "maxSurge\t<", "terminationGracePeriodSeconds\t<integer>"],
        );
        k.refuses("", "explain pod.spec.nosuch", &["field \"nosuch\" does not exist"]);

        if k.since(27) {
            k.mentions("explain cm --output=plaintext-openapiv2", &["VERSION:  v1", "immutable"]);
            k.mentions(
                "explain pod.spec.containers",
                &["KIND:       Pod\nVERSION:    v1\n\nFIELD: containers <[]Container>\n"],
            );
        }
    });
}
