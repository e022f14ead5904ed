//! The cloud account: that of the checker's world, with time that passes second by second, and calls that get late,
//! lost, throttled or shown late by chance.

use crate::Flaw;
use crate::engine::chance::Chance;
use crate::engine::line::{Errand, Gate, Way};
use interlock_api::identities::TAG_OWNER_UID;
use interlock_identities::document;
use interlock_identities::outside::{
    Answer, Asked, At, Cloud, Code, Failure, Found, Question, Request, Tags,
};
use interlock_identities::owner::Owner;
use interlock_identities::settings::Settings;
use interlock_identities::world::account::{self, HeldPolicy, HeldRole};
use interlock_identities::world::clients::{LATE_CALL_SECONDS, Machine};
use interlock_identities::world::kept::{Sessions, admitted};
use interlock_kernel::Nothing;
use interlock_shell::Driver;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The OIDC provider of namespaces that are not placed.
pub(crate) const PROVIDER: &str = "arn:aws:iam::1:oidc-provider/issuer.example";
/// The permissions boundary of every role.
pub(crate) const BOUNDARY: &str = "arn:aws:iam::1:policy/boundary";
/// Who owns what is foreign.
pub(crate) const ANOTHER: &str = "another";
/// Where the name of an object begins that is readable, behind `interlock-` and sixteen digits.
const NAME_WITH_DIGEST: usize = 27;
/// A call takes effect, and reads and sessions show it, within so many seconds of being sent, or never.
const LATEST_SECONDS: i64 = LATE_CALL_SECONDS - 5;

/// The account.
pub(crate) struct Account {
    pub(crate) machine: Machine,
    /// By when each of the calls that are under way has taken effect, or never will.
    until: Vec<i64>,
    /// When reads show what is.
    caught_up: i64,
    /// The sessions of each role, by the id of the role.
    pub(crate) sessions: BTreeMap<u32, Sessions>,
    /// What is not ours, by name.
    pub(crate) foreign: account::Account,
    /// How many calls were sent.
    pub(crate) calls: u64,
    /// How many of them nobody waited for when they took effect.
    pub(crate) late: u64,
    /// Whether every call is done and shown at once.
    pub(crate) is_calm: bool,
    chance: Arc<Chance>,
    flaw: Flaw,
}

impl Account {
    /// An account with a policy and a role that others made. The policy has the name that one of ours would have.
    pub(crate) fn new(chance: &Arc<Chance>, flaw: Flaw, settings: &Settings) -> Account {
        let owner = Owner {
            uid: ANOTHER.to_owned(),
            kind: "policy",
            fleet: settings.fleet.clone(),
            namespace: super::TOOLS.to_owned(),
            name: super::TAKEN.to_owned(),
        };
        let mut foreign = account::Account::default();
        if let At::Name { path, name } = owner.at() {
            let text = document::of_statements(&[]).to_string();
            let versions = BTreeMap::from([(1, text)]);
            let policy = HeldPolicy { path, id: 1, tags: owner.tags(), versions, default: 1 };
            foreign.policies.insert(name, policy);
        }
        let role = HeldRole { path: "/".to_owned(), id: 2, ..HeldRole::default() };
        foreign.roles.insert("somebody".to_owned(), role);
        foreign.made = 2;
        let mut machine = Machine { account: foreign.clone(), ..Machine::default() };
        if !settings.manages_providers {
            let known = crate::CLUSTERS.map(|name| (super::people::issuer(name), Tags::new()));
            machine.account.providers.extend(known);
        }
        Account {
            machine,
            until: Vec::new(),
            caught_up: 0,
            sessions: BTreeMap::new(),
            foreign,
            calls: 0,
            late: 0,
            is_calm: false,
            chance: Arc::clone(chance),
            flaw,
        }
    }

    /// A program died, and the next one in its place is another process.
    pub(crate) fn restart(&mut self, place: usize) {
        self.machine = self.machine.restarted(place);
    }

    /// Time passes: what must have taken effect by now has, or is lost.
    pub(crate) fn time_passes_until(&mut self, now: i64) {
        let seconds = now - self.machine.date;
        while let Some(place) = self.until.iter().position(|until| *until <= now) {
            self.lands_or_is_lost(place);
        }
        self.machine.date = now;
        for client in &mut self.machine.clients {
            client.uptime += seconds;
            let uptime = client.uptime;
            client.sent.retain(|(_, sent)| uptime < sent.at + LATE_CALL_SECONDS);
        }
        if self.caught_up <= now {
            self.machine.shown = None;
        }
    }

    /// Some call that nobody waits for takes effect, or is lost.
    pub(crate) fn something_lands(&mut self) -> Option<&'static str> {
        let place = self.chance.below(self.until.len());
        (place < self.until.len()).then(|| self.lands_or_is_lost(place))
    }

    fn lands_or_is_lost(&mut self, place: usize) -> &'static str {
        if self.chance.once_in(3) {
            self.until.remove(place);
            self.machine = self.machine.dropped(place);
            return "a call to the cloud is lost";
        }
        self.late += 1;
        self.lands(place);
        "a late call to the cloud takes effect"
    }

    fn lands(&mut self, place: usize) {
        let until = self.until.remove(place);
        let left = until - self.machine.date;
        let lags = !self.is_calm && left > 0 && self.chance.once_in(12);
        if lags && self.machine.shown.is_none() {
            self.caught_up = self.machine.date + 1 + self.chance.below(left as usize) as i64;
        }
        self.machine = self.machine.landed(place, lags && self.machine.shown.is_none());
    }

    /// A process sends a request.
    fn send(&mut self, place: usize, request: &Request, way: Way) {
        let before = self.machine.calls.len();
        self.machine = self.machine.sent(place, request);
        if self.machine.calls.len() == before {
            // Its client refused it: it was decided too long ago, or by another process.
            return;
        }
        self.calls += 1;
        self.until.push(self.machine.date + LATEST_SECONDS);
        let luck = if self.is_calm { usize::MAX } else { self.chance.below(24) };
        match (way, luck) {
            (Way::RequestLost, _) => {
                self.until.pop();
                self.machine = self.machine.given_up(before).dropped(before);
            }
            (Way::ReplyLost, _) => {
                self.machine = self.machine.given_up(before);
                self.lands(before);
            }
            // Its process dies, or does not wait for so long.
            (Way::LeftBehind, _) | (Way::Through, 0 | 1) => {
                self.machine = self.machine.given_up(before);
            }
            (Way::Through, 2) => {
                self.until.pop();
                self.machine = self.machine.refused(before, Code::Throttling);
            }
            (Way::Through, _) => self.lands(before),
        }
    }

    fn answer(&self, place: usize, question: &Question, way: Way) -> Result<Answer, String> {
        let answer = self.machine.ask(place, question);
        let mut answer = answer.ok_or("the process waits for the answer to a call")?;
        let luck = if self.is_calm { usize::MAX } else { self.chance.below(40) };
        let failure = match (way, luck) {
            (Way::Through, 0) => Some(Failure::Throttled { after: 1 }),
            (Way::Through, _) => None,
            (Way::RequestLost | Way::ReplyLost | Way::LeftBehind, _) => {
                Some(Failure::Unavailable { why: "the line is cut".to_owned() })
            }
        };
        if let Some(failure) = failure {
            (answer.found, answer.date) = (Found::Failed(failure), None);
        }
        if self.flaw == Flaw::SentIsForgotten {
            answer.sent.clear();
        }
        if self.flaw == Flaw::ProcessNameStays {
            answer.process.instance = format!("process-{place}");
        }
        Ok(answer)
    }

    /// Whoever has a token tries it.
    pub(crate) fn try_tokens(&mut self) {
        let (date, machine) = (self.machine.date, &self.machine);
        for account in [Some(&machine.account), machine.shown.as_deref()].into_iter().flatten() {
            for role in account.roles.values() {
                // Epoch 0 is that of namespaces that are not placed.
                for (epoch, _) in admitted(&role.trust).into_iter().filter(|(epoch, _)| *epoch > 0)
                {
                    let sessions = self.sessions.entry(role.id).or_default();
                    sessions.entry(epoch).or_insert((date, date)).1 = date;
                }
            }
        }
    }

    /// Somebody changes what is ours by hand; what was changed, in words.
    pub(crate) fn drift(&mut self) -> Option<String> {
        let account = &mut self.machine.account;
        let is_ours = |name: &&String| name.starts_with("interlock-");
        let policies: Vec<String> = account.policies.keys().filter(is_ours).cloned().collect();
        let roles: Vec<String> = account.roles.keys().filter(is_ours).cloned().collect();
        if self.chance.once_in(2) {
            let name = self.chance.one_of(&policies)?;
            let is_foreign = self.foreign.policies.contains_key(name);
            let policy = account.policies.get_mut(name).filter(|_| !is_foreign)?;
            let next = policy.versions.keys().max().copied().unwrap_or(0) + 1;
            if policy.versions.len() >= 5 {
                return None;
            }
            policy.versions.insert(next, r#"{"Statement": []}"#.to_owned());
            policy.default = next;
            return Some(format!("somebody changes policy {name}"));
        }
        let name = self.chance.one_of(&roles)?;
        let role = account.roles.get_mut(name)?;
        role.attached = BTreeSet::new();
        // The trust of a role that follows a Grant is left alone: its promises are about calls, not about people.
        if admitted(&role.trust).iter().any(|(epoch, _)| *epoch == 0) {
            role.trust = document::closed("Drift").to_string();
        }
        Some(format!("somebody changes role {name}"))
    }
}

/// The client of one program.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) account: Arc<Mutex<Account>>,
    /// Its place among the clients of the account.
    pub(crate) place: usize,
    pub(crate) gate: Arc<Gate>,
    pub(crate) flaw: Flaw,
}

impl Client {
    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a cloud object without its digest, which alone tells some objects apart.
fn without_digest(at: At) -> At {
    match at {
        At::Name { path, name } => {
            let rest = name.get(NAME_WITH_DIGEST..).unwrap_or_default();
            At::Name { path, name: format!("interlock-{rest}") }
        }
        At::Arn(arn) => At::Arn(arn),
    }
}

/// Whatever is there belongs to whoever asks.
fn as_own(found: &mut Found, uid: &str) {
    let tags = match found {
        Found::Policy(policy) => &mut policy.tags,
        Found::Role(role) => &mut role.tags,
        Found::NotAsked | Found::Absent | Found::Provider { .. } | Found::Failed(_) => return,
    };
    tags.insert(TAG_OWNER_UID.to_owned(), uid.to_owned());
}

impl Driver<Cloud> for Client {
    async fn ask(&self, mut question: Question) -> Result<Answer, String> {
        if self.flaw == Flaw::NamesCollide {
            let about = question.about.clone();
            match &mut question.object {
                Asked::Policy { at, .. } | Asked::Role { at, .. } => {
                    *at = without_digest(at.clone());
                }
                Asked::Calls | Asked::Provider { .. } => {}
            }
            let mut answer = self.answer(question).await?;
            as_own(&mut answer.found, &about);
            return Ok(answer);
        }
        self.answer(question).await
    }

    async fn perform(&self, mut request: Request) -> Result<(), String> {
        let way = self.gate.turn(Errand::Any).await;
        if self.flaw == Flaw::ProcessNameStays {
            request.decided.instance = self.account().machine.process(self.place).instance;
        }
        if self.flaw == Flaw::NamesCollide {
            request.at = without_digest(request.at);
        }
        self.account().send(self.place, &request, way);
        if way == Way::LeftBehind {
            self.gate.leave_behind(Box::pin(async {})).await;
        }
        Ok(())
    }
}

impl Client {
    async fn answer(&self, question: Question) -> Result<Answer, String> {
        let way = self.gate.turn(Errand::Any).await;
        if way == Way::LeftBehind {
            self.gate.leave_behind(Box::pin(async {})).await;
        }
        self.account().answer(self.place, &question, way)
    }
}

impl Driver<Nothing> for Client {
    async fn ask(&self, question: Nothing) -> Result<Nothing, String> {
        match question {}
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}
