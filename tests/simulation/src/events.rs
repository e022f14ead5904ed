//! What can happen, and how often it does.

use crate::line::{Errand, Way};
use crate::world::{Broken, UnderWay, World};
use interlock_kernel::Place;
use interlock_shell::Ended;
use interlock_shell::faults::Fault;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// How many events there are before the faults stop.
const EVENTS: usize = 900;
/// The same where data is carried, which takes longer.
const EVENTS_WITH_DATA: usize = 1100;
/// How long a request may be on its way, in events.
const SLOW: usize = 150;
/// Controllers that have something to do whenever time has passed.
const IDLE: [&str; 2] = ["placement/heartbeat", "placement/clusters"];
/// How many steps may be under way at once.
const TOGETHER: usize = 12;

impl World {
    /// One whole life: a calm beginning, trouble, and a calm end in which every wish is met.
    pub(crate) async fn live(&mut self) -> Result<(), Broken> {
        self.begin().await?;
        self.is_trouble = true;
        for _ in 0..if self.carries_data() { EVENTS_WITH_DATA } else { EVENTS } {
            self.happened += 1;
            self.event().await?;
            self.check().await?;
        }
        self.is_trouble = false;
        self.end().await
    }

    /// One event.
    async fn event(&mut self) -> Result<(), Broken> {
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
            86..=89 => self.duties().await,
            90..=94 => self.user_acts().await,
            95 if self.is_stormy() => self.storm().await,
            95..=96 if self.carries_data() && self.chance.once_in(2) => self.strike().await,
            95..=96 => self.trouble().await,
            _ => self.repair().await,
        }
    }

    /// An actor does all it can, mostly with all news, while others lag behind.
    async fn burst(&mut self) -> Result<(), Broken> {
        let hub = self.actors.iter().position(|actor| actor.cluster.is_none());
        // Nothing changes hands without the hub.
        let actor = match hub.filter(|_| self.is_hasty() && self.chance.once_in(2)) {
            Some(hub) => hub,
            None => self.chance.below(self.actors.len()),
        };
        let cannot = |actor: &crate::actor::Actor| {
            actor.is_cut_from(Place::HUB)
                || actor.is_cut_from(Place::CLUSTER)
                || self.is_standing(actor)
        };
        if self.actors.get(actor).is_none_or(cannot) {
            return Ok(());
        }
        self.check().await?;
        let hears = !self.is_stormy() || self.is_hasty() || self.chance.once_in(2);
        if hears {
            self.bring_up_all(actor);
        }
        let instance = self.actors[actor].instance;
        for room in self.actors[actor].rooms.clone() {
            // Most of what is heard and judged of a cluster is the same again.
            if IDLE.contains(&room.name()) && !self.chance.once_in(3) {
                continue;
            }
            for subject in room.subjects() {
                let is_busy = self.under_way.iter().any(|step| {
                    (step.instance, step.room, &step.subject) == (instance, room.name(), &subject)
                });
                if !is_busy {
                    self.do_all((instance, &room), &subject).await?;
                }
            }
        }
        Ok(())
    }

    /// Takes in what was written, and holds it against all promises.
    pub(crate) async fn check(&mut self) -> Result<(), Broken> {
        let sent = self.lines.journal.take();
        self.promises.check_deletions(&sent, (&self.truth, &self.clusters))?;
        self.truth.follow(&sent).await?;
        self.promises.check(&self.truth, (&self.machines, &self.clusters))?;
        if self.carries_data() { self.check_data() } else { Ok(()) }
    }

    /// Begins a step of some controller about something.
    fn begin_step(&mut self) -> Result<(), Broken> {
        if self.under_way.len() >= TOGETHER {
            return Ok(());
        }
        let actor = self.chance.below(self.actors.len());
        let actor = self.actors.get(actor).filter(|actor| !self.is_standing(actor));
        let Some(actor) = actor else { return Ok(()) };
        let Some(room) = self.chance.one_of(&actor.rooms) else { return Ok(()) };
        let subjects = room.subjects();
        let Some(subject) = self.chance.one_of(&subjects) else { return Ok(()) };
        let instance = actor.instance;
        let is_same = |step: &UnderWay| {
            (step.instance, step.room, &step.subject) == (instance, room.name(), subject)
        };
        if self.under_way.iter().any(is_same) {
            return Ok(());
        }
        self.numbered += 1;
        self.counts.steps += 1;
        let step = UnderWay {
            number: self.numbered,
            instance,
            room: room.name(),
            subject: subject.clone(),
            future: std::sync::Arc::clone(room).step(subject.clone()),
            deeds: Vec::new(),
            held_until: 0,
        };
        self.under_way.push(step);
        Ok(())
    }

    /// A step goes on by one request, or something goes wrong with it.
    async fn go_on(&mut self) -> Result<(), Broken> {
        if self.under_way.is_empty() {
            return self.begin_step();
        }
        let now = self.happened;
        let is_stopped = |instance: u64| {
            let mut actors = self.actors.iter();
            actors.any(|actor| actor.instance == instance && self.is_standing(actor))
        };
        let steps = self.under_way.iter().enumerate();
        let ready = steps.filter(|(_, s)| s.held_until <= now && !is_stopped(s.instance));
        let ready: Vec<usize> = ready.map(|(place, _)| place).collect();
        let Some(&step) = self.chance.one_of(&ready) else { return self.begin_step() };
        let way = match self.chance.below(160) {
            0..=2 => Way::RequestLost,
            3..=5 => Way::ReplyLost,
            6 => Way::LeftBehind,
            7 => return self.give_up(step).await,
            _ => Way::Through,
        };
        let number = self.under_way[step].number;
        let ended = self.drive(step, way).await?;
        if ended.is_none() && self.chance.once_in(8) {
            self.hold(number, self.happened + self.chance.below(SLOW) as u64);
        }
        Ok(())
    }

    /// Lets a step go on; how it ended, if it did.
    pub(crate) async fn drive(&mut self, step: usize, way: Way) -> Result<Option<Ended>, Broken> {
        let mut under_way = self.under_way.swap_remove(step);
        let place = self.actors.iter().position(|actor| actor.instance == under_way.instance);
        let Some(place) = place else { return Ok(None) };
        let plan = std::sync::Arc::clone(&self.actors[place].plan);
        let ended = self.lines.gate.drive((under_way.number, way), &mut under_way.future).await;
        let deeds = std::mem::take(&mut *plan.deeds.lock().unwrap_or_else(PoisonError::into_inner));
        let name = self.actors[place].name.clone();
        let who = format!("{name}: {} about {}", under_way.room, under_way.subject);
        self.count(way);
        if way != Way::Through {
            self.note(format!("{who}: {way:?}"));
        }
        for deed in deeds {
            self.note(format!("{who}: {deed}"));
            under_way.deeds.push(deed);
        }
        let instance = under_way.instance;
        match &ended {
            None if way == Way::LeftBehind => {
                self.under_way.push(under_way);
                self.die(place).await?;
            }
            None => {
                let number = under_way.number;
                self.under_way.push(under_way);
                if self.lines.gate.errand(number) == Some(Errand::Start) {
                    let until = self.before_start(instance).await?;
                    self.hold(number, until);
                }
            }
            Some(Ended::Rests | Ended::Waits(_)) => {}
            Some(Ended::Broken(why)) => return Err(format!("{who} broke: {why}")),
            Some(Ended::Crashed) => self.die(place).await?,
            Some(Ended::Acted { .. }) => {
                self.note(format!("{who}: done"));
                self.moment(instance, &under_way.deeds).await?;
            }
            Some(other) => self.note(format!("{who}: {other:?}")),
        }
        Ok(ended)
    }

    fn count(&mut self, way: Way) {
        self.counts.requests += 1;
        match way {
            Way::Through => {}
            Way::RequestLost => self.counts.lost_requests += 1,
            Way::ReplyLost => self.counts.lost_replies += 1,
            Way::LeftBehind => self.counts.late_requests += 1,
        }
    }

    fn hold(&mut self, number: u64, until: u64) {
        let mut steps = self.under_way.iter_mut();
        if let Some(step) = steps.find(|step| step.number == number) {
            step.held_until = step.held_until.max(until);
        }
    }

    /// The program of a step dies: between two requests, or at its next effect.
    async fn give_up(&mut self, step: usize) -> Result<(), Broken> {
        let instance = self.under_way[step].instance;
        let place = self.actors.iter().position(|actor| actor.instance == instance);
        let Some(place) = place else { return Ok(()) };
        let planned = match self.chance.below(3) {
            0 => (Fault::Crash, Fault::None),
            1 => (Fault::None, Fault::Crash),
            _ => return self.die(place).await,
        };
        *self.actors[place].plan.next.lock().unwrap_or_else(PoisonError::into_inner) = planned;
        Ok(())
    }

    /// A program dies and is started again, unless another one does its work.
    pub(crate) async fn die(&mut self, actor: usize) -> Result<(), Broken> {
        let cluster = self.crash(actor);
        if self.actors.iter().any(|actor| actor.cluster == cluster) {
            return Ok(());
        }
        self.revive(cluster).await
    }

    /// Time passes, and every process writes.
    pub(crate) fn time_passes(&mut self, seconds: i64) {
        self.clock.pass(seconds);
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let mut disks = self.disks();
        for (place, machine) in self.machines.iter().enumerate() {
            machine.tick(&mut records, (place, &mut disks));
        }
        disks.tick();
    }

    /// The server does what is due.
    pub(crate) async fn duties(&mut self) -> Result<(), Broken> {
        // What was written before must be known as what it was.
        self.check().await?;
        self.server.do_duties().await;
        self.truth.after_duties().await?;
        if self.carries_data() { self.collect_garbage().await } else { Ok(()) }
    }

    /// Something larger goes wrong.
    async fn trouble(&mut self) -> Result<(), Broken> {
        let cluster = self.chance.below(self.clusters.len());
        match self.chance.below(4) {
            0 => self.power_off(cluster),
            1 => {
                let actor = self.chance.below(self.actors.len());
                self.cut(actor);
                Ok(())
            }
            2 if !self.machines[cluster].is_off() => {
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
        let cluster = self.chance.below(self.clusters.len());
        if self.chance.once_in(2) { self.power_on(cluster).await } else { Ok(()) }
    }

    pub(crate) fn power_off(&mut self, cluster: usize) -> Result<(), Broken> {
        if self.machines[cluster].is_off() {
            return Ok(());
        }
        self.counts.power_failures += 1;
        self.note(format!("the power fails at {}", self.clusters[cluster].name));
        self.machines[cluster].power_off();
        self.disks().power_off(cluster);
        while let Some(actor) = self.actors.iter().position(|a| a.cluster == Some(cluster)) {
            self.crash(actor);
        }
        Ok(())
    }

    fn cut(&mut self, actor: usize) {
        let Some(actor) = self.actors.get(actor) else { return };
        let Some((place, cut)) = self.chance.one_of(&actor.is_cut) else { return };
        let event = format!("the line from {} to the {place} is cut", actor.name);
        cut.store(true, Ordering::Relaxed);
        self.counts.partitions += 1;
        self.note(event);
    }

    /// Something that went wrong is well again.
    async fn repair(&mut self) -> Result<(), Broken> {
        match self.chance.below(3) {
            0 => {
                let off: Vec<usize> = (0..self.clusters.len())
                    .filter(|place| self.machines[*place].is_off() || !self.carries_data())
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
        if !self.machines[cluster].is_off() {
            return Ok(());
        }
        self.note(format!("the power is back at {}", self.clusters[cluster].name));
        self.machines[cluster].power_on();
        self.disks().power_on(cluster);
        self.revive(Some(cluster)).await
    }

    fn mend_one(&mut self) -> Result<(), Broken> {
        let mut mended = Vec::new();
        for actor in &self.actors {
            for (place, cut) in &actor.is_cut {
                if cut.load(Ordering::Relaxed) && self.chance.once_in(2) {
                    cut.store(false, Ordering::Relaxed);
                    mended.push(format!("the line from {} to the {place} is whole", actor.name));
                }
            }
        }
        mended.into_iter().for_each(|event| self.note(event));
        Ok(())
    }

    /// A request that outlived its sender arrives.
    pub(crate) async fn deliver(&mut self) -> Result<(), Broken> {
        if let Some(request) = self.lines.gate.take_left_behind() {
            request.await;
            self.note("a request of a program that died arrives".to_owned());
        }
        Ok(())
    }

    /// Everybody can talk to everybody, and no fault is planned.
    pub(crate) fn mend_all(&mut self) {
        for actor in &self.actors {
            *actor.plan.next.lock().unwrap_or_else(PoisonError::into_inner) = Default::default();
            for (_, cut) in &actor.is_cut {
                cut.store(false, Ordering::Relaxed);
            }
        }
        debug_assert!(self.actors.iter().all(|actor| !actor.is_cut_from(Place::HUB)));
    }
}
