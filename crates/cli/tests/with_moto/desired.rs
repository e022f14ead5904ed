//! What people want at a moment, and whether the hub and the cloud are so.

use super::order::Step;
use super::scene::{CLUSTERS, FLEET, IDENTITIES, PROVIDER, Scene};
use interlock_api::identities::{TAG_FLEET, TAG_OWNER};
use interlock_identities::outside::At;
use interlock_identities::owner::Owner;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What people want, and what is known of the cloud.
pub(crate) struct Desired {
    /// The identities that there should be, with the last version of each.
    identities: BTreeMap<String, u8>,
    /// On which cluster each placed namespace should run.
    clusters: BTreeMap<String, &'static str>,
    /// The account at the start: what others made in it, as it must stay.
    before: Value,
    /// Each role as it was when it was first seen as declared. After that it is repaired, and never made again.
    roles: BTreeMap<String, Value>,
}

fn is_foreign(name: &str) -> bool {
    name.contains("/foreign-")
}

fn place_of(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap()
}

/// Where the identities of a namespace are.
fn within(namespace: &str) -> String {
    IDENTITIES.replace("iamrole", &format!("namespaces/{namespace}/iamrole"))
}

/// An identity as irsa-operator's users write it.
fn identity(name: &str, version: u8) -> Value {
    let (namespace, short) = place_of(name);
    let resource = format!("arn:aws:s3:::{namespace}-{short}");
    json!({"apiVersion": "irsa.voodoo.io/v1alpha1", "kind": "IamRoleServiceAccount",
        "metadata": {"namespace": namespace, "name": short},
        "spec": {"policy": {"statement": [{"resource": resource, "action": [action(version)]}]}}})
}

fn action(version: u8) -> String {
    format!("s3:Get{version}")
}

/// What the cloud objects of an identity are called.
pub(crate) fn cloud_name(name: &str) -> String {
    let (namespace, name) = place_of(name);
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    let owner =
        Owner { uid: String::new(), kind: "role", fleet: FLEET.to_owned(), namespace, name };
    let At::Name { name, .. } = owner.at() else { panic!("it has a name") };
    name
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array();
    all.and_then(|all| all.iter().find(|one| one["type"] == kind)).unwrap_or(&Value::Null)
}

impl Desired {
    /// The placed namespaces should run on the first cluster, and there should be no identity.
    pub(crate) fn at_the_start(before: Value, placed: &[String]) -> Desired {
        let clusters = placed.iter().map(|name| (name.clone(), CLUSTERS[0])).collect();
        Desired { identities: BTreeMap::new(), clusters, before, roles: BTreeMap::new() }
    }

    /// Does what people and others do in a step.
    pub(crate) fn change(&mut self, scene: &mut Scene, step: Step, names: &[String]) {
        let path = |name: &str| format!("{}/{}", within(place_of(name).0), place_of(name).1);
        match step {
            Step::Create { identity: number } => {
                let name = &names[number];
                scene.make(&within(place_of(name).0), &identity(name, 0));
                self.identities.insert(name.clone(), 0);
            }
            Step::Update { identity: number, version } => {
                let name = &names[number];
                let spec = identity(name, version)["spec"].take();
                scene.change(&path(name), &json!({"spec": spec}));
                self.identities.insert(name.clone(), version);
            }
            Step::Delete { identity: number } => {
                scene.delete(&path(&names[number]));
                self.identities.remove(&names[number]);
            }
            Step::Move { namespace, cluster } => {
                let (name, cluster) = (format!("ns-{namespace}"), CLUSTERS[cluster]);
                let change =
                    json!({"metadata": {"annotations": {"interlock.dev/cluster": cluster}}});
                scene.change(&format!("/api/v1/namespaces/{name}"), &change);
                self.clusters.insert(name, cluster);
            }
            Step::Drift { number } => scene.drift(number),
            Step::KillControllers => scene.kill_controllers(),
            Step::KillSyncer { cluster } => scene.kill_syncer(CLUSTERS[cluster]),
        }
    }

    /// Waits until all is as people want it: the placed namespaces run where they should with all their rights, each
    /// identity says that it is as declared, and so it is in the cloud.
    pub(crate) fn settle(&mut self, scene: &Scene, when: &str) {
        scene.until(&format!("{when}: the namespaces run, with their rights"), || {
            self.clusters.keys().try_for_each(|namespace| self.runs(scene, namespace))
        });
        scene.until(&format!("{when}: the identities say that they are as declared"), || {
            self.identities_say_so(scene)
        });
        scene.until(&format!("{when}: the cloud is as declared"), || {
            let mut issuers = BTreeMap::new();
            for cluster in CLUSTERS {
                issuers.insert(cluster, scene.issuer(cluster)?);
            }
            let seen = self.is_so_in_the_cloud(&scene.moto.account(), &issuers)?;
            self.roles.extend(seen);
            Ok(())
        });
    }

    /// Whether a placed namespace runs on its cluster, and each of its identities has its rights there.
    fn runs(&self, scene: &Scene, namespace: &str) -> Result<(), String> {
        let mut grants = scene.grants().into_iter();
        let grant = grants.find(|grant| grant["spec"]["namespace"]["name"] == namespace);
        let grant = grant.ok_or_else(|| format!("{namespace} has no grant"))?;
        let (status, cluster) = (&grant["status"], self.clusters[namespace]);
        let is_there = status["owner"]["name"] == cluster
            && status["phase"] == "Granted"
            && condition(&grant, "Running")["status"] == "True";
        let is_ready =
            |right: &&Value| right["state"] == "Ready" && right["epoch"] == status["epoch"];
        let ready = status["rights"].as_array().into_iter().flatten().filter(is_ready).count();
        let own = self.identities.keys().filter(|name| place_of(name).0 == namespace).count();
        match is_there && ready == own {
            true => Ok(()),
            false => Err(format!("{namespace}, to run on {cluster} with {own} rights: {status:#}")),
        }
    }

    /// Whether there are these identities and no others, and each is as declared, or has the conflict that somebody
    /// else has its name.
    fn identities_say_so(&self, scene: &Scene) -> Result<(), String> {
        let all = scene.all(IDENTITIES);
        let not_yet = |(name, item): (&String, &Value)| {
            let ready = condition(item, "Ready");
            let is_current = item["status"]["observedGeneration"] == item["metadata"]["generation"];
            let wanted = if is_foreign(name) { "Conflict" } else { "AsDeclared" };
            let is_desired = self.identities.contains_key(name);
            let is_right = is_desired && is_current && ready["reason"] == wanted;
            (!is_right).then(|| name.clone())
        };
        let missing = self.identities.keys().filter(|name| !all.contains_key(*name)).cloned();
        let waiting: Vec<String> = all.iter().filter_map(not_yet).chain(missing).collect();
        let Some(first) = waiting.first() else { return Ok(()) };
        let is_desired = self.identities.contains_key(first);
        Err(format!("{waiting:?}; {first}, desired: {is_desired}, is {:#}", scene.parts(first)))
    }

    /// Whether the account has what is declared, what others made, and nothing else; the roles that are declared.
    fn is_so_in_the_cloud(
        &self,
        account: &Value,
        issuers: &BTreeMap<&str, String>,
    ) -> Result<BTreeMap<String, Value>, String> {
        let (mut roles, mut policies) = (by_name(&account["roles"]), by_name(&account["policies"]));
        for (kind, all) in [("roles", &mut roles), ("policies", &mut policies)] {
            for (name, theirs) in by_name(&self.before[kind]) {
                let is = all.remove(&name);
                if is.as_ref() != Some(&theirs) {
                    return Err(format!("{name} of somebody else is {is:?}, was {theirs}"));
                }
            }
        }
        let ours = || self.identities.iter().filter(|(name, _)| !is_foreign(name));
        for (name, version) in ours() {
            let (namespace, called) = (place_of(name).0, cloud_name(name));
            let policy = policies.remove(&called).ok_or_else(|| format!("{name}: no policy"))?;
            is_declared_policy(&policy, *version)?;
            let role = roles.get(&called).ok_or_else(|| format!("{name}: no role"))?;
            let cluster = self.clusters.get(namespace);
            let provider = cluster.map_or(PROVIDER, |cluster| issuers[cluster].as_str());
            is_declared_role(role, &policy, provider)?;
            self.is_the_same_role(role, cluster.is_some())?;
        }
        let declared = ours().count();
        match (roles.len() == declared, policies.keys().next()) {
            (true, None) => Ok(roles),
            (_, left) => Err(format!("{} roles of {declared}; too many: {left:?}", roles.len())),
        }
    }

    /// Whether a role is the one that was seen before, but for the issuer that the role of a placed namespace trusts.
    fn is_the_same_role(&self, role: &Value, is_placed: bool) -> Result<(), String> {
        let Some(was) = self.roles.get(role["name"].as_str().unwrap_or_default()) else {
            return Ok(());
        };
        let (mut was, mut is) = (was.clone(), role.clone());
        if is_placed {
            (was["trust"], is["trust"]) = (Value::Null, Value::Null);
        }
        if was == is { Ok(()) } else { Err(format!("role {is}, was {was}")) }
    }
}

fn by_name(things: &Value) -> BTreeMap<String, Value> {
    let things = things.as_array().cloned().unwrap_or_default();
    things.into_iter().map(|thing| (thing["name"].as_str().unwrap().to_owned(), thing)).collect()
}

fn is_tagged(thing: &Value) -> bool {
    thing["tags"][TAG_FLEET] == FLEET && thing["tags"][TAG_OWNER].is_string()
}

fn is_declared_policy(policy: &Value, version: u8) -> Result<(), String> {
    let default = policy["default"].as_str().unwrap_or_default();
    let statement = &policy["versions"][default]["Statement"][0];
    let is_so = statement["Action"] == json!([action(version)]) && is_tagged(policy);
    if is_so { Ok(()) } else { Err(format!("to be at version {version}: policy {policy}")) }
}

/// Whether a role has its policy and trusts one provider, whose ARN ends like this.
fn is_declared_role(role: &Value, policy: &Value, provider: &str) -> Result<(), String> {
    let statements = role["trust"]["Statement"].as_array().map_or(&[][..], Vec::as_slice);
    let trusted = |statement: &Value| {
        let arn = statement["Principal"]["Federated"].as_str();
        arn.is_some_and(|arn| arn.ends_with(provider))
    };
    let is_so = matches!(statements, [one] if trusted(one))
        && role["attached"] == json!([policy["arn"]])
        && is_tagged(role);
    if is_so { Ok(()) } else { Err(format!("to trust {provider}: role {role}")) }
}
