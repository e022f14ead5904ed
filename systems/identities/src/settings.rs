//! What the operator of the fleet says about identities, once for all of them.

use interlock_api::identities::Adopt;
use interlock_kernel::Object;
use interlock_kernel::metadata::{name_of, namespace_of, uid_of};
use std::time::Duration;

/// What the flags of the program say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The fleet: part of every name in the cloud.
    pub fleet: String,
    /// The name under which irsa-operator knew the cluster.
    pub cluster_name: Option<String>,
    /// The OIDC provider of namespaces that are not placed.
    pub provider_arn: Option<String>,
    /// The permissions boundary that every role gets.
    pub boundary_arn: Option<String>,
    /// On what proof cloud objects are adopted where an object does not say.
    pub adopt: Adopt,
    /// The audience of the tokens.
    pub audience: String,
    /// Within how many seconds of being sent a call takes effect, or never.
    pub late_call_seconds: i64,
    /// How often an object whose cloud objects are as declared is compared with the cloud.
    pub resync_seconds: u64,
    /// Whether OIDC providers of clusters are created, and not only checked.
    pub manages_providers: bool,
}

impl Settings {
    /// Those of a fleet of which nothing else is said.
    pub fn of_fleet(fleet: &str) -> Settings {
        Settings {
            fleet: fleet.to_owned(),
            cluster_name: None,
            provider_arn: None,
            boundary_arn: None,
            adopt: Adopt::Never,
            audience: "sts.amazonaws.com".to_owned(),
            late_call_seconds: 60,
            resync_seconds: 600,
            manages_providers: false,
        }
    }

    /// When an object is compared with the cloud again. Objects differ by up to a tenth, so that the calls
    /// for a thousand of them come evenly spread.
    pub fn resync(&self, object: &Object) -> Duration {
        let text = format!("{}/{}/{}", namespace_of(object), name_of(object), uid_of(object));
        let digits = crate::document::hex(&text, 2);
        let spread = u64::from_str_radix(&digits, 16).unwrap_or(0);
        let least = self.resync_seconds - self.resync_seconds / 10;
        Duration::from_secs(least + self.resync_seconds / 10 * spread / 0xffff)
    }
}
