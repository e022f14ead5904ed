//! Webhooks are called: real HTTPS servers in this process answer for them.

mod configurations;
mod failures;
mod mutating;
mod services;
mod validating;

use crate::support::Api;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use interlock_apiserver::Body;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub(crate) const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
pub(crate) const MUTATING: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// What a webhook does with a question.
pub(crate) enum Reply {
    /// It sends a review with these fields in its response; the uid is filled in.
    Review(Value),
    /// It sends this.
    Plain(u16, Vec<u8>),
    /// It sends somebody elsewhere.
    Redirect(String),
    /// It closes the connection.
    Close,
    /// It says nothing, for ever.
    Hang,
}

type Answering = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// A webhook.
#[derive(Clone)]
pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    pub(crate) bundle: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Hook {
    /// A webhook that answers each question with what a function makes of it.
    pub(crate) async fn answering(
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Hook {
        Hook::replying(move |request| {
            let reply = Reply::Review(answer(&request));
            Box::pin(async move { reply })
        })
        .await
    }

    /// A webhook that lets everything pass.
    pub(crate) async fn allowing() -> Hook {
        Hook::answering(|_| json!({"allowed": true})).await
    }

    /// A webhook that changes everything by one patch.
    pub(crate) async fn patching(patch: Value) -> Hook {
        Hook::answering(move |_| patched(&patch)).await
    }

    /// A webhook that does anything.
    pub(crate) async fn replying(
        reply: impl Fn(Value) -> Answering + Send + Sync + 'static,
    ) -> Hook {
        let (listener, tls, mut hook) = listening().await;
        hook.address = listener.local_addr().expect("it listens");
        let (reply, asked) = (Arc::new(reply), Arc::clone(&hook.asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, reply, asked) = (tls.clone(), Arc::clone(&reply), Arc::clone(&asked));
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let service = service_fn(|request: Request<Incoming>| {
                        let (reply, asked) = (Arc::clone(&reply), Arc::clone(&asked));
                        async move { respond(request, &*reply, &asked).await }
                    });
                    let builder = hyper::server::conn::http1::Builder::new();
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        hook
    }

    /// A program that speaks TLS, and then something else than HTTP.
    pub(crate) async fn babbling(bytes: &'static [u8]) -> Hook {
        let (listener, tls, hook) = listening().await;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = tls.accept(stream).await else { continue };
                let _ = stream.write_all(bytes).await;
                let _ = stream.shutdown().await;
            }
        });
        hook
    }

    /// The questions so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("nobody panics with it").clone()
    }

    /// The names of the objects that were asked about.
    pub(crate) fn names(&self) -> Vec<String> {
        let asked = self.asked();
        asked.iter().map(|asked| asked["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// A configuration of one webhook for config maps.
    pub(crate) fn configuration(&self, name: &str, changes: Value) -> Value {
        let url = format!("https://{}/hook", self.address);
        let mut webhook = json!({
            "name": format!("{name}.example.com"), "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": url, "caBundle": self.bundle},
            "rules": [rule(&["configmaps"], &["CREATE", "UPDATE"])],
            // A test that fails shall say so before it is given up.
            "timeoutSeconds": 30,
        });
        for (field, value) in changes.as_object().expect("changes are fields") {
            webhook[field.as_str()] = value.clone();
        }
        json!({"metadata": {"name": name}, "webhooks": [webhook]})
    }

    /// Registers it as a validating webhook.
    pub(crate) async fn validates(&self, api: &Api, changes: Value) {
        api.post(VALIDATING, &self.configuration("guard", changes)).await.made();
    }

    /// Registers it as a mutating webhook.
    pub(crate) async fn mutates(&self, api: &Api, name: &str, changes: Value) {
        api.post(MUTATING, &self.configuration(name, changes)).await.made();
    }
}

/// A rule about core resources of all groups and versions.
pub(crate) fn rule(resources: &[&str], operations: &[&str]) -> Value {
    json!({
        "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources, "operations": operations,
    })
}

/// A response that lets a write pass with a patch.
pub(crate) fn patched(patch: &Value) -> Value {
    let patch = STANDARD.encode(patch.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

async fn listening() -> (TcpListener, TlsAcceptor, Hook) {
    let names = ["127.0.0.1", "hook.default.svc"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let chain = vec![CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).expect("PEM")];
    let key = made.signing_key.serialize_pem();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the versions are known")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("they fit");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let hook = Hook {
        address: listener.local_addr().expect("it listens"),
        bundle: STANDARD.encode(made.cert.pem()),
        asked: Arc::default(),
    };
    (listener, TlsAcceptor::from(Arc::new(config)), hook)
}

async fn respond(
    request: Request<Incoming>,
    reply: &(dyn Fn(Value) -> Answering + Send + Sync),
    asked: &Mutex<Vec<Value>>,
) -> Result<Response<Body>, std::io::Error> {
    let mut body = std::pin::pin!(request.into_body());
    let mut bytes: Vec<u8> = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await
    {
        let data: Bytes = frame.expect("the question comes whole").into_data().unwrap_or_default();
        bytes.extend_from_slice(&data);
    }
    let review: Value = serde_json::from_slice(&bytes).expect("a question is JSON");
    let question = review["request"].clone();
    asked.lock().expect("nobody panics with it").push(question.clone());
    let answer = |code: u16, body: Vec<u8>| {
        Response::builder().status(code).body(Body::whole(body)).expect("it is an answer")
    };
    match reply(question.clone()).await {
        Reply::Review(mut response) => {
            if response.get("uid").is_none() {
                response["uid"] = question["uid"].clone();
            }
            let review = json!({
                "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response,
            });
            Ok(answer(200, review.to_string().into_bytes()))
        }
        Reply::Plain(code, body) => Ok(answer(code, body)),
        Reply::Redirect(to) => {
            let redirect = Response::builder().status(302).header("location", to);
            Ok(redirect.body(Body::default()).expect("it is an answer"))
        }
        Reply::Close => Err(std::io::Error::other("closed")),
        Reply::Hang => std::future::pending().await,
    }
}
