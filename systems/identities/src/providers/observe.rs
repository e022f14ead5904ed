//! What is seen of a WorkloadCluster, of the issuers of others, and of its OIDC provider.

use super::decide::{Facts, Look, State};
use super::record::Record;
use crate::journal::Journal;
use crate::kinds::CLUSTER;
use crate::outside::{Answer, Asked, Cloud, Found, Process, Question, Tags};
use crate::settings::Settings;
use interlock_api::identities::{TAG_FLEET, TAG_OWNER, TAG_OWNER_UID};
use interlock_api::names::{FINALIZER_LIVE_GRANTS, FINALIZER_PROVIDER};
use interlock_api::placement::WorkloadClusterStatus;
use interlock_kernel::metadata::{has_finalizer, is_deleting, name_of, uid_of};
use interlock_kernel::{
    Address, LiveReads, Name, Object, Observed, Place, Subject, View, read_part,
};
use jiff::Timestamp;

/// What one step is about.
#[derive(Debug)]
pub struct Scene {
    /// The WorkloadCluster: by a live read, if there was one.
    pub(super) cluster: Object,
    /// Its status.
    pub(super) status: WorkloadClusterStatus,
    /// What the cloud is asked.
    pub(super) question: Option<Question>,
    /// The process that read the cloud, and when.
    pub(super) process: Process,
    /// The time.
    pub(super) now: Timestamp,
}

/// The issuer that a cluster reports.
pub(super) fn issuer(cluster: &Object) -> Option<String> {
    let status = read_part::<WorkloadClusterStatus>(cluster, "status").ok().flatten()?;
    status.issuer.filter(|issuer| !issuer.is_empty())
}

/// What the cloud tells issuers apart by.
fn host(issuer: &str) -> String {
    let host = issuer.split_once("://").map_or(issuer, |(_, host)| host);
    host.trim_end_matches('/').to_ascii_lowercase()
}

/// Whether a cluster reports an issuer that the cloud cannot tell from this one.
pub(super) fn has_issuer(cluster: &Object, wanted: &str) -> bool {
    issuer(cluster).is_some_and(|issuer| host(&issuer) == host(wanted))
}

fn shared_with(clusters: &[Object], cluster: &Object, issuer: &str) -> Option<String> {
    let mut others = clusters.iter().filter(|other| uid_of(other) != uid_of(cluster));
    others.find(|other| has_issuer(other, issuer)).map(|other| name_of(other).to_owned())
}

/// The tags of the provider of a cluster.
fn tags(cluster: &Object, settings: &Settings) -> Tags {
    let tags = [
        (TAG_FLEET, settings.fleet.clone()),
        (TAG_OWNER, format!("workloadcluster/{}", name_of(cluster))),
        (TAG_OWNER_UID, uid_of(cluster).to_owned()),
    ];
    tags.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Reads what a step is about.
pub(super) fn observe(
    settings: &Settings,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Cloud>,
) -> Observed<Facts, Scene> {
    let address = Address::new(Place::HUB, &CLUSTER, Name::cluster_wide(subject));
    let live = live_reads.objects.get(&address);
    let cached = view.get(Place::HUB, &CLUSTER, &address.name);
    let Some(cluster) = live.cloned().unwrap_or(cached) else {
        return Observed::nothing("there is no such WorkloadCluster");
    };
    let status = read_part::<WorkloadClusterStatus>(&cluster, "status").ok().flatten();
    let status = status.unwrap_or_default();
    let (record, issuer) = (Record::read(&cluster), issuer(&cluster));
    let has_finalizer = has_finalizer(&cluster, FINALIZER_PROVIDER);
    let has_other = issuer.is_some() && record.issuer.is_some() && record.issuer != issuer;
    let removes = has_finalizer && (is_deleting(&cluster) || has_other);
    let asked = match removes {
        true => record.issuer.clone().or_else(|| issuer.clone()),
        false => issuer.clone(),
    };
    let about = uid_of(&cluster).to_owned();
    let question = asked.map(|issuer| Question { object: Asked::Provider { issuer }, about });
    let answer = question.as_ref().and_then(|question| live_reads.answers.get(question));
    let all = live_reads.lists.get(&(Place::HUB, CLUSTER, None));
    let others = |clusters: &[Object]| {
        issuer.as_ref().and_then(|issuer| shared_with(clusters, &cluster, issuer))
    };
    let look = match (answer, live, all) {
        (Some(answer), Some(_), Some(all)) => Some(Look {
            journal: journal(answer, &record, settings),
            state: state(answer, uid_of(&cluster)),
            shared_with: others(all),
        }),
        _ => None,
    };
    let process = look.as_ref().map(|look| look.journal.process.clone()).unwrap_or_default();
    let now = view.now().as_second();
    let facts = Facts {
        is_deleting: is_deleting(&cluster),
        has_finalizer,
        has_grants: has_grants(&cluster),
        removes,
        manages: settings.manages_providers,
        shared_with: others(&view.list(Place::HUB, &CLUSTER, None)),
        issuer,
        audience: settings.audience.clone(),
        tags: tags(&cluster, settings),
        checked_seconds_ago: record.checked.map(|checked| now.saturating_sub(checked)),
        now,
        record,
        resync_seconds: i64::try_from(settings.resync(&cluster).as_secs()).unwrap_or(i64::MAX),
        conditions: status.conditions.clone(),
        has_question: question.is_some(),
        look,
    };
    Observed::Seen { facts, scene: Scene { cluster, status, question, process, now: view.now() } }
}

/// Whether namespaces of the cluster may still need its issuer.
fn has_grants(cluster: &Object) -> bool {
    has_finalizer(cluster, FINALIZER_LIVE_GRANTS)
}

fn journal(answer: &Answer, record: &Record, settings: &Settings) -> Journal {
    Journal {
        mark: record.mark.clone(),
        late_call_seconds: settings.late_call_seconds,
        ..Journal::of(answer)
    }
}

fn state(answer: &Answer, uid: &str) -> State {
    match &answer.found {
        Found::Provider { arn, tags } => State::Provider {
            arn: arn.clone(),
            is_ours: tags.get(TAG_OWNER_UID).is_some_and(|owner| owner == uid),
        },
        Found::Failed(failure) => State::Failed(failure.clone()),
        Found::NotAsked | Found::Absent | Found::Policy(_) | Found::Role(_) => State::Absent,
    }
}
