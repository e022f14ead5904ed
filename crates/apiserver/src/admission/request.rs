//! A write as admission sees it: what is done to which object by whom.

use crate::behaviour;
use crate::call::{Call, Shown, scale_of};
use crate::object;
use crate::resource::Resource;
use crate::schema::cel::{Asked, Authority, Val, Who};
use crate::status::Status;
use crate::storage;
use interlock_store::Key;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// An object is made.
    Create,
    /// An object is changed.
    Update,
    /// An object is deleted.
    Delete,
    /// Somebody connects to a pod: to a command in it, to its ports.
    Connect,
}

impl Operation {
    /// The word in rules.
    pub(super) fn text(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }

    /// The kind of the options that come with it. Those of a connection are its object.
    fn options_kind(self) -> Option<&'static str> {
        match self {
            Operation::Create => Some("CreateOptions"),
            Operation::Update => Some("UpdateOptions"),
            Operation::Delete => Some("DeleteOptions"),
            Operation::Connect => None,
        }
    }
}

/// A change of the object that a call names.
pub(crate) struct Change<'c> {
    /// What is done.
    pub(crate) operation: Operation,
    /// The object as it is.
    pub(crate) old: Option<&'c Value>,
    /// The object as it shall be.
    pub(crate) new: Option<&'c Value>,
}

/// A write as policies see it.
pub(super) struct Request<'c> {
    pub(super) call: &'c Call,
    pub(super) operation: Operation,
    /// The name of the object; one that was generated, too.
    pub(super) name: Cow<'c, str>,
    /// The namespace; that of a namespace which is there already is the namespace itself.
    pub(super) namespace: Cow<'c, str>,
    pub(super) object: Cow<'c, Value>,
    pub(super) old: Cow<'c, Value>,
}

static NULL: Value = Value::Null;

impl<'c> Request<'c> {
    pub(super) fn new(call: &'c Call, change: &Change<'c>) -> Self {
        let named = change.new.or(change.old).map(object::name).unwrap_or_default();
        let name = if call.name.is_empty() { named } else { &call.name };
        let (operation, object, old) = match &call.shown {
            Shown::Object => {
                let face = |object: Option<&'c Value>| shown(&call.resource, object);
                (change.operation, face(change.new), face(change.old))
            }
            Shown::Scale(paths) => {
                let face = |object: Option<&'c Value>| match object {
                    Some(object) => Cow::Owned(scale_of(object, paths)),
                    None => Cow::Borrowed(&NULL),
                };
                (change.operation, face(change.new), face(change.old))
            }
            Shown::Posted(posted) => {
                (Operation::Create, Cow::Borrowed(&**posted), Cow::Borrowed(&NULL))
            }
            Shown::Connection(options) => {
                (Operation::Connect, Cow::Borrowed(&**options), Cow::Borrowed(&NULL))
            }
        };
        let is_namespace = is_namespaces(&call.resource) && operation != Operation::Create;
        let namespace = if is_namespace { name } else { &call.namespace };
        Request { call, operation, name: name.into(), namespace: namespace.into(), object, old }
    }

    /// The kind of what is shown: group, version, kind.
    fn kind(&self) -> Value {
        let shown = match &self.call.shown {
            Shown::Object => return kind_of(&self.call.resource),
            Shown::Scale(_) => &self.object,
            Shown::Posted(shown) | Shown::Connection(shown) => shown.as_ref(),
        };
        let version = object::text(shown, "apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        json!({"group": group, "version": version, "kind": object::text(shown, "kind")})
    }

    /// The `request` of expressions. What is empty is left out, as upstream does.
    pub(super) fn value(&self, matched: &Resource) -> Value {
        let own = &self.call.resource;
        let kind = match &self.call.shown {
            Shown::Object => kind_of(matched),
            Shown::Scale(_) | Shown::Posted(_) | Shown::Connection(_) => self.kind(),
        };
        let mut request = Map::new();
        request.insert("kind".to_owned(), kind);
        request.insert("resource".to_owned(), resource_of(matched));
        request.insert("requestKind".to_owned(), self.kind());
        request.insert("requestResource".to_owned(), resource_of(own));
        for (field, text) in [
            ("subResource", &*self.call.subresource),
            ("requestSubResource", &*self.call.subresource),
            ("name", &*self.name),
            ("namespace", &*self.namespace),
        ] {
            if !text.is_empty() {
                request.insert(field.to_owned(), json!(text));
            }
        }
        request.insert("operation".to_owned(), json!(self.operation.text()));
        request.insert("userInfo".to_owned(), self.call.identity.user_info());
        request.insert("dryRun".to_owned(), json!(self.call.dry_run));
        request.insert("options".to_owned(), self.options());
        Value::Object(request)
    }

    fn options(&self) -> Value {
        let Some(kind) = self.operation.options_kind() else { return Value::Null };
        let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        for (name, value) in self.call.options.as_object().into_iter().flatten() {
            options[name.as_str()] = value.clone();
        }
        if self.call.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    /// Where the namespace of the write is stored.
    pub(super) fn namespace_key(&self) -> Key {
        let row = storage::row(&self.call.cluster.id, "", &self.namespace);
        Key::new(storage::table_of("", "namespaces", "-"), row)
    }

    /// The caller, for expressions that ask what the caller may do.
    pub(super) async fn who(&self) -> Result<Arc<Who>, Status> {
        let call = self.call;
        let roles = call.cluster.roles(call.server.storage()).await?;
        let (identity, cluster) = (call.identity.clone(), Arc::clone(&call.cluster.id));
        Ok(Arc::new(Who { identity, roles, cluster }))
    }

    /// What `authorizer` and `authorizer.requestResource` are to expressions.
    pub(super) fn authorities(&self, who: &Arc<Who>) -> [(&'static str, Val<'static>); 2] {
        let asked = Asked {
            group: self.call.resource.group.to_string(),
            resource: self.call.resource.plural.to_string(),
            subresource: self.call.subresource.clone(),
            namespace: self.namespace.to_string(),
            name: self.name.to_string(),
            path: String::new(),
        };
        let own = Authority::Resource(Arc::clone(who), asked);
        [
            ("authorizer", Val::Authority(Arc::new(Authority::Who(Arc::clone(who))))),
            ("authorizer.requestResource", Val::Authority(Arc::new(own))),
        ]
    }

    /// The object and the old one as another version of their kind shows them.
    pub(super) fn as_version(&self, matched: &Resource) -> (Cow<'_, Value>, Cow<'_, Value>) {
        let is_same = matched.version == self.call.resource.version
            && matched.group == self.call.resource.group;
        if is_same || !matches!(self.call.shown, Shown::Object) {
            return (Cow::Borrowed(&*self.object), Cow::Borrowed(&*self.old));
        }
        let converted = |object: &Value| {
            let mut object = object.clone();
            convert(&self.call.resource, matched, &mut object);
            Cow::Owned(object)
        };
        (converted(&self.object), converted(&self.old))
    }

    /// An object that another version of the kind shows, as the version of the request shows it.
    pub(super) fn own_version(&self, matched: &Resource, mut object: Value) -> Value {
        if matches!(self.call.shown, Shown::Object) {
            convert(matched, &self.call.resource, &mut object);
        }
        object
    }
}

/// Shows an object in another version of its kind.
fn convert(from: &Resource, to: &Resource, object: &mut Value) {
    if !object.is_object() || (&from.group, &from.version) == (&to.group, &to.version) {
        return;
    }
    behaviour::from_face(from, object);
    behaviour::to_face(to, object);
    object["apiVersion"] = json!(to.api_version());
}

/// Whether it is the resource of namespaces.
pub(super) fn is_namespaces(resource: &Resource) -> bool {
    resource.group.is_empty() && &*resource.plural == "namespaces"
}

/// An object as the version of the request shows it.
fn shown<'c>(resource: &Resource, object: Option<&'c Value>) -> Cow<'c, Value> {
    let Some(object) = object else { return Cow::Borrowed(&NULL) };
    if !behaviour::has_face(resource) {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    behaviour::to_face(resource, &mut object);
    Cow::Owned(object)
}

fn kind_of(resource: &Resource) -> Value {
    json!({"group": &*resource.group, "version": &*resource.version, "kind": &*resource.kind})
}

fn resource_of(resource: &Resource) -> Value {
    json!({
        "group": &*resource.group, "version": &*resource.version, "resource": &*resource.plural,
    })
}
