//! What the device protocol promises, and the rules whose loss each promise must notice.

use super::state::{Grant, Phase, Port};
use super::{NodesDevice, Rules, State};
use interlock_checker::{Formula, Invariant, Mutant, Property, StepRule};

pub(super) fn step_rules() -> Vec<StepRule<State>> {
    vec![StepRule::new(
        "EpochsGrow",
        "epoch and floor of a node only grow, and each new owner has the next epoch",
        |from: &State, to: &State| {
            let is_given = to.owner != from.owner && to.owner.is_some();
            from.uid != to.uid
                || to.epoch >= from.epoch
                    && to.floor >= from.floor
                    && (!is_given || to.epoch == from.epoch + 1)
        },
    )]
}

impl NodesDevice {
    pub(super) fn all_invariants(&self) -> Vec<Invariant<State>> {
        let dpus = usize::from(self.dpus);
        let shown = move |s: &State| s.ports.into_iter().take(dpus).filter_map(|port| port.shown());
        vec![
            Invariant::new(
                "TenantIsolation",
                "the node is programmed for at most one tenant, over all its DPUs together",
                move |s: &State| {
                    let mut tenants = shown(s).map(|entry| entry.tenant);
                    let first = tenants.next();
                    tenants.all(|tenant| Some(tenant) == first)
                },
            )
            .unbreakable_if(self.tenants == 1, "there is one tenant")
            .unbreakable_if(self.dpus == 1, "a port is programmed for one tenant at a time"),
            Invariant::new(
                "PoolIsClean",
                "a node in the pool is programmed for nobody",
                move |s: &State| s.phase != Phase::Available || shown(s).next().is_none(),
            ),
            Invariant::new(
                "HardwareIsOwned",
                "what is programmed is the present assignment; of a node that was replaced, only \
                 while its successor is not free",
                move |s: &State| {
                    shown(s).all(|it| match it.uid == s.uid {
                        true => s.owner == Some(it.tenant) && s.epoch == it.epoch,
                        false => s.phase == Phase::Releasing,
                    })
                },
            ),
            Invariant::new(
                "ReportsStayTrue",
                "nothing at or under a floor is programmed once a clean report names the floor",
                move |s: &State| {
                    let is_true = |port: &Port| {
                        port.shown().is_none_or(|it| Some(it.epoch) > port.acked(it.uid))
                    };
                    s.ports[..dpus].iter().all(is_true)
                },
            ),
            Invariant::new(
                "FloorsInOrder",
                "no floor is above what the hub revoked, and nothing is revoked that was not given",
                move |s: &State| {
                    let is_under = |port: &Port| port.node != s.uid || port.floor <= s.floor;
                    s.floor <= s.epoch && s.ports[..dpus].iter().all(is_under)
                },
            ),
        ]
    }

    pub(super) fn all_properties(&self) -> Vec<Property<State>> {
        let dpus = usize::from(self.dpus);
        vec![
            Property::new(
                "ReclaimCompletes",
                "a revoked node returns to the pool",
                Formula::leads_to(
                    |s: &State| s.phase == Phase::Releasing,
                    |s: &State| s.phase != Phase::Releasing,
                ),
            ),
            Property::for_all(
                "EventualConsistency",
                "a node that stays given to a tenant is programmed for it in all its DPUs for good",
                (0..self.tenants).map(|tenant| {
                    Formula::stable_implies_stable(
                        move |s: &State| s.phase == Phase::Bound && s.owner == Some(tenant),
                        move |s: &State| {
                            let grant = Grant { uid: s.uid, tenant, epoch: s.epoch };
                            s.ports[..dpus].iter().all(|port| port.shown() == Some(grant))
                        },
                    )
                }),
            ),
        ]
    }

    /// Each begins in the pool and has what it needs to go wrong, and no more.
    pub(super) fn all_mutants(&self) -> Vec<Mutant<Self>> {
        let mut mutants = self.mutants_without_faults();
        mutants.extend(self.mutants_with_a_fault());
        mutants.extend(self.mutants_with_a_replaced_node());
        mutants.push(Mutant::new(
            "never-adopts",
            "a record that was lost is never made anew",
            &["ReclaimCompletes"],
            NodesDevice { faults: self.faults.max(1), is_born: true, ..self.clone() }
                .without(|rules| rules.adopts = false),
        ));
        mutants
    }

    fn mutants_without_faults(&self) -> Vec<Mutant<Self>> {
        let mutant = |name, sentence, broken, change: fn(&mut Rules)| {
            let least = NodesDevice { epochs: self.epochs.max(2), is_born: true, ..self.clone() };
            Mutant::new(name, sentence, &[broken], least.without(change))
        };
        // The calls that were compared take place in a state; those of one node are enough.
        let mut unlocked = mutant(
            "compare-then-program",
            "the driver compares, and programs later",
            CLEAN,
            |rules| rules.port_lock = false,
        );
        unlocked.model.uids = 1;
        vec![
            mutant(
                "no-floor",
                "the driver does not compare with the floor of the port",
                CLEAN,
                |rules| rules.device_floor = false,
            ),
            mutant(
                "report-before-raise",
                "a report names the floor of the hub before the port has raised its own",
                CLEAN,
                |rules| rules.raise_first = false,
            ),
            unlocked,
            mutant(
                "forged-tenant",
                "an attachment may name another tenant than the hub does",
                "HardwareIsOwned",
                |rules| rules.exact_match = false,
            ),
            mutant(
                "raise-to-epoch",
                "the floor of a port rises to the epoch that is given before it is revoked",
                "FloorsInOrder",
                |rules| rules.floor_of_hub = false,
            ),
            mutant(
                "close-late-and-report-unread",
                "the port is closed as another step, and reports look at the record alone",
                CLEAN,
                |rules| (rules.close_first, rules.read_back) = (false, false),
            ),
        ]
    }

    fn mutants_with_a_fault(&self) -> Vec<Mutant<Self>> {
        let mutant = |name, sentence, broken, change: fn(&mut Rules)| {
            let least = NodesDevice {
                epochs: self.epochs.max(2),
                faults: self.faults.max(1),
                is_born: true,
                ..self.clone()
            };
            Mutant::new(name, sentence, &[broken], least.without(change))
        };
        vec![
            mutant(
                "floor-not-durable",
                "the floor is lost when an agent starts anew, and nothing shows it",
                CLEAN,
                |rules| rules.durable_floor = false,
            ),
            mutant(
                "cached-attach",
                "an attach follows a cache of any age, without a live read",
                CLEAN,
                |rules| rules.look_first = false,
            ),
            mutant(
                "no-term",
                "calls from before a lost record or another boot are accepted",
                CLEAN,
                |rules| rules.term = false,
            ),
            mutant("open-boot", "hardware keeps its entry through a power loss", CLEAN, |rules| {
                rules.closed_boot = false
            }),
            mutant(
                "old-evidence",
                "power seen off before the revocation counts for it",
                CLEAN,
                |rules| rules.fresh_evidence = false,
            ),
            mutant(
                "adopted-at-zero-from-cache",
                "a lost floor starts at 0, and an attach follows a cache",
                "ReportsStayTrue",
                |rules| {
                    (rules.look_first, rules.adopt_floor, rules.power_fails) = (false, false, false)
                },
            ),
        ]
    }

    fn mutants_with_a_replaced_node(&self) -> Vec<Mutant<Self>> {
        let mutant = |name, sentence, change: fn(&mut Rules)| {
            let least = NodesDevice {
                uids: self.uids.max(2),
                faults: self.faults.max(1),
                is_born: true,
                ..self.clone()
            };
            Mutant::new(name, sentence, &[CLEAN], least.without(change))
        };
        vec![
            mutant(
                "no-uid",
                "neither the driver nor the hub compares the uid of the node",
                |rules| (rules.tag_uid, rules.report_uid) = (false, false),
            ),
            mutant("report-of-any-uid", "the hub counts a report of any uid", |rules| {
                rules.report_uid = false;
            }),
        ]
    }
}

const CLEAN: &str = "PoolIsClean";
