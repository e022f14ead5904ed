//! The labels that mirror a grant, on the namespace and on its claims.

use super::Namespaces;
use crate::kinds::CLAIM;
use interlock_api::names::{STATE_EMPTY, STATE_PREFIX, STATE_SYNC, state_label};
use interlock_api::placement::{Fill, GrantStatus, Phase};
use interlock_kernel::{Object, read_part};
use interlock_world::Scene;

/// The labels that name clusters, of the namespace and of its claims.
pub(super) struct Labels {
    namespace: Vec<(String, String)>,
    claims: Vec<Vec<(String, String)>>,
}

impl Labels {
    /// Where nobody mirrors a grant there are none.
    pub(super) fn of(
        system: &Namespaces,
        scene: &Scene<'_, Namespaces>,
        home: Option<&Object>,
    ) -> Labels {
        let named = |object: &Object| -> Vec<(String, String)> {
            let labels = object.metadata.labels.iter().flatten();
            let states = labels.filter(|(key, _)| key.starts_with(STATE_PREFIX));
            states.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let home = home.filter(|_| system.has_labels());
        let claims = home.map(|_| scene.hub().list(&CLAIM)).unwrap_or_default();
        Labels {
            namespace: home.map(named).unwrap_or_default(),
            claims: claims.iter().map(named).collect(),
        }
    }

    pub(super) fn counts(&self) -> [usize; 2] {
        [self.namespace.len(), self.claims.iter().map(Vec::len).max().unwrap_or(0)]
    }

    /// What the labels are to say, as the seed would read it off the grant.
    pub(super) fn are_right(&self, grant: Option<&Object>) -> bool {
        let status = grant.and_then(|it| read_part::<GrantStatus>(it, "status").ok().flatten());
        let status = status.unwrap_or_default();
        let is_filled = status.claims.iter().all(|claim| claim.fill == Fill::Filled);
        let value = match status.phase {
            Phase::Granted if is_filled => Some(STATE_SYNC),
            Phase::Granted | Phase::Revoking => Some(STATE_EMPTY),
            Phase::Unassigned | Phase::Released | Phase::Fenced | Phase::Deleting => None,
        };
        let owner = status.owner.map(|owner| state_label(&owner.uid));
        let wanted: Vec<(String, String)> =
            owner.zip(value.map(str::to_owned)).into_iter().collect();
        self.namespace == wanted && self.claims.iter().all(|labels| *labels == wanted)
    }
}
