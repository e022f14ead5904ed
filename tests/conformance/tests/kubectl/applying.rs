//! `kubectl apply` and `kubectl diff`, on the client's and on the server's side.

use crate::world::each;

const FIRST: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: app, labels: {part: one}}
data: {a: "1", b: "2"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, labels: {part: one}}
spec:
  replicas: 1
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers:
      - {name: one, image: "nginx:1", env: [{name: A, value: "1"}, {name: B, value: "2"}]}
      - {name: two, image: "nginx:1"}
"#;

/// The same with a newer image, without one value and without one variable.
fn second() -> String {
    FIRST
        .replace(", b: \"2\"", "")
        .replace(", {name: B, value: \"2\"}", "")
        .replace("name: one, image: \"nginx:1\"", "name: one, image: \"nginx:2\"")
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_apply_makes_the_server_look_like_the_file() {
    each(|k| {
        k.file("first.yaml", FIRST);
        k.file("second.yaml", &second());
        k.says("apply -f first.yaml", "configmap/app created\ndeployment.apps/app created");
        k.says("apply -f first.yaml", "configmap/app unchanged\ndeployment.apps/app unchanged");

        k.says(
            "apply -f second.yaml --dry-run=server",
            "configmap/app configured (server dry run)\n\
             deployment.apps/app configured (server dry run)",
        );
        k.says("get cm app -o jsonpath={.data}", r#"{"a":"1","b":"2"}"#);

        let difference = k.run("diff -f second.yaml", "");
        assert_eq!(difference.code, Some(1), "{difference:?}");
        for line in
            ["\n-  b: \"2\"\n", "\n-        image: nginx:1\n", "\n+        image: nginx:2\n"]
        {
            assert!(difference.out.contains(line), "no {line:?} in\n{}", difference.out);
        }

        // What the file no longer says goes; what the server or others added stays.
        k.mentions("annotate cm app note=mine", &["configmap/app annotate"]);
        k.says("apply -f second.yaml", "configmap/app configured\ndeployment.apps/app configured");
        k.says("get cm app -o jsonpath={.data},{.metadata.annotations.note}", r#"{"a":"1"},mine"#);
        k.says(
            "get deployment app -o 'jsonpath={.spec.template.spec.containers[*].env},\
             {.spec.template.spec.containers[*].image},{.spec.revisionHistoryLimit}'",
            r#"[{"name":"A","value":"1"}],nginx:2 nginx:1,10"#,
        );
        k.says("diff -f second.yaml", "");
        k.mentions("apply view-last-applied cm app", &["data:\n  a: \"1\"\n"]);

        // A pruning apply removes what it once applied and the file no longer has.
        if k.since(27) {
            k.file("rest.yaml", FIRST.split("---").next().unwrap_or_default());
            k.says(
                "apply -f rest.yaml --prune -l part=one",
                "configmap/app configured\ndeployment.apps/app pruned",
            );
        }
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_apply_on_the_server_names_who_holds_a_field() {
    each(|k| {
        k.file("first.yaml", FIRST);
        k.file("second.yaml", &second());
        k.says(
            "apply --server-side -f first.yaml",
            "configmap/app serverside-applied\ndeployment.apps/app serverside-applied",
        );
        k.refuses(
            "",
            "apply --server-side -f second.yaml --field-manager=other",
            &[
                "Apply failed with 1 conflict: conflict with \"kubectl\": \
                 .spec.template.spec.containers[name=\"one\"].image",
                "--force-conflicts",
            ],
        );
        k.says(
            "apply --server-side -f second.yaml --field-manager=other --force-conflicts",
            "configmap/app serverside-applied\ndeployment.apps/app serverside-applied",
        );
        // Now the first one is in conflict with the second.
        k.refuses(
            "",
            "apply --server-side -f first.yaml",
            &["conflict with \"other\": .spec.template.spec.containers[name=\"one\"].image"],
        );
        // Nobody took the value away that only the first one holds.
        k.says("get cm app -o jsonpath={.data.b}", "2");
        k.says(
            "apply --server-side -f second.yaml --force-conflicts",
            "configmap/app serverside-applied\ndeployment.apps/app serverside-applied",
        );
        k.says("get cm app -o jsonpath={.data.b}", "");
        let managers = "get cm app --show-managed-fields -o 'jsonpath={range .metadata.managedFields[*]}\
                        {.manager}={.operation} {end}'";
        if k.since(21) {
            k.says(managers, "other=Apply kubectl=Apply ");
        }
        if k.since(23) {
            let difference = k.run(
                "diff --server-side -f first.yaml --field-manager=other --force-conflicts",
                "",
            );
            assert_eq!(difference.code, Some(1), "{difference:?}");
            assert!(difference.out.contains("+  b: \"2\""), "{difference:?}");
        }
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_apply_gets_what_is_wrong() {
    each(|k| {
        let unknown =
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad"},"dta":{}}"#;
        k.refuses(unknown, "apply -f -", &["unknown field \"dta\""]);
        if k.since(27) {
            k.refuses(
                unknown,
                "apply -f -",
                &["Error from server (BadRequest): error when creating \"STDIN\": ConfigMap in version \"v1\" \
                   cannot be handled as a ConfigMap: strict decoding error: unknown field \"dta\""],
            );
            let warned = k.run("apply -f - --validate=warn", unknown);
            assert_eq!(warned.out, "configmap/bad created\n", "{warned:?}");
            assert_eq!(warned.error, "Warning: unknown field \"dta\"\n", "{warned:?}");
            k.refuses(
                unknown,
                "apply -f -",
                &["The ConfigMap \"bad\" is invalid: patch: Invalid value: strict decoding error: \
                   unknown field \"dta\""],
            );
        }
        let nothing = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{
            "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"c"}},"spec":{"containers":[]}}}}"#;
        k.refuses(
            nothing,
            "create -f - --validate=false",
            &["The Deployment \"x\" is invalid", "spec.template.spec.containers: Required value"],
        );
        let strange = r#"{"apiVersion":"v1","kind":"Nosuch","metadata":{"name":"x"}}"#;
        k.refuses(strange, "apply -f -", &["no matches for kind \"Nosuch\" in version \"v1\""]);
        let name = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"A_b"}}"#;
        k.refuses(
            name,
            "apply -f -",
            &["metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must consist of"],
        );
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_applies_a_kustomization() {
    each(|k| {
        k.folder("overlay");
        k.file("overlay/first.yaml", FIRST);
        k.file(
            "overlay/kustomization.yaml",
            "resources: [first.yaml]\nnamePrefix: my-\ncommonLabels: {from: overlay}\n",
        );
        k.says("apply -k overlay", "configmap/my-app created\ndeployment.apps/my-app created");
        k.says(
            "get cm,deployment -l from=overlay -o name",
            "configmap/my-app\ndeployment.apps/my-app",
        );
    });
}
