//! The same requests to a kube-apiserver and to ours, and how the answers differ.

mod answer;
mod bodies;
mod policies;
mod requests;

use crate::kubernetes::servers;
use crate::program::{Program, eventually, output};
use crate::serving::Serving;
use crate::{interlock, root, say, scratch, upstream};
use answer::{Answer, Difference};
use anyhow::Context;
use requests::{Random, Request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
/// So many requests share a namespace: what one server refused and the other did not has an end.
const STORY: usize = 10;

/// What is sent.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// How many requests, after the policies; with 0 policies alone are compared
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000)]
    requests: usize,
    /// What the requests are drawn by
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// The binary to serve with, instead of a fresh release build
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// How many examples of each class of differences are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    examples: usize,
}

/// An API server behind `kubectl proxy`, which brings TLS and the credentials.
struct Peer {
    port: u16,
    _proxy: Program,
    /// The versions and UIDs that it gave, by the path of the object.
    known: BTreeMap<String, (String, String)>,
}

/// Runs it; false if more differs than is explained.
pub(crate) fn run(run: &Run) -> anyhow::Result<bool> {
    let explained = explained()?;
    let kubernetes = upstream::servers()?;
    let binary = run.binary.clone().map_or_else(interlock::build, Ok)?.canonicalize()?;
    let folder = scratch().join("differential");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    say(&format!("logs are in {}", folder.display()));
    let (_etcd, theirs) = servers::start(&kubernetes, &folder, &["theirs"])?;
    let serving = Serving::start(&binary, &folder)?;
    let mut peers = [
        Peer::start(&theirs[0].admin(), &folder, "theirs")?,
        Peer::start(serving.kubeconfig(), &folder, "ours")?,
    ];
    for peer in &mut peers {
        peer.bring_kind()?;
    }
    let is_alike = policies::run(&mut peers, &explained)?;
    if run.requests == 0 {
        return Ok(is_alike);
    }
    let mut told = Told::default();
    let mut story = 0;
    while told.sent < run.requests {
        let namespace = format!("story-{story}");
        for peer in &mut peers {
            peer.begin(&namespace, json!({}))?;
        }
        let seed = run.seed.wrapping_mul(1 << 20).wrapping_add(story);
        tell(&mut peers, &namespace, Random::new(seed), &mut told)?;
        story += 1;
    }
    Ok(told.report(&explained, run.examples) && is_alike)
}

/// A few requests in a namespace of their own. Where one server refuses what the other does, what follows would differ
/// for no other reason, so the story ends.
fn tell(
    peers: &mut [Peer; 2],
    namespace: &str,
    mut random: Random,
    told: &mut Told,
) -> anyhow::Result<()> {
    for _ in 0..STORY {
        let request = requests::draw(&mut random, namespace);
        let [theirs, ours] = peers.each_mut().map(|peer| peer.send(&request));
        let (theirs, ours) = (theirs?, ours?);
        told.sent += 1;
        let Some(difference) = answer::difference(&theirs, &ours) else {
            told.alike += 1;
            continue;
        };
        let ends = theirs.status != ours.status;
        let example = format!("{request}\n    theirs: {theirs}\n    ours:   {ours}");
        told.classes.entry(difference).or_default().push(example);
        if ends {
            break;
        }
    }
    Ok(())
}

/// What was seen.
#[derive(Default)]
struct Told {
    sent: usize,
    alike: usize,
    classes: BTreeMap<Difference, Vec<String>>,
}

impl Told {
    fn report(&self, explained: &[(String, String)], examples: usize) -> bool {
        let mut classes: Vec<_> = self.classes.iter().collect();
        classes.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.len()));
        let (mut is_status, mut without) = (false, 0);
        for (difference, seen) in classes {
            let class = difference.to_string();
            let because = explained.iter().find(|(meant, _)| is_meant(meant, &class));
            say(&format!("{:5}  {class}", seen.len()));
            match because {
                Some((_, because)) => say(&format!("       explained: {because}")),
                None => {
                    without += 1;
                    is_status |= difference.is_status();
                    seen.iter().take(examples).for_each(|example| say(&format!("    {example}")));
                }
            }
        }
        let share = self.alike as f64 / self.sent.max(1) as f64 * 100.0;
        say(&format!(
            "{} requests, {} answered alike ({share:.1} %); {} classes of differences, {without} without an \
             explanation",
            self.sent,
            self.alike,
            self.classes.len(),
        ));
        share >= 95.0 && without == 0 && !is_status
    }
}

/// Whether a class is one that is meant; `*` stands for any text.
fn is_meant(meant: &str, class: &str) -> bool {
    let mut parts = meant.split('*');
    let Some(mut rest) = class.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut ends_anywhere = false;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        ends_anywhere = part.is_empty();
    }
    rest.is_empty() || ends_anywhere
}

/// Classes of differences that are meant, each with the reason: `CLASS` and, on the next line, the reason.
fn explained() -> anyhow::Result<Vec<(String, String)>> {
    let path = root().join("tests/conformance/differences.txt");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut explained = Vec::new();
    while let Some(class) = lines.next() {
        let reason = lines.next().with_context(|| format!("{class:?} has no reason"))?;
        explained.push((class.to_owned(), reason.trim().to_owned()));
    }
    Ok(explained)
}

impl Peer {
    fn start(kubeconfig: &Path, folder: &Path, name: &str) -> anyhow::Result<Peer> {
        let port = crate::bench::process::free_port()?;
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(kubeconfig).args(["proxy", "--port", &port.to_string()]);
        command.args(["--accept-paths", ".*", "--reject-paths", "^$"]);
        let proxy = Program::start(&mut command, folder, &format!("{name}-proxy"))?;
        let mut peer = Peer { port, _proxy: proxy, known: BTreeMap::new() };
        let ready = Request::get("/readyz");
        eventually(&format!("{name} is ready"), TIMEOUT, || Ok(peer.send(&ready)?.status == 200))?;
        let version = ["--kubeconfig", &kubeconfig.to_string_lossy(), "version", "-o", "json"]
            .map(str::to_owned);
        let said = output(Command::new("kubectl").args(version), folder)?;
        let version: Value = serde_json::from_str(&said)?;
        say(&format!("{name}: {}", version["serverVersion"]["gitVersion"]));
        Ok(peer)
    }

    /// A custom kind, served by both before anything is asked of it.
    fn bring_kind(&mut self) -> anyhow::Result<()> {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.send(&Request::post(path, bodies::custom_kind()))?;
        let list = Request::get("/apis/example.com/v1/widgets");
        eventually("the custom kind is served", TIMEOUT, || Ok(self.send(&list)?.status == 200))
    }

    /// A namespace with what the controllers of a cluster put into it.
    fn begin(&mut self, namespace: &str, labels: Value) -> anyhow::Result<()> {
        let metadata = json!({"name": namespace, "labels": labels});
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        self.send(&Request::post("/api/v1/namespaces", body))?;
        for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            let get = Request::get(&format!("/api/v1/namespaces/{namespace}/{path}"));
            eventually(path, TIMEOUT, || Ok(self.send(&get)?.status == 200))?;
        }
        Ok(())
    }

    /// Sends what must succeed, or nothing can be compared.
    fn must(&mut self, request: &Request) -> anyhow::Result<()> {
        let answer = self.send(request)?;
        anyhow::ensure!(answer.status < 300, "{request}\n    {answer}");
        Ok(())
    }

    fn send(&mut self, request: &Request) -> anyhow::Result<Answer> {
        let (version, uid) = self.known.get(&request.object).cloned().unwrap_or_default();
        let fill = |text: &str| text.replace("{version}", &version).replace("{uid}", &uid);
        let (target, body) = (fill(&request.target), fill(&request.body));
        let mut head = format!("{} {target} HTTP/1.0\r\nhost: localhost\r\n", request.method);
        write!(head, "accept: {}\r\n", request.accept)?;
        if let Some(user) = request.user {
            write!(head, "impersonate-user: {user}\r\n")?;
        }
        if !body.is_empty() {
            let kind = request.content;
            write!(head, "content-type: {kind}\r\ncontent-length: {}\r\n", body.len())?;
        }
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said).context("no answer")?;
        let answer = Answer::read(&String::from_utf8_lossy(&said))?;
        if let Some((object, known)) = answer.is_of(&request.object) {
            self.known.insert(object, known);
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let class = "PodList .items[].spec.containers[].volumeMounts: not here";
        assert!(is_meant(class, class));
        assert!(is_meant("Pod*.volumeMounts: not here", class));
        assert!(is_meant("Pod*.spec.*", class));
        assert!(!is_meant("Pod*.volumeMounts", class));
        assert!(!is_meant("Job*", class));
    }

    #[test]
    fn every_class_that_is_meant_has_a_reason() {
        assert!(!explained().expect("they can be read").is_empty());
    }
}
