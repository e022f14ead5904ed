//! Which programs there are, and what they run.

use super::device::Device;
use super::start::{DPUS, NODE, PORT, RACK, claim};
use super::{Nodes, TENANTS};
use crate::attach::{Attachments, NETWORK};
use crate::claims::{Claims, NETWORK as CLAIMS_NETWORK};
use crate::dpu::{DEVICE, Ports};
use crate::pool::Pool;
use crate::power::{IsOff, Power, PowerOff, PowerState};
use crate::tenant::Requests;
use interlock_api::nodes::{DpuName, Ref, attachment_name};
use interlock_kernel::{Bent, Decide, Observe, Room};
use interlock_world::{Driver, Program, shipped};
use std::net::IpAddr;

/// More epochs than any world of ours gives.
const EPOCHS: i64 = 4;

/// One function of a room, replaced by a mistake.
pub(super) enum Bend<R: Room> {
    Observe(Observe<R>),
    Decide(Decide<R>),
}

impl<R: Room> Clone for Bend<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Room> Copy for Bend<R> {}

/// The rooms that make a mistake.
#[derive(Clone, Copy, Default)]
pub(super) struct Bends {
    pub(super) pool: Option<Bend<Pool>>,
    pub(super) claims: Option<Bend<Claims>>,
    pub(super) ports: Option<Bend<Ports>>,
    pub(super) attachments: Option<Bend<Attachments>>,
}

fn bent<R: Room>(room: R, bend: Option<Bend<R>>) -> Bent<R> {
    let room = Bent::new(room);
    match bend {
        None => room,
        Some(Bend::Observe(observe)) => room.observing(observe),
        Some(Bend::Decide(decide)) => room.deciding(decide),
    }
}

pub(super) fn programs(system: &Nodes) -> Vec<Program<Device>> {
    let mut programs = Vec::new();
    if system.size.hub == 0 {
        programs.extend(of_hub(system));
    }
    for (dpu, name) in DPUS.iter().enumerate().take(system.size.dpus as usize) {
        // A state has room for so many programs: one DPU with two agents is enough.
        let agents = if dpu == 0 { system.size.agents } else { 1 };
        for copy in 0..agents {
            let name = if copy == 0 { (*name).to_owned() } else { format!("{name}-again") };
            programs.extend(of_dpu(system, dpu, &name));
        }
    }
    programs
}

/// What runs at the hub and in the planes.
fn of_hub(system: &Nodes) -> Vec<Program<Device>> {
    let Bends { pool, claims, .. } = system.bends;
    let rack = format!("/rack/{RACK}");
    let pool = shipped(move |_| bent(Pool, pool));
    let mut programs = vec![Program::new("hub", None).with(pool, &[NODE, &rack])];
    for (tenant, name) in TENANTS.iter().enumerate().take(system.size.tenants as usize) {
        let claim = claim(tenant);
        let served = Ref::new(*name, tenant_uid(name));
        let room = shipped(move |_| bent(Claims::new(served.clone()), claims));
        let program = Program::new(format!("claims-{name}"), Some(tenant)).on_machine(None);
        programs.push(program.with(room, &[&claim.name, CLAIMS_NETWORK]));
        let room = shipped(|_| Requests);
        let program = Program::new(format!("plane-{name}"), Some(tenant)).on_machine(None);
        programs.push(program.with(room, &[&claim.name]));
    }
    programs
}

/// The agent of a DPU. What it shows of the hub and of each plane may be of another time, so each of its parts is a
/// program of its own, with a cache of its own.
fn of_dpu(system: &Nodes, dpu: usize, name: &str) -> Vec<Program<Device>> {
    let here = DpuName::new(RACK, DPUS[dpu]);
    let (bend, at) = (system.bends.ports, here.clone());
    let room = shipped(move |_| bent(Ports { here: at.clone() }, bend));
    let ports = Program::new(format!("dpu-{name}"), None).on_machine(Some(dpu));
    let mut programs = vec![ports.with(room, &[PORT, DEVICE])];
    let names = (1..=EPOCHS).map(|epoch| attachment_name(NODE, DPUS[dpu], epoch));
    let mut subjects: Vec<String> = names.collect();
    subjects.push(NETWORK.to_owned());
    let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
    let vtep = IpAddr::from([10, 0, 0, 1 + dpu as u8]);
    for (tenant, of) in TENANTS.iter().enumerate().take(system.size.tenants as usize) {
        let (bend, at) = (system.bends.attachments, here.clone());
        let served = Ref::new(*of, tenant_uid(of));
        let make = move |_| bent(Attachments::new(at.clone(), vtep, served.clone()), bend);
        let program = Program::new(format!("attach-{name}-{of}"), Some(tenant));
        programs.push(program.on_machine(Some(dpu)).with(shipped(make), &subjects));
    }
    programs
}

/// As the hub gives it out.
fn tenant_uid(name: &str) -> String {
    format!("tenant-{name}-0")
}

/// Racks here leave it to people to see a DPU off: the command of the platform is never asked.
impl Driver<Device> for Power {
    fn ask(_: &[&Device], _: usize, question: &IsOff) -> PowerState {
        PowerState::Unknown(format!("there is no command that knows {}", question.0))
    }

    fn perform(devices: &[&Device], here: usize, _: &PowerOff) -> Device {
        devices[here].clone()
    }
}
