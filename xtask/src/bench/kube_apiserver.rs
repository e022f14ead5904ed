//! The API server beside kube-apiserver with etcd: the same requests, in turn, in one run.

use super::Run;
use super::load::Load;
use super::process::{Directory, Running};
use super::spread::{Rounds, grouped, time};
use crate::kubernetes::servers;
use crate::{interlock, say, upstream};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each of the clients does, again and again.
const OPERATIONS: [&str; 7] = ["create", "update", "patch", "apply", "get", "list", "delete"];
const CLIENTS: &str = "64";
/// So many watch one object.
const WATCHERS: &str = "100";
const THEIRS: &str = "theirs";
const OURS: &str = "ours";

/// A server that is measured, and the processes whose time counts.
struct Peer {
    name: &'static str,
    kubeconfig: PathBuf,
    pids: Vec<String>,
    /// The flags of the load for it.
    flags: &'static [&'static str],
}

/// Runs it; false if a goal was missed.
pub(crate) fn run(run: &Run) -> anyhow::Result<bool> {
    let upstream = upstream::servers()?;
    let (load, binary) = (Load::build()?, interlock::build()?);
    let (their_folder, our_folder) = (Directory::new("theirs")?, Directory::new("ours")?);
    let (etcd, servers) = servers::start(&upstream, their_folder.path(), &[THEIRS])?;
    let server = servers.first().context("no server was started")?;
    let serving = Running::start(
        Command::new(&binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(our_folder.path()),
    )?;
    serving.says(" ready ")?;
    let peers = [
        Peer {
            name: THEIRS,
            kubeconfig: plain_kubeconfig(server, their_folder.path())?,
            pids: vec![etcd.pid().to_string(), server.pid().to_string()],
            flags: &["--plain"],
        },
        Peer {
            name: OURS,
            kubeconfig: our_folder.path().join("kubeconfig"),
            pids: vec![serving.pid().to_string()],
            flags: &[],
        },
    ];
    let mut rounds = Rounds::default();
    for peer in &peers {
        peer.run(&load, "api-prepare", &[])?;
        // What a list of a hundred is made of.
        peer.run(&load, "api-fill", &["0", "1000"])?;
    }
    let seconds = (3.0 * run.seconds()).to_string();
    for _ in 0..run.rounds() {
        for peer in &peers {
            peer.measure(&load, &seconds, &mut rounds)?;
        }
    }
    serving.stop()?;
    Ok(report(&rounds))
}

impl Peer {
    fn run(&self, load: &Load, what: &str, words: &[&str]) -> anyhow::Result<serde_json::Value> {
        load.run(what, &self.kubeconfig, &[words, self.flags].concat())
    }

    fn measure(&self, load: &Load, seconds: &str, rounds: &mut Rounds) -> anyhow::Result<()> {
        let pids = self.pids.iter().map(String::as_str);
        for operation in OPERATIONS {
            let mut words = vec![operation, "h2", "--writers", CLIENTS, "--seconds", seconds];
            words.extend(pids.clone().flat_map(|pid| ["--pid", pid]));
            let measured = self.run(load, "api-writes", &words)?;
            rounds.add(&format!("{operation} {}", self.name), &measured);
        }
        let words: Vec<&str> = [WATCHERS, "20"].into_iter().chain(pids).collect();
        let measured = self.run(load, "api-watches", &words)?;
        rounds.add(&format!("watch {}", self.name), &measured);
        Ok(())
    }
}

/// The kubeconfig of the administrator in the form that the load reads.
fn plain_kubeconfig(server: &servers::Server, folder: &Path) -> anyhow::Result<PathBuf> {
    let (address, authority, token) = (server.address(), server.authority(), servers::ADMIN);
    let authority = authority.display();
    let text = format!("server: {address}\ncertificate-authority: {authority}\ntoken: {token}\n");
    let file = folder.join("load-kubeconfig");
    std::fs::write(&file, text)?;
    Ok(file)
}

/// One row for each operation, and whether the goals of the design were met.
fn report(rounds: &Rounds) -> bool {
    say(&format!(
        "| {CLIENTS} clients, HTTP/2 | kube-apiserver with etcd, per second | interlock | ratio | processor each, theirs | ours | ratio |"
    ));
    say("|---|---:|---:|---:|---:|---:|---:|");
    let mut missed = Vec::new();
    for operation in OPERATIONS {
        let of = |name: &str, key: &str| rounds.of(&format!("{operation} {name}"), key);
        let (theirs, ours) = (of(THEIRS, "per_second"), of(OURS, "per_second"));
        let (cost, own) = (of(THEIRS, "processor_us").median, of(OURS, "processor_us").median);
        let (faster, cheaper) = (ours.median / theirs.median, cost / own);
        say(&format!(
            "| {operation} | {} | {} | {} | {} | {} | {} |",
            theirs.whole(),
            ours.whole(),
            grouped(faster),
            time(cost),
            time(own),
            grouped(cheaper),
        ));
        if faster < 6.0 || cheaper < 10.0 {
            missed.push(format!(
                "{operation}: {} times as many, at 1/{} of the processor time",
                grouped(faster),
                grouped(cheaper)
            ));
        }
    }
    let of = |name: &str, key: &str| rounds.of(&format!("watch {name}"), key).median;
    let key = "processor_us";
    let cheaper = of(THEIRS, key) / of(OURS, key);
    say("");
    say(&format!(
        "events to {WATCHERS} watchers, processor each: theirs {}, ours {}, ratio {}; event seen after {} and {} (p50)",
        time(of(THEIRS, key)),
        time(of(OURS, key)),
        grouped(cheaper),
        time(of(THEIRS, "event_p50_us")),
        time(of(OURS, "event_p50_us")),
    ));
    if cheaper < 4.0 {
        missed.push(format!("watch events: at 1/{} of the processor time", grouped(cheaper)));
    }
    super::say_goals(
        "6 times as many a second, at most a tenth of the processor time; a quarter for watch events",
        &missed,
    );
    missed.is_empty()
}
