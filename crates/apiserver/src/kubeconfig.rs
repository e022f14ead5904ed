//! The admin's kubeconfig: one context for each logical cluster, for people and `kubectl`.

use crate::access::certificates::CertificateAndKey;
use crate::access::private_file;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// The name of the hub's context.
pub const ROOT: &str = "root";
const USER: &str = "interlock-admin";

/// What the kubeconfig says.
#[derive(Debug, Clone)]
pub struct Kubeconfig<'a> {
    /// Where the hub is: `https://127.0.0.1:6443`, without a slash at the end.
    pub server: &'a str,
    /// What clients must trust, as PEM.
    pub authority_pem: &'a str,
    /// Who they are.
    pub admin: &'a CertificateAndKey,
    /// The names of the logical clusters beside the hub.
    pub clusters: &'a [String],
}

impl Kubeconfig<'_> {
    /// Writes the file, readable by its owner only. It is ours alone and written whole, but the
    /// context that was chosen in it stays chosen. A file that somebody else wrote is left alone.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if is_somebody_elses(path)? {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the file is there, and was not written by interlock",
            ));
        }
        let old = private_file::read(path)?;
        let chosen = old.as_deref().and_then(current_context);
        let text = self.text(chosen.as_deref().unwrap_or(ROOT));
        if old.as_deref() == Some(text.as_str()) {
            return Ok(());
        }
        private_file::replace(path, text.as_bytes())
    }

    /// The file's text, with this context chosen if there is one of the name.
    pub fn text(&self, chosen: &str) -> String {
        let mut names: Vec<&str> = self.clusters.iter().map(String::as_str).collect();
        names.retain(|name| *name != ROOT);
        names.sort_unstable();
        names.dedup();
        names.insert(0, ROOT);
        let chosen = if names.contains(&chosen) { chosen } else { ROOT };
        let authority = STANDARD.encode(self.authority_pem);
        let mut text = "apiVersion: v1\nkind: Config\n".to_owned();
        add(&mut text, format_args!("current-context: {}", scalar(chosen)));
        text.push_str("clusters:\n");
        for name in &names {
            let server = match *name {
                ROOT => self.server.to_owned(),
                name => format!("{}/clusters/{name}", self.server),
            };
            add(&mut text, format_args!("- name: {}", scalar(name)));
            text.push_str("  cluster:\n");
            add(&mut text, format_args!("    server: {}", scalar(&server)));
            add(&mut text, format_args!("    certificate-authority-data: {authority}"));
        }
        text.push_str("contexts:\n");
        for name in &names {
            add(&mut text, format_args!("- name: {}", scalar(name)));
            text.push_str("  context:\n");
            add(&mut text, format_args!("    cluster: {}", scalar(name)));
            add(&mut text, format_args!("    user: {USER}"));
        }
        add(&mut text, format_args!("users:\n- name: {USER}\n  user:"));
        let certificate = STANDARD.encode(&self.admin.certificate_pem);
        add(&mut text, format_args!("    client-certificate-data: {certificate}"));
        let key = STANDARD.encode(&self.admin.key_pem);
        add(&mut text, format_args!("    client-key-data: {key}"));
        text
    }
}

fn add(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String takes everything");
}

/// A YAML scalar: plain where that can mean nothing else than the text, else in quotes, as JSON
/// writes it.
fn scalar(text: &str) -> String {
    let begins_plain = text.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-./_".contains(letter);
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_word = words.contains(&text.to_ascii_lowercase().as_str());
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let is_url = scheme == "https" && rest.chars().all(|letter| is_plain(letter) || letter == ':');
    let is_name = begins_plain && text.chars().all(is_plain) && !is_word;
    if is_name || (is_url && !rest.ends_with(':')) {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

/// Whether there is a file that we did not write. In ours is our user, also after `kubectl config` has
/// rewritten it.
fn is_somebody_elses(path: &Path) -> io::Result<bool> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let ours = format!("name: {USER}");
    let text = String::from_utf8_lossy(&bytes);
    let is_ours = text.lines().any(|line| line.trim_start_matches([' ', '-']) == ours);
    Ok(!text.trim().is_empty() && !is_ours)
}

/// The chosen context of a file that we wrote, or that `kubectl config use-context` has rewritten.
fn current_context(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("current-context:"))?.trim();
    let value = match value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(quoted) => quoted.replace("''", "'"),
        None if value.starts_with('"') => serde_json::from_str(value).ok()?,
        None => value.to_owned(),
    };
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn admin() -> CertificateAndKey {
        CertificateAndKey { certificate_pem: "CERT".into(), key_pem: "KEY".into() }
    }

    fn text(clusters: &[&str], chosen: &str) -> String {
        let clusters: Vec<String> = clusters.iter().map(|name| (*name).to_owned()).collect();
        let admin = admin();
        Kubeconfig {
            server: "https://127.0.0.1:6443",
            authority_pem: "CA",
            admin: &admin,
            clusters: &clusters,
        }
        .text(chosen)
    }

    #[test]
    fn each_cluster_has_a_context_and_the_hub_comes_first() {
        assert_eq!(
            text(&["team-b", "on", "root"], "team-b"),
            r#"apiVersion: v1
kind: Config
current-context: team-b
clusters:
- name: root
  cluster:
    server: https://127.0.0.1:6443
    certificate-authority-data: Q0E=
- name: "on"
  cluster:
    server: https://127.0.0.1:6443/clusters/on
    certificate-authority-data: Q0E=
- name: team-b
  cluster:
    server: https://127.0.0.1:6443/clusters/team-b
    certificate-authority-data: Q0E=
contexts:
- name: root
  context:
    cluster: root
    user: interlock-admin
- name: "on"
  context:
    cluster: "on"
    user: interlock-admin
- name: team-b
  context:
    cluster: team-b
    user: interlock-admin
users:
- name: interlock-admin
  user:
    client-certificate-data: Q0VSVA==
    client-key-data: S0VZ
"#
        );
    }

    #[test]
    fn names_that_yaml_would_read_as_something_else_are_quoted() {
        for (name, written) in [
            ("team-a", "team-a"),
            ("1e3", "\"1e3\""),
            ("007", "\"007\""),
            ("No", "\"No\""),
            ("null", "\"null\""),
            ("a: b", "\"a: b\""),
            ("-a", "\"-a\""),
            ("", "\"\""),
            ("https://[::1]:6443", "\"https://[::1]:6443\""),
            ("https://hub.example.com:6443/clusters/a", "https://hub.example.com:6443/clusters/a"),
        ] {
            assert_eq!(scalar(name), written);
        }
    }

    #[test]
    fn the_chosen_context_stays_chosen_while_it_exists() {
        assert!(text(&[], "gone").contains("current-context: root\n"));
        for (line, read) in [
            ("current-context: a", Some("a")),
            ("current-context: \"on\"", Some("on")),
            ("current-context: '1''2'", Some("1'2")),
            ("current-context: \"broken", None),
            ("current-context:", None),
            ("other: x", None),
        ] {
            assert_eq!(current_context(&format!("kind: Config\n{line}\n")).as_deref(), read);
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("admin.kubeconfig");
        let ours = "current-context: team-a\nusers:\n- name: interlock-admin\n";
        std::fs::write(&path, ours).expect("writable");
        let (admin, clusters) = (admin(), ["team-a".to_owned()]);
        let config = Kubeconfig {
            server: "https://h:1",
            authority_pem: "CA",
            admin: &admin,
            clusters: &clusters,
        };
        config.write(&path).expect("writable");
        config.write(&path).expect("writable");
        let written = std::fs::read_to_string(&path).expect("there");
        assert!(written.contains("current-context: team-a\n"));
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn the_key_is_not_printed() {
        let admin = admin();
        let config = Kubeconfig { server: "s", authority_pem: "CA", admin: &admin, clusters: &[] };
        assert!(!format!("{config:?}").contains("KEY"));
    }

    #[test]
    fn a_file_that_somebody_else_wrote_is_left_alone() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("config");
        let admin = admin();
        let config =
            Kubeconfig { server: "https://h:1", authority_pem: "CA", admin: &admin, clusters: &[] };
        for theirs in [&b"kind: Config\nusers:\n- name: kind-kind\n"[..], b"\xff\xfe garbage"] {
            std::fs::write(&path, theirs).expect("writable");
            let refused = config.write(&path).expect_err("it is not ours");
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(std::fs::read(&path).expect("there"), theirs);
        }
        std::fs::write(&path, "\n").expect("writable");
        config.write(&path).expect("an empty file is nobody's");
    }
}
