//! The Linux driver: ports are interfaces, the network of a tenant is a bridge with a VXLAN in it, and what a port may
//! send is in the packet filter.
//!
//! Opening goes: tag, rules, network, bridge of the port, link up. Closing goes: link down, no bridge. Closing and
//! reading need rtnetlink only; opening needs nft as well, and without it no port is opened.

use crate::failures;
use crate::files::{Folder, Lock};
use crate::hardware::{Hardware, Held, Opening};
use crate::names::{check_port, mac};
use crate::record::new_term;
use interlock_nodes::outside::{Entry, Failure, Gate, Network, Tag};
use link::{Link, Links};
use network::{Networks, bridge_of, is_bridge, is_tunnel, refused, tunnel_of, without_ipv6};
use nft::{Nft, Trouble};
use rules::{Listed, Rules};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod link;
mod netlink;
mod network;
mod nft;
mod rules;

/// Of a DPU, what does not come from the API.
#[derive(Debug, Clone)]
pub struct Wiring {
    /// The interfaces that are ports. No other one is touched, whatever the API says.
    pub ports: Vec<String>,
    /// The address of this DPU on the underlay.
    pub vtep: IpAddr,
    /// The program nft: its name, or its path.
    pub nft: PathBuf,
}

/// The kernel of this machine, in the network namespace of this process.
#[derive(Debug)]
pub(crate) struct Linux {
    ports: BTreeSet<String>,
    folder: Arc<Folder>,
    networks: Networks,
    nft: Nft,
    /// What the last trial of the packet filter said; none: there was no trial yet.
    filter: Mutex<Option<Result<(), Failure>>>,
}

/// What was read of the interfaces, and of the rules if something is open.
struct Seen {
    links: Vec<Link>,
    listed: Result<Listed, String>,
}

impl Seen {
    fn named(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }
}

fn is_closed(link: &Link) -> bool {
    !link.is_up && link.master.is_none()
}

/// The tag of an entry as people see it in `ip link`. All of it fits into the 255 bytes of an alias.
fn alias(entry: &Entry) -> String {
    let Entry { vni, tag: Tag { node, tenant, claim, attachment, epoch }, .. } = entry;
    format!(
        "interlock vni={vni} epoch={epoch} node={node} tenant={tenant} claim={claim} \
         attachment={attachment}"
    )
}

fn no_filter(words: &str) -> Failure {
    Failure {
        reason: "NoPacketFilter",
        message: format!("no port is opened without a packet filter of family bridge: {words}"),
    }
}

impl Linux {
    pub(crate) fn new(wiring: Wiring, folder: Arc<Folder>) -> Result<Linux, Failure> {
        wiring.ports.iter().try_for_each(|port| check_port(port))?;
        let calls = folder.calls().clone();
        let nft = Nft { program: Nft::program(&wiring.nft), calls: calls.clone() };
        let networks = Networks { links: Links { calls }, vtep: wiring.vtep };
        let ports = wiring.ports.into_iter().collect();
        Ok(Linux { ports, folder, networks, nft, filter: Mutex::default() })
    }

    fn trial(&self) -> Result<(), Failure> {
        let lock = self.folder.lock("packet-filter.trial-lock")?;
        let tag = Tag {
            node: String::new(),
            tenant: String::new(),
            claim: String::new(),
            attachment: String::new(),
            epoch: 1,
        };
        let addresses =
            vec![IpAddr::from([192, 0, 2, 1]), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])];
        let entry = Entry { tag, vni: 1, mac: String::new(), addresses };
        let rules =
            Rules { port: "trial", tunnel: "trial", entry: &entry, mac: [2, 0, 0, 0, 0, 1] };
        // Nobody else's table has this name.
        let table = format!("interlock-trial-{}", new_term()?.0);
        let tried = self.nft.run(&lock, &rules.trial(&table));
        tried.map(drop).map_err(|trouble| no_filter(&trouble.words()))
    }

    fn last_trial(&self) -> MutexGuard<'_, Option<Result<(), Failure>>> {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The interfaces that decide what passes through one port.
    fn around(&self, port: &Held) -> Result<Vec<Link>, Failure> {
        let Some(link) = self.networks.link(&port.name)? else { return Ok(vec![]) };
        let mut found = vec![link];
        if let Some(entry) = port.kept.entry.as_ref().filter(|_| !is_closed(&found[0])) {
            for name in [bridge_of(entry.vni), tunnel_of(entry.vni)] {
                found.extend(self.networks.link(&name)?);
            }
        }
        Ok(found)
    }

    fn listed(&self, lock: &Lock, port: Option<&str>) -> Result<Listed, String> {
        let mut listed = Listed::default();
        for commands in rules::listing(port) {
            let text = self.nft.run(lock, &commands).map_err(Trouble::words)?;
            if !listed.read(&text) {
                return Err("what nft lists is not understood".to_owned());
            }
        }
        Ok(listed)
    }

    /// What passes through a port: open only if all that was read agrees with what was programmed.
    fn gate(&self, port: &Held, seen: &Seen) -> Option<Gate> {
        let link = seen.named(&port.name)?;
        if is_closed(link) {
            return Some(Gate::Closed);
        }
        let Some(entry) = &port.kept.entry else {
            let state = if link.is_up { "up" } else { "down" };
            let place = match link.master {
                None => "in no bridge".to_owned(),
                Some(index) => match seen.links.iter().find(|it| it.index == index) {
                    Some(bridge) => format!("in bridge {}", bridge.name),
                    None => format!("in the bridge with index {index}"),
                },
            };
            return Some(Gate::Foreign(format!(
                "the link is {state}, {place}, and this agent opened it for nobody"
            )));
        };
        let differs = self.differs(entry, link, seen);
        Some(differs.map_or_else(|| Gate::Open(entry.clone()), Gate::Foreign))
    }

    fn differs(&self, entry: &Entry, link: &Link, seen: &Seen) -> Option<String> {
        let vni = entry.vni;
        let Some(bridge) = seen.named(&bridge_of(vni)).filter(|it| is_bridge(it, vni)) else {
            return Some(format!("the bridge {} of its network is not there", bridge_of(vni)));
        };
        let expected = self.networks.tunnel(vni);
        let Some(tunnel) = seen.named(&tunnel_of(vni)).filter(|it| is_tunnel(it, &expected)) else {
            return Some(format!("the VXLAN {} of its network is not there", tunnel_of(vni)));
        };
        if tunnel.master != Some(bridge.index) || !tunnel.is_up || !bridge.is_up {
            return Some(format!(
                "network {vni} is not set up: {} or {} is down",
                bridge.name, tunnel.name
            ));
        }
        if link.master != Some(bridge.index) {
            return Some(format!("the link is not in bridge {}", bridge.name));
        }
        if !link.is_up {
            return Some("the link is down: it was not opened to the end".to_owned());
        }
        if link.alias != alias(entry) {
            return Some(format!("the tag of the link is not that of its entry: {:?}", link.alias));
        }
        let Ok(mac) = mac(&entry.mac) else {
            return Some("its MAC address cannot be read".to_owned());
        };
        match &seen.listed {
            Err(words) => Some(format!("its rules cannot be read: {words}")),
            Ok(listed) => {
                Rules { port: &link.name, tunnel: &tunnel.name, entry, mac }.differs(listed)
            }
        }
    }

    fn port(&self, name: &str) -> Result<Link, Failure> {
        self.networks.link(name)?.ok_or_else(|| failures::no_port(name))
    }

    fn add_rules(&self, port: &Held, entry: &Entry) -> Result<(), Failure> {
        let tunnel = tunnel_of(entry.vni);
        let rules = Rules { port: &port.name, tunnel: &tunnel, entry, mac: mac(&entry.mac)? };
        match self.nft.run(&port.lock, &rules.batch()) {
            Ok(_) => Ok(()),
            Err(Trouble::Missing(words)) => {
                let failure = no_filter(&words);
                *self.last_trial() = Some(Err(failure.clone()));
                Err(failure)
            }
            Err(Trouble::Refused(words)) => {
                // It worked in the trial; the next question tries again.
                *self.last_trial() = None;
                Err(Failure {
                    reason: "KernelRefused",
                    message: format!("the rules of port {} are not set: {words}", port.name),
                })
            }
        }
    }
}

impl Hardware for Linux {
    fn names(&self) -> Result<Vec<String>, Failure> {
        Ok(self.ports.iter().cloned().collect())
    }

    fn check(&self, port: &str) -> Result<(), Failure> {
        if self.ports.contains(port) {
            return Ok(());
        }
        Err(failures::not_served(port, &self.ports.iter().cloned().collect::<Vec<_>>()))
    }

    fn filter(&self, again: bool) -> Option<Failure> {
        let known = self.last_trial().clone().filter(|it| !again && it.is_ok());
        let tried = known.unwrap_or_else(|| self.trial());
        *self.last_trial() = Some(tried.clone());
        tried.err()
    }

    fn gates(&self, ports: &[Held]) -> Result<Vec<Option<Gate>>, Failure> {
        let links = match ports {
            [one] => self.around(one)?,
            _ => self.networks.all()?,
        };
        let mut seen = Seen { links, listed: Err("they were not read".to_owned()) };
        // nft is asked only where an entry may be open.
        let is_open = |port: &&Held| {
            port.kept.entry.is_some() && seen.named(&port.name).is_some_and(|it| !is_closed(it))
        };
        if let Some(first) = ports.iter().find(is_open) {
            let only = (ports.len() == 1).then_some(&*first.name);
            seen.listed = self.listed(&first.lock, only);
        }
        Ok(ports.iter().map(|port| self.gate(port, &seen)).collect())
    }

    fn close(&self, port: &Held) -> Result<(), Failure> {
        let link = self.port(&port.name)?;
        let links = &self.networks.links;
        let failed = |error| refused("close", &port.name, &error);
        links.take_down(&link).map_err(failed)?;
        links.enslave(&link, None).map_err(failed)?;
        if !link.alias.is_empty() {
            // For people: the port is closed already.
            let _ = links.set_alias(&link, "");
        }
        Ok(())
    }

    fn open(&self, port: &Held, opening: Opening<'_>) -> Result<(), Failure> {
        let Opening { entry, vteps } = opening;
        let link = self.port(&port.name)?;
        let links = &self.networks.links;
        let failed = |error| refused("open", &port.name, &error);
        links.set_alias(&link, &alias(entry)).map_err(failed)?;
        self.add_rules(port, entry)?;
        let bridge = self.networks.make(entry.vni, vteps)?;
        without_ipv6(&port.name)?;
        links.enslave(&link, Some(&bridge)).map_err(failed)?;
        links.bring_up(&link).map_err(failed)
    }

    fn networks(&self, only: Option<u32>) -> Result<Vec<Network>, Failure> {
        self.networks.found(only)
    }

    fn flood(&self, vni: u32, vteps: &[IpAddr]) -> Result<(), Failure> {
        self.networks.flood(vni, vteps)
    }

    fn forget(&self, vni: u32) -> Result<(), Failure> {
        self.networks.forget(vni)
    }
}
