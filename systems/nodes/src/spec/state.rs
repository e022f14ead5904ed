//! The variables of the nodes protocol, how they are packed and how they are shown.

use super::NodesHub;
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{Coder, Rng};

pub(super) const MOST_TENANTS: usize = 3;
pub(super) const MOST_DPUS: usize = 3;
pub(super) const MOST_EPOCHS: usize = 4;

/// Where the node stands at the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// In the pool.
    #[default]
    Available,
    /// Given to a tenant.
    Bound,
    /// Revoked, not yet known clean.
    Releasing,
}

const PHASES: [Phase; 3] = [Phase::Available, Phase::Bound, Phase::Releasing];

/// A tenant by its place, or nobody.
pub(super) type Owner = Option<u8>;

/// The right to program the node for one tenant under one epoch; also the record that claims it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) tenant: u8,
    pub(super) epoch: u8,
}

/// What a DPU last read of the node at the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct View {
    pub(super) epoch: u8,
    pub(super) owner: Owner,
    pub(super) floor: u8,
}

/// One DPU: its hardware, its agent, and what the hub knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Dpu {
    pub(super) view: View,
    pub(super) loaded: bool,
    pub(super) entry: Option<Grant>,
    pub(super) online: bool,
    pub(super) powered: bool,
    pub(super) connected: bool,
    /// Floors at which it reported clean: bit `floor - 1`.
    pub(super) acks: u8,
    /// Reports still under way.
    pub(super) late_acks: u8,
    /// The epoch up to which its power was seen off.
    pub(super) evidence: u8,
}

impl Dpu {
    /// The entry that forwards packets now.
    pub(super) fn live(&self) -> Option<Grant> {
        self.entry.filter(|_| self.powered)
    }

    /// Whether what is programmed is at or under the floor that the DPU knows.
    pub(super) fn holds_revoked(&self) -> bool {
        self.entry.is_some_and(|entry| entry.epoch <= self.view.floor)
    }

    pub(super) fn reported(&self, floor: u8) -> bool {
        (self.acks | self.late_acks) & bit(floor) != 0
    }

    pub(super) fn forget_view(&mut self) {
        self.online = false;
        self.loaded = false;
        self.view = View::default();
    }
}

/// The variables of the specification. `hist` is a function of the rest and is not stored: an epoch
/// is given to one tenant, then revoked, then returned, so who had which tells all that ever was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub(super) phase: Phase,
    pub(super) owner: Owner,
    pub(super) epoch: u8,
    pub(super) floor: u8,
    /// Whom each epoch was given to: `bound`.
    pub(super) given: [Owner; MOST_EPOCHS],
    /// Epochs whose tenant was told: bit `epoch - 1`.
    pub(super) delivered: u8,
    /// Epochs whose attachment is written but has not landed.
    pub(super) late: u8,
    /// Attachments that landed, forged ones too; see [`NodesHub::place`].
    pub(super) landed: u16,
    pub(super) dpus: [Dpu; MOST_DPUS],
    pub(super) faults: u8,
    pub(super) forged: u8,
}

pub(super) fn bit(epoch: u8) -> u8 {
    1 << (epoch - 1)
}

fn width(most: u8) -> u32 {
    u8::BITS - most.leading_zeros()
}

impl NodesHub {
    /// The place of a grant among all that could be written; a forged one may name the next epoch.
    pub(super) fn place(&self, grant: Grant) -> u8 {
        grant.tenant * (self.epochs + 1) + grant.epoch - 1
    }

    pub(super) fn grant_at(&self, place: u8) -> Grant {
        Grant { tenant: place / (self.epochs + 1), epoch: place % (self.epochs + 1) + 1 }
    }

    pub(super) fn places(&self) -> u8 {
        self.tenants * (self.epochs + 1)
    }

    pub(super) fn landed<'a>(&'a self, state: &'a State) -> impl Iterator<Item = Grant> + 'a {
        (0..self.places())
            .filter(|place| state.landed & (1 << place) != 0)
            .map(|place| self.grant_at(place))
    }

    pub(super) fn granted<'a>(
        &self,
        state: &'a State,
        epochs: u8,
    ) -> impl Iterator<Item = Grant> + 'a {
        (1..=self.epochs).filter(move |epoch| epochs & bit(*epoch) != 0).filter_map(|epoch| {
            let tenant = state.given[usize::from(epoch) - 1]?;
            Some(Grant { tenant, epoch })
        })
    }

    /// Everything that the hub ever said of the node: `hist`.
    pub(super) fn past_views(&self, state: &State) -> Vec<View> {
        let mut past = vec![View::default()];
        for Grant { tenant, epoch } in self.granted(state, u8::MAX) {
            past.push(View { epoch, owner: Some(tenant), floor: epoch - 1 });
            if epoch < state.epoch || state.phase != Phase::Bound {
                past.push(View { epoch, owner: Some(tenant), floor: epoch });
            }
            if epoch < state.epoch || state.phase == Phase::Available {
                past.push(View { epoch, owner: None, floor: epoch });
            }
        }
        past
    }
}

impl State {
    pub(super) fn code(&mut self, model: &NodesHub, coder: &mut Coder) {
        let epoch_width = width(model.epochs);
        coder.of(&mut self.phase, &PHASES);
        code_owner(coder, &mut self.owner, model.tenants);
        coder.u8(&mut self.epoch, epoch_width);
        coder.u8(&mut self.floor, epoch_width);
        for owner in &mut self.given[..usize::from(model.epochs)] {
            code_owner(coder, owner, model.tenants);
        }
        coder.u8(&mut self.delivered, u32::from(model.epochs));
        coder.u8(&mut self.late, u32::from(model.epochs));
        coder.u16(&mut self.landed, u32::from(model.places()));
        for dpu in &mut self.dpus[model.each_dpu()] {
            coder.u8(&mut dpu.view.epoch, epoch_width);
            code_owner(coder, &mut dpu.view.owner, model.tenants);
            coder.u8(&mut dpu.view.floor, epoch_width);
            coder.bool(&mut dpu.loaded);
            coder.bool(&mut dpu.online);
            coder.bool(&mut dpu.powered);
            coder.bool(&mut dpu.connected);
            let mut entry = dpu.entry.map_or(0, |grant| model.place(grant) + 1);
            coder.u8(&mut entry, width(model.places()));
            dpu.entry = entry.checked_sub(1).map(|place| model.grant_at(place));
            coder.u8(&mut dpu.acks, u32::from(model.epochs));
            coder.u8(&mut dpu.late_acks, u32::from(model.epochs));
            coder.u8(&mut dpu.evidence, epoch_width);
        }
        coder.u8(&mut self.faults, width(model.faults));
        coder.u8(&mut self.forged, width(model.forged));
    }

    pub(super) fn describe(&self, model: &NodesHub) -> Vec<(&'static str, String)> {
        let each = |show: &dyn Fn(&Dpu) -> String| {
            let one = |d: usize| format!("d{} :> {}", d + 1, show(&self.dpus[d]));
            format!("({})", model.each_dpu().map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let grants = |epochs: u8| set(model.granted(self, epochs).map(show_grant));
        let reports = |of: &dyn Fn(&Dpu) -> u8| {
            set(model.each_dpu().flat_map(|d| {
                let floors = of(&self.dpus[d]);
                let floors = (1..=model.epochs).filter(move |floor| floors & bit(*floor) != 0);
                floors.map(move |floor| format!("<<d{}, {floor}>>", d + 1)).collect::<Vec<_>>()
            }))
        };
        vec![
            ("st", format!("\"{:?}\"", self.phase)),
            ("owner", show_owner(self.owner)),
            ("ep", self.epoch.to_string()),
            ("floor", self.floor.to_string()),
            ("bound", grants(u8::MAX)),
            ("dlv", grants(self.delivered)),
            ("late", grants(self.late)),
            ("ever", set(model.landed(self).map(show_grant))),
            ("view", each(&|dpu| show_view(&dpu.view))),
            ("loaded", each(&|dpu| boolean(dpu.loaded))),
            ("hw", each(&|dpu| set(dpu.entry.into_iter().map(show_grant)))),
            ("online", each(&|dpu| boolean(dpu.online))),
            ("power", each(&|dpu| boolean(dpu.powered))),
            ("netM", each(&|dpu| boolean(dpu.connected))),
            ("acks", reports(&|dpu| dpu.acks)),
            ("lateAck", reports(&|dpu| dpu.late_acks)),
            ("evid", each(&|dpu| dpu.evidence.to_string())),
            ("f", self.faults.to_string()),
            ("forge", self.forged.to_string()),
            ("hist", set(model.past_views(self).iter().map(show_view))),
        ]
    }

    /// The state with tenants and DPUs renamed, in the `number`-th way of all.
    pub(super) fn permuted(&self, model: &NodesHub, number: usize) -> State {
        let tenants = usize::from(model.tenants);
        let of_tenants = arrangements(tenants);
        let tenants: [_; MOST_TENANTS] = arrangement(tenants, number % of_tenants);
        let dpus: [_; MOST_DPUS] = arrangement(model.dpus.into(), number / of_tenants);
        let tenant = |tenant: u8| tenants[usize::from(tenant)] as u8;
        let owner = |owner: Owner| owner.map(tenant);
        let grant = |grant: Grant| Grant { tenant: tenant(grant.tenant), ..grant };
        let mut image = self.clone();
        image.owner = owner(self.owner);
        image.given = self.given.map(owner);
        image.landed = 0;
        for old in model.landed(self) {
            image.landed |= 1 << model.place(grant(old));
        }
        for d in model.each_dpu() {
            let mut dpu = self.dpus[d];
            dpu.view.owner = owner(dpu.view.owner);
            dpu.entry = dpu.entry.map(grant);
            image.dpus[dpus[d]] = dpu;
        }
        image
    }

    pub(super) fn arbitrary(model: &NodesHub, rng: &mut Rng) -> State {
        let below = |rng: &mut Rng, bound: u8| rng.below(usize::from(bound)) as u8;
        let owner = |rng: &mut Rng| below(rng, model.tenants + 1).checked_sub(1);
        let mask = |rng: &mut Rng| below(rng, 1 << model.epochs);
        let mut state = State {
            phase: PHASES[rng.below(PHASES.len())],
            owner: owner(rng),
            epoch: below(rng, model.epochs + 1),
            floor: below(rng, model.epochs + 1),
            landed: rng.below(1 << model.places()) as u16,
            faults: below(rng, model.faults + 1),
            forged: below(rng, model.forged + 1),
            ..State::default()
        };
        for epoch in 1..=state.epoch {
            state.given[usize::from(epoch) - 1] = Some(below(rng, model.tenants));
        }
        let given = bit(state.epoch + 1) - 1;
        state.delivered = mask(rng) & given;
        state.late = mask(rng) & state.delivered;
        for dpu in &mut state.dpus[model.each_dpu()] {
            let (epoch, floor) = (below(rng, model.epochs + 1), below(rng, model.epochs + 1));
            *dpu = Dpu {
                view: View { epoch, owner: owner(rng), floor },
                loaded: rng.flip(),
                entry: below(rng, model.places() + 1).checked_sub(1).map(|p| model.grant_at(p)),
                online: rng.flip(),
                powered: rng.flip(),
                connected: rng.flip(),
                acks: mask(rng),
                late_acks: mask(rng),
                evidence: below(rng, model.epochs + 1),
            };
        }
        state
    }
}

fn code_owner(coder: &mut Coder, owner: &mut Owner, tenants: u8) {
    let mut number = owner.map_or(0, |tenant| tenant + 1);
    coder.u8(&mut number, width(tenants));
    *owner = number.checked_sub(1);
}

fn boolean(value: bool) -> String {
    if value { "TRUE" } else { "FALSE" }.to_owned()
}

fn set(members: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

fn show_owner(owner: Owner) -> String {
    owner.map_or_else(|| "\"none\"".to_owned(), |tenant| format!("t{}", tenant + 1))
}

fn show_grant(grant: Grant) -> String {
    format!("<<t{}, {}>>", grant.tenant + 1, grant.epoch)
}

fn show_view(view: &View) -> String {
    let View { epoch, owner, floor } = *view;
    format!("[ep |-> {epoch}, owner |-> {}, floor |-> {floor}]", show_owner(owner))
}
