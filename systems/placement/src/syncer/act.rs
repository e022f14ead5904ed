//! A decision of the syncer as one step: one write, one look, or a reason to wait.

use super::decide::{Decision, LiveRead};
use super::marks::LABEL_GRANT;
use super::observe::{Scene, grant_address, locks_question, namespace_address, notes_address};
use super::report::Report;
use super::tenancy::Epoch;
use super::{Locks, Syncer, claim, copying, leftover, objects};
use crate::kinds::{CLAIM, FORCE_RELEASE, NAMESPACE, SNAPSHOT, VOLUME_ATTACHMENT};
use interlock_api::names::{
    ANNOTATION_EPOCH, ANNOTATION_GRANT, ANNOTATION_RAN, ANNOTATION_RELEASED, ANNOTATION_RUNNING,
    Permit,
};
use interlock_kernel::metadata::{name_of, put_finalizer, take_finalizer_off};
use interlock_kernel::{Address, Kind, Name, Object, Place, Read, Step, Write};
use serde_json::{Value, json};

/// The decision as one step.
pub(super) fn act(syncer: &Syncer, scene: &Scene, decision: Decision) -> Step<Locks> {
    match decision {
        Decision::Rest(because) => Step::Rest { because },
        Decision::Wait { because, at_most } => Step::Wait { because, at_most },
        decision => {
            let step = Actor { syncer, scene }.act(decision);
            step.unwrap_or_else(|| Step::rest("the object is not in the cache"))
        }
    }
}

/// Turns decisions into steps. None: the object that a decision is about was not seen, which no
/// decision of ours leads to.
struct Actor<'a> {
    syncer: &'a Syncer,
    scene: &'a Scene,
}

impl Actor<'_> {
    fn act(&self, decision: Decision) -> Option<Step<Locks>> {
        let Actor { syncer, scene } = self;
        match decision {
            Decision::Rest(_) | Decision::Wait { .. } => None,
            Decision::LiveRead(live_read) => self.live_read(live_read),
            Decision::Withdraw => {
                let because = "the namespace leaves this cluster; no pod may start any more";
                self.note(&json!({ANNOTATION_RUNNING: ""}), because)
            }
            Decision::Stop => {
                let (kind, object) = scene.to_stop.as_ref()?;
                let write = Write::delete(Place::CLUSTER, kind, object);
                Some(Step::write(write, format!("{kind} leaves this cluster")))
            }
            Decision::Close(epoch) => self.close(epoch),
            Decision::CreateHere { epoch, is_closed } => self.create_here(epoch, is_closed),
            Decision::NoteEpoch(epoch) => self.note(
                &json!({ANNOTATION_EPOCH: epoch.to_string()}),
                "another epoch begins on this cluster",
            ),
            Decision::Permit(epoch) => self.permit(epoch),
            Decision::PutFinalizer => {
                let namespace = scene.hub_namespace.as_ref()?;
                let change = put_finalizer(namespace, &syncer.finalizer);
                let because = "the object is copied to this cluster, and must not be deleted first";
                Some(at_hub(&NAMESPACE, namespace, change, because))
            }
            Decision::TakeFinalizerOffObject => {
                let (kind, object) = scene.finalized.as_ref()?;
                Some(self.finalizer_off(kind, object))
            }
            Decision::TakeFinalizerOff => {
                Some(self.finalizer_off(&NAMESPACE, scene.hub_namespace.as_ref()?))
            }
            Decision::SayPodMoves => scene.pod.as_ref().map(objects::act::say_it_moves),
            Decision::Arrive { place, action } => {
                claim::act::arrive(scene.claims.get(place)?, action, scene, &syncer.finalizer)
            }
            Decision::Leave { place, action } => self.leave(place, action),
            Decision::BringSecret { secret, chore } => {
                let mirror = scene.secrets.get(&secret)?;
                Some(objects::act::act(syncer, &scene.name, mirror, chore))
            }
            Decision::Mirror { place, chore } => {
                let mirror = scene.objects.get(place)?;
                Some(objects::act::act(syncer, &scene.name, mirror, chore))
            }
            Decision::RemoveStray(place) => {
                let (kind, object) = scene.strays.get(place)?;
                let because = format!("{kind} was made from an object that is gone at the hub");
                Some(Step::write(Write::delete(Place::CLUSTER, kind, object), because))
            }
            Decision::CleanUp { part, action, because } => {
                let (grant, epoch) = (scene.grant.as_ref()?, scene.at.epoch);
                let write =
                    leftover::act::write(action, scene.parts.get(part)?, grant.uid(), epoch);
                Some(Step::write(write, because))
            }
            Decision::DeleteNamespace => {
                let here = scene.here.as_ref()?;
                let write = Write::delete(Place::CLUSTER, &NAMESPACE, here);
                Some(Step::write(write, format!("no volume of {} is left here", scene.name)))
            }
            Decision::Say { findings, because } => Some(self.report()?.say(&findings, because)),
            Decision::Acknowledge(handed) => Some(self.report()?.acknowledge(&handed)),
            Decision::AcknowledgeDeletion => Some(self.report()?.acknowledge_deletion()),
            Decision::SettleCopy(state) => Some(self.report()?.settle_copy(state)),
            Decision::TakeCopyOver => Some(self.report()?.take_copy_over()),
            Decision::ForgetCopy => Some(self.report()?.forget_copy()),
            Decision::TellFilled { claims, is_starting } => {
                Some(self.report()?.filled(&claims, is_starting))
            }
            Decision::TellProgress(news) => Some(self.report()?.progress(&news)),
        }
    }

    fn report(&self) -> Option<Report<'_>> {
        let grant = self.scene.grant.as_ref()?;
        Some(Report { syncer: self.syncer, scene: self.scene, grant })
    }

    /// One write to the notes, over the version that was seen.
    fn note(&self, annotations: &Value, because: &str) -> Option<Step<Locks>> {
        let here = self.scene.here.as_ref()?;
        let change = json!({"metadata": {"annotations": annotations}});
        let write = Write::patch(Place::CLUSTER, &NAMESPACE, here, change);
        Some(Step::write(write, because))
    }

    fn create_here(&self, epoch: Epoch, is_closed: bool) -> Option<Step<Locks>> {
        let grant = self.scene.grant.as_ref()?;
        let mut annotations = json!({
            ANNOTATION_GRANT: grant.uid(),
            ANNOTATION_EPOCH: epoch.to_string(),
            ANNOTATION_RUNNING: "",
        });
        if is_closed {
            annotations[ANNOTATION_RELEASED] = json!(epoch.to_string());
        }
        let write = Write::Create {
            address: notes_address(&self.scene.name),
            object: json!({"metadata": {
                "annotations": annotations, "labels": {LABEL_GRANT: self.scene.name},
            }}),
        };
        let because = match is_closed {
            true => "the namespace is created on this cluster to record why it cannot start",
            false => "the namespace is granted to this cluster",
        };
        Some(Step::write(write, because))
    }

    fn close(&self, epoch: Epoch) -> Option<Step<Locks>> {
        let change = json!({ANNOTATION_RELEASED: epoch.to_string()});
        let step = self.note(&change, "no pod runs, no volume is attached, no lock is held")?;
        let cluster = &self.syncer.cluster;
        let said = format!(
            "all pods of epoch {epoch} have stopped on {cluster}; the namespace is handed over \
             next"
        );
        Some(step.telling(self.report()?.event("Stopped", said)))
    }

    fn permit(&self, epoch: Epoch) -> Option<Step<Locks>> {
        let permit = Permit { epoch, boot_id: self.syncer.boot_id.clone() }.to_string();
        let change = json!({ANNOTATION_RUNNING: permit, ANNOTATION_RAN: epoch.to_string()});
        let because = "the live grant names this cluster as the owner, and no forced release is \
            pending";
        let step = self.note(&change, because)?;
        let said = format!("epoch {epoch} may run on {}", self.syncer.cluster);
        Some(step.telling(self.report()?.event("Started", said)))
    }

    fn finalizer_off(&self, kind: &Kind, object: &Object) -> Step<Locks> {
        let change = take_finalizer_off(object, &self.syncer.finalizer);
        at_hub(
            kind,
            object,
            change,
            "the epoch is closed, and this cluster does not own the namespace any more",
        )
    }

    fn leave(&self, place: usize, action: claim::leave::Action) -> Option<Step<Locks>> {
        let Scene { at, grant, .. } = self.scene;
        let claim = self.scene.claims.get(place)?;
        let step = claim::act::leave(claim, action, at, grant.as_ref()?.uid())?;
        if action != claim::leave::Action::Hold {
            return Some(step);
        }
        let said = format!(
            "the last snapshot of claim {} at epoch {} was taken on {}",
            claim.listed.name, at.epoch, at.cluster
        );
        Some(step.telling(self.report()?.event("FinalSyncDone", said)))
    }

    fn live_read(&self, live_read: LiveRead) -> Option<Step<Locks>> {
        let scene = self.scene;
        let notes = || Read::Object(notes_address(&scene.name));
        let (reads, because) = match live_read {
            LiveRead::ToStop => {
                let (kind, object) = scene.to_stop.as_ref()?;
                let address = Address::new(Place::CLUSTER, kind, Name::of(object));
                let reads = vec![Read::Object(address), notes()];
                (reads, "only pods of the revoked epoch are stopped, so this needs a live read")
            }
            LiveRead::WhetherStill => (
                self.reads_of_stillness()?,
                "an epoch is closed only when nothing can write any more, so this needs a live \
                 read",
            ),
            LiveRead::WhetherHeld => (
                vec![Read::Object(namespace_address(scene.hub_namespace.as_ref()?))],
                "an epoch begins only if a live read shows the finalizer of this cluster on the \
                 namespace",
            ),
            LiveRead::WhetherGranted => {
                let grant = Read::Object(grant_address(&scene.name));
                let forces = Read::List { place: Place::HUB, kind: FORCE_RELEASE, namespace: None };
                (
                    vec![notes(), grant, forces],
                    "only a live read of the grant can permit the namespace to run",
                )
            }
            LiveRead::GoneClaims(places) => {
                let claims = places.iter().filter_map(|place| scene.claims.get(*place));
                let reads = claims.map(|claim| {
                    let name = Name::within(&scene.at.namespace, &claim.listed.name);
                    Read::Object(Address::new(Place::HUB, &CLAIM, name))
                });
                (reads.collect(), "a claim is left out only when a live read shows that it is gone")
            }
            LiveRead::WhetherItRan => (vec![notes()], "only a live read can show that nothing ran"),
            LiveRead::WhetherGone => {
                (vec![notes()], "a copy is forgotten only when a live read shows that it is gone")
            }
            LiveRead::FinalizedObjects => {
                let namespace = name_of(scene.hub_namespace.as_ref()?);
                let within = |kind: &Kind| Read::List {
                    place: Place::HUB,
                    kind: kind.clone(),
                    namespace: Some(namespace.to_owned()),
                };
                let reads = self.syncer.kinds.carried().map(within).collect();
                (reads, "the finalizer of the namespace is removed last, so this needs a live read")
            }
            LiveRead::Stray(place) => {
                let (kind, object) = scene.strays.get(place)?;
                let name = Name::within(name_of(scene.hub_namespace.as_ref()?), name_of(object));
                (
                    vec![Read::Object(Address::new(Place::HUB, kind, name))],
                    "an object is removed only when a live read shows that it is gone at the hub",
                )
            }
            LiveRead::LastSnapshot(place) => {
                let source = scene.claims.get(place)?.source.as_ref()?;
                let because = "the ReplicationSource reports a snapshot that the cache does not \
                    show";
                (vec![self.snapshot_of(source)?], because)
            }
            LiveRead::ArrivedSnapshot(place) => {
                let destination = scene.claims.get(place)?.destination.as_ref()?;
                let because = "the ReplicationDestination reports a snapshot that the cache does \
                    not show";
                (vec![self.snapshot_of(destination)?], because)
            }
        };
        Some(Step::LiveRead { reads, because: because.to_owned() })
    }

    /// In this order: what the API shows first, the locks last. Whoever takes a lock after that looks
    /// at the permit, which is withdrawn.
    fn reads_of_stillness(&self) -> Option<Vec<Read<Locks>>> {
        let Actor { syncer, scene } = self;
        let list = |kind, namespace| Read::List { place: Place::CLUSTER, kind, namespace };
        let kinds = syncer.kinds.running().into_iter().rev();
        let mut reads: Vec<Read<Locks>> =
            kinds.map(|kind| list(kind, Some(scene.name.clone()))).collect();
        if syncer.sees_attachments {
            reads.push(list(VOLUME_ATTACHMENT, None));
        }
        reads.push(Read::Ask(locks_question(&scene.name, scene.here.as_ref()?)));
        Some(reads)
    }

    /// The snapshot that a source or destination names.
    fn snapshot_of(&self, mover: &Object) -> Option<Read<Locks>> {
        let snapshot = Name::within(&self.scene.name, copying::reported(mover, "snapshot")?);
        Some(Read::Object(Address::new(Place::CLUSTER, &SNAPSHOT, snapshot)))
    }
}

fn at_hub(kind: &Kind, object: &Object, change: Value, because: &str) -> Step<Locks> {
    Step::write(Write::patch(Place::HUB, kind, object, change), because)
}
