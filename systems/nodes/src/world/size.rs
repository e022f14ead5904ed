//! How large the world is.

use super::NAME;
use super::people::Left;
use interlock_checker::{Size as Asked, SizeError, SizeKey};
use interlock_world::Hostility;
use std::fmt;

/// What a person can say of the size.
pub(super) const KEYS: [SizeKey; 27] = [
    SizeKey::new("tenants", "tenants, each with a control plane and a claim", 2, 1, 2),
    SizeKey::new("dpus", "DPUs that the node is wired through", 1, 1, 2),
    SizeKey::new("agents", "copies of the agent of each DPU", 1, 1, 2),
    SizeKey::new(
        "hub",
        "1: a stand-in gives, revokes and returns; only the DPUs run what ships",
        0,
        0,
        1,
    ),
    SizeKey::new("epochs", "how often the stand-in gives the node", 2, 1, 3),
    SizeKey::new("fresh", "1: it begins before anything is known of the node", 0, 0, 1),
    SizeKey::new("deletes", "claims that are deleted", 1, 0, 2),
    SizeKey::new("reclaims", "epochs that the platform ends", 0, 0, 1),
    SizeKey::new("vanishes", "claims that vanish although they have our finalizer", 0, 0, 1),
    SizeKey::new("forged", "attachments and claims that a tenant tampers with", 0, 0, 2),
    SizeKey::new("lost", "records of ports that are lost while all runs", 0, 0, 1),
    SizeKey::new("reboots", "DPUs that lose power and come back", 0, 0, 2),
    SizeKey::new("replaced", "1: the node is replaced by force, under its name", 0, 0, 1),
    SizeKey::new("fences", "NodeFences for DPUs that are off", 0, 0, 1),
    SizeKey::new("gone", "1: one DPU loses power for ever", 0, 0, 1),
    SizeKey::new("back", "1: the DPU that lost power comes back after all", 0, 0, 1),
    SizeKey::new(
        "rewired",
        "1: somebody writes another rack, or a DPU of another one, into the node",
        0,
        0,
        1,
    ),
    SizeKey::new("cluster", "1: a WorkloadCluster is on the node once it is bound", 0, 0, 1),
    SizeKey::new("restores", "1: the hub is restored from a backup, once", 0, 0, 1),
    SizeKey::new("flights", "steps that are under way at once", 0, 0, 2),
    SizeKey::new("stale", "objects that are out of date at once", 0, 0, 2),
    SizeKey::new(
        "late",
        "whose: 1: the hub's, 2: of the planes, 3: of the DPUs, 4: of the first agent, 0: all",
        0,
        0,
        4,
    ),
    SizeKey::new("crash", "1: programs crash at any time", 0, 0, 1),
    SizeKey::new("relist", "1: programs that start anew list the past", 0, 0, 1),
    SizeKey::new("refine", "1: steps are compared with spec/nodes-device", 1, 0, 1),
    SizeKey::new("wakes", "1: whoever gains work must be woken", 1, 0, 1),
    SizeKey::new("live", "1: what must happen in the end is checked", 0, 0, 1),
];

/// How large the world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) tenants: u64,
    pub(super) dpus: u64,
    pub(super) agents: u64,
    pub(super) hub: u64,
    pub(super) epochs: u64,
    pub(super) fresh: u64,
    pub(super) deletes: u64,
    pub(super) reclaims: u64,
    pub(super) vanishes: u64,
    pub(super) forged: u64,
    pub(super) lost: u64,
    pub(super) reboots: u64,
    pub(super) replaced: u64,
    pub(super) fences: u64,
    pub(super) gone: u64,
    pub(super) back: u64,
    pub(super) rewired: u64,
    pub(super) cluster: u64,
    pub(super) restores: u64,
    pub(super) flights: u64,
    pub(super) stale: u64,
    pub(super) late: u64,
    pub(super) crash: u64,
    pub(super) relist: u64,
    pub(super) refine: u64,
    pub(super) wakes: u64,
    pub(super) live: u64,
}

impl Size {
    /// Two tenants, one DPU, and nobody does anything: what mistakes are made larger from.
    pub(super) const SMALL: Size = Size {
        tenants: 2,
        dpus: 1,
        agents: 1,
        hub: 0,
        epochs: 2,
        fresh: 0,
        deletes: 0,
        reclaims: 0,
        vanishes: 0,
        forged: 0,
        lost: 0,
        reboots: 0,
        replaced: 0,
        fences: 0,
        gone: 0,
        back: 0,
        rewired: 0,
        cluster: 0,
        restores: 0,
        flights: 0,
        stale: 0,
        late: 0,
        crash: 0,
        relist: 0,
        refine: 0,
        wakes: 0,
        live: 0,
    };

    pub(super) fn read(asked: &Asked) -> Result<Size, SizeError> {
        let numbers = asked.numbers(NAME, &KEYS)?;
        let [tenants, dpus, agents, hub, epochs, fresh, rest @ ..] = numbers;
        let [deletes, reclaims, vanishes, rest @ ..] = rest;
        let [forged, lost, reboots, replaced, fences, gone, rest @ ..] = rest;
        let [back, rewired, cluster, restores, rest @ ..] = rest;
        let [flights, stale, late, crash, relist, refine, wakes, live] = rest;
        Ok(Size {
            tenants,
            dpus,
            agents,
            hub,
            epochs,
            fresh,
            deletes,
            reclaims,
            vanishes,
            forged,
            lost,
            reboots,
            replaced,
            fences,
            gone,
            back,
            rewired,
            cluster,
            restores,
            flights,
            stale,
            late,
            crash,
            relist,
            refine,
            wakes,
            live,
        })
    }

    fn numbers(&self) -> [u64; KEYS.len()] {
        [
            self.tenants,
            self.dpus,
            self.agents,
            self.hub,
            self.epochs,
            self.fresh,
            self.deletes,
            self.reclaims,
            self.vanishes,
            self.forged,
            self.lost,
            self.reboots,
            self.replaced,
            self.fences,
            self.gone,
            self.back,
            self.rewired,
            self.cluster,
            self.restores,
            self.flights,
            self.stale,
            self.late,
            self.crash,
            self.relist,
            self.refine,
            self.wakes,
            self.live,
        ]
    }

    pub(super) fn hostility(&self) -> Hostility {
        let Size { flights, stale, crash, relist, wakes, live, .. } = *self;
        Hostility::of([flights, stale, crash, relist, wakes, live])
    }

    pub(super) fn left(&self) -> Left {
        Left {
            deletes: self.deletes as u32,
            reclaims: self.reclaims as u32,
            vanishes: self.vanishes as u32,
            forged: self.forged as u32,
            lost: self.lost as u32,
            reboots: self.reboots as u32,
            replaced: self.replaced as u32,
            fences: self.fences as u32,
            gone: self.gone as u32,
            back: self.back as u32,
            rewired: self.rewired as u32,
            cluster: self.cluster as u32,
            restores: self.restores as u32,
        }
    }

    /// Whether the steps of a program may be late, and its cache out of date.
    pub(super) fn is_hostile_to(&self, program: &str) -> bool {
        let is_of = |prefix: &str| program.starts_with(prefix);
        match self.late {
            0 => true,
            1 => is_of("hub") || is_of("claims"),
            2 => is_of("plane"),
            3 => is_of("dpu") || is_of("attach"),
            _ => (is_of("dpu") || is_of("attach")) && !program.contains("again"),
        }
    }

    /// Why something never happens in this size.
    pub(super) fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Admit" | "Return" | "Give" | "Revoke" | "Attach" | "EndAttachment"
                if self.hub == 0 =>
            {
                Some("in this size the hub's rooms do that")
            }
            "DeleteClaim" => Some("in this size no claim is deleted"),
            "Reclaim" => Some("in this size the platform ends no epoch"),
            "ClaimVanishes" => Some("in this size no claim vanishes"),
            "Forge" | "Tamper" | "Recreate" => Some("in this size no tenant tampers with anything"),
            "LoseRecord" => Some("in this size no record is lost"),
            "Reboot" => Some("in this size no DPU loses power"),
            "Replace" | "CreateNode" => Some("in this size the node is not replaced"),
            "PowerOff" => Some("in this size no DPU loses power for ever"),
            "Fence" => Some("in this size nobody fences a DPU"),
            "PowerOn" => Some("in this size no DPU comes back"),
            "Restore" => Some("in this size the hub is not restored from a backup"),
            "Rewire" => Some("in this size nobody writes a wrong DPU into the node"),
            "CreateCluster" | "Drain" => Some("in this size no cluster is drained for the node"),
            "FenceMachine" => Some("in this size nobody ends a drain"),
            _ => None,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = KEYS.iter().zip(self.numbers());
        let pairs: Vec<String> = pairs.map(|(key, value)| format!("{}={value}", key.key)).collect();
        formatter.write_str(&pairs.join(","))
    }
}
