//! `interlock serve` as its user meets it: what it says, what it leaves on the disk, and how it ends.

mod harness;

use harness::{Client, DataDirectory, Process, TIMEOUT, mode, read, refused, serve};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::net::TcpListener;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// It ends with 2, and says these words in one line without a backtrace.
fn refuses(output: &Output, words: &[&str]) {
    let text = said(output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"padding": "x".repeat(200)},
    })
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Writes some objects, and ends the server as a power cut would.
fn write_and_kill(place: &DataDirectory, count: usize) {
    let mut process = place.start();
    let mut client = process.client();
    for index in 0..count {
        client.must("POST", CONFIG_MAPS, Some(&config_map(&format!("object-{index}"))));
    }
    process.kill();
}

#[test]
fn the_help_names_every_option_and_what_it_does_by_itself() {
    let mut command = serve();
    command.arg("--help");
    let output = refused(command);
    assert_eq!(output.status.code(), Some(0));
    // A long line is broken anywhere.
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in [
        "--data-dir",
        "--listen",
        "--name",
        "--kubeconfig",
        "--token-file",
        "--tls-cert-file",
        "--tls-private-key-file",
        "--tls-ca-file",
        "--client-ca-file",
        "--insecure-http",
        "--history-seconds",
        "--root-webhooks",
        "--tenant-webhooks",
        "[default: anywhere]",
        "[default: nowhere]",
        "[default: 127.0.0.1:6443]",
        "~/.local/share/interlock",
        "[default: 300]",
    ] {
        assert!(text.contains(word), "no {word} in:\n{text}");
    }
}

#[test]
fn an_address_that_is_none_is_refused_before_anything_is_made() {
    let place = DataDirectory::new();
    for wrong in ["nonsense", "127.0.0.1", "127.0.0.1:99999", "localhost:http"] {
        let mut command = serve();
        command.arg("--data-dir").arg(place.data()).args(["--listen", wrong]);
        refuses(&refused(command), &["--listen", wrong]);
    }
    assert!(!place.data().exists());
}

#[test]
fn a_network_of_webhooks_that_is_none_is_refused_before_anything_is_made() {
    let place = DataDirectory::new();
    for flag in ["--root-webhooks", "--tenant-webhooks"] {
        let mut command = serve();
        command.arg("--data-dir").arg(place.data()).args([flag, "10.0.0.0/8,everywhere"]);
        refuses(&refused(command), &[flag, "everywhere", "10.0.0.0/8"]);
    }
    assert!(!place.data().exists());
}

#[test]
fn an_open_address_is_not_served_in_the_clear() {
    let place = DataDirectory::new();
    let mut command = serve();
    command.arg("--data-dir").arg(place.data()).args(["--listen", "0.0.0.0:0", "--insecure-http"]);
    refuses(&refused(command), &["without TLS", "loopback"]);
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named() {
    let place = DataDirectory::new();
    fs::write(place.path("file"), "").expect("the directory is ours");
    let mut command = serve();
    command.arg("--data-dir").arg(place.path("file").join("data"));
    command.args(["--listen", "127.0.0.1:0"]);
    refuses(&refused(command), &["file/data", "Not a directory"]);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let place = DataDirectory::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let mut command = serve();
    command.arg("--data-dir").arg(place.data()).args(["--listen", &address]);
    refuses(&refused(command), &[&address, "in use", "--listen"]);
}

#[test]
fn a_token_file_that_is_missing_or_broken_is_named_and_no_token_is_shown() {
    let place = DataDirectory::new();
    fs::remove_file(place.tokens()).expect("it is ours");
    refuses(&refused(place.command()), &["token file", "tokens", "No such file"]);
    fs::write(place.tokens(), "a-secret-token\n").expect("it is ours");
    let output = refused(place.command());
    refuses(&output, &["token file", "tokens"]);
    assert!(!said(&output).contains("a-secret-token"), "{}", said(&output));
}

#[test]
fn somebody_elses_kubeconfig_is_left_alone() {
    let place = DataDirectory::new();
    let theirs = place.path("config");
    fs::write(&theirs, "kind: Config\nusers:\n- name: somebody\n").expect("it is ours");
    let mut command = place.command();
    command.arg("--kubeconfig").arg(&theirs);
    refuses(&refused(command), &["kubeconfig", "config", "not written by interlock"]);
    assert!(String::from_utf8_lossy(&read(&theirs)).contains("somebody"));
    let mut command = place.command();
    command.arg("--kubeconfig").arg(place.path("no/such/directory/config"));
    refuses(&refused(command), &["no/such/directory/config"]);
}

fn check_modes(directory: &Path, seen: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            assert_eq!(mode(&path), 0o700, "{path:?}");
            check_modes(&path, seen);
        } else {
            assert_eq!(mode(&path), 0o600, "{path:?}");
            seen.push(path.file_name().expect("a file").to_string_lossy().into_owned());
        }
    }
}

#[test]
fn all_that_it_writes_is_for_its_owner_only() {
    let made = DataDirectory::new();
    // A directory that somebody else made stays as it is: what is in it is closed all the same.
    let given = DataDirectory::new();
    fs::create_dir(given.data()).expect("it is ours");
    fs::set_permissions(given.data(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    for place in [&made, &given] {
        let mut process = place.start();
        process.client().must("POST", CONFIG_MAPS, Some(&config_map("one")));
        process.signal("TERM");
        assert_eq!(process.end().0.code(), Some(0), "{}", process.says());
        let mut seen = Vec::new();
        check_modes(&place.data(), &mut seen);
        for name in ["kubeconfig", "audit.log", "lock", "store"] {
            assert!(seen.iter().any(|file| file == name), "no {name} in {seen:?}");
        }
    }
    assert_eq!(mode(&made.data()), 0o700);
    assert_eq!(mode(&given.data()), 0o755);
}

#[test]
fn health_is_open_to_anybody_and_all_else_is_not() {
    let place = DataDirectory::new();
    let process = place.start();
    let mut nobody = process.client().with_token(None);
    for path in ["/livez", "/readyz", "/healthz"] {
        let answer = nobody.call("GET", path, None).expect("it answers");
        assert_eq!((answer.status, answer.text.as_str()), (200, "ok"), "{path}");
    }
    assert_eq!(nobody.call("GET", "/version", None).expect("it answers").status, 200);
    for path in ["/metrics", "/api", CONFIG_MAPS] {
        assert_eq!(nobody.call("GET", path, None).expect("it answers").status, 401, "{path}");
    }
    let mut stranger = process.client().with_token(Some("no-such-token"));
    assert_eq!(stranger.call("GET", "/api", None).expect("it answers").status, 401);
}

#[test]
fn metrics_and_the_audit_log_tell_of_a_write_but_not_what_was_written() {
    let place = DataDirectory::new();
    let mut process = place.start();
    let mut client = process.client();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden"},
        "stringData": {"password": "a-planted-secret"},
    });
    client.must("POST", "/api/v1/namespaces/default/secrets", Some(&secret));
    client.must("GET", "/api/v1/namespaces/default/secrets/hidden", None);
    client.must("DELETE", "/api/v1/namespaces/default/secrets/hidden", None);
    let metrics = client.call("GET", "/metrics", None).expect("it answers").text;
    let count = metrics.lines().find(|line| {
        line.starts_with("apiserver_request_total") && line.contains("secrets") && {
            line.contains("\"POST\"") || line.contains("\"create\"")
        }
    });
    assert!(count.is_some_and(|line| line.ends_with(" 1")), "{metrics}");
    process.signal("TERM");
    assert_eq!(process.end().0.code(), Some(0), "{}", process.says());
    let log = String::from_utf8(read(&place.data().join("audit.log"))).expect("it is text");
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let verbs: Vec<&str> = lines
        .iter()
        .filter(|line| line["objectRef"]["resource"] == "secrets")
        .map(|line| line["verb"].as_str().expect("each has a verb"))
        .collect();
    assert_eq!(verbs, ["create", "delete"], "{log}");
    assert!(lines.iter().all(|line| line["user"]["username"] == "admin"), "{log}");
    for output in [log, process.says(), metrics] {
        assert!(!output.contains("a-planted-secret"), "{output}");
        assert!(!output.contains(harness::TOKEN), "{output}");
    }
}

#[test]
fn a_polite_end_ends_watches_properly_and_takes_no_time() {
    let place = DataDirectory::new();
    let mut process = place.start();
    let path = format!("{CONFIG_MAPS}?watch=true");
    let mut watches: Vec<_> =
        (0..20).map(|_| process.client().watch(&path).expect("it answers")).collect();
    for watch in &mut watches {
        let event = watch.next().expect("the connection holds").expect("there is one at least");
        assert_eq!(event["type"], "ADDED");
    }
    // Somebody who connects and says nothing must not hold it up, either.
    let silent = std::net::TcpStream::connect(process.address()).expect("it listens");
    process.signal("INT");
    let (status, took) = process.end();
    assert_eq!(status.code(), Some(0), "{}", process.says());
    // Less than the ten seconds that it would wait for requests under way.
    assert!(took < Duration::from_secs(9), "{took:?}");
    for watch in &mut watches {
        while watch.next().expect("the stream ends as it should").is_some() {}
    }
    drop(silent);
    assert!(process.says().contains("stopping because=\"SIGINT\""), "{}", process.says());
}

#[test]
fn a_signal_is_not_lost_while_the_kubeconfig_is_written() {
    let place = DataDirectory::new();
    let mut process = place.start();
    let mut client = process.client();
    for index in 0..5 {
        let cluster = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
            "metadata": {"name": format!("tenant-{index}")},
        });
        client.must("POST", "/apis/interlock.dev/v1alpha1/logicalclusters", Some(&cluster));
    }
    process.signal("TERM");
    let (status, took) = process.end();
    assert_eq!(status.code(), Some(0), "{}", process.says());
    assert!(took < Duration::from_secs(60), "{took:?}");
}

#[test]
fn the_kubeconfig_follows_the_clusters() {
    let place = DataDirectory::new();
    let process = place.start();
    let cluster = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
        "metadata": {"name": "blue"},
    });
    let mut client = process.client();
    client.must("POST", "/apis/interlock.dev/v1alpha1/logicalclusters", Some(&cluster));
    let has_it = || {
        let text = String::from_utf8_lossy(&read(&place.data().join("kubeconfig"))).into_owned();
        text.contains("/clusters/blue")
    };
    wait_until("the kubeconfig names the cluster", has_it);
    client.must("DELETE", "/apis/interlock.dev/v1alpha1/logicalclusters/blue", None);
    wait_until("the kubeconfig names it no more", || !has_it());
}

fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < TIMEOUT, "waited too long until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_second_server_on_the_same_data_ends_with_2_and_names_the_first() {
    let place = DataDirectory::new();
    let process = place.start();
    let output = refused(place.command());
    let holder = format!("process {}", process.id());
    refuses(&output, &["in use", &holder, "--data-dir"]);
    // The first has not noticed.
    process.client().must("POST", CONFIG_MAPS, Some(&config_map("one")));
}

#[test]
fn a_flipped_bit_in_the_log_is_damage_and_nothing_is_changed() {
    let place = DataDirectory::new();
    write_and_kill(&place, 20);
    let segment = place.last_segment();
    let whole = read(&segment);
    let middle = find(&whole, b"object-10");
    let mut damaged = whole.clone();
    damaged[middle] ^= 1;
    fs::write(&segment, &damaged).expect("it is ours");
    let output = refused(place.command());
    let name = segment.file_name().expect("a file").to_string_lossy().into_owned();
    refuses(&output, &["damaged", &name, "at byte", "after revision"]);
    assert!(read(&segment) == damaged, "the damaged log was touched");
    // And once it is mended, all is there.
    fs::write(&segment, &whole).expect("it is ours");
    let process = place.start();
    for index in 0..20 {
        process.client().must("GET", &format!("{CONFIG_MAPS}/object-{index}"), None);
    }
}

fn find(bytes: &[u8], word: &[u8]) -> usize {
    bytes.windows(word.len()).position(|window| window == word).expect("it is written there")
}

#[test]
fn a_torn_tail_is_cut_off_with_a_warning_and_nothing_else_is_lost() {
    let place = DataDirectory::new();
    write_and_kill(&place, 5);
    let segment = place.last_segment();
    let bytes = read(&segment);
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("it has frames") + 1;
    // Half of a frame, as a crash in the middle of a write leaves it.
    let begins = find(&bytes, b"ILKf");
    let file = OpenOptions::new().write(true).open(&segment).expect("it is ours");
    file.write_all_at(&bytes[begins..begins + 60], end as u64).expect("it is ours");
    drop(file);
    let mut process = place.start();
    let text = process.says();
    assert!(text.contains("WARN") && text.contains("unfinished write"), "{text}");
    assert!(text.contains("last_revision="), "{text}");
    for index in 0..5 {
        process.client().must("GET", &format!("{CONFIG_MAPS}/object-{index}"), None);
    }
    process.client().must("POST", CONFIG_MAPS, Some(&config_map("after")));
    process.kill();
    let process = place.start();
    assert!(!process.says().contains("unfinished write"), "{}", process.says());
    process.client().must("GET", &format!("{CONFIG_MAPS}/after"), None);
}

#[test]
fn a_write_whose_client_has_gone_is_known_to_the_server_all_the_same() {
    let place = DataDirectory::new();
    let process = place.start();
    for index in 0..30 {
        let cluster = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
            "metadata": {"name": format!("left-{index}")},
        });
        let path = "/apis/interlock.dev/v1alpha1/logicalclusters";
        Client::new(process.address()).send_and_leave("POST", path, Some(&cluster));
    }
    let mut client = process.client();
    // Requests of clients that left may not have been read at all; those that were are whole.
    client.must("POST", CONFIG_MAPS, Some(&config_map("after")));
    let list = client.must("GET", "/apis/interlock.dev/v1alpha1/logicalclusters", None);
    for cluster in list["items"].as_array().expect("a list has items") {
        let name = cluster["metadata"]["name"].as_str().expect("each has a name");
        let path = format!("/clusters/{name}/api/v1/namespaces/default");
        let began = Instant::now();
        while client.call("GET", &path, None).expect("it answers").status != 200 {
            assert!(began.elapsed() < TIMEOUT, "{name} cannot be entered");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn with_tls_it_says_where_the_keys_are_and_does_not_speak_in_the_clear() {
    let place = DataDirectory::new();
    let mut command = serve();
    command.arg("--data-dir").arg(place.data()).args(["--listen", "127.0.0.1:0"]);
    let mut process = Process::spawn(command);
    wait_until("it is ready", || process.says().contains(" ready "));
    let text = process.says();
    let kubeconfig = place.data().join("kubeconfig");
    assert!(text.contains("https://127.0.0.1:"), "{text}");
    assert!(text.contains(&*kubeconfig.to_string_lossy()), "{text}");
    process.signal("TERM");
    assert_eq!(process.end().0.code(), Some(0), "{}", process.says());
}

const CLUSTERS: usize = 400;
const LOGICAL_CLUSTERS: &str = "/apis/interlock.dev/v1alpha1/logicalclusters";

fn metric(process: &Process, name: &str) -> f64 {
    let text = process.client().call("GET", "/metrics", None).expect("it answers").text;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// Creates and deletes many clusters. The memory that each takes, and the memory when all are gone.
fn come_and_go(process: &Process) -> (u64, u64) {
    let at_rest = || metric(process, "interlock_store_history_bytes") == 0.0;
    wait_until("history is cut off", at_rest);
    let (before, address) = (process.resident_kib(), process.address());
    let each = |work: &(dyn Fn(&mut Client, usize) + Sync)| {
        thread::scope(|scope| {
            for first in 0..8 {
                scope.spawn(move || {
                    let mut client = Client::new(address);
                    (first..CLUSTERS).step_by(8).for_each(|index| work(&mut client, index));
                });
            }
        });
    };
    each(&|client, index| {
        let cluster = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
            "metadata": {"name": format!("tenant-{index}")},
        });
        client.must("POST", LOGICAL_CLUSTERS, Some(&cluster));
    });
    wait_until("history is cut off", at_rest);
    let taken = process.resident_kib().saturating_sub(before);
    each(&|client, index| {
        client.must("DELETE", &format!("{LOGICAL_CLUSTERS}/tenant-{index}"), None);
    });
    wait_until("all are gone", || metric(process, "interlock_logical_clusters") == 1.0);
    wait_until("history is cut off", at_rest);
    (taken * 1024 / CLUSTERS as u64, process.resident_kib())
}

#[test]
fn clusters_that_come_and_go_take_the_same_memory_again() {
    let place = DataDirectory::new();
    let mut command = place.command();
    command.args(["--history-seconds", "1"]);
    let process = Process::spawn(command).ready();
    let idle = process.resident_kib();
    let (each_bytes, first) = come_and_go(&process);
    let rounds: Vec<u64> = (0..3).map(|_| come_and_go(&process).1).collect();
    println!(
        "{idle} KiB when idle; {each_bytes} bytes for each of {CLUSTERS} clusters; {first} KiB when all are \
         gone, then {rounds:?}"
    );
    assert!(each_bytes < 64 * 1024, "{each_bytes} bytes for each cluster");
    // What the first round has taken from the machine and given back to the allocator is used again. The allocator
    // needs some rounds to settle; a leak of every cluster would be as much again in each.
    let last = rounds[rounds.len() - 1];
    assert!(last <= first + first / 3, "{first} KiB after the first round, then {rounds:?}");
}
