//! What can happen, and how often it does; and what goes wrong right when a port is about to be opened.

use super::programs::Unit;
use super::{DPUS, Nodes};
use crate::engine::{Broken, Engine};
use interlock_nodes::world::device::Disk;

/// For how long an agent may be stopped right before it opens a port, in events.
const STOPPED: usize = 200;
/// For how many events everybody else may make haste then.
const HASTE: usize = 40;
/// After how many effects one program dies, on average.
const DEATHS: usize = 80;
/// How many instances of one agent there are at most.
const TOGETHER: usize = 2;

impl Engine<Nodes> {
    /// One event.
    pub(crate) async fn event(&mut self) -> Result<(), Broken> {
        if self.chance.once_in(4) {
            self.start_missing().await?;
        }
        if self.is_hasty() && !self.chance.once_in(4) {
            return self.burst().await;
        }
        match self.chance.below(100) {
            0..=21 => self.go_on().await,
            22..=29 => self.begin_step(),
            30..=38 => self.news(),
            39..=43 => {
                self.time_passes(1 + self.chance.below(8) as i64);
                Ok(())
            }
            // What one program does waits for many others.
            44..=79 => {
                for _ in 0..=self.chance.below(4) {
                    self.burst().await?;
                }
                Ok(())
            }
            80..=82 => self.background().await,
            83..=91 => self.people_act().await,
            92..=96 => self.trouble().await,
            97 => self.deliver().await,
            _ => self.mend_one(),
        }
    }

    async fn trouble(&mut self) -> Result<(), Broken> {
        let actor = self.chance.below(self.actors.len());
        let dpu = self.chance.below(self.world.dpus().count());
        match self.chance.below(6) {
            0 => {
                self.cut(actor);
                Ok(())
            }
            1 => self.start_again(dpu).await,
            2 if actor < self.actors.len() => {
                self.stop_for_a_while(actor);
                Ok(())
            }
            3 => {
                self.restart(dpu);
                Ok(())
            }
            4 => {
                self.switch(dpu);
                Ok(())
            }
            _ if actor < self.actors.len() => self.die(actor).await,
            _ => Ok(()),
        }
    }

    /// Another instance of an agent is started beside the first.
    async fn start_again(&mut self, dpu: usize) -> Result<(), Broken> {
        let tenant = self.chance.below(self.world.tenants.len() + 1);
        let unit = match tenant.checked_sub(1) {
            None => Unit::Dpu(dpu),
            Some(tenant) => Unit::DpuTenant { dpu, tenant },
        };
        let known = self.world.units.values().filter(|known| **known == unit).count();
        let may_start = self.world.dpus().is_on(dpu) && known < TOGETHER;
        if may_start { self.start(unit).await } else { Ok(()) }
    }

    /// A program is paused, and goes on later with what it knew.
    fn stop_for_a_while(&mut self, actor: usize) {
        let until = self.for_a_while();
        let mut stopped = self.actors.remove(actor);
        stopped.stopped_until = until;
        self.turn_deaf(&mut stopped, until, |_| true);
        self.note(format!("{} is stopped for a while", stopped.name));
        self.actors.insert(actor, stopped);
    }

    /// A DPU loses its power, and has it again at once.
    fn restart(&mut self, dpu: usize) {
        let disk = match self.chance.below(4) {
            0 => Disk::Old,
            1 => Disk::Empty,
            _ => Disk::Kept,
        };
        let is_done = self.world.dpus().restart(dpu, disk);
        if is_done {
            self.counts.power_failures += 1;
            self.note(format!("{} starts anew, and its disk is: {disk:?}", DPUS[dpu]));
            self.crash_agents(dpu);
        }
    }

    /// A DPU loses its power for longer, or for ever; or it has it again.
    fn switch(&mut self, dpu: usize) {
        if self.world.dpus().is_on(dpu) {
            let is_for_ever = self.chance.once_in(4);
            let is_done = self.world.dpus().power_off(dpu, is_for_ever);
            if is_done {
                self.counts.power_failures += 1;
                self.note(format!("the power fails at {}", DPUS[dpu]));
                self.crash_agents(dpu);
            }
            return;
        }
        self.power_on(dpu);
    }

    /// A DPU has power again, unless it is one that never has.
    pub(crate) fn power_on(&mut self, dpu: usize) {
        let is_done = self.world.dpus().power_on(dpu);
        if is_done {
            self.note(format!("the power is back at {}", DPUS[dpu]));
        }
    }

    fn crash_agents(&mut self, dpu: usize) {
        let is_there =
            |world: &Nodes, instance: u64| world.unit(instance).and_then(Unit::dpu) == Some(dpu);
        while let Some(agent) =
            self.actors.iter().position(|actor| is_there(&self.world, actor.instance))
        {
            self.crash(agent);
        }
    }

    /// A program has done something, and may die right after it.
    pub(crate) async fn moment(&mut self, instance: u64) -> Result<(), Broken> {
        if !self.is_trouble || !self.chance.once_in(DEATHS) {
            return Ok(());
        }
        let place = self.actors.iter().position(|actor| actor.instance == instance);
        let Some(place) = place else { return Ok(()) };
        self.check().await?;
        self.counts.moments += 1;
        self.die(place).await
    }

    /// An agent is about to open a port: it may be stopped there for a while, with all that it has read, while somebody
    /// takes a machine back and all others make haste.
    pub(crate) async fn stopped_before_opening(&mut self, instance: u64) -> Result<u64, Broken> {
        if !self.is_trouble || !self.chance.once_in(4) {
            return Ok(0);
        }
        let Some(dpu) = self.world.unit(instance).and_then(Unit::dpu) else { return Ok(0) };
        self.check().await?;
        self.counts.moments += 1;
        self.note(format!("an agent on {} stops right before it opens a port", DPUS[dpu]));
        self.haste = (self.happened + HASTE as u64, instance);
        self.take_back_at(dpu).await?;
        Ok(self.happened + (HASTE + self.chance.below(STOPPED)) as u64)
    }
}
