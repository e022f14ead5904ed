//! Says what would fail of the request that waits, before anything of it is written. The subject is the record.
//!
//! The kinds must be served, or defined by the bundle itself; the namespaces must be there or in the bundle, and must not
//! belong to a Grant; and the applier must be allowed to write there. If the request asks for it, each object is applied as a dry run too.

mod observe;
#[cfg(test)]
mod tests;

use super::Serves;
use super::fence::rights;
use super::object::MOST_FAILED;
use super::outside::Reach;
use crate::kinds::ROLLOUT_REPORT;
use interlock_api::rollouts::{FailedObject, PreflightReport};
use interlock_kernel::{
    LiveReads, Object, Observed, Place, Right, Room, Step, Subject, View, Watch, Watcher, Write,
};
pub use observe::Scene;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// No bundle has objects there.
const SYSTEM: &str = interlock_api::rollouts::SYSTEM_NAMESPACE;

/// The controller.
#[derive(Debug, Clone)]
pub struct Preflight {
    serves: Serves,
}

impl Preflight {
    /// Of this cluster.
    pub fn new(serves: Serves) -> Preflight {
        Preflight { serves }
    }
}

/// All that one decision rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Facts {
    /// The request that waits, by its uid, and the digest of its bundle; None: none does.
    pub asked: Option<Asked>,
    /// The one that the report answers.
    pub answered: Option<Asked>,
    /// Its bundle.
    pub bundle: Bundle,
    /// Whether the cluster was asked which of the kinds it serves.
    pub are_kinds_known: bool,
    /// Whether the namespaces were listed.
    pub are_namespaces_known: bool,
    /// Whether the cluster was asked what the applier may do.
    pub are_rights_known: bool,
    /// Whether objects are to be applied as dry runs, and were not yet.
    pub is_untried: bool,
    /// Its objects.
    pub objects: Vec<Checked>,
}

/// A request, and the digest of its bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Asked {
    /// The uid of the request.
    pub uid: String,
    /// The digest.
    pub digest: String,
}

/// The bundle of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Bundle {
    /// It was not asked for yet.
    #[default]
    Unasked,
    /// It cannot be read, and why.
    Unreadable(String),
    /// It was read.
    Read,
}

/// An object of the request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Checked {
    /// Which.
    pub id: String,
    /// Whether its kind is served, or defined by the bundle.
    pub is_served: bool,
    /// Its namespace.
    pub home: Home,
    /// What the applier may not do with it.
    pub lacks: Option<Lack>,
    /// What the server said to a dry run that it refused: code and message.
    pub refused: Option<(String, String)>,
}

/// What an applier may not do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lack {
    /// The verbs.
    pub verbs: Vec<String>,
    /// Of which kind: the plural and the group, as in `deployments.apps`.
    pub resource: String,
    /// In which namespace; None: in the cluster as a whole.
    pub namespace: Option<String>,
}

/// The namespace of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Home {
    /// It is there, or in the bundle, or the object is in none.
    Fine,
    /// There is no such namespace.
    Missing(String),
    /// It belongs to a Grant: its name, and the Grant.
    Placed(String, String),
    /// It is that of the agent.
    System,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Ask for the bundle.
    AskBundle,
    /// Ask which of the kinds are served.
    AskKinds,
    /// List the namespaces.
    ListNamespaces,
    /// Ask what the applier may do.
    AskRights,
    /// Ask what the server would make of the objects.
    Try,
    /// Answer.
    Answer(PreflightReport),
}

impl Watcher for Preflight {
    fn name(&self) -> &'static str {
        "rollouts/preflight"
    }

    fn watches(&self) -> Vec<Watch> {
        self.serves.watches()
    }

    fn rights(&self) -> Vec<Right> {
        rights()
    }

    fn subjects(&self, _: &Watch, _: &Object, _: &dyn View) -> Vec<Subject> {
        vec![self.serves.subject()]
    }
}

impl Room for Preflight {
    type Outside = Reach;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        _: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Reach>,
    ) -> Observed<Facts, Scene> {
        match observe::observe(&self.serves, view, live_reads) {
            Ok((facts, scene)) => Observed::Seen { facts, scene },
            Err(because) => Observed::Nothing(because),
        }
    }

    fn decide(facts: &Facts) -> Decision {
        let Some(asked) = &facts.asked else { return Decision::Rest("no request waits") };
        if facts.answered.as_ref() == Some(asked) {
            return Decision::Rest("the request that waits is answered");
        }
        let answer = |failures| {
            let (uid, digest) = (asked.uid.clone(), asked.digest.clone());
            Decision::Answer(PreflightReport { uid, digest, failures })
        };
        match &facts.bundle {
            Bundle::Unasked => return Decision::AskBundle,
            Bundle::Unreadable(why) => {
                return answer(vec![failure("BundleRevision", "RevisionMissing", why)]);
            }
            Bundle::Read => {}
        }
        match facts {
            Facts { are_kinds_known: false, .. } => Decision::AskKinds,
            Facts { are_namespaces_known: false, .. } => Decision::ListNamespaces,
            Facts { are_rights_known: false, .. } => Decision::AskRights,
            Facts { is_untried: true, .. } => Decision::Try,
            Facts { objects, .. } => {
                answer(objects.iter().filter_map(fails).take(MOST_FAILED).collect())
            }
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Reach> {
        let live = |reads, because: &str| Step::LiveRead { reads, because: because.to_owned() };
        match decision {
            Decision::Rest(because) => Step::rest(because),
            Decision::AskBundle => live(scene.bundle.clone(), "the bundle says what is asked for"),
            Decision::AskKinds => live(scene.kinds.clone(), "the cluster says what it serves"),
            Decision::ListNamespaces => {
                live(vec![observe::namespaces()], "the cluster says which namespaces there are")
            }
            Decision::AskRights => live(scene.rights.clone(), "the cluster says who may do what"),
            Decision::Try => live(scene.dry_runs.clone(), "the server says what it would make"),
            Decision::Answer(report) => {
                let because = match report.failures.len() {
                    0 => "nothing would fail of the request that waits".to_owned(),
                    some => format!("{some} objects of the request that waits would fail"),
                };
                let change = json!({"status": {"preflight": {
                    "uid": report.uid, "digest": report.digest, "failures": report.failures,
                }}});
                let report = &scene.report;
                let write = Write::patch_status(Place::HUB, &ROLLOUT_REPORT, report, change);
                Step::write(write, because).then_waiting(Some(Duration::from_secs(1)))
            }
        }
    }
}

/// What would fail of an object.
fn fails(object: &Checked) -> Option<FailedObject> {
    let id = &object.id;
    match &object.home {
        Home::System => {
            let message = format!("the namespace {SYSTEM} is that of the agent; use another one");
            return Some(failure(id, "SystemNamespace", &message));
        }
        Home::Placed(namespace, grant) => {
            let message = format!(
                "{namespace} belongs to the Grant {grant}; apply the object to the namespace at the hub"
            );
            return Some(failure(id, "NamespaceIsPlaced", &message));
        }
        Home::Fine | Home::Missing(_) => {}
    }
    if !object.is_served {
        let message = "the cluster does not serve the kind, and the bundle does not define it";
        return Some(failure(id, "KindNotServed", message));
    }
    if let Home::Missing(namespace) = &object.home {
        let message =
            format!("there is no namespace {namespace}; put it into the bundle, or make it first");
        return Some(failure(id, "NamespaceMissing", &message));
    }
    if let Some(Lack { verbs, resource, namespace }) = &object.lacks {
        let place = match namespace {
            Some(namespace) => format!("in namespace {namespace}"),
            None => "in the cluster as a whole".to_owned(),
        };
        let message = format!(
            "the agent lacks the verbs {} of {resource} {place}; give them to the user that it writes as",
            verbs.join(", ")
        );
        return Some(failure(id, "RightMissing", &message));
    }
    object.refused.as_ref().map(|(code, message)| failure(id, code, message))
}

fn failure(id: &str, code: &str, message: &str) -> FailedObject {
    let message = message.chars().take(1_000).collect();
    FailedObject { id: id.to_owned(), code: code.to_owned(), message }
}
