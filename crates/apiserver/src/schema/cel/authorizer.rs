//! `authorizer`: asks, inside of an expression, what somebody may do.

use super::eval::{Evaluated, Evaluator, Fault};
use super::value::Val;
use crate::access::identity::ServiceAccount;
use crate::access::{Attributes, Identity, RoleSet};
use std::sync::Arc;

/// What one question costs, as upstream has it.
const CHECK_STEPS: usize = 350_000;

/// Somebody, and the roles of the cluster that they are in.
#[derive(Debug)]
pub(crate) struct Who {
    /// Who they are.
    pub(crate) identity: Identity,
    /// What they may do.
    pub(crate) roles: Arc<RoleSet>,
    /// The id of the cluster.
    pub(crate) cluster: Arc<str>,
}

/// What a question is about so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// The API group.
    pub(crate) group: String,
    /// The resource; empty for a question about a path.
    pub(crate) resource: String,
    /// The subresource.
    pub(crate) subresource: String,
    /// Where.
    pub(crate) namespace: String,
    /// Which one.
    pub(crate) name: String,
    /// The path, for a question about one.
    pub(crate) path: String,
}

/// A step on the way from `authorizer` to an answer.
#[derive(Debug)]
pub(crate) enum Authority {
    /// `authorizer`
    Who(Arc<Who>),
    /// `authorizer.path(p)`
    Path(Arc<Who>, Asked),
    /// `authorizer.group(g)`
    Group(Arc<Who>, Asked),
    /// `authorizer.group(g).resource(r)`, and `authorizer.requestResource`
    Resource(Arc<Who>, Asked),
    /// `.check(verb)`
    Decision { is_allowed: bool, reason: String },
}

impl Authority {
    /// The name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Authority::Who(_) => "kubernetes.authorization.Authorizer",
            Authority::Path(..) => "kubernetes.authorization.PathCheck",
            Authority::Group(..) => "kubernetes.authorization.GroupCheck",
            Authority::Resource(..) => "kubernetes.authorization.ResourceCheck",
            Authority::Decision { .. } => "kubernetes.authorization.Decision",
        }
    }
}

/// Calls a method of one of these. The first value is the target.
pub(super) fn method<'a>(
    evaluator: &mut Evaluator<'a>,
    name: &str,
    values: &[Val<'a>],
) -> Evaluated<'a> {
    let (Some(Val::Authority(authority)), arguments) = (values.first(), &values[1..]) else {
        return Err(Fault::NoSuchOverload);
    };
    let mut texts = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match argument {
            Val::String(text) => texts.push(text.to_string()),
            _ => return Err(Fault::NoSuchOverload),
        }
    }
    match (&**authority, name, &texts[..]) {
        (Authority::Who(who), "path", [path]) => {
            if path.is_empty() {
                return super::eval::fault("path must not be empty");
            }
            let asked = Asked { path: path.clone(), ..Asked::default() };
            Ok(step(Authority::Path(Arc::clone(who), asked)))
        }
        (Authority::Who(who), "group", [group]) => {
            let asked = Asked { group: group.clone(), ..Asked::default() };
            Ok(step(Authority::Group(Arc::clone(who), asked)))
        }
        (Authority::Who(who), "serviceAccount", [namespace, account]) => {
            let account = ServiceAccount { namespace, name: account, uid: "" };
            let identity = Identity::service_account(&account, &*who.cluster);
            let (roles, cluster) = (Arc::clone(&who.roles), Arc::clone(&who.cluster));
            Ok(step(Authority::Who(Arc::new(Who { identity, roles, cluster }))))
        }
        (Authority::Group(who, asked), "resource", [resource]) => {
            let asked = Asked { resource: resource.clone(), ..asked.clone() };
            Ok(step(Authority::Resource(Arc::clone(who), asked)))
        }
        (Authority::Resource(who, asked), _, [text]) if name != "check" => {
            narrowed(who, asked.clone(), name, text)
        }
        (Authority::Resource(who, asked) | Authority::Path(who, asked), "check", [verb]) => {
            evaluator.charge(CHECK_STEPS)?;
            Ok(step(answer(who, asked, verb)))
        }
        (Authority::Decision { is_allowed, .. }, "allowed", []) => Ok(Val::Bool(*is_allowed)),
        (Authority::Decision { reason, .. }, "reason", []) => Ok(Val::text(reason.as_str())),
        (Authority::Decision { .. }, "errored", []) => Ok(Val::Bool(false)),
        (Authority::Decision { .. }, "error", []) => Ok(Val::text("")),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn step<'a>(authority: Authority) -> Val<'a> {
    Val::Authority(Arc::new(authority))
}

/// A question about less than all objects of a resource.
fn narrowed<'a>(who: &Arc<Who>, mut asked: Asked, by: &str, text: &str) -> Evaluated<'a> {
    match by {
        "subresource" => text.clone_into(&mut asked.subresource),
        "namespace" => text.clone_into(&mut asked.namespace),
        "name" => text.clone_into(&mut asked.name),
        // Roles do not know selectors: what is allowed is allowed for all of them.
        "fieldSelector" | "labelSelector" => {}
        _ => return Err(Fault::NoSuchOverload),
    }
    Ok(step(Authority::Resource(Arc::clone(who), asked)))
}

fn answer(who: &Who, asked: &Asked, verb: &str) -> Authority {
    if who.identity.is_master() {
        return Authority::Decision { is_allowed: true, reason: String::new() };
    }
    let attributes = if asked.path.is_empty() {
        Attributes {
            verb,
            group: &asked.group,
            resource: &asked.resource,
            subresource: &asked.subresource,
            namespace: &asked.namespace,
            name: &asked.name,
            ..Attributes::default()
        }
    } else {
        Attributes::path(verb, &asked.path)
    };
    let decision = who.roles.allows(&who.identity, &attributes);
    Authority::Decision { is_allowed: decision.allowed, reason: decision.reason }
}
