//! Whether a place at a repository is given back. First matching rule wins.

use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the object that the place was taken for names the sync, as the cache shows it.
    pub is_named_in_cache: bool,
    /// Whether it does by a live read; None: not read.
    pub is_named: Option<bool>,
    /// Whether the mover runs an attempt of the sync.
    pub does_mover_run: bool,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// The sync that has the place is on its way.
    Leave,
    /// See the object itself, and then ask the mover.
    LiveRead,
    /// Nobody names the sync any more, and the mover still runs it.
    WaitForMover,
    /// The sync that had the place is no more.
    GiveBack,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_named_in_cache {
        return Decision::Leave;
    }
    match facts.is_named {
        None => Decision::LiveRead,
        Some(true) => Decision::Leave,
        Some(false) if facts.does_mover_run => Decision::WaitForMover,
        Some(false) => Decision::GiveBack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_back_only_after_a_live_read_and_the_end_of_the_mover() {
        let gone = Facts { is_named_in_cache: false, is_named: Some(false), does_mover_run: false };
        assert_eq!(decide(&gone), Decision::GiveBack);
        assert_eq!(decide(&Facts { is_named: None, ..gone }), Decision::LiveRead);
        assert_eq!(decide(&Facts { is_named: Some(true), ..gone }), Decision::Leave);
        assert_eq!(decide(&Facts { is_named_in_cache: true, ..gone }), Decision::Leave);
        assert_eq!(decide(&Facts { does_mover_run: true, ..gone }), Decision::WaitForMover);
    }
}
