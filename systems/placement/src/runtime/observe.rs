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
            Some(Answer::Lock(_)) | None => None,
        };
        let held = match looks.answers.get(&Question::Lock(lock_of(&pod))) {
            Some(Answer::Lock(held)) => Some(held.clone()),
            Some(Answer::Process(_)) | None => None,
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

    /// The facts, once the machine has answered.
    pub(super) fn facts(&self) -> Option<Facts> {
        let (known, held) = (self.known?, self.held.as_ref()?);
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
        let address = self.permit_address();
        let namespace = self.view.get(Place::CLUSTER, &NAMESPACE, &address.name);
        let permit = self.permit_of(namespace.as_ref());
        matches!(permit.running, Running::Permitted(epoch) if permit.released < epoch)
    }

    /// What a fresh look at the namespace permits. It counts only if the lock was seen to be ours
    /// before: reads are made in the order in which they were asked for.
    fn permit(&self, held: &Held) -> Option<Permit> {
        let namespace = self.looks.objects.get(&self.permit_address())?;
        (*held == Held::Mine).then(|| self.permit_of(namespace.as_ref()))
    }

    fn permit_of(&self, namespace: Option<&Object>) -> Permit {
        let notes = namespace.and_then(|found| notes::parse(found, &self.runtime.boot_id));
        match notes {
            Some(notes) => Permit { running: notes.running, released: notes.released },
            None => Permit { running: Running::Nothing, released: 0 },
        }
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
