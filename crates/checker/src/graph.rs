//! All steps between all states, for questions about infinite behaviours.

use crate::edges::{Block, joined, parted};
use crate::explore::{Explored, hold};
use crate::model::ActionId;
use crate::store::{SHARDS, Shard, shard_of};
use crate::walk::Walk;
use crate::word::Word;
use crate::workers;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A state by its number in the graph: its place in the store, [`joined`]. Not every number below
/// [`Graph::room`] is a state, because shards differ in length.
pub(crate) type Id = u32;

/// Places in every shard in which predicates are evaluated as one task; their states fill whole words
/// of a [`BitSet`].
const TASK_PLACES: usize = 1024;

/// The steps out of the states of one shard, in the order of the states.
#[derive(Debug, Default)]
struct Segment {
    /// `first[n]..first[n + 1]` are the edges of state n.
    first: Vec<u32>,
    to: Vec<Id>,
    action: Vec<ActionId>,
}

/// Every reachable state and every step that changes something.
#[derive(Debug)]
pub(crate) struct Graph<W> {
    shards: Vec<Shard<W>>,
    segments: Vec<Segment>,
    pub(crate) initial: Vec<Id>,
}

impl<W: Word> Graph<W> {
    /// The graph of what was explored. Where the steps were not noted on the way, every state is
    /// expanded once more.
    pub(crate) fn new(walk: &dyn Walk<W>, mut explored: Explored<W>, workers: usize) -> Self {
        let noted = explored.edges.take().map(|shards| {
            shards.into_iter().map(|blocks| Mutex::new(Some(blocks))).collect::<Vec<_>>()
        });
        let shards = explored.shards.into_iter();
        let shards: Vec<Shard<W>> = shards
            .map(|shard| shard.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let find = |word: &W| {
            let shard = shard_of(word.mix());
            joined(shard, shards[shard].find(word).expect("every successor was explored"))
        };
        let segments = workers::each(workers, SHARDS, |shard| match &noted {
            Some(blocks) => Segment::joined(hold(&blocks[shard]).take().unwrap_or_default()),
            None => Segment::expanded(walk, &shards[shard], &find),
        });
        let initial = walk.initial().iter().map(find).collect();
        Graph { shards, segments, initial }
    }

    /// One more than the largest number that a state may have.
    pub(crate) fn room(&self) -> usize {
        self.places() * SHARDS
    }

    /// The length of the longest shard.
    fn places(&self) -> usize {
        self.shards.iter().map(Shard::len).max().unwrap_or(0)
    }

    pub(crate) fn word(&self, id: Id) -> W {
        let (shard, index) = parted(id);
        self.shards[shard].get(index)
    }

    /// How far a state is from the start, and the state: an order that no worker's speed changes.
    pub(crate) fn rank(&self, id: Id) -> (u32, W) {
        let (shard, index) = parted(id);
        let shard = &self.shards[shard];
        (shard.levels().partition_point(|end| *end <= index) as u32, shard.get(index))
    }

    /// Where the steps out of a state lead, and by which actions.
    #[inline]
    pub(crate) fn edges(&self, id: Id) -> (&[Id], &[ActionId]) {
        self.steps_of(id, self.steps(id))
    }

    /// The numbers of the steps out of a state among those of its shard.
    #[inline]
    pub(crate) fn steps(&self, id: Id) -> Range<u32> {
        let (shard, index) = parted(id);
        let first = &self.segments[shard].first[index as usize..];
        first[0]..first[1]
    }

    /// The same as [`Graph::edges`], for some of the numbers that [`Graph::steps`] gave.
    #[inline]
    pub(crate) fn steps_of(&self, id: Id, steps: Range<u32>) -> (&[Id], &[ActionId]) {
        let segment = &self.segments[parted(id).0];
        let range = steps.start as usize..steps.end as usize;
        (&segment.to[range.clone()], &segment.action[range])
    }

    /// All states.
    pub(crate) fn all(&self) -> BitSet {
        let mut set = BitSet::new(self.room());
        for (shard, states) in self.shards.iter().enumerate() {
            (0..states.len() as u32).for_each(|index| set.insert(joined(shard, index)));
        }
        set
    }

    /// For each predicate of each formula, in order, the states in which it holds. Every state is
    /// unpacked once for all of them.
    pub(crate) fn truths(&self, walk: &dyn Walk<W>, workers: usize) -> Vec<BitSet> {
        let shapes = walk.facts().properties.iter().flat_map(|property| &property.shapes);
        let predicates = shapes.map(|shape| shape.sides().len()).sum();
        let tasks = self.places().div_ceil(TASK_PLACES);
        let pieces = workers::each(workers, tasks, |task| {
            let (start, end) = (task * TASK_PLACES, self.places().min((task + 1) * TASK_PLACES));
            let mut sets = vec![BitSet::new((end - start) * SHARDS); predicates];
            let mut truths = Vec::with_capacity(predicates);
            for (shard, states) in self.shards.iter().enumerate() {
                for index in start..end.min(states.len()) {
                    walk.truths(&states.get(index as u32), &mut truths);
                    let id = joined(shard, (index - start) as u32);
                    let holding = sets.iter_mut().zip(&truths).filter(|(_, truth)| **truth);
                    holding.for_each(|(set, _)| set.insert(id));
                }
            }
            sets
        });
        let mut truths = vec![BitSet(Vec::with_capacity(self.room().div_ceil(64))); predicates];
        for piece in pieces {
            truths.iter_mut().zip(piece).for_each(|(all, some)| all.0.extend(some.0));
        }
        truths
    }
}

impl Segment {
    /// From the blocks noted during exploration, in whatever order they came.
    fn joined(mut blocks: Vec<Block>) -> Self {
        blocks.sort_unstable_by_key(|block| block.start);
        let states = blocks.iter().map(|block| block.counts.len()).sum::<usize>();
        let steps = blocks.iter().map(|block| block.to.len()).sum();
        let mut segment = Segment {
            first: Vec::with_capacity(states + 1),
            to: Vec::with_capacity(steps),
            action: Vec::with_capacity(steps),
        };
        segment.first.push(0);
        let mut end = 0;
        for block in blocks {
            for count in &block.counts {
                end += u32::from(*count);
                segment.first.push(end);
            }
            segment.to.extend_from_slice(&block.to);
            segment.action.extend_from_slice(&block.actions);
        }
        segment
    }

    /// By expanding every state once more and looking up where each step leads.
    fn expanded<W: Word>(walk: &dyn Walk<W>, shard: &Shard<W>, find: &impl Fn(&W) -> Id) -> Self {
        let mut segment = Segment::default();
        segment.first.reserve_exact(shard.len() + 1);
        segment.first.push(0);
        let (mut walker, mut hops) = (walk.walker(), Vec::new());
        for index in 0..shard.len() as u32 {
            let word = shard.get(index);
            walker.hops(&word, &mut hops);
            for hop in hops.iter().filter(|hop| hop.to != word) {
                segment.to.push(find(&hop.to));
                segment.action.push(hop.action);
            }
            segment.first.push(segment.to.len() as u32);
        }
        segment
    }
}

/// A set of states.
#[derive(Debug, Clone)]
pub(crate) struct BitSet(Vec<u64>);

impl BitSet {
    pub(crate) fn new(len: usize) -> Self {
        BitSet(vec![0; len.div_ceil(64)])
    }
    #[inline]
    pub(crate) fn insert(&mut self, id: Id) {
        self.0[id as usize / 64] |= 1 << (id % 64);
    }
    #[inline]
    pub(crate) fn contains(&self, id: Id) -> bool {
        self.0[id as usize / 64] >> (id % 64) & 1 == 1
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|bits| *bits == 0)
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = Id> + '_ {
        self.0.iter().enumerate().flat_map(|(at, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                if bits == 0 {
                    return None;
                }
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                Some((at * 64) as Id + bit)
            })
        })
    }
    fn zip(&self, other: &BitSet, with: impl Fn(u64, u64) -> u64) -> BitSet {
        BitSet(self.0.iter().zip(&other.0).map(|(a, b)| with(*a, *b)).collect())
    }
    /// In both.
    pub(crate) fn and(&self, other: &BitSet) -> BitSet {
        self.zip(other, |a, b| a & b)
    }
    /// In this one only.
    pub(crate) fn without(&self, other: &BitSet) -> BitSet {
        self.zip(other, |a, b| a & !b)
    }
}
