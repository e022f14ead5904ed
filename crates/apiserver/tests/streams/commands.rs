//! Commands over WebSocket and SPDY, as clients of upstream speak them.

use crate::asking::DEADLINE;
use crate::wire::{Client, Reached, V4, V5};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ALL: &str = "stdin=true&stdout=true&stderr=true";

async fn until_quiet(reached: &Reached) {
    let began = Instant::now();
    while !reached.scene.fake.is_quiet() {
        assert!(began.elapsed() < DEADLINE, "a command goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How it ended, and that the server says farewell then.
async fn status(client: &mut Client, message: Option<Vec<u8>>) -> Value {
    let message = message.expect("a status before the end");
    assert_eq!(message.first(), Some(&3), "{message:?}");
    let status = serde_json::from_slice(&message[1..]).expect("it is JSON");
    while let Some(message) = client.next().await {
        assert!(message.len() == 1, "{message:?} after the end");
    }
    status
}

#[tokio::test]
async fn what_is_said_goes_to_the_command_and_back_until_its_input_ends() {
    let reached = Reached::new().await;
    let mut client = reached.websocket(&format!("web/exec?command=cat&{ALL}"), V5).await;
    assert_eq!(client.next().await.as_deref(), Some(&[1][..]), "it runs");
    client.send(b"\x00hello").await;
    assert_eq!(client.next().await.as_deref(), Some(&b"\x01hello"[..]));
    let large = [&[0][..], &[b'x'; 40_000]].concat();
    client.send(&large).await;
    let mut back = 0;
    while back < 40_000 {
        let message = client.next().await.expect("more of it");
        assert_eq!(message[0], 1);
        back += message.len() - 1;
    }
    // That the standard input ends is a message of its own in the fifth version.
    client.send(&[255, 0]).await;
    let (rest, message) = client.all_of(1).await;
    assert!(rest.is_empty());
    let ended = status(&mut client, message).await;
    assert_eq!(ended, json!({"metadata": {}, "status": "Success"}));
    until_quiet(&reached).await;
    let commands = reached.scene.fake.commands.lock().expect("no panic").clone();
    assert_eq!(commands[0].1.words, ["cat"]);
    assert_eq!((commands[0].0.pod.as_str(), commands[0].0.container.as_str()), ("web", "web"));
}

#[tokio::test]
async fn an_exit_code_is_said_as_upstream_says_it() {
    let reached = Reached::new().await;
    let path = "web/exec?command=exit&command=3&stdout=true";
    for protocol in [V5, V4] {
        let mut client = reached.websocket(path, protocol).await;
        let (_, message) = client.all_of(1).await;
        let ended = status(&mut client, message).await;
        assert_eq!(
            (&ended["status"], &ended["reason"]),
            (&json!("Failure"), &json!("NonZeroExitCode"))
        );
        let cause = json!([{"reason": "ExitCode", "message": "3"}]);
        assert_eq!(ended["details"]["causes"], cause);
    }
}

#[tokio::test]
async fn errors_have_a_channel_and_a_terminal_has_a_size() {
    let reached = Reached::new().await;
    let mut client = reached.websocket(&format!("web/exec?command=shout&{ALL}"), V4).await;
    client.send(b"\x00oops").await;
    assert_eq!(client.next().await.as_deref(), Some(&[1][..]));
    assert_eq!(client.next().await.as_deref(), Some(&b"\x02oops"[..]));
    let path = format!("web/exec?command=size&tty=true&{ALL}");
    let mut client = reached.websocket(&path, V5).await;
    client.send(br#"=nonsense on a channel that there is not"#).await;
    client.send(b"\x04{\"Width\":\"no\"}").await;
    client.send(b"\x04{\"Width\":120,\"Height\":40}").await;
    assert_eq!(client.next().await.as_deref(), Some(&[1][..]));
    assert_eq!(client.next().await.as_deref(), Some(&b"\x01120x40"[..]));
}

#[tokio::test]
async fn a_command_ends_with_its_client() {
    let reached = Reached::new().await;
    let client = reached.websocket("web/exec?command=sleep&stdout=true", V5).await;
    assert!(!reached.scene.fake.is_quiet());
    drop(client);
    until_quiet(&reached).await;
    // One that says what it may not is cut off.
    let mut client = reached.websocket("web/exec?command=sleep&stdout=true", V5).await;
    client.stream.write_all(&[0x82, 0x01, b'x']).await.expect("it is open");
    assert_eq!(client.next().await.as_deref(), Some(&[1][..]));
    assert_eq!(client.next().await, None);
    until_quiet(&reached).await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_makes_the_command_wait() {
    let reached = Reached::new().await;
    let client = reached.websocket("web/exec?command=flood&stdout=true", V5).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!reached.scene.fake.is_quiet());
    drop(client);
    until_quiet(&reached).await;
}

#[tokio::test]
async fn commands_end_when_the_server_stops() {
    let reached = Reached::new().await;
    let mut client = reached.websocket("web/exec?command=sleep&stdout=true", V5).await;
    reached.scene.admin.server.begin_stop();
    while client.next().await.is_some() {}
    until_quiet(&reached).await;
}

#[tokio::test]
async fn what_is_refused_is_refused_before_anything_runs() {
    let reached = Reached::new().await;
    for (path, protocol, code, said) in [
        ("web/exec?stdout=true", V5, 400, "at least one command"),
        ("web/exec?command=cat", V5, 400, "at least 1 of stdin, stdout, stderr"),
        ("web/exec?command=nonsense&stdout=true", V5, 400, "there is no command"),
        ("web/exec?command=cat&stdout=true&container=db", V5, 400, "container db is not valid"),
        ("web/exec?command=cat&stdout=true", "channel.k8s.io", 403, "newer kubectl"),
        ("nobody/exec?command=cat&stdout=true", V5, 404, "not found"),
    ] {
        let (head, mut client) = reached.websocket_as("admin-token", path, protocol).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {code} ")), "{path}: {head}");
        let length = head.to_lowercase();
        let length = length.split("content-length: ").nth(1).expect("it says how long it is");
        let length: usize = length.lines().next().unwrap_or_default().parse().expect("a number");
        let mut body = vec![0; length];
        client.stream.read_exact(&mut body).await.expect("the body");
        let body = String::from_utf8(body).expect("text");
        assert!(body.contains(said), "{path}: {body}");
    }
    let (head, _) = reached
        .asked("GET", "web/exec?command=cat&stdout=true", &["authorization: Bearer admin-token"])
        .await;
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
    assert!(reached.scene.fake.is_quiet());
}

#[tokio::test]
async fn whoever_may_only_get_runs_nothing() {
    let reached = Reached::new().await;
    let path = "web/exec?command=cat&stdout=true";
    reached.scene.user("reader", &[("get", "pods/exec"), ("get", "pods/log")]).await;
    let (head, _) = reached.websocket_as("reader-token", path, V5).await;
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    let (head, _) = reached.websocket_as("nobodys-token", path, V5).await;
    assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
    assert!(reached.scene.fake.commands.lock().expect("no panic").is_empty());
}
