//! Steps of programs, and what can happen to them on the way: requests and replies get lost, lines are
//! cut, programs die.

use super::actor::{Actor, Room};
use super::line::{Errand, Way};
use super::{Broken, Engine, Simulated, UnderWay};
use interlock_kernel::{Place, Subject};
use interlock_shell::Ended;
use interlock_shell::faults::Fault;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

/// How long a request may be on its way, in events.
const SLOW: usize = 150;
/// How many steps may be under way at once.
const TOGETHER: usize = 12;
/// How many effects a controller may have about one subject in one round.
const IN_A_ROUND: usize = 12;

impl<W: Simulated> Engine<W> {
    /// An actor does all it can, mostly with all news, while others lag behind.
    pub(crate) async fn burst(&mut self) -> Result<(), Broken> {
        let hub = self.actors.iter().position(|actor| actor.cluster.is_none());
        // Nothing changes hands without the hub.
        let actor = match hub.filter(|_| self.is_hasty() && self.chance.once_in(2)) {
            Some(hub) => hub,
            None => self.chance.below(self.actors.len()),
        };
        let cannot = |actor: &Actor| {
            let is_cut = actor.is_cut_from(Place::HUB) || actor.is_cut_from(Place::CLUSTER);
            // With one server left there is much to do wrong; elsewhere haste would be wasted on it.
            let goes_on = self.world.is_one_sided() && actor.is_half_cut();
            is_cut && !goes_on || self.is_standing(actor)
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
            if W::IDLE.contains(&room.name()) && !self.chance.once_in(3) {
                continue;
            }
            for subject in room.subjects() {
                let is_busy = self.under_way.iter().any(|step| {
                    (step.instance, step.room, &step.subject) == (instance, room.name(), &subject)
                });
                if !is_busy {
                    self.do_all(instance, &room, &subject).await?;
                }
            }
        }
        Ok(())
    }

    /// Begins a step of some controller about something.
    pub(crate) fn begin_step(&mut self) -> Result<(), Broken> {
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
            future: Arc::clone(room).step(subject.clone()),
            actions: Vec::new(),
            held_until: 0,
        };
        self.under_way.push(step);
        Ok(())
    }

    /// A step goes on by one request, or something goes wrong with it.
    pub(crate) async fn go_on(&mut self) -> Result<(), Broken> {
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
        let plan = Arc::clone(&self.actors[place].plan);
        let ended = self.lines.gate.drive(under_way.number, way, &mut under_way.future).await;
        let actions =
            std::mem::take(&mut *plan.actions.lock().unwrap_or_else(PoisonError::into_inner));
        let name = self.actors[place].name.clone();
        let who = format!("{name}: {} about {}", under_way.room, under_way.subject);
        self.count(way);
        if way != Way::Through {
            self.note(format!("{who}: {way:?}"));
        }
        for action in actions {
            self.note(format!("{who}: {action}"));
            under_way.actions.push(action);
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
                    let until = W::before_start(self, instance).await?;
                    self.hold(number, until);
                }
            }
            Some(Ended::Rests | Ended::Waits(_)) => {}
            Some(Ended::Broken(why)) => return Err(format!("{who} broke: {why}")),
            // What a controller does not say that it does, its role does not allow.
            Some(Ended::Refused(why)) if why.contains("\" cannot ") => {
                return Err(format!("{who} may not: {why}"));
            }
            Some(Ended::Crashed) => self.die(place).await?,
            Some(Ended::Acted { .. }) => {
                self.counts.one_sided += u64::from(self.actors[place].is_half_cut());
                self.note(format!("{who}: done"));
                W::acted(self, instance, &under_way.actions).await?;
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
        W::revive(self, cluster).await
    }

    /// Some time passes; then every cache is brought up, and every controller does all it can.
    pub(crate) async fn round(&mut self, seconds: i64) -> Result<usize, Broken> {
        if seconds > 0 {
            self.time_passes(seconds);
        }
        self.background().await?;
        self.check().await?;
        let mut effects = 0;
        for actor in 0..self.actors.len() {
            self.bring_up_all(actor);
            let instance = self.actors[actor].instance;
            for room in self.actors[actor].rooms.clone() {
                for subject in room.subjects() {
                    effects += self.do_all(instance, &room, &subject).await?;
                }
            }
        }
        Ok(effects)
    }

    /// All that an actor can do about a subject; how much that was. In times of trouble it may be
    /// stopped, or die, in the middle of it.
    pub(crate) async fn do_all(
        &mut self,
        instance: u64,
        room: &Arc<dyn Room>,
        subject: &Subject,
    ) -> Result<usize, Broken> {
        for effects in 0..IN_A_ROUND {
            let actor = self.actors.iter().position(|actor| actor.instance == instance);
            let Some(actor) = actor else { return Ok(effects) };
            if self.is_standing(&self.actors[actor]) {
                return Ok(effects);
            }
            if effects > 0 {
                self.bring_up_all(actor);
            }
            self.numbered += 1;
            self.counts.steps += 1;
            self.under_way.push(UnderWay {
                number: self.numbered,
                instance,
                room: room.name(),
                subject: Subject::clone(subject),
                future: Arc::clone(room).step(Subject::clone(subject)),
                actions: Vec::new(),
                held_until: 0,
            });
            match self.go_through(self.numbered).await? {
                Some(Ended::Acted { .. }) => {}
                None | Some(Ended::Rests | Ended::Waits(_)) => return Ok(effects),
                Some(Ended::Crashed) if self.is_trouble => return Ok(effects),
                Some(Ended::WriteConflict(_) | Ended::Unknown(_) | Ended::Unreachable(_)) => {
                    return Ok(effects + 1);
                }
                Some(Ended::Refused(why)) if W::is_busy(&why) => return Ok(effects + 1),
                Some(other) => return Err(format!("{} about {subject}: {other:?}", room.name())),
            }
        }
        Ok(IN_A_ROUND)
    }

    /// Lets a step go on to its end; None: it is stopped in the middle, or died.
    async fn go_through(&mut self, number: u64) -> Result<Option<Ended>, Broken> {
        loop {
            let place = self.under_way.iter().position(|step| step.number == number);
            let Some(place) = place else { return Ok(None) };
            if self.is_trouble && self.under_way[place].held_until > self.happened {
                return Ok(None);
            }
            let ended = self.drive(place, Way::Through).await?;
            self.check().await?;
            if ended.is_some() {
                return Ok(ended);
            }
        }
    }

    /// All is done, so nothing is written any more while no time passes.
    pub(crate) async fn rest(&mut self) -> Result<(), Broken> {
        let mut effects = 0;
        for _ in 0..8 {
            effects = self.round(0).await?;
            if effects == 0 {
                return Ok(());
            }
        }
        Err(format!("it does not come to rest: {effects} effects in the last round"))
    }

    /// Whether everybody makes haste, but for one.
    pub(crate) fn is_hasty(&self) -> bool {
        self.happened < self.haste.0
    }

    /// Whether a program takes no step now: it is stopped, or all others make haste to outrun it.
    pub(crate) fn is_standing(&self, actor: &Actor) -> bool {
        let is_outrun = self.is_hasty() && self.haste.1 == actor.instance;
        self.is_trouble && (actor.stopped_until > self.happened || is_outrun)
    }

    /// The program dies: caches, locks in its hands and steps under way are gone with it.
    pub(crate) fn crash(&mut self, actor: usize) -> Option<usize> {
        let actor = self.actors.remove(actor);
        for step in self.under_way.iter().filter(|step| step.instance == actor.instance) {
            self.lines.gate.forget(step.number);
        }
        self.under_way.retain(|step| step.instance != actor.instance);
        self.world.lost(&actor);
        self.counts.deaths += 1;
        self.note(format!("{} dies", actor.name));
        actor.cluster
    }

    pub(crate) fn cut(&mut self, actor: usize) {
        let Some(actor) = self.actors.get(actor) else { return };
        let Some((place, cut)) = self.chance.one_of(&actor.is_cut) else { return };
        let event = format!("the line from {} to the {place} is cut", actor.name);
        cut.store(true, Ordering::Relaxed);
        self.counts.partitions += 1;
        self.note(event);
    }

    /// A program loses one of the two servers that it works with, and keeps the other one.
    pub(crate) fn cut_one_of_two(&mut self, actor: usize) {
        let is_cut = |(_, cut): &(Place, Arc<AtomicBool>)| cut.load(Ordering::Relaxed);
        let has_both = |actor: &Actor| actor.is_cut.len() == 2 && !actor.is_cut.iter().any(is_cut);
        if self.actors.get(actor).is_some_and(has_both) {
            self.cut(actor);
        }
    }

    pub(crate) fn mend_one(&mut self) -> Result<(), Broken> {
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
