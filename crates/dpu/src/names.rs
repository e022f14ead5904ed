//! What comes from the API and becomes a name of a file, of an interface or of a rule is checked first.

use crate::failures::invalid;
use interlock_nodes::outside::{Entry, Failure};
use std::net::IpAddr;

/// Linux has room for 15 bytes.
const LONGEST_NAME: usize = 15;
/// Rules with more were not tried.
const MOST_ADDRESSES: usize = 64;

/// A port: a name of an interface that is also plain in a path, in a rule and in a shell.
pub(crate) fn check_port(name: &str) -> Result<(), Failure> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let why = if name.is_empty() || name.len() > LONGEST_NAME {
        format!("it has {} bytes, and an interface has 1 to {LONGEST_NAME}", name.len())
    } else if name.starts_with(['.', '-']) {
        "it starts with a dot or a dash".to_owned()
    } else if !name.bytes().all(is_plain) {
        "it may have letters, digits, dot, dash and underscore only".to_owned()
    } else {
        return Ok(());
    };
    Err(invalid(&format!("{name:?} is no name of a port"), why))
}

/// The number of a network, as VXLAN has it.
pub(crate) fn check_vni(vni: u32) -> Result<(), Failure> {
    if (1..1 << 24).contains(&vni) {
        return Ok(());
    }
    Err(invalid(&format!("network {vni}"), "its number is not between 1 and 16777215"))
}

/// What a port is opened for.
pub(crate) fn check_entry(entry: &Entry) -> Result<(), Failure> {
    check_vni(entry.vni)?;
    let tag = &entry.tag;
    for (what, uid) in [
        ("node", &tag.node),
        ("tenant", &tag.tenant),
        ("claim", &tag.claim),
        ("attachment", &tag.attachment),
    ] {
        let is_plain = uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        // The four of them and the rest of the tag have to fit into the alias of an interface.
        if uid.is_empty() || uid.len() > 36 || !is_plain {
            return Err(invalid(&format!("the {what} uid {uid:?}"), "it is no uid"));
        }
    }
    if tag.epoch < 1 {
        return Err(invalid(&format!("epoch {}", tag.epoch), "the first one is 1"));
    }
    mac(&entry.mac)?;
    if entry.addresses.len() > MOST_ADDRESSES {
        let many = entry.addresses.len();
        return Err(invalid(&format!("{many} addresses"), format!("at most {MOST_ADDRESSES}")));
    }
    for address in &entry.addresses {
        if !is_one_host(*address) {
            return Err(invalid(&format!("address {address}"), "it is not the address of a host"));
        }
    }
    Ok(())
}

/// The DPUs that broadcasts are sent to.
pub(crate) fn check_vteps(vteps: &[IpAddr]) -> Result<(), Failure> {
    match vteps.iter().find(|vtep| !is_one_host(**vtep)) {
        Some(wrong) => Err(invalid(&format!("VTEP {wrong}"), "it is not the address of a host")),
        None => Ok(()),
    }
}

fn is_one_host(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(it) if it.is_broadcast());
    let is_mapped = matches!(address, IpAddr::V6(it) if it.to_ipv4_mapped().is_some());
    let is_other = address.is_unspecified() || address.is_multicast() || address.is_loopback();
    !is_broadcast && !is_mapped && !is_other
}

/// The bytes of a MAC address of one machine.
pub(crate) fn mac(text: &str) -> Result<[u8; 6], Failure> {
    let refused = |why: &str| invalid(&format!("MAC address {text:?}"), why);
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2 && !part.starts_with('+'));
        let read = part.and_then(|part| u8::from_str_radix(part, 16).ok());
        *byte = read.ok_or_else(|| refused("it is not six bytes like 02:00:00:00:00:01"))?;
    }
    if parts.next().is_some() {
        return Err(refused("it has more than six bytes"));
    }
    if bytes == [0; 6] || bytes[0] & 1 == 1 {
        return Err(refused("it is not the address of one machine"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_a_path_is_no_port() {
        for name in ["p0", "eth0.100", "enp3s0f0np0", "pf0_vf-1"] {
            assert_eq!(check_port(name), Ok(()), "{name}");
        }
        for name in ["", ".", "..", "../p0", "a/b", "p 0", "p0\n", "-p", "0123456789abcdef", "pé"]
        {
            assert_eq!(check_port(name).unwrap_err().reason, "Invalid", "{name:?}");
        }
        let message = check_port("../x").unwrap_err().message;
        assert_eq!(message, "\"../x\" is no name of a port: it starts with a dot or a dash");
    }

    #[test]
    fn a_mac_address_is_of_one_machine() {
        assert_eq!(mac("02:00:00:00:0A:fF"), Ok([2, 0, 0, 0, 10, 255]));
        let wrong = ["", "02:00:00:00:00", "02:00:00:00:00:01:02", "01:00:00:00:00:01"];
        for text in
            wrong.into_iter().chain(["00:00:00:00:00:00", "+2:00:00:00:00:01", "2:0:0:0:0:1"])
        {
            assert!(mac(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_that_many_hosts_have_are_refused() {
        let is = |text: &str| is_one_host(text.parse().unwrap());
        assert!(is("10.0.0.1") && is("fd00::1") && is("fe80::1"));
        for text in ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "127.0.0.1", "::1"]
        {
            assert!(!is(text), "{text}");
        }
        assert!(!is("::ffff:10.0.0.1"));
    }
}
