//! What an API server counts: its requests by verb and resource, and in its audit log which writes were dry runs.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

/// What is written whether there is work or not: leases, heartbeats, and events that are reported beside the work.
const GOES_ON: [&str; 3] = ["leases", "workloadclusters", "events"];
/// Where the audit log says which logical cluster a request was for.
const CLUSTER: &str = "interlock.dev/cluster";
/// Where it says how many lines are missing before this one.
const DROPPED: &str = "interlock.dev/dropped-events";

/// Requests by verb and resource, without watches and without what goes on in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Requests(BTreeMap<(String, String), u64>);

impl Requests {
    /// Those that a page of metrics has.
    pub(crate) fn of(page: &str) -> Requests {
        let mut requests = Requests::default();
        for line in page.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
            let number = line.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
            let (Some(verb), Some(resource), Some(number)) =
                (label(line, "verb"), label(line, "resource"), number)
            else {
                continue;
            };
            if verb != "watch" && !GOES_ON.contains(&resource) {
                // Each code has a line of its own.
                *requests.0.entry((verb.to_owned(), resource.to_owned())).or_default() += number;
            }
        }
        requests
    }

    /// What came after an earlier count.
    pub(crate) fn since(&self, before: &Requests) -> Requests {
        let more = self.0.iter().map(|(key, number)| {
            let earlier = before.0.get(key).copied().unwrap_or(0);
            (key.clone(), number.saturating_sub(earlier))
        });
        Requests(more.collect())
    }

    /// How many there are with one of these verbs, for what is meant.
    pub(crate) fn number(&self, verbs: &[&str], is_meant: impl Fn(&str) -> bool) -> u64 {
        let meant = self.0.iter().filter(|((verb, resource), _)| {
            verbs.contains(&verb.as_str()) && is_meant(resource.as_str())
        });
        meant.map(|(_, number)| number).sum()
    }

    /// All of them.
    pub(super) fn all(&self) -> u64 {
        self.0.values().sum()
    }
}

fn label<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("{name}=\""))?;
    rest.split('"').next()
}

/// A place in the audit log of a server: what comes after it counts.
pub(super) struct Log {
    path: PathBuf,
    from: u64,
}

/// Requests that write, or would.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Writes {
    pub(super) dry_runs: u64,
    pub(super) writes: u64,
    /// Lines that the log left out: many refusals of one caller at once.
    missing: u64,
}

impl Log {
    /// Its end.
    pub(super) fn at_its_end(path: PathBuf) -> anyhow::Result<Log> {
        let metadata = std::fs::metadata(&path);
        let metadata = metadata.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Log { path, from: metadata.len() })
    }

    /// The writes since then to one logical cluster, of the resources that are meant.
    pub(super) fn writes(
        &self,
        cluster: &str,
        is_meant: impl Fn(&str) -> bool,
    ) -> anyhow::Result<Writes> {
        let mut file = File::open(&self.path)?;
        if file.metadata()?.len() < self.from {
            bail!("the audit log was set aside in the middle: measure fewer objects");
        }
        file.seek(SeekFrom::Start(self.from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        // A line that is being written at this moment has no end yet.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let writes = writes(whole, cluster, is_meant)?;
        if writes.missing > 0 {
            eprintln!(
                "the audit log left {} refused writes out: they do not count",
                writes.missing
            );
        }
        Ok(writes)
    }
}

fn writes(text: &str, cluster: &str, is_meant: impl Fn(&str) -> bool) -> anyhow::Result<Writes> {
    let mut writes = Writes::default();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).context("a line of the audit log")?;
        let annotations = &line["annotations"];
        if let Some(dropped) = annotations[DROPPED].as_str() {
            writes.missing += dropped.parse::<u64>().context("a gap of the audit log")?;
            continue;
        }
        let resource = line["objectRef"]["resource"].as_str().unwrap_or_default();
        let is_write = matches!(
            line["verb"].as_str(),
            Some("create" | "update" | "patch" | "delete" | "deletecollection")
        );
        let is_counted = is_write && !GOES_ON.contains(&resource) && is_meant(resource);
        if annotations[CLUSTER] != cluster || !is_counted {
            continue;
        }
        match line["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun=All")) {
            true => writes.dry_runs += 1,
            false => writes.writes += 1,
        }
    }
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_counted_by_verb_and_resource_and_without_what_goes_on() {
        let page = "# TYPE apiserver_request_total counter\n\
            apiserver_request_total{verb=\"get\",resource=\"configmaps\",code=\"200\"} 4\n\
            apiserver_request_total{verb=\"get\",resource=\"configmaps\",code=\"404\"} 3\n\
            apiserver_request_total{verb=\"patch\",resource=\"configmaps\",code=\"200\"} 2\n\
            apiserver_request_total{verb=\"patch\",resource=\"leases\",code=\"200\"} 50\n\
            apiserver_request_total{verb=\"watch\",resource=\"configmaps\",code=\"200\"} 60\n\
            apiserver_request_total{verb=\"get\",resource=\"\",code=\"200\"} 1\n";
        let requests = Requests::of(page);
        assert_eq!(requests.all(), 10);
        assert_eq!(requests.number(&["get"], |resource| resource == "configmaps"), 7);
        assert_eq!(requests.number(&["get", "patch"], |_| true), 10);
        assert_eq!(requests.since(&requests).all(), 0);
        assert_eq!(requests.since(&Requests::default()), requests);
    }

    fn line(cluster: &str, resource: &str, query: &str) -> String {
        let line = json!({"verb": "patch", "requestURI": format!("/api/v1/x{query}"),
            "objectRef": {"resource": resource}, "annotations": {CLUSTER: cluster}});
        line.to_string() + "\n"
    }

    #[test]
    fn dry_runs_are_no_writes_and_other_clusters_do_not_count() {
        let text = [
            line("west", "configmaps", "?fieldManager=a&dryRun=All"),
            line("west", "configmaps", "?fieldManager=a"),
            line("west", "secrets", ""),
            line("west", "leases", ""),
            line("east", "configmaps", ""),
        ];
        let counted = writes(&text.concat(), "west", |_| true).unwrap();
        assert_eq!(counted, Writes { dry_runs: 1, writes: 2, missing: 0 });
        let counted = writes(&text.concat(), "west", |resource| resource == "secrets").unwrap();
        assert_eq!(counted, Writes { dry_runs: 0, writes: 1, missing: 0 });
    }

    #[test]
    fn lines_that_a_log_left_out_are_counted_apart() {
        let gap = json!({"annotations": {DROPPED: "7"}}).to_string() + "\n";
        let text = line("west", "secrets", "") + &gap;
        let counted = writes(&text, "west", |_| true).unwrap();
        assert_eq!(counted, Writes { dry_runs: 0, writes: 1, missing: 7 });
    }

    #[test]
    fn only_what_comes_after_a_place_in_a_log_counts() {
        let folder = crate::bench::process::Directory::new("counted-log").unwrap();
        let path = folder.path().join("audit.log");
        std::fs::write(&path, line("west", "secrets", "")).unwrap();
        let log = Log::at_its_end(path.clone()).unwrap();
        assert_eq!(log.writes("west", |_| true).unwrap(), Writes::default());
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + &line("west", "configmaps", "") + "{\"verb\":").unwrap();
        assert_eq!(log.writes("west", |_| true).unwrap().writes, 1);
        std::fs::write(&path, "").unwrap();
        assert!(log.writes("west", |_| true).is_err());
    }
}
