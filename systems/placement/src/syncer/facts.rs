//! All that one decision of the syncer rests on.

use super::claim::facts::{At, Facts as Claim, Obstacle};
use super::decide::Decision;
use super::leftover::decide::{self as leftover, Part, Staying};
use super::objects::decide::{self as objects, Facts as Object, Stray, Survey, Verdict};
use super::tenancy::{self, Epoch, Here, Notes, Party, Running, Stillness, Truth, Workload};
use interlock_api::placement::{CopyState, Phase};
use interlock_kernel::conditions::{Condition, Finding};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the syncer of one cluster knows of one grant.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// Where it is read.
    pub at: At,
    /// The grant as the cache shows it; None: it is not in the cache, which proves nothing.
    pub grant: Option<Grant>,
    /// What the grant says already.
    pub conditions: Vec<Condition>,
    /// What this cluster noted of it.
    pub notes: Here,
    /// Whether the namespace here is being deleted.
    pub is_here_terminating: bool,
    /// The namespace at the hub.
    pub namespace: Option<Namespace>,
    /// What a live read showed: whether our finalizer is on the namespace at the hub; None: not read.
    pub has_finalizer_still: Option<bool>,
    /// Whether our finalizer is on some object in it; asked for only once it is not ours any more.
    pub has_finalized_object: bool,
    /// What a live read of the hub showed: whether our finalizer is on some object in the namespace;
    /// None: not read.
    pub finalized_read: Option<bool>,
    /// Everything here that runs or makes something run, in the order in which it is stopped; nothing
    /// of a namespace that is not noted as ours.
    pub running: Vec<Runs>,
    /// What a live read showed of the first of these that was not asked to stop: whether it is still
    /// that; None: not read.
    pub stop_read: Option<bool>,
    /// The claims that the grant lists, in its order.
    pub claims: Vec<Claim>,
    /// The Secrets of repositories that claims come from or leave through; None: the hub has none of
    /// that name.
    pub secrets: BTreeMap<String, Option<Object>>,
    /// The objects of the namespace, in the order in which they are applied; asked for while they may
    /// be here.
    pub objects: Vec<Object>,
    /// What is here of objects that the cache of the hub does not have; asked for as above.
    pub strays: Vec<Stray>,
    /// What is here of it, in the order in which it goes.
    pub parts: Vec<Part>,
    /// Whether a pod at the hub is said to run; asked for when the namespace leaves.
    pub has_pod_said_to_run: bool,
    /// What a live read showed that could still write here; None: not read.
    pub stirring: Option<Vec<String>>,
    /// What a live read showed: whether our notes are what the cache shows; None: not read.
    pub are_notes_current: Option<bool>,
    /// What a live read showed: whether a namespace is here; None: not read.
    pub is_still_here: Option<bool>,
    /// What a live read of the hub showed.
    pub fresh: Option<Fresh>,
}

/// A grant, seen from one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Grant {
    /// What is true of the owner.
    pub phase: Phase,
    /// Whose it is, or was last.
    pub owner: Party,
    /// Who is to have it.
    pub target: Party,
    /// Whether it is revoked because the namespace is being deleted.
    pub is_deletion: bool,
    /// What the hub says of the data here.
    pub copies: Vec<CopyState>,
    /// How long what runs has to run on until old copies may go; None: it does not run yet.
    pub settles_in: Option<Duration>,
    /// The cloud roles of the namespace.
    pub rights: Rights,
}

/// The cloud roles of a namespace, for the epoch that its grant is at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Rights {
    /// Whether it has any.
    pub has_roles: bool,
    /// Whether its owner waits for them before it starts.
    pub are_awaited: bool,
    /// Those that do not trust the owner yet.
    pub unready: Vec<Unready>,
}

/// A cloud role that does not trust the owner of an epoch yet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Unready {
    /// Its name.
    pub role: String,
    /// Why, in a sentence; empty: nobody said so yet.
    pub because: String,
}

/// The namespace at the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Namespace {
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether our finalizer is on it.
    pub has_finalizer: bool,
}

/// Something that runs, or makes something run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Runs {
    /// Its kind and name, for people.
    pub what: String,
    /// Whether we put it here.
    pub is_ours: bool,
    /// Whether it was asked to stop.
    pub is_terminating: bool,
}

/// What a live read of the hub showed, made after our notes were read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Fresh {
    /// Whether those are what the cache shows. The permit is written over the notes that the cache
    /// shows; if those are not the ones that were there before the hub was asked, the answer is about
    /// something else.
    pub are_notes_current: bool,
    /// This very grant.
    pub grant: Option<FreshGrant>,
    /// The epochs that somebody asked to take from us by force, and was not refused; None: one cannot
    /// be read, and may name any.
    pub forces: Vec<Option<Epoch>>,
}

/// A grant as the hub itself shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct FreshGrant {
    /// What is true of the owner.
    pub phase: Phase,
    /// Whose it is.
    pub owner: Party,
    /// Since which grant.
    pub epoch: Epoch,
    /// The uids of the claims that are not filled.
    pub unfilled: Vec<String>,
    /// The cloud roles of the namespace.
    pub rights: Rights,
}

impl Facts {
    /// What the rules of tenancy rest on; the survey is that of the objects.
    pub fn outline(&self, survey: &Survey) -> tenancy::Facts {
        let noted = self.noted();
        tenancy::Facts {
            grant: self.grant.as_ref().map(|grant| self.grant_outline(grant)),
            here: self.notes,
            has_finalizer: self.namespace.is_some_and(|namespace| namespace.has_finalizer),
            has_finalizer_still: self.has_finalizer_still,
            has_finalized_object: self.has_finalized_object,
            workload: workload(&self.running),
            has_own_workload: self.running.iter().any(|runs| runs.is_ours && !runs.is_terminating),
            claims: self.needed().map(|(_, claim)| claim.outline(&self.at)).collect(),
            is_marked_superseded: self.to_mark().is_none(),
            leftover: leftover::left(
                &self.parts,
                noted.map(|_| Staying(!self.is_here_terminating)),
            ),
            has_objects_to_apply: self.is_mine(&[Phase::Granted])
                && self.is_permitted()
                && !self.is_here_terminating
                && survey.chore.is_some(),
            stillness: self.stirring.as_ref().map(|stirring| match stirring.is_empty() {
                true => Stillness::Still,
                false => Stillness::Astir,
            }),
            truth: self.fresh.as_ref().map(|fresh| self.truth(fresh)),
        }
    }

    fn grant_outline(&self, grant: &Grant) -> tenancy::Grant {
        let unfilled = self.claims.iter().filter(|claim| !claim.is_filled());
        let unfilled: Vec<&str> = unfilled.map(|claim| claim.uid.as_str()).collect();
        tenancy::Grant {
            phase: grant.phase,
            owner: grant.owner,
            epoch: self.at.epoch,
            target: grant.target,
            is_deletion: grant.is_deletion,
            is_filled: self.are_gone(&unfilled),
            copy: copy(&grant.copies),
            is_settled: grant.owner == Party::Other && self.has_settled(),
        }
    }

    /// The notes of this cluster, if they are about this grant.
    pub fn noted(&self) -> Option<Notes> {
        match self.notes {
            Here::Noted(notes) => Some(notes),
            Here::Missing | Here::Foreign => None,
        }
    }

    /// The claims that anybody needs, each with its place.
    pub fn needed(&self) -> impl Iterator<Item = (usize, &Claim)> {
        self.claims.iter().enumerate().filter(|(_, claim)| !claim.is_gone(&self.at))
    }

    /// Whether nobody needs any of these claims.
    fn are_gone(&self, uids: &[&str]) -> bool {
        let is_gone = |uid: &&str| {
            let mut claims = self.claims.iter().filter(|claim| claim.uid == **uid);
            claims.any(|claim| claim.is_gone(&self.at))
        };
        uids.iter().all(is_gone)
    }

    /// Whether this cluster has the grant now.
    pub fn is_mine(&self, phases: &[Phase]) -> bool {
        let grant = self.grant.as_ref();
        grant.is_some_and(|grant| grant.owner == Party::Me && phases.contains(&grant.phase))
    }

    /// Only the owner speaks for a grant.
    pub fn is_ours_to_say(&self) -> bool {
        self.is_mine(&[Phase::Granted, Phase::Revoking])
    }

    /// Whether the present epoch may run here.
    pub fn is_permitted(&self) -> bool {
        self.noted().is_some_and(|notes| notes.running == Running::Permitted(self.at.epoch))
    }

    /// Whether what runs, wherever it does, has run for as long as old copies are kept.
    pub fn has_settled(&self) -> bool {
        let settles_in = self.grant.as_ref().and_then(|grant| grant.settles_in);
        settles_in == Some(Duration::ZERO)
    }

    /// The next claim to mark: another owner has all of its data, and it does not say so.
    pub fn to_mark(&self) -> Option<usize> {
        let grant = self.grant.as_ref()?;
        let is_superseded = grant.copies.contains(&CopyState::Superseded);
        let has_successor = grant.phase.is_held() && !self.is_ours_to_say();
        leftover::unmarked(&self.parts).filter(|_| is_superseded && has_successor)
    }

    /// A snapshot that we hold and that the grant does not refer to any more.
    pub fn unpinned_snapshot(&self) -> Option<usize> {
        let last: Vec<&str> = self.claims.iter().filter_map(Claim::last_snapshot_uid).collect();
        leftover::unpinned_snapshot(&self.parts, &last)
    }

    fn truth(&self, fresh: &Fresh) -> Truth {
        if !fresh.are_notes_current {
            return Truth { granted: None, is_forced: false, is_awaiting_rights: false };
        }
        let granted = fresh.grant.as_ref().filter(|grant| {
            let unfilled: Vec<&str> = grant.unfilled.iter().map(String::as_str).collect();
            grant.phase == Phase::Granted && grant.owner == Party::Me && self.are_gone(&unfilled)
        });
        let is_awaiting_rights = granted.is_some_and(|grant| grant.rights.is_awaiting());
        let granted = granted.map(|grant| grant.epoch);
        let is_it = |force: &Option<Epoch>| force.is_none() || *force == granted;
        Truth { granted, is_forced: fresh.forces.iter().any(is_it), is_awaiting_rights }
    }

    /// What has to be done before the repository of a Secret can be opened here; None: nothing. The
    /// Secret is an object of the namespace like others, but it is needed before them.
    pub fn bring(&self, secret: &str) -> Result<Option<Decision>, Obstacle> {
        let incomplete = |message| Obstacle::new("SecretIncomplete", message);
        let Some(Some(object)) = self.secrets.get(secret) else {
            let namespace = &self.at.namespace;
            let message = format!(
                "Secret {secret} does not exist in namespace {namespace}; the Placement names it \
                 as the repository"
            );
            let next = format!(
                "kubectl create secret generic {secret} -n {namespace} \
                 --from-literal=RESTIC_REPOSITORY=... --from-literal=RESTIC_PASSWORD=..."
            );
            return Err(Obstacle { next: Some(next), ..incomplete(message) });
        };
        match objects::application(object) {
            Verdict::Fine => Ok(None),
            Verdict::Do(chore) => {
                Ok(Some(Decision::BringSecret { secret: secret.to_owned(), chore }))
            }
            Verdict::HoldBack(why) => {
                Err(incomplete(format!("Secret {secret} cannot be copied to this cluster: {why}")))
            }
        }
    }

    /// Says at the hub what is waited for, if it does not stand there yet; else the other decision.
    pub fn saying(&self, found: Finding, otherwise: Decision) -> Decision {
        self.saying_because(
            vec![found],
            "the condition says what the namespace waits for",
            otherwise,
        )
    }

    /// Says something about the grant, if it does not say so already; else the other decision.
    pub fn saying_because(
        &self,
        findings: Vec<Finding>,
        because: &'static str,
        otherwise: Decision,
    ) -> Decision {
        let is_new = |found: &Finding| !found.is_in(&self.conditions);
        let new: Vec<Finding> = findings.into_iter().filter(is_new).collect();
        match new.is_empty() || !self.is_ours_to_say() {
            true => otherwise,
            false => Decision::Say { findings: new, because },
        }
    }
}

impl Rights {
    /// Whether the start has to wait for one of them.
    pub fn is_awaiting(&self) -> bool {
        self.are_awaited && !self.unready.is_empty()
    }
}

fn workload(running: &[Runs]) -> Workload {
    match running {
        [] => Workload::None,
        _ if running.iter().any(|runs| !runs.is_terminating) => Workload::Some,
        _ => Workload::Stopping,
    }
}

/// Of several copies here, the one that wants most care speaks.
fn copy(copies: &[CopyState]) -> Option<CopyState> {
    copies.iter().copied().max_by_key(|state| match state {
        CopyState::Unclosed => 3,
        CopyState::Diverged => 2,
        CopyState::Live => 1,
        CopyState::Superseded => 0,
    })
}
