//! Requests: methods, paths, parameters and headers, right, nearly right and wrong.

use crate::asking::Numbers;
use crate::bodies;
use crate::values::{Schemas, damage_bytes, number, text};
use serde_json::{Value, json};

/// One resource that the server serves.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) group_version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) is_namespaced: bool,
}

/// One request, before it is known whether it can be one at all.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

/// What requests are made of.
pub(crate) struct Maker {
    pub(crate) served: Vec<Served>,
    pub(crate) schemas: Schemas,
    /// Continue tokens that the server gave.
    pub(crate) tokens: Vec<String>,
}

const NAMES: &[&str] = &["a", "b", "c", "default", "kube-root-ca.crt", "view", "v1.example.com"];
const NAMESPACES: &[&str] = &["default", "default", "play", "play", "kube-system", "gone"];
const SUBRESOURCES: &[&str] = &[
    "status",
    "scale",
    "token",
    "finalize",
    "approval",
    "binding",
    "eviction",
    "log",
    "ephemeralcontainers",
];

impl Maker {
    /// A request. Most are right but for what is in them, so that they come far; some are wild all over.
    pub(crate) fn draft(&self, numbers: &mut Numbers) -> Draft {
        let served = numbers.pick(&self.served).clone();
        let name = *numbers.pick(NAMES);
        let mut object = self.schemas.object(numbers, &served.group_version, &served.kind);
        if served.kind == "CustomResourceDefinition" {
            object = bodies::definition(numbers);
        } else if !numbers.one_in(6) {
            object["metadata"] = json!({"name": name});
        }
        let mut draft = match numbers.below(12) {
            0 | 1 => self.read(numbers, &served, name),
            2..=4 => self.create(numbers, &served, &object),
            5 => self.change(numbers, &served, name, &object),
            6..=8 => {
                let (content_type, body) = bodies::patch(numbers, &object);
                let path = self.one(numbers, &served, name);
                let path =
                    format!("{path}?fieldManager={}", if numbers.one_in(20) { "" } else { "test" });
                with_body("PATCH", path, content_type, body)
            }
            9 => self.protobuf(numbers),
            10 => self.delete(numbers, &served, name),
            _ => self.question(numbers),
        };
        if numbers.one_in(3) {
            self.add_parameters(numbers, &mut draft);
        }
        if numbers.one_in(5) {
            add_headers(numbers, &mut draft);
        }
        if numbers.one_in(20) {
            damage_path(numbers, &mut draft);
        }
        if numbers.one_in(40) {
            let odd =
                ["HEAD", "OPTIONS", "TRACE", "CONNECT", "PURGE", "get", "PUT", "DELETE", "POST"];
            draft.method = (*numbers.pick(&odd)).to_owned();
        }
        draft
    }

    fn place(&self, numbers: &mut Numbers) -> &'static str {
        match numbers.below(4) {
            0 => "/clusters/east",
            1 if numbers.one_in(4) => {
                let odd = ["/clusters/root", "/clusters/*", "/clusters/gone", "/clusters/"];
                odd[numbers.below(odd.len())]
            }
            _ => "",
        }
    }

    fn all(&self, numbers: &mut Numbers, served: &Served) -> String {
        let root = match served.group_version.contains('/') {
            true => "/apis",
            false => "/api",
        };
        let place = self.place(numbers);
        let path = format!("{place}{root}/{}", served.group_version);
        if served.is_namespaced != numbers.one_in(40) {
            return format!("{path}/namespaces/{}/{}", numbers.pick(NAMESPACES), served.plural);
        }
        format!("{path}/{}", served.plural)
    }

    fn one(&self, numbers: &mut Numbers, served: &Served, name: &str) -> String {
        let path = self.all(numbers, served);
        if numbers.one_in(6) {
            return format!("{path}/{name}/{}", numbers.pick(SUBRESOURCES));
        }
        format!("{path}/{name}")
    }

    fn read(&self, numbers: &mut Numbers, served: &Served, name: &str) -> Draft {
        let plain = [
            "/",
            "/api",
            "/apis",
            "/version",
            "/openapi/v3",
            "/openapi/v2",
            "/metrics",
            "/healthz",
            "/readyz",
            "/openid/v1/jwks",
            "/api/v1",
            "/apis/apps",
            "/apis/example.com/v1",
            "/livez/ping",
            "/openapi/v3/apis/example.com/v1",
        ];
        let path = match numbers.below(5) {
            0 => format!("{}{}", self.place(numbers), numbers.pick(&plain)),
            1 => self.one(numbers, served, name),
            2 => format!("{}?watch=1&timeoutSeconds=1", self.all(numbers, served)),
            _ => self.all(numbers, served),
        };
        with_body("GET", path, String::new(), Vec::new())
    }

    fn create(&self, numbers: &mut Numbers, served: &Served, object: &Value) -> Draft {
        let (content_type, body) = bodies::encoded(numbers, object);
        with_body("POST", self.all(numbers, served), content_type, body)
    }

    fn change(&self, numbers: &mut Numbers, served: &Served, name: &str, object: &Value) -> Draft {
        let (content_type, body) = bodies::encoded(numbers, object);
        with_body("PUT", self.one(numbers, served, name), content_type, body)
    }

    fn protobuf(&self, numbers: &mut Numbers) -> Draft {
        let (what, body) = bodies::protobuf(numbers);
        let is_it = |served: &&Served| {
            what["kind"] == served.kind.as_str()
                && what["apiVersion"] == served.group_version.as_str()
        };
        let served =
            self.served.iter().find(is_it).unwrap_or_else(|| numbers.pick(&self.served)).clone();
        let content_type = "application/vnd.kubernetes.protobuf".to_owned();
        let name = what["metadata"]["name"].as_str().unwrap_or("a").to_owned();
        let (method, path) = match numbers.below(3) {
            0 => ("PUT", self.one(numbers, &served, &name)),
            1 => ("DELETE", self.one(numbers, &served, &name)),
            _ => ("POST", self.all(numbers, &served)),
        };
        with_body(method, path, content_type, body)
    }

    fn delete(&self, numbers: &mut Numbers, served: &Served, name: &str) -> Draft {
        let mut options = json!({
            "kind": "DeleteOptions", "propagationPolicy": "Background", "gracePeriodSeconds": number(numbers),
            "preconditions": {"uid": text(numbers)}, "dryRun": ["All"],
        });
        for field in ["preconditions", "dryRun", "gracePeriodSeconds"] {
            if numbers.one_in(2)
                && let Some(fields) = options.as_object_mut()
            {
                fields.remove(field);
            }
        }
        let (content_type, body) = bodies::encoded(numbers, &options);
        let body = if numbers.one_in(2) { Vec::new() } else { body };
        // A namespace that is on its way out would keep everybody else from going on.
        let is_kept = served.plural == "namespaces" && !numbers.one_in(10);
        let path = if numbers.one_in(8) && !is_kept {
            self.all(numbers, served)
        } else {
            self.one(numbers, served, name)
        };
        with_body("DELETE", path, content_type, body)
    }

    fn question(&self, numbers: &mut Numbers) -> Draft {
        let attributes = json!({"verb": text(numbers), "resource": text(numbers), "namespace": "default",
                                "group": text(numbers), "name": text(numbers)});
        let body = json!({"spec": {
            "resourceAttributes": attributes, "user": text(numbers), "groups": [text(numbers)],
            "namespace": text(numbers), "token": text(numbers), "audiences": [text(numbers)],
            "expirationSeconds": number(numbers), "extra": {text(numbers): [text(numbers)]},
            "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": text(numbers)},
        }});
        let (content_type, body) = bodies::encoded(numbers, &body);
        let paths = [
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            "/api/v1/namespaces/default/serviceaccounts/default/token",
        ];
        let path = format!("{}{}", self.place(numbers), numbers.pick(&paths));
        with_body("POST", path, content_type, body)
    }

    fn add_parameters(&self, numbers: &mut Numbers, draft: &mut Draft) {
        for _ in 0..1 + numbers.below(2) {
            let name = *numbers.pick(&[
                "labelSelector",
                "fieldSelector",
                "watch",
                "limit",
                "continue",
                "resourceVersion",
                "pretty",
                "dryRun",
                "resourceVersionMatch",
                "timeoutSeconds",
                "sendInitialEvents",
                "allowWatchBookmarks",
                "fieldValidation",
                "fieldManager",
                "force",
                "includeObject",
                "propagationPolicy",
                "gracePeriodSeconds",
                "orphanDependents",
            ]);
            let value = self.parameter(numbers, name);
            let mark = if draft.target.contains('?') { '&' } else { '?' };
            draft.target =
                format!("{}{mark}{name}={}", draft.target, percent_encoded(numbers, &value));
        }
    }

    fn parameter(&self, numbers: &mut Numbers, name: &str) -> String {
        let of = |numbers: &mut Numbers, words: &[&str]| (*numbers.pick(words)).to_owned();
        match name {
            _ if numbers.one_in(20) => text(numbers),
            "labelSelector" | "fieldSelector" => selector(numbers),
            "continue" if !self.tokens.is_empty() => {
                let mut token = numbers.pick(&self.tokens).clone().into_bytes();
                if numbers.one_in(2) {
                    damage_bytes(&mut token, numbers);
                }
                String::from_utf8_lossy(&token).into_owned()
            }
            // A version from the future makes the server wait: seldom.
            "resourceVersion" if numbers.one_in(100) => "18446744073709551615".to_owned(),
            "resourceVersion" => {
                of(numbers, &["", "0", "1", "7", "x", "-1", "1.5", "99999999999999999999"])
            }
            "resourceVersionMatch" => of(numbers, &["Exact", "NotOlderThan", "", "exact"]),
            "fieldValidation" => of(numbers, &["Strict", "Warn", "Ignore", "Never"]),
            "dryRun" => of(numbers, &["All", "all", ""]),
            "includeObject" => of(numbers, &["Object", "None", "Metadata", "x"]),
            "propagationPolicy" => of(numbers, &["Foreground", "Background", "Orphan", "x"]),
            "limit" | "timeoutSeconds" | "gracePeriodSeconds" => of(
                numbers,
                &[
                    "0",
                    "1",
                    "2",
                    "-1",
                    "500",
                    "9223372036854775807",
                    "9223372036854775808",
                    "1e3",
                    "",
                ],
            ),
            _ => of(numbers, &["true", "false", "1", "0", "", "yes"]),
        }
    }
}

fn with_body(method: &str, target: String, content_type: String, body: Vec<u8>) -> Draft {
    let mut headers = Vec::new();
    if !content_type.is_empty() {
        headers.push(("content-type".to_owned(), content_type.into_bytes()));
    }
    Draft { method: method.to_owned(), target, headers, body }
}

fn selector(numbers: &mut Numbers) -> String {
    let words = [
        "a",
        "b",
        "app",
        "a.b/c",
        "=",
        "==",
        "!=",
        "in",
        "notin",
        "(",
        ")",
        ",",
        " ",
        "!",
        ">",
        "<",
        "1",
        "metadata.name",
        "metadata.namespace",
        "status.phase",
        "involvedObject.kind",
        "spec.x",
        "\\,",
        "\\",
        "ü",
    ];
    (0..numbers.below(9)).map(|_| *numbers.pick(&words)).collect()
}

fn percent_encoded(numbers: &mut Numbers, text: &str) -> String {
    let is_lazy = numbers.one_in(2);
    let mut encoded = String::new();
    for byte in text.bytes() {
        if is_lazy && (byte.is_ascii_alphanumeric() || b"-._~!(),/:=*".contains(&byte)) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    encoded
}

fn add_headers(numbers: &mut Numbers, draft: &mut Draft) {
    let odd: [(&str, &[u8]); 24] = [
        ("accept", b"application/json;as=Table;v=v1;g=meta.k8s.io"),
        ("accept", b"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
        (
            "accept",
            b"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
        ),
        ("accept", b"application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io"),
        ("accept", b"application/vnd.kubernetes.protobuf"),
        ("accept", b"application/yaml"),
        ("accept", b"*/*;q=0.1, text/html;q=zzz, ;;;,,,"),
        ("accept", b"\xff\xfe"),
        ("accept", b"application/json;stream=watch;pretty=1"),
        ("content-type", b"\xff"),
        ("content-type", b"application/json-patch+json"),
        ("authorization", b"Bearer x.y.z"),
        ("authorization", b"Bearer"),
        ("authorization", b"Basic YTpi"),
        ("authorization", b"Bearer eyJhbGciOiJub25lIn0.e30."),
        ("impersonate-user", b"system:serviceaccount:default:default"),
        ("impersonate-user", b"system:anonymous"),
        ("impersonate-user", b"\xe4"),
        ("impersonate-group", b"system:masters"),
        ("impersonate-extra-%zz", b"x"),
        ("user-agent", b"\xff/1"),
        ("user-agent", b"kubectl/v1.35.0 (linux/amd64)"),
        ("if-none-match", b"\"x\", \"y\""),
        ("content-encoding", b"gzip"),
    ];
    for _ in 0..1 + numbers.below(2) {
        let (name, value) = *numbers.pick(&odd);
        draft.headers.push((name.to_owned(), value.to_vec()));
    }
    if numbers.one_in(16) {
        let value: String = text(numbers).chars().filter(|letter| !letter.is_control()).collect();
        draft.headers.push(("accept".to_owned(), value.into_bytes()));
    }
}

fn damage_path(numbers: &mut Numbers, draft: &mut Draft) {
    let odd = [
        "%",
        "%2",
        "%zz",
        "%00",
        "%2f",
        "%2e%2e",
        "..",
        ".",
        "//",
        "/",
        "%ff",
        "%c3%bc",
        "*",
        "watch/",
        "+",
        "~",
        "/clusters/*",
        "/clusters/east",
        "namespaces/",
        "%25",
        "%3f",
        "%F0%9F%92%A9",
    ];
    let places: Vec<usize> = draft.target.match_indices('/').map(|(place, _)| place).collect();
    let place = *numbers.pick(&places);
    let piece = match numbers.below(6) {
        0 => format!("/{}", "x".repeat(1 + numbers.below(5000))),
        1 => "/x".repeat(1 + numbers.below(300)),
        _ => format!("/{}", numbers.pick(&odd)),
    };
    draft.target.insert_str(place, &piece);
}
