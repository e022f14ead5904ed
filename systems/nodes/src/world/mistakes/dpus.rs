//! Mistakes of the DPUs: of their drivers, and of what closes, opens and reports their ports.

use super::Row;
use super::hub::AsLabelled;
use crate::attach::Attachments;
use crate::attach::decide::{self as attach, Attachment};
use crate::dpu::Ports;
use crate::dpu::decide::Decision;
use crate::dpu::facts as dpu;
use crate::kinds::PHYSICAL_NODE;
use crate::outside::{Answer, Dpu, Gate};
use crate::wired::Live;
use crate::world::device::Forgets;
use crate::world::programs::Bend;
use crate::world::refine::REFINED;
use crate::world::size::Size;
use crate::world::start::{RACK, node};
use interlock_kernel::{LiveReads, Observed, Place, Room, Subject, View};

/// Only the DPUs run what ships: one of them, one tenant, one epoch.
const ONE: Size = Size { hub: 1, tenants: 1, epochs: 1, late: 3, ..Size::SMALL };

pub(super) fn rows() -> Vec<Row> {
    let mut rows = of_drivers();
    rows.extend(of_reports());
    rows.extend(of_records());
    rows.extend(of_attachments());
    rows
}

fn of_drivers() -> Vec<Row> {
    vec![
        Row {
            name: "no-floor-in-the-device",
            sentence: "the driver opens a port at an epoch that is at or under the floor of its record",
            breaks: &["ReportsStayTrue"],
            size: Size { flights: 1, ..ONE },
            bend: |system| system.forgets = Forgets::Floor,
        },
        Row {
            name: "open-after-power-up",
            sentence: "a port comes up with what it was open for last",
            breaks: &["ReportsStayTrue"],
            size: Size { reboots: 1, ..ONE },
            bend: |system| system.forgets = Forgets::ClosedBoot,
        },
        Row {
            name: "raised-and-not-closed",
            sentence: "the floor is raised, what is under it stays open, and the report does not read the hardware",
            breaks: &["ReportsStayTrue"],
            size: ONE,
            bend: |system| {
                system.forgets = Forgets::Close;
                system.bends.ports = Some(Bend::Decide(|facts| Ports::decide(&as_closed(facts))));
            },
        },
    ]
}

/// It takes two steps that are late at once, of one of two agents: too many states to be looked for with the others.
pub(super) fn of_two_late_steps() -> Row {
    Row {
        name: "term-not-compared",
        sentence: "the driver takes an action for a life of the record that has ended since",
        breaks: &["ReportsStayTrue"],
        size: Size { fresh: 1, agents: 2, lost: 1, epochs: 1, flights: 2, late: 4, ..ONE },
        bend: |system| system.forgets = Forgets::Term,
    }
}

fn of_reports() -> Vec<Row> {
    vec![
        Row {
            name: "report-before-the-floor-is-raised",
            sentence: "a closed port is reported with the floor of the hub, before the record has it",
            breaks: &["ReportsStayTrue"],
            size: Size { flights: 1, ..ONE },
            bend: |system| {
                system.bends.ports = Some(Bend::Decide(|facts| Ports::decide(&as_raised(facts))));
            },
        },
        Row {
            name: "never-isolated",
            sentence: "what is revoked is closed by nobody",
            breaks: &["ReclaimCompletes"],
            size: Size { live: 1, ..ONE },
            bend: |system| {
                system.bends.ports = Some(Bend::Decide(|facts| match Ports::decide(facts) {
                    Decision::Isolate { .. } => Decision::WaitForCache,
                    decision => decision,
                }));
            },
        },
    ]
}

fn of_records() -> Vec<Row> {
    vec![
        Row {
            name: "lost-record-never-adopted",
            sentence: "a port whose record was lost gets no other, once the node was given",
            breaks: &["ReclaimCompletes"],
            size: Size { lost: 1, live: 1, ..ONE },
            bend: |system| {
                system.bends.ports = Some(Bend::Decide(|facts| match Ports::decide(facts) {
                    Decision::Adopt { node, .. } if node.epoch > 0 => Decision::WaitForCache,
                    decision => decision,
                }));
            },
        },
        Row {
            name: "adopted-at-floor-0",
            sentence: "a lost record begins at floor 0",
            breaks: &[REFINED],
            size: Size { lost: 1, refine: 1, ..ONE },
            bend: |system| system.bends.ports = Some(Bend::Decide(at_floor_0)),
        },
        Row {
            name: "adopted-at-floor-0-and-attached-from-the-cache",
            sentence: "a lost record begins at floor 0, and a port is opened by what the cache shows",
            breaks: &["ReportsStayTrue"],
            size: Size { lost: 1, stale: 1, ..ONE },
            bend: |system| {
                system.bends.ports = Some(Bend::Decide(at_floor_0));
                system.bends.attachments = Some(Bend::Decide(from_cache));
            },
        },
    ]
}

fn at_floor_0(facts: &dpu::Facts) -> Decision {
    match Ports::decide(facts) {
        Decision::Adopt { port, mut node, is_lost } => {
            node.floor = 0;
            Decision::Adopt { port, node, is_lost }
        }
        decision => decision,
    }
}

fn of_attachments() -> Vec<Row> {
    vec![
        Row {
            name: "attach-from-the-cache",
            sentence: "a port is opened by what the cache shows, without a live read",
            breaks: &["ReportsStayTrue"],
            size: Size { reboots: 1, stale: 1, relist: 1, ..ONE },
            bend: |system| system.bends.attachments = Some(Bend::Decide(from_cache)),
        },
        Row {
            name: "tenant-not-compared",
            sentence: "an attachment is not compared with what the hub says of tenant and claim",
            breaks: &["HardwareIsOwned"],
            size: Size { tenants: 2, forged: 1, ..ONE },
            bend: |system| system.bends.attachments = Some(Bend::Decide(believing)),
        },
        Row {
            name: "dpu-of-another-rack-is-programmed",
            sentence: "a DPU is programmed for a node whose spec names the DPU of that name in another rack",
            breaks: &["DPUAffinity"],
            size: Size { rewired: 1, ..ONE },
            bend: |system| {
                system.bends.attachments =
                    Some(Bend::Observe(|room, subject, view, live_reads| {
                        match rack(view) == RACK {
                            true => as_wired(room, subject, view, live_reads),
                            false => room.observe(subject, view, live_reads),
                        }
                    }));
            },
        },
        Row {
            name: "node-of-another-rack-is-programmed",
            sentence: "a DPU is programmed for a node that is said to be in another rack",
            breaks: &["RackAffinity"],
            size: Size { rewired: 1, ..ONE },
            bend: |system| {
                system.bends.attachments =
                    Some(Bend::Observe(|room, subject, view, live_reads| {
                        match rack(view) == RACK {
                            true => room.observe(subject, view, live_reads),
                            false => as_wired(room, subject, view, live_reads),
                        }
                    }));
            },
        },
        Row {
            name: "attach-what-is-terminating",
            sentence: "an attachment that is being deleted is programmed",
            breaks: &["AttachmentsEnd"],
            size: Size { live: 1, ..ONE },
            bend: |system| {
                system.bends.attachments = Some(Bend::Decide(|facts| {
                    changed(facts, |attachment| {
                        attachment.wanted.is_terminating = false;
                        if let Some(Some(live)) = &mut attachment.live_wanted {
                            live.is_terminating = false;
                        }
                    })
                }));
            },
        },
    ]
}

/// The facts with another answer of the driver.
fn answered(facts: &dpu::Facts, change: impl Fn(&dpu::Facts, &mut Answer)) -> dpu::Facts {
    let mut changed = facts.clone();
    let answers = [&mut changed.asked, &mut changed.device];
    answers.into_iter().flatten().for_each(|answer| change(facts, answer));
    changed
}

/// As if the record of each closed port had the floor of the hub.
fn as_raised(facts: &dpu::Facts) -> dpu::Facts {
    answered(facts, |facts, answer| {
        for port in answer.ports.iter_mut().filter(|port| port.gate == Gate::Closed) {
            let node = facts.nodes.iter().find(|node| Some(&node.uid) == port.record.node.as_ref());
            port.record.floor = node.map_or(0, |node| node.floor).max(port.record.floor);
        }
    })
}

/// As if whatever is at or under the floor of its record were closed.
fn as_closed(facts: &dpu::Facts) -> dpu::Facts {
    answered(facts, |_, answer| {
        for port in &mut answer.ports {
            let floor = port.record.floor;
            if matches!(&port.gate, Gate::Open(entry) if entry.tag.epoch <= floor) {
                port.gate = Gate::Closed;
            }
        }
    })
}

/// The decision by other facts about an attachment.
fn changed(facts: &attach::Facts, change: impl FnOnce(&mut Attachment)) -> attach::Decision {
    let mut facts = facts.clone();
    if let attach::Facts::Attachment(attachment) = &mut facts {
        change(attachment);
    }
    Attachments::decide(&facts)
}

/// What the cache shows counts as read live, after the driver was asked.
fn from_cache(facts: &attach::Facts) -> attach::Decision {
    changed(facts, |attachment| {
        if attachment.asked.is_some() {
            attachment.live_node = attachment.node.clone().map(|node| Live::There(Box::new(node)));
            attachment.live_wanted = Some(Some(attachment.wanted.clone()));
        }
    })
}

/// What is seen of an attachment.
type SeenOf = Observed<attach::Facts, <Attachments as Room>::Scene>;

/// The rack that the spec of the node names.
fn rack(view: &dyn View) -> String {
    let node = view.get(Place::HUB, &PHYSICAL_NODE, &node());
    let rack = node.and_then(|node| Some(node.data["spec"]["rack"].as_str()?.to_owned()));
    rack.unwrap_or_default()
}

/// As if the node were wired to the port, whatever its spec says.
fn as_wired(
    room: &Attachments,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Dpu>,
) -> SeenOf {
    let mut seen = room.observe(subject, &AsLabelled(view), live_reads);
    if let Observed::Seen { facts: attach::Facts::Attachment(attachment), .. } = &mut seen
        && let Some(Live::There(live)) = &mut attachment.live_node
        && let Some(cached) = &attachment.node
    {
        (live.rack, live.dpus) = (cached.rack.clone(), cached.dpus.clone());
        live.port = cached.port.clone();
    }
    seen
}

/// Whoever has the node at the hub, it counts as this tenant's, for the claim that the attachment names.
fn believing(facts: &attach::Facts) -> attach::Decision {
    changed(facts, |attachment| {
        let tenant = attachment.serves.tenant.clone();
        let claim = attachment.wanted.claim.clone();
        let live = match &mut attachment.live_node {
            Some(Live::There(node)) => Some(&mut **node),
            _ => None,
        };
        for node in attachment.node.iter_mut().chain(live) {
            if let Some(given) = &mut node.assignment {
                (given.tenant, given.claim) = (tenant.clone(), claim.clone());
            }
        }
    })
}
