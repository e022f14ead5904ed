//! The network of a tenant on this DPU: a bridge without an address, and a VXLAN in it.

use super::link::{GROUP, Link, Links, Tunnel};
use crate::failures;
use interlock_nodes::outside::{Failure, Network};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

/// Networks of this DPU.
#[derive(Debug)]
pub(super) struct Networks {
    pub(super) links: Links,
    /// The address of this DPU on the underlay.
    pub(super) vtep: IpAddr,
}

pub(super) fn bridge_of(vni: u32) -> String {
    format!("ilb{vni}")
}

pub(super) fn tunnel_of(vni: u32) -> String {
    format!("ilx{vni}")
}

/// A change that the kernel refused.
pub(super) fn refused(what: &str, name: &str, error: &io::Error) -> Failure {
    Failure { reason: "KernelRefused", message: format!("cannot {what} {name}: {error}") }
}

fn foreign(link: &Link, expected: &str) -> Failure {
    let kind = if link.kind.is_empty() { "device" } else { &link.kind };
    Failure {
        reason: "ForeignLink",
        message: format!(
            "the interface {} was not made by Interlock ({kind} in group {}, expected {expected} in \
             group {GROUP}) and is left alone; rename or delete it",
            link.name, link.group
        ),
    }
}

/// Turns IPv6 off before a link is up: otherwise the DPU itself would speak there.
pub(super) fn without_ipv6(name: &str) -> Result<(), Failure> {
    match std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1") {
        Ok(()) => Ok(()),
        // This kernel has no IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(refused("turn IPv6 off on", name, &error)),
    }
}

/// Whether an interface of this name is the bridge of this network.
pub(super) fn is_bridge(link: &Link, vni: u32) -> bool {
    link.name == bridge_of(vni) && link.group == GROUP && link.kind == "bridge"
}

/// Whether an interface of this name is the VXLAN of this network.
pub(super) fn is_tunnel(link: &Link, expected: &Tunnel) -> bool {
    link.name == tunnel_of(expected.vni)
        && link.group == GROUP
        && link.tunnel.as_ref() == Some(expected)
}

impl Networks {
    pub(super) fn tunnel(&self, vni: u32) -> Tunnel {
        Tunnel::of(vni, self.vtep)
    }

    /// An interface by its name.
    pub(super) fn link(&self, name: &str) -> Result<Option<Link>, Failure> {
        self.links.named(name).map_err(|error| refused("read", name, &error))
    }

    fn there(&self, name: &str) -> Result<Link, Failure> {
        self.link(name)?.ok_or_else(|| Failure {
            reason: "KernelRefused",
            message: format!("the interface {name} disappeared while it was being set up"),
        })
    }

    /// Makes what is missing of a network. Each step may be the last one: what is there by then is down, or complete.
    pub(super) fn make(&self, vni: u32, vteps: &[IpAddr]) -> Result<Link, Failure> {
        let bridge = self.bridge(vni)?;
        let tunnel = self.made_tunnel(vni)?;
        for link in [&bridge, &tunnel] {
            without_ipv6(&link.name)?;
        }
        self.replace_list(&tunnel, vteps)?;
        let failed = |link: &Link, error| refused("set up", &link.name, &error);
        if tunnel.master != Some(bridge.index) {
            let done = self.links.enslave(&tunnel, Some(&bridge));
            done.map_err(|error| failed(&tunnel, error))?;
        }
        for link in [&tunnel, &bridge] {
            if !link.is_up {
                self.links.bring_up(link).map_err(|error| failed(link, error))?;
            }
        }
        Ok(bridge)
    }

    fn bridge(&self, vni: u32) -> Result<Link, Failure> {
        let name = bridge_of(vni);
        if self.link(&name)?.is_none() {
            self.links.add_bridge(&name).map_err(|error| refused("add", &name, &error))?;
        }
        let link = self.there(&name)?;
        if is_bridge(&link, vni) { Ok(link) } else { Err(foreign(&link, "a bridge")) }
    }

    fn made_tunnel(&self, vni: u32) -> Result<Link, Failure> {
        let (name, expected) = (tunnel_of(vni), self.tunnel(vni));
        if let Some(link) = self.link(&name)? {
            if is_tunnel(&link, &expected) {
                return Ok(link);
            }
            if link.group != GROUP || link.kind != "vxlan" {
                return Err(foreign(&link, "a VXLAN"));
            }
            // Ours, from when the DPU had another address.
            self.links.delete(&link).map_err(|error| refused("delete", &name, &error))?;
        }
        self.links.add_tunnel(&name, &expected).map_err(|error| refused("add", &name, &error))?;
        self.there(&name)
    }

    /// Sends broadcasts to these DPUs and to no other.
    fn replace_list(&self, tunnel: &Link, vteps: &[IpAddr]) -> Result<(), Failure> {
        if vteps.contains(&self.vtep) {
            return Err(failures::invalid(&format!("VTEP {}", self.vtep), "it is this DPU's own"));
        }
        if let Some(other) = vteps.iter().find(|it| it.is_ipv4() != self.vtep.is_ipv4()) {
            let why = format!("this DPU's own is {}, of the other IP version", self.vtep);
            return Err(failures::invalid(&format!("VTEP {other}"), why));
        }
        let failed = |error| refused("replace the flood list of", &tunnel.name, &error);
        let is: BTreeSet<IpAddr> =
            self.links.flood_list(tunnel).map_err(failed)?.into_iter().collect();
        let desired: BTreeSet<IpAddr> = vteps.iter().copied().collect();
        for vtep in is.difference(&desired) {
            self.links.flood_no_more(tunnel, *vtep).map_err(failed)?;
        }
        for vtep in desired.difference(&is) {
            self.links.flood_to(tunnel, *vtep).map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn flood(&self, vni: u32, vteps: &[IpAddr]) -> Result<(), Failure> {
        match self.link(&tunnel_of(vni))? {
            Some(link) if is_tunnel(&link, &self.tunnel(vni)) => self.replace_list(&link, vteps),
            Some(link) => Err(foreign(&link, "a VXLAN")),
            None => Err(failures::no_network(vni)),
        }
    }

    /// Removes the VXLAN, then the bridge, if no port is in it.
    pub(super) fn forget(&self, vni: u32) -> Result<(), Failure> {
        let all = self.all()?;
        let named = |name: String| all.iter().find(|link| link.name == name);
        let (bridge, tunnel) = (named(bridge_of(vni)), named(tunnel_of(vni)));
        if let Some(link) = bridge.filter(|link| !is_bridge(link, vni)) {
            return Err(foreign(link, "a bridge"));
        }
        if let Some(link) = tunnel.filter(|link| link.group != GROUP || link.kind != "vxlan") {
            return Err(foreign(link, "a VXLAN"));
        }
        if let Some(port) = bridge.and_then(|bridge| port_in(&all, bridge)) {
            return Err(failures::network_in_use(vni, &port.name));
        }
        for link in tunnel.into_iter().chain(bridge) {
            self.links.delete(link).map_err(|error| refused("delete", &link.name, &error))?;
        }
        Ok(())
    }

    pub(super) fn all(&self) -> Result<Vec<Link>, Failure> {
        self.links.all().map_err(|error| refused("list", "the interfaces", &error))
    }

    /// The networks that are there, also in part.
    pub(super) fn found(&self, only: Option<u32>) -> Result<Vec<Network>, Failure> {
        let all = match only {
            None => self.all()?,
            // A port is in it, which its caller knows.
            Some(vni) => [bridge_of(vni), tunnel_of(vni)]
                .iter()
                .filter_map(|it| self.link(it).transpose())
                .collect::<Result<_, _>>()?,
        };
        let numbers: BTreeSet<u32> = all.iter().filter_map(number).collect();
        let network = |vni: u32| {
            let tunnel = all.iter().find(|link| is_tunnel(link, &self.tunnel(vni)));
            let bridge = all.iter().find(|link| is_bridge(link, vni));
            let vteps = tunnel.map(|tunnel| self.links.flood_list(tunnel)).transpose();
            let vteps = vteps
                .map_err(|error| refused("read the flood list of", &tunnel_of(vni), &error))?;
            let is_used = only.is_some() || bridge.is_some_and(|it| port_in(&all, it).is_some());
            Ok(Network { vni, vteps: vteps.unwrap_or_default(), is_used })
        };
        numbers.into_iter().map(network).collect()
    }
}

/// The number of the network that an interface is the bridge or the VXLAN of.
fn number(link: &Link) -> Option<u32> {
    let number = link.name.strip_prefix("ilb").or_else(|| link.name.strip_prefix("ilx"))?;
    let vni = number.parse().ok().filter(|_| link.group == GROUP)?;
    [bridge_of(vni), tunnel_of(vni)].contains(&link.name).then_some(vni)
}

/// Something in a bridge beside the VXLAN of its network.
fn port_in<'a>(all: &'a [Link], bridge: &Link) -> Option<&'a Link> {
    let is_tunnel = |link: &Link| link.group == GROUP && link.kind == "vxlan";
    all.iter().find(|link| link.master == Some(bridge.index) && !is_tunnel(link))
}
