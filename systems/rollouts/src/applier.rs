//! Brings a cluster to the target of its record, and answers in the report. It runs in the agent of the cluster.
//!
//! It knows no phases of requests: it follows `status.target` of the ClusterRollout, under its token. Four rooms
//! share the work; each is stateless, so any number of appliers may run at once.
//!
//! * `fence`: raises the fence of the cluster to the token, and proves it. The subject is the record.
//! * `report`: reads all that is the rollouts', by one list for each kind, and says in the RolloutReport how far the cluster
//!   is, and which objects are to be written next. The subject is the record.
//! * `object`: one write for one object that the report names. The subject is the object, so that those of a wave are
//!   written side by side.
//! * `preflight`: says what would fail of the request that waits. The subject is the record.
//!
//! Nobody knows beforehand which kinds a bundle has. So the object rooms read live, and the report room watches the kinds
//! that every cluster has ([`report::WATCHED`]), as far as they have our label; of all others it reads again after a while.
//!
//! What is around them is in `outside`; what an object of a bundle is on the cluster, in `wanted`; whether two objects are
//! the same, in `compare`; what the fence says, in `fenced`. `world` explores all of it.

mod compare;
pub mod fence;
mod fenced;
pub mod object;
pub mod outside;
pub mod preflight;
pub mod report;
#[cfg(test)]
mod testing;
mod wanted;
pub mod world;

use crate::fence::{ANNOTATION_FORCE, ANNOTATION_PRUNE};
use crate::kinds::{CLUSTER_ROLLOUT, ROLLOUT_REPORT};
use interlock_api::placement::Ref;
use interlock_api::rollouts::{
    ClusterRolloutSpec, ClusterRolloutStatus, RolloutReportStatus, record_name,
};
use interlock_kernel::{
    GroupVersion, Kind, Name, Object, Place, Selector, Subject, View, Watch, read_part,
};
use std::sync::Arc;

const CORE: GroupVersion = GroupVersion::new("", "v1");
/// Where objects are.
pub const NAMESPACE: Kind = Kind::cluster_wide(CORE, "Namespace", "namespaces");
/// What the fence is.
pub const CONFIG_MAP: Kind = Kind::namespaced(CORE, "ConfigMap", "configmaps");

/// Which cluster an applier serves, and as whom it writes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serves {
    /// The WorkloadCluster. The uid decides.
    pub cluster: Ref,
    /// The user that it writes as on the cluster: the fence is for this user alone.
    pub user: Arc<str>,
}

impl Serves {
    /// An applier of a cluster, and as whom it writes there.
    pub fn new(cluster: Ref, user: &str) -> Serves {
        Serves { cluster, user: Arc::from(user) }
    }

    /// The name of its record, and of its report.
    pub fn record(&self) -> String {
        record_name(&self.cluster.name, &self.cluster.uid)
    }

    /// Its record and its report, and none of another cluster.
    fn watches(&self) -> Vec<Watch> {
        let named = || Selector::Named(Arc::from(self.record()));
        let watch = |kind: &Kind| Watch::all(Place::HUB, kind).only(named());
        vec![watch(&CLUSTER_ROLLOUT), watch(&ROLLOUT_REPORT)]
    }

    fn subject(&self) -> Subject {
        Subject::from(self.record())
    }

    /// The record as the cache shows it, if it is of this very cluster.
    fn read(&self, view: &dyn View) -> Result<Followed, String> {
        let name = Name::cluster_wide(&self.record());
        let record = view.get(Place::HUB, &CLUSTER_ROLLOUT, &name);
        let record = record.ok_or("the cache shows no ClusterRollout of this cluster")?;
        let spec: Option<ClusterRolloutSpec> = read_part(&record, "spec")?;
        let spec = spec.ok_or("the ClusterRollout has no spec")?;
        if spec.cluster.uid != self.cluster.uid {
            return Err("the ClusterRollout is of another cluster of this name".to_owned());
        }
        let status: Option<ClusterRolloutStatus> = read_part(&record, "status")?;
        let report = view.get(Place::HUB, &ROLLOUT_REPORT, &name);
        let report = report.ok_or("the cache shows no RolloutReport of this cluster")?;
        let said: Option<RolloutReportStatus> = read_part(&report, "status")?;
        Ok(Followed {
            spec,
            status: status.unwrap_or_default(),
            report,
            said: said.unwrap_or_default(),
        })
    }
}

/// The record that an applier follows, and what its report says.
struct Followed {
    spec: ClusterRolloutSpec,
    status: ClusterRolloutStatus,
    report: Object,
    said: RolloutReportStatus,
}

impl Followed {
    /// Whether nothing is in flight, and what others changed is only named.
    fn is_quiet(&self) -> bool {
        let is_idle = self.status.active.is_none() && !self.status.is_degraded;
        let is_verified = self.said.token == self.status.target.token
            && self.said.verdict == interlock_api::rollouts::Verdict::Soaked;
        is_idle && is_verified && self.spec.drift == interlock_api::rollouts::DriftPolicy::Report
    }

    /// The digests of bundles of which objects may be on the cluster, that of the target apart.
    fn others(&self) -> Vec<String> {
        let history = self.status.requests.iter().filter_map(|request| request.digest.clone());
        let all = self.status.may_exist.iter().cloned().chain(history);
        let mut others: Vec<String> =
            all.filter(|digest| Some(digest) != self.status.target.digest.as_ref()).collect();
        others.sort_unstable();
        others.dedup();
        others
    }
}
