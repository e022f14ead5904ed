//! Exhaustive breadth-first exploration on all cores.
//!
//! Each round has two halves. First every worker takes states of the present level, expands them, and
//! sorts the successors by shard. Then every worker owns some shards and adds to them what all workers
//! found. Nothing is locked in the middle of a half, and no state is ever dropped or hashed away.

use crate::edges::{Block, Recorder};
use crate::error::CheckError;
use crate::model::{ActionId, Model, Steps};
use crate::options::{Options, Progress};
use crate::rng::Rng;
use crate::space::Space;
use crate::store::{SHARDS, Shard, shard_of};
use crate::walk::{Facts, StepPromise, Visit, Walk, Walker};
use crate::word::Word;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// Why an exploration ended before it was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A person asked.
    Interrupted,
    /// The memory that was allowed is used up.
    Memory,
    /// A violation was found and only the first was wanted.
    FirstViolation,
    /// As many levels were explored as were asked for.
    Depth,
}

/// Every step from `state`, those of the flags included.
pub fn successors<M: Model>(model: &M, state: &M::State, steps: &mut Steps<M::State>) {
    Space::plain(model).expand(state, steps);
}

/// A state in which something was seen first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sighting<W> {
    pub(crate) level: u32,
    pub(crate) state: W,
    /// For steps: the action and the state after it.
    pub(crate) step: Option<(ActionId, W)>,
}

/// What was seen so far: merged from all workers.
#[derive(Debug, Clone)]
pub(crate) struct Seen<W> {
    pub(crate) generated: u64,
    pub(crate) distinct: u64,
    pub(crate) expanded: u64,
    pub(crate) transitions: u64,
    pub(crate) verified: u64,
    pub(crate) invariants: Vec<Option<Sighting<W>>>,
    pub(crate) rules: Vec<Option<Sighting<W>>>,
    pub(crate) refinements: Vec<Option<Sighting<W>>>,
    pub(crate) reachable: Vec<Option<Sighting<W>>>,
    pub(crate) deadlock: Option<Sighting<W>>,
    pub(crate) actions: Vec<u64>,
}

impl<W: Word> Seen<W> {
    fn new(facts: &Facts) -> Self {
        Seen {
            generated: 0,
            distinct: 0,
            expanded: 0,
            transitions: 0,
            verified: 0,
            invariants: vec![None; facts.invariants.len()],
            rules: vec![None; facts.rules.len()],
            refinements: vec![None; facts.refinements.len()],
            reachable: vec![None; facts.reachable.len()],
            deadlock: None,
            actions: vec![0; facts.actions.len()],
        }
    }

    fn merge(&mut self, other: Seen<W>) {
        self.generated += other.generated;
        self.distinct += other.distinct;
        self.expanded += other.expanded;
        self.transitions += other.transitions;
        self.verified += other.verified;
        for (mine, theirs) in [
            (&mut self.invariants, other.invariants),
            (&mut self.rules, other.rules),
            (&mut self.refinements, other.refinements),
            (&mut self.reachable, other.reachable),
        ] {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                keep_first(mine, theirs);
            }
        }
        keep_first(&mut self.deadlock, other.deadlock);
        for (mine, theirs) in self.actions.iter_mut().zip(other.actions) {
            *mine += theirs;
        }
    }

    /// The deepest level at which something that needs a trace was seen.
    pub(crate) fn last_violation(&self) -> Option<u32> {
        let kinds = [&self.invariants, &self.rules, &self.refinements];
        let sightings = kinds.into_iter().flatten().flatten().chain(&self.deadlock);
        sightings.map(|sighting| sighting.level).max()
    }

    fn is_violated(&self) -> bool {
        self.deadlock.is_some()
            || [&self.invariants, &self.rules, &self.refinements]
                .iter()
                .any(|kind| kind.iter().any(Option::is_some))
    }
}

/// Keeps the sighting nearest to the start; among equals the smallest, so that the outcome does not
/// depend on which worker was faster.
fn keep_first<W: Ord>(mine: &mut Option<Sighting<W>>, theirs: Option<Sighting<W>>) {
    let Some(theirs) = theirs else { return };
    if mine.as_ref().is_none_or(|mine| theirs < *mine) {
        *mine = Some(theirs);
    }
}

/// A space that was explored, wholly or in part.
#[derive(Debug)]
pub(crate) struct Explored<W> {
    pub(crate) shards: Vec<RwLock<Shard<W>>>,
    pub(crate) seen: Seen<W>,
    /// Levels that have states.
    pub(crate) depth: u32,
    pub(crate) stop: Option<Stop>,
    /// How many tasks of the last level were expanded; an exploration that was stopped goes on here.
    pub(crate) next_task: usize,
    /// The steps out of every state, by shard, if they were noted.
    pub(crate) edges: Option<Vec<Vec<Block>>>,
    pub(crate) elapsed: Duration,
    pub(crate) peak_bytes: usize,
}

impl<W: Word> Explored<W> {
    pub(crate) fn read(&self, shard: usize) -> RwLockReadGuard<'_, Shard<W>> {
        read(&self.shards[shard])
    }

    pub(crate) fn stored(&self) -> usize {
        (0..SHARDS).map(|shard| self.read(shard).len()).sum()
    }
}

// A worker that panics takes the whole scope down with it, so a poisoned lock is never seen.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}
fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}
pub(crate) fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// States expanded as one task.
const TASK_STATES: u32 = 1024;
/// Successors that a worker gathers before they are added to the shards: so many that a shard gets
/// thousands at a time, and is fetched from far memory once for all of them.
const BUFFERED_BYTES: usize = 4 << 20;
/// Successors that a worker remembers; their table must stay in its nearest cache.
const RECENT: usize = 1 << 12;

struct Shared<'a, W> {
    walk: &'a dyn Walk<W>,
    facts: &'a Facts,
    options: &'a Options,
    shards: &'a [RwLock<Shard<W>>],
    /// `found[worker][shard]`: successors on their way to a shard.
    found: Vec<Vec<Mutex<Vec<W>>>>,
    /// `placed[worker][shard]`: where they were put, if steps are noted.
    placed: Vec<Vec<Mutex<Vec<u32>>>>,
    /// The steps out of the states of each shard.
    edges: Vec<Mutex<Vec<Block>>>,
    edge_bytes: AtomicUsize,
    /// Whether steps are noted; given up when there are too many states to use them.
    noting: AtomicBool,
    /// The most states for which they are.
    noted_states: u64,
    tasks: RwLock<Vec<(u16, u32, u32)>>,
    next_task: AtomicUsize,
    level: AtomicUsize,
    barrier: Barrier,
    done: AtomicBool,
    violated: AtomicBool,
    states: AtomicU64,
    transitions: AtomicU64,
    refused: Mutex<Option<CheckError>>,
    stop: Mutex<Option<Stop>>,
    peak_bytes: AtomicUsize,
    started: Instant,
}

/// Explores the space from its initial states, or on from where `from` was stopped. The steps
/// between states are noted while there are at most `noted_states`.
pub(crate) fn explore<W: Word>(
    walk: &dyn Walk<W>,
    options: &Options,
    from: Option<Explored<W>>,
    noted_states: u64,
) -> Result<Explored<W>, CheckError> {
    let workers = options.workers.clamp(1, SHARDS);
    // An exploration that goes on from a checkpoint has not seen the steps before it.
    let noting = noted_states > 0 && from.is_none();
    let mut before = from.unwrap_or_else(|| begin(walk, options));
    let base = before.elapsed;
    let shared = Shared {
        walk,
        facts: walk.facts(),
        options,
        shards: &before.shards,
        found: (0..workers).map(|_| (0..SHARDS).map(|_| Mutex::default()).collect()).collect(),
        placed: (0..workers).map(|_| (0..SHARDS).map(|_| Mutex::default()).collect()).collect(),
        edges: (0..SHARDS).map(|_| Mutex::default()).collect(),
        edge_bytes: AtomicUsize::new(0),
        noting: AtomicBool::new(noting),
        noted_states,
        tasks: RwLock::new(Vec::new()),
        next_task: AtomicUsize::new(0),
        level: AtomicUsize::new(before.depth as usize),
        barrier: Barrier::new(workers),
        done: AtomicBool::new(false),
        violated: AtomicBool::new(before.seen.is_violated()),
        states: AtomicU64::new(before.seen.expanded),
        transitions: AtomicU64::new(before.seen.transitions),
        refused: Mutex::new(None),
        stop: Mutex::new(None),
        peak_bytes: AtomicUsize::new(0),
        started: Instant::now(),
    };
    shared.set_tasks();
    shared.next_task.store(before.next_task, Ordering::Relaxed);
    let seen = std::thread::scope(|scope| {
        let handles: Vec<_> = (1..workers)
            .map(|number| {
                let shared = &shared;
                scope.spawn(move || Worker::new(shared, number).run())
            })
            .collect();
        let mut seen = Worker::new(&shared, 0).run();
        for handle in handles {
            match handle.join() {
                Ok(theirs) => seen.merge(theirs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        seen
    });
    if let Some(refused) = hold(&shared.refused).take() {
        return Err(refused);
    }
    let stop = *hold(&shared.stop);
    let depth = shared.level.load(Ordering::Relaxed) as u32;
    let (elapsed, peak) = (shared.started.elapsed(), shared.peak_bytes.load(Ordering::Relaxed));
    let next_task = shared.next_task.load(Ordering::Relaxed);
    let edges = shared
        .noting
        .load(Ordering::Relaxed)
        .then(|| shared.edges.iter().map(|blocks| std::mem::take(&mut *hold(blocks))).collect());
    drop(shared);
    before.edges = edges;
    before.next_task = next_task;
    before.seen.merge(seen);
    before.stop = stop;
    before.depth = depth;
    before.elapsed = base + elapsed;
    before.peak_bytes = before.peak_bytes.max(peak);
    Ok(before)
}

/// The initial states, as level 1.
fn begin<W: Word>(walk: &dyn Walk<W>, options: &Options) -> Explored<W> {
    let empty = if options.fingerprints { Shard::forgetful } else { Shard::new };
    let mut shards: Vec<Shard<W>> = (0..SHARDS).map(|_| empty()).collect();
    let mut seen = Seen::new(walk.facts());
    for word in walk.initial() {
        seen.generated += 1;
        let key = walk.key(&word);
        shards[shard_of(key.mix())].insert_all(&[key]);
        let badly = walk.starts_badly(&word);
        for (number, sighting) in seen.refinements.iter_mut().enumerate() {
            if badly >> number & 1 == 1 {
                keep_first(sighting, Some(Sighting { level: 1, state: key, step: None }));
            }
        }
    }
    shards.iter_mut().for_each(Shard::end_level);
    Explored {
        shards: shards.into_iter().map(RwLock::new).collect(),
        seen,
        depth: 1,
        stop: None,
        next_task: 0,
        edges: None,
        elapsed: Duration::ZERO,
        peak_bytes: 0,
    }
}

impl<W: Word> Shared<'_, W> {
    /// Cuts the states of the present level into tasks.
    fn set_tasks(&self) {
        let level = self.level.load(Ordering::Relaxed) as u32;
        let mut tasks = write(&self.tasks);
        tasks.clear();
        for (number, shard) in self.shards.iter().enumerate() {
            let states = read(shard).level(level);
            let mut start = states.start;
            while start < states.end {
                let end = states.end.min(start + TASK_STATES);
                tasks.push((number as u16, start, end));
                start = end;
            }
        }
        self.next_task.store(0, Ordering::Relaxed);
    }

    /// Run by one worker between two rounds: goes on to the next level, or ends.
    fn between_rounds(&self, last_progress: &mut Instant) {
        let bytes: usize = self.shards.iter().map(|shard| read(shard).bytes()).sum();
        self.peak_bytes.fetch_max(bytes, Ordering::Relaxed);
        let bytes = bytes + self.edge_bytes.load(Ordering::Relaxed);
        self.give_up_noting();
        if hold(&self.refused).is_some() {
            self.done.store(true, Ordering::Relaxed);
            return;
        }
        if last_progress.elapsed() >= Duration::from_millis(500) {
            *last_progress = Instant::now();
            self.report_progress(bytes);
        }
        if self.next_task.load(Ordering::Relaxed) >= read(&self.tasks).len() {
            self.end_level();
        }
        let full = self.shards.iter().any(|shard| read(shard).is_full(1 << 20));
        let stop = if self.options.is_stopped() {
            Some(Stop::Interrupted)
        } else if full || self.options.max_memory.is_some_and(|most| bytes > most) {
            Some(Stop::Memory)
        } else if self.options.first && self.violated.load(Ordering::Relaxed) {
            Some(Stop::FirstViolation)
        } else if self
            .options
            .max_depth
            .is_some_and(|most| self.level.load(Ordering::Relaxed) > most as usize)
        {
            Some(Stop::Depth)
        } else {
            None
        };
        if stop.is_some() && !self.done.load(Ordering::Relaxed) {
            *hold(&self.stop) = stop;
            self.done.store(true, Ordering::Relaxed);
        }
    }

    /// Steps that will not be used are not worth their memory.
    fn give_up_noting(&self) {
        let states = self.states.load(Ordering::Relaxed);
        if states > self.noted_states && self.noting.swap(false, Ordering::Relaxed) {
            self.edges.iter().for_each(|blocks| *hold(blocks) = Vec::new());
            self.edge_bytes.store(0, Ordering::Relaxed);
        }
    }

    fn end_level(&self) {
        let level = self.level.load(Ordering::Relaxed) as u32;
        let fresh: usize = self.shards.iter().map(|shard| read(shard).level(level + 1).len()).sum();
        if fresh == 0 {
            self.done.store(true, Ordering::Relaxed);
            return;
        }
        for shard in self.shards {
            let mut shard = write(shard);
            shard.end_level();
            shard.forget_before(level + 1);
        }
        self.level.store(level as usize + 1, Ordering::Relaxed);
        self.set_tasks();
    }

    fn report_progress(&self, bytes: usize) {
        let Some(progress) = &self.options.progress else { return };
        let stored: usize = self.shards.iter().map(|shard| read(shard).len()).sum();
        let expanded = self.states.load(Ordering::Relaxed);
        progress(&Progress {
            stored: stored as u64,
            queued: stored as u64 - expanded.min(stored as u64),
            transitions: self.transitions.load(Ordering::Relaxed),
            depth: self.level.load(Ordering::Relaxed) as u32,
            bytes: bytes as u64,
            elapsed: self.started.elapsed(),
            multiplier: self.facts.product.as_ref().map_or(1, |product| product.count),
        });
    }
}

struct Worker<'a, W: Word> {
    shared: &'a Shared<'a, W>,
    number: usize,
    walker: Box<dyn Walker<W> + 'a>,
    visit: Visit<W>,
    seen: Seen<W>,
    out: Vec<Vec<W>>,
    buffered: usize,
    /// Successors met a moment ago, by hash: most repeats come close together.
    recent: Vec<W>,
    rng: Rng,
    recorder: Recorder,
    /// In how many valuations of the flags a need is met, for the needs met so far.
    met: Vec<(u64, u64)>,
}

impl<'a, W: Word> Worker<'a, W> {
    fn new(shared: &'a Shared<'a, W>, number: usize) -> Self {
        // Any state that is surely known may fill the cache; the initial one is.
        let known =
            shared.walk.initial().first().map_or(W::default(), |word| shared.walk.key(word));
        Worker {
            shared,
            number,
            walker: shared.walk.walker(),
            visit: Visit::default(),
            seen: Seen::new(shared.facts),
            out: vec![Vec::new(); SHARDS],
            buffered: 0,
            recent: vec![known; RECENT],
            rng: Rng::new(number as u64),
            recorder: Recorder::new(RECENT),
            met: Vec::new(),
        }
    }

    fn run(mut self) -> Seen<W> {
        let mut last_progress = Instant::now();
        loop {
            let noting = self.shared.noting.load(Ordering::Relaxed);
            self.recorder.begin_round(noting);
            self.expand_tasks();
            self.hand_over();
            self.shared.barrier.wait();
            self.add_to_own_shards(noting);
            self.shared.barrier.wait();
            if noting {
                self.keep_edges();
            }
            if self.number == 0 {
                self.shared.between_rounds(&mut last_progress);
            }
            self.shared.barrier.wait();
            if self.shared.done.load(Ordering::Relaxed) {
                return self.seen;
            }
        }
    }

    fn expand_tasks(&mut self) {
        let shared = self.shared;
        let level = shared.level.load(Ordering::Relaxed) as u32;
        let tasks = read(&shared.tasks);
        while self.buffered < BUFFERED_BYTES / W::BYTES {
            let task = shared.next_task.fetch_add(1, Ordering::Relaxed);
            let Some((number, start, end)) = tasks.get(task).copied() else {
                // Counted past the end: taken back, so that a checkpoint has the true number.
                shared.next_task.fetch_sub(1, Ordering::Relaxed);
                break;
            };
            let before = self.seen.transitions;
            let shard = read(&shared.shards[number as usize]);
            self.recorder.begin_block(number, start);
            for index in start..end {
                let word = shard.get(index);
                self.expand(&word, level);
                self.recorder.end_state();
            }
            shared.states.fetch_add(u64::from(end - start), Ordering::Relaxed);
            shared.transitions.fetch_add(self.seen.transitions - before, Ordering::Relaxed);
        }
    }

    #[inline]
    fn expand(&mut self, word: &W, level: u32) {
        let mut visit = std::mem::take(&mut self.visit);
        self.walker.visit(word, &mut visit);
        let here = Sighting { level, state: *word, step: None };
        self.note_findings(&visit, here);
        let product = self.shared.facts.product.as_ref();
        let (flags, mut ways) = product.map_or((1, 0), |product| (product.count, product.moves));
        self.seen.expanded += 1;
        self.seen.distinct += visit.orbit * flags;
        self.seen.transitions += visit.hops.len() as u64;
        for hop in &visit.hops {
            self.seen.actions[hop.action as usize] += 1;
            ways += if flags == 1 { 1 } else { self.met(hop.needs) };
            self.send(hop.key, hop.to != *word, hop.action);
        }
        self.seen.generated += visit.orbit * ways;
        if visit.hops.is_empty() && flags == 1 {
            self.at_rest(here);
        }
        self.visit = visit;
    }

    /// Notes what the state and its steps break or reach, and verifies the declarations on it.
    #[inline]
    fn note_findings(&mut self, visit: &Visit<W>, here: Sighting<W>) {
        if visit.broken != 0 || !visit.bad_steps.is_empty() {
            self.note_broken(visit, here);
        }
        for (number, first) in self.seen.reachable.iter_mut().enumerate() {
            if first.is_none() && visit.reached >> number & 1 == 1 {
                *first = Some(here);
            }
        }
        let facts = self.shared.facts;
        if facts.product.is_none() && facts.permutations == 0 {
            return;
        }
        // The declarations are held against every early state, and one in sixteen after that.
        if self.seen.expanded < 4096 || here.state.mix() & 0xf0_0000 == 0 {
            self.seen.verified += 1;
            if let Err(refused) = self.walker.verify(&here.state, &mut self.rng) {
                hold(&self.shared.refused).get_or_insert(refused);
            }
        }
    }

    fn note_broken(&mut self, visit: &Visit<W>, here: Sighting<W>) {
        self.shared.violated.store(true, Ordering::Relaxed);
        for (number, first) in self.seen.invariants.iter_mut().enumerate() {
            if visit.broken >> number & 1 == 1 {
                keep_first(first, Some(here));
            }
        }
        for bad in &visit.bad_steps {
            let hop = &visit.hops[bad.hop];
            let step = Sighting { step: Some((hop.action, hop.key)), ..here };
            match bad.breaks {
                StepPromise::Rule(number) => keep_first(&mut self.seen.rules[number], Some(step)),
                StepPromise::Refinement(number) => {
                    keep_first(&mut self.seen.refinements[number], Some(step));
                }
            }
        }
    }

    /// Puts a successor on its way to its shard; one that was sent a moment ago is not sent again.
    #[inline]
    fn send(&mut self, word: W, changes: bool, action: ActionId) {
        let hash = word.mix();
        let (shard, slot) = (shard_of(hash), (hash >> 20) as usize % RECENT);
        let known = self.recent[slot] == word;
        if self.recorder.is_on() {
            let sent = self.out[shard].len() as u32;
            let (place, again) = self.recorder.place(slot, known, sent);
            if changes {
                self.recorder.edge(shard, place, action);
            }
            if again {
                return;
            }
        } else if known {
            return;
        }
        self.recent[slot] = word;
        self.out[shard].push(word);
        self.buffered += 1;
    }

    /// Turns the steps of this round into edges, now that every successor has its place.
    fn keep_edges(&mut self) {
        let placed: Vec<_> = self.shared.placed[self.number].iter().map(hold).collect();
        let mut bytes = 0;
        for (shard, block) in self.recorder.blocks(|shard, place| placed[shard][place as usize]) {
            bytes += block.bytes();
            hold(&self.shared.edges[shard as usize]).push(block);
        }
        self.shared.edge_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn met(&mut self, needs: u64) -> u64 {
        if let Some((_, count)) = self.met.iter().find(|(known, _)| *known == needs) {
            return *count;
        }
        let count = self.shared.facts.product.as_ref().map_or(1, |product| product.with_up(needs));
        self.met.push((needs, count));
        count
    }

    fn at_rest(&mut self, here: Sighting<W>) {
        if !self.shared.facts.deadlock || self.shared.walk.may_rest(&here.state) {
            return;
        }
        self.shared.violated.store(true, Ordering::Relaxed);
        keep_first(&mut self.seen.deadlock, Some(here));
    }

    fn hand_over(&mut self) {
        for (out, found) in self.out.iter_mut().zip(&self.shared.found[self.number]) {
            std::mem::swap(out, &mut hold(found));
        }
        self.buffered = 0;
    }

    fn add_to_own_shards(&mut self, noting: bool) {
        let workers = self.shared.found.len();
        for number in (self.number..SHARDS).step_by(workers) {
            let mut shard = write(&self.shared.shards[number]);
            for (found, placed) in self.shared.found.iter().zip(&self.shared.placed) {
                let mut words = hold(&found[number]);
                if noting {
                    let mut placed = hold(&placed[number]);
                    placed.clear();
                    shard.insert_noting(&words, |index| placed.push(index));
                } else {
                    shard.insert_all(&words);
                }
                words.clear();
            }
        }
    }
}
