//! What a workload cluster needs: its syncer and the rights of the syncer.

use super::objects::{account, container, deployment, namespace, role, service_account};
use crate::run::install;
use interlock_kernel::Place;
use interlock_programs::Account;
use interlock_programs::roles::{self, Rules, cluster_role, cluster_role_binding};
use serde_json::{Value, json};

/// The account of a syncer on its own cluster.
const SYNCER: &str = "interlock-syncer";
/// The Secret that tells a syncer where the hub is, and what it is there.
const HUB_SECRET: &str = "interlock-hub";
const HUB_FOLDER: &str = "/etc/interlock";

/// What a cluster needs, in addition, to be brought to what it is to run: the fence, the user that it is for, and the
/// right of the syncer to act as this user.
pub(super) fn updates_on_cluster(cluster: &str) -> Vec<Value> {
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
pub(super) fn cluster(name: &str, updates: bool, image: &str) -> Vec<Value> {
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
pub(super) fn machine() -> anyhow::Result<Vec<Value>> {
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
