//! Rights on signers: who approves requests for certificates, and who writes the certificates.

use crate::access::Attributes;
use crate::behaviour::is_signed_anew;
use crate::call::Call;
use crate::status::Status;
use serde_json::Value;

/// As upstream: a change of the subresource `approval` needs the verb `approve` on the signer, and a change of the
/// certificate or of the conditions in the status the verb `sign`.
///
/// The old object says which signer is meant: a write cannot choose another one, and it is committed only if the old
/// object is still there.
pub(crate) async fn check_signer(call: &Call, old: &Value, new: &Value) -> Result<(), Status> {
    let verb = match call.subresource.as_str() {
        "approval" => "approve",
        "status" if is_signed_anew(old, new) => "sign",
        _ => return Ok(()),
    };
    let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
    let all_of_domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    for name in [signer, &all_of_domain] {
        let attributes = Attributes {
            verb,
            group: &call.resource.group,
            resource: "signers",
            name,
            ..Attributes::default()
        };
        match call.server.check(&call.identity, &call.cluster, &attributes).await {
            Err(status) if status.code == 403 => {}
            answer => return answer,
        }
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(Status::forbidden(&call.resource.group, &call.resource.plural, &call.name, why))
}
