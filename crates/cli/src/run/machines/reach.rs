//! How a process reaches the hub and the control planes of tenants, and as whom.

use super::planes::Planes;
use crate::connection::{from_secret, in_logical_cluster};
use crate::run::access::{HUB, Who, grant};
use crate::run::install;
use crate::run::supervisor::{Ground, make_logical_cluster};
use anyhow::Context;
use interlock_api::placement::SecretKey;
use interlock_programs::roles::machines::OnPlane;
use interlock_programs::served::PlaneName;
use interlock_shell::{Server, Shell};
use kube::{Client, Config};
use std::sync::Arc;

/// How this process reaches the hub and the control planes of tenants.
pub(crate) enum Reach {
    /// The server runs in this process, and each account is a user of its own.
    Here(Arc<Ground>),
    /// They are somewhere else, and whoever gave the kubeconfig of the hub decides who this process is.
    Elsewhere(Box<Elsewhere>),
}

/// A hub that is somewhere else.
pub(crate) struct Elsewhere {
    pub(crate) hub: Server,
    pub(crate) config: Config,
    pub(crate) shell: Arc<Shell>,
    /// Whether the kinds of tenants are installed on their control planes.
    pub(crate) installs: bool,
    /// With whose credentials it enters these.
    pub(crate) planes: Planes,
}

impl Reach {
    pub(super) fn shell(&self) -> &Shell {
        match self {
            Reach::Here(ground) => &ground.shell,
            Reach::Elsewhere(there) => &there.shell,
        }
    }

    /// The hub, with the caches that all share.
    pub(super) fn known(&self) -> &Server {
        match self {
            Reach::Here(ground) => &ground.known,
            Reach::Elsewhere(there) => &there.hub,
        }
    }

    /// The hub, for what this module itself asks.
    pub(super) fn hub(&self) -> &Client {
        match self {
            Reach::Here(ground) => &ground.hub,
            Reach::Elsewhere(there) => there.hub.client(),
        }
    }

    /// The hub, as an account of a program.
    pub(super) fn hub_as(&self, who: Who<'_>) -> Server {
        match self {
            Reach::Here(ground) => ground.known.acting_as(who.client(&ground.server, HUB)),
            Reach::Elsewhere(there) => there.hub.clone(),
        }
    }

    /// The control plane of a tenant, as an account of a program.
    pub(super) fn plane_as(&self, who: Who<'_>, name: &PlaneName, there: &Server) -> Server {
        match (self, name) {
            (Reach::Here(ground), PlaneName::LogicalCluster(name)) => {
                there.acting_as(who.client(&ground.server, name))
            }
            // The tenant, or whoever started this process, has given one kubeconfig.
            (Reach::Here(_), PlaneName::Elsewhere { .. }) | (Reach::Elsewhere(_), _) => {
                there.clone()
            }
        }
    }

    /// Makes the control plane of a tenant, if it is a logical cluster of a server in this process, and finds it.
    pub(super) async fn open(&self, tenant: &str, plane: &PlaneName) -> anyhow::Result<Server> {
        if let Some(config) = self.own(tenant).await? {
            return Ok(Server::new(tenant, Client::try_from(config).context(NO_CLIENT)?));
        }
        let (name, client, installs) = match (plane, self) {
            (PlaneName::LogicalCluster(name), Reach::Here(ground)) => {
                make_logical_cluster(&ground.hub, name).await?;
                install::install_for_tenant(&Who::Owner.client(&ground.server, name)).await?;
                (name, Who::Caches.client(&ground.server, name), false)
            }
            (PlaneName::LogicalCluster(name), Reach::Elsewhere(there)) => {
                let config = in_logical_cluster(there.config.clone(), name)?;
                (name, Client::try_from(config).context(NO_CLIENT)?, there.installs)
            }
            (PlaneName::Elsewhere { namespace, name, key }, _) => {
                let (namespace, key) = (namespace.clone(), key.clone());
                let secret = SecretKey { namespace, name: name.clone(), key };
                let config = from_secret(self.hub(), &secret).await?;
                (name, Client::try_from(config).context(NO_CLIENT)?, self.installs())
            }
        };
        if installs {
            install::install_for_tenant(&client).await?;
        }
        Ok(Server::new(name, client))
    }

    /// The credentials for the control plane of a tenant that are for this process alone.
    async fn own(&self, tenant: &str) -> anyhow::Result<Option<Config>> {
        match self {
            Reach::Here(_) => Ok(None),
            Reach::Elsewhere(there) => there.planes.own(there.hub.client(), tenant).await,
        }
    }

    /// Whether the kinds of tenants are installed on control planes that are somewhere else.
    fn installs(&self) -> bool {
        match self {
            Reach::Here(_) => true,
            Reach::Elsewhere(there) => there.installs,
        }
    }

    /// Lets the accounts of programs do what they do. Elsewhere an administrator has done so.
    pub(super) async fn allow(
        &self,
        plane: Option<&PlaneName>,
        grants: &OnPlane,
    ) -> anyhow::Result<()> {
        let Reach::Here(ground) = self else { return Ok(()) };
        grant(&ground.hub, &grants.at_hub).await?;
        if let Some(PlaneName::LogicalCluster(name)) = plane {
            grant(&Who::Owner.client(&ground.server, name), &grants.on_plane).await?;
        }
        Ok(())
    }
}

const NO_CLIENT: &str = "cannot make a client of the control plane of the tenant";
