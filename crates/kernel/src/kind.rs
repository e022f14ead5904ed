//! Where an object is: place, kind, namespace and name.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One API server out of those that a controller works on, by the role that it plays: `hub`,
/// `cluster`, `management`. The wiring says which server that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub &'static str);

impl Place {
    /// Where people state what they want.
    pub const HUB: Place = Place("hub");
    /// Where workloads run.
    pub const CLUSTER: Place = Place("cluster");
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A kind of object, with all that is needed to ask an API server for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Empty for the core group.
    pub group: Cow<'static, str>,
    /// `v1`
    pub version: Cow<'static, str>,
    /// `Pod`
    pub kind: Cow<'static, str>,
    /// `pods`
    pub plural: Cow<'static, str>,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
}

/// Every look at a cache finds it by its kind, and few kinds have one plural.
impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.plural.hash(state);
    }
}

/// What a kind belongs to, as its `apiVersion` says.
#[derive(Debug, Clone, Copy)]
pub struct GroupVersion {
    group: &'static str,
    version: &'static str,
}

impl GroupVersion {
    /// `apps`, `v1`; the group of pods and namespaces has no name.
    pub const fn new(group: &'static str, version: &'static str) -> GroupVersion {
        GroupVersion { group, version }
    }
}

impl Kind {
    /// A kind whose objects live in namespaces: group and version, kind, plural.
    pub const fn namespaced(of: GroupVersion, kind: &'static str, plural: &'static str) -> Kind {
        Kind {
            group: Cow::Borrowed(of.group),
            version: Cow::Borrowed(of.version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
            is_namespaced: true,
        }
    }

    /// A kind whose objects live in the cluster as a whole: group and version, kind, plural.
    pub const fn cluster_wide(of: GroupVersion, kind: &'static str, plural: &'static str) -> Kind {
        let mut made = Kind::namespaced(of, kind, plural);
        made.is_namespaced = false;
        made
    }

    /// Every kind that a server has, for the rights of a controller whose kinds nobody knows beforehand: roles
    /// have `*` for it. No object is of this kind.
    pub const EVERY: Kind = Kind::cluster_wide(GroupVersion::new("*", "*"), "*", "*");

    /// `v1`, `apps/v1`
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            return self.version.to_string();
        }
        format!("{}/{}", self.group, self.version)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

/// The name of an object within its kind and place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// None for kinds of the cluster as a whole.
    pub namespace: Option<Arc<str>>,
    /// Its name.
    pub name: Arc<str>,
}

impl Name {
    /// Of the cluster as a whole.
    pub fn cluster_wide(name: &str) -> Name {
        Name { namespace: None, name: Arc::from(name) }
    }

    /// In a namespace.
    pub fn within(namespace: &str, name: &str) -> Name {
        Name { namespace: Some(Arc::from(namespace)), name: Arc::from(name) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// One object among all that a controller can reach.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// On which server.
    pub place: Place,
    /// Of which kind.
    pub kind: Kind,
    /// With which name.
    pub name: Name,
}

impl Address {
    /// An object by place, kind and name.
    pub fn new(place: Place, kind: &Kind, name: Name) -> Address {
        Address { place, kind: kind.clone(), name }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} at the {}", self.kind, self.name, self.place)
    }
}
