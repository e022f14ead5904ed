//! A decision about a DpuAttachment as one step.

use super::Attachments;
use super::agree::{Given, Wanted};
use super::decide::{Decision, Flood, Told};
use super::observe::Scene;
use crate::kinds::{DPU_ATTACHMENT, TENANT, TENANT_PLANE};
use crate::outside::{Action, Dpu, Question, Term};
use interlock_api::nodes::FINALIZER_DPU_CLEAN;
use interlock_api::nodes::event::{ATTACHMENT_REFUSED, DPU_PROGRAMMED};
use interlock_kernel::conditions::{Finding, with};
use interlock_kernel::metadata::{put_finalizer, take_finalizer_off};
use interlock_kernel::{Address, Event, Importance, Name, Object, Place, Read, Step, Write};
use serde_json::json;
use std::net::IpAddr;
use std::time::Duration;

/// How long a cache may take to show what a live read showed.
const CACHE: Duration = Duration::from_secs(5);
/// How often a port is read while another controller changes it.
const PORT: Duration = Duration::from_secs(1);
/// How often a port that is programmed is read again: a record that is lost and made anew between two reports closes
/// the port, and leaves the report as it was.
const RESYNC: Duration = Duration::from_secs(60);
/// How often a driver that cannot open ports is asked again.
const DRIVER: Duration = Duration::from_secs(30);

/// The one effect of a decision.
pub(super) fn act(room: &Attachments, scene: &Scene, decision: Decision) -> Step<Dpu> {
    let wait = |because: &str, at_most| Step::Wait { because: because.to_owned(), at_most };
    match (decision, &scene.attachment, &scene.wanted) {
        (Decision::Rest(because), ..) => Step::rest(because),
        (Decision::WaitForCache, ..) => {
            wait("the cache does not show yet what a live read showed", CACHE)
        }
        (Decision::WaitForPort(because), ..) => wait(because, PORT),
        (Decision::Resync, ..) => {
            wait("the attachment is programmed; its port is read again later", RESYNC)
        }
        (Decision::WaitForDriver, ..) => wait("the DPU cannot open the port now", DRIVER),
        (Decision::Ask(port), ..) => Step::LiveRead {
            reads: vec![Read::Ask(port.map_or(Question::Device, Question::Port))],
            because: "only the driver can say what is in the hardware".to_owned(),
        },
        (Decision::Detach { port, term, tag, because }, ..) => {
            Step::outside(Action::Detach { port, term, tag: Some(tag) }, because)
        }
        (Decision::Flood(Flood { vni, vteps }), ..) => {
            Step::outside(Action::Flood { vni, vteps }, "other DPUs hold nodes of the tenant now")
        }
        (decision, Some(attachment), Some(wanted)) => {
            About { room, scene, attachment, wanted }.act(decision)
        }
        (decision, ..) => Step::rest(format!("there is no DpuAttachment to do {decision:?} about")),
    }
}

/// The attachment that a decision is about.
struct About<'a> {
    room: &'a Attachments,
    scene: &'a Scene,
    attachment: &'a Object,
    wanted: &'a Wanted,
}

impl About<'_> {
    fn act(&self, decision: Decision) -> Step<Dpu> {
        let patch = |change, because: &str| {
            let write = Write::patch(TENANT_PLANE, &DPU_ATTACHMENT, self.attachment, change);
            Step::write(write, because)
        };
        match decision {
            Decision::ReadNode => Step::LiveRead {
                reads: vec![Read::Object(self.wanted.node_address())],
                because: "only the hub itself can say that it has not assigned the node".to_owned(),
            },
            Decision::ReadAll(port) => self.read_all(port),
            Decision::PutFinalizer => {
                let change = put_finalizer(self.attachment, FINALIZER_DPU_CLEAN);
                patch(change, "the finalizer is there before the port is opened")
            }
            Decision::TakeFinalizerOff => {
                let change = take_finalizer_off(self.attachment, FINALIZER_DPU_CLEAN);
                patch(
                    change,
                    "nothing is open for the attachment any more, as the driver reads back",
                )
            }
            Decision::Attach { term, given, vteps } => attach(term, given, vteps),
            Decision::Say { findings, told } => self.say(&findings, told),
            Decision::Rest(_)
            | Decision::WaitForCache
            | Decision::WaitForPort(_)
            | Decision::Resync
            | Decision::WaitForDriver
            | Decision::Ask(_)
            | Decision::Detach { .. }
            | Decision::Flood(_) => Step::rest("this needs no attachment"),
        }
    }

    /// The port first: it gives the term, and what the hub says after that is not older. Whatever changes between the
    /// read of the hub and the action gives the port another term, or a higher floor.
    fn read_all(&self, port: String) -> Step<Dpu> {
        let reads = vec![
            Read::Ask(Question::Port(port)),
            Read::Object(self.wanted.node_address()),
            Read::Object(self.wanted.address()),
        ];
        let because = "the port is opened only if the hub and the tenant agree now";
        Step::LiveRead { reads, because: because.to_owned() }
    }

    fn say(&self, findings: &[Finding], told: Told) -> Step<Dpu> {
        let generation = self.attachment.metadata.generation;
        let conditions = self.wanted.conditions.clone();
        let conditions = findings.iter().fold(conditions, |conditions, finding| {
            with(&conditions, finding, self.scene.now, generation)
        });
        let change = json!({"status": {"conditions": conditions}});
        let write = Write::patch_status(TENANT_PLANE, &DPU_ATTACHMENT, self.attachment, change);
        let said = findings.first().map_or("", |finding| &finding.message);
        let step = Step::write(write, format!("the attachment says: {said}"));
        match self.event(told) {
            Some(event) => step.telling(event),
            None => step,
        }
    }

    fn event(&self, told: Told) -> Option<Event> {
        let attachment = |importance, reason, note| Event {
            about: self.wanted.address(),
            uid: self.wanted.uid.clone(),
            importance,
            reason,
            note,
        };
        let here = &self.room.serves.here;
        match told {
            Told::Nobody => None,
            Told::Programmed => {
                let (node, epoch) = (&self.wanted.node.name, self.wanted.epoch);
                let note = format!(
                    "DPU {}/{} has node {node} programmed at epoch {epoch}",
                    here.rack, here.dpu
                );
                Some(attachment(Importance::Normal, DPU_PROGRAMMED, note))
            }
            Told::RefusedInPlane(note) => {
                Some(attachment(Importance::Warning, ATTACHMENT_REFUSED, note))
            }
            Told::RefusedAtHub(because) => {
                let tenant = &self.room.serves.tenant;
                Some(Event {
                    about: Address::new(Place::HUB, &TENANT, Name::cluster_wide(&tenant.name)),
                    uid: tenant.uid.clone(),
                    importance: Importance::Warning,
                    reason: ATTACHMENT_REFUSED,
                    note: format!("at DPU {}/{}: {because}", here.rack, here.dpu),
                })
            }
        }
    }
}

fn attach(term: Term, given: Given, vteps: Vec<IpAddr>) -> Step<Dpu> {
    let Given { port, entry } = given;
    let because =
        format!("the hub has assigned the node to the tenant at epoch {}", entry.tag.epoch);
    Step::outside(Action::Attach { port, term, entry, vteps }, because)
}
