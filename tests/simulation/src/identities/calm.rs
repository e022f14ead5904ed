//! The end: the faults stop, and all that was declared is in the cloud, and nothing else of ours.

use super::promises::owned;
use super::{SHOP, TAKEN, Tenants};
use crate::engine::line::Way;
use crate::engine::{Broken, Engine};
use interlock_api::identities::{PolicySpec, TAG_OWNER_UID};
use interlock_api::placement::{GrantStatus, Phase};
use interlock_identities::document;
use interlock_identities::kinds::{ACCOUNT, POLICY, ROLE, SERVICE_ACCOUNT};
use interlock_kernel::metadata::{is_deleting, name_of, namespace_of, uid_of};
use interlock_kernel::{Object, read_part};

/// How many rounds it may take until all is as declared.
const ROUNDS: usize = 60;

impl Engine<Tenants> {
    /// The faults stop: all becomes as declared, and then nothing is written and nothing is called.
    pub(crate) async fn calm_end(&mut self) -> Result<(), Broken> {
        self.note("the faults stop".to_owned());
        self.world.account().is_calm = true;
        self.mend_all();
        while !self.under_way.is_empty() {
            self.drive(0, Way::Through).await?;
            self.check().await?;
        }
        for _ in 0..100 {
            self.deliver().await?;
            self.check().await?;
        }
        while self.actors.len() > 1 {
            self.crash(1);
        }
        let mut wanting = String::new();
        for round in 0..ROUNDS {
            self.placement_acts(true).await?;
            self.check().await?;
            self.round(if round < 10 { 3 } else { 15 }).await?;
            match self.wanting() {
                None => return self.ends().await,
                Some(what) => wanting = what,
            }
        }
        Err(format!("after {ROUNDS} calm rounds: {wanting}"))
    }

    /// TerminationIsTheLastAction: what is as declared is left alone, also after the late-call window. One more round
    /// takes the marks off.
    async fn ends(&mut self) -> Result<(), Broken> {
        for _ in 0..2 {
            self.round(61).await?;
        }
        self.rest().await?;
        let before = (self.world.account().calls, self.versions());
        self.round(61).await?;
        if (self.world.account().calls, self.versions()) != before {
            return Err("TerminationIsTheLastAction: something was done after the end".to_owned());
        }
        match self.wanting() {
            None => Ok(()),
            Some(what) => Err(format!("TerminationIsTheLastAction: it was done, and now: {what}")),
        }
    }

    /// The versions of all that belongs to identities. On a WorkloadCluster it is noted when it was compared.
    fn versions(&self) -> Vec<Option<String>> {
        let kinds = [ACCOUNT, POLICY, ROLE, SERVICE_ACCOUNT];
        let all = kinds.iter().flat_map(|kind| self.truth.all(crate::HUB, kind));
        all.map(|object| object.metadata.resource_version.clone()).collect()
    }

    /// The first thing that is not as people want it, if there is one.
    fn wanting(&self) -> Option<String> {
        let accounts = self.truth.all(crate::HUB, &ACCOUNT);
        if let Some(what) = accounts.iter().find_map(|it| self.wanting_of(it)) {
            return Some(what);
        }
        let children = [POLICY, ROLE].map(|kind| self.truth.all(crate::HUB, &kind).len());
        if children != [accounts.len(); 2] {
            return Some(format!("{} identities have {children:?} children", accounts.len()));
        }
        let (_, GrantStatus { phase, epoch, .. }) = self.grant()?;
        let runs = self.world.promises.running.contains(&epoch);
        if phase != Phase::Granted || !runs {
            return Some(format!("{SHOP} does not run: {phase} {epoch}"));
        }
        let account = self.world.account();
        let held = account.machine.account.policies.len() - account.foreign.policies.len();
        // One of them has no policy: something foreign has its name.
        let taken = accounts.iter().filter(|it| is_taken(it)).count();
        let is_exact = held + taken == accounts.len();
        (!is_exact).then(|| format!("{held} policies of {} identities", accounts.len()))
    }

    fn wanting_of(&self, account: &Object) -> Option<String> {
        let (name, status) = (name_of(account), &account.data["status"]);
        if is_deleting(account) {
            return Some(format!("{name} was deleted and is still there: {status}"));
        }
        let namespace = namespace_of(account);
        if is_taken(account) {
            let is_conflict =
                status["condition"] == "failed" || status["condition"] == "progressing";
            return (!is_conflict).then(|| format!("{name} has no conflict: {status}"));
        }
        let is_current = status["observedGeneration"].as_i64() == account.metadata.generation;
        if status["condition"] != "created" || !is_current {
            return Some(format!("{namespace}/{name} is not as declared: {status}"));
        }
        let role = self.truth.get(crate::HUB, &ROLE, Some(namespace), name)?;
        let policy = self.truth.get(crate::HUB, &POLICY, Some(namespace), name)?;
        let spec = read_part::<PolicySpec>(policy, "spec").ok().flatten().unwrap_or_default();
        let wanted = document::of_statements(&spec.statement).to_string();
        let cloud = self.world.account();
        let Some(held) = owned(&cloud, uid_of(role)) else {
            return Some(format!("{namespace}/{name} has no cloud role"));
        };
        let mut policies = cloud.machine.account.policies.values();
        let is_its = policies.any(|it| {
            let text = it.versions.get(&it.default).map(String::as_str).unwrap_or_default();
            let owner = it.tags.get(TAG_OWNER_UID).map(String::as_str);
            owner == Some(uid_of(policy)) && document::is_same(text, &wanted)
        });
        if !is_its || held.attached.len() != 1 || !held.trust.contains("Allow") {
            return Some(format!("the cloud is not as {namespace}/{name} declares: {held:?}"));
        }
        None
    }
}

fn is_taken(account: &Object) -> bool {
    name_of(account) == TAKEN
}
