use super::{accept_names, defaults, established, is_established, read, validate, validate_update};
use serde_json::{Value, json};
use std::sync::Arc;

fn crontabs() -> Value {
    let mut crd = json!({
        "metadata": {"name": "crontabs.stable.example.com"},
        "spec": {
            "group": "stable.example.com", "scope": "Namespaced",
            "names": {"plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"],
                "categories": ["all"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {
                        "replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector"}},
                "additionalPrinterColumns": [{"name": "Replicas", "type": "integer",
                    "jsonPath": ".spec.replicas", "priority": 1}],
            }],
        },
    });
    defaults(&mut crd);
    crd
}

fn errors(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut crd = crontabs();
    change(&mut crd);
    validate(&crd).iter().map(ToString::to_string).collect()
}

#[test]
fn a_crd_makes_a_resource_for_each_served_version() {
    let mut crd = crontabs();
    assert_eq!(crd["spec"]["names"]["singular"], "crontab");
    assert_eq!(crd["spec"]["names"]["listKind"], "CronTabList");
    assert_eq!(crd["spec"]["conversion"]["strategy"], "None");
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    let mut third = second.clone();
    third["name"] = json!("v3");
    third["served"] = json!(false);
    crd["spec"]["versions"].as_array_mut().expect("it is a list").extend([second, third]);
    let resources = read(&crd, "hub", None).expect("the CRD is sound");
    let versions: Vec<&str> = resources.iter().map(|resource| &*resource.version).collect();
    assert_eq!(versions, ["v1", "v2"]);
    let first = &resources[0];
    assert_eq!(&*resources[1].storage_version, "v1");
    assert_eq!(
        (&*first.kind, &*first.plural, &*first.list_kind),
        ("CronTab", "crontabs", "CronTabList")
    );
    assert!(first.is_namespaced && first.has_status && first.is_custom());
    let scale = first.scale.as_ref().expect("it has one");
    assert_eq!(scale.spec_replicas, ["spec".into(), "replicas".into()]);
    assert!(scale.label_selector.is_some());
    assert_eq!(&*first.columns[0].json_path, ".spec.replicas");
    assert_eq!(first.columns[0].priority, 1);
}

#[test]
fn equal_schemas_are_shared() {
    let crd = crontabs();
    let one = read(&crd, "one", None).expect("the CRD is sound");
    let other = read(&crd, "other", None).expect("the CRD is sound");
    assert!(Arc::ptr_eq(&one[0].schema, &other[0].schema));
}

#[test]
fn names_and_scope_are_checked() {
    assert_eq!(errors(|_| {}), [""; 0]);
    assert_eq!(
        errors(|crd| crd["metadata"]["name"] = json!("x.stable.example.com")),
        ["metadata.name: Invalid value: \"x.stable.example.com\": must be \
          spec.names.plural+\".\"+spec.group"]
    );
    assert_eq!(
        errors(|crd| crd["spec"]["scope"] = json!("Global")),
        [
            "spec.scope: Unsupported value: \"Global\": supported values: \"Cluster\", \"Namespaced\""
        ]
    );
    assert_eq!(
        errors(|crd| crd["spec"]["names"]["listKind"] = json!("CronTab")),
        ["spec.names.listKind: Invalid value: \"CronTab\": kind and listKind may not be the same"]
    );
    let found = errors(|crd| crd["spec"]["names"]["shortNames"] = json!(["Ct"]));
    assert!(
        found[0].starts_with("spec.names.shortNames[0]: Invalid value: \"Ct\": a DNS-1035 label"),
        "{found:?}"
    );
    assert_eq!(
        errors(|crd| crd["spec"]["preserveUnknownFields"] = json!(true)),
        ["spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
          x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"]
    );
    assert_eq!(errors(|crd| crd["spec"]["conversion"] = json!({"strategy": "Webhook"})).len(), 1);
}

#[test]
fn versions_are_checked() {
    let found = errors(|crd| crd["spec"]["versions"][0]["storage"] = json!(false));
    assert!(
        found[0].ends_with("must have exactly one version marked as storage version"),
        "{found:?}"
    );
    let found = errors(|crd| {
        let twin = crd["spec"]["versions"][0].clone();
        crd["spec"]["versions"].as_array_mut().expect("it is a list").push(twin);
    });
    assert!(found.iter().any(|text| text.ends_with("must contain unique version names")));
    assert_eq!(
        errors(|crd| crd["spec"]["versions"][0]["schema"] = json!(null)),
        ["spec.versions[0].schema.openAPIV3Schema: Required value"]
    );
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/type";
    assert_eq!(
        errors(|crd| *crd.pointer_mut(path).expect("it is there") = json!("")),
        [
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty \
          for specified object fields"
        ]
    );
}

#[test]
fn subresources_and_columns_are_checked() {
    let scale = "/spec/versions/0/subresources/scale";
    assert_eq!(
        errors(|crd| {
            crd.pointer_mut(scale).expect("it is there")["specReplicasPath"] = json!(".status.x");
        }),
        [
            "spec.subresources.scale.specReplicasPath: Invalid value: \".status.x\": should be a json \
          path under .spec"
        ]
    );
    let column = "/spec/versions/0/additionalPrinterColumns/0";
    assert_eq!(
        errors(|crd| crd.pointer_mut(column).expect("it is there")["jsonPath"] = json!("spec.x")),
        ["spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec.x\": must be a simple \
          json path starting with ."]
    );
    assert_eq!(
        errors(|crd| crd.pointer_mut(column).expect("it is there")["type"] = json!("text")),
        ["spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of \
          boolean,date,integer,number,string"]
    );
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    let found =
        errors(|crd| crd.pointer_mut(schema).expect("it is there")["minProperties"] = json!(1));
    assert!(
        found[0].starts_with("spec.validation.openAPIV3Schema: Invalid value: only [Description")
    );
}

#[test]
fn what_objects_are_stored_under_does_not_change() {
    let mut old = crontabs();
    established(&mut old, "2024-01-01T00:00:00Z");
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Cluster");
    new["spec"]["names"]["plural"] = json!("others");
    let found: Vec<String> = validate_update(&old, &new).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "spec.names.plural: Invalid value: \"others\": field is immutable",
            "spec.scope: Invalid value: \"Cluster\": field is immutable",
        ]
    );
    let mut gone = old.clone();
    gone["spec"]["versions"][0]["name"] = json!("v2");
    established(&mut gone, "2024-01-01T00:00:00Z");
    let found: Vec<String> = validate(&gone).iter().map(ToString::to_string).collect();
    assert!(
        found[0].starts_with(
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions"
        ),
        "{found:?}"
    );
}

#[test]
fn an_established_crd_says_so() {
    let mut crd = crontabs();
    assert!(!is_established(&crd));
    accept_names(&mut crd, &[], "2024-01-01T00:00:00Z");
    assert!(is_established(&crd));
    assert_eq!(crd["status"]["acceptedNames"]["plural"], "crontabs");
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    let again = crd.clone();
    established(&mut crd, "2025-01-01T00:00:00Z");
    assert_eq!(crd, again, "the time of a condition moves only with its truth");
}

#[test]
fn a_name_that_another_has_is_not_granted() {
    let first = crontabs();
    let taken: Vec<_> =
        read(&first, "a", None).expect("the CRD is sound").into_iter().map(Arc::new).collect();
    let mut second = crontabs();
    second["metadata"]["name"] = json!("others.stable.example.com");
    second["spec"]["names"] = json!({"plural": "others", "kind": "CronTab", "shortNames": ["o"]});
    defaults(&mut second);
    accept_names(&mut second, &taken, "2024-01-01T00:00:00Z");
    assert!(!is_established(&second));
    let conditions = &second["status"]["conditions"];
    assert_eq!(conditions[0]["type"], "NamesAccepted");
    assert_eq!(conditions[0]["status"], "False");
    assert_eq!(conditions[0]["reason"], "ListKindConflict");
    assert_eq!(conditions[1]["reason"], "NotAccepted");
    second["spec"]["group"] = json!("other.example.com");
    accept_names(&mut second, &taken, "2024-01-01T00:00:00Z");
    assert!(is_established(&second));
}

#[test]
fn no_crd_panics() {
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = move |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits fit") % most
    };
    let pointers = [
        "/spec",
        "/spec/names",
        "/spec/versions",
        "/spec/versions/0",
        "/spec/versions/0/schema",
        "/spec/versions/0/schema/openAPIV3Schema",
        "/spec/versions/0/subresources/scale",
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
        "/metadata",
        "/status",
        "/spec/versions/0/additionalPrinterColumns",
        "/spec/conversion",
        "/spec/names/shortNames",
    ];
    let values = [
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!({}),
        json!([1]),
        json!({"a": [{}]}),
        json!({"type": "array", "items": [1]}),
        json!([{"name": "v1", "storage": 1}]),
    ];
    for _ in 0..2_000 {
        let mut crd = crontabs();
        for _ in 0..1 + random(3) {
            if let Some(place) = crd.pointer_mut(pointers[random(pointers.len())]) {
                *place = values[random(values.len())].clone();
            }
        }
        defaults(&mut crd);
        let _ = read(&crd, "a", None);
        accept_names(&mut crd, &[], "now");
        validate_update(&crontabs(), &crd);
    }
}
