//! The steps between states, noted while they are explored.
//!
//! Where a successor is kept is known only when its shard has added it, half a round after the step was
//! found. Until then a step remembers which of the words that this worker sent to that shard it led to.

use crate::model::ActionId;
use crate::store::SHARDS;

/// A place in the store as one number: the shard in the low bits, the place in the shard above. States
/// that were found at about the same time have numbers close to each other.
#[inline]
pub(crate) fn joined(shard: usize, index: u32) -> u32 {
    index << SHARDS.trailing_zeros() | shard as u32
}

/// The shard and the place in it.
#[inline]
pub(crate) fn parted(joined: u32) -> (usize, u32) {
    (joined as usize % SHARDS, joined >> SHARDS.trailing_zeros())
}

/// The steps out of some states that stand together in a shard.
#[derive(Debug)]
pub(crate) struct Block {
    /// The first of the states.
    pub(crate) start: u32,
    /// How many steps each of them has.
    pub(crate) counts: Vec<u16>,
    /// Where they lead, as [`joined`] places.
    pub(crate) to: Vec<u32>,
    /// By which actions.
    pub(crate) actions: Vec<ActionId>,
}

impl Block {
    pub(crate) fn bytes(&self) -> usize {
        self.counts.len() * 2 + self.to.len() * 6 + std::mem::size_of::<Block>()
    }
}

/// What one worker notes in one round.
#[derive(Debug)]
pub(crate) struct Recorder {
    on: bool,
    round: u32,
    /// For each slot of the worker's cache: in which round its word was sent, and as which one.
    sent: Vec<(u32, u32)>,
    /// The blocks begun: their shard, their first state, and how many states and steps came before.
    begun: Vec<(u16, u32, usize, usize)>,
    counts: Vec<u16>,
    /// Where the steps lead: the shard, and as which word of this round it was sent there, [`joined`].
    targets: Vec<u32>,
    actions: Vec<ActionId>,
    before: usize,
}

impl Recorder {
    pub(crate) fn new(slots: usize) -> Self {
        Recorder {
            on: false,
            round: 0,
            sent: vec![(0, 0); slots],
            begun: Vec::new(),
            counts: Vec::new(),
            targets: Vec::new(),
            actions: Vec::new(),
            before: 0,
        }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    pub(crate) fn begin_round(&mut self, on: bool) {
        self.on = on;
        self.round += 1;
        self.begun.clear();
        self.counts.clear();
        self.targets.clear();
        self.actions.clear();
        self.before = 0;
    }

    pub(crate) fn begin_block(&mut self, shard: u16, start: u32) {
        if self.on {
            self.begun.push((shard, start, self.counts.len(), self.targets.len()));
        }
    }

    #[inline]
    pub(crate) fn end_state(&mut self) {
        if self.on {
            let count = self.targets.len() - self.before;
            self.counts.push(u16::try_from(count).expect("a state has fewer than 65,536 steps"));
            self.before = self.targets.len();
        }
    }

    /// As which word of this round a successor is sent, and whether it was sent before.
    #[inline]
    pub(crate) fn place(&mut self, slot: usize, known: bool, next: u32) -> (u32, bool) {
        let (round, place) = self.sent[slot];
        if known && round == self.round {
            return (place, true);
        }
        self.sent[slot] = (self.round, next);
        (next, false)
    }

    #[inline]
    pub(crate) fn edge(&mut self, shard: usize, place: u32, action: ActionId) {
        self.targets.push(joined(shard, place));
        self.actions.push(action);
    }

    /// The blocks of this round, with the places that the shards gave to the words.
    pub(crate) fn blocks(&self, placed: impl Fn(usize, u32) -> u32) -> Vec<(u16, Block)> {
        let ends = self.begun.iter().skip(1).map(|(_, _, counts, edges)| (*counts, *edges));
        let ends = ends.chain([(self.counts.len(), self.targets.len())]);
        let resolve = |sent: &u32| {
            let (shard, place) = parted(*sent);
            joined(shard, placed(shard, place))
        };
        self.begun
            .iter()
            .zip(ends)
            .map(|((shard, start, counts, edges), (counts_end, edges_end))| {
                let block = Block {
                    start: *start,
                    counts: self.counts[*counts..counts_end].to_vec(),
                    to: self.targets[*edges..edges_end].iter().map(resolve).collect(),
                    actions: self.actions[*edges..edges_end].to_vec(),
                };
                (*shard, block)
            })
            .collect()
    }
}
