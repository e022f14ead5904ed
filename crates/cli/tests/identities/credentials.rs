//! Commands find their credentials where AWS's tools find them.
//!
//! Containers and instances of AWS cannot be had here: what they ask for their credentials stands in for them.

use super::harness::interlock;
use super::up::{ACCOUNT, ISSUER, Up};
use interlock_iam::Credentials;
use interlock_iam::client::{NewProvider, NewRole, WebIdentity};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;

const ROLE: &str = "controllers";
const READ: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["iam:Get*","iam:List*"],"Resource":"*"}]}"#;
const INSTANCE: &str = "/latest/meta-data/iam/security-credentials/";

fn arn() -> String {
    format!("arn:aws:iam::{ACCOUNT}:role/{ROLE}")
}

/// A role that reads IAM, for the service account `ops/controllers`; and a token of that account.
fn role_and_token(up: &Up) -> String {
    up.namespace("ops");
    let accounts = "/api/v1/namespaces/ops/serviceaccounts";
    up.client().must("POST", accounts, Some(&json!({"metadata": {"name": ROLE}})));
    let audiences = vec!["sts.amazonaws.com".to_owned()];
    let provider = NewProvider { url: ISSUER.to_owned(), audiences, ..NewProvider::default() };
    let iam = up.iam();
    let provider = up.done(iam.create_open_id_connect_provider(&provider));
    let issuer = ISSUER.trim_start_matches("https://");
    let trust = json!({"Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity", "Principal": {"Federated": provider},
        "Condition": {"StringEquals": {format!("{issuer}:sub"): format!("system:serviceaccount:ops:{ROLE}")}},
    }]});
    let role = NewRole { name: ROLE.to_owned(), trust: trust.to_string(), ..NewRole::default() };
    up.done(iam.create_role(&role));
    up.done(iam.put_role_policy(ROLE, "read", READ));
    let asked = json!({"spec": {"audiences": ["sts.amazonaws.com"]}});
    let made = up.client().must("POST", &format!("{accounts}/{ROLE}/token"), Some(&asked));
    made["status"]["token"].as_str().expect("a token").to_owned()
}

/// Answers each path with a text, as the metadata of AWS does.
fn metadata(answers: Vec<(&'static str, String)>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let serve = move |mut client: TcpStream| -> Option<()> {
        let mut lines = BufReader::new(client.try_clone().ok()?).lines().map_while(Result::ok);
        let path = lines.next()?.split(' ').nth(1)?.to_owned();
        lines.find(String::is_empty)?;
        let found = answers.iter().find(|(known, _)| *known == path);
        let (status, text) = found.map_or((404, ""), |(_, text)| (200, text));
        let head = format!("HTTP/1.1 {status} Any\r\ncontent-length: {}\r\n", text.len());
        // How long a token for the metadata is good.
        let more = "x-aws-ec2-metadata-token-ttl-seconds: 600\r\nconnection: close\r\n\r\n";
        client.write_all(format!("{head}{more}{text}").as_bytes()).ok()
    };
    std::thread::spawn(move || {
        listener.incoming().map_while(Result::ok).for_each(|client| {
            serve(client);
        });
    });
    address
}

/// `interlock identity orphans` with nothing of AWS around it but these variables.
fn orphans(up: &Up, variables: &[(&str, String)]) -> (Option<i32>, String) {
    let mut command: Command = interlock();
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
        command.env_remove(name);
    }
    let nowhere = PathBuf::from("/nonexistent");
    command.env("AWS_CONFIG_FILE", &nowhere).env("AWS_SHARED_CREDENTIALS_FILE", &nowhere);
    command.env("AWS_EC2_METADATA_DISABLED", "true");
    command.args(["identity", "orphans"]).args(up.reaching()).envs(variables.iter().cloned());
    let output = command.output().expect("the binary runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn credentials_are_found_where_the_tools_of_aws_find_them() {
    let up = Up::start();
    let token = role_and_token(&up);
    let nothing_left = (Some(0), "nothing is left over\n".to_owned());

    let (code, says) = orphans(&up, &[]);
    assert_eq!(code, Some(2), "{says}");
    assert!(says.contains("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"), "{says}");

    assert_eq!(orphans(&up, &up.cloud_variables()), nothing_left);

    // The file of `up` is one of the AWS command line.
    let file = up.config().to_string_lossy().into_owned();
    assert_eq!(orphans(&up, &[("AWS_CONFIG_FILE", file)]), nothing_left);

    // As EKS gives a role to a pod.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let token_file = directory.path().join("token");
    std::fs::write(&token_file, &token).expect("the directory is ours");
    let endpoint = up.reaching().pop().expect("the address of IAM is the last");
    let pod = [
        ("AWS_ROLE_ARN", arn()),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token_file.to_string_lossy().into_owned()),
        ("AWS_ENDPOINT_URL_STS", endpoint),
    ];
    assert_eq!(orphans(&up, &pod), nothing_left);
    std::fs::write(&token_file, "not a token").expect("the directory is ours");
    let (code, says) = orphans(&up, &pod);
    assert_eq!(code, Some(2), "{says}");
    assert!(says.contains("InvalidIdentityToken"), "it says why: {says}");

    // As a container and an instance find them.
    let identity =
        WebIdentity { role: arn(), session: "instance".to_owned(), token, seconds: None };
    let session = up.done(up.iam().assume_role_with_web_identity(&identity));
    let Credentials { access_key_id, secret_access_key, session_token } = session.credentials;
    let keys = json!({
        "Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": access_key_id,
        "SecretAccessKey": secret_access_key, "Token": session_token, "RoleArn": arn(),
        "LastUpdated": "2026-01-01T00:00:00Z", "Expiration": "2099-01-01T00:00:00Z",
    });
    let address = metadata(vec![
        ("/container", keys.to_string()),
        ("/latest/api/token", "a token of the instance".to_owned()),
        (INSTANCE, ROLE.to_owned()),
        ("/latest/meta-data/iam/security-credentials/controllers", keys.to_string()),
    ]);
    let url = format!("http://{address}");
    let container = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{url}/container"))];
    assert_eq!(orphans(&up, &container), nothing_left);
    let instance = [
        ("AWS_EC2_METADATA_DISABLED", "false".to_owned()),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", url),
    ];
    assert_eq!(orphans(&up, &instance), nothing_left);
}
