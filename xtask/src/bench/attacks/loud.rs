//! Attackers who read their answers: what they ask for costs the server much, or fills it.

use super::field::{CLUSTERS, Field, MAPS, Seen, make, newest};
use super::http::{Answer, Ask, Http, Place};
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// So many connections of one address are let in.
const OF_ONE_ADDRESS: usize = 4_096;
/// What a logical cluster may store when the run is a quick one.
const SMALL_QUOTA: u64 = 64 << 20;
/// A logical cluster is full by then.
const TO_BE_FULL: Duration = Duration::from_secs(120);

fn definition(name: &str, version: Value) -> Value {
    let mut whole = json!({"name": "v1", "served": true, "storage": true});
    for (field, value) in version.as_object().into_iter().flatten() {
        whole[field.as_str()] = value.clone();
    }
    json!({
        "metadata": {"name": format!("{name}s.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": format!("{name}s"), "singular": name, "kind": name.to_uppercase()},
            "versions": [whole],
        },
    })
}

fn with_columns(name: &str, count: usize) -> Value {
    let columns: Vec<Value> = (0..count)
        .map(|number| json!({"name": format!("c{number}"), "type": "string", "jsonPath": ".spec"}))
        .collect();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "additionalPrinterColumns": columns, "schema": {"openAPIV3Schema": schema},
    });
    definition(name, version)
}

/// Objects that become large when they are shown: many columns, many keys with an owner each.
pub(super) fn prepare_rendering(field: &Field) -> anyhow::Result<()> {
    make(&field.loud, DEFINITIONS, &with_columns("wide", 64))?;
    let path = "/apis/example.com/v1/namespaces/default/wides";
    let mut http = Http::connect(&field.loud)?;
    crate::program::eventually("the custom kind is served", Duration::from_secs(30), || {
        Ok(http.ask(Ask::get(path))?.status == 200)
    })?;
    for number in 0..12 {
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "WIDE",
            "metadata": {"name": format!("wide-{number}")}, "spec": {"text": "y".repeat(500_000)},
        });
        make(&field.loud, path, &object)?;
        let keys: Map<String, Value> =
            (0..8_000).map(|key| (format!("key-{key}"), json!("value"))).collect();
        make(
            &field.loud,
            MAPS,
            &json!({"metadata": {"name": format!("m-{number}")}, "data": keys}),
        )?;
    }
    Ok(())
}

/// Tables with as many columns as there may be, and lists with line breaks.
pub(super) fn rendering(field: &Field) -> anyhow::Result<Seen> {
    let more = with_columns("wider", 65).to_string();
    let refused = Http::connect(&field.loud)?.ask(Ask::post(DEFINITIONS, more.as_bytes()))?;
    let wides = "/apis/example.com/v1/namespaces/default/wides";
    let pretty = format!("{MAPS}?pretty=true");
    let mut seen = field.attack(4, |http, turn| {
        let table = [wides, MAPS][turn.round % 2];
        let ask = match (turn.attacker + turn.round) % 2 {
            0 => Ask::get(table).accepting(TABLE),
            _ => Ask::get(&pretty),
        };
        Some(http.ask(ask))
    })?;
    seen.note(refused.status);
    Ok(seen)
}

/// Large bodies in YAML, and questions that are far too long.
pub(super) fn yaml(field: &Field) -> anyhow::Result<Seen> {
    let mut body = "metadata: {generateName: yaml-}\ndata:\n".to_owned();
    for number in 0..40_000 {
        body += &format!("  key-{number}: \"value {number}\"\n");
    }
    let question =
        json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "y".repeat(100_000)}}});
    let question = question.to_string();
    let path = format!("{MAPS}?dryRun=All");
    field.attack(4, |http, turn| {
        Some(match turn.round % 4 {
            3 => http.ask(Ask::post(REVIEWS, question.as_bytes()).of_type("application/yaml")),
            _ => http.ask(Ask::post(&path, body.as_bytes()).of_type("application/yaml")),
        })
    })
}

/// Kinds with hundreds of patterns, all of which are different and large once they are compiled, and objects of them.
pub(super) fn patterns(field: &Field) -> anyhow::Result<Seen> {
    let bodies: Vec<String> = (0..40)
        .map(|kind| {
            let properties: Map<String, Value> = (0..600)
                .map(|number| {
                    let pattern = format!("^({kind}x{number}[a-z0-9]{{0,60}}){{0,3}}$");
                    (format!("f{number}"), json!({"type": "string", "pattern": pattern}))
                })
                .collect();
            let spec = json!({"type": "object", "properties": properties});
            let schema = json!({"type": "object", "properties": {"spec": spec}});
            let version = json!({"schema": {"openAPIV3Schema": schema}});
            definition(&format!("p{kind}p"), version).to_string()
        })
        .collect();
    let values: Map<String, Value> =
        (0..600).map(|number| (format!("f{number}"), json!("no match"))).collect();
    field.attack(2, |http, turn| {
        let kind = (turn.attacker + turn.round) % bodies.len();
        Some(match turn.round / bodies.len() % 2 {
            0 => http.ask(Ask::post(DEFINITIONS, bodies[kind].as_bytes())),
            _ => {
                let path = format!("/apis/example.com/v1/namespaces/default/p{kind}ps");
                let object = json!({
                    "apiVersion": "example.com/v1", "kind": format!("P{kind}P"),
                    "metadata": {"generateName": "a-"}, "spec": values,
                });
                http.ask(Ask::post(&path, object.to_string().as_bytes()))
            }
        })
    })
}

/// Changes that would fill the history that watches resume from.
pub(super) fn history(field: &Field) -> anyhow::Result<Seen> {
    let (ours, theirs) = (newest(&field.loud)?, newest(&field.quiet)?);
    let mut seen = field.attack(4, |http, turn| {
        // Four times three hundred megabytes are more than four times the budget of all.
        (turn.round < 300).then(|| {
            let value = format!("{}{}", turn.round, "y".repeat(1_000_000));
            let change = json!({"data": {"x": value}}).to_string();
            http.ask(Ask::merge(&format!("{MAPS}/large-{}", turn.attacker), change.as_bytes()))
        })
    })?;
    if resumes(&field.quiet, &theirs)?.contains("\"ERROR\"") {
        seen.wrong.push("the neighbour's watch cannot be resumed".to_owned());
    }
    if resumes(&field.loud, &ours)?.contains("\"code\":410") {
        seen.note(410);
    }
    Ok(seen)
}

pub(super) fn prepare_history(field: &Field) -> anyhow::Result<()> {
    field.fill(4, 10)
}

/// What a watch from an old version begins with.
fn resumes(place: &Place, version: &str) -> anyhow::Result<String> {
    let path = format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={version}");
    let answer = Http::connect(place)?.ask(Ask::get(&path))?.good()?;
    Ok(String::from_utf8_lossy(&answer.body[..answer.body.len().min(4096)]).into_owned())
}

pub(super) fn prepare_stored(field: &Field) -> anyhow::Result<()> {
    if !field.is_quick {
        return Ok(());
    }
    let limit = json!({"spec": {"storageLimitBytes": SMALL_QUOTA}}).to_string();
    let path = format!("{CLUSTERS}/loud");
    Http::connect(&field.admin)?.ask(Ask::merge(&path, limit.as_bytes()))?.good().map(drop)
}

/// New objects until there is no more room.
pub(super) fn stored(field: &Field) -> anyhow::Result<Seen> {
    let refused = AtomicUsize::new(0);
    let body = json!({"metadata": {"generateName": "more-"}, "data": {"x": "y".repeat(1_000_000)}});
    let body = body.to_string();
    field.attack_for(TO_BE_FULL, 4, |http, _| {
        (refused.load(Ordering::Relaxed) < 200).then(|| {
            let answer = http.ask(Ask::post(MAPS, body.as_bytes()));
            let is_refused = answer.as_ref().is_ok_and(|answer| answer.status == 403);
            refused.fetch_add(usize::from(is_refused), Ordering::Relaxed);
            answer
        })
    })
}

/// Requests that are refused, each of which would be a line of the audit log.
pub(super) fn refusals(field: &Field) -> anyhow::Result<Seen> {
    let count = || -> anyhow::Result<usize> {
        let text = std::fs::read_to_string(&field.audit_log).context("there is no audit log")?;
        Ok(text.lines().filter(|line| line.contains("\"code\":422")).count())
    };
    let before = count()?;
    let mut seen =
        field.attack(4, |http, _| Some(http.ask(Ask::post(MAPS, br#"{"metadata":{}}"#))))?;
    let lines = count()? - before;
    // Twenty a second, and what a second on either side has.
    let most = 20 * (field.duration.as_secs() as usize + 2);
    if lines > most {
        seen.wrong.push(format!("{lines} refusals are in the audit log: more than {most}"));
    }
    Ok(seen)
}

/// Connections that say nothing, from one address.
pub(super) fn connections(field: &Field) -> anyhow::Result<Seen> {
    let count = OF_ONE_ADDRESS + 200;
    allow_files(count + 500)?;
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(TcpStream::connect(&field.loud.address).context("cannot connect")?);
    }
    std::thread::sleep(field.duration);
    let mut seen = Seen::default();
    for stream in &open {
        stream.set_nonblocking(true)?;
        let is_open = matches!(stream.peek(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
        seen.closed += usize::from(!is_open);
    }
    let kept = open.len() - seen.closed;
    if kept > OF_ONE_ADDRESS {
        seen.wrong.push(format!("{kept} connections of one address are open"));
    }
    Ok(seen)
}

/// Raises our own limit of open files, if it is lower.
fn allow_files(count: usize) -> anyhow::Result<()> {
    let pid = std::process::id().to_string();
    let limit = format!("--nofile={count}:");
    let words = ["--pid", &pid, "--nofile", "--output", "SOFT", "--noheadings", "--raw"];
    let now = Command::new("prlimit").args(words).output().context("cannot start prlimit")?;
    let now: usize = String::from_utf8_lossy(&now.stdout).trim().parse().unwrap_or(usize::MAX);
    if now >= count {
        return Ok(());
    }
    let raised = Command::new("prlimit").args(["--pid", &pid, &limit]).status()?;
    anyhow::ensure!(raised.success(), "{count} open files are needed: raise `ulimit -n`");
    Ok(())
}

/// Roles with thousands of rules, which are compiled anew after each change.
pub(super) fn roles(field: &Field) -> anyhow::Result<Seen> {
    let asked =
        json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "nothing"}}}).to_string();
    field.attack(4, |http, turn| Some(change_or_ask(http, turn.round, &asked)))
}

fn change_or_ask(http: &mut Http, round: usize, asked: &str) -> anyhow::Result<Answer> {
    if round.is_multiple_of(2) {
        let change = json!({"metadata": {"annotations": {"round": round.to_string()}}}).to_string();
        return http.ask(Ask::merge(&format!("{ROLES}/huge"), change.as_bytes()));
    }
    http.ask(Ask::post(REVIEWS, asked.as_bytes()))
}

pub(super) fn prepare_roles(field: &Field) -> anyhow::Result<()> {
    let rules: Vec<Value> = (0..8_000)
        .map(|number| {
            json!({"apiGroups": [format!("g{number}.example.com")], "resources": ["*"],
                "verbs": ["get", "list"], "resourceNames": [format!("name-{number}")]})
        })
        .collect();
    let admin = field.admin_of_loud();
    make(&admin, ROLES, &json!({"metadata": {"name": "huge"}, "rules": rules}))?;
    let binding = json!({
        "metadata": {"name": "huge"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "huge"},
    });
    make(&admin, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).map(drop)
}
