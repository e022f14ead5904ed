//! Answers and watches that nobody reads.

use crate::asking::{self, DEADLINE, read};
use crate::{CONFIG_MAPS, Tenants, fill};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use interlock_apiserver::limits::Caps;
use interlock_apiserver::{Body, Listening, Transport};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

const MIB: u64 = 1 << 20;

async fn listen(tenants: &Tenants) -> SocketAddr {
    let address = "127.0.0.1:0".parse().expect("an address");
    let listening = Listening::on(&tenants.server, address, Transport::InTheClear).await;
    let listening = listening.expect("a port");
    let address = listening.address();
    tokio::spawn(listening.run());
    address
}

/// A connection on which every stream begins with a window of this size.
async fn connect(address: SocketAddr, window: u32) -> http2::SendRequest<Body> {
    let stream = TcpStream::connect(address).await.expect("the server listens");
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(stream))
        .await
        .expect("it speaks HTTP/2");
    tokio::spawn(connection);
    sender
}

/// The request of a tenant for a connection: its path has no host of its own.
fn over_http2(request: Request<Body>) -> Request<Body> {
    let (mut parts, body) = request.into_parts();
    parts.uri = format!("http://localhost{}", parts.uri).parse().expect("an address");
    Request::from_parts(parts, body)
}

async fn asked(
    connection: &mut http2::SendRequest<Body>,
    request: Request<Body>,
) -> Response<Incoming> {
    let answer = connection.send_request(over_http2(request));
    let answer = tokio::time::timeout(DEADLINE, answer).await.expect("an answer in time");
    answer.expect("the connection lives")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_nobody_reads_stay_within_their_budget_and_the_neighbour_is_served() {
    let budget = 8 * MIB;
    let tenants = Tenants::with(Caps { unsent_bytes_per_caller: budget, ..Caps::default() }).await;
    fill(&tenants.loud, 20, 100_000).await;
    let address = listen(&tenants).await;
    let mut connections = Vec::new();
    for _ in 0..2 {
        // A window of one byte lets the server begin each answer.
        connections.push(connect(address, 1).await);
    }
    let (mut unread, mut refused) = (Vec::new(), 0);
    for number in 0..300 {
        let request = tenants.loud.request("GET", CONFIG_MAPS, "", b"");
        let answer = asked(&mut connections[number % 2], request).await;
        match answer.status().as_u16() {
            200 => unread.push(answer),
            429 => {
                assert!(answer.headers().contains_key("retry-after"));
                refused += 1;
            }
            other => panic!("{other}"),
        }
    }
    // Two megabytes each: four or five of them fill the budget.
    assert!((4..=6).contains(&unread.len()), "{} answers wait to be read", unread.len());
    assert_eq!(refused, 300 - unread.len());
    let unsent = tenants.metric("interlock_unsent_bytes").await;
    assert!(unsent > 0.0 && unsent < (budget + 3 * MIB) as f64, "{unsent} bytes");
    // The memory of this process says nothing: other tests run in it at the same time.
    tenants.neighbour_is_served().await;
    let mut theirs = connect(address, 1 << 20).await;
    let list = asked(&mut theirs, tenants.quiet.request("GET", CONFIG_MAPS, "", b"")).await;
    assert_eq!(list.status(), 200);
    // Whoever goes away, or reads, may ask again.
    drop((unread, connections));
    let began = Instant::now();
    while tenants.metric("interlock_unsent_bytes").await > 0.0 {
        assert!(began.elapsed() < DEADLINE, "bytes of answers that are gone are still counted");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(tenants.loud.get(CONFIG_MAPS).await.names().len(), 21);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_list_in_any_form_is_whole() {
    let tenants = Tenants::with(Caps::default()).await;
    fill(&tenants.loud, 20, 10_000).await;
    let plain = tenants.loud.get(CONFIG_MAPS).await;
    assert_eq!((plain.code, plain.names().len()), (200, 21));
    assert_eq!(plain.json["kind"], "ConfigMapList");
    assert_eq!(plain.json["items"][3]["data"]["x"].as_str().map(str::len), Some(10_000));
    let table =
        tenants.loud.clone().with_header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = table.get(&format!("{CONFIG_MAPS}?includeObject=Object")).await;
    assert_eq!(table.json["kind"], "Table");
    assert_eq!(
        table.json["metadata"]["resourceVersion"],
        plain.json["metadata"]["resourceVersion"]
    );
    assert_eq!(table.json["columnDefinitions"][0]["name"], "Name");
    let rows = table.json["rows"].as_array().expect("rows");
    assert_eq!(
        (rows.len(), &rows[3]["cells"][0]),
        (21, &plain.json["items"][3]["metadata"]["name"])
    );
    let partial = tenants
        .loud
        .clone()
        .with_header("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
    let partial = partial.get(CONFIG_MAPS).await;
    assert_eq!(partial.json["kind"], "PartialObjectMetadataList");
    assert_eq!(partial.names(), plain.names());
    assert!(partial.json["items"][3].get("data").is_none());
    // Line breaks are for people, and nobody reads so much.
    let pretty = tenants.loud.get(&format!("{CONFIG_MAPS}?pretty=true")).await;
    assert_eq!(pretty.json, plain.json);
}

#[tokio::test]
async fn a_large_answer_over_http1_is_whole_and_its_budget_is_given_back() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let tenants = Tenants::with(Caps::default()).await;
    fill(&tenants.loud, 4, 100_000).await;
    let address = listen(&tenants).await;
    let request = tenants.loud.request("GET", CONFIG_MAPS, "", b"");
    let token = request.headers()["authorization"].to_str().expect("a token").to_owned();
    // Whole objects are copied on the way; what a table shows of them is made beside.
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (accept, kind, least) in [("*/*", "List", 400_000), (table, "Table", 1_000)] {
        let mut stream = TcpStream::connect(address).await.expect("the server listens");
        let head = format!(
            "GET {} HTTP/1.1\r\nhost: x\r\nconnection: close\r\naccept: {accept}\r\n\
             authorization: {token}\r\n\r\n",
            request.uri()
        );
        stream.write_all(head.as_bytes()).await.expect("it listens");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("it answers");
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with("HTTP/1.1 200") && text.contains(kind), "{}", &text[..100]);
        assert!(text.contains("transfer-encoding: chunked"), "{}", &text[..400]);
        assert!(text.contains("large-0") && text.contains("large-3"), "{}", &text[..400]);
        assert!(answer.len() > least && text.ends_with("0\r\n\r\n"));
    }
    let began = Instant::now();
    while tenants.metric("interlock_unsent_bytes").await > 0.0 {
        assert!(began.elapsed() < DEADLINE, "bytes that were sent are still counted");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A watch in process that nobody reads.
async fn unread_watch(tenants: &Tenants, path: &str) -> Body {
    let request = tenants.loud.request("GET", path, "", b"");
    let answer = tenants.server.handle(request, &tenants.loud.caller).await;
    assert_eq!(answer.status(), 200);
    answer.into_body()
}

async fn events(body: Body) -> Vec<Value> {
    let text = read(Response::new(body)).await.text();
    text.lines().map(|line| serde_json::from_str(line).expect("an event is JSON")).collect()
}

#[tokio::test]
async fn watches_that_nobody_reads_stay_within_their_budget_and_end_with_410() {
    let budget = 2 * MIB;
    let tenants = Tenants::with(Caps { unsent_bytes_per_caller: budget, ..Caps::default() }).await;
    let newest = tenants.loud.get(CONFIG_MAPS).await.json["metadata"]["resourceVersion"].clone();
    let newest = newest.as_str().expect("a version").to_owned();
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={newest}");
    let mut unread = Vec::new();
    for _ in 0..100 {
        unread.push(unread_watch(&tenants, &path).await);
    }
    let mut theirs = tenants.quiet.watch(&path).await.1;
    fill(&tenants.loud, 4, 300_000).await;
    // All that a watcher makes without a reader is one message, and together they have a budget.
    let began = Instant::now();
    while tenants.metric("interlock_unsent_bytes").await < (budget - MIB / 2) as f64 {
        assert!(began.elapsed() < DEADLINE, "nobody makes anything");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    let unsent = tenants.metric("interlock_unsent_bytes").await;
    assert!(unsent < (budget + MIB / 2) as f64, "{unsent} bytes");
    tenants.quiet.make(CONFIG_MAPS, &json!({"metadata": {"name": "neighbour"}})).await;
    assert_eq!(theirs.next().await.expect("an event")["object"]["metadata"]["name"], "neighbour");
    // Half a minute later all are ended, and what they held is free.
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let mut ends = Vec::new();
    tokio::time::sleep(Duration::from_secs(70)).await;
    tokio::time::resume();
    assert!(began.elapsed() < DEADLINE);
    assert_eq!(tenants.metric("interlock_unsent_bytes").await, 0.0);
    for body in unread {
        let events = events(body).await;
        assert_eq!(events.len(), 1, "what was not taken is gone");
        ends.push((events[0]["type"].clone(), events[0]["object"]["code"].clone()));
    }
    assert!(ends.iter().all(|end| *end == (json!("ERROR"), json!(410))), "{ends:?}");
    tenants.neighbour_is_served().await;
}

#[tokio::test]
async fn the_state_of_a_watch_counts_while_it_is_sent() {
    let budget = MIB;
    let tenants = Tenants::with(Caps { unsent_bytes_per_caller: budget, ..Caps::default() }).await;
    fill(&tenants.loud, 4, 300_000).await;
    let path = format!("{CONFIG_MAPS}?watch=true");
    let first = unread_watch(&tenants, &path).await;
    let began = Instant::now();
    while tenants.metric("interlock_unsent_bytes").await < budget as f64 {
        assert!(began.elapsed() < DEADLINE, "the state is not counted");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut second = tenants.loud.watch(&path).await.1;
    let refused = second.next().await.expect("the client learns why");
    assert_eq!((&refused["type"], &refused["object"]["code"]), (&json!("ERROR"), &json!(429)));
    assert_eq!(second.next().await, None);
    drop(first);
    // Whoever reads gets all of it, though it is more than the budget.
    let began = Instant::now();
    while tenants.metric("interlock_unsent_bytes").await > 0.0 {
        assert!(began.elapsed() < asking::DEADLINE, "a watch that is gone is still counted");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut third = tenants.loud.watch(&path).await.1;
    for _ in 0..5 {
        assert_eq!(third.next().await.expect("the state")["type"], "ADDED");
    }
}
