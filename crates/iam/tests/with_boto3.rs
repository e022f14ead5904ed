//! boto3 and moto, which we did not write, against the embedded server: run by `cargo xtask test-real`.

#![allow(clippy::unwrap_used, reason = "this is a test")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "embedded/support.rs"]
mod support;

use interlock_iam::client::{NewPolicy, NewProvider, NewRole};
use interlock_iam::document::is_same;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use support::{Issuer, Scene, allow, closed, code, done, tags, trust};

/// The folder with boto3 and moto.
fn packages() -> PathBuf {
    let folder = std::env::var_os("INTERLOCK_MOTO");
    folder
        .map(PathBuf::from)
        .expect("INTERLOCK_MOTO names the folder of Python packages: cargo xtask test-real")
}

/// Cargo says where it runs the test: clones of one repository may share a build cache.
fn here() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test runs this").into()
}

fn python(script: &str) -> Command {
    let scripts = here().join("tests/second_reader");
    let path = std::env::join_paths([packages(), scripts.clone()]).unwrap();
    let mut command = Command::new("python3");
    command.arg(scripts.join(script)).env("PYTHONPATH", path).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Runs a script while the server serves on the other threads.
async fn succeeds(mut command: Command) {
    let status = tokio::task::spawn_blocking(move || command.status().unwrap()).await.unwrap();
    assert!(status.success(), "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs boto3: cargo xtask test-real"]
async fn boto3_reads_every_answer_and_knows_every_code() {
    let scene = Scene::in_real_time().await;
    let issuer = Issuer::new("https://hub:6443/issuers/a");
    scene.issuers.publish(&issuer);
    let now = interlock_iam::Clock::machine().now_seconds();
    let mut command = python("drive.py");
    command
        .env("SERVER", format!("http://{}", scene.address))
        .env("ISSUER", &issuer.url)
        .env("TRUST", trust(&issuer.url, "subject"))
        .env("TOKEN", issuer.token("subject", now))
        .env("ACTIONS", interlock_iam::embedded::calls().collect::<Vec<_>>().join(","));
    succeeds(command).await;
}

/// moto's server; it ends with this.
struct Moto {
    server: Child,
    url: String,
}

impl Moto {
    fn start() -> Moto {
        let mut server = Command::new("python3")
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .env("PYTHONPATH", packages())
            .env("PYTHONUNBUFFERED", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.split("http://").nth(1).map(str::to_owned));
        // Whoever does not read what it says would stop it in the end.
        std::thread::spawn(move || lines.for_each(drop));
        let mut moto = Moto { server, url: String::new() };
        moto.url = format!("http://{}", address.expect("moto says where it listens").trim());
        moto
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs boto3 and moto: cargo xtask test-real"]
async fn moto_and_the_embedded_server_agree_or_the_ledger_says_why() {
    let scene = Scene::in_real_time().await;
    let moto = Moto::start();
    let from_outside =
        |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let mut command = python("compare.py");
    command
        .env("SERVER", format!("http://{}", scene.address))
        .env("MOTO", &moto.url)
        .env("LEDGER", here().join("../../docs/iam-ledger.md"))
        .env("SEED", from_outside("INTERLOCK_IAM_SEED", "1"))
        .env("SEQUENCES", from_outside("INTERLOCK_IAM_SEQUENCES", "150"));
    succeeds(command).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs moto: cargo xtask test-real"]
async fn the_client_reads_the_answers_of_moto() {
    let moto = Moto::start();
    let address = moto.url.trim_start_matches("http://").parse().unwrap();
    let client = support::client(address, interlock_iam::Clock::machine());
    assert_eq!(done(client.get_caller_identity().await).account, support::ACCOUNT);
    let new = NewPolicy {
        path: "/interlock/fleet/".to_owned(),
        name: "policy".to_owned(),
        document: allow("s3:Get*"),
        tags: tags(&[("interlock.dev/owner-uid", "1")]),
        ..NewPolicy::default()
    };
    let policy = done(client.create_policy(&new).await);
    assert_eq!(policy.tags, new.tags);
    assert_eq!(code(client.create_policy(&new).await), "EntityAlreadyExists");
    let arn = policy.arn;
    for _ in 0..4 {
        done(client.create_policy_version(&arn, &allow("s3:*")).await);
    }
    assert_eq!(code(client.create_policy_version(&arn, &allow("s3:*")).await), "LimitExceeded");
    assert_eq!(done(client.get_policy(&arn).await).default_version, "v5");
    let first = done(client.get_policy_version(&arn, "v1").await);
    assert!(is_same(&first.document.unwrap(), &new.document));
    done(client.set_default_policy_version(&arn, "v1").await);
    for version in done(client.list_policy_versions(&arn).await) {
        if !version.is_default {
            done(client.delete_policy_version(&arn, &version.id).await);
        }
    }
    let new = NewRole {
        path: "/interlock/fleet/".to_owned(),
        name: "role".to_owned(),
        trust: trust("https://hub/issuers/a", "subject"),
        boundary: Some(arn.clone()),
        most_session_seconds: Some(3_600),
        tags: tags(&[("interlock.dev/owner-uid", "2")]),
        ..NewRole::default()
    };
    let role = done(client.create_role(&new).await);
    assert_eq!((&role.boundary, &role.tags), (&new.boundary, &new.tags));
    assert!(is_same(&role.trust, &new.trust));
    done(client.update_assume_role_policy("role", &closed()).await);
    let read = done(client.get_role("role").await);
    assert_eq!(read.id, role.id);
    assert!(is_same(&read.trust, &closed()));
    done(client.attach_role_policy("role", &arn).await);
    assert_eq!(done(client.list_attached_role_policies("role").await)[0].id, arn);
    assert_eq!(done(client.list_entities_for_policy(&arn).await)[0].name, "role");
    done(client.put_role_policy("role", "interlock-fence-1", &allow("*")).await);
    assert_eq!(done(client.list_role_policies("role").await), ["interlock-fence-1"]);
    assert!(is_same(&done(client.get_role_policy("role", "interlock-fence-1").await), &allow("*")));
    assert_eq!(code(client.delete_role("role").await), "DeleteConflict");
    done(client.delete_role_policy("role", "interlock-fence-1").await);
    done(client.detach_role_policy("role", &arn).await);
    assert_eq!(code(client.detach_role_policy("role", &arn).await), "NoSuchEntity");
    // More than one page.
    for number in 0..110 {
        let name = format!("page-{number}");
        let role =
            NewRole { path: "/page/".to_owned(), name, trust: closed(), ..NewRole::default() };
        done(client.create_role(&role).await);
    }
    assert_eq!(done(client.list_roles("/page/").await).len(), 110);
    assert_eq!(done(client.list_policies("/interlock/").await).len(), 1);
    let provider = NewProvider {
        url: "https://hub/issuers/a".to_owned(),
        audiences: vec![support::AUDIENCE.to_owned()],
        ..NewProvider::default()
    };
    let provider = done(client.create_open_id_connect_provider(&provider).await);
    let read = done(client.get_open_id_connect_provider(&provider).await);
    assert_eq!(read.url, "hub/issuers/a");
    done(client.delete_open_id_connect_provider(&provider).await);
    done(client.delete_role("role").await);
    done(client.delete_policy(&arn).await);
    assert_eq!(code(client.get_policy(&arn).await), "NoSuchEntity");
}
