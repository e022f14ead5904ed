//! Nodes: a machine is programmed for one tenant at a time, in all its DPUs together.
//!
//! The rooms of its controllers, each `observe`, `decide`, `act`:
//!
//! * `claims`: gives machines to the claims of a tenant, and takes them back.
//! * `pool`: the record of each machine: revoked, clean, in the pool.
//! * `in_use`: racks and tenants stay while machines are theirs.
//! * `tenant`: asks DPUs, in the control plane of a tenant, for what its claims have.
//! * `dpu`: closes the ports of a DPU, and reports them; `heartbeat`: its Lease.
//! * `attach`: opens the ports of a DPU for one tenant.
//!
//! They all work on `kinds`: the kinds of the system, and where their objects are; `record` is a machine as the hub sees
//! it, `wired` as a DPU does. `outside` is what is asked of a DPU and done to it, `power` what is asked of the platform's
//! power command.
//!
//! What they are held against:
//!
//! * `world`: what is around them when they are explored: drivers, people, faults, promises, mistakes.
//! * `seed`: the dpu_multi_tenant specification as its authors wrote it, defects included.
//! * `fixed`: the seed with a two-phase reclaim.
//! * `spec`: the protocol, with an epoch per assignment and a floor per revocation.
//! * `epoch`: epoch and floor alone.
//! * `device`: the same with the record that each DPU keeps of its port, and calls that land late.
//! * `one_holder`: what the protocol looks like from outside.

pub mod attach;
mod choice;
pub mod claims;
pub mod device;
pub mod dpu;
pub mod epoch;
#[cfg(test)]
pub(crate) mod fake_dpu;
mod filed;
pub mod fixed;
pub mod heartbeat;
#[cfg(test)]
mod hub_testing;
pub mod in_use;
pub mod kinds;
pub mod one_holder;
pub mod outside;
pub mod pool;
pub mod power;
pub mod record;
mod reported;
#[cfg(test)]
mod scenarios;
pub mod seed;
pub mod spec;
pub mod tenant;
pub mod wired;
pub mod world;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![
        seed::ENTRY,
        fixed::ENTRY,
        spec::ENTRY,
        epoch::ENTRY,
        device::ENTRY,
        one_holder::ENTRY,
        world::ENTRY,
    ]
}
