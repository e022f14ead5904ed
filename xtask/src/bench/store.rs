//! The store against etcd: the same guarded puts, ranges and starts.

use super::etcd::{self, Etcd};
use super::load::Load;
use super::process::Directory;
use super::spread::{Rounds, count, grouped, time};
use super::{Run, number};
use crate::say;
use std::path::Path;

const WRITERS: [&str; 2] = ["1", "64"];

/// Who is measured, and with what.
struct Bench<'a> {
    run: &'a Run,
    load: Load,
    etcd: std::path::PathBuf,
}

/// Runs the benchmark.
pub(crate) fn run(run: &Run) -> anyhow::Result<bool> {
    let bench = Bench { run, load: Load::build()?, etcd: etcd::get(run.etcd.as_ref())? };
    let scratch = Directory::new("disk")?;
    say(&format!("etcd {}; {}", etcd::version(&bench.etcd)?, bench.load.disk(scratch.path())?));
    say("");
    bench.puts()?;
    say("");
    bench.growth()?;
    Ok(true)
}

impl Bench<'_> {
    /// Guarded puts of 1 KiB, each durable before it is answered.
    fn puts(&self) -> anyhow::Result<()> {
        let mut rounds = Rounds::default();
        let etcd_data = Directory::new("etcd-puts")?;
        let etcd = Etcd::start(&self.etcd, etcd_data.path())?;
        let (pid, seconds) = (etcd.running.pid().to_string(), self.run.seconds().to_string());
        for _ in 0..self.run.rounds() {
            for writers in WRITERS {
                let args = ["--writers", writers, "--seconds", &seconds];
                let theirs = [&args[..], &["--pid", &pid]].concat();
                let measured = self.load.run("etcd-puts", &etcd.address, &theirs)?;
                rounds.add(&format!("etcd {writers}"), &measured);
                let data = Directory::new("store-puts")?;
                let measured = self.load.run("store-puts", data.path(), &args)?;
                rounds.add(&format!("store {writers}"), &measured);
            }
        }
        etcd.running.stop()?;
        say("| writers | guarded puts of 1 KiB | puts/s | ratio | p50 | p99 | processor per put |");
        say("|---:|---|---:|---:|---:|---:|---:|");
        for writers in WRITERS {
            let base = rounds.of(&format!("etcd {writers}"), "per_second").median;
            let names =
                [("etcd", "etcd, over gRPC"), ("store", "interlock-store, called directly")];
            for (who, name) in names {
                let what = format!("{who} {writers}");
                let of = |key: &str| rounds.of(&what, key);
                say(&format!(
                    "| {writers} | {name} | {} | {} | {} | {} | {} |",
                    of("per_second").whole(),
                    grouped(of("per_second").median / base),
                    time(of("p50_us").median),
                    time(of("p99_us").median),
                    time(of("processor_us").median),
                ));
            }
        }
        Ok(())
    }

    /// Starts, memory and ranges as the data grows.
    fn growth(&self) -> anyhow::Result<()> {
        let etcd_data = Directory::new("etcd-growth")?;
        let store_data = Directory::new("store-growth")?;
        say(
            "| keys of 2 KiB | | start | ratio | memory per key | range of 500 | ratio | range of 10,000 | ratio |",
        );
        say("|---:|---|---:|---:|---:|---:|---:|---:|---:|");
        let mut from = 0;
        for keys in self.run.sizes() {
            let rounds = self.at_size(etcd_data.path(), store_data.path(), from, keys)?;
            from = keys;
            for who in ["etcd", "store"] {
                let of = |key: &str| rounds.of(who, key);
                let ratio = |key: &str| grouped(rounds.of("etcd", key).median / of(key).median);
                say(&format!(
                    "| {} | {who} | {} | {} | {} B | {} | {} | {} | {} |",
                    count(keys),
                    time(of("start_seconds").median * 1e6),
                    ratio("start_seconds"),
                    grouped(of("bytes_per_key").median),
                    time(of("range_500_us").median),
                    ratio("range_500_us"),
                    time(of("range_10000_us").median),
                    ratio("range_10000_us"),
                ));
            }
        }
        Ok(())
    }

    fn at_size(
        &self,
        etcd_data: &Path,
        store_data: &Path,
        from: usize,
        keys: usize,
    ) -> anyhow::Result<Rounds> {
        let empty_data = Directory::new("etcd-empty")?;
        let empty = Etcd::start(&self.etcd, empty_data.path())?;
        let idle_bytes = empty.running.resident_bytes();
        empty.running.stop()?;
        let filled = Etcd::start(&self.etcd, etcd_data)?;
        let (from, to) = (from.to_string(), keys.to_string());
        self.load.run("etcd-fill", &filled.address, &[&from, &to])?;
        filled.running.stop()?;
        self.load.run("store-fill", store_data, &[&to])?;
        let mut rounds = Rounds::default();
        for _ in 0..self.run.rounds() {
            let etcd = Etcd::start(&self.etcd, etcd_data)?;
            rounds.note("etcd", "start_seconds", etcd.start.as_secs_f64());
            rounds.add("etcd", &self.load.run("etcd-reads", &etcd.address, &[])?);
            let bytes = etcd.running.resident_bytes();
            rounds.note("etcd", "bytes_per_key", (bytes - idle_bytes) / keys as f64);
            etcd.running.stop()?;
            let ours = self.load.run("store-reads", store_data, &[])?;
            anyhow::ensure!(number(&ours, "keys") as usize == keys, "keys are missing");
            rounds.add("store", &ours);
        }
        Ok(rounds)
    }
}
