//! Calls about OpenID Connect providers.

use super::answers;
use super::call::{Api, Call};
use super::{Client, NewProvider, Provider};
use crate::Outcome;

impl Client {
    /// Makes a provider, and gives its ARN.
    pub async fn create_open_id_connect_provider(&self, provider: &NewProvider) -> Outcome<String> {
        let call = Call::new("CreateOpenIDConnectProvider")
            .with("Url", &provider.url)
            .with_list("ClientIDList", &provider.audiences)
            .with_list("ThumbprintList", &provider.thumbprints)
            .with_tags(&provider.tags);
        self.ask(Api::Iam, call, |result| result.text("OpenIDConnectProviderArn")).await
    }

    /// A provider.
    pub async fn get_open_id_connect_provider(&self, arn: &str) -> Outcome<Provider> {
        let call = Call::new("GetOpenIDConnectProvider").with("OpenIDConnectProviderArn", arn);
        self.ask(Api::Iam, call, answers::provider).await
    }

    /// Deletes a provider: tokens of its issuer are no longer accepted.
    pub async fn delete_open_id_connect_provider(&self, arn: &str) -> Outcome<()> {
        let call = Call::new("DeleteOpenIDConnectProvider").with("OpenIDConnectProviderArn", arn);
        self.act(Api::Iam, call).await
    }
}
