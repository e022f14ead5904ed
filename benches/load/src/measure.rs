//! How long operations took, and what they cost the process that did them.

use crate::Load;
use serde_json::{Value, json};
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What happens before this is not counted: connections settle, memory is taken.
const WARM_UP: Duration = Duration::from_millis(200);

/// Someone who does one thing again and again.
pub trait Worker: Send + 'static {
    /// Does it once.
    fn once(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// Lets all of them work at once, each doing the next thing when the last one is done.
pub async fn drive<W: Worker>(workers: Vec<W>, load: Load) -> anyhow::Result<Value> {
    let pids = if load.pid.is_empty() { vec![std::process::id()] } else { load.pid };
    let processor_seconds = || pids.iter().copied().map(processor_seconds).sum::<f64>();
    let begins = Instant::now() + WARM_UP;
    let ends = begins + Duration::from_secs_f64(load.seconds);
    let mut working = JoinSet::new();
    for mut worker in workers {
        working.spawn(async move {
            let mut times = Vec::new();
            loop {
                let started = Instant::now();
                if started >= ends {
                    return anyhow::Ok(times);
                }
                worker.once().await?;
                if started >= begins {
                    times.push(started.elapsed());
                }
            }
        });
    }
    tokio::time::sleep_until(begins.into()).await;
    let processor_before = processor_seconds();
    tokio::time::sleep_until(ends.into()).await;
    let processor = processor_seconds() - processor_before;
    let mut times = Vec::new();
    while let Some(done) = working.join_next().await {
        times.extend(done??);
    }
    Ok(summary(times, load.seconds, processor))
}

/// Lets each of them do it so many times, all at once. They are returned for what comes next.
pub async fn count<W: Worker>(
    workers: Vec<W>,
    times: usize,
    pids: &[u32],
) -> anyhow::Result<(Vec<W>, Value)> {
    let processor_seconds = || pids.iter().copied().map(processor_seconds).sum::<f64>();
    let (processor_before, began) = (processor_seconds(), Instant::now());
    let mut working = JoinSet::new();
    for mut worker in workers {
        working.spawn(async move {
            let mut taken = Vec::new();
            for _ in 0..times {
                let started = Instant::now();
                worker.once().await?;
                taken.push(started.elapsed());
            }
            anyhow::Ok((worker, taken))
        });
    }
    let (mut workers, mut taken) = (Vec::new(), Vec::new());
    while let Some(done) = working.join_next().await {
        let (worker, times) = done??;
        workers.push(worker);
        taken.extend(times);
    }
    let processor = processor_seconds() - processor_before;
    Ok((workers, summary(taken, began.elapsed().as_secs_f64(), processor)))
}

fn summary(mut times: Vec<Duration>, seconds: f64, processor: f64) -> Value {
    let operations = times.len() as f64;
    let (p50, p99) = percentiles(&mut times);
    json!({
        "per_second": operations / seconds,
        "p50_us": p50,
        "p99_us": p99,
        "processor_us": processor * 1e6 / operations,
    })
}

/// One after the other, so many times: the median in microseconds, and what each cost.
pub async fn median_of<W: Worker>(
    mut worker: W,
    times: usize,
    pid: u32,
) -> anyhow::Result<(f64, f64)> {
    worker.once().await?;
    let processor_before = processor_seconds(pid);
    let mut taken = Vec::new();
    for _ in 0..times {
        let started = Instant::now();
        worker.once().await?;
        taken.push(started.elapsed());
    }
    let processor = (processor_seconds(pid) - processor_before) * 1e6 / times as f64;
    Ok((percentiles(&mut taken).0, processor))
}

/// The middle one and the last but one in a hundred, in microseconds.
pub fn percentiles(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let at = |percent: usize| {
        let place = times.len() * percent / 100;
        times.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    };
    (at(50), at(99))
}

/// Processor time of a process so far, in user and system mode.
pub fn processor_seconds(pid: u32) -> f64 {
    // The time of each thread is reported in nanoseconds; that of the process only in hundredths of a second.
    // Threads that end take theirs along, but none of the processes that are measured here ends any.
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return f64::NAN };
    let nanoseconds: f64 = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .sum();
    nanoseconds / 1e9
}

/// The memory that a process uses, with the pages of files that it has mapped.
pub fn resident_bytes(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) * 1024.0
}
