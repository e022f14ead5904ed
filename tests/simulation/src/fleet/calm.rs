//! Times without trouble: the beginning, and the end, in which every namespace must be on its desired cluster.

use super::Fleet;
use super::granted::Granted;
use crate::engine::line::Way;
use crate::engine::{Broken, Engine};
use interlock_api::names::{ANNOTATION_CLUSTER, grant_name};
use interlock_api::placement::condition::READY;
use interlock_kernel::Object;
use interlock_placement::kinds::{CLAIM, FORCE_RELEASE, GRANT, NAMESPACE, POD, WORKLOAD_CLUSTER};

/// How many rounds it may take until every namespace is on its desired cluster.
const ROUNDS: usize = 90;
impl Engine<Fleet> {
    /// Until all clusters are ready, and a namespace has a desired cluster.
    pub(crate) async fn calm_beginning(&mut self) -> Result<(), Broken> {
        for _ in 0..6 {
            self.round(5).await?;
        }
        let clusters = self.truth.all(crate::HUB, &WORKLOAD_CLUSTER);
        if let Some(other) = clusters.iter().find(|cluster| !is_ready(cluster)) {
            return Err(format!("{:?} never became ready", other.metadata.name));
        }
        self.place("shop").await?;
        self.check().await?;
        for _ in 0..self.chance.below(4) {
            self.round(1).await?;
        }
        // There is something to carry, most often, before anything goes wrong.
        for _ in 0..if self.carries_data() { self.chance.below(12) } else { 0 } {
            self.round(1).await?;
        }
        Ok(())
    }

    /// The faults stop: every namespace that can be is on its desired cluster, and then nothing changes.
    pub(crate) async fn calm_end(&mut self) -> Result<(), Broken> {
        self.note("the faults stop".to_owned());
        self.world.disks().is_calm = true;
        self.settle().await?;
        self.set_possible_clusters().await?;
        let mut wanting = String::new();
        for round in 0..ROUNDS {
            self.give_up_copies().await?;
            self.round(if round < 20 { 3 } else { 15 }).await?;
            match self.wanting() {
                None => return self.rest().await,
                Some(what) => wanting = what,
            }
        }
        Err(format!("after {ROUNDS} calm rounds: {wanting}"))
    }

    /// Nothing is cut, off, doubled or under way any more.
    async fn settle(&mut self) -> Result<(), Broken> {
        self.mend_all();
        for cluster in 0..self.world.clusters.len() {
            self.power_on(cluster).await?;
        }
        while !self.under_way.is_empty() {
            self.drive(0, Way::Through).await?;
            self.check().await?;
        }
        for _ in 0..100 {
            self.deliver().await?;
            self.check().await?;
        }
        for cluster in 0..self.world.clusters.len() {
            let of = |actor: &crate::engine::actor::Actor| actor.cluster == Some(cluster);
            while self.actors.iter().filter(|actor| of(actor)).count() > 1 {
                let Some(second) = self.actors.iter().rposition(of) else { break };
                self.crash(second);
            }
        }
        Ok(())
    }

    /// The first thing that is not as people want it, if there is one.
    fn wanting(&self) -> Option<String> {
        let forces = self.truth.all(crate::HUB, &FORCE_RELEASE).iter();
        let outcome = |force: &Object| force.data["status"]["outcome"].clone();
        let pending =
            |force: &&Object| !matches!(outcome(force).as_str(), Some("Applied" | "Refused"));
        if let Some(force) = forces.clone().find(|force| pending(force)) {
            return Some(format!("{:?} is not answered", force.metadata.name));
        }
        for grant in self.truth.all(crate::HUB, &GRANT) {
            let name = grant.metadata.name.as_deref().unwrap_or_default();
            if self.world.promises.deleted.contains(name) {
                return Some(format!(
                    "{name} was deleted and is still there: {}",
                    grant.data["status"]
                ));
            }
        }
        let namespaces = self.truth.all(crate::HUB, &NAMESPACE).iter();
        let mut placed = namespaces.filter(|found| {
            found.metadata.labels.as_ref().is_some_and(|l| l.contains_key("interlock.dev/placed"))
        });
        let wanting = placed.find_map(|namespace| self.wanting_of(namespace));
        wanting.or_else(|| self.left_over().filter(|_| self.carries_data()))
    }

    fn wanting_of(&self, namespace: &Object) -> Option<String> {
        let name = namespace.metadata.name.as_deref().unwrap_or_default();
        let uid = namespace.metadata.uid.as_deref().unwrap_or_default();
        if namespace.metadata.deletion_timestamp.is_some() {
            return Some(format!("{name} was deleted and is still there"));
        }
        let grant = grant_name(name, uid);
        let Some(granted) = Granted::named(&self.truth, &grant) else {
            return Some(format!("{name} has no grant"));
        };
        let Granted { phase, owner, epoch } = &granted;
        let place = self.world.clusters.iter().position(|cluster| cluster.uid == *owner);
        let Some(place) = place.filter(|_| phase == "Granted") else {
            return Some(format!("{name} is on no cluster: {granted:?}"));
        };
        let desired = namespace.metadata.annotations.as_ref();
        let desired = desired.and_then(|notes| notes.get(ANNOTATION_CLUSTER)).map(String::as_str);
        // Nothing carries data where volumes are not made here: what has a claim stays.
        let stays = !self.carries_data()
            && self
                .truth
                .all(crate::HUB, &CLAIM)
                .iter()
                .any(|claim| claim.metadata.namespace.as_deref() == Some(name));
        if let Some(desired) = desired.filter(|desired| !stays && self.takes_new_ones(desired))
            && self.world.clusters[place].name != desired
        {
            return Some(format!(
                "the desired cluster of {name} is {desired}, and it is on {granted:?}"
            ));
        }
        if self.waits_for_a_person(&grant) {
            return None;
        }
        let left = self.left_of_filling(&grant, place);
        if let Some(left) = left.filter(|_| self.carries_data()) {
            return Some(left);
        }
        let alive = self.world.machines[place].alive();
        let pods = self.truth.all(crate::HUB, &POD).iter();
        let mut pods = pods.filter(|pod| pod.metadata.namespace.as_deref() == Some(name));
        pods.find_map(|pod| {
            let pod = pod.metadata.name.as_deref().unwrap_or_default();
            let is_its = |process: &&super::machine::Process| {
                process.namespace == grant && process.name == pod && process.epoch == *epoch
            };
            let runs = alive.iter().any(|process| is_its(&process));
            (!runs).then(|| {
                format!("pod {pod} of {name} does not run on {}", self.world.clusters[place])
            })
        })
    }

    /// Whether a volume that may have what no snapshot has is in the way: nobody but a person gives
    /// that up.
    fn waits_for_a_person(&self, grant: &str) -> bool {
        let found = self.truth.get(crate::HUB, &GRANT, None, grant);
        found.is_some_and(|found| {
            let conditions = found.data["status"]["conditions"].as_array().into_iter().flatten();
            let mut filled = conditions.filter(|condition| condition["type"] == "Filled");
            filled.any(|filled| filled["status"] == "False" && filled["reason"] == "Diverged")
        })
    }

    pub(crate) fn takes_new_ones(&self, cluster: &str) -> bool {
        let found = self.truth.get(crate::HUB, &WORKLOAD_CLUSTER, None, cluster);
        found.is_some_and(|found| found.metadata.deletion_timestamp.is_none())
    }
}

fn is_ready(cluster: &Object) -> bool {
    let mut conditions = cluster.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == READY && condition["status"] == "True")
}
