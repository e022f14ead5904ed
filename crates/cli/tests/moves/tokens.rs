//! Service-account tokens of pods that are processes, as `interlock up` writes them.

use super::fleet::{GROUP, condition, until};
use super::harness::mode;
use super::registering::Up;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const ROLE: &str = "arn:aws:iam::000000000000:role/app";

/// What a token says, without a question whether it is true.
fn claims(token: &str) -> Value {
    let body = token.split('.').nth(1).unwrap_or_else(|| panic!("no token: {token}"));
    let mut body = body.replace('-', "+").replace('_', "/");
    while !body.len().is_multiple_of(4) {
        body.push('=');
    }
    let bytes: ByteString = serde_json::from_value(json!(body)).expect("a token is base64");
    serde_json::from_slice(&bytes.0).expect("a token is JSON")
}

/// What the pod has written, when it has written all of it.
fn written(folder: &Path, name: &str) -> String {
    until(&format!("the pod has written {name}"), || {
        let text = fs::read_to_string(folder.join(name)).map_err(|why| why.to_string())?;
        text.strip_suffix("\n").map(str::to_owned).ok_or_else(|| "not whole".to_owned())
    })
}

/// A pod that copies all that it finds, and again whenever it finds something else.
fn pod(folder: &Path) -> Value {
    let script = format!(
        "cd {}; echo \"$AWS_ROLE_ARN\" > role; echo \"$AWS_WEB_IDENTITY_TOKEN_FILE\" > file; \
         (cat \"$AWS_WEB_IDENTITY_TOKEN_FILE\"; echo) > cloud; \
         while true; do (cat \"$INTERLOCK_ROOT/var/run/vault/token\"; echo) > new; mv new vault; \
         sleep 0.05; done",
        folder.display()
    );
    let token = json!({"audience": "vault", "expirationSeconds": 600, "path": "token"});
    json!({
        "metadata": {"name": "reader"},
        "spec": {
            "runtimeClassName": "interlock-process", "serviceAccountName": "app",
            "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "reader", "image": "none", "command": ["sh", "-c", script],
                "volumeMounts": [{"name": "vault", "mountPath": "/var/run/vault"}]}],
            "volumes": [{"name": "vault", "projected": {"sources": [{"serviceAccountToken": token}]}}],
        },
    })
}

/// Whether the cluster itself knows a token as one for somebody, and of whom.
fn reviewed(up: &Up, token: &str, audience: &str) -> Value {
    let path = "/clusters/west/apis/authentication.k8s.io/v1/tokenreviews";
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token, "audiences": [audience]},
    });
    up.process.client().must("POST", path, Some(&review))["status"].clone()
}

/// Makes the machine believe that the tokens of a pod were issued earlier than they were.
fn age(notes: &Path, seconds: i64) {
    let text = fs::read_to_string(notes).expect("the machine has notes of its tokens");
    let mut files: Value = serde_json::from_str(&text).expect("notes are JSON");
    for file in files.as_array_mut().expect("a list") {
        let issued = file["issued_unix_seconds"].as_i64().expect("a time");
        file["issued_unix_seconds"] = json!(issued - seconds);
    }
    // Replaced as a whole, as the machine does it: of half a file it would believe that it has no tokens.
    let whole = notes.with_extension("aged");
    fs::write(&whole, files.to_string()).expect("the directory is ours");
    fs::rename(&whole, notes).expect("the directory is ours");
}

#[test]
fn a_process_reads_its_tokens_they_are_renewed_and_they_go_with_the_pod() {
    let up = Up::start();
    let folder = up.path("read");
    fs::create_dir(&folder).expect("the directory is ours");
    let namespace = json!({"metadata": {
        "name": "shop", "labels": {"interlock.dev/placed": "true"},
        "annotations": {"interlock.dev/cluster": "west"},
    }});
    let made = up.process.client().must("POST", "/api/v1/namespaces", Some(&namespace));
    let uid = made["metadata"]["uid"].as_str().expect("it has one");
    let there = interlock_api::names::grant_name("shop", uid);
    let account = json!({"metadata": {
        "name": "app", "annotations": {"eks.amazonaws.com/role-arn": ROLE},
    }});
    let own = "/api/v1/namespaces/shop";
    up.process.client().must("POST", &format!("{own}/serviceaccounts"), Some(&account));
    up.process.client().must("POST", &format!("{own}/pods"), Some(&pod(&folder)));

    // What it reads: a token for each audience, of its own account, bound to its own pod.
    let first = written(&folder, "vault");
    let down = up.get(&format!("/clusters/west/api/v1/namespaces/{there}/pods/reader"));
    let pod_uid = down["metadata"]["uid"].as_str().expect("the pod is on west").to_owned();
    let issuer = until("west publishes its issuer", || {
        let west = up.get(&format!("{GROUP}/workloadclusters/west"));
        let issuer = west["status"]["issuer"].as_str().map(str::to_owned);
        issuer.ok_or_else(|| west["status"].to_string())
    });
    let cloud = written(&folder, "cloud");
    for (token, audience, seconds) in [(&first, "vault", 600), (&cloud, "sts.amazonaws.com", 3600)]
    {
        let says = claims(token);
        assert_eq!(says["iss"], issuer, "{says}");
        assert_eq!(says["aud"], json!([audience]), "{says}");
        assert_eq!(says["sub"], format!("system:serviceaccount:{there}:app"), "{says}");
        let bound = &says["kubernetes.io"];
        assert_eq!(
            (&bound["pod"]["name"], &bound["pod"]["uid"]),
            (&json!("reader"), &json!(pod_uid))
        );
        let life = says["exp"].as_i64().zip(says["iat"].as_i64()).map(|(end, start)| end - start);
        assert_eq!(life, Some(seconds), "{says}");
        assert_eq!(reviewed(&up, token, audience)["authenticated"], true, "{says}");
        assert_ne!(reviewed(&up, token, "somebody-else")["authenticated"], true, "{says}");
    }
    assert_eq!(written(&folder, "role"), ROLE);
    let file = PathBuf::from(written(&folder, "file"));
    assert!(file.is_absolute() && file.is_file(), "{}", file.display());
    assert_eq!(mode(&file), 0o600);

    // Four fifths of the life of the first are over: another one takes its place.
    let tokens = file.ancestors().nth(3).expect("the folder of the pod").to_owned();
    age(&tokens.join("notes.json"), 481);
    let second = until("the process reads another token", || {
        let now = written(&folder, "vault");
        if now == first { Err(up.process.says()) } else { Ok(now) }
    });
    assert_eq!(claims(&second)["sub"], claims(&first)["sub"]);
    assert_ne!(claims(&second)["jti"], claims(&first)["jti"]);
    let same = fs::read_to_string(&file).expect("it is there");
    assert_eq!(same, cloud, "481 s are not much of an hour");

    // With the pod, its files go, and what was bound to it is worth nothing any more.
    up.delete(&format!("{own}/pods/reader"));
    until("the tokens are gone", || if tokens.exists() { Err(up.process.says()) } else { Ok(()) });
    assert_ne!(reviewed(&up, &second, "vault")["authenticated"], true);
    let said = up.process.says();
    for token in [&first, &second, &cloud] {
        assert!(!said.contains(token.as_str()), "a token is in the log");
    }
    assert!(condition(&up.get(&format!("{GROUP}/grants/{there}")), "RightsReady").is_null());
    up.end();
}
