//! What a controller could do wrong in what it asks of the other system. Each must be found.

use super::{Placed, issuer};
use interlock_api::placement::Phase;
use interlock_checker::Size;
use interlock_identities::role::Roles;
use interlock_identities::role::decide::{Facts, Home};
use interlock_identities::role::placed::{Issuer, Placement};
use interlock_kernel::{Decide, Room};
use interlock_placement::syncer::Syncer;
use interlock_world::Mistake;

/// A mistake: its name, its sentence, what must break, the least size in which it shows, and the system that makes it.
struct Row(&'static str, &'static str, &'static [&'static str], &'static str, fn(Placed) -> Placed);

pub(super) fn mistakes() -> Vec<Mistake<Placed>> {
    let made = |Row(name, sentence, breaks, size, bend): &Row| {
        let size = Size::parse(size).expect("the sizes here can be read");
        let system = Placed::from_size(&size).expect("the sizes here are in range");
        Mistake { name, sentence, breaks, system: bend(system) }
    };
    ROWS.iter().map(made).collect()
}

/// The same facts with another placement, if there is a Grant.
fn placed(facts: &Facts, change: impl FnOnce(&mut Placement)) -> Facts {
    let mut facts = facts.clone();
    if let Some(Home::Placed(Some(placement))) = &mut facts.home {
        change(placement);
    }
    facts
}

const ROWS: &[Row] = &[
    Row(
        "rights-not-awaited",
        "a syncer permits an epoch before the role trusts its cluster",
        &["RightsFollowTheGrant"],
        "flights=0",
        |system| {
            let syncs: Decide<Syncer> = |facts| {
                let mut facts = facts.clone();
                let fresh = facts.fresh.as_mut();
                if let Some(grant) = fresh.and_then(|fresh| fresh.grant.as_mut()) {
                    grant.rights.unready.clear();
                }
                Syncer::decide(&facts)
            };
            Placed { syncs: Some(syncs), ..system }
        },
    ),
    Row(
        "trust-before-release",
        "the role trusts cluster b as soon as cluster a is to leave",
        &["RightsFollowTheGrant", "ReadyIsTrue"],
        "flights=0",
        |system| {
            let roles = system.roles.clone().deciding(|facts| {
                Roles::decide(&placed(facts, |placement| {
                    if placement.phase == Phase::Revoking {
                        placement.phase = Phase::Granted;
                        placement.epoch += 1;
                        placement.issuer = Issuer::Usable(issuer(1));
                    }
                }))
            });
            Placed { roles, ..system }
        },
    ),
    Row(
        "no-fence",
        "sessions of an owner that was declared gone are not denied",
        &["FencedHasNoRights"],
        "moves=0,force=1,flights=0",
        |system| {
            let roles = system.roles.clone().deciding(|facts| {
                Roles::decide(&placed(facts, |placement| placement.fenced_epoch = 0))
            });
            Placed { roles, ..system }
        },
    ),
    Row(
        "trust-never-follows",
        "the role goes on trusting the cluster that it trusted first",
        &["RunsWithRights"],
        "elapses=7,flights=0,live=1",
        |system| {
            let roles = system.roles.clone().deciding(|facts| {
                Roles::decide(&placed(facts, |placement| {
                    placement.phase =
                        if placement.epoch > 1 { Phase::Released } else { placement.phase };
                }))
            });
            Placed { roles, ..system }
        },
    ),
];
