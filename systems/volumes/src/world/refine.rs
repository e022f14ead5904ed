//! The world in the words of the protocol, `spec/volumes`.
//!
//! The protocol has no steps that are under way. A claim that is deleted while the populator has read
//! that it is not counts as deleted, there, when that step is over; and so does a snapshot that somebody
//! deletes by hand while a step rests on it, or while the storage pours it: until then nothing differs.
//! The protocol knows of nobody who deletes a claim that is bound: for it such a claim stays as it was.

use super::first::DATA;
use super::truth::{Claim, Past, Prime, Truth, Volume};
use super::{Syncs, first};
use crate::kinds::{CLAIM, SNAPSHOT_KIND};
use crate::objects::{is_deleting, name_of, namespace_of, uid_of};
use crate::spec::state::{self as protocol, Snapshot, VolumeState};
use crate::spec::{self, Destination, Volumes};
use crate::sync::snapshots::{SNAPSHOT_PREFIX, is_ready};
use interlock_checker::Refinement;
use interlock_kernel::Object;
use interlock_kernel::metadata::is_of;
use interlock_world::{Basis, State, World};

/// One write of the world is at most so many steps of the protocol: who lets go of a snapshot that was
/// deleted by hand shows that it was, lets go, and so it is gone.
const MOST_STEPS: usize = 3;

pub(super) fn refines(system: &Syncs, world: &World<Syncs>) -> Vec<Refinement<State>> {
    // A sync whose snapshot somebody deletes before it is published takes another.
    let (snapshots, claims) = (system.syncs + system.vandals, system.claims);
    let protocol = Volumes::sized(snapshots as usize, claims as usize, system.vandals as u8);
    let protocol = protocol.beginning_in(start(system));
    vec![world.refinement("spec/volumes", protocol, MOST_STEPS, picture)]
}

/// The state in which the world begins: the protocol reaches it too.
pub(super) fn start(system: &Syncs) -> spec::State {
    let mut start = spec::State::default();
    for snapshot in 0..system.done as usize {
        start.snapshots[snapshot] = Snapshot::Ready;
        start.taken |= 1 << snapshot;
        start.latest = Some(snapshot as u8);
    }
    if system.claims > 0 {
        start.claims[0].phase = protocol::Phase::Pending;
        start.claims[0].holds = u8::from(system.done == 2);
    }
    start
}

fn picture(system: &Syncs, basis: &Basis<Syncs>) -> spec::State {
    let snapshots = basis.past.with_snapshots_of(&basis.truth);
    let drawing = Drawing { system, basis, truth: &basis.truth, past: &basis.past, snapshots };
    let mut picture = spec::State {
        destination: Destination::Live,
        latest: drawing.latest(),
        ..Default::default()
    };
    for (place, uid) in drawing.snapshots.iter().enumerate() {
        picture.taken |= 1 << place;
        let is_by_hand = basis.truth.by_hand.contains(uid);
        let put_off = drawing.put_off(uid).filter(|_| is_by_hand);
        picture.snapshots[place] = put_off.unwrap_or_else(|| drawing.snapshot(uid));
        picture.vandalised += u8::from(is_by_hand && put_off.is_none());
    }
    for place in 0..system.claims {
        picture.claims[place as usize] = drawing.claim(place);
    }
    picture
}

struct Drawing<'a> {
    system: &'a Syncs,
    basis: &'a Basis<Syncs>,
    truth: &'a Truth,
    past: &'a Past,
    /// By uid, in the order in which they were taken.
    snapshots: Vec<String>,
}

/// The uid of one of the claims that have the name one after the other.
fn uid_of_claim(place: u32) -> String {
    format!("persistentvolumeclaim-{DATA}-{place}")
}

fn is_prime(holder: &str) -> bool {
    !holder.starts_with(&format!("persistentvolumeclaim-{DATA}-"))
}

impl Drawing<'_> {
    fn place(&self, snapshot: &str) -> Option<u8> {
        self.snapshots.iter().position(|uid| uid == snapshot).map(|place| place as u8)
    }

    fn latest(&self) -> Option<u8> {
        self.place(self.truth.object.as_ref()?.published.as_ref()?)
    }

    /// A snapshot, whoever deleted it.
    fn snapshot(&self, uid: &str) -> Snapshot {
        let Some(snapshot) = self.truth.snapshots.get(uid) else { return Snapshot::None };
        match (snapshot.is_terminating, snapshot.is_ready) {
            (true, _) if snapshot.holders.is_empty() => Snapshot::None,
            (true, _) => Snapshot::Dying,
            (false, true) => Snapshot::Ready,
            (false, false) => Snapshot::New,
        }
    }

    /// What a snapshot was before somebody deleted it by hand, if something rests on that still.
    fn put_off(&self, uid: &str) -> Option<Snapshot> {
        let snapshot = self.truth.snapshots.get(uid);
        if snapshot.is_some_and(|snapshot| snapshot.holders.iter().any(|holder| is_prime(holder))) {
            return Some(Snapshot::Ready);
        }
        let published = |truth: &Truth| truth.object.as_ref().and_then(|it| it.published.clone());
        let is_poured = |truth: &Truth| truth.primes.iter().any(|prime| prime.snapshot == uid);
        let will_rest_on_it = |after: &Truth| {
            published(after) != published(self.truth) && published(after).as_deref() == Some(uid)
                || is_poured(after) && !is_poured(self.truth)
        };
        if self.basis.decided.iter().any(|after| will_rest_on_it(after)) {
            return Some(Snapshot::Ready);
        }
        let found =
            |it: &&Object| is_of(it, &SNAPSHOT_KIND) && uid_of(it) == uid && !is_deleting(it);
        let snapshot = self.read().find(found)?;
        Some(if is_ready(snapshot) { Snapshot::Ready } else { Snapshot::New })
    }

    /// All that steps under way have read, one by one or among others.
    fn read(&self) -> impl Iterator<Item = &Object> {
        self.basis.reading.iter().flat_map(|reading| {
            let one_by_one = reading.objects.iter().map(|(_, object)| object);
            one_by_one.chain(reading.lists.iter().flat_map(|(_, found)| found))
        })
    }

    fn claim(&self, place: u32) -> protocol::Claim {
        let uid = uid_of_claim(place);
        let held = |(snapshot, uid_of_snapshot): (usize, &String)| {
            let snapshot_found = self.truth.snapshots.get(uid_of_snapshot);
            let is_held = snapshot_found.is_some_and(|found| found.holders.contains(&uid));
            u8::from(is_held) << snapshot
        };
        let holds = self.snapshots.iter().enumerate().map(held).fold(0, |set, bit| set | bit);
        let prime = self.truth.primes.iter().find(|prime| prime.heir == uid);
        let phase = self.phase(place, &uid);
        let pictured = match (prime, prime.and_then(|prime| self.place(&prime.snapshot))) {
            (Some(prime), Some(snapshot)) if prime.phase == "Bound" || prime.phase == "Lost" => {
                protocol::Prime::Bound(snapshot)
            }
            (Some(_), Some(snapshot)) => protocol::Prime::Pending(snapshot),
            _ => protocol::Prime::None,
        };
        protocol::Claim { phase, holds, prime: pictured, volume: self.volume(&uid, phase, prime) }
    }

    fn phase(&self, place: u32, uid: &String) -> protocol::Phase {
        let made = self.system.claims - self.truth.to_come;
        if self.past.bound.contains_key(uid) {
            return protocol::Phase::Bound;
        }
        let Some(claim) = self.truth.claim.as_ref().filter(|claim| claim.uid == *uid) else {
            return if place < made { protocol::Phase::Gone } else { protocol::Phase::None };
        };
        match claim.is_terminating && !self.is_filled_still(claim) {
            true => protocol::Phase::Deleting,
            false => protocol::Phase::Pending,
        }
    }

    /// Whether the populator is about to do something for a claim of which it has read that it is
    /// not being deleted.
    fn is_filled_still(&self, claim: &Claim) -> bool {
        let (namespace, name) = (first::SHOP, DATA);
        let is_it = |it: &&Object| is_of(it, &CLAIM) && uid_of(it) == claim.uid;
        let is_alive = |it: &Object| !is_deleting(it);
        let named = |it: &&Object| (namespace_of(it), name_of(it)) == (namespace, name);
        let holds = |truth: &Truth| {
            truth
                .snapshots
                .values()
                .filter(|snapshot| snapshot.holders.contains(&claim.uid))
                .count()
        };
        let primes =
            |truth: &Truth| truth.primes.iter().filter(|prime| prime.heir == claim.uid).count();
        let volumes = |truth: &Truth| {
            let of = |volume: &&Volume| {
                volume.heir.as_ref() == Some(&claim.uid) || volume.owner == claim.uid
            };
            let steps = |volume: &Volume| {
                usize::from(volume.is_kept) + usize::from(volume.owner == claim.uid)
            };
            truth.volumes.values().filter(of).map(steps).sum::<usize>()
        };
        let goes_on = |after: &Truth| {
            holds(after) > holds(self.truth)
                || primes(after) > primes(self.truth)
                || volumes(after) > volumes(self.truth)
        };
        self.read().filter(is_it).filter(named).any(is_alive)
            || self.basis.decided.iter().any(|after| goes_on(after))
    }

    fn volume(
        &self,
        uid: &String,
        phase: protocol::Phase,
        prime: Option<&Prime>,
    ) -> protocol::Volume {
        if phase == protocol::Phase::Bound {
            let data = self.past.bound.get(uid).and_then(|snapshot| self.place(snapshot));
            return protocol::Volume { place: VolumeState::Bound, data, keep: true };
        }
        // What is left of a claim that is undone is deleted in its own time.
        if phase != protocol::Phase::Pending && prime.is_none() {
            return protocol::Volume::default();
        }
        let data = |volume: &Volume| {
            let snapshot = volume.inside.as_ref()?.of.as_ref()?;
            self.place(snapshot.strip_prefix(SNAPSHOT_PREFIX)?)
        };
        let mut volumes = self.truth.volumes.values();
        if let Some(volume) = volumes.find(|volume| volume.owner == *uid) {
            return protocol::Volume { place: VolumeState::Claim, data: data(volume), keep: true };
        }
        let bound = prime.filter(|prime| prime.phase == "Bound");
        let of_prime = bound
            .and_then(|prime| self.truth.volumes.values().find(|volume| volume.owner == prime.uid));
        match of_prime {
            Some(volume) => protocol::Volume {
                place: VolumeState::Prime,
                data: data(volume),
                keep: volume.is_kept,
            },
            None => protocol::Volume::default(),
        }
    }
}
