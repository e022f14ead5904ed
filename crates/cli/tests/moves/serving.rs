//! A Deployment that serves, under a client that asks all the time: no update costs it an answer.

use super::fleet::until;
use super::harness::{Client, TIMEOUT};
use super::registering::Up;
use super::workloads::until_status;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const CORE: &str = "/clusters/west/api/v1/namespaces/default";
const APPS: &str = "/clusters/west/apis/apps/v1/namespaces/default";
const SLICES: &str = "/clusters/west/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?\
    labelSelector=kubernetes.io/service-name%3Dweb";

const REPLICAS: usize = 3;
/// How many of them are ready at least, and how many there are at most.
const LEAST: usize = 2;
const MOST: usize = 4;

/// The settings of the server of a pod.
const VERSION: &str = "INTERLOCK_TEST_VERSION";
const IS_READY: &str = "INTERLOCK_TEST_IS_READY";
const PORT: &str = "INTERLOCK_TEST_PORT";
/// How long an answer takes: a pod is asked to stop while it works on some.
const WORK: Duration = Duration::from_millis(50);
/// How long a pod that leaves goes on, so that clients hear of it.
const DRAIN_SECONDS: u64 = 5;

/// Not a test of its own: what the pods below run. By itself, it does nothing.
#[test]
fn this_binary_serves_too() {
    let Ok(version) = std::env::var(VERSION) else { return };
    let is_ready = std::env::var(IS_READY).is_ok_and(|it| it == "true");
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|why| panic!("{name}: {why}"));
    let port: u16 = variable(PORT).parse().expect("it is a port");
    let listener = TcpListener::bind((variable("POD_IP").as_str(), port));
    for stream in listener.expect("nobody else is there").incoming().flatten() {
        let version = version.clone();
        thread::spawn(move || answer(stream, &version, is_ready));
    }
}

fn answer(mut stream: TcpStream, version: &str, is_ready: bool) {
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part) {
            Ok(count) if count > 0 => request.extend_from_slice(&part[..count]),
            Ok(_) | Err(_) => return,
        }
    }
    let is_probe = request.starts_with(b"GET /ready ");
    let status = if is_probe && !is_ready { "503 Service Unavailable" } else { "200 OK" };
    if !is_probe {
        thread::sleep(WORK);
    }
    let length = version.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{version}"
    );
    // A client that does not wait for its answer has lost nothing.
    let _ = stream.write_all(text.as_bytes());
}

/// The template of a version: it serves at once, and is ready or never will be.
fn template(up: &Up, port: u16, version: &str, is_ready: bool) -> Value {
    let program = std::env::current_exe().expect("this is a program");
    let marker = up.path("serving").display().to_string();
    // The last word names no test; by it the process is found if it is left.
    let words = ["--exact", "serving::this_binary_serves_too", "--nocapture", &marker];
    let mut command = vec![program.display().to_string()];
    command.extend(words.map(str::to_owned));
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "terminationGracePeriodSeconds": 30,
            "containers": [{
                "name": "web", "image": "none", "command": command,
                "env": [
                    {"name": VERSION, "value": version},
                    {"name": IS_READY, "value": is_ready.to_string()},
                    {"name": PORT, "value": port.to_string()},
                ],
                "ports": [{"name": "http", "containerPort": port}],
                "readinessProbe": {
                    "httpGet": {"path": "/ready", "port": "http"},
                    "periodSeconds": 1, "timeoutSeconds": 10, "failureThreshold": 3,
                },
                "lifecycle": {"preStop": {"sleep": {"seconds": DRAIN_SECONDS}}},
            }],
        },
    })
}

/// What a client got that asked all the time.
#[derive(Debug, Default)]
struct Got {
    /// How many answers came from each version.
    answers: BTreeMap<String, usize>,
    /// The requests that were not answered, and why.
    lost: Vec<String>,
    /// The fewest pods that were ready and not about to go, and the most that there were.
    fewest: usize,
    most: usize,
}

/// A client that asks all the time, and looks at the pods in between.
struct Asking {
    is_over: Arc<AtomicBool>,
    got: Arc<Mutex<Got>>,
    task: JoinHandle<()>,
}

impl Asking {
    fn begin(mut server: Client) -> Asking {
        let is_over = Arc::new(AtomicBool::new(false));
        let got = Arc::new(Mutex::new(Got { fewest: usize::MAX, ..Got::default() }));
        let (over, noted) = (Arc::clone(&is_over), Arc::clone(&got));
        let task = thread::spawn(move || {
            let mut turn = 0;
            while !over.load(Ordering::Relaxed) {
                turn += 1;
                let addresses = ready(&mut server);
                let asked = match addresses.get(turn % addresses.len().max(1)) {
                    Some(address) => ask(*address).map_err(|why| format!("{address}: {why}")),
                    None => Err("no endpoint is ready".to_owned()),
                };
                let (fewest, most) = count(&mut server);
                let mut got = noted.lock().unwrap_or_else(PoisonError::into_inner);
                match asked {
                    Ok(version) => *got.answers.entry(version).or_default() += 1,
                    Err(why) => got.lost.push(why),
                }
                got.fewest = got.fewest.min(fewest);
                got.most = got.most.max(most);
            }
        });
        Asking { is_over, got, task }
    }

    fn answers_of(&self, version: &str) -> usize {
        let got = self.got.lock().unwrap_or_else(PoisonError::into_inner);
        got.answers.get(version).copied().unwrap_or_default()
    }

    /// Waits until further requests were answered by this version.
    fn hears(&self, version: &str) {
        let before = self.answers_of(version);
        until(&format!("{version} answers"), || {
            let got = format!("{:?}", self.got.lock().unwrap_or_else(PoisonError::into_inner));
            if self.answers_of(version) > before + 5 { Ok(()) } else { Err(got) }
        });
    }

    fn end(self) -> Got {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.join().expect("it only asks");
        std::mem::take(&mut *self.got.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Where the Service is served, as whoever balances its load would read it.
fn ready(server: &mut Client) -> Vec<SocketAddr> {
    let slices = server.must("GET", SLICES, None);
    let mut addresses = Vec::new();
    for slice in items(&slices["items"]) {
        let port = slice["ports"][0]["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let ready = items(&slice["endpoints"]).filter(|it| it["conditions"]["ready"] == true);
        let found = ready.filter_map(|it| it["addresses"][0].as_str()?.parse::<IpAddr>().ok());
        addresses.extend(found.zip(port.into_iter().cycle()).map(SocketAddr::from));
    }
    addresses
}

/// Asks once, on a connection of its own; the version that answers.
fn ask(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    match text.split_once("\r\n\r\n") {
        Some((head, version)) if head.starts_with("HTTP/1.1 200 ") && !version.is_empty() => {
            Ok(version.to_owned())
        }
        _ => Err(io::Error::other(format!("no whole answer: {text:?}"))),
    }
}

/// How many pods are ready and not being deleted, and how many there are.
fn count(server: &mut Client) -> (usize, usize) {
    let pods = server.must("GET", &format!("{CORE}/pods"), None);
    let is_ready = |pod: &&Value| {
        let mut conditions = items(&pod["status"]["conditions"]);
        let is_ready = conditions.any(|it| it["type"] == "Ready" && it["status"] == "True");
        is_ready && pod["metadata"]["deletionTimestamp"].is_null()
    };
    (items(&pods["items"]).filter(is_ready).count(), items(&pods["items"]).count())
}

/// What `kubectl rollout undo` puts back: the template of the ReplicaSet before the present one.
fn template_before(up: &Up) -> Value {
    let sets = up.get(&format!("{APPS}/replicasets"));
    let revision = |set: &&Value| {
        let said = &set["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
        said.as_str().and_then(|text| text.parse::<u64>().ok())
    };
    let mut all: Vec<&Value> = items(&sets["items"]).collect();
    all.sort_by_key(revision);
    let before = all.iter().nth_back(1).unwrap_or_else(|| panic!("no revision before: {sets:#}"));
    let mut template = before["spec"]["template"].clone();
    let labels = template["metadata"]["labels"].as_object_mut().expect("it has labels");
    labels.remove("pod-template-hash");
    template
}

fn all_are_updated(status: &Value) -> bool {
    ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|it| status[it] == REPLICAS)
}

#[test]
fn a_client_loses_no_answer_while_a_deployment_is_updated_stopped_at_a_bad_version_and_undone() {
    let up = Up::start();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let port = free.expect("there are ports").port();
    let service = json!({"metadata": {"name": "web"}, "spec": {
        "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}],
    }});
    up.process.client().must("POST", &format!("{CORE}/services"), Some(&service));
    let deployments = format!("{APPS}/deployments");
    let web = format!("{deployments}/web");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": REPLICAS, "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
            "template": template(&up, port, "v1", true),
        },
    });
    up.process.client().must("POST", &deployments, Some(&deployment));
    until_status(&up, &web, "v1 is there", all_are_updated);
    until("the Service has its endpoints", || match ready(&mut up.process.client()) {
        all if all.len() == REPLICAS => Ok(()),
        some => Err(format!("{some:?}\n{}", up.process.says())),
    });
    let asking = Asking::begin(up.process.client());
    asking.hears("v1");
    let patch = |spec: Value| {
        up.process.client().must("PATCH", &web, Some(&json!({"spec": spec})));
    };

    // A good version takes the place of the one before.
    patch(json!({"template": template(&up, port, "v2", true)}));
    until_status(&up, &web, "v2 is there", all_are_updated);
    asking.hears("v2");

    // A bad one gets as far as it may, and no further: when its time is over as little as at any time before.
    let bad = template(&up, port, "v3", false);
    patch(json!({"progressDeadlineSeconds": 10, "template": bad}));
    until_status(&up, &web, "v3 is as far as it may get, and late", |status| {
        let is_late = |it: &Value| it["reason"] == "ProgressDeadlineExceeded";
        status["updatedReplicas"] == MOST - LEAST
            && status["availableReplicas"] == LEAST
            && items(&status["conditions"]).any(is_late)
    });
    asking.hears("v2");

    // What `kubectl rollout undo` does brings the good one back.
    patch(json!({"template": template_before(&up)}));
    until_status(&up, &web, "v2 is back", all_are_updated);
    asking.hears("v2");
    let got = asking.end();
    assert!(got.lost.is_empty(), "{got:#?}");
    let versions: Vec<&str> = got.answers.keys().map(String::as_str).collect();
    assert_eq!(versions, ["v1", "v2"], "{got:?}");
    assert!(got.fewest >= LEAST && got.most <= MOST, "{got:?}");
    assert!(got.most > REPLICAS, "nothing was updated before the client's eyes: {got:?}");
    eprintln!("{got:?}");
    up.delete(&web);
    until("no pod is left", || match count(&mut up.process.client()) {
        (_, 0) => Ok(()),
        some => Err(format!("{some:?}\n{}", up.process.says())),
    });
    up.end();
}
