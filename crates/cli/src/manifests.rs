//! `interlock manifests`: what to apply so that Interlock runs on clusters of your own.

use crate::output;
use crate::run::identities::kept;
use crate::run::install::{self, NAMESPACE};
use crate::run::{CONTROLLERS_LEASE, fleet_id, syncer_lease};
use anyhow::bail;
use clap::{Args as ClapArgs, ValueEnum};
use interlock_api::manifest::yaml;
use interlock_kernel::Place;
use interlock_programs::roles::{self, Rules, cluster_role, cluster_role_binding};
use interlock_programs::{Account, Listed};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The account of the hub's controllers.
const CONTROLLERS: &str = "interlock-controllers";
/// The account of a syncer on its own cluster.
const SYNCER: &str = "interlock-syncer";
/// The Secret that tells a syncer where the hub is, and what it is there.
const HUB_SECRET: &str = "interlock-hub";
const HUB_FOLDER: &str = "/etc/interlock";

/// Options of `manifests`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Which manifests to print
    #[arg(value_enum)]
    part: Part,
    /// The WorkloadCluster, for `access` and `cluster`
    cluster: Option<String>,
    /// The container image with the `interlock` binary
    #[arg(long, default_value = concat!("interlock:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// With `cluster`: for a syncer that runs as a process of a machine and runs pods as processes
    #[arg(long)]
    with_runtime: bool,
    /// With `access` and `cluster`: also the rights to bring the cluster to what ClusterUpdates ask for
    #[arg(long)]
    updates: bool,
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
    /// For the hub, once for each workload cluster: the rights of its syncer
    Access,
    /// For a workload cluster: the syncer and its rights
    Cluster,
}

/// Prints manifests.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (title, objects) = match (args.part, args.cluster.as_deref()) {
        (Part::Hub, None) => ("hub".to_owned(), hub(&args.image)),
        (Part::Identities, None) => ("identities".to_owned(), identities()),
        (Part::Hub | Part::Identities, Some(name)) => {
            bail!("what the hub needs is the same for all clusters: remove `{name}`")
        }
        (Part::Access, Some(name)) => {
            let updates = if args.updates { updates_at_hub(name) } else { Vec::new() };
            (format!("access {name}"), [access(name), updates].concat())
        }
        (Part::Cluster, Some(name)) => {
            let updates = if args.updates { updates_on_cluster(name) } else { Vec::new() };
            let of_machine = args.with_runtime.then(machine).transpose()?;
            let objects = of_machine.unwrap_or_else(|| cluster(name, args.updates, &args.image));
            (format!("cluster {name}"), [objects, updates].concat())
        }
        (Part::Access | Part::Cluster, None) => {
            bail!("name the WorkloadCluster, for example: interlock manifests cluster west")
        }
    };
    let text = match args.json {
        true => json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string() + "\n",
        false => documents(&title, &objects),
    };
    output::say(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Objects as one file.
fn documents(title: &str, objects: &[Value]) -> String {
    let head = format!("# Made by `interlock manifests {title}`; see docs/deploying.md.\n");
    let documents: Vec<String> = objects.iter().map(yaml).collect();
    head + &documents.join("---\n")
}

/// What the hub needs once.
fn hub(image: &str) -> Vec<Value> {
    let account = account(CONTROLLERS);
    let (controllers, rollouts) = (Account::Controllers.role(), Account::Rollouts.role());
    let mut objects = vec![
        namespace(),
        service_account(CONTROLLERS),
        role(&roles::of_hub(), Account::Controllers, Place::HUB),
        cluster_role_binding(controllers, controllers, &account),
        role(&roles::of_rollouts(), Account::Rollouts, Place::HUB),
        cluster_role_binding(rollouts, rollouts, &account),
        role(&roles::of_agent(false, &[]), Account::Syncer, Place::HUB),
        install::runtime_class(),
    ];
    objects.extend(leading(CONTROLLERS_LEASE, &account));
    objects.push(deployment(
        CONTROLLERS,
        2,
        &container(image, &["controllers", "--no-install"]),
        &json!([]),
    ));
    objects
}

/// What the hub needs for cloud identities: the pods of the controllers have these rights, too, and
/// are started with the options of `interlock controllers` for cloud identities.
fn identities() -> Vec<Value> {
    let (account, role_name) = (account(CONTROLLERS), Account::Identities.role());
    // The first start writes down which fleet this is, and no start changes it.
    let at = json!({"name": fleet_id::NAME, "namespace": NAMESPACE});
    let config_maps =
        |verb: &str| json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": [verb]});
    let mut read = config_maps("get");
    read["resourceNames"] = json!([fleet_id::NAME, kept::NAME]);
    // Each start writes down its options.
    let mut replace = config_maps("update");
    replace["resourceNames"] = json!([kept::NAME]);
    let own = json!({
        "apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"], "resourceNames": [NAMESPACE],
    });
    vec![
        role(&roles::of_identities(), Account::Identities, Place::HUB),
        cluster_role_binding(role_name, role_name, &account),
        json!({
            "apiVersion": roles::RBAC, "kind": "Role", "metadata": at,
            "rules": [config_maps("create"), read, replace, own],
        }),
        json!({
            "apiVersion": roles::RBAC, "kind": "RoleBinding", "metadata": at,
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": fleet_id::NAME,
            },
            "subjects": [account],
        }),
    ]
}

/// What the hub needs for one workload cluster.
fn access(cluster: &str) -> Vec<Value> {
    let name = syncer_lease(cluster);
    let account = account(&name);
    let all = Account::Syncer.role();
    let own = format!("{all}:{cluster}");
    let mut objects = vec![
        service_account(&name),
        cluster_role(&own, &Rules::of_syncer_of(cluster)),
        cluster_role_binding(&own, &own, &account),
        cluster_role_binding(&format!("{own}:all"), all, &account),
    ];
    objects.extend(leading(&name, &account));
    objects
}

/// What the syncer of a cluster needs at the hub, in addition, to bring it to what it is to run.
fn updates_at_hub(cluster: &str) -> Vec<Value> {
    let role = format!("{}:{cluster}", Account::Applier.role());
    let rules = Rules::of(&roles::of_applier(), Account::Applier, Place::HUB);
    let account = account(&syncer_lease(cluster));
    vec![cluster_role(&role, &rules), cluster_role_binding(&role, &role, &account)]
}

/// What a cluster needs, in addition, to be brought to what it is to run: the fence, the user that it is for, and the
/// right of the syncer to act as this user.
fn updates_on_cluster(cluster: &str) -> Vec<Value> {
    let user = Account::Applier.user(Some(cluster));
    let act_as = format!("{}:act-as", Account::Applier.role());
    let [role, binding] = roles::of_applier_on_cluster(cluster).written();
    let mut objects = vec![
        role,
        binding,
        cluster_role(&act_as, &Rules::to_act_as(&user)),
        cluster_role_binding(&act_as, &act_as, &account(SYNCER)),
    ];
    objects.extend(interlock_rollouts::fence::manifests(&user));
    objects
}

/// The account of a syncer on its cluster, and what it may do there.
fn rights() -> Vec<Value> {
    let syncer = Account::Syncer.role();
    vec![
        namespace(),
        service_account(SYNCER),
        role(&roles::of_agent(false, &[]), Account::Syncer, Place::CLUSTER),
        cluster_role_binding(syncer, syncer, &account(SYNCER)),
    ]
}

/// What a workload cluster needs: the syncer is a pod of it.
fn cluster(name: &str, updates: bool, image: &str) -> Vec<Value> {
    let kubeconfig = format!("{HUB_FOLDER}/kubeconfig");
    let mut words =
        vec!["syncer", name, "--in-cluster", "--no-install", "--kubeconfig", &kubeconfig];
    if updates {
        words.push("--updates");
    }
    let mut container = container(image, &words);
    container["volumeMounts"] = json!([{"name": "hub", "mountPath": HUB_FOLDER, "readOnly": true}]);
    let volumes = json!([{"name": "hub", "secret": {"secretName": HUB_SECRET}}]);
    [rights(), vec![deployment(SYNCER, 1, &container, &volumes)]].concat()
}

/// What a workload cluster needs whose pods are processes of a machine: the syncer runs on that
/// machine, and so is no pod.
fn machine() -> anyhow::Result<Vec<Value>> {
    let rules = Rules::at(&roles::of_agent(true, &[]), Place::CLUSTER);
    let (runtime, workloads) = (Account::Runtime.role(), Account::Workloads.role());
    let definitions = interlock_api::volume_definitions().into_iter();
    let definitions = definitions.map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    let mut objects = [rights(), definitions].concat();
    objects.extend([
        install::runtime_class(),
        install::storage_class(true),
        install::snapshot_class(),
        cluster_role(runtime, &rules),
        cluster_role_binding(runtime, runtime, &account(SYNCER)),
        role(&roles::of_workloads(), Account::Workloads, Place::CLUSTER),
        cluster_role_binding(workloads, workloads, &account(SYNCER)),
    ]);
    Ok(objects)
}

/// The role of one account of a program, at a place.
fn role(rooms: &[Listed], account: Account, place: Place) -> Value {
    cluster_role(account.role(), &Rules::of(rooms, account, place))
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

fn service_account(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": NAMESPACE},
    })
}

fn account(name: &str) -> Value {
    json!({"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE})
}

/// The lease that one of several leads by. It is made beforehand, so that nobody needs to be
/// allowed to make leases, and each may change its own only.
fn leading(lease: &str, account: &Value) -> Vec<Value> {
    let at = json!({"name": lease, "namespace": NAMESPACE});
    vec![
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": at}),
        json!({
            "apiVersion": roles::RBAC, "kind": "Role",
            "metadata": at, "rules": Rules::to_lead(lease).written(),
        }),
        json!({
            "apiVersion": roles::RBAC, "kind": "RoleBinding", "metadata": at,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": lease},
            "subjects": [account],
        }),
    ]
}

fn container(image: &str, args: &[&str]) -> Value {
    json!({
        "name": "interlock", "image": image, "args": args,
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
    })
}

fn deployment(name: &str, replicas: i32, container: &Value, volumes: &Value) -> Value {
    let labels = json!({"app.kubernetes.io/name": name});
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": labels},
    }]);
    let mut pod = json!({
        "serviceAccountName": name,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    });
    if replicas > 1 {
        pod["topologySpreadConstraints"] = spread;
    }
    if volumes.as_array().is_some_and(|volumes| !volumes.is_empty()) {
        pod["volumes"] = volumes.clone();
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    })
}

#[cfg(test)]
mod tests {
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
        ];
        for (file, wanted, command) in files {
            let committed = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
            let is_same = committed == wanted;
            assert!(is_same, "out of date; run: interlock manifests {command} > deploy/{file}");
        }
    }

    #[test]
    fn every_account_that_something_is_bound_to_is_made() {
        for objects in [hub(IMAGE), access("west"), cluster("west", false, IMAGE)] {
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
}
