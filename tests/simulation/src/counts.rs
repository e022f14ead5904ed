//! What a life was like, in numbers.

use std::fmt;
use std::ops::AddAssign;

/// How often something happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Steps of controllers that were begun.
    pub steps: u64,
    /// Requests and questions to a machine that went on their way.
    pub requests: u64,
    /// Writes that the server did.
    pub writes: u64,
    /// Programs that died.
    pub deaths: u64,
    /// Machines that lost their power.
    pub power_failures: u64,
    /// Lines that were cut.
    pub partitions: u64,
    /// Effects of programs that could talk to one of their servers only.
    pub one_sided: u64,
    /// Requests that never arrived.
    pub lost_requests: u64,
    /// Replies that never arrived.
    pub lost_replies: u64,
    /// Requests that were on their way when their sender died.
    pub late_requests: u64,
    /// Lists that were out of date when they were read.
    pub old_lists: u64,
    /// Caches that no news came to for a while.
    pub deaf_caches: u64,
    /// Second instances of a program, beside the first.
    pub twins: u64,
    /// Moments that matter at which something went wrong.
    pub moments: u64,
    /// Namespaces that went from one cluster to another, and epochs for which machines were opened.
    pub moves: u64,
    /// Copies of a snapshot into a volume that came to their end.
    pub copies: u64,
    /// Volumes, snapshots and copies that failed on the way.
    pub failures: u64,
    /// Machines and programs that were struck while something was being made there.
    pub strikes: u64,
    /// Snapshots that somebody deleted by hand, and cloud objects that somebody changed.
    pub by_hand: u64,
    /// Calls to the cloud.
    pub cloud_calls: u64,
    /// Those of them that took effect when nobody waited for them any more.
    pub late_calls: u64,
    /// Requests for a version that succeeded.
    pub updates: u64,
    /// Requests for a version that were rolled back.
    pub rollbacks: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        // Taken apart by name, so that a new count cannot be forgotten here.
        let Counts {
            steps,
            requests,
            writes,
            deaths,
            power_failures,
            partitions,
            one_sided,
            lost_requests,
            lost_replies,
            late_requests,
            old_lists,
            deaf_caches,
            twins,
            moments,
            moves,
            copies,
            failures,
            strikes,
            by_hand,
            cloud_calls,
            late_calls,
            updates,
            rollbacks,
        } = other;
        self.steps += steps;
        self.requests += requests;
        self.writes += writes;
        self.deaths += deaths;
        self.power_failures += power_failures;
        self.partitions += partitions;
        self.one_sided += one_sided;
        self.lost_requests += lost_requests;
        self.lost_replies += lost_replies;
        self.late_requests += late_requests;
        self.old_lists += old_lists;
        self.deaf_caches += deaf_caches;
        self.twins += twins;
        self.moments += moments;
        self.moves += moves;
        self.copies += copies;
        self.failures += failures;
        self.strikes += strikes;
        self.by_hand += by_hand;
        self.cloud_calls += cloud_calls;
        self.late_calls += late_calls;
        self.updates += updates;
        self.rollbacks += rollbacks;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = [
            ("steps", self.steps),
            ("requests", self.requests),
            ("writes", self.writes),
            ("moves", self.moves),
            ("copies of data", self.copies),
            ("failed on a disk", self.failures),
            ("struck meanwhile", self.strikes),
            ("changed by hand", self.by_hand),
            ("calls to a cloud", self.cloud_calls),
            ("late calls", self.late_calls),
            ("updates", self.updates),
            ("rolled back", self.rollbacks),
            ("deaths", self.deaths),
            ("aimed faults", self.moments),
            ("second instances", self.twins),
            ("power failures", self.power_failures),
            ("partitions", self.partitions),
            ("done cut off", self.one_sided),
            ("lost requests", self.lost_requests),
            ("lost replies", self.lost_replies),
            ("late requests", self.late_requests),
            ("old lists", self.old_lists),
            ("deaf caches", self.deaf_caches),
        ];
        for (what, count) in lines {
            writeln!(f, "  {what:<18}{count:>12}")?;
        }
        Ok(())
    }
}
