//! Why something was not done, in words for the person on call.

use interlock_nodes::outside::{Failure, Record, Term};
use std::fmt::Display;

/// A file of the driver could not be read or written.
pub(crate) fn storage(file: &str, error: &std::io::Error) -> Failure {
    Failure {
        reason: "RecordNotKept",
        message: format!(
            "{file} in the agent's data directory cannot be read or written: {error}; no port is \
             opened without a record on disk"
        ),
    }
}

pub(crate) fn busy(file: &str, seconds: u64) -> Failure {
    Failure {
        reason: "PortBusy",
        message: format!(
            "another action has held {file} for {seconds} s; see what holds it with `fuser`"
        ),
    }
}

pub(crate) fn term_differs(port: &str, record: &Record, named: &Term) -> Failure {
    Failure {
        reason: "TermDiffers",
        message: format!(
            "the record of port {port} has term {}, and the action was decided under term {}; it \
             is decided again after a live read",
            record.term.0, named.0
        ),
    }
}

pub(crate) fn node_differs(port: &str, record: &Record, named: &str) -> Failure {
    let is = record.node.as_deref().unwrap_or("none");
    Failure {
        reason: "NodeDiffers",
        message: format!("port {port} is of node uid {is}, and the action names {named}"),
    }
}

pub(crate) fn under_the_floor(port: &str, record: &Record, epoch: i64) -> Failure {
    Failure {
        reason: "AtOrUnderTheFloor",
        message: format!("epoch {epoch} is revoked: the floor of port {port} is {}", record.floor),
    }
}

pub(crate) fn not_closed(port: &str, is: &str) -> Failure {
    Failure {
        reason: "PortNotClosed",
        message: format!("port {port} is not closed: {is}; detach or isolate it first"),
    }
}

pub(crate) fn no_port(port: &str) -> Failure {
    Failure {
        reason: "NoSuchPort",
        message: format!("this DPU has no network interface {port} now"),
    }
}

pub(crate) fn not_served(port: &str, served: &[String]) -> Failure {
    Failure {
        reason: "NoSuchPort",
        message: format!(
            "port {port} is not one that this agent may change; it has {}",
            if served.is_empty() { "none".to_owned() } else { served.join(", ") }
        ),
    }
}

pub(crate) fn invalid(what: &str, why: impl Display) -> Failure {
    Failure { reason: "Invalid", message: format!("{what}: {why}") }
}

pub(crate) fn no_network(vni: u32) -> Failure {
    Failure {
        reason: "NoSuchNetwork",
        message: format!("this DPU has no network {vni}; the next attach makes it"),
    }
}

pub(crate) fn network_in_use(vni: u32, port: &str) -> Failure {
    Failure {
        reason: "NetworkInUse",
        message: format!("port {port} is in network {vni}; it is removed when no port is in it"),
    }
}

/// Port and reason are the same for all that do not find what was just programmed.
pub(crate) fn not_as_programmed(port: &str, is: &str) -> Failure {
    Failure {
        reason: "KernelRefused",
        message: format!("port {port} was programmed and reads back otherwise: {is}; it is closed"),
    }
}
