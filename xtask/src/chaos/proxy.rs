//! The network between a program and its servers: a proxy of its own, which passes everything on, nothing, or late.

use anyhow::Context;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// How often a connection that is held looks whether it may go on.
const TICK: Duration = Duration::from_millis(20);

/// What the network does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Network {
    /// It carries everything.
    #[default]
    Works,
    /// Connections are closed, and none can be made.
    Drops,
    /// Nothing is carried, and nobody is informed; what was sent meanwhile arrives afterwards.
    Stalls,
}

/// The proxy of a program. It ends with this process.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    servers: Vec<SocketAddr>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    network: Network,
    /// Both ends of each connection, by number.
    open: BTreeMap<u64, [TcpStream; 2]>,
    made: u64,
    /// The place of the server that the next connection is made to.
    next: usize,
}

impl Proxy {
    /// A proxy in front of a server.
    pub(crate) fn start(server: SocketAddr) -> anyhow::Result<Proxy> {
        Proxy::between(vec![server])
    }

    /// A proxy in front of several servers: each connection is made to the one after that of the connection before.
    pub(crate) fn between(servers: Vec<SocketAddr>) -> anyhow::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { servers, state: Mutex::default() });
        let of_listener = Arc::clone(&shared);
        spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&of_listener);
                spawn(move || shared.serve(client));
            }
        });
        Ok(Proxy { address, shared })
    }

    /// Has the network do something else from now on.
    pub(crate) fn set(&self, network: Network) {
        let mut state = self.shared.state();
        state.network = network;
        if network == Network::Drops {
            for stream in state.open.values().flatten() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    /// What the network does now.
    pub(crate) fn network(&self) -> Network {
        self.shared.state().network
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while nothing is carried; whether it may go on then.
    fn may_pass(&self) -> bool {
        loop {
            match self.state().network {
                Network::Works => return true,
                Network::Drops => return false,
                Network::Stalls => {}
            }
            sleep(TICK);
        }
    }

    /// The server of the next connection.
    fn next_server(&self) -> Option<SocketAddr> {
        let mut state = self.state();
        let place = state.next.checked_rem(self.servers.len())?;
        state.next = place + 1;
        self.servers.get(place).copied()
    }

    /// A connection, from its beginning to its end.
    fn serve(self: Arc<Self>, client: TcpStream) {
        if !self.may_pass() {
            return;
        }
        let Some(server) = self.next_server().and_then(|it| TcpStream::connect(it).ok()) else {
            return;
        };
        let clones = || Some([client.try_clone().ok()?, server.try_clone().ok()?]);
        let (Some(kept), Some([from_client, to_server])) = (clones(), clones()) else { return };
        let number = {
            let mut state = self.state();
            // It may have been cut since.
            if state.network == Network::Drops {
                return;
            }
            state.made += 1;
            let number = state.made;
            state.open.insert(number, kept);
            number
        };
        let shared = Arc::clone(&self);
        let upwards = spawn(move || shared.carry(from_client, to_server));
        self.carry(server, client);
        let _ = upwards.join();
        self.state().open.remove(&number);
    }

    /// Carries one direction of a connection until one of its ends is closed.
    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if !self.may_pass() || to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        // Whoever waits at the other end learns of it, and so does the other direction.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it gets.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                spawn(move || {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
                });
            }
        });
        address
    }

    fn is_answered(stream: &mut TcpStream) -> bool {
        let mut byte = [0];
        stream.write_all(b"x").is_ok() && stream.read_exact(&mut byte).is_ok() && byte == *b"x"
    }

    /// A server that greets with a byte.
    fn greeting(byte: u8) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.write_all(&[byte]);
            }
        });
        address
    }

    #[test]
    fn connections_to_several_servers_are_made_to_each_in_turn() {
        let proxy = Proxy::between(vec![greeting(b'a'), greeting(b'b')]).expect("a port");
        let greeted = || {
            let mut byte = [0];
            let mut stream = TcpStream::connect(proxy.address).expect("it listens");
            stream.read_exact(&mut byte).expect("it greets");
            byte[0]
        };
        assert_eq!([greeted(), greeted(), greeted()], *b"aba");
    }

    #[test]
    fn a_network_carries_and_closes_and_holds_what_is_sent() {
        let proxy = Proxy::start(echo()).expect("a port");
        let connect = || TcpStream::connect(proxy.address).expect("it listens");
        let mut first = connect();
        assert!(is_answered(&mut first));
        proxy.set(Network::Drops);
        assert!(!is_answered(&mut first));
        assert!(!is_answered(&mut connect()));
        proxy.set(Network::Works);
        let mut second = connect();
        assert!(is_answered(&mut second));
        proxy.set(Network::Stalls);
        second.set_read_timeout(Some(Duration::from_millis(100))).expect("it is no zero");
        assert!(!is_answered(&mut second));
        proxy.set(Network::Works);
        second.set_read_timeout(Some(Duration::from_secs(60))).expect("it is no zero");
        let mut byte = [0];
        second.read_exact(&mut byte).expect("what was held arrives");
        assert!(is_answered(&mut second));
    }
}
