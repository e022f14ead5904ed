//! Which controllers run together, and as whom: each program is one list.
//!
//! A program is what runs as one process or task group: the hub's controllers ([`Hub`]), those of cloud
//! identities ([`Identities`]), the agent of one workload cluster ([`Agent`]),
//! what brings it to its target ([`Applier`]), and the workloads of one that is embedded ([`Workloads`]); what decides on updates
//! ([`Rollouts`]); of machines, those at the hub
//! ([`Machines`]), of one tenant ([`TenantPlane`]), and the agent of a DPU ([`DpuAgent`], [`DpuTenant`]). Its list names every controller once, with the account that
//! the controller acts as. Whatever needs to know a program is a visitor of its list:
//!
//! * the wiring into the shell, and the actors of the simulation, take the controllers themselves;
//! * roles, accounts, manifests and caches take what [`list`] says about them.
//!
//! [`audit`] asks the rules of each again about facts that were recorded.
//! [`world`] explores the controllers of several systems together.
//! [`roles`] writes down what each account may do. [`supervisor`] decides which agents a process runs that serves many clusters,
//! and [`served`] which programs of machines.
//!
//! So a new controller is one line here. What a controller does outside of the API is part of its
//! type: a visitor that runs controllers needs a driver for each kind of it that the list has, and
//! does not compile without.

mod account;
mod agent;
pub mod audit;
mod hub;
mod identities;
mod listed;
mod machines;
pub mod roles;
mod rollouts;
pub mod served;
pub mod supervisor;
mod workloads;
pub mod world;

pub use account::Account;
pub use agent::{Agent, Machine};
pub use hub::Hub;
pub use identities::Identities;
pub use listed::{List, Listed, accounts, list};
pub use machines::{DpuAgent, DpuTenant, Machines, TenantPlane};
pub use rollouts::{Applier, Rollouts};
pub use workloads::Workloads;

use interlock_kernel::{Controller, Outside};

/// A program, for a visitor that can be shown all its controllers.
pub trait Program<V> {
    /// Shows the visitor every controller of the program, always in the same order.
    fn visit(&self, visitor: &mut V);
}

/// Is shown controllers that do this outside of the API.
pub trait Visitor<O: Outside> {
    /// A controller, and the account that it acts as.
    fn room<C: Controller<Outside = O>>(&mut self, account: Account, controller: C);
}
