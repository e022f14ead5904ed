//! The neighbour: a tenant who reads and writes a little, and how long each answer takes.

use super::http::{Ask, Http, Place};
use anyhow::Context;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Between two rounds: a tenant, and no load of its own.
const PAUSE: Duration = Duration::from_millis(2);

/// How long answers took, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latency {
    pub(super) count: usize,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Latency {
    fn of(mut times: Vec<f64>) -> anyhow::Result<Latency> {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (times.len() as f64 * share) as usize;
            times.get(place.min(times.len().saturating_sub(1))).copied()
        };
        let nothing = "the neighbour got no answer";
        Ok(Latency {
            count: times.len(),
            p50: at(0.5).context(nothing)?,
            p99: at(0.99).context(nothing)?,
        })
    }
}

/// A neighbour at work.
pub(super) struct Neighbour {
    is_over: Arc<AtomicBool>,
    work: JoinHandle<anyhow::Result<(Http, Vec<f64>)>>,
}

/// The connection of a neighbour: it is open before the attack, as that of every client-go is.
pub(super) fn arrive(place: &Place) -> anyhow::Result<Http> {
    let mut http = Http::connect(place)?;
    let map = br#"{"metadata":{"name":"mine"},"data":{"n":"0"}}"#;
    http.ask(Ask::post(MAPS, map))?.good()?;
    Ok(http)
}

impl Neighbour {
    /// Begins to read and write, in turn.
    pub(super) fn begin(mut http: Http) -> Neighbour {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let work = std::thread::spawn(move || {
            let one = format!("{MAPS}/mine");
            let (mut times, mut round) = (Vec::new(), 0_u64);
            while !flag.load(Ordering::Relaxed) {
                round += 1;
                let change = format!(r#"{{"data":{{"n":"{round}"}}}}"#);
                for ask in [Ask::get(&one), Ask::get(MAPS), Ask::merge(&one, change.as_bytes())] {
                    let asked = Instant::now();
                    let answer = http.ask(ask).context("the neighbour lost its connection")?;
                    answer.good().context("the neighbour was refused")?;
                    times.push(asked.elapsed().as_secs_f64() * 1e6);
                }
                std::thread::sleep(PAUSE);
            }
            Ok((http, times))
        });
        Neighbour { is_over, work }
    }

    /// Ends it: its connection, and how it went.
    pub(super) fn end(self) -> anyhow::Result<(Http, Latency)> {
        self.is_over.store(true, Ordering::Relaxed);
        let (http, times) =
            self.work.join().map_err(|_| anyhow::anyhow!("the neighbour panicked"))??;
        Ok((http, Latency::of(times)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_hundredth_is_the_last_one_in_order() {
        let times = (1..=1000).rev().map(f64::from).collect();
        let latency = Latency::of(times).expect("there are some");
        assert_eq!((latency.count, latency.p50, latency.p99), (1000, 501.0, 991.0));
        assert!(Latency::of(Vec::new()).is_err());
    }
}
