//! RBAC: who may do what in one logical cluster, compiled from its roles and bindings and indexed
//! by subject.

use super::aggregation::{ClusterRole, ClusterRoles, Rules};
use super::bootstrap;
use super::identity::{Identity, service_account_user};
use super::rules::Rule;
use crate::status::{Status, qualified};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// What a request wants to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// `get`, `list`, `create`; for a path, the method in lower case.
    pub verb: &'a str,
    /// The API group; empty for core.
    pub group: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The object's name; empty where none is named.
    pub name: &'a str,
    /// The namespace; empty for the whole cluster.
    pub namespace: &'a str,
    /// The path, for a request that is about no resource.
    pub path: Option<&'a str>,
}

impl<'a> Attributes<'a> {
    /// A request about a path.
    pub fn path(verb: &'a str, path: &'a str) -> Self {
        Attributes { verb, path: Some(path), ..Attributes::default() }
    }

    /// What upstream says to those who may not: `User "a" cannot get path "/metrics"`.
    pub fn refusal(&self, user: &str) -> String {
        if let Some(path) = self.path {
            return format!("User {user:?} cannot {} path {path:?}", self.verb);
        }
        let resource = if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        };
        let place = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", self.namespace)
        };
        format!(
            "User {user:?} cannot {} resource {resource:?} in API group {:?} {place}",
            self.verb, self.group
        )
    }

    /// The 403 for those who may not, with the reason for which nothing allowed it.
    pub fn forbidden(&self, identity: &Identity, decision: &Decision) -> Status {
        let mut why = self.refusal(&identity.user);
        if !decision.reason.is_empty() {
            why = format!("{why}: {}", decision.reason);
        }
        if self.path.is_some() {
            return Status::new(403, "Forbidden", format!("forbidden: {why}"));
        }
        Status::forbidden(self.group, self.resource, self.name, why)
    }
}

/// Whether a request may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may.
    pub allowed: bool,
    /// Which binding allowed it, or what could not be read; may be empty.
    pub reason: String,
}

/// The roles and bindings of one logical cluster, with the bootstrap layer below them.
#[derive(Debug)]
pub struct RoleSet {
    grants: Vec<Grant>,
    users: HashMap<String, Held>,
    groups: HashMap<String, Held>,
    roles: HashMap<(String, String), Rules>,
    cluster_roles: HashMap<Arc<str>, Arc<[Rules]>>,
}

/// One binding.
#[derive(Debug)]
struct Grant {
    name: String,
    /// Empty for a cluster role binding.
    namespace: String,
    role: RoleReference,
    /// None if the role is not there.
    rules: Option<Arc<[Rules]>>,
}

/// The role that a binding names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleReference {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl RoleReference {
    /// The `roleRef` of a binding.
    pub fn of(binding: &Value) -> Self {
        let text = |field: &str| {
            let value = binding.get("roleRef").and_then(|role| role.get(field));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        RoleReference { kind: text("kind"), name: text("name") }
    }

    /// The resource that the role is one of.
    pub fn resource(&self) -> Option<&'static str> {
        match self.kind.as_str() {
            "Role" => Some("roles"),
            "ClusterRole" => Some("clusterroles"),
            _ => None,
        }
    }

    fn missing(&self) -> String {
        match self.resource() {
            Some(_) => {
                let kind = qualified(GROUP, &self.kind.to_lowercase());
                format!("{kind} {:?} not found", self.name)
            }
            None => format!("unsupported role reference kind: {:?}", self.kind),
        }
    }
}

/// What one subject holds: places in the list of grants, with the subject as the binding wrote it.
#[derive(Debug, Default)]
struct Held {
    everywhere: Vec<(usize, SubjectText)>,
    in_namespace: HashMap<String, Vec<(usize, SubjectText)>>,
}

/// How a reason shows a subject: `User "a"`, `ServiceAccount "name/namespace"`.
#[derive(Debug, Clone)]
enum SubjectText {
    User,
    Group,
    ServiceAccount,
}

/// The rules that somebody holds, and what could not be found on the way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldRules {
    /// The rules.
    pub rules: Vec<Rule>,
    /// Roles that bindings name and that are not there.
    pub missing: Vec<String>,
}

impl RoleSet {
    /// Compiles the objects of a cluster. Bootstrap roles and bindings that it does not override
    /// are added.
    pub fn compile<'a>(
        roles: impl IntoIterator<Item = &'a Value>,
        cluster_roles: impl IntoIterator<Item = &'a Value>,
        role_bindings: impl IntoIterator<Item = &'a Value>,
        cluster_role_bindings: impl IntoIterator<Item = &'a Value>,
    ) -> RoleSet {
        let mut all: BTreeMap<Arc<str>, Arc<ClusterRole>> = bootstrap::compiled_roles().clone();
        for role in cluster_roles {
            all.insert(Arc::from(name(role)), Arc::new(ClusterRole::read(role)));
        }
        let names: Vec<Arc<str>> = all.keys().cloned().collect();
        let mut gathering = ClusterRoles::new(all);
        let gathered = names.into_iter().filter_map(|name| {
            let rules: Arc<[Rules]> = gathering.rules_of(&name)?.into();
            Some((name, rules))
        });
        let mut set = RoleSet {
            grants: Vec::new(),
            users: HashMap::new(),
            groups: HashMap::new(),
            cluster_roles: gathered.collect(),
            roles: roles
                .into_iter()
                .map(|role| {
                    let place = (namespace(role).to_owned(), name(role).to_owned());
                    (place, Rule::read_all(role).into())
                })
                .collect(),
        };
        let own: Vec<&Value> = cluster_role_bindings.into_iter().collect();
        let is_own = |shared: &&Value| !own.iter().any(|binding| name(binding) == name(shared));
        let shared: Vec<&Value> =
            bootstrap::cluster_role_bindings().iter().filter(is_own).collect();
        for binding in own.into_iter().chain(shared) {
            set.add(binding, "");
        }
        for binding in role_bindings {
            if !namespace(binding).is_empty() {
                set.add(binding, namespace(binding));
            }
        }
        set
    }

    fn add(&mut self, binding: &Value, namespace: &str) {
        let role = RoleReference::of(binding);
        let rules = self.parts_of(&role, namespace);
        let place = self.grants.len();
        self.grants.push(Grant {
            name: name(binding).to_owned(),
            namespace: namespace.to_owned(),
            role,
            rules,
        });
        let subjects = binding.get("subjects").and_then(Value::as_array);
        for subject in subjects.into_iter().flatten() {
            let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default();
            let (holder, how) = match text("kind") {
                "User" => (self.users.entry(text("name").to_owned()), SubjectText::User),
                "Group" => (self.groups.entry(text("name").to_owned()), SubjectText::Group),
                "ServiceAccount" => {
                    // An account without a namespace is one of the binding's own namespace.
                    let of = Some(text("namespace")).filter(|of| !of.is_empty());
                    let of = of.unwrap_or(namespace);
                    if of.is_empty() {
                        continue;
                    }
                    let user = service_account_user(of, text("name"));
                    (self.users.entry(user), SubjectText::ServiceAccount)
                }
                _ => continue,
            };
            let held = holder.or_default();
            let list = if namespace.is_empty() {
                &mut held.everywhere
            } else {
                held.in_namespace.entry(namespace.to_owned()).or_default()
            };
            list.push((place, how));
        }
    }

    fn parts_of(&self, role: &RoleReference, namespace: &str) -> Option<Arc<[Rules]>> {
        match role.kind.as_str() {
            "ClusterRole" => self.cluster_roles.get(role.name.as_str()).cloned(),
            "Role" => {
                let rules = self.roles.get(&(namespace.to_owned(), role.name.clone()))?;
                Some(Arc::from([Arc::clone(rules)]))
            }
            _ => None,
        }
    }

    /// The rules of a role, as a binding in this namespace would give them; none if there is no
    /// such role.
    pub fn rules_of(&self, role: &RoleReference, namespace: &str) -> Option<Vec<Rule>> {
        let parts = self.parts_of(role, namespace)?;
        Some(each_once(parts.iter().flat_map(|rules| rules.iter())))
    }

    /// Whether somebody may do something.
    pub fn allows(&self, identity: &Identity, attributes: &Attributes<'_>) -> Decision {
        if identity.is_master() {
            return Decision { allowed: true, reason: String::new() };
        }
        let mut missing = Vec::new();
        for (grant, subject, how) in self.held_by(identity, attributes.namespace) {
            let Some(parts) = &grant.rules else {
                missing.push(grant.role.missing());
                continue;
            };
            if parts.iter().flat_map(|rules| rules.iter()).any(|rule| rule.allows(attributes)) {
                let reason = Reason { grant, subject, how }.to_string();
                return Decision { allowed: true, reason };
            }
        }
        Decision { allowed: false, reason: denial(missing) }
    }

    /// All rules that somebody holds in a namespace, or in the whole cluster if none is named.
    pub fn rules_for(&self, identity: &Identity, namespace: &str) -> HeldRules {
        let mut held = HeldRules::default();
        let mut seen = vec![false; self.grants.len()];
        for (place, ..) in self.places_held_by(identity, namespace) {
            if std::mem::replace(&mut seen[place], true) {
                continue;
            }
            let grant = &self.grants[place];
            match &grant.rules {
                Some(parts) => {
                    held.rules.extend(parts.iter().flat_map(|rules| rules.iter()).cloned());
                }
                None => held.missing.push(grant.role.missing()),
            }
        }
        held
    }

    fn held_by<'a>(
        &'a self,
        identity: &'a Identity,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Grant, &'a str, &'a SubjectText)> {
        self.places_held_by(identity, namespace)
            .map(|(place, subject, how)| (&self.grants[place], subject, how))
    }

    fn places_held_by<'a>(
        &'a self,
        identity: &'a Identity,
        namespace: &'a str,
    ) -> impl Iterator<Item = (usize, &'a str, &'a SubjectText)> {
        let user = self.users.get(&identity.user).map(|held| (identity.user.as_str(), held));
        let groups = identity
            .groups
            .iter()
            .filter_map(|group| Some((group.as_str(), self.groups.get(group)?)));
        user.into_iter().chain(groups).flat_map(move |(subject, held)| {
            let here = held.in_namespace.get(namespace).into_iter().flatten();
            held.everywhere.iter().chain(here).map(move |(place, how)| (*place, subject, how))
        })
    }
}

/// `RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "y" to User "z"`.
struct Reason<'a> {
    grant: &'a Grant,
    subject: &'a str,
    how: &'a SubjectText,
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Grant { name, namespace, role, .. } = self.grant;
        let binding = if namespace.is_empty() {
            format!("ClusterRoleBinding {name:?}")
        } else {
            format!("RoleBinding {:?}", format!("{name}/{namespace}"))
        };
        let subject = match self.how {
            SubjectText::User => format!("User {:?}", self.subject),
            SubjectText::Group => format!("Group {:?}", self.subject),
            SubjectText::ServiceAccount => {
                let account = super::identity::service_account_of(self.subject);
                let (of, name) = account.unwrap_or_default();
                format!("ServiceAccount {:?}", format!("{name}/{of}"))
            }
        };
        let RoleReference { kind, name } = role;
        write!(formatter, "RBAC: allowed by {binding} of {kind} {name:?} to {subject}")
    }
}

/// What could not be read, for somebody who was allowed nothing.
fn denial(mut missing: Vec<String>) -> String {
    missing.sort();
    missing.dedup();
    match missing.as_slice() {
        [] => String::new(),
        [one] => format!("RBAC: {one}"),
        many => format!("RBAC: [{}]", many.join(", ")),
    }
}

/// The rules in order, repeated ones only once.
fn each_once<'a>(rules: impl Iterator<Item = &'a Rule>) -> Vec<Rule> {
    let mut seen = std::collections::HashSet::new();
    rules.filter(|rule| seen.insert(*rule)).cloned().collect()
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn namespace(object: &Value) -> &str {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
