//! Whose a cloud object is, and what an object's own cloud object is called.
//!
//! A name holds a digest of fleet, namespace and name, in which a slash separates them and none of them has
//! a slash. So two objects never have one name, whatever their names are put together of. The name holds no
//! workload cluster: the role of a namespace that moves stays the same.

use crate::document::hex;
use crate::outside::{At, Tags};
use crate::settings::Settings;
use interlock_api::identities::{Adopt, TAG_FLEET, TAG_OWNER, TAG_OWNER_UID};
use interlock_kernel::Object;
use interlock_kernel::metadata::{name_of, namespace_of, uid_of};
use serde::{Deserialize, Serialize};

/// The longest name of a cloud object.
const LONGEST_NAME: usize = 64;

/// A Kubernetes object as the owner of cloud objects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Owner {
    /// Its identity.
    pub uid: String,
    /// `policy`, `role`
    #[serde(deserialize_with = "interlock_kernel::word")]
    pub kind: interlock_kernel::Word,
    /// The fleet.
    pub fleet: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Whose a cloud object is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Whose {
    /// This object's.
    Ours,
    /// There is a proof on which this object may take it over.
    Proven,
    /// Another's; in words, whose it seems to be.
    Foreign(String),
}

/// What a cloud object shows of its owner.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// Its ARN.
    pub arn: &'a str,
    /// The id that the cloud gave it.
    pub id: &'a str,
    /// Its tags.
    pub tags: &'a Tags,
    /// Whether it is proven that irsa-operator made it for an object of this namespace and name.
    pub is_legacy: bool,
}

impl Owner {
    /// The owner that an object is.
    pub fn of(object: &Object, kind: &'static str, settings: &Settings) -> Owner {
        Owner {
            uid: uid_of(object).to_owned(),
            kind,
            fleet: settings.fleet.clone(),
            namespace: namespace_of(object).to_owned(),
            name: name_of(object).to_owned(),
        }
    }

    /// Where its own cloud object is.
    pub fn at(&self) -> At {
        let Owner { fleet, namespace, name, .. } = self;
        let digest = hex(&format!("{fleet}/{namespace}/{name}"), 8);
        let whole = format!("interlock-{digest}-{namespace}-{name}");
        let allowed =
            |character: &char| character.is_ascii_alphanumeric() || ".-_".contains(*character);
        let cut: String = whole.chars().filter(allowed).take(LONGEST_NAME).collect();
        At::Name { path: format!("/interlock/{fleet}/"), name: cut }
    }

    /// Where irsa-operator kept the policy of an object of this namespace and name.
    pub fn legacy_policy(&self, cluster_name: &str) -> At {
        let Owner { namespace, name, .. } = self;
        At::Name {
            path: format!("/irsa-operator/{cluster_name}/{namespace}/{name}/policy/"),
            name: format!("irsa-op-{cluster_name}-{namespace}-{name}"),
        }
    }

    /// Where irsa-operator kept the role of an object of this namespace and name.
    pub fn legacy_role(&self, cluster_name: &str) -> At {
        let Owner { namespace, name, .. } = self;
        At::Name {
            path: "/".to_owned(),
            name: format!("irsa-op-{cluster_name}-{namespace}-{name}"),
        }
    }

    /// The tags of its cloud object.
    pub fn tags(&self) -> Tags {
        let owner = format!("{}/{}/{}", self.kind, self.namespace, self.name);
        let tags = [
            (TAG_FLEET, self.fleet.clone()),
            (TAG_OWNER, owner),
            (TAG_OWNER_UID, self.uid.clone()),
        ];
        tags.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Whether a cloud object has all its tags.
    pub fn has_tagged(&self, tags: &Tags) -> bool {
        self.tags().iter().all(|(key, value)| tags.get(key) == Some(value))
    }

    /// Whose a cloud object is. An id in the status proves nothing by itself, as a tenant may write it.
    pub fn whose(&self, shown: Shown<'_>, known_id: Option<&str>, adopt: Adopt) -> Whose {
        let tagged = shown.tags.get(TAG_OWNER_UID);
        if tagged.is_some_and(|uid| *uid == self.uid) {
            return Whose::Ours;
        }
        let is_known = known_id.is_some_and(|id| id == shown.id);
        if tagged.is_none() && self.at().is(shown.arn) && is_known {
            return Whose::Ours;
        }
        let own = self.tags();
        let is_namesake =
            [TAG_FLEET, TAG_OWNER].iter().all(|key| shown.tags.get(*key) == own.get(*key));
        let is_proven = match adopt {
            Adopt::Never => false,
            Adopt::SameName => is_namesake,
            Adopt::Legacy => shown.is_legacy && tagged.is_none(),
        };
        if is_proven {
            return Whose::Proven;
        }
        Whose::Foreign(match (shown.tags.get(TAG_OWNER), shown.tags.get(TAG_FLEET)) {
            (Some(owner), Some(fleet)) => format!("it is tagged for {owner} of the fleet {fleet}"),
            _ if shown.is_legacy => "irsa-operator made it".to_owned(),
            _ => "it has no tag of Interlock".to_owned(),
        })
    }

    /// The line that would adopt it, for people.
    pub fn adopting(&self, shown: Shown<'_>) -> Option<String> {
        let word = match shown.is_legacy {
            true => "Legacy",
            false if self.whose(shown, None, Adopt::SameName) == Whose::Proven => "SameName",
            false => return None,
        };
        Some(format!("set spec.adopt to {word} to take it over"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(namespace: &str, name: &str) -> Owner {
        Owner {
            uid: format!("uid-{namespace}-{name}"),
            kind: "role",
            fleet: "fleet".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn two_objects_never_have_one_name_in_the_cloud() {
        assert_ne!(owner("a-b", "c").at(), owner("a", "b-c").at());
        let long = "n".repeat(200);
        let (one, other) = (owner(&long, "x").at(), owner(&long, "y").at());
        assert_ne!(one, other);
        let At::Name { name, path } = one else { panic!("{one:?}") };
        assert_eq!((name.len(), path.as_str()), (64, "/interlock/fleet/"));
    }

    #[test]
    fn an_object_is_ours_by_its_tag_or_by_name_and_id() {
        let (owner, tags) = (owner("a", "b"), owner("a", "b").tags());
        let At::Name { path, name } = owner.at() else { panic!("by name") };
        let arn = format!("arn:aws:iam::1:role{path}{name}");
        let shown = Shown { arn: &arn, id: "R1", tags: &tags, is_legacy: false };
        assert_eq!(owner.whose(shown, None, Adopt::Never), Whose::Ours);
        let bare = Shown { tags: &Tags::new(), ..shown };
        assert_eq!(owner.whose(bare, Some("R1"), Adopt::Never), Whose::Ours);
        assert!(matches!(owner.whose(bare, Some("R2"), Adopt::Never), Whose::Foreign(_)));
        let elsewhere = Shown { arn: "arn:aws:iam::1:role/admin", ..bare };
        assert!(matches!(owner.whose(elsewhere, Some("R1"), Adopt::Never), Whose::Foreign(_)));
    }

    #[test]
    fn an_object_is_adopted_only_on_the_proof_that_was_chosen() {
        let (owner, mut tags) = (owner("a", "b"), owner("a", "b").tags());
        tags.insert(TAG_OWNER_UID.to_owned(), "another".to_owned());
        let shown = Shown { arn: "arn", id: "R1", tags: &tags, is_legacy: false };
        for (adopt, is_proven) in
            [(Adopt::Never, false), (Adopt::SameName, true), (Adopt::Legacy, false)]
        {
            assert_eq!(owner.whose(shown, None, adopt) == Whose::Proven, is_proven, "{adopt:?}");
        }
        let legacy = Shown { tags: &Tags::new(), is_legacy: true, ..shown };
        assert_eq!(owner.whose(legacy, None, Adopt::Legacy), Whose::Proven);
        assert!(matches!(owner.whose(legacy, None, Adopt::SameName), Whose::Foreign(_)));
        assert!(owner.adopting(legacy).is_some_and(|line| line.contains("Legacy")));
    }
}
