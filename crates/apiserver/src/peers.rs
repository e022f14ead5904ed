//! Connections of one peer: no address can have so many that others find none.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many connections there are from where. Clones are the same.
#[derive(Clone)]
pub(crate) struct Peers {
    most: usize,
    connections: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// A connection of a peer, until this is dropped.
pub(crate) struct Connected {
    peers: Peers,
    peer: IpAddr,
}

impl Peers {
    /// With at most so many connections of one peer.
    pub(crate) fn new(most: usize) -> Self {
        Peers { most, connections: Arc::default() }
    }

    /// A connection of a peer, if it has not too many.
    pub(crate) fn enter(&self, address: IpAddr) -> Option<Connected> {
        let peer = peer_of(address);
        let mut connections = self.lock();
        let count = connections.entry(peer).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Connected { peers: self.clone(), peer })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut connections = self.peers.lock();
        if let Some(count) = connections.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&self.peer);
            }
        }
    }
}

/// A machine has as many IPv6 addresses as it likes in its network of 64 bits.
fn peer_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

/// Lets the process have as many open files as it may. Each connection is one.
pub(crate) fn raise_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(because = %error, "cannot raise the limit of open files");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_has_its_share_and_others_have_theirs() {
        let peers = Peers::new(2);
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let enter = |text: &str| peers.enter(address(text));
        let held = [enter("10.0.0.1"), enter("::ffff:10.0.0.1")];
        assert!(held.iter().all(Option::is_some));
        assert!(enter("10.0.0.1").is_none());
        assert!(enter("10.0.0.2").is_some());
        let network = [enter("2001:db8::1"), enter("2001:db8::2")];
        assert!(enter("2001:db8::3").is_none(), "it is the same network");
        assert!(enter("2001:db8:0:1::1").is_some());
        drop((held, network));
        assert!(enter("10.0.0.1").is_some());
        assert!(peers.lock().is_empty());
    }
}
