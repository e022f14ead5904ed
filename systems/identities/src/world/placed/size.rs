//! How large the world is: how many processes and epochs, and what may happen how often.

use super::NAME;
use super::people::Left;
use interlock_checker::{Size as Asked, SizeError, SizeKey};
use interlock_world::Hostility;
use std::fmt;

/// The keys of a size.
pub(super) const KEYS: [SizeKey; 15] = [
    SizeKey::new("processes", "processes that run the controllers", 1, 1, 2),
    SizeKey::new("crash", "crashes", 1, 0, 2),
    SizeKey::new("faults", "calls whose process stops waiting for the answer", 1, 0, 3),
    SizeKey::new("lags", "calls after which reads and sessions rest on the past", 0, 0, 3),
    SizeKey::new("elapses", "times that the late-call window passes", 3, 0, 7),
    SizeKey::new("epochs", "times that the namespace is granted", 2, 1, 3),
    SizeKey::new("forced", "owners that lose it by force", 1, 0, 2),
    SizeKey::new("same", "1: it is granted to the same cluster each time", 0, 0, 1),
    SizeKey::new("deletes", "1: the tenant deletes the Role, or an operator the cluster", 0, 0, 1),
    SizeKey::new(
        "shared",
        "1: both clusters report one issuer, 2: one of them does so later; providers are checked",
        0,
        0,
        2,
    ),
    SizeKey::new("managed", "1: providers are made, and nothing else is explored", 0, 0, 1),
    SizeKey::new("flights", "steps that are under way at once", 0, 0, 2),
    SizeKey::new("stale", "objects that are out of date at once", 0, 0, 2),
    SizeKey::new("refine", "1: every step is compared with spec/identities-rights", 1, 0, 1),
    SizeKey::new("live", "1: what must happen in the end is checked", 0, 0, 1),
];

/// How large the world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) processes: u64,
    pub(super) crash: u64,
    pub(super) faults: u64,
    pub(super) lags: u64,
    pub(super) elapses: u64,
    pub(super) epochs: u64,
    pub(super) forced: u64,
    pub(super) same: u64,
    pub(super) deletes: u64,
    pub(super) shared: u64,
    pub(super) managed: u64,
    pub(super) flights: u64,
    pub(super) stale: u64,
    pub(super) refine: u64,
    pub(super) live: u64,
}

impl Size {
    /// One process, one epoch, and nothing fails: what mistakes are made larger from.
    pub(super) const SMALL: Size = Size {
        processes: 1,
        crash: 0,
        faults: 0,
        lags: 0,
        elapses: 3,
        epochs: 1,
        forced: 0,
        same: 0,
        deletes: 0,
        shared: 0,
        managed: 0,
        flights: 0,
        stale: 0,
        refine: 0,
        live: 0,
    };

    pub(super) fn read(asked: &Asked) -> Result<Size, SizeError> {
        let [processes, crash, faults, lags, elapses, epochs, forced, rest @ ..] =
            asked.numbers(NAME, &KEYS)?;
        let [same, deletes, shared, managed, flights, stale, refine, live] = rest;
        Ok(Size {
            processes,
            crash,
            faults,
            lags,
            elapses,
            epochs,
            forced,
            same,
            deletes,
            shared,
            managed,
            flights,
            stale,
            refine,
            live,
        })
    }

    pub(super) fn hostility(&self) -> Hostility {
        // Crashes are counted: each is another process, with another name.
        Hostility::of([self.flights, self.stale, self.crash, 0, 1, 1])
    }

    /// Whether every step is compared with the protocol: it has neither deletion nor providers, and there a process
    /// reads all that it decides by at one moment.
    pub(super) fn is_refined(&self) -> bool {
        let others = [self.deletes, self.shared, self.managed, self.flights];
        self.refine == 1 && others == [0; 4]
    }

    pub(super) fn left(&self) -> Left {
        Left {
            faults: self.faults as u32,
            lags: self.lags as u32,
            elapses: self.elapses as u32,
            forced: self.forced as u32,
            deletes: self.deletes as u32,
        }
    }

    /// Why something never happens in this size.
    pub(super) fn explain(&self, name: &str) -> Option<&'static str> {
        let is_moved = self.epochs > 1;
        match name {
            "StopWaiting" if self.faults == 0 => Some("in this size every call is answered"),
            "LandLate" | "GetLost" => Some("in this size every call is answered"),
            "AnswerAndLag" | "CatchUp" => Some("in this size reads show what is"),
            "Elapse" => Some("in this size nothing is late"),
            "Revoke" | "Release" | "Give" | "Stop" if !is_moved => {
                Some("in this size the namespace stays")
            }
            "Permit" if self.managed == 1 => Some("in this size there is no Role"),
            "Permit" if self.shared == 1 => Some("in this size no issuer is ready"),
            "Stop" if self.shared == 1 => Some("in this size no issuer is ready"),
            "ReportIssuer" => Some("in this size clusters keep their issuers"),
            "Force" => Some("in this size nobody is forced"),
            "Delete" => Some("in this size nothing is deleted"),
            _ => None,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = [
            self.processes,
            self.crash,
            self.faults,
            self.lags,
            self.elapses,
            self.epochs,
            self.forced,
            self.same,
            self.deletes,
            self.shared,
            self.managed,
            self.flights,
            self.stale,
            self.refine,
            self.live,
        ];
        let pairs = KEYS.iter().zip(values).map(|(key, value)| format!("{}={value}", key.key));
        formatter.write_str(&pairs.collect::<Vec<String>>().join(","))
    }
}
