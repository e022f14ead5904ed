//! Follows moves by watch until they have ended, are blocked, or the time is up.

use super::client::{Fleet, New};
use super::health::judge;
use super::progress::{Follower, Outcome, Progress};
use crate::output::{ProgressLine, complain, say};
use anyhow::Context;
use interlock_api::placement::{Grant, GrantStatus, Phase};
use jiff::Timestamp;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// After so long, what the scheduler says is about the new desired cluster even if it says the same as before.
const SCHEDULER_TIME: Duration = Duration::from_secs(10);
/// How often the line on the terminal is written again.
const REDRAW: Duration = Duration::from_millis(500);

/// One move that is followed.
#[derive(Debug)]
pub(crate) struct Tracked {
    namespace: String,
    namespace_uid: String,
    follower: Follower,
    seen: Option<Grant>,
    progress: Option<Progress>,
    since: Instant,
    /// The first that was reported its data, and when.
    first_data: Option<(Instant, u64)>,
}

/// What a step of a move means for the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    UnderWay,
    Done,
    Blocked,
}

impl Tracked {
    /// Follows the grant of this namespace.
    pub(crate) fn new(namespace: &str, uid: &str, follower: Follower) -> Self {
        Self {
            namespace: namespace.to_owned(),
            namespace_uid: uid.to_owned(),
            follower,
            seen: None,
            progress: None,
            since: Instant::now(),
            first_data: None,
        }
    }

    /// LiveReads again; says whether the phase has changed.
    fn look(&mut self) -> bool {
        let progress = self.follower.look(self.seen.as_ref());
        let plain = |progress: &Progress| progress.plain();
        let is_other = self.progress.as_ref().map(plain) != Some(progress.plain());
        let phase = |progress: &Progress| progress.phase.clone();
        if self.progress.as_ref().map(phase) != Some(progress.phase.clone()) {
            self.since = Instant::now();
        }
        self.first_data =
            progress.data.map(|data| self.first_data.unwrap_or((Instant::now(), data.bytes)));
        self.progress = Some(progress);
        is_other
    }

    /// How fast its data comes, since it was first reported.
    fn bytes_per_second(&self) -> Option<f64> {
        let (began, first) = self.first_data?;
        let bytes = self.progress.as_ref()?.data?.bytes.saturating_sub(first);
        let seconds = began.elapsed().as_secs_f64();
        (bytes > 0 && seconds > 0.0).then(|| bytes as f64 / seconds)
    }

    fn state(&self) -> State {
        match self.progress.as_ref().map(|progress| &progress.outcome) {
            None | Some(Outcome::UnderWay) => State::UnderWay,
            Some(Outcome::Runs { .. }) => State::Done,
            Some(Outcome::Blocked(_) | Outcome::Deleting) => State::Blocked,
        }
    }

    /// How long the move is in its step. It may have begun before we followed it.
    fn in_phase(&self) -> Duration {
        let status = self.seen.as_ref().and_then(|grant| grant.status.as_ref());
        let is_between = |status: &&GrantStatus| match status.phase {
            Phase::Revoking | Phase::Released | Phase::Fenced | Phase::Deleting => true,
            // It may have been granted long before anybody asked for another cluster.
            Phase::Granted | Phase::Unassigned => false,
        };
        let told = status.filter(is_between).and_then(|status| status.phase_since.as_ref());
        let told = told.map(|since| Timestamp::now().duration_since(since.0));
        let told = told.and_then(|told| Duration::try_from(told).ok());
        self.since.elapsed().max(told.unwrap_or_default())
    }

    fn line(&self) -> String {
        let shown = self
            .progress
            .as_ref()
            .map(|progress| progress.line(self.in_phase(), self.bytes_per_second()));
        format!("{}: {}", self.namespace, shown.unwrap_or_default())
    }
}

/// Follows all of them. 0: all run where they were to run; 1: one is blocked, or the time is up; 130:
/// interrupted.
pub(crate) async fn follow(
    fleet: &Fleet,
    mut moves: Vec<Tracked>,
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let line = ProgressLine::default();
    let name = match moves.as_slice() {
        [one] => Some(interlock_api::names::grant_name(&one.namespace, &one.namespace_uid)),
        _ => None,
    };
    let mut news = fleet.follow_grants(name.as_deref());
    // Not before the first news: it would say that there is no grant.
    let mut redraw = tokio::time::interval_at(tokio::time::Instant::now() + REDRAW, REDRAW);
    let deadline = tokio::time::sleep(timeout);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(deadline, interrupted);
    loop {
        tokio::select! {
            new = news.next() => take_in(&mut moves, new),
            _ = redraw.tick() => {
                if began.elapsed() > SCHEDULER_TIME {
                    moves.iter_mut().for_each(|tracked| tracked.follower.believe_all());
                }
            }
            () = &mut deadline => {
                line.clear();
                return time_is_up(fleet, &moves, timeout).await;
            }
            stopped = &mut interrupted => {
                stopped.context("cannot listen for Ctrl-C")?;
                line.clear();
                complain(&gone_on(&moves));
                return Ok(ExitCode::from(130));
            }
        }
        show(&mut moves, &line);
        if moves.iter().all(|tracked| tracked.state() != State::UnderWay) {
            line.clear();
            return end(fleet, &moves, began.elapsed()).await;
        }
    }
}

fn take_in(moves: &mut [Tracked], new: New<Grant>) {
    let (grant, is_there) = match new {
        New::Is(grant) => (grant, true),
        New::Gone(grant) => (grant, false),
    };
    let uid = &grant.spec.namespace.uid;
    if let Some(tracked) = moves.iter_mut().find(|tracked| tracked.namespace_uid == *uid) {
        tracked.seen = is_there.then_some(grant);
    }
}

/// One line that is written over on a terminal, a line for each change elsewhere.
fn show(moves: &mut [Tracked], line: &ProgressLine) {
    let is_terminal = ProgressLine::is_wanted();
    for tracked in moves.iter_mut() {
        let is_other = tracked.look();
        if is_other
            && !is_terminal
            && let Some(progress) = &tracked.progress
        {
            complain(&format!("{}: {}", tracked.namespace, progress.plain()));
        }
    }
    if !is_terminal {
        return;
    }
    let done = moves.iter().filter(|tracked| tracked.state() == State::Done).count();
    let under_way = moves.iter().find(|tracked| tracked.state() == State::UnderWay);
    match (under_way, moves.len()) {
        (None, _) => {}
        (Some(under_way), 1) => line.show(&under_way.line()),
        (Some(under_way), all) => {
            line.show(&format!("{done} of {all} run there; {}", under_way.line()))
        }
    }
}

fn gone_on(moves: &[Tracked]) -> String {
    let what = if moves.len() == 1 { "the move continues" } else { "the moves continue" };
    let next = match moves {
        [one] => format!("interlock status {} --watch", one.namespace),
        _ => "interlock status --watch".to_owned(),
    };
    format!("interrupted: {what}\nnext: {next}")
}

/// Each has ended one way or the other.
async fn end(fleet: &Fleet, moves: &[Tracked], took: Duration) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for tracked in moves {
        let name = &tracked.namespace;
        match tracked.progress.as_ref().map(|progress| &progress.outcome) {
            Some(Outcome::Runs { on, epoch }) => {
                let seconds = took.as_secs_f64();
                say(&format!("{name} runs on {on} (epoch {epoch}), after {seconds:.1} s\n"))?;
            }
            Some(Outcome::Blocked(why)) => {
                code = ExitCode::FAILURE;
                say(&format!("{name} is blocked: {why}\n{}", next(fleet, name, why).await?))?;
            }
            Some(Outcome::Deleting) => {
                code = ExitCode::FAILURE;
                say(&format!("{name} is being deleted: it does not run on any cluster\n"))?;
            }
            Some(Outcome::UnderWay) | None => {}
        }
    }
    Ok(code)
}

/// The next command, unless the reason has it already.
async fn next(fleet: &Fleet, name: &str, why: &str) -> anyhow::Result<String> {
    if why.contains("interlock force-release") {
        return Ok(String::new());
    }
    let picture = fleet.picture_of(name).await?;
    let verdict = picture.subjects.first().map(|subject| judge(&picture, subject));
    let next = verdict.and_then(|verdict| verdict.next);
    Ok(format!("next: {}\n", next.unwrap_or_else(|| format!("interlock explain {name}"))))
}

/// The time is up: what each waits for.
async fn time_is_up(
    fleet: &Fleet,
    moves: &[Tracked],
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
    let seconds = timeout.as_secs();
    for tracked in moves {
        let name = &tracked.namespace;
        let Some(progress) = &tracked.progress else { continue };
        match tracked.state() {
            State::UnderWay => {
                let next = next(fleet, name, "").await?;
                say(&format!(
                    "{name} does not run there after {seconds} s, and the move continues: {} ({}), \
                        waiting for {}\n{next}",
                    progress.phase, progress.detail, progress.waits_for,
                ))?;
            }
            State::Done => say(&format!("{name} runs there\n"))?,
            State::Blocked => say(&format!("{name} is blocked\n"))?,
        }
    }
    Ok(ExitCode::FAILURE)
}
