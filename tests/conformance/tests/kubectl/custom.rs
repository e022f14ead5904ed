//! Custom kinds: definitions, columns, rules, status, scale, events.

use crate::world::{TestServer, each};

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.shop.example}
spec:
  group: shop.example
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns:
    - {name: Colour, type: string, jsonPath: .spec.colour}
    - {name: Size, type: integer, jsonPath: .spec.size, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: Widget is a thing in a shop.
        properties:
          spec:
            type: object
            description: What the widget should be.
            required: [colour]
            properties:
              colour: {type: string, description: The paint., enum: [red, blue]}
              size: {type: integer, default: 3, minimum: 1, description: How large.}
            x-kubernetes-validations:
            - {rule: "self.size <= 10", message: "too large for the shop"}
          status:
            type: object
            properties:
              phase: {type: string}
              size: {type: integer}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
"#;

const WIDGET: &str = r#"{"apiVersion":"shop.example/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"colour":"red"}}"#;

fn define(k: &TestServer) {
    k.file("definition.yaml", DEFINITION);
    k.says(
        "apply -f definition.yaml",
        "customresourcedefinition.apiextensions.k8s.io/widgets.shop.example created",
    );
    k.says(
        "wait --for=condition=Established crd/widgets.shop.example --timeout=10s",
        "customresourcedefinition.apiextensions.k8s.io/widgets.shop.example condition met",
    );
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_works_with_a_custom_kind_as_with_any_other() {
    each(|k| {
        define(k);
        k.table(
            "api-resources --api-group=shop.example",
            &[
                "NAME SHORTNAMES APIVERSION NAMESPACED KIND",
                "widgets wd shop.example/v1 true Widget",
            ],
        );
        k.mentions(
            "explain widget.spec",
            &["What the widget should be.", "The paint.", "size\t<integer>"],
        );
        k.given(WIDGET, "apply -f -", "widget.shop.example/w created");
        k.given(WIDGET, "apply -f -", "widget.shop.example/w unchanged");
        k.table("get wd", &["NAME COLOUR AGE", "w red <age>"]);
        k.table("get widgets w -o wide", &["NAME COLOUR SIZE AGE", "w red 3 <age>"]);
        k.says("get all -o name", "service/kubernetes\nwidget.shop.example/w");
        k.refuses(
            &WIDGET.replace("red", "green"),
            "apply -f -",
            &["The Widget \"w\" is invalid: spec.colour: Unsupported value: \"green\": supported values: \"red\", \"blue\""],
        );
        k.refuses(
            &WIDGET.replace(r#""red""#, r#""red","size":11"#),
            "apply -f -",
            &["The Widget \"w\" is invalid: spec: Invalid value", "too large for the shop"],
        );
        k.refuses(
            &WIDGET.replace(r#""red""#, r#""red","sise":1"#),
            "apply -f -",
            &["unknown field \"", "sise\""],
        );
        k.given(&WIDGET.replace("red", "blue"), "apply -f -", "widget.shop.example/w configured");
        k.says("scale widget w --replicas=5", "widget.shop.example/w scaled");
        k.says("get wd w -o jsonpath={.spec.colour}{.spec.size}", "blue5");
        k.refuses("", "scale widget w --replicas=50", &["too large for the shop"]);
        k.refuses(
            "",
            "patch wd w -p '{\"spec\":{\"colour\":\"red\"}}'",
            &["the body of the request was in an unknown format"],
        );
        k.says(
            "patch wd w --type=merge -p '{\"spec\":{\"colour\":\"red\"}}'",
            "widget.shop.example/w patched",
        );

        k.deletes(
            "delete crd widgets.shop.example",
            &["customresourcedefinition.apiextensions.k8s.io \"widgets.shop.example\" deleted"],
        );
        k.refuses("", "get wd", &["the server "]);
        k.says("api-resources --api-group=shop.example -o name", "");
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_wait_waits_for_conditions_fields_and_objects() {
    each(|k| {
        define(k);
        k.given(WIDGET, "create -f -", "widget.shop.example/w created");
        k.fails(
            "wait widget/w --for=condition=Ready --timeout=1s",
            "error: timed out waiting for the condition on widgets/w",
        );
        let ready =
            r#"{"status":{"phase":"Done","conditions":[{"type":"Ready","status":"True"}]}}"#;
        if !k.since(24) {
            return;
        }
        let waiting = k.start_waiting("wait widget/w --for=condition=Ready");
        k.says(
            &format!("patch widget w --subresource=status --type=merge -p '{ready}'"),
            "widget.shop.example/w patched",
        );
        waiting.prints("widget.shop.example/w condition met");
        k.says(
            "wait widget/w --for=jsonpath={.status.phase}=Done --timeout=10s",
            "widget.shop.example/w condition met",
        );
        k.says("get widget w --subresource=status -o jsonpath={.status.phase}", "Done");
        k.says("get widget w --subresource=scale -o jsonpath={.spec.replicas}", "3");

        let waiting = k.start_waiting("wait widget/w --for=delete");
        k.deletes("delete widget w", &["widget.shop.example \"w\" deleted"]);
        waiting.prints("widget.shop.example/w condition met");
        if k.since(31) {
            let waiting = k.start_watching("wait widget/w --for=create --timeout=60s");
            k.given(WIDGET, "create -f -", "widget.shop.example/w created");
            waiting.prints("widget.shop.example/w condition met");
        }
    });
}

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_shows_events_with_what_they_are_about() {
    each(|k| {
        define(k);
        k.given(WIDGET, "create -f -", "widget.shop.example/w created");
        let uid = k.ok("get widget w -o jsonpath={.metadata.uid}");
        let event = serde_json::json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "w.1"},
            "involvedObject": {
                "apiVersion": "shop.example/v1", "kind": "Widget", "name": "w",
                "namespace": "default", "uid": uid,
            },
            "reason": "Painted", "message": "it is red now", "type": "Normal", "count": 1,
            "source": {"component": "painter"},
            "firstTimestamp": "2025-01-01T00:00:00Z", "lastTimestamp": "2025-01-01T00:00:00Z",
        });
        k.given(&event.to_string(), "create -f -", "event/w.1 created");
        k.mentions(
            "describe widget w",
            &[
                "Name:         w\n",
                "API Version:  shop.example/v1",
                "Colour:  red",
                "Painted",
                "painter",
                "it is red now",
            ],
        );
        let shown = k.ok("get events");
        assert!(shown.contains("Painted") && shown.contains("widget/w"), "{shown}");
        k.says(
            "get events --field-selector involvedObject.name=w,reason=Painted -o name",
            "event/w.1",
        );
        k.says("get events --field-selector involvedObject.name=x -o name", "");
        k.says("get events.events.k8s.io -o 'jsonpath={.items[0].note}'", "it is red now");
        if k.since(27) {
            k.mentions("events --for widget/w", &["Painted", "it is red now"]);
            let none = k.run("events --for widget/x", "");
            assert_eq!(none.error.trim_end(), "No events found in default namespace.");
        }
    });
}
