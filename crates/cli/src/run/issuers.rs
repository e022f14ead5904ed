//! The documents of issuers, for the embedded STS: those of this server without a network.

use bytes::Bytes;
use http::Request;
use interlock_apiserver::{Identity, Server};
use interlock_iam::embedded::{Fetched, HttpKeys, Keys};
use kube::Client;

/// Reads documents of this server as anybody may read them, and all others over HTTPS.
pub(crate) struct Issuers {
    anybody: Client,
    /// What the issuers of this server begin with.
    url: String,
    others: HttpKeys,
}

impl Issuers {
    pub(crate) fn new(server: &Server, url: &str, others: HttpKeys) -> Issuers {
        let anybody = Client::new(server.service(Identity::anonymous()), "default");
        Issuers { anybody, url: url.trim_end_matches('/').to_owned(), others }
    }

    /// The path at this server, if a URL is one of it.
    fn path<'a>(&self, url: &'a str) -> Option<&'a str> {
        url.strip_prefix(&self.url).filter(|path| path.starts_with("/issuers/"))
    }

    async fn own(&self, path: &str) -> Result<Bytes, String> {
        let request = Request::get(path).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let text = self.anybody.request_text(request).await;
        text.map(Bytes::from).map_err(|error| format!("{path}: {error}"))
    }
}

impl Keys for Issuers {
    fn fetch<'a>(&'a self, url: &'a str) -> Fetched<'a> {
        match self.path(url) {
            Some(path) => Box::pin(self.own(path)),
            None => self.others.fetch(url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[tokio::test]
    async fn the_documents_of_this_server_are_read_without_a_network() {
        let server = Server::in_memory().await.unwrap();
        // Nothing listens there.
        let url = "https://127.0.0.1:1";
        server.reached_at(url);
        let others = HttpKeys::new(&[]).unwrap();
        let issuers = Issuers::new(&server, url, others);
        let issuer = format!("{url}/issuers/root");
        let read = async |url: String| -> Value {
            serde_json::from_slice(&issuers.fetch(&url).await.unwrap()).unwrap()
        };
        let document = read(format!("{issuer}/.well-known/openid-configuration")).await;
        assert_eq!(document["issuer"], issuer);
        let keys = read(document["jwks_uri"].as_str().unwrap().to_owned()).await;
        assert_eq!(keys["keys"][0]["alg"], "ES256");
        // Another path of the same server is not for whoever verifies tokens.
        assert!(issuers.fetch(&format!("{url}/api/v1/secrets")).await.is_err());
        assert!(issuers.fetch(&format!("{url}/issuers/nobody/x")).await.is_err());
    }
}
