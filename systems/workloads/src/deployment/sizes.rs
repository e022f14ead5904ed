//! The plan of a Deployment: the sizes of its ReplicaSets, and which sizes may follow.

use super::decide::Set;
use super::spec::{Spec, Strategy};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The sizes of all ReplicaSets of a Deployment, as they are or are about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// How many pods the Deployment asked for when the plan was made.
    pub desired: u32,
    /// The size of each ReplicaSet, by its name.
    pub sizes: BTreeMap<String, u32>,
}

impl Plan {
    /// The size that a ReplicaSet is to have; one that is not in the plan keeps its own.
    pub fn size_of(&self, set: &Set) -> u32 {
        self.sizes.get(&set.name).copied().unwrap_or(set.size)
    }
}

/// Whether all sizes are carried out, and no pod is leaving because of them.
pub(super) fn is_carried_out(plan: Option<&Plan>, sets: &[Set]) -> bool {
    sets.iter().filter(|set| set.is_planned()).all(|set| {
        let size = plan.map_or(set.size, |plan| plan.size_of(set));
        set.size == size && !set.is_pod_named && set.pods.active <= size
    })
}

/// The plan that follows one that is carried out; None: all is as it should be, or nothing may change yet.
pub(super) fn next(spec: &Spec, plan: Option<&Plan>, sets: &[Set]) -> Option<Plan> {
    let planned: Vec<&Set> = sets.iter().filter(|set| set.is_planned()).collect();
    let mut sizes = Sizes {
        spec,
        new: planned.iter().position(|set| set.is_new),
        available: planned.iter().map(|set| set.pods.available.min(set.size)).collect(),
        sizes: planned.iter().map(|set| set.size).collect(),
        revisions: planned.iter().map(|set| set.revision).collect(),
    };
    let before = sizes.sizes.clone();
    let is_scaled = plan.is_some_and(|plan| plan.desired != spec.replicas);
    if is_scaled {
        sizes.scale();
    } else if !spec.is_paused {
        sizes.roll(sets);
    }
    if sizes.sizes == before && !is_scaled {
        return None;
    }
    let names = planned.iter().map(|set| set.name.clone());
    Some(Plan { desired: spec.replicas, sizes: names.zip(sizes.sizes).collect() })
}

/// Sizes while they are worked out, by ReplicaSet.
struct Sizes<'a> {
    spec: &'a Spec,
    /// The place of the one with the template of the Deployment.
    new: Option<usize>,
    /// The pods of each that are available and stay with its size.
    available: Vec<u32>,
    sizes: Vec<u32>,
    revisions: Vec<u64>,
}

impl Sizes<'_> {
    fn sum(&self) -> u32 {
        self.sizes.iter().fold(0, |sum, size| sum.saturating_add(*size))
    }

    /// How many pods are available however the ReplicaSets get to these sizes: those that are not go first.
    fn left_available(&self, sizes: &[u32]) -> u32 {
        let each = sizes.iter().zip(&self.available).map(|(size, available)| size.min(available));
        each.fold(0, |sum, available| sum.saturating_add(*available))
    }

    /// A change of the template goes on.
    fn roll(&mut self, sets: &[Set]) {
        let Some(new) = self.new else { return };
        if self.sizes[new] > self.spec.replicas {
            self.sizes[new] = self.spec.replicas;
            return;
        }
        match self.spec.strategy {
            Strategy::Recreate => {
                let is_old_left = sets.iter().any(|set| !set.is_new && set.pods.all > 0);
                let sum_of_old = self.sum() - self.sizes[new];
                if sum_of_old > 0 {
                    self.sizes.iter_mut().enumerate().for_each(|(place, size)| {
                        *size = if place == new { *size } else { 0 };
                    });
                } else if !is_old_left {
                    self.sizes[new] = self.spec.replicas;
                }
            }
            Strategy::Rolling { .. } => {
                let room = self.spec.most().saturating_sub(self.sum());
                let missing = self.spec.replicas - self.sizes[new];
                if room.min(missing) > 0 {
                    self.sizes[new] += room.min(missing);
                    return;
                }
                self.shrink(new);
            }
        }
    }

    /// Old ReplicaSets lose what they may lose now: pods that are not available first, the oldest first.
    fn shrink(&mut self, new: usize) {
        // What would be left if all that is missing of the new one stayed missing.
        let missing = self.sizes[new] - self.available[new];
        let kept = self.spec.floor().saturating_add(missing);
        let mut may_go = self.sum().saturating_sub(kept);
        let mut old: Vec<usize> = (0..self.sizes.len()).filter(|place| *place != new).collect();
        old.sort_by_key(|place| self.revisions[*place]);
        for place in &old {
            let unavailable = (self.sizes[*place] - self.available[*place]).min(may_go);
            self.sizes[*place] -= unavailable;
            may_go -= unavailable;
        }
        let mut above = self.left_available(&self.sizes).saturating_sub(self.spec.floor());
        for place in &old {
            let available = self.sizes[*place].min(may_go).min(above);
            self.sizes[*place] -= available;
            may_go -= available;
            above -= available;
        }
    }

    /// The number of pods that are asked for has changed.
    fn scale(&mut self) {
        let Strategy::Rolling { .. } = self.spec.strategy else { return self.scale_active() };
        let active = self.sizes.iter().filter(|size| **size > 0).count();
        if active <= 1 {
            return self.scale_active();
        }
        // Upstream scales to nothing without a surge.
        let most = if self.spec.replicas == 0 { 0 } else { self.spec.most() };
        let in_proportion = self.in_proportion(most);
        let floor = self.spec.floor().min(self.left_available(&self.sizes));
        self.sizes = match self.left_available(&in_proportion) >= floor {
            true => in_proportion,
            false => self.unavailable_first(most),
        };
    }

    /// The one ReplicaSet that has pods gets the new size; if none has, the newest.
    fn scale_active(&mut self) {
        let active = self.sizes.iter().filter(|size| **size > 0).count();
        if active > 1 {
            return;
        }
        let with_pods = self.sizes.iter().position(|size| *size > 0);
        let latest = || (0..self.sizes.len()).max_by_key(|place| self.revisions[*place]);
        if let Some(place) = with_pods.or(self.new).or_else(latest) {
            self.sizes[place] = self.spec.replicas;
        }
    }

    /// Each ReplicaSet gets its share of what comes or goes, the largest first; what rounding leaves is the largest's.
    fn in_proportion(&self, most: u32) -> Vec<u32> {
        let sum = u64::from(self.sum());
        let change = i64::from(most) - i64::try_from(sum).unwrap_or(i64::MAX);
        let mut order: Vec<usize> =
            (0..self.sizes.len()).filter(|at| self.sizes[*at] > 0).collect();
        order.sort_by_key(|place| Reverse((self.sizes[*place], self.revisions[*place])));
        let (mut left, mut sizes) = (change.unsigned_abs(), self.sizes.clone());
        let apply = |size: &mut u32, by: u64| {
            let by = u32::try_from(by).unwrap_or(u32::MAX);
            *size = if change < 0 { size.saturating_sub(by) } else { size.saturating_add(by) };
        };
        for place in &order {
            let share = change.unsigned_abs() * u64::from(self.sizes[*place]);
            let share = ((share + sum / 2) / sum.max(1)).min(left);
            let share = if change < 0 { share.min(u64::from(sizes[*place])) } else { share };
            apply(&mut sizes[*place], share);
            left -= share;
        }
        for place in &order {
            let rest = if change < 0 { left.min(u64::from(sizes[*place])) } else { left };
            apply(&mut sizes[*place], rest);
            left -= rest;
        }
        sizes
    }

    /// The largest lose their pods first, and pods that are not available go before others.
    fn unavailable_first(&self, most: u32) -> Vec<u32> {
        let mut sizes = self.sizes.clone();
        let mut excess = self.sum().saturating_sub(most);
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|place| Reverse(self.sizes[*place]));
        for keeps_available in [true, false] {
            for place in &order {
                let kept = if keeps_available { self.available[*place] } else { 0 };
                let gone = sizes[*place].saturating_sub(kept).min(excess);
                sizes[*place] -= gone;
                excess -= gone;
            }
        }
        sizes
    }
}

#[cfg(test)]
mod tests;
