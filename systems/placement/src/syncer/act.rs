//! A decision of the syncer as one step: one write, one look, or a reason to wait.

use super::decide::{Decision, Look};
use super::marks::LABEL_GRANT;
use super::observe::{Scene, grant_address, locks_question, notes_address};
use super::report::Report;
use super::tenancy::Epoch;
use super::{Locks, Syncer, claim, copying, leftover, objects};
use crate::kinds::{CLAIM, FORCE_RELEASE, NAMESPACE, SNAPSHOT, VOLUME_ATTACHMENT};
use interlock_api::names::{
    ANNOTATION_EPOCH, ANNOTATION_GRANT, ANNOTATION_RAN, ANNOTATION_RELEASED, ANNOTATION_RUNNING,
    Permit,
};
use interlock_kernel::metadata::{name_of, put_finalizer, take_finalizer_off};
use interlock_kernel::{Address, Kind, Name, Object, Part, Place, Read, Step, Write};
use serde_json::{Value, json};

/// The decision as one step.
pub(super) fn act(syncer: &Syncer, scene: &Scene, decision: Decision) -> Step<Locks> {
    match decision {
        Decision::Rest(because) => Step::Rest { because },
        Decision::Wait { because, at_most } => Step::Wait { because, at_most },
        decision => {
            let step = Actor { syncer, scene }.act(decision);
            step.unwrap_or_else(|| Step::rest("what it is about is not in the cache"))
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
            Decision::Look(look) => self.look(look),
            Decision::Withdraw => {
                let because = "it leaves this cluster: nothing may start any more";
                self.note(&json!({ANNOTATION_RUNNING: ""}), because)
            }
            Decision::Stop => {
                let (kind, object) = scene.to_stop.as_ref()?;
                let write = Write::delete(Place::CLUSTER, kind, object);
                Some(Step::write(write, format!("{kind} leaves this cluster")))
            }
            Decision::Close(epoch) => self.close(epoch),
            Decision::CreateHere { epoch, is_closed } => self.create_here(epoch, is_closed),
            Decision::NoteEpoch(epoch) => {
                self.note(&json!({ANNOTATION_EPOCH: epoch.to_string()}), "another epoch arrives")
            }
            Decision::Permit(epoch) => self.permit(epoch),
            Decision::PutFinalizer => {
                let namespace = scene.hub_namespace.as_ref()?;
                let change = put_finalizer(namespace, &syncer.finalizer);
                let because = "it goes down to this cluster, and must not vanish first";
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
            Decision::Arrive { place, deed } => {
                let grant = scene.grant.as_ref()?;
                let policy = (&grant.spec.volumes, syncer.finalizer.as_str());
                claim::act::arrive(scene.claims.get(place)?, deed, &scene.at, policy)
            }
            Decision::Leave { place, deed } => self.leave(place, deed),
            Decision::BringSecret { secret, chore } => {
                let mirror = scene.secrets.get(&secret)?;
                Some(objects::act::act(syncer, &scene.name, mirror, chore))
            }
            Decision::Mirror { place, chore } => {
                let mirror = scene.objects.get(place)?;
                Some(objects::act::act(syncer, &scene.name, mirror, chore))
            }
            Decision::CleanUp { part, deed, because } => {
                let about = (scene.grant.as_ref()?.uid(), scene.at.epoch);
                let write = leftover::act::write(deed, scene.parts.get(part)?, about);
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
        let write = Write::patch(Place::CLUSTER, &NAMESPACE, here, (Part::Main, change));
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
            true => "it never arrived here, and the note that it cannot needs a place",
            false => "it is granted to this cluster",
        };
        Some(Step::write(write, because))
    }

    fn close(&self, epoch: Epoch) -> Option<Step<Locks>> {
        let change = json!({ANNOTATION_RELEASED: epoch.to_string()});
        let step = self.note(&change, "nothing runs, nothing is attached, no lock is held")?;
        let cluster = &self.syncer.cluster;
        let said =
            format!("everything of epoch {epoch} has stopped on {cluster}; it is handed over next");
        Some(step.telling(self.report()?.event("Stopped", said)))
    }

    fn permit(&self, epoch: Epoch) -> Option<Step<Locks>> {
        let permit = Permit { epoch, boot_id: self.syncer.boot_id.clone() }.to_string();
        let change = json!({ANNOTATION_RUNNING: permit, ANNOTATION_RAN: epoch.to_string()});
        let because = "the hub says that it is granted here, and not taken by force";
        let step = self.note(&change, because)?;
        let said = format!("epoch {epoch} may run on {}", self.syncer.cluster);
        Some(step.telling(self.report()?.event("Started", said)))
    }

    fn finalizer_off(&self, kind: &Kind, object: &Object) -> Step<Locks> {
        let change = take_finalizer_off(object, &self.syncer.finalizer);
        at_hub(kind, object, change, "it is closed here, and not this cluster's any more")
    }

    fn leave(&self, place: usize, deed: claim::leave::Deed) -> Option<Step<Locks>> {
        let Scene { at, grant, .. } = self.scene;
        let claim = self.scene.claims.get(place)?;
        let step = claim::act::leave(claim, deed, at, grant.as_ref()?.uid())?;
        if deed != claim::leave::Deed::Hold {
            return Some(step);
        }
        let said = format!(
            "the last image of claim {} at epoch {} is made on {}",
            claim.listed.name, at.epoch, at.cluster
        );
        Some(step.telling(self.report()?.event("FinalSyncDone", said)))
    }

    fn look(&self, look: Look) -> Option<Step<Locks>> {
        let scene = self.scene;
        let notes = || Read::Object(notes_address(&scene.name));
        let (reads, because) = match look {
            Look::ToStop => {
                let (kind, object) = scene.to_stop.as_ref()?;
                let address = Address::new(Place::CLUSTER, kind, Name::of(object));
                let reads = vec![Read::Object(address), notes()];
                (reads, "it is stopped only if it is of the epoch that leaves")
            }
            Look::WhetherStill => {
                (self.reads_of_stillness()?, "it is closed only when nothing can write any more")
            }
            Look::WhetherGranted => {
                let grant = Read::Object(grant_address(&scene.name));
                let forces = Read::List { place: Place::HUB, kind: FORCE_RELEASE, namespace: None };
                (vec![notes(), grant, forces], "only the hub itself can say whether it may run")
            }
            Look::GoneClaims(places) => {
                let claims = places.iter().filter_map(|place| scene.claims.get(*place));
                let reads = claims.map(|claim| {
                    let name = Name::within(&scene.at.namespace, &claim.listed.name);
                    Read::Object(Address::new(Place::HUB, &CLAIM, name))
                });
                (reads.collect(), "a claim is left out only when it is seen to be gone")
            }
            Look::WhetherItRan => (
                vec![notes()],
                "only what never ran has written nothing, and a cache may be behind",
            ),
            Look::WhetherGone => {
                (vec![notes()], "a copy is forgotten only when it is seen to be gone")
            }
            Look::FinalizedObjects => {
                let namespace = name_of(scene.hub_namespace.as_ref()?);
                let within = |kind: &Kind| Read::List {
                    place: Place::HUB,
                    kind: kind.clone(),
                    namespace: Some(namespace.to_owned()),
                };
                let reads = self.syncer.kinds.carried().map(within).collect();
                (reads, "it lets go of the namespace last, and a cache may be behind")
            }
            Look::LastImage(place) => {
                let source = scene.claims.get(place)?.source.as_ref()?;
                let because = "its source made an image that the cache does not show";
                (vec![self.image_of(source)?], because)
            }
            Look::ArrivedImage(place) => {
                let destination = scene.claims.get(place)?.destination.as_ref()?;
                let because = "an image was brought that the cache does not show";
                (vec![self.image_of(destination)?], because)
            }
        };
        Some(Step::Look { reads, because: because.to_owned() })
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

    /// The image that a source or destination names.
    fn image_of(&self, mover: &Object) -> Option<Read<Locks>> {
        let image = Name::within(&self.scene.name, copying::told(mover, "image")?);
        Some(Read::Object(Address::new(Place::CLUSTER, &SNAPSHOT, image)))
    }
}

fn at_hub(kind: &Kind, object: &Object, change: Value, because: &str) -> Step<Locks> {
    Step::write(Write::patch(Place::HUB, kind, object, (Part::Main, change)), because)
}
