//! Logical clusters: made with kubectl, used through a context, each for itself.

use crate::world::each_mut;

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_makes_a_cluster_and_works_in_it() {
    each_mut(|k| {
        k.given(
            r#"{"apiVersion":"interlock.dev/v1alpha1","kind":"LogicalCluster","metadata":{"name":"team-a"}}"#,
            "apply -f -",
            "logicalcluster.interlock.dev/team-a created",
        );
        k.table("get lc", &["NAME PHASE URL AGE", "team-a Ready /clusters/team-a <age>"]);
        // The kubeconfig gains the context by itself.
        k.comes_to_say("config get-contexts -o name", "root\nteam-a");
        k.says("create cm in-root", "configmap/in-root created");

        k.context(Some("team-a"));
        k.mentions("cluster-info", &["/clusters/team-a"]);
        k.table("get ns", &["NAME STATUS AGE", "default Active <age>"]);
        k.says("get cm,sa -o name", "configmap/kube-root-ca.crt\nserviceaccount/default");
        k.says("create cm in-team", "configmap/in-team created");
        k.says("create deployment web --image=x", "deployment.apps/web created");
        k.file(
            "manifest.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {a: b}\n",
        );
        k.says("apply -f manifest.yaml", "configmap/applied created");
        k.says("apply -f manifest.yaml", "configmap/applied unchanged");
        k.mentions("explain deployment.spec", &["replicas\t<integer>"]);
        k.fails("get lc", "error: the server doesn't have a resource type \"lc\"");
        k.fails("get cm in-root", "Error from server (NotFound): configmaps \"in-root\" not found");
        k.file(
            "definition.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
             metadata: {name: toys.team.example}\n\
             spec: {group: team.example, scope: Cluster, names: {plural: toys, kind: Toy}, versions: [\
             {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n",
        );
        k.says(
            "apply -f definition.yaml",
            "customresourcedefinition.apiextensions.k8s.io/toys.team.example created",
        );
        k.given(
            r#"{"apiVersion":"team.example/v1","kind":"Toy","metadata":{"name":"t"}}"#,
            "create -f -",
            "toy.team.example/t created",
        );

        k.context(None);
        k.fails("get cm in-team", "Error from server (NotFound): configmaps \"in-team\" not found");
        k.fails("get toys", "error: the server doesn't have a resource type \"toys\"");
        k.says("get crd -o name", "");

        k.deletes("delete lc team-a", &["logicalcluster.interlock.dev \"team-a\" deleted"]);
        k.comes_to_say("config get-contexts -o name", "root");
        k.says("get cm in-root -o name", "configmap/in-root");
        k.refuses(
            r#"{"apiVersion":"interlock.dev/v1alpha1","kind":"LogicalCluster","metadata":{"name":"a.b"}}"#,
            "create -f -",
            &["metadata.name: Invalid value: \"a.b\": must not contain dots"],
        );
    });
}
