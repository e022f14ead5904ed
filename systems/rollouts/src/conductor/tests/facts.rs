//! A cluster that is well, a record that is at version 5, and its report: what the rows change.

use crate::conductor::facts::*;
use interlock_api::rollouts::{
    FenceMode, FencePolicy, FirstInstallFailure, Good, PreflightMode, UpdatePhase, Verdict,
};

pub(super) fn idle() -> Facts {
    Facts {
        name: "west-w".to_owned(),
        cluster_name: "west".to_owned(),
        cluster: Cluster::Here(Here { is_reachable: true, ..Here::default() }),
        record: Some(record()),
        report: Some(report()),
        unnumbered: Vec::new(),
        candidate: Candidate::None,
        is_said: true,
    }
}

fn record() -> Record {
    Record {
        is_live: None,
        is_terminating: false,
        has_finalizer: true,
        is_paused: false,
        fence: FencePolicy::Required,
        first_install_failure: FirstInstallFailure::Remove,
        tries: 3,
        rollback_seconds: 60,
        token: 4,
        target: Some("good".to_owned()),
        good: Some(Good { version: 5, digest: "good".to_owned(), force: false }),
        is_degraded: false,
        active: None,
        queued: None,
        entries: 5,
        unmirrored: 0,
        surplus: Vec::new(),
        unnamed: None,
        unnamed_in: None,
    }
}

fn report() -> Report {
    Report {
        token: 4,
        fence: Some((4, FenceMode::Exact)),
        verdict: Verdict::Soaked,
        ..Report::default()
    }
}

pub(super) fn options() -> Options {
    Options {
        is_cancelled: false,
        preempt: false,
        retry_bad: false,
        drain_first: false,
        preflight: PreflightMode::Schema,
        force: false,
        prune_data: false,
        deadline_seconds: 600,
        soak_seconds: 30,
        start_deadline_seconds: 3600,
    }
}

pub(super) fn queued(change: impl FnOnce(&mut Queued)) -> Queued {
    let mut queued = Queued {
        uid: "q".to_owned(),
        version: 7,
        digest: "new".to_owned(),
        seconds: 10,
        reason: "Valid".to_owned(),
        bad: None,
        is_named: true,
        asked: Asked::Here(options()),
    };
    change(&mut queued);
    queued
}

/// What a request asks for besides the defaults.
pub(super) fn asking(change: impl FnOnce(&mut Options)) -> Asked {
    let mut options = options();
    change(&mut options);
    Asked::Here(options)
}

pub(super) fn active(phase: UpdatePhase, change: impl FnOnce(&mut Active)) -> Active {
    let mut active = Active {
        uid: "a".to_owned(),
        version: 6,
        phase,
        phase_seconds: 10,
        started_seconds: 20,
        deadline_seconds: 600,
        tries: 0,
        cause: String::new(),
        asked: Asked::Here(options()),
    };
    change(&mut active);
    active
}

impl Facts {
    pub(super) fn with_record(mut self, change: impl FnOnce(&mut Record)) -> Facts {
        if let Some(record) = &mut self.record {
            change(record);
        }
        self
    }

    pub(super) fn with_report(mut self, change: impl FnOnce(&mut Report)) -> Facts {
        if let Some(report) = &mut self.report {
            change(report);
        }
        self
    }

    pub(super) fn with_cluster(mut self, change: impl FnOnce(&mut Here)) -> Facts {
        if let Cluster::Here(here) = &mut self.cluster {
            change(here);
        }
        self
    }

    /// A request waits.
    pub(super) fn waiting(self, change: impl FnOnce(&mut Queued)) -> Facts {
        self.with_record(|record| record.queued = Some(queued(change)))
    }

    /// A request waits, and the agent has checked it.
    pub(super) fn checked(self, change: impl FnOnce(&mut Queued)) -> Facts {
        let answer = Preflight { failures: 0, first: String::new() };
        self.waiting(change).with_report(|report| report.preflight = Some(answer))
    }

    /// A request is in flight, and the agent has not answered.
    pub(super) fn flying(self, phase: UpdatePhase, change: impl FnOnce(&mut Active)) -> Facts {
        let target = if phase == UpdatePhase::RollingBack { "good" } else { "bundle" };
        let flying = self.with_record(|record| {
            record.active = Some(active(phase, change));
            record.target = Some(target.to_owned());
            record.token = 5;
        });
        flying.with_report(|report| report.verdict = Verdict::Applying)
    }

    /// The agent has answered about the target.
    pub(super) fn answered(self, verdict: Verdict) -> Facts {
        self.with_report(|report| {
            report.token = 5;
            report.verdict = verdict;
        })
    }
}
