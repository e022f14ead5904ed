//! The id of the fleet: a part of every name in the cloud account, so it never changes.

use super::install::NAMESPACE;
use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use std::collections::BTreeMap;

/// The ConfigMap that has it, in the namespace of what is ours alone.
pub(crate) const NAME: &str = "interlock-fleet";
const KEY: &str = "fleet";
/// So much of the uid of the namespace is unique enough within one cloud account.
const OF_UID: usize = 8;
const LONGEST: usize = 64;

/// The id of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FleetId(pub(crate) String);

/// An id as a person writes it.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if text.is_empty() || text.len() > LONGEST || !text.chars().all(is_allowed) {
        return Err(format!("write 1 to {LONGEST} letters, digits, dots, dashes or underscores"));
    }
    Ok(text.to_owned())
}

/// The id of the fleet of this hub. The first start writes it down; a start with another one is refused.
pub(crate) async fn of(hub: &Client, asked: Option<&str>) -> anyhow::Result<FleetId> {
    if let Some(wrong) = asked.map(parse).and_then(Result::err) {
        bail!("the cluster name cannot be the id of the fleet: {wrong}; set --fleet");
    }
    let maps: Api<ConfigMap> = Api::namespaced(hub.clone(), NAMESPACE);
    let read = || async {
        let found = maps.get_opt(NAME).await;
        found.with_context(|| format!("cannot read the ConfigMap {NAMESPACE}/{NAME}"))
    };
    if let Some(known) = read().await? {
        return agreed(&known, asked);
    }
    let id = match asked {
        Some(asked) => asked.to_owned(),
        None => of_namespace(hub).await?,
    };
    let mut map = ConfigMap {
        data: Some(BTreeMap::from([(KEY.to_owned(), id.clone())])),
        immutable: Some(true),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(NAME.to_owned());
    match maps.create(&PostParams::default(), &map).await {
        Ok(_) => Ok(FleetId(id)),
        // Another process was first: its word counts.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let known = read().await?;
            let known = known.with_context(|| format!("{NAMESPACE}/{NAME} is gone again"))?;
            agreed(&known, asked)
        }
        Err(error) => Err(error).context(format!("cannot create the ConfigMap {NAMESPACE}/{NAME}")),
    }
}

/// The id of the fleet of this hub, for somebody who only looks: the one that is written down, or that the
/// first start would write down.
pub(crate) async fn read(hub: &Client, asked: Option<&str>) -> anyhow::Result<FleetId> {
    let maps: Api<ConfigMap> = Api::namespaced(hub.clone(), NAMESPACE);
    let known = maps.get_opt(NAME).await;
    let known = known.with_context(|| format!("cannot read the ConfigMap {NAMESPACE}/{NAME}"))?;
    match (known, asked) {
        (Some(known), asked) => agreed(&known, asked),
        (None, Some(asked)) => Ok(FleetId(asked.to_owned())),
        (None, None) => {
            let id = of_namespace(hub).await;
            Ok(FleetId(id.context("this hub is of no fleet yet: set --fleet")?))
        }
    }
}

/// The id that is written down, if nobody asks for another.
fn agreed(map: &ConfigMap, asked: Option<&str>) -> anyhow::Result<FleetId> {
    let known = map.data.as_ref().and_then(|data| data.get(KEY)).map(String::as_str);
    let Some(known) = known.filter(|known| parse(known).is_ok()) else {
        bail!("the ConfigMap {NAMESPACE}/{NAME} has no fleet in it: restore it, or delete it");
    };
    if let Some(asked) = asked.filter(|asked| *asked != known) {
        bail!(
            "this hub is of the fleet `{known}` (ConfigMap {NAMESPACE}/{NAME}), not `{asked}`: the \
             names of its cloud objects have it, so it cannot change; start with --fleet {known}"
        );
    }
    Ok(FleetId(known.to_owned()))
}

async fn of_namespace(hub: &Client) -> anyhow::Result<String> {
    let namespaces: Api<Namespace> = Api::all(hub.clone());
    let namespace = namespaces.get(NAMESPACE).await;
    let namespace = namespace.with_context(|| format!("cannot read the namespace {NAMESPACE}"))?;
    let uid = namespace.uid().unwrap_or_default();
    Ok(uid.chars().take(OF_UID).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fleet: &str) -> ConfigMap {
        let data = Some(BTreeMap::from([(KEY.to_owned(), fleet.to_owned())]));
        ConfigMap { data, ..ConfigMap::default() }
    }

    #[test]
    fn the_id_that_is_written_down_counts_and_another_is_refused() {
        assert_eq!(agreed(&map("a"), None).unwrap().0, "a");
        assert_eq!(agreed(&map("a"), Some("a")).unwrap().0, "a");
        let refused = agreed(&map("a"), Some("b")).unwrap_err().to_string();
        assert!(refused.contains("start with --fleet a"), "{refused}");
        assert!(agreed(&ConfigMap::default(), None).is_err());
        assert!(agreed(&map("../x"), None).is_err());
    }

    #[test]
    fn an_id_can_be_in_a_path_of_the_cloud() {
        assert!(parse("prod-eu_1.x").is_ok());
        for wrong in ["", "a/b", "a b", "\u{e4}", &"x".repeat(65)] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
