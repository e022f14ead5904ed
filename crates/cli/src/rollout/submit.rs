//! `interlock rollout submit`: asks for a bundle on a cluster, or on many.

use super::Common;
use super::folder;
use super::picture::RequestRow;
use super::record::{one, open};
use super::wait::{Waiting, answer, until_ended};
use crate::hub::Hub;
use crate::output::{Format, say, say_json};
use anyhow::{Context, bail};
use interlock_api::rollouts::{
    ClusterUpdate, ClusterUpdateSpec, ConfigMapSource, FleetUpdate, FleetUpdateSpec, PackedSource,
    PreflightMode, Source, UpdatePhase,
};
use interlock_rollouts::bundle::{Bundle, File, compressed};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub(super) const EXPLAINED: &str = "\
The manifests of a folder are checked here, packed into Secrets beside the request, and applied by the agent of the
cluster. One request is applied at a time, and the newest valid one wins. One that does not get healthy is rolled back,
and its bundle is refused from then on (--retry-bad takes it all the same). With --selector in place of a cluster, a
FleetUpdate asks for all clusters with these labels.

Exit status: 0 written, or with --wait: it succeeded; 1 it did not, or not in time; 2 usage error, or a manifest is not valid.";

/// The type of the Secrets that hold a packed bundle.
const SECRET_TYPE: &str = "interlock.dev/bundle-part";
/// The key of the part in its Secret.
const PART: &str = "part";

/// Options of `rollout submit`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["directory", "config_map", "revision"]))]
#[command(group = clap::ArgGroup::new("clusters").required(true).args(["cluster", "selector", "all_clusters"]))]
pub(super) struct Args {
    /// The cluster
    cluster: Option<String>,
    /// A folder of manifests with all that is below it, or a file; may be given several times
    #[arg(short, long, value_name = "PATH")]
    directory: Vec<PathBuf>,
    /// A ConfigMap in the namespace of the request, whose entries are manifests
    #[arg(long, value_name = "NAME")]
    config_map: Option<String>,
    /// The digest of a bundle in the history of the cluster
    #[arg(long, value_name = "DIGEST", requires = "cluster")]
    revision: Option<String>,
    /// The namespace of the request
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: String,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    fleet: Fleet,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    common: Common,
}

/// How a request is applied.
#[derive(Debug, clap::Args)]
struct How {
    /// From the start until all objects are healthy
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = crate::words::time)]
    deadline: Duration,
    /// For how long all objects have to be healthy without a break
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::words::time)]
    soak: Duration,
    /// How long it may wait for its start
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = crate::words::time)]
    start_deadline: Duration,
    /// Check by a dry run of each object that would change, too
    #[arg(long)]
    dry_run_first: bool,
    /// Move placed namespaces away from the cluster first
    #[arg(long)]
    drain_first: bool,
    /// Roll the request in flight back first, and do not wait until it has ended
    #[arg(long)]
    preempt: bool,
    /// Take a bundle that failed on this cluster before
    #[arg(long)]
    retry_bad: bool,
    /// Take over fields and objects of others
    #[arg(long)]
    force: bool,
    /// Also delete Namespaces, PersistentVolumeClaims and CustomResourceDefinitions that are not in the bundle
    #[arg(long)]
    prune_data: bool,
}

/// Which clusters a FleetUpdate is for.
#[derive(Debug, clap::Args)]
struct Fleet {
    /// All clusters with this label; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    selector: Vec<(String, String)>,
    /// All clusters
    #[arg(long)]
    all_clusters: bool,
    /// Of these, the clusters with this label come first
    #[arg(long, value_name = "KEY=VALUE", value_parser = label, conflicts_with = "cluster")]
    canary: Option<(String, String)>,
    /// How many clusters may be in flight, drained or not ready at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_unavailable: u32,
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, as in tier=edge")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn selector(labels: &[(String, String)]) -> LabelSelector {
    let labels: BTreeMap<String, String> = labels.iter().cloned().collect();
    let match_labels = Some(labels).filter(|labels| !labels.is_empty());
    LabelSelector { match_labels, ..LabelSelector::default() }
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // Before anything is written: what is wrong with a manifest is said here, with file and line.
    let bundle = match args.directory.is_empty() {
        true => None,
        false => Some(bundle(&args.directory)?),
    };
    let hub = open(&args.common).await?;
    let prefix = match &args.cluster {
        // A cluster that is not there is said here, with the names that there are.
        Some(cluster) => one(&hub, cluster).await?.cluster,
        None => "fleet".to_owned(),
    };
    let packed = match &bundle {
        None => None,
        Some(bundle) => Some(pack(&hub, &args.namespace, &prefix, bundle).await?),
    };
    let source = match (&packed, &args.config_map, &args.revision) {
        (Some(packed), ..) => Source::Packed(packed.clone()),
        (None, Some(name), _) => Source::ConfigMap(ConfigMapSource { name: name.clone() }),
        (None, None, Some(digest)) => Source::Revision(digest.clone()),
        (None, None, None) => bail!("name a bundle: --directory, --config-map or --revision"),
    };
    match &args.cluster {
        Some(cluster) => {
            let spec = args.how.spec(cluster, source)?;
            let asked = create(&hub, &args.namespace, &prefix, spec).await?;
            own(&hub, &args.namespace, packed.as_ref(), &asked).await?;
            let answered =
                Answered { hub: &hub, waiting: &args.waiting, output: args.common.output };
            answered.of(asked).await
        }
        None => ask_fleet(args, &hub, source, packed.as_ref()).await,
    }
}

/// The bundle of a folder, or all that is wrong with it.
pub(super) fn bundle(paths: &[PathBuf]) -> anyhow::Result<Bundle> {
    let manifests = folder::read(paths)?;
    let files: Vec<File> = manifests
        .into_iter()
        .map(|manifest| File { name: manifest.name, text: manifest.text })
        .collect();
    Bundle::from_files(&files).map_err(|flaws| {
        let flaws: Vec<String> = flaws.iter().map(|flaw| format!("  {flaw}")).collect();
        anyhow::anyhow!("the bundle is not valid; nothing was written:\n{}", flaws.join("\n"))
    })
}

impl How {
    fn spec(&self, cluster: &str, source: Source) -> anyhow::Result<ClusterUpdateSpec> {
        let mut spec = ClusterUpdateSpec::new(cluster, source);
        spec.deadline_seconds = seconds(self.deadline, "--deadline")?;
        spec.soak_seconds = seconds(self.soak, "--soak")?;
        spec.start_deadline_seconds = seconds(self.start_deadline, "--start-deadline")?;
        if self.dry_run_first {
            spec.preflight = PreflightMode::DryRun;
        }
        spec.drain_first = self.drain_first;
        spec.preempt = self.preempt;
        spec.retry_bad = self.retry_bad;
        spec.force = self.force;
        spec.prune_data = self.prune_data;
        Ok(spec)
    }
}

fn seconds(time: Duration, option: &str) -> anyhow::Result<u32> {
    u32::try_from(time.as_secs()).with_context(|| format!("{option} is too long"))
}

/// Packs a bundle into Secrets beside the request. They have no owner yet: the request has to name them.
async fn pack(
    hub: &Hub,
    namespace: &str,
    prefix: &str,
    bundle: &Bundle,
) -> anyhow::Result<PackedSource> {
    let api: Api<Secret> = Api::namespaced(hub.client.clone(), namespace);
    let mut secrets = Vec::new();
    for part in compressed(bundle) {
        let mut secret = Secret {
            type_: Some(SECRET_TYPE.to_owned()),
            data: Some(BTreeMap::from([(PART.to_owned(), ByteString(part))])),
            immutable: Some(true),
            ..Secret::default()
        };
        secret.metadata.generate_name = Some(format!("{prefix}-bundle-"));
        let created = api.create(&PostParams::default(), &secret).await;
        let created =
            created.map_err(|error| hub.told(error, "create the Secret of the bundle"))?;
        secrets.push(created.name_any());
    }
    Ok(PackedSource { digest: bundle.digest().to_owned(), secrets })
}

/// Lets the Secrets of a bundle go with their request.
async fn own<K: Resource<DynamicType = ()>>(
    hub: &Hub,
    namespace: &str,
    packed: Option<&PackedSource>,
    request: &K,
) -> anyhow::Result<()> {
    let api: Api<Secret> = Api::namespaced(hub.client.clone(), namespace);
    let owner = OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: request.meta().name.clone().unwrap_or_default(),
        uid: request.meta().uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    let change = json!({"metadata": {"ownerReferences": [owner]}});
    for name in packed.iter().flat_map(|packed| &packed.secrets) {
        let written = api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await;
        written.map_err(|error| hub.told(error, "write the Secret of the bundle"))?;
    }
    Ok(())
}

/// Creates a request under a name of its own.
pub(super) async fn create(
    hub: &Hub,
    namespace: &str,
    prefix: &str,
    spec: ClusterUpdateSpec,
) -> anyhow::Result<ClusterUpdate> {
    let updates: Api<ClusterUpdate> = Api::namespaced(hub.client.clone(), namespace);
    let mut update = ClusterUpdate::new("", spec);
    update.metadata.name = None;
    update.metadata.generate_name = Some(format!("{prefix}-"));
    let created = updates.create(&PostParams::default(), &update).await;
    created.map_err(|error| hub.told(error, "create the ClusterUpdate"))
}

/// How a request is answered.
pub(super) struct Answered<'a> {
    pub(super) hub: &'a Hub,
    pub(super) waiting: &'a Waiting,
    pub(super) output: Format,
}

impl Answered<'_> {
    /// Prints a request, after its end if that is waited for.
    pub(super) async fn of(self, asked: ClusterUpdate) -> anyhow::Result<ExitCode> {
        if !self.waiting.is_wanted() {
            return answer(self.output, &RequestRow::from(&asked), true);
        }
        let last = until_ended(self.hub, &asked, self.waiting).await?;
        let is_good = last.status_or_default().phase == UpdatePhase::Succeeded;
        answer(self.output, &RequestRow::from(&last), is_good)
    }
}

/// What a FleetUpdate is answered with, for programs.
#[derive(Serialize)]
struct FleetAnswer {
    namespace: String,
    name: String,
    max_unavailable: u32,
}

async fn ask_fleet(
    args: &Args,
    hub: &Hub,
    source: Source,
    packed: Option<&PackedSource>,
) -> anyhow::Result<ExitCode> {
    let how = args.how.spec("", source.clone())?;
    let mut spec = FleetUpdateSpec::new(source);
    spec.deadline_seconds = how.deadline_seconds;
    spec.soak_seconds = how.soak_seconds;
    spec.start_deadline_seconds = how.start_deadline_seconds;
    spec.preflight = how.preflight;
    spec.drain_first = how.drain_first;
    spec.preempt = how.preempt;
    spec.retry_bad = how.retry_bad;
    spec.force = how.force;
    spec.prune_data = how.prune_data;
    spec.selector = selector(&args.fleet.selector);
    spec.canary = args.fleet.canary.as_ref().map(|label| selector(std::slice::from_ref(label)));
    spec.max_unavailable = args.fleet.max_unavailable;
    let updates: Api<FleetUpdate> = Api::namespaced(hub.client.clone(), &args.namespace);
    let mut update = FleetUpdate::new("", spec);
    update.metadata.name = None;
    update.metadata.generate_name = Some("fleet-".to_owned());
    let created = updates.create(&PostParams::default(), &update).await;
    let created = created.map_err(|error| hub.told(error, "create the FleetUpdate"))?;
    own(hub, &args.namespace, packed, &created).await?;
    let (namespace, name) = (args.namespace.clone(), created.name_any());
    match args.common.output {
        Format::Json => {
            let max_unavailable = args.fleet.max_unavailable;
            say_json(&FleetAnswer { namespace, name, max_unavailable })?;
        }
        Format::Text => say(&format!(
            "FleetUpdate {namespace}/{name} was created\nnext: kubectl get fleetupdate --namespace \
             {namespace} {name}, or interlock rollout status\n"
        ))?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_is_not_valid_is_named_with_its_file_and_line() {
        let place = tempfile::tempdir().unwrap();
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: ConfigMap\n";
        std::fs::write(place.path().join("all.yaml"), text).unwrap();
        let refusal = bundle(&[place.path().to_owned()]).unwrap_err().to_string();
        assert!(refusal.contains("all.yaml:5"), "{refusal}");
        assert!(refusal.contains("apiVersion is missing"), "{refusal}");
    }

    #[test]
    fn no_label_selects_every_cluster() {
        assert_eq!(selector(&[]), LabelSelector::default());
        let one = selector(&[("tier".to_owned(), "edge".to_owned())]);
        assert_eq!(one.match_labels.unwrap_or_default()["tier"], "edge");
    }
}
