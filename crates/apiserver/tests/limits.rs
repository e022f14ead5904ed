//! Limits: whoever asks for too much is asked to come back, and nobody else notices.

#[path = "support/asking.rs"]
mod asking;

use asking::{Answer, Asker};
use bytes::Bytes;
use http::Request;
use http_body::{Body as HttpBody, Frame};
use interlock_apiserver::limits::Caps;
use interlock_apiserver::{Config, Server};
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn server_with(caps: Caps) -> Server {
    Server::start(Config { limits: caps, ..Config::default() }).await.expect("a server")
}

async fn make_cluster(server: &Server, name: &str) {
    let clusters = "/apis/interlock.dev/v1alpha1/logicalclusters";
    Asker::admin(server).make(clusters, &json!({"metadata": {"name": name}})).await;
}

/// A certificate's identity would do as well: what counts is that nobody vouches for the caller, or the limits
/// would take them for a controller of the hub.
async fn tenant(server: &Server, cluster: &str) -> Asker {
    let admin = Asker::admin(server).in_cluster(cluster);
    let subject = json!({"kind": "ServiceAccount", "name": "default", "namespace": "default"});
    let binding = json!({
        "metadata": {"name": "tenant"}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    });
    admin.make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let token = admin.make(path, &json!({})).await["status"]["token"].clone();
    Asker::with_token(server, token.as_str().expect("a token")).in_cluster(cluster)
}

fn assert_told_to_come_back(answer: &Answer) {
    assert_eq!(answer.code, 429, "{}", answer.text());
    assert_eq!(answer.json["reason"], "TooManyRequests");
    let seconds = answer.headers.get("retry-after").and_then(|value| value.to_str().ok());
    let seconds: u64 = seconds.and_then(|text| text.parse().ok()).expect("Retry-After is a number");
    assert!((1..=60).contains(&seconds));
    assert_eq!(answer.json["details"]["retryAfterSeconds"], seconds);
}

/// A body that does not end until it is reported to.
struct Held {
    is_released: Arc<AtomicBool>,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_released.load(Ordering::Relaxed) {
            return Poll::Ready(None);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[tokio::test]
async fn requests_in_flight_are_limited_for_each_caller_and_given_back() {
    let caps = Caps { in_flight_per_caller: 3, ..Caps::default() };
    let server = server_with(caps).await;
    for name in ["east", "west"] {
        make_cluster(&server, name).await;
    }
    let (east, west) = (tenant(&server, "east").await, tenant(&server, "west").await);
    let is_released = Arc::new(AtomicBool::new(false));
    let held: Vec<_> = (0..3)
        .map(|_| {
            let body = Held { is_released: Arc::clone(&is_released) };
            let (parts, _) =
                east.request("POST", CONFIG_MAPS, "application/json", b"").into_parts();
            let (server, caller) = (server.clone(), east.caller.clone());
            tokio::spawn(async move {
                server.handle(Request::from_parts(parts, body), &caller).await.status().as_u16()
            })
        })
        .collect();
    // As soon as all three are in, the fourth is refused.
    let began = Instant::now();
    let refused = loop {
        let answer = east.get(CONFIG_MAPS).await;
        if answer.code != 200 {
            break answer;
        }
        assert!(began.elapsed() < asking::DEADLINE, "three requests are not under way");
        tokio::task::yield_now().await;
    };
    assert_told_to_come_back(&refused);
    assert_eq!(
        west.get(CONFIG_MAPS).await.code,
        200,
        "the same user name elsewhere is somebody else"
    );
    assert_eq!(Asker::admin(&server).in_cluster("east").get(CONFIG_MAPS).await.code, 200);
    assert_eq!(Asker::nobody(&server).get("/livez").await.code, 200);
    is_released.store(true, Ordering::Relaxed);
    for held in held {
        assert_eq!(held.await.expect("it ended"), 400);
    }
    assert_eq!(east.get(CONFIG_MAPS).await.code, 200);
}

#[tokio::test]
async fn watches_are_limited_for_each_caller_and_given_back() {
    let caps = Caps { watches_per_caller: 5, ..Caps::default() };
    let server = server_with(caps).await;
    make_cluster(&server, "east").await;
    make_cluster(&server, "west").await;
    let (east, west) = (tenant(&server, "east").await, tenant(&server, "west").await);
    let path = format!("{CONFIG_MAPS}?watch=true");
    let mut open = Vec::new();
    for _ in 0..5 {
        let (code, mut lines) = east.watch(&path).await;
        assert_eq!(code, 200);
        lines.next().await.expect("the state comes first");
        open.push(lines);
    }
    assert_told_to_come_back(&east.get(&path).await);
    assert_eq!(west.watch(&path).await.0, 200);
    assert_eq!(east.get(CONFIG_MAPS).await.code, 200, "reads are counted apart");
    open.pop();
    let began = Instant::now();
    while east.watch(&path).await.0 != 200 {
        assert!(began.elapsed() < asking::DEADLINE, "a closed watch still counts");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn writes_are_limited_for_each_cluster() {
    let caps = Caps { writes_per_second: 1, write_burst: 10, ..Caps::default() };
    let server = server_with(caps).await;
    make_cluster(&server, "east").await;
    make_cluster(&server, "west").await;
    let (east, west) = (tenant(&server, "east").await, tenant(&server, "west").await);
    let map = json!({"metadata": {"generateName": "x-"}});
    let began = Instant::now();
    let mut taken = 0;
    let refused = loop {
        let answer = east.post(CONFIG_MAPS, &map).await;
        if answer.code != 201 {
            break answer;
        }
        taken += 1;
        assert!(began.elapsed() < asking::DEADLINE, "{taken} writes, and none was refused");
    };
    // A slow machine is given one more for each second that it takes.
    let most = 11 + began.elapsed().as_secs();
    assert!((8..=most).contains(&taken), "{taken} of a burst of 10 were taken, {most} at most");
    assert_told_to_come_back(&refused);
    // What is refused counts too: a flood of bad writes is a flood.
    let refused = loop {
        let answer = east.post(CONFIG_MAPS, &json!(7)).await;
        // One more second may be over by now.
        if answer.code != 400 {
            break answer;
        }
        assert!(began.elapsed() < asking::DEADLINE, "no bad write was refused for its number");
    };
    assert_told_to_come_back(&refused);
    assert_eq!(east.get(CONFIG_MAPS).await.code, 200);
    assert_eq!(west.post(CONFIG_MAPS, &map).await.code, 201);
    let lease = json!({"metadata": {"name": "a"}});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    assert_eq!(east.post(leases, &lease).await.code, 201, "leases have a share of their own");
}

/// How long a tenant's writes take, one after the other; the middle and the slowest.
async fn times(who: &Asker, count: usize) -> (Duration, Duration) {
    let mut took = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        let answer = who.post(CONFIG_MAPS, &json!({"metadata": {"generateName": "x-"}})).await;
        assert_eq!(answer.code, 201, "{}", answer.text());
        took.push(began.elapsed());
    }
    took.sort();
    (took[count / 2], took[count - 1])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_tenant_at_its_limit_does_not_slow_another() {
    let caps = Caps {
        in_flight_per_cluster: 16,
        writes_per_second: 200,
        write_burst: 400,
        ..Caps::default()
    };
    let server = server_with(caps).await;
    make_cluster(&server, "loud").await;
    make_cluster(&server, "quiet").await;
    let (loud, quiet) = (tenant(&server, "loud").await, tenant(&server, "quiet").await);
    let (alone, alone_slowest) = times(&quiet, 100).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let (taken, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let flood: Vec<_> = (0..32)
        .map(|_| {
            let (loud, is_over) = (loud.clone(), Arc::clone(&is_over));
            let (taken, refused) = (Arc::clone(&taken), Arc::clone(&refused));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let map = json!({"metadata": {"generateName": "x-"}, "data": {"x": "y".repeat(2000)}});
                    let answer = loud.post(CONFIG_MAPS, &map).await;
                    let counter = if answer.code == 429 { &refused } else { &taken };
                    counter.fetch_add(1, Ordering::Relaxed);
                    // As a socket would: a refusal comes without a wait.
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    while refused.load(Ordering::Relaxed) < 200 {
        tokio::task::yield_now().await;
    }
    let (beside, beside_slowest) = times(&quiet, 100).await;
    is_over.store(true, Ordering::Relaxed);
    for one in flood {
        one.await.expect("it ended");
    }
    eprintln!(
        "a write alone: {alone:?}, slowest {alone_slowest:?}; beside a flood: {beside:?}, slowest \
         {beside_slowest:?}; of the flood {taken:?} were taken and {refused:?} told to come back"
    );
    // The flood keeps both cores busy with its refusals: the write waits its turn among 32, not behind them all.
    // How long a turn is depends on the machine, and on what else it does; who waits behind them all waits for ever.
    assert!(beside < alone * 50 + Duration::from_secs(2), "{alone:?} became {beside:?}");
}
