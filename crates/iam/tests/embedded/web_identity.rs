//! Tokens, trust, sessions, and the fences that end them.

use crate::support::{AUDIENCE, Issuer, Scene, allow, closed, code, done, trust};
use interlock_iam::client::{Client, NewProvider, Simulation, WebIdentity, WebIdentitySession};
use interlock_iam::embedded::Decision;
use interlock_iam::outcome::Outcome;
use serde_json::json;

const SUBJECT: &str = "system:serviceaccount:shop-1a2b3c4d:web";

struct Pod {
    scene: Scene,
    a: Issuer,
    b: Issuer,
    role: String,
}

impl Pod {
    /// A role that trusts cluster A; clusters A and B are issuers.
    async fn new() -> Pod {
        let scene = Scene::new().await;
        let a = Issuer::new("https://hub:6443/issuers/a");
        let b = Issuer::new("https://hub:6443/issuers/b");
        for issuer in [&a, &b] {
            let provider = NewProvider {
                url: issuer.url.clone(),
                audiences: vec![AUDIENCE.to_owned()],
                ..NewProvider::default()
            };
            done(scene.client.create_open_id_connect_provider(&provider).await);
            scene.issuers.publish(issuer);
        }
        scene.role("role").await;
        done(scene.client.update_assume_role_policy("role", &trust(&a.url, SUBJECT)).await);
        let policy = scene.policy("policy", "iam:GetRole").await;
        done(scene.client.attach_role_policy("role", &policy).await);
        let role = done(scene.client.get_role("role").await).arn;
        Pod { scene, a, b, role }
    }

    async fn assume(&self, token: String) -> Outcome<WebIdentitySession> {
        let (role, session) = (self.role.clone(), "pod".to_owned());
        let identity = WebIdentity { role, session, token, seconds: None };
        self.scene.client.assume_role_with_web_identity(&identity).await
    }

    fn token(&self, issuer: &Issuer) -> String {
        issuer.token(SUBJECT, self.scene.now())
    }

    async fn session(&self, issuer: &Issuer) -> Client {
        let session = done(self.assume(self.token(issuer)).await);
        self.scene.client.with(session.credentials)
    }
}

#[tokio::test]
async fn a_token_of_the_trusted_account_gets_a_session_that_may_do_what_policies_say() {
    let pod = Pod::new().await;
    let session = done(pod.assume(pod.token(&pod.a)).await);
    assert_eq!(session.subject, SUBJECT);
    assert_eq!(session.audience, AUDIENCE);
    assert_eq!(session.expires_seconds, pod.scene.now() + 3_600);
    assert!(session.arn.ends_with(":assumed-role/role/pod"), "{}", session.arn);
    let client = pod.scene.client.with(session.credentials);
    assert_eq!(done(client.get_caller_identity().await).arn, session.arn);
    assert_eq!(done(client.get_role("role").await).arn, pod.role);
    assert_eq!(code(client.list_roles("/").await), "AccessDenied");
    assert_eq!(code(client.delete_role("role").await), "AccessDenied");
}

#[tokio::test]
async fn only_a_good_token_of_the_trusted_subject_is_accepted() {
    let pod = Pod::new().await;
    let now = pod.scene.now();
    let header = json!({"alg": "ES256", "kid": "1"});
    let claims = json!({
        "iss": pod.a.url, "sub": SUBJECT, "aud": AUDIENCE, "iat": now, "nbf": now, "exp": now + 60,
    });
    let with = |name: &str, value: serde_json::Value| {
        let mut changed = claims.clone();
        changed[name] = value;
        pod.a.sign(&header, &changed)
    };
    done(pod.assume(pod.a.sign(&header, &claims)).await);
    let good = pod.a.sign(&header, &claims);
    for (token, expected) in [
        (with("sub", json!("system:serviceaccount:shop-1a2b3c4d:other")), "AccessDenied"),
        (with("sub", json!(SUBJECT.to_uppercase())), "AccessDenied"),
        (with("sub", json!("")), "InvalidIdentityToken"),
        (with("aud", json!("other")), "InvalidIdentityToken"),
        (with("aud", json!([])), "InvalidIdentityToken"),
        (with("iss", json!("https://elsewhere")), "InvalidIdentityToken"),
        (with("iss", json!("http://hub:6443/issuers/a")), "InvalidIdentityToken"),
        (with("exp", json!(now - 60)), "ExpiredTokenException"),
        (with("exp", json!(null)), "InvalidIdentityToken"),
        (with("nbf", json!(now + 60)), "InvalidIdentityToken"),
        // Signed by B, in the name of A.
        (pod.b.sign(&header, &claims), "InvalidIdentityToken"),
        (pod.a.sign(&json!({"alg": "none"}), &claims), "InvalidIdentityToken"),
        (pod.a.sign(&json!({"alg": "HS256", "kid": "1"}), &claims), "InvalidIdentityToken"),
        (pod.a.sign(&json!({"alg": "ES256", "kid": "2"}), &claims), "InvalidIdentityToken"),
        (good[..good.len() - 4].to_owned(), "InvalidIdentityToken"),
        ("a.b.c".to_owned(), "InvalidIdentityToken"),
        (String::new(), "InvalidIdentityToken"),
        // B is a provider of this account, but not trusted by the role.
        (pod.token(&pod.b), "AccessDenied"),
    ] {
        assert_eq!(code(pod.assume(token.clone()).await), expected, "{token}");
    }
}

#[tokio::test]
async fn an_issuer_that_cannot_be_read_has_another_code_than_one_that_lies() {
    let pod = Pod::new().await;
    let discovery = format!("{}/.well-known/openid-configuration", pod.a.url);
    pod.scene.issuers.set(discovery.clone(), json!({"issuer": pod.b.url}));
    assert_eq!(code(pod.assume(pod.token(&pod.a)).await), "InvalidIdentityToken");
    let elsewhere = json!({"issuer": pod.a.url, "jwks_uri": "https://elsewhere/keys"});
    pod.scene.issuers.set(discovery, elsewhere);
    assert_eq!(code(pod.assume(pod.token(&pod.a)).await), "IDPCommunicationError");
}

#[tokio::test]
async fn the_keys_of_an_issuer_are_read_over_http() {
    let scene = Scene::with_network().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let issuer = Issuer::new(&format!("http://{address}/issuers/a"));
    let served = std::sync::Arc::new(crate::support::Issuers::default());
    let serving = tokio::spawn(std::sync::Arc::clone(&served).serve(listener));
    let provider = NewProvider {
        url: issuer.url.clone(),
        audiences: vec![AUDIENCE.to_owned()],
        ..NewProvider::default()
    };
    done(scene.client.create_open_id_connect_provider(&provider).await);
    scene.role("role").await;
    done(scene.client.update_assume_role_policy("role", &trust(&issuer.url, SUBJECT)).await);
    let identity = WebIdentity {
        role: done(scene.client.get_role("role").await).arn,
        session: "pod".to_owned(),
        token: issuer.token(SUBJECT, scene.now()),
        seconds: None,
    };
    let assume = async || scene.client.assume_role_with_web_identity(&identity).await;
    assert_eq!(code(assume().await), "IDPCommunicationError");
    served.publish(&issuer);
    assert_eq!(done(assume().await).subject, SUBJECT);
    serving.abort();
    let _ = serving.await;
    assert_eq!(code(assume().await), "IDPCommunicationError");
}

#[tokio::test]
async fn trust_that_moved_refuses_the_old_owner_and_accepts_the_new_one() {
    let pod = Pod::new().await;
    let before = done(pod.scene.client.get_role("role").await);
    pod.session(&pod.a).await;
    let moved = trust(&pod.b.url, SUBJECT);
    done(pod.scene.client.update_assume_role_policy("role", &moved).await);
    assert_eq!(code(pod.assume(pod.token(&pod.a)).await), "AccessDenied");
    pod.session(&pod.b).await;
    let after = done(pod.scene.client.get_role("role").await);
    assert_eq!((after.id, after.arn), (before.id, before.arn));
}

#[tokio::test]
async fn a_fence_ends_the_sessions_before_it_and_none_after_it() {
    let pod = Pod::new().await;
    let scene = &pod.scene;
    let old = pod.session(&pod.a).await;
    done(old.get_role("role").await);
    done(scene.client.update_assume_role_policy("role", &closed()).await);
    assert_eq!(code(pod.assume(pod.token(&pod.a)).await), "AccessDenied");
    // Closed trust alone ends nothing.
    done(old.get_role("role").await);
    scene.pass_seconds(10);
    let before = jiff::Timestamp::from_second(scene.now()).unwrap().to_string();
    let fence = json!({"Version": "2012-10-17", "Statement": [{
        "Effect": "Deny", "Action": "*", "Resource": "*",
        "Condition": {"DateLessThan": {"aws:TokenIssueTime": before}},
    }]});
    done(scene.client.put_role_policy("role", "interlock-fence-1", &fence.to_string()).await);
    assert_eq!(code(old.get_role("role").await), "AccessDenied");
    done(scene.client.update_assume_role_policy("role", &trust(&pod.b.url, SUBJECT)).await);
    let new = pod.session(&pod.b).await;
    done(new.get_role("role").await);
    assert_eq!(code(old.get_role("role").await), "AccessDenied");
    // Who they are, anybody may ask.
    done(old.get_caller_identity().await);
}

#[tokio::test]
async fn a_boundary_limits_what_policies_allow() {
    let pod = Pod::new().await;
    let session = done(pod.assume(pod.token(&pod.a)).await).credentials;
    let wide = pod.scene.policy("wide", "*").await;
    done(pod.scene.client.attach_role_policy("role", &wide).await);
    let may = async |action: &str| pod.scene.iam.may(&session, action, "*").await;
    assert_eq!(may("s3:GetObject").await, Some(Decision::Allowed));
    let boundary = pod.scene.policy("boundary", "iam:*").await;
    done(pod.scene.client.put_role_permissions_boundary("role", &boundary).await);
    assert_eq!(may("s3:GetObject").await, Some(Decision::ImplicitDeny));
    assert_eq!(may("iam:GetRole").await, Some(Decision::Allowed));
    let stranger = interlock_iam::Credentials::lasting("AKIA", "x");
    assert_eq!(pod.scene.iam.may(&stranger, "s3:GetObject", "*").await, None);
}

#[tokio::test]
async fn a_session_ends_with_its_time_and_with_its_role() {
    let pod = Pod::new().await;
    let session = pod.session(&pod.a).await;
    pod.scene.pass_seconds(3_599);
    done(session.get_role("role").await);
    pod.scene.pass_seconds(1);
    assert_eq!(code(session.get_role("role").await), "ExpiredToken");
    let session = pod.session(&pod.a).await;
    let policy = format!("arn:aws:iam::{}:policy/policy", crate::support::ACCOUNT);
    done(pod.scene.client.detach_role_policy("role", &policy).await);
    done(pod.scene.client.delete_role("role").await);
    assert_eq!(code(session.get_caller_identity().await), "InvalidClientTokenId");
    // Another role under the same name is another role.
    pod.scene.role("role").await;
    done(pod.scene.client.attach_role_policy("role", &policy).await);
    assert_eq!(code(session.get_role("role").await), "AccessDenied");
    assert_eq!(code(session.get_caller_identity().await), "InvalidClientTokenId");
}

#[tokio::test]
async fn the_length_of_a_session_is_bounded_by_the_role() {
    let pod = Pod::new().await;
    let assume = async |seconds: u64| {
        let identity = WebIdentity {
            role: pod.role.clone(),
            session: "pod".to_owned(),
            token: pod.token(&pod.a),
            seconds: Some(seconds),
        };
        pod.scene.client.assume_role_with_web_identity(&identity).await
    };
    assert_eq!(done(assume(900).await).expires_seconds, pod.scene.now() + 900);
    assert_eq!(code(assume(899).await), "ValidationError");
    assert_eq!(code(assume(3_601).await), "ValidationError");
}

#[tokio::test]
async fn what_a_role_may_do_can_be_asked() {
    let pod = Pod::new().await;
    let fence = allow("*").replace("Allow", "Deny").replace(
        "\"Resource\"",
        r#""Condition":{"DateLessThan":{"aws:TokenIssueTime":"2026-01-01T00:00:00Z"}},"Resource""#,
    );
    done(pod.scene.client.put_role_policy("role", "fence", &fence).await);
    let ask = async |time: &str| {
        let asked = Simulation {
            role: pod.role.clone(),
            actions: vec!["iam:GetRole".to_owned(), "iam:DeleteRole".to_owned()],
            context: vec![("aws:TokenIssueTime".to_owned(), time.to_owned())],
            ..Simulation::default()
        };
        let said = done(pod.scene.client.simulate_principal_policy(&asked).await);
        said.into_iter().map(|it| it.decision).collect::<Vec<_>>()
    };
    assert_eq!(ask("2026-01-01T00:00:00Z").await, ["allowed", "implicitDeny"]);
    assert_eq!(ask("2025-12-31T23:59:59Z").await, ["explicitDeny", "explicitDeny"]);
}
