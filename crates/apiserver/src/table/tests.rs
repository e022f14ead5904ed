//! Whole rows as `kubectl get` shows them, and that no object makes a printer panic.

use super::*;
use crate::behaviour::every_kind::{EVERY_KIND, Noise, built_in};
use crate::resource::Column;

fn now() -> Timestamp {
    crate::age::parse("2024-01-02T00:00:00Z").expect("a good time")
}

/// The cells of one object, with blanks between.
fn shown(group: &str, kind: &str, object: Value) -> String {
    let mut object = object;
    object["metadata"]["creationTimestamp"] = json!("2024-01-01T23:55:00Z");
    let cells: Vec<String> = row(&built_in(group, kind), &object, now())
        .iter()
        .map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned))
        .collect();
    cells.join(" | ")
}

#[test]
fn every_kind_has_as_many_cells_as_columns_and_no_object_makes_it_panic() {
    let mut noise = Noise::new(11);
    for (group, kind) in EVERY_KIND {
        let resource = built_in(group, kind);
        let columns = columns(&resource).as_array().map_or(0, Vec::len);
        assert!(columns >= 2, "{kind}");
        for _ in 0..60 {
            assert_eq!(row(&resource, &noise.object(), now()).len(), columns, "{kind}");
        }
    }
}

#[test]
fn a_running_pod_shows_its_readiness_and_restarts() {
    let pod = json!({
        "metadata": {"name": "a"},
        "spec": {"nodeName": "n1", "containers": [{"name": "x"}, {"name": "y"}]},
        "status": {
            "phase": "Running", "podIPs": [{"ip": "10.0.0.1"}],
            "containerStatuses": [
                {"name": "x", "ready": true, "restartCount": 2, "state": {"running": {}},
                 "lastState": {"terminated": {"finishedAt": "2024-01-01T23:00:00Z"}}},
                {"name": "y", "ready": false, "restartCount": 0,
                 "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
            ],
        },
    });
    assert_eq!(
        shown("", "Pod", pod),
        "a | 1/2 | CrashLoopBackOff | 2 (60m ago) | 5m | 10.0.0.1 | n1 | <none> | <none>"
    );
}

#[test]
fn a_pod_that_is_being_deleted_is_terminating() {
    let pod = json!({
        "metadata": {"name": "a", "deletionTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"containers": [{}]}, "status": {"phase": "Running"},
    });
    assert!(shown("", "Pod", pod).starts_with("a | 0/1 | Terminating | 0 |"));
}

#[test]
fn a_pod_shows_how_far_its_init_containers_are() {
    let pod = json!({
        "metadata": {"name": "a"},
        "spec": {"containers": [{}], "initContainers": [{"name": "i"}, {"name": "j"}]},
        "status": {"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "state": {"terminated": {"exitCode": 0}}},
            {"name": "j", "state": {"running": {}}},
        ]},
    });
    assert!(shown("", "Pod", pod).starts_with("a | 0/1 | Init:1/2 | 0 |"));
}

#[test]
fn a_finished_pod_says_so_in_its_row() {
    let pod = json!({"metadata": {"name": "a"}, "status": {"phase": "Succeeded"}});
    let options = TableOptions {
        include: IncludeObject::None,
        with_columns: false,
        api_version: "meta.k8s.io/v1",
        now: now(),
    };
    let table = table(&built_in("", "Pod"), [&pod], json!({}), options);
    assert_eq!(table["rows"][0]["conditions"][0]["reason"], "Succeeded");
    assert_eq!(table["rows"][0]["object"], Value::Null);
    assert_eq!(table["columnDefinitions"], Value::Null);
}

#[test]
fn built_in_kinds_are_shown_as_kubectl_shows_them() {
    for (group, kind, object, row) in [
        (
            "",
            "Service",
            json!({"metadata": {"name": "s"}, "spec": {
                "type": "LoadBalancer", "clusterIP": "10.0.0.1", "selector": {"a": "b"},
                "ports": [{"port": 80, "nodePort": 3000, "protocol": "TCP"}],
            }}),
            "s | LoadBalancer | 10.0.0.1 | <pending> | 80:3000/TCP | 5m | a=b",
        ),
        (
            "",
            "ConfigMap",
            json!({"metadata": {"name": "c"}, "data": {"a": ""}, "binaryData": {"b": ""}}),
            "c | 2 | 5m",
        ),
        (
            "apps",
            "Deployment",
            json!({"metadata": {"name": "d"}, "spec": {
                "replicas": 3, "selector": {"matchLabels": {"a": "b"}},
                "template": {"spec": {"containers": [{"name": "x", "image": "i:1"}]}},
            }, "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}}),
            "d | 1/3 | 2 | 1 | 5m | x | i:1 | a=b",
        ),
        (
            "batch",
            "Job",
            json!({"metadata": {"name": "j"}, "spec": {"completions": 2}, "status": {
                "succeeded": 1, "startTime": "2024-01-01T23:58:00Z",
            }}),
            "j | Running | 1/2 | 2m | 5m |  |  | <none>",
        ),
        (
            "",
            "PersistentVolumeClaim",
            json!({"metadata": {"name": "p"}, "spec": {
                "volumeName": "v", "storageClassName": "fast", "volumeMode": "Filesystem",
            }, "status": {
                "phase": "Bound", "capacity": {"storage": "1024Mi"},
                "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
            }}),
            "p | Bound | v | 1Gi | RWO,RWX | fast | <unset> | 5m | Filesystem",
        ),
        (
            "",
            "Node",
            json!({"metadata": {"name": "n", "labels": {
                "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "x",
            }}, "spec": {"unschedulable": true}, "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"kubeletVersion": "v1.35.0"},
            }}),
            "n | Ready,SchedulingDisabled | control-plane,x | 5m | v1.35.0 | <none> | <none> | \
             <unknown> | <unknown> | <unknown>",
        ),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            json!({
                "metadata": {"name": "r"},
                "roleRef": {"kind": "Role", "name": "x"},
                "subjects": [
                    {"kind": "User", "name": "u"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                ],
            }),
            "r | Role/x | 5m | u |  | n/s",
        ),
        (
            "storage.k8s.io",
            "StorageClass",
            json!({"metadata": {"name": "c", "annotations": {
                "storageclass.kubernetes.io/is-default-class": "true",
            }}, "provisioner": "p"}),
            "c (default) | p | Delete | Immediate | false | 5m",
        ),
        (
            "events.k8s.io",
            "Event",
            json!({"metadata": {"name": "e"}, "eventTime": "2024-01-01T23:59:30.000000Z",
                "regarding": {"kind": "Pod", "name": "a"}, "note": " hello ", "reason": "Why",
                "type": "Normal", "reportingController": "c", "reportingInstance": "i"}),
            "30s | Normal | Why | pod/a |  | c, i | hello | 30s | 1 | e",
        ),
        (
            "coordination.k8s.io",
            "Lease",
            json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}),
            "l | me | 5m",
        ),
        (
            "rbac.authorization.k8s.io",
            "ClusterRole",
            json!({"metadata": {"name": "admin"}}),
            "admin | 2024-01-01T23:55:00Z",
        ),
    ] {
        assert_eq!(shown(group, kind, object), row, "{kind}");
    }
}

#[test]
fn a_custom_kind_shows_its_columns_or_its_age() {
    let mut resource = built_in("example.com", "Thing");
    resource.identity = "abc".into();
    let object = json!({
        "metadata": {"name": "t", "creationTimestamp": "2024-01-01T23:55:00Z"}, "spec": {"n": 3},
    });
    assert_eq!(row(&resource, &object, now()), [json!("t"), json!("5m")]);
    resource.columns = vec![Column {
        name: "N".into(),
        type_name: "integer".into(),
        json_path: ".spec.n".into(),
        priority: 1,
        ..Column::default()
    }];
    assert_eq!(row(&resource, &object, now()), [json!("t"), json!(3)]);
    let columns = columns(&resource);
    assert_eq!(columns[1]["name"], "N");
    assert_eq!(columns[1]["priority"], 1);
    assert_eq!(
        columns[1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.n"
    );
}

#[test]
fn a_table_holds_the_metadata_of_its_objects() {
    let object = json!({
        "kind": "ConfigMap", "metadata": {"name": "c", "resourceVersion": "7"}, "data": {"a": "b"},
    });
    let options = TableOptions {
        include: IncludeObject::Metadata,
        with_columns: true,
        api_version: "meta.k8s.io/v1",
        now: now(),
    };
    let table = table(&built_in("", "ConfigMap"), [&object], single_metadata(&object), options);
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["metadata"], json!({"resourceVersion": "7"}));
    assert_eq!(
        table["rows"][0]["object"],
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"name": "c", "resourceVersion": "7"}})
    );
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
}
