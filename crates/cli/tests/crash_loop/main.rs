//! `kill -9` in a loop: what was acknowledged stays, what was not is there in whole or not at all, and watchers
//! that resume miss nothing and see nothing twice.
//!
//! `INTERLOCK_KILLS` says how often the server is killed, `INTERLOCK_SEED` in which way.

mod follower;
#[path = "../harness/mod.rs"]
mod harness;
mod ledger;
mod listing;
mod world;

use follower::{Follower, Scope, follow};
use harness::{Client, DataDirectory, Process, TIMEOUT};
use ledger::{Container, Ledger, Session, Slot};
use listing::{Address, Listing, definition};
use serde_json::json;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use world::{Alarm, CrashLoop, Life, Random};

const WRITERS: u64 = 64;
/// Logical clusters that stay, and in which some of the writers write.
const CLUSTERS: u64 = 4;
const SLOTS: u64 = 3;
const SCOPES: [Scope; 6] = [
    Scope { resource: "configmaps", path: "/api/v1/configmaps", is_wildcard: false },
    Scope { resource: "configmaps", path: "/clusters/*/api/v1/configmaps", is_wildcard: true },
    Scope { resource: "namespaces", path: "/api/v1/namespaces", is_wildcard: false },
    Scope { resource: "namespaces", path: "/clusters/*/api/v1/namespaces", is_wildcard: true },
    Scope { resource: "widgets", path: "/apis/crash.example.com/v1/widgets", is_wildcard: false },
    Scope {
        resource: "logicalclusters",
        path: "/apis/interlock.dev/v1alpha1/logicalclusters",
        is_wildcard: false,
    },
];

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// What a writer does in one life of the server: until the server dies, or nobody shall write any more.
fn write(
    world: &CrashLoop,
    life: Life,
    ledger: &mut Ledger,
    random: &mut Random,
) -> io::Result<()> {
    let mut client = Client::new(life.address);
    while world.is_open(life) {
        let Ledger { slots, containers, acknowledged, made } = ledger;
        let session = &mut Session { world, client: &mut client, acknowledged };
        if let Some(at) = random.below(slots.len().max(1) as u64).try_into().ok()
            && let Some(slot) = slots.get_mut::<usize>(at)
        {
            match random.below(10) {
                0 => slot.write_stale(session)?,
                1 | 2 => slot.delete(session)?,
                _ => slot.write(session)?,
            }
            continue;
        }
        containers.retain(|container| !container.is_doomed || random.below(2) == 0);
        let live = containers.iter_mut().find(|container| !container.is_doomed);
        let Some(container) = live.filter(|container| container.itself.is_there()) else {
            *made += 1;
            containers.push(new_container(made, random));
            let container = containers.last_mut().expect("it was just pushed");
            container.itself.write(session)?;
            continue;
        };
        if !container.inside.is_there() || random.below(3) > 0 {
            container.inside.write(session)?;
        } else {
            container.itself.delete(session)?;
            container.is_doomed = !container.itself.is_there();
        }
    }
    Ok(())
}

/// A namespace or a logical cluster that was never there before.
fn new_container(made: &u64, random: &mut Random) -> Container {
    let name = format!("made-{made}-{:08x}", random.below(1 << 32));
    let (itself, inside) = if random.below(3) > 0 {
        let itself = Address::new("namespaces", "root", "", &name);
        (itself, Address::new("configmaps", "root", &name, "inside"))
    } else {
        let itself = Address::new("logicalclusters", "root", "", &name);
        (itself, Address::new("configmaps", &name, "default", "inside"))
    };
    Container {
        itself: Slot::new(itself, false),
        inside: Slot::new(inside, false),
        is_doomed: false,
    }
}

fn new_ledger(writer: u64) -> Ledger {
    let mut ledger = Ledger::default();
    // Every fourth makes and deletes namespaces and logical clusters.
    if writer % 4 == 3 {
        return ledger;
    }
    let cluster = match writer % 4 {
        2 => format!("lasting-{}", writer / 4 % CLUSTERS),
        _ => "root".to_owned(),
    };
    let resource = if writer % 4 == 1 { "widgets" } else { "configmaps" };
    for slot in 0..SLOTS {
        let name = format!("writer-{writer}-{slot}");
        let at = Address::new(resource, &cluster, "default", &name);
        ledger.slots.push(Slot::new(at, slot == 0));
    }
    ledger
}

fn work(world: &CrashLoop, ledger: &Mutex<Ledger>, seed: u64) {
    let _alarm = Alarm(world);
    let mut random = Random::new(seed);
    let mut last_life = 0;
    while let Some(life) = world.next_life(last_life) {
        last_life = life.number;
        let mut ledger = ledger.lock().expect("nobody panics with it");
        // The server has died: what is in doubt is settled before the next life begins.
        let _ = write(world, life, &mut ledger, &mut random);
        drop(ledger);
        world.rest();
    }
}

/// What every life of the server needs once.
fn prepare(client: &mut Client) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.must("POST", definitions, Some(&definition()));
    for cluster in 0..CLUSTERS {
        let body = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
            "metadata": {"name": format!("lasting-{cluster}")},
        });
        client.must("POST", "/apis/interlock.dev/v1alpha1/logicalclusters", Some(&body));
    }
}

/// A server that is killed while it starts, at any moment, must not harm the next one.
fn kill_while_starting(place: &DataDirectory, random: &mut Random, within: Duration) {
    let mut process = Process::spawn(place.command());
    let nanoseconds = u64::try_from(within.as_nanos()).expect("starts are short");
    thread::sleep(Duration::from_nanos(random.below(nanoseconds.max(1))));
    process.kill();
}

fn check(process: &Process, ledgers: &[Arc<Mutex<Ledger>>], newest: &mut u64) -> Listing {
    let listing = Listing::read(&mut process.client());
    assert!(listing.revision >= *newest, "{} comes after {newest}", listing.revision);
    *newest = listing.revision;
    listing.check_whole();
    for ledger in ledgers {
        let mut ledger = ledger.lock().expect("nobody panics with it");
        let last = ledger.acknowledged.iter().map(|(_, version)| *version).max().unwrap_or(0);
        assert!(
            listing.revision >= last,
            "{last} was acknowledged, {} is newest",
            listing.revision
        );
        ledger.settle(&listing);
    }
    listing
}

fn agree(process: &Process, followers: &[Arc<Mutex<Follower>>]) {
    let began = Instant::now();
    loop {
        // Namespaces and clusters may still be being emptied: look at both again.
        let listing = Listing::read(&mut process.client());
        let agrees =
            |it: &Arc<Mutex<Follower>>| it.lock().expect("nobody panics with it").agrees(&listing);
        if followers.iter().all(agrees) {
            return;
        }
        let late: Vec<usize> = (0..followers.len()).filter(|at| !agrees(&followers[*at])).collect();
        assert!(began.elapsed() < TIMEOUT, "the watchers {late:?} do not see what is there");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_was_acknowledged_outlives_every_kill_and_watchers_see_each_change_once() {
    let kills = number("INTERLOCK_KILLS", 15);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let seed = number("INTERLOCK_SEED", u64::from(now.subsec_nanos()));
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let place = DataDirectory::new();
    // The very first start makes keys and certificates: it must bear being killed, too.
    for _ in 0..4 {
        kill_while_starting(&place, &mut random, Duration::from_millis(120));
    }
    let process = place.start();
    let mut starts = vec![process.took];
    prepare(&mut process.client());
    let ledgers: Vec<_> =
        (0..WRITERS).map(|writer| Arc::new(Mutex::new(new_ledger(writer)))).collect();
    let (world, mut newest) = (CrashLoop::default(), 0);
    let [mut writing, mut checking, mut longest_stop] = [Duration::ZERO; 3];
    let listing = check(&process, &ledgers, &mut newest);
    let follower = |scope: &Scope| Arc::new(Mutex::new(Follower::new(*scope, &listing)));
    let followers: Vec<_> = SCOPES.iter().map(follower).collect();
    thread::scope(|scope| {
        // When this thread ends, or fails, the others must end too: the server first, since they wait for it.
        let _over = Over(&world);
        let mut process = process;
        for (writer, ledger) in ledgers.iter().enumerate() {
            let (world, seed) = (&world, seed.wrapping_mul(writer as u64 + 2));
            scope.spawn(move || work(world, ledger, seed));
        }
        for follower in &followers {
            let world = &world;
            scope.spawn(move || follow(world, follower));
        }
        for round in 0..kills {
            let began = Instant::now();
            world.open(process.address());
            world.wait_for_writes(1 + random.below(500));
            writing += began.elapsed();
            if round % 5 == 4 {
                longest_stop = longest_stop.max(stop_gently(&world, &mut process));
            }
            process.kill();
            world.close(WRITERS as usize);
            if random.below(3) == 0 {
                kill_while_starting(&place, &mut random, *starts.last().expect("one at least"));
            }
            process = place.start();
            starts.push(process.took);
            let began = Instant::now();
            check(&process, &ledgers, &mut newest);
            checking += began.elapsed();
        }
        world.open(process.address());
        world.wait_for_writes(100);
        world.close(WRITERS as usize);
        check(&process, &ledgers, &mut newest);
        agree(&process, &followers);
    });
    for follower in &followers {
        let follower = follower.lock().expect("nobody panics with it");
        assert_eq!(follower.resumed, kills + 1);
        for ledger in &ledgers {
            follower.check(&ledger.lock().expect("nobody panics with it").acknowledged);
        }
    }
    starts.sort_unstable();
    println!(
        "{kills} kills, {} writes acknowledged, newest revision {newest}; wrote for {writing:?}, \
         checked for {checking:?}; longest polite end {longest_stop:?}; start to ready: p50 {:?}, \
         max {:?}",
        world.acknowledged(),
        starts[starts.len() / 2],
        starts[starts.len() - 1],
    );
}

/// A polite request to end, under load: it ends soon, and says that all went well.
fn stop_gently(world: &CrashLoop, process: &mut Process) -> Duration {
    world.let_refuse();
    process.signal("TERM");
    let (status, took) = process.end();
    assert_eq!(status.code(), Some(0), "{}", process.says());
    assert!(took < Duration::from_secs(60), "{took:?}");
    took
}

/// Ends the other threads with this one.
struct Over<'a>(&'a CrashLoop);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
