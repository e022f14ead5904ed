//! A bundle by `kubectl apply --server-side` and by `interlock rollout submit`, in turn, each time on a logical cluster of
//! its own of the same server; then the same bundle once more by each.

use super::manifests::{self, KINDS, NAMESPACE, PREFIX};
use super::up::Up;
use crate::bench::spread::{count, grouped};
use crate::say;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What a request still sets off after its end belongs to it.
const SETTLES: Duration = Duration::from_secs(2);

/// Which of the two runs are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) first: bool,
    pub(super) again: bool,
}

/// Who brings a bundle to a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Kubectl,
    Rollout,
}

impl Who {
    fn words(self) -> &'static str {
        match self {
            Who::Kubectl => "kubectl apply --server-side",
            Who::Rollout => "interlock rollout submit",
        }
    }

    /// The cluster of a round.
    fn cluster(self, round: usize) -> String {
        match self {
            Who::Kubectl => format!("kubectl-{round}"),
            Who::Rollout => format!("rollout-{round}"),
        }
    }
}

/// What a run took, for all objects together.
#[derive(Debug, Clone, Copy)]
struct Taken {
    seconds: f64,
    processor_seconds: f64,
    /// Requests about objects of the kinds of the bundle.
    gets: u64,
    lists: u64,
    dry_runs: u64,
    writes: u64,
    /// Requests about anything else: discovery, requests, records, reports.
    others: u64,
    /// How many objects had another version afterwards.
    changed: usize,
}

impl Taken {
    fn requests(&self) -> u64 {
        self.gets + self.lists + self.dry_runs + self.writes + self.others
    }
}

/// The rounds of one of the two runs.
#[derive(Debug, Default)]
struct Rounds {
    kubectl: Vec<Taken>,
    rollout: Vec<Taken>,
}

impl Rounds {
    fn add(&mut self, who: Who, taken: Taken) {
        match who {
            Who::Kubectl => self.kubectl.push(taken),
            Who::Rollout => self.rollout.push(taken),
        }
    }

    /// The fastest round of each.
    fn best(&self) -> anyhow::Result<Best> {
        let fastest = |all: &[Taken]| {
            all.iter().copied().min_by(|one, other| one.seconds.total_cmp(&other.seconds))
        };
        Ok(Best {
            kubectl: fastest(&self.kubectl).context("no round of kubectl")?,
            rollout: fastest(&self.rollout).context("no round of a rollout")?,
            most_changed: self.rollout.iter().map(|it| it.changed).max().unwrap_or(0),
        })
    }
}

struct Best {
    kubectl: Taken,
    rollout: Taken,
    /// In any round of a rollout.
    most_changed: usize,
}

/// Runs it for each size; returns which goals were missed.
pub(super) fn run(
    binary: &Path,
    sizes: &[usize],
    rounds: usize,
    shown: Shown,
) -> anyhow::Result<Vec<String>> {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        bail!("there is no kubectl: apt-get install kubernetes-client");
    }
    let columns = ["objects", "", "", "seconds", "ratio", "processor each", "ratio"];
    let counts = ["requests each", "get", "list", "dry run", "write", "other", "changed"];
    say(&format!("| {} | {} |", columns.join(" | "), counts.join(" | ")));
    say(&format!("|---:|---|---|{}", "---:|".repeat(columns.len() + counts.len() - 3)));
    let mut missed = Vec::new();
    for objects in sizes {
        let bench = Bench::start(binary, *objects, rounds)?;
        let (mut first, mut again) = (Rounds::default(), Rounds::default());
        for round in 1..=rounds {
            let mut both = [Who::Kubectl, Who::Rollout];
            if round % 2 == 0 {
                both.reverse();
            }
            for who in both {
                first.add(who, bench.take(who, &who.cluster(round))?);
            }
            if shown.again {
                for who in both {
                    again.add(who, bench.take(who, &who.cluster(round))?);
                }
            }
        }
        bench.up.stop()?;
        if shown.first {
            let best = first.best()?;
            show(*objects, "first", &best);
            missed.extend(slower(*objects, "first", &best));
        }
        if shown.again {
            let best = again.best()?;
            show(*objects, "again", &best);
            missed.extend(slower(*objects, "again", &best));
            if best.most_changed > 0 {
                let (changed, all) = (best.most_changed, count(*objects));
                missed.push(format!("{all}, again: {changed} objects have another version"));
            }
        }
    }
    Ok(missed)
}

struct Bench {
    up: Up,
    objects: usize,
    folder: PathBuf,
}

impl Bench {
    fn start(binary: &Path, objects: usize, rounds: usize) -> anyhow::Result<Bench> {
        let of_round = |round| [Who::Kubectl, Who::Rollout].map(|who| who.cluster(round));
        let clusters: Vec<String> = (1..=rounds).flat_map(of_round).collect();
        let up = Up::start(binary, &clusters)?;
        let folder = up.path("bundle");
        manifests::write(&folder, objects, 1)?;
        Ok(Bench { up, objects, folder })
    }

    /// Brings the bundle to a cluster, from the start of the program until it has ended, or the request has succeeded.
    fn take(&self, who: Who, cluster: &str) -> anyhow::Result<Taken> {
        eprintln!("{}: {} objects on {cluster}", who.words(), count(self.objects));
        let versions = self.versions(cluster)?;
        let (before, log) = (self.up.requests()?, self.up.log()?);
        let (processor, began) = (self.up.processor_seconds()?, Instant::now());
        let reads = match who {
            Who::Kubectl => {
                self.kubectl(cluster)?;
                0
            }
            Who::Rollout => {
                let name = self.up.submit(&[cluster], &self.folder)?;
                self.up.until_succeeded("clusterupdates", &name)?
            }
        };
        let seconds = began.elapsed().as_secs_f64();
        std::thread::sleep(SETTLES);
        let processor_seconds = self.up.processor_seconds()? - processor;
        let requests = self.up.requests()?.since(&before);
        let written = log.writes(cluster, manifests::has)?;
        let gets = requests.number(&["get"], manifests::has);
        let lists = requests.number(&["list"], manifests::has);
        // Our own: those that waited for the end, and the first of the two that counted.
        let own = reads + 1;
        let named = gets + lists + written.dry_runs + written.writes + own;
        let after = self.versions(cluster)?;
        if after.len() != self.objects {
            bail!("{cluster} has {} objects of {}", after.len(), self.objects);
        }
        let changed = after.iter().filter(|(name, version)| versions.get(*name) != Some(*version));
        Ok(Taken {
            seconds,
            processor_seconds,
            gets,
            lists,
            dry_runs: written.dry_runs,
            writes: written.writes,
            others: requests.all().saturating_sub(named),
            changed: changed.count(),
        })
    }

    fn kubectl(&self, cluster: &str) -> anyhow::Result<()> {
        let output = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(self.up.kubeconfig())
            .arg("--cache-dir")
            .arg(self.up.path("kubectl-cache"))
            .args(["--context", cluster, "apply", "--server-side", "--filename"])
            .arg(self.folder.join("bundle.yaml"))
            .output()
            .context("cannot start kubectl")?;
        if !output.status.success() {
            bail!("kubectl apply: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    /// The version of each object of the bundle that a cluster has.
    fn versions(&self, cluster: &str) -> anyhow::Result<BTreeMap<String, String>> {
        let of = |object: &serde_json::Value, field: &str| {
            object["metadata"][field].as_str().unwrap_or_default().to_owned()
        };
        let mut versions = BTreeMap::new();
        for namespace in self.up.list(&format!("/clusters/{cluster}/api/v1/namespaces"))? {
            if of(&namespace, "name") == NAMESPACE {
                versions.insert(NAMESPACE.to_owned(), of(&namespace, "resourceVersion"));
            }
        }
        for kind in KINDS {
            let (api, plural) = (kind.api, kind.plural);
            let path = format!("/clusters/{cluster}/{api}/namespaces/{NAMESPACE}/{plural}");
            for object in self.up.list(&path)? {
                let name = of(&object, "name");
                if name.starts_with(PREFIX) {
                    versions.insert(format!("{plural}/{name}"), of(&object, "resourceVersion"));
                }
            }
        }
        Ok(versions)
    }
}

fn show(objects: usize, run: &str, best: &Best) {
    for who in [Who::Kubectl, Who::Rollout] {
        let taken = match who {
            Who::Kubectl => &best.kubectl,
            Who::Rollout => &best.rollout,
        };
        let each = |number: u64| format!("{:.2}", number as f64 / objects as f64);
        let row = [
            count(objects),
            run.to_owned(),
            who.words().to_owned(),
            grouped(taken.seconds),
            format!("{:.2}", taken.seconds / best.kubectl.seconds),
            format!("{} ms", grouped(taken.processor_seconds * 1e3 / objects as f64)),
            format!("{:.2}", taken.processor_seconds / best.kubectl.processor_seconds),
            each(taken.requests()),
            each(taken.gets),
            each(taken.lists),
            each(taken.dry_runs),
            each(taken.writes),
            each(taken.others),
            count(taken.changed),
        ];
        say(&format!("| {} |", row.join(" | ")));
    }
}

/// What takes more than kubectl does.
fn slower(objects: usize, run: &str, best: &Best) -> Vec<String> {
    let (theirs, ours) = (&best.kubectl, &best.rollout);
    let (all, mut missed) = (count(objects), Vec::new());
    if ours.seconds > theirs.seconds {
        let ratio = ours.seconds / theirs.seconds;
        missed.push(format!("{all}, {run}: {ratio:.2} times the time of kubectl"));
    }
    if ours.requests() > theirs.requests() {
        let each = |taken: &Taken| taken.requests() as f64 / objects as f64;
        let (they, we) = (each(theirs), each(ours));
        missed.push(format!("{all}, {run}: {we:.2} requests each, kubectl {they:.2}"));
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(seconds: f64, writes: u64, changed: usize) -> Taken {
        let processor_seconds = seconds;
        let (gets, lists, dry_runs, others) = (0, 0, 0, 0);
        Taken { seconds, processor_seconds, gets, lists, dry_runs, writes, others, changed }
    }

    #[test]
    fn the_fastest_round_counts_and_a_change_in_any_round() {
        let mut rounds = Rounds::default();
        assert!(rounds.best().is_err());
        rounds.add(Who::Kubectl, taken(2.0, 10, 10));
        rounds.add(Who::Rollout, taken(3.0, 10, 0));
        rounds.add(Who::Rollout, taken(4.0, 10, 5));
        let best = rounds.best().unwrap();
        assert_eq!((best.rollout.seconds, best.most_changed), (3.0, 5));
        assert_eq!(slower(10, "first", &best), ["10, first: 1.50 times the time of kubectl"]);
    }

    #[test]
    fn more_requests_than_those_of_kubectl_are_said() {
        let (kubectl, rollout) = (taken(2.0, 10, 0), taken(2.0, 40, 0));
        let missed = slower(10, "again", &Best { kubectl, rollout, most_changed: 0 });
        assert_eq!(missed, ["10, again: 4.00 requests each, kubectl 1.00"]);
    }
}
