//! Each row of what a CronJob does.

use super::*;
use crate::job::FOREGROUND;
use crate::recorded::judged_again;
use interlock_kernel::testing::{NoMachine, Run, TestServers, patched, survives};
use interlock_kernel::{Address, Name};
use jiff::Timestamp;
use serde_json::{Value, json};

const SUBJECT: &str = "shop/each";

/// The tests begin at 13:46:40 on the 12th of January 1970.
const CREATED: &str = "1970-01-12T13:30:00Z";

fn zones(name: &str) -> Option<TimeZone> {
    match name {
        // Half an hour is what tells it from every whole hour.
        "Test/Half" => TimeZone::posix("HALF-5:30").ok(),
        other => only_utc(other),
    }
}

fn room() -> CronJobs {
    CronJobs::new(zones)
}

fn namespace() -> Value {
    json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "uid-shop"}})
}

fn cron_job(patch: &Value) -> Value {
    let object = json!({
        "kind": "CronJob",
        "metadata": {"name": "each", "namespace": "shop", "uid": "uid-each",
            "creationTimestamp": CREATED},
        "spec": {"schedule": "*/15 * * * *", "jobTemplate": {
            "metadata": {"labels": {"app": "each"}, "annotations": {"a": "b"}},
            "spec": {"template": {"spec": {"containers": []}}}}},
    });
    patched(object, patch)
}

struct Cluster {
    servers: TestServers,
}

impl Cluster {
    fn with(patch: &Value) -> Cluster {
        let servers = TestServers::of(&room()).with([namespace(), cron_job(patch)]);
        Cluster { servers }
    }

    fn settled(patch: &Value) -> (Cluster, Run<Nothing>) {
        let mut cluster = Cluster::with(patch);
        let run = cluster.settle();
        (cluster, run)
    }

    fn settle(&mut self) -> Run<Nothing> {
        self.servers.settle(&room(), &mut NoMachine, SUBJECT)
    }

    fn json(&self) -> Value {
        self.servers.json(Place::CLUSTER, &CRON_JOB, &Name::within("shop", "each"))
    }

    fn status(&self) -> Value {
        self.json()["status"].clone()
    }

    fn change(&mut self, patch: &Value) {
        self.servers.change(Place::CLUSTER, &CRON_JOB, &Name::within("shop", "each"), patch);
    }

    fn end(&mut self, job: &str, kind: &str) {
        let now = self.servers.now.to_string();
        let mut ended = json!({"status": {"conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now}]}});
        if kind == "Complete" {
            ended["status"]["completionTime"] = json!(now);
        }
        self.servers.change(Place::CLUSTER, &JOB, &Name::within("shop", job), &ended);
    }

    /// Jobs, each with `-` before it if it is being deleted.
    fn jobs(&self) -> Vec<String> {
        let all = self.servers.list(Place::CLUSTER, &JOB, None);
        let text = |job: &Object| {
            let leaving = if job.metadata.deletion_timestamp.is_some() { "-" } else { "" };
            format!("{leaving}{}", name_of(job))
        };
        all.iter().map(text).collect()
    }

    /// The garbage collector has done its work for the Jobs that are being deleted.
    fn collect(&mut self) {
        for job in self.servers.list(Place::CLUSTER, &JOB, None) {
            if job.metadata.deletion_timestamp.is_some() {
                let name = Name::of(&job);
                let free = json!({"metadata": {"finalizers": null}});
                self.servers.change(Place::CLUSTER, &JOB, &name, &free);
                self.servers.delete(Place::CLUSTER, &JOB, &name);
            }
        }
        self.settle();
    }
}

/// The name of the Job of a time of that day.
fn at(time: &str) -> String {
    let time: Timestamp = format!("1970-01-12T{time}:00Z").parse().expect("a time");
    format!("each-{}", time.as_second() / 60)
}

#[test]
fn the_latest_time_that_has_come_gets_a_job_and_those_before_it_none() {
    let (cluster, run) = Cluster::settled(&json!({}));
    assert_eq!(cluster.jobs(), [at("13:45")]);
    assert_eq!(run.waits_seconds, Some(13 * 60 + 20), "until 14:00");
    let name = Name::within("shop", &at("13:45"));
    let job = cluster.servers.json(Place::CLUSTER, &JOB, &name);
    let metadata = &job["metadata"];
    assert_eq!(metadata["labels"], json!({"app": "each"}));
    let noted = json!({"a": "b", ANNOTATION_SCHEDULED: "1970-01-12T13:45:00Z"});
    assert_eq!(metadata["annotations"], noted);
    assert_eq!(metadata["ownerReferences"][0]["uid"], "uid-each");
    assert_eq!(job["spec"], cron_job(&json!({}))["spec"]["jobTemplate"]["spec"]);
    let status = cluster.status();
    assert_eq!(status["lastScheduleTime"], "1970-01-12T13:45:00Z");
    assert_eq!(
        (&status["active"][0]["name"], &status["active"][0]["kind"]),
        (&json!(at("13:45")), &json!("Job"))
    );
}

#[test]
fn a_time_has_one_job_also_if_that_is_gone() {
    let (mut cluster, _) = Cluster::settled(&json!({}));
    let name = Name::within("shop", &at("13:45"));
    cluster.servers.delete(Place::CLUSTER, &JOB, &name);
    cluster.settle();
    assert!(cluster.jobs().is_empty());
    assert!(cluster.status()["active"].as_array().is_some_and(Vec::is_empty));
}

#[test]
fn a_job_is_made_only_if_the_cron_job_has_not_noted_its_time() {
    let cluster = Cluster::with(&json!({}));
    let step = cluster.servers.view().step_with(&room(), SUBJECT, &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    // Another agent has made the Job, it has run, and it is gone.
    let (other, _) = Cluster::settled(&json!({}));
    let name = Name::within("shop", "each");
    let mut reads = LiveReads::default();
    let live = other.servers.get(Place::CLUSTER, &CRON_JOB, &name);
    reads.objects.insert(Address::new(Place::CLUSTER, &CRON_JOB, name), live);
    reads.lists.insert((Place::CLUSTER, JOB, Some("shop".to_owned())), Vec::new());
    let step = cluster.servers.view().step_with(&room(), SUBJECT, &reads);
    assert!(matches!(step, Step::Wait { .. }), "{step:?}");
}

#[test]
fn while_a_job_runs_another_runs_beside_it_or_waits_or_replaces_it() {
    for (policy, jobs) in [
        ("Allow", vec![at("13:45"), at("14:00")]),
        ("Forbid", vec![at("13:45")]),
        ("Replace", vec![format!("-{}", at("13:45"))]),
    ] {
        let (mut cluster, _) = Cluster::settled(&json!({"spec": {"concurrencyPolicy": policy}}));
        cluster.servers.pass(14 * 60);
        cluster.settle();
        assert_eq!(cluster.jobs(), jobs, "{policy}");
        cluster.collect();
        if policy == "Replace" {
            assert_eq!(cluster.jobs(), [at("14:00")]);
        }
        cluster.end(&at("13:45"), "Complete");
        cluster.settle();
        if policy == "Forbid" {
            assert_eq!(cluster.jobs(), [at("13:45"), at("14:00")], "its time is not over");
        }
    }
}

#[test]
fn a_time_is_over_after_its_starting_deadline() {
    for (seconds, count) in [(60, 0), (120, 1)] {
        let deadline = json!({"spec": {"startingDeadlineSeconds": seconds}});
        assert_eq!(Cluster::settled(&deadline).0.jobs().len(), count, "{seconds}");
    }
}

#[test]
fn a_suspended_cron_job_makes_no_job() {
    let (mut cluster, _) = Cluster::settled(&json!({"spec": {"suspend": true}}));
    assert!(cluster.jobs().is_empty());
    cluster.change(&json!({"spec": {"suspend": false}}));
    cluster.settle();
    assert_eq!(cluster.jobs(), [at("13:45")]);
}

#[test]
fn a_time_zone_says_when_it_is_noon() {
    for (zone, time) in [("Etc/UTC", "12:00"), ("Test/Half", "06:30")] {
        let noon = json!({"spec": {"schedule": "0 12 * * *", "timeZone": zone},
            "metadata": {"creationTimestamp": "1970-01-11T20:00:00Z"}});
        assert_eq!(Cluster::settled(&noon).0.jobs(), [at(time)], "{zone}");
    }
}

#[test]
fn a_schedule_that_cannot_be_read_is_said_once_and_until_it_can() {
    for (spec, words) in [
        (json!({"schedule": "* * *"}), "spec.schedule: \"* * *\" has 3 fields"),
        (json!({"schedule": "@every 1h"}), "spec.schedule: \"@every 1h\" is not one of"),
        (json!({"timeZone": "Mars/North"}), "spec.timeZone: \"Mars/North\" is no time zone"),
    ] {
        let (mut cluster, run) = Cluster::settled(&json!({"spec": spec}));
        let said = cluster.json()["metadata"]["annotations"][ANNOTATION_PROBLEM].clone();
        assert!(said.as_str().is_some_and(|said| said.starts_with(words)), "{said}");
        assert_eq!((run.events.len(), cluster.jobs().len()), (1, 0));
        assert!(cluster.settle().writes.is_empty());
        cluster.change(&json!({"spec": {"schedule": "*/15 * * * *", "timeZone": null}}));
        cluster.settle();
        assert!(cluster.json()["metadata"]["annotations"][ANNOTATION_PROBLEM].is_null());
        assert_eq!(cluster.jobs(), [at("13:45")]);
    }
    let (cluster, run) = Cluster::settled(&json!({"spec": {"schedule": "0 0 31 2 *"}}));
    assert_eq!((run.rests.as_str(), cluster.jobs().len()), ("the schedule has no time", 0));
}

#[test]
fn ended_jobs_go_beyond_the_limits_after_they_are_noted() {
    let limits = json!({"spec": {"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0}});
    let (mut cluster, _) = Cluster::settled(&limits);
    cluster.end(&at("13:45"), "Complete");
    cluster.settle();
    let ended = cluster.servers.now.to_string();
    assert_eq!(cluster.status()["lastSuccessfulTime"], json!(ended));
    cluster.servers.pass(15 * 60);
    cluster.settle();
    cluster.end(&at("14:00"), "Complete");
    cluster.settle();
    assert_eq!(cluster.jobs(), [format!("-{}", at("13:45")), at("14:00")]);
    let name = Name::within("shop", &at("13:45"));
    let finalizers =
        cluster.servers.json(Place::CLUSTER, &JOB, &name)["metadata"]["finalizers"].clone();
    assert_eq!(finalizers, json!([FOREGROUND]), "its pods go before it");
    cluster.collect();
    cluster.servers.pass(15 * 60);
    cluster.settle();
    cluster.end(&at("14:15"), "Failed");
    cluster.settle();
    assert_eq!(cluster.jobs(), [at("14:00"), format!("-{}", at("14:15"))]);
}

#[test]
fn a_job_that_somebody_made_of_it_is_no_run() {
    let made = json!({"kind": "Job", "metadata": {"name": "by-hand", "namespace": "shop",
        "uid": "u", "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob",
            "name": "each", "uid": "uid-each", "controller": true}],
        "annotations": {ANNOTATION_SCHEDULED: "2070-01-01T00:00:00Z"}}});
    let mut cluster = Cluster::with(&json!({"spec": {"concurrencyPolicy": "Forbid"}}));
    cluster.servers.put(Place::CLUSTER, made);
    cluster.settle();
    assert_eq!(cluster.jobs(), ["by-hand".to_owned(), at("13:45")]);
    assert_eq!(cluster.status()["active"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_name_that_somebody_has_is_left_to_them() {
    let other =
        json!({"kind": "Job", "metadata": {"name": at("13:45"), "namespace": "shop", "uid": "u"}});
    let mut cluster = Cluster::with(&json!({}));
    cluster.servers.put(Place::CLUSTER, other);
    let run = cluster.settle();
    assert!(run.writes.is_empty(), "{:?}", run.writes);
    assert_eq!(run.rests, "another Job has the name of the one that is due");
}

#[test]
fn nothing_is_made_of_what_is_being_deleted() {
    let leaving = json!({"metadata": {"finalizers": ["x"],
        "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert!(Cluster::settled(&leaving).1.writes.is_empty());
    let mut cluster = Cluster::with(&json!({}));
    cluster.servers.put(Place::CLUSTER, patched(namespace(), &leaving));
    cluster.settle();
    assert!(cluster.jobs().is_empty());
}

#[test]
fn jobs_wake_their_cron_job() {
    let (cluster, _) = Cluster::settled(&json!({}));
    let name = Name::within("shop", &at("13:45"));
    let job = cluster.servers.get(Place::CLUSTER, &JOB, &name).expect("the Job");
    let woken = room().subjects(&Watch::all(Place::CLUSTER, &JOB), &job, &cluster.servers.view());
    assert_eq!(woken, [Subject::from(SUBJECT)]);
}

#[test]
fn broken_objects_do_not_break_it() {
    let (mut cluster, _) = Cluster::settled(&json!({"spec": {"startingDeadlineSeconds": 1000}}));
    cluster.end(&at("13:45"), "Complete");
    let name = Name::within("shop", &at("13:45"));
    let job = cluster.servers.json(Place::CLUSTER, &JOB, &name);
    let objects = [namespace(), cluster.json(), job];
    survives(&room(), &NoMachine, &objects);
    judged_again(&room(), &objects);
}
