//! Where the fleet is: which kubeconfig answers, and what to say when none does.

use anyhow::{Context, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where the hub is, and who asks.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "The fleet")]
pub(crate) struct Location {
    /// The kubeconfig of the hub [default: $KUBECONFIG, the data directory, ~/.kube/config, the service account of the pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// What the machine says about where to look.
#[derive(Debug, Clone, Default)]
struct Surroundings {
    kubeconfig: Option<OsString>,
    data_directory: Option<PathBuf>,
    home: Option<PathBuf>,
    /// Whether this is a pod, which has an account at the cluster that it runs in.
    is_pod: bool,
}

/// What a search came to.
enum Read {
    File(String, Box<Kubeconfig>),
    Pod,
}

/// A kubeconfig that was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// What was found, in words.
    pub(crate) source: String,
    /// How to reach the hub.
    pub(crate) config: kube::Config,
    /// The user of the kubeconfig.
    pub(crate) user: String,
}

impl Location {
    /// The fleet of this kubeconfig.
    pub(crate) fn of(kubeconfig: &Path) -> Location {
        Location { kubeconfig: Some(kubeconfig.to_owned()), context: None }
    }

    /// Finds the kubeconfig.
    pub(crate) async fn find(&self) -> anyhow::Result<Found> {
        let (source, file) = match self.read(&Surroundings::here())? {
            Read::File(source, file) => (source, *file),
            Read::Pod => return in_pod(),
        };
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        let chosen = self.context.as_ref().or(file.current_context.as_ref()).cloned();
        let Some(chosen) = chosen else {
            bail!("{source} has no current context: name one with --context{}", known(&file));
        };
        let context = file.contexts.iter().find(|context| context.name == chosen);
        let Some(context) = context else {
            bail!("{source} has no context `{chosen}`{}", known(&file));
        };
        let user = context.context.as_ref().and_then(|context| context.user.clone());
        let config = kube::Config::from_custom_kubeconfig(file, &options).await;
        let config = config.with_context(|| format!("cannot use {source}, context {chosen}"))?;
        Ok(Found { source, config, user: user.unwrap_or_default() })
    }

    fn read(&self, around: &Surroundings) -> anyhow::Result<Read> {
        let file = |(source, file)| Read::File(source, Box::new(file));
        if let Some(path) = &self.kubeconfig {
            return read_file(path, "--kubeconfig").map(file);
        }
        let listed = around.kubeconfig.as_ref().map(|paths| std::env::split_paths(paths));
        let listed: Vec<PathBuf> =
            listed.into_iter().flatten().filter(|path| !path.as_os_str().is_empty()).collect();
        if !listed.is_empty() {
            return read_listed(&listed).map(file);
        }
        let mut tried = vec!["$KUBECONFIG is not set".to_owned()];
        let data = around.data_directory.as_ref().map(|directory| directory.join("kubeconfig"));
        let home = around.home.as_ref().map(|home| home.join(".kube").join("config"));
        for path in data.iter().chain(&home) {
            if path.exists() {
                return read_file(path, "the kubeconfig").map(file);
            }
            tried.push(format!("{} does not exist", path.display()));
        }
        if around.is_pod {
            return Ok(Read::Pod);
        }
        bail!(
            "no fleet found: {}\nnext: interlock up, or name one with --kubeconfig FILE",
            tried.join(", ")
        )
    }
}

impl Surroundings {
    fn here() -> Self {
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()),
            data_directory: crate::serving::default_directory().ok(),
            home: std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
            is_pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
        }
    }
}

/// The cluster that this program runs in, as whoever its pod is.
fn in_pod() -> anyhow::Result<Found> {
    let source = "the service account of this pod".to_owned();
    let config = kube::Config::incluster().with_context(|| format!("cannot use {source}"))?;
    Ok(Found { user: source.clone(), source, config })
}

fn read_file(path: &Path, label: &str) -> anyhow::Result<(String, Kubeconfig)> {
    let source = format!("{label} {}", path.display());
    let file = Kubeconfig::read_from(path).with_context(|| format!("cannot read {source}"))?;
    Ok((source, file))
}

/// Several files are one, as `kubectl` reads them: what is said first counts, and a file that is
/// not there says nothing.
fn read_listed(paths: &[PathBuf]) -> anyhow::Result<(String, Kubeconfig)> {
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let source = format!("$KUBECONFIG {}", shown.join(":"));
    let mut whole: Option<Kubeconfig> = None;
    for path in paths.iter().filter(|path| path.exists()) {
        let (_, file) = read_file(path, "$KUBECONFIG")?;
        whole = Some(match whole {
            None => file,
            Some(whole) => {
                whole.merge(file).with_context(|| format!("cannot read {source} together"))?
            }
        });
    }
    match whole {
        Some(whole) => Ok((source, whole)),
        None => bail!(
            "no fleet found: {source} does not exist\n\
             next: interlock up, or name one with --kubeconfig FILE"
        ),
    }
}

fn known(file: &Kubeconfig) -> String {
    let names: Vec<&str> = file.contexts.iter().map(|context| context.name.as_str()).collect();
    match names.len() {
        0 => "; it has none".to_owned(),
        1..=12 => format!("; it has: {}", names.join(", ")),
        many => format!("; it has {many}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const FILE: &str = "apiVersion: v1\nkind: Config\ncurrent-context: CHOSEN\nclusters: []\n\
                        contexts: []\nusers: []\n";

    fn chosen(location: &Location, around: &Surroundings) -> Result<String, String> {
        match location.read(around).map_err(|error| format!("{error:#}"))? {
            Read::File(_, file) => Ok(file.current_context.unwrap_or_default()),
            Read::Pod => Ok("the pod".to_owned()),
        }
    }

    fn anywhere() -> Location {
        Location { kubeconfig: None, context: None }
    }

    struct Machine {
        directory: tempfile::TempDir,
    }

    impl Machine {
        fn with(files: &[&str]) -> Self {
            let directory = tempfile::tempdir().unwrap();
            for name in files {
                let path = directory.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, FILE.replace("CHOSEN", name)).unwrap();
            }
            Self { directory }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn around(&self, kubeconfig: &[&str]) -> Surroundings {
            let paths = kubeconfig.iter().map(|name| self.path(name));
            let paths = std::env::join_paths(paths).unwrap();
            Surroundings {
                kubeconfig: Some(paths).filter(|paths| !paths.is_empty()),
                data_directory: Some(self.path("data")),
                home: Some(self.path("home")),
                is_pod: false,
            }
        }
    }

    #[test]
    fn a_file_that_is_named_wins_over_everything() {
        let machine = Machine::with(&["named", "listed", "data/kubeconfig", "home/.kube/config"]);
        let location = Location { kubeconfig: Some(machine.path("named")), context: None };
        assert_eq!(chosen(&location, &machine.around(&["listed"])).unwrap(), "named");
    }

    #[test]
    fn then_come_the_listed_files_and_the_first_of_them_counts() {
        let machine = Machine::with(&["one", "two", "data/kubeconfig"]);
        let around = machine.around(&["missing", "one", "two"]);
        assert_eq!(chosen(&anywhere(), &around).unwrap(), "one");
    }

    #[test]
    fn then_the_data_directory_then_the_home() {
        let machine = Machine::with(&["data/kubeconfig", "home/.kube/config"]);
        assert_eq!(chosen(&anywhere(), &machine.around(&[])).unwrap(), "data/kubeconfig");
        let machine = Machine::with(&["home/.kube/config"]);
        assert_eq!(chosen(&anywhere(), &machine.around(&[])).unwrap(), "home/.kube/config");
    }

    #[test]
    fn then_the_account_of_the_pod_that_this_is() {
        let machine = Machine::with(&[]);
        let pod = Surroundings { is_pod: true, ..machine.around(&[]) };
        assert_eq!(chosen(&anywhere(), &pod).unwrap(), "the pod");
        let machine = Machine::with(&["home/.kube/config"]);
        let pod = Surroundings { is_pod: true, ..machine.around(&[]) };
        assert_eq!(chosen(&anywhere(), &pod).unwrap(), "home/.kube/config");
    }

    #[test]
    fn without_any_all_that_was_tried_is_named() {
        let machine = Machine::with(&[]);
        let error = chosen(&anywhere(), &machine.around(&[])).unwrap_err();
        for word in ["$KUBECONFIG", "data/kubeconfig", "home/.kube/config", "interlock up"] {
            assert!(error.contains(word), "no {word} in: {error}");
        }
    }

    #[test]
    fn listed_files_that_are_not_there_are_no_reason_to_take_another_fleet() {
        let machine = Machine::with(&["data/kubeconfig"]);
        let error = chosen(&anywhere(), &machine.around(&["missing"])).unwrap_err();
        assert!(error.contains("missing does not exist"), "{error}");
    }
}
