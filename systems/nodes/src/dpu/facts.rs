//! What a decision about a port rests on.

use crate::outside::Answer;
use crate::wired::{Live, Wired};
use interlock_api::nodes::DpuReportStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// What the step is about.
    pub about: About,
    /// The nodes of the cache that have a port here, by name.
    pub nodes: Vec<Wired>,
    /// What the DpuReport says; None: the cache shows none.
    pub reported: Option<DpuReportStatus>,
    /// What the driver said of the port, or of all; None: it was not asked.
    pub asked: Option<Answer>,
    /// What the driver said of all ports; None: it was not asked.
    pub device: Option<Answer>,
    /// What the hub said of nodes, by name, after the driver was asked.
    pub live: BTreeMap<String, Live>,
    /// What the hub said of the nodes that are in entries and have no name here, by uid; None: it was not asked.
    pub listed: Option<BTreeMap<String, Live>>,
}

/// What a step is about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum About {
    /// One port.
    Port(String),
    /// The ports that no node in the cache has, the networks, and the report as a whole.
    Device,
}

impl Facts {
    /// The nodes of the cache that have a port.
    pub(super) fn claimants<'a>(&'a self, port: &'a str) -> impl Iterator<Item = &'a Wired> {
        self.nodes.iter().filter(move |node| node.is_at(port))
    }
}
