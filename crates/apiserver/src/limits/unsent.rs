//! Bytes of answers that clients have not read yet: budgets for each caller, each cluster and the
//! server.

use super::{Caps, Permit, State, full, lock};
use crate::status::Status;
use std::sync::{Arc, Mutex};

/// Bytes that wait for a client to read them. They are given back when this is dropped.
#[derive(Debug)]
pub struct Unsent {
    state: Arc<Mutex<State>>,
    cluster: Arc<str>,
    user: Arc<str>,
    bytes: u64,
}

impl Permit {
    /// Counts bytes of an answer, or refuses them with 429. An answer is taken while the budgets
    /// have any room at all: so one of any size can be had by somebody who reads.
    pub fn unsent(&self, bytes: u64) -> Result<Unsent, Status> {
        let mut state = lock(&self.state);
        state.check_unsent(&self.caps, &self.cluster, &self.user)?;
        Ok(self.add_unsent(&mut state, bytes))
    }

    /// Counts bytes of an answer that cannot be refused any more: the write is done.
    pub fn unsent_anyway(&self, bytes: u64) -> Unsent {
        self.add_unsent(&mut lock(&self.state), bytes)
    }

    fn add_unsent(&self, state: &mut State, bytes: u64) -> Unsent {
        state.add_unsent(&self.cluster, &self.user, bytes);
        Unsent {
            state: Arc::clone(&self.state),
            cluster: Arc::clone(&self.cluster),
            user: Arc::clone(&self.user),
            bytes,
        }
    }
}

impl State {
    fn check_unsent(&self, caps: &Caps, cluster: &str, user: &str) -> Result<(), Status> {
        let cluster = self.clusters.get(cluster);
        let of_cluster = cluster.map_or(0, |cluster| cluster.unsent_bytes);
        let of_user = cluster.and_then(|cluster| cluster.callers.get(user));
        let of_user = of_user.map_or(0, |usage| usage.unsent_bytes);
        full(
            of_user >= caps.unsent_bytes_per_caller,
            "this user does not read the answers to earlier requests",
        )?;
        let in_cluster = "answers to earlier requests in this cluster are not read";
        full(of_cluster >= caps.unsent_bytes_per_cluster, in_cluster)?;
        // A cluster below an equal share goes on, whatever the others leave unread.
        let others = self.with_unsent - u32::from(of_cluster > 0);
        let share = caps.unsent_bytes / (u64::from(others) + 1);
        let is_tight = self.total.unsent_bytes >= caps.unsent_bytes;
        full(is_tight && of_cluster >= share, in_cluster)
    }

    fn add_unsent(&mut self, cluster: &Arc<str>, user: &Arc<str>, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let (_, of_cluster) = self.cluster(cluster);
        let is_first = of_cluster.unsent_bytes == 0;
        of_cluster.unsent_bytes += bytes;
        of_cluster.callers.entry(Arc::clone(user)).or_default().unsent_bytes += bytes;
        self.with_unsent += u32::from(is_first);
        self.total.unsent_bytes += bytes;
    }

    fn give_back_unsent(&mut self, unsent: &Unsent) {
        if unsent.bytes == 0 {
            return;
        }
        self.total.unsent_bytes -= unsent.bytes;
        let Some(cluster) = self.clusters.get_mut(&unsent.cluster) else { return };
        cluster.unsent_bytes -= unsent.bytes;
        let is_last = cluster.unsent_bytes == 0;
        cluster.change_usage(&unsent.user, |usage| usage.unsent_bytes -= unsent.bytes);
        self.with_unsent -= u32::from(is_last);
        self.note_quiet(&unsent.cluster);
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        lock(&Arc::clone(&self.state)).give_back_unsent(self);
    }
}
