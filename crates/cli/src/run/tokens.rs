//! Service-account tokens for pods that are processes of this machine: asked for at the API server of
//! their cluster, and put into files. No token is ever logged.

use super::driver::in_words;
use interlock_outside::processes::{self, Processes};
use interlock_placement::runtime::outside::{
    FailedRequest, HeldToken, TokenFile, TokenFiles, TokenRequest,
};
use interlock_placement::runtime::tokens::Cloud;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{
    BoundObjectReference, TokenRequest as Request, TokenRequestSpec,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// How long the API server may take to issue a token.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The files with tokens of one cluster on this machine.
#[derive(Clone)]
pub(super) struct Tokens {
    processes: Arc<Processes>,
    /// The last request for each pod, if it came to nothing.
    failed: Arc<Mutex<HashMap<String, FailedRequest>>>,
}

/// A token as a server issued it.
struct Issued {
    token: String,
    life_seconds: u64,
}

impl Tokens {
    pub(super) fn new(processes: Arc<Processes>) -> Self {
        Tokens { processes, failed: Arc::default() }
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<String, FailedRequest>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files of a pod.
    pub(super) fn of(&self, pod: &str) -> Result<TokenFiles, processes::Error> {
        let files = self.processes.tokens(pod)?;
        Ok(TokenFiles {
            is_there: files.is_some(),
            held: files.unwrap_or_default().into_iter().map(held).collect(),
            failed: self.failed().get(pod).cloned(),
        })
    }

    /// Has a token issued, and puts it into its file. Whatever goes wrong is in the answer to the next question: it
    /// is no reason to leave the pod alone.
    pub(super) async fn write(&self, client: Option<&Client>, request: TokenRequest) {
        let written = match issue(client, &request).await {
            Ok(issued) => self.put(&request, issued).await,
            Err(because) => Err(because),
        };
        match written {
            Ok(()) => {
                self.failed().remove(&request.pod_uid);
            }
            Err(because) => {
                let TokenRequest { namespace, pod_name, .. } = &request;
                tracing::warn!(namespace, pod = pod_name, because, "a token was not issued");
                let failed = FailedRequest { at: Timestamp::now(), because };
                self.failed().insert(request.pod_uid, failed);
            }
        }
    }

    async fn put(&self, request: &TokenRequest, issued: Issued) -> Result<(), String> {
        let (own, pod, asked) = (self.clone(), request.pod_uid.clone(), request.file.clone());
        let written = tokio::task::spawn_blocking(move || {
            let now = SystemTime::now();
            let file = written(asked, issued.life_seconds, now);
            own.processes.write_token(&pod, &file, &issued.token)?;
            own.processes.remove_tokens_that_are_over(now)
        });
        match written.await {
            Ok(written) => written.map_err(|error| in_words(&error)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Removes the files of a pod.
    pub(super) fn remove(&self, pod: &str) -> Result<(), processes::Error> {
        self.failed().remove(pod);
        self.processes.remove_tokens(pod)
    }
}

async fn issue(client: Option<&Client>, request: &TokenRequest) -> Result<Issued, String> {
    let client = client.ok_or("this program has no account at the cluster that runs pods")?;
    let TokenRequest { namespace, service_account, pod_name, pod_uid, file } = request;
    let wanted = Request {
        spec: TokenRequestSpec {
            audiences: file.audience.iter().cloned().collect(),
            expiration_seconds: i64::try_from(file.seconds).ok(),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod_name.clone()),
                uid: Some(pod_uid.clone()),
            }),
        },
        ..Request::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let params = PostParams::default();
    let issued = accounts.create_token_request(service_account, &params, &wanted);
    let issued = match tokio::time::timeout(TIMEOUT, issued).await {
        Ok(issued) => issued.map_err(|error| in_words(&error))?,
        Err(_) => return Err(format!("no answer for {} s", TIMEOUT.as_secs())),
    };
    let life = issued.spec.expiration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let status = issued.status.ok_or("the server answered without a token")?;
    // A server that does not say for how long gave what was asked for.
    Ok(Issued { token: status.token, life_seconds: life.unwrap_or(file.seconds) })
}

fn written(asked: TokenFile, life_seconds: u64, now: SystemTime) -> processes::TokenFile {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    processes::TokenFile {
        volume: asked.volume,
        path: asked.path,
        audience: asked.audience,
        asked_seconds: asked.seconds,
        life_seconds,
        issued_unix_seconds: since.as_secs(),
        mode: asked.mode,
    }
}

fn held(file: processes::TokenFile) -> HeldToken {
    let issued = i64::try_from(file.issued_unix_seconds).ok();
    HeldToken {
        // One that nobody can tell the time of is of long ago, and is replaced.
        issued: issued.and_then(|at| Timestamp::from_second(at).ok()).unwrap_or(Timestamp::MIN),
        life: Duration::from_secs(file.life_seconds),
        asked: TokenFile {
            volume: file.volume,
            path: file.path,
            audience: file.audience,
            seconds: file.asked_seconds,
            mode: file.mode,
        },
    }
}

/// Where the cloud is, as the environment of this program says: its pods get the same variables.
pub(crate) fn cloud_of_environment() -> Cloud {
    let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    Cloud {
        region: said("AWS_REGION"),
        sts_endpoint: said("AWS_ENDPOINT_URL_STS"),
        iam_endpoint: said("AWS_ENDPOINT_URL_IAM"),
    }
}
