//! The drivers of a DPU: a port is opened for one tenant at a time, and never again at or under its floor.
//!
//! The rooms of `interlock-nodes` decide; [`Driver`] carries out what they decided, and keeps the promises that the
//! rooms rely on:
//!
//! * Beside each port lies a record: term, boot, node uid and floor. It is replaced as a whole, and on disk before
//!   the action returns.
//! * An action compares and changes under one lock of its port, which child processes inherit: what was decided
//!   under another term, for another node, or at or under the floor is refused, however late it comes.
//! * A port is closed first (link down, then no bridge) and its floor raised afterwards. It is opened in the other
//!   order, link up last. A crash leaves a port that is closed, or open for what it was opened for.
//! * A port is said to be open when link, bridge, tag and rules were read back and agree, and not otherwise.
//!
//! | module | what it has |
//! |---|---|
//! | `driver` | questions and actions of the rooms |
//! | `protocol` | what is compared, closed and recorded, in which order |
//! | `hardware` | what the protocol needs of a device |
//! | `local` | a device without hardware |
//! | `linux` | a device whose ports are interfaces of this kernel |
//! | `namespaces` | how an agent enters the namespaces of its device |
//! | `record` | the record beside a port |
//! | `files` | files that are replaced as a whole, and locks |
//! | `names` | what comes from the API, checked |
//! | `failures` | refusals, in words |
//! | `calls` | where tests stop a driver |
//! | `counted` | how often a DPU was changed, and why not |

mod calls;
mod counted;
mod driver;
mod failures;
mod files;
mod hardware;
mod linux;
mod local;
mod names;
mod namespaces;
mod protocol;
mod record;

pub use calls::Calls;
pub use driver::{Driver, Settings};
pub use linux::Wiring;
pub use namespaces::Namespaces;
