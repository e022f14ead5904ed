//! Who one is, and what one may do.

use crate::servers::{Reached, judge};
use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::PostParams;
use kube::{Api, Client, Error};
use serde_json::json;

crate::both_ways! {
    one_can_ask_what_one_may_do
    tokens_can_be_requested_and_reviewed
}

mod scenarios {
    use anyhow::{Context, Result};
    use k8s_openapi::api::authentication::v1::{
        SelfSubjectReview, TokenRequest, TokenReview, TokenReviewSpec,
    };
    use k8s_openapi::api::authorization::v1::{
        SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
    };
    use k8s_openapi::api::core::v1::ServiceAccount;
    use kube::api::PostParams;
    use kube::{Api, Client};
    use serde_json::{Value, json};

    async fn review<K>(client: &Client, spec: Value) -> Result<K>
    where
        K: kube::Resource<DynamicType = ()>
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let review = serde_json::from_value(json!({"spec": spec, "metadata": {}}))?;
        Ok(Api::all(client.clone()).create(&PostParams::default(), &review).await?)
    }

    pub(super) async fn one_can_ask_what_one_may_do(client: Client) -> Result<()> {
        let delete = json!({"namespace": "default", "verb": "delete", "resource": "pods"});
        let own: SelfSubjectAccessReview =
            review(&client, json!({"resourceAttributes": delete})).await?;
        assert!(own.status.context("an answer")?.allowed);
        let spec = json!({"user": "nobody", "resourceAttributes": delete});
        let other: SubjectAccessReview = review(&client, spec).await?;
        assert!(!other.status.context("an answer")?.allowed);
        let rules: SelfSubjectRulesReview =
            review(&client, json!({"namespace": "default"})).await?;
        assert!(!rules.status.context("an answer")?.resource_rules.is_empty());
        let me: SelfSubjectReview = review(&client, json!({})).await?;
        let me = me.status.and_then(|status| status.user_info).context("an answer")?;
        assert!(me.groups.context("groups")?.contains(&"system:masters".to_owned()));
        Ok(())
    }

    pub(super) async fn tokens_can_be_requested_and_reviewed(client: Client) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
        let request: TokenRequest =
            serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": ["api"]}}))?;
        let given =
            accounts.create_token_request("default", &PostParams::default(), &request).await?;
        let token = given.status.map(|status| status.token).context("a token")?;
        let spec = TokenReviewSpec { audiences: Some(vec!["api".into()]), token: Some(token) };
        let reviewed: TokenReview = review(&client, serde_json::to_value(spec)?).await?;
        let status = reviewed.status.context("an answer")?;
        assert_eq!(status.authenticated, Some(true), "{status:?}");
        let user = status.user.and_then(|user| user.username);
        assert_eq!(user.as_deref(), Some("system:serviceaccount:default:default"));
        Ok(())
    }
}

/// A client that shows a ServiceAccount's token instead of the administrator's certificate.
async fn as_account(reached: &Reached, admin: &Client) -> Result<Client> {
    let accounts: Api<ServiceAccount> = Api::default_namespaced(admin.clone());
    let request: TokenRequest =
        serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": []}}))?;
    let given = accounts.create_token_request("default", &PostParams::default(), &request).await?;
    let token = given.status.map(|status| status.token).context("a token")?;
    let mut config = reached.config().await;
    config.auth_info.client_certificate_data = None;
    config.auth_info.client_key_data = None;
    config.auth_info.token = Some(token.into());
    Ok(Client::try_from(config)?)
}

#[tokio::test]
async fn an_account_may_do_what_its_role_says_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let reached = Reached::start(directory.path(), None).await;
    judge(async {
        let admin = reached.client().await;
        let account = as_account(&reached, &admin).await?;
        let maps: Api<ConfigMap> = Api::default_namespaced(account);
        let Err(Error::Api(status)) = maps.list(&Default::default()).await else {
            panic!("nobody allowed it");
        };
        assert!(status.is_forbidden(), "{status:?}");
        let role: Role = serde_json::from_value(json!({"metadata": {"name": "reader"}, "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]}))?;
        let roles: Api<Role> = Api::default_namespaced(admin.clone());
        roles.create(&PostParams::default(), &role).await?;
        let binding: RoleBinding = serde_json::from_value(json!({"metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]}))?;
        let bindings: Api<RoleBinding> = Api::default_namespaced(admin);
        bindings.create(&PostParams::default(), &binding).await?;
        maps.list(&Default::default()).await?;
        let map = serde_json::from_value(json!({"metadata": {"name": "a"}}))?;
        let refused = maps.create(&PostParams::default(), &map).await;
        assert!(matches!(refused, Err(Error::Api(status)) if status.is_forbidden()));
        Ok(())
    })
    .await;
    reached.stop().await;
}

#[tokio::test]
async fn a_stranger_gets_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let reached = Reached::start(directory.path(), None).await;
    judge(async {
        let mut config = reached.config().await;
        config.auth_info.client_certificate_data = None;
        config.auth_info.client_key_data = None;
        let anonymous = Client::try_from(config.clone())?;
        let maps: Api<ConfigMap> = Api::default_namespaced(anonymous.clone());
        let Err(Error::Api(status)) = maps.list(&Default::default()).await else {
            panic!("strangers may not list");
        };
        assert_eq!(status.code, 401, "{status:?}");
        anonymous.apiserver_version().await?;
        config.auth_info.token = Some("made-up".to_owned().into());
        let liar: Api<ConfigMap> = Api::default_namespaced(Client::try_from(config)?);
        let Err(Error::Api(status)) = liar.list(&Default::default()).await else {
            panic!("a made-up token is no token");
        };
        assert_eq!(status.code, 401, "{status:?}");
        Ok(())
    })
    .await;
    reached.stop().await;
}
