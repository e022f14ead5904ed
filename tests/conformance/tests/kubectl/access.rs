//! Who one is and what one may: can-i, whoami, impersonation, tokens, certificates.

use crate::world::each;

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_asks_what_it_may_do() {
    each(|k| {
        k.says("create ns shop", "namespace/shop created");
        k.says("create cm a -n shop", "configmap/a created");
        k.ok("create role reader -n shop --verb=get,list --resource=configmaps");
        k.ok("create rolebinding readers -n shop --role=reader --serviceaccount=shop:default --user=jane");

        k.says("auth can-i create pods", "yes");
        k.says("auth can-i list configmaps -n shop --as=jane", "yes");
        k.says("auth can-i list configmaps -n shop --as=system:serviceaccount:shop:default", "yes");
        for question in
            ["list configmaps -n default", "delete configmaps -n shop", "get secrets -n shop"]
        {
            let said = k.run(&format!("auth can-i {question} --as=jane"), "");
            assert_eq!((said.code, said.out.trim_end()), (Some(1), "no"), "{question}");
        }
        let listed = k.ok("auth can-i --list -n shop --as=jane");
        let rows: Vec<String> = listed
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert!(rows.contains(&"configmaps [] [] [get list]".to_owned()), "{listed}");

        k.says("get cm a -n shop -o name --as=jane", "configmap/a");
        k.fails(
            "get secrets -n shop --as=jane",
            "Error from server (Forbidden): secrets is forbidden: User \"jane\" cannot list resource \"secrets\" \
             in API group \"\" in the namespace \"shop\"",
        );
        k.fails(
            "get pods -A --as=jane --as-group=x",
            "Error from server (Forbidden): pods is forbidden: User \"jane\" cannot list resource \"pods\" \
             in API group \"\" at the cluster scope",
        );
        if k.since(28) {
            k.mentions(
                "auth whoami",
                &["interlock-admin", "[system:masters system:authenticated]"],
            );
            k.mentions("auth whoami --as=jane --as-group=x", &["jane", "[x system:authenticated]"]);
        }
        if k.since(24) {
            let token = k.ok("create token default -n shop");
            let token = token.trim_end();
            // A certificate would win over the token: this user has none.
            k.ok(&format!("config set-credentials bot --token={token}"));
            k.ok("config set-context bot --cluster=root --user=bot --namespace=shop");
            k.says("get cm a -o name --context=bot", "configmap/a");
            k.refuses(
                "",
                "get secrets --context=bot",
                &["User \"system:serviceaccount:shop:default\" cannot list"],
            );
            k.ok("config set-credentials bot --token=nonsense");
            k.refuses("", "get cm --context=bot", &["You must be logged in to the server"]);
        }
    });
}

/// A request made with openssl for CN=me, O=devs.
const REQUEST: &str = "\
LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1INENBUUF3SERFTE1Ba0dBMVVFQXd3Q2JXVXhEVEFM\
QmdOVkJBb01CR1JsZG5Nd1dUQVRCZ2NxaGtqTwpQUUlCQmdncWhrak9QUU1CQndOQ0FBUVlCditXMnJ0R3dCNVlKK3MxUzN4\
UU42RHhBTWtGWTdPRGd2ZXZROFpOCk1KRGhMZXd0RWJCeUZDdy9USEh1VEFYc0V6ak9kbndEVWtuNVZDdXBJeWJqb0FBd0Nn\
WUlLb1pJemowRUF3SUQKU1FBd1JnSWhBTWd4OVBza0tFZFlvQkEyaTU1TnNOWGRHUkErSEpBbkk3bUVoUmV1UE5FYUFpRUE0\
d1p3aDU4Qwo4UVNjTjNFeCt3SmJpeVRRNkNoV2R2eHl6bmxyU0FZNVJQbz0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVT\
VC0tLS0tCg==";

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn kubectl_approves_a_request_for_a_certificate_and_sees_who_asked() {
    each(|k| {
        let request = serde_json::json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": "me"},
            "spec": {
                "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
                "request": REQUEST, "expirationSeconds": 600, "username": "system:admin",
                "groups": ["system:masters"],
            },
        });
        k.ok("create clusterrole askers --verb=create,get --resource=certificatesigningrequests.certificates.k8s.io");
        k.ok("create clusterrolebinding askers --clusterrole=askers --user=jane");
        k.given(
            &request.to_string(),
            "create --as=jane -f -",
            "certificatesigningrequest.certificates.k8s.io/me created",
        );
        // Not who the request says, but who made it.
        k.table(
            "get csr",
            &[
                "NAME AGE SIGNERNAME REQUESTOR REQUESTEDDURATION CONDITION",
                "me <age> kubernetes.io/kube-apiserver-client jane <age> Pending",
            ],
        );
        k.says("get csr me -o jsonpath={.spec.groups}", r#"["system:authenticated"]"#);
        k.refuses("", "certificate approve me --as=jane", &["Forbidden"]);
        k.says(
            "certificate approve me",
            "certificatesigningrequest.certificates.k8s.io/me approved",
        );
        k.mentions("get csr me", &["Approved"]);
        assert_ne!(k.ok("get csr me -o 'jsonpath={.status.conditions[0].lastTransitionTime}'"), "");
    });
}
