//! How much may be asked at once: a fair share of the server for each logical cluster and each
//! caller.
//!
//! While the server has room, a cluster may use up to its own cap. When it is nearly full, only
//! those go on who use less than an equal share; so one tenant at its limit does not slow another.
//! Health, leases and the hub's own controllers have seats that nobody else can take.
//!
//! A seat is held until the answer was sent, and the bytes of answers that nobody reads have
//! budgets of their own.

mod under_way;
mod unsent;

pub use under_way::{UnderWay, Writing};
pub use unsent::Unsent;

use crate::status::Status;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The caps. Zero means that nothing of the sort is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// Reads and writes in flight, all clusters together, without the reserved ones.
    pub in_flight: u32,
    /// Reads and writes in flight beyond that, for health, leases and the hub's controllers.
    pub reserved_in_flight: u32,
    /// Reads and writes in flight of one cluster.
    pub in_flight_per_cluster: u32,
    /// Reads and writes in flight of one caller in one cluster.
    pub in_flight_per_caller: u32,
    /// Watches, all clusters together.
    pub watches: u32,
    /// Watches of one cluster.
    pub watches_per_cluster: u32,
    /// Watches of one caller in one cluster.
    pub watches_per_caller: u32,
    /// Writes of one cluster each second, in the long run.
    pub writes_per_second: u32,
    /// Writes of one cluster that may come at once after a quiet time.
    pub write_burst: u32,
    /// Bytes of answers that clients have not read yet, all clusters together.
    pub unsent_bytes: u64,
    /// The same of one cluster.
    pub unsent_bytes_per_cluster: u64,
    /// The same of one caller in one cluster.
    pub unsent_bytes_per_caller: u64,
    /// Bytes of all objects of one cluster, as they are stored, if its LogicalCluster says nothing
    /// else. The hub's own cluster has no limit.
    pub stored_bytes_per_cluster: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Caps {
            in_flight: 600,
            reserved_in_flight: 100,
            in_flight_per_cluster: 300,
            in_flight_per_caller: 200,
            watches: 50_000,
            watches_per_cluster: 10_000,
            watches_per_caller: 2_000,
            writes_per_second: 5_000,
            write_burst: 10_000,
            unsent_bytes: 2 << 30,
            unsent_bytes_per_cluster: 512 << 20,
            unsent_bytes_per_caller: 256 << 20,
            stored_bytes_per_cluster: 512 << 20,
        }
    }
}

/// What sort of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Get, list and everything else that changes nothing and ends soon.
    Read,
    /// Anything that may change something.
    Write,
    /// A watch: it costs little and lasts long.
    Watch,
}

/// Who asks for a seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The id of the logical cluster.
    pub cluster: &'a str,
    /// The user.
    pub user: &'a str,
    /// Whether it may use the reserved seats: health, leases, the hub's controllers. It has a
    /// share of those in each cluster; beyond it, it is a caller like any other.
    pub is_privileged: bool,
}

/// How many requests are in flight, for the metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InFlight {
    /// Reads.
    pub reads: u32,
    /// Writes.
    pub writes: u32,
    /// Watches.
    pub watches: u32,
    /// Bytes of answers that clients have not read yet.
    pub unsent_bytes: u64,
    /// Clusters about which something is remembered.
    pub clusters: usize,
}

/// The limits of one server. Clones are the same limits.
#[derive(Debug, Clone)]
pub struct Limits {
    caps: Arc<Caps>,
    state: Arc<Mutex<State>>,
    /// Moments are counted from here.
    began: Instant,
}

#[derive(Debug, Default)]
struct State {
    total: InFlight,
    /// Of the reads and writes, those in reserved seats.
    reserved: u32,
    /// Clusters with a read or write in an ordinary seat.
    active: u32,
    /// Clusters with answers that were not read yet.
    with_unsent: u32,
    clusters: HashMap<Arc<str>, Cluster>,
    /// Clusters that have gone quiet, to be forgotten once their writes are paid off.
    quiet: VecDeque<Arc<str>>,
}

#[derive(Debug, Default)]
struct Cluster {
    in_flight: u32,
    reserved: u32,
    watches: u32,
    unsent_bytes: u64,
    callers: HashMap<Arc<str>, Usage>,
    /// When the writes so far will have been paid off at the steady rate, in nanoseconds since the
    /// beginning.
    writes_paid_at: u64,
    /// The same for writes in reserved seats, so that a cluster's own writes do not use up those.
    reserved_paid_at: u64,
    is_in_quiet_list: bool,
}

/// What one caller uses.
#[derive(Debug, Default)]
struct Usage {
    in_flight: u32,
    watches: u32,
    unsent_bytes: u64,
}

/// What sort of seat, as API Priority and Fairness calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seat {
    Ordinary,
    Reserved,
    Watching,
}

/// A seat that is taken. It is free again when this is dropped.
#[derive(Debug)]
pub struct Permit {
    caps: Arc<Caps>,
    state: Arc<Mutex<State>>,
    cluster: Arc<str>,
    user: Arc<str>,
    work: Work,
    seat: Seat,
}

impl Limits {
    /// Limits with these caps.
    pub fn new(caps: Caps) -> Self {
        Limits { caps: Arc::new(caps), state: Arc::default(), began: Instant::now() }
    }

    /// A seat for a request, or 429 with the time after which to try again. `now` is not the time
    /// of day: a clock that is set back must not lock anybody out.
    pub fn enter(&self, caller: &Caller<'_>, work: Work, now: Instant) -> Result<Permit, Status> {
        let now = u64::try_from(now.saturating_duration_since(self.began).as_nanos());
        let now = now.unwrap_or(u64::MAX);
        let mut state = lock(&self.state);
        state.forget_quiet(now, 2);
        let seat = self.find_seat(&state, caller, work)?;
        if work == Work::Write {
            self.pay_for_write(&mut state, caller.cluster, seat, now)?;
        }
        let (cluster, user) = state.take(caller, work, seat);
        let (caps, state) = (Arc::clone(&self.caps), Arc::clone(&self.state));
        Ok(Permit { caps, state, cluster, user, work, seat })
    }

    /// How many requests are in flight.
    pub fn in_flight(&self) -> InFlight {
        let state = lock(&self.state);
        InFlight { clusters: state.clusters.len(), ..state.total }
    }

    fn find_seat(&self, state: &State, caller: &Caller<'_>, work: Work) -> Result<Seat, Status> {
        let cluster = state.clusters.get(caller.cluster);
        if work == Work::Watch {
            self.check_watch(state, caller)?;
            return Ok(Seat::Watching);
        }
        let reserved_here = cluster.map_or(0, |cluster| cluster.reserved);
        // No cluster may have all of the reserved seats: its leases are not worth more than
        // others'.
        let has_reserved = state.reserved < self.caps.reserved_in_flight
            && reserved_here < self.caps.reserved_in_flight.div_ceil(4);
        if caller.is_privileged && has_reserved {
            return Ok(Seat::Reserved);
        }
        let in_cluster = cluster.map_or(0, |cluster| cluster.in_flight);
        let usage = cluster.and_then(|cluster| cluster.callers.get(caller.user));
        let of_user = usage.map_or(0, |usage| usage.in_flight);
        full(of_user >= self.caps.in_flight_per_caller, "too many requests of this user")?;
        full(in_cluster >= self.caps.in_flight_per_cluster, "too many requests in this cluster")?;
        let used = state.total.reads + state.total.writes - state.reserved;
        full(used >= self.caps.in_flight, "too many requests")?;
        // The last quarter is for those who use less than an equal share.
        let is_tight = used >= self.caps.in_flight - self.caps.in_flight / 4;
        let others = state.active - u32::from(in_cluster > 0);
        let share = (self.caps.in_flight / (others + 1)).max(1);
        full(is_tight && in_cluster >= share, "too many requests in this cluster")?;
        Ok(Seat::Ordinary)
    }

    /// Privileged callers have twice the watches, so that others cannot keep them from watching.
    fn check_watch(&self, state: &State, caller: &Caller<'_>) -> Result<(), Status> {
        let factor = if caller.is_privileged { 2 } else { 1 };
        let is_over = |used: u32, cap: u32| used >= cap.saturating_mul(factor);
        let cluster = state.clusters.get(caller.cluster);
        let in_cluster = cluster.map_or(0, |cluster| cluster.watches);
        let usage = cluster.and_then(|cluster| cluster.callers.get(caller.user));
        let of_user = usage.map_or(0, |usage| usage.watches);
        let caps = &self.caps;
        full(is_over(of_user, caps.watches_per_caller), "too many watches of this user")?;
        full(is_over(in_cluster, caps.watches_per_cluster), "too many watches in this cluster")?;
        full(is_over(state.total.watches, caps.watches), "too many watches")
    }

    /// The steady rate with a burst, kept as one moment: each write moves the moment at which all
    /// are paid off, and is refused if that moment would be further away than a full burst takes.
    fn pay_for_write(
        &self,
        state: &mut State,
        cluster: &str,
        seat: Seat,
        now: u64,
    ) -> Result<(), Status> {
        let too_many = |seconds| {
            let message = "too many writes in this cluster, please try again later";
            Status::too_many_requests(message, seconds)
        };
        if self.caps.writes_per_second == 0 || self.caps.write_burst == 0 {
            return Err(too_many(60));
        }
        let each = 1_000_000_000 / u64::from(self.caps.writes_per_second);
        let burst = each.saturating_mul(u64::from(self.caps.write_burst));
        let known = state.clusters.get(cluster).map_or(0, |cluster| cluster.paid_at(seat));
        let paid_at = known.max(now).saturating_add(each);
        let ahead = paid_at - now;
        if ahead > burst {
            let seconds = (ahead - burst).div_ceil(1_000_000_000);
            return Err(too_many(u32::try_from(seconds).unwrap_or(u32::MAX).max(1)));
        }
        let (_, cluster) = state.cluster(cluster);
        match seat {
            Seat::Reserved => cluster.reserved_paid_at = paid_at,
            Seat::Ordinary | Seat::Watching => cluster.writes_paid_at = paid_at,
        }
        Ok(())
    }
}

fn full(is_full: bool, message: &str) -> Result<(), Status> {
    if !is_full {
        return Ok(());
    }
    Err(Status::too_many_requests(format!("{message}, please try again later"), 1))
}

impl State {
    fn cluster(&mut self, id: &str) -> (Arc<str>, &mut Cluster) {
        let key = match self.clusters.get_key_value(id) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::from(id),
        };
        (Arc::clone(&key), self.clusters.entry(key).or_default())
    }

    fn take(&mut self, caller: &Caller<'_>, work: Work, seat: Seat) -> (Arc<str>, Arc<str>) {
        let (cluster_key, cluster) = self.cluster(caller.cluster);
        let user_key = match cluster.callers.get_key_value(caller.user) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::from(caller.user),
        };
        let mut becomes_active = false;
        match seat {
            Seat::Watching => {
                cluster.watches += 1;
                cluster.callers.entry(Arc::clone(&user_key)).or_default().watches += 1;
            }
            Seat::Reserved => cluster.reserved += 1,
            Seat::Ordinary => {
                becomes_active = cluster.in_flight == 0;
                cluster.in_flight += 1;
                cluster.callers.entry(Arc::clone(&user_key)).or_default().in_flight += 1;
            }
        }
        self.active += u32::from(becomes_active);
        self.reserved += u32::from(seat == Seat::Reserved);
        match work {
            Work::Read => self.total.reads += 1,
            Work::Write => self.total.writes += 1,
            Work::Watch => self.total.watches += 1,
        }
        (cluster_key, user_key)
    }

    fn give_back(&mut self, permit: &Permit) {
        match permit.work {
            Work::Read => self.total.reads -= 1,
            Work::Write => self.total.writes -= 1,
            Work::Watch => self.total.watches -= 1,
        }
        self.reserved -= u32::from(permit.seat == Seat::Reserved);
        let Some(cluster) = self.clusters.get_mut(&permit.cluster) else { return };
        match permit.seat {
            Seat::Watching => {
                cluster.watches -= 1;
                cluster.change_usage(&permit.user, |usage| usage.watches -= 1);
            }
            Seat::Reserved => cluster.reserved -= 1,
            Seat::Ordinary => {
                cluster.in_flight -= 1;
                cluster.change_usage(&permit.user, |usage| usage.in_flight -= 1);
                self.active -= u32::from(cluster.in_flight == 0);
            }
        }
        self.note_quiet(&permit.cluster);
    }

    /// Has a cluster forgotten in a while, if nothing is under way in it.
    fn note_quiet(&mut self, key: &Arc<str>) {
        let Some(cluster) = self.clusters.get_mut(key) else { return };
        if cluster.is_quiet() && !cluster.is_in_quiet_list {
            cluster.is_in_quiet_list = true;
            self.quiet.push_back(Arc::clone(key));
        }
    }

    /// Looks at a few clusters that have gone quiet, and forgets those whose writes are paid off.
    /// One that was forgotten earlier could start a new burst by waiting a moment.
    fn forget_quiet(&mut self, now: u64, how_many: usize) {
        for _ in 0..how_many.min(self.quiet.len()) {
            let Some(key) = self.quiet.pop_front() else { return };
            let Some(cluster) = self.clusters.get_mut(&key) else { continue };
            if !cluster.is_quiet() {
                cluster.is_in_quiet_list = false;
            } else if cluster.writes_paid_at.max(cluster.reserved_paid_at) <= now {
                self.clusters.remove(&key);
            } else {
                self.quiet.push_back(key);
            }
        }
    }
}

impl Cluster {
    fn is_quiet(&self) -> bool {
        self.in_flight == 0 && self.reserved == 0 && self.watches == 0 && self.unsent_bytes == 0
    }

    fn paid_at(&self, seat: Seat) -> u64 {
        match seat {
            Seat::Reserved => self.reserved_paid_at,
            Seat::Ordinary | Seat::Watching => self.writes_paid_at,
        }
    }

    fn change_usage(&mut self, user: &str, change: impl FnOnce(&mut Usage)) {
        let Some(usage) = self.callers.get_mut(user) else { return };
        change(usage);
        if usage.in_flight == 0 && usage.watches == 0 && usage.unsent_bytes == 0 {
            self.callers.remove(user);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        lock(&Arc::clone(&self.state)).give_back(self);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
