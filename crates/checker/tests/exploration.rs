//! The engine against the naive explorer, and what it refuses.

mod support;

use interlock_checker::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::Drawn;

/// Counters modulo some number, as many as asked: a space of any size whose counts are known.
#[derive(Debug, Clone)]
struct Counters {
    count: usize,
    modulus: u8,
    lie: Lie,
}

/// What the model falsely declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    None,
    StepReadsFlag,
    StepChangesFlag,
    InvariantReadsFlag,
    FlagStaysDown,
    SymmetryOfUnlikes,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct State {
    counters: [u8; 6],
    up: bool,
}

impl Counters {
    fn honest(count: usize, modulus: u8) -> Self {
        Counters { count, modulus, lie: Lie::None }
    }
}

impl Model for Counters {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        format!("count={},modulus={}", self.count, self.modulus)
    }
    fn code(&self, state: &mut State, coder: &mut Coder) {
        for counter in &mut state.counters[..self.count] {
            coder.u8(counter, 8);
        }
        coder.bool(&mut state.up);
    }
    fn initial(&self) -> Vec<State> {
        vec![State { counters: [0; 6], up: true }]
    }
    fn actions(&self) -> Vec<Action> {
        let mut actions: Vec<_> =
            (0..self.count).map(|n| Action::new(format!("Count({n})"), "counter")).collect();
        actions.extend([Action::new("Cut", "world"), Action::new("Heal", "world")]);
        actions
    }
    fn next(&self, state: &State, steps: &mut Steps<State>) {
        for n in 0..self.count {
            let mut next = state.clone();
            let stride = if self.lie == Lie::SymmetryOfUnlikes && n == 0 { 2 } else { 1 };
            next.counters[n] = (next.counters[n] + stride) % self.modulus;
            if self.lie == Lie::StepChangesFlag && next.counters[0] == 3 {
                next.up = false;
            }
            if self.lie != Lie::StepReadsFlag || state.up || next.counters[0] != 3 {
                steps.step_while(1, n as ActionId, next);
            }
        }
    }
    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        vec![("counters", format!("{:?}", state.counters)), ("up", state.up.to_string())]
    }
    fn invariants(&self) -> Vec<Invariant<State>> {
        let (last, lie) = (self.modulus - 1, self.lie);
        vec![Invariant::new("NotAllLast", "not every counter is at its last", move |s: &State| {
            let reads_flag = lie == Lie::InvariantReadsFlag && !s.up;
            !reads_flag && s.counters[..2] != [last, last]
        })]
    }
    fn flags(&self) -> Vec<Flag> {
        let (cut, heal) = (self.count as ActionId, self.count as ActionId + 1);
        let mut flag = Flag::up_down("up", 1, cut, heal);
        if self.lie == Lie::FlagStaysDown {
            flag.moves.truncate(1);
        }
        vec![flag]
    }
    fn flag_bits(&self, state: &State) -> u64 {
        u64::from(state.up)
    }
    fn with_flag_bits(&self, state: &State, flags: u64) -> State {
        State { up: flags == 1, ..state.clone() }
    }
    fn symmetries(&self) -> usize {
        1
    }
    fn permute(&self, state: &State, _permutation: usize) -> State {
        let mut image = state.clone();
        image.counters.swap(0, 1);
        image
    }
}

fn quick() -> Options {
    Options { workers: 2, liveness: Liveness::Off, ..Options::default() }
}

#[test]
fn every_way_of_walking_gives_the_counts_of_the_naive_explorer() {
    let model = Counters::honest(3, 9);
    let naive = reference::explore(&model);
    assert_eq!(naive.distinct, 9 * 9 * 9 * 2);
    for (symmetry, liveness) in
        [(false, Liveness::Off), (true, Liveness::Off), (false, Liveness::On)]
    {
        let options = Options { symmetry, liveness, ..quick() };
        let report = check("counters", &model, &options).unwrap();
        let counts = (report.distinct_states, report.generated_states, report.depth);
        assert_eq!(
            counts,
            (naive.distinct, naive.generated, naive.depth),
            "{symmetry} {liveness:?}"
        );
        let finding = &report.invariants[0];
        assert_eq!(finding.verdict, Verdict::Violated);
        assert_eq!(finding.steps.unwrap() + 1, naive.violated[0].1);
        assert_eq!(finding.trace.as_ref().unwrap().states.len() as u32, naive.violated[0].1);
    }
}

#[test]
fn random_graphs_have_the_same_counts_and_the_same_shortest_traces() {
    let mut rng = Rng::new(5);
    for round in 0..500 {
        let states = 2 + rng.below(40) as u8;
        let edges = (0..rng.below(120))
            .map(|_| (rng.below(states as usize) as u8, 0, rng.below(states as usize) as u8))
            .collect();
        let bad = 1 << rng.below(states as usize);
        let model =
            Drawn { states, initial: vec![0, 1], actions: 1, edges, bad, ..Drawn::default() };
        let naive = reference::explore(&model);
        let report = check("drawn", &model, &quick()).unwrap();
        let counts = (report.distinct_states, report.generated_states, report.depth);
        assert_eq!(counts, (naive.distinct, naive.generated, naive.depth), "round {round}");
        let steps = report.invariants[0].steps.map(|steps| steps + 1);
        assert_eq!(steps, naive.violated.first().map(|(_, level)| *level), "round {round}");
    }
}

#[test]
fn a_false_declaration_is_refused_and_says_what_gives_it_away() {
    for (lie, word) in [
        (Lie::StepReadsFlag, "reads it"),
        (Lie::StepChangesFlag, "changes it"),
        (Lie::InvariantReadsFlag, "NotAllLast reads it"),
        (Lie::FlagStaysDown, "cannot come up again"),
        (Lie::SymmetryOfUnlikes, "different steps"),
    ] {
        let model = Counters { lie, ..Counters::honest(2, 5) };
        let options = Options { symmetry: lie == Lie::SymmetryOfUnlikes, ..quick() };
        let error = check("counters", &model, &options).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("refused"), "{lie:?}: {error}");
    }
}

#[test]
fn the_first_violation_ends_the_search_when_only_that_is_wanted() {
    let model = Counters::honest(4, 12);
    let report = check("counters", &model, &Options { first: true, ..quick() }).unwrap();
    assert!(!report.complete);
    assert_eq!(report.invariants[0].steps, Some(22));
    assert!(report.distinct_states < 12 * 12 * 12 * 12 * 2);
}

#[test]
fn fingerprints_give_the_same_counts_and_traces_and_tell_their_odds() {
    let model = Counters::honest(3, 9);
    let exact = check("counters", &model, &quick()).unwrap();
    let options = Options { fingerprints: true, ..quick() };
    let hashed = check("counters", &model, &options).unwrap();
    assert_eq!(
        (hashed.distinct_states, hashed.generated_states, hashed.depth),
        (exact.distinct_states, exact.generated_states, exact.depth)
    );
    assert!(hashed.complete && hashed.collision_odds.is_some_and(|odds| odds < 1e-10));
    assert_eq!(exact.collision_odds, None);
    let states = |report: &Report| report.invariants[0].trace.as_ref().unwrap().states.len();
    assert_eq!(states(&hashed), states(&exact));
    let both = Options { liveness: Liveness::On, ..options };
    let error = check("counters", &model, &both).unwrap_err().to_string();
    assert!(error.contains("fingerprints"), "{error}");
}

#[test]
fn a_depth_that_was_asked_for_is_not_passed() {
    let options = Options { max_depth: Some(4), ..quick() };
    let report = check("counters", &Counters::honest(3, 9), &options).unwrap();
    assert!(!report.complete);
    assert_eq!(report.stopped.as_deref(), Some("as many levels were explored as were asked for"));
    assert!(report.distinct_states < 9 * 9 * 9 * 2);
}

#[test]
fn a_promise_that_does_not_exist_is_an_error_that_lists_those_that_do() {
    let options = Options { only: vec!["NotAllLost".to_owned()], ..quick() };
    let error = check("counters", &Counters::honest(2, 5), &options).unwrap_err().to_string();
    assert!(error.contains("`NotAllLost`") && error.contains("NotAllLast"), "{error}");
}

fn checkpoint(name: &str) -> std::path::PathBuf {
    let dir = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&dir).expect("the build folder can be written");
    dir.join(format!("{name}-{}", std::process::id()))
}

#[test]
fn a_check_that_ran_out_of_memory_goes_on_from_its_checkpoint() {
    let model = Counters::honest(4, 30);
    let whole = check("counters", &model, &quick()).unwrap();
    let path = checkpoint("memory");
    let cut = Options { max_memory: Some(4 << 20), checkpoint: Some(path.clone()), ..quick() };
    let partial = check("counters", &model, &cut).unwrap();
    assert!(!partial.complete && partial.distinct_states < whole.distinct_states);
    let on = Options { checkpoint: Some(path.clone()), resume: true, ..quick() };
    let resumed = check("counters", &model, &on).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(resumed.complete);
    assert_eq!(resumed.distinct_states, whole.distinct_states);
    assert_eq!(resumed.generated_states, whole.generated_states);
    assert_eq!(resumed.depth, whole.depth);
    assert_eq!(resumed.invariants[0].steps, whole.invariants[0].steps);
}

#[test]
fn a_check_that_was_interrupted_tells_what_it_saw_and_goes_on_later() {
    let model = Counters::honest(4, 30);
    let path = checkpoint("interrupt");
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let options = Options {
        checkpoint: Some(path.clone()),
        stop,
        progress: Some(Arc::new(move |_| asked.store(true, Ordering::Relaxed))),
        workers: 1,
        ..quick()
    };
    options.stop.store(true, Ordering::Relaxed);
    let partial = check("counters", &model, &options).unwrap();
    assert_eq!(partial.stopped.as_deref(), Some("interrupted"));
    assert!(partial.distinct_states > 0);
    let on = Options { checkpoint: Some(path.clone()), resume: true, ..quick() };
    assert_eq!(check("counters", &model, &on).unwrap().distinct_states, 30 * 30 * 30 * 30 * 2);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_checkpoint_of_something_else_or_damaged_is_refused() {
    let path = checkpoint("refused");
    let cut = Options { max_memory: Some(1), checkpoint: Some(path.clone()), ..quick() };
    check("counters", &Counters::honest(4, 30), &cut).unwrap();
    let on = Options { checkpoint: Some(path.clone()), resume: true, ..quick() };
    let refuse = |model: &Counters| check("counters", model, &on).unwrap_err().to_string();
    assert!(refuse(&Counters::honest(3, 30)).contains("this check is of"));

    let whole = std::fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() - 100;
    damaged[middle] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    assert!(refuse(&Counters::honest(4, 30)).contains("damaged"));
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(refuse(&Counters::honest(4, 30)).contains("ends too early"));
    let mut newer = whole;
    newer[8] = 99;
    std::fs::write(&path, &newer).unwrap();
    assert!(refuse(&Counters::honest(4, 30)).contains("of version 99"));
    std::fs::remove_file(&path).unwrap();
    assert!(refuse(&Counters::honest(4, 30)).contains("No such file"));
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_an_error_and_leaves_the_old_one() {
    let path = checkpoint("unwritable");
    std::fs::write(&path, "the old one").unwrap();
    // A folder stands where the new file is to be written first.
    let partial = path.with_extension("partial");
    std::fs::create_dir_all(&partial).unwrap();
    let cut = Options { max_memory: Some(1), checkpoint: Some(path.clone()), ..quick() };
    let error = check("counters", &Counters::honest(4, 30), &cut).unwrap_err().to_string();
    assert!(error.contains("cannot use the checkpoint"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "the old one");
    std::fs::remove_dir(&partial).unwrap();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn the_same_seed_gives_the_same_walks_whatever_the_workers() {
    let model = Counters::honest(3, 9);
    let walk = |workers| {
        let walks = Walks { traces: 3_000, depth: 60, workers, ..Walks::default() };
        let walked = simulate("counters", &model, &walks);
        let first = &walked.violations[0];
        (walked.steps, first.trace_number, first.walked_steps, first.steps)
    };
    assert_eq!(walk(1), walk(2));
    // Sixteen steps are the shortest way to two counters at 8; a walk may go round once more, but no
    // step of the third counter and no cut with its healing is left.
    let (_, _, walked, shrunk) = walk(1);
    assert!(shrunk < walked && (shrunk - 16) % 9 == 0, "{walked} steps became {shrunk}");
}
