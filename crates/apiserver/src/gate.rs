//! The gate: who is calling, which cluster they mean, whether they may, and what is written down about it.

use crate::access::tokens::BoundKind;
use crate::access::{Attributes, Identity, Scope, certificates};
use crate::audit::{AuditEvent, Stage};
use crate::brought::{Brought, Lasting};
use crate::call::{Call, Endpoint, FieldValidation, Notes, Shown};
use crate::clusters::{Cluster, HUB_GROUP, ROOT};
use crate::endpoints;
use crate::handlers;
use crate::health;
use crate::heavy;
use crate::http::{self, Body};
use crate::impersonation;
use crate::kinds;
use crate::limits;
use crate::negotiate;
use crate::object;
use crate::protobuf;
use crate::request::{ClusterName, Query, RequestInfo, ResourceRequest, Verb};
use crate::server::Server;
use crate::standing::Standing;
use crate::status::Status;
use crate::storage;
use crate::streams;
use crate::upgrade::Upgrade;
use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use ::http::request::Parts;
use ::http::{HeaderMap, Request, Response};
use bytes::Bytes;
use http_body::Body as HttpBody;
use interlock_store::Key;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The body of a question about rights or tokens is read up to here.
const QUESTION_BYTES: usize = 64 * 1024;

/// What is known about a caller before the request is read.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// An identity that the wiring vouches for: calls inside of the process. Never from a header.
    pub identity: Option<Identity>,
    /// The certificate that TLS has checked.
    pub certificate: Option<Vec<u8>>,
    /// What the certificate says, read with the first request: it is the same for the whole connection.
    pub named_by_certificate: OnceLock<Option<Identity>>,
    /// Where the call came from, for the audit log.
    pub address: Option<std::net::IpAddr>,
}

/// What is written down about a request once it has been answered.
#[derive(Default)]
struct Noted {
    info: Option<RequestInfo>,
    identity: Option<Identity>,
    /// For whom they acted, if not for themselves.
    impersonated: Option<Identity>,
    cluster: Option<Arc<Cluster>>,
    received: Option<jiff::Timestamp>,
    notes: Arc<Notes>,
}

impl Server {
    /// Serves one request.
    pub async fn handle<B>(&self, request: Request<B>, caller: &Caller) -> Response<Body>
    where
        B: HttpBody<Data = Bytes>,
    {
        let (began, received) = (Instant::now(), self.now());
        let (parts, body) = request.into_parts();
        let mut noted = Noted::default();
        let result = self.pass(&parts, body, caller, &mut noted).await;
        let response = match result {
            Ok(response) => response,
            Err(status) => {
                // One without a reason is upstream's answer to what a client did.
                if status.code >= 500 && !status.reason.is_empty() {
                    tracing::warn!(
                        path = parts.uri.path(), code = status.code, because = %status.message,
                        "a request failed",
                    );
                }
                http::refusal(&status)
            }
        };
        noted.received = Some(received);
        self.note(&parts, caller, noted, &response, began);
        response
    }

    async fn pass<B>(
        &self,
        parts: &Parts,
        body: B,
        caller: &Caller,
        noted: &mut Noted,
    ) -> Result<Response<Body>, Status>
    where
        B: HttpBody<Data = Bytes>,
    {
        let info = RequestInfo::parse(parts.method.as_str(), parts.uri.path(), parts.uri.query())?;
        noted.info = Some(info.clone());
        let query = Query::parse(parts.uri.query())?;
        if let Some(answer) = health::answer(self, &info, &query) {
            return Ok(answer);
        }
        let identity = self.identify(parts, caller, &info).await?;
        noted.identity = Some(identity.clone());
        let cluster = self.enter(&identity, &info.cluster).await?;
        noted.cluster = Some(Arc::clone(&cluster));
        let identity = match info.cluster {
            ClusterName::Issuer(_) => self.as_reader(identity, &cluster).await?,
            ClusterName::Root | ClusterName::Named(_) | ClusterName::Wildcard => identity,
        };
        let identity = match self.impersonated(&parts.headers, &identity, &cluster).await? {
            Some(other) => noted.impersonated.insert(other).clone(),
            None => identity,
        };
        self.authorize(&identity, &cluster, &info).await?;
        let lasts = info.verb == Verb::Watch || streams::is_stream(&info);
        let work = match info.verb {
            _ if lasts => limits::Work::Watch,
            Verb::Watch => limits::Work::Watch,
            Verb::Get | Verb::List | Verb::Head | Verb::Options => limits::Work::Read,
            Verb::Create
            | Verb::Update
            | Verb::Patch
            | Verb::Delete
            | Verb::DeleteCollection
            | Verb::Post
            | Verb::Put => limits::Work::Write,
        };
        let limited = limits::Caller {
            cluster: &cluster.id,
            user: &identity.user,
            is_privileged: caller.identity.is_some() || is_lease(&info),
        };
        let permit = self.limits().enter(&limited, work, Instant::now())?;
        if !lasts {
            query.check_timeout()?;
        }
        let Some(asked) = info.resource.clone() else {
            let answer = endpoints::serve(self, &cluster, &info, parts).await?;
            return until_sent(answer, permit, caller, work);
        };
        let is_wildcard = info.cluster == ClusterName::Wildcard;
        if is_wildcard && !matches!(info.verb, Verb::List | Verb::Watch) {
            return Err(Status::method_not_allowed("all clusters can only be listed and watched"));
        }
        let call = self.call(parts, &info, asked, identity, cluster).await?;
        noted.notes = Arc::clone(&call.notes);
        let is_question =
            kinds::built_in().of(&call.resource).is_some_and(kinds::BuiltIn::is_virtual);
        let endpoint = match info.verb {
            _ if is_question => negotiate::Endpoint::Plain,
            Verb::Watch => negotiate::Endpoint::Watch,
            _ => negotiate::Endpoint::Objects,
        };
        let accept = header(&parts.headers, ACCEPT);
        let has_protobuf = accept.is_some_and(|accept| accept.contains("protobuf"))
            && !call.resource.is_custom()
            && protobuf::is_known(&call.resource.api_version(), &call.resource.kind);
        let accepted = negotiate::negotiate(accept, endpoint, has_protobuf)?;
        // Anybody may ask about rights; nobody needs much for it.
        let most_bytes = if is_question { QUESTION_BYTES } else { http::BODY_LIMIT_BYTES };
        let (permit, lasting) = if lasts {
            let standing = standing_of(parts, caller, &call, &info);
            (None, Some(Lasting { permit, standing }))
        } else {
            (Some(permit), None)
        };
        let brought = Brought {
            verb: info.verb,
            upgrade: if lasts { Upgrade::of(parts) } else { None },
            lasting,
            query,
            accepted,
            content_type: header(&parts.headers, CONTENT_TYPE).unwrap_or_default().to_owned(),
            body: http::read_body(body, most_bytes).await?,
            is_wildcard,
        };
        let is_pretty = accepted.is_pretty || brought.query.pretty() == Some(true);
        let is_heavy = heavy::is_heavy(&brought.content_type, &brought.body)
            || heavy::compiles_much(&call.resource, brought.verb)
            // A small patch takes the whole object apart.
            || (brought.verb == Verb::Patch && heavy::is_large(call.stored_bytes().await?));
        let cluster = Arc::clone(&call.cluster.id);
        let resource = Arc::clone(&call.resource);
        // On the heap: it is tens of kilobytes, and each caller up to the connection would hold them too.
        let served = Box::pin(handlers::serve(call, brought));
        let response = match is_heavy {
            true => self.heavy().run(&cluster, served).await?,
            false => served.await?,
        };
        handlers::check_metadata_form(&resource, info.verb, accepted.rendering)?;
        let answer = http::dressed(response, is_pretty, accepted.content_type());
        match permit {
            Some(permit) => until_sent(answer, permit, caller, work),
            None => Ok(answer),
        }
    }

    /// Whether somebody who was let in still would be.
    pub(crate) async fn still_stands(&self, standing: &Standing) -> Result<(), Status> {
        if let Some(token) = &standing.token {
            self.identify_token(token, None).await?;
        }
        self.authorize(&standing.identity, &standing.cluster, &standing.info).await
    }

    async fn call(
        &self,
        parts: &Parts,
        info: &RequestInfo,
        asked: ResourceRequest,
        identity: Identity,
        cluster: Arc<Cluster>,
    ) -> Result<Call, Status> {
        let resource = self
            .clusters()
            .find_established(&cluster, &asked, self.storage())
            .await?
            .ok_or_else(Status::no_such_path)?;
        let is_one = !matches!(info.verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
        let namespace = if resource.is_namespaced {
            asked.namespace.unwrap_or_default()
        } else if asked.namespace.is_some() && &*resource.plural != "namespaces" {
            return Err(Status::no_such_path());
        } else {
            String::new()
        };
        if resource.is_namespaced && namespace.is_empty() && is_one {
            return Err(if info.verb == Verb::Create {
                Status::method_not_allowed(
                    "the server does not allow this method on the requested resource",
                )
            } else {
                Status::no_such_path()
            });
        }
        let user_agent = header(&parts.headers, USER_AGENT).unwrap_or_default();
        Ok(Call {
            server: self.clone(),
            cluster,
            identity,
            resource,
            namespace,
            name: if is_one || asked.is_watch_path {
                asked.name.unwrap_or_default()
            } else {
                String::new()
            },
            subresource: asked.subresource.unwrap_or_default(),
            endpoint: Endpoint::Main,
            manager: manager_from(user_agent),
            is_apply: false,
            dry_run: false,
            field_validation: FieldValidation::Warn,
            now: self.now(),
            began: tokio::time::Instant::now(),
            notes: Arc::default(),
            shown: Shown::Object,
            options: serde_json::Value::Null,
            is_own: false,
        })
    }

    /// Who is calling.
    async fn identify(
        &self,
        parts: &Parts,
        caller: &Caller,
        info: &RequestInfo,
    ) -> Result<Identity, Status> {
        if let Some(identity) = &caller.identity {
            return Ok(identity.clone());
        }
        if parts.headers.contains_key(AUTHORIZATION) {
            let token = bearer(&parts.headers).ok_or_else(Status::unauthorized)?;
            return self.identify_token(token, None).await.map(|(identity, _)| identity);
        }
        if let Some(certificate) = &caller.certificate {
            let read = || certificates::identity_of(certificate).ok();
            let identity = caller.named_by_certificate.get_or_init(read).clone();
            return identity.ok_or_else(Status::unauthorized);
        }
        let is_issuer = matches!(info.cluster, ClusterName::Issuer(_));
        let is_open = is_issuer || matches!(info.path.as_str(), "/version" | "/version/");
        if is_open { Ok(Identity::anonymous()) } else { Err(Status::unauthorized()) }
    }

    /// Whose token it is, and for which of these audiences; None stands for this server. Deleting a
    /// service account, or what the token is bound to, ends it.
    pub(crate) async fn identify_token(
        &self,
        token: &str,
        audiences: Option<&[&str]>,
    ) -> Result<(Identity, Vec<String>), Status> {
        if let Some(identity) = self.static_tokens().identity_of(token) {
            // A static token is for this server and for nobody else.
            let mut own = self.token_key().own_audiences(ROOT).to_vec();
            if let Some(asked) = audiences {
                own.retain(|audience| asked.contains(&audience.as_str()));
            }
            return if own.is_empty() {
                Err(Status::unauthorized())
            } else {
                Ok((identity.clone(), own))
            };
        }
        let now = self.now().as_second();
        let claims =
            self.token_key().verify(token, audiences, now).map_err(|_| Status::unauthorized())?;
        let key = Key::new(
            storage::table_of("", "serviceaccounts", "-"),
            storage::row(&claims.cluster, &claims.namespace, &claims.name),
        );
        let bound = claims.bound.as_ref().map(|bound| {
            let (plural, namespace) = match bound.kind {
                BoundKind::Pod => ("pods", claims.namespace.as_str()),
                BoundKind::Secret => ("secrets", claims.namespace.as_str()),
                BoundKind::Node => ("nodes", ""),
            };
            let row = storage::row(&claims.cluster, namespace, &bound.object.name);
            (Key::new(storage::table_of("", plural, "-"), row), bound.object.uid.as_str())
        });
        for (key, uid) in std::iter::once((key, claims.uid.as_str())).chain(bound) {
            let found = self.storage().get(&key).await?.map(|version| object::decode(&version));
            if found.is_none_or(|found| object::uid(&found) != uid || object::is_deleting(&found)) {
                return Err(Status::unauthorized());
            }
        }
        Ok((claims.identity(), claims.audiences))
    }

    /// The cluster that is meant, if the caller may enter it. What is not there and what may not be entered look
    /// the same.
    async fn enter(&self, identity: &Identity, name: &ClusterName) -> Result<Arc<Cluster>, Status> {
        let may_enter = self.may_enter(identity, name).await?;
        let cluster = match name {
            ClusterName::Root | ClusterName::Wildcard => Some(self.clusters().root()),
            ClusterName::Named(name) => self.clusters().named(name),
            ClusterName::Issuer(id) => self.clusters().with_id(id),
        };
        match cluster {
            Some(cluster) if may_enter => Ok(cluster),
            // Somewhere else than at home, they are nobody.
            _ if identity.scope != Scope::Hub || identity.is_anonymous() => {
                Err(Status::unauthorized())
            }
            Some(_) | None => Err(Status::forbidden(
                HUB_GROUP,
                "logicalclusters",
                &name.to_string(),
                format!("User \"{}\" cannot enter the cluster \"{name}\"", identity.user),
            )),
        }
    }

    /// Whether somebody may enter a cluster of this name, if there is one.
    pub(crate) async fn may_enter(
        &self,
        identity: &Identity,
        name: &ClusterName,
    ) -> Result<bool, Status> {
        let name = match (&identity.scope, name) {
            (Scope::Cluster(_), ClusterName::Wildcard) => return Ok(false),
            (Scope::Cluster(_), ClusterName::Root) => {
                return Ok(identity.check_scope(&self.clusters().root().id).is_ok());
            }
            (Scope::Cluster(_), ClusterName::Named(name)) => {
                let cluster = self.clusters().named(name);
                return Ok(cluster.is_some_and(|found| identity.check_scope(&found.id).is_ok()));
            }
            // Its own roles say who reads its documents, beside those who may enter it.
            (_, ClusterName::Issuer(_)) => return Ok(true),
            (Scope::Hub, ClusterName::Root | ClusterName::Wildcard) => return Ok(true),
            (Scope::Hub, ClusterName::Named(name)) => name,
        };
        let attributes = Attributes {
            verb: "access",
            group: HUB_GROUP,
            resource: "logicalclusters",
            name,
            ..Attributes::default()
        };
        let roles = self.clusters().root().roles(self.storage()).await?;
        Ok(roles.allows(identity, &attributes).allowed)
    }

    /// Who somebody is to an issuer: whoever may not enter its cluster is anonymous there.
    async fn as_reader(&self, identity: Identity, cluster: &Cluster) -> Result<Identity, Status> {
        let may_enter = self.may_enter(&identity, &cluster.address()).await?;
        Ok(if may_enter { identity } else { Identity::anonymous() })
    }

    /// The identity that the caller wants to take on, if any, and if they may.
    async fn impersonated(
        &self,
        headers: &HeaderMap,
        identity: &Identity,
        cluster: &Arc<Cluster>,
    ) -> Result<Option<Identity>, Status> {
        let Some(wanted) = impersonation::Wanted::read(headers)? else { return Ok(None) };
        for attributes in wanted.rights() {
            self.check(identity, cluster, &attributes).await?;
        }
        // Somebody else's rights, but never somewhere else: the scope stays.
        Ok(Some(wanted.into_identity(identity.scope.clone())))
    }

    async fn authorize(
        &self,
        identity: &Identity,
        cluster: &Arc<Cluster>,
        info: &RequestInfo,
    ) -> Result<(), Status> {
        let Some(asked) = &info.resource else {
            let attributes = Attributes::path(info.verb.as_str(), &info.path);
            return self.check(identity, cluster, &attributes).await;
        };
        let attributes = Attributes {
            verb: info.verb.as_str(),
            group: &asked.group,
            resource: &asked.resource,
            subresource: asked.subresource.as_deref().unwrap_or_default(),
            name: asked.name.as_deref().unwrap_or_default(),
            namespace: asked.namespace.as_deref().unwrap_or_default(),
            ..Attributes::default()
        };
        if info.cluster != ClusterName::Wildcard {
            return self.check(identity, cluster, &attributes).await;
        }
        // A right in one of the hub's namespaces is none in the tenants' namespaces of that name.
        let attributes = Attributes { namespace: "", ..attributes };
        self.check(identity, cluster, &attributes).await?;
        self.check(identity, cluster, &Attributes { verb: "wildcard", ..attributes }).await
    }

    /// Whether an identity may do something in a cluster; if not, a refusal in upstream's words.
    pub(crate) async fn check(
        &self,
        identity: &Identity,
        cluster: &Arc<Cluster>,
        attributes: &Attributes<'_>,
    ) -> Result<(), Status> {
        if identity.is_master() {
            return Ok(());
        }
        let roles = cluster.roles(self.storage()).await?;
        let decision = roles.allows(identity, attributes);
        if decision.allowed {
            return Ok(());
        }
        if identity.is_anonymous() && attributes.resource.is_empty() {
            return Err(Status::unauthorized());
        }
        Err(attributes.forbidden(identity, &decision))
    }

    fn note(
        &self,
        parts: &Parts,
        caller: &Caller,
        noted: Noted,
        response: &Response<Body>,
        began: Instant,
    ) {
        let code = response.status().as_u16();
        let (verb, resource) = match &noted.info {
            Some(info) => (
                info.verb.as_str(),
                info.resource.as_ref().map_or("", |asked| asked.resource.as_str()),
            ),
            None => ("", ""),
        };
        // Only resources that are served become labels: clients must not be able to make new ones.
        let mut own = self.config().hub_definitions.iter();
        let known = kinds::built_in().resources.iter().any(|kind| &*kind.plural == resource)
            || own.any(|definition| definition["spec"]["names"]["plural"] == resource);
        let label = if known || resource.is_empty() { resource } else { "custom" };
        self.metrics().request(verb, label, code, began.elapsed());
        let (Some(audit), Some(info), Some(identity)) = (self.audit(), noted.info, noted.identity)
        else {
            return;
        };
        // A read of an object is not written down, but one of what a pod says is, and what is done in it.
        let is_stream = streams::is_stream(&info);
        if !is_write(info.verb) && !is_stream {
            return;
        }
        let goes_on = is_stream && code < 300;
        audit.record(&AuditEvent {
            stage: if goes_on { Stage::ResponseStarted } else { Stage::ResponseComplete },
            id: self.new_uid(),
            verb: info.verb.as_str(),
            uri: parts.uri.to_string(),
            identity: &identity,
            impersonated: noted.impersonated.as_ref(),
            source: caller.address,
            user_agent: header(&parts.headers, USER_AGENT).unwrap_or_default(),
            resource: info.resource.as_ref(),
            code,
            cluster: noted.cluster.as_ref().map_or("", |cluster| &*cluster.name),
            received: noted.received.unwrap_or_else(|| self.now()),
            took: began.elapsed(),
            annotations: noted.notes.annotations(),
        });
    }
}

/// The answer, which holds its place until it was sent.
fn until_sent(
    answer: Response<Body>,
    permit: limits::Permit,
    caller: &Caller,
    work: limits::Work,
) -> Result<Response<Body>, Status> {
    let (parts, body) = answer.into_parts();
    let body = match caller.identity {
        // The server's own code reads what it asks for.
        Some(_) => body.in_place(permit),
        // What is written is written: its answer is not refused.
        None => body.until_sent(permit, work == limits::Work::Read)?,
    };
    Ok(Response::from_parts(parts, body))
}

fn is_write(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection
    )
}

/// Leases keep their holders alive: they go ahead of the rest.
fn is_lease(info: &RequestInfo) -> bool {
    info.resource
        .as_ref()
        .is_some_and(|asked| asked.group == "coordination.k8s.io" && asked.resource == "leases")
}

/// What a request that lasts is let in by, to be checked again while it lasts.
fn standing_of(parts: &Parts, caller: &Caller, call: &Call, info: &RequestInfo) -> Standing {
    // Whom the wiring vouches for it vouches for until the process ends.
    let shown = if caller.identity.is_some() { None } else { bearer(&parts.headers) };
    Standing {
        token: shown.map(Arc::from),
        identity: call.identity.clone(),
        cluster: Arc::clone(&call.cluster),
        info: info.clone(),
    }
}

/// The token that a request shows.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    header(headers, AUTHORIZATION)?.strip_prefix("Bearer ").map(str::trim)
}

/// The first header of a name, if it is text.
fn header(headers: &HeaderMap, name: ::http::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A writer that does not say its name is known by the first word of its user agent.
fn manager_from(user_agent: &str) -> String {
    let name = user_agent.split('/').next().unwrap_or_default();
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(128).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}
