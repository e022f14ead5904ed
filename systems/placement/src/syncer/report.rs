//! What the syncer tells the hub in the status of a grant: each is one write over the version that
//! was seen.

use super::claim::act::pin;
use super::claim::facts::Progress;
use super::decide::Handed;
use super::observe::Scene;
use super::tenancy::Here;
use super::{Locks, Syncer};
use crate::record::GrantRecord;
use interlock_api::placement::condition::{DATA_SYNCED, DIVERGED, FILLED, RUNNING, STOPPED};
use interlock_api::placement::{self, Claim, CopyState, DataCopy, Fill, Phase, Pin};
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Event, Importance, Step, Write};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

/// A scene with its grant.
pub(super) struct Report<'a> {
    pub(super) syncer: &'a Syncer,
    pub(super) scene: &'a Scene,
    pub(super) grant: &'a GrantRecord,
}

impl Report<'_> {
    /// One write to the grant's status: some fields, and some conditions.
    fn write(&self, fields: Value, findings: &[Finding]) -> Write {
        let mut status = fields;
        if !findings.is_empty() {
            let conditions = self.grant.conditions_with(findings, self.scene.now);
            status["conditions"] = json!(conditions);
        }
        self.grant.write_status(status)
    }

    /// What the owner of the namespace is informed.
    pub(super) fn event(&self, reason: &'static str, note: String) -> Event {
        self.grant.tells(Importance::Normal, reason, note)
    }

    /// These are true of the grant.
    pub(super) fn say(&self, findings: &[Finding], because: &str) -> Step<Locks> {
        Step::write(self.write(json!({}), findings), because)
    }

    /// Every claim that anybody needs is filled here.
    pub(super) fn filled(&self, places: &[usize], is_starting: bool) -> Step<Locks> {
        let cluster = &self.syncer.cluster;
        let mut claims = self.grant.status.claims.clone();
        for place in places {
            if let Some(claim) = claims.get_mut(*place) {
                claim.fill = Fill::Filled;
                claim.progress = None;
            }
        }
        let message = format!("every claim is filled on {cluster}");
        let mut findings = vec![Finding::holds(FILLED, "Filled", message.clone())];
        if is_starting {
            let message = format!("epoch {} starts on {cluster}", self.scene.at.epoch);
            findings.push(Finding::fails(RUNNING, "Starting", message));
        }
        let write = self.write(json!({"claims": claims}), &findings);
        let event = self.event("Filled", format!("{message}; its workloads start now"));
        Step::write(write, "every volume is on this cluster and matches its pin").telling(event)
    }

    /// How far the data has come.
    pub(super) fn progress(&self, news: &[(usize, Progress)]) -> Step<Locks> {
        let now = self.scene.now;
        // Whole seconds are what the wire has.
        let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
        let mut claims = self.grant.status.claims.clone();
        for (place, Progress { bytes, of_bytes }) in news {
            if let Some(claim) = claims.get_mut(*place) {
                let (bytes, of_bytes, at) = (*bytes, *of_bytes, now.clone());
                claim.fill = Fill::Filling;
                claim.progress = Some(placement::Progress { bytes, of_bytes, at });
            }
        }
        Step::write(self.write(json!({"claims": claims}), &[]), "more data was copied")
    }

    /// Stopped, and the namespace is being deleted.
    pub(super) fn acknowledge_deletion(&self) -> Step<Locks> {
        self.release(json!({}))
    }

    /// Stopped, and here is what the next owner starts from: the write that lets another cluster
    /// begin.
    pub(super) fn acknowledge(&self, handed: &[Handed]) -> Step<Locks> {
        let pin = |handed: &Handed| {
            let claim = &self.scene.claims[handed.place];
            pin(claim, handed.from, self.scene, &self.syncer.cluster)
        };
        let Some(pins) = handed.iter().map(pin).collect::<Option<Vec<Pin>>>() else {
            return Step::rest(
                "the last snapshot of a claim cannot be read; the cache will show it",
            );
        };
        let claims: Vec<Claim> = handed.iter().map(|handed| self.handed(handed)).collect();
        self.release(json!({"claims": claims, "pins": pins}))
    }

    /// A claim as its next owner finds it: should that be declared gone, it falls back to the snapshot
    /// that is kept in mind.
    fn handed(&self, handed: &Handed) -> Claim {
        let seen = &self.scene.claims[handed.place];
        let mut claim = Claim { progress: None, ..seen.listed.clone() };
        if handed.remembers {
            claim.last_snapshot = seen.pin.clone();
        }
        claim
    }

    fn release(&self, mut fields: Value) -> Step<Locks> {
        let (grant, cluster, now) = (self.grant, &self.syncer.cluster, self.scene.now);
        fields["copies"] = json!(self.with_own_copy(CopyState::Live, CopyState::Superseded));
        let stopped =
            format!("nothing of epoch {} can run on {cluster} any more", grant.status.epoch);
        let pinned = "every claim has the snapshot that its next owner starts from";
        let findings = [
            Finding::fails(RUNNING, "Released", format!("stopped on {cluster}")),
            Finding::holds(STOPPED, "Closed", stopped),
            Finding::holds(DATA_SYNCED, "Pinned", pinned),
        ];
        fields["conditions"] = json!(grant.conditions_with(&findings, now));
        let write = grant.write_phase(Phase::Released, now, fields);
        let note = format!(
            "the namespace has stopped on {cluster} and is released; it starts again on the next \
             cluster"
        );
        Step::write(write, "closed, and every claim has its pin")
            .telling(self.event("Released", note))
    }

    /// The copies with the state of ours changed, if it was the first of these. One cluster may have
    /// two: what it wrote after it was declared gone stays beside what it was granted since.
    fn with_own_copy(&self, was: CopyState, state: CopyState) -> Vec<DataCopy> {
        let cluster = &self.syncer.cluster;
        let mut copies = self.grant.status.copies.clone();
        let is_meant = |copy: &DataCopy| copy.cluster.is_same(cluster) && copy.state == was;
        match copies.iter_mut().find(|copy| is_meant(copy)) {
            Some(copy) => copy.state = state,
            None => {
                let (cluster, epoch) = (cluster.clone(), self.grant.status.epoch);
                copies.push(DataCopy { cluster, epoch, state });
            }
        }
        copies
    }

    /// What became of the data here after we were declared gone.
    pub(super) fn settle_copy(&self, state: CopyState) -> Step<Locks> {
        let cluster = &self.syncer.cluster;
        let mut findings = Vec::new();
        if state == CopyState::Diverged {
            let epoch = match self.scene.notes {
                Here::Noted(notes) => notes.ran,
                Here::Missing | Here::Foreign => 0,
            };
            let message = format!(
                "cluster {cluster} ran epoch {epoch} and may have written what no snapshot has; \
                 its volumes are kept until a person gives them up"
            );
            findings.push(Finding::holds(DIVERGED, "MayHaveWritten", message));
        }
        let fields = json!({"copies": self.with_own_copy(CopyState::Unclosed, state)});
        let write = self.write(fields, &findings);
        Step::write(write, "all pods have stopped, after the cluster was declared gone")
    }

    /// Nothing ran here before we were declared gone: the copy is the one that we were granted since.
    pub(super) fn take_copy_over(&self) -> Step<Locks> {
        let cluster = &self.syncer.cluster;
        let is_old =
            |copy: &&DataCopy| copy.cluster.is_same(cluster) && copy.state == CopyState::Unclosed;
        let copies = self.grant.status.copies.iter();
        let copies: Vec<&DataCopy> = copies.filter(|copy| !is_old(copy)).collect();
        let because = "no pod ran before the cluster was declared gone, and the cluster is the \
            owner again";
        Step::write(self.write(json!({"copies": copies}), &[]), because)
    }

    /// There is no copy here any more.
    pub(super) fn forget_copy(&self) -> Step<Locks> {
        let copies = self.grant.status.copies.iter();
        let others = copies.filter(|copy| !copy.cluster.is_same(&self.syncer.cluster));
        let others: Vec<&DataCopy> = others.collect();
        Step::write(
            self.write(json!({"copies": others}), &[]),
            "nothing of the namespace is left on this cluster",
        )
    }
}
