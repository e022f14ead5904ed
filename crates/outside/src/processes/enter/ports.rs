//! The ports on which a run listens: where its processes have sockets, and nobody else.

use super::super::Processes;
use super::super::error::Result;
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// How the kernel writes that a socket listens.
const LISTENS: &str = "0A";

impl Processes {
    /// Where a process of the run listens on a TCP port; None if none does. Other programs of the machine may
    /// listen there, too: they are never meant.
    pub fn listening(&self, id: &str, port: u16) -> Result<Option<SocketAddr>> {
        let members = self.members(id)?;
        let sockets: BTreeSet<u64> =
            members.iter().flat_map(|member| sockets_of(member.process.pid)).collect();
        if sockets.is_empty() {
            return Ok(None);
        }
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
        let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
        let mut listening = lines
            .filter_map(parse)
            .filter(|(socket, address)| sockets.contains(socket) && address.port() == port);
        Ok(listening.next().map(|(_, address)| reached(address)))
    }
}

/// The numbers of the sockets that a process has open.
fn sockets_of(pid: i32) -> Vec<u64> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let number = |target: std::path::PathBuf| {
        let text = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned();
        text.parse().ok()
    };
    targets.filter_map(number).collect()
}

/// The number and the address of a socket that listens, from its line in a table of the kernel.
fn parse(line: &str) -> Option<(u64, SocketAddr)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, state, _, _, _, _, _, number, ..] = fields.as_slice() else { return None };
    if *state != LISTENS {
        return None;
    }
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((number.parse().ok()?, SocketAddr::new(ip(address)?, port)))
}

/// The kernel writes an address in words of 32 bits, each in the order of the machine.
fn ip(text: &str) -> Option<IpAddr> {
    let mut bytes = Vec::with_capacity(16);
    for word in text.as_bytes().chunks(8) {
        let word = std::str::from_utf8(word).ok()?;
        bytes.extend(u32::from_str_radix(word, 16).ok()?.to_ne_bytes());
    }
    if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Some(Ipv4Addr::from(four).into());
    }
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?).into())
}

/// Where somebody on this machine reaches it.
fn reached(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        // It takes connections of both kinds, or of this one alone.
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V6(ip) => {
            if let Some(ip) = ip.to_ipv4_mapped() {
                address.set_ip(ip.into());
            }
        }
        IpAddr::V4(_) => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let tail = "00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0";
        let parsed = |local: &str| parse(&format!("   0: {local} {tail}"));
        if cfg!(target_endian = "little") {
            let address = "127.0.0.1:8080".parse().unwrap();
            assert_eq!(parsed("0100007F:1F90"), Some((4711, address)));
            let six = "00000000000000000000000001000000:0050";
            assert_eq!(parsed(six), Some((4711, "[::1]:80".parse().unwrap())));
        }
        assert_eq!(parsed("0100007F"), None);
        assert_eq!(parsed("0100007F:XXXX"), None);
        assert_eq!(parse("  sl  local_address rem_address"), None);
        let connected = tail.replacen("0A", "01", 1);
        assert_eq!(parse(&format!("   0: 0100007F:1F90 {connected}")), None);
    }

    #[test]
    fn a_socket_on_all_addresses_is_reached_over_the_loopback() {
        let reach = |text: &str| reached(text.parse().unwrap()).to_string();
        assert_eq!(reach("0.0.0.0:80"), "127.0.0.1:80");
        assert_eq!(reach("127.64.0.3:80"), "127.64.0.3:80");
        assert_eq!(reach("[::]:80"), "[::1]:80");
        assert_eq!(reach("[::ffff:127.0.0.1]:80"), "127.0.0.1:80");
    }
}
