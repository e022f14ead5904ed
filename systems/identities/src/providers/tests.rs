//! Each row of what the issuer of a cluster gets.

use super::record::Record;
use super::*;
use crate::outside::{Code, Failure};
use crate::testing::{Calls, FakeCloud, settings};
use interlock_kernel::Name;
use interlock_kernel::testing::{Run, TestServers, condition, survives};
use serde_json::{Value, json};

const EAST: &str = "https://east.example/issuers/1";
const WEST: &str = "https://west.example/issuers/2";

fn room(manages_providers: bool) -> Providers {
    Providers { settings: Arc::new(Settings { manages_providers, ..(*settings()).clone() }) }
}

fn cluster(name: &str, issuer: Option<&str>) -> Value {
    json!({"kind": "WorkloadCluster", "status": {"issuer": issuer},
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 1}})
}

struct World {
    room: Providers,
    hub: TestServers,
    cloud: FakeCloud,
}

impl World {
    fn with(manages: bool, clusters: impl IntoIterator<Item = Value>) -> World {
        let room = room(manages);
        let hub = TestServers::of(&room).with(clusters);
        World { room, hub, cloud: FakeCloud::new() }
    }

    fn settle(&mut self) -> Run<Cloud> {
        self.hub.settle(&self.room, &mut self.cloud, "east")
    }

    /// Time passes for all: the process, the cloud and the hub.
    fn pass(&mut self, seconds: i64) -> Run<Cloud> {
        self.cloud.pass(seconds);
        self.hub.pass(seconds);
        self.settle()
    }

    fn json(&self) -> Value {
        self.hub.json(Place::HUB, &CLUSTER, &Name::cluster_wide("east"))
    }

    fn change(&mut self, patch: &Value) {
        self.hub.change(Place::HUB, &CLUSTER, &Name::cluster_wide("east"), patch);
    }

    fn issuer_ready(&self) -> String {
        let object = self.json();
        let found = condition(&object, "IssuerReady");
        format!("{} {}", found["status"], found["reason"]).replace('"', "")
    }

    fn has_provider(&self, issuer: &str) -> bool {
        self.cloud.account.providers.contains_key(issuer)
    }
}

#[test]
fn a_cluster_without_an_issuer_is_not_ready() {
    for issuer in [None, Some("")] {
        let mut world = World::with(true, [cluster("east", issuer)]);
        world.settle();
        assert_eq!(world.issuer_ready(), "False IssuerMissing");
        assert!(world.cloud.take().is_empty());
    }
}

#[test]
fn two_clusters_with_one_issuer_are_both_not_ready_and_named() {
    let slash = format!("{EAST}/");
    for other in [EAST, &slash, "https://EAST.example/issuers/1"] {
        let clusters = [cluster("east", Some(EAST)), cluster("west", Some(other))];
        let mut world = World::with(true, clusters);
        let run = world.settle();
        assert_eq!(world.issuer_ready(), "False IssuerShared");
        let object = world.json();
        let message = condition(&object, "IssuerReady")["message"].as_str().unwrap_or_default();
        assert!(message.contains("west"), "{message}");
        assert_eq!(run.waits_seconds, Some(30));
        assert!(world.cloud.take().is_empty());
    }
}

#[test]
fn a_cluster_that_the_cache_does_not_show_yet_is_found_by_the_live_read() {
    let mut world = World::with(false, [cluster("east", Some(EAST))]);
    world.cloud.account.providers.insert(EAST.to_owned(), crate::outside::Tags::new());
    let view = world.hub.view();
    let mut live_reads = LiveReads::default();
    let Step::LiveRead { reads, .. } = view.step_with(&world.room, "east", &live_reads) else {
        panic!("it reads first")
    };
    for read in reads {
        let ask = |question: &_| interlock_kernel::testing::Machine::ask(&world.cloud, question);
        view.read_live(read, ask, &mut live_reads);
    }
    let mut other = TestServers::of(&world.room).with([cluster("west", Some(EAST))]);
    other.put(Place::HUB, cluster("east", Some(EAST)));
    let all = other.list(Place::HUB, &CLUSTER, None);
    live_reads.lists.insert((Place::HUB, CLUSTER, None), all);
    let Step::Act(effect) = view.step_with(&world.room, "east", &live_reads) else {
        panic!("it reports")
    };
    assert!(effect.because.contains("west"), "{}", effect.because);
}

#[test]
fn a_provider_is_only_checked_and_the_command_that_adds_it_is_named() {
    let mut world = World::with(false, [cluster("east", Some(EAST))]);
    let run = world.settle();
    assert_eq!(world.issuer_ready(), "False NoProvider");
    let object = world.json();
    let next = condition(&object, "IssuerReady")["next"].as_str().unwrap_or_default();
    assert!(next.contains("create-open-id-connect-provider") && next.contains(EAST), "{next}");
    assert_eq!(run.waits_seconds, Some(30));
    assert!(world.cloud.take().is_empty());
    world.cloud.account.providers.insert(EAST.to_owned(), crate::outside::Tags::new());
    assert!(world.pass(10).writes.is_empty(), "a heartbeat alone costs no call");
    world.pass(30);
    assert_eq!(world.issuer_ready(), "True ProviderFound");
    // Nothing was made, so nothing keeps the cluster.
    world.hub.delete(Place::HUB, &CLUSTER, &Name::cluster_wide("east"));
    world.settle();
    assert_eq!(world.json(), Value::Null);
    assert!(world.has_provider(EAST));
}

#[test]
fn a_provider_is_made_under_a_mark_and_deleted_with_the_cluster() {
    let mut world = World::with(true, [cluster("east", Some(EAST))]);
    let run = world.settle();
    assert_eq!(world.cloud.take(), ["CreateOpenIDConnectProvider"]);
    // The finalizer, the mark, the condition.
    assert_eq!(run.writes.len(), 3);
    assert_eq!(world.issuer_ready(), "True ProviderFound");
    assert_eq!(world.cloud.account.providers[EAST]["interlock.dev/owner-uid"], "uid-east");
    world.pass(61);
    let record = Record::read(&world.hub.list(Place::HUB, &CLUSTER, None)[0]);
    assert_eq!((record.mark, record.issuer.as_deref()), (None, Some(EAST)));
    assert!(world.pass(60).writes.is_empty());
    // Somebody deletes it, and the next comparison finds out.
    world.cloud.account.providers.clear();
    world.pass(600);
    assert_eq!(world.cloud.take(), ["CreateOpenIDConnectProvider"]);
    world.pass(61);
    let held = json!({"metadata": {"finalizers":
        ["interlock.dev/oidc-provider", "interlock.dev/live-grants"]}});
    world.change(&held);
    world.hub.delete(Place::HUB, &CLUSTER, &Name::cluster_wide("east"));
    world.settle();
    assert!(world.has_provider(EAST), "its namespaces may need it");
    world.change(&json!({"metadata": {"finalizers": ["interlock.dev/oidc-provider"]}}));
    world.settle();
    assert_eq!(world.cloud.take(), ["DeleteOpenIDConnectProvider"]);
    assert_ne!(world.json(), Value::Null, "a late call may still land");
    world.pass(61);
    assert_eq!((world.json(), world.has_provider(EAST)), (Value::Null, false));
}

#[test]
fn a_provider_of_others_is_used_and_stays() {
    let mut world = World::with(true, [cluster("east", Some(EAST))]);
    world.settle();
    world.pass(61);
    let tags = world.cloud.account.providers.get_mut(EAST).expect("a provider");
    tags.insert("interlock.dev/owner-uid".to_owned(), "another".to_owned());
    world.cloud.take();
    world.hub.delete(Place::HUB, &CLUSTER, &Name::cluster_wide("east"));
    world.settle();
    world.pass(61);
    assert_eq!((world.json(), world.has_provider(EAST)), (Value::Null, true));
    assert!(world.cloud.take().is_empty());
}

#[test]
fn the_provider_of_an_issuer_that_changed_goes_first() {
    let mut world = World::with(true, [cluster("east", Some(EAST))]);
    world.settle();
    world.pass(61);
    world.cloud.take();
    world.change(&json!({"status": {"issuer": WEST}}));
    world.settle();
    assert_eq!(world.cloud.take(), ["DeleteOpenIDConnectProvider"]);
    world.pass(61);
    assert_eq!(world.cloud.take(), ["CreateOpenIDConnectProvider"]);
    assert!(world.has_provider(WEST) && !world.has_provider(EAST));
    assert_eq!(world.issuer_ready(), "True ProviderFound");
}

#[test]
fn a_lost_answer_and_another_process_are_waited_out_before_the_cluster_is_gone() {
    let mut world = World::with(true, [cluster("east", Some(EAST))]);
    world.cloud.calls = Calls::Unheard;
    world.settle();
    world.cloud.restart();
    world.cloud.account.providers.clear();
    world.hub.delete(Place::HUB, &CLUSTER, &Name::cluster_wide("east"));
    world.settle();
    assert_ne!(world.json(), Value::Null);
    world.pass(61);
    assert_eq!(world.json(), Value::Null);
}

#[test]
fn an_outage_leaves_the_condition_and_a_refusal_is_reported() {
    let mut world = World::with(true, [cluster("east", Some(EAST))]);
    world.cloud.calls = Calls::Refused(Code::LimitExceeded);
    world.settle();
    assert_eq!(world.issuer_ready(), "False LimitExceeded");
    world.cloud.calls = Calls::Answered;
    world.pass(301);
    assert_eq!(world.issuer_ready(), "True ProviderFound");
    world.cloud.failure = Some(Failure::Unavailable { why: "down".to_owned() });
    world.pass(700);
    assert_eq!(world.issuer_ready(), "True ProviderFound");
    let mut world = World::with(true, [cluster("east", Some(EAST))]);
    world.cloud.failure = Some(Failure::Unavailable { why: "down".to_owned() });
    world.settle();
    assert_eq!(world.issuer_ready(), "False Unavailable");
}

#[test]
fn a_record_that_cannot_be_read_counts_as_calls_of_another_process() {
    let mut broken = cluster("east", Some(EAST));
    broken["metadata"]["annotations"] = json!({"interlock.dev/oidc-provider": "no JSON"});
    let mut world = World::with(true, [broken]);
    world.settle();
    assert!(world.cloud.take().is_empty());
    world.pass(61);
    assert_eq!(world.cloud.take(), ["CreateOpenIDConnectProvider"]);
}

#[test]
fn clusters_with_one_issuer_wake_each_other() {
    let clusters = [cluster("east", Some(EAST)), cluster("west", Some(EAST))];
    let world = World::with(true, clusters);
    let west = world.hub.get(Place::HUB, &CLUSTER, &Name::cluster_wide("west")).expect("west");
    let watch = &world.room.watches()[0];
    let woken = world.room.subjects(watch, &west, &world.hub.view());
    assert_eq!(woken, [Subject::from("east"), Subject::from("west")]);
}

#[test]
fn broken_objects_do_not_break_it() {
    let mut world = World::with(true, [cluster("east", Some(EAST))]);
    world.settle();
    survives(&room(true), &world.cloud, &[world.json(), cluster("west", Some(WEST))]);
}
