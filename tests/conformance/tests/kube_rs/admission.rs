//! What kube-rs sees of admission: typed policies, refusals and quotas.

crate::both_ways! {
    a_policy_with_a_parameter_refuses_what_is_too_large
    a_quota_is_charged_when_a_write_is_answered
}

mod scenarios {
    use anyhow::{Context, Result};
    use k8s_openapi::api::admissionregistration::v1::{
        ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    };
    use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota, Secret};
    use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
    use kube::{Api, Client, Error};
    use serde_json::{Value, json};

    async fn make<K>(api: &Api<K>, object: Value) -> Result<K>
    where
        K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        Ok(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
    }

    fn refusal<K: std::fmt::Debug>(result: Result<K>) -> Result<(u16, String)> {
        let error = result.err().context("the write is refused")?;
        match error.downcast::<Error>()? {
            Error::Api(status) => Ok((status.code, status.message.clone())),
            other => Err(other.into()),
        }
    }

    pub(super) async fn a_policy_with_a_parameter_refuses_what_is_too_large(
        client: Client,
    ) -> Result<()> {
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let secrets: Api<Secret> = Api::default_namespaced(client);
        make(&maps, json!({"metadata": {"name": "most"}, "data": {"keys": "1"}})).await?;
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"],
            "operations": ["CREATE", "UPDATE"]});
        let policy = make(
            &policies,
            json!({"metadata": {"name": "most"}, "spec": {
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{
                    "expression": "!has(object.data) || size(object.data) <= int(params.data.keys)",
                    "messageExpression": "'at most ' + params.data.keys + ' keys'",
                }],
            }}),
        )
        .await?;
        let status = policy.status.context("a status")?;
        let is_exact = |kind: &str| kind == "interlock.dev/Exact";
        let conditions = status.conditions.context("conditions")?;
        assert!(conditions.iter().any(|condition| is_exact(&condition.type_)));
        make(
            &bindings,
            json!({"metadata": {"name": "most"}, "spec": {
                "policyName": "most", "validationActions": ["Deny"],
                "paramRef": {"name": "most", "namespace": "default",
                    "parameterNotFoundAction": "Deny"},
            }}),
        )
        .await?;
        let two = json!({"metadata": {"name": "two"}, "stringData": {"a": "1", "b": "2"}});
        let (code, message) = refusal(make(&secrets, two.clone()).await)?;
        assert_eq!(code, 422);
        assert_eq!(
            message,
            "secrets \"two\" is forbidden: ValidatingAdmissionPolicy 'most' with binding 'most' \
             denied request: at most 1 keys"
        );
        // The next write is judged by what the parameter is now.
        let more = Patch::Merge(json!({"data": {"keys": "2"}}));
        maps.patch("most", &PatchParams::default(), &more).await?;
        make(&secrets, two).await?;
        Ok(())
    }

    pub(super) async fn a_quota_is_charged_when_a_write_is_answered(client: Client) -> Result<()> {
        let quotas: Api<ResourceQuota> = Api::default_namespaced(client.clone());
        let secrets: Api<Secret> = Api::default_namespaced(client);
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "1"}}});
        make(&quotas, quota).await?;
        make(&secrets, json!({"metadata": {"name": "a"}})).await?;
        let used = quotas.get("q").await?.status.and_then(|status| status.used);
        assert_eq!(used.context("what is used")?["secrets"].0, "1");
        let (code, message) = refusal(make(&secrets, json!({"metadata": {"name": "b"}})).await)?;
        assert_eq!(code, 403);
        assert!(message.contains("exceeded quota: q"), "{message}");
        secrets.delete("a", &DeleteParams::default()).await?;
        Ok(())
    }
}
