//! Calls of STS.

use super::answers;
use super::call::{Api, Call};
use super::{Client, Identity, WebIdentity, WebIdentitySession};
use crate::Outcome;

impl Client {
    /// Who calls.
    pub async fn get_caller_identity(&self) -> Outcome<Identity> {
        self.ask(Api::Sts, Call::new("GetCallerIdentity"), |result| {
            Ok(Identity {
                account: result.text("Account")?,
                arn: result.text("Arn")?,
                user_id: result.text("UserId")?,
            })
        })
        .await
    }

    /// Exchanges a token for a session. The request is not signed.
    pub async fn assume_role_with_web_identity(
        &self,
        identity: &WebIdentity,
    ) -> Outcome<WebIdentitySession> {
        let call = Call::new("AssumeRoleWithWebIdentity")
            .with("RoleArn", &identity.role)
            .with("RoleSessionName", &identity.session)
            .with("WebIdentityToken", &identity.token)
            .with_some("DurationSeconds", identity.seconds.map(|it| it.to_string()));
        self.ask(Api::Sts, call, answers::session).await
    }
}
