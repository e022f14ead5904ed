//! The options of the controllers, kept at the hub: whoever only looks need not repeat them.

use super::{Account, AdoptOption, Args, Providers, arn, time};
use crate::run::install::NAMESPACE;
use anyhow::Context;
use clap::ValueEnum;
use interlock_identities::settings::Settings;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use std::collections::BTreeMap;

/// The ConfigMap that has them, beside the one with the id of the fleet.
pub(crate) const NAME: &str = "interlock-identities";

/// Options by name, as a person writes them.
pub(super) type Kept = BTreeMap<String, String>;

/// Writes down what the controllers work by, unless that is there already.
pub(super) async fn write(hub: &kube::Client, kept: &Kept) -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(hub.clone(), NAMESPACE);
    let mut map = maps.get_opt(NAME).await.context("cannot read it")?.unwrap_or_default();
    if map.data.as_ref() == Some(kept) {
        return Ok(());
    }
    map.data = Some(kept.clone());
    map.metadata.name = Some(NAME.to_owned());
    let options = PostParams::default();
    let written = match map.metadata.resource_version {
        Some(_) => maps.replace(NAME, &options, &map).await,
        None => maps.create(&options, &map).await,
    };
    match written {
        // Another process of the same program was first.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        written => written.map(drop).context("cannot write it"),
    }
}

/// What the controllers wrote down; nothing if they never ran.
pub(super) async fn read(hub: &kube::Client) -> anyhow::Result<Kept> {
    let maps: Api<ConfigMap> = Api::namespaced(hub.clone(), NAMESPACE);
    let map = maps.get_opt(NAME).await;
    let map = map.with_context(|| format!("cannot read the ConfigMap {NAMESPACE}/{NAME}"))?;
    Ok(map.and_then(|map| map.data).unwrap_or_default())
}

fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
}

impl Args {
    /// The options that were given.
    fn given(&self) -> Kept {
        let seconds = |time: std::time::Duration| format!("{}s", time.as_secs());
        let options = [
            ("cluster-name", self.cluster_name.clone()),
            ("oidc-provider-arn", self.oidc_provider_arn.clone()),
            ("permissions-boundaries-policy-arn", self.permissions_boundaries_policy_arn.clone()),
            ("iam-endpoint", self.iam_endpoint.clone()),
            ("adopt", self.adopt.map(word)),
            ("oidc-providers", self.oidc_providers.map(word)),
            ("late-call-window", self.late_call_window.map(seconds)),
            ("resync", self.resync.map(seconds)),
            ("iam-calls-per-second", self.iam_calls_per_second.map(|it| it.to_string())),
        ];
        let given = options.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        given.collect()
    }

    /// What the controllers work by: the options that were given, and what they are where they were not.
    pub(super) fn to_keep(&self, settings: &Settings, account: &Account) -> Kept {
        let providers =
            if settings.manages_providers { Providers::Manage } else { Providers::Check };
        let mut kept = Kept::from([
            ("adopt".to_owned(), word(self.adopt.unwrap_or_default())),
            ("oidc-providers".to_owned(), word(providers)),
            ("late-call-window".to_owned(), format!("{}s", settings.late_call_seconds)),
            ("resync".to_owned(), format!("{}s", settings.resync_seconds)),
            ("iam-calls-per-second".to_owned(), self.rate(account).per_second.to_string()),
        ]);
        kept.extend(self.given());
        kept
    }

    /// These options, and where one is not given that of the controllers; with a sentence for each that is
    /// another one than theirs.
    pub(super) fn completed(&self, kept: &Kept) -> (Args, Vec<String>) {
        let (mut completed, given, mut said) = (self.clone(), self.given(), Vec::new());
        for (name, value) in kept {
            match given.get(name) {
                Some(own) if own == value => {}
                Some(own) => said.push(format!(
                    "the controllers run with --{name} {value}, and this command with {own}"
                )),
                None if completed.set(name, value).is_none() => said.push(format!(
                    "the ConfigMap {NAMESPACE}/{NAME} has {name}: {value}, which this version does \
                     not understand"
                )),
                None => {}
            }
        }
        (completed, said)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let text = || Some(value.to_owned());
        match name {
            "cluster-name" => self.cluster_name = text(),
            "oidc-provider-arn" => self.oidc_provider_arn = Some(arn(value).ok()?),
            "permissions-boundaries-policy-arn" => {
                self.permissions_boundaries_policy_arn = Some(arn(value).ok()?);
            }
            "iam-endpoint" => self.iam_endpoint = text(),
            "adopt" => self.adopt = Some(AdoptOption::from_str(value, true).ok()?),
            "oidc-providers" => self.oidc_providers = Some(Providers::from_str(value, true).ok()?),
            "late-call-window" => self.late_call_window = Some(time(value).ok()?),
            "resync" => self.resync = Some(time(value).ok()?),
            "iam-calls-per-second" => self.iam_calls_per_second = Some(value.parse().ok()?),
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{args, settings_of};
    use super::*;
    use interlock_api::identities::Adopt;

    const BOUNDARY: &str = "arn:aws:iam::123456789012:policy/edge";

    #[test]
    fn who_looks_has_the_options_of_the_controllers() {
        let words = ["--cluster-name", "old", "--adopt", "legacy", "--resync", "2m"];
        let theirs = args(&words);
        let (settings, account) = settings_of(&theirs, true);
        let kept = theirs.to_keep(&settings, &account);
        let (completed, said) = args(&[]).completed(&kept);
        assert_eq!(said, Vec::<String>::new());
        // Also on an account of which it does not know that it is the embedded one.
        assert_eq!(settings_of(&completed, false).0, settings);
        assert_eq!(settings.adopt, Adopt::Legacy);
        assert_eq!(completed.to_keep(&settings, &account), kept);
    }

    #[test]
    fn an_option_that_is_given_wins_and_a_difference_is_said() {
        let theirs = args(&["--permissions-boundaries-policy-arn", BOUNDARY, "--resync", "600s"]);
        let (settings, account) = settings_of(&theirs, false);
        let kept = theirs.to_keep(&settings, &account);
        let (completed, said) = args(&["--resync", "10m", "--adopt", "same-name"]).completed(&kept);
        let expected = "the controllers run with --adopt never, and this command with same-name";
        assert_eq!(said, [expected]);
        assert_eq!(settings_of(&completed, false).0.adopt, Adopt::SameName);
        assert_eq!(settings_of(&completed, false).0.boundary_arn.as_deref(), Some(BOUNDARY));
    }

    #[test]
    fn what_is_not_understood_is_said_and_left_out() {
        let kept = Kept::from([
            ("resync".to_owned(), "often".to_owned()),
            ("colour".to_owned(), "blue".to_owned()),
        ]);
        let (completed, said) = args(&[]).completed(&kept);
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(settings_of(&completed, false).0.resync_seconds, 600);
    }
}
