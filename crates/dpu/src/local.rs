//! The local driver: a device without hardware, for the embedded control plane. What a port is open for is in its
//! record, so a write of one file opens or closes it, and the states and refusals are those of any device.

use crate::failures;
use crate::files::Folder;
use crate::hardware::{Hardware, Held, Opening};
use crate::names::check_port;
use crate::record;
use interlock_nodes::outside::{Failure, Gate, Network};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// What the names of the files of networks end with.
const ENDING: &str = ".network";

/// Any name is a port.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) folder: Arc<Folder>,
    pub(crate) boot: String,
}

impl Local {
    /// The ports in each network. Read without their locks: who holds the lock of a network knows that no port joins
    /// it meanwhile.
    fn used(&self) -> Result<BTreeMap<u32, String>, Failure> {
        let mut used = BTreeMap::new();
        for name in self.names()? {
            let kept = record::peek(&self.folder, &name, &self.boot)?;
            used.extend(kept.and_then(|kept| kept.entry).map(|entry| (entry.vni, name)));
        }
        Ok(used)
    }

    fn vteps(&self, vni: u32) -> Result<Option<Vec<IpAddr>>, Failure> {
        let written = self.folder.read(&format!("{vni}{ENDING}"))?;
        Ok(written.map(|bytes| serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    fn write(&self, vni: u32, vteps: &[IpAddr]) -> Result<(), Failure> {
        let mut vteps = vteps.to_vec();
        vteps.sort();
        vteps.dedup();
        let text = serde_json::to_vec(&vteps).expect("addresses are JSON");
        self.folder.replace(&format!("{vni}{ENDING}"), &text)
    }
}

impl Hardware for Local {
    fn names(&self) -> Result<Vec<String>, Failure> {
        let mut names = self.folder.ending(record::ENDING)?;
        names.retain(|name| check_port(name).is_ok());
        Ok(names)
    }

    fn check(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    fn filter(&self, _: bool) -> Option<Failure> {
        None
    }

    fn gates(&self, ports: &[Held]) -> Result<Vec<Option<Gate>>, Failure> {
        let gate = |held: &Held| Some(held.kept.entry.clone().map_or(Gate::Closed, Gate::Open));
        Ok(ports.iter().map(gate).collect())
    }

    /// The protocol writes the record next.
    fn close(&self, _: &Held) -> Result<(), Failure> {
        Ok(())
    }

    /// The protocol has written the record before.
    fn open(&self, _: &Held, opening: Opening<'_>) -> Result<(), Failure> {
        self.write(opening.entry.vni, opening.vteps)
    }

    fn networks(&self, only: Option<u32>) -> Result<Vec<Network>, Failure> {
        let used = self.used()?;
        let written = self.folder.ending(ENDING)?.into_iter().filter_map(|it| it.parse().ok());
        let mut numbers: Vec<u32> = written.chain(used.keys().copied()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.retain(|vni| only.is_none_or(|only| only == *vni));
        let network = |vni: u32| {
            let vteps = self.vteps(vni)?.unwrap_or_default();
            Ok(Network { vni, vteps, is_used: used.contains_key(&vni) })
        };
        numbers.into_iter().map(network).collect()
    }

    fn flood(&self, vni: u32, vteps: &[IpAddr]) -> Result<(), Failure> {
        if self.vteps(vni)?.is_none() && !self.used()?.contains_key(&vni) {
            return Err(failures::no_network(vni));
        }
        self.write(vni, vteps)
    }

    fn forget(&self, vni: u32) -> Result<(), Failure> {
        if let Some(port) = self.used()?.get(&vni) {
            return Err(failures::network_in_use(vni, port));
        }
        self.folder.remove(&format!("{vni}{ENDING}"))
    }
}
