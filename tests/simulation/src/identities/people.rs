//! What happens, and what people do: tenants declare, change and delete identities; placement moves a namespace.

use super::{DECLARED, MORE, SHOP, TOOLS, Tenants};
use crate::engine::{Broken, Engine, said};
use interlock_api::names::{LABEL_PLACED, grant_name};
use interlock_api::placement::{GrantStatus, Phase, RightsState};
use interlock_identities::kinds::{ACCOUNT, GRANT, NAMESPACE};
use interlock_kernel::{Kind, Object, read_part};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

/// The actions that a tenant may ask for.
const ACTIONS: [&str; 3] = ["s3:Get*", "s3:Put*", "s3:List*"];

/// The issuer of a cluster.
pub(crate) fn issuer(cluster: &str) -> String {
    format!("https://{cluster}.example")
}

impl Engine<Tenants> {
    /// One event.
    pub(crate) async fn event(&mut self) -> Result<(), Broken> {
        match self.chance.below(100) {
            0..=27 => self.go_on().await,
            28..=36 => self.begin_step(),
            37..=49 => self.news(),
            50..=60 => {
                // Seldom so much that all that was sent has landed, and now and then that much.
                let seconds = if self.chance.once_in(6) { 61 } else { 1 + self.chance.below(9) };
                self.time_passes(seconds as i64);
                Ok(())
            }
            61..=75 => self.burst().await,
            76..=77 => self.background().await,
            78..=81 => self.tenant_acts().await,
            82..=89 => self.placement_acts(false).await,
            90..=92 => self.a_call_lands(),
            93 => self.somebody_changes_the_cloud(),
            94..=96 => self.trouble().await,
            _ if self.chance.once_in(2) => self.mend_one(),
            _ => self.deliver().await,
        }
    }

    async fn trouble(&mut self) -> Result<(), Broken> {
        let actor = self.chance.below(self.actors.len());
        match self.chance.below(4) {
            0 => {
                self.cut(actor);
                Ok(())
            }
            1 => self.start_program().await,
            2 if actor < self.actors.len() => {
                // It goes on with what it knew, while the other one, if there is one, does not stop.
                let until = self.for_a_while();
                let mut stopped = self.actors.remove(actor);
                stopped.stopped_until = until;
                self.turn_deaf(&mut stopped, until, |_| true);
                self.note(format!("{} is stopped for a while", stopped.name));
                self.actors.insert(actor, stopped);
                Ok(())
            }
            _ if actor < self.actors.len() => self.die(actor).await,
            _ => Ok(()),
        }
    }

    fn a_call_lands(&mut self) -> Result<(), Broken> {
        let landed = self.world.account().something_lands();
        landed.into_iter().for_each(|event| self.note(event.to_owned()));
        Ok(())
    }

    fn somebody_changes_the_cloud(&mut self) -> Result<(), Broken> {
        let changed = self.world.account().drift();
        if let Some(event) = changed {
            self.counts.by_hand += 1;
            self.note(event);
        }
        Ok(())
    }

    /// The namespaces, the Grant of the one that is placed, and what is declared at first.
    pub(crate) async fn make_namespaces(&mut self) -> Result<(), Broken> {
        for name in [TOOLS, MORE] {
            self.create(&NAMESPACE, None, json!({"metadata": {"name": name}})).await?;
        }
        let labels = json!({LABEL_PLACED: "true"});
        let shop = json!({"metadata": {"name": SHOP, "labels": labels}});
        let uid = self.create(&NAMESPACE, None, shop).await?.metadata.uid.unwrap_or_default();
        let name = grant_name(SHOP, &uid);
        let spec = json!({"namespace": {"name": SHOP, "uid": uid}});
        let grant = json!({"metadata": {"name": name}, "spec": spec});
        self.create(&GRANT, None, grant).await?;
        let owner = self.world.clusters[0].clone();
        self.world.promises.owners.insert(1, 0);
        self.set_status(&GRANT, &name, json!({"phase": "Granted", "epoch": 1, "owner": owner}))
            .await?;
        for (namespace, name) in DECLARED {
            self.declare(namespace, name).await?;
        }
        Ok(())
    }

    fn statement(&self) -> Value {
        let action = self.chance.one_of(&ACTIONS);
        json!([{"resource": "arn:aws:s3:::bucket", "action": [action]}])
    }

    async fn declare(&mut self, namespace: &str, name: &str) -> Result<(), Broken> {
        let spec = json!({"policy": {"statement": self.statement()}});
        let declared = json!({"metadata": {"name": name}, "spec": spec});
        self.note(format!("tenant: declares {namespace}/{name}"));
        self.create(&ACCOUNT, Some(namespace), declared).await.map(|_| ())
    }

    async fn tenant_acts(&mut self) -> Result<(), Broken> {
        let Some((namespace, name)) = self.chance.one_of(&DECLARED).copied() else { return Ok(()) };
        let found = self.truth.get(crate::HUB, &ACCOUNT, Some(namespace), name);
        let Some(found) = found else { return self.declare(namespace, name).await };
        if found.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let api = self.api(&ACCOUNT, Some(namespace));
        if self.chance.once_in(3) {
            self.note(format!("tenant: deletes {namespace}/{name}"));
            return api.delete(name, &DeleteParams::default()).await.map(|_| ()).map_err(said);
        }
        self.note(format!("tenant: changes {namespace}/{name}"));
        let change = Patch::Merge(json!({"spec": {"policy": {"statement": self.statement()}}}));
        api.patch(name, &PatchParams::default(), &change).await.map(|_| ()).map_err(said)
    }

    pub(crate) async fn set_status(
        &self,
        kind: &Kind,
        name: &str,
        status: Value,
    ) -> Result<(), Broken> {
        let change = Patch::Merge(json!({"status": status}));
        let api = self.api(kind, None);
        let changed = api.patch_status(name, &PatchParams::default(), &change).await;
        changed.map(|_| ()).map_err(said)
    }

    /// The Grant of the placed namespace.
    pub(crate) fn grant(&self) -> Option<(String, GrantStatus)> {
        let grant: &Object = self.truth.all(crate::HUB, &GRANT).first()?;
        let status = read_part::<GrantStatus>(grant, "status").ok().flatten().unwrap_or_default();
        Some((grant.metadata.name.clone().unwrap_or_default(), status))
    }

    /// What placement does next with the namespace; at the end it only finishes what was begun.
    pub(crate) async fn placement_acts(&mut self, is_end: bool) -> Result<(), Broken> {
        let Some((name, status)) = self.grant() else { return Ok(()) };
        let GrantStatus { phase, epoch, rights, .. } = status;
        let owner = self.world.promises.owners.get(&epoch).copied().unwrap_or_default();
        let running = self.world.promises.running;
        let is_over = |cluster: &usize| {
            let runs = running[*cluster];
            runs != 0 && (runs != epoch || phase != Phase::Granted)
        };
        // An owner that lost the namespace by force may run on for long.
        let over = (0..running.len()).find(is_over);
        if let Some(cluster) = over.filter(|_| is_end || self.chance.once_in(3)) {
            self.note(format!("placement: {} stops {SHOP}", crate::CLUSTERS[cluster]));
            self.world.promises.running[cluster] = 0;
            return Ok(());
        }
        if !is_end && phase.is_held() && self.chance.once_in(10) {
            self.note(format!("somebody releases epoch {epoch} of {SHOP} by force"));
            let change = json!({"phase": "Fenced", "fencedEpoch": epoch});
            return self.set_status(&GRANT, &name, change).await;
        }
        match phase {
            Phase::Granted if running[owner] == 0 => {
                let mut entries = rights.iter();
                let is_ready =
                    entries.all(|it| (it.epoch, it.state) == (epoch, RightsState::Ready));
                if is_ready {
                    self.note(format!("placement: {} runs {SHOP}", crate::CLUSTERS[owner]));
                    let known = rights.iter().map(|entry| entry.uid.clone());
                    self.world.promises.permitted = known.collect();
                    self.world.promises.running[owner] = epoch;
                }
                Ok(())
            }
            Phase::Granted if !is_end && self.chance.once_in(4) => {
                self.note(format!("placement: revokes epoch {epoch} of {SHOP}"));
                self.set_status(&GRANT, &name, json!({"phase": "Revoking"})).await
            }
            Phase::Revoking if running[owner] != epoch => {
                self.note(format!("placement: epoch {epoch} of {SHOP} is released"));
                self.set_status(&GRANT, &name, json!({"phase": "Released"})).await
            }
            Phase::Released | Phase::Fenced => {
                let next = self.chance.below(self.world.clusters.len());
                // A cluster that still runs an old epoch has to stop first.
                if running[next] != 0 {
                    return Ok(());
                }
                let cluster = self.world.clusters[next].clone();
                self.note(format!("placement: grants {SHOP} to {cluster}"));
                let promises = &mut self.world.promises;
                promises.owners.insert(epoch + 1, next);
                promises.moves += u64::from(next != owner);
                let change = json!({"phase": "Granted", "epoch": epoch + 1, "owner": cluster});
                self.set_status(&GRANT, &name, change).await
            }
            Phase::Granted | Phase::Revoking | Phase::Unassigned | Phase::Deleting => Ok(()),
        }
    }
}
