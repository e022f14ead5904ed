//! The beginning without trouble, and the end: the faults stop, every request ends, and every cluster is at the newest
//! version that becomes healthy.

use super::bundles::{self, LAST_BAD, LAST_GOOD};
use super::decided::Decided;
use super::people::Asking;
use super::promises::is_over;
use super::{DEPLOYMENT, SHOP, Updates};
use crate::engine::line::Way;
use crate::engine::{Broken, Engine};
use interlock_kernel::metadata::{is_deleting, name_of};
use interlock_rollouts::kinds::{
    CLUSTER_ROLLOUT, CLUSTER_UPDATE, CONFIG_MAP, FLEET_UPDATE, ROLLOUT_REPORT,
};
use serde_json::{Value, json};

/// How many rounds it may take until all is as it should be.
const ROUNDS: usize = 90;
/// After so many seconds even bundles without a name are deleted.
const LONG: i64 = 3_700;

impl Engine<Updates> {
    /// Each cluster is asked to run the first version, and may have begun to.
    pub(crate) async fn calm_beginning(&mut self) -> Result<(), Broken> {
        self.ask_everywhere(1, &json!({"soakSeconds": 0})).await?;
        for _ in 0..self.chance.below(16) {
            self.look_after_clusters().await?;
            self.round(1).await?;
        }
        Ok(())
    }

    /// The faults stop. Whatever was asked for ends, a good version is asked for and comes, and a bad one does not stay.
    pub(crate) async fn calm_end(&mut self) -> Result<(), Broken> {
        self.note("the faults stop".to_owned());
        self.settle().await?;
        self.until(Self::busy).await?;
        // What failed because of the faults is asked for once more; what others changed is taken over.
        let options = json!({"retryBad": true, "force": true, "soakSeconds": 3});
        self.ask_everywhere(LAST_GOOD, &options).await?;
        self.until(Self::wanting).await?;
        if self.seed.is_multiple_of(2) {
            let options = json!({"deadlineSeconds": 90, "soakSeconds": 0});
            self.ask_everywhere(LAST_BAD, &options).await?;
            self.until(Self::wanting).await?;
        }
        self.ends().await
    }

    async fn ask_everywhere(&mut self, number: u64, options: &Value) -> Result<(), Broken> {
        for cluster in 0..crate::CLUSTERS.len() {
            self.submit(Asking { cluster, number, options: options.clone() }).await?;
            self.check().await?;
        }
        Ok(())
    }

    /// Controllers see what is there, and records are configured.
    async fn look_after_clusters(&mut self) -> Result<(), Broken> {
        for cluster in 0..crate::CLUSTERS.len() {
            self.controller_sees(cluster).await?;
            self.check().await?;
            self.configure(cluster).await?;
            self.check().await?;
        }
        Ok(())
    }

    async fn until(&mut self, wanting: fn(&Self) -> Option<String>) -> Result<(), Broken> {
        let mut wanted = None;
        for round in 0..ROUNDS {
            self.look_after_clusters().await?;
            self.round(if round < 30 { 3 } else { 30 }).await?;
            wanted = wanting(self);
            if wanted.is_none() {
                return Ok(());
            }
        }
        Err(format!("after {ROUNDS} calm rounds: {}", wanted.unwrap_or_default()))
    }

    /// Nothing is cut, doubled or under way any more.
    async fn settle(&mut self) -> Result<(), Broken> {
        self.mend_all();
        while !self.under_way.is_empty() {
            self.drive(0, Way::Through).await?;
            self.check().await?;
        }
        for _ in 0..100 {
            self.deliver().await?;
            self.check().await?;
        }
        let clusters = (0..crate::CLUSTERS.len()).map(Some);
        for cluster in clusters.chain([None]) {
            while self.actors.iter().filter(|actor| actor.cluster == cluster).count() > 1 {
                let second = self.actors.iter().rposition(|actor| actor.cluster == cluster);
                let Some(second) = second else { break };
                self.crash(second);
            }
        }
        Ok(())
    }

    /// All is done: though time passes, nothing is written any more.
    async fn ends(&mut self) -> Result<(), Broken> {
        for _ in 0..2 {
            self.round(LONG).await?;
        }
        self.rest().await?;
        let before = self.versions();
        self.round(61).await?;
        if self.versions() != before {
            return Err("QuietAtTheEnd: something was written after the end".to_owned());
        }
        match self.wanting() {
            None => Ok(()),
            Some(what) => Err(format!("QuietAtTheEnd: it was done, and now: {what}")),
        }
    }

    fn versions(&self) -> Vec<Option<String>> {
        let at_hub = [CLUSTER_UPDATE, CLUSTER_ROLLOUT, ROLLOUT_REPORT, FLEET_UPDATE];
        let at_hub = at_hub.iter().flat_map(|kind| self.truth.all(crate::HUB, kind));
        let kinds = [CONFIG_MAP, DEPLOYMENT];
        let places = crate::CLUSTERS.into_iter();
        let on_clusters = places.flat_map(|at| kinds.iter().map(move |kind| (at, kind)));
        let on_clusters = on_clusters.flat_map(|(at, kind)| self.truth.all(at, kind));
        at_hub.chain(on_clusters).map(|it| it.metadata.resource_version.clone()).collect()
    }

    /// The first request that has not ended, if there is one. One that somebody deleted may wait for the next record.
    fn busy(&self) -> Option<String> {
        for kind in [CLUSTER_UPDATE, FLEET_UPDATE] {
            for asked in self.truth.all(crate::HUB, &kind).iter().filter(|it| !is_deleting(it)) {
                let (name, status) = (name_of(asked), &asked.data["status"]);
                if !is_over(asked) || status["reason"].as_str().unwrap_or_default().is_empty() {
                    return Some(format!("{name} has not ended: {status}"));
                }
            }
        }
        let mut records = self.truth.all(crate::HUB, &CLUSTER_ROLLOUT).iter();
        let left = records.find(|record| is_deleting(record));
        left.map(|record| format!("{} was deleted and is still there", name_of(record)))
    }

    /// The first thing that is not as it should be at the end, if there is one.
    fn wanting(&self) -> Option<String> {
        let mut requests = self.truth.all(crate::HUB, &CLUSTER_UPDATE).iter();
        if let Some(left) = requests.find(|it| is_deleting(it)) {
            return Some(format!("{} was deleted and is still there", name_of(left)));
        }
        let mut clusters = 0..crate::CLUSTERS.len();
        self.busy().or_else(|| clusters.find_map(|cluster| self.wanting_at(cluster)))
    }

    fn wanting_at(&self, cluster: usize) -> Option<String> {
        let at = crate::CLUSTERS[cluster];
        let decided = Decided::of(&self.truth, &self.world.clusters[cluster]);
        let (status, digest) = (&decided.status, bundles::digest(LAST_GOOD));
        let is_good = status.last_good.as_ref().is_some_and(|good| good.digest == digest);
        let is_target = status.target.digest.as_ref() == Some(&digest);
        let is_idle = status.active.is_none() && !status.is_degraded;
        if !is_good || !is_target || !is_idle || !decided.is_verified(status.target.token) {
            return Some(format!("{at} is not at the last good version: {}", decided.words()));
        }
        self.differing(cluster).map(|name| format!("{name} at {at} is not as the target has it"))
    }

    /// The first object of a cluster that differs from the last good version.
    fn differing(&self, cluster: usize) -> Option<String> {
        let at = crate::CLUSTERS[cluster];
        let names = bundles::names(LAST_GOOD);
        for (name, wanted) in names.iter().zip(bundles::objects(LAST_GOOD)) {
            let kind = if name.starts_with("ConfigMap/") { CONFIG_MAP } else { DEPLOYMENT };
            let found = self.truth.get(at, &kind, Some(SHOP), last(name));
            if found.is_none_or(|it| bundles::content(&it.data) != bundles::content(&wanted)) {
                return Some(name.clone());
            }
        }
        // What a record knew that somebody deleted is nobody's any more.
        if self.world.promises.has_lost_record(cluster) {
            return None;
        }
        let mut others = (1..=LAST_BAD).flat_map(bundles::names);
        others.find(|name| {
            let found = self.truth.get(at, &CONFIG_MAP, Some(SHOP), last(name));
            !names.contains(name) && found.is_some()
        })
    }
}

/// The name of an object out of `ConfigMap/settings`.
fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}
