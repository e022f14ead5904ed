//! The history of the template of a StatefulSet or a DaemonSet: ControllerRevisions as upstream has them, by which
//! `kubectl rollout history` and `undo` work.

use crate::kinds::CONTROLLER_REVISION;
use crate::owned::{Claim, Owner, adopting, labels_of_template, owner_reference, selector_of};
use crate::slots::base;
use crate::template;
use interlock_kernel::metadata::{is_deleting, label, name_of, namespace_of, uid_of};
use interlock_kernel::{Address, Kind, Name, Object, Place, View, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// On a revision, upstream's own: the hash of what it says, by which the pods of a DaemonSet name it.
pub const LABEL_HASH: &str = "controller.kubernetes.io/hash";
/// On a pod, upstream's own: the revision that it is of.
pub const LABEL_REVISION: &str = "controller-revision-hash";
/// What kubectl keeps for itself on an object; it is as long as the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// A dash and a hash.
const HASH_CHARACTERS: usize = 11;

/// The revisions of one owner, as far as decisions depend on them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Revisions {
    /// Those that it has, the oldest first.
    pub known: Vec<Revision>,
    /// The names of those that nobody has, and that its selector selects.
    pub adoptable: Vec<String>,
    /// How a new revision of its present template is called.
    pub name: String,
    /// Whether another object has that name: one of somebody else, or one that says something else.
    pub is_name_taken: bool,
}

/// A revision.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Revision {
    /// Its name.
    pub name: String,
    /// What a pod of it has as its label, where pods are labelled by the hash alone.
    pub hash: String,
    /// Its number in the history.
    pub number: i64,
    /// Whether it says what the template of the owner says now.
    pub is_present: bool,
}

/// What is to be written so that the present template has a revision that is the newest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Change {
    /// Make the owner the controller of the revision of this name.
    Adopt(String),
    /// Make a revision of the present template, with this number.
    Create(i64),
    /// Give the revision of this name this number: it is the newest again.
    Renumber(String, i64),
    /// Another object has the name that it would get: count that, so that it gets another name.
    Collide,
}

impl Revisions {
    /// The revision of the present template; None: there is none yet.
    pub fn present(&self) -> Option<&Revision> {
        self.known.iter().rev().find(|revision| revision.is_present)
    }

    /// The revision of a name.
    pub fn named(&self, name: &str) -> Option<&Revision> {
        self.known.iter().find(|revision| revision.name == name)
    }

    /// The next thing to write; None: the present template has the newest revision.
    pub fn change(&self) -> Option<Change> {
        if let Some(name) = self.adoptable.first() {
            return Some(Change::Adopt(name.clone()));
        }
        let highest = self.known.last().map_or(0, |revision| revision.number);
        let next = highest.saturating_add(1);
        match self.present() {
            None if self.is_name_taken => Some(Change::Collide),
            None => Some(Change::Create(next)),
            // Two that have the highest number both count as the newest: only the order of names tells them apart.
            Some(present) if present.number < highest => {
                Some(Change::Renumber(present.name.clone(), next))
            }
            Some(_) => None,
        }
    }

    /// The oldest revision beyond those that are to be kept; revisions in use do not count.
    pub fn superfluous(&self, in_use: &BTreeSet<&str>, limit: usize) -> Option<&str> {
        let is_spare =
            |revision: &&Revision| !revision.is_present && !in_use.contains(revision.name.as_str());
        let spare: Vec<&Revision> = self.known.iter().filter(is_spare).collect();
        (spare.len() > limit).then(|| spare.first().map(|oldest| oldest.name.as_str())).flatten()
    }
}

/// An owner of revisions.
#[derive(Debug, Clone, Copy)]
pub struct Of<'a> {
    /// Its kind.
    pub kind: &'a Kind,
    /// The owner.
    pub owner: &'a Object,
}

impl Of<'_> {
    fn template(&self) -> &Value {
        &self.owner.data["spec"]["template"]
    }

    /// What a revision of the present template says: a patch that replaces the template of the owner.
    fn data(&self) -> Value {
        let mut template = self.template().clone();
        if let Some(fields) = template.as_object_mut() {
            fields.insert("$patch".to_owned(), json!("replace"));
        }
        json!({"spec": {"template": template}})
    }

    /// The name of a revision of the present template.
    fn name(&self) -> String {
        format!("{}-{}", base(name_of(self.owner), HASH_CHARACTERS), self.hash())
    }

    fn hash(&self) -> String {
        match self.collisions() {
            0 => template::hash(&self.data()),
            count => template::hash(&json!({"data": self.data(), "collisions": count})),
        }
    }

    fn collisions(&self) -> i64 {
        self.owner.data["status"]["collisionCount"].as_i64().unwrap_or(0)
    }

    /// The revisions of the owner as facts, and as objects by name.
    pub fn observe(&self, view: &dyn View) -> (Revisions, BTreeMap<String, Object>) {
        let namespace = namespace_of(self.owner);
        let all = view.list(Place::CLUSTER, &CONTROLLER_REVISION, Some(namespace));
        let (name, data) = (self.name(), self.data());
        let selector = selector_of(self.owner).unwrap_or_default();
        let owner = Owner { uid: uid_of(self.owner), selector: &selector };
        let mut found = Revisions {
            known: Vec::new(),
            adoptable: Vec::new(),
            is_name_taken: all.iter().any(|revision| name_of(revision) == name),
            name,
        };
        let mut objects = BTreeMap::new();
        for revision in all.into_iter().filter(|revision| !is_deleting(revision)) {
            let called = name_of(&revision).to_owned();
            match owner.claim(&revision) {
                // Labels of a revision are those of its template, which may have others by now.
                Claim::Own | Claim::Strayed => found.known.push(Revision {
                    hash: label(&revision, LABEL_HASH).unwrap_or(&called).to_owned(),
                    number: revision.data["revision"].as_i64().unwrap_or(0),
                    is_present: template::is_same(&revision.data["data"], &data),
                    name: called.clone(),
                }),
                Claim::Adoptable => found.adoptable.push(called.clone()),
                Claim::Foreign => continue,
            }
            objects.insert(called, revision);
        }
        found.known.sort_by(|one, other| (one.number, &one.name).cmp(&(other.number, &other.name)));
        (found, objects)
    }

    /// A change as a write; None: the revision is not there any more.
    pub fn write(&self, change: &Change, objects: &BTreeMap<String, Object>) -> Option<Write> {
        let patch = |name: &str, change: Value| {
            let revision = objects.get(name)?;
            Some(Write::patch(Place::CLUSTER, &CONTROLLER_REVISION, revision, change))
        };
        match change {
            Change::Adopt(name) => patch(name, adopting(self.kind, self.owner, objects.get(name)?)),
            Change::Renumber(name, number) => patch(name, json!({"revision": number})),
            Change::Create(number) => Some(self.create(*number)),
            Change::Collide => {
                let count = self.collisions().saturating_add(1);
                let change = json!({"status": {"collisionCount": count}});
                Some(Write::patch_status(Place::CLUSTER, self.kind, self.owner, change))
            }
        }
    }

    fn create(&self, number: i64) -> Write {
        let mut labels = json!(labels_of_template(self.template()));
        template::put(&mut labels, LABEL_HASH, &self.hash());
        let known = self.owner.metadata.annotations.iter().flatten();
        // `kubernetes.io/change-cause` is among them, which the history shows.
        let annotations: Map<String, Value> = known
            .filter(|(key, _)| *key != LAST_APPLIED)
            .map(|(key, value)| (key.clone(), json!(value)))
            .collect();
        let name = Name::within(namespace_of(self.owner), &self.name());
        let address = Address::new(Place::CLUSTER, &CONTROLLER_REVISION, name);
        let object = json!({
            "metadata": {"labels": labels, "annotations": annotations,
                "ownerReferences": [owner_reference(self.kind, self.owner)]},
            "data": self.data(), "revision": number,
        });
        Write::Create { address, object }
    }
}

/// The template that a revision has.
pub fn template_in(revision: &Object) -> Value {
    let mut template = revision.data["data"]["spec"]["template"].clone();
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    template
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(name: &str, number: i64, is_present: bool) -> Revision {
        Revision { name: name.to_owned(), hash: name.to_owned(), number, is_present }
    }

    fn revisions(known: Vec<Revision>) -> Revisions {
        let name = "web-new".to_owned();
        Revisions { known, adoptable: Vec::new(), name, is_name_taken: false }
    }

    #[test]
    fn the_present_template_gets_the_highest_number() {
        for (known, change) in [
            (vec![], Some(Change::Create(1))),
            (vec![revision("a", 4, false)], Some(Change::Create(5))),
            (vec![revision("a", 4, true)], None),
            (
                vec![revision("a", 1, true), revision("b", 2, false)],
                Some(Change::Renumber("a".to_owned(), 3)),
            ),
            (vec![revision("a", 2, true), revision("b", 2, false)], None),
            (vec![revision("a", i64::MAX, false)], Some(Change::Create(i64::MAX))),
        ] {
            assert_eq!(revisions(known.clone()).change(), change, "{known:?}");
        }
    }

    #[test]
    fn what_nobody_has_is_adopted_first_and_a_name_that_is_taken_is_counted() {
        let taken = Revisions { is_name_taken: true, ..revisions(vec![]) };
        assert_eq!(taken.change(), Some(Change::Collide));
        let adoptable = Revisions { adoptable: vec!["web-old".to_owned()], ..taken };
        assert_eq!(adoptable.change(), Some(Change::Adopt("web-old".to_owned())));
    }

    #[test]
    fn the_oldest_beyond_the_limit_goes_unless_it_is_in_use() {
        let known = vec![
            revision("a", 1, false),
            revision("b", 2, false),
            revision("c", 3, false),
            revision("d", 4, true),
        ];
        let all = revisions(known);
        let none = BTreeSet::new();
        assert_eq!(all.superfluous(&none, 3), None);
        assert_eq!(all.superfluous(&none, 2), Some("a"));
        assert_eq!(all.superfluous(&BTreeSet::from(["a"]), 1), Some("b"));
        assert_eq!(all.superfluous(&BTreeSet::from(["a", "b", "c"]), 0), None);
    }
}
