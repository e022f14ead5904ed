//! The cloud role of the ledger: it follows the namespace, and what somebody changes in the cloud is put right.

use super::{Stage, judged, ledger, made, session};
use crate::output;
use anyhow::{Context, bail};
use interlock_api::identities::IamRoleServiceAccount;
use interlock_iam::Outcome;
use interlock_iam::client::Client as Cloud;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The service account of the writer, and the name of its identity.
pub(super) const ACCOUNT: &str = "ledger";
const TIMEOUT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);
/// What somebody writes into the policy by hand.
const FORGED: &str =
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;

/// Declares the identity of the writer, and waits until its service account is there.
pub(super) async fn declare(hub: &Client, namespace: &str) -> anyhow::Result<()> {
    let identities: Api<IamRoleServiceAccount> = Api::namespaced(hub.clone(), namespace);
    let identity = serde_json::from_value(json!({
        "apiVersion": "irsa.voodoo.io/v1alpha1", "kind": "IamRoleServiceAccount",
        "metadata": {"name": ACCOUNT},
        "spec": {"policy": {"statement": [{
            "resource": "arn:aws:s3:::ledger/*", "action": ["s3:GetObject"],
        }]}},
    }))
    .context("an identity")?;
    made(identities.create(&PostParams::default(), &identity).await)?;
    let accounts: Api<ServiceAccount> = Api::namespaced(hub.clone(), namespace);
    let began = Instant::now();
    while accounts.get_opt(ACCOUNT).await.context("cannot read the service account")?.is_none() {
        if began.elapsed() > TIMEOUT {
            bail!(
                "the identity is not ready: see interlock identity explain {namespace}/{ACCOUNT}"
            );
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// The role on its stage.
pub(super) struct Roles<'a> {
    stage: &'a Stage,
    cloud: Cloud,
}

impl Roles<'_> {
    pub(super) fn of(stage: &Stage) -> anyhow::Result<Roles<'_>> {
        Ok(Roles { stage, cloud: stage.cloud.client()? })
    }

    async fn arn(&self) -> anyhow::Result<String> {
        let identities: Api<IamRoleServiceAccount> =
            Api::namespaced(self.stage.hub.clone(), ledger::NAMESPACE);
        let found = identities.get(ACCOUNT).await.context("cannot read the identity")?;
        found.status.and_then(|status| status.role_arn).context("the identity has no role yet")
    }

    /// Whether the process of the ledger could assume the role at its start on a cluster, and nobody could with the token
    /// of the owner before it: as the process itself said.
    pub(super) async fn follow(&self, owner: &str, epoch: i64) -> anyhow::Result<bool> {
        let began = Instant::now();
        loop {
            let sessions = session::read(&self.stage.directory);
            if sessions.iter().any(|session| session.epoch == epoch) {
                return session::check(&sessions, epoch, owner);
            }
            if began.elapsed() > TIMEOUT {
                bail!("the process on {owner} does not say what STS answers to its token");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Somebody changes the policy in the cloud; whether it is as declared again.
    pub(super) async fn is_put_right(&self) -> anyhow::Result<bool> {
        output::say(
            "\nsomebody changes the policy of the role by hand in the cloud: promised: it is as declared \
             again\n",
        )?;
        let arn = self.arn().await?;
        let role = arn.rsplit('/').next().unwrap_or_default().to_owned();
        let attached = done(self.cloud.list_attached_role_policies(&role).await)?;
        let policy = attached.first().context("the role has no policy")?.id.clone();
        let declared = self.document(&policy).await?;
        done(self.cloud.create_policy_version(&policy, FORGED).await)?;
        let began = Instant::now();
        while self.document(&policy).await? != declared {
            if began.elapsed() > TIMEOUT {
                return judged(&["the policy is still what somebody wrote".to_owned()], "");
            }
            tokio::time::sleep(LOOK).await;
        }
        let ms = began.elapsed().as_millis();
        judged(&[], &format!("the policy was put right in {ms} ms"))
    }

    /// The document of a policy that counts.
    async fn document(&self, policy: &str) -> anyhow::Result<Value> {
        let found = done(self.cloud.get_policy(policy).await)?;
        let version = done(self.cloud.get_policy_version(policy, &found.default_version).await)?;
        let text = version.document.unwrap_or_default();
        serde_json::from_str(&text).context("the policy is not JSON")
    }
}

fn done<T>(outcome: Outcome<T>) -> anyhow::Result<T> {
    match outcome {
        Outcome::Done(answer) => Ok(answer),
        Outcome::Refused(refusal) => bail!("the cloud refuses: {}", refusal.code),
        Outcome::Unknown(why) => bail!("the cloud did not answer: {why}"),
    }
}
