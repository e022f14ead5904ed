//! Which agents a process runs that serves many clusters: those of the WorkloadClusters that are
//! logical clusters of its own API server.
//!
//! [`decide`] is pure. Whoever carries it out shows it the WorkloadClusters that the hub has and the
//! agents that there are, and tells it the time. Stopping an agent is final for the processes of its
//! cluster, so whoever does it asks the hub itself first: a cache may be behind.

use interlock_api::placement::{Connection, FurtherKind, Ref};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// At most so many agents start at once, so that a large fleet does not start in one burst.
const STARTS_AT_ONCE: usize = 8;
/// How long the first retry waits; each further one waits twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// No retry waits longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A WorkloadCluster, as the hub has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// Which it is.
    pub of: Ref,
    /// How it is reached.
    pub connection: Connection,
    /// Further kinds that are carried down to it.
    pub further: Vec<FurtherKind>,
}

impl Registered {
    /// What an agent would serve; None: the cluster is not a logical cluster of this API server.
    pub fn service(&self) -> Option<Service> {
        match &self.connection {
            Connection::LogicalCluster(logical_cluster) => Some(Service {
                of: self.of.clone(),
                logical_cluster: logical_cluster.clone(),
                further: self.further.clone(),
            }),
            Connection::KubeconfigSecret(_) | Connection::InCluster {} => None,
        }
    }
}

/// What an agent is started for. When any of it changes, another agent is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The WorkloadCluster.
    pub of: Ref,
    /// The logical cluster that it is.
    pub logical_cluster: String,
    /// Further kinds that are carried down to it.
    pub further: Vec<FurtherKind>,
}

/// An agent that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// What it was started for.
    pub service: Service,
    /// How it is.
    pub state: State,
}

/// How it is with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is being started.
    Starting,
    /// Its controllers run.
    Running,
    /// It is being stopped.
    Stopping,
    /// Its start failed.
    Failed {
        /// When it is tried again.
        retry_at: Duration,
    },
}

/// What to do about an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start one.
    Start(Service),
    /// Stop this one, whose WorkloadCluster has this uid.
    Stop(String),
    /// Forget this one: it does not run, and is not wanted any more.
    Forget(String),
    /// Start none for this cluster, and say why.
    Refuse(Ref, Refusal),
}

/// Why a WorkloadCluster gets no agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is not a logical cluster of this API server: somebody else serves it.
    Elsewhere,
    /// It is the hub.
    IsHub,
    /// Another WorkloadCluster is the same logical cluster: this one.
    Taken(String),
}

/// What is known when it is decided which agents run.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The name of the logical cluster that is the hub.
    pub hub: &'a str,
    /// All WorkloadClusters of the hub.
    pub registered: &'a [Registered],
    /// All agents, by the uid of their WorkloadCluster.
    pub agents: &'a BTreeMap<String, Started>,
    /// The time, since any moment.
    pub now: Duration,
}

/// What to do now, and when to decide again although nothing has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub actions: Vec<Action>,
    /// When the next retry is due.
    pub retry_at: Option<Duration>,
}

/// Which agents to start and to stop. A cluster that is being deleted is served like any other: its
/// agent is what gives everything back, so it stays until the WorkloadCluster is gone.
pub fn decide(facts: &Facts<'_>) -> Decision {
    let mut decision = Decision::default();
    let wanted: BTreeMap<&str, Service> = facts
        .registered
        .iter()
        .filter_map(|registered| Some((registered.of.uid.as_str(), registered.service()?)))
        .collect();
    for (uid, agent) in facts.agents {
        let is_wanted = wanted.get(uid.as_str()) == Some(&agent.service);
        match agent.state {
            // It is reported once it has started or ended.
            State::Starting | State::Stopping => {}
            State::Running if is_wanted => {}
            State::Running => decision.actions.push(Action::Stop(uid.clone())),
            State::Failed { .. } if is_wanted => {}
            State::Failed { .. } => decision.actions.push(Action::Forget(uid.clone())),
        }
    }
    start(facts, &mut decision);
    decision
}

fn start(facts: &Facts<'_>, decision: &mut Decision) {
    let mut left = STARTS_AT_ONCE.saturating_sub(
        facts.agents.values().filter(|agent| agent.state == State::Starting).count(),
    );
    // Two agents on one logical cluster would fight: who has it keeps it, also while it stops.
    let mut taken: BTreeMap<String, &Ref> = facts
        .agents
        .values()
        .map(|agent| (agent.service.logical_cluster.clone(), &agent.service.of))
        .collect();
    let known: BTreeSet<&str> = facts.registered.iter().map(|one| one.of.uid.as_str()).collect();
    for registered in facts.registered {
        let of = &registered.of;
        let Some(service) = registered.service() else {
            decision.actions.push(Action::Refuse(of.clone(), Refusal::Elsewhere));
            continue;
        };
        if service.logical_cluster == facts.hub {
            decision.actions.push(Action::Refuse(of.clone(), Refusal::IsHub));
            continue;
        }
        match taken.get(&service.logical_cluster) {
            Some(by) if by.uid != of.uid && known.contains(by.uid.as_str()) => {
                let refusal = Refusal::Taken(by.name.clone());
                decision.actions.push(Action::Refuse(of.clone(), refusal));
                continue;
            }
            // The agent of a cluster that is gone is about to end.
            Some(by) if by.uid != of.uid => continue,
            Some(_) | None => {}
        }
        taken.insert(service.logical_cluster.clone(), of);
        match turn(facts, &service) {
            Turn::Now if left > 0 => {
                left -= 1;
                decision.actions.push(Action::Start(service));
            }
            // It has its turn when one that starts now has started.
            Turn::Now | Turn::None => {}
            Turn::At(time) => {
                decision.retry_at = decision.retry_at.into_iter().chain([time]).min();
            }
        }
    }
}

/// When the agent of a cluster is started.
enum Turn {
    Now,
    At(Duration),
    /// There is one, perhaps for what the cluster was before: that one is stopped or forgotten first.
    None,
}

fn turn(facts: &Facts<'_>, service: &Service) -> Turn {
    let Some(agent) = facts.agents.get(&service.of.uid) else { return Turn::Now };
    match agent.state {
        State::Failed { .. } if agent.service != *service => Turn::None,
        State::Failed { retry_at } if retry_at > facts.now => Turn::At(retry_at),
        State::Failed { .. } => Turn::Now,
        State::Starting | State::Running | State::Stopping => Turn::None,
    }
}

/// How long to wait after so many failures in a row.
pub fn pause(failures: u32) -> Duration {
    let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
    FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_api::placement::SecretKey;

    const NOW: Duration = Duration::from_secs(100);

    fn logical(name: &str, uid: &str, logical_cluster: &str) -> Registered {
        Registered {
            of: Ref::new(name, uid),
            connection: Connection::LogicalCluster(logical_cluster.to_owned()),
            further: Vec::new(),
        }
    }

    fn agent(of: &Registered, state: State) -> (String, Started) {
        let service = of.service().expect("it is a logical cluster");
        (of.of.uid.clone(), Started { service, state })
    }

    fn start(of: &Registered) -> Action {
        Action::Start(of.service().expect("it is a logical cluster"))
    }

    fn decided(registered: &[Registered], agents: &[(String, Started)]) -> Decision {
        let agents = agents.iter().cloned().collect();
        decide(&Facts { hub: "root", registered, agents: &agents, now: NOW })
    }

    fn actions(registered: &[Registered], agents: &[(String, Started)]) -> Vec<Action> {
        decided(registered, agents).actions
    }

    #[test]
    fn a_cluster_that_comes_gets_an_agent_and_one_that_is_served_keeps_its_own() {
        let (west, east) = (logical("west", "w", "west"), logical("east", "e", "east"));
        let both = [west.clone(), east.clone()];
        assert_eq!(actions(&both, &[]), [start(&west), start(&east)]);
        assert_eq!(actions(&both, &[agent(&west, State::Running)]), [start(&east)]);
        let agents = [agent(&west, State::Running), agent(&east, State::Starting)];
        assert_eq!(actions(&both, &agents), []);
    }

    #[test]
    fn the_agent_of_a_cluster_that_is_gone_is_stopped_once() {
        let west = logical("west", "w", "west");
        assert_eq!(actions(&[], &[agent(&west, State::Running)]), [Action::Stop("w".into())]);
        assert_eq!(actions(&[], &[agent(&west, State::Stopping)]), []);
        // It cannot be stopped before it has started.
        assert_eq!(actions(&[], &[agent(&west, State::Starting)]), []);
        let failed = State::Failed { retry_at: NOW };
        assert_eq!(actions(&[], &[agent(&west, failed)]), [Action::Forget("w".into())]);
    }

    #[test]
    fn a_cluster_made_again_under_its_name_waits_until_the_old_agent_has_ended() {
        let (old, new) = (logical("west", "w1", "west"), logical("west", "w2", "west"));
        let again = [new.clone()];
        assert_eq!(actions(&again, &[agent(&old, State::Running)]), [Action::Stop("w1".into())]);
        assert_eq!(actions(&again, &[agent(&old, State::Stopping)]), []);
        assert_eq!(actions(&again, &[]), [start(&new)]);
    }

    #[test]
    fn a_failed_start_is_tried_again_when_its_pause_is_over_and_holds_up_nobody() {
        let (west, east) = (logical("west", "w", "west"), logical("east", "e", "east"));
        let both = [west.clone(), east.clone()];
        let later = NOW + Duration::from_secs(4);
        let decision = decided(&both, &[agent(&west, State::Failed { retry_at: later })]);
        assert_eq!(decision, Decision { actions: vec![start(&east)], retry_at: Some(later) });
        let due = [agent(&west, State::Failed { retry_at: NOW })];
        assert_eq!(actions(&both, &due), [start(&west), start(&east)]);
    }

    #[test]
    fn pauses_grow_up_to_a_minute() {
        let seconds: Vec<u64> = [1, 2, 3, 6, 7, 40].map(|n| pause(n).as_secs()).to_vec();
        assert_eq!(seconds, [1, 2, 4, 32, 60, 60]);
    }

    #[test]
    fn an_agent_is_replaced_when_what_it_was_started_for_has_changed() {
        let before = logical("west", "w", "west");
        let mut after = before.clone();
        after.further.push(FurtherKind { plural: "widgets".to_owned(), ..FurtherKind::default() });
        let now = [after.clone()];
        assert_eq!(actions(&now, &[agent(&before, State::Running)]), [Action::Stop("w".into())]);
        assert_eq!(actions(&now, &[]), [start(&after)]);
        let failed = agent(&before, State::Failed { retry_at: NOW + NOW });
        assert_eq!(actions(&now, &[failed]), [Action::Forget("w".into())]);
    }

    #[test]
    fn what_is_elsewhere_is_somebody_elses_to_serve() {
        let mut far = logical("far", "f", "far");
        let before = agent(&far, State::Running);
        far.connection = Connection::KubeconfigSecret(SecretKey {
            namespace: "interlock-system".to_owned(),
            name: "far".to_owned(),
            key: "kubeconfig".to_owned(),
        });
        let far = [far];
        let refused = || Action::Refuse(far[0].of.clone(), Refusal::Elsewhere);
        assert_eq!(actions(&far, &[]), [refused()]);
        assert_eq!(actions(&far, &[before]), [Action::Stop("f".into()), refused()]);
    }

    #[test]
    fn two_clusters_are_never_the_same_logical_cluster() {
        let (one, two) = (logical("a", "1", "west"), logical("b", "2", "west"));
        let both = [one.clone(), two.clone()];
        let refused = |of: &Registered, by: &str| {
            Action::Refuse(of.of.clone(), Refusal::Taken(by.to_owned()))
        };
        assert_eq!(actions(&both, &[]), [start(&one), refused(&two, "a")]);
        // Who has it keeps it, whatever the order.
        assert_eq!(actions(&both, &[agent(&two, State::Running)]), [refused(&one, "b")]);
        let hub = [logical("hub", "h", "root")];
        let refused = Action::Refuse(hub[0].of.clone(), Refusal::IsHub);
        assert_eq!(actions(&hub, &[]), [refused]);
    }

    #[test]
    fn a_large_fleet_does_not_start_in_one_burst() {
        let name = |number: usize| format!("c{number:02}");
        let all: Vec<Registered> = (0..20).map(|n| logical(&name(n), &name(n), &name(n))).collect();
        assert_eq!(actions(&all, &[]).len(), STARTS_AT_ONCE);
        let some = [agent(&all[0], State::Starting), agent(&all[1], State::Running)];
        assert_eq!(actions(&all, &some).len(), STARTS_AT_ONCE - 1);
    }
}
