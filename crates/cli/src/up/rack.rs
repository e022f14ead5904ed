//! What the first start of a fleet makes beside its clusters: the tenants, the rack and the machines of
//! docs/examples/machines.yaml.

use anyhow::{Context, anyhow};
use interlock_api::nodes::{PhysicalNode, Tenant};
use interlock_rollouts::bundle::{Bundle, File};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::core::ClusterResourceScope;
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// The page that explains machines shows these objects, too.
const MACHINES: &str = include_str!("../../../../docs/examples/machines.yaml");
/// How many names the welcome has room for.
const MOST_NAMES: usize = 5;

/// Makes them, unless they are there.
pub(super) async fn make(hub: &Client) -> anyhow::Result<()> {
    for object in objects()? {
        let kind = object.types.clone().unwrap_or_default();
        let kind = GroupVersionKind::try_from(&kind).context("the kind of an object of a rack")?;
        let api: Api<DynamicObject> = Api::all_with(hub.clone(), &ApiResource::from_gvk(&kind));
        match api.create(&PostParams::default(), &object).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => {
                let (kind, name) = (kind.kind, object.name_any());
                return Err(error).with_context(|| format!("cannot create {kind} {name}"));
            }
        }
    }
    Ok(())
}

fn objects() -> anyhow::Result<Vec<DynamicObject>> {
    let file = File { name: "machines.yaml".to_owned(), text: MACHINES.to_owned() };
    let bundle = Bundle::from_files(&[file]).map_err(|flaws| anyhow!("{flaws:?}"))?;
    let read = bundle.objects().iter().map(|(_, object)| serde_json::from_value(object.clone()));
    let read: Result<Vec<DynamicObject>, _> = read.collect();
    let mut read = read.context("an object of a rack")?;
    // The rack first: machines name it.
    read.sort_by_key(|object| object.types.as_ref().is_none_or(|types| types.kind != "Rack"));
    Ok(read)
}

/// The tenants and the machines that a fleet has, by name.
pub(super) struct Holds {
    tenants: Vec<String>,
    machines: Vec<String>,
}

impl Holds {
    /// By the hub.
    pub(super) async fn read(hub: &Client) -> anyhow::Result<Holds> {
        let (tenants, machines) = (names::<Tenant>(hub).await?, names::<PhysicalNode>(hub).await?);
        Ok(Holds { tenants, machines })
    }

    /// What follows the clusters in the welcome, and a line with commands to try; empty: there is nothing to try.
    pub(super) fn words(&self) -> (String, String) {
        let Some(tenant) = self.tenants.first().filter(|_| !self.machines.is_empty()) else {
            return (String::new(), String::new());
        };
        let (tenants, machines) = (few(&self.tenants), few(&self.machines));
        let there = format!("; tenants: {tenants}; machines: {machines}");
        (there, format!("  interlock node assign {tenant}/web --wait && interlock node list\n"))
    }
}

async fn names<K>(hub: &Client) -> anyhow::Result<Vec<String>>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
{
    let listed = Api::<K>::all(hub.clone()).list(&Default::default()).await;
    let listed = listed.with_context(|| format!("cannot list {}", K::plural(&())))?;
    Ok(listed.iter().map(ResourceExt::name_any).collect())
}

fn few(names: &[String]) -> String {
    let shown = names[..names.len().min(MOST_NAMES)].join(", ");
    match names.len() - names.len().min(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(tenants: &[&str], machines: usize) -> Holds {
        let tenants = tenants.iter().map(|&name| name.to_owned()).collect();
        Holds { tenants, machines: (1..=machines).map(|number| format!("n{number}")).collect() }
    }

    #[test]
    fn the_first_start_makes_a_rack_two_machines_and_two_tenants() {
        let made = objects().expect("the example is valid");
        let named = |object: &DynamicObject| {
            let kind = object.types.as_ref().map_or("", |types| &types.kind);
            format!("{kind} {}", object.name_any())
        };
        let made: Vec<String> = made.iter().map(named).collect();
        assert_eq!(
            made,
            ["Rack r1", "PhysicalNode n1", "PhysicalNode n2", "Tenant blue", "Tenant green"]
        );
    }

    #[test]
    fn the_welcome_names_tenants_and_machines_and_a_command_for_the_first_tenant() {
        let (there, command) = holds(&["blue", "green"], 2).words();
        assert_eq!(there, "; tenants: blue, green; machines: n1, n2");
        assert_eq!(command, "  interlock node assign blue/web --wait && interlock node list\n");
    }

    #[test]
    fn the_welcome_of_a_fleet_with_many_machines_is_short_and_of_one_without_says_nothing() {
        let (there, _) = holds(&["blue"], 7).words();
        assert_eq!(there, "; tenants: blue; machines: n1, n2, n3, n4, n5 and 2 more");
        for empty in [holds(&["blue"], 0), holds(&[], 2)] {
            assert_eq!(empty.words(), (String::new(), String::new()));
        }
    }
}
