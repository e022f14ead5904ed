//! The checker against TLC and stateright: the same models, one run, as ratios.

use super::number;
use crate::tlc::Tlc;
use crate::{interlock, say};
use anyhow::Context;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// One model in one size, as our checker, TLC and stateright know it.
struct Race {
    model: &'static str,
    size: &'static str,
    module: &'static str,
    config: &'static str,
}

const RACES: [Race; 3] = [
    Race {
        model: "seed/dpu-multi-tenant",
        size: "nodes=2,dpus=1,tenants=1",
        module: "seed/MC_dpu_multi_tenant.tla",
        config: "seed/cfg/dpu-2-1-1-all.cfg",
    },
    Race {
        model: "seed/dpu-multi-tenant",
        size: "nodes=1,dpus=1,tenants=2",
        module: "seed/MC_dpu_multi_tenant.tla",
        config: "seed/cfg/dpu-1-1-2-all.cfg",
    },
    Race {
        model: "spec/placement",
        size: "clusters=2,epochs=2,writes=1,force=1",
        module: "protocol/Placement.tla",
        config: "protocol/cfg/placement-2-2-1-1.cfg",
    },
];

/// Runs the benchmark.
pub(crate) fn run() -> anyhow::Result<bool> {
    let binary = interlock::build()?;
    let tlc = Tlc::get()?;
    let stateright = super::build_peer("stateright", "stateright-bench")?;
    say("| model | size | checker | generated/s | ratio to TLC | seconds | bytes/state |");
    say("|---|---|---|---:|---:|---:|---:|");
    for race in &RACES {
        let theirs = tlc.run(race.module, race.config, false, 2)?;
        let base = theirs.generated.unwrap_or(0) as f64 / theirs.seconds;
        row(race, "TLC, 2 workers", base, base, theirs.seconds, None);
        if race.model.starts_with("seed/") {
            let (generated, seconds, bytes) = run_stateright(&stateright, race)?;
            row(race, "stateright", generated / seconds, base, seconds, Some(bytes));
        }
        race_ours(race, &binary, base)?;
    }
    walks(&binary, &tlc)?;
    Ok(true)
}

/// Our rows: with the flags as part of every state, as the peers have them; the same with temporal
/// properties, and how many times as long that takes; and without the flags, where there are some.
fn race_ours(race: &Race, binary: &PathBuf, base: f64) -> anyhow::Result<()> {
    let ask = |more: &[&str]| middle(binary, &[&["check", race.model, "--size", race.size], more]);
    let print = |who: &str, answer: &Value, bytes: Option<f64>| {
        let (generated, seconds) = (number(answer, "generated_states"), seconds(answer));
        row(race, who, generated / seconds, base, seconds, bytes);
    };
    let bytes = |answer: &Value| answer["bytes_per_state"].as_f64();
    let safety = ask(&["--plain", "--safety"])?;
    print("interlock", &safety, bytes(&safety));
    let alive = ask(&["--plain", "--liveness"])?;
    let properties = alive["properties"].as_array().map_or(0, Vec::len);
    let note = format!(
        "interlock, with {properties} properties: {:.2}x of safety alone ({:.2} s explored, {:.2} s judged)",
        seconds(&alive) / seconds(&safety),
        number(&alive, "seconds"),
        number(&alive, "liveness_seconds"),
    );
    print(&note, &alive, None);
    let reduced = ask(&["--safety"])?;
    if !reduced["reduction"].is_null() {
        print("interlock, flags left out", &reduced, bytes(&reduced));
    }
    Ok(())
}

/// What a check of ours took in all.
fn seconds(answer: &Value) -> f64 {
    number(answer, "seconds") + number(answer, "liveness_seconds")
}

/// The middle one of three runs of ours: they are short, and the machine is seldom quite idle.
fn middle(binary: &PathBuf, args: &[&[&str]]) -> anyhow::Result<Value> {
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(interlock::ask(binary, &args.concat())?);
    }
    answers.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    Ok(answers.swap_remove(1))
}

fn walks(binary: &PathBuf, tlc: &Tlc) -> anyhow::Result<()> {
    say("");
    say("| walks of 50 steps, seed/dpu-multi-tenant nodes=3,dpus=2,tenants=2 | walks/s | ratio |");
    say("|---|---:|---:|");
    let theirs =
        tlc.simulate("seed/MC_dpu_multi_tenant.tla", "seed/cfg/dpu-3-2-2-all.cfg", 5_000, 50)?;
    let base = 5_000.0 / theirs.seconds;
    say(&format!("| TLC -simulate | {base:.0} | 1.0 |"));
    let args = ["simulate", "seed/dpu-multi-tenant", "--seed-config", "--depth", "50"];
    let args = [&args[..], &["--traces", "5000000", "--workers", "2"]].concat();
    let ours = interlock::ask(binary, &args)?;
    let rate = number(&ours, "traces_per_second");
    say(&format!("| interlock simulate | {rate:.0} | {:.0} |", rate / base));
    Ok(())
}

fn row(race: &Race, who: &str, rate: f64, base: f64, seconds: f64, bytes: Option<f64>) {
    let bytes = bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.1}"));
    say(&format!(
        "| {} | {} | {who} | {:.2} M | {:.1} | {seconds:.2} | {bytes} |",
        race.model,
        race.size,
        rate / 1e6,
        rate / base
    ));
}

fn run_stateright(binary: &PathBuf, race: &Race) -> anyhow::Result<(f64, f64, f64)> {
    let output = Command::new(binary).arg(race.size).output().context("cannot start the peer")?;
    let answer: Value =
        serde_json::from_slice(&output.stdout).context("the peer printed no JSON")?;
    Ok((
        number(&answer, "generated_states"),
        number(&answer, "seconds"),
        number(&answer, "bytes_per_state"),
    ))
}
