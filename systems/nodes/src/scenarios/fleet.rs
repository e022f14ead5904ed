//! A hub, two tenants with control planes of their own, a rack with two DPUs, and every program of theirs.

use crate::attach::Attachments;
use crate::claims::Claims;
use crate::dpu::Ports;
use crate::kinds::{NODE_CLAIM, PHYSICAL_NODE, RACK, TENANT, TENANT_PLANE};
use crate::outside::Dpu;
use crate::pool::Pool;
use crate::power::{IsOff, Power, PowerState};
use crate::tenant::Requests;
use crate::world::device::{Device, Disk};
use interlock_api::nodes::{DpuName, Ref};
use interlock_kernel::testing::{LiveView, Server};
use interlock_kernel::{Action, Controller, Effect, Name, Nothing, Outside, Place, Step};
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// More effects than any scenario needs.
const MOST_EFFECTS: usize = 2_000;
const DPUS: [&str; 2] = ["d1", "d2"];
const TENANTS: [Tenant; 2] = [Tenant("t1"), Tenant("t2")];
/// Each node with its DPU and its port there.
const NODES: [(&str, &str, &str); 3] = [("n1", "d1", "p1"), ("n2", "d1", "p2"), ("n3", "d2", "p1")];

/// A tenant, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tenant(pub(super) &'static str);

/// What a driver answers.
type Answering<'a, O> = &'a dyn Fn(&<O as Outside>::Question) -> <O as Outside>::Answer;

impl Tenant {
    fn reference(self) -> Ref {
        Ref::new(self.0, format!("uid-{}", self.0))
    }
}

/// A program: while it is stopped it takes no step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Program {
    Pool,
    Claims(Tenant),
    Plane(Tenant),
    Dpu(&'static str),
    Attach(&'static str, Tenant),
}

impl Program {
    fn all() -> Vec<Program> {
        let mut all = vec![Program::Pool];
        for tenant in TENANTS {
            all.extend([Program::Claims(tenant), Program::Plane(tenant)]);
            all.extend(DPUS.map(|dpu| Program::Attach(dpu, tenant)));
        }
        all.extend(DPUS.map(Program::Dpu));
        all
    }
}

/// The fleet.
pub(super) struct Fleet {
    pub(super) hub: Server,
    planes: BTreeMap<Tenant, Server>,
    devices: BTreeMap<&'static str, Device>,
    stopped: BTreeSet<Program>,
    now: Timestamp,
    /// How many writes and calls there were.
    pub(super) effects: usize,
}

impl Fleet {
    /// With all objects of the platform team, and nothing done yet.
    pub(super) fn new() -> Fleet {
        let mut hub = Server::default();
        let dpus = json!([{"name": "d1", "vtep": "10.0.0.1"}, {"name": "d2", "vtep": "10.0.0.2"}]);
        hub.make(&RACK, &Name::cluster_wide("r1"), json!({"spec": {"dpus": dpus}}));
        for (node, dpu, port) in NODES {
            let mac = format!("02:00:00:00:00:0{}", &node[1..]);
            let dpus = json!([{"rack": "r1", "dpu": dpu, "port": port, "mac": mac}]);
            let object = json!({"spec": {"rack": "r1", "dpus": dpus}});
            hub.make(&PHYSICAL_NODE, &Name::cluster_wide(node), object);
        }
        for tenant in TENANTS {
            let object = json!({"spec": {"plane": {"logicalCluster": tenant.0}}});
            hub.make(&TENANT, &Name::cluster_wide(tenant.0), object);
        }
        let ports = |dpu: &str| -> Vec<&str> {
            NODES.iter().filter(|(_, of, _)| *of == dpu).map(|(_, _, port)| *port).collect()
        };
        Fleet {
            hub,
            planes: TENANTS.map(|tenant| (tenant, Server::named(tenant.0))).into(),
            devices: DPUS.map(|dpu| (dpu, Device::with_ports(ports(dpu)))).into(),
            stopped: BTreeSet::new(),
            now: Timestamp::from_second(1_000_000).expect("it is a time"),
            effects: 0,
        }
    }

    pub(super) fn plane(&self, tenant: Tenant) -> &Server {
        &self.planes[&tenant]
    }

    /// A tenant asks for one node, by its name.
    pub(super) fn claim(&mut self, tenant: Tenant, claim: &str, node: &str) {
        let plane = self.planes.get_mut(&tenant).expect("its plane");
        let object = json!({"spec": {"count": 1, "nodeNames": [node]}});
        plane.make(&NODE_CLAIM, &Name::cluster_wide(claim), object);
    }

    pub(super) fn delete_claim(&mut self, tenant: Tenant, claim: &str) {
        let plane = self.planes.get_mut(&tenant).expect("its plane");
        plane.delete(&NODE_CLAIM, &Name::cluster_wide(claim), self.now);
    }

    /// A program dies, or is cut off from what it works on.
    pub(super) fn stop(&mut self, program: Program) {
        self.stopped.insert(program);
    }

    /// It starts anew: it knows nothing but what it lists.
    pub(super) fn start(&mut self, program: Program) {
        self.stopped.remove(&program);
    }

    /// A DPU loses power and comes back.
    pub(super) fn restart_dpu(&mut self, dpu: &str, disk: Disk) {
        let device = self.devices.get_mut(dpu).expect("its DPU");
        *device = device.restarted(disk);
    }

    /// Where a node is programmed, for whom, and at which epoch.
    pub(super) fn programmed(&self, node: &str) -> Vec<String> {
        let uid = format!("uid-{node}");
        let of = |(dpu, device): (&&str, &Device)| {
            let open = device.open().filter(|(_, entry)| entry.tag.node == uid);
            let shown = open.map(|(_, entry)| {
                let tenant = entry.tag.tenant.trim_start_matches("uid-");
                format!("r1.{dpu} {tenant} {}", entry.tag.epoch)
            });
            shown.collect::<Vec<String>>()
        };
        self.devices.iter().flat_map(of).collect()
    }

    /// All programs that run go on until none of them has anything to do.
    pub(super) fn settle(&mut self) {
        let before = self.effects;
        self.settle_at_most(MOST_EFFECTS);
        assert!(self.effects - before < MOST_EFFECTS, "it does not come to rest");
    }

    /// The same, but after so many effects it stops there.
    pub(super) fn settle_at_most(&mut self, most: usize) {
        let last = self.effects + most;
        loop {
            let before = self.effects;
            for program in Program::all() {
                if self.effects < last && !self.stopped.contains(&program) {
                    self.run(program);
                }
            }
            if self.effects == before || self.effects >= last {
                return;
            }
        }
    }

    /// One effect of a program, if it has one.
    fn run(&mut self, program: Program) {
        let vtep = |dpu: &str| IpAddr::from([10, 0, 0, if dpu == "d1" { 1 } else { 2 }]);
        let name = |dpu: &str| DpuName::new("r1", dpu);
        match program {
            Program::Pool => {
                let unknown = |_: &IsOff| PowerState::Unknown("nobody was asked".to_owned());
                if let Some(effect) = self.next::<Pool>(&Pool, None, &unknown) {
                    self.write::<Power>(effect, None);
                }
            }
            Program::Claims(tenant) => {
                let room = Claims::new(tenant.reference());
                if let Some(effect) = self.next(&room, Some(tenant), &nothing) {
                    self.write(effect, Some(tenant));
                }
            }
            Program::Plane(tenant) => {
                if let Some(effect) = self.next(&Requests, Some(tenant), &nothing) {
                    self.write(effect, Some(tenant));
                }
            }
            Program::Dpu(dpu) => {
                let device = self.devices[dpu].clone();
                let room = Ports { here: name(dpu) };
                if let Some(effect) = self.next(&room, None, &|asked| device.ask(asked)) {
                    self.on_device(dpu, effect, None);
                }
            }
            Program::Attach(dpu, tenant) => {
                let device = self.devices[dpu].clone();
                let room = Attachments::new(name(dpu), vtep(dpu), tenant.reference());
                if let Some(effect) = self.next(&room, Some(tenant), &|asked| device.ask(asked)) {
                    self.on_device(dpu, effect, Some(tenant));
                }
            }
        }
    }

    /// The first effect that a controller has about any of its subjects.
    fn next<C: Controller>(
        &self,
        controller: &C,
        tenant: Option<Tenant>,
        ask: Answering<'_, C::Outside>,
    ) -> Option<Effect<C::Outside>> {
        let mut servers = BTreeMap::from([(Place::HUB, &self.hub)]);
        servers.extend(tenant.map(|tenant| (TENANT_PLANE, &self.planes[&tenant])));
        let view = LiveView { now: self.now, servers };
        let subjects = view.subjects(controller);
        subjects.iter().find_map(|subject| match view.step(controller, subject, ask) {
            Step::Act(effect) => Some(*effect),
            Step::Rest { .. } | Step::Wait { .. } | Step::LiveRead { .. } => None,
        })
    }

    fn on_device(&mut self, dpu: &'static str, effect: Effect<Dpu>, tenant: Option<Tenant>) {
        let Action::Outside(action) = &effect.action else { return self.write(effect, tenant) };
        let after = self.devices[dpu].perform(action);
        let after = after.unwrap_or_else(|why| panic!("{action:?} is refused: {why:?}"));
        self.devices.insert(dpu, after);
        self.happened();
    }

    fn write<O: Outside>(&mut self, effect: Effect<O>, tenant: Option<Tenant>) {
        let Action::Write(write) = effect.action else { return };
        let is_at_hub = write.address().place == Place::HUB;
        let plane = tenant.and_then(|tenant| self.planes.get_mut(&tenant));
        let server = match plane.filter(|_| !is_at_hub) {
            Some(plane) => plane,
            None => &mut self.hub,
        };
        server.apply(&write, self.now).unwrap_or_else(|why| panic!("{why}: {write:?}"));
        self.happened();
    }

    /// After every single effect: no node is open for two tenants, in all DPUs together; what is in the pool is open
    /// nowhere; and a DPU has no node open that is not wired through it.
    fn happened(&mut self) {
        self.effects += 1;
        for (node, dpu, _) in NODES {
            let open = self.programmed(node);
            assert!(open.len() <= 1, "{node}: {open:?}");
            assert!(
                open.iter().all(|it| it.starts_with(&format!("r1.{dpu} "))),
                "{node}: {open:?}"
            );
            let object = self.hub.json(&PHYSICAL_NODE, &Name::cluster_wide(node));
            let is_in_pool = object["status"]["phase"] == "Available";
            assert!(!is_in_pool || open.is_empty(), "{node} is in the pool: {open:?}");
        }
    }
}

fn nothing(asked: &Nothing) -> Nothing {
    match *asked {}
}
