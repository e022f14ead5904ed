//! Where webhooks may be. Whoever may write a webhook configuration makes this server send requests: without a limit,
//! a tenant could reach what only the operator's machines can reach.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Where the webhooks of a logical cluster may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookReach {
    /// They are not called.
    Nowhere,
    /// At addresses in these networks.
    Networks(Vec<Network>),
    /// At every address.
    Anywhere,
}

/// A network: `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl WebhookReach {
    /// Whether a webhook at this address may be called.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        match self {
            WebhookReach::Nowhere => false,
            WebhookReach::Anywhere => true,
            WebhookReach::Networks(networks) => {
                networks.iter().any(|network| network.contains(address))
            }
        }
    }
}

impl Network {
    /// Whether an address is in the network. An IPv4 address in IPv6 clothes is an IPv4 address.
    fn contains(self, address: IpAddr) -> bool {
        let number = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let address = address.to_canonical();
        let differs = number(address) ^ number(self.address);
        let is_inside = self.bits == 0 || differs >> (128 - u32::from(self.bits)) == 0;
        address.is_ipv4() == self.address.is_ipv4() && is_inside
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no network: write 10.0.0.0/8, fd00::/8 or 127.0.0.1");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?,
        };
        Ok(Network { address, bits })
    }
}

impl FromStr for WebhookReach {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "nowhere" => Ok(WebhookReach::Nowhere),
            "anywhere" => Ok(WebhookReach::Anywhere),
            "" => Err("write anywhere, nowhere, or networks such as 10.0.0.0/8".to_owned()),
            networks => {
                let networks = networks.split(',').map(|network| network.trim().parse());
                networks.collect::<Result<_, _>>().map(WebhookReach::Networks)
            }
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

impl fmt::Display for WebhookReach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WebhookReach::Nowhere => formatter.write_str("nowhere"),
            WebhookReach::Anywhere => formatter.write_str("anywhere"),
            WebhookReach::Networks(networks) => {
                let texts: Vec<String> = networks.iter().map(Network::to_string).collect();
                formatter.write_str(&texts.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(reach: &str, address: &str) -> bool {
        let reach: WebhookReach = reach.parse().expect(reach);
        reach.allows(address.parse().expect(address))
    }

    #[test]
    fn a_webhook_is_called_in_the_named_networks_only() {
        assert!(allows("10.0.0.0/8,fd00::/8", "10.255.0.1"));
        assert!(allows("10.0.0.0/8,fd00::/8", "fd12::1"));
        assert!(allows("127.0.0.1", "127.0.0.1"));
        assert!(allows("0.0.0.0/0", "8.8.8.8"));
        assert!(!allows("0.0.0.0/0", "::1"));
        assert!(!allows("127.0.0.1", "127.0.0.2"));
        assert!(!allows("10.0.0.0/8", "169.254.169.254"));
        assert!(!allows("nowhere", "127.0.0.1"));
        assert!(allows("anywhere", "127.0.0.1"));
    }

    #[test]
    fn an_address_in_other_clothes_is_the_same_address() {
        assert!(!allows("fd00::/8", "::ffff:169.254.169.254"));
        assert!(!allows("::/1", "::ffff:10.0.0.1"));
        assert!(allows("10.0.0.0/8", "::ffff:10.0.0.1"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["", "everywhere", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "a.example/8"] {
            assert!(text.parse::<WebhookReach>().is_err(), "{text}");
        }
    }
}
