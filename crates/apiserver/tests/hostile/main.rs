//! Nothing that comes from outside makes the server panic, answer 500, or stop working.
//!
//! `INTERLOCK_SEED` and `INTERLOCK_CASES` choose what is sent, and how much.

#[path = "../support/asking.rs"]
mod asking;
mod bodies;
mod once;
mod requests;
mod sizes;
mod values;

use asking::{Asker, Numbers};
use http::{HeaderName, HeaderValue, Method, Request};
use interlock_apiserver::{Body, Config, Server};
use requests::{Draft, Maker, Served};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Panics of any thread, with their places.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn record_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
    }));
}

fn panics() -> Vec<String> {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

async fn served(admin: &Asker) -> Maker {
    let mut maker =
        Maker { served: Vec::new(), schemas: values::Schemas::default(), tokens: Vec::new() };
    let mut documents = vec![("v1".to_owned(), "/api/v1".to_owned())];
    for group in admin.get("/apis").await.json["groups"].as_array().into_iter().flatten() {
        for version in group["versions"].as_array().into_iter().flatten() {
            let name = version["groupVersion"].as_str().expect("a name").to_owned();
            let path = format!("/apis/{name}");
            documents.push((name, path));
        }
    }
    for (group_version, path) in documents {
        maker.schemas.learn(&admin.get(&format!("/openapi/v3{path}")).await.json);
        let list = admin.get(&path).await;
        for resource in list.json["resources"].as_array().into_iter().flatten() {
            let plural = resource["name"].as_str().expect("a name").to_owned();
            if plural.contains('/') {
                continue;
            }
            maker.served.push(Served {
                group_version: group_version.clone(),
                kind: resource["kind"].as_str().expect("a kind").to_owned(),
                plural,
                is_namespaced: resource["namespaced"] == true,
            });
        }
    }
    for plural in bodies::DEFINED {
        let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..plural.len() - 1]);
        let is_namespaced = *plural != "wholes";
        let group_version = "example.com/v1".to_owned();
        // Twice as often as the built-in kinds.
        for _ in 0..6 {
            maker.served.push(Served {
                group_version: group_version.clone(),
                kind: kind.clone(),
                plural: (*plural).to_owned(),
                is_namespaced,
            });
        }
    }
    maker
}

/// The request, if HTTP has room for it.
fn request(draft: &Draft) -> Option<Request<Body>> {
    let mut request = Request::builder()
        .method(Method::from_bytes(draft.method.as_bytes()).ok()?)
        .uri(draft.target.as_str());
    for (name, value) in &draft.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        request = request.header(name, HeaderValue::from_bytes(value).ok()?);
    }
    let body =
        if draft.body.is_empty() { Body::default() } else { Body::whole(draft.body.clone()) };
    request.body(body).ok()
}

/// Whether it is a 500 that kube-apiserver itself answers with: an apply names a field that there is not, or two budgets
/// are for one pod that is evicted.
fn is_upstreams_own(answer: &asking::Answer) -> bool {
    let message = answer.json["message"].as_str().unwrap_or_default();
    message.starts_with("failed to create typed patch object")
        || message.starts_with("This pod has more than one PodDisruptionBudget")
}

/// What is wrong with an answer.
fn wrong_with(answer: &asking::Answer) -> Option<String> {
    let content_type = answer.headers.get("content-type").map(|value| value.as_bytes().to_vec());
    if is_upstreams_own(answer) {
        return None;
    }
    if answer.code == 500 {
        return Some("it is the server's fault".to_owned());
    }
    if answer.code >= 400 {
        let is_status = answer.json["kind"] == "Status"
            && answer.json["apiVersion"] == "v1"
            && answer.json["status"] == "Failure"
            && answer.json["code"] == answer.code
            && answer.json["message"].as_str().is_some_and(|message| !message.is_empty())
            && answer.json["reason"].is_string();
        return (!is_status).then(|| "the refusal is no Status with its code".to_owned());
    }
    let is_json = content_type.is_some_and(|text| text.starts_with(b"application/json"));
    if is_json && answer.code != 304 && serde_json::from_slice::<Value>(&answer.bytes).is_err() {
        return Some("what is called JSON is none".to_owned());
    }
    None
}

async fn repair(admin: &Asker) {
    for plural in bodies::DEFINED {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        admin.post(definitions, &bodies::open_definition(plural)).await;
    }
    for namespace in ["default", "play", "kube-system"] {
        let namespace = json!({"metadata": {"name": namespace}});
        admin.post("/api/v1/namespaces", &namespace).await;
        let clusters = "/apis/interlock.dev/v1alpha1/logicalclusters";
        admin.post(clusters, &json!({"metadata": {"name": "east"}})).await;
        admin.clone().in_cluster("east").post("/api/v1/namespaces", &namespace).await;
    }
}

fn shown(draft: &Draft) -> String {
    let mut body = String::from_utf8_lossy(&draft.body).into_owned();
    let headers: Vec<String> = draft
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)))
        .collect();
    if body.chars().count() > 3000 {
        body = body.chars().take(3000).collect();
    }
    format!("{} {}\n{}\n\n{body}", draft.method, draft.target, headers.join("\n"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_sent_is_answered_and_the_server_goes_on() {
    record_panics();
    let seed = setting("INTERLOCK_SEED", 1);
    let cases = setting("INTERLOCK_CASES", 8000);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Config { data_directory: Some(directory.path().to_owned()), ..Config::default() };
    let server = Server::start(config).await.expect("a server");
    let admin = Asker::admin(&server);
    let others = [Asker::user(&server, "somebody", &[]), Asker::nobody(&server)];
    let mut maker = served(&admin).await;
    let mut codes = std::collections::BTreeMap::<u16, u64>::new();
    let mut slowest: Vec<(Duration, String)> = Vec::new();
    for case in 0..cases {
        if case % 100 == 0 {
            repair(&admin).await;
        }
        let mut numbers = Numbers::new(seed.wrapping_mul(1_000_003).wrapping_add(case));
        let draft = maker.draft(&mut numbers);
        let Some(request) = request(&draft) else { continue };
        let asker = if numbers.one_in(16) { numbers.pick(&others) } else { &admin }.clone();
        let began = Instant::now();
        let asked = tokio::spawn(async move {
            let answer = asker.server.handle(request, &asker.caller).await;
            // A watch is read up to its first part: the rest may be long in coming.
            let is_watch = answer.headers().get("content-length").is_none()
                && http_body::Body::size_hint(answer.body()).exact().is_none();
            if is_watch { None } else { Some(asking::read(answer).await) }
        });
        let answer = tokio::time::timeout(Duration::from_secs(60), asked).await;
        let took = began.elapsed();
        let told = || format!("INTERLOCK_SEED={seed}, case {case}: {}", shown(&draft));
        let panics = panics();
        assert!(panics.is_empty(), "{}\n{}", panics.join("\n"), told());
        let answer = answer.unwrap_or_else(|_| panic!("no answer in a minute\n{}", told()));
        let answer = answer.unwrap_or_else(|_| panic!("it panicked\n{}", told()));
        if let Some(answer) = answer {
            *codes.entry(answer.code).or_default() += 1;
            if let Some(wrong) = wrong_with(&answer) {
                panic!("{wrong}: {}\n{}", answer.text(), told());
            }
            if let Some(token) = answer.json["metadata"]["continue"].as_str() {
                maker.tokens.push(token.to_owned());
            }
        }
        slowest
            .push((took, draft.method + " " + &draft.target.chars().take(160).collect::<String>()));
        slowest.sort_by_key(|one| std::cmp::Reverse(one.0));
        slowest.truncate(5);
    }
    eprintln!("seed {seed}, {cases} cases, answers by code: {codes:?}");
    for (took, what) in &slowest {
        eprintln!("slow: {took:?} {what}");
    }
    assert!(slowest[0].0 < Duration::from_secs(20), "too slow: {slowest:?}");
    assert!(
        codes[&200] > cases / 20 && codes[&201] > cases / 20,
        "most of it was refused: {codes:?}"
    );
    still_works(&admin, &maker).await;
    assert_eq!(panics(), Vec::<String>::new());
    server.stop().await;
}

/// What the server could do before, it can do now; and everything that it stored can be shown in every form.
async fn still_works(admin: &Asker, maker: &Maker) {
    let path = "/api/v1/namespaces/still";
    admin.make("/api/v1/namespaces", &json!({"metadata": {"name": "still"}})).await;
    let maps = format!("{path}/configmaps");
    admin.make(&maps, &json!({"metadata": {"name": "a"}, "data": {"x": "y"}})).await;
    assert_eq!(admin.get(&format!("{maps}/a")).await.json["data"]["x"], "y");
    assert_eq!(admin.delete(&format!("{maps}/a")).await.code, 200);
    assert_eq!(admin.delete(path).await.code, 200);
    admin.until(path, |answer| answer.code == 404).await;
    for served in &maker.served {
        let root = if served.group_version.contains('/') { "/apis" } else { "/api" };
        for accept in ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"] {
            let asker = admin.clone().with_header("accept", accept);
            let list =
                asker.get(&format!("{root}/{}/{}", served.group_version, served.plural)).await;
            assert!(matches!(list.code, 200 | 404 | 405 | 406), "{served:?} {}", list.text());
        }
    }
}
