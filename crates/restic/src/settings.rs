//! Where a repository is and how it is opened, from the keys of a Secret.

use crate::failure::{Failure, Reason};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The keys that are read. Whatever else the Secret has is without effect.
pub const KEYS: &[&str] = &[
    "RESTIC_REPOSITORY",
    "RESTIC_PASSWORD",
    "RESTIC_COMPRESSION",
    "RESTIC_PACK_SIZE",
    "RESTIC_READ_CONCURRENCY",
    "RESTIC_REST_USERNAME",
    "RESTIC_REST_PASSWORD",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_DEFAULT_REGION",
];

/// Where a repository is and how it is opened. Nobody sees a secret by printing it.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    pub(crate) place: RepositoryPlace,
    pub(crate) password: Hidden,
    pub(crate) compression: Compression,
    /// In MiB, as restic counts it.
    pub(crate) pack_size: u32,
    pub(crate) read_concurrency: Option<usize>,
    without_effect: Vec<String>,
}

/// A value that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hidden(pub(crate) String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where the files of a repository are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RepositoryPlace {
    Local(PathBuf),
    Rest(RestPlace),
    S3(S3Place),
}

/// A server that speaks restic's REST protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RestPlace {
    /// With a slash at its end, without user and password.
    pub(crate) url: String,
    pub(crate) login: Option<(Hidden, Hidden)>,
    /// A certificate authority, in PEM.
    pub(crate) authority: Option<String>,
}

/// A bucket, addressed by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct S3Place {
    /// Scheme and host, without a slash at its end.
    pub(crate) endpoint: String,
    pub(crate) bucket: String,
    /// With a slash at its end, or empty.
    pub(crate) prefix: String,
    pub(crate) region: String,
    pub(crate) access_key: Hidden,
    pub(crate) secret_key: Hidden,
    pub(crate) session_token: Option<Hidden>,
}

/// How hard blobs are pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Off,
    Auto,
    /// A level of zstd.
    Level(i32),
}

impl Settings {
    /// Reads the keys of a Secret, and a certificate authority in PEM that was found beside it.
    pub fn from_secret(
        keys: &BTreeMap<String, String>,
        authority: Option<&str>,
    ) -> Result<Self, Failure> {
        let keys = Keys(keys);
        let place = keys.place(authority)?;
        let password = Hidden(keys.required("RESTIC_PASSWORD")?.to_owned());
        let mut without_effect: Vec<String> =
            keys.0.keys().filter(|key| !KEYS.contains(&key.as_str())).cloned().collect();
        without_effect.sort();
        Ok(Settings {
            place,
            password,
            compression: keys.compression()?,
            pack_size: keys.number("RESTIC_PACK_SIZE", 4..=128)?.unwrap_or(16),
            read_concurrency: keys
                .number("RESTIC_READ_CONCURRENCY", 1..=64)?
                .and_then(|number| usize::try_from(number).ok()),
            without_effect,
        })
    }

    /// Keys of the Secret that nothing here reads, by name.
    pub fn keys_without_effect(&self) -> &[String] {
        &self.without_effect
    }

    /// Where the repository is, as one would tell a person: without user and password.
    pub fn location(&self) -> String {
        match &self.place {
            RepositoryPlace::Local(path) => path.display().to_string(),
            RepositoryPlace::Rest(rest) => format!("rest:{}", rest.url),
            RepositoryPlace::S3(s3) => {
                let path = format!("{}/{}", s3.bucket, s3.prefix);
                format!("s3:{}/{}", s3.endpoint, path.trim_end_matches('/'))
            }
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("location", &self.location()).finish_non_exhaustive()
    }
}

struct Keys<'a>(&'a BTreeMap<String, String>);

impl Keys<'_> {
    fn optional(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn required(&self, key: &str) -> Result<&str, Failure> {
        self.optional(key).ok_or_else(|| {
            Failure::new(
                Reason::SecretIncomplete,
                format!("the Secret has no {key}: add it, with a value that is not empty"),
            )
        })
    }

    fn number(
        &self,
        key: &str,
        allowed: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, Failure> {
        let Some(text) = self.optional(key) else { return Ok(None) };
        match text.trim().parse() {
            Ok(number) if allowed.contains(&number) => Ok(Some(number)),
            _ => Err(Failure::new(
                Reason::SecretIncomplete,
                format!(
                    "{key} in the Secret must be a whole number from {} to {}",
                    allowed.start(),
                    allowed.end()
                ),
            )),
        }
    }

    fn compression(&self) -> Result<Compression, Failure> {
        match self.optional("RESTIC_COMPRESSION") {
            None | Some("auto") => Ok(Compression::Auto),
            Some("off") => Ok(Compression::Off),
            Some("fastest") => Ok(Compression::Level(1)),
            Some("better") => Ok(Compression::Level(7)),
            Some("max") => Ok(Compression::Level(11)),
            Some(_) => Err(Failure::new(
                Reason::SecretIncomplete,
                "RESTIC_COMPRESSION in the Secret must be auto, off, fastest, better or max",
            )),
        }
    }

    fn place(&self, authority: Option<&str>) -> Result<RepositoryPlace, Failure> {
        let repository = self.required("RESTIC_REPOSITORY")?.trim();
        if let Some(url) = repository.strip_prefix("rest:") {
            return self.rest(url, authority).map(RepositoryPlace::Rest);
        }
        if authority.is_some() {
            return Err(not_supported(
                "a certificate authority of its own works with rest: only; remove customCA",
            ));
        }
        if let Some(address) = repository.strip_prefix("s3:") {
            return self.s3(address).map(RepositoryPlace::S3);
        }
        let path = repository.strip_prefix("local:").unwrap_or(repository);
        if path.starts_with('/') {
            return Ok(RepositoryPlace::Local(PathBuf::from(path)));
        }
        // An address may have a password in it, so only what is before the colon is repeated.
        match repository.split_once(':') {
            Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) => {
                Err(not_supported(&format!(
                    "repositories of the sort {scheme}: are not supported; use an absolute path, \
                     local:, rest: or s3:"
                )))
            }
            _ => Err(not_supported(
                "RESTIC_REPOSITORY must be an absolute path, or begin with local:, rest: or s3:",
            )),
        }
    }

    fn rest(&self, url: &str, authority: Option<&str>) -> Result<RestPlace, Failure> {
        let wrong = || not_supported("after rest: comes an address with http:// or https://");
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        if !matches!(scheme, "http" | "https") || rest.is_empty() {
            return Err(wrong());
        }
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (in_url, host) = match host.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, host),
        };
        if host.is_empty() {
            return Err(wrong());
        }
        let in_url = in_url.map(|login| {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            (percent_decoded(user), percent_decoded(password))
        });
        let in_keys = self.optional("RESTIC_REST_USERNAME").map(|user| {
            let password = self.optional("RESTIC_REST_PASSWORD").unwrap_or_default();
            (user.to_owned(), password.to_owned())
        });
        let path = path.trim_end_matches('/');
        let slash = if path.is_empty() { "" } else { "/" };
        Ok(RestPlace {
            url: format!("{scheme}://{host}/{path}{slash}"),
            login: in_url.or(in_keys).map(|(user, password)| (Hidden(user), Hidden(password))),
            authority: authority.map(str::to_owned),
        })
    }

    fn s3(&self, address: &str) -> Result<S3Place, Failure> {
        let wrong = || {
            not_supported("after s3: comes host/bucket/path, with or without http:// or https://")
        };
        let (scheme, rest) = match address.split_once("://") {
            Some(("http", rest)) => ("http", rest),
            Some(("https", rest)) => ("https", rest),
            Some(_) => return Err(wrong()),
            None => ("https", address.trim_start_matches('/')),
        };
        let mut parts = rest.splitn(3, '/');
        let host = parts.next().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let bucket = parts.next().filter(|bucket| !bucket.is_empty()).ok_or_else(wrong)?;
        if host.contains('@') {
            return Err(not_supported(
                "an s3: address takes no user; use AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            ));
        }
        let prefix = parts.next().unwrap_or_default().trim_matches('/');
        let slash = if prefix.is_empty() { "" } else { "/" };
        let region = self.optional("AWS_DEFAULT_REGION");
        Ok(S3Place {
            endpoint: format!("{scheme}://{host}"),
            bucket: bucket.to_owned(),
            prefix: format!("{prefix}{slash}"),
            region: region.or_else(|| region_of(host)).unwrap_or("us-east-1").to_owned(),
            access_key: Hidden(self.required("AWS_ACCESS_KEY_ID")?.to_owned()),
            secret_key: Hidden(self.required("AWS_SECRET_ACCESS_KEY")?.to_owned()),
            session_token: self.optional("AWS_SESSION_TOKEN").map(|token| Hidden(token.to_owned())),
        })
    }
}

/// The region in the name of one of Amazon's own hosts: `s3.eu-central-1.amazonaws.com`.
fn region_of(host: &str) -> Option<&str> {
    let region = host.strip_suffix(".amazonaws.com")?.strip_prefix("s3")?;
    let region = region.strip_prefix(['.', '-'])?;
    (!region.is_empty() && !region.contains('.')).then_some(region)
}

fn not_supported(message: &str) -> Failure {
    Failure::new(Reason::RepositoryNotSupported, message)
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let decoded = after
            .get(..2)
            .filter(|_| byte == b'%')
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(keys: &[(&str, &str)]) -> Result<Settings, Failure> {
        let keys = keys.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Settings::from_secret(&keys, None)
    }

    fn at(repository: &str) -> Result<Settings, Failure> {
        settings(&[
            ("RESTIC_REPOSITORY", repository),
            ("RESTIC_PASSWORD", "very secret"),
            ("AWS_ACCESS_KEY_ID", "key id"),
            ("AWS_SECRET_ACCESS_KEY", "key secret"),
        ])
    }

    #[test]
    fn a_missing_key_is_named() {
        let failure = settings(&[("RESTIC_REPOSITORY", "/repo")]).unwrap_err();
        assert_eq!(failure.reason, Reason::SecretIncomplete);
        assert!(failure.message.contains("RESTIC_PASSWORD"), "{failure}");
        let failure =
            settings(&[("RESTIC_REPOSITORY", "s3:host/bucket"), ("RESTIC_PASSWORD", "x")]);
        assert!(failure.unwrap_err().message.contains("AWS_ACCESS_KEY_ID"));
    }

    #[test]
    fn an_empty_password_is_a_missing_one() {
        let failure = settings(&[("RESTIC_REPOSITORY", "/repo"), ("RESTIC_PASSWORD", "")]);
        assert_eq!(failure.unwrap_err().reason, Reason::SecretIncomplete);
    }

    #[test]
    fn an_unknown_scheme_is_named_and_nothing_else_of_the_address() {
        for scheme in ["sftp", "swift", "rclone", "azure", "gs", "b2"] {
            let failure = at(&format!("{scheme}:user:hunter2@host/path")).unwrap_err();
            assert_eq!(failure.reason, Reason::RepositoryNotSupported);
            assert!(failure.message.contains(scheme), "{failure}");
            assert!(!failure.message.contains("hunter2"), "{failure}");
        }
    }

    #[test]
    fn a_relative_path_is_refused() {
        assert_eq!(at("some/folder").unwrap_err().reason, Reason::RepositoryNotSupported);
        assert_eq!(at("local:folder").unwrap_err().reason, Reason::RepositoryNotSupported);
    }

    #[test]
    fn paths_and_local_are_the_same() {
        assert_eq!(at("/some/folder").unwrap().place, at("local:/some/folder").unwrap().place);
    }

    #[test]
    fn the_login_of_a_rest_address_is_taken_out_of_it() {
        let settings = at("rest:https://me:p%40ss@host:8000/some/path").unwrap();
        let RepositoryPlace::Rest(rest) = &settings.place else { panic!("{:?}", settings.place) };
        assert_eq!(rest.url, "https://host:8000/some/path/");
        assert_eq!(rest.login, Some((Hidden("me".into()), Hidden("p@ss".into()))));
        assert_eq!(settings.location(), "rest:https://host:8000/some/path/");
    }

    #[test]
    fn s3_addresses_are_read_in_all_forms_that_restic_takes() {
        for (address, endpoint, prefix, region) in [
            (
                "s3:s3.eu-central-1.amazonaws.com/b/p/q",
                "https://s3.eu-central-1.amazonaws.com",
                "p/q/",
                "eu-central-1",
            ),
            ("s3:http://localhost:9000/b", "http://localhost:9000", "", "us-east-1"),
            ("s3:https://minio.example/b/p/", "https://minio.example", "p/", "us-east-1"),
            ("s3:s3.amazonaws.com/b", "https://s3.amazonaws.com", "", "us-east-1"),
        ] {
            let RepositoryPlace::S3(s3) = at(address).unwrap().place else { panic!("{address}") };
            assert_eq!((&*s3.endpoint, &*s3.prefix, &*s3.region), (endpoint, prefix, region));
            assert_eq!(s3.bucket, "b");
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        for repository in ["/repo", "rest:http://me:hunter2@host/", "s3:http://host/bucket"] {
            let settings = at(repository).unwrap();
            for text in
                [format!("{settings:?}"), format!("{:?}", settings.place), settings.location()]
            {
                for secret in ["very secret", "hunter2", "key id", "key secret"] {
                    assert!(!text.contains(secret), "{text}");
                }
            }
        }
    }

    #[test]
    fn numbers_out_of_range_and_unknown_words_are_refused() {
        for (key, value) in
            [("RESTIC_PACK_SIZE", "3"), ("RESTIC_PACK_SIZE", "x"), ("RESTIC_COMPRESSION", "most")]
        {
            let keys = [("RESTIC_REPOSITORY", "/r"), ("RESTIC_PASSWORD", "x"), (key, value)];
            let failure = settings(&keys).unwrap_err();
            assert!(failure.message.contains(key), "{failure}");
        }
    }

    #[test]
    fn keys_that_nothing_reads_are_named() {
        let keys = [("RESTIC_REPOSITORY", "/r"), ("RESTIC_PASSWORD", "x"), ("B2_ACCOUNT_ID", "y")];
        assert_eq!(settings(&keys).unwrap().keys_without_effect(), ["B2_ACCOUNT_ID"]);
    }

    #[test]
    fn a_certificate_authority_goes_with_rest_only() {
        let keys = BTreeMap::from([
            ("RESTIC_REPOSITORY".to_owned(), "/repo".to_owned()),
            ("RESTIC_PASSWORD".to_owned(), "x".to_owned()),
        ]);
        let failure = Settings::from_secret(&keys, Some("PEM")).unwrap_err();
        assert_eq!(failure.reason, Reason::RepositoryNotSupported);
    }
}
