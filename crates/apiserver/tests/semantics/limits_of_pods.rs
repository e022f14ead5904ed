//! LimitRanges and RuntimeClasses: what pods get, and what they may not ask for.

use crate::support::{Api, text};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const RANGES: &str = "/api/v1/namespaces/default/limitranges";
const CLASSES: &str = "/apis/node.k8s.io/v1/runtimeclasses";

fn pod(name: &str, resources: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "containers": [{"name": "c", "image": "i", "resources": resources}]}})
}

#[tokio::test]
async fn containers_get_the_defaults_of_their_namespace() {
    let api = Api::new().await;
    let range = json!({"metadata": {"name": "defaults"}, "spec": {"limits": [{
        "type": "Container", "default": {"cpu": "500m", "memory": "500Mi"},
        "defaultRequest": {"cpu": "100m", "memory": "200Mi"},
    }]}});
    api.post(RANGES, &range).await.made();
    let made = api.post(PODS, &pod("a", json!({}))).await.made();
    assert_eq!(
        made["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m", "memory": "500Mi"},
            "requests": {"cpu": "100m", "memory": "200Mi"}})
    );
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for \
         container c"
    );
    let own = json!({"requests": {"cpu": "300m"}, "limits": {"cpu": "300m"}});
    let made = api.post(PODS, &pod("b", own)).await.made();
    let resources = &made["spec"]["containers"][0]["resources"];
    assert_eq!(resources["requests"], json!({"cpu": "300m", "memory": "200Mi"}));
}

#[tokio::test]
async fn pods_and_claims_keep_to_the_limits_of_their_namespace() {
    let api = Api::new().await;
    let range = json!({"metadata": {"name": "bounds"}, "spec": {"limits": [
        {"type": "Container", "min": {"cpu": "50m"}, "max": {"cpu": "500m"},
            "maxLimitRequestRatio": {"cpu": "2"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}},
    ]}});
    api.post(RANGES, &range).await.made();
    for (request, limit, why) in [
        ("10m", "15m", "minimum cpu usage per Container is 50m, but request is 10m"),
        ("400m", "600m", "maximum cpu usage per Container is 500m, but limit is 600m"),
        (
            "100m",
            "300m",
            "cpu max limit to request ratio per Container is 2, but provided ratio \
                          is 3.000000",
        ),
    ] {
        let asked = json!({"requests": {"cpu": request}, "limits": {"cpu": limit}});
        let status = api.post(PODS, &pod("a", asked)).await.refused(403, "Forbidden");
        assert!(text(&status["message"]).contains(why), "{status}");
        assert!(text(&status["message"]).starts_with("pods \"a\" is forbidden: "), "{status}");
    }
    let asked = json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}});
    api.post(PODS, &pod("a", asked)).await.made();
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = |size: &str| {
        json!({"metadata": {"name": "a"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}})
    };
    let status = api.post(claims, &claim("3Gi")).await.refused(403, "Forbidden");
    let why = "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi";
    assert!(text(&status["message"]).ends_with(why), "{status}");
    api.post(claims, &claim("2Gi")).await.made();
}

#[tokio::test]
async fn a_pod_gets_what_its_runtime_class_says() {
    let api = Api::new().await;
    let named = |class: &str| {
        let mut pod = pod("a", json!({}));
        pod["spec"]["runtimeClassName"] = json!(class);
        pod
    };
    let status = api.post(PODS, &named("none")).await.refused(403, "Forbidden");
    let why = "pod rejected: RuntimeClass \"none\" not found";
    assert!(text(&status["message"]).ends_with(why), "{status}");
    let class = json!({"metadata": {"name": "heavy"}, "handler": "h",
        "overhead": {"podFixed": {"cpu": "10m"}},
        "scheduling": {"nodeSelector": {"kind": "heavy"},
            "tolerations": [{"key": "heavy", "operator": "Exists"}]}});
    api.post(CLASSES, &class).await.made();
    let made = api.post(PODS, &named("heavy")).await.made();
    assert_eq!(made["spec"]["overhead"], json!({"cpu": "10m"}));
    assert_eq!(made["spec"]["nodeSelector"], json!({"kind": "heavy"}));
    let mut other = named("heavy");
    other["metadata"]["name"] = json!("b");
    other["spec"]["nodeSelector"] = json!({"kind": "light"});
    let status = api.post(PODS, &other).await.refused(403, "Forbidden");
    assert!(text(&status["message"]).contains("conflict: runtimeClass.scheduling"), "{status}");
    let mut unasked = pod("c", json!({}));
    unasked["spec"]["overhead"] = json!({"cpu": "1"});
    api.post(PODS, &unasked).await.refused(403, "Forbidden");
}
