//! A server, a shell that records, and an audit of what it records.

use interlock_apiserver::access::identity::{MASTERS, Scope};
use interlock_apiserver::{Config, Identity, Server as ApiServer};
use interlock_kernel::{
    Bent, Controller, Kind, Name, Observed, Outside, Place, Room, Selector, Subject, Watcher,
};
use interlock_placement::fencing;
use interlock_placement::kinds::SECRET;
use interlock_placement::syncer::Syncer;
use interlock_programs::audit::{Audit, Finding, Report};
use interlock_shell::{
    Driver, Lines, LogSettings, Places, Read, Recorder, Server, Settings, Shell, Wiring, step_once,
};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, Discovery};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// What takes longer than this hangs, also on a machine that is busy with other things.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The cluster of the stage.
const WEST: &str = "west";

/// The world outside of the API does not answer, so nothing is done there.
#[derive(Clone, Copy)]
pub(crate) struct NoAnswer;

impl<O: Outside> Driver<O> for NoAnswer {
    async fn ask(&self, _: O::Question) -> Result<O::Answer, String> {
        Err("nobody answers in this test".to_owned())
    }

    async fn perform(&self, _: O::Action) -> Result<(), String> {
        Err("nobody answers in this test".to_owned())
    }
}

/// What the audit says of a step that is not explained.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Caught {
    room: String,
    subject: String,
    facts: Vec<String>,
}

impl Caught {
    pub(crate) fn new(room: &str, subject: &str, fact: &str) -> Caught {
        Caught { room: room.into(), subject: subject.into(), facts: vec![fact.into()] }
    }

    fn of(finding: &Finding) -> Caught {
        assert_eq!(finding.promise, "RulesAreFollowed", "{finding:?}");
        Caught {
            room: finding.controller.clone(),
            subject: finding.subject.clone(),
            facts: finding.turning_points.clone(),
        }
    }
}

/// A server in memory with all kinds, and a directory for the log.
pub(crate) struct Stage {
    api: ApiServer,
    directory: PathBuf,
}

impl Stage {
    pub(crate) async fn new(test: &str) -> Stage {
        let all = interlock_api::definitions().into_iter();
        let all = all.chain(interlock_api::volume_definitions());
        let all = all.chain(interlock_api::identity_definitions());
        let all = all.chain(interlock_api::node_definitions());
        let all = all.chain(interlock_api::tenant_definitions());
        let all = all.map(|kind| serde_json::to_value(kind).expect("a definition is JSON"));
        let config = Config { hub_definitions: all.collect(), ..Config::default() };
        let api = ApiServer::start(config).await.expect("a server in memory starts");
        let directory =
            std::env::temp_dir().join(format!("interlock-audit-{}-{test}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        Stage { api, directory }
    }

    fn client(&self, cluster: &str) -> Client {
        let admin = Identity::authenticated("admin", vec![MASTERS.to_owned()], Scope::Hub);
        Client::new(self.api.service(admin).in_cluster(cluster), "default")
    }

    /// Makes an object at the hub, and its namespace.
    pub(crate) async fn make(&self, api_version: &str, kind: &str, object: Value) -> DynamicObject {
        let client = self.client("root");
        let mut object = object;
        (object["apiVersion"], object["kind"]) = (json!(api_version), json!(kind));
        let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
        if let Some(namespace) = namespace.as_deref().filter(|name| *name != "default") {
            let made =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
            let made = serde_json::from_value(made).expect("a Namespace");
            let made = namespaces.create(&PostParams::default(), &made).await;
            assert!(
                made.is_ok() || matches!(&made, Err(kube::Error::Api(it)) if it.code == 409),
                "{made:?}"
            );
        }
        let discovery =
            Discovery::new(client.clone()).run().await.expect("the server says its kinds");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let group = discovery.get(group).expect("the group is served");
        let resource = group.versioned_resources(version).into_iter();
        let (resource, _) =
            resource.clone().find(|(it, _)| it.kind == kind).expect("the kind is served");
        let api: Api<DynamicObject> = match &namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        let object = serde_json::from_value(object).expect("an object");
        api.create(&PostParams::default(), &object).await.expect("it is made")
    }

    fn shell(&self) -> Shell {
        let recorder = Recorder::open(LogSettings::new(&self.directory), "1.0.0", "test");
        Shell::new(Settings::default()).with_recorder(recorder.expect("the directory can be made"))
    }

    fn places(&self, places: &[Place]) -> Places {
        let server = Server::new("hub", self.client("root"));
        places.iter().map(|place| (*place, server.clone())).collect()
    }

    /// Runs a room until a step of it is not explained; the same must be found in the log afterwards.
    pub(crate) async fn run<C: Controller>(
        &self,
        flawed: C,
        places: &[Place],
        driver: impl Driver<C::Outside>,
    ) -> Caught {
        let shell = self.shell();
        let mut lines = Lines::from_newest(&self.directory).expect("the log has begun");
        let mut audit = Audit::default();
        let began = Instant::now();
        let runner =
            shell.run(flawed, self.places(places), driver).expect("all places have a server");
        let live = loop {
            let found = hear(&mut audit, &mut lines);
            if let Some(first) = found.first() {
                break Caught::of(first);
            }
            assert!(began.elapsed() < TIMEOUT, "nothing is found: {:?}", audit.report());
            sleep(Duration::from_millis(20)).await;
        };
        runner.stop().await;
        shell.stop().await;
        let report = self.replay();
        let first = report.first.as_ref().expect("it is in the log, too");
        assert_eq!(Caught::of(first), live);
        live
    }

    /// Runs a room as it ships, until it has nothing to do.
    pub(crate) async fn settle<C: Controller<Outside = interlock_kernel::Nothing>>(
        &self,
        shipped: C,
        places: &[Place],
    ) -> Report {
        let shell = self.shell();
        let runner =
            shell.run(shipped, self.places(places), NoAnswer).expect("all places have a server");
        let began = Instant::now();
        let mut rests = 0;
        while rests < 10 {
            assert!(began.elapsed() < TIMEOUT, "it never rests");
            rests = if runner.is_resting() { rests + 1 } else { 0 };
            sleep(Duration::from_millis(50)).await;
        }
        runner.stop().await;
        shell.stop().await;
        self.replay()
    }

    fn replay(&self) -> Report {
        let mut lines = Lines::all(&self.directory).expect("the log is there");
        let mut audit = Audit::default();
        hear(&mut audit, &mut lines);
        audit.end();
        audit.report().clone()
    }

    /// Deletes a request, which a finalizer of somebody else keeps.
    pub(crate) async fn delete_update(&self, name: &str) {
        let updates: Api<interlock_api::rollouts::ClusterUpdate> =
            Api::namespaced(self.client("root"), "default");
        updates.delete(name, &Default::default()).await.expect("it is deleted");
    }

    /// What a step that rests costs without a record, with one that is as the one before, and with one that is written.
    pub(crate) async fn measure(&self) {
        let places = self.places(&[Place::HUB]);
        let hub = places.server(Place::HUB).expect("there is a hub");
        for watch in fencing::Fencing.watches() {
            hub.open(&watch);
            hub.list_once(&watch.kind).await.expect("it can be listed");
        }
        let recorder = Recorder::open(LogSettings::new(&self.directory), "1.0.0", "measure");
        let recorder = recorder.expect("the directory can be made");
        let odd = Bent::new(fencing::Fencing).observing(|room, subject, view, reads| {
            let mut seen = room.observe(subject, view, reads);
            if let Observed::Seen { facts, .. } = &mut seen {
                facts.epoch += 1;
            }
            seen
        });
        let plain = Wiring::new(fencing::Fencing, places.clone(), NoAnswer);
        let even =
            Wiring::new(fencing::Fencing, places.clone(), NoAnswer).recorded(recorder.clone());
        let odd = Wiring::new(odd, places, NoAnswer).recorded(recorder);
        let subject = Subject::from("lost");
        for _ in 0..3 {
            let without = timed(async || {
                step_once(&plain, &subject).await;
                step_once(&plain, &subject).await;
            });
            let same = timed(async || {
                step_once(&even, &subject).await;
                step_once(&even, &subject).await;
            });
            let written = timed(async || {
                step_once(&even, &subject).await;
                step_once(&odd, &subject).await;
            });
            let (without, same, written) = (without.await, same.await, written.await);
            eprintln!("a step: {without:?}; as the one before: {same:?}; written: {written:?}");
        }
    }

    /// The whole log, as text.
    pub(crate) fn log(&self) -> String {
        let files = std::fs::read_dir(&self.directory).expect("the log is there");
        let text = |file: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(file.expect("it is there").path()).expect("it is text")
        };
        files.map(text).collect()
    }

    /// Has the shipped syncer carry a Secret with this data to a cluster.
    pub(crate) async fn carry_a_secret(&self, data: &str) {
        let namespace = self.make("v1", "Namespace", json!({"metadata": {"name": "shop"}})).await;
        self.make(
            "v1",
            "Secret",
            json!({
                "metadata": {"name": "key", "namespace": "shop"}, "data": {"key": data},
            }),
        )
        .await;
        let logical = json!({"metadata": {"name": WEST}});
        self.make("interlock.dev/v1alpha1", "LogicalCluster", logical).await;
        let spec = json!({"connection": {"logicalCluster": WEST}});
        let west = json!({"metadata": {"name": WEST}, "spec": spec});
        let west = self.make("interlock.dev/v1alpha1", "WorkloadCluster", west).await;
        let of = |object: &DynamicObject| {
            let (name, uid) = (object.metadata.name.clone(), object.metadata.uid.clone());
            json!({"name": name.unwrap_or_default(), "uid": uid.unwrap_or_default()})
        };
        let spec = json!({"namespace": of(&namespace), "target": of(&west)});
        let grant = json!({"metadata": {"name": "shop"}, "spec": spec});
        self.make("interlock.dev/v1alpha1", "Grant", grant).await;
        let status = json!({"status": {"phase": "Granted", "owner": of(&west), "epoch": 1}});
        let grants: Api<interlock_api::placement::Grant> = Api::all(self.client("root"));
        let (params, patch) = (PatchParams::default(), Patch::Merge(status));
        let written = grants.patch_status("shop", &params, &patch);
        written.await.expect("the status is written");
        let here = serde_json::from_value(of(&west)).expect("a Ref");
        let shell = self.shell();
        let cluster = Server::new(WEST, self.client(WEST));
        let hub = Server::new("hub", self.client("root"));
        let places = [(Place::HUB, hub), (Place::CLUSTER, cluster.clone())];
        let runner =
            shell.run(Syncer::new(here, "boot-1"), places, NoAnswer).expect("both are there");
        let began = Instant::now();
        while !has(&cluster, &SECRET, &Name::within("shop", "key")) {
            assert!(began.elapsed() < TIMEOUT, "the Secret never came: {}", self.log());
            sleep(Duration::from_millis(50)).await;
        }
        runner.stop().await;
        shell.stop().await;
        let report = self.replay();
        assert!(report.is_good() && report.steps > 5, "{report:?} at {}", Timestamp::now());
    }
}

/// How long one of two steps takes.
async fn timed(two: impl AsyncFn()) -> Duration {
    const TIMES: u32 = 1000;
    let began = Instant::now();
    for _ in 0..TIMES {
        two().await;
    }
    began.elapsed() / (2 * TIMES)
}

fn has(server: &Server, kind: &Kind, name: &Name) -> bool {
    let cache = server.cache(kind, &Selector::All);
    cache.is_some_and(|cache| cache.objects().get(name).is_some())
}

fn hear(audit: &mut Audit, lines: &mut Lines) -> Vec<Finding> {
    let mut found = Vec::new();
    while let Some(read) = lines.read_next().expect("the log can be read") {
        match read {
            Read::Line(line) => found.extend(audit.hear(0, *line)),
            other => panic!("{other:?} is no line"),
        }
    }
    found
}
