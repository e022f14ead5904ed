//! `interlock rollout diff`: what a bundle would change against what the cluster is to run.

use super::Common;
use super::record::{Known, one, open};
use super::submit::bundle;
use crate::hub::Hub;
use crate::output::{Format, say, say_json};
use anyhow::{Context, bail};
use interlock_api::rollouts::{BundleRevision, part_name};
use interlock_rollouts::bundle::{Bundle, ObjectId, joined};
use kube::api::Api;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// How long a value of a field is shown.
const LONGEST: usize = 120;

/// Options of `rollout diff`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("against").required(true).args(["directory", "version"]))]
pub(super) struct Args {
    /// The cluster
    cluster: String,
    /// A folder of manifests with all that is below it, or a file; may be given several times
    #[arg(short, long, value_name = "PATH")]
    directory: Vec<PathBuf>,
    /// A version of the history
    #[arg(long, value_name = "VERSION")]
    version: Option<i64>,
    #[command(flatten)]
    common: Common,
}

/// What happens to an object, for programs: a contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Change {
    /// The object.
    object: String,
    /// Added, Removed or Changed.
    change: &'static str,
    /// The fields that differ, of an object that is changed.
    fields: Vec<Field>,
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Field {
    /// Where it is, as a JSON pointer.
    path: String,
    /// What the cluster is to run now; null: the field is not there.
    before: Option<Value>,
    /// What it would be; null: the field would go.
    after: Option<Value>,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let given = match args.directory.is_empty() {
        true => None,
        false => Some(bundle(&args.directory)?),
    };
    let hub = open(&args.common).await?;
    let known = one(&hub, &args.cluster).await?;
    let target = known.record.as_ref().and_then(|record| record.status.as_ref());
    let target = target.and_then(|status| status.target.digest.clone());
    let before = match &target {
        None => None,
        Some(digest) => Some(revision(&hub, digest).await?),
    };
    let after = match (given, args.version) {
        (Some(given), _) => given,
        (None, Some(version)) => revision(&hub, &digest_of(&known, version)?).await?,
        (None, None) => bail!("name a bundle: --directory or --version"),
    };
    let changes = changes(before.as_ref(), &after);
    match args.common.output {
        Format::Json => say_json(&changes)?,
        Format::Text => say(&page(&known.cluster, &changes))?,
    }
    Ok(if changes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn digest_of(known: &Known, version: i64) -> anyhow::Result<String> {
    let requests = known.requests();
    let found = requests.iter().find(|request| request.version == version);
    let found = found.with_context(|| {
        format!(
            "cluster {} has no version {version} in its history\nnext: interlock rollout history {}",
            known.cluster, known.cluster
        )
    })?;
    found.digest.clone().with_context(|| format!("version {version} has no bundle"))
}

/// A bundle that the hub has.
async fn revision(hub: &Hub, digest: &str) -> anyhow::Result<Bundle> {
    let api: Api<BundleRevision> = Api::all(hub.client.clone());
    let mut parts = Vec::new();
    let mut count = 1;
    while parts.len() < count as usize {
        let name = part_name(digest, u32::try_from(parts.len()).unwrap_or(u32::MAX));
        let found = api.get_opt(&name).await;
        let Some(part) = found.map_err(|error| hub.told(error, "read the BundleRevision"))? else {
            bail!(
                "BundleRevision {name} is not at the hub any more: only versions of the history are kept"
            )
        };
        count = part.spec.parts;
        parts.push(part.spec);
    }
    joined(digest, &parts).map_err(|flaw| anyhow::anyhow!("bundle {digest} cannot be read: {flaw}"))
}

fn changes(before: Option<&Bundle>, after: &Bundle) -> Vec<Change> {
    let objects = |bundle: Option<&Bundle>| -> BTreeMap<ObjectId, Value> {
        bundle.map(|bundle| bundle.objects().iter().cloned().collect()).unwrap_or_default()
    };
    let (mut before, mut changes) = (objects(before), Vec::new());
    for (id, object) in after.objects() {
        let (change, fields) = match before.remove(id) {
            None => ("Added", Vec::new()),
            Some(old) => ("Changed", fields(&old, object)),
        };
        if change == "Added" || !fields.is_empty() {
            changes.push(Change { object: id.to_string(), change, fields });
        }
    }
    let removed = before.into_keys();
    changes.extend(removed.map(|id| Change {
        object: id.to_string(),
        change: "Removed",
        fields: Vec::new(),
    }));
    changes
}

/// The fields that differ. Secrets are compared, and their values are not shown.
fn fields(before: &Value, after: &Value) -> Vec<Field> {
    let mut found = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut found);
    if after["kind"] == "Secret" {
        let hide = |value: &mut Option<Value>| {
            if value.is_some() {
                *value = Some(Value::from("(secret)"));
            }
        };
        let of_data = |field: &&mut Field| {
            ["/data", "/stringData"].iter().any(|it| field.path.starts_with(it))
        };
        for field in found.iter_mut().filter(of_data) {
            hide(&mut field.before);
            hide(&mut field.after);
        }
    }
    found
}

fn compare(path: String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Field>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                compare(format!("{path}/{escaped}"), old.get(key), new.get(key), found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                compare(format!("{path}/{index}"), old.get(index), new.get(index), found);
            }
        }
        (before, after) => {
            found.push(Field { path, before: before.cloned(), after: after.cloned() });
        }
    }
}

fn page(cluster: &str, changes: &[Change]) -> String {
    if changes.is_empty() {
        return format!("cluster {cluster}: nothing would change\n");
    }
    let mut page = String::new();
    for Change { object, change, fields } in changes {
        let sign = match *change {
            "Added" => '+',
            "Removed" => '-',
            _ => '~',
        };
        page += &format!("{sign} {object}\n");
        for Field { path, before, after } in fields {
            page +=
                &format!("    {path}: {} -> {}\n", shown(before.as_ref()), shown(after.as_ref()));
        }
    }
    page
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or("(absent)".to_owned(), Value::to_string);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn made(objects: &[Value]) -> Bundle {
        Bundle::from_objects(objects.iter().cloned()).unwrap()
    }

    fn map(name: &str, data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
    }

    #[test]
    fn each_object_is_added_removed_or_changed_field_by_field() {
        let before = made(&[map("a", &json!({"x": "1", "y": "2"})), map("b", &json!({}))]);
        let after = made(&[map("a", &json!({"x": "1", "y": "3"})), map("c", &json!({}))]);
        let page = page("east", &changes(Some(&before), &after));
        assert_eq!(
            page,
            "~ /ConfigMap//a\n    /data/y: \"2\" -> \"3\"\n+ /ConfigMap//c\n- /ConfigMap//b\n"
        );
        assert!(changes(Some(&after), &after).is_empty());
    }

    #[test]
    fn values_of_secrets_are_never_shown() {
        let secret = |value: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
                "data": {"password": value}})
        };
        let (before, after) = (made(&[secret("b2xk")]), made(&[secret("bmV3")]));
        let page = page("east", &changes(Some(&before), &after));
        assert!(page.contains("/data/password: \"(secret)\" -> \"(secret)\""), "{page}");
        assert!(!page.contains("bmV3"), "{page}");
    }
}
