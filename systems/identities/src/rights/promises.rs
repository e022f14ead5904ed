//! What the rights promise, and the rules whose loss each promise must notice.

use super::state::{Grant, Phase};
use super::{IdentitiesRights, Rules, State};
use interlock_checker::{Formula, Invariant, Mutant, Property};

impl State {
    /// Forced epochs up to this one are said to have no rights.
    fn claimed(&self) -> u8 {
        let by_the_next = if self.ready > self.forced { self.forced } else { 0 };
        self.said_fenced.max(by_the_next)
    }
}

pub(super) fn invariants() -> Vec<Invariant<State>> {
    vec![
        Invariant::new(
            "RightsFollowTheGrant",
            "from the permit of an epoch until its release, the role trusts its owner",
            |s: &State| {
                let runs = s.running.contains(&s.grant.epoch);
                !(runs && s.grant.is_held()) || s.trust == s.grant.epoch
            },
        ),
        Invariant::new(
            "ReadyIsTrue",
            "rights that are said to be ready for the present epoch are",
            |s: &State| {
                !(s.ready == s.grant.epoch && s.grant.is_held()) || s.trust == s.grant.epoch
            },
        ),
        Invariant::new(
            "FencedHasNoRights",
            "where a forced epoch is said to have no rights, each session of it is denied",
            |s: &State| {
                s.sessions().all(|session| session.epoch > s.claimed() || s.denies(session))
            },
        ),
        Invariant::new(
            "OwnerNotDenied",
            "no fence denies a session of the present owner",
            |s: &State| {
                let is_owned = s.grant.epoch > s.forced;
                let of_owner = s.sessions().filter(|it| is_owned && it.epoch == s.grant.epoch);
                !of_owner.into_iter().any(|session| s.denies(session))
            },
        ),
    ]
}

impl IdentitiesRights {
    pub(super) fn all_properties(&self) -> Vec<Property<State>> {
        let runs = |epoch: u8| {
            let (owner, granted) = (self.owner(epoch), Grant { epoch, phase: Phase::Granted });
            Formula::leads_to(
                move |s: &State| s.grant == granted,
                move |s: &State| s.running[owner] == epoch || s.grant != granted,
            )
        };
        let ends = |epoch: u8| {
            let fenced = Grant { epoch, phase: Phase::Fenced };
            Formula::leads_to(
                move |s: &State| s.grant == fenced,
                move |s: &State| s.said_fenced >= epoch || s.grant != fenced,
            )
        };
        let mut properties = vec![Property::for_all(
            "GrantRuns",
            "a granted epoch gets its rights and runs, unless it is revoked or forced",
            (1..=self.epochs).map(runs),
        )];
        // A promise about what never happens would be empty.
        if self.is_forced_ever() {
            properties.push(Property::for_all(
                "ForceEnds",
                "a forced release ends the rights of the old owner, unless it is granted on before",
                (1..=self.epochs).map(ends),
            ));
        }
        properties
    }

    pub(super) fn all_mutants(&self) -> Vec<Mutant<Self>> {
        let mutant = |name, sentence, broken: &'static str, change: fn(&mut Rules)| {
            let least = IdentitiesRights {
                instances: self.instances.max(2),
                epochs: self.epochs.max(2),
                forced: self.forced.max(1),
                faults: self.faults.max(2),
                same_cluster: false,
                ..self.clone()
            };
            Mutant::new(name, sentence, &[broken], least.without(change))
        };
        let mut mutants = vec![
            mutant("rights-not-awaited", "an epoch runs without its rights", FOLLOW, |rules| {
                rules.await_rights = false;
            }),
            mutant(
                "trust-before-release",
                "the next owner gets the trust early",
                FOLLOW,
                |rules| {
                    rules.after_release = false;
                },
            ),
            mutant("cached-grant", "the trust follows a cached Grant", FOLLOW, |rules| {
                rules.live_grant = false;
            }),
            mutant("others-mark-believed", "the mark of any process will do", FOLLOW, |rules| {
                rules.own_mark = false;
            }),
            mutant(
                "mark-not-read-live",
                "a process that wrote a mark once goes on sending",
                FOLLOW,
                |rules| rules.live_mark = false,
            ),
            mutant(
                "mark-taken-over-at-once",
                "a mark is taken over, and the calls under it are not waited for",
                FOLLOW,
                |rules| rules.wait_other = false,
            ),
            mutant(
                "own-late-call-ignored",
                "an unanswered update of the trust is not waited for",
                FOLLOW,
                |rules| rules.wait_own = false,
            ),
            mutant("no-fence", "sessions of a forced owner are not denied", FENCED, |rules| {
                rules.fence = false;
            }),
            mutant(
                "fence-before-close",
                "the time of the fence is recorded before the trust is closed",
                FENCED,
                |rules| rules.close_first = false,
            ),
            mutant(
                "closed-believed-at-once",
                "a read that shows the trust closed is believed before W is over",
                FENCED,
                |rules| rules.believe_quiet = false,
            ),
            mutant(
                "fence-without-propagation",
                "the time of the fence passes while an old trust still gives sessions",
                FENCED,
                |rules| rules.fence_later = false,
            ),
        ];
        // Two fences need two forced owners; one fault, as that is what TLC can do.
        let twice = IdentitiesRights { epochs: 3, forced: 2, faults: 1, ..self.clone() };
        mutants.push(Mutant::new(
            "one-name-for-all-fences",
            "a late fence replaces a higher one",
            &[FENCED],
            IdentitiesRights { instances: 2, same_cluster: false, ..twice }
                .without(|rules| rules.own_name = false),
        ));
        mutants.push(mutant(
            "opened-before-the-fence",
            "the next owner is opened before the time of the fence has passed",
            "OwnerNotDenied",
            |rules| rules.wait_fence = false,
        ));
        mutants
    }
}

const FOLLOW: &str = "RightsFollowTheGrant";
const FENCED: &str = "FencedHasNoRights";
