//! A client of a server in the same process that speaks raw JSON.

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body::Body as _;
use interlock_apiserver::access::Scope;
use interlock_apiserver::{Body, Caller, Config, Identity, InProcess, Server};
use serde_json::{Value, json};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tower_service::Service;

/// How long a test waits for what must come, on a machine that is busy with other things.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Somebody who calls a server.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) server: Server,
    service: InProcess,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Api {
    /// The administrator of a new server.
    pub(crate) async fn new() -> Api {
        Api::with(Config::default()).await
    }

    /// The administrator of a new server of some sort.
    pub(crate) async fn with(config: Config) -> Api {
        let server = Server::start(config).await.expect("a server in memory starts");
        let service = server.service(identity("admin", &["system:masters"]));
        Api { server, service }
    }

    /// Somebody else, at the same server.
    pub(crate) fn as_user(&self, user: &str, groups: &[&str]) -> Api {
        self.as_identity(identity(user, groups))
    }

    /// Somebody else, at the same server.
    pub(crate) fn as_identity(&self, identity: Identity) -> Api {
        Api { server: self.server.clone(), service: self.server.service(identity) }
    }

    /// The same caller in a logical cluster.
    pub(crate) fn in_cluster(&self, name: &str) -> Api {
        Api { server: self.server.clone(), service: self.service.clone().in_cluster(name) }
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: Request<Body>) -> http::Response<Body> {
        let response = tokio::time::timeout(TIMEOUT, self.service.clone().call(request)).await;
        match response.expect("an answer comes in time") {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Sends a request with these headers, and reads the answer.
    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::whole(body.into())).expect("the test's request is one");
        read(self.send(request).await).await
    }

    async fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json"), ("user-agent", "tester/1")];
        self.request(method, path, &headers, body.to_string()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.request("GET", path, &[("accept", accept)], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.json("POST", path, &typed(path, body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.json("PUT", path, &typed(path, body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path, &[], "").await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.json("DELETE", path, options).await
    }

    async fn patch(&self, path: &str, sort: &str, body: &Value) -> Answer {
        let content_type = format!("application/{sort}");
        let headers = [("content-type", content_type.as_str()), ("user-agent", "tester/1")];
        self.request("PATCH", path, &headers, body.to_string()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.patch(path, "merge-patch+json", body).await
    }

    pub(crate) async fn strategic(&self, path: &str, body: &Value) -> Answer {
        self.patch(path, "strategic-merge-patch+json", body).await
    }

    pub(crate) async fn json_patch(&self, path: &str, body: &Value) -> Answer {
        self.patch(path, "json-patch+json", body).await
    }

    pub(crate) async fn apply(&self, path: &str, body: &Value) -> Answer {
        self.patch(path, "apply-patch+yaml", body).await
    }

    /// Reads a path with nothing but a bearer token, as over the network.
    pub(crate) async fn with_token(&self, token: &str, path: &str) -> Answer {
        let request =
            Request::builder().uri(path).header("authorization", format!("Bearer {token}"));
        let request = request.body(Body::default()).expect("it is a request");
        read(self.server.handle(request, &Caller::default()).await).await
    }

    /// Reads a path with no credential at all, as over the network.
    pub(crate) async fn anonymous(&self, path: &str) -> Answer {
        let request = Request::builder().uri(path).body(Body::default()).expect("it is a request");
        read(self.server.handle(request, &Caller::default()).await).await
    }

    /// Begins a watch with nothing but a bearer token, as over the network.
    pub(crate) async fn watch_with_token(&self, token: &str, path: &str) -> Watch {
        let request =
            Request::builder().uri(path).header("authorization", format!("Bearer {token}"));
        let request = request.body(Body::default()).expect("it is a request");
        let response = self.server.handle(request, &Caller::default()).await;
        assert_eq!(response.status(), 200, "a watch of {path} begins");
        Watch { body: response.into_body(), unread: Vec::new() }
    }

    /// Begins a watch; the path says `watch=true` itself.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, "application/json").await
    }

    /// Begins a watch in some form.
    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        let request = Request::builder().uri(path).header("accept", accept);
        let response = self.send(request.body(Body::default()).expect("it is a request")).await;
        assert_eq!(response.status(), 200, "a watch of {path} begins");
        Watch { body: response.into_body(), unread: Vec::new() }
    }

    /// An answer as it is on the wire: its type and its bytes.
    pub(crate) async fn bytes(&self, path: &str, accept: &str) -> (String, Vec<u8>) {
        let request = Request::builder().uri(path).header("accept", accept);
        let response = self.send(request.body(Body::default()).expect("it is a request")).await;
        let (parts, body) = response.into_parts();
        let kind = parts.headers["content-type"].to_str().expect("it is text").to_owned();
        (kind, whole(body).await)
    }

    /// Asks until the answer is as it must become.
    pub(crate) async fn until(&self, path: &str, is_so: impl Fn(&Answer) -> bool) -> Answer {
        let asking = async {
            loop {
                let answer = self.get(path).await;
                if is_so(&answer) {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(TIMEOUT, asking).await {
            Ok(answer) => answer,
            Err(_) => panic!("{path} did not become what it must: {:?}", self.get(path).await),
        }
    }

    /// Waits until there is nothing at a path.
    pub(crate) async fn until_gone(&self, path: &str) {
        self.until(path, |answer| answer.code == 404).await;
    }

    /// A config map in the namespace `default`.
    pub(crate) async fn config_map(&self, name: &str, data: Value) -> Value {
        let object = json!({"metadata": {"name": name}, "data": data});
        self.post(MAPS, &object).await.made()
    }

    /// A namespace.
    pub(crate) async fn namespace(&self, name: &str) -> Value {
        self.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await.made()
    }
}

/// A body as clients send it: a custom resource says its kind and version, also where a test leaves that out.
fn typed(path: &str, body: &Value) -> Value {
    let mut body = body.clone();
    let parts: Vec<&str> = path.split('?').next().unwrap_or_default().split('/').collect();
    let is_widget = parts.contains(&"widgets") && parts.last() != Some(&"scale");
    if let (true, ["", "apis", group, version, ..], Some(fields)) =
        (is_widget, parts.as_slice(), body.as_object_mut())
    {
        fields.entry("apiVersion").or_insert_with(|| json!(format!("{group}/{version}")));
        fields.entry("kind").or_insert_with(|| json!("Widget"));
    }
    body
}

/// Reads an answer whole.
async fn read(response: http::Response<Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = whole(body).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::String(text));
    Answer { code: parts.status.as_u16(), headers: parts.headers, body }
}

async fn whole(mut body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(part) = part(&mut body).await {
        bytes.extend_from_slice(&part);
    }
    bytes
}

/// Config maps of the namespace `default`.
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// The rendering as a table.
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// The rendering of metadata only.
pub(crate) const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
/// The same for lists.
pub(crate) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// An identity of the hub.
pub(crate) fn identity(user: &str, groups: &[&str]) -> Identity {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Identity::authenticated(user, groups, Scope::Hub)
}

impl Answer {
    /// The body of an answer that must be 200.
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.code, 200, "{}", self.body);
        self.body
    }

    /// The body of an answer that must be 201.
    pub(crate) fn made(self) -> Value {
        assert_eq!(self.code, 201, "{}", self.body);
        self.body
    }

    /// The Status of an answer that must be a refusal with this code and reason.
    pub(crate) fn refused(self, code: u16, reason: &str) -> Value {
        let said = self.body["reason"].as_str().unwrap_or_default();
        assert_eq!((self.code, said), (code, reason), "{}", self.body);
        assert_eq!(self.body["kind"], "Status");
        assert_eq!(self.body["apiVersion"], "v1");
        assert_eq!(self.body["status"], "Failure");
        assert_eq!(self.body["code"], code);
        assert!(self.body["message"].as_str().is_some_and(|text| !text.is_empty()));
        self.body
    }

    /// The `Warning` headers, as they are.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let all = self.headers.get_all("warning").iter();
        all.map(|text| text.to_str().expect("warnings are text").to_owned()).collect()
    }
}

/// The names of a list's items, in order.
pub(crate) fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("it is a list");
    items.iter().map(|item| text(&item["metadata"]["name"])).collect()
}

/// A text in an object.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// An object's resourceVersion.
pub(crate) fn version(object: &Value) -> u64 {
    text(&object["metadata"]["resourceVersion"]).parse().expect("a resourceVersion is a number")
}

/// The fields of a refusal's causes, in order.
pub(crate) fn fields(status: &Value) -> Vec<String> {
    let causes = status["details"]["causes"].as_array().expect("it has causes");
    causes.iter().map(|cause| cause["field"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A watch, line by line.
pub(crate) struct Watch {
    body: Body,
    unread: Vec<u8>,
}

impl Watch {
    /// The next event; none at the end of the stream.
    pub(crate) async fn read(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("an event is one line of JSON"));
            }
            match part(&mut self.body).await {
                Some(part) => self.unread.extend_from_slice(&part),
                None => {
                    assert!(self.unread.is_empty(), "the stream ends after a whole line");
                    return None;
                }
            }
        }
    }

    /// The next event of a watch in protobuf: four bytes say how long it is.
    pub(crate) async fn frame(&mut self) -> Vec<u8> {
        loop {
            if let Some((length, rest)) = self.unread.split_first_chunk() {
                let length = u32::from_be_bytes(*length) as usize;
                if rest.len() >= length {
                    return self.unread.drain(..4 + length).skip(4).collect();
                }
            }
            let part = tokio::time::timeout(TIMEOUT, part(&mut self.body)).await;
            self.unread.extend(part.expect("it comes in time").expect("the stream goes on"));
        }
    }

    /// The next event.
    pub(crate) async fn next(&mut self) -> Value {
        let event = tokio::time::timeout(TIMEOUT, self.read()).await;
        event.expect("an event comes in time").expect("the stream goes on")
    }

    /// The next event, as its type and the name of its object.
    pub(crate) async fn seen(&mut self) -> (String, String) {
        let event = self.next().await;
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }

    /// The next event must be this one.
    pub(crate) async fn expect(&mut self, sort: &str, name: &str) -> Value {
        let event = self.next().await;
        let found = (&event["type"], &event["object"]["metadata"]["name"]);
        assert_eq!(found, (&json!(sort), &json!(name)), "{event}");
        event["object"].clone()
    }

    /// The stream must end now.
    pub(crate) async fn ends(&mut self) {
        let event = tokio::time::timeout(TIMEOUT, self.read()).await;
        assert_eq!(event.expect("the stream ends in time"), None);
    }
}

fn part(body: &mut Body) -> impl Future<Output = Option<Bytes>> {
    std::future::poll_fn(|context| {
        Pin::new(&mut *body).poll_frame(context).map(|frame| match frame? {
            Ok(frame) => frame.into_data().ok(),
            Err(stalled) => panic!("{stalled}"),
        })
    })
}
