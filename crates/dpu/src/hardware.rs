//! What the protocol of a port needs of a device.

use crate::files::Lock;
use crate::record::Kept;
use interlock_nodes::outside::{Entry, Failure, Gate, Network};
use std::fmt::Debug;
use std::net::IpAddr;

/// A port whose lock is held, with its record as it is now.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) name: String,
    pub(crate) lock: Lock,
    pub(crate) kept: Kept,
}

/// What an attach opens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) vteps: &'a [IpAddr],
}

/// A device, below the record, the floor and the lock.
pub(crate) trait Hardware: Debug + Send + Sync + 'static {
    /// The names of all ports that may be there.
    fn names(&self) -> Result<Vec<String>, Failure>;

    /// Refuses a name that is of no port here.
    fn check(&self, port: &str) -> Result<(), Failure>;

    /// Why no port can be opened. `again`: what is known may be old, so try.
    fn filter(&self, again: bool) -> Option<Failure>;

    /// What passes through each port; none: the port is not there.
    fn gates(&self, ports: &[Held]) -> Result<Vec<Option<Gate>>, Failure>;

    /// Closes a port, whatever it is open for.
    fn close(&self, port: &Held) -> Result<(), Failure>;

    /// Opens a closed port, under the lock of the network, too.
    fn open(&self, port: &Held, opening: Opening<'_>) -> Result<(), Failure>;

    /// All networks, or one of them if it is there.
    fn networks(&self, only: Option<u32>) -> Result<Vec<Network>, Failure>;

    /// Replaces a flood list, under the lock of the network.
    fn flood(&self, vni: u32, vteps: &[IpAddr]) -> Result<(), Failure>;

    /// Removes a network, under its lock.
    fn forget(&self, vni: u32) -> Result<(), Failure>;
}
