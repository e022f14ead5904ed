//! `interlock manifests`: what to apply so that Interlock runs on clusters of your own.

mod cluster;
mod hub;
mod machines;
mod objects;

use crate::node::dpu;
use crate::output;
use anyhow::bail;
use clap::{Args as ClapArgs, ValueEnum};
use interlock_api::manifest::yaml;
use interlock_api::nodes::DpuName;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Options of `manifests`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Which manifests to print
    #[arg(value_enum)]
    part: Part,
    /// The WorkloadCluster, for `access` and `cluster`; RACK/DPU, for `dpu`; the Tenant, for `tenant`
    name: Option<String>,
    /// The container image with the `interlock` binary
    #[arg(long, default_value = concat!("interlock:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// With `cluster`: for a syncer that runs as a process of a machine and runs pods as processes
    #[arg(long)]
    with_runtime: bool,
    /// With `access` and `cluster`: also the rights to bring the cluster to what ClusterUpdates ask for
    #[arg(long)]
    updates: bool,
    /// With `tenant`: also the account of the agent of this DPU; may be given several times
    #[arg(long = "dpu", value_name = "RACK/DPU", value_parser = dpu)]
    dpus: Vec<DpuName>,
    /// Print a List in JSON
    #[arg(long)]
    json: bool,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// For the hub: service accounts, roles and the controllers
    Hub,
    /// For the hub, in addition: the rights of the controllers of cloud identities
    Identities,
    /// For the hub, in addition: the rights of the controllers of machines
    Machines,
    /// For the hub, once for each workload cluster: the rights of its syncer
    Access,
    /// For a workload cluster: the syncer and its rights
    Cluster,
    /// For the hub, once for each DPU: the account of its agent
    Dpu,
    /// For the control plane of a tenant: the accounts of controllers, and of agents of DPUs
    Tenant,
}

/// Manifests, and what was asked for to get them.
struct Printed {
    title: String,
    objects: Vec<Value>,
}

/// Prints manifests.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Printed { title, objects } = asked_for(args)?;
    let text = match args.json {
        true => json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string() + "\n",
        false => documents(&title, &objects),
    };
    output::say(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn asked_for(args: &Args) -> anyhow::Result<Printed> {
    let printed = |title: String, objects: Vec<Value>| Ok(Printed { title, objects });
    match (args.part, args.name.as_deref()) {
        (Part::Hub, None) => printed("hub".to_owned(), hub::hub(&args.image)),
        (Part::Identities, None) => printed("identities".to_owned(), hub::identities()),
        (Part::Machines, None) => printed("machines".to_owned(), machines::machines()),
        (Part::Hub | Part::Identities | Part::Machines, Some(name)) => {
            bail!(
                "what the hub needs is the same for all clusters, tenants and DPUs: remove `{name}`"
            )
        }
        (Part::Access, Some(name)) => {
            let updates = if args.updates { hub::updates_at_hub(name) } else { Vec::new() };
            printed(format!("access {name}"), [hub::access(name), updates].concat())
        }
        (Part::Cluster, Some(name)) => {
            let updates = if args.updates { cluster::updates_on_cluster(name) } else { Vec::new() };
            let of_machine = args.with_runtime.then(cluster::machine).transpose()?;
            let objects =
                of_machine.unwrap_or_else(|| cluster::cluster(name, args.updates, &args.image));
            printed(format!("cluster {name}"), [objects, updates].concat())
        }
        (Part::Dpu, Some(name)) => {
            let here = dpu(name).map_err(anyhow::Error::msg)?;
            printed(format!("dpu {name}"), machines::dpu(&here))
        }
        (Part::Tenant, Some(name)) => {
            let title = format!("tenant {name}{}", options(&args.dpus));
            printed(title, machines::tenant(name, &args.dpus))
        }
        (Part::Access | Part::Cluster, None) => {
            bail!("name the WorkloadCluster, for example: interlock manifests cluster west")
        }
        (Part::Dpu, None) => bail!("name the DPU, for example: interlock manifests dpu r1/d1"),
        (Part::Tenant, None) => {
            bail!("name the Tenant, for example: interlock manifests tenant blue")
        }
    }
}

/// DPUs, as they were named on the command line.
fn options(dpus: &[DpuName]) -> String {
    dpus.iter().map(|of| format!(" --dpu {}/{}", of.rack, of.dpu)).collect()
}

/// Objects as one file.
fn documents(title: &str, objects: &[Value]) -> String {
    let head = format!("# Made by `interlock manifests {title}`; see docs/deploying.md.\n");
    let documents: Vec<String> = objects.iter().map(yaml).collect();
    head + &documents.join("---\n")
}

#[cfg(test)]
mod tests {
    use super::cluster::cluster;
    use super::hub::{access, hub, identities};
    use super::*;
    use std::path::Path;

    const IMAGE: &str = concat!("interlock:", env!("CARGO_PKG_VERSION"));

    #[test]
    fn the_committed_manifests_are_those_that_the_roles_of_the_code_give() {
        // Where cargo runs the test, not where it was compiled: clones may share a build cache.
        let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the test");
        let folder = Path::new(&here).join("../../deploy");
        let files = [
            ("hub.yaml", documents("hub", &hub(IMAGE)), "hub"),
            ("access.yaml", documents("access west", &access("west")), "access west"),
            ("identities.yaml", documents("identities", &identities()), "identities"),
            (
                "cluster.yaml",
                documents("cluster west", &cluster("west", false, IMAGE)),
                "cluster west",
            ),
            ("machines.yaml", documents("machines", &machines::machines()), "machines"),
            ("dpu.yaml", documents("dpu r1/d1", &machines::dpu(&d1())), "dpu r1/d1"),
            (
                "tenant.yaml",
                documents("tenant blue --dpu r1/d1", &machines::tenant("blue", &[d1()])),
                "tenant blue --dpu r1/d1",
            ),
        ];
        for (file, wanted, command) in files {
            let committed = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
            let is_same = committed == wanted;
            assert!(is_same, "out of date; run: interlock manifests {command} > deploy/{file}");
        }
    }

    #[test]
    fn every_account_that_something_is_bound_to_is_made() {
        let with_machines = [hub(IMAGE), machines::machines()].concat();
        let tenant = machines::tenant("blue", &[d1()]);
        let west = cluster("west", false, IMAGE);
        let of_dpu = machines::dpu(&d1());
        for objects in [with_machines, access("west"), west, of_dpu, tenant] {
            let made = |name: &Value| {
                let accounts = objects.iter().filter(|object| object["kind"] == "ServiceAccount");
                accounts.into_iter().any(|account| account["metadata"]["name"] == *name)
            };
            let subjects = objects.iter().flat_map(|object| object["subjects"].as_array());
            assert!(subjects.flatten().all(|subject| made(&subject["name"])));
            let pods = objects.iter().filter(|object| object["kind"] == "Deployment");
            for pod in pods {
                assert!(made(&pod["spec"]["template"]["spec"]["serviceAccountName"]));
            }
        }
    }
    fn d1() -> DpuName {
        DpuName::new("r1", "d1")
    }

    #[test]
    fn a_token_is_for_an_account_of_the_same_manifests() {
        let tenant = machines::tenant("blue", &[d1()]);
        for (objects, wanted) in [(machines::dpu(&d1()), 1), (tenant, 2)] {
            let of_kind = |kind: &str| -> Vec<Value> {
                objects.iter().filter(|object| object["kind"] == kind).cloned().collect()
            };
            let tokens = of_kind("Secret");
            assert_eq!(tokens.len(), wanted);
            let accounts = of_kind("ServiceAccount");
            for token in tokens {
                let metadata = &token["metadata"];
                let of = &metadata["annotations"]["kubernetes.io/service-account.name"];
                let mut names = accounts.iter().map(|account| &account["metadata"]["name"]);
                assert!(names.any(|name| name == of), "{token:#}");
            }
        }
    }

    #[test]
    fn the_agent_of_a_dpu_is_on_the_control_planes_of_those_who_let_it_in() {
        let agents = |dpus: &[DpuName]| {
            let objects = machines::tenant("blue", dpus);
            let roles = objects.iter().filter(|object| object["kind"] == "ClusterRole");
            let names = roles.filter_map(|role| role["metadata"]["name"].as_str());
            let of_dpus = names.filter(|name| name.starts_with("interlock:dpu:"));
            of_dpus.map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(agents(&[]).is_empty());
        assert_eq!(agents(&[d1()]), ["interlock:dpu:r1.d1"]);
    }
}
