//! How large the world is, and how hostile.

use super::{NAME, Namespaces};
use crate::spec::hub::MOST_EPOCHS;
use interlock_checker::{Size, SizeError, SizeKey};
use interlock_world::Hostility;

const fn key(key: &'static str, help: &'static str, default: u64, most: u64) -> SizeKey {
    SizeKey::new(key, help, default, 0, most)
}

pub(super) const KEYS: [SizeKey; 31] = [
    key("moves", "how often people move the namespace", 1, 3),
    key("flights", "steps that are under way at once", 1, 2),
    key(
        "late",
        "1: only the syncers of cluster a are late or out of date; 2: the second one",
        0,
        2,
    ),
    key("stale", "objects that are out of date at once", 1, 2),
    key("crash", "1: programs crash at any time", 1, 1),
    key("relist", "1: programs that start anew list the past", 0, 1),
    key("force", "1: power loss and ForceRelease happen", 0, 1),
    key("claims", "claims, whose data goes along; the second one is added late", 0, 2),
    key(
        "slow",
        "1: snapshots take their time, and one is under way at the start; 2: none is ever made",
        0,
        2,
    ),
    key("exits", "1: a process may end by itself, once", 0, 1),
    key("pods", "1: people delete the pod, once, and make another one of its name", 0, 1),
    key(
        "makers",
        "1: a maker sees which epoch may run, and creates a pod of it however late",
        0,
        1,
    ),
    key("unplaced", "1: a person had a namespace of its name on cluster a, with a pod", 0, 1),
    key("before", "1: it was on cluster b before, and its data is in a snapshot there", 0, 1),
    key("begun", "how far cluster a is at the start: 1: noted, 2: permitted, 3: it runs", 0, 3),
    key("later", "1: so long passes that old copies may go", 0, 1),
    key("deletes", "1: the namespace is deleted; 2: and made again under its name", 0, 2),
    key("drains", "how often somebody needs a cluster empty", 0, 3),
    key("retire", "clusters that are deleted", 0, 2),
    key("replace", "1: cluster b comes when cluster a is gone, and under its name", 0, 1),
    key("strip", "1: people strip the finalizers of what is being deleted", 0, 1),
    key("forget", "1: people give up what a cluster has of the namespace", 0, 1),
    key("silent", "1: the hub may hear no more of cluster a, which runs on", 0, 1),
    key("unfit", "1: cluster b takes nothing new", 0, 1),
    key("rights", "1: the namespace has a cloud role, which trusts an owner in its own time", 0, 1),
    SizeKey::new("hubs", "hubs at once, as while a lease changes hands", 1, 1, 2),
    SizeKey::new("syncers", "syncers of cluster a at once", 1, 1, 2),
    key("all", "1: with the controllers that only mirror what others decide", 0, 1),
    key("wakes", "1: whoever gains work must be woken", 0, 1),
    key("refine", "1: every step is compared with spec/placement", 1, 1),
    key("live", "1: what must happen in the end is checked", 0, 1),
];

impl Namespaces {
    pub(super) fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        let [
            moves,
            flights,
            late,
            stale,
            crash,
            relist,
            force,
            claims,
            slow,
            exits,
            pods,
            makers,
            unplaced,
            before,
            begun,
            later,
            deletes,
            drains,
            retire,
            replace,
            strip,
            forget,
            silent,
            unfit,
            rights,
            hubs,
            syncers,
            all,
            wakes,
            refine,
            live,
        ] = numbers;
        let hostility = Hostility::of([flights, stale, crash, relist, wakes, live]);
        // The protocol has so many epochs: the first, one for each move, and one after a forced
        // release. It knows of nothing that is deleted.
        let is_comparable = moves + 1 + force <= MOST_EPOCHS as u64
            && before + begun + deletes + retire + replace + forget == 0
            && hubs == 1
            && claims < 2
            && slow + exits + pods + makers + unplaced == 0;
        let has_no_end = strip + forget + replace == 0;
        Ok(Namespaces {
            moves: moves as u32,
            hostility,
            late,
            force: force == 1,
            claims: claims as usize,
            slow,
            exits: exits == 1,
            pods: pods == 1,
            makers: makers == 1 && has_no_end,
            unplaced: unplaced == 1 && has_no_end,
            before: before == 1,
            begun,
            later: later == 1,
            deletes: deletes as u8,
            drains: drains as u32,
            retire: retire as usize,
            replace: replace == 1,
            strip: strip == 1,
            forget: forget == 1,
            silent: silent == 1,
            unfit: unfit == 1,
            rights: rights == 1,
            two_hubs: hubs == 2,
            twin: syncers == 2,
            all: all == 1,
            is_refined: refine == 1 && is_comparable,
            live: live == 1,
            bends: &[],
            numbers,
        })
    }

    /// The size as a person would ask for it.
    pub(super) fn shown_size(&self) -> String {
        let shown = |(key, number): (&SizeKey, &u64)| match key.key {
            "refine" => format!("refine={}", u8::from(self.is_refined)),
            name => format!("{name}={number}"),
        };
        KEYS.iter().zip(&self.numbers).map(shown).collect::<Vec<_>>().join(",")
    }

    /// Whether labels mirror the grant.
    pub(super) fn has_labels(&self) -> bool {
        self.all || self.claims > 0
    }

    /// Whether anything can be deleted, or given up.
    pub(super) fn has_ends(&self) -> bool {
        self.deletes > 0 || self.retire > 0 || self.forget
    }
}
