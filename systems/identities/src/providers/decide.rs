//! What is done about the OIDC provider of a cluster. First matching rule wins.

use super::record::Record;
use crate::journal::{Gate, Going, Journal, Resting};
use crate::outside::{At, Call, Failure, Tags};
use crate::standing::Standing;
use interlock_api::identities::{Mark, condition as words};
use interlock_api::placement::condition::ISSUER_READY;
use interlock_kernel::conditions::{Condition, Finding};
use serde::{Deserialize, Serialize};

/// After how many seconds something that people or other clusters change is checked again.
const CHECKED_SECONDS: i64 = 30;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the WorkloadCluster is being deleted.
    pub is_deleting: bool,
    /// Whether the finalizer is on it.
    pub has_finalizer: bool,
    /// Whether namespaces of the cluster may still need its issuer.
    pub has_grants: bool,
    /// Whether the provider that was made for the cluster has to go: with the cluster, or because its issuer is
    /// another one now.
    pub removes: bool,
    /// Whether providers are created, and not only checked.
    pub manages: bool,
    /// The issuer that the cluster reports.
    pub issuer: Option<String>,
    /// Another cluster that reports the same issuer, as the cache shows it.
    pub shared_with: Option<String>,
    /// The audience of the tokens.
    pub audience: String,
    /// The tags of a provider that is made for the cluster.
    pub tags: Tags,
    /// What the WorkloadCluster says of its provider.
    pub record: Record,
    /// How long ago the cloud was compared.
    pub checked_seconds_ago: Option<i64>,
    /// The time, in seconds since 1970.
    pub now: i64,
    /// How often the cloud is compared.
    pub resync_seconds: i64,
    /// The conditions of the WorkloadCluster.
    pub conditions: Vec<Condition>,
    /// Whether it is known which issuer the cloud is asked about.
    pub has_question: bool,
    /// What was read live, in this order: the cloud, the WorkloadCluster, all WorkloadClusters. None: nothing yet.
    pub look: Option<Look>,
}

/// What was read live.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Look {
    /// What is known of calls.
    pub journal: Journal,
    /// The provider.
    pub state: State,
    /// Another cluster that reports the same issuer.
    pub shared_with: Option<String>,
}

/// What the cloud has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum State {
    /// Nothing.
    Absent,
    /// A provider.
    Provider {
        /// Its ARN.
        arn: String,
        /// Whether it was made for this cluster.
        is_ours: bool,
    },
    /// Nobody can tell.
    Failed(Failure),
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing for so many seconds.
    Wait(&'static str, i64),
    /// Read the cloud, the WorkloadCluster, and all of them.
    LiveRead,
    /// Write what is known of the provider, and the finalizer.
    Keep(Record),
    /// Write when the cloud was compared, and what is known of the provider.
    Note(Record),
    /// Make this call.
    Call(At, Call),
    /// Write the condition.
    Report(Finding),
    /// Take the finalizer off.
    RemoveFinalizer,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_deleting && !facts.has_finalizer {
        return Decision::Rest("the cluster is being deleted, and nothing of it is in the cloud");
    }
    if facts.is_deleting && facts.has_grants {
        return Decision::Rest("the cluster is being deleted, and still has grants");
    }
    if facts.removes {
        return remove(facts);
    }
    let Some(issuer) = &facts.issuer else {
        let message = "the cluster has not reported the issuer of its tokens";
        let missing = Finding::fails(ISSUER_READY, words::ISSUER_MISSING, message);
        return facts.say(missing, Decision::Rest("the cluster reports no issuer"));
    };
    if let Some(other) = &facts.shared_with {
        return shared(facts, issuer, other);
    }
    if let Some(seconds) = facts.fresh_for(issuer) {
        return Decision::Wait("the cloud is compared again later", seconds);
    }
    let Some(look) = &facts.look else { return Decision::LiveRead };
    if let Some(other) = &look.shared_with {
        return shared(facts, issuer, other);
    }
    match &look.state {
        State::Failed(failure) => failed(facts, issuer, failure),
        State::Provider { .. } => facts.say(known(issuer), rest(facts, look)),
        State::Absent if !facts.manages => {
            facts.say(facts.unknown(issuer), Decision::Note(facts.checked(&facts.record)))
        }
        State::Absent => create(facts, look, issuer),
    }
}

/// Two clusters with one issuer could each assume the roles of the other.
fn shared(facts: &Facts, issuer: &str, other: &str) -> Decision {
    let message = format!("the cluster {other} reports the issuer {issuer}, too");
    let next = "give each cluster an issuer of its own".to_owned();
    let finding = Finding::fails(ISSUER_READY, words::ISSUER_SHARED, message).next(Some(next));
    facts.say(finding, Decision::Wait("another cluster has the same issuer", CHECKED_SECONDS))
}

fn known(issuer: &str) -> Finding {
    let message = format!("the cloud trusts the issuer {issuer}");
    Finding::holds(ISSUER_READY, words::PROVIDER_FOUND, message)
}

/// Whether the cloud was found to trust this very issuer. The condition of a cluster that has reported another issuer
/// since is about the old one.
pub(crate) fn is_known(issuer: &str, conditions: &[Condition]) -> bool {
    known(issuer).is_in(conditions)
}

/// An outage of the cloud says nothing about the issuer.
fn failed(facts: &Facts, issuer: &str, failure: &Failure) -> Decision {
    let (standing, seconds) = Standing::failed(failure);
    let then = Decision::Wait("the cloud could not be read", seconds);
    if is_known(issuer, &facts.conditions) {
        return then;
    }
    facts.say(not_ready(&standing), then)
}

/// A standing that is not ready, as the condition of the issuer.
fn not_ready(standing: &Standing) -> Finding {
    match standing {
        Standing::Ready(sentence) => Finding::holds(ISSUER_READY, words::PROVIDER_FOUND, *sentence),
        Standing::Reconciling(why) | Standing::Stalled(why) => {
            Finding::fails(ISSUER_READY, why.reason, why.message.clone()).next(why.next.clone())
        }
    }
}

fn create(facts: &Facts, look: &Look, issuer: &str) -> Decision {
    if !facts.has_finalizer || facts.record.issuer.as_deref() != Some(issuer) {
        return Decision::Keep(Record { issuer: Some(issuer.to_owned()), ..facts.record.clone() });
    }
    let host = issuer.split_once("://").map_or(issuer, |(_, host)| host);
    let at = At::Name { path: "/".to_owned(), name: host.to_owned() };
    let (issuer, audience, tags) = (issuer.to_owned(), facts.audience.clone(), facts.tags.clone());
    call(facts, look, at, Call::CreateOpenIdConnectProvider { issuer, audience, tags })
}

/// The provider that was made for the cluster is deleted. One that others made stays.
fn remove(facts: &Facts) -> Decision {
    if !facts.has_question {
        return Decision::RemoveFinalizer;
    }
    let Some(look) = &facts.look else { return Decision::LiveRead };
    match &look.state {
        State::Failed(failure) => {
            Decision::Wait("the cloud could not be read", Standing::failed(failure).1)
        }
        State::Provider { arn, is_ours: true } => {
            call(facts, look, At::Arn(arn.clone()), Call::DeleteOpenIdConnectProvider)
        }
        State::Provider { is_ours: false, .. } | State::Absent => match look.journal.going() {
            Going::Mark(mark) => marked(facts, mark),
            Going::Late { seconds } => Decision::Wait("a late call may still land", seconds),
            Going::Gone if facts.is_deleting => Decision::RemoveFinalizer,
            Going::Gone => {
                let issuer = facts.issuer.clone();
                Decision::Keep(Record { issuer, checked: None, ..facts.record.clone() })
            }
        },
    }
}

fn marked(facts: &Facts, mark: Mark) -> Decision {
    Decision::Keep(Record { mark: Some(mark), ..facts.record.clone() })
}

/// A call, if it may be made now.
fn call(facts: &Facts, look: &Look, at: At, call: Call) -> Decision {
    let (standing, then) = match look.journal.gate(&call) {
        Gate::Open => return Decision::Call(at, call),
        Gate::Mark(mark) => return marked(facts, mark),
        Gate::Late { seconds } => {
            (Standing::late(), Decision::Wait("a late call may still land", seconds))
        }
        Gate::Hidden { seconds } => {
            let message = "the cloud does not show the OIDC provider yet";
            let standing = Standing::reconciling(words::PROGRESSING, message);
            (standing, Decision::Wait("reads lag", seconds))
        }
        Gate::Refused { refusal, seconds } => {
            (Standing::refused(&refusal), Decision::Wait("the cloud refuses", seconds))
        }
    };
    facts.say(not_ready(&standing), then)
}

/// The provider is there: the mark is removed once nothing is under way.
fn rest(facts: &Facts, look: &Look) -> Decision {
    match look.journal.resting() {
        Resting::Wait { seconds } => Decision::Wait("calls may be under way", seconds),
        Resting::Unmark { .. } => {
            Decision::Note(facts.checked(&Record { mark: None, ..facts.record.clone() }))
        }
        Resting::Quiet | Resting::Another => Decision::Note(facts.checked(&facts.record)),
    }
}

impl Facts {
    fn say(&self, finding: Finding, then: Decision) -> Decision {
        if finding.is_in(&self.conditions) { then } else { Decision::Report(finding) }
    }

    fn checked(&self, record: &Record) -> Record {
        Record { checked: Some(self.now), ..record.clone() }
    }

    /// The cloud does not know the issuer, and a person has to add it.
    fn unknown(&self, issuer: &str) -> Finding {
        let message = format!("the cloud has no OIDC provider for the issuer {issuer}");
        let next = format!(
            "aws iam create-open-id-connect-provider --url {issuer} --client-id-list {}",
            self.audience
        );
        Finding::fails(ISSUER_READY, words::NO_PROVIDER, message).next(Some(next))
    }

    /// For how many more seconds what was found last is taken as it is.
    fn fresh_for(&self, issuer: &str) -> Option<i64> {
        let is_known = is_known(issuer, &self.conditions);
        let is_unknown = !self.manages && self.unknown(issuer).is_in(&self.conditions);
        let lasts = match (is_known, is_unknown) {
            (true, _) => self.resync_seconds,
            (false, true) => CHECKED_SECONDS,
            (false, false) => return None,
        };
        // A clock that went back says nothing.
        let ago = self.checked_seconds_ago.filter(|ago| *ago >= 0)?;
        Some(lasts.saturating_sub(ago)).filter(|seconds| *seconds > 0)
    }
}
