//! What each built-in kind does on a write, and that no object makes any of it panic.

use super::every_kind::{EVERY_KIND, Noise, built_in};
use super::*;
use serde_json::{Value, json};

fn custom() -> Resource {
    let mut resource = built_in("example.com", "Thing");
    resource.identity = "abc".into();
    resource
}

fn defaulted(group: &str, kind: &str, mut object: Value) -> Value {
    defaults(&built_in(group, kind), &mut object);
    object
}

/// What is wrong with an object after its defaults, one sentence each.
fn problems(group: &str, kind: &str, object: Value) -> Vec<String> {
    let object = defaulted(group, kind, object);
    validate(&built_in(group, kind), &object).iter().map(ToString::to_string).collect()
}

fn changes(group: &str, kind: &str, old: &Value, new: &Value) -> Vec<String> {
    let errors = validate_update(&built_in(group, kind), old, new);
    errors.iter().map(ToString::to_string).collect()
}

fn deployment() -> Value {
    json!({
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
            },
        },
    })
}

#[test]
fn no_object_makes_anything_panic_and_defaults_fill_in_once() {
    let mut noise = Noise::new(7);
    let mut kinds: Vec<Resource> =
        EVERY_KIND.iter().map(|(group, kind)| built_in(group, kind)).collect();
    kinds.push(custom());
    for resource in &kinds {
        for _ in 0..40 {
            let (mut object, mut old) = (noise.object(), noise.object());
            defaults(resource, &mut object);
            let once = object.clone();
            defaults(resource, &mut object);
            assert_eq!(object, once, "{}", resource.kind);
            prepare_create(resource, &mut object);
            complete_create(resource, &mut object);
            bump_generation(resource, None, &mut object);
            defaults(resource, &mut old);
            for endpoint in [Endpoint::Main, Endpoint::Status] {
                let mut new = object.clone();
                prepare_update(resource, &old, &mut new, endpoint);
                bump_generation(resource, Some(&old), &mut new);
                validate(resource, &new);
                validate_update(resource, &old, &new);
            }
            validate(resource, &object);
            validate_create(resource, &object);
            validate_update(resource, &old, &object);
            for field in ["metadata.name", "spec.nodeName", "regarding.name", "", "."] {
                selectable_fields(resource, &object, field);
            }
            events::to_events_v1(&mut object);
            events::from_events_v1(&mut object);
        }
        for odd in [json!(null), json!([1]), json!("x"), json!(7)] {
            let mut object = odd.clone();
            defaults(resource, &mut object);
            prepare_create(resource, &mut object);
            complete_create(resource, &mut object);
            prepare_update(resource, &odd, &mut object, Endpoint::Status);
            bump_generation(resource, Some(&odd), &mut object);
            validate(resource, &object);
            validate_update(resource, &odd, &object);
        }
    }
}

#[test]
fn kinds_have_the_name_rules_that_upstream_has() {
    assert_eq!(name_rule(&built_in("", "Namespace")), NameRule::Dns1123Label);
    assert_eq!(name_rule(&built_in("", "Service")), NameRule::Dns1035Label);
    let role = built_in("rbac.authorization.k8s.io", "ClusterRole");
    assert_eq!(name_rule(&role), NameRule::PathSegment);
    assert_eq!(name_rule(&built_in("", "ConfigMap")), NameRule::Dns1123Subdomain);
    assert_eq!(name_rule(&custom()), NameRule::Dns1123Subdomain);
}

#[test]
fn a_deployment_is_filled_in_down_to_its_containers() {
    let object = defaulted("apps", "Deployment", deployment());
    let spec = &object["spec"];
    assert_eq!(spec["replicas"], 1);
    assert_eq!(spec["progressDeadlineSeconds"], 600);
    assert_eq!(
        spec["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {
            "maxSurge": "25%", "maxUnavailable": "25%"}})
    );
    assert_eq!(
        spec["template"]["spec"],
        json!({
            "containers": [{
                "name": "c", "image": "nginx:1", "imagePullPolicy": "IfNotPresent", "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {},
            "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30,
        })
    );
}

#[test]
fn a_pod_requests_what_it_is_limited_to() {
    let pod = json!({"spec": {
        "containers": [{
            "name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}},
            "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 80}},
        }],
        "volumes": [{"name": "v"}, {"name": "s", "secret": {}}],
    }});
    let object = defaulted("", "Pod", pod);
    let container = &object["spec"]["containers"][0];
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["resources"]["requests"], json!({"cpu": "1"}));
    assert_eq!(container["ports"][0]["protocol"], "TCP");
    assert_eq!(
        container["livenessProbe"],
        json!({"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
            "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3})
    );
    assert_eq!(object["spec"]["volumes"][0]["emptyDir"], json!({}));
    assert_eq!(object["spec"]["volumes"][1]["secret"]["defaultMode"], 420);
    assert_eq!(object["spec"]["enableServiceLinks"], true);
}

#[test]
fn small_kinds_are_filled_in() {
    for (group, kind, object, filled) in [
        ("", "Secret", json!({}), json!({"type": "Opaque"})),
        (
            "",
            "Namespace",
            json!({"metadata": {"name": "n"}}),
            json!({"metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}},
                "spec": {}, "status": {"phase": "Active"}}),
        ),
        (
            "",
            "Service",
            json!({"spec": {"ports": [{"port": 80}]}}),
            json!({"spec": {
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}], "type": "ClusterIP",
                "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            }}),
        ),
        (
            "storage.k8s.io",
            "StorageClass",
            json!({}),
            json!({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
        ),
        (
            "networking.k8s.io",
            "NetworkPolicy",
            json!({"spec": {"egress": [{}]}}),
            json!({"spec": {"egress": [{}], "policyTypes": ["Ingress", "Egress"]}}),
        ),
        ("", "ConfigMap", json!({"data": {}}), json!({"data": {}})),
    ] {
        assert_eq!(defaulted(group, kind, object), filled, "{kind}");
    }
}

#[test]
fn a_new_object_starts_with_the_servers_status() {
    let mut deployment = json!({"status": {"replicas": 9}});
    prepare_create(&built_in("apps", "Deployment"), &mut deployment);
    assert_eq!(deployment["status"], json!({}));
    let mut thing = json!({"status": {"ready": true}});
    prepare_create(&custom(), &mut thing);
    assert_eq!(thing, json!({}));
    let mut namespace = json!({"metadata": {"name": "n"}});
    prepare_create(&built_in("", "Namespace"), &mut namespace);
    assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
    let mut node = json!({"status": {"phase": "kept"}});
    prepare_create(&built_in("", "Node"), &mut node);
    assert_eq!(node["status"]["phase"], "kept");
    let mut pod = json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}});
    prepare_create(&built_in("", "Pod"), &mut pod);
    assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "Burstable"}));
}

#[test]
fn plain_text_of_a_secret_becomes_data() {
    let mut secret = json!({"data": {"a": "eA=="}, "stringData": {"b": "hello", "c": ""}});
    prepare_create(&built_in("", "Secret"), &mut secret);
    assert_eq!(secret, json!({"data": {"a": "eA==", "b": "aGVsbG8=", "c": ""}}));
}

#[test]
fn a_job_selects_its_pods_by_its_uid() {
    let mut job = json!({"metadata": {"name": "j", "uid": "u1"}, "spec": {"template": {}}});
    complete_create(&built_in("batch", "Job"), &mut job);
    assert_eq!(
        job["spec"]["selector"],
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}})
    );
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["job-name"], "j");
}

#[test]
fn a_write_of_the_object_leaves_the_status_and_the_other_way_round() {
    let old = json!({
        "metadata": {"name": "a", "labels": {"l": "old"}, "generation": 3},
        "spec": {"replicas": 1}, "status": {"replicas": 1},
    });
    let sent = json!({
        "metadata": {"name": "a", "labels": {"l": "new"}, "managedFields": [{}]},
        "spec": {"replicas": 2}, "status": {"replicas": 2},
    });
    for resource in [custom(), built_in("apps", "ReplicaSet")] {
        let mut new = sent.clone();
        prepare_update(&resource, &old, &mut new, Endpoint::Main);
        bump_generation(&resource, Some(&old), &mut new);
        assert_eq!(new["spec"]["replicas"], 2);
        assert_eq!(new["status"]["replicas"], 1);
        assert_eq!(new["metadata"]["generation"], 4);
        let mut new = sent.clone();
        prepare_update(&resource, &old, &mut new, Endpoint::Status);
        bump_generation(&resource, Some(&old), &mut new);
        assert_eq!(new["spec"]["replicas"], 1);
        assert_eq!(new["status"]["replicas"], 2);
        assert_eq!(new["metadata"]["generation"], 3);
        assert_eq!(new["metadata"]["managedFields"], json!([{}]));
        let label = if resource.is_custom() { "old" } else { "new" };
        assert_eq!(new["metadata"]["labels"]["l"], label);
    }
}

#[test]
fn the_generation_moves_when_what_is_wanted_changes() {
    let bumped = |resource: &Resource, old: Value, mut new: Value| {
        bump_generation(resource, Some(&old), &mut new);
        new["metadata"]["generation"].clone()
    };
    let config = built_in("", "ConfigMap");
    assert_eq!(bumped(&config, json!({"data": {}}), json!({"data": {"a": "b"}})), json!(null));
    let old = json!({"metadata": {"generation": 1, "annotations": {"a": "1"}}, "spec": {}});
    let new = json!({"metadata": {"annotations": {"a": "2"}}, "spec": {}});
    assert_eq!(bumped(&built_in("apps", "Deployment"), old.clone(), new.clone()), 2);
    assert_eq!(bumped(&built_in("apps", "ReplicaSet"), old.clone(), new.clone()), 1);
    assert_eq!(bumped(&custom(), old, new), 1);
    let mut without_status = custom();
    without_status.has_status = false;
    let old = json!({"metadata": {"generation": 1}, "status": 1});
    assert_eq!(bumped(&without_status, old, json!({"metadata": {}, "status": 2})), 2);
    let mut fresh = json!({"metadata": {}});
    bump_generation(&custom(), None, &mut fresh);
    assert_eq!(fresh["metadata"]["generation"], 1);
}

#[test]
fn a_good_deployment_passes_and_a_bad_one_is_refused_in_upstreams_words() {
    assert_eq!(problems("apps", "Deployment", deployment()), [""; 0]);
    let mut bad = deployment();
    bad["spec"]["template"]["metadata"]["labels"] = json!({"app": "x"});
    bad["spec"]["replicas"] = json!(-1);
    bad["spec"]["template"]["spec"]["containers"] = json!([{"name": "C"}, {"image": "i"}]);
    let said = problems("apps", "Deployment", bad);
    assert_eq!(said[0], "spec.replicas: Invalid value: -1: must be greater than or equal to 0");
    assert_eq!(
        said[1],
        "spec.template.metadata.labels: Invalid value: {\"app\":\"x\"}: `selector` does not match \
         template `labels`"
    );
    assert!(said[2].starts_with(
        "spec.template.spec.containers[0].name: Invalid value: \"C\": a lowercase RFC 1123 label"
    ));
    assert_eq!(said[3], "spec.template.spec.containers[0].image: Required value");
    assert_eq!(said[4], "spec.template.spec.containers[1].name: Required value");
}

#[test]
fn objects_are_refused_in_upstreams_words() {
    for (group, kind, object, said) in [
        ("", "Pod", json!({"spec": {}}), "spec.containers: Required value"),
        (
            "",
            "Pod",
            json!({"spec": {"containers": [
                {"name": "a", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
            ]}}),
            "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
        ),
        (
            "",
            "Pod",
            json!({"spec": {"containers": [
                {"name": "a", "image": "i", "resources": {
                    "requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
            ]}}),
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or \
             equal to cpu limit of 1",
        ),
        (
            "",
            "Pod",
            json!({"spec": {"containers": [
                {"name": "a", "image": "i"}, {"name": "a", "image": "i"},
            ]}}),
            "spec.containers[1].name: Duplicate value: \"a\"",
        ),
        ("", "Service", json!({"spec": {}}), "spec.ports: Required value"),
        (
            "",
            "Service",
            json!({"spec": {"ports": [{"port": 0, "targetPort": 1}]}}),
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            "",
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"]}}),
            "spec.resources[storage]: Required value",
        ),
        (
            "",
            "Secret",
            json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}),
            "data[tls.key]: Required value",
        ),
        (
            "",
            "ConfigMap",
            json!({"data": {"..": ""}}),
            "data[..]: Invalid value: \"..\": must not be '..'",
        ),
        (
            "",
            "ResourceQuota",
            json!({"spec": {"hard": {"pods": "-1"}}}),
            "spec.hard[pods]: Invalid value: \"-1\": must be greater than or equal to 0",
        ),
        (
            "batch",
            "CronJob",
            json!({"spec": {"schedule": "x", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "a", "image": "i"}]}}}}}}),
            "spec.schedule: Invalid value: \"x\": expected exactly 5 fields, found 1: [x]",
        ),
        (
            "coordination.k8s.io",
            "Lease",
            json!({"spec": {"leaseDurationSeconds": 0}}),
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            "scheduling.k8s.io",
            "PriorityClass",
            json!({"metadata": {"name": "p"}, "value": 2_000_000_000}),
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            "networking.k8s.io",
            "Ingress",
            json!({"spec": {}}),
            "spec: Invalid value: []: either `defaultBackend` or `rules` must be specified",
        ),
    ] {
        assert_eq!(problems(group, kind, object), [said], "{kind}");
    }
}

#[test]
fn a_config_map_holds_a_mebibyte_and_no_more() {
    let config = |size: usize| json!({"data": {"a": "x".repeat(size)}});
    assert_eq!(problems("", "ConfigMap", config(1_048_576)), [""; 0]);
    assert_eq!(
        problems("", "ConfigMap", config(1_048_577)),
        ["Too long: may not be more than 1048576 bytes"]
    );
}

#[test]
fn what_is_fixed_cannot_be_changed() {
    for (group, kind, old, new, said) in [
        (
            "apps",
            "Deployment",
            json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}}),
            json!({"spec": {"selector": {"matchLabels": {"a": "2"}}}}),
            "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"2\"}}: field is immutable",
        ),
        (
            "",
            "ConfigMap",
            json!({"immutable": true, "data": {"a": "1"}}),
            json!({"immutable": true, "data": {"a": "2"}}),
            "data: Forbidden: field is immutable when `immutable` is set",
        ),
        (
            "",
            "Secret",
            json!({"type": "Opaque"}),
            json!({"type": "kubernetes.io/tls"}),
            "type: Invalid value: \"kubernetes.io/tls\": field is immutable",
        ),
        (
            "",
            "Service",
            json!({"spec": {"clusterIPs": ["10.0.0.1"]}}),
            json!({"spec": {"clusterIPs": ["10.0.0.2"]}}),
            "spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set",
        ),
        (
            "",
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"]}}),
            json!({"spec": {"accessModes": ["ReadWriteMany"]}}),
            "spec: Forbidden: spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims",
        ),
        (
            "storage.k8s.io",
            "StorageClass",
            json!({"provisioner": "a"}),
            json!({"provisioner": "b"}),
            "provisioner: Forbidden: updates to provisioner are forbidden.",
        ),
        (
            "apps",
            "StatefulSet",
            json!({"spec": {"replicas": 1, "serviceName": "a"}}),
            json!({"spec": {"replicas": 2, "serviceName": "b"}}),
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', \
             'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
             'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ),
        (
            "scheduling.k8s.io",
            "PriorityClass",
            json!({"value": 1}),
            json!({"value": 2}),
            "value: Forbidden: may not be changed in an update.",
        ),
        (
            "networking.k8s.io",
            "IngressClass",
            json!({"spec": {"controller": "a.io/b"}}),
            json!({"spec": {"controller": "a.io/c"}}),
            "spec.controller: Invalid value: \"a.io/c\": field is immutable",
        ),
    ] {
        assert_eq!(changes(group, kind, &old, &new), [said], "{kind}");
        assert_eq!(changes(group, kind, &old, &old), [""; 0], "{kind}");
    }
}

#[test]
fn a_bound_claim_may_grow_but_not_shrink() {
    let claim = |size: &str| {
        json!({"spec": {"resources": {"requests": {"storage": size}}}, "status": {
            "phase": "Bound", "capacity": {"storage": "1Gi"}}})
    };
    assert_eq!(changes("", "PersistentVolumeClaim", &claim("1Gi"), &claim("2Gi")), [""; 0]);
    assert_eq!(
        changes("", "PersistentVolumeClaim", &claim("1Gi"), &claim("512Mi")),
        ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]
    );
}

#[test]
fn a_pods_image_may_change_and_little_else() {
    let pod = |image: &str, command: &str| {
        let container = json!({"name": "c", "image": image, "command": [command]});
        json!({"spec": {"containers": [container]}})
    };
    assert_eq!(changes("", "Pod", &pod("a", "x"), &pod("b", "x")), [""; 0]);
    assert!(
        changes("", "Pod", &pod("a", "x"), &pod("a", "y"))[0]
            .starts_with("spec: Forbidden: pod updates may not change fields other than")
    );
}
