//! A DPU for the tests of the rooms, and caches that may be older than the servers.

use crate::outside::{
    Action, Answer, Dpu, Entry, Failure, Gate, Network, Port, Question, Record, Tag, Term,
};
use interlock_kernel::testing::{LiveView, Machine, TestServers, patched};
use interlock_kernel::{Controller, LiveReads, MOST_LIVE_READS, Read, Step};
use serde_json::{Value, json};
use std::cell::RefCell;

pub(crate) const MAC: &str = "02:00:00:00:00:01";
pub(crate) const VNI: u32 = 5000;

/// A DPU that does what `outside` says of its actions.
#[derive(Debug, Clone)]
pub(crate) struct FakeDpu {
    pub(crate) answer: Answer,
    terms: u32,
}

impl FakeDpu {
    /// With these ports, whose records name no node.
    pub(crate) fn with(ports: &[&str]) -> FakeDpu {
        let mut dpu = FakeDpu {
            answer: Answer {
                boot: "boot-1".to_owned(),
                filter: None,
                ports: Vec::new(),
                networks: Vec::new(),
            },
            terms: 0,
        };
        for name in ports {
            let record = Record { term: dpu.term(), node: None, floor: 0 };
            let name = (*name).to_owned();
            dpu.answer.ports.push(Port { name, record, gate: Gate::Closed, failure: None });
        }
        dpu
    }

    /// With one port, whose record names the node n1.
    pub(crate) fn of_n1(floor: i64) -> FakeDpu {
        let mut dpu = FakeDpu::with(&["p1"]);
        dpu.p1().record.node = Some("uid-n1".to_owned());
        dpu.p1().record.floor = floor;
        dpu
    }

    /// The same, with this open.
    pub(crate) fn open(mut self, entry: Entry) -> FakeDpu {
        self.answer.networks = vec![Network { vni: entry.vni, vteps: Vec::new(), is_used: true }];
        self.p1().gate = Gate::Open(entry);
        self
    }

    pub(crate) fn p1(&mut self) -> &mut Port {
        &mut self.answer.ports[0]
    }

    /// The record of the port is gone: the driver makes a new one.
    pub(crate) fn lose_record(&mut self) {
        let term = self.term();
        self.p1().record = Record { term, node: None, floor: 0 };
    }

    pub(crate) fn term(&mut self) -> Term {
        self.terms += 1;
        Term(format!("term-{}", self.terms))
    }

    fn use_networks(&mut self) {
        for network in &mut self.answer.networks {
            let is_in = |port: &Port| matches!(&port.gate, Gate::Open(it) if it.vni == network.vni);
            network.is_used = self.answer.ports.iter().any(is_in);
        }
    }

    fn on_port(&mut self, action: &Action) -> Option<()> {
        let (name, expected) = match action {
            Action::Adopt { port, term, .. }
            | Action::Isolate { port, term, .. }
            | Action::Attach { port, term, .. }
            | Action::Detach { port, term, .. } => (port, term),
            Action::Flood { .. } | Action::Forget { .. } => return None,
        };
        let new_term = self.term();
        let port = self.answer.ports.iter_mut().find(|port| port.name == *name)?;
        if port.record.term != *expected {
            return None;
        }
        match action {
            Action::Adopt { node, floor, .. } => {
                let is_same = port.record.node.as_ref() == Some(node);
                let floor = if is_same { port.record.floor.max(*floor) } else { *floor };
                port.gate = Gate::Closed;
                port.record = Record { term: new_term, node: Some(node.clone()), floor };
            }
            Action::Isolate { node, floor, .. } => {
                if port.record.node.as_ref() != Some(node) {
                    return None;
                }
                if matches!(&port.gate, Gate::Open(entry) if entry.tag.epoch <= *floor) {
                    port.gate = Gate::Closed;
                }
                port.record.floor = port.record.floor.max(*floor);
            }
            Action::Attach { entry, .. } => {
                let is_right = port.record.node.as_ref() == Some(&entry.tag.node)
                    && entry.tag.epoch > port.record.floor
                    && port.gate == Gate::Closed;
                if !is_right {
                    return None;
                }
                port.gate = Gate::Open(entry.clone());
            }
            Action::Detach { tag, .. } => {
                let is_it = match (&port.gate, tag) {
                    (Gate::Open(entry), Some(tag)) => entry.tag == *tag,
                    (Gate::Foreign(_), None) => true,
                    (Gate::Closed | Gate::Open(_) | Gate::Foreign(_), _) => false,
                };
                if is_it {
                    port.gate = Gate::Closed;
                }
            }
            Action::Flood { .. } | Action::Forget { .. } => {}
        }
        Some(())
    }
}

impl Machine<Dpu> for FakeDpu {
    fn ask(&self, question: &Question) -> Answer {
        let mut answer = self.answer.clone();
        if let Question::Port(name) = question {
            answer.ports.retain(|port| port.name == *name);
            let is_in = |vni| {
                let open = |port: &Port| matches!(&port.gate, Gate::Open(it) if it.vni == vni);
                answer.ports.iter().any(open)
            };
            answer.networks.retain(|network| is_in(network.vni));
        }
        answer
    }

    fn perform(&mut self, action: &Action) -> bool {
        let is_done = match action {
            Action::Flood { vni, vteps } => {
                let network = self.answer.networks.iter_mut().find(|it| it.vni == *vni);
                network.map(|network| network.vteps = vteps.clone()).is_some()
            }
            Action::Forget { vni } => {
                self.answer.networks.retain(|network| network.vni != *vni || network.is_used);
                true
            }
            action => self.on_port(action).is_some(),
        };
        if let (true, Action::Attach { entry, vteps, .. }) = (is_done, action) {
            let (vni, vteps) = (entry.vni, vteps.clone());
            self.answer.networks.retain(|network| network.vni != vni);
            self.answer.networks.push(Network { vni, vteps, is_used: true });
        }
        self.use_networks();
        is_done
    }
}

/// Steps of a controller whose caches may be older than the servers.
pub(crate) struct Behind<C> {
    pub(crate) room: C,
    /// What the caches show.
    pub(crate) cached: TestServers,
    /// What the servers have.
    pub(crate) live: TestServers,
    pub(crate) dpu: FakeDpu,
    /// What was read live, in order.
    pub(crate) reads: RefCell<Vec<String>>,
}

impl<C: Controller<Outside = Dpu> + Clone> Behind<C> {
    pub(crate) fn of(room: &C, dpu: FakeDpu, cached: Vec<Value>, live: Vec<Value>) -> Behind<C> {
        let servers = |objects: Vec<Value>| TestServers::of(room).with(objects);
        let (cached, live) = (servers(cached), servers(live));
        Behind { room: room.clone(), cached, live, dpu, reads: RefCell::default() }
    }

    /// One step, with its live reads answered; what happens before each of them is `meanwhile`.
    pub(crate) fn step_while(
        &mut self,
        subject: &str,
        mut meanwhile: impl FnMut(&mut FakeDpu, usize),
    ) -> Step<Dpu> {
        let mut live_reads: LiveReads<Dpu> = LiveReads::default();
        for _ in 0..=MOST_LIVE_READS {
            let view: LiveView<'_> = self.cached.view();
            match view.step_with(&self.room, subject, &live_reads) {
                Step::LiveRead { reads, .. } => {
                    for read in reads {
                        let count = self.reads.borrow().len();
                        meanwhile(&mut self.dpu, count);
                        self.reads.borrow_mut().push(words(&read));
                        let ask = |question: &Question| self.dpu.ask(question);
                        self.live.view().read_live(read, ask, &mut live_reads);
                    }
                }
                step => return step,
            }
        }
        panic!("too many live reads about {subject}");
    }

    pub(crate) fn step(&mut self, subject: &str) -> Step<Dpu> {
        self.step_while(subject, |_, _| {})
    }

    pub(crate) fn read(&self) -> Vec<String> {
        self.reads.take()
    }
}

fn words(read: &Read<Dpu>) -> String {
    match read {
        Read::Ask(Question::Device) => "ask all".to_owned(),
        Read::Ask(Question::Port(name)) => format!("ask {name}"),
        Read::Object(address) => format!("{} {}", address.kind, address.name),
        Read::List { kind, .. } | Read::Selected { kind, .. } => format!("all of {kind}"),
        Read::DryRun(dry_run) => format!("try {}", dry_run.address),
    }
}

/// The action of a step.
pub(crate) fn action(step: Step<Dpu>) -> Action {
    match step {
        Step::Act(effect) => match effect.action {
            interlock_kernel::Action::Outside(action) => action,
            interlock_kernel::Action::Write(write) => panic!("{write:?}"),
        },
        step @ (Step::Rest { .. } | Step::Wait { .. } | Step::LiveRead { .. }) => {
            panic!("{step:?}")
        }
    }
}

/// Why a step does nothing now.
pub(crate) fn idle(step: Step<Dpu>) -> String {
    match step {
        Step::Rest { because } | Step::Wait { because, .. } => because,
        step @ (Step::Act(_) | Step::LiveRead { .. }) => panic!("{step:?}"),
    }
}

/// What n1 is open for at an epoch, for the claim c1 of the tenant t1.
pub(crate) fn entry(epoch: i64) -> Entry {
    Entry {
        tag: Tag {
            node: "uid-n1".to_owned(),
            tenant: "uid-t1".to_owned(),
            claim: "uid-c1".to_owned(),
            attachment: format!("uid-n1.d1.{epoch}"),
            epoch,
        },
        vni: VNI,
        mac: MAC.to_owned(),
        addresses: vec!["10.0.0.1".parse().expect("an address")],
    }
}

pub(crate) fn failure(reason: &'static str, message: &str) -> Failure {
    Failure { reason, message: message.to_owned() }
}

/// A node in the pool, with port p1 of the DPU r1/d1.
pub(crate) fn node(name: &str, patch: &Value) -> Value {
    let object = json!({
        "kind": "PhysicalNode",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "labels": {"dpu.interlock.dev/r1.d1": "p1"},
        },
        "spec": {"rack": "r1", "dpus": [{"rack": "r1", "dpu": "d1", "port": "p1", "mac": MAC}]},
        "status": {"phase": "Available", "epoch": 0, "floor": 0},
    });
    patched(object, patch)
}

/// The same, assigned at an epoch to the claim c1 of the tenant t1.
pub(crate) fn bound(name: &str, epoch: i64) -> Value {
    let assignment = json!({
        "tenant": {"name": "t1", "uid": "uid-t1"}, "claim": {"name": "c1", "uid": "uid-c1"},
        "epoch": epoch, "vni": VNI,
    });
    let status =
        json!({"phase": "Bound", "epoch": epoch, "floor": epoch - 1, "assignment": assignment});
    node(name, &json!({"status": status}))
}

/// The same, revoked.
pub(crate) fn revoked(name: &str, epoch: i64) -> Value {
    patched(bound(name, epoch), &json!({"status": {"phase": "Releasing", "floor": epoch}}))
}

/// The report of the DPU r1/d1.
pub(crate) fn report(status: &Value) -> Value {
    json!({
        "kind": "DpuReport", "metadata": {"name": "r1.d1", "uid": "uid-r1.d1", "generation": 1},
        "spec": {"rack": "r1", "dpu": "d1"}, "status": status,
    })
}
