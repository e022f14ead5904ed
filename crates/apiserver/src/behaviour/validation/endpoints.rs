//! Checks of the addresses and ports behind a Service, in their old form.

use super::checks::{by_rule, one_of, port_number};
use crate::behaviour::read::{at, list, text};
use crate::name;
use crate::status::{FieldError, Path};
use serde_json::{Value, json};
use std::net::IpAddr;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// An Endpoints object.
pub(super) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    for (index, subset) in list(object, "subsets").iter().enumerate() {
        let subsets = Path::Root.field("subsets");
        let path = subsets.index(index);
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|field| list(subset, field).is_empty()) {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.push(FieldError::required(path, detail));
        }
        for field in lists {
            for (index, address) in list(subset, field).iter().enumerate() {
                let list = path.field(field);
                endpoint_address(address, &list.index(index), errors);
            }
        }
        let ports = list(subset, "ports");
        for (index, port) in ports.iter().enumerate() {
            let list = path.field("ports");
            let path = list.index(index);
            match text(port, "name") {
                "" if ports.len() > 1 => errors.push(FieldError::required(path.field("name"), "")),
                "" => {}
                given => by_rule(given, name::dns1123_label, &path.field("name"), errors),
            }
            port_number(at(port, "port"), &path.field("port"), errors);
            one_of(at(port, "protocol"), &PROTOCOLS, &path.field("protocol"), errors);
        }
    }
}

fn endpoint_address(address: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let hostname = text(address, "hostname");
    if !hostname.is_empty() {
        by_rule(hostname, name::dns1123_label, &path.field("hostname"), errors);
    }
    let node = text(address, "nodeName");
    if !node.is_empty() {
        by_rule(node, name::dns1123_subdomain, &path.field("nodeName"), errors);
    }
    let (ip, path) = (text(address, "ip"), path.field("ip"));
    endpoint_ip(ip, &path, errors);
    if ip.parse::<IpAddr>().is_err() {
        // Upstream checks it twice, and says so twice.
        errors.push(FieldError::invalid(path, &json!(ip), "must be a valid IP address"));
    }
}

/// An address that others can reach.
pub(super) fn endpoint_ip(given: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let detail = match given.parse::<IpAddr>() {
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned(),
        Ok(ip) if ip.is_unspecified() => format!("may not be unspecified ({given})"),
        Ok(ip) if ip.is_loopback() => {
            "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
        }
        Ok(ip) if is_link_local(ip) => {
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
        }
        Ok(ip) if is_link_local_multicast(ip) => {
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
        }
        Ok(_) => return,
    };
    errors.push(FieldError::invalid(path, &json!(given), detail));
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ports_are_checked() {
        let fields = |subset: Value| {
            let mut errors = Vec::new();
            validate(&json!({"subsets": [subset]}), &mut errors);
            errors.iter().map(|error| error.field.clone()).collect::<Vec<_>>()
        };
        let port = json!({"port": 80, "protocol": "TCP"});
        assert_eq!(fields(json!({"addresses": [{"ip": "10.0.0.1"}], "ports": [port]})), [""; 0]);
        assert_eq!(fields(json!({})), ["subsets[0]"]);
        for wrong in ["", "x", "127.0.0.1", "::", "169.254.1.1", "224.0.0.5", "ff02::1", "fe80::1"]
        {
            let mut found = fields(json!({"addresses": [{"ip": wrong}]}));
            found.dedup();
            assert_eq!(found, ["subsets[0].addresses[0].ip"], "{wrong}");
        }
        let ports =
            json!([{"port": 0, "protocol": "TCP"}, {"port": 1, "protocol": "X", "name": "a"}]);
        let found = fields(json!({"addresses": [{"ip": "10.0.0.1"}], "ports": ports}));
        assert_eq!(
            found,
            [
                "subsets[0].ports[0].name",
                "subsets[0].ports[0].port",
                "subsets[0].ports[1].protocol"
            ]
        );
    }
}
