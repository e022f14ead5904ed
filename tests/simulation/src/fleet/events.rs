//! What can happen, and how often it does.

use super::Fleet;
use crate::engine::{Broken, Engine};

impl Engine<Fleet> {
    /// One event.
    pub(crate) async fn event(&mut self) -> Result<(), Broken> {
        if self.world.is_one_sided {
            self.lines_come_and_go()?;
        }
        if self.is_hasty() && !self.chance.once_in(4) {
            return self.burst().await;
        }
        match self.chance.below(100) {
            0..=29 => self.go_on().await,
            30..=40 => self.begin_step(),
            41..=57 => self.news(),
            58..=65 => {
                self.time_passes(1 + self.chance.below(6) as i64);
                Ok(())
            }
            66..=85 => {
                self.burst().await?;
                // What is made on a disk takes its time, and more of it than all else.
                if self.carries_data() && self.chance.once_in(3) {
                    self.time_passes(1);
                }
                Ok(())
            }
            86..=89 => self.background().await,
            90..=94 => self.user_acts().await,
            95 if self.is_stormy() => self.storm().await,
            95..=96 if self.carries_data() && self.chance.once_in(2) => self.strike().await,
            95..=96 => self.trouble().await,
            _ => self.repair().await,
        }
    }

    /// A program loses one of its two servers, or has it again.
    fn lines_come_and_go(&mut self) -> Result<(), Broken> {
        match self.chance.below(60) {
            0 => {
                let actor = self.chance.below(self.actors.len());
                self.cut_one_of_two(actor);
                Ok(())
            }
            1..=2 => self.mend_one(),
            _ => Ok(()),
        }
    }

    /// Something larger goes wrong.
    async fn trouble(&mut self) -> Result<(), Broken> {
        let cluster = self.chance.below(self.world.clusters.len());
        match self.chance.below(4) {
            0 => self.power_off(cluster),
            1 => {
                let actor = self.chance.below(self.actors.len());
                self.cut(actor);
                Ok(())
            }
            2 if !self.world.machines[cluster].is_off() => {
                let agents = self.actors.iter().filter(|actor| actor.cluster == Some(cluster));
                if agents.count() < 2 { self.revive(Some(cluster)).await } else { Ok(()) }
            }
            _ => {
                let actor = self.chance.below(self.actors.len());
                if actor < self.actors.len() { self.die(actor).await } else { Ok(()) }
            }
        }
    }

    /// The power of an owner fails, and somebody forces at once; or a program dies.
    async fn storm(&mut self) -> Result<(), Broken> {
        let actor = self.chance.below(self.actors.len());
        if self.chance.once_in(2) && actor < self.actors.len() {
            return self.die(actor).await;
        }
        self.fails_at_the_owner().await?;
        self.check().await?;
        let cluster = self.chance.below(self.world.clusters.len());
        if self.chance.once_in(2) { self.power_on(cluster).await } else { Ok(()) }
    }

    pub(crate) fn power_off(&mut self, cluster: usize) -> Result<(), Broken> {
        if self.world.machines[cluster].is_off() {
            return Ok(());
        }
        self.counts.power_failures += 1;
        self.note(format!("the power fails at {}", self.world.clusters[cluster].name));
        self.world.machines[cluster].power_off();
        self.world.disks().power_off(cluster);
        while let Some(actor) = self.actors.iter().position(|a| a.cluster == Some(cluster)) {
            self.crash(actor);
        }
        Ok(())
    }

    /// Something that went wrong is well again.
    async fn repair(&mut self) -> Result<(), Broken> {
        match self.chance.below(3) {
            0 => {
                let off: Vec<usize> = (0..self.world.clusters.len())
                    .filter(|place| self.world.machines[*place].is_off() || !self.carries_data())
                    .collect();
                // A copy needs two machines for long, so of those that are off one comes back.
                let cluster = self.chance.one_of(&off).copied().unwrap_or_default();
                self.power_on(cluster).await
            }
            1 => self.mend_one(),
            _ => self.deliver().await,
        }
    }

    pub(crate) async fn power_on(&mut self, cluster: usize) -> Result<(), Broken> {
        if !self.world.machines[cluster].is_off() {
            return Ok(());
        }
        self.note(format!("the power is back at {}", self.world.clusters[cluster].name));
        self.world.machines[cluster].power_on();
        self.world.disks().power_on(cluster);
        self.revive(Some(cluster)).await
    }
}
