//! The world as the protocol sees it: what a look has decided counts as done.
//!
//! A syncer that has looked at the hub has the permit, and a runtime that has looked at the permit
//! runs: what is written later changes nothing that the protocol speaks of.

use super::World;
use super::state::{Ending, Last, Phase, Process, Seen, State, Tenure, View};
use crate::spec::hub::{Hub, Past, Phase as Said};
use crate::spec::state::Cluster;
use crate::spec::{self, Placement};
use interlock_checker::Refinement;

impl World {
    /// The protocol has one image for each epoch, and makes it at once: so this is for namespaces with
    /// one claim, whose copies take no time.
    pub(super) fn refined(&self) -> Vec<Refinement<State>> {
        if self.claims != 1 || self.slow || !self.flaws.is_empty() {
            return Vec::new();
        }
        let protocol = Placement::on_record(self.extent, self.force);
        let clusters = self.extent.clusters;
        let picture = move |state: &State| pictured(state, clusters);
        vec![Refinement::of("spec/placement, permit on record", protocol, picture)]
    }
}

fn granted(state: &State, epoch: u8) -> Hub {
    let (pin, _) = state.incoming(epoch);
    Hub { epoch, owner: state.tenure(epoch).owner, phase: Said::Granted, pin }
}

fn ended(state: &State, epoch: u8) -> Option<Hub> {
    let tenure = state.tenure(epoch);
    let phase = match tenure.ending {
        Ending::Open => return None,
        Ending::Released => Said::Released,
        Ending::Fenced => Said::Fenced,
    };
    Some(Hub { phase, pin: tenure.pin, ..granted(state, epoch) })
}

fn hub(state: &State) -> Hub {
    match state.phase() {
        Phase::Unassigned => Hub::default(),
        Phase::Granted => granted(state, state.epoch),
        Phase::Revoking => Hub { phase: Said::Revoking, ..granted(state, state.epoch) },
        Phase::Released | Phase::Fenced => {
            ended(state, state.epoch).expect("this phase is how an epoch ends")
        }
    }
}

fn past(state: &State) -> Past {
    let mut past = Past::default();
    for (epoch, tenure) in (1..=state.epoch).zip(&state.tenures) {
        past.remember(granted(state, epoch));
        if tenure.revoked {
            past.remember(Hub { phase: Said::Revoking, ..granted(state, epoch) });
        }
        if let Some(ended) = ended(state, epoch) {
            past.remember(ended);
        }
    }
    past
}

fn viewed(state: &State, c: usize, view: View) -> Hub {
    if view.epoch == 0 {
        return Hub::default();
    }
    let grant = granted(state, view.epoch);
    match view.seen {
        Seen::Granted => grant,
        Seen::Revoking => Hub { phase: Said::Revoking, ..grant },
        // Of another's epoch it matters only that it is another's.
        Seen::NotMine if usize::from(grant.owner) == c => ended(state, view.epoch).unwrap_or(grant),
        Seen::NotMine => grant,
    }
}

fn pictured(state: &State, clusters: usize) -> spec::State {
    let mut picture = spec::State::default();
    picture.hub = hub(state);
    picture.past = past(state);
    picture.written = state.written;
    picture.must = state.must;
    for (epoch, tenure) in (1..=state.epoch).zip(&state.tenures) {
        if tenure.made != 0 {
            picture.set_image(epoch, tenure.image);
        }
        if state.is_forced(tenure.owner.into(), epoch) {
            picture.force(tenure.owner.into(), epoch);
        }
    }
    for c in 0..clusters {
        picture.clusters[c] = cluster_pictured(state, c);
    }
    picture
}

fn cluster_pictured(state: &State, c: usize) -> Cluster {
    let cluster = &state.clusters[c];
    let permitted = match cluster.running {
        _ if cluster.permitting => cluster.epoch,
        running if running.lapsed => 0,
        running => running.epoch,
    };
    let running = match cluster.process {
        Process::None | Process::Locked => 0,
        Process::Looked(epoch) | Process::Runs(epoch) => epoch,
    };
    let last_epoch = |is: &dyn Fn(&Tenure) -> bool| {
        let mine = |tenure: &Tenure| usize::from(tenure.owner) == c && is(tenure);
        let tenures = (1..=state.epoch).zip(&state.tenures);
        tenures.filter(|(_, tenure)| mine(tenure)).map(|(epoch, _)| epoch).max().unwrap_or(0)
    };
    Cluster {
        view: cluster.view.map_or(Hub::default(), |view| viewed(state, c, view)),
        released: cluster.released,
        permitted,
        running,
        restarts: 0,
        off: cluster.off,
        filling: 0,
        filled: last_epoch(&|tenure| tenure.filled != 0),
        copied: last_epoch(&|tenure| tenure.last[0] == Last::Made),
        volume: cluster.volume,
    }
}
