//! Live lists of what belongs to an owner, for decisions that no cache is good enough for.

use interlock_kernel::{Address, Kind, LiveReads, Nothing, Object, Place, Read, Seen, View};
use serde::{Deserialize, Serialize};

/// Where what belongs to an owner was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Source {
    /// In the cache.
    Cache,
    /// Live, and the owner was as in the cache before.
    Live,
    /// Live, and the owner was not as in the cache: a list that is newer than what is wanted proves nothing.
    LiveOfAnother,
}

/// An owner, and the kind of what belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    /// Where the owner is.
    pub owner: &'a Address,
    /// What belongs to it.
    pub kind: &'a Kind,
}

impl Listing<'_> {
    fn namespace(&self) -> Option<String> {
        self.owner.name.namespace.as_deref().map(str::to_owned)
    }

    /// The live reads: the owner first, so that the list counts only if the owner was as in the cache before.
    pub fn reads(&self) -> Vec<Read<Nothing>> {
        let (place, kind, namespace) = (Place::CLUSTER, self.kind.clone(), self.namespace());
        vec![Read::Object(self.owner.clone()), Read::List { place, kind, namespace }]
    }

    /// The objects of the namespace: live if they were read live. `cached` is the owner as the cache shows it.
    pub fn list(
        &self,
        cached: Option<&Object>,
        view: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> (Source, Vec<Object>) {
        let namespace = self.namespace();
        let key = (Place::CLUSTER, self.kind.clone(), namespace);
        match (live_reads.objects.get(self.owner), live_reads.lists.get(&key)) {
            (Some(live), Some(listed)) => {
                let is_same = live.as_ref().map(|it| Seen::of(it)) == cached.map(|it| Seen::of(it));
                (if is_same { Source::Live } else { Source::LiveOfAnother }, listed.clone())
            }
            _ => (Source::Cache, view.list(Place::CLUSTER, self.kind, key.2.as_deref())),
        }
    }
}
