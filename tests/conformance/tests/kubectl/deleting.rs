//! Deleting: finalizers, owners, selections, namespaces.

use crate::world::{TestServer, each};

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_delete_waits_for_finalizers() {
    each(|k| {
        k.given(
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"held","finalizers":["shop.example/bill"]}}"#,
            "create -f -",
            "configmap/held created",
        );
        k.refuses(
            "",
            "delete cm held --timeout=1s",
            &["timed out waiting for the condition on configmaps/held"],
        );
        k.deletes("delete cm held --wait=false", &["configmap \"held\" deleted"]);
        assert_ne!(k.ok("get cm held -o jsonpath={.metadata.deletionTimestamp}"), "");
        let waiting = k.start_waiting("wait cm/held --for=delete");
        k.says(
            "patch cm held --type=merge -p '{\"metadata\":{\"finalizers\":null}}'",
            "configmap/held patched",
        );
        waiting.prints("configmap/held condition met");
        k.fails("get cm held", "Error from server (NotFound): configmaps \"held\" not found");
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_deletes_by_name_label_file_and_all() {
    each(|k| {
        for name in ["a", "b", "c", "d"] {
            k.says(&format!("create secret generic {name}"), &format!("secret/{name} created"));
        }
        k.says("label secret a b tier=x", "secret/a labeled\nsecret/b labeled");
        k.deletes("delete secret -l tier=x", &["secret \"a\" deleted", "secret \"b\" deleted"]);
        k.mentions("delete secret c --dry-run=server", &["secret \"c\" deleted"]);
        k.says("get secrets -o name", "secret/c\nsecret/d");
        k.deletes("delete secrets --all", &["secret \"c\" deleted", "secret \"d\" deleted"]);
        k.fails("delete secret c", "Error from server (NotFound): secrets \"c\" not found");
        k.says("delete secret c --ignore-not-found", "");
        k.file("one.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: one}\n");
        k.says("create -f one.yaml", "secret/one created");
        k.deletes("delete -f one.yaml", &["secret \"one\" deleted"]);
        k.says("run single --image=x", "pod/single created");
        k.deletes("delete pod single", &["pod \"single\" deleted"]);
    });
}

fn owner_and_dependent(k: &TestServer) {
    k.says("create cm owner", "configmap/owner created");
    let uid = k.ok("get cm owner -o jsonpath={.metadata.uid}");
    let dependent = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "dependent", "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid,
            "blockOwnerDeletion": true,
        }]},
    });
    k.given(&dependent.to_string(), "create -f -", "secret/dependent created");
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_delete_takes_dependents_along_or_lets_them_go() {
    each(|k| {
        owner_and_dependent(k);
        k.deletes("delete cm owner", &["configmap \"owner\" deleted"]);
        k.comes_to_say("get secrets -o name", "");

        owner_and_dependent(k);
        k.deletes("delete cm owner --cascade=foreground", &["configmap \"owner\" deleted"]);
        k.says("get secrets -o name", "");

        owner_and_dependent(k);
        k.deletes("delete cm owner --cascade=orphan", &["configmap \"owner\" deleted"]);
        k.says(
            "get secret dependent -o jsonpath={.metadata.name},{.metadata.ownerReferences}",
            "dependent,",
        );
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_deletes_a_namespace_with_all_that_is_in_it() {
    each(|k| {
        k.says("create ns shop", "namespace/shop created");
        k.says("create cm a -n shop", "configmap/a created");
        k.says("create deployment web -n shop --image=x", "deployment.apps/web created");
        k.deletes("delete ns shop", &["namespace \"shop\" deleted"]);
        k.says("get cm,sa,deploy -n shop -o name", "");
        k.table("get ns", &["NAME STATUS AGE", "default Active <age>", "kube-system Active <age>"]);

        // While something holds it, the namespace says what.
        k.says("create ns held", "namespace/held created");
        k.given(
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"h","namespace":"held","finalizers":["shop.example/bill"]}}"#,
            "create -f -",
            "configmap/h created",
        );
        k.deletes("delete ns held --wait=false", &["namespace \"held\" deleted"]);
        k.comes_to_say("get cm -n held -o name", "configmap/h");
        k.table("get ns held", &["NAME STATUS AGE", "held Terminating <age>"]);
        k.refuses("", "create cm x -n held", &["because it is being terminated"]);
        k.comes_to_say(
            "get ns held -o 'jsonpath={.status.conditions[?(@.type==\"NamespaceFinalizersRemaining\")].message}'",
            "Some content in the namespace has finalizers remaining: shop.example/bill in 1 resource instances",
        );
        let waiting = k.start_waiting("wait ns/held --for=delete");
        k.says(
            "patch cm h -n held --type=merge -p '{\"metadata\":{\"finalizers\":null}}'",
            "configmap/h patched",
        );
        waiting.prints("namespace/held condition met");
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn what_belongs_to_every_cluster_stays() {
    each(|k| {
        for namespace in ["default", "kube-system"] {
            k.fails(
                &format!("delete ns {namespace}"),
                &format!(
                    "Error from server (Forbidden): namespaces \"{namespace}\" is forbidden: \
                     this namespace may not be deleted"
                ),
            );
        }
        k.says("label clusterrole view a=b", "clusterrole.rbac.authorization.k8s.io/view labeled");
        k.refuses("", "delete clusterrole view", &["(Forbidden)", "is part of every cluster"]);
        k.says("get clusterrole view -o jsonpath={.metadata.labels.a}", "b");

        // The account and the certificates of a namespace come back.
        let before = k.ok("get sa default -o jsonpath={.metadata.uid}");
        k.deletes("delete cm --all", &["configmap \"kube-root-ca.crt\" deleted"]);
        k.comes_to_say("get cm -o name", "configmap/kube-root-ca.crt");
        k.mentions("get cm kube-root-ca.crt -o jsonpath={.data}", &["BEGIN CERTIFICATE"]);
        k.deletes("delete sa default", &["serviceaccount \"default\" deleted"]);
        k.comes_to_say("get sa -o name", "serviceaccount/default");
        assert_ne!(k.ok("get sa default -o jsonpath={.metadata.uid}"), before);
    });
}
