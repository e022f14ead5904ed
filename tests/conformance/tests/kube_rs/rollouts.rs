//! The fence of rollouts as it ships, on the API server: what the user of an applier may write, and nothing else.

use anyhow::{Context, Result};
use interlock_apiserver::access::identity::{MASTERS, Scope};
use interlock_apiserver::{Identity, Server};
use interlock_rollouts::fence::{EXACT, is_refusal, manifests, probe};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, Error};
use serde_json::{Value, json};
use std::sync::Arc;

const USER: &str = "interlock-applier";
const LABEL: &str = "interlock.dev/rollout";

/// A person, and the applier, on a server with a fence.
struct Fenced {
    person: Client,
    applier: Client,
}

impl Fenced {
    async fn new() -> Result<Fenced> {
        let server = Server::in_memory().await?;
        let client = |user: &str| {
            let identity = Identity::authenticated(user, vec![MASTERS.to_owned()], Scope::Hub);
            Client::new(server.service(identity), "default")
        };
        let fenced = Fenced { person: client("admin"), applier: client(USER) };
        for manifest in manifests(USER) {
            fenced.make(manifest).await?;
        }
        Ok(fenced)
    }

    async fn make(&self, manifest: Value) -> Result<()> {
        let object: DynamicObject = serde_json::from_value(manifest)?;
        let types = object.types.clone().context("a manifest says what it is")?;
        let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(&types)?);
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(self.person.clone(), namespace, &kind),
            None => Api::all_with(self.person.clone(), &kind),
        };
        api.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Raises the fence as the applier does.
    async fn raise(&self, token: i64) -> kube::Result<ConfigMap> {
        let maps: Api<ConfigMap> = Api::namespaced(self.applier.clone(), "interlock-system");
        let patch = Patch::Merge(json!({"data": {"token": token.to_string()}}));
        maps.patch("rollout-fence", &PatchParams::default(), &patch).await
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.applier.clone())
    }

    /// Applies a ConfigMap as the applier does.
    async fn apply(&self, name: &str, token: i64) -> kube::Result<ConfigMap> {
        self.apply_in("default", name, token).await
    }

    async fn apply_in(&self, namespace: &str, name: &str, token: i64) -> kube::Result<ConfigMap> {
        self.apply_with(namespace, name, token, json!({"by": token.to_string()})).await
    }

    async fn apply_with(
        &self,
        namespace: &str,
        name: &str,
        token: i64,
        data: Value,
    ) -> kube::Result<ConfigMap> {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": name, "labels": {LABEL: "uid-west"}, "annotations": {
            "interlock.dev/id": format!("/ConfigMap/{namespace}/{name}"),
            "interlock.dev/token": token.to_string(),
        }}});
        let params = PatchParams::apply("interlock-rollouts").force();
        let maps: Api<ConfigMap> = Api::namespaced(self.applier.clone(), namespace);
        maps.patch(name, &params, &Patch::Apply(object)).await
    }

    async fn mark(&self, name: &str, token: i64) -> kube::Result<ConfigMap> {
        let annotations = json!({"interlock.dev/prune": token.to_string()});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        self.maps().patch(name, &PatchParams::default(), &patch).await
    }

    async fn delete(&self, name: &str) -> kube::Result<()> {
        self.maps().delete(name, &DeleteParams::default()).await.map(|_| ())
    }
}

/// What the policy says to a write that it refuses.
fn refused<T: std::fmt::Debug>(answer: kube::Result<T>) -> String {
    match answer {
        Err(Error::Api(status)) => {
            assert_eq!(status.code, 422, "{status:?}");
            assert!(status.message.contains("interlock-rollout-fence"), "{status:?}");
            status.message.clone()
        }
        other => panic!("it is not refused: {other:?}"),
    }
}

#[tokio::test]
async fn the_policy_says_that_it_is_exact() -> Result<()> {
    let fenced = Fenced::new().await?;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(fenced.person.clone());
    let policy = policies.get("interlock-rollout-fence").await?;
    let status = policy.status.context("a status")?;
    let conditions = status.conditions.context("conditions")?;
    let exact = conditions.iter().find(|it| it.type_ == EXACT).context("the condition")?;
    assert_eq!(
        (exact.status.as_str(), exact.observed_generation),
        ("True", policy.metadata.generation)
    );
    let checked = status.type_checking.and_then(|checked| checked.expression_warnings);
    assert_eq!(checked.unwrap_or_default(), []);
    Ok(())
}

#[tokio::test]
async fn a_write_that_is_older_than_the_fence_is_refused() -> Result<()> {
    let fenced = Fenced::new().await?;
    fenced.raise(6).await?;
    fenced.apply("a", 6).await?;
    fenced.raise(7).await?;
    // A late creation, a late change, and a probe.
    assert!(is_refusal(&refused(fenced.apply("b", 6).await)));
    assert!(is_refusal(&refused(fenced.apply("a", 6).await)));
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let asked: ConfigMap = serde_json::from_value(probe(6))?;
    assert!(is_refusal(&refused(fenced.maps().create(&params, &asked).await)));
    let asked: ConfigMap = serde_json::from_value(probe(7))?;
    fenced.maps().create(&params, &asked).await?;
    fenced.apply("a", 7).await?;
    fenced.apply("b", 7).await?;
    // Without a token nothing is written.
    let plain: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "plain"}}))?;
    assert!(is_refusal(&refused(fenced.maps().create(&PostParams::default(), &plain).await)));
    Ok(())
}

#[tokio::test]
async fn the_fence_only_grows_and_nothing_else_is_written_beside_it() -> Result<()> {
    let fenced = Fenced::new().await?;
    fenced.raise(7).await?;
    assert!(refused(fenced.raise(6).await).contains("FenceFalls"));
    let maps: Api<ConfigMap> = Api::namespaced(fenced.applier.clone(), "interlock-system");
    let gone = maps.delete("rollout-fence", &DeleteParams::default()).await;
    assert!(refused(gone.map(|_| ())).contains("FenceFalls"));
    let beside = fenced.apply_in("interlock-system", "a", 7).await;
    assert!(refused(beside).contains("SystemNamespace"));
    Ok(())
}

#[tokio::test]
async fn a_deletion_needs_the_mark_of_this_very_token() -> Result<()> {
    let fenced = Fenced::new().await?;
    fenced.raise(6).await?;
    fenced.apply("a", 6).await?;
    assert!(is_refusal(&refused(fenced.delete("a").await)));
    fenced.mark("a", 6).await?;
    fenced.raise(7).await?;
    // The mark is of an older target: this one may want the object.
    assert!(is_refusal(&refused(fenced.delete("a").await)));
    assert!(is_refusal(&refused(fenced.mark("a", 5).await)));
    fenced.mark("a", 7).await?;
    fenced.delete("a").await?;
    Ok(())
}

#[tokio::test]
async fn an_object_of_somebody_else_is_not_applied_over() -> Result<()> {
    let fenced = Fenced::new().await?;
    fenced.raise(7).await?;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}});
    fenced.make(theirs).await?;
    assert!(refused(fenced.apply("a", 7).await).contains("NotOurs"));
    // A copy of ours has our label, and names another object.
    let copy = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "default",
        "labels": {LABEL: "uid-west"}, "annotations": {"interlock.dev/id": "/ConfigMap/default/a"}}});
    fenced.make(copy).await?;
    assert!(refused(fenced.apply("b", 7).await).contains("NotOurs"));
    // Whoever says so takes it over.
    let forced = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": {
        "interlock.dev/id": "/ConfigMap/default/a", "interlock.dev/token": "7", "interlock.dev/force": "true"}}});
    let params = PatchParams::apply("interlock-rollouts").force();
    fenced.maps().patch("a", &params, &Patch::Apply(forced)).await?;
    Ok(())
}

#[tokio::test]
async fn a_namespace_of_a_grant_is_not_written_to() -> Result<()> {
    let fenced = Fenced::new().await?;
    fenced.raise(7).await?;
    let placed = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop-b7ec4b15",
        "annotations": {"interlock.dev/grant": "grant-1"}}});
    fenced.make(placed).await?;
    let said = refused(fenced.apply_in("shop-b7ec4b15", "a", 7).await);
    assert!(said.contains("NamespaceIsPlaced") && said.contains("grant-1"), "{said}");
    // Nor is the namespace itself.
    let namespaces: Api<Namespace> = Api::all(fenced.applier.clone());
    let taken = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop-b7ec4b15",
        "annotations": {"interlock.dev/id": "/Namespace//shop-b7ec4b15", "interlock.dev/token": "7"}}});
    let params = PatchParams::apply("interlock-rollouts");
    let said = refused(namespaces.patch("shop-b7ec4b15", &params, &Patch::Apply(taken)).await);
    assert!(said.contains("NamespaceIsPlaced"), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_fence_that_somebody_deletes_locks_nobody_out() -> Result<()> {
    let fenced = Fenced::new().await?;
    let maps: Api<ConfigMap> = Api::namespaced(fenced.person.clone(), "interlock-system");
    maps.delete("rollout-fence", &DeleteParams::default()).await?;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}});
    fenced.make(theirs).await?;
    Ok(())
}

#[tokio::test]
async fn a_fence_that_rises_meanwhile_stops_the_write() -> Result<()> {
    let fenced = Arc::new(Fenced::new().await?);
    fenced.raise(1).await?;
    let writer = tokio::spawn({
        let fenced = Arc::clone(&fenced);
        async move {
            // Each is another one, or nothing would be written.
            for number in 0.. {
                let data = json!({"number": number.to_string()});
                if fenced.apply_with("default", "a", 1, data).await.is_err() {
                    return;
                }
            }
        }
    });
    tokio::task::yield_now().await;
    let raised = fenced.raise(2).await?;
    writer.await?;
    let last = fenced.maps().get("a").await?;
    let version = |map: &ConfigMap| map.metadata.resource_version.clone()?.parse::<u64>().ok();
    assert!(version(&last) < version(&raised), "something landed after the fence rose");
    Ok(())
}
