//! Tokens of logical clusters, verified by a program that is not ours: PyJWT, which knows nothing but the
//! issuer that it trusts.

use crate::world::{TestServer, each_mut};
use std::process::Command;

/// Finds the keys by the issuer's discovery document, and verifies a token with them.
const VERIFY: &str = r#"
import json, ssl, sys, urllib.request
import jwt
issuer, authority, token = sys.argv[1:]
trust = ssl.create_default_context(cafile=authority)
with urllib.request.urlopen(issuer + "/.well-known/openid-configuration", context=trust) as answer:
    document = json.load(answer)
assert document["issuer"] == issuer, document
keys = jwt.PyJWKClient(document["jwks_uri"], ssl_context=trust)
key = keys.get_signing_key_from_jwt(token).key
algorithms = document["id_token_signing_alg_values_supported"]
try:
    claims = jwt.decode(token, key, algorithms=algorithms, audience="sts.amazonaws.com", issuer=issuer)
    print("accepted", claims["sub"])
except jwt.InvalidTokenError as error:
    print("refused", type(error).__name__)
"#;

fn verify(k: &TestServer, issuer: &str, token: &str) -> String {
    let packages = std::env::var_os("INTERLOCK_PYJWT").expect(
        "INTERLOCK_PYJWT does not say where PyJWT is: run `cargo xtask test-real kubectl`, or \
         `python3 -m pip install --target DIR 'PyJWT[crypto]'` and set it to DIR",
    );
    let output = Command::new("python3")
        .args(["-c", VERIFY, issuer])
        .arg(k.authority())
        .arg(token)
        .env("PYTHONPATH", packages)
        .output()
        .expect("python3 starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{issuer}: {said}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// What the cluster says of itself. A raw path begins at the server, whatever the context is.
fn issuer(k: &TestServer, cluster: &str) -> String {
    let path = format!("/clusters/{cluster}/.well-known/openid-configuration");
    let document = k.ok(&format!("get --raw {path}"));
    let document: serde_json::Value = serde_json::from_str(&document).expect("it is JSON");
    document["issuer"].as_str().expect("it names the issuer").to_owned()
}

#[test]
#[ignore = "needs kubectl and PyJWT: cargo xtask test-real"]
fn a_token_of_one_cluster_is_accepted_by_its_issuer_and_refused_by_another() {
    each_mut(|k| {
        for name in ["blue", "green"] {
            let cluster = format!(
                r#"{{"apiVersion":"interlock.dev/v1alpha1","kind":"LogicalCluster","metadata":{{"name":"{name}"}}}}"#
            );
            let made = format!("logicalcluster.interlock.dev/{name} created");
            k.given(&cluster, "apply -f -", &made);
        }
        k.comes_to_say("config get-contexts -o name", "blue\ngreen\nroot");
        let [blue, green] = ["blue", "green"].map(|name| {
            k.context(Some(name));
            let token = k.ok("create token default --audience sts.amazonaws.com");
            (issuer(k, name), token.trim_end().to_owned())
        });
        let accepted = "accepted system:serviceaccount:default:default";
        assert_eq!(verify(k, &blue.0, &blue.1), accepted);
        assert_eq!(verify(k, &green.0, &green.1), accepted);
        assert_eq!(verify(k, &green.0, &blue.1), "refused InvalidIssuerError");
        assert_eq!(verify(k, &blue.0, &green.1), "refused InvalidIssuerError");
        let for_the_server = k.ok("create token default");
        let refused = verify(k, &green.0, for_the_server.trim_end());
        assert_eq!(refused, "refused InvalidAudienceError");
    });
}
