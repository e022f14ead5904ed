//! How large the world is, and how hostile.

use super::{Kind, NAME, Syncs};
use interlock_checker::{Size, SizeError, SizeKey};
use interlock_world::Hostility;

const fn key(key: &'static str, help: &'static str, default: u64, most: u64) -> SizeKey {
    SizeKey::new(key, help, default, 0, most)
}

pub(super) const KEYS: [SizeKey; 19] = [
    SizeKey::new("kind", "1: a source of snapshots, 2: of backups, 3: a destination", 3, 1, 3),
    SizeKey::new("syncs", "tags that are set, one sync each", 1, 1, 3),
    key(
        "done",
        "1: the first sync is done at the start; 2: two are, and a claim is at the first",
        1,
        2,
    ),
    key("own", "1: the destination makes its volume, and deletes it again", 0, 1),
    key("claims", "claims of one name that are filled, one after the other", 1, 2),
    key("deletes", "claims that people delete", 0, 2),
    key("vandals", "snapshots that people delete by hand", 1, 2),
    key("drops", "PVC's that people delete by hand", 0, 1),
    key("leave", "1: people delete the source or destination", 0, 1),
    key("faults", "volumes, snapshots and movers that fail or die", 0, 2),
    key("second", "1: there is a second populator, 2: a second of what syncs", 0, 2),
    key("flights", "steps that are under way at once", 1, 2),
    key(
        "late",
        "1: only steps of a second populator are under way; people spare the latest snapshot",
        0,
        1,
    ),
    key("stale", "objects that are out of date at once", 1, 2),
    key("crash", "1: programs crash at any time", 1, 1),
    key("relist", "1: programs that start anew list the past", 0, 1),
    key("wakes", "1: whoever gains work must be woken", 0, 1),
    key("refine", "1: every step is compared with spec/volumes", 1, 1),
    key("live", "1: what must happen in the end is checked", 0, 1),
];

impl Syncs {
    pub(super) fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        let [
            kind,
            syncs,
            done,
            own,
            claims,
            deletes,
            vandals,
            drops,
            leave,
            faults,
            second,
            flights,
            late,
            stale,
            crash,
            relist,
            wakes,
            refine,
            live,
        ] = numbers;
        let kind = match kind {
            1 => Kind::Snapshots,
            2 => Kind::Backups,
            _ => Kind::Destination,
        };
        let is_destination = kind == Kind::Destination;
        // The protocol has one populator, snapshots that do not fail, and nobody who deletes PVC' or the
        // destination.
        let is_comparable =
            is_destination && drops == 0 && leave == 0 && faults == 0 && second != 1;
        Ok(Syncs {
            kind,
            syncs: (syncs as u32).max(done as u32),
            // Nobody fills a claim from a source.
            done: if is_destination { done as u32 } else { 0 },
            own: own == 1 && is_destination,
            claims: if is_destination { claims as u32 } else { 0 },
            deletes: deletes as u32,
            vandals: vandals as u32,
            drops: drops as u32,
            leave: leave == 1,
            faults: faults as u32,
            second: second as u8,
            hostility: Hostility::of([flights, stale, crash, relist, wakes, live]),
            is_second_late: late == 1,
            is_refined: refine == 1 && is_comparable,
            live: live == 1,
            bends: &[],
            numbers,
        })
    }

    /// The size as a person would ask for it.
    pub(super) fn shown_size(&self) -> String {
        let shown = |(key, number): (&SizeKey, &u64)| {
            let number = match key.key {
                "syncs" => u64::from(self.syncs),
                "done" => u64::from(self.done),
                "own" => u64::from(self.own),
                "claims" => u64::from(self.claims),
                "refine" => u64::from(self.is_refined),
                _ => *number,
            };
            format!("{}={number}", key.key)
        };
        KEYS.iter().zip(&self.numbers).map(shown).collect::<Vec<_>>().join(",")
    }
}
