//! What is seen of a Policy, and of what the cloud has for it.

use super::decide::{CloudPlace, Facts, Look, State};
use crate::document;
use crate::journal::Journal;
use crate::kinds::POLICY;
use crate::outside::{Answer, Asked, At, Cloud, Found, PolicyReading, Process, Question};
use crate::owner::{Owner, Shown};
use crate::settings::Settings;
use crate::subject::{Cached, is_same_object, name_in};
use crate::valid::invalid_statements;
use interlock_api::identities::{
    Adopt, DeletionPolicy, FINALIZER_POLICY, PolicySpec, PolicyStatus,
};
use interlock_kernel::metadata::{has_finalizer, is_deleting};
use interlock_kernel::{Address, LiveReads, Object, Observed, Place, Subject, View, read_part};
use jiff::Timestamp;
use serde_json::Value;

/// What one step is about.
#[derive(Debug)]
pub struct Scene {
    /// The Policy: by a live read, if there was one.
    pub(super) policy: Object,
    /// Its status.
    pub(super) status: PolicyStatus,
    /// What this process is asked about its own calls.
    pub(super) calls: Question,
    /// What can be asked: the same order as [`Facts::places`].
    pub(super) questions: Vec<Question>,
    /// The same, with all that can be read.
    pub(super) whole_questions: Vec<Question>,
    /// The process that read the cloud, and when.
    pub(super) process: Process,
    /// The time.
    pub(super) now: Timestamp,
}

/// Reads what a step is about.
pub(super) fn observe(
    settings: &Settings,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Cloud>,
) -> Observed<Facts, Scene> {
    let Some(name) = name_in(subject) else { return Observed::nothing("no such subject") };
    let address = Address::new(Place::HUB, &POLICY, name);
    let cached = view.get(Place::HUB, &POLICY, &address.name);
    let live = live_reads.objects.get(&address);
    let Some(policy) = live.cloned().unwrap_or(cached) else {
        return Observed::nothing("there is no such Policy");
    };
    let spec = read_part::<PolicySpec>(&policy, "spec");
    let status = read_part::<PolicyStatus>(&policy, "status").ok().flatten().unwrap_or_default();
    let invalid = match &spec {
        Ok(Some(spec)) => invalid_statements(&spec.statement),
        Ok(None) => Some("there is no spec".to_owned()),
        Err(error) => Some(error.clone()),
    };
    let spec = spec.ok().flatten().unwrap_or_default();
    let owner = Owner::of(&policy, "policy", settings);
    let adopt = spec.adopt.unwrap_or(settings.adopt);
    let legacy = settings.cluster_name.as_deref().map(|cluster| owner.legacy_policy(cluster));
    let places = places(&owner, &spec, &status, legacy.as_ref().filter(|_| adopt == Adopt::Legacy));
    let document = document::of_statements(&spec.statement).to_string();
    let is_deleting = is_deleting(&policy);
    let digest = document::digest(&document);
    let is_recorded = !is_deleting && status.document_hash.as_ref() == Some(&digest);
    let known = status.version_id.clone().filter(|_| is_recorded);
    let whole = match is_deleting {
        true => PolicyReading::Attachments,
        false => PolicyReading::Wanted(digest.clone()),
    };
    let question = |object: Asked| Question { object, about: owner.uid.clone() };
    let about = |at: &At, reading: &PolicyReading| {
        question(Asked::Policy { at: at.clone(), reading: reading.clone() })
    };
    let unless = known.map_or_else(|| whole.clone(), PolicyReading::Unless);
    let questions: Vec<Question> = places.iter().map(|at| about(at, &unless)).collect();
    let whole_questions: Vec<Question> = places.iter().map(|at| about(at, &whole)).collect();
    let calls = question(Asked::Calls);
    let found = look(
        &Reading { places: &places, questions: &questions, whole: &whole_questions },
        live_reads,
    );
    let state = |answer: &Answer| state(answer, &owner, &status, adopt, legacy.as_ref());
    let look = match (found, live_reads.answers.get(&calls)) {
        (Some(found), _) => Some(Look::of(&found, state)),
        (None, Some(calls)) => Some(Look { journal: Journal::of(calls), places: Vec::new() }),
        (None, None) => None,
    };
    let look = look.filter(|_| live.is_some()).map(|look| look.with(&status, settings));
    let process = look.as_ref().map(|look| look.journal.process.clone()).unwrap_or_default();
    let facts = Facts {
        has_finalizer: has_finalizer(&policy, FINALIZER_POLICY),
        is_deleting,
        is_retained: spec.deletion_policy == Some(DeletionPolicy::Retain),
        generation: policy.metadata.generation,
        spec_arn: spec.arn,
        status: status.clone(),
        invalid,
        document,
        owner,
        places,
        look,
    };
    let now = view.now();
    let scene = Scene { policy, status, calls, questions, whole_questions, process, now };
    Observed::Seen { facts, scene }
}

/// Where the cloud policy may be: where it was last, where irsa-operator said that it is, where
/// irsa-operator kept it, and under its own name.
fn places(owner: &Owner, spec: &PolicySpec, status: &PolicyStatus, legacy: Option<&At>) -> Vec<At> {
    let own = owner.at();
    let arns = status.arn.iter().chain(&spec.arn).filter(|arn| !arn.is_empty());
    let mut places: Vec<At> = Vec::new();
    let known = status.arn.as_ref().filter(|arn| own.is(arn)).map(|_| own.clone());
    let others: Vec<At> = arns.filter(|arn| !own.is(arn)).cloned().map(At::Arn).collect();
    for at in known.into_iter().chain(others).chain(legacy.cloned()).chain([own]) {
        if !places.contains(&at) {
            places.push(at);
        }
    }
    places
}

/// Whether a Role is as it was for its Policy: it has not let go of anything. Each step costs live reads of the
/// cloud.
pub(super) fn is_same_role(before: &Cached, after: &Cached) -> bool {
    let attached = |role: &Cached| -> Vec<Value> {
        role.data["status"]["attached"].as_array().cloned().unwrap_or_default()
    };
    let still = attached(after);
    is_same_object(before, after)
        && after.metadata.deletion_timestamp.is_none()
        && attached(before).iter().all(|arn| still.contains(arn))
}

/// What can be asked about which places.
struct Reading<'a> {
    places: &'a [At],
    questions: &'a [Question],
    whole: &'a [Question],
}

/// What was answered so far, by place.
fn look<'a>(
    reading: &Reading<'a>,
    live_reads: &'a LiveReads<Cloud>,
) -> Option<Vec<(&'a At, &'a Answer)>> {
    let answer = |place: usize| {
        let whole = live_reads.answers.get(&reading.whole[place]);
        whole.or_else(|| live_reads.answers.get(&reading.questions[place]))
    };
    let found = reading.places.iter().enumerate();
    let found: Vec<_> = found.filter_map(|(place, at)| Some((at, answer(place)?))).collect();
    (!found.is_empty()).then_some(found)
}

fn state(
    answer: &Answer,
    owner: &Owner,
    status: &PolicyStatus,
    adopt: Adopt,
    legacy: Option<&At>,
) -> State {
    match &answer.found {
        Found::Policy(found) => {
            let shown = Shown {
                arn: &found.arn,
                id: &found.id,
                tags: &found.tags,
                is_legacy: legacy.is_some_and(|at| at.is(&found.arn)),
            };
            let whose = owner.whose(shown, status.policy_id.as_deref(), adopt);
            State::Policy { found: found.clone(), whose, adopting: owner.adopting(shown) }
        }
        Found::Failed(failure) => State::Failed(failure.clone()),
        Found::NotAsked | Found::Absent | Found::Role(_) | Found::Provider { .. } => State::Absent,
    }
}

impl Look {
    fn of(answers: &[(&At, &Answer)], state: impl Fn(&Answer) -> State) -> Look {
        let places = answers
            .iter()
            .map(|(at, answer)| CloudPlace { at: (*at).clone(), state: state(answer) });
        // What the client knows is the same whatever it is asked about; the last answer is the newest.
        let journal = answers.last().map(|(_, answer)| Journal {
            process: answers[0].1.process.clone(),
            ..Journal::of(answer)
        });
        Look { journal: journal.unwrap_or_default(), places: places.collect() }
    }

    fn with(mut self, status: &PolicyStatus, settings: &Settings) -> Look {
        self.journal.mark = status.mark.clone();
        self.journal.late_call_seconds = settings.late_call_seconds;
        self
    }
}
