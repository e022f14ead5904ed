//! A fleet as `interlock up` runs it: namespaces are placed, many are moved at once, and then nothing
//! happens. What each costs should not depend on how many there are.

use super::load::Load;
use super::number;
use super::process::{Directory, Running};
use super::spread::{count, grouped, time};
use crate::{interlock, say};
use std::process::Command;

const CLUSTERS: usize = 20;

/// Runs the benchmark.
pub(crate) fn run(is_quick: bool) -> anyhow::Result<bool> {
    let (load, interlock) = (Load::build()?, interlock::build()?);
    let sizes: [(usize, usize); 3] = match is_quick {
        true => [(20, 5), (100, 20), (400, 50)],
        false => [(100, 100), (1_000, 1_000), (10_000, 1_000)],
    };
    let data = Directory::new("fleet")?;
    let names: Vec<String> = (1..=CLUSTERS).map(|number| format!("c{number:02}")).collect();
    let fleet = Running::start(
        Command::new(interlock)
            .args(["up", "--listen", "127.0.0.1:0", "--allow-root-processes"])
            .args(["--clusters", &names.join(","), "--data-dir"])
            .arg(data.path()),
    )?;
    fleet.says(" ready ")?;
    let kubeconfig = data.path().join("kubeconfig");
    let pid = fleet.pid().to_string();
    say(
        "| namespaces | placed/s | processor each | memory each | moved at once | moves/s | processor each | writes each | at rest: writes/s | processor |",
    );
    say("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut from = 0;
    for (round, (namespaces, moves)) in sizes.into_iter().enumerate() {
        let (many, at_once) = (namespaces.to_string(), moves.to_string());
        let placed = load.run("fleet-place", &kubeconfig, &[&from.to_string(), &many, &pid])?;
        let target = &names[round];
        let moved = load.run("fleet-move", &kubeconfig, &[&at_once, target, &pid])?;
        let rest = load.run("fleet-rest", &kubeconfig, &[&pid])?;
        say(&format!(
            "| {} | {:.0} | {} | {} KiB | {} | {:.0} | {} | {} | {} | {:.1} % |",
            count(namespaces),
            number(&placed, "placed_per_second"),
            time(number(&placed, "processor_us")),
            grouped(number(&placed, "bytes") / 1024.0),
            count(moves),
            number(&moved, "moves_per_second"),
            time(number(&moved, "processor_us")),
            grouped(number(&moved, "writes")),
            grouped(number(&rest, "writes_per_second")),
            number(&rest, "processor_us") / 1e4,
        ));
        from = namespaces;
    }
    fleet.stop()?;
    Ok(true)
}
