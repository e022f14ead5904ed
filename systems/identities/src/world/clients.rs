//! The clients of two processes, and their calls on the way to the cloud and back.
//!
//! A call takes effect between the moment at which it is sent and the end of the late-call window, or never.
//! Its process waits for the answer, gives up at a deadline, or dies. Reads may show the account as it was
//! before, within the same window.

use super::account::Account;
use crate::outside::{
    Answer, Call, Cloud, Code, FRESH_SECONDS, Process, Question, Refusal, Remembered, Request, Sent,
};
use interlock_kernel::{
    Action, Controller, Effect, LiveReads, Object, Outside, Read, Right, Step, Subject, View,
    Watch, Watcher,
};
use interlock_world::Driver;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a call is late at most, and how much time passes at once.
pub const LATE_CALL_SECONDS: i64 = 60;
/// How many processes there are at most.
pub const PROCESSES: usize = 2;

/// The cloud account, and all that is on its way there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Machine {
    /// As it is.
    pub account: Account,
    /// As reads show it, if they lag.
    pub shown: Option<Box<Account>>,
    /// Calls that were sent and have not taken effect.
    pub calls: Vec<UnderWay>,
    /// The clients.
    pub clients: [Client; PROCESSES],
    /// The time on the clock of the cloud, in seconds.
    pub date: i64,
    /// What happens on the clusters that a namespace is placed on.
    pub clusters: Tenancy,
}

/// What happens on the clusters that a namespace is placed on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Tenancy {
    /// The epoch that runs on each cluster; 0: none.
    pub running: [i64; 2],
    /// By the epoch that the trust names: when the first and the last session was issued. Tokens are tried whenever
    /// anything changes, so there is a session for every time at which there could be one.
    pub sessions: BTreeMap<i64, (i64, i64)>,
}

/// A call that was sent and has not taken effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnderWay {
    /// The process that waits for its answer; None: it gave up, or is dead.
    pub awaited_by: Option<usize>,
    /// The call.
    pub request: Request,
}

/// What a process remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Client {
    /// How often the process was started before.
    pub starts: u32,
    /// Seconds since the last start.
    pub uptime: i64,
    /// What it sent, and for which object.
    pub sent: Vec<(String, Sent)>,
    /// What was refused last, and for which object.
    pub refused: Vec<(String, Refusal)>,
    /// What it knows by the answers to its calls, and of which object.
    pub remembered: BTreeMap<String, Remembered>,
}

impl Client {
    /// A call was answered.
    fn learn(&mut self, request: &Request, outcome: Result<(), Code>) {
        let Request { about, call, .. } = request;
        self.refused.retain(|(of, _)| of != about);
        let is_it = |(of, it): &(String, Sent)| of == about && it.call == *call;
        let place = self.sent.iter().rposition(is_it);
        match outcome {
            Ok(()) => {
                if let Some(place) = place {
                    self.sent[place].1.is_answered = true;
                }
                self.remember(about, |known| known.learns(call));
            }
            // It had no effect, and never will.
            Err(code) => {
                place.map(|place| self.sent.remove(place));
                let (call, message, at) = (call.clone(), format!("{code:?}"), self.uptime);
                self.refused.push((about.clone(), Refusal { call, code, message, at }));
            }
        }
    }
}

impl Client {
    /// What is known of an object changes.
    fn remember(&mut self, about: &str, change: impl FnOnce(Remembered) -> Remembered) {
        let known = change(self.remembered.remove(about).unwrap_or_default());
        if known != Remembered::default() {
            self.remembered.insert(about.to_owned(), known);
        }
    }

    /// The late-call window passes: what was sent before it is past, and is remembered for one more.
    fn elapse(&mut self) {
        self.uptime += LATE_CALL_SECONDS;
        let sent = std::mem::take(&mut self.sent);
        self.remembered.retain(|about, _| sent.iter().any(|(of, _)| of == about));
    }
}

impl Machine {
    /// A process, as it is known now.
    pub fn process(&self, number: usize) -> Process {
        let client = &self.clients[number];
        let instance = format!("process-{number}-{}", client.starts);
        Process { instance, uptime: client.uptime }
    }

    /// What a process is answered; None: it waits for the answer to a call about the same object.
    pub fn ask(&self, number: usize, question: &Question) -> Option<Answer> {
        let about = &question.about;
        let is_busy =
            |call: &UnderWay| call.awaited_by == Some(number) && call.request.about == *about;
        if self.calls.iter().any(is_busy) {
            return None;
        }
        let client = &self.clients[number];
        let sent = client.sent.iter().filter(|(of, _)| of == about).map(|(_, sent)| sent.clone());
        let refused = client.refused.iter().find(|(of, _)| of == about);
        Some(Answer {
            found: self.shown.as_deref().unwrap_or(&self.account).found(&question.object),
            process: self.process(number),
            date: Some(self.date),
            sent: sent.collect(),
            refused: refused.map(|(_, refusal)| refusal.clone()),
            remembered: client.remembered.get(about).copied().unwrap_or_default(),
        })
    }

    /// The machine after a process sent a request; the same if its client refuses it.
    #[must_use]
    pub fn sent(&self, number: usize, request: &Request) -> Machine {
        let (mut after, process) = (self.clone(), self.process(number));
        let age = process.uptime - request.decided.uptime;
        if request.decided.instance != process.instance || age > FRESH_SECONDS {
            return after;
        }
        let (call, at) = (request.call.clone(), process.uptime);
        let client = &mut after.clients[number];
        client.remember(&request.about, |known| known.sends(&call));
        // Of two equal calls the first may be late, even if the second was answered.
        client.sent.push((request.about.clone(), Sent { call, is_answered: false, at }));
        after.calls.push(UnderWay { awaited_by: Some(number), request: request.clone() });
        after
    }

    /// The machine after a call took effect, or was refused; whoever waits for its answer gets it.
    #[must_use]
    pub fn landed(&self, call: usize, lags: bool) -> Machine {
        let mut after = self.clone();
        let UnderWay { awaited_by, request } = after.calls.remove(call);
        let outcome = after.account.apply(&request.at, &request.call);
        if lags && after.account != self.account {
            after.shown = Some(Box::new(self.account.clone()));
        }
        if let Some(number) = awaited_by {
            after.clients[number].learn(&request, outcome);
        }
        after
    }

    /// The machine after the cloud refused a call before it did anything, as where it throttles.
    #[must_use]
    pub fn refused(&self, call: usize, code: Code) -> Machine {
        let mut after = self.clone();
        let UnderWay { awaited_by, request } = after.calls.remove(call);
        if let Some(number) = awaited_by {
            after.clients[number].learn(&request, Err(code));
        }
        after
    }

    /// The machine after a process stopped waiting for the answer to a call.
    #[must_use]
    pub fn given_up(&self, call: usize) -> Machine {
        let mut after = self.clone();
        after.calls[call].awaited_by = None;
        after
    }

    /// The machine after a call got lost.
    #[must_use]
    pub fn dropped(&self, call: usize) -> Machine {
        let mut after = self.clone();
        after.calls.remove(call);
        after
    }

    /// The machine after the late-call window passed: nothing is on its way any more.
    #[must_use]
    pub fn elapsed(&self) -> Machine {
        let mut after = self.clone();
        after.date += LATE_CALL_SECONDS;
        for client in &mut after.clients {
            client.elapse();
        }
        after
    }

    /// The machine after a process died and was started again.
    #[must_use]
    pub fn restarted(&self, number: usize) -> Machine {
        let mut after = self.clone();
        for call in after.calls.iter_mut().filter(|call| call.awaited_by == Some(number)) {
            call.awaited_by = None;
        }
        let starts = self.clients[number].starts + 1;
        after.clients[number] = Client { starts, ..Client::default() };
        after
    }

    /// The calls that would create something for an object.
    pub fn creating(&self) -> impl Iterator<Item = &str> {
        let creates = |call: &&UnderWay| {
            matches!(
                call.request.call,
                Call::CreatePolicy { .. }
                    | Call::CreateRole { .. }
                    | Call::CreateOpenIdConnectProvider { .. }
            )
        };
        self.calls.iter().filter(creates).map(|call| call.request.about.as_str())
    }
}

/// The outside of the rooms, with the process that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByProcess {}

impl Outside for ByProcess {
    type Question = (usize, Question);
    type Answer = Option<Answer>;
    type Action = (usize, Request);
}

impl Driver<Machine> for ByProcess {
    fn ask(machines: &[&Machine], here: usize, question: &(usize, Question)) -> Option<Answer> {
        machines[here].ask(question.0, &question.1)
    }

    fn perform(machines: &[&Machine], here: usize, action: &(usize, Request)) -> Machine {
        machines[here].sent(action.0, &action.1)
    }
}

/// A shipped controller in a process: its step waits while the process waits for an answer.
pub struct InProcess<C> {
    /// The controller.
    pub controller: C,
    /// The process.
    pub number: usize,
}

impl<C: Watcher> Watcher for InProcess<C> {
    fn name(&self) -> &'static str {
        self.controller.name()
    }

    fn watches(&self) -> Vec<Watch> {
        self.controller.watches()
    }

    fn rights(&self) -> Vec<Right> {
        self.controller.rights()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        self.controller.subjects(watch, object, view)
    }
}

impl<C: Controller<Outside = Cloud>> Controller for InProcess<C> {
    type Outside = ByProcess;

    fn step(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<ByProcess>,
    ) -> Step<ByProcess> {
        let mut known = LiveReads::<Cloud> {
            objects: live_reads.objects.clone(),
            lists: live_reads.lists.clone(),
            ..LiveReads::default()
        };
        for ((_, question), answer) in &live_reads.answers {
            let Some(answer) = answer else {
                let because = "the process waits for the answer to a call".to_owned();
                return Step::Wait { because, at_most: Duration::from_secs(4) };
            };
            known.answers.insert(question.clone(), answer.clone());
        }
        match self.controller.step(subject, view, &known) {
            Step::Rest { because } => Step::Rest { because },
            Step::Wait { because, at_most } => Step::Wait { because, at_most },
            Step::LiveRead { reads, because } => {
                let reads = reads.into_iter().map(|read| match read {
                    Read::Object(address) => Read::Object(address),
                    Read::List { place, kind, namespace } => Read::List { place, kind, namespace },
                    Read::Selected { place, kind, selector } => {
                        Read::Selected { place, kind, selector }
                    }
                    Read::DryRun(dry_run) => Read::DryRun(dry_run),
                    Read::Ask(question) => Read::Ask((self.number, question)),
                });
                Step::LiveRead { reads: reads.collect(), because }
            }
            Step::Act(effect) => {
                let Effect { action, because, event, then } = *effect;
                let action = match action {
                    Action::Write(write) => Action::Write(write),
                    Action::Outside(request) => Action::Outside((self.number, request)),
                };
                Step::Act(Box::new(Effect { action, because, event, then }))
            }
        }
    }
}
