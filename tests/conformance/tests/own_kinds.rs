//! Our own kinds in our own API server: their definitions are accepted, and their schemas refuse
//! what no writer may do.

use anyhow::{Context, Result, bail};
use interlock_api::placement::{
    CopyState, DataCopy, ForceOutcome, ForceRelease, ForceReleaseStatus, Grant, GrantStatus,
    OnUnreachable, Phase, Pin, Placement, Ref, Snapshot, VolumePolicy, WorkloadCluster,
};
use interlock_apiserver::access::identity::{MASTERS, Scope};
use interlock_apiserver::{Config, Identity, Server};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Api, Client, ResourceExt, discovery};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::time::Duration;

/// A scenario that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs a scenario with a client of a server in memory that has our kinds, as `interlock serve` does.
async fn with_own_kinds<F>(scenario: impl FnOnce(Client) -> F)
where
    F: Future<Output = Result<()>>,
{
    let definitions = interlock_api::definitions().into_iter();
    let definitions = definitions.chain(interlock_api::node_definitions());
    let definitions = definitions.chain(interlock_api::tenant_definitions());
    let definitions = definitions.map(|own| serde_json::to_value(own).expect("it is an object"));
    let config = Config { hub_definitions: definitions.collect(), ..Config::default() };
    let server = Server::start(config).await.expect("a server in memory starts");
    let admin = Identity::authenticated("admin", vec![MASTERS.to_owned()], Scope::Hub);
    let client = Client::new(server.service(admin), "default");
    let outcome = tokio::time::timeout(TIMEOUT, scenario(client)).await;
    server.stop().await;
    outcome.expect("the scenario hangs").expect("the scenario succeeds");
}

fn read<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("the object can be read")
}

/// The sentence of a refusal; fails when nothing was refused.
fn refusal<T: Debug>(outcome: kube::Result<T>) -> Result<String> {
    match outcome {
        Err(kube::Error::Api(status)) => Ok(status.message.clone()),
        Err(other) => Err(other.into()),
        Ok(accepted) => bail!("this was accepted: {accepted:?}"),
    }
}

/// Fails unless it was refused with that sentence.
fn refused<T: Debug>(outcome: kube::Result<T>, because: &str) -> Result<()> {
    let message = refusal(outcome)?;
    if !message.contains(because) {
        bail!("refused, but not because {because:?}: {message}");
    }
    Ok(())
}

fn cluster(name: &str, connection: Value) -> Value {
    json!({ "apiVersion": "interlock.dev/v1alpha1", "kind": "WorkloadCluster",
        "metadata": { "name": name }, "spec": { "connection": connection } })
}

fn force() -> Value {
    json!({ "apiVersion": "interlock.dev/v1alpha1", "kind": "ForceRelease",
        "metadata": { "name": "shop-4" },
        "spec": { "grant": { "name": "shop", "uid": "g" }, "owner": { "name": "a", "uid": "a" },
            "epoch": 4, "attestation": "PoweredOff", "reason": "the rack burnt down",
            "requester": "mia" } })
}

fn grant() -> Grant {
    read(json!({ "metadata": { "name": "shop-0f3a9c1e" },
        "spec": { "namespace": { "name": "shop", "uid": "n" }, "target": null } }))
}

/// A Grant at epoch 4 that cluster a owns.
async fn granted(grants: &Api<Grant>) -> Result<Grant> {
    let grant = grants.create(&PostParams::default(), &grant()).await?;
    let status = GrantStatus {
        phase: Phase::Granted,
        owner: Some(Ref::new("a", "uid-a")),
        epoch: 4,
        ..GrantStatus::default()
    };
    replace_status(grants, &grant, status).await.context("the first status")
}

async fn replace_status(
    grants: &Api<Grant>,
    grant: &Grant,
    status: GrantStatus,
) -> kube::Result<Grant> {
    let changed = Grant { status: Some(status), ..grant.clone() };
    grants.replace_status(&grant.name_any(), &PostParams::default(), &changed).await
}

/// Objects of a kind of ours that need not be right.
async fn untyped(client: &Client, kind: &str) -> Result<Api<DynamicObject>> {
    let kind = GroupVersionKind::gvk(interlock_api::GROUP, interlock_api::VERSION, kind);
    let (resource, _) = discovery::pinned_kind(client, &kind).await?;
    Ok(Api::all_with(client.clone(), &resource))
}

async fn create(client: &Client, object: Value) -> Result<kube::Result<DynamicObject>> {
    let api = untyped(client, object["kind"].as_str().context("it has a kind")?).await?;
    Ok(api.create(&PostParams::default(), &read(object)).await)
}

async fn patch_status<T: Serialize + Debug>(grants: &Api<Grant>, patch: &T) -> kube::Result<Grant> {
    let params = PatchParams::default();
    grants.patch_status("shop-0f3a9c1e", &params, &Patch::Merge(patch)).await
}

#[tokio::test]
async fn a_cluster_gets_its_defaults() {
    with_own_kinds(async |client| {
        let clusters: Api<WorkloadCluster> = Api::all(client.clone());
        create(&client, cluster("a", json!({ "logicalCluster": "a" }))).await??;
        let spec = clusters.get("a").await?.spec;
        assert!(!spec.drain && !spec.unschedulable && spec.resources.is_empty());
        let secret = json!({ "kubeconfigSecret": { "namespace": "n", "name": "b" } });
        let made = create(&client, cluster("b", secret)).await??;
        let connection = &made.data["spec"]["connection"];
        assert_eq!(connection["kubeconfigSecret"]["key"], "kubeconfig");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_cluster_has_exactly_one_connection() {
    with_own_kinds(async |client| {
        let both = json!({ "logicalCluster": "a",
            "kubeconfigSecret": { "namespace": "n", "name": "a", "key": "k" } });
        refused(create(&client, cluster("a", both)).await?, "spec.connection")?;
        refused(create(&client, cluster("a", json!({}))).await?, "spec.connection")?;
        refused(create(&client, cluster("a", json!({ "logicalCluster": "" }))).await?, "logical")
    })
    .await;
}

#[tokio::test]
async fn a_placement_gets_its_defaults() {
    with_own_kinds(async |client| {
        let placement = json!({ "apiVersion": "interlock.dev/v1alpha1", "kind": "Placement",
            "metadata": { "name": "all" }, "spec": {} });
        let made = create(&client, placement).await??;
        let spec = &made.data["spec"];
        assert_eq!(spec["onUnreachable"], "Hold");
        let volumes =
            json!({ "transport": "Copy", "keepSuperseded": "168h", "verifyOnArrival": true });
        assert_eq!(spec["volumes"], volumes);
        let placements: Api<Placement> = Api::all(client);
        assert_eq!(placements.get("all").await?.spec.volumes, VolumePolicy::default());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_placement_says_only_what_there_is() {
    with_own_kinds(async |client| {
        let placement = |spec: Value| {
            json!({ "apiVersion": "interlock.dev/v1alpha1", "kind": "Placement",
                "metadata": { "name": "p" }, "spec": spec })
        };
        for (spec, because) in [
            (json!({ "onUnreachable": "Guess" }), "spec.onUnreachable"),
            (json!({ "volumes": { "transport": "Pigeon" } }), "spec.volumes.transport"),
            (json!({ "volumes": { "transport": "Restic" } }), "needs a repository"),
            (json!({ "volumes": { "keepSuperseded": "-5s" } }), "spec.volumes.keepSuperseded"),
            (json!({ "volumes": { "keepSuperseded": "7 days" } }), "spec.volumes.keepSuperseded"),
        ] {
            refused(create(&client, placement(spec)).await?, because)?;
        }
        let lease = json!({ "onUnreachable": "TakeOverAfterLease",
            "volumes": { "transport": "Restic", "repository": "backup" } });
        create(&client, placement(lease)).await??;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_grant_gets_its_defaults() {
    with_own_kinds(async |client| {
        let bare = json!({ "apiVersion": "interlock.dev/v1alpha1", "kind": "Grant",
            "metadata": { "name": "shop-0f3a9c1e" },
            "spec": { "namespace": { "name": "shop", "uid": "n" }, "target": null } });
        create(&client, bare).await??;
        let grants: Api<Grant> = Api::all(client);
        let grant = grants.get("shop-0f3a9c1e").await?;
        assert_eq!(grant.spec.on_unreachable, OnUnreachable::Hold);
        assert_eq!(grant.spec.volumes, VolumePolicy::default());
        assert_eq!(grant.status, None);
        let made = patch_status(&grants, &json!({ "status": {} })).await?;
        assert_eq!(made.status_or_default(), GrantStatus::default());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_whole_grant_comes_back_as_it_was() {
    with_own_kinds(async |client| {
        let grants: Api<Grant> = Api::all(client);
        let grant = granted(&grants).await?;
        let (a, b) = (Ref::new("a", "uid-a"), Ref::new("b", "uid-b"));
        let pin = |snapshot: Snapshot| {
            let mut pin: Pin = read(json!({ "claim": "data", "claimUID": "c", "epoch": 4,
                "taken": "2026-01-02T03:04:05Z", "snapshot": { "fresh": {} } }));
            pin.snapshot = snapshot;
            pin
        };
        let (namespace, name, uid) = ("n".to_owned(), "s".to_owned(), "u".to_owned());
        let snapshot_id = "4f".to_owned();
        let pins = vec![
            pin(Snapshot::VolumeSnapshot { cluster: a.clone(), namespace, name, uid }),
            pin(Snapshot::Restic { secret: "backup".to_owned(), snapshot_id }),
            pin(Snapshot::InPlace { cluster: a.clone(), volume: "pv".to_owned() }),
            pin(Snapshot::Fresh {}),
        ];
        let status = GrantStatus {
            phase: Phase::Granted,
            owner: Some(b),
            epoch: 5,
            pins,
            copies: vec![DataCopy { cluster: a, epoch: 4, state: CopyState::Superseded }],
            ..GrantStatus::default()
        };
        let replaced = replace_status(&grants, &grant, status.clone()).await?;
        assert_eq!(replaced.status, Some(status));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_grant_is_for_one_namespace() {
    with_own_kinds(async |client| {
        let grants: Api<Grant> = Api::all(client);
        let mut grant = granted(&grants).await?;
        grant.spec.namespace = Ref::new("shop", "another");
        let name = grant.name_any();
        let outcome = grants.replace(&name, &PostParams::default(), &grant).await;
        refused(outcome, "one namespace and no other")
    })
    .await;
}

#[tokio::test]
async fn the_target_of_a_grant_is_set_and_removed() {
    with_own_kinds(async |client| {
        let grants: Api<Grant> = Api::all(client);
        let name = granted(&grants).await?.name_any();
        let target = |target: Value| Patch::Merge(json!({ "spec": { "target": target } }));
        let params = PatchParams::default();
        let b = json!({ "name": "b", "uid": "uid-b" });
        let desired = grants.patch(&name, &params, &target(b)).await?;
        assert_eq!(desired.spec.target, Some(Ref::new("b", "uid-b")));
        let none = grants.patch(&name, &params, &target(Value::Null)).await?;
        assert_eq!(none.spec.target, None);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_epoch_never_falls() {
    with_own_kinds(async |client| {
        let grants: Api<Grant> = Api::all(client.clone());
        let grant = granted(&grants).await?;
        let fallen = GrantStatus { epoch: 3, ..grant.status_or_default() };
        refused(replace_status(&grants, &grant, fallen).await, "cannot fall")?;
        let forgotten = patch_status(&grants, &json!({ "status": { "epoch": null } })).await;
        refused(forgotten, "cannot fall")?;
        refused(
            patch_status(&grants, &json!({ "status": { "epoch": -1 } })).await,
            "status.epoch",
        )?;
        let gone = patch_status(&grants, &json!({ "status": null })).await;
        refused(gone, "cannot be taken away")?;
        let untyped = untyped(&client, "Grant").await?;
        let mut nothing = untyped.get(&grant.name_any()).await?;
        nothing.data["status"] = Value::Null;
        let params = PostParams::default();
        let outcome = untyped.replace_status(&grant.name_any(), &params, &nothing).await;
        refused(outcome, "cannot be taken away")?;
        assert_eq!(grants.get(&grant.name_any()).await?.status, grant.status);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn another_owner_needs_another_epoch() {
    with_own_kinds(async |client| {
        let grants: Api<Grant> = Api::all(client);
        let grant = granted(&grants).await?;
        let b = Some(Ref::new("b", "uid-b"));
        for owner in [b.clone(), None] {
            let taken = GrantStatus { owner, ..grant.status_or_default() };
            refused(replace_status(&grants, &grant, taken).await, "another epoch")?;
        }
        let revoking = GrantStatus { phase: Phase::Revoking, ..grant.status_or_default() };
        let grant = replace_status(&grants, &grant, revoking).await?;
        let onward = GrantStatus { owner: b, epoch: 5, ..grant.status_or_default() };
        replace_status(&grants, &grant, onward).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_force_release_cannot_be_edited() {
    with_own_kinds(async |client| {
        create(&client, force()).await??;
        let forces: Api<ForceRelease> = Api::all(client);
        for change in [json!({ "epoch": 5 }), json!({ "owner": { "uid": "b" } })] {
            let patch = Patch::Merge(json!({ "spec": change }));
            let outcome = forces.patch("shop-4", &PatchParams::default(), &patch).await;
            refused(outcome, "cannot be edited")?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_force_release_says_why_and_by_whom() {
    with_own_kinds(async |client| {
        for (field, value) in [
            ("reason", json!("because")),
            ("requester", json!("")),
            ("attestation", json!("Probably")),
            ("epoch", json!(-1)),
            ("owner", json!({ "name": "a" })),
        ] {
            let mut bad = force();
            bad["spec"][field] = value;
            refused(create(&client, bad).await?, &format!("spec.{field}"))?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_outcome_of_a_force_release_is_final() {
    with_own_kinds(async |client| {
        create(&client, force()).await??;
        let forces: Api<ForceRelease> = Api::all(client);
        let mut force = forces.get("shop-4").await?;
        let params = PostParams::default();
        for outcome in [ForceOutcome::Pending, ForceOutcome::Applied] {
            force.status = Some(ForceReleaseStatus { outcome, because: None });
            force = forces.replace_status("shop-4", &params, &force).await?;
        }
        let because = Some("the epoch is 7; the ForceRelease names 4".to_owned());
        force.status = Some(ForceReleaseStatus { outcome: ForceOutcome::Refused, because });
        refused(forces.replace_status("shop-4", &params, &force).await, "final")
    })
    .await;
}
