//! Where a webhook is, and whom it trusts: what `clientConfig` says.

use super::trust;
use crate::behaviour::read::{integer, is_set, text};
use ::http::Uri;
use rustls::ClientConfig;
use serde_json::Value;
use std::sync::Arc;

/// The port of HTTPS.
const HTTPS: u16 = 443;

/// Whom a webhook's configuration says to call.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) address: Result<Address, String>,
    pub(crate) tls: Result<Arc<ClientConfig>, String>,
}

/// Where a webhook is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The name that its certificate must have.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) path: String,
    /// The service that it is behind; none if the host is an ordinary one.
    pub(crate) service: Option<ServiceName>,
}

/// A service of the logical cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Address {
    /// Where the URL of a webhook leads.
    fn of_url(url: &str) -> Result<Address, String> {
        let uri: Uri =
            url.parse().map_err(|why| format!("the URL {url:?} cannot be read: {why}"))?;
        let host = uri.host().unwrap_or_default();
        // The brackets of an IPv6 address are not part of it.
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if uri.scheme_str() != Some("https") || host.is_empty() {
            return Err(format!("the URL {url:?} must be https://host[/path]"));
        }
        Ok(Address {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(HTTPS),
            path: cleaned(uri.path()),
            service: None,
        })
    }

    fn of_service(service: &Value) -> Address {
        let (namespace, name) = (text(service, "namespace"), text(service, "name"));
        let port = integer(service, "port").and_then(|port| u16::try_from(port).ok());
        let path = cleaned(text(service, "path"));
        Address {
            host: format!("{name}.{namespace}.svc"),
            port: port.unwrap_or(HTTPS),
            path,
            service: Some(ServiceName { namespace: namespace.to_owned(), name: name.to_owned() }),
        }
    }

    /// The host and, if it must be said, the port.
    pub(crate) fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == HTTPS && self.service.is_none() {
            return host;
        }
        format!("{host}:{}", self.port)
    }
}

/// A path as upstream calls it: one slash where there are several, none at the end, without `.` and `..`. Configurations
/// rely on it: those that envtest installs have two slashes at their beginning.
fn cleaned(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

impl Target {
    /// What `clientConfig` says.
    pub(crate) fn read(config: &Value) -> Target {
        let address = if is_set(config, "service") {
            Ok(Address::of_service(&config["service"]))
        } else {
            Address::of_url(text(config, "url"))
        };
        Target { address, tls: trust::tls(text(config, "caBundle")) }
    }

    /// What is called, for messages.
    pub(crate) fn shown(&self, timeout_seconds: u64) -> String {
        match &self.address {
            Ok(address) => {
                let (authority, path) = (address.authority(), &address.path);
                format!("Post \"https://{authority}{path}?timeout={timeout_seconds}s\"")
            }
            Err(_) => "Post".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_url_says_host_port_and_path() {
        let address = Address::of_url("https://[::1]:8443/a/b").expect("it is one");
        assert_eq!((&*address.host, address.port, &*address.path), ("::1", 8443, "/a/b"));
        assert_eq!(address.authority(), "[::1]:8443");
        let address = Address::of_url("https://hook.example.com").expect("it is one");
        assert_eq!((&*address.authority(), address.port), ("hook.example.com", 443));
        assert_eq!(address.path, "/");
        for url in ["http://example.com", "https://", "example.com", "", "https://exa mple"] {
            assert!(Address::of_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_service_is_known_by_its_name_in_the_cluster() {
        let address = Address::of_service(&json!({"namespace": "a", "name": "hook", "path": "x"}));
        assert_eq!((&*address.host, address.port, &*address.path), ("hook.a.svc", 443, "/x"));
        let address = Address::of_service(&json!({"namespace": "a", "name": "hook"}));
        assert_eq!(address.path, "/");
    }

    #[test]
    fn a_path_is_called_as_upstream_calls_it() {
        for (written, called) in [
            ("https://h//validate", "/validate"),
            ("https://h/a//b/", "/a/b"),
            ("https://h/a/./b/../c", "/a/c"),
            ("https://h/../a%2Fb", "/a%2Fb"),
            ("https://h//", "/"),
        ] {
            assert_eq!(Address::of_url(written).expect("it is one").path, called, "{written}");
        }
        let service = json!({"namespace": "a", "name": "hook", "path": "//x/"});
        assert_eq!(Address::of_service(&service).path, "/x");
    }
}
