//! Names from a bounded set: what keeps two writers from making more pods than there may be.
//!
//! Nothing is kept between steps, so nobody knows which pods were asked for and are not in the cache
//! yet. A name is the lock: of two writes that make the same pod one fails.

use crate::template::digest;
use serde::Serialize;

/// The longest name that all of this makes: what a host may be called.
const NAME_CHARACTERS: usize = 63;
/// What follows the name of the owner: a dash, a letter and a number.
const SLOT_CHARACTERS: usize = 8;
/// As many EndpointSlices as a Service may have: more than there are addresses in `127.64.0.0/10`.
const MOST_SLICES: u32 = 100_000;
/// A dash and a digest in hexadecimal, where a name is cut.
const DIGEST_CHARACTERS: usize = 9;

/// A name that leaves room for as many characters more. One that is too long is cut, and a digest of
/// the whole is put to it, so that two long names stay two.
pub fn base(name: &str, room: usize) -> String {
    let most = NAME_CHARACTERS.saturating_sub(room);
    if name.len() <= most {
        return name.to_owned();
    }
    let kept: String = name.chars().take(most.saturating_sub(DIGEST_CHARACTERS)).collect();
    let short = digest(name) & 0xffff_ffff;
    format!("{}-{short:08x}", kept.trim_end_matches(['-', '.']))
}

/// The names of the pods of one owner: `<owner>-<letter><slot>`, with slots from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slots {
    beginning: String,
    count: u32,
}

impl Slots {
    /// Names of pods of a Deployment, whichever of its ReplicaSets makes them.
    pub fn of_deployment(name: &str, count: u32) -> Slots {
        Slots { beginning: format!("{}-d", base(name, SLOT_CHARACTERS)), count }
    }

    /// Names of pods of a ReplicaSet that belongs to no Deployment.
    pub fn of_replica_set(name: &str, count: u32) -> Slots {
        Slots { beginning: format!("{}-r", base(name, SLOT_CHARACTERS)), count }
    }

    /// Names of the EndpointSlices of a Service.
    pub fn of_service(name: &str) -> Slots {
        Slots { beginning: format!("{}-e", base(name, SLOT_CHARACTERS)), count: MOST_SLICES }
    }

    /// How many pods there may be at once.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The name of one.
    pub fn name(&self, slot: u32) -> String {
        format!("{}{slot}", self.beginning)
    }

    /// The slot of a pod by its name, whether or not the slot is one of those that may be taken now.
    pub fn slot(&self, name: &str) -> Option<u32> {
        let slot = name.strip_prefix(&self.beginning)?.parse().ok()?;
        (self.name(slot) == name).then_some(slot)
    }

    /// The lowest slot that none of these names takes; None: all are taken.
    pub fn lowest_free<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<u32> {
        let mut taken: Vec<u32> = names.into_iter().filter_map(|name| self.slot(name)).collect();
        taken.sort_unstable();
        taken.dedup();
        let lowest = (0..).zip(&taken).find(|(slot, taken)| slot != *taken).map(|(slot, _)| slot);
        let lowest = lowest.unwrap_or(u32::try_from(taken.len()).unwrap_or(u32::MAX));
        (lowest < self.count).then_some(lowest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_slot_that_is_free_is_taken() {
        let slots = Slots::of_deployment("shop", 3);
        assert_eq!(slots.name(2), "shop-d2");
        assert_eq!(slots.lowest_free([]), Some(0));
        assert_eq!(slots.lowest_free(["shop-d1", "shop-d0"]), Some(2));
        assert_eq!(slots.lowest_free(["shop-d0", "shop-d2", "shop-d7"]), Some(1));
        assert_eq!(slots.lowest_free(["shop-d0", "shop-d1", "shop-d2"]), None);
        assert_eq!(Slots::of_deployment("shop", 0).lowest_free([]), None);
    }

    #[test]
    fn only_a_name_that_would_be_given_has_a_slot() {
        let slots = Slots::of_replica_set("shop", 2);
        assert_eq!(slots.slot("shop-r12"), Some(12), "it was given when there were more");
        for name in ["shop-r", "shop-r01", "shop-r+1", "shop-d1", "shop-r1x", "shop", ""] {
            assert_eq!(slots.slot(name), None, "{name}");
        }
    }

    #[test]
    fn long_names_stay_names_and_stay_apart() {
        let (one, two) = (format!("{}a", "n".repeat(100)), format!("{}b", "n".repeat(100)));
        let (one, two) = (Slots::of_deployment(&one, 9), Slots::of_deployment(&two, 9));
        assert!(one.name(99_999).len() <= NAME_CHARACTERS, "{}", one.name(99_999));
        assert_ne!(one.name(0), two.name(0));
        assert_eq!(one.slot(&one.name(7)), Some(7));
        assert_eq!(base("short", 8), "short");
        assert!(!base(&format!("{}-é", "a-".repeat(40)), 8).contains("--"));
    }
}
