//! Creating and changing: create, edit, patch, label, annotate, scale, replace, set.

use crate::world::each;

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_create_makes_objects_of_many_kinds() {
    each(|k| {
        let made = [
            ("namespace shop", "namespace/shop"),
            ("configmap a --from-literal=x=1 -n shop", "configmap/a"),
            ("secret generic s --from-literal=p=q -n shop", "secret/s"),
            ("serviceaccount bot -n shop", "serviceaccount/bot"),
            (
                "role reader --verb=get,list --resource=pods,deployments.apps",
                "role.rbac.authorization.k8s.io/reader",
            ),
            (
                "rolebinding readers --role=reader --user=jane --serviceaccount=shop:bot",
                "rolebinding.rbac.authorization.k8s.io/readers",
            ),
            (
                "clusterrole all --verb='*' --resource=nodes",
                "clusterrole.rbac.authorization.k8s.io/all",
            ),
            (
                "clusterrolebinding alls --clusterrole=all --group=ops",
                "clusterrolebinding.rbac.authorization.k8s.io/alls",
            ),
            ("deployment web --image=nginx --replicas=3", "deployment.apps/web"),
            ("job once --image=busybox -- echo hi", "job.batch/once"),
            ("service clusterip web --tcp=80:8080", "service/web"),
            ("service nodeport door --tcp=80", "service/door"),
            ("quota few --hard=pods=3,cpu=500m", "resourcequota/few"),
            ("priorityclass high --value=1000", "priorityclass.scheduling.k8s.io/high"),
            ("ingress front --rule=example.com/a=web:80", "ingress.networking.k8s.io/front"),
        ];
        for (what, object) in made {
            k.says(&format!("create {what}"), &format!("{object} created"));
        }
        k.fails(
            "create namespace shop",
            "Error from server (AlreadyExists): namespaces \"shop\" already exists",
        );
        k.refuses("", "create cm x -n nosuch", &["namespaces \"nosuch\" not found"]);
        k.says("get secret s -n shop -o jsonpath={.data.p}", "cQ==");
        k.says("get quota few -o 'jsonpath={.spec.hard.cpu}'", "500m");
        k.table("get rolebinding readers", &["NAME ROLE AGE", "readers Role/reader <age>"]);
        k.says("get role reader -o 'jsonpath={.rules[*].apiGroups}'", r#"[""] ["apps"]"#);
        k.says(
            "get cm,sa -n shop -o name",
            "configmap/a\nconfigmap/kube-root-ca.crt\nserviceaccount/bot\nserviceaccount/default",
        );

        k.file(
            "many.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m1}\n---\n\
                             apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: gen-}\n",
        );
        k.mentions("create -f many.yaml", &["configmap/m1 created\nconfigmap/gen-"]);
        k.mentions("create cm dry --dry-run=server -o yaml", &["name: dry", "uid: "]);
        k.refuses("", "get cm dry", &["not found"]);
        if k.since(24) {
            let token = k.ok("create token bot -n shop --duration=10m");
            assert_eq!(token.trim_end().split('.').count(), 3, "{token}");
            k.refuses("", "create token nosuch", &["serviceaccounts \"nosuch\" not found"]);
        }
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_edit_saves_what_the_editor_wrote() {
    each(|k| {
        k.says("create cm e --from-literal=k=two", "configmap/e created");
        k.says("KUBE_EDITOR='sed -i s/two/zwei/' edit cm e", "configmap/e edited");
        k.says("get cm e -o jsonpath={.data.k}", "zwei");
        let said = k.run("KUBE_EDITOR='sed -i s/two/zwei/' edit cm e", "");
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(said.error, "Edit cancelled, no changes made.\n");
        if k.since(27) {
            k.refuses(
                "",
                "KUBE_EDITOR='sed -i s/^data:/daten:/' edit cm e",
                &["configmaps \"e\" is invalid", "no valid changes were saved"],
            );
        }
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_patch_takes_each_sort_of_patch() {
    each(|k| {
        k.says("create deployment web --image=nginx", "deployment.apps/web created");
        k.says(
            "patch deployment web -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"side\",\"image\":\"x\"}]}}}}'",
            "deployment.apps/web patched",
        );
        let images = "get deployment web -o 'jsonpath={.spec.template.spec.containers[*].image}'";
        k.says(images, "x nginx");
        k.says(
            "patch deployment web --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/template/spec/containers/0\"}]'",
            "deployment.apps/web patched",
        );
        k.says(images, "nginx");
        k.says(
            "patch deployment web --type=merge -p '{\"spec\":{\"replicas\":4}}'",
            "deployment.apps/web patched",
        );
        k.says(
            "patch deployment web --type=merge -p '{\"spec\":{\"replicas\":4}}'",
            "deployment.apps/web patched (no change)",
        );
        k.refuses(
            "",
            "patch deployment web --type=json -p '[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":5}]'",
            &[if k.since(27) {
                "The request is invalid: the server rejected our request due to an error in our request: \
                 testing value /spec/replicas failed: test failed"
            } else {
                "The request is invalid"
            }],
        );
        k.fails(
            "patch deployment nosuch -p {}",
            "Error from server (NotFound): deployments.apps \"nosuch\" not found",
        );
        if k.since(24) {
            k.says(
                "patch deployment web --subresource=status --type=merge -p '{\"status\":{\"replicas\":4},\"spec\":{\"replicas\":9}}'",
                "deployment.apps/web patched",
            );
            k.says("get deployment web -o jsonpath={.spec.replicas}/{.status.replicas}", "4/4");
        }
        k.says("create cm fixed --from-literal=a=b", "configmap/fixed created");
        k.says("patch cm fixed -p '{\"immutable\":true}'", "configmap/fixed patched");
        k.fails(
            "patch cm fixed -p '{\"data\":{\"a\":\"c\"}}'",
            "The ConfigMap \"fixed\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
        );
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_labels_annotates_scales_and_sets() {
    each(|k| {
        k.says("create cm a", "configmap/a created");
        k.says("label cm a tier=front", "configmap/a labeled");
        k.fails(
            "label cm a tier=back",
            "error: 'tier' already has a value (front), and --overwrite is false",
        );
        k.says("label cm a tier=back --overwrite", "configmap/a labeled");
        k.says("get cm -l tier=back -o name", "configmap/a");
        k.mentions("label cm a tier-", &["configmap/a "]);
        k.says("get cm -l tier -o name", "");
        k.refuses("", "label cm a 'bad key=x'", &["bad key"]);
        k.mentions("annotate cm a note=1", &["configmap/a annotate"]);
        k.mentions("annotate cm a note=2 --overwrite", &["configmap/a annotate"]);
        k.says("get cm a -o jsonpath={.metadata.annotations.note}", "2");
        k.mentions("annotate cm a note-", &["configmap/a annotate"]);
        k.says("get cm a -o jsonpath={.metadata.annotations}", "");

        k.says("create deployment web --image=nginx", "deployment.apps/web created");
        k.says("scale deployment web --replicas=4", "deployment.apps/web scaled");
        k.refuses(
            "",
            "scale deployment web --current-replicas=9 --replicas=5",
            &["xpected replicas to be 9, was 4"],
        );
        k.says("get deployment web -o jsonpath={.spec.replicas}/{.metadata.generation}", "4/2");
        k.says("set image deployment/web nginx=nginx:9", "deployment.apps/web image updated");
        k.says("set env deployment/web A=1", "deployment.apps/web env updated");
        k.says("expose deployment web --port=80", "service/web exposed");
        k.says("get svc web -o 'jsonpath={.spec.selector.app}:{.spec.ports[0].port}'", "web:80");
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_replace_notices_that_somebody_was_faster() {
    each(|k| {
        k.says("create cm r --from-literal=k=old", "configmap/r created");
        let seen = k.ok("get cm r -o yaml");
        k.file("seen.yaml", &seen);
        k.file("new.yaml", &seen.replace("k: old", "k: new"));
        k.says("replace -f new.yaml", "configmap/r replaced");
        k.fails(
            "replace -f seen.yaml",
            "Error from server (Conflict): error when replacing \"seen.yaml\": Operation cannot be fulfilled on \
             configmaps \"r\": the object has been modified; please apply your changes to the latest version and try again",
        );
        k.deletes(
            "replace --force -f seen.yaml",
            &["configmap \"r\" deleted", "configmap/r replaced"],
        );
        k.says("get cm r -o jsonpath={.data.k}", "old");
        let before: Vec<&str> = seen.lines().filter(|line| line.contains("uid:")).collect();
        assert!(
            !k.ok("get cm r -o yaml").contains(before[0]),
            "a forced replacement is another object"
        );
    });
}
