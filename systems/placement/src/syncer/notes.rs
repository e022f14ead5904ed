//! What a cluster notes on its namespace: it survives every restart, and no cache of the hub can
//! contradict it.

use super::tenancy::{Epoch, Here, Notes, Running};
use interlock_api::names::{
    ANNOTATION_EPOCH, ANNOTATION_GRANT, ANNOTATION_RAN, ANNOTATION_RELEASED, ANNOTATION_RUNNING,
    Permit,
};
use interlock_kernel::metadata::annotation;
use kube_core::DynamicObject;

/// What the namespace says of the grant with this uid.
///
/// A namespace whose notes cannot be read is treated like one of somebody else: nothing is started
/// and nothing is deleted on a guess.
pub fn read(namespace: Option<&DynamicObject>, grant_uid: &str, boot_id: &str) -> Here {
    let Some(namespace) = namespace else { return Here::Missing };
    if annotation(namespace, ANNOTATION_GRANT) != Some(grant_uid) {
        return Here::Foreign;
    }
    parse(namespace, boot_id).map_or(Here::Foreign, Here::Noted)
}

/// The notes of a namespace, whoever it is for; None if they cannot be read.
pub fn parse(namespace: &DynamicObject, boot_id: &str) -> Option<Notes> {
    let number = |key| match annotation(namespace, key) {
        None => Some(0),
        Some(text) => text.parse::<Epoch>().ok().filter(|epoch| *epoch >= 0),
    };
    Some(Notes {
        epoch: number(ANNOTATION_EPOCH)?,
        released: number(ANNOTATION_RELEASED)?,
        running: running(annotation(namespace, ANNOTATION_RUNNING), boot_id),
        ran: number(ANNOTATION_RAN)?,
    })
}

/// A permit that cannot be read permits nothing, and is withdrawn like one that lapsed.
fn running(text: Option<&str>, boot_id: &str) -> Running {
    match text {
        None | Some("") => Running::Nothing,
        Some(text) => match Permit::read(text) {
            Some(permit) if permit.boot_id == boot_id => Running::Permitted(permit.epoch),
            Some(permit) => Running::Lapsed(permit.epoch),
            None => Running::Lapsed(0),
        },
    }
}
