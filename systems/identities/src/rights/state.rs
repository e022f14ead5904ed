//! What there is in the rights protocol: the Grant, the role in the cloud, and what processes do.

use super::{MOST_EPOCHS, MOST_INSTANCES};
use interlock_checker::{Coder, Rng};

/// What the Grant says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Phase {
    /// The owner may run.
    #[default]
    Granted,
    /// The owner is to give it back.
    Revoking,
    /// The owner gave it back.
    Released,
    /// The owner lost it by force, and may run on.
    Fenced,
}

const PHASES: [Phase; 4] = [Phase::Granted, Phase::Revoking, Phase::Released, Phase::Fenced];

/// The Grant, with the highest epoch that was ended by force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Grant {
    pub(crate) epoch: u8,
    pub(crate) phase: Phase,
}

impl Grant {
    /// Owned, and not given back.
    pub(crate) fn is_held(self) -> bool {
        matches!(self.phase, Phase::Granted | Phase::Revoking)
    }

    /// Its bit among all values that the Grant has had.
    pub(crate) fn bit(self) -> u16 {
        1 << (4 * (self.epoch - 1) + self.phase as u8)
    }

    fn show(self) -> String {
        format!("[e |-> {}, ph |-> \"{:?}\"]", self.epoch, self.phase)
    }
}

/// The past when there is none: the first epoch is granted.
pub(crate) const FIRST: u16 = 1;

/// Whose mark is on the role: no one's, that of a process which is there, or of one which died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Mark {
    #[default]
    None,
    Dead,
    Of(u8),
}

const MARKS: [Mark; 4] = [Mark::None, Mark::Dead, Mark::Of(0), Mark::Of(1)];

/// How much the mark proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Proof {
    /// Taken over: calls of another process may be under way.
    Wait,
    /// Its process may send; calls of its own may be under way.
    Clear,
    /// Nothing that was sent can still land.
    #[default]
    Quiet,
}

const PROOFS: [Proof; 3] = [Proof::Wait, Proof::Clear, Proof::Quiet];

/// A call about the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    /// The trust becomes that of this epoch; 0: closed.
    Trust(u8),
    /// The fence of this epoch is put.
    Fence(u8),
}

impl Default for Call {
    fn default() -> Self {
        Call::Trust(0)
    }
}

const EACH: u8 = MOST_EPOCHS + 1;

/// The calls about the trust, in a set.
pub(crate) const TRUSTS: u8 = (1 << EACH) - 1;

impl Call {
    fn place(self) -> u8 {
        match self {
            Call::Trust(epoch) => epoch,
            Call::Fence(epoch) => EACH + epoch,
        }
    }

    fn at(place: u8) -> Call {
        if place < EACH { Call::Trust(place) } else { Call::Fence(place - EACH) }
    }

    /// Its bit in a set of calls.
    pub(crate) fn bit(self) -> u8 {
        1 << self.place()
    }

    /// The calls in a set.
    pub(crate) fn each(set: u8) -> impl Iterator<Item = Call> {
        (0..u8::BITS as u8).filter(move |place| set >> place & 1 == 1).map(Call::at)
    }

    /// Its name and its epoch, as the specification has them.
    fn show(self) -> [String; 2] {
        match self {
            Call::Trust(epoch) => ["\"t\"".to_owned(), epoch.to_string()],
            Call::Fence(epoch) => ["\"f\"".to_owned(), epoch.to_string()],
        }
    }
}

/// What a process is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Pending {
    #[default]
    Idle,
    /// It has read everything, and sends next.
    Send(Call),
    /// It has sent, and waits for the answer; the call has not landed.
    Wait(Call),
    /// The call has landed; the answer is on its way.
    Done(Call),
    /// It is about to write that the rights are ready for this epoch.
    Ready(u8),
    /// It is about to write that forced epochs up to this one have no rights.
    Fenced(u8),
}

impl Pending {
    fn code(&mut self, coder: &mut Coder) {
        let (mut kind, mut about) = match *self {
            Pending::Idle => (0, 0),
            Pending::Send(call) => (1, call.place()),
            Pending::Wait(call) => (2, call.place()),
            Pending::Done(call) => (3, call.place()),
            Pending::Ready(epoch) => (4, epoch),
            Pending::Fenced(epoch) => (5, epoch),
        };
        coder.u8(&mut kind, 3);
        coder.u8(&mut about, 3);
        *self = match kind {
            0 => Pending::Idle,
            1 => Pending::Send(Call::at(about)),
            2 => Pending::Wait(Call::at(about)),
            3 => Pending::Done(Call::at(about)),
            4 => Pending::Ready(about),
            _ => Pending::Fenced(about),
        };
    }

    fn show(self) -> String {
        let [dash, zero] = ["\"-\"".to_owned(), "0".to_owned()];
        let (step, [kind, about], done) = match self {
            Pending::Idle => ("idle", [dash, zero], "FALSE"),
            Pending::Send(call) => ("send", call.show(), "FALSE"),
            Pending::Wait(call) => ("wait", call.show(), "FALSE"),
            Pending::Done(call) => ("wait", call.show(), "TRUE"),
            Pending::Ready(epoch) => ("ready", [dash, epoch.to_string()], "FALSE"),
            Pending::Fenced(epoch) => ("frec", [dash, epoch.to_string()], "FALSE"),
        };
        format!("[a |-> \"{step}\", k |-> {kind}, d |-> {about}, done |-> {done}]")
    }
}

/// The place of calls whose sender died, behind those of the processes.
pub(crate) const DEAD: usize = MOST_INSTANCES;

/// A session that somebody got: through the trust of which epoch, and how many fences' times had
/// passed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) epoch: u8,
    pub(crate) after: u8,
}

impl Session {
    pub(crate) fn bit(self) -> u16 {
        1 << (EACH * (self.epoch - 1) + self.after)
    }
}

/// What a process knows of its own calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Process {
    /// Calls that it gave up waiting for, since W was over.
    pub(crate) unanswered: u8,
    /// The trust that its last answered call wrote.
    pub(crate) last: Option<u8>,
    pub(crate) pending: Pending,
    /// It wrote a mark at some time.
    pub(crate) marked_once: bool,
}

/// The variables of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct State {
    pub(crate) grant: Grant,
    /// The highest epoch that was ended by force.
    pub(crate) forced: u8,
    /// The epoch that the rights are said to be ready for.
    pub(crate) ready: u8,
    /// Forced epochs up to this one are said to have no rights.
    pub(crate) said_fenced: u8,
    /// The epoch that each cluster runs.
    pub(crate) running: [u8; 2],
    pub(crate) mark: Mark,
    pub(crate) proof: Proof,
    /// The epoch that the role trusts; 0: closed.
    pub(crate) trust: u8,
    /// Older trusts that reads and sessions may still rest on, a bit for each.
    pub(crate) stale: u8,
    /// The highest fence in the cloud.
    pub(crate) fence: u8,
    /// The highest fence whose time is recorded.
    pub(crate) recorded: u8,
    /// The highest fence whose time has passed.
    pub(crate) past: u8,
    /// Calls that may still land although nobody waits for them, by sender.
    pub(crate) late: [u8; MOST_INSTANCES + 1],
    pub(crate) processes: [Process; MOST_INSTANCES],
    /// The sessions that there are, a bit for each.
    pub(crate) issued: u16,
    /// The values that the Grant has had; kept only where a cache may show them.
    pub(crate) history: u16,
    pub(crate) faults: u8,
}

impl State {
    pub(crate) fn first() -> State {
        let grant = Grant { epoch: 1, phase: Phase::Granted };
        State { grant, history: FIRST, ..State::default() }
    }

    pub(crate) fn nothing_in_flight(&self) -> bool {
        let is_waiting = |process: &Process| matches!(process.pending, Pending::Wait(_));
        self.late == [0; MOST_INSTANCES + 1] && !self.processes.iter().any(is_waiting)
    }

    /// The trusts that a read may show.
    pub(crate) fn reads(&self) -> impl Iterator<Item = u8> + use<> {
        let shown = self.stale | 1 << self.trust;
        (0..EACH).filter(move |epoch| shown >> epoch & 1 == 1)
    }

    /// Every Grant that a cache may show, with the forced epoch that it has.
    pub(crate) fn seen_grants(&self) -> Vec<(Grant, u8)> {
        let mut seen = Vec::new();
        let mut forced = 0;
        for epoch in 1..=MOST_EPOCHS {
            for phase in PHASES {
                let grant = Grant { epoch, phase };
                if self.history & grant.bit() == 0 {
                    continue;
                }
                if phase == Phase::Fenced {
                    forced = epoch;
                }
                seen.push((grant, forced));
            }
        }
        seen
    }

    pub(crate) fn sessions(&self) -> impl Iterator<Item = Session> + use<> {
        let issued = self.issued;
        let all = (1..=MOST_EPOCHS)
            .flat_map(|epoch| (0..EACH).map(move |after| Session { epoch, after }));
        all.filter(move |session| issued & session.bit() != 0)
    }

    /// The fence denies a session that was issued before its time.
    pub(crate) fn denies(&self, session: Session) -> bool {
        session.after < self.fence
    }

    pub(crate) fn code(&mut self, instances: usize, coder: &mut Coder) {
        coder.u8(&mut self.grant.epoch, 2);
        coder.of(&mut self.grant.phase, &PHASES);
        for epoch in [
            &mut self.forced,
            &mut self.ready,
            &mut self.said_fenced,
            &mut self.trust,
            &mut self.fence,
            &mut self.recorded,
            &mut self.past,
        ] {
            coder.u8(epoch, 2);
        }
        self.running.iter_mut().for_each(|epoch| coder.u8(epoch, 2));
        coder.of(&mut self.mark, &MARKS);
        coder.of(&mut self.proof, &PROOFS);
        coder.u8(&mut self.stale, u32::from(EACH));
        self.late.iter_mut().for_each(|calls| coder.u8(calls, u8::BITS));
        for process in &mut self.processes[..instances] {
            coder.u8(&mut process.unanswered, u8::BITS);
            let mut last = process.last.map_or(0, |epoch| epoch + 1);
            coder.u8(&mut last, 3);
            process.last = last.checked_sub(1);
            process.pending.code(coder);
            coder.bool(&mut process.marked_once);
        }
        coder.u16(&mut self.issued, u32::from(MOST_EPOCHS * EACH));
        coder.u8(&mut self.faults, 2);
    }

    /// The same with process `i` called `places[i]`.
    pub(crate) fn renamed(&self, places: &[usize]) -> State {
        let mut image = self.clone();
        if let Mark::Of(instance) = self.mark {
            image.mark = Mark::Of(places[usize::from(instance)] as u8);
        }
        for (i, place) in places.iter().enumerate() {
            image.processes[*place] = self.processes[i];
            image.late[*place] = self.late[i];
        }
        image
    }

    pub(crate) fn any(instances: usize, epochs: u8, faults: u8, rng: &mut Rng) -> State {
        let up_to = |rng: &mut Rng, most: u8| rng.below(usize::from(most) + 1) as u8;
        // Whoever may be forced or moved has an epoch after it.
        let epoch = 1 + up_to(rng, epochs - 1);
        let phase = if epoch == epochs { Phase::Granted } else { PHASES[rng.below(4)] };
        let before = epochs - 1;
        let calls = |rng: &mut Rng| {
            let trust = up_to(rng, epochs);
            let calls = [Call::Trust(trust), Call::Fence(1 + trust.min(before).saturating_sub(1))];
            calls[rng.below(2)]
        };
        let marks = [Mark::None, Mark::Dead, Mark::Of(rng.below(instances) as u8)];
        let mut state = State {
            grant: Grant { epoch, phase },
            forced: up_to(rng, before),
            ready: up_to(rng, epochs),
            said_fenced: up_to(rng, before),
            running: [up_to(rng, epochs), up_to(rng, epochs)],
            mark: marks[rng.below(marks.len())],
            proof: PROOFS[rng.below(PROOFS.len())],
            trust: up_to(rng, epochs),
            stale: rng.below(1 << (epochs + 1)) as u8,
            fence: up_to(rng, before),
            recorded: up_to(rng, before),
            past: up_to(rng, before),
            faults: up_to(rng, faults),
            ..State::first()
        };
        for sender in (0..instances).chain([DEAD]) {
            if rng.flip() {
                state.late[sender] = calls(rng).bit();
            }
        }
        for process in &mut state.processes[..instances] {
            let call = calls(rng);
            let pendings = [
                Pending::Idle,
                Pending::Send(call),
                Pending::Wait(call),
                Pending::Done(call),
                Pending::Ready(1 + up_to(rng, epochs - 1)),
                Pending::Fenced(1),
            ];
            *process = Process {
                unanswered: if rng.flip() { calls(rng).bit() } else { 0 },
                last: up_to(rng, epochs).checked_sub(1),
                pending: pendings[rng.below(pendings.len())],
                marked_once: rng.flip(),
            };
        }
        for _ in 0..rng.below(3) {
            let session = Session { epoch: 1 + up_to(rng, epochs - 1), after: up_to(rng, before) };
            state.issued |= session.bit();
        }
        state
    }

    pub(crate) fn describe(&self, instances: usize) -> Vec<(&'static str, String)> {
        let set = |elements: Vec<String>| format!("{{{}}}", elements.join(", "));
        let of_each = |show: &dyn Fn(&Process) -> String| {
            let one = |i: usize| format!("i{} :> {}", i + 1, show(&self.processes[i]));
            format!("({})", (0..instances).map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let of = |call: Call, sender: &str, late: &str| {
            let [kind, about] = call.show();
            format!("[k |-> {kind}, d |-> {about}, b |-> {sender}, l |-> {late}]")
        };
        let mut flights = Vec::new();
        for i in 0..instances {
            let sender = format!("i{}", i + 1);
            if let Pending::Wait(call) = self.processes[i].pending {
                flights.push(of(call, &sender, "FALSE"));
            }
            flights.extend(Call::each(self.late[i]).map(|call| of(call, &sender, "TRUE")));
        }
        flights.extend(Call::each(self.late[DEAD]).map(|call| of(call, "dead", "TRUE")));
        let unanswered = |process: &Process| {
            let pair = |call: Call| format!("<<{}>>", call.show().join(", "));
            set(Call::each(process.unanswered).map(pair).collect())
        };
        let last = |process: &Process| process.last.map_or("none".into(), |it| it.to_string());
        let marked = (0..instances).filter(|i| self.processes[*i].marked_once);
        let stale = (0..EACH).filter(|epoch| self.stale >> epoch & 1 == 1);
        let session = |it: Session| format!("[d |-> {}, k |-> {}]", it.epoch, it.after);
        let grants = self.seen_grants().into_iter();
        let grants = grants.map(|(grant, forced)| format!("<<{}, {forced}>>", grant.show()));
        let mark = match self.mark {
            Mark::None => "none".to_owned(),
            Mark::Dead => "dead".to_owned(),
            Mark::Of(instance) => format!("i{}", instance + 1),
        };
        vec![
            ("g", self.grant.show()),
            ("fe", self.forced.to_string()),
            ("ready", self.ready.to_string()),
            ("frec", self.said_fenced.to_string()),
            ("run", format!("(A :> {} @@ B :> {})", self.running[0], self.running[1])),
            ("mark", mark),
            ("q", format!("\"{:?}\"", self.proof).to_lowercase()),
            ("trust", self.trust.to_string()),
            ("stale", set(stale.map(|epoch| epoch.to_string()).collect())),
            ("fence", self.fence.to_string()),
            ("rec", self.recorded.to_string()),
            ("past", self.past.to_string()),
            ("fl", set(flights)),
            ("un", of_each(&unanswered)),
            ("last", of_each(&last)),
            ("pend", of_each(&|process| process.pending.show())),
            ("once", set(marked.map(|i| format!("i{}", i + 1)).collect())),
            ("sess", set(self.sessions().map(session).collect())),
            ("hist", set(grants.collect())),
            ("fault", self.faults.to_string()),
        ]
    }
}
