//! What the account has with the tag of this fleet, and no object declares.

use super::{Common, Scene};
use crate::output::{self, Format};
use crate::words::table;
use anyhow::{Context, bail};
use interlock_api::identities::{Policy, Role, TAG_FLEET, TAG_OWNER, TAG_OWNER_UID};
use interlock_iam::Outcome;
use kube::{Api, ResourceExt};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

/// A cloud object that nobody declares.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Orphan {
    kind: &'static str,
    arn: String,
    /// The object that it was made for: `role/<namespace>/<name>`.
    owner: String,
}

pub(super) async fn run(args: &Common) -> anyhow::Result<ExitCode> {
    let Scene { hub, account, identities } = args.scene().await?;
    let fleet = identities.fleet_for_reader(&hub).await?.0;
    let client = account.client()?;
    let path = format!("/interlock/{fleet}/");
    let mut found = Vec::new();
    for role in done(client.list_roles(&path).await, "ListRoles")? {
        // Lists leave tags out.
        let tags = done(client.get_role(&role.name).await, "GetRole")?.tags;
        found.push(("role", role.arn, tags));
    }
    for policy in done(client.list_policies(&path).await, "ListPolicies")? {
        let tags = done(client.get_policy(&policy.arn).await, "GetPolicy")?.tags;
        found.push(("policy", policy.arn, tags));
    }
    // After the account: what is made meanwhile has its object already.
    let roles: Api<Role> = Api::all(hub.clone());
    let policies: Api<Policy> = Api::all(hub);
    let roles = roles.list(&kube::api::ListParams::default()).await.context("cannot list Roles")?;
    let policies = policies.list(&kube::api::ListParams::default()).await;
    let policies = policies.context("cannot list Policies")?;
    let uids = roles
        .iter()
        .filter_map(ResourceExt::uid)
        .chain(policies.iter().filter_map(ResourceExt::uid));
    let left = orphans(&fleet, found, &uids.collect());
    match args.output {
        Format::Json => output::say_json(&left)?,
        Format::Text if left.is_empty() => output::say("nothing is left over\n")?,
        Format::Text => {
            let cells =
                |one: &Orphan| vec![one.kind.to_owned(), one.arn.clone(), one.owner.clone()];
            let rows: Vec<Vec<String>> = left.iter().map(cells).collect();
            output::say(&table(&["KIND", "ARN", "WAS MADE FOR"], &rows))?;
        }
    }
    Ok(if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn orphans(
    fleet: &str,
    found: Vec<(&'static str, String, BTreeMap<String, String>)>,
    declared: &BTreeSet<String>,
) -> Vec<Orphan> {
    let is_left = |tags: &BTreeMap<String, String>| {
        let uid = tags.get(TAG_OWNER_UID);
        tags.get(TAG_FLEET).is_some_and(|it| it == fleet)
            && uid.is_some_and(|uid| !declared.contains(uid))
    };
    let left = found.into_iter().filter(|(_, _, tags)| is_left(tags));
    left.map(|(kind, arn, mut tags)| Orphan {
        kind,
        arn,
        owner: tags.remove(TAG_OWNER).unwrap_or_default(),
    })
    .collect()
}

fn done<T>(outcome: Outcome<T>, call: &str) -> anyhow::Result<T> {
    match outcome {
        Outcome::Done(value) => Ok(value),
        Outcome::Refused(why) => bail!("{call} was refused: {} {}", why.code, why.message),
        Outcome::Unknown(why) => bail!("{call} was not answered: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_the_tag_of_the_fleet_and_no_object_is_left_over() {
        let tags = |fleet: &str, uid: &str| {
            let tags = [(TAG_FLEET, fleet), (TAG_OWNER, "role/shop/s3"), (TAG_OWNER_UID, uid)];
            tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        };
        let found = vec![
            ("role", "declared".to_owned(), tags("f", "1")),
            ("role", "left".to_owned(), tags("f", "2")),
            ("role", "of another fleet".to_owned(), tags("g", "2")),
            ("policy", "without tags".to_owned(), BTreeMap::new()),
        ];
        let left = orphans("f", found, &BTreeSet::from(["1".to_owned()]));
        let owner = "role/shop/s3".to_owned();
        assert_eq!(left, [Orphan { kind: "role", arn: "left".to_owned(), owner }]);
    }
}
