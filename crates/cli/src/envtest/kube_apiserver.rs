//! The kube-apiserver of envtest: `interlock serve`, with the options of kube-apiserver.

use super::{etcd, flags::Flags};
use crate::{output, serve};
use clap::Parser;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
Serves the Kubernetes API for envtest; `interlock envtest assets` wrote this program.

      --bind-address ADDRESS          The address to listen on
      --secure-port PORT              The port to listen on
      --cert-dir DIR                  Directory with apiserver.crt and apiserver.key
      --tls-cert-file FILE            The certificate, instead of the one in --cert-dir
      --tls-private-key-file FILE     Its key
      --client-ca-file FILE           Authorities whose client certificates are accepted
      --token-auth-file FILE          Static tokens
      --etcd-servers URL              The etcd that envtest started

All other options of kube-apiserver have no effect; those that would change what is served are named in the log.
";

/// Options of kube-apiserver that change nothing that a test of a controller sees here, and that envtest sets itself or
/// its users often do.
const WITHOUT_EFFECT: &[&str] = &[
    "advertise-address",
    "allow-privileged",
    "disable-admission-plugins",
    "etcd-prefix",
    "insecure-port",
    "service-account-issuer",
    "service-account-key-file",
    "service-account-signing-key-file",
    "service-cluster-ip-range",
    "v",
    "vmodule",
];

/// Options that say how to serve.
const KNOWN: &[&str] = &[
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "etcd-servers",
    "secure-port",
    "tls-cert-file",
    "tls-private-key-file",
    "token-auth-file",
];

/// The options of `interlock serve`, read as from the command line.
#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: serve::Args,
}

/// Serves until SIGTERM or SIGINT.
pub(super) fn run(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let flags = Flags::read(words).map_err(anyhow::Error::msg)?;
    if flags.has("help") || flags.has("h") {
        output::say(HELP)?;
        return Ok(ExitCode::SUCCESS);
    }
    if flags.has("version") {
        output::say("Kubernetes v1.35.0+interlock\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    for name in without_effect(&flags) {
        output::complain(&format!("warning: --{name} has no effect on Interlock's API server"));
    }
    let mut words = translated(&flags, Path::is_file);
    if let Some(urls) = flags.last("etcd-servers") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let directory = runtime.block_on(etcd::directory_of(urls))?;
        words.extend(["--data-dir".into(), directory.into_os_string()]);
    }
    let line = Line::try_parse_from([OsString::from("serve")].into_iter().chain(words))?;
    serve::run(&line.args)
}

/// The options that a test may rely on, and that do nothing here.
fn without_effect(flags: &Flags) -> Vec<&str> {
    let is_quiet = |name: &str| {
        let is_rbac = |modes: &str| modes.split(',').any(|mode| mode == "RBAC");
        KNOWN.contains(&name)
            || WITHOUT_EFFECT.contains(&name)
            || name == "authorization-mode" && flags.last(name).is_some_and(is_rbac)
    };
    flags.names().filter(|name| !is_quiet(name)).collect()
}

/// The words of `interlock serve` that mean the same.
fn translated(flags: &Flags, is_file: impl Fn(&Path) -> bool) -> Vec<OsString> {
    let address = flags.last("bind-address").unwrap_or("0.0.0.0");
    let port = flags.last("secure-port").unwrap_or("6443");
    let listen = if address.contains(':') {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    };
    let mut words: Vec<OsString> = vec!["--listen".into(), listen.into()];
    let in_directory = |name: &str| {
        let file = Path::new(flags.last("cert-dir")?).join(name);
        is_file(&file).then(|| file.into_os_string())
    };
    let given = |name: &str| flags.last(name).map(OsString::from);
    let certificate = given("tls-cert-file").or_else(|| in_directory("apiserver.crt"));
    let key = given("tls-private-key-file").or_else(|| in_directory("apiserver.key"));
    for (name, value) in [
        ("--tls-cert-file", certificate),
        ("--tls-private-key-file", key),
        ("--client-ca-file", given("client-ca-file")),
        ("--token-file", given("token-auth-file")),
    ] {
        words.extend(value.into_iter().flat_map(|value| [OsString::from(name), value]));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Flags {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Flags::read(&words).expect("they are options")
    }

    fn served(line: &str) -> String {
        let words = translated(&flags(line), |file| file.starts_with("/certs"));
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// What envtest of controller-runtime 0.23 sets.
    const ENVTEST: &str = "--allow-privileged=true --authorization-mode=RBAC --bind-address=127.0.0.1 --cert-dir=/certs \
        --client-ca-file=/certs/client-cert-auth-ca.crt --disable-admission-plugins=ServiceAccount \
        --etcd-servers=http://127.0.0.1:33333 --secure-port=44444 --service-account-issuer=https://127.0.0.1:44444/ \
        --service-account-key-file=/certs/sa-signer.crt --service-account-signing-key-file=/certs/sa-signer.key \
        --service-cluster-ip-range=10.0.0.0/24";

    #[test]
    fn what_envtest_sets_is_understood() {
        assert_eq!(
            served(ENVTEST),
            "--listen 127.0.0.1:44444 --tls-cert-file /certs/apiserver.crt --tls-private-key-file \
             /certs/apiserver.key --client-ca-file /certs/client-cert-auth-ca.crt"
        );
        assert_eq!(without_effect(&flags(ENVTEST)), Vec::<&str>::new());
    }

    #[test]
    fn other_options_are_translated_or_named() {
        assert_eq!(
            served("--bind-address=::1 --secure-port=1 --cert-dir=/none --token-auth-file=/t"),
            "--listen [::1]:1 --token-file /t"
        );
        assert_eq!(
            served("--tls-cert-file=/a --tls-private-key-file=/b --cert-dir=/certs"),
            "--listen 0.0.0.0:6443 --tls-cert-file /a --tls-private-key-file /b"
        );
        let odd = flags("--authorization-mode=AlwaysAllow --feature-gates=A=true --v=4");
        assert_eq!(without_effect(&odd), ["authorization-mode", "feature-gates"]);
    }

    #[test]
    fn the_translation_is_a_command_line_of_serve() {
        let words = translated(&flags(ENVTEST), |_| true);
        let line = [OsString::from("serve")].into_iter().chain(words);
        Line::try_parse_from(line).expect("serve takes it");
    }

    #[test]
    fn the_help_says_what_envtest_looks_for() {
        // With this option envtest believes that it talks to a Kubernetes before 1.20.
        assert!(!HELP.contains("insecure-port"));
    }
}
