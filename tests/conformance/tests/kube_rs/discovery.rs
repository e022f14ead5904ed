//! What the server says it serves, in both forms, and that it does.

crate::both_ways! {
    the_version_looks_like_a_release
    both_forms_of_discovery_say_the_same
    everything_that_can_be_listed_can_be_listed
    one_kind_can_be_asked_for
}

mod scenarios {
    use anyhow::{Context, Result};
    use kube::core::{DynamicObject, GroupVersion, GroupVersionKind};
    use kube::discovery::{self, Discovery, Scope, verbs};
    use kube::{Api, Client};
    use std::collections::BTreeSet;

    pub(super) async fn the_version_looks_like_a_release(client: Client) -> Result<()> {
        let version = client.apiserver_version().await?;
        assert_eq!((&*version.major, &*version.minor), ("1", "35"));
        assert!(version.git_version.starts_with("v1.35."));
        Ok(())
    }

    fn kinds(discovery: &Discovery) -> BTreeSet<String> {
        let resources = discovery.groups().flat_map(|group| group.resources_by_stability());
        resources
            .map(|(resource, capabilities)| {
                let mut operations = capabilities.operations.clone();
                operations.sort();
                let mut below: Vec<_> =
                    capabilities.subresources.iter().map(|(sub, _)| sub.plural.clone()).collect();
                below.sort();
                format!(
                    "{} {} {} {:?} {operations:?} {below:?}",
                    resource.api_version, resource.kind, resource.plural, capabilities.scope
                )
            })
            .collect()
    }

    pub(super) async fn both_forms_of_discovery_say_the_same(client: Client) -> Result<()> {
        let plain = Discovery::new(client.clone()).run().await?;
        let aggregated = Discovery::new(client.clone()).run_aggregated().await?;
        assert!(plain.has_group("apps") && plain.has_group(""));
        assert_eq!(kinds(&plain), kinds(&aggregated));
        let groups = client.list_api_groups().await?.groups;
        let names: BTreeSet<_> = groups.iter().map(|group| group.name.clone()).collect();
        let aggregated = client.list_api_groups_aggregated().await?.items;
        let items = aggregated.into_iter().filter_map(|group| group.metadata?.name);
        assert_eq!(names, items.collect());
        assert_eq!(client.list_core_api_versions().await?.versions, ["v1"]);
        assert_eq!(client.list_core_api_versions_aggregated().await?.items.len(), 1);
        assert!(!client.list_core_api_resources("v1").await?.resources.is_empty());
        assert!(!client.list_api_group_resources("apps/v1").await?.resources.is_empty());
        Ok(())
    }

    pub(super) async fn everything_that_can_be_listed_can_be_listed(client: Client) -> Result<()> {
        let discovery = Discovery::new(client.clone()).run_aggregated().await?;
        let mut listed = 0;
        for group in discovery.groups_alphabetical() {
            for (resource, capabilities) in group.recommended_resources() {
                if !capabilities.supports_operation(verbs::LIST) {
                    continue;
                }
                let objects: Api<DynamicObject> = match capabilities.scope {
                    Scope::Cluster => Api::all_with(client.clone(), &resource),
                    Scope::Namespaced => Api::default_namespaced_with(client.clone(), &resource),
                };
                let list = objects.list(&Default::default()).await;
                list.with_context(|| format!("{}/{}", resource.api_version, resource.plural))?;
                listed += 1;
            }
        }
        assert!(listed > 30, "only {listed} kinds");
        Ok(())
    }

    pub(super) async fn one_kind_can_be_asked_for(client: Client) -> Result<()> {
        let apps = discovery::group(&client, "apps").await?;
        let (deployment, _) = apps.recommended_kind("Deployment").context("it is there")?;
        let kind = GroupVersionKind::gvk("apps", "v1", "Deployment");
        assert_eq!(discovery::pinned_kind(&client, &kind).await?.0, deployment);
        let version = GroupVersion::gv("apps", "v1");
        let group = discovery::oneshot::pinned_group(&client, &version).await?;
        assert!(group.recommended_kind("StatefulSet").is_some());
        assert!(discovery::group(&client, "nowhere.example.com").await.is_err());
        Ok(())
    }
}
