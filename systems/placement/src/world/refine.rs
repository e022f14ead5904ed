//! The world in the words of the protocol, `spec/placement` with the permit on record.
//!
//! A syncer that has read at the hub that the namespace is granted has the permit, and a runtime that
//! has read the permit while it has the lock runs: what comes after that changes nothing that the
//! protocol speaks of. The last copy of an epoch is made, for the protocol, when it is handed over.

use super::truth::{Past, Tenure, Truth, Writes};
use super::{CLUSTER_NAMES, Namespaces, boot_id};
use crate::kinds::{FORCE_RELEASE, GRANT, NAMESPACE};
use crate::spec::Placement;
use crate::spec::hub::{Extent, Hub, MOST_EPOCHS, Past as History, Phase as Said};
use crate::spec::state::{Cluster, State as Picture};
use interlock_api::names::{ANNOTATION_RUNNING, Permit};
use interlock_api::placement::{GrantStatus, Phase};
use interlock_checker::Refinement;
use interlock_kernel::metadata::is_of;
use interlock_kernel::{Object, Place, read_part};
use interlock_world::{Basis, CLUSTERS, Reading, State, World};

/// One write of the world is at most so many steps of the protocol: a claim that is filled begins and
/// ends to be, a permit that was about to be written is taken back when power goes.
const MOST_STEPS: usize = 3;

pub(super) fn refines(system: &Namespaces, world: &World<Namespaces>) -> Vec<Refinement<State>> {
    let extent =
        Extent { clusters: CLUSTERS, epochs: MOST_EPOCHS as u8, writes: MOST_EPOCHS as u8 };
    let protocol = Placement::on_record(extent, system.force);
    let name = "spec/placement, permit on record";
    vec![world.refinement(name, protocol, MOST_STEPS, picture)]
}

fn picture(_: &Namespaces, basis: &Basis<Namespaces>) -> Picture {
    let drawing = Drawing { truth: &basis.truth, past: &basis.past };
    let mut picture = Picture::default();
    picture.hub = drawing.hub();
    picture.past = drawing.history();
    let wrote: Writes = drawing.wrote();
    picture.written = wrote.len() as u8;
    picture.must = drawing.bits(&basis.truth.must);
    for (epoch, tenure) in drawing.tenures() {
        if let Some((Phase::Released, pin)) = &tenure.ending
            && tenure.is_filled
        {
            picture.set_image(epoch, drawing.bits(pin));
        }
    }
    for force in &basis.truth.forces {
        if let Some(owner) = force.owner {
            picture.force(owner, force.epoch as u8);
        }
    }
    for c in 0..CLUSTERS {
        let forced = |epoch: u8| picture.is_forced(c, epoch);
        picture.clusters[c] = drawing.cluster(c, basis, &forced);
    }
    picture
}

struct Drawing<'a> {
    truth: &'a Truth,
    past: &'a Past,
}

impl Drawing<'_> {
    fn tenures(&self) -> impl Iterator<Item = (u8, &Tenure)> {
        (1..).zip(&self.past.tenures)
    }

    /// Every epoch that ever wrote, declared lost or not.
    fn wrote(&self) -> Writes {
        self.truth.must.union(&self.past.lost).copied().collect()
    }

    /// The protocol counts writes in the order in which they were made.
    fn bits(&self, writes: &Writes) -> u8 {
        let wrote = self.wrote();
        let is_in = |(place, wrote): (usize, &(i64, u8))| u8::from(writes.contains(wrote)) << place;
        wrote.iter().enumerate().map(is_in).fold(0, |bits, bit| bits | bit)
    }

    fn granted(&self, epoch: u8, tenure: &Tenure) -> Hub {
        let (owner, pin) = (tenure.owner as u8, self.bits(&tenure.pin));
        Hub { epoch, owner, phase: Said::Granted, pin }
    }

    fn ended(&self, epoch: u8, tenure: &Tenure) -> Option<Hub> {
        let (phase, pin) = tenure.ending.as_ref()?;
        let phase = if *phase == Phase::Fenced { Said::Fenced } else { Said::Released };
        Some(Hub { phase, pin: self.bits(pin), ..self.granted(epoch, tenure) })
    }

    fn hub(&self) -> Hub {
        let Some((epoch, tenure)) = self.tenures().last() else { return Hub::default() };
        let phase = if tenure.is_revoked { Said::Revoking } else { Said::Granted };
        let held = Hub { phase, ..self.granted(epoch, tenure) };
        self.ended(epoch, tenure).unwrap_or(held)
    }

    fn history(&self) -> History {
        let mut history = History::default();
        for (epoch, tenure) in self.tenures() {
            let granted = self.granted(epoch, tenure);
            history.remember(granted);
            if tenure.is_revoked {
                history.remember(Hub { phase: Said::Revoking, ..granted });
            }
            self.ended(epoch, tenure).into_iter().for_each(|ended| history.remember(ended));
        }
        history
    }

    fn cluster(
        &self,
        c: usize,
        basis: &Basis<Namespaces>,
        is_forced: &dyn Fn(u8) -> bool,
    ) -> Cluster {
        let here = &self.truth.clusters[c];
        let released = here.released.max(self.past.closed[c]);
        let mine = || self.tenures().filter(|(_, tenure)| tenure.owner == c);
        let last = |is: fn(&Tenure) -> bool| mine().filter(|(_, it)| is(it)).last();
        let filled = last(|tenure| tenure.is_filled);
        let view = mine().find(|(epoch, _)| i64::from(*epoch) == here.epoch);
        let volume = filled.map(|(epoch, tenure)| {
            let written = here.written.get(&i64::from(epoch));
            self.bits(written.unwrap_or(&tenure.pin))
        });
        let is_handed = |tenure: &Tenure| {
            tenure.is_filled && matches!(tenure.ending, Some((Phase::Released, _)))
        };
        let mut permitted = here.permitted;
        let mut running = here.running.iter().max().copied().unwrap_or(0);
        for after in &basis.decided {
            permitted = permitted.max(after.clusters[c].permitted);
            running = running.max(after.clusters[c].running.iter().max().copied().unwrap_or(0));
        }
        for reading in basis.reading.iter().filter(|reading| reading.cluster == Some(c)) {
            let granted = granted_to(reading, c).filter(|epoch| *epoch > released);
            let is_ready = |epoch: &i64| filled.is_some_and(|(e, _)| i64::from(e) == *epoch);
            // It has seen that nobody takes it by force; who asks later comes too late.
            let is_reported = reading
                .lists
                .iter()
                .any(|(kind, found)| *kind == FORCE_RELEASE && found.is_empty());
            let granted = granted.filter(|epoch| is_reported || !is_forced(*epoch as u8));
            permitted = permitted.max(granted.filter(is_ready).unwrap_or(0));
            if here.has_lock_in_hand {
                let may_start = permit_read(reading, c, here.boots);
                let may_start = may_start.filter(|epoch| *epoch > released);
                running = running.max(may_start.unwrap_or(0));
            }
        }
        Cluster {
            view: view.map_or(Hub::default(), |(epoch, tenure)| self.granted(epoch, tenure)),
            released: released as u8,
            permitted: if here.is_off { 0 } else { permitted as u8 },
            running: running as u8,
            restarts: 0,
            off: here.is_off,
            filling: 0,
            filled: filled.map_or(0, |(epoch, _)| epoch),
            copied: last(is_handed).map_or(0, |(epoch, _)| epoch),
            volume: volume.unwrap_or(0),
        }
    }
}

/// The epoch that a syncer has read at the hub to be granted to its cluster.
fn granted_to(reading: &Reading, c: usize) -> Option<i64> {
    let is_grant =
        |(place, object): &&(Place, Object)| *place == Place::HUB && is_of(object, &GRANT);
    let (_, grant) = reading.objects.iter().find(is_grant)?;
    let status: GrantStatus = read_part(grant, "status").ok().flatten()?;
    let is_mine = status.owner.is_some_and(|owner| owner.name == CLUSTER_NAMES[c]);
    (is_mine && status.phase == Phase::Granted).then_some(status.epoch)
}

/// The epoch that a runtime has read to be permitted.
fn permit_read(reading: &Reading, c: usize, boots: u8) -> Option<i64> {
    if !reading.controller.ends_with("/runtime") {
        return None;
    }
    let is_here =
        |(place, object): &&(Place, Object)| *place == Place::CLUSTER && is_of(object, &NAMESPACE);
    let (_, here) = reading.objects.iter().find(is_here)?;
    let note = here.metadata.annotations.as_ref()?.get(ANNOTATION_RUNNING)?;
    let permit = Permit::read(note).filter(|permit| permit.boot_id == boot_id(c, boots))?;
    Some(permit.epoch)
}
