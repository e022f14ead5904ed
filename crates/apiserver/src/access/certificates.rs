//! The certificate authority: makes the serving and admin certificates, renews them, and signs for
//! others.
//!
//! Everything is in `<data directory>/pki`. A certificate file is written after its key, so a key
//! without a certificate is what a crash left behind and is made again; nobody can have seen its
//! certificate.

mod encoding;
mod handshake;
mod on_disk;
mod presented;
mod signer;

use self::handshake::{HandshakeError, Serving};
use self::on_disk::{Facts, read_pair, write_pair};
use self::signer::{ClientSubject, Signer};
use super::identity::{Identity, MASTERS};
use super::private_file;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A certificate with less life than this is made again: a month, so that a stopped laptop does not
/// wake up to an expired one.
const RENEW_SECONDS: i64 = 30 * 86_400;
/// The user of the admin certificate.
pub const ADMIN: &str = "interlock-admin";

/// Why a certificate could not be made, read or used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file could not be read or written.
    #[error("cannot use the certificate file {path}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file holds no certificate or key.
    #[error("{path} holds no usable {what}")]
    Content {
        /// Which file.
        path: PathBuf,
        /// What should be in it.
        what: &'static str,
    },
    /// The authority's certificate and key do not belong together, or the key is gone.
    #[error("the authority's certificate and key in {path} do not belong together")]
    AuthorityMismatch {
        /// The directory of both.
        path: PathBuf,
    },
    /// The authority has run out: every client must be informed about a new one, which we do not do
    /// unasked.
    #[error("the certificate authority in {path} has expired")]
    AuthorityExpired {
        /// The authority's certificate.
        path: PathBuf,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate for {subject}")]
    Make {
        /// For whom.
        subject: String,
        /// Why.
        source: rcgen::Error,
    },
    /// TLS cannot be set up with these certificates.
    #[error("cannot set up TLS")]
    Tls {
        /// Why.
        source: HandshakeError,
    },
    /// A certificate was asked for with a name that cannot stand in one.
    #[error("{what} cannot stand in a certificate")]
    BadName {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The bytes are no certificate.
    #[error("the certificate cannot be read")]
    Unreadable,
    /// The certificate names nobody.
    #[error("the certificate has no common name")]
    NoCommonName,
    /// The certificate names a logical cluster in a way that could be misread.
    #[error("the certificate does not name its logical cluster clearly")]
    UnclearCluster,
}

/// What the certificates are to be.
#[derive(Debug, Clone, Default)]
pub struct CertificateOptions {
    /// Names and addresses under which clients reach the server, beside those it always has.
    pub names: Vec<String>,
    /// A serving certificate from somewhere else.
    pub serving: Option<ServingFiles>,
    /// Authorities whose client certificates are taken too, as PEM files.
    pub client_authorities: Vec<PathBuf>,
}

/// A serving certificate from somewhere else, as PEM files. They are read again by
/// [`Authority::renew`].
#[derive(Debug, Clone)]
pub struct ServingFiles {
    /// The certificate and those between it and its authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authority that clients must trust; without it, clients are informed about the file's own
    /// certificates.
    pub authority: Option<PathBuf>,
}

/// A certificate and its key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateAndKey {
    /// The certificate.
    pub certificate_pem: String,
    /// The key. A secret.
    pub key_pem: String,
}

impl fmt::Debug for CertificateAndKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CertificateAndKey(..)")
    }
}

/// What a renewal made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewed {
    /// The serving certificate; new connections get it at once.
    pub serving: bool,
    /// The admin certificate; the kubeconfig must be written again.
    pub admin: bool,
}

/// The certificate authority of one data directory.
pub struct Authority {
    directory: PathBuf,
    options: CertificateOptions,
    signer: Signer,
    serving: Arc<Serving>,
    admin: Mutex<CertificateAndKey>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authority").field("directory", &self.directory).finish()
    }
}

impl Authority {
    /// The authority in `<data directory>/pki`, made on the first start, with serving and admin
    /// certificates that have life left and the names that are wanted.
    pub fn load_or_create(
        data_directory: &Path,
        options: CertificateOptions,
        now_seconds: i64,
    ) -> Result<Self, CertificateError> {
        let directory = data_directory.join("pki");
        private_file::make_directory(&directory).map_err(in_file(&directory))?;
        let signer = Signer::load_or_create(&directory, now_seconds)?;
        let (serving, _) = serving_certificate(&directory, &options, &signer, now_seconds)?;
        let (admin, _) = admin_certificate(&directory, &signer, now_seconds)?;
        Ok(Authority {
            directory,
            options,
            signer,
            serving: Arc::new(Serving::new(serving)),
            admin: Mutex::new(admin),
        })
    }

    /// Makes what is near its end anew, and reads given files again. To be called now and then,
    /// once an hour say; open connections go on.
    pub fn renew(&self, now_seconds: i64) -> Result<Renewed, CertificateError> {
        let (serving, _) =
            serving_certificate(&self.directory, &self.options, &self.signer, now_seconds)?;
        let is_new = serving.cert != self.serving.current().cert;
        if is_new {
            self.serving.replace(serving);
        }
        let (admin, admin_is_new) = admin_certificate(&self.directory, &self.signer, now_seconds)?;
        if admin_is_new {
            *self.admin.lock().unwrap_or_else(PoisonError::into_inner) = admin;
        }
        Ok(Renewed { serving: is_new, admin: admin_is_new })
    }

    /// The admin's certificate, for the kubeconfig.
    pub fn admin(&self) -> CertificateAndKey {
        self.admin.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The directory of keys and certificates.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What clients must trust to reach the server, for kubeconfigs and `kube-root-ca.crt`.
    pub fn server_authority_pem(&self) -> Result<String, CertificateError> {
        let Some(files) = &self.options.serving else {
            return Ok(self.signer.certificate_pem.clone());
        };
        let path = files.authority.as_ref().unwrap_or(&files.certificate);
        std::fs::read_to_string(path).map_err(in_file(path))
    }

    /// A client certificate for a user, good at the hub or in one logical cluster only.
    pub fn client_certificate(
        &self,
        user: &str,
        groups: &[String],
        cluster_id: Option<&str>,
        now_seconds: i64,
    ) -> Result<CertificateAndKey, CertificateError> {
        self.signer.client(&ClientSubject { user, groups, cluster_id }, now_seconds)
    }

    /// The TLS configuration of the server. It follows renewals by itself.
    pub fn server_config(&self) -> Result<Arc<rustls::ServerConfig>, CertificateError> {
        let mut authorities = vec![self.signer.certificate_der.clone()];
        for path in &self.options.client_authorities {
            let pem = std::fs::read(path).map_err(in_file(path))?;
            authorities.extend(certificates_in(path, &pem)?);
        }
        handshake::server_config(Arc::clone(&self.serving), &authorities)
            .map(Arc::new)
            .map_err(|source| CertificateError::Tls { source })
    }
}

/// The identity that a client's certificate names. TLS has checked its signature and time.
pub fn identity_of(certificate_der: &[u8]) -> Result<Identity, CertificateError> {
    presented::identity_of(certificate_der)
}

fn in_file(path: &Path) -> impl FnOnce(io::Error) -> CertificateError + use<> {
    let path = path.to_owned();
    move |source| CertificateError::File { path, source }
}

fn content(path: &Path, what: &'static str) -> CertificateError {
    CertificateError::Content { path: path.to_owned(), what }
}

fn certificates_in(
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|_| content(path, "certificate"))?;
    if all.is_empty() {
        return Err(content(path, "certificate"));
    }
    Ok(all)
}

/// The names that a serving certificate has: where everybody looks, our host, and what was asked
/// for.
fn wanted_names(options: &CertificateOptions) -> Result<BTreeSet<String>, CertificateError> {
    let mut names: BTreeSet<String> = [
        "localhost",
        "127.0.0.1",
        "::1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    .map(str::to_owned)
    .into();
    names.extend(host_name());
    for name in &options.names {
        if let Ok(address) = name.parse::<IpAddr>() {
            names.insert(address.to_string());
            continue;
        }
        if !is_host_name(name.strip_prefix("*.").unwrap_or(name)) {
            return Err(CertificateError::BadName { what: "a serving name that is no host name" });
        }
        names.insert(name.to_ascii_lowercase());
    }
    Ok(names)
}

fn is_host_name(name: &str) -> bool {
    (1..=253).contains(&name.len())
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
}

/// The host's own name, where the system tells it in a file; nothing else needs it.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"))
        .ok()?;
    let name = name.trim().to_ascii_lowercase();
    is_host_name(&name).then_some(name)
}

/// The serving certificate, and whether it was made just now.
fn serving_certificate(
    directory: &Path,
    options: &CertificateOptions,
    signer: &Signer,
    now_seconds: i64,
) -> Result<(CertifiedKey, bool), CertificateError> {
    if let Some(files) = &options.serving {
        return Ok((given_serving_certificate(files)?, false));
    }
    let names = wanted_names(options)?;
    let on_disk = read_pair(directory, "serving")?.filter(|pair| {
        let facts = Facts::of_pem(&pair.certificate_pem);
        facts.is_some_and(|facts| {
            lasts(&facts, now_seconds)
                && names.is_subset(&facts.names)
                && facts.issuer == signer.name
        })
    });
    if let Some(pair) = on_disk {
        return Ok((certified(&directory.join("serving.crt"), &pair)?, false));
    }
    let pair = signer.serving(names, now_seconds)?;
    write_pair(directory, "serving", &pair)?;
    Ok((certified(&directory.join("serving.crt"), &pair)?, true))
}

fn lasts(facts: &Facts, now_seconds: i64) -> bool {
    facts.not_after - now_seconds > RENEW_SECONDS
}

fn given_serving_certificate(files: &ServingFiles) -> Result<CertifiedKey, CertificateError> {
    let certificate = std::fs::read(&files.certificate).map_err(in_file(&files.certificate))?;
    let key = std::fs::read(&files.key).map_err(in_file(&files.key))?;
    let chain = certificates_in(&files.certificate, &certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| content(&files.key, "key"))?;
    certified_key(chain, key)
}

fn certified(path: &Path, pair: &CertificateAndKey) -> Result<CertifiedKey, CertificateError> {
    let chain = certificates_in(path, pair.certificate_pem.as_bytes())?;
    let key =
        PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).map_err(|_| content(path, "key"))?;
    certified_key(chain, key)
}

fn certified_key(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, CertificateError> {
    CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())
        .map_err(|source| CertificateError::Tls { source: source.into() })
}

/// The admin's certificate, and whether it was made just now.
fn admin_certificate(
    directory: &Path,
    signer: &Signer,
    now_seconds: i64,
) -> Result<(CertificateAndKey, bool), CertificateError> {
    let on_disk = read_pair(directory, "admin")?.filter(|pair| {
        let facts = Facts::of_pem(&pair.certificate_pem);
        facts.is_some_and(|facts| lasts(&facts, now_seconds) && facts.issuer == signer.name)
    });
    if let Some(pair) = on_disk {
        return Ok((pair, false));
    }
    let groups = [MASTERS.to_owned()];
    let subject = ClientSubject { user: ADMIN, groups: &groups, cluster_id: None };
    let pair = signer.client(&subject, now_seconds)?;
    write_pair(directory, "admin", &pair)?;
    Ok((pair, true))
}

#[cfg(test)]
mod tests;
