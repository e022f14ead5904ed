//! Nobody grants what they do not have: the checks on writes to roles and bindings.

use super::identity::Identity;
use super::rbac::{Attributes, GROUP, RoleReference, RoleSet};
use super::rules::{Rule, has, has_or_all, quoted_list, url_covers};
use crate::status::Status;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A rule stands for each of its verbs on each of its resources in each of its groups. A rule that
/// stands for more than this is refused to those who cannot be seen to hold it as a whole: nobody
/// writes such rules, and taking one apart would stall the server.
const MAX_COMBINATIONS: usize = 100_000;
/// How many missing rules are named.
const MAX_NAMED: usize = 200;

/// Whether somebody may write a role or a binding, by what they hold in the same cluster.
pub(crate) fn check_write(write: &Write<'_>) -> Result<(), Status> {
    match write.resource {
        "roles" | "clusterroles" => check_role_write(write),
        "rolebindings" | "clusterrolebindings" => check_binding_write(write),
        _ => Ok(()),
    }
}

/// A write to a role or a binding.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// The roles of the cluster as they are.
    pub set: &'a RoleSet,
    /// Who writes.
    pub identity: &'a Identity,
    /// `roles`, `clusterroles`, `rolebindings` or `clusterrolebindings`.
    pub resource: &'a str,
    /// What was there; none for a create.
    pub old: Option<&'a Value>,
    /// What is to be there.
    pub new: &'a Value,
}

impl Write<'_> {
    fn metadata(&self, field: &str) -> &str {
        let value = self.new.get("metadata").and_then(|metadata| metadata.get(field));
        value.and_then(Value::as_str).unwrap_or_default()
    }

    fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let namespace = self.metadata("namespace");
        let attributes =
            Attributes { verb, group: GROUP, resource, name, namespace, ..Attributes::default() };
        self.set.allows(self.identity, &attributes).allowed
    }

    fn forbidden(&self, why: &str) -> Status {
        Status::forbidden(GROUP, self.resource, self.metadata("name"), why)
    }

    fn held(&self) -> Vec<Rule> {
        self.set.rules_for(self.identity, self.metadata("namespace")).rules
    }

    /// The garbage collector changes owners and finalizers of objects whose rules it does not hold.
    fn changes_ownership_only(&self) -> bool {
        let Some(old) = self.old else { return false };
        let without = |object: &Value| {
            let mut object = object.clone();
            let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
            if let Some(metadata) = metadata {
                for field in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
                    metadata.remove(field);
                }
            }
            object
        };
        without(old) == without(self.new)
    }
}

/// Whether somebody may write this role: they hold all its rules, or may `escalate` it.
pub fn check_role_write(write: &Write<'_>) -> Result<(), Status> {
    let name = if write.old.is_some() { write.metadata("name") } else { "" };
    if write.identity.is_master() || write.may("escalate", write.resource, name) {
        return Ok(());
    }
    if write.changes_ownership_only() {
        return Ok(());
    }
    let held = write.held();
    covers(write.identity, &held, &Rule::read_all(write.new))
        .map_err(|why| write.forbidden(&why))?;
    // Whoever sets what a role gathers can give it anything, now and later.
    let gathers = |role: &Value| role.pointer("/aggregationRule/clusterRoleSelectors/0").is_some();
    if gathers(write.new) || write.old.is_some_and(gathers) {
        covers(write.identity, &held, &full_authority()).map_err(|_| {
            write.forbidden("must have cluster-admin privileges to use the aggregationRule")
        })?;
    }
    Ok(())
}

/// Whether somebody may write this binding: they hold all rules of the role that it names, or may
/// `bind` it.
pub fn check_binding_write(write: &Write<'_>) -> Result<(), Status> {
    if write.identity.is_master() || write.changes_ownership_only() {
        return Ok(());
    }
    let role = RoleReference::of(write.new);
    let Some(resource) = role.resource() else {
        return Err(write.forbidden("the binding names no role"));
    };
    if write.may("bind", resource, &role.name) {
        return Ok(());
    }
    let namespace = write.metadata("namespace");
    let wanted = write
        .set
        .rules_of(&role, namespace)
        .ok_or_else(|| Status::not_found(GROUP, resource, &role.name))?;
    covers(write.identity, &write.held(), &wanted).map_err(|why| write.forbidden(&why))
}

fn full_authority() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    [
        Rule { groups: all(), resources: all(), verbs: all(), ..Rule::default() },
        Rule { urls: all(), verbs: all(), ..Rule::default() },
    ]
}

/// Whether the rules that somebody holds allow all that the wanted rules allow; if not, what is
/// missing, in the words that go into the refusal.
pub fn covers(identity: &Identity, held: &[Rule], wanted: &[Rule]) -> Result<(), String> {
    let mut missing = Vec::new();
    let mut combinations: usize = 0;
    for rule in wanted {
        if held.iter().any(|held| covers_whole(held, rule)) {
            continue;
        }
        combinations = combinations.saturating_add(count(rule));
        if combinations > MAX_COMBINATIONS {
            return Err(refusal(
                identity,
                &format!("the rules stand for more than {MAX_COMBINATIONS} single permissions"),
            ));
        }
        let parts = taken_apart(rule);
        missing.extend(
            parts.into_iter().filter(|part| !held.iter().any(|held| covers_whole(held, part))),
        );
    }
    if missing.is_empty() {
        return Ok(());
    }
    let mut lines = described(missing);
    let more = lines.len().saturating_sub(MAX_NAMED);
    lines.truncate(MAX_NAMED);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    Err(refusal(identity, &lines.join("\n")))
}

fn refusal(identity: &Identity, what: &str) -> String {
    format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{what}",
        identity.user,
        quoted_list(&identity.groups)
    )
}

/// Whether one rule alone allows all that another allows.
fn covers_whole(held: &Rule, wanted: &Rule) -> bool {
    let all = |held: &[String], wanted: &[String]| {
        has(held, "*") || wanted.iter().all(|one| has(held, one))
    };
    let names_hold = held.resource_names.is_empty()
        || (!wanted.resource_names.is_empty()
            && all_of(&held.resource_names, &wanted.resource_names));
    all(&held.verbs, &wanted.verbs)
        && all(&held.groups, &wanted.groups)
        && wanted.resources.iter().all(|resource| covers_resource(held, resource))
        && names_hold
        && wanted.urls.iter().all(|url| held.urls.iter().any(|held| url_covers(held, url)))
}

/// A resource name has no wildcard: a `*` there is a name like any other.
fn all_of(held: &[String], wanted: &[String]) -> bool {
    wanted.iter().all(|one| has(held, one))
}

fn covers_resource(held: &Rule, wanted: &str) -> bool {
    if has_or_all(&held.resources, wanted) {
        return true;
    }
    let Some((_, subresource)) = wanted.split_once('/') else { return false };
    held.resources.iter().any(|resource| resource.strip_prefix("*/") == Some(subresource))
}

fn count(rule: &Rule) -> usize {
    let resources = [
        rule.groups.len(),
        rule.resources.len(),
        rule.verbs.len(),
        rule.resource_names.len().max(1),
    ]
    .into_iter()
    .fold(1, usize::saturating_mul);
    resources.saturating_add(rule.urls.len().saturating_mul(rule.verbs.len()))
}

/// The same permissions as rules with one verb on one resource or path each.
fn taken_apart(rule: &Rule) -> Vec<Rule> {
    let mut parts = Vec::new();
    let names: Vec<Vec<String>> = match rule.resource_names.as_slice() {
        [] => vec![Vec::new()],
        names => names.iter().map(|name| vec![name.clone()]).collect(),
    };
    for group in &rule.groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                parts.extend(names.iter().map(|names| Rule {
                    groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    resource_names: names.clone(),
                    verbs: vec![verb.clone()],
                    urls: Vec::new(),
                }));
            }
        }
    }
    for url in &rule.urls {
        parts.extend(rule.verbs.iter().map(|verb| Rule {
            urls: vec![url.clone()],
            verbs: vec![verb.clone()],
            ..Rule::default()
        }));
    }
    parts
}

/// One line for each resource with all its missing verbs, in order.
fn described(missing: Vec<Rule>) -> Vec<String> {
    let mut lines = BTreeSet::new();
    let mut by_resource: BTreeMap<Rule, Vec<String>> = BTreeMap::new();
    for mut rule in missing {
        if !rule.urls.is_empty() {
            lines.insert(rule.to_string());
            continue;
        }
        let verbs = std::mem::take(&mut rule.verbs);
        by_resource.entry(rule).or_default().extend(verbs);
    }
    for (mut rule, verbs) in by_resource {
        rule.verbs = verbs;
        lines.insert(rule.to_string());
    }
    lines.into_iter().collect()
}

#[cfg(test)]
mod tests;
