//! How large the world is.

use super::NAME;
use interlock_checker::{Size as Asked, SizeError, SizeKey};
use interlock_world::Hostility;
use std::fmt;

/// What a person can say of the size.
pub(super) const KEYS: [SizeKey; 19] = [
    SizeKey::new("desired", "pods that are asked for", 1, 1, 3),
    SizeKey::new("surge", "pods that there may be above that", 1, 0, 2),
    SizeKey::new("unavailable", "pods of these that need not be available", 0, 0, 2),
    SizeKey::new("alone", "1: a ReplicaSet that belongs to no Deployment", 0, 0, 1),
    SizeKey::new("midway", "1: it begins in the middle of a change that was just undone", 0, 0, 1),
    SizeKey::new("changes", "times that the template changes", 1, 0, 2),
    SizeKey::new("undos", "times that it changes back", 1, 0, 2),
    SizeKey::new("scales", "times that one pod more is asked for, or one fewer again", 0, 0, 2),
    SizeKey::new("deletes", "pods that people delete", 0, 0, 2),
    SizeKey::new("flaps", "times that a pod becomes unready", 0, 0, 2),
    SizeKey::new("exits", "pods that fail for good", 0, 0, 2),
    SizeKey::new(
        "orphans",
        "1: the ReplicaSet is deleted without its pods, and made again",
        0,
        0,
        1,
    ),
    SizeKey::new("agents", "agents with both controllers", 2, 1, 2),
    SizeKey::new("flights", "steps that are under way at once", 0, 0, 2),
    SizeKey::new("stale", "objects that are out of date at once", 0, 0, 2),
    SizeKey::new("late", "whose steps and caches: 0: of both agents, 1: of the second", 1, 0, 1),
    SizeKey::new("crash", "1: programs crash at any time", 0, 0, 1),
    SizeKey::new("wakes", "1: whoever gains work must be woken", 1, 0, 1),
    SizeKey::new("live", "1: what must happen in the end is checked", 0, 0, 1),
];

/// How large the world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) desired: u64,
    pub(super) surge: u64,
    pub(super) unavailable: u64,
    pub(super) alone: u64,
    pub(super) midway: u64,
    pub(super) changes: u64,
    pub(super) undos: u64,
    pub(super) scales: u64,
    pub(super) deletes: u64,
    pub(super) flaps: u64,
    pub(super) exits: u64,
    pub(super) orphans: u64,
    pub(super) agents: u64,
    pub(super) flights: u64,
    pub(super) stale: u64,
    pub(super) late: u64,
    pub(super) crash: u64,
    pub(super) wakes: u64,
    pub(super) live: u64,
}

impl Size {
    /// One agent, and nobody does anything: what mistakes are made larger from.
    pub(super) const SMALL: Size = Size {
        desired: 1,
        surge: 1,
        unavailable: 0,
        alone: 0,
        midway: 0,
        changes: 0,
        undos: 0,
        scales: 0,
        deletes: 0,
        flaps: 0,
        exits: 0,
        orphans: 0,
        agents: 1,
        flights: 0,
        stale: 0,
        late: 1,
        crash: 0,
        wakes: 0,
        live: 0,
    };

    pub(super) fn read(asked: &Asked) -> Result<Size, SizeError> {
        let numbers = asked.numbers(NAME, &KEYS)?;
        let [desired, surge, unavailable, alone, midway, rest @ ..] = numbers;
        let [changes, undos, scales, deletes, flaps, exits, orphans, rest @ ..] = rest;
        let [agents, flights, stale, late, crash, wakes, live] = rest;
        // The objects of that begin are written down for these numbers.
        let (desired, surge, unavailable) = match midway {
            1 => (2, 1, 0),
            _ => (desired, surge, unavailable),
        };
        Ok(Size {
            desired,
            surge,
            unavailable,
            alone,
            midway,
            changes,
            undos,
            scales,
            deletes,
            flaps,
            exits,
            orphans,
            agents,
            flights,
            stale,
            late,
            crash,
            wakes,
            live,
        })
    }

    fn numbers(&self) -> [u64; KEYS.len()] {
        [
            self.desired,
            self.surge,
            self.unavailable,
            self.alone,
            self.midway,
            self.changes,
            self.undos,
            self.scales,
            self.deletes,
            self.flaps,
            self.exits,
            self.orphans,
            self.agents,
            self.flights,
            self.stale,
            self.late,
            self.crash,
            self.wakes,
            self.live,
        ]
    }

    pub(super) fn hostility(&self) -> Hostility {
        let Size { flights, stale, crash, wakes, live, .. } = *self;
        Hostility::of([flights, stale, crash, 0, wakes, live])
    }

    /// How many pods there may be, whatever people ask for.
    pub(super) fn most(&self) -> usize {
        let more = u64::from(self.scales > 0);
        let surge = if self.alone == 1 { 0 } else { self.surge };
        (self.desired + surge + more) as usize
    }

    /// How many pods stay ready of so many that are asked for.
    pub(super) fn floor(&self, desired: u64) -> usize {
        let unavailable = match (self.surge, self.unavailable) {
            (0, 0) => 1,
            (_, unavailable) => unavailable,
        };
        if self.alone == 1 { 0 } else { desired.saturating_sub(unavailable) as usize }
    }

    /// Why something never happens in this size.
    pub(super) fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "ChangeTemplate" => Some("in this size the template does not change"),
            "Undo" => Some("in this size the template does not change back"),
            "Scale" => Some("in this size as many pods are asked for as before"),
            "DeletePod" => Some("in this size nobody deletes a pod"),
            "BecomeUnready" => Some("in this size a pod that is ready stays ready"),
            "Fail" => Some("in this size no pod fails"),
            "Orphan" | "MakeAgain" => Some("in this size nobody deletes the ReplicaSet"),
            "Collect" => Some("in this size nothing is left by an owner that is gone"),
            "Gone" | "BecomeReady" => Some("in this size no pod comes or goes"),
            name if name.contains("deployment") => Some("in this size nothing changes"),
            name if name.contains("replicaset") => Some("the template of that one is never used"),
            _ => None,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = KEYS.iter().zip(self.numbers());
        let pairs: Vec<String> = pairs.map(|(key, value)| format!("{}={value}", key.key)).collect();
        formatter.write_str(&pairs.join(","))
    }
}
