//! What one decision of the runtime rests on.

use super::Runtime;
use super::decide::{Facts, Lock, Permit, Pod, Process, Restart};
use super::describe::{Problem, describe, grace_seconds, lock_of};
use super::outside::{Answer, Held, Known, LockName, Machine, Question, Run};
use super::status::{Ended, expected};
use crate::kinds::{NAMESPACE, POD};
use crate::syncer::decide::Running;
use crate::syncer::marks::{is_going, uid};
use crate::syncer::notes;
use crate::syncer::objects::compare::contains;
use interlock_kernel::{Address, Looks, Name, Object, Place, View};

/// The question for locks in our hands for pods of a name.
pub(super) fn in_hand(name: &Name) -> Question {
    let namespace = name.namespace.as_deref().unwrap_or_default().to_owned();
    Question::InHand { namespace, name: name.name.to_string() }
}

/// A lock in our hands for a pod of this name that is not the pod with this uid, if any; None: nobody
/// asked yet.
pub(super) fn stray_lock(
    name: &Name,
    pod: &str,
    looks: &Looks<Machine>,
) -> Option<Option<LockName>> {
    let Some(Answer::InHand(locks)) = looks.answers.get(&in_hand(name)) else { return None };
    Some(locks.iter().find(|lock| lock.pod != pod).cloned())
}

/// Everything that a step about one pod sees.
pub(super) struct Scene<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) view: &'a dyn View,
    pub(super) looks: &'a Looks<Machine>,
    pub(super) pod: Object,
    /// What the machine knows of its process; None: nobody asked yet.
    pub(super) known: Option<Known>,
    pub(super) held: Option<Held>,
}

impl<'a> Scene<'a> {
    /// What is seen of a pod that is ours to run.
    pub(super) fn of(
        runtime: &'a Runtime,
        name: &Name,
        (view, looks): (&'a dyn View, &'a Looks<Machine>),
    ) -> Option<Scene<'a>> {
        let pod = view.get(Place::CLUSTER, &POD, name).filter(super::is_process)?;
        let known = match looks.answers.get(&Question::Process(uid(&pod).to_owned())) {
            Some(Answer::Process(known)) => Some(*known),
            Some(_) | None => None,
        };
        let held = match looks.answers.get(&Question::Lock(lock_of(&pod))) {
            Some(Answer::Lock(held)) => Some(held.clone()),
            Some(_) | None => None,
        };
        Some(Scene { runtime, view, looks, pod, known, held })
    }

    pub(super) fn lock(&self) -> LockName {
        lock_of(&self.pod)
    }

    /// The run that the pod asks for, or why it cannot be.
    pub(super) fn describe(&self, epoch: i64) -> Result<Run, Problem> {
        describe(&self.pod, (self.view, self.runtime), epoch)
    }

    /// Where the permit of the pod is.
    pub(super) fn permit_address(&self) -> Address {
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or_default();
        Address::new(Place::CLUSTER, &NAMESPACE, Name::cluster_wide(namespace))
    }

    /// Where the pod is.
    pub(super) fn pod_address(&self) -> Address {
        Address::new(Place::CLUSTER, &POD, Name::of(&self.pod))
    }

    /// The lock of another pod of the same name that is left in our hands.
    pub(super) fn stray_lock(&self) -> Option<Option<LockName>> {
        stray_lock(&Name::of(&self.pod), uid(&self.pod), self.looks)
    }

    /// The facts, once the machine has answered.
    pub(super) fn facts(&self) -> Option<Facts> {
        let (known, held) = (self.known?, self.held.as_ref()?);
        let is_stray_lock_held = self.stray_lock()?.is_some();
        let now = self.view.now();
        let ended = Ended::of(&self.pod, known, now);
        Some(Facts {
            pod: self.pod_fact(),
            process: match known {
                Known::Nothing => Process::None,
                Known::Lives(_) => Process::Lives,
                Known::Stopping(_) => Process::Stopping,
                Known::Killed(_) => Process::Killed,
                Known::Gone { .. } => Process::Gone,
            },
            lock: match held {
                Held::Free => Lock::Free,
                Held::Mine => Lock::Mine,
                Held::Taken => Lock::Taken,
            },
            is_permit_seen: self.is_permit_seen(),
            is_stray_lock_held,
            permit: self.permit(held),
            is_reported: expected(&self.pod, known, now)
                .is_none_or(|expected| contains(&self.pod.data["status"], &expected)),
            is_grace_over: self.is_grace_over(),
            restart: ended.map_or(Restart::Now, |ended| ended.restart(&self.pod, now).0),
        })
    }

    fn pod_fact(&self) -> Pod {
        if is_going(&self.pod) {
            return Pod::Leaving;
        }
        match self.pod.data["status"]["phase"].as_str() {
            Some("Succeeded" | "Failed") => Pod::Finished,
            _ => Pod::Wanted,
        }
    }

    fn is_permit_seen(&self) -> bool {
        self.epoch_seen().is_some()
    }

    /// The epoch that the cache says may run.
    pub(super) fn epoch_seen(&self) -> Option<i64> {
        let address = self.permit_address();
        let namespace = self.view.get(Place::CLUSTER, &NAMESPACE, &address.name);
        let permit = self.permit_of(namespace.as_ref(), true);
        match permit.running {
            Running::Permitted(epoch) if permit.released < epoch => Some(epoch),
            Running::Permitted(_) | Running::Nothing | Running::Lapsed(_) => None,
        }
    }

    /// What a fresh look at the namespace permits, and at the pod finds. It counts only if the lock
    /// was seen to be ours before: reads are made in the order in which they were asked for.
    fn permit(&self, held: &Held) -> Option<Permit> {
        let namespace = self.looks.objects.get(&self.permit_address())?;
        let pod = self.looks.objects.get(&self.pod_address())?;
        let is_there = |pod: &Object| uid(pod) == uid(&self.pod) && !is_going(pod);
        let is_pod_there = pod.as_ref().is_some_and(is_there);
        (*held == Held::Mine).then(|| self.permit_of(namespace.as_ref(), is_pod_there))
    }

    fn permit_of(&self, namespace: Option<&Object>, is_pod_there: bool) -> Permit {
        let notes = namespace.and_then(|found| notes::parse(found, &self.runtime.boot_id));
        let (running, released) =
            notes.map_or((Running::Nothing, 0), |notes| (notes.running, notes.released));
        Permit { is_pod_there, running, released }
    }

    /// The API server stamps a deletion with the end of its grace period. A pod without a node it
    /// gives no time at all, since nobody there has to stop it; here we have to, so its own time is
    /// counted from that stamp.
    fn is_grace_over(&self) -> bool {
        let Some(stamp) = &self.pod.metadata.deletion_timestamp else { return false };
        let node = self.pod.data["spec"]["nodeName"].as_str().unwrap_or_default();
        let own = if node.is_empty() { grace_seconds(&self.pod) } else { 0 };
        let ends = stamp.0.as_second().saturating_add(i64::try_from(own).unwrap_or(i64::MAX));
        self.view.now().as_second() >= ends
    }
}
