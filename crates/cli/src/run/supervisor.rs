//! Serves the WorkloadClusters that are logical clusters of this process, as they come and go.
//!
//! It watches the WorkloadClusters at the hub. [`decide`] says which agents to start and which to stop;
//! here is how that is seen and done. Each start and each stop is a task of its own, so that one cluster
//! holds up no other.

mod actions;
mod report;

pub(crate) use actions::{Ground, make_logical_cluster};

use super::access::HUB;
use super::streams::serve_at_hub;
use actions::{Held, Letting};
use anyhow::anyhow;
use interlock_api::placement::WorkloadCluster;
use interlock_apiserver::streams::Registration;
use interlock_kernel::{Place, Watch};
use interlock_placement::kinds::WORKLOAD_CLUSTER;
use interlock_programs::supervisor::{
    Action, Facts, Refusal, Registered, Service, Started, State, decide, pause,
};
use interlock_shell::{Cache, Changes, Runner, Stop, Stopper};
use kube::ResourceExt;
use report::Agents;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

/// How often it is checked whether every controller still runs.
const ROUNDS: Duration = Duration::from_secs(10);
/// How long starts and stops that are under way may take when everything is stopped.
const END: Duration = Duration::from_secs(15);

/// Runs until it is stopped.
pub(crate) struct Supervisor {
    stopper: Stopper,
    agents: watch::Receiver<Agents>,
    kills: mpsc::Sender<Kill>,
    task: JoinHandle<Vec<Held>>,
    /// Serves the logs, commands and ports of pods at the hub where they run.
    _at_hub: Registration,
}

/// The request to kill the agent of a cluster.
struct Kill {
    cluster: String,
    /// Whether it was running.
    was_running: oneshot::Sender<bool>,
}

/// Kills agents: the demonstration does so in the middle of a move.
#[derive(Debug, Clone)]
pub(crate) struct Killer(mpsc::Sender<Kill>);

impl Killer {
    /// Ends the controllers of the agent of a cluster as a crash would; the supervisor starts them again. Whether the agent
    /// was running.
    pub(crate) async fn kill(&self, cluster: &str) -> bool {
        let (was_running, answer) = oneshot::channel();
        let kill = Kill { cluster: cluster.to_owned(), was_running };
        self.0.send(kill).await.is_ok() && answer.await.unwrap_or(false)
    }
}

impl Supervisor {
    /// Begins to serve.
    pub(crate) fn start(ground: Arc<Ground>) -> Supervisor {
        let stopper = Stopper::new();
        let (sender, agents) = watch::channel(Agents::default());
        let (kills, to_kill) = mpsc::channel(1);
        let at_hub = serve_at_hub(&ground.server);
        let cache = ground.known.follow(&Watch::all(Place::HUB, &WORKLOAD_CLUSTER));
        let supervising = Supervising {
            changes: cache.changes(),
            cache,
            ground,
            agents: BTreeMap::new(),
            held: BTreeMap::new(),
            interrupted: BTreeMap::new(),
            failures: BTreeMap::new(),
            refused: BTreeMap::new(),
            tasks: JoinSet::new(),
            told: sender,
            to_kill,
            began: Instant::now(),
        };
        let task = tokio::spawn(supervising.run(stopper.signal()));
        Supervisor { stopper, agents, kills, task, _at_hub: at_hub }
    }

    /// For who kills agents.
    pub(crate) fn killer(&self) -> Killer {
        Killer(self.kills.clone())
    }

    /// Returns once the start of the agent of each of these clusters was tried, or refused.
    pub(crate) async fn tried(&self, uids: &[String]) {
        let mut agents = self.agents.clone();
        // An error says that it has ended: then nothing more is tried.
        let _ = agents.wait_for(|agents| agents.are_tried(uids)).await;
    }

    /// How it is with its agents, as Prometheus reads it.
    pub(crate) fn metrics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let agents = self.agents.clone();
        move || agents.borrow().render()
    }

    /// Ends it; its agents go on until what it returns is dropped.
    pub(crate) async fn stop(self) -> Vec<Held> {
        self.stopper.stop();
        self.task.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the supervisor ended unexpectedly");
            Vec::new()
        })
    }
}

/// A start or a stop that has come to its end.
enum Ended {
    /// With an agent, unless the cluster is not there any more.
    Start(String, anyhow::Result<Option<Held>>),
    Stop(String, anyhow::Result<Letting>),
}

struct Supervising {
    ground: Arc<Ground>,
    cache: Arc<Cache>,
    changes: Changes,
    /// All agents, by the uid of their WorkloadCluster.
    agents: BTreeMap<String, Started>,
    /// Those that run.
    held: BTreeMap<String, Held>,
    /// Those whose controllers have ended and that are to be started again: what runs their pods goes
    /// on in the meantime.
    interrupted: BTreeMap<String, Held>,
    /// How often in a row the start of each has failed.
    failures: BTreeMap<String, u32>,
    /// Clusters that get no agent.
    refused: BTreeMap<String, (String, Refusal)>,
    tasks: JoinSet<Ended>,
    told: watch::Sender<Agents>,
    to_kill: mpsc::Receiver<Kill>,
    began: Instant,
}

impl Supervising {
    async fn run(mut self, stop: Stop) -> Vec<Held> {
        tokio::select! {
            () = stop.asked() => return Vec::new(),
            // An empty cache is not an empty fleet.
            () = self.cache.filled() => {}
        }
        loop {
            let wait = self.round();
            tokio::select! {
                () = stop.asked() => break,
                () = self.changes.next() => {}
                Some(ended) = self.tasks.join_next() => self.ended(ended),
                Some(kill) = self.to_kill.recv() => self.kill(kill),
                () = sleep(wait) => {}
            }
        }
        self.finish().await
    }

    /// Sees, decides and acts; how long nothing has to be done after that if nothing happens.
    fn round(&mut self) -> Duration {
        self.bury();
        loop {
            let registered = registered(&self.cache);
            self.adopt(&registered);
            let facts = Facts {
                hub: HUB,
                registered: &registered,
                agents: &self.agents,
                now: self.began.elapsed(),
            };
            let decision = decide(&facts);
            self.refused.retain(|uid, _| registered.iter().any(|one| one.of.uid == *uid));
            let is_forgetting = decision.actions.iter().any(|it| matches!(it, Action::Forget(_)));
            decision.actions.into_iter().for_each(|action| self.act(action));
            if is_forgetting {
                continue;
            }
            self.tell();
            let retry = decision.retry_at.map(|at| at.saturating_sub(self.began.elapsed()));
            return retry.unwrap_or(ROUNDS).min(ROUNDS);
        }
    }

    /// An agent of which a controller has ended by itself is started again.
    fn bury(&mut self) {
        let ended: Vec<String> = self
            .held
            .iter()
            .filter(|(_, held)| held.has_ended())
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in ended {
            let Some(held) = self.held.remove(&uid) else { continue };
            self.interrupted.insert(uid.clone(), held.without_controllers());
            self.failed(&uid, &anyhow!("a controller of the agent ended unexpectedly"));
        }
    }

    /// Steps that are under way are given up where they are. What runs the pods goes on, as it does when a process of its own
    /// is killed, and the agent is started again after a pause.
    fn kill(&mut self, kill: Kill) {
        let is_its = |held: &Held| held.service.of.name == kill.cluster;
        let found = self.held.iter().find(|(_, held)| is_its(held)).map(|(uid, _)| uid.clone());
        let killed = found.and_then(|uid| self.held.remove_entry(&uid));
        let was_running = killed.is_some();
        if let Some((uid, held)) = killed {
            held.runners.iter().for_each(Runner::kill);
            let retry_at = self.began.elapsed() + pause(1);
            self.set(&uid, State::Failed { retry_at });
            self.interrupted.insert(uid, held.without_controllers());
            tracing::info!(cluster = kill.cluster, "killed the agent of the cluster, as requested");
        }
        // Who asked may not wait for it any more.
        let _ = kill.was_running.send(was_running);
    }

    /// A cluster that is being deleted before its agent was started again is let go like any other.
    fn adopt(&mut self, registered: &[Registered]) {
        let is_left = |uid: &String| {
            !self.agents.contains_key(uid) && !registered.iter().any(|one| one.of.uid == *uid)
        };
        let left: Vec<String> =
            self.interrupted.keys().filter(|uid| is_left(uid)).cloned().collect();
        for uid in left {
            let Some(held) = self.interrupted.remove(&uid) else { continue };
            let (service, state) = (held.service.clone(), State::Running);
            self.agents.insert(uid.clone(), Started { service, state });
            self.held.insert(uid, held);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Start(service) => self.start(service),
            Action::Stop(uid) => self.stop(uid),
            Action::Forget(uid) => self.forget(&uid),
            Action::Refuse(of, refusal) => {
                let before =
                    self.refused.insert(of.uid.clone(), (of.name.clone(), refusal.clone()));
                if before.is_none_or(|(_, before)| before != refusal) {
                    report::refused(&self.ground, of, &refusal);
                }
            }
        }
    }

    fn start(&mut self, service: Service) {
        let uid = service.of.uid.clone();
        self.refused.remove(&uid);
        let state = State::Starting;
        self.agents.insert(uid.clone(), Started { service: service.clone(), state });
        let machine = self.interrupted.get(&uid).map(|held| held.runtime.clone());
        let ground = Arc::clone(&self.ground);
        // In a task of its own, so that a panic is an error like any other.
        let starting = tokio::spawn(async move { ground.start(service, machine).await });
        self.tasks.spawn(async move { Ended::Start(uid, flat(starting.await)) });
    }

    fn stop(&mut self, uid: String) {
        let Some(held) = self.held.remove(&uid) else { return self.forget(&uid) };
        if let Some(agent) = self.agents.get_mut(&uid) {
            agent.state = State::Stopping;
        }
        let ground = Arc::clone(&self.ground);
        let stopping = tokio::spawn(async move { Ok(ground.let_go(held).await) });
        self.tasks.spawn(async move { Ended::Stop(uid, flat(stopping.await)) });
    }

    fn forget(&mut self, uid: &str) {
        self.agents.remove(uid);
        self.failures.remove(uid);
    }

    fn ended(&mut self, ended: Result<Ended, tokio::task::JoinError>) {
        match ended {
            Ok(Ended::Start(uid, Ok(Some(held)))) => {
                tracing::info!(cluster = held.service.of.name, "serving the cluster");
                self.interrupted.remove(&uid);
                self.failures.remove(&uid);
                self.set(&uid, State::Running);
                self.held.insert(uid, held);
            }
            Ok(Ended::Start(uid, Ok(None))) => self.forget(&uid),
            Ok(Ended::Start(uid, Err(error))) => self.failed(&uid, &error),
            Ok(Ended::Stop(uid, Ok(Letting::StillThere(held)))) => {
                self.set(&uid, State::Running);
                self.held.insert(uid, held);
            }
            Ok(Ended::Stop(uid, Ok(Letting::Changed(held)))) => {
                self.forget(&uid);
                self.interrupted.insert(uid, held);
            }
            Ok(Ended::Stop(uid, Ok(Letting::Gone))) => self.forget(&uid),
            Ok(Ended::Stop(uid, Err(error))) => {
                tracing::error!(because = format!("{error:#}"), "an agent did not end cleanly");
                self.forget(&uid);
            }
            Err(error) => tracing::error!(%error, "a task of the supervisor ended unexpectedly"),
        }
    }

    fn set(&mut self, uid: &str, state: State) {
        if let Some(agent) = self.agents.get_mut(uid) {
            agent.state = state;
        }
    }

    /// The start of an agent has failed: it is tried again, after a pause that grows.
    fn failed(&mut self, uid: &str, error: &anyhow::Error) {
        let failures = self.failures.entry(uid.to_owned()).or_default();
        *failures = failures.saturating_add(1);
        let pause = pause(*failures);
        let retry_at = self.began.elapsed() + pause;
        let Some(agent) = self.agents.get_mut(uid) else { return };
        agent.state = State::Failed { retry_at };
        let of = agent.service.of.clone();
        report::failed(&self.ground, of, &format!("{error:#}"), pause);
    }

    /// Lets everybody know how it is with the agents.
    fn tell(&self) {
        let started = self.agents.iter().map(|(uid, agent)| {
            let word = match agent.state {
                State::Starting => "starting",
                State::Running => "running",
                State::Stopping => "stopping",
                State::Failed { .. } => "failed",
            };
            (uid.clone(), (agent.service.of.name.clone(), word))
        });
        let refused = self.refused.iter().map(|(uid, (name, refusal))| {
            let word = match refusal {
                Refusal::Elsewhere => "elsewhere",
                Refusal::IsHub | Refusal::Taken(_) => "refused",
            };
            (uid.clone(), (name.clone(), word))
        });
        self.told.send_replace(Agents(refused.chain(started).collect()));
    }

    /// What is under way comes to its end, so that nothing is left half made.
    async fn finish(mut self) -> Vec<Held> {
        let all = async {
            while let Some(ended) = self.tasks.join_next().await {
                self.ended(ended);
            }
        };
        if timeout(END, all).await.is_err() {
            tracing::warn!("some agents took too long to start or to stop");
        }
        self.tasks.shutdown().await;
        self.held.into_values().chain(self.interrupted.into_values()).collect()
    }
}

/// The WorkloadClusters that a cache shows, oldest first.
fn registered(cache: &Cache) -> Vec<Registered> {
    let objects = cache.objects().list(None);
    let read = objects.iter().filter_map(|object| {
        // One that cannot be read is not one that is gone: before anything is stopped, the hub is asked.
        let cluster: WorkloadCluster = (**object).clone().try_parse().ok()?;
        let created = cluster.creation_timestamp().map(|time| time.0);
        Some((created, actions::registered(&cluster)))
    });
    let mut all: Vec<_> = read.collect();
    all.sort_by(|(one, a), (other, b)| (one, &a.of).cmp(&(other, &b.of)));
    all.into_iter().map(|(_, registered)| registered).collect()
}

fn flat<T>(joined: Result<anyhow::Result<T>, tokio::task::JoinError>) -> anyhow::Result<T> {
    joined.unwrap_or_else(|error| Err(anyhow!(error)))
}
