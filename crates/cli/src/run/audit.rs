//! The fleet audits itself: every step is recorded, and judged again as soon as it is on the disk.

use crate::audit::{Follower, KEY, NAME, State, log_directory};
use anyhow::Context;
use interlock_programs::audit::Report;
use interlock_shell::{LogSettings, Recorder, Shell};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often the log is read again.
const AGAIN: Duration = Duration::from_millis(500);
/// How often what was found is compared to what the hub says.
const TOLD: Duration = Duration::from_secs(5);
/// How many of these pass at most until the hub shows that there is nothing new.
const TOLD_ANYWAY: u64 = 12;

/// Options of what records.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Do not record every step, and do not audit what was decided
    #[arg(long)]
    no_audit: bool,
}

/// Options of a program that records and leaves the audit to others.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub(crate) struct Recording {
    /// Record every step into this directory, for `interlock audit --log DIR`; one process writes to it at a time [default: none]
    #[arg(long, value_name = "DIR")]
    audit_dir: Option<PathBuf>,
}

impl Recording {
    /// Begins to record, if that is asked for. It is begun before the program does anything else: what the process before
    /// it did and could not record any more lies between its last record and this beginning.
    pub(crate) fn begin(&self, instance: &str) -> anyhow::Result<Option<Recorder>> {
        let Some(directory) = &self.audit_dir else { return Ok(None) };
        let settings = LogSettings::new(directory);
        let opened = Recorder::open(settings, env!("CARGO_PKG_VERSION"), instance);
        let opened = opened.with_context(|| {
            format!("cannot record steps in {}: set another --audit-dir", directory.display())
        })?;
        Ok(Some(opened))
    }
}

/// A shell that records its steps, if there is where to.
pub(crate) fn recorded(shell: Shell, recorder: Option<Recorder>) -> Shell {
    match recorder {
        Some(recorder) => shell.with_recorder(recorder),
        None => shell,
    }
}

/// A shell that records its steps, if they are to be audited.
pub(crate) fn recording(shell: Shell, auditing: Option<&Auditing>) -> Shell {
    match auditing {
        Some(auditing) => shell.with_recorder(auditing.recorder.clone()),
        None => shell,
    }
}

/// A fleet that audits itself.
pub(crate) struct Auditing {
    /// Where the steps are recorded.
    recorder: Recorder,
    directory: PathBuf,
    found: Arc<Mutex<Report>>,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    teller: Option<tokio::task::JoinHandle<()>>,
}

impl Args {
    /// Begins to record below the data directory, unless nobody wants it. `instance` names this process.
    pub(crate) fn begin(&self, data: &Path, instance: &str) -> anyhow::Result<Option<Auditing>> {
        if self.no_audit {
            return Ok(None);
        }
        let directory = log_directory(data);
        let settings = LogSettings::new(&directory);
        let recorder =
            Recorder::open(settings, env!("CARGO_PKG_VERSION"), instance).with_context(|| {
                format!(
                    "cannot record steps in {}; make it writable, or start with --no-audit",
                    directory.display()
                )
            })?;
        Ok(Some(Auditing {
            recorder,
            directory,
            found: Arc::default(),
            is_over: Arc::default(),
            reader: None,
            teller: None,
        }))
    }
}

impl Auditing {
    /// Begins to judge what is recorded, and to say at the hub what was found.
    pub(crate) fn judge(&mut self, hub: &Client) -> anyhow::Result<()> {
        let follower = Follower::of_newest(self.directory.clone())?;
        let (found, is_over) = (Arc::clone(&self.found), Arc::clone(&self.is_over));
        let reader = std::thread::Builder::new().name("audit".to_owned());
        let reader = reader.spawn(move || follow(follower, &found, &is_over));
        self.reader = Some(reader.context("cannot start a thread for the audit")?);
        self.teller = Some(tokio::spawn(tell(hub.clone(), Arc::clone(&self.found))));
        Ok(())
    }

    /// What is counted, as Prometheus reads it.
    pub(crate) fn metrics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let found = Arc::clone(&self.found);
        move || metrics(&found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends it. Nothing is judged any more.
    pub(crate) fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(teller) = self.teller {
            teller.abort();
        }
        if let Some(reader) = self.reader {
            let _ = reader.join();
        }
    }
}

fn follow(mut follower: Follower, found: &Mutex<Report>, is_over: &AtomicBool) {
    let mut is_said = false;
    while !is_over.load(Ordering::Relaxed) {
        match follower.read(true) {
            Ok(findings) => {
                is_said = false;
                for finding in findings {
                    tracing::error!(
                        promise = finding.promise,
                        controller = finding.controller,
                        subject = finding.subject,
                        facts = ?finding.turning_points,
                        what = finding.what,
                        "a step is not explained; `interlock audit` shows it"
                    );
                }
            }
            Err(error) if !is_said => {
                is_said = true;
                tracing::warn!("the audit cannot go on: {error:#}; it tries again");
            }
            Err(_) => {}
        }
        follower.report().clone_into(&mut found.lock().unwrap_or_else(PoisonError::into_inner));
        std::thread::sleep(AGAIN);
    }
}

/// Says at the hub what was found: at once if it is something new, and otherwise now and then.
async fn tell(hub: Client, found: Arc<Mutex<Report>>) {
    let maps: Api<ConfigMap> = Api::namespaced(hub, super::install::NAMESPACE);
    let mut told: Option<State> = None;
    let mut times = interval(TOLD);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut silent = 0;
    loop {
        times.tick().await;
        silent += 1;
        let report = found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let state = State::of(&report, Timestamp::now());
        let is_new = told.as_ref().is_none_or(|told| state.says_more_than(told));
        if !is_new && silent < TOLD_ANYWAY {
            continue;
        }
        let text = json!(state).to_string();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": NAME}, "data": {KEY: text},
        });
        let params = PatchParams::apply("interlock-audit").force();
        match maps.patch(NAME, &params, &Patch::Apply(map)).await {
            Ok(_) => (told, silent) = (Some(state), 0),
            Err(error) => tracing::debug!("cannot say at the hub what the audit found: {error}"),
        }
    }
}

fn metrics(report: &Report) -> String {
    let mut text = format!(
        "# HELP interlock_audit_steps_total Recorded steps that were judged.\n\
         # TYPE interlock_audit_steps_total counter\n\
         interlock_audit_steps_total {}\n\
         # HELP interlock_audit_missing_total Steps that are missing in the log.\n\
         # TYPE interlock_audit_missing_total counter\n\
         interlock_audit_missing_total {}\n\
         # HELP interlock_audit_broken_total Steps that are not explained, by promise.\n\
         # TYPE interlock_audit_broken_total counter\n",
        report.steps, report.missing
    );
    for kept in &report.promises {
        text += &format!(
            "interlock_audit_broken_total{{promise=\"{}\"}} {}\n",
            kept.promise, kept.broken
        );
    }
    text += "# HELP interlock_audit_since_seconds Since when a promise is audited without a gap, in seconds since 1970.\n\
        # TYPE interlock_audit_since_seconds gauge\n";
    for kept in &report.promises {
        if let Some(since) = kept.since {
            let seconds = since.as_second();
            text += &format!(
                "interlock_audit_since_seconds{{promise=\"{}\"}} {seconds}\n",
                kept.promise
            );
        }
    }
    text
}
