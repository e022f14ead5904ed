//! `interlock node assign`: asks for machines for a tenant.

use super::Common;
use super::hub::Hub;
use crate::output::{Format, ProgressLine, say, say_json};
use anyhow::{Context, bail};
use interlock_api::nodes::{
    EntryState, NodeAddresses, NodeClaim, NodeClaimSpec, NodeSelector, condition,
};
use interlock_kernel::conditions;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often the claim is read while it is waited for.
const EVERY: Duration = Duration::from_millis(300);

/// How long the control plane of a tenant that has just come may take to be there.
const NEW: Duration = Duration::from_secs(10);
/// How long ago a tenant has just come.
const YOUNG: SignedDuration = SignedDuration::from_secs(60);

pub(super) const EXPLAINED: &str = "\
The claim is a NodeClaim in the control plane of the tenant. If it exists, its count and selector are changed; a lower
count releases the machines that were chosen last. Without --wait the command returns once the claim is written.

Exit status: 0 written, or with --wait: bound and programmed; 1 not in time; 2 usage error.";

/// Options of `node assign`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The tenant, and the name of its claim
    #[arg(value_name = "TENANT/CLAIM", value_parser = tenant_and_claim)]
    claim: Claim,
    /// How many machines
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=512))]
    count: u32,
    /// Only machines of this rack
    #[arg(long, value_name = "NAME")]
    rack: Option<String>,
    /// Only machines that are wired through the DPU of this name
    #[arg(long, value_name = "NAME")]
    dpu: Option<String>,
    /// Only machines with this label; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<Label>,
    /// Only machines with these names; may be given several times
    #[arg(long = "machine", value_name = "NAME")]
    names: Vec<String>,
    /// An address that a machine may send from, beside its link-local one; may be given several times
    #[arg(long = "address", value_name = "MACHINE=IP", value_parser = address)]
    addresses: Vec<Address>,
    /// Wait until the machines are bound and their network is ready
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::words::time)]
    timeout: Duration,
    #[command(flatten)]
    common: Common,
}

/// A claim of a tenant.
#[derive(Debug, Clone)]
struct Claim {
    tenant: String,
    name: String,
}

fn tenant_and_claim(text: &str) -> Result<Claim, String> {
    match text.split_once('/') {
        Some((tenant, name)) if !tenant.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Claim { tenant: tenant.to_owned(), name: name.to_owned() })
        }
        _ => Err("write TENANT/CLAIM, as in blue/web".to_owned()),
    }
}

/// A label that machines must have.
#[derive(Debug, Clone)]
struct Label {
    key: String,
    value: String,
}

fn label(text: &str) -> Result<Label, String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, as in disk=nvme")?;
    Ok(Label { key: key.to_owned(), value: value.to_owned() })
}

/// An address of a machine.
#[derive(Debug, Clone)]
struct Address {
    node: String,
    address: IpAddr,
}

fn address(text: &str) -> Result<Address, String> {
    let wrong = || "write MACHINE=IP, as in n1=10.0.0.1".to_owned();
    let (node, address) = text.split_once('=').ok_or_else(wrong)?;
    let address = address.parse().map_err(|_| wrong())?;
    Ok(Address { node: node.to_owned(), address })
}

impl Args {
    fn spec(&self) -> NodeClaimSpec {
        let mut addresses: BTreeMap<&str, Vec<IpAddr>> = BTreeMap::new();
        for Address { node, address } in &self.addresses {
            addresses.entry(node).or_default().push(*address);
        }
        let addresses = addresses.into_iter();
        let labels = self.labels.iter().map(|label| (label.key.clone(), label.value.clone()));
        NodeClaimSpec {
            count: self.count,
            selector: NodeSelector {
                labels: labels.collect::<BTreeMap<_, _>>(),
                rack: self.rack.clone(),
                dpu: self.dpu.clone(),
            },
            node_names: self.names.clone(),
            addresses: addresses
                .map(|(node, addresses)| NodeAddresses { node: node.to_owned(), addresses })
                .collect(),
        }
    }
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let hub = Hub::open(&args.common.location).await?;
    let Claim { tenant, name } = &args.claim;
    let found = hub.tenant(tenant).await?;
    let created = found.creation_timestamp().map(|time| time.0);
    let is_new = created.is_some_and(|at| Timestamp::now().duration_since(at) < YOUNG);
    let plane = hub.plane(&found).await?;
    let claims: Api<NodeClaim> = Api::all(plane);
    let wanted = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "NodeClaim",
        "metadata": {"name": name}, "spec": args.spec(),
    });
    let params = PatchParams::apply("interlock-node").force();
    let deadline = Instant::now() + if is_new { NEW } else { Duration::ZERO };
    let written = loop {
        match claims.patch(name, &params, &Patch::Apply(&wanted)).await {
            // The control plane of a tenant that has just come is being made.
            Err(kube::Error::Api(status))
                if matches!(status.code, 403 | 404) && Instant::now() < deadline =>
            {
                sleep(EVERY).await;
            }
            written => break written.map_err(|error| hub.told(error, "write the NodeClaim"))?,
        }
    };
    let claim = match args.wait {
        true => wait(&claims, name, args).await?,
        false => written,
    };
    answer(args, &claim)
}

async fn wait(claims: &Api<NodeClaim>, name: &str, args: &Args) -> anyhow::Result<NodeClaim> {
    let deadline = Instant::now() + args.timeout;
    let progress = ProgressLine::default();
    loop {
        let Some(claim) = claims.get_opt(name).await.context("cannot read the NodeClaim")? else {
            bail!("the NodeClaim {name} was deleted");
        };
        if is_ready(&claim) || Instant::now() > deadline {
            progress.clear();
            return Ok(claim);
        }
        if ProgressLine::is_wanted() {
            progress.show(&format!("{} of {} machines bound", bound(&claim), claim.spec.count));
        }
        sleep(EVERY).await;
    }
}

fn bound(claim: &NodeClaim) -> usize {
    let nodes = claim.status_or_default().nodes;
    nodes.iter().filter(|node| node.state == EntryState::Bound).count()
}

/// As many machines as are wanted, all of them programmed; what the conditions say of an earlier spec does not
/// count.
fn is_ready(claim: &NodeClaim) -> bool {
    let status = claim.status_or_default();
    let is_true = |kind| {
        let found = conditions::find(&status.conditions, kind);
        found.is_some_and(|found| {
            found.status == "True" && found.observed_generation == claim.metadata.generation
        })
    };
    bound(claim) == claim.spec.count as usize
        && is_true(condition::BOUND)
        && is_true(condition::NETWORK_READY)
}

fn answer(args: &Args, claim: &NodeClaim) -> anyhow::Result<ExitCode> {
    let status = claim.status_or_default();
    if args.common.output == Format::Json {
        say_json(&claim.status_or_default())?;
    } else {
        let Claim { tenant, name } = &args.claim;
        let mut text = format!(
            "claim {name} of tenant {tenant}: {} bound, {} wanted\n",
            bound(claim),
            args.count
        );
        for node in &status.nodes {
            text += &format!("  {} {} (epoch {})\n", node.name, node.state, node.epoch);
        }
        let complaint = status.conditions.iter().find(|found| found.status == "False");
        if let Some(found) = complaint.filter(|_| !is_ready(claim)) {
            text += &format!("{}: {}\n", found.reason, found.message);
            if let Some(next) = &found.next {
                text += &format!("next: {next}\n");
            }
        } else if !args.wait {
            text += "next: interlock node list\n";
        }
        say(&text)?;
    }
    let is_done = !args.wait || is_ready(claim);
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_named_with_its_tenant() {
        let claim = tenant_and_claim("blue/web").expect("a claim");
        assert_eq!((claim.tenant.as_str(), claim.name.as_str()), ("blue", "web"));
        for wrong in ["blue", "/web", "blue/", "a/b/c"] {
            assert!(tenant_and_claim(wrong).is_err(), "{wrong}");
        }
        assert!(label("disk").is_err() && address("n1").is_err() && address("n1=x").is_err());
        assert_eq!(address("n1=fd00::1").expect("an address").node, "n1");
    }

    #[test]
    fn a_claim_is_ready_when_it_says_so_of_the_present_spec() {
        let claim = |generation: i64, network: &str| -> NodeClaim {
            let condition = |kind: &str, status: &str| {
                json!({"type": kind, "status": status, "reason": "x", "message": "",
                    "observedGeneration": generation, "lastTransitionTime": "2001-01-01T00:00:00Z"})
            };
            serde_json::from_value(json!({
                "apiVersion": "interlock.dev/v1alpha1", "kind": "NodeClaim",
                "metadata": {"name": "web", "generation": 2}, "spec": {"count": 1},
                "status": {
                    "nodes": [{"name": "n1", "uid": "u", "epoch": 1, "state": "Bound"}],
                    "conditions": [condition("Bound", "True"), condition("NetworkReady", network)],
                },
            }))
            .expect("a claim")
        };
        assert!(is_ready(&claim(2, "True")));
        assert!(!is_ready(&claim(1, "True")) && !is_ready(&claim(2, "False")));
    }
}
