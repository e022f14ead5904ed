//! Requests that are drawn by a seed: most are right, many are wrong in one place.

use super::bodies::{KINDS, Kind, spoil};
use serde_json::{Value, json};
use std::fmt;

const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str =
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
/// Few names, so that requests meet.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// One request, the same for both servers: `{version}` and `{uid}` are what each gave the object.
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) accept: &'static str,
    pub(super) content: &'static str,
    pub(super) body: String,
    /// Who it is sent as, if not as the administrator.
    pub(super) user: Option<&'static str>,
    /// The path of the object that it is about.
    pub(super) object: String,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content = if self.content == JSON { "" } else { self.content };
        write!(f, "{} {} {content} {}", self.method, self.target, self.body)
    }
}

impl Request {
    pub(super) fn get(path: &str) -> Request {
        Request::new("GET", path, Value::Null)
    }

    pub(super) fn post(path: &str, body: Value) -> Request {
        Request::new("POST", path, body)
    }

    pub(super) fn new(method: &'static str, target: &str, body: Value) -> Request {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let object = target.split('?').next().unwrap_or_default().to_owned();
        let target = target.to_owned();
        Request { method, target, accept: JSON, content: JSON, body, user: None, object }
    }

    fn accepting(mut self, accept: &'static str) -> Request {
        self.accept = accept;
        self
    }

    fn asking(mut self, query: &str) -> Request {
        if !query.is_empty() {
            let mark = if self.target.contains('?') { '&' } else { '?' };
            self.target = format!("{}{mark}{query}", self.target);
        }
        self
    }

    fn of(mut self, object: &str) -> Request {
        self.object = object.to_owned();
        self
    }
}

/// A sequence of numbers that its seed fixes (splitmix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound.max(1) as u64) as usize
    }

    pub(super) fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// True once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// The next request about a namespace. A story is about few kinds, so that its requests meet.
pub(super) fn draw(random: &mut Random, namespace: &str) -> Request {
    let first = namespace.bytes().fold(7_usize, |sum, byte| sum * 31 % 1_009 + usize::from(byte));
    let kind = &KINDS[(first + random.below(2)) % KINDS.len()];
    let name = random.one(&NAMES);
    let (all, one) = (kind.path(namespace), format!("{}/{name}", kind.path(namespace)));
    match random.below(20) {
        0..=6 => create(random, kind, namespace, name, &all),
        7..=8 => read(random, &one),
        9..=11 => list(random, &all),
        12..=13 => update(random, kind, namespace, name, &one),
        14..=17 => patch(random, kind, namespace, name, &one),
        _ => delete(random, &one, &all),
    }
}

fn create(random: &mut Random, kind: &Kind, namespace: &str, name: &str, all: &str) -> Request {
    let mut body = kind.object(namespace, name);
    if random.once_in(2) {
        spoil(&mut body, random);
    }
    let options = options(random);
    let request = Request::post(all, body).asking(&options);
    let object = format!("{all}/{name}");
    request.of(&object)
}

fn options(random: &mut Random) -> String {
    let some = [
        "",
        "",
        "",
        "fieldValidation=Strict",
        "fieldValidation=Warn",
        "fieldValidation=Ignore",
        "fieldValidation=No",
        "dryRun=All",
        "dryRun=Some",
        "fieldManager=tester",
        "pretty=true",
    ];
    random.one(&some).to_owned()
}

fn read(random: &mut Random, one: &str) -> Request {
    let accept = random.one(&[JSON, JSON, TABLE, METADATA]);
    let sub = random.one(&["", "", "", "/status", "/scale", "/nothing"]);
    Request::get(&format!("{one}{sub}")).accepting(accept).of(one)
}

fn list(random: &mut Random, all: &str) -> Request {
    let query = random.one(&[
        "",
        "",
        "labelSelector=app%3Da",
        "labelSelector=app+in+(a,b)",
        "labelSelector=%21app",
        "labelSelector=a%3D%3D%3D",
        "fieldSelector=metadata.name%3Db",
        "fieldSelector=metadata.name%21%3Db",
        "fieldSelector=spec.unknown%3Db",
        "limit=1",
        "limit=-1",
        "limit=x",
        "continue=abc",
        "resourceVersion=0",
        "resourceVersion=abc",
        "resourceVersionMatch=Exact",
        "timeoutSeconds=x",
    ]);
    let accept = random.one(&[JSON, JSON, JSON, TABLE, METADATA]);
    Request::get(all).asking(query).accepting(accept)
}

fn update(random: &mut Random, kind: &Kind, namespace: &str, name: &str, one: &str) -> Request {
    let mut body = kind.object(namespace, name);
    match random.below(4) {
        0 => {}
        1 => body["metadata"]["resourceVersion"] = json!("1"),
        _ => body["metadata"]["resourceVersion"] = json!("{version}"),
    }
    if random.once_in(4) {
        body["metadata"]["uid"] = random.one(&[json!("{uid}"), json!("other")]);
    }
    if random.once_in(2) {
        spoil(&mut body, random);
    }
    let target = match kind.has_status && random.once_in(5) {
        true => format!("{one}/status"),
        false => one.to_owned(),
    };
    let options = options(random);
    Request::new("PUT", &target, body).asking(&options).of(one)
}

fn patch(random: &mut Random, kind: &Kind, namespace: &str, name: &str, one: &str) -> Request {
    let (content, body, query) = match random.below(4) {
        0 => {
            let label = random.one(&[json!("x"), json!(null), json!(1), json!("not ok!")]);
            let patch = json!({"metadata": {"labels": {"patched": label}}});
            ("application/merge-patch+json", patch, options(random))
        }
        1 => {
            let patch = random.one(&[
                json!({"metadata": {"annotations": {"a": "b"}}}),
                json!({"metadata": {"finalizers": ["example.com/x"]}}),
                json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/x"]}}),
                json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "b"}]}}}}),
                json!({"spec": null}),
                json!({"data": {"a": null, "c": "d"}}),
            ]);
            ("application/strategic-merge-patch+json", patch, options(random))
        }
        2 => {
            let patch = random.one(&[
                json!([{"op": "add", "path": "/metadata/labels/x", "value": "y"}]),
                json!([{"op": "test", "path": "/metadata/name", "value": "a"}]),
                json!([{"op": "remove", "path": "/metadata/labels/none"}]),
                json!([{"op": "replace", "path": "/metadata/name", "value": "z"}]),
                json!([{"op": "move", "from": "/metadata/labels/app", "path": "/metadata/labels/moved"}]),
                json!([{"op": "jump", "path": "/a"}]),
                json!({"op": "add"}),
            ]);
            ("application/json-patch+json", patch, options(random))
        }
        _ => {
            let mut body = kind.object(namespace, name);
            if random.once_in(2) {
                spoil(&mut body, random);
            }
            let query = random.one(&[
                "fieldManager=one",
                "fieldManager=two",
                "fieldManager=two&force=true",
                "",
            ]);
            ("application/apply-patch+yaml", body, query.to_owned())
        }
    };
    let sub = match random.below(8) {
        0 if kind.has_status => "/status",
        1 if kind.has_scale => "/scale",
        _ => "",
    };
    let mut request = Request::new("PATCH", &format!("{one}{sub}"), body).asking(&query).of(one);
    request.content = content;
    request
}

fn delete(random: &mut Random, one: &str, all: &str) -> Request {
    let body = random.one(&[
        Value::Null,
        Value::Null,
        json!({"preconditions": {"uid": "{uid}"}}),
        json!({"preconditions": {"uid": "other"}}),
        json!({"preconditions": {"resourceVersion": "{version}"}}),
        json!({"preconditions": {"resourceVersion": "1"}}),
        json!({"propagationPolicy": "Orphan"}),
        json!({"propagationPolicy": "Foreground"}),
        json!({"propagationPolicy": "Sideways"}),
        json!({"gracePeriodSeconds": 0}),
        json!({"dryRun": ["All"]}),
        json!({"orphanDependents": true, "propagationPolicy": "Orphan"}),
    ]);
    match random.once_in(6) {
        true => Request::new("DELETE", all, Value::Null).asking("labelSelector=app%3Da"),
        false => Request::new("DELETE", one, body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_requests_each_time() {
        let drawn = |seed| {
            let mut random = Random::new(seed);
            (0..50).map(|_| draw(&mut random, "story-1").to_string()).collect::<Vec<_>>()
        };
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
    }
}
