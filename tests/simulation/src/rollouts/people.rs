//! What happens, and what people do: they ask for versions, cancel, delete and ask again, for one cluster or for all; and
//! somebody edits and deletes objects on the clusters.

use super::bundles::{self, MOST, WEB};
use super::promises::is_over;
use super::{DEPLOYMENT, SHOP, Updates};
use crate::engine::{Broken, Engine, api_of, said};
use interlock_api::rollouts::LABEL_ROLLOUT;
use interlock_kernel::metadata::{is_deleting, label, name_of, uid_of};
use interlock_kernel::{Kind, Object};
use interlock_rollouts::kinds::{CLUSTER_ROLLOUT, CLUSTER_UPDATE, CONFIG_MAP, FLEET_UPDATE};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

/// A request by its options.
pub(super) struct Asking {
    /// The place of its cluster.
    pub(super) cluster: usize,
    /// The version.
    pub(super) number: u64,
    /// All else of its spec.
    pub(super) options: Value,
}

impl Engine<Updates> {
    /// One event.
    pub(crate) async fn event(&mut self) -> Result<(), Broken> {
        if self.is_hasty() && !self.chance.once_in(4) {
            return self.burst().await;
        }
        match self.chance.below(100) {
            0..=27 => self.go_on().await,
            28..=35 => self.begin_step(),
            36..=47 => self.news(),
            48..=56 => {
                // Seldom so much that deadlines are over, and hardly ever that bundles without a name are deleted.
                let seconds = match self.chance.below(200) {
                    0 => 3_700,
                    1..=10 => 61,
                    _ => 1 + self.chance.below(4),
                };
                self.time_passes(seconds as i64);
                Ok(())
            }
            57..=74 => self.burst().await,
            75..=76 => self.background().await,
            77..=83 => {
                let cluster = self.chance.below(crate::CLUSTERS.len());
                self.controller_sees(cluster).await
            }
            84..=88 => self.somebody_asks().await,
            89 => self.somebody_edits().await,
            90..=94 => self.trouble().await,
            95..=96 => self.mend_one(),
            _ => self.deliver().await,
        }
    }

    async fn trouble(&mut self) -> Result<(), Broken> {
        let actor = self.chance.below(self.actors.len());
        match self.chance.below(6) {
            0 => {
                self.cut(actor);
                Ok(())
            }
            1 => {
                let cluster = self.chance.below(crate::CLUSTERS.len());
                self.start_program(Some(cluster)).await
            }
            2 => self.start_program(None).await,
            3..=4 => self.falls_behind(actor).await,
            _ if actor < self.actors.len() => self.die(actor).await,
            _ => Ok(()),
        }
    }

    /// The controller of Deployments says how the one of a cluster is.
    pub(crate) async fn controller_sees(&mut self, cluster: usize) -> Result<(), Broken> {
        let at = crate::CLUSTERS[cluster];
        let Some(web) = self.truth.get(at, &DEPLOYMENT, Some(SHOP), WEB) else { return Ok(()) };
        let (status, known) = (bundles::status(web), &web.data["status"]);
        let reason = |status: &Value| status["conditions"][0]["reason"].clone();
        let is_known = known["observedGeneration"] == status["observedGeneration"]
            && reason(known) == reason(&status);
        if is_known {
            return Ok(());
        }
        self.note(format!("the controller of {at} sees {WEB}: {}", reason(&status)));
        let user = self.lines.admin("controller", at);
        let change = Patch::Merge(json!({ "status": status }));
        let api = api_of(&user, &DEPLOYMENT, Some(SHOP));
        let changed = api.patch_status(WEB, &PatchParams::default(), &change).await;
        changed.map(|_| ()).map_err(said)
    }

    /// A person asks for something, or takes it back.
    pub(crate) async fn somebody_asks(&mut self) -> Result<(), Broken> {
        let cluster = self.chance.below(crate::CLUSTERS.len());
        match self.chance.below(24) {
            0..=13 => {
                let (number, options) = (self.some_number(), self.some_options());
                self.submit(Asking { cluster, number, options }).await
            }
            14..=16 => self.cancel_one(&CLUSTER_UPDATE).await,
            17..=18 => self.delete_one().await,
            19 => self.ask_for_all().await,
            20 => self.cancel_one(&FLEET_UPDATE).await,
            21 if self.seed % 3 == 1 => self.delete_record(cluster).await,
            _ => self.configure(cluster).await,
        }
    }

    fn some_number(&self) -> u64 {
        1 + self.chance.below(MOST as usize - 1) as u64
    }

    fn some_options(&self) -> Value {
        json!({
            "deadlineSeconds": 60 + self.chance.below(120),
            "startDeadlineSeconds": 600,
            "soakSeconds": if self.chance.once_in(2) { 0 } else { 3 },
            "preflight": if self.chance.once_in(4) { "DryRun" } else { "Schema" },
            "preempt": self.chance.once_in(4),
            "retryBad": self.chance.once_in(6),
            "force": self.chance.once_in(8),
        })
    }

    fn next_name(&mut self) -> String {
        self.world.sent += 1;
        format!("u{}", self.world.sent)
    }

    /// A person asks for a version on a cluster.
    pub(super) async fn submit(&mut self, asking: Asking) -> Result<(), Broken> {
        let Asking { cluster, number, options } = asking;
        let (name, cluster) = (self.next_name(), crate::CLUSTERS[cluster]);
        self.note(format!("user: asks for {number} on {cluster} as {name}: {options}"));
        let mut spec = options;
        spec["cluster"] = json!(cluster);
        spec["source"] = json!({"inline": bundles::objects(number)});
        let update = json!({"metadata": {"name": name}, "spec": spec});
        self.create(&CLUSTER_UPDATE, Some(SHOP), update).await.map(|_| ())
    }

    async fn ask_for_all(&mut self) -> Result<(), Broken> {
        let (name, number) = (self.next_name(), self.some_number());
        self.note(format!("user: asks for {number} on all clusters as {name}"));
        let mut spec = self.some_options();
        spec["source"] = json!({"inline": bundles::objects(number)});
        spec["onFailure"] = json!("Continue");
        spec["maxUnavailable"] = json!(1 + self.chance.below(3));
        let fleet = json!({"metadata": {"name": name}, "spec": spec});
        self.create(&FLEET_UPDATE, Some(SHOP), fleet).await.map(|_| ())
    }

    /// A person cancels a request that has not ended.
    async fn cancel_one(&mut self, kind: &Kind) -> Result<(), Broken> {
        let all = self.truth.all(crate::HUB, kind);
        let open: Vec<Object> =
            all.iter().filter(|it| !is_over(it) && !is_deleting(it)).cloned().collect();
        let Some(found) = self.chance.one_of(&open) else { return Ok(()) };
        let name = name_of(found);
        self.note(format!("user: cancels {name}"));
        self.world.promises.cancelled.insert(uid_of(found).to_owned());
        let change = Patch::Merge(json!({"spec": {"cancel": true}}));
        let api = self.api(kind, Some(SHOP));
        api.patch(name, &PatchParams::default(), &change).await.map(|_| ()).map_err(said)
    }

    /// A person deletes a request, which may be in flight.
    async fn delete_one(&mut self) -> Result<(), Broken> {
        let all = self.truth.all(crate::HUB, &CLUSTER_UPDATE);
        let here: Vec<Object> = all.iter().filter(|it| !is_deleting(it)).cloned().collect();
        let Some(found) = self.chance.one_of(&here) else { return Ok(()) };
        let name = name_of(found);
        self.note(format!("user: deletes {name}"));
        self.world.promises.cancelled.insert(uid_of(found).to_owned());
        let api = self.api(&CLUSTER_UPDATE, Some(SHOP));
        api.delete(name, &DeleteParams::default()).await.map(|_| ()).map_err(said)
    }

    /// A person deletes the record of a cluster; the next request makes it again.
    async fn delete_record(&mut self, cluster: usize) -> Result<(), Broken> {
        let name = self.record(cluster);
        let found = self.truth.get(crate::HUB, &CLUSTER_ROLLOUT, None, &name);
        if found.is_none_or(|record| is_deleting(record)) {
            return Ok(());
        }
        self.note(format!("user: deletes the record {name}"));
        let api = self.api(&CLUSTER_ROLLOUT, None);
        api.delete(&name, &DeleteParams::default()).await.map(|_| ()).map_err(said)
    }

    /// A person says how long a rollback may take, so that none takes half an hour.
    pub(super) async fn configure(&mut self, cluster: usize) -> Result<(), Broken> {
        let name = self.record(cluster);
        let found = self.truth.get(crate::HUB, &CLUSTER_ROLLOUT, None, &name);
        if found.is_none_or(|record| record.data["spec"]["rollback"]["tries"] == 2) {
            return Ok(());
        }
        self.note(format!("user: configures the record {name}"));
        let spec = json!({"rollback": {"tries": 2, "deadlineSeconds": 60}});
        let change = Patch::Merge(json!({ "spec": spec }));
        let api = self.api(&CLUSTER_ROLLOUT, None);
        api.patch(&name, &PatchParams::default(), &change).await.map(|_| ()).map_err(said)
    }

    /// Somebody deletes one of our objects on a cluster, adds to it, or changes what a version says.
    async fn somebody_edits(&mut self) -> Result<(), Broken> {
        let cluster = self.chance.below(crate::CLUSTERS.len());
        let at = crate::CLUSTERS[cluster];
        let uid = self.world.clusters[cluster].uid.clone();
        let mut ours: Vec<(Kind, String)> = Vec::new();
        for kind in [CONFIG_MAP, DEPLOYMENT] {
            let all = self.truth.all(at, &kind).iter();
            let of_kind = all.filter(|it| label(it, LABEL_ROLLOUT) == Some(uid.as_str()));
            ours.extend(of_kind.map(|it| (kind.clone(), name_of(it).to_owned())));
        }
        let Some((kind, name)) = self.chance.one_of(&ours) else { return Ok(()) };
        self.counts.by_hand += 1;
        let user = self.lines.admin("somebody", at);
        let api = api_of(&user, kind, Some(SHOP));
        let what = self.chance.below(4);
        if what < 2 {
            self.note(format!("somebody deletes {name} at {at}"));
            self.world.promises.deleted.insert((cluster, format!("{}/{name}", kind.kind)));
            let gone = api.delete(name, &DeleteParams::default()).await;
            return gone.map(|_| ()).map_err(said);
        }
        let change = match what {
            2 if *kind == CONFIG_MAP => json!({"data": {"version": "mine"}}),
            _ => {
                json!({"metadata": {"annotations": {"example.com/seen": self.happened.to_string()}}})
            }
        };
        self.note(format!("somebody changes {name} at {at}: {change}"));
        let changed = api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await;
        changed.map(|_| ()).map_err(said)
    }
}
