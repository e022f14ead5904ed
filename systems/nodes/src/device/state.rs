//! The variables of the device protocol, how they are packed and how they are shown.

use super::NodesDevice;
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{Coder, Rng};

pub(super) const MOST_TENANTS: usize = 2;
pub(crate) const MOST_DPUS: usize = 2;
pub(super) const MOST_EPOCHS: usize = 3;
pub(crate) const MOST_UIDS: usize = 2;
pub(super) const MOST_FAULTS: usize = 3;

/// The node at the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Phase {
    /// In the pool.
    Available,
    /// Given to a tenant.
    Bound,
    /// Revoked, or new; not yet known to be clean.
    #[default]
    Releasing,
}

const PHASES: [Phase; 3] = [Phase::Available, Phase::Bound, Phase::Releasing];

/// A tenant by its place, or none.
pub(crate) type Owner = Option<u8>;

/// What an attach call asks for, and what is programmed when it took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Grant {
    pub(crate) uid: u8,
    pub(crate) tenant: u8,
    pub(crate) epoch: u8,
}

/// The floor of one node: what an adopt call makes of a record, and what a report says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Floor {
    pub(crate) uid: u8,
    pub(crate) floor: u8,
}

/// One DPU: its port, the record of its port, the calls to it, and what the hub knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Port {
    /// What is programmed: `hw`.
    pub(crate) entry: Option<Grant>,
    /// The uid in the record; 0: there is no record.
    pub(crate) node: u8,
    /// The floor in the record: `dfloor`.
    pub(crate) floor: u8,
    /// Attach calls on their way, a bit for each place of a grant.
    pub(crate) attaches: u16,
    /// Adopt calls on their way, a bit for each place of a floor.
    pub(crate) adopts: u16,
    /// Attaches that were compared and not programmed, which happens only without the lock.
    pub(crate) passed: u16,
    pub(crate) powered: bool,
    pub(crate) connected: bool,
    /// The highest floor, for each uid, that the hub has a clean report for.
    pub(crate) acked: [Option<u8>; MOST_UIDS],
    /// Reports on their way, a bit for each place of a floor.
    pub(crate) late: u16,
    /// Up to where the hub saw the DPU without power.
    pub(crate) evidence: Option<Floor>,
}

impl Port {
    /// The entry that forwards packets now.
    pub(super) fn shown(&self) -> Option<Grant> {
        self.entry.filter(|_| self.powered)
    }

    pub(super) fn acked(&self, uid: u8) -> Option<u8> {
        self.acked[usize::from(uid) - 1]
    }

    pub(super) fn calls_dropped(self) -> Self {
        Port { attaches: 0, adopts: 0, ..self }
    }
}

/// The variables of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct State {
    pub(crate) phase: Phase,
    pub(crate) uid: u8,
    pub(crate) owner: Owner,
    pub(crate) epoch: u8,
    pub(crate) floor: u8,
    /// Assignments that some cache may still show, which matters only without the live read.
    pub(crate) past: u16,
    pub(crate) ports: [Port; MOST_DPUS],
    pub(crate) faults: u8,
}

fn width(most: u8) -> u32 {
    u8::BITS - most.leading_zeros()
}

/// The places of the bits that are set.
pub(super) fn places(mask: u16) -> impl Iterator<Item = u8> {
    (0..u16::BITS as u8).filter(move |place| mask & 1 << place != 0)
}

impl NodesDevice {
    /// The place of a grant among all that there could be.
    pub(super) fn place(&self, grant: Grant) -> u8 {
        ((grant.uid - 1) * self.tenants + grant.tenant) * self.epochs + grant.epoch - 1
    }

    pub(super) fn grant_at(&self, place: u8) -> Grant {
        let (epoch, rest) = (place % self.epochs + 1, place / self.epochs);
        Grant { uid: rest / self.tenants + 1, tenant: rest % self.tenants, epoch }
    }

    pub(super) fn all_grants(&self) -> u8 {
        self.uids * self.tenants * self.epochs
    }

    pub(super) fn place_of_floor(&self, floor: Floor) -> u8 {
        (floor.uid - 1) * (self.epochs + 1) + floor.floor
    }

    pub(super) fn floor_at(&self, place: u8) -> Floor {
        Floor { uid: place / (self.epochs + 1) + 1, floor: place % (self.epochs + 1) }
    }

    pub(super) fn all_floors(&self) -> u8 {
        self.uids * (self.epochs + 1)
    }

    fn code_port(&self, port: &mut Port, coder: &mut Coder) {
        let epochs = width(self.epochs);
        let grants = u32::from(self.all_grants());
        let floors = u32::from(self.all_floors());
        let mut entry = port.entry.map_or(0, |grant| self.place(grant) + 1);
        coder.u8(&mut entry, width(self.all_grants()));
        port.entry = entry.checked_sub(1).map(|place| self.grant_at(place));
        coder.u8(&mut port.node, width(self.uids));
        coder.u8(&mut port.floor, epochs);
        coder.u16(&mut port.attaches, grants);
        coder.u16(&mut port.adopts, floors);
        if !self.rules.port_lock {
            coder.u16(&mut port.passed, grants);
        }
        coder.bool(&mut port.powered);
        coder.bool(&mut port.connected);
        for acked in &mut port.acked[..usize::from(self.uids)] {
            let mut number = acked.map_or(0, |floor| floor + 1);
            coder.u8(&mut number, width(self.epochs + 1));
            *acked = number.checked_sub(1);
        }
        coder.u16(&mut port.late, floors);
        let mut evidence = port.evidence.map_or(0, |floor| self.place_of_floor(floor) + 1);
        coder.u8(&mut evidence, width(self.all_floors()));
        port.evidence = evidence.checked_sub(1).map(|place| self.floor_at(place));
    }
}

impl State {
    /// A new node is not known to be clean, and its ports have no record.
    pub(super) fn first(model: &NodesDevice) -> State {
        let is_born = model.is_born;
        let mut state = State {
            phase: if is_born { Phase::Available } else { Phase::Releasing },
            uid: 1,
            ..State::default()
        };
        for port in &mut state.ports[model.each_dpu()] {
            (port.powered, port.connected) = (true, true);
            if is_born {
                (port.node, port.acked[0]) = (1, Some(0));
            }
        }
        state
    }

    pub(super) fn code(&mut self, model: &NodesDevice, coder: &mut Coder) {
        coder.of(&mut self.phase, &PHASES);
        coder.u8(&mut self.uid, width(model.uids));
        let mut owner = self.owner.map_or(0, |tenant| tenant + 1);
        coder.u8(&mut owner, width(model.tenants));
        self.owner = owner.checked_sub(1);
        coder.u8(&mut self.epoch, width(model.epochs));
        coder.u8(&mut self.floor, width(model.epochs));
        if !model.rules.look_first {
            coder.u16(&mut self.past, u32::from(model.all_grants()));
        }
        for port in &mut self.ports[model.each_dpu()] {
            model.code_port(port, coder);
        }
        coder.u8(&mut self.faults, width(model.faults));
    }

    pub(super) fn describe(&self, model: &NodesDevice) -> Vec<(&'static str, String)> {
        let ports = || self.ports[model.each_dpu()].iter().zip(1..);
        let each = |show: &dyn Fn(&Port) -> String| {
            let all: Vec<_> = ports().map(|(port, d)| format!("d{d} :> {}", show(port))).collect();
            format!("({})", all.join(" @@ "))
        };
        let grants = |mask: u16| places(mask).map(|place| show_grant(model.grant_at(place)));
        let attach = |d: u8, place: u8| show_call("attach", d, model.grant_at(place));
        let all = |show: &dyn Fn(&Port, u8) -> Vec<String>| {
            set(ports().flat_map(|(port, d)| show(port, d)))
        };
        vec![
            ("st", format!("\"{:?}\"", self.phase)),
            ("uid", self.uid.to_string()),
            ("owner", show_owner(self.owner)),
            ("ep", self.epoch.to_string()),
            ("floor", self.floor.to_string()),
            ("past", set(grants(self.past))),
            ("hw", each(&|port| set(port.entry.into_iter().map(show_grant)))),
            ("node", each(&|port| port.node.to_string())),
            ("dfloor", each(&|port| port.floor.to_string())),
            (
                "flight",
                all(&|port, d| {
                    let adopts = places(port.adopts).map(|place| {
                        let Floor { uid, floor } = model.floor_at(place);
                        show_adopt(d, uid, floor)
                    });
                    places(port.attaches).map(|place| attach(d, place)).chain(adopts).collect()
                }),
            ),
            ("passed", all(&|port, d| places(port.passed).map(|place| attach(d, place)).collect())),
            ("power", each(&|port| boolean(port.powered))),
            ("net", each(&|port| boolean(port.connected))),
            (
                "acked",
                each(&|port| {
                    let acked = port.acked[..usize::from(model.uids)].iter();
                    let shown: Vec<_> = acked
                        .map(|floor| floor.map_or_else(|| "-1".to_owned(), |it| it.to_string()))
                        .collect();
                    format!("<<{}>>", shown.join(", "))
                }),
            ),
            (
                "late",
                all(&|port, d| {
                    let reports = places(port.late).map(|place| model.floor_at(place));
                    reports.map(|it| format!("<<d{d}, {}, {}>>", it.uid, it.floor)).collect()
                }),
            ),
            (
                "evid",
                each(&|port| {
                    let Floor { uid, floor } = port.evidence.unwrap_or(Floor { uid: 0, floor: 0 });
                    format!("<<{uid}, {floor}>>")
                }),
            ),
            ("f", self.faults.to_string()),
        ]
    }

    /// The state with tenants and DPUs renamed, in the `number`-th way of all.
    pub(super) fn permuted(&self, model: &NodesDevice, number: usize) -> State {
        let tenants = usize::from(model.tenants);
        let of_tenants = arrangements(tenants);
        let tenants: [_; MOST_TENANTS] = arrangement(tenants, number % of_tenants);
        let dpus: [_; MOST_DPUS] = arrangement(model.dpus.into(), number / of_tenants);
        let tenant = |tenant: u8| tenants[usize::from(tenant)] as u8;
        let grant = |grant: Grant| Grant { tenant: tenant(grant.tenant), ..grant };
        let grants = |mask: u16| {
            let renamed = places(mask).map(|place| model.place(grant(model.grant_at(place))));
            renamed.fold(0, |image, place| image | 1 << place)
        };
        let mut image = self.clone();
        image.owner = self.owner.map(tenant);
        image.past = grants(self.past);
        for d in model.each_dpu() {
            let port = self.ports[d];
            image.ports[dpus[d]] = Port {
                entry: port.entry.map(grant),
                attaches: grants(port.attaches),
                passed: grants(port.passed),
                ..port
            };
        }
        image
    }

    pub(super) fn arbitrary(model: &NodesDevice, rng: &mut Rng) -> State {
        let below = |rng: &mut Rng, bound: u8| rng.below(usize::from(bound)) as u8;
        let mask = |rng: &mut Rng, width: u8| rng.below(1 << width) as u16;
        let (grants, floors) = (model.all_grants(), model.all_floors());
        // What is bound has an epoch and an owner.
        let phase = PHASES[rng.below(PHASES.len())];
        let least = u8::from(phase == Phase::Bound);
        let mut state = State {
            phase,
            uid: 1 + below(rng, model.uids),
            owner: (least + below(rng, model.tenants + 1 - least)).checked_sub(1),
            epoch: least + below(rng, model.epochs + 1 - least),
            floor: below(rng, model.epochs + 1),
            past: if model.rules.look_first { 0 } else { mask(rng, grants) },
            faults: below(rng, model.faults + 1),
            ..State::default()
        };
        for port in &mut state.ports[model.each_dpu()] {
            let mut acked = [None; MOST_UIDS];
            for floor in &mut acked[..usize::from(model.uids)] {
                *floor = below(rng, model.epochs + 2).checked_sub(1);
            }
            *port = Port {
                entry: below(rng, grants + 1).checked_sub(1).map(|place| model.grant_at(place)),
                node: below(rng, model.uids + 1),
                floor: below(rng, model.epochs + 1),
                attaches: mask(rng, grants),
                adopts: mask(rng, floors),
                passed: if model.rules.port_lock { 0 } else { mask(rng, grants) },
                powered: rng.flip(),
                connected: rng.flip(),
                acked,
                late: mask(rng, floors),
                evidence: below(rng, floors + 1).checked_sub(1).map(|place| model.floor_at(place)),
            };
        }
        state
    }
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
    format!("<<{}, t{}, {}>>", grant.uid, grant.tenant + 1, grant.epoch)
}

fn show_call(kind: &str, d: u8, grant: Grant) -> String {
    let Grant { uid, tenant, epoch } = grant;
    format!("[k |-> \"{kind}\", d |-> d{d}, u |-> {uid}, t |-> t{}, e |-> {epoch}]", tenant + 1)
}

fn show_adopt(d: u8, uid: u8, floor: u8) -> String {
    format!("[k |-> \"adopt\", d |-> d{d}, u |-> {uid}, t |-> \"none\", e |-> {floor}]")
}
