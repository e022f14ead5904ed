//! What the applier of a cluster asks beside the API: bundles of the hub, the kinds of its cluster, and whether late writes
//! are refused there, and what it may do there.

mod rights;
mod servers;

use interlock_api::rollouts::{BundleRevision, part_name};
use interlock_kernel::Kind;
use interlock_rollouts::applier::outside::{Answer, Held, Nothing, Probe, Question, Reach};
use interlock_rollouts::bundle::{Bundle, MOST_PARTS, joined};
use interlock_shell::Driver;
use kube::Client;
use kube::api::Api;
use serde::Deserialize;
pub(crate) use servers::ApiServers;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many bundles are kept: the target, the last good one, and a few of the history.
const MOST_BUNDLES: usize = 6;
/// The driver of the applier of one cluster.
#[derive(Clone)]
pub(super) struct Questions {
    /// The hub, as the account of the applier; None: it has no seat there.
    hub: Option<Client>,
    /// The cluster, as the account of the applier.
    cluster: Option<Client>,
    servers: ApiServers,
    known: Arc<Mutex<Known>>,
}

/// What is true for as long as it is asked.
#[derive(Default)]
struct Known {
    /// Bundles by their digests, the one that was asked for last at the end.
    bundles: VecDeque<Arc<Bundle>>,
    /// Kinds that the cluster was seen to serve, by apiVersion and kind. One that is not served may come at any moment.
    kinds: BTreeMap<(String, String), Kind>,
}

impl Questions {
    pub(super) fn new(
        hub: Option<Client>,
        cluster: Option<Client>,
        servers: ApiServers,
    ) -> Questions {
        Questions { hub, cluster, servers, known: Arc::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn bundle(&self, digest: &str) -> Result<Held, String> {
        let kept = self.known().kept(digest);
        if let Some(bundle) = kept {
            return Ok(Held::Whole(bundle));
        }
        let hub = self.hub.clone().ok_or("the applier has no seat at the hub")?;
        let api: Api<BundleRevision> = Api::all(hub);
        let (mut parts, mut count) = (Vec::new(), 1);
        while parts.len() < count {
            let name = part_name(digest, u32::try_from(parts.len()).unwrap_or(u32::MAX));
            let found = api.get_opt(&name).await;
            let found =
                found.map_err(|error| format!("cannot read BundleRevision {name}: {error}"));
            let Some(part) = found? else {
                return Ok(Held::Unreadable(format!("there is no BundleRevision {name}")));
            };
            count = usize::try_from(part.spec.parts).unwrap_or(usize::MAX).min(MOST_PARTS);
            parts.push(part.spec);
        }
        Ok(match joined(digest, &parts) {
            Ok(bundle) => {
                let bundle = Arc::new(bundle);
                self.known().keep(&bundle);
                Held::Whole(bundle)
            }
            Err(flaw) => Held::Unreadable(flaw.to_string()),
        })
    }

    async fn served(&self, version: String, kind: String) -> Result<Option<Kind>, String> {
        let key = (version, kind);
        let kept = self.known().kinds.get(&key).cloned();
        if kept.is_some() {
            return Ok(kept);
        }
        let client = self.cluster.as_ref().ok_or("the applier has no seat on the cluster")?;
        let path = match key.0.contains('/') {
            true => format!("/apis/{}", key.0),
            false => format!("/api/{}", key.0),
        };
        let request = http::Request::get(&path).body(Vec::new());
        let request = request.map_err(|error| format!("{} is no apiVersion: {error}", key.0))?;
        let found = match client.request::<Resources>(request).await {
            Ok(list) => list.kind(&key.0, &key.1),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(format!("cannot read the kinds of {}: {error}", key.0)),
        };
        if let Some(kind) = &found {
            self.known().kinds.insert(key, kind.clone());
        }
        Ok(found)
    }
}

impl Known {
    fn kept(&mut self, digest: &str) -> Option<Arc<Bundle>> {
        let place = self.bundles.iter().position(|bundle| bundle.digest() == digest)?;
        let found = self.bundles.remove(place)?;
        self.bundles.push_back(Arc::clone(&found));
        Some(found)
    }

    fn keep(&mut self, bundle: &Arc<Bundle>) {
        self.bundles.push_back(Arc::clone(bundle));
        while self.bundles.len() > MOST_BUNDLES {
            self.bundles.pop_front();
        }
    }
}

/// The kinds of one apiVersion, as a server lists them.
#[derive(Debug, Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Debug, Deserialize)]
struct Resource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}

impl Resources {
    fn kind(&self, api_version: &str, kind: &str) -> Option<Kind> {
        // What has a slash is a part of another kind, and may have the kind of a third one.
        let is_it = |it: &&Resource| it.kind == kind && !it.name.contains('/');
        let found = self.resources.iter().find(is_it)?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Some(Kind {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
            kind: kind.to_owned().into(),
            plural: found.name.clone().into(),
            is_namespaced: found.namespaced,
        })
    }
}

impl Driver<Reach> for Questions {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        match question {
            Question::Bundle(digest) => self.bundle(&digest).await.map(Answer::Bundle),
            Question::Served(version, kind) => self.served(version, kind).await.map(Answer::Served),
            Question::Refuses(token) => {
                let probe = self.servers.refuse(self.cluster.as_ref(), token).await;
                if let Probe::Taken(because) | Probe::Unreachable(because) = &probe {
                    tracing::warn!(because, "the fence of the cluster is not proven yet");
                }
                Ok(Answer::Refuses(probe))
            }
            Question::Lacks(scopes) => {
                let cluster =
                    self.cluster.as_ref().ok_or("the applier has no seat on the cluster")?;
                rights::lacks(cluster, scopes).await.map(Answer::Lacks)
            }
        }
    }

    async fn perform(&self, _: Nothing) -> Result<(), String> {
        Err("an applier does nothing outside of the API".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bundle(name: &str) -> Arc<Bundle> {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        Arc::new(Bundle::from_objects([object]).unwrap())
    }

    #[test]
    fn the_bundles_that_were_asked_for_last_are_kept() {
        let (mut known, first) = (Known::default(), bundle("first"));
        known.keep(&first);
        for name in ["a", "b", "c", "d", "e"] {
            known.keep(&bundle(name));
            assert!(known.kept(first.digest()).is_some(), "{name}");
        }
        known.keep(&bundle("f"));
        assert!(known.kept(first.digest()).is_some());
        assert!(known.kept(bundle("a").digest()).is_none());
        assert_eq!(known.bundles.len(), MOST_BUNDLES);
    }

    #[test]
    fn a_kind_is_found_by_its_own_resource_and_not_by_a_part_of_another() {
        let list: Resources = serde_json::from_value(json!({"resources": [
            {"name": "deployments/scale", "kind": "Scale", "namespaced": true},
            {"name": "deployments/status", "kind": "Deployment", "namespaced": true},
            {"name": "deployments", "kind": "Deployment", "namespaced": true},
        ]}))
        .unwrap();
        let found = list.kind("apps/v1", "Deployment").unwrap();
        assert_eq!((&*found.plural, found.is_namespaced), ("deployments", true));
        assert_eq!((&*found.group, &*found.version), ("apps", "v1"));
        assert!(list.kind("apps/v1", "Scale").is_none());
    }
}
