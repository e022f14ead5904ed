//! Each row of which slices a Service has.

use super::decide::MOST_ENDPOINTS;
use super::*;
use crate::recorded::judged_again;
use interlock_kernel::testing::{NoMachine, Run, TestServers, patched, survives};
use interlock_kernel::{Action, Address, Name, Write};
use serde_json::{Value, json};

const SUBJECT: &str = "shop/web";

fn service(patch: &Value) -> Value {
    let object = json!({
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web", "labels": {"team": "a"}},
        "spec": {"selector": {"app": "web"}, "clusterIP": "10.0.0.1",
            "ports": [{"name": "http", "port": 80, "targetPort": "serve", "protocol": "TCP"}]},
    });
    patched(object, patch)
}

fn pod(name: &str, address: &str, patch: &Value) -> Value {
    let object = json!({
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"),
            "labels": {"app": "web"}},
        "spec": {"nodeName": "local", "containers": [{"name": "c",
            "ports": [{"name": "serve", "containerPort": 8080, "protocol": "TCP"}]}]},
        "status": {"phase": "Running", "podIP": address,
            "conditions": [{"type": "Ready", "status": "True"}]},
    });
    patched(object, patch)
}

fn plain(name: &str, address: &str) -> Value {
    pod(name, address, &json!({}))
}

fn deleted() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}})
}

fn unready() -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
}

fn settled(objects: Vec<Value>) -> (TestServers, Run<Nothing>) {
    let mut cluster = TestServers::of(&Endpoints).with(objects);
    let run = cluster.settle(&Endpoints, &mut NoMachine, SUBJECT);
    (cluster, run)
}

fn slice_name(slot: u32) -> Name {
    Name::within("shop", &format!("web-e{slot}"))
}

fn slice(cluster: &TestServers, slot: u32) -> Value {
    cluster.json(Place::CLUSTER, &ENDPOINT_SLICE, &slice_name(slot))
}

/// The name, the address and the three conditions of each endpoint.
fn endpoints(slice: &Value) -> Vec<String> {
    let all = slice["endpoints"].as_array().into_iter().flatten();
    let word = |endpoint: &Value, name: &str| match endpoint["conditions"][name] == true {
        true => format!(" {name}"),
        false => String::new(),
    };
    let text = |endpoint: &Value| {
        let words = ["ready", "serving", "terminating"].map(|name| word(endpoint, name));
        let name = endpoint["targetRef"]["name"].as_str().unwrap_or_default();
        let address = endpoint["addresses"][0].as_str().unwrap_or_default();
        format!("{name}@{address}{}", words.concat())
    };
    all.map(text).collect()
}

fn count(cluster: &TestServers) -> usize {
    cluster.list(Place::CLUSTER, &ENDPOINT_SLICE, None).len()
}

#[test]
fn a_slice_says_where_the_pods_are_and_whether_they_serve() {
    let leaving = patched(plain("c", "127.64.0.3"), &deleted());
    let ended = pod("d", "127.64.0.4", &json!({"status": {"phase": "Succeeded"}}));
    let other = pod("e", "127.64.0.5", &json!({"metadata": {"labels": {"app": "x"}}}));
    let without_address = pod("f", "", &json!({}));
    let unready = pod("b", "127.64.0.2", &unready());
    let pods = vec![plain("a", "127.64.0.1"), unready, leaving, ended, other, without_address];
    let (cluster, run) = settled([vec![service(&json!({}))], pods].concat());
    let slice = slice(&cluster, 0);
    let wanted = ["a@127.64.0.1 ready serving", "b@127.64.0.2", "c@127.64.0.3 serving terminating"];
    assert_eq!(endpoints(&slice), wanted);
    assert_eq!(
        slice["ports"],
        json!([{"name": "http", "port": 8080, "protocol": "TCP"}]),
        "the name of the target port is that of a port of the container"
    );
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(
        slice["metadata"]["labels"],
        json!({"team": "a", LABEL_SERVICE: "web", LABEL_MANAGED_BY: MANAGED_BY})
    );
    let owner = &slice["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("Service"), &json!("uid-web")));
    let target = json!({"kind": "Pod", "namespace": "shop", "name": "a", "uid": "uid-a"});
    assert_eq!(slice["endpoints"][0]["targetRef"], target);
    assert_eq!(slice["endpoints"][0]["nodeName"], "local");
    assert_eq!((run.writes.len(), count(&cluster)), (1, 1));
}

#[test]
fn a_service_without_endpoints_has_one_slice_that_says_so() {
    let (mut cluster, _) = settled(vec![service(&json!({}))]);
    assert_eq!((endpoints(&slice(&cluster, 0)).len(), count(&cluster)), (0, 1));
    cluster.put(Place::CLUSTER, plain("a", "127.64.0.1"));
    cluster.settle(&Endpoints, &mut NoMachine, SUBJECT);
    assert_eq!(endpoints(&slice(&cluster, 0)), ["a@127.64.0.1 ready serving"]);
    assert_eq!(count(&cluster), 1);
}

#[test]
fn what_a_pod_says_next_is_one_write_to_its_slice() {
    let (mut cluster, _) = settled(vec![service(&json!({})), plain("a", "127.64.0.1")]);
    cluster.change(Place::CLUSTER, &POD, &Name::within("shop", "a"), &unready());
    let run = cluster.settle(&Endpoints, &mut NoMachine, SUBJECT);
    assert_eq!(
        (run.writes.len(), endpoints(&slice(&cluster, 0))),
        (1, vec!["a@127.64.0.1".to_owned()])
    );
    cluster.delete(Place::CLUSTER, &POD, &Name::within("shop", "a"));
    cluster.settle(&Endpoints, &mut NoMachine, SUBJECT);
    assert!(endpoints(&slice(&cluster, 0)).is_empty());
}

#[test]
fn a_service_that_publishes_all_addresses_calls_every_pod_ready() {
    let all = service(&json!({"spec": {"publishNotReadyAddresses": true}}));
    let pods = [pod("b", "127.64.0.2", &unready()), patched(plain("c", "127.64.0.3"), &deleted())];
    let (cluster, _) = settled([vec![all], pods.to_vec()].concat());
    let wanted = ["b@127.64.0.2 ready", "c@127.64.0.3 ready serving terminating"];
    assert_eq!(endpoints(&slice(&cluster, 0)), wanted);
}

#[test]
fn a_headless_service_says_so_and_names_its_hosts() {
    let headless = service(&json!({"spec": {"clusterIP": "None", "ports": null}}));
    let host = json!({"spec": {"hostname": "web-0", "subdomain": "web"}});
    let elsewhere = json!({"spec": {"hostname": "web-1", "subdomain": "other"}});
    let pods = [pod("a", "127.64.0.1", &host), pod("b", "127.64.0.2", &elsewhere)];
    let (cluster, _) = settled([vec![headless], pods.to_vec()].concat());
    let slice = slice(&cluster, 0);
    assert_eq!(slice["metadata"]["labels"][LABEL_HEADLESS], "");
    assert_eq!(slice["ports"], json!([]));
    assert_eq!(slice["endpoints"][0]["hostname"], "web-0");
    assert!(slice["endpoints"][1]["hostname"].is_null());
}

#[test]
fn pods_that_serve_at_different_ports_are_in_different_slices() {
    let moved = json!({"spec": {"containers": [{"name": "c",
        "ports": [{"name": "serve", "containerPort": 9090}]}]}});
    let nowhere = json!({"spec": {"containers": [{"name": "c"}]}});
    let pods = [
        plain("a", "127.64.0.1"),
        pod("b", "127.64.0.2", &moved),
        pod("c", "127.64.0.3", &nowhere),
    ];
    let (cluster, _) = settled([vec![service(&json!({}))], pods.to_vec()].concat());
    let mut ports: Vec<Value> =
        (0..3).map(|slot| slice(&cluster, slot)["ports"][0]["port"].clone()).collect();
    ports.sort_by_key(Value::to_string);
    assert_eq!(ports, [json!(8080), json!(9090), Value::Null]);
}

#[test]
fn a_port_without_a_target_is_the_one_of_the_service() {
    for (target, number) in [(json!(null), 80), (json!(0), 80), (json!(7070), 7070)] {
        let ports = json!([{"port": 80, "targetPort": target, "appProtocol": "h2c"}]);
        let service = service(&json!({"spec": {"ports": ports}}));
        let (cluster, _) = settled(vec![service, plain("a", "127.64.0.1")]);
        let port = slice(&cluster, 0)["ports"][0].clone();
        let wanted = json!({"name": "", "port": number, "protocol": "TCP", "appProtocol": "h2c"});
        assert_eq!(port, wanted);
    }
}

#[test]
fn a_slice_has_a_hundred_endpoints_and_a_pod_stays_where_it_is() {
    let many = MOST_ENDPOINTS + 1;
    let pods =
        (0..many).map(|number| plain(&format!("p{number:03}"), &format!("127.64.1.{number}")));
    let (mut cluster, run) = settled([vec![service(&json!({}))], pods.collect()].concat());
    let sizes = |cluster: &TestServers| [0, 1].map(|slot| endpoints(&slice(cluster, slot)).len());
    assert_eq!((run.writes.len(), sizes(&cluster)), (2, [MOST_ENDPOINTS, 1]));
    cluster.delete(Place::CLUSTER, &POD, &Name::within("shop", "p000"));
    let run = cluster.settle(&Endpoints, &mut NoMachine, SUBJECT);
    assert_eq!((run.writes.len(), sizes(&cluster)), (1, [MOST_ENDPOINTS - 1, 1]));
    let last = format!("p{:03}", many - 1);
    cluster.delete(Place::CLUSTER, &POD, &Name::within("shop", &last));
    cluster.settle(&Endpoints, &mut NoMachine, SUBJECT);
    assert_eq!((sizes(&cluster), count(&cluster)), ([MOST_ENDPOINTS - 1, 0], 1));
}

#[test]
fn a_new_port_is_written_into_the_slice_that_is_there() {
    let (mut cluster, _) = settled(vec![service(&json!({})), plain("a", "127.64.0.1")]);
    let change = json!({"spec": {"ports": [{"name": "http", "port": 80, "targetPort": 9}]}});
    cluster.change(Place::CLUSTER, &SERVICE, &Name::within("shop", "web"), &change);
    let run = cluster.settle(&Endpoints, &mut NoMachine, SUBJECT);
    assert_eq!((run.writes.len(), count(&cluster)), (1, 1));
    assert_eq!(slice(&cluster, 0)["ports"][0]["port"], 9);
}

#[test]
fn labels_follow_the_service() {
    let (mut cluster, _) = settled(vec![service(&json!({}))]);
    let change = json!({"metadata": {"labels": {"team": null, "tier": "front"}}});
    cluster.change(Place::CLUSTER, &SERVICE, &Name::within("shop", "web"), &change);
    cluster.settle(&Endpoints, &mut NoMachine, SUBJECT);
    let wanted = json!({"tier": "front", LABEL_SERVICE: "web", LABEL_MANAGED_BY: MANAGED_BY});
    assert_eq!(slice(&cluster, 0)["metadata"]["labels"], wanted);
}

#[test]
fn a_service_that_selects_nothing_is_left_to_whoever_writes_its_slices() {
    for patch in [
        json!({"spec": {"selector": null}}),
        json!({"spec": {"selector": {"app": null}}}),
        json!({"spec": {"type": "ExternalName"}}),
        deleted(),
    ] {
        let (cluster, run) = settled(vec![service(&patch), plain("a", "127.64.0.1")]);
        assert_eq!((count(&cluster), run.writes.len()), (0, 0), "{patch}");
    }
}

#[test]
fn a_slice_of_somebody_else_keeps_its_name() {
    let other = json!({"kind": "EndpointSlice", "addressType": "IPv4", "endpoints": [],
        "metadata": {"name": "web-e0", "namespace": "shop", "uid": "u",
            "labels": {LABEL_SERVICE: "web"}}});
    let (cluster, _) = settled(vec![service(&json!({})), plain("a", "127.64.0.1"), other]);
    assert!(endpoints(&slice(&cluster, 0)).is_empty());
    assert_eq!(endpoints(&slice(&cluster, 1)), ["a@127.64.0.1 ready serving"]);
}

#[test]
fn slices_go_only_after_a_live_read_shows_no_service() {
    let (mut cluster, _) = settled(vec![service(&json!({})), plain("a", "127.64.0.1")]);
    let address = Address::new(Place::CLUSTER, &SERVICE, Name::within("shop", "web"));
    let live = cluster.get(Place::CLUSTER, &SERVICE, &address.name);
    cluster.delete(Place::CLUSTER, &SERVICE, &address.name);
    let mut reads = LiveReads::default();
    reads.objects.insert(address, live);
    let step = cluster.view().step_with(&Endpoints, SUBJECT, &reads);
    assert!(matches!(step, Step::Wait { .. }), "the cache was behind: {step:?}");
    let step = cluster.view().step_with(&Endpoints, SUBJECT, &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    let run = cluster.settle(&Endpoints, &mut NoMachine, SUBJECT);
    assert_eq!(count(&cluster), 0);
    let [Write::Delete { resource_version, .. }] = &run.writes[..] else { panic!("{run:?}") };
    assert!(resource_version.is_some(), "one that somebody takes over meanwhile stays");
}

#[test]
fn a_slice_that_somebody_wrote_over_is_written_again() {
    let (mut cluster, _) = settled(vec![service(&json!({})), plain("a", "127.64.0.1")]);
    for spoilt in [
        json!({"endpoints": null}),
        json!({"endpoints": [{"addresses": ["127.64.0.1"]}]}),
        json!({"ports": [{"name": "http"}]}),
        json!({"metadata": {"ownerReferences": null}}),
    ] {
        cluster.change(Place::CLUSTER, &ENDPOINT_SLICE, &slice_name(0), &spoilt);
        let run = cluster.settle(&Endpoints, &mut NoMachine, SUBJECT);
        assert_eq!(run.writes.len(), 1, "{spoilt}");
        assert_eq!(endpoints(&slice(&cluster, 0)), ["a@127.64.0.1 ready serving"]);
    }
}

#[test]
fn a_pod_wakes_the_services_that_select_it_and_those_that_name_it() {
    let (mut cluster, _) = settled(vec![service(&json!({})), plain("a", "127.64.0.1")]);
    let other = patched(
        service(&json!({})),
        &json!({"metadata": {"name": "api", "uid": "v"},
        "spec": {"selector": {"app": "api"}}}),
    );
    cluster.put(Place::CLUSTER, other);
    let moved = json!({"metadata": {"labels": {"app": "api"}}});
    cluster.change(Place::CLUSTER, &POD, &Name::within("shop", "a"), &moved);
    let pod = cluster.get(Place::CLUSTER, &POD, &Name::within("shop", "a")).expect("the pod");
    let woken = Endpoints.subjects(&Watch::all(Place::CLUSTER, &POD), &pod, &cluster.view());
    assert_eq!(woken, [Subject::from("shop/api"), Subject::from("shop/web")]);
}

#[test]
fn a_step_makes_one_write_with_its_reason() {
    let cluster = TestServers::of(&Endpoints).with([service(&json!({})), plain("a", "127.64.0.1")]);
    let Step::Act(effect) = cluster.step(&Endpoints, &NoMachine, SUBJECT) else { panic!() };
    assert!(matches!(effect.action, Action::Write(Write::Create { .. })));
    assert_eq!(effect.because, "1 endpoints of the Service are in no slice");
}

#[test]
fn broken_objects_do_not_break_it() {
    let (cluster, _) = settled(vec![service(&json!({})), plain("a", "127.64.0.1")]);
    let slice = slice(&cluster, 0);
    let objects = [service(&json!({})), plain("a", "127.64.0.1"), slice];
    survives(&Endpoints, &NoMachine, &objects);
    judged_again(&Endpoints, &objects);
}
