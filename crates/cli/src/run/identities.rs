//! The controllers of cloud identities: their options, and how they are run.

pub(crate) mod kept;

use super::fleet_id::{self, FleetId};
use super::wiring::{self, Seats};
use crate::words::time;
use anyhow::{Context, bail};
use clap::{Args as ClapArgs, ValueEnum};
use interlock_api::identities::Adopt;
use interlock_cloud::Driver;
use interlock_iam::Keys;
use interlock_iam::arn::Arn;
use interlock_iam::client::{self, Client};
use interlock_identities::settings::Settings;
use interlock_kernel::CallRate;
use interlock_programs::Identities;
use interlock_shell::{Runner, Shell};
use std::sync::Arc;
use std::time::Duration;

/// Within this time of being sent a call to AWS takes effect, or never.
const LATE_CALL_WINDOW: Duration = Duration::from_secs(60);
const RESYNC: Duration = Duration::from_secs(600);

/// Options of everything that runs the controllers of cloud identities.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Cloud identities (irsa.voodoo.io)")]
#[group(skip)]
pub(crate) struct Args {
    /// The name under which irsa-operator knew the cluster; also the fleet, unless --fleet says another
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// The OIDC provider that roles of namespaces without a Placement trust
    #[arg(long, value_name = "ARN", value_parser = arn)]
    oidc_provider_arn: Option<String>,
    /// The permissions boundary of every role
    #[arg(long, value_name = "ARN", value_parser = arn)]
    permissions_boundaries_policy_arn: Option<String>,
    /// The fleet: a part of every name in the cloud account, which never changes [default: the cluster name, or chosen at the first start]
    #[arg(long, value_name = "ID", value_parser = fleet_id::parse)]
    fleet: Option<String>,
    /// The URL of IAM and STS [default: AWS; with `up`: an embedded one]
    #[arg(long, value_name = "URL")]
    iam_endpoint: Option<String>,
    /// On what proof cloud objects are taken over, where an object does not say [default: never]
    #[arg(long, value_enum, ignore_case = true)]
    adopt: Option<AdoptOption>,
    /// Whether OIDC providers of workload clusters are created [default: check; with the embedded IAM: manage]
    #[arg(long, value_enum, ignore_case = true)]
    oidc_providers: Option<Providers>,
    /// How long after it was sent a call may still take effect [default: 60s; with the embedded IAM: 1s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    late_call_window: Option<Duration>,
    /// How often the cloud account is called at most [default: 10; with the embedded IAM: 500]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    iam_calls_per_second: Option<u32>,
    /// How often every cloud object is compared with its declaration [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = time)]
    resync: Option<Duration>,
}

/// On what proof cloud objects are taken over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum AdoptOption {
    /// On none
    #[default]
    Never,
    /// The tags name this fleet, and an object of this namespace and name
    #[value(alias = "samename")]
    SameName,
    /// irsa-operator made it for an object of this namespace and name
    Legacy,
}

/// What is done about OIDC providers of workload clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Providers {
    /// They must be there
    Check,
    /// They are created, and deleted with the cluster
    Manage,
}

/// Which cloud account.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    /// Where IAM and STS are; None is AWS.
    pub(crate) endpoint: Option<String>,
    pub(crate) keys: Keys,
    /// Whether it is the embedded one, which is never late and is ours alone.
    pub(crate) is_embedded: bool,
}

impl Account {
    /// A client of it.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let endpoint = self.endpoint.clone();
        let settings = client::Settings { endpoint, ..client::Settings::default() };
        Client::new(settings, self.keys.clone()).context("cannot use --iam-endpoint")
    }
}

impl Args {
    /// Whether a command that can do without identities was asked for them.
    pub(crate) fn is_asked_for(&self) -> bool {
        let names = [&self.cluster_name, &self.fleet, &self.oidc_provider_arn, &self.iam_endpoint];
        names.into_iter().any(Option::is_some)
    }

    /// The same; every cloud object is compared so often, unless the options say otherwise.
    pub(crate) fn comparing_every(mut self, period: Duration) -> Args {
        self.resync = self.resync.or(Some(period));
        self
    }

    /// Whether another IAM than the embedded one is to be used.
    pub(crate) fn has_endpoint(&self) -> bool {
        self.iam_endpoint.is_some()
    }

    /// The account that this process finds credentials for.
    pub(crate) async fn account_of_environment(&self) -> anyhow::Result<Account> {
        let source = interlock_aws::of_process().await.context("cannot look for credentials")?;
        let keys = Keys::From(source);
        // Who has none sees so at once, and not by every identity.
        if let Err(why) = keys.current().await {
            bail!(
                "the controllers of cloud identities have no credentials ({why}): set AWS_ACCESS_KEY_ID and \
                 AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run where the pod, container or instance has a role"
            );
        }
        Ok(Account { endpoint: self.iam_endpoint.clone(), keys, is_embedded: false })
    }

    /// The id of the fleet, which is written down at the hub at the first start.
    pub(crate) async fn fleet(&self, hub: &kube::Client) -> anyhow::Result<FleetId> {
        fleet_id::of(hub, self.fleet.as_deref().or(self.cluster_name.as_deref())).await
    }

    fn settings(&self, fleet: FleetId, account: &Account) -> Settings {
        let providers = match (self.oidc_providers, account.is_embedded) {
            (Some(asked), _) => asked,
            (None, true) => Providers::Manage,
            (None, false) => Providers::Check,
        };
        let seconds = |time: Duration| time.as_secs().max(1);
        Settings {
            cluster_name: self.cluster_name.clone(),
            provider_arn: self.oidc_provider_arn.clone(),
            boundary_arn: self.permissions_boundaries_policy_arn.clone(),
            adopt: match self.adopt.unwrap_or_default() {
                AdoptOption::Never => Adopt::Never,
                AdoptOption::SameName => Adopt::SameName,
                AdoptOption::Legacy => Adopt::Legacy,
            },
            late_call_seconds: i64::try_from(seconds(self.window(account))).unwrap_or(i64::MAX),
            resync_seconds: seconds(self.resync.unwrap_or(RESYNC)),
            manages_providers: providers == Providers::Manage,
            ..Settings::of_fleet(&fleet.0)
        }
    }

    fn window(&self, account: &Account) -> Duration {
        let usual = if account.is_embedded { Duration::from_secs(1) } else { LATE_CALL_WINDOW };
        self.late_call_window.unwrap_or(usual)
    }

    /// These options with those of the controllers, as far as they are not given, for somebody who only
    /// looks; and where they differ.
    pub(crate) async fn of_reader(
        &self,
        hub: &kube::Client,
    ) -> anyhow::Result<(Args, Vec<String>)> {
        Ok(self.completed(&kept::read(hub).await?))
    }

    /// The id of the fleet, for somebody who only looks.
    pub(crate) async fn fleet_for_reader(&self, hub: &kube::Client) -> anyhow::Result<FleetId> {
        fleet_id::read(hub, self.fleet.as_deref().or(self.cluster_name.as_deref())).await
    }

    /// What the controllers work by and with, for somebody who only looks.
    pub(crate) async fn for_reader(
        &self,
        hub: &kube::Client,
        account: &Account,
        reader: &str,
    ) -> anyhow::Result<(Settings, Driver)> {
        let settings = self.settings(self.fleet_for_reader(hub).await?, account);
        let driver = self.driver(reader, &settings, account)?;
        Ok((settings, driver))
    }

    fn driver(
        &self,
        instance: &str,
        settings: &Settings,
        account: &Account,
    ) -> anyhow::Result<Driver> {
        let window = Duration::from_secs(settings.late_call_seconds.unsigned_abs());
        let driver = interlock_cloud::Settings {
            rate: self.rate(account),
            ..interlock_cloud::Settings::of(instance, window)
        };
        Ok(Driver::new(account.client()?, driver))
    }

    /// How often an account is called. That of AWS is shared with others.
    fn rate(&self, account: &Account) -> CallRate {
        match (self.iam_calls_per_second, account.is_embedded) {
            (Some(asked), _) => CallRate {
                per_second: asked,
                burst: asked.saturating_mul(2),
                ..CallRate::default()
            },
            (None, true) => CallRate { per_second: 500, burst: 1_000, ..CallRate::default() },
            (None, false) => CallRate::default(),
        }
    }

    /// Runs the controllers until the shell stops. The instance is the one under which the process
    /// leads.
    pub(crate) async fn run(
        &self,
        at: &Ground<'_>,
        account: Account,
    ) -> anyhow::Result<Vec<Runner>> {
        let fleet = self.fleet(at.hub).await?;
        let settings = self.settings(fleet, &account);
        let driver = self.driver(at.instance, &settings, &account)?;
        // Nothing that the controllers do rests on it.
        if let Err(error) = kept::write(at.hub, &self.to_keep(&settings, &account)).await {
            let name = kept::NAME;
            tracing::warn!(%error, name, "the options are not kept in their ConfigMap");
        }
        let counted = driver.clone();
        at.shell.metrics().also(move || counted.metrics());
        tracing::info!(fleet = settings.fleet, "running the controllers of cloud identities");
        let program = Identities { settings: Arc::new(settings) };
        Ok(wiring::run(at.shell, &program, at.seats, driver)?)
    }
}

/// Where the controllers run.
pub(crate) struct Ground<'a> {
    pub(crate) hub: &'a kube::Client,
    pub(crate) shell: &'a Shell,
    pub(crate) seats: &'a Seats,
    /// The identity under which this process leads.
    pub(crate) instance: &'a str,
}

fn arn(text: &str) -> Result<String, String> {
    match text.parse::<Arn>() {
        Ok(arn) if arn.service == "iam" => Ok(text.to_owned()),
        Ok(_) => Err(format!("{text:?} is not an ARN of IAM")),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use clap::Parser;
    use interlock_iam::Credentials;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    pub(super) fn args(words: &[&str]) -> Args {
        Command::parse_from(["x"].iter().chain(words)).args
    }

    pub(super) fn settings_of(args: &Args, is_embedded: bool) -> (Settings, Account) {
        let keys = Credentials::lasting("a", "b").into();
        let account = Account { endpoint: None, keys, is_embedded };
        (args.settings(FleetId("f".to_owned()), &account), account)
    }

    fn settings(words: &[&str], is_embedded: bool) -> Settings {
        settings_of(&args(words), is_embedded).0
    }

    #[test]
    fn the_embedded_iam_is_never_late_and_its_providers_are_created() {
        let embedded = settings(&[], true);
        assert_eq!((embedded.late_call_seconds, embedded.manages_providers), (1, true));
        let aws = settings(&[], false);
        assert_eq!((aws.late_call_seconds, aws.manages_providers), (60, false));
        assert_eq!((aws.resync_seconds, aws.adopt), (600, Adopt::Never));
        let words = ["--late-call-window", "30s", "--oidc-providers", "Check", "--resync", "2m"];
        let said = settings(&words, true);
        let found = (said.late_call_seconds, said.manages_providers, said.resync_seconds);
        assert_eq!(found, (30, false, 120));
        assert_eq!(settings(&["--adopt", "SameName"], false).adopt, Adopt::SameName);
        assert_eq!(settings(&["--adopt", "legacy"], false).adopt, Adopt::Legacy);
    }

    #[test]
    fn identities_are_asked_for_by_naming_a_fleet_a_provider_or_an_endpoint() {
        assert!(!args(&[]).is_asked_for());
        assert!(!args(&["--resync", "1m"]).is_asked_for());
        for words in [["--fleet", "f"], ["--cluster-name", "c"], ["--iam-endpoint", "http://[::1]"]]
        {
            assert!(args(&words).is_asked_for(), "{words:?}");
        }
    }

    #[test]
    fn only_an_arn_of_iam_is_a_provider_or_a_boundary() {
        assert!(arn("arn:aws:iam::123456789012:oidc-provider/x").is_ok());
        assert!(arn("arn:aws:s3:::x").is_err() && arn("x").is_err());
    }
}
