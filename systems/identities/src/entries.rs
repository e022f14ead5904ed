//! Takes the entries of Roles that are gone out of a Grant. The subject of a step is a Grant.
//!
//! A Role leaves the Grant before its finalizer goes. Still, a process that read the Role before it was deleted may
//! list it once more, and a person may take the finalizer off by hand. The next owner would wait for such an entry
//! for ever. A uid is never used again, so an entry whose Role is gone by a live read stays wrong.

#[cfg(test)]
mod tests;

use crate::kinds::{GRANT, NAMESPACE, ROLE};
use interlock_api::names::grant_name;
use interlock_api::placement::{GrantSpec, GrantStatus, RoleRights};
use interlock_kernel::metadata::{name_of, namespace_of, uid_of};
use interlock_kernel::{
    Address, LiveReads, Name, Nothing, Object, Observed, Place, Read, Right, Room, Step, Subject,
    Verb, View, Watch, Watcher, Write, read_part,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The controller of entries whose Role is gone.
#[derive(Debug, Clone, Copy)]
pub struct Entries;

/// All that one decision rests on: the entries of the Grant.
pub type Facts = Vec<Entry>;

/// What a Grant says of a Role.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Entry {
    /// The uid of the Role.
    pub uid: String,
    /// Whether the Role is there.
    pub role: RoleSeen,
}

/// Whether a Role is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum RoleSeen {
    /// The cache shows it, or a live read found it.
    There,
    /// The cache does not show it.
    Unknown,
    /// A live read did not find it.
    Gone,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing.
    Rest,
    /// Read the Roles with these uids.
    LiveRead(Vec<String>),
    /// Take the entries with these uids out.
    Remove(Vec<String>),
}

/// What one step is about.
#[derive(Debug)]
pub struct Scene {
    grant: Object,
    namespace: String,
    rights: Vec<RoleRights>,
}

impl Scene {
    fn address(&self, entry: &RoleRights) -> Address {
        Address::new(Place::HUB, &ROLE, Name::within(&self.namespace, &entry.name))
    }
}

impl Watcher for Entries {
    fn name(&self) -> &'static str {
        "identities/entries"
    }

    fn watches(&self) -> Vec<Watch> {
        [&GRANT, &ROLE, &NAMESPACE].map(|kind| Watch::all(Place::HUB, kind)).into()
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::HUB, &GRANT, &[Verb::PatchStatus])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == GRANT {
            return vec![Subject::from(name_of(object))];
        }
        if watch.kind == NAMESPACE {
            return Vec::new();
        }
        let namespace = Name::cluster_wide(namespace_of(object));
        let namespace = view.get(Place::HUB, &NAMESPACE, &namespace);
        let grant = namespace.map(|it| grant_name(name_of(&it), uid_of(&it)));
        let grant =
            grant.filter(|it| view.get(Place::HUB, &GRANT, &Name::cluster_wide(it)).is_some());
        grant.map(Subject::from).into_iter().collect()
    }
}

impl Room for Entries {
    type Outside = Nothing;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> Observed<Facts, Scene> {
        let Some(grant) = view.get(Place::HUB, &GRANT, &Name::cluster_wide(subject)) else {
            return Observed::nothing("there is no such Grant");
        };
        let spec = read_part::<GrantSpec>(&grant, "spec").ok().flatten();
        let status = read_part::<GrantStatus>(&grant, "status").ok().flatten();
        let (Some(spec), Some(status)) = (spec, status) else {
            return Observed::nothing("the Grant lists no role");
        };
        let scene = Scene { grant, namespace: spec.namespace.name, rights: status.rights };
        let seen = |entry: &RoleRights| {
            let address = scene.address(entry);
            let is_it = |role: &Object| uid_of(role) == entry.uid;
            let role = match live_reads.objects.get(&address) {
                Some(live) if live.as_ref().is_some_and(is_it) => RoleSeen::There,
                Some(_) => RoleSeen::Gone,
                None => match view.get(Place::HUB, &ROLE, &address.name) {
                    Some(cached) if is_it(&cached) => RoleSeen::There,
                    _ => RoleSeen::Unknown,
                },
            };
            Entry { uid: entry.uid.clone(), role }
        };
        Observed::Seen { facts: scene.rights.iter().map(seen).collect(), scene }
    }

    fn decide(facts: &Facts) -> Decision {
        let of = |wanted: RoleSeen| {
            let found = facts.iter().filter(move |entry| entry.role == wanted);
            found.map(|entry| entry.uid.clone()).collect::<Vec<String>>()
        };
        let (gone, unknown) = (of(RoleSeen::Gone), of(RoleSeen::Unknown));
        match (gone.is_empty(), unknown.is_empty()) {
            (false, _) => Decision::Remove(gone),
            (true, false) => Decision::LiveRead(unknown),
            (true, true) => Decision::Rest,
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Nothing> {
        match decision {
            Decision::Rest => Step::rest("each role that the Grant lists is there"),
            Decision::LiveRead(uids) => {
                let unknown = scene.rights.iter().filter(|entry| uids.contains(&entry.uid));
                let reads = unknown.map(|entry| Read::Object(scene.address(entry))).collect();
                let because = "the cache does not show a role that the Grant lists".to_owned();
                Step::LiveRead { reads, because }
            }
            Decision::Remove(uids) => {
                let left = scene.rights.iter().filter(|entry| !uids.contains(&entry.uid));
                let left: Vec<&RoleRights> = left.collect();
                let change = json!({"status": {"rights": left}});
                let write = Write::patch_status(Place::HUB, &GRANT, &scene.grant, change);
                Step::write(write, "a role that the Grant lists is gone")
            }
        }
    }
}
