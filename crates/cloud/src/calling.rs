//! An action as one request.

use crate::account::Account;
use crate::documents::Key;
use crate::place::Target;
use interlock_iam::Outcome;
use interlock_iam::client::{NewPolicy, NewProvider, NewRole};
use interlock_identities::outside::Call;

/// How long a session of a role may be.
const SESSION_SECONDS: u64 = 3_600;

/// Sends a call, once.
pub(crate) async fn send(account: &Account, target: &Target, call: Call) -> Outcome<()> {
    let Target { arn, path, name } = target;
    let client = &account.client;
    let (path, new_name) = (path.clone(), name.clone());
    match call {
        Call::CreatePolicy { document, tags } => {
            let policy = NewPolicy { path, name: new_name, document, tags, ..NewPolicy::default() };
            let made = client.create_policy(&policy).await;
            made.map(|made| {
                let of = Key { arn: made.arn, id: made.id, version: made.default_version };
                account.documents.put(of, &policy.document);
            })
        }
        Call::TagPolicy { tags } => client.tag_policy(arn, &tags).await,
        Call::CreatePolicyVersion { document } => {
            let made = client.create_policy_version(arn, &document).await;
            made.map(|made| account.documents.made(arn, &made.id, &document))
        }
        Call::SetDefaultPolicyVersion { version } => {
            client.set_default_policy_version(arn, &version).await
        }
        Call::DeletePolicyVersion { version } => client.delete_policy_version(arn, &version).await,
        Call::DeletePolicy => client.delete_policy(arn).await,
        Call::CreateRole { trust, boundary, tags } => {
            let most_session_seconds = Some(SESSION_SECONDS);
            let role =
                NewRole { path, name: new_name, trust, boundary, tags, ..NewRole::default() };
            client.create_role(&NewRole { most_session_seconds, ..role }).await.map(drop)
        }
        Call::TagRole { tags } => client.tag_role(name, &tags).await,
        Call::UpdateAssumeRolePolicy { trust } => {
            client.update_assume_role_policy(name, &trust).await
        }
        Call::PutRolePermissionsBoundary { arn } => {
            client.put_role_permissions_boundary(name, &arn).await
        }
        Call::AttachRolePolicy { arn } => client.attach_role_policy(name, &arn).await,
        Call::DetachRolePolicy { arn } => client.detach_role_policy(name, &arn).await,
        Call::PutRolePolicy { name: policy, document } => {
            client.put_role_policy(name, &policy, &document).await
        }
        Call::DeleteRolePolicy { name: policy } => client.delete_role_policy(name, &policy).await,
        Call::DeleteRole => client.delete_role(name).await,
        Call::CreateOpenIdConnectProvider { issuer, audience, tags } => {
            let audiences = vec![audience];
            let provider = NewProvider { url: issuer, audiences, tags, ..NewProvider::default() };
            client.create_open_id_connect_provider(&provider).await.map(drop)
        }
        Call::DeleteOpenIdConnectProvider => client.delete_open_id_connect_provider(arn).await,
    }
}
