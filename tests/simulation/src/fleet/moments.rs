//! What goes wrong at the moments that matter: right after something was written that others rest
//! on, and right before a process starts. Chance alone would seldom hit these.

use super::Fleet;
use super::disk::Work;
use crate::engine::actor::CacheAt;
use crate::engine::{Broken, Engine};
use interlock_kernel::Place;
use interlock_placement::kinds::NAMESPACE;

/// For how long a program may be stopped, in events.
const STOPPED: usize = 300;
/// For how many events everybody else may make haste.
const HASTE: usize = 24;
/// How long it may take until news comes to one that goes on again.
const LAG: usize = 80;

impl Engine<Fleet> {
    /// How seldom something happens at such a moment: once in so many times for each thing that can.
    fn seldom(&self) -> usize {
        let times = [8, 16, 40, 200][(self.seed % 4) as usize];
        if self.carries_data() { 2 * times } else { times }
    }

    /// A program has done something; it may be what others rest on.
    pub(crate) async fn moment(&mut self, instance: u64, actions: &[String]) -> Result<(), Broken> {
        let weighs = |action: &String| {
            let is_note = action.contains("patch Namespace") && action.ends_with("at the cluster");
            is_note || action.contains("apply Pod") || action.contains("patch the status of Grant")
        };
        let is_weighty = actions.iter().any(weighs);
        // There are many of these, so seldom is something aimed at one of them.
        let is_of_data =
            !is_weighty && self.carries_data() && actions.iter().any(|action| moves_data(action));
        if !self.is_trouble || !(is_weighty || is_of_data && self.chance.once_in(6)) {
            return Ok(());
        }
        let place = self.actors.iter().position(|actor| actor.instance == instance);
        let Some(place) = place else { return Ok(()) };
        self.check().await?;
        self.loses_a_server(place).await?;
        let what = self.chance.below(self.seldom());
        self.counts.moments += u64::from(what < 7);
        match what {
            0 => self.die(place).await,
            1 => self.somebody_else_goes_on(place).await,
            2 => {
                self.somebody_else_goes_on(place).await?;
                self.think_again().await
            }
            3 => self.think_again().await,
            4 => self.fails_at_the_owner().await,
            5..=6 => self.outrun(place).await,
            _ => Ok(()),
        }
    }

    /// A program is about to start a process: it may be stopped there for a while, still holding
    /// the lock, while somebody else goes on. For how long.
    pub(crate) async fn stopped_before_start(&mut self, instance: u64) -> Result<u64, Broken> {
        let place = self.actors.iter().position(|actor| actor.instance == instance);
        let Some(place) = place.filter(|_| self.is_trouble) else { return Ok(0) };
        self.loses_a_server(place).await?;
        if !self.chance.once_in(self.seldom()) {
            return Ok(0);
        }
        let event = format!("{} stops right before it starts a process", self.actors[place].name);
        self.note(event);
        self.somebody_else_goes_on(place).await?;
        self.think_again().await?;
        Ok(self.happened + self.chance.below(STOPPED) as u64)
    }

    /// Where lines come and go, a program may lose one of its two servers right here, and somebody changes the desired cluster
    /// while it goes on with the other one.
    async fn loses_a_server(&mut self, place: usize) -> Result<(), Broken> {
        if !self.world.is_one_sided || !self.chance.once_in(8) {
            return Ok(());
        }
        self.cut_one_of_two(place);
        if self.chance.once_in(2) { self.think_again().await } else { Ok(()) }
    }

    /// A program of a cluster hears of all that it did, and then nothing more of its cluster;
    /// somebody changes the desired cluster, and all others make haste to do it before the program goes on.
    async fn outrun(&mut self, place: usize) -> Result<(), Broken> {
        if self.actors[place].cluster.is_none() {
            return self.think_again().await;
        }
        self.bring_up_all(place);
        self.goes_on_beside(place).await?;
        let mut actor = self.actors.remove(place);
        let hasty_until = self.happened + HASTE as u64;
        let deaf_until = hasty_until + self.chance.below(LAG) as u64;
        self.turn_deaf(&mut actor, deaf_until, |cache| cache.place == Place::CLUSTER);
        self.haste = (hasty_until, actor.instance);
        let event = format!("{} is outrun: all others make haste", actor.name);
        self.actors.insert(place, actor);
        self.note(event);
        self.think_again().await
    }

    /// Another instance is started beside one that serves a cluster.
    async fn goes_on_beside(&mut self, place: usize) -> Result<(), Broken> {
        let Some(cluster) = self.actors[place].cluster else { return Ok(()) };
        let instances = self.actors.iter().filter(|actor| actor.cluster == Some(cluster)).count();
        if instances < 2 && !self.world.machines[cluster].is_off() {
            self.revive(Some(cluster)).await?;
        }
        Ok(())
    }

    /// A program hears nothing any more, or not all; if it serves a cluster, another instance is
    /// started beside it. The others may make haste to outrun it.
    async fn somebody_else_goes_on(&mut self, place: usize) -> Result<(), Broken> {
        // What it did last it may still hear of: then it knows all up to this moment.
        if self.chance.once_in(2) {
            self.bring_up_all(place);
        }
        if self.chance.once_in(2) {
            let until = self.happened + self.chance.below(HASTE) as u64;
            self.haste = (until, self.actors[place].instance);
        }
        let name = self.actors[place].name.clone();
        self.goes_on_beside(place).await?;
        let mut actor = self.actors.remove(place);
        let what = match self.chance.below(5) {
            0 | 1 => {
                actor.stopped_until = self.happened + self.chance.below(STOPPED) as u64;
                let (stopped, lag) = (actor.stopped_until, self.chance.below(LAG) as u64);
                if self.chance.once_in(2) {
                    self.turn_deaf(&mut actor, stopped + lag, |_| true);
                } else {
                    self.turn_deaf(&mut actor, stopped, |_| true);
                    self.turn_deaf(&mut actor, stopped + lag, is_notes);
                }
                "is stopped for a while, and goes on with what it knew"
            }
            2 => {
                let until = self.for_a_while();
                self.turn_deaf(&mut actor, until, |cache| cache.place == Place::CLUSTER);
                "hears no news of its cluster for a while"
            }
            3 => {
                let until = self.for_a_while();
                self.turn_deaf(&mut actor, until, |cache| cache.place == Place::HUB);
                "hears no news of the hub for a while"
            }
            _ => {
                let until = self.for_a_while();
                self.turn_deaf(&mut actor, until, is_notes);
                "hears no news of the notes on its cluster for a while"
            }
        };
        self.actors.insert(place, actor);
        self.note(format!("{name} {what}"));
        Ok(())
    }

    /// Somebody may change the desired cluster.
    async fn think_again(&mut self) -> Result<(), Broken> {
        let is_there = self.truth.get(crate::HUB, &NAMESPACE, None, "shop").is_some();
        // Data takes its time: if everybody thought again and again, none would ever arrive.
        let waits = self.carries_data() && !self.chance.once_in(4);
        if is_there && !waits { self.change_desired_cluster("shop").await } else { Ok(()) }
    }

    /// Whoever makes something on a disk dies, or the power fails there, or where its data comes from.
    pub(crate) async fn strike(&mut self) -> Result<(), Broken> {
        let struck = {
            let disks = self.world.disks();
            let jobs = disks.all.iter().enumerate();
            let jobs: Vec<(usize, u64, usize)> = jobs
                .flat_map(|(place, disk)| {
                    disk.jobs.iter().map(move |job| match &job.work {
                        Work::Copy { snapshot, .. } => (place, job.instance, snapshot.0),
                        Work::Volume { .. } | Work::Snapshot { .. } => (place, job.instance, place),
                    })
                })
                .collect();
            self.chance.one_of(&jobs).copied()
        };
        let Some((place, instance, source)) = struck else { return Ok(()) };
        self.counts.strikes += 1;
        let actor = self.actors.iter().position(|actor| actor.instance == instance);
        match (self.chance.below(4), actor) {
            (0..=1, Some(actor)) => self.die(actor).await,
            (2, _) => self.power_off(source),
            _ => self.power_off(place),
        }
    }

    /// The power of whoever has a namespace fails, and somebody forces at once.
    pub(crate) async fn fails_at_the_owner(&mut self) -> Result<(), Broken> {
        let Some(cluster) = self.owner_of("shop") else { return Ok(()) };
        self.power_off(cluster)?;
        self.force("shop").await
    }
}

/// Whether an effect is a step on the way of data from one cluster to another.
fn moves_data(action: &str) -> bool {
    let objects = ["Replication", "VolumeSnapshot", "PersistentVolume"];
    action.ends_with("outside") || objects.iter().any(|object| action.contains(object))
}

/// Whether a cache is of what a syncer notes on its cluster.
fn is_notes(cache: &CacheAt) -> bool {
    cache.place == Place::CLUSTER && cache.kind == NAMESPACE
}
