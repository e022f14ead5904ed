//! How quick the store is on this machine: `cargo test --release --test speed -- --ignored
//! --nocapture`.

use interlock_store::{Embedded, Guard, Key, KeyRange, Operation, Options, Store, Transaction};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn scratch(name: &str) -> PathBuf {
    let name = format!("interlock-store-speed-{}-{name}", std::process::id());
    std::env::temp_dir().join(name)
}

/// Clock ticks of this process, in user and system mode, as seconds.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|it| it.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}

fn sync_latency() -> (Duration, Duration) {
    let path = scratch("sync");
    let mut file = std::fs::File::create(&path).expect("the directory can be written");
    file.write_all(&vec![0; 1 << 20]).and_then(|()| file.sync_all()).expect("there is room");
    let mut times: Vec<_> = (0..300)
        .map(|index| {
            use std::os::unix::fs::FileExt;
            let started = Instant::now();
            file.write_all_at(&[1; 1100], index * 1100).expect("there is room");
            file.sync_data().expect("the disk works");
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    let _ = std::fs::remove_file(&path);
    (times[150], times[297])
}

async fn writer(store: Embedded, writer: u64, until: Instant) -> Vec<Duration> {
    let mut times = Vec::new();
    let (mut last, row) = (0, format!("cluster-{writer}/default/object"));
    while Instant::now() < until {
        let key = Key::new("core/configmaps/-", &*row);
        let guard = match last {
            0 => Guard::Absent(key.clone()),
            last => Guard::At(key.clone(), last),
        };
        let operation = Operation::Put(key, vec![b'x'; 1024]);
        let mut transaction = Transaction::one(guard, operation);
        transaction.fairness = writer;
        let started = Instant::now();
        last = store.commit(transaction).await.expect("the disk works");
        times.push(started.elapsed());
    }
    times
}

fn puts(writers: u64, seconds: u64) -> String {
    let directory = scratch("puts");
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    let measured = runtime.block_on(async {
        let store = Embedded::open(&directory, Options::default()).expect("it is new");
        let (before, started) = (processor_seconds(), Instant::now());
        let until = started + Duration::from_secs(seconds);
        let tasks: Vec<_> =
            (0..writers).map(|index| tokio::spawn(writer(store.clone(), index, until))).collect();
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await.expect("it does not fail"));
        }
        let took = started.elapsed().as_secs_f64();
        let processor = (processor_seconds() - before) * 1e6 / times.len() as f64;
        times.sort_unstable();
        let stats = store.stats();
        let measured = format!(
            "{writers:3} writers: {:7.0} puts/s, p50 {:?}, p99 {:?}, {:.1} puts per sync, \
             {processor:.1} us of processor per put, batches {:?}",
            times.len() as f64 / took,
            times[times.len() / 2],
            times[times.len() * 99 / 100],
            stats.commits as f64 / stats.syncs as f64,
            stats.batches,
        );
        store.close().await;
        measured
    });
    let _ = std::fs::remove_dir_all(&directory);
    measured
}

#[test]
#[ignore = "it measures"]
fn puts_per_second() {
    let (median, worst) = sync_latency();
    println!("a write of 1,100 bytes and its sync: p50 {median:?}, p99 {worst:?}");
    for _ in 0..3 {
        for (writers, seconds) in [(1, 2), (64, 3), (256, 3)] {
            println!("{}", puts(writers, seconds));
        }
    }
}

async fn fill(store: &Embedded, objects: u64) {
    let fillers: Vec<_> = (0..512)
        .map(|filler| {
            let store = store.clone();
            tokio::spawn(async move {
                for index in (filler..objects).step_by(512) {
                    let key = Key::new("core/configmaps/-", format!("c/default/object-{index:06}"));
                    let put = Operation::Put(key.clone(), vec![b'x'; 2048]);
                    let transaction = Transaction::one(Guard::Absent(key), put);
                    store.commit(transaction).await.expect("the disk works");
                }
            })
        })
        .collect();
    for filler in fillers {
        filler.await.expect("it does not fail");
    }
}

#[test]
#[ignore = "it measures"]
fn start_and_lists_with_a_hundred_thousand_objects() {
    let directory = scratch("start");
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    let open = || Embedded::open(&directory, Options::default()).expect("it is in order");
    runtime.block_on(async {
        let store = open();
        fill(&store, 100_000).await;
        store.close().await;
        drop(store);
        for what in ["from the log", "from a checkpoint", "from a checkpoint"] {
            let started = Instant::now();
            let store = open();
            println!("start {what}: {:?}", started.elapsed());
            let newest = store.newest().await.expect("it runs");
            let started = Instant::now();
            let range = KeyRange::prefix("core/configmaps/-", "c/");
            let page = store.range(range.clone(), None, 500).await.expect("it runs");
            println!(
                "  page of {} with {} after it: {:?}",
                page.items.len(),
                page.remaining,
                started.elapsed()
            );
            let started = Instant::now();
            let page = store.range(range, None, usize::MAX).await.expect("it runs");
            println!("  all {}: {:?}", page.items.len(), started.elapsed());
            drop(page);
            let started = Instant::now();
            store.compact(newest).await.expect("it runs");
            println!("  compaction: {:?}", started.elapsed());
            let started = Instant::now();
            store.checkpoint().await.expect("the disk works");
            println!("  checkpoint: {:?}", started.elapsed());
            store.close().await;
        }
    });
    let _ = std::fs::remove_dir_all(&directory);
}
