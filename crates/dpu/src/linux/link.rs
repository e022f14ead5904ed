//! Network interfaces, read and changed one at a time.

use super::netlink::{APPEND, Bytes, CREATE, EXCLUSIVE, Request, attributes, number16, number32};
use crate::calls::Calls;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The group that interfaces of ours are born in ("IL"): `ip link show group 18764`. Unlike an alias it is set in the
/// call that makes the interface, so no crash leaves one that is ours and does not say so.
pub(super) const GROUP: u32 = 0x494c;

/// Where VXLAN listens, by IANA.
const VXLAN_PORT: u16 = 4789;

const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const SET_LINK: u16 = 19;
const NEW_NEIGHBOUR: u16 = 28;
const DELETE_NEIGHBOUR: u16 = 29;
const GET_NEIGHBOUR: u16 = 30;

/// IFLA_*
const NAME: u16 = 3;
const MASTER: u16 = 10;
const INFO: u16 = 18;
const ALIAS: u16 = 20;
const IN_GROUP: u16 = 27;
const EXTENDED: u16 = 29;
/// IFLA_INFO_*
const KIND: u16 = 1;
const DATA: u16 = 2;
/// IFLA_VXLAN_*
const VNI: u16 = 1;
const LOCAL: u16 = 4;
const UDP_PORT: u16 = 15;
const LOCAL_6: u16 = 17;
/// IFLA_BR_*
const SNOOPING: u16 = 23;
/// NDA_*
const DESTINATION: u16 = 1;
const ADDRESS: u16 = 2;

const IS_UP: u32 = 1;

/// An interface, as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Link {
    pub(super) index: i32,
    pub(super) name: String,
    pub(super) is_up: bool,
    pub(super) master: Option<i32>,
    pub(super) alias: String,
    pub(super) group: u32,
    pub(super) kind: String,
    /// Of a VXLAN.
    pub(super) tunnel: Option<Tunnel>,
}

/// A VXLAN: its network, its own address, and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tunnel {
    pub(super) vni: u32,
    pub(super) local: Option<IpAddr>,
    pub(super) port: u16,
}

impl Tunnel {
    /// Of this network, at this address.
    pub(super) fn of(vni: u32, local: IpAddr) -> Tunnel {
        Tunnel { vni, local: Some(local), port: VXLAN_PORT }
    }
}

/// ifinfomsg: which interface, and what of its flags changes.
fn about(index: i32, flags: u32, change: u32) -> Bytes {
    let mut fixed = vec![0; 4];
    fixed.extend(index.to_ne_bytes());
    fixed.extend(flags.to_ne_bytes());
    fixed.extend(change.to_ne_bytes());
    Bytes::of(&fixed)
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned()
}

fn address(value: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(value).map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
    let six = <[u8; 16]>::try_from(value).map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)));
    four.or(six).ok()
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(four) => four.octets().to_vec(),
        IpAddr::V6(six) => six.octets().to_vec(),
    }
}

fn read(body: &[u8]) -> Link {
    let mut link = Link {
        index: number32(body, 4).unwrap_or_default().cast_signed(),
        is_up: number32(body, 8).unwrap_or_default() & IS_UP != 0,
        ..Link::default()
    };
    for (kind, value) in attributes(body.get(16..).unwrap_or_default()) {
        match kind {
            NAME => link.name = text(value),
            MASTER => link.master = number32(value, 0).map(u32::cast_signed),
            ALIAS => link.alias = text(value),
            IN_GROUP => link.group = number32(value, 0).unwrap_or_default(),
            INFO => read_info(&mut link, value),
            _ => {}
        }
    }
    link
}

fn read_info(link: &mut Link, info: &[u8]) {
    let info = attributes(info);
    let of = |kind: u16| info.iter().find(|it| it.0 == kind).map(|it| it.1);
    link.kind = of(KIND).map(text).unwrap_or_default();
    let Some(data) = of(DATA).filter(|_| link.kind == "vxlan") else { return };
    let mut tunnel = Tunnel { vni: 0, local: None, port: 0 };
    for (kind, value) in attributes(data) {
        match kind {
            VNI => tunnel.vni = number32(value, 0).unwrap_or_default(),
            LOCAL | LOCAL_6 => tunnel.local = address(value),
            UDP_PORT => tunnel.port = number16(value, 0).map_or(0, u16::from_be),
            _ => {}
        }
    }
    link.tunnel = Some(tunnel);
}

/// The interfaces of this network namespace.
#[derive(Debug, Clone)]
pub(super) struct Links {
    pub(super) calls: Calls,
}

impl Links {
    /// An interface by its name.
    pub(super) fn named(&self, name: &str) -> io::Result<Option<Link>> {
        // Without counters, which are most of an answer.
        let body = about(0, 0, 0).with_name(NAME, name).with_number(EXTENDED, 8);
        match (Request { kind: GET_LINK, flags: 0, body }).one() {
            Ok(body) => Ok(Some(read(&body))),
            Err(error) if error.raw_os_error() == Some(19) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All interfaces.
    pub(super) fn all(&self) -> io::Result<Vec<Link>> {
        let body = about(0, 0, 0).with_number(EXTENDED, 8);
        let found = Request { kind: GET_LINK, flags: 0, body }.all()?;
        Ok(found.iter().map(|body| read(body)).collect())
    }

    /// Nothing passes through a link that is down.
    pub(super) fn take_down(&self, link: &Link) -> io::Result<()> {
        self.calls.before("link down");
        Request { kind: SET_LINK, flags: 0, body: about(link.index, 0, IS_UP) }.change()
    }

    pub(super) fn bring_up(&self, link: &Link) -> io::Result<()> {
        self.calls.before("link up");
        Request { kind: SET_LINK, flags: 0, body: about(link.index, IS_UP, IS_UP) }.change()
    }

    /// Puts it into a bridge, or into none.
    pub(super) fn enslave(&self, link: &Link, bridge: Option<&Link>) -> io::Result<()> {
        self.calls.before("master");
        let master = bridge.map_or(0, |bridge| bridge.index);
        let body = about(link.index, 0, 0).with_number(MASTER, master.cast_unsigned());
        Request { kind: SET_LINK, flags: 0, body }.change()
    }

    pub(super) fn set_alias(&self, link: &Link, alias: &str) -> io::Result<()> {
        self.calls.before("alias");
        let body = about(link.index, 0, 0).with(ALIAS, alias.as_bytes());
        Request { kind: SET_LINK, flags: 0, body }.change()
    }

    /// Makes a bridge that is down and has no port.
    pub(super) fn add_bridge(&self, name: &str) -> io::Result<()> {
        // Without snooping: multicast is flooded, and no querier is needed for neighbour discovery.
        self.add(
            name,
            Bytes::default()
                .with_name(KIND, "bridge")
                .with_all(DATA, Bytes::default().with(SNOOPING, &[0])),
        )
    }

    /// Makes a VXLAN that is down and sends to nobody.
    pub(super) fn add_tunnel(&self, name: &str, tunnel: &Tunnel) -> io::Result<()> {
        let mut data = Bytes::default()
            .with_number(VNI, tunnel.vni)
            .with(UDP_PORT, &tunnel.port.to_be_bytes());
        if let Some(local) = tunnel.local {
            data = data.with(if local.is_ipv4() { LOCAL } else { LOCAL_6 }, &octets(local));
        }
        self.add(name, Bytes::default().with_name(KIND, "vxlan").with_all(DATA, data))
    }

    fn add(&self, name: &str, info: Bytes) -> io::Result<()> {
        self.calls.before("add link");
        let body = about(0, 0, 0).with_name(NAME, name).with_number(IN_GROUP, GROUP);
        let body = body.with_all(INFO, info);
        Request { kind: NEW_LINK, flags: CREATE | EXCLUSIVE, body }.change()
    }

    pub(super) fn delete(&self, link: &Link) -> io::Result<()> {
        self.calls.before("delete link");
        Request { kind: DELETE_LINK, flags: 0, body: about(link.index, 0, 0) }.change()
    }

    /// Where a VXLAN sends what has no known place: its entries for no MAC address.
    pub(super) fn flood_list(&self, tunnel: &Link) -> io::Result<Vec<IpAddr>> {
        let body = Bytes::of(&neighbour(tunnel.index));
        let mut found = Vec::new();
        for body in (Request { kind: GET_NEIGHBOUR, flags: 0, body }).all()? {
            // Not all kernels leave out what was not asked for.
            if number32(&body, 4) != Some(tunnel.index.cast_unsigned()) {
                continue;
            }
            let attributes = attributes(body.get(12..).unwrap_or_default());
            let of = |kind: u16| attributes.iter().find(|it| it.0 == kind).map(|it| it.1);
            if of(ADDRESS) == Some(&[0; 6]) {
                found.extend(of(DESTINATION).and_then(address));
            }
        }
        found.sort();
        Ok(found)
    }

    pub(super) fn flood_to(&self, tunnel: &Link, vtep: IpAddr) -> io::Result<()> {
        self.calls.before("flood to");
        let body = to_all(tunnel, vtep);
        Request { kind: NEW_NEIGHBOUR, flags: CREATE | APPEND, body }.change()
    }

    pub(super) fn flood_no_more(&self, tunnel: &Link, vtep: IpAddr) -> io::Result<()> {
        self.calls.before("flood no more");
        let body = to_all(tunnel, vtep);
        Request { kind: DELETE_NEIGHBOUR, flags: 0, body }.change()
    }
}

/// ndmsg, of a forwarding database: permanent, in the interface itself.
fn neighbour(index: i32) -> Vec<u8> {
    const BRIDGE: u8 = 7;
    let mut fixed = vec![BRIDGE, 0, 0, 0];
    fixed.extend(index.to_ne_bytes());
    fixed.extend(0x80_u16.to_ne_bytes());
    fixed.extend([2, 0]);
    fixed
}

fn to_all(tunnel: &Link, vtep: IpAddr) -> Bytes {
    Bytes::of(&neighbour(tunnel.index)).with(ADDRESS, &[0; 6]).with(DESTINATION, &octets(vtep))
}
