//! All steps between all states, for questions about infinite behaviours.

use crate::edges::{Block, parted};
use crate::explore::{Explored, hold, read};
use crate::model::ActionId;
use crate::store::{SHARDS, Shard, shard_of};
use crate::walk::Walk;
use crate::word::Word;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A state by its number in the graph.
pub(crate) type Id = u32;

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
    explored: Explored<W>,
    /// The first id of each shard, and the number of states at the end.
    base: Vec<Id>,
    segments: Vec<Segment>,
    pub(crate) initial: Vec<Id>,
}

impl<W: Word> Graph<W> {
    /// The graph of what was explored. Where the steps were not noted on the way, every state is
    /// expanded once more.
    pub(crate) fn new(walk: &dyn Walk<W>, mut explored: Explored<W>, workers: usize) -> Self {
        let mut base = vec![0];
        for shard in 0..SHARDS {
            base.push(base[shard] + explored.read(shard).len() as Id);
        }
        let noted = explored.edges.take().map(|shards| {
            shards.into_iter().map(|blocks| Mutex::new(Some(blocks))).collect::<Vec<_>>()
        });
        let segment = |number: usize| match &noted {
            Some(blocks) => {
                let blocks = hold(&blocks[number]).take().unwrap_or_default();
                Segment::joined(blocks, &base)
            }
            None => {
                let shards: Vec<_> = explored.shards.iter().map(read).collect();
                let find = |word: &W| {
                    let shard = shard_of(word.mix());
                    base[shard] + shards[shard].find(word).expect("every successor was explored")
                };
                Segment::expanded(walk, &shards[number], &find)
            }
        };
        let next_shard = AtomicUsize::new(0);
        let segments: Vec<Mutex<Segment>> = (0..SHARDS).map(|_| Mutex::default()).collect();
        std::thread::scope(|scope| {
            for _ in 0..workers.clamp(1, SHARDS) {
                scope.spawn(|| {
                    loop {
                        let number = next_shard.fetch_add(1, Ordering::Relaxed);
                        if number >= SHARDS {
                            return;
                        }
                        *hold(&segments[number]) = segment(number);
                    }
                });
            }
        });
        let segments = segments
            .into_iter()
            .map(|segment| segment.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
            .collect();
        let mut graph = Graph { explored, base, segments, initial: Vec::new() };
        graph.initial = walk.initial().iter().map(|word| graph.id(word)).collect();
        graph
    }

    pub(crate) fn len(&self) -> usize {
        self.base[SHARDS] as usize
    }

    fn id(&self, word: &W) -> Id {
        let shard = shard_of(word.mix());
        self.base[shard] + self.explored.read(shard).find(word).expect("the state was explored")
    }

    #[inline]
    fn shard_of(&self, id: Id) -> usize {
        self.base.partition_point(|base| *base <= id) - 1
    }

    pub(crate) fn word(&self, id: Id) -> W {
        let shard = self.shard_of(id);
        self.explored.read(shard).get(id - self.base[shard])
    }

    /// How far a state is from the start, and the state: an order that no worker's speed changes.
    pub(crate) fn rank(&self, id: Id) -> (u32, W) {
        let number = self.shard_of(id);
        let shard = self.explored.read(number);
        let index = id - self.base[number];
        (shard.levels().partition_point(|end| *end <= index) as u32, shard.get(index))
    }

    /// Where the steps out of a state lead, and by which actions.
    #[inline]
    pub(crate) fn edges(&self, id: Id) -> (&[Id], &[ActionId]) {
        let shard = self.shard_of(id);
        let (segment, index) = (&self.segments[shard], (id - self.base[shard]) as usize);
        let range = segment.first[index] as usize..segment.first[index + 1] as usize;
        (&segment.to[range.clone()], &segment.action[range])
    }

    /// The states in which a predicate holds.
    pub(crate) fn where_holds(&self, holds: impl Fn(&W) -> bool) -> BitSet {
        let mut set = BitSet::new(self.len());
        let mut id = 0;
        for shard in 0..SHARDS {
            let shard = self.explored.read(shard);
            for index in 0..shard.len() as u32 {
                if holds(&shard.get(index)) {
                    set.insert(id);
                }
                id += 1;
            }
        }
        set
    }
}

impl Segment {
    /// From the blocks noted during exploration, in whatever order they came.
    fn joined(mut blocks: Vec<Block>, base: &[Id]) -> Self {
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
            segment.to.extend(block.to.iter().map(|place| {
                let (shard, index) = parted(*place);
                base[shard] + index
            }));
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
    /// All `len` states.
    pub(crate) fn full(len: usize) -> BitSet {
        let mut set = BitSet(vec![u64::MAX; len.div_ceil(64)]);
        if let (Some(last), 1..) = (set.0.last_mut(), len % 64) {
            *last = (1 << (len % 64)) - 1;
        }
        set
    }
}
