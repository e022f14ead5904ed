//! Which calls fail, and how, by a seed.

use super::harness::proxy::{Fault, Proxy};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a call may be under way that nobody waits for any more. The controllers wait longer.
const LATEST: Duration = Duration::from_millis(2_500);
/// Throttling slows the whole account down for minutes, so it comes this often and no more.
const MOST_THROTTLED: usize = 3;

/// A proxy in front of a cloud.
pub(crate) struct Faults {
    proxy: Proxy,
    chance: Arc<Chance>,
}

struct Chance {
    is_calm: AtomicBool,
    state: Mutex<u64>,
    throttled: AtomicUsize,
}

impl Faults {
    pub(crate) fn start(cloud: SocketAddr, seed: u64) -> Faults {
        let chance = Arc::new(Chance {
            is_calm: AtomicBool::new(false),
            state: Mutex::new(seed | 1),
            throttled: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&chance);
        Faults { proxy: Proxy::start(cloud, move |_| shared.fault()), chance }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.proxy.address
    }

    /// Whether calls are passed on as they are from now on.
    pub(crate) fn set_calm(&self, is_calm: bool) {
        self.chance.is_calm.store(is_calm, Ordering::Relaxed);
    }

    /// The form of each call that came so far.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.proxy.calls()
    }
}

impl Chance {
    fn below(&self, limit: u64) -> u64 {
        let mut state = self.state.lock().expect("nobody panics with it");
        // xorshift64*: any sequence will do, and the same one for the same seed.
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }

    /// One call in five meets a fault.
    fn fault(&self) -> Option<Fault> {
        if self.is_calm.load(Ordering::Relaxed) || self.below(5) != 0 {
            return None;
        }
        Some(match self.below(7) {
            0 => Fault::DropBefore,
            1 => Fault::DropAfter,
            2 => Fault::Late(LATEST.mul_f64(self.below(1_000) as f64 / 1_000.0)),
            3 => Fault::Slow(Duration::from_millis(self.below(1_000))),
            4 => Fault::Twice,
            5 => Fault::Unavailable,
            _ => {
                let before = self.throttled.fetch_add(1, Ordering::Relaxed);
                return (before < MOST_THROTTLED).then_some(Fault::Throttled);
            }
        })
    }
}
