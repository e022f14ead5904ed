//! What the hub needs: once, for cloud identities, and for each workload cluster.

use super::objects::{
    account, bound, container, deployment, leading, namespace, role, service_account,
};
use crate::run::identities::kept;
use crate::run::install::{self, NAMESPACE};
use crate::run::{CONTROLLERS_LEASE, fleet_id, syncer_lease};
use interlock_kernel::Place;
use interlock_programs::Account;
use interlock_programs::roles::{self, Rules, cluster_role, cluster_role_binding};
use serde_json::{Value, json};

/// The account of the hub's controllers.
pub(super) const CONTROLLERS: &str = "interlock-controllers";

/// What the hub needs once.
pub(super) fn hub(image: &str) -> Vec<Value> {
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
pub(super) fn identities() -> Vec<Value> {
    let (account, role_name) = (account(CONTROLLERS), Account::Identities.role());
    // The first start writes down which fleet this is, and no start changes it.
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
    let rules = json!([config_maps("create"), read, replace, own]);
    let [within, binding] = bound(fleet_id::NAME, &rules, &account);
    vec![
        role(&roles::of_identities(), Account::Identities, Place::HUB),
        cluster_role_binding(role_name, role_name, &account),
        within,
        binding,
    ]
}

/// What the hub needs for one workload cluster.
pub(super) fn access(cluster: &str) -> Vec<Value> {
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
pub(super) fn updates_at_hub(cluster: &str) -> Vec<Value> {
    let role = format!("{}:{cluster}", Account::Applier.role());
    let rules = Rules::of(&roles::of_applier(), Account::Applier, Place::HUB);
    let account = account(&syncer_lease(cluster));
    vec![cluster_role(&role, &rules), cluster_role_binding(&role, &role, &account)]
}
