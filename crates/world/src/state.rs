//! A state of the world: a handful of numbers.

use crate::server::{Slot, Version};
use interlock_checker::Coder;

/// How many clusters a world has.
pub const CLUSTERS: usize = 2;
/// How many objects can be out of date at once, over all caches.
pub(crate) const MOST_STALE: usize = 2;
/// How many steps can be under way at once.
pub(crate) const MOST_FLIGHTS: usize = 2;

/// One state. Every number is one of something that the world has interned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct State {
    /// The hub and the clusters.
    pub(crate) servers: [u32; 1 + CLUSTERS],
    pub(crate) machines: [u32; CLUSTERS],
    /// What caches show that is out of date, sorted; unused places at the end.
    pub(crate) stale: [Stale; MOST_STALE],
    /// Steps under way, from 1 on, sorted from the largest; 0: none.
    pub(crate) flights: [u32; MOST_FLIGHTS],
    pub(crate) chance: u32,
    pub(crate) past: u32,
    /// Which of the times it is.
    pub(crate) time: u32,
    /// How many crashes there were, where they are counted.
    pub(crate) crashes: u32,
    /// What went wrong in the world itself, from 1 on; 0: nothing.
    pub(crate) trouble: u32,
}

/// An object that the cache of a program shows as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Stale {
    /// The program, from 1 on; 0: this place is not used.
    pub(crate) program: u8,
    /// 0: the hub; else the cluster, from 1 on.
    pub(crate) server: u8,
    pub(crate) slot: Slot,
    pub(crate) version: Version,
}

impl Stale {
    /// 0: it is an object of the hub; 1: of a cluster.
    pub(crate) fn place(&self) -> u8 {
        u8::from(self.server != 0)
    }
}

impl State {
    pub(crate) fn code(&mut self, coder: &mut Coder) {
        for server in &mut self.servers {
            coder.u32(server, 21);
        }
        for machine in &mut self.machines {
            coder.u32(machine, 20);
        }
        for stale in &mut self.stale {
            coder.u8(&mut stale.program, 4);
            coder.u8(&mut stale.server, 2);
            coder.u32(&mut stale.slot, 9);
            coder.u32(&mut stale.version, 18);
        }
        for flight in &mut self.flights {
            coder.u32(flight, 22);
        }
        coder.u32(&mut self.chance, 16);
        coder.u32(&mut self.past, 18);
        coder.u32(&mut self.time, 2);
        coder.u32(&mut self.crashes, 2);
        coder.u32(&mut self.trouble, 4);
    }

    /// How many objects are out of date.
    pub(crate) fn stale_count(&self) -> usize {
        self.stale.iter().filter(|stale| stale.program != 0).count()
    }

    pub(crate) fn flight_count(&self) -> usize {
        self.flights.iter().filter(|flight| **flight != 0).count()
    }

    /// What is out of date in the cache of one program.
    pub(crate) fn stale_of(&self, program: usize) -> [Stale; MOST_STALE] {
        let mut own = [Stale::default(); MOST_STALE];
        let all = self.stale.iter().filter(|stale| usize::from(stale.program) == program + 1);
        own.iter_mut().zip(all).for_each(|(own, stale)| *own = *stale);
        own
    }

    /// A cache that shows an object of old goes on showing it: it may be as old as anything.
    pub(crate) fn can_miss(&self, missed: &Stale) -> bool {
        let of = |it: &Stale| (it.program, it.server, it.slot);
        !self.stale.iter().any(|known| of(known) == of(missed))
    }

    pub(crate) fn add_stale(&mut self, stale: Stale) {
        let free = self.stale.iter_mut().find(|stale| stale.program == 0);
        *free.expect("the bound leaves room") = stale;
        self.sort();
    }

    pub(crate) fn drop_stale(&mut self, is_dropped: impl Fn(&Stale) -> bool) {
        for stale in &mut self.stale {
            if stale.program != 0 && is_dropped(stale) {
                *stale = Stale::default();
            }
        }
        self.sort();
    }

    pub(crate) fn add_flight(&mut self, flight: u32) {
        let free = self.flights.iter_mut().find(|flight| **flight == 0);
        *free.expect("the bound leaves room") = flight;
        self.sort();
    }

    pub(crate) fn replace_flight(&mut self, from: u32, to: u32) {
        let place = self.flights.iter_mut().find(|flight| **flight == from);
        *place.expect("it is under way") = to;
        self.sort();
    }

    pub(crate) fn sort(&mut self) {
        self.stale.sort_unstable_by(|one, other| other.cmp(one));
        self.flights.sort_unstable_by(|one, other| other.cmp(one));
    }
}
