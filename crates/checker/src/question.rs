//! What is asked of all behaviours at once, and which of them are fair.

use crate::error::CheckError;
use crate::graph::BitSet;
use crate::model::{Fairness, Strength};

/// Which behaviours break a formula.
pub(crate) struct Question {
    /// They stay here from some point on.
    pub(crate) inside: BitSet,
    /// They come here first and then never leave `inside`; none: from anywhere.
    pub(crate) starts: Option<BitSet>,
    /// They visit one of these again and again.
    pub(crate) witness: Option<BitSet>,
    /// They go on changing for ever.
    pub(crate) changes: bool,
    /// The formula asks nothing of any behaviour: what it speaks of never happens.
    pub(crate) vacuous: bool,
}

/// The fairness conditions as bits: which of them an action serves.
#[derive(Debug, Clone)]
pub(crate) struct Fair {
    pub(crate) conditions: Vec<Fairness>,
    /// For each action, the conditions that it is part of.
    pub(crate) of_action: Vec<u128>,
    pub(crate) weak: u128,
    pub(crate) strong: u128,
}

impl Fair {
    pub(crate) fn new(conditions: Vec<Fairness>, actions: usize) -> Result<Self, CheckError> {
        if conditions.len() > 128 {
            let text =
                format!("{} fairness conditions; at most 128 are possible", conditions.len());
            return Err(CheckError::Conflict(text));
        }
        let mut fair =
            Fair { of_action: vec![0; actions], weak: 0, strong: 0, conditions: Vec::new() };
        for (bit, condition) in conditions.iter().enumerate() {
            for action in &condition.actions {
                fair.of_action[*action as usize] |= 1 << bit;
            }
            match condition.strength {
                Strength::Weak => fair.weak |= 1 << bit,
                Strength::Strong => fair.strong |= 1 << bit,
            }
        }
        fair.conditions = conditions;
        Ok(fair)
    }
}
