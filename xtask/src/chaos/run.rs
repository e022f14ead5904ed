//! One run of a script: what is done, a quiet period, and what the judges say.

use super::client::Client;
use super::deploy::deploy;
use super::fleet::{CLUSTERS, Fleet, NAMESPACES, TIMEOUT};
use super::ledger::{Ledger, Record};
use super::machines::{Machines, TENANTS, claim_of};
use super::proxy::Network;
use super::script::{Flaw, Harm, Script, What};
use super::updates::{self, UPDATES, update};
use crate::{interlock, say};
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// How often programs that ended are started again, and records are read.
const LOOK: Duration = Duration::from_millis(500);
/// The longest that something that is due waits.
const TICK: Duration = Duration::from_millis(20);

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What was not as promised; empty: every promise was kept.
    pub(crate) broken: Vec<String>,
    /// When that was found, from the start; None: after the quiet period.
    pub(crate) found_at_ms: Option<u64>,
    /// How often each thing was done.
    pub(crate) counts: BTreeMap<String, u64>,
    /// What was seen otherwise.
    pub(crate) seen: Vec<String>,
    /// Whether disks could be made full.
    pub(crate) has_disk: bool,
}

/// A namespace that is moved around.
struct Placed {
    name: &'static str,
    uid: String,
    ledger: Ledger,
    desired: String,
}

/// A person who asks for other clusters, and asks again until the hub has taken it.
struct Person {
    asks: Sender<Ask>,
    thread: JoinHandle<()>,
    /// Whether nobody waits for what was asked for any more.
    is_over: Arc<AtomicBool>,
}

/// A change of an object, as a merge patch, or a new object.
struct Ask {
    method: &'static str,
    path: String,
    body: Value,
}

/// A run that goes on.
struct Running {
    binary: PathBuf,
    fleet: Fleet,
    placed: Vec<Placed>,
    machines: Machines,
    counts: BTreeMap<String, u64>,
    looked: Instant,
}

/// Something that is due.
enum Due {
    Begins(What),
    IsOver { harm: Harm, program: String },
}

/// Runs a script on a fleet of its own.
pub(crate) fn attempt(binary: &Path, folder: &Path, script: &Script) -> anyhow::Result<Outcome> {
    let mut running = Running::start(binary, folder)?;
    let person = Person::of(running.fleet.client.clone());
    let found = running.carry_out(script, &person)?;
    let mut outcome = Outcome { has_disk: running.fleet.has_disk(), ..Outcome::default() };
    match found {
        Some(Found { broken, ms }) => {
            person.leaves();
            (outcome.broken, outcome.found_at_ms) = (broken, Some(ms));
        }
        None => {
            running.fleet.recover()?;
            person.ends();
            outcome.broken = running.quiet()?;
            let ends = updates::ends(&running.fleet.client);
            if outcome.broken.is_empty() {
                outcome.broken = running.end()?;
            }
            if outcome.broken.is_empty() {
                (outcome.broken, outcome.seen) = running.audit()?;
            }
            outcome.seen.extend(ends);
        }
    }
    outcome.seen.extend(running.placed.iter().map(|placed| {
        let last = placed.ledger.last;
        format!("{}: {} records, {} owners", placed.name, last.number, last.epoch)
    }));
    outcome.counts = std::mem::take(&mut running.counts);
    Ok(outcome)
}

/// What a judge found in the middle of a run.
struct Found {
    broken: Vec<String>,
    ms: u64,
}

impl Person {
    fn of(client: Client) -> Person {
        let (asks, heard) = channel();
        let is_over: Arc<AtomicBool> = Arc::default();
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            for next in heard {
                ask(&client, &next, &over);
            }
        });
        Person { asks, thread, is_over }
    }

    fn asks(&self, ask: Ask) -> anyhow::Result<()> {
        self.asks.send(ask).ok().context("the person is gone")
    }

    /// Does not ask for the rest.
    fn leaves(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.ends();
    }

    /// Waits until the hub has taken everything.
    fn ends(self) {
        drop(self.asks);
        // Who could not ask has asked for nothing, and that shows when the namespaces are compared.
        let _ = self.thread.join();
    }
}

/// Asks until the hub has taken it.
fn ask(client: &Client, asked: &Ask, is_over: &AtomicBool) {
    let began = Instant::now();
    while !is_over.load(Ordering::Relaxed) && began.elapsed() < TIMEOUT {
        let answer = client.call(asked.method, &asked.path, Some(&asked.body));
        // What was made by a request whose answer was lost is there already.
        if answer.is_ok_and(|answer| answer.status < 300 || answer.status == 409) {
            return;
        }
        sleep(Duration::from_millis(200));
    }
}

/// What is due, in order.
fn due(script: &Script) -> Vec<(u64, Due)> {
    let mut all = Vec::new();
    for event in &script.events {
        all.push((event.ms, Due::Begins(event.what.clone())));
        if let What::Harm { harm, program, ms } = &event.what {
            let over = Due::IsOver { harm: *harm, program: program.clone() };
            all.push((event.ms + ms, over));
        }
    }
    all.sort_by_key(|(ms, _)| *ms);
    all
}

impl Running {
    fn start(binary: &Path, folder: &Path) -> anyhow::Result<Running> {
        let mut fleet = Fleet::start(binary, folder)?;
        deploy(&mut fleet)?;
        let mut placed = Vec::new();
        for name in NAMESPACES {
            let ledger = Ledger::of_new(folder.join("records").join(name))?;
            let uid = fleet.place(name, &ledger.directory)?;
            placed.push(Placed { name, uid, ledger, desired: CLUSTERS[0].to_owned() });
        }
        let (binary, looked) = (binary.to_owned(), Instant::now());
        let (machines, counts) = (Machines::of(fleet.records_of_ports()), BTreeMap::new());
        let mut running = Running { binary, fleet, placed, machines, counts, looked };
        let broken = running.quiet()?;
        anyhow::ensure!(broken.is_empty(), "the fleet does not start: {}", broken.join("; "));
        Ok(running)
    }

    fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    /// Does what is due until the script ends, or a judge finds something.
    fn carry_out(&mut self, script: &Script, person: &Person) -> anyhow::Result<Option<Found>> {
        let began = Instant::now();
        let now = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut due = due(script).into_iter().peekable();
        while now() < script.ms || due.peek().is_some() {
            while let Some((_, next)) = due.next_if(|(ms, _)| *ms <= now()) {
                match next {
                    Due::Begins(what) => self.begin(what, person)?,
                    Due::IsOver { harm: Harm::Kill, program } => self.fleet.run(&program)?,
                    Due::IsOver { harm: Harm::Stop, program } => self.fleet.go_on(&program),
                    Due::IsOver { harm: Harm::Full, .. } => self.fleet.free_disk(),
                    Due::IsOver { harm: Harm::Drop | Harm::Stall, program } => {
                        self.fleet.mend(&program);
                    }
                }
            }
            // A port may be open for a moment only: its record is read each time.
            let broken = [self.machines.judge(), self.look()?].concat();
            if !broken.is_empty() {
                return Ok(Some(Found { broken, ms: now() }));
            }
            sleep(TICK);
        }
        Ok(None)
    }

    fn of(&mut self, namespace: &str) -> anyhow::Result<&mut Placed> {
        let placed = self.placed.iter_mut().find(|it| it.name == namespace);
        placed.context("there is no such namespace")
    }

    fn begin(&mut self, what: What, person: &Person) -> anyhow::Result<()> {
        match what {
            What::Move { namespace, to } => {
                self.of(&namespace)?.desired.clone_from(&to);
                let path = format!("/api/v1/namespaces/{namespace}");
                let body = json!({"metadata": {"annotations": {"interlock.dev/cluster": to}}});
                person.asks(Ask { method: "PATCH", path, body })?;
                self.count("moves asked for");
            }
            What::Assign { tenant, count } => {
                let path = claim_of(&tenant);
                let body = json!({"spec": {"count": count}});
                self.machines.desired.insert(tenant, count);
                person.asks(Ask { method: "PATCH", path, body })?;
                self.count("machines asked for");
            }
            What::Update { cluster, version, is_good } => {
                let (path, body) = (UPDATES.to_owned(), update(&cluster, version, is_good));
                person.asks(Ask { method: "POST", path, body })?;
                self.count(if is_good { "updates asked for" } else { "bad updates asked for" });
            }
            What::Harm { harm, program, .. } => {
                let is_done = match harm {
                    Harm::Kill => self.fleet.kill(&program),
                    Harm::Stop => self.fleet.stop(&program),
                    Harm::Drop => self.fleet.cut(&program, Network::Drops),
                    Harm::Stall => self.fleet.cut(&program, Network::Stalls),
                    Harm::Full => self.fleet.fill_disk(),
                };
                // What does not run cannot be killed.
                if is_done {
                    let part = program.split('-').next().unwrap_or_default();
                    self.count(&format!("{} {part}", harm.word()));
                }
            }
            What::Flaw { flaw, namespace } => {
                let is_done = match flaw {
                    Flaw::Unlocked => {
                        let records = self.of(&namespace)?.ledger.directory.clone();
                        self.fleet.intrude(&records)?;
                        true
                    }
                    Flaw::Forgets => self.of(&namespace)?.ledger.forget().unwrap_or(false),
                };
                if is_done {
                    self.count(&format!("flaw {}", flaw.word()));
                }
            }
        }
        Ok(())
    }

    /// Starts what ended by itself, and reads what the writers acknowledged; what is wrong with it.
    fn look(&mut self) -> anyhow::Result<Vec<String>> {
        if self.looked.elapsed() < LOOK {
            return Ok(Vec::new());
        }
        self.looked = Instant::now();
        let ended = self.fleet.tend()?;
        if ended > 0 {
            *self.counts.entry("ended by itself and started again".to_owned()).or_default() +=
                ended;
        }
        Ok(self.judge())
    }

    /// What is wrong with what the writers acknowledged.
    fn judge(&mut self) -> Vec<String> {
        let judged = self.placed.iter_mut().filter_map(|placed| {
            let name = placed.name;
            placed.ledger.judge().map(|wrong| format!("{name}: {wrong}"))
        });
        judged.collect()
    }

    /// Nothing is done any more: every namespace must come to run where it was asked for, with all its data.
    fn quiet(&mut self) -> anyhow::Result<Vec<String>> {
        let before: Vec<u64> = self.placed.iter().map(|it| it.ledger.last.number).collect();
        let began = Instant::now();
        loop {
            let broken = [self.machines.judge(), self.look()?].concat();
            if !broken.is_empty() {
                return Ok(broken);
            }
            let mut waits = Vec::new();
            for (placed, before) in self.placed.iter().zip(&before) {
                waits.extend(placed.waits(&self.fleet, *before));
            }
            waits.extend(self.machines.waits(&self.fleet.client));
            waits.extend(updates::waits(&self.fleet.client));
            if waits.is_empty() {
                break;
            }
            if began.elapsed() > TIMEOUT {
                let late = |it: String| format!("not within {} s: {it}", TIMEOUT.as_secs());
                return Ok(waits.into_iter().map(late).collect());
            }
            sleep(Duration::from_millis(200));
        }
        let mut broken = Vec::new();
        for placed in &self.placed {
            let wrong = placed.ledger.compare();
            let wrong = wrong.unwrap_or_else(|error| Some(format!("{error:#}")));
            broken.extend(wrong.map(|wrong| format!("{}: {wrong}", placed.name)));
        }
        Ok(broken)
    }

    /// Deletes everything, and asks every program to stop: nothing may be left.
    fn end(&mut self) -> anyhow::Result<Vec<String>> {
        for placed in &self.placed {
            let path = format!("/api/v1/namespaces/{}", placed.name);
            self.fleet.client.must("DELETE", &path, None)?;
        }
        for tenant in TENANTS {
            let body = json!({"spec": {"count": 0}});
            self.fleet.client.must("PATCH", &claim_of(tenant), Some(&body))?;
            self.machines.desired.insert(tenant.to_owned(), 0);
        }
        let began = Instant::now();
        for placed in &self.placed {
            let path = format!("/api/v1/namespaces/{}", placed.name);
            while !matches!(self.fleet.client.get(&path), Ok(Value::Null)) {
                if began.elapsed() > TIMEOUT {
                    return Ok(vec![format!("{} is not deleted in time", placed.name)]);
                }
                sleep(Duration::from_millis(100));
            }
        }
        while let Some(waits) = self.machines.waits(&self.fleet.client) {
            if began.elapsed() > TIMEOUT {
                return Ok(vec![format!("the pool is not clean in time: {waits}")]);
            }
            sleep(Duration::from_millis(100));
        }
        let broken = [self.judge(), self.machines.judge()].concat();
        if broken.is_empty() { self.fleet.end() } else { Ok(broken) }
    }

    /// What the audit of all recorded steps finds, and what it says besides.
    fn audit(&self) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let logs: Vec<String> =
            self.fleet.logs().iter().map(|log| log.to_string_lossy().into_owned()).collect();
        let mut words = vec!["audit"];
        words.extend(logs.iter().flat_map(|log| ["--log", log.as_str()]));
        let report = interlock::ask(&self.binary, &words)?;
        let mut broken = Vec::new();
        if report["broken"] != 0 {
            let first = &report["first"];
            broken.push(format!(
                "audit: {} steps are not explained; the first: {} by {} about {}: {}",
                report["broken"],
                first["promise"],
                first["controller"],
                first["subject"],
                first["what"]
            ));
        }
        if report["unreadable"] != 0 {
            broken.push(format!("audit: {} lines cannot be read", report["unreadable"]));
        }
        for (controller, steps) in report["not_judged"].as_object().into_iter().flatten() {
            broken.push(format!("audit: {steps} steps of {controller} are not judged"));
        }
        let steps = report["steps"].as_u64().unwrap_or_default();
        if steps == 0 {
            broken.push("audit: no step is recorded".to_owned());
        }
        Ok((broken, vec![format!("audit: {steps} steps of {} logs", logs.len())]))
    }
}

impl Placed {
    /// What is missing until it runs where it was asked for; `before`: how many records there were.
    fn waits(&self, fleet: &Fleet, before: u64) -> Option<String> {
        let status = fleet.grant(self.name, &self.uid).unwrap_or(Value::Null);
        let Record { number, epoch } = self.ledger.last;
        let is_there = status["phase"] == "Granted" && status["owner"]["name"] == *self.desired;
        let is_written = number > before && status["epoch"] == epoch;
        let waits = || {
            let (name, desired) = (self.name, &self.desired);
            format!(
                "{name} runs on {desired}: {number} records, the last of epoch {epoch}; {status}"
            )
        };
        (!(is_there && is_written)).then(waits)
    }
}

/// Says what was done and what was seen.
pub(crate) fn report(outcome: &Outcome) {
    for (what, count) in &outcome.counts {
        say(&format!("  {count:>6}  {what}"));
    }
    outcome.seen.iter().for_each(|line| say(&format!("  {line}")));
    outcome.broken.iter().for_each(|line| say(&format!("  BROKEN: {line}")));
}
