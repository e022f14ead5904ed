//! Attacks by one tenant, with a neighbour beside them: memory, the neighbour's answers, and what the attacker gets.
//!
//! Each attack has a server of its own, `interlock serve` as a user starts it. The attackers run at the lowest
//! priority: in earnest they have a machine of their own.

mod field;
mod frames;
mod http;
mod loud;
mod neighbour;
mod unread;

use super::Size;
use super::process::{Directory, Running};
use super::spread::{grouped, time};
use crate::{interlock, say};
use anyhow::Context;
use field::{Field, Seen};
use http::Place;
use neighbour::{Latency, Neighbour};
use std::fmt::Write;
use std::process::Command;
use std::time::Duration;

const ADMIN: &str = "administrator-of-the-hub";
const MIB: f64 = 1024.0 * 1024.0;
/// Beside its budget: what requests under way, a store and an allocator need.
const SLACK_MIB: f64 = 96.0;
/// The neighbour's slowest hundredth may take so many times as long as without an attack.
const MOST_TIMES_SLOWER: f64 = 10.0;

/// One attack, and its bounds.
struct Attack {
    name: &'static str,
    /// What the server may take for it: the budgets of `docs/serving.md`, in MiB.
    budget_mib: f64,
    /// How the attacker may be refused.
    refusals: &'static [u16],
    /// Whether the attacker must be refused at least once, or lose a stream.
    is_refused: bool,
    prepare: fn(&Field) -> anyhow::Result<()>,
    run: fn(&Field) -> anyhow::Result<Seen>,
}

fn nothing(_: &Field) -> anyhow::Result<()> {
    Ok(())
}

const ATTACKS: [Attack; 11] = [
    Attack {
        name: "400 unread lists of 10 MB, closed HTTP/2 windows",
        budget_mib: 256.0,
        refusals: &[429],
        is_refused: true,
        prepare: unread::prepare_lists,
        run: unread::lists,
    },
    Attack {
        name: "500 unread watches of large changes",
        budget_mib: 256.0,
        refusals: &[410, 429],
        is_refused: true,
        prepare: unread::prepare_watches,
        run: unread::watches,
    },
    Attack {
        name: "tables of 64 columns, lists with line breaks",
        budget_mib: 256.0,
        refusals: &[422, 429],
        is_refused: true,
        prepare: loud::prepare_rendering,
        run: loud::rendering,
    },
    Attack {
        name: "large bodies in YAML",
        budget_mib: 256.0,
        refusals: &[413, 429],
        is_refused: true,
        prepare: nothing,
        run: loud::yaml,
    },
    Attack {
        name: "40 kinds with 600 patterns each",
        budget_mib: 64.0 + 160.0,
        refusals: &[404, 409, 422, 429],
        is_refused: false,
        prepare: nothing,
        run: loud::patterns,
    },
    Attack {
        name: "1,200 changes of 1 MB",
        budget_mib: 256.0,
        refusals: &[409, 410, 429],
        is_refused: false,
        prepare: loud::prepare_history,
        run: loud::history,
    },
    Attack {
        name: "new objects until the cluster is full",
        // Objects that are there, and the history of what was.
        budget_mib: 512.0 + 256.0,
        refusals: &[403, 429],
        is_refused: true,
        prepare: loud::prepare_stored,
        run: loud::stored,
    },
    Attack {
        name: "watches of a deleted account",
        budget_mib: 0.0,
        refusals: &[401, 403],
        is_refused: true,
        prepare: nothing,
        run: unread::deleted_account,
    },
    Attack {
        name: "requests that are refused",
        budget_mib: 0.0,
        refusals: &[422, 429],
        is_refused: true,
        prepare: nothing,
        run: loud::refusals,
    },
    Attack {
        name: "4,296 connections that say nothing",
        budget_mib: 64.0,
        refusals: &[],
        is_refused: true,
        prepare: nothing,
        run: loud::connections,
    },
    Attack {
        name: "a role of 8,000 rules that changes",
        budget_mib: 256.0,
        refusals: &[409, 429],
        is_refused: false,
        prepare: loud::prepare_roles,
        run: loud::roles,
    },
];

/// What was measured of one attack.
struct Measured {
    idle: Latency,
    attacked: Latency,
    before_mib: f64,
    peak_mib: f64,
    seen: Seen,
}

/// Runs them all; false if a bound was broken.
pub(crate) fn run(size: &Size) -> anyhow::Result<bool> {
    let binary = interlock::build()?;
    say(
        "| attack | neighbour idle: p50, p99 | attacked: p50, p99 | ratio of p99 | memory before | most | allowed | the attacker gets |",
    );
    say("|---|---:|---:|---:|---:|---:|---:|---|");
    let mut broken = Vec::new();
    for attack in &ATTACKS {
        let measured = attack.measure(&binary, size.quick);
        let measured = measured.with_context(|| format!("{}: not measured", attack.name))?;
        say(&attack.row(&measured));
        broken.extend(attack.broken(&measured));
    }
    super::say_goals(
        "memory within its budget, the neighbour's p99 within 10 times its idle p99, the attacker is refused or cut off",
        &broken,
    );
    Ok(broken.is_empty())
}

impl Attack {
    fn measure(&self, binary: &std::path::Path, is_quick: bool) -> anyhow::Result<Measured> {
        let folder = Directory::new("attack")?;
        let tokens = folder.path().join("tokens.csv");
        std::fs::write(&tokens, format!("{ADMIN},admin,1,\"system:masters\"\n"))?;
        let data = folder.path().join("data");
        let server = Running::start(
            Command::new(binary)
                .args(["serve", "--listen", "127.0.0.1:0", "--insecure-http", "--token-file"])
                .arg(&tokens)
                .arg("--data-dir")
                .arg(&data),
        )?;
        let (_, ready) = server.says(" ready ")?;
        let address = ready.split("url=http://").nth(1).and_then(|rest| rest.split(' ').next());
        let address = address.context("the server does not say where it listens")?.to_owned();
        let admin = Place { address, root: String::new(), token: ADMIN.to_owned() };
        let (loud, quiet) = (Field::tenant(&admin, "loud")?, Field::tenant(&admin, "quiet")?);
        let seconds = if is_quick { 3 } else { 15 };
        let duration = Duration::from_secs(seconds);
        let audit_log = data.join("audit.log");
        let field = Field { admin, loud, quiet, audit_log, duration, is_quick };
        (self.prepare)(&field)?;
        let neighbour = Neighbour::begin(neighbour::arrive(&field.quiet)?);
        std::thread::sleep(duration);
        let (http, idle) = neighbour.end()?;
        let before_mib = server.resident_bytes() / MIB;
        // From here on the kernel keeps the highest mark anew.
        std::fs::write(format!("/proc/{}/clear_refs", server.pid()), "5")
            .context("the highest mark of memory cannot be reset")?;
        let neighbour = Neighbour::begin(http);
        let seen = (self.run)(&field)?;
        let (_, attacked) = neighbour.end()?;
        let peak_mib = server.peak_bytes() / MIB;
        server.stop()?;
        Ok(Measured { idle, attacked, before_mib, peak_mib, seen })
    }

    /// What the memory may grow to.
    fn allowed_mib(&self, measured: &Measured) -> f64 {
        measured.before_mib + self.budget_mib * 1.25 + SLACK_MIB
    }

    fn row(&self, measured: &Measured) -> String {
        let Measured { idle, attacked, seen, .. } = measured;
        let mut answers = String::new();
        for (status, count) in &seen.answers {
            let _ = write!(answers, "{count} times {status}, ");
        }
        format!(
            "| {} | {}, {} | {}, {} | {} | {} MiB | {} MiB | {} MiB | {answers}{} cut off |",
            self.name,
            time(idle.p50),
            time(idle.p99),
            time(attacked.p50),
            time(attacked.p99),
            grouped(attacked.p99 / idle.p99),
            grouped(measured.before_mib),
            grouped(measured.peak_mib),
            grouped(self.allowed_mib(measured)),
            seen.closed,
        )
    }

    /// The bounds that do not hold.
    fn broken(&self, measured: &Measured) -> Vec<String> {
        let Measured { idle, attacked, seen, .. } = measured;
        let mut broken = seen.wrong.clone();
        let slower = attacked.p99 / idle.p99;
        if slower > MOST_TIMES_SLOWER {
            broken.push(format!(
                "the neighbour's p99 is {} times as long ({} answers idle, {} attacked)",
                grouped(slower),
                idle.count,
                attacked.count
            ));
        }
        let allowed = self.allowed_mib(measured);
        if measured.peak_mib > allowed {
            let (peak, allowed) = (grouped(measured.peak_mib), grouped(allowed));
            broken.push(format!("memory of {peak} MiB, allowed are {allowed}"));
        }
        for (status, count) in &seen.answers {
            if *status >= 300 && !self.refusals.contains(status) {
                broken.push(format!("{count} answers with {status}"));
            }
        }
        let refused = seen.answers.iter().any(|(status, _)| self.refusals.contains(status));
        if self.is_refused && !refused && seen.closed == 0 {
            broken.push("the attacker was never refused".to_owned());
        }
        broken.iter().map(|what| format!("{}: {what}", self.name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(p99: f64, peak_mib: f64, answers: &[(u16, usize)]) -> Measured {
        let latency = |p99| Latency { count: 100, p50: 50.0, p99 };
        let seen = Seen { answers: answers.iter().copied().collect(), ..Seen::default() };
        let (idle, attacked) = (latency(100.0), latency(p99));
        Measured { idle, attacked, before_mib: 40.0, peak_mib, seen }
    }

    #[test]
    fn every_bound_is_checked() {
        let lists = &ATTACKS[0];
        let fine = measured(900.0, 400.0, &[(200, 25), (429, 375)]);
        assert!(lists.broken(&fine).is_empty(), "{:?}", lists.broken(&fine));
        let says = |measured: &Measured, what: &str| {
            let broken = lists.broken(measured);
            assert!(broken.len() == 1 && broken[0].contains(what), "{broken:?}");
        };
        says(&measured(1_100.0, 400.0, &[(200, 25), (429, 375)]), "11.0 times as long");
        says(&measured(900.0, 4_000.0, &[(200, 25), (429, 375)]), "4,000 MiB");
        says(&measured(900.0, 400.0, &[(200, 400)]), "never refused");
        says(&measured(900.0, 400.0, &[(429, 1), (500, 2)]), "2 answers with 500");
    }
}
