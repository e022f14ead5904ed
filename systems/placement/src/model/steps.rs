//! The steps of the world: controllers that act on what they see, and what happens to them.

use super::World;
use super::actions::{At, Force, LIST_CLAIMS};
use super::flaws::Flaw;
use super::state::{Cluster, Ending, Last, Phase, Pod, Process, Running, Stage, State, View, bit};
use crate::spec::hub::Writes;
use crate::{fencing, runtime, scheduler, syncer};
use interlock_checker::Steps;

impl World {
    pub(super) fn steps(&self, state: &State, steps: &mut Steps<State>) {
        let mut moves = Moves { world: self, state, steps };
        moves.list_claims();
        moves.schedule();
        for epoch in 1..=state.epoch {
            moves.ask_force(epoch);
            moves.fencing(epoch);
        }
        for c in 0..self.extent.clusters {
            moves.wish(c);
            moves.power(c);
            if !state.clusters[c].off {
                moves.listen(c);
                moves.sync(c);
                moves.copy(c);
                moves.run(c);
            }
        }
    }
}

/// The steps out of one state, as they are found.
struct Moves<'a> {
    world: &'a World,
    state: &'a State,
    steps: &'a mut Steps<State>,
}

impl Moves<'_> {
    fn step(&mut self, at: At, c: usize, mut next: State) {
        if !self.world.lag {
            for c in 0..self.world.extent.clusters {
                next.clusters[c].view = Some(next.seen_by(c));
            }
        }
        if next != *self.state {
            self.steps.step(self.world.id(at, c), next);
        }
    }

    fn step_at(&mut self, at: At, c: usize, change: impl FnOnce(&mut Cluster)) {
        let mut next = self.state.clone();
        change(&mut next.clusters[c]);
        self.step(at, c, next);
    }

    /// The state with one more fault in it, if there may be one more.
    fn faulted(&self) -> Option<State> {
        let mut next = self.state.clone();
        if let Some(budget) = self.world.faults {
            if next.faults == budget {
                return None;
            }
            next.faults += 1;
        }
        Some(next)
    }

    fn fault_at(&mut self, at: At, c: usize, change: impl FnOnce(&mut Cluster)) {
        let Some(mut next) = self.faulted() else { return };
        change(&mut next.clusters[c]);
        if next.clusters != self.state.clusters {
            self.step(at, c, next);
        }
    }

    /// A user adds a claim, at any time, and the scheduler hears of it.
    fn list_claims(&mut self) {
        if self.state.all_listed {
            return;
        }
        let mut facts = self.world.scheduler_facts(self.state, 0, false);
        facts.claims = vec![scheduler::decide::Claim { is_held: true, is_listed: false }];
        let decision = scheduler::decide::decide(&facts);
        if matches!(decision, scheduler::decide::Decision::ListClaims(_)) {
            let mut next = self.state.clone();
            next.all_listed = true;
            self.steps.step(LIST_CLAIMS, next);
        }
    }

    /// The scheduler may have any wish before it, where wishes are not kept.
    fn schedule(&mut self) {
        let wishes = match self.world.faults {
            None => 0..self.world.extent.clusters,
            Some(_) => self.state.wish.into()..usize::from(self.state.wish) + 1,
        };
        for wish in wishes {
            let facts = self.world.scheduler_facts(self.state, wish, false);
            let decision = scheduler::decide::decide(&facts);
            if let Some((at, c, next)) = self.world.scheduled(self.state, wish, &decision) {
                self.step(at, c, next);
            }
            // An owner that runs may be silent, at any time and for any time.
            if !self.world.partition || !self.state.is_held() {
                continue;
            }
            let facts = self.world.scheduler_facts(self.state, wish, true);
            let silent = scheduler::decide::decide(&facts);
            if silent == decision {
                continue;
            }
            if let Some((at, c, next)) = self.world.scheduled(self.state, wish, &silent) {
                self.step(at, c, next);
            }
        }
    }

    fn wish(&mut self, c: usize) {
        if self.world.faults.is_none() || usize::from(self.state.wish) == c {
            return;
        }
        if let Some(next) = self.faulted() {
            self.step(At::Wish, c, State { wish: c as u8, ..next });
        }
    }

    /// Somebody asks for the owner to be declared gone. They have seen that it is without power.
    /// What they asked for stays, also when the epoch is over before fencing hears of it.
    fn ask_force(&mut self, epoch: u8) {
        if epoch != self.state.epoch || !self.state.is_held() {
            return;
        }
        let owner = usize::from(self.state.tenure(epoch).owner);
        let is_attested = self.state.clusters[owner].off || self.world.has(Flaw::ForceWhileRunning);
        if !self.world.force || !is_attested || self.state.forced & bit(epoch) != 0 {
            return;
        }
        let Some(mut next) = self.faulted() else { return };
        next.forced |= bit(epoch);
        self.steps.step(self.world.force_id(Force::Ask, epoch), next);
    }

    /// Fencing acts on the Grant in its cache, whichever that is, and on the hub itself.
    fn fencing(&mut self, named: u8) {
        let is_pending = (self.state.forced & !self.state.answered) & bit(named) != 0;
        if !is_pending {
            return;
        }
        let now = Some((self.state.epoch, self.state.phase()));
        self.judge(named, now, true);
        if !self.world.lag {
            return self.judge(named, now, false);
        }
        self.judge(named, None, false);
        for (epoch, tenure) in (1..=self.state.epoch).zip(self.state.tenures) {
            self.judge(named, Some((epoch, Phase::Granted)), false);
            if tenure.revoked {
                self.judge(named, Some((epoch, Phase::Revoking)), false);
            }
            match tenure.ending {
                Ending::Open => {}
                Ending::Released => self.judge(named, Some((epoch, Phase::Released)), false),
                Ending::Fenced => self.judge(named, Some((epoch, Phase::Fenced)), false),
            }
        }
    }

    fn judge(&mut self, named: u8, cached: Option<(u8, Phase)>, is_fresh: bool) {
        let facts = self.world.fencing_facts(self.state, named, cached, is_fresh);
        let decision = fencing::decide::decide(&facts);
        if let Some((is_fence, next)) = self.world.judged(self.state, named, cached, decision) {
            let force = if is_fence { Force::Fence } else { Force::Answer };
            self.steps.step(self.world.force_id(force, named), next);
        }
    }

    /// The cache of a syncer: it lags, is lost in a crash, and after that may begin in the past.
    fn listen(&mut self, c: usize) {
        let (world, state) = (self.world, self.state);
        let now = state.seen_by(c);
        if state.clusters[c].view != Some(now) {
            self.step_at(At::Observe, c, |cluster| cluster.view = Some(now));
        }
        if !world.crash {
            return;
        }
        if !world.relist {
            return self.crash(c, None);
        }
        // A crash and the list after it are one step: in between, a syncer does nothing.
        state.past_of(c, |past| self.crash(c, Some(past)));
    }

    fn crash(&mut self, c: usize, view: Option<View>) {
        let world = self.world;
        let at = if view.is_some() { At::Relist } else { At::Crash };
        self.fault_at(at, c, |cluster| {
            cluster.view = view;
            cluster.misled = false;
            if !world.two_syncers {
                cluster.permitting = false;
                cluster.closing = 0;
            }
            if world.has(Flaw::ReleasedForgotten) {
                cluster.released = 0;
            }
        });
    }

    /// The syncer of a cluster: one decision at a time, and the writes that follow its looks.
    fn sync(&mut self, c: usize) {
        let (world, state) = (self.world, self.state);
        let cluster = &state.clusters[c];
        if cluster.permitting {
            self.step_at(At::Permit, c, |cluster| world.permitted(cluster));
            // Who looks anew after a lost reply is none the worse for it.
            if world.lost_replies && world.has(Flaw::LostReplyIsRefusal) {
                self.step_at(At::Permit, c, |cluster| {
                    world.permitted(cluster);
                    cluster.misled = true;
                });
            }
        }
        if cluster.closing != 0 {
            self.step_at(At::Close, c, |cluster| world.closed(cluster));
        }
        let is_busy = cluster.permitting || cluster.closing != 0;
        if is_busy && !world.two_syncers {
            return;
        }
        if cluster.view.is_none() && cluster.has_namespace() && world.has(Flaw::DeleteOnAbsence) {
            self.step_at(At::StopOne, c, |cluster| world.deleted(cluster));
        }
        let decision = self.syncer_decision(c);
        if let Some((at, next)) = world.synced(state, c, decision) {
            self.step(at, c, next);
        }
    }

    /// What `decide` says in the end: where it asks for a look, with what the look shows.
    fn syncer_decision(&self, c: usize) -> syncer::tenancy::Decision {
        use super::state::Seen;
        use syncer::tenancy::{Decision, decide};
        let cluster = &self.state.clusters[c];
        let mut facts = self.world.syncer_facts(self.state, c);
        let is_revoked = cluster.view.is_some_and(|view| {
            view.seen == Seen::Revoking
                && view.epoch == cluster.epoch
                && self.state.tenure(view.epoch).last[0] == Last::None
                && self.state.tenure(view.epoch).filled & 1 == 1
        });
        if is_revoked && self.world.has(Flaw::CopiesBeforeClosing) {
            return Decision::AskLastImage(0);
        }
        match decide(&facts) {
            Decision::LookWhetherStill => {
                facts.stillness = Some(self.world.stillness(cluster));
                decide(&facts)
            }
            Decision::LookWhetherGranted => {
                facts.truth = Some(self.world.truth(self.state, c));
                decide(&facts)
            }
            decision => decision,
        }
    }

    /// What copies data: into a new volume, in the background, and after the end.
    fn copy(&mut self, c: usize) {
        let (world, cluster) = (self.world, &self.state.clusters[c]);
        if cluster.epoch == 0 {
            return;
        }
        let epoch = cluster.epoch;
        let (pin, in_place) = self.state.incoming(epoch);
        let tenure = self.state.tenure(epoch);
        for claim in 0..usize::from(world.claims) {
            let of_claim = world.writes_of(claim);
            if cluster.stages[claim] == Stage::Filling {
                self.step_at(At::FillEnd, c, |cluster| {
                    cluster.stages[claim] = Stage::Filled;
                    if in_place >> claim & 1 == 0 {
                        cluster.volume = cluster.volume & !of_claim | pin & of_claim;
                    }
                });
            }
            let is_asked = tenure.last[claim] == Last::Asked;
            let is_copying = tenure.copying >> claim & 1 == 1;
            let is_filled = tenure.filled >> claim & 1 == 1;
            // A copy that takes its time may begin before there is anything to copy.
            let is_new = (tenure.image ^ cluster.volume) & of_claim != 0
                || world.slow && tenure.made >> claim & 1 == 0;
            let is_open = cluster.released < epoch && is_new;
            if is_copying {
                self.copied(c, claim);
            }
            if is_asked && !is_copying {
                self.image(At::LastImageMade, (c, claim), cluster.volume);
            }
            if !is_asked && !is_copying && is_filled && is_open {
                if world.slow {
                    self.begin_copy(c, claim);
                } else {
                    self.image(At::Replicate, (c, claim), cluster.volume);
                }
            }
        }
    }

    /// An image of a claim is complete, with these writes.
    fn image(&mut self, at: At, (c, claim): (usize, usize), has: Writes) {
        let of_claim = self.world.writes_of(claim);
        let mut next = self.state.clone();
        let tenure = next.tenure_mut(self.state.clusters[c].epoch);
        tenure.image = tenure.image & !of_claim | has & of_claim;
        tenure.made |= 1 << claim;
        tenure.copying &= !(1 << claim);
        tenure.copied &= !of_claim;
        if at == At::LastImageMade {
            tenure.last[claim] = Last::Made;
        }
        self.step(at, c, next);
    }

    fn begin_copy(&mut self, c: usize, claim: usize) {
        let of_claim = self.world.writes_of(claim);
        let mut next = self.state.clone();
        let volume = next.clusters[c].volume;
        let tenure = next.tenure_mut(self.state.clusters[c].epoch);
        tenure.copying |= 1 << claim;
        tenure.copied = tenure.copied & !of_claim | volume & of_claim;
        self.step(At::BeginCopy, c, next);
    }

    /// A background copy ends, and is confirmed with whatever tag is set now.
    fn copied(&mut self, c: usize, claim: usize) {
        let tenure = self.state.tenure(self.state.clusters[c].epoch);
        let is_asked = tenure.last[claim] == Last::Asked;
        let at = if is_asked { At::LastImageMade } else { At::Replicate };
        self.image(at, (c, claim), tenure.copied);
    }

    /// The runtime of a cluster and the workload that it starts.
    fn run(&mut self, c: usize) {
        let (world, cluster) = (self.world, &self.state.clusters[c]);
        match cluster.process {
            Process::Looked(epoch) => {
                self.step_at(At::Start, c, |cluster| cluster.process = Process::Runs(epoch));
            }
            Process::None | Process::Locked | Process::Runs(_) => {
                self.runtime(c, false);
                // Old news of pods and permits costs no more than a lock that is let go again. Only
                // what was there once can be shown still, and until the epoch is closed it matters.
                let is_open = cluster.ran && cluster.released < cluster.epoch;
                let may_lag = world.lag && world.faults.is_none();
                if may_lag && is_open && cluster.pod != Pod::Wanted {
                    self.runtime(c, true);
                }
            }
        }
        if world.crash && matches!(cluster.process, Process::Locked | Process::Looked(_)) {
            self.fault_at(At::RuntimeCrash, c, |cluster| cluster.process = Process::None);
        }
        if cluster.runs() != 0 {
            if world.faults.is_none() {
                self.step_at(At::Exit, c, |cluster| cluster.process = Process::Locked);
            }
            self.write(c);
        }
    }

    fn runtime(&mut self, c: usize, is_stale: bool) {
        use runtime::decide::{Decision, Facts, Lock, decide};
        let (world, cluster) = (self.world, &self.state.clusters[c]);
        let mut facts = world.runtime_facts(cluster, is_stale);
        let mut decision = decide(&facts);
        let peeks = decision == Decision::TakeLock && world.has(Flaw::ReadsBeforeLocking);
        if let Facts::Asked(asked) = &mut facts
            && (decision == Decision::LookAtPermit || peeks)
        {
            asked.permit = Some(world.permit_now(cluster));
            asked.lock = Lock::Mine;
            decision = decide(&facts);
        }
        match decision {
            Decision::TakeLock => {
                self.step_at(At::TakeLock, c, |cluster| cluster.process = Process::Locked);
            }
            Decision::Start(epoch) | Decision::StartAndTell(epoch) => {
                let epoch = u8::try_from(epoch).expect("the epochs of a model are few");
                self.step_at(At::LookAtPermit, c, |cluster| {
                    cluster.process = Process::Looked(epoch);
                });
            }
            Decision::LetGo | Decision::LetGoUnstarted | Decision::LetGoOfStray => {
                self.step_at(At::LetGo, c, |cluster| cluster.process = Process::None);
            }
            // That it dies only some time after is no different from being told later.
            Decision::Terminate | Decision::Kill => {
                self.step_at(At::Terminate, c, |cluster| cluster.process = Process::Locked);
            }
            Decision::TakeFinalizerOff | Decision::DeletePod => {
                self.step_at(At::ConfirmGone, c, |cluster| cluster.pod = Pod::Absent);
            }
            Decision::Nothing(_)
            | Decision::AskForStray
            | Decision::AskMachine
            | Decision::LookAtPermit
            | Decision::Report(_)
            | Decision::ReportProblem => {}
        }
    }

    /// A write, to a claim that the hub knows to be filled: no pod is applied before that.
    fn write(&mut self, c: usize) {
        let (world, cluster) = (self.world, &self.state.clusters[c]);
        if self.state.written == world.extent.writes {
            return;
        }
        let claim = world.claim_of(self.state.written);
        let epoch = cluster.runs();
        let is_reported = self.state.tenure(epoch).filled >> claim & 1 == 1;
        let is_here = cluster.stages[claim] == Stage::Filled
            || world.has(Flaw::FilledWhenItExists) && cluster.stages[claim] == Stage::Filling;
        if !is_here || !is_reported && !world.has(Flaw::AppliesBeforeReporting) {
            return;
        }
        let mut next = self.state.clone();
        let write = 1 << next.written;
        next.written += 1;
        next.clusters[c].volume |= write;
        next.must |= write;
        self.step(At::Write, c, next);
    }

    fn power(&mut self, c: usize) {
        let world = self.world;
        if !world.force {
            return;
        }
        if self.state.clusters[c].off {
            return self.step_at(At::PowerOn, c, |cluster| cluster.off = false);
        }
        // Where nothing runs or may run, and nobody could attest it, power loss is only silence.
        let cluster = &self.state.clusters[c];
        let is_permitted = cluster.running != Running::default() && !cluster.running.lapsed;
        let is_owner = self.state.is_held() && self.state.is_owned_by(c);
        let is_active = is_permitted || cluster.permitting || cluster.process != Process::None;
        if !is_owner && !is_active {
            return;
        }
        // A permit that a syncer is about to write names the boot that it read before its look, so
        // it would permit nothing.
        let late = world.has(Flaw::BootReadLate);
        self.fault_at(At::PowerOff, c, |cluster| {
            cluster.off = true;
            cluster.process = Process::None;
            cluster.permitting &= late;
            if cluster.running != Running::default() {
                cluster.running.lapsed = true;
            }
        });
    }
}
