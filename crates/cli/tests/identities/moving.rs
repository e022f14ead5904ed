//! A namespace moves again and again while the whole fleet is killed, and its role is never anybody's but its owner's.
//!
//! `INTERLOCK_SEED` says at which moments the fleet is killed.

use super::cloud::{token, trusted};
use super::following::{NAME, desire, runs_on};
use super::harness::TIMEOUT;
use super::harness::random::{Random, seed};
use super::up::{GROUP, Up, cloud_name, example, identities, until};
use super::watching::{Watched, Watcher, ready};
use interlock_api::names::{downstream_namespace, grant_name};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const MOVES: usize = 10;

/// When the fleet is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// As soon as the move is asked for.
    Asked,
    /// The owner has to stop.
    Revoking,
    /// The next owner has the namespace, and its role may not trust it yet.
    Granted,
    /// The role trusts the next owner, whatever the Grant says.
    Trusted,
    /// The Grant says that the next owner may run.
    Ready,
    /// So many milliseconds after it was asked for.
    After(u64),
}

/// The moments of one move, in their order.
fn moments(random: &mut Random) -> Vec<Moment> {
    let mut moment = || match random.below(8) {
        0 => Moment::Asked,
        1 => Moment::Revoking,
        2 => Moment::Granted,
        3 | 4 => Moment::Trusted,
        5 => Moment::Ready,
        _ => Moment::After(random.below(600)),
    };
    let mut moments = vec![moment()];
    if moment() > Moment::Granted {
        moments.push(moment());
    }
    moments.sort_unstable();
    moments
}

/// One namespace with one role.
struct Scene {
    up: Up,
    /// The path of its Grant.
    grant: String,
    /// The namespace on a cluster.
    below: String,
    issuers: BTreeMap<String, String>,
}

impl Scene {
    fn start() -> Scene {
        let up = Up::of("west,east");
        let shop = json!({"metadata": {"name": "shop", "labels": {"interlock.dev/placed": "true"},
            "annotations": {"interlock.dev/cluster": "west"}}});
        let made = up.client().must("POST", "/api/v1/namespaces", Some(&shop));
        let uid = made["metadata"]["uid"].as_str().expect("a uid");
        up.client().must("POST", &identities("shop"), Some(&example(NAME)));
        runs_on(&up, "west", 1);
        up.created(&format!("{}/{NAME}", identities("shop")));
        let (grant, below) = (grant_name("shop", uid), downstream_namespace("shop", uid));
        let issuer = |cluster: &str| {
            let found = up.get(&format!("{GROUP}/workloadclusters/{cluster}"));
            let issuer = found["status"]["issuer"].as_str().expect("it was trusted, or will be");
            issuer.split_once("://").expect("it is a URL").1.to_owned()
        };
        let issuers = ["west", "east"].map(|name| (name.to_owned(), issuer(name))).into();
        Scene { up, grant: format!("{GROUP}/grants/{grant}"), below, issuers }
    }

    fn watcher(&self) -> Watcher {
        let (grant, role) = (self.grant.clone(), cloud_name("shop", NAME));
        let watched = Watched { grant, role, issuers: self.issuers.clone() };
        Watcher::of(watched, self.up.reach())
    }

    fn token(&self, cluster: &str) -> String {
        let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", self.below);
        until("the account is carried down", || {
            match self.up.get(&format!("/clusters/{cluster}{accounts}/{NAME}")) {
                Value::Null => Err(self.up.says()),
                _ => Ok(()),
            }
        });
        token(&mut self.up.client(), cluster, &self.below, NAME)
    }

    /// Whether this moment of a move has come, or is past.
    fn is(&self, moment: Moment, epoch: i64, asked: Instant) -> bool {
        let grant = self.up.get(&self.grant);
        let (status, is_ready) = (&grant["status"], ready(&grant).map(|(epoch, _)| epoch));
        if is_ready == Some(epoch) {
            return true;
        }
        let is_granted = status["epoch"] == epoch;
        match moment {
            Moment::Asked => true,
            Moment::Revoking => status["phase"] == "Revoking" || is_granted,
            Moment::Granted => is_granted,
            Moment::Trusted => {
                let owner = status["owner"]["name"].as_str().filter(|_| is_granted);
                let role = self.up.done(self.up.iam().get_role(&cloud_name("shop", NAME)));
                owner.is_some_and(|owner| trusted(&role.trust) == [self.issuers[owner].clone()])
            }
            Moment::Ready => false,
            Moment::After(milliseconds) => asked.elapsed() > Duration::from_millis(milliseconds),
        }
    }

    /// Moves the namespace, and kills everything on the way. How often the next owner had no rights then.
    fn moves_to(&mut self, cluster: &str, epoch: i64, moments: &[Moment]) -> usize {
        desire(&self.up, cluster);
        let (asked, mut in_the_middle) = (Instant::now(), 0);
        for moment in moments {
            while !self.is(*moment, epoch, asked) {
                assert!(asked.elapsed() < TIMEOUT, "{moment:?} does not come: {}", self.up.says());
            }
            let is_ready = ready(&self.up.get(&self.grant)).map(|(epoch, _)| epoch) == Some(epoch);
            in_the_middle += usize::from(!is_ready);
            self.up.kill_and_start_again();
        }
        runs_on(&self.up, cluster, epoch);
        in_the_middle
    }
}

#[test]
fn a_role_trusts_one_owner_after_another_in_ten_moves_under_kills() {
    let mut scene = Scene::start();
    let watcher = scene.watcher();
    watcher.knows("west", scene.token("west"));
    watcher.sees(1);
    eprintln!("seed {}", seed());
    let (mut random, mut kills, mut in_the_middle) = (Random(seed()), 0, 0);
    for (at, to) in ["east", "west"].iter().cycle().take(MOVES).enumerate() {
        let (began, moments) = (Instant::now(), moments(&mut random));
        kills += moments.len();
        in_the_middle += scene.moves_to(to, at as i64 + 2, &moments);
        eprintln!("to {to}, killed at {moments:?}: {:.1?}", began.elapsed());
        if at == 0 {
            watcher.knows(to, scene.token(to));
        }
        watcher.sees(at as i64 + 2);
    }
    let seen = watcher.saw();
    eprintln!("{kills} kills, {in_the_middle} in the middle; {seen:?}");
    assert_eq!(seen.wrong, Vec::<String>::new(), "seed {}", seed());
    assert_eq!(seen.roles.len(), 1, "one role, by its ARN and its id: {:?}", seen.roles);
    let too_little = format!("too little was seen: {seen:?}");
    assert!(
        seen.epochs.len() > MOVES && seen.refused >= MOVES && in_the_middle > 0,
        "{too_little}"
    );

    // Deleting it is killed, too.
    let path = format!("{}/{NAME}", identities("shop"));
    scene.up.client().must("DELETE", &path, None);
    scene.up.kill_and_start_again();
    scene.up.gone(&path);
    let (code, said) = scene.up.run(&["identity", "orphans"]);
    assert_eq!((code, said.as_str()), (Some(0), "nothing is left over\n"));
    assert_eq!(scene.up.in_the_cloud(), (vec![], vec![]), "{}", scene.up.says());
}
