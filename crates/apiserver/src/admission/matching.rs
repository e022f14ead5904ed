//! Whether a policy, a binding or a webhook is about a write.

use super::request::{Operation, Request, is_namespaces};
use crate::admission_registration::matching::{Matching, Rule};
use crate::clusters::Cluster;
use crate::kinds;
use crate::object;
use crate::resource::Resource;
use crate::selector::LabelSelector;
use serde_json::Value;
use std::sync::Arc;

impl Matching {
    /// The resource as which a write is matched; none if it is not. `namespace` is the namespace of the write.
    pub(super) fn matched(
        &self,
        request: &Request<'_>,
        namespace: Option<&Value>,
    ) -> Result<Option<Arc<Resource>>, String> {
        let in_namespace = self.takes_namespace(request, namespace);
        if in_namespace == Ok(false) {
            return Ok(None);
        }
        let of_object = self.takes_object(request);
        if of_object == Ok(false) {
            return Ok(None);
        }
        if self.matched_by(&self.excluded, request).is_some() {
            return Ok(None);
        }
        let matched = if self.rules.is_empty() {
            Some(Arc::clone(&request.call.resource))
        } else {
            self.matched_by(&self.rules, request)
        };
        if matched.is_none() {
            return Ok(None);
        }
        // Selectors that cannot be read matter to those writes only that the rules are about.
        in_namespace?;
        of_object?;
        Ok(matched)
    }

    fn takes_namespace(
        &self,
        request: &Request<'_>,
        namespace: Option<&Value>,
    ) -> Result<bool, String> {
        let resource = &request.call.resource;
        if request.namespace.is_empty() && !is_namespaces(resource) {
            return Ok(true);
        }
        let selector = self.namespaces.as_ref().map_err(Clone::clone)?;
        if selector.is_empty() {
            return Ok(true);
        }
        let is_own = is_namespaces(resource)
            && request.call.subresource.is_empty()
            && matches!(request.operation, Operation::Create | Operation::Update);
        let labelled = if is_own { Some(&*request.object) } else { namespace };
        match labelled {
            Some(object) => Ok(is_selected(selector, object)),
            None => Err(format!("namespaces \"{}\" not found", request.namespace)),
        }
    }

    fn takes_object(&self, request: &Request<'_>) -> Result<bool, String> {
        let selector = self.objects.as_ref().map_err(Clone::clone)?;
        // The options of a connection have no metadata: no selector of labels takes them, as upstream has it.
        let may_be = request.operation != Operation::Connect;
        let is_selected =
            |object: &Value| may_be && object.is_object() && is_selected(selector, object);
        Ok(selector.is_empty() || is_selected(&request.object) || is_selected(&request.old))
    }

    fn matched_by(&self, rules: &[Rule], request: &Request<'_>) -> Option<Arc<Resource>> {
        let own = &request.call.resource;
        if rules.iter().any(|rule| rule.takes(request, own)) {
            return Some(Arc::clone(own));
        }
        if self.is_exact {
            return None;
        }
        let others = equivalents(&request.call.cluster, own);
        let takes = |other: &&Arc<Resource>| rules.iter().any(|rule| rule.takes(request, other));
        others.iter().find(takes).cloned()
    }
}

/// Whether an object has the labels that a selector asks for.
pub(super) fn is_selected(selector: &LabelSelector, object: &Value) -> bool {
    let labels = object::metadata(object).get("labels");
    selector.matches(|key| labels.and_then(|all| all.get(key)).and_then(Value::as_str))
}

impl Rule {
    /// Whether it is about a write, if that is one of this resource.
    fn takes(&self, request: &Request<'_>, resource: &Resource) -> bool {
        let is_one = |all: &[String], wanted: &str| {
            all.iter().any(|given| given == "*" || given.as_str() == wanted)
        };
        let has_namespace = !is_namespaces(resource) && !request.namespace.is_empty();
        let in_scope = match self.scope.as_str() {
            "Namespaced" => has_namespace,
            "Cluster" => !has_namespace,
            _ => true,
        };
        in_scope
            && is_one(&self.operations, request.operation.text())
            && is_one(&self.groups, &resource.group)
            && is_one(&self.versions, &resource.version)
            && self.takes_resource(&resource.plural, &request.call.subresource)
            && (self.names.is_empty() || self.names.iter().any(|name| **name == *request.name))
    }

    fn takes_resource(&self, plural: &str, subresource: &str) -> bool {
        self.resources.iter().any(|given| {
            let (resource, below) = given.split_once('/').unwrap_or((given, ""));
            (resource == "*" || resource == plural) && (below == "*" || below == subresource)
        })
    }
}

/// Other resources through which the same objects are reached: other versions of a kind, and the other face of
/// events.
fn equivalents(cluster: &Cluster, resource: &Resource) -> Vec<Arc<Resource>> {
    let is_other = |other: &&Arc<Resource>| {
        let is_event = |one: &Resource| {
            &*one.plural == "events" && matches!(&*one.group, "" | "events.k8s.io")
        };
        let is_same_kind = other.group == resource.group && other.identity == resource.identity
            || is_event(other) && is_event(resource) && !resource.is_custom();
        other.plural == resource.plural
            && is_same_kind
            && (&other.group, &other.version) != (&resource.group, &resource.version)
    };
    if resource.is_custom() {
        return cluster.custom().iter().filter(is_other).cloned().collect();
    }
    kinds::built_in().resources.iter().filter(is_other).cloned().collect()
}
