//! A fleet of processes: `interlock serve`, and two each of `interlock controllers`, of every `interlock syncer` and of
//! every `interlock dpu-agent`.

use super::client::Client;
use super::disk::Disk;
use super::processes::{Living, left_in, signal};
use super::proxy::{Network, Proxy};
use crate::bench::process::free_port;
use crate::program::log_of;
use anyhow::Context;
use interlock_api::names::grant_name;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const CLUSTERS: [&str; 3] = ["west", "east", "north"];
pub(crate) const NAMESPACES: [&str; 3] = ["ledger-0", "ledger-1", "ledger-2"];
/// A rack, and the DPUs in it.
pub(crate) const RACK: &str = "r1";
pub(crate) const DPUS: [&str; 2] = ["d1", "d2"];
pub(crate) const HUB: &str = "hub";
pub(super) const CONTROLLERS: &str = "controllers";
/// One of two leads. A program that is stopped has another one beside it that goes on.
pub(super) const REPLICAS: [&str; 2] = ["a", "b"];
pub(crate) const GROUP: &str = "/apis/interlock.dev/v1alpha1";
/// The folder of what the hub stores.
const DATA: &str = "data";
pub(super) const TOKEN: &str = "the-administrators-token";
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

/// The names of all programs, the hub first.
pub(crate) fn programs() -> Vec<String> {
    let parts = [CONTROLLERS].into_iter().chain(CLUSTERS).chain(DPUS);
    let replicas = parts.flat_map(|part| REPLICAS.map(|replica| format!("{part}-{replica}")));
    [HUB.to_owned()].into_iter().chain(replicas).collect()
}

/// A fleet, and who administers it.
pub(crate) struct Fleet {
    pub(super) binary: PathBuf,
    pub(super) folder: PathBuf,
    pub(crate) client: Client,
    programs: BTreeMap<String, Program>,
    /// The network of each program but the hub.
    pub(super) proxies: BTreeMap<String, Proxy>,
    /// What the hub stores its data on; None: on the disk of everybody, since this user may mount none.
    disk: Option<Disk>,
}

/// A program that comes and goes.
#[derive(Default)]
struct Program {
    /// None: it was killed, and is not started again yet.
    child: Option<Child>,
    is_stopped: bool,
}

impl Fleet {
    /// A fleet of which only the hub runs.
    pub(crate) fn start(binary: &Path, folder: &Path) -> anyhow::Result<Fleet> {
        for left in ours_in(folder, binary) {
            signal(left.pid, "KILL");
        }
        let data = folder.join(DATA);
        Disk::unmount_left(&data);
        if folder.exists() {
            std::fs::remove_dir_all(folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        std::fs::create_dir_all(folder.join("home"))
            .with_context(|| format!("cannot make {}", folder.display()))?;
        std::fs::create_dir(&data).with_context(|| format!("cannot make {}", data.display()))?;
        let disk = Disk::mount(&data);
        std::fs::write(folder.join("tokens"), format!("{TOKEN},admin,1,\"system:masters\"\n"))?;
        let address: SocketAddr = format!("127.0.0.1:{}", free_port()?).parse()?;
        let client = Client { address, token: TOKEN.to_owned() };
        let names = programs();
        let mut proxies = BTreeMap::new();
        for name in names.iter().filter(|name| *name != HUB) {
            proxies.insert(name.clone(), Proxy::start(address)?);
        }
        let programs = names.into_iter().map(|name| (name, Program::default())).collect();
        let (binary, folder) = (binary.to_owned(), folder.to_owned());
        let mut fleet = Fleet { binary, folder, client, programs, proxies, disk };
        fleet.run(HUB)?;
        Ok(fleet)
    }

    pub(super) fn config(&self, program: &str, at: &str) -> PathBuf {
        self.folder.join(format!("{program}.{at}.config"))
    }

    /// The binary, with nothing of this machine around it.
    pub(super) fn interlock(&self) -> Command {
        let mut interlock = Command::new(&self.binary);
        interlock.env_remove("KUBECONFIG").env_remove("RUST_LOG").env("NO_COLOR", "1");
        interlock.env("HOME", self.folder.join("home"));
        interlock
    }

    fn command(&self, name: &str) -> Command {
        let mut command = self.interlock();
        if name == HUB {
            command.args(["serve", "--insecure-http", "--listen"]);
            command.arg(self.client.address.to_string());
            command.arg("--data-dir").arg(self.folder.join(DATA));
            command.arg("--token-file").arg(self.folder.join("tokens"));
            return command;
        }
        let part = name.rsplit_once('-').map_or(name, |(part, _)| part);
        match part {
            CONTROLLERS => {
                command.args([CONTROLLERS, "--machines", "--no-install", "--lease", "1s"]);
                command.args(["--unreachable-after", "4s"]);
            }
            dpu if DPUS.contains(&dpu) => {
                command.args(["dpu-agent", &format!("{RACK}/{dpu}"), "--state-dir"]);
                command.arg(self.records_of_ports());
            }
            cluster => {
                command.args(["syncer", cluster, "--no-install", "--updates", "--lease", "1s"]);
                command.args(["--runtime", "process", "--allow-root-processes"]);
                command.args(["--heartbeat-every", "1s"]);
                command.arg("--state-dir").arg(self.folder.join("state"));
                command.arg("--cluster-kubeconfig").arg(self.config(name, cluster));
            }
        }
        command.arg("--audit-dir").arg(self.log(name));
        command.arg("--kubeconfig").arg(self.config(name, HUB));
        command
    }

    /// Where the agents of DPUs keep the records of their ports.
    pub(crate) fn records_of_ports(&self) -> PathBuf {
        self.folder.join("ports")
    }

    /// The folder of the steps that a program records.
    fn log(&self, name: &str) -> PathBuf {
        self.folder.join("audit").join(name)
    }

    /// The logs of steps of all programs that record any.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        let names = self.programs.keys().filter(|name| *name != HUB);
        names.map(|name| self.log(name)).collect()
    }

    /// Starts a program, if it does not run.
    pub(crate) fn run(&mut self, name: &str) -> anyhow::Result<()> {
        let mut command = self.command(name);
        let log = File::options().create(true).append(true).open(self.folder.join(log_of(name)))?;
        let program = self.programs.get_mut(name).context("there is no such program")?;
        if program.child.is_none() {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
            let child = command.current_dir(&self.folder).spawn();
            let child = child.with_context(|| format!("cannot start {name}"))?;
            *program = Program { child: Some(child), is_stopped: false };
        }
        Ok(())
    }

    /// Takes the life of a program, as a power cut would; whether it ran.
    pub(crate) fn kill(&mut self, name: &str) -> bool {
        let program = self.programs.get_mut(name).map(std::mem::take);
        let Some(mut child) = program.and_then(|program| program.child) else { return false };
        let _ = child.kill();
        child.wait().is_ok()
    }

    /// Stops a program in the middle of whatever it does; whether it ran.
    pub(crate) fn stop(&mut self, name: &str) -> bool {
        let Some(program) = self.programs.get_mut(name) else { return false };
        let Some(child) = program.child.as_ref().filter(|_| !program.is_stopped) else {
            return false;
        };
        signal(child.id(), "STOP");
        program.is_stopped = true;
        true
    }

    /// Lets a program that was stopped go on, with all that it believed.
    pub(crate) fn go_on(&mut self, name: &str) {
        let Some(program) = self.programs.get_mut(name).filter(|it| it.is_stopped) else { return };
        program.is_stopped = false;
        if let Some(child) = &program.child {
            signal(child.id(), "CONT");
        }
    }

    /// Cuts a program off from the hub; whether it was not before.
    pub(crate) fn cut(&self, name: &str, network: Network) -> bool {
        let works = |proxy: &&Proxy| proxy.network() == Network::Works;
        let Some(proxy) = self.proxies.get(name).filter(works) else { return false };
        proxy.set(network);
        true
    }

    /// Lets a program reach the hub again.
    pub(crate) fn mend(&self, name: &str) {
        if let Some(proxy) = self.proxies.get(name) {
            proxy.set(Network::Works);
        }
    }

    /// Whether the disk of the hub can be made full.
    pub(crate) fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Leaves no room on the disk of the hub; whether there is none.
    pub(crate) fn fill_disk(&self) -> bool {
        self.disk.as_ref().is_some_and(Disk::fill)
    }

    /// Gives the disk of the hub its room back.
    pub(crate) fn free_disk(&self) {
        if let Some(disk) = &self.disk {
            disk.free();
        }
    }

    /// Starts the programs again that ended by themselves, as a Deployment does; how many they were.
    pub(crate) fn tend(&mut self) -> anyhow::Result<u64> {
        let mut ended = Vec::new();
        for (name, program) in &mut self.programs {
            if let Some(child) = &mut program.child
                && child.try_wait()?.is_some()
            {
                ended.push(name.clone());
                *program = Program::default();
            }
        }
        for name in &ended {
            self.run(name)?;
        }
        Ok(ended.len() as u64)
    }

    /// Has every program running, every network working, and room on every disk.
    pub(crate) fn recover(&mut self) -> anyhow::Result<()> {
        self.free_disk();
        for name in programs() {
            self.mend(&name);
            self.go_on(&name);
            self.run(&name)?;
        }
        Ok(())
    }

    /// The status of the grant of a namespace.
    pub(crate) fn grant(&self, namespace: &str, uid: &str) -> anyhow::Result<Value> {
        let name = grant_name(namespace, uid);
        Ok(self.client.get(&format!("{GROUP}/grants/{name}"))?["status"].clone())
    }

    /// Starts a writer that no owner started; it ends soon.
    pub(crate) fn intrude(&self, records: &Path) -> anyhow::Result<()> {
        let mut writer = self.interlock();
        writer.arg("write-numbers").arg(records).env("INTERLOCK_EPOCH", "0");
        let mut child = writer.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            let _ = child.kill();
            let _ = child.wait();
        });
        Ok(())
    }

    /// Asks every program to stop, the hub last; what is wrong with how they end.
    pub(crate) fn end(&mut self) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        for (name, program) in self.programs.iter_mut().rev() {
            if name != HUB {
                wrong.extend(end_one(name, program)?);
            }
        }
        if let Some(hub) = self.programs.get_mut(HUB) {
            wrong.extend(end_one(HUB, hub)?);
        }
        let left = ours_in(&self.folder, &self.binary);
        wrong.extend(left.iter().map(|it| format!("a process is left: {}", it.words.join(" "))));
        for name in self.programs.keys() {
            let log = std::fs::read_to_string(self.folder.join(log_of(name))).unwrap_or_default();
            let is_bad = |line: &&str| {
                line.contains("panicked") || line.contains("cannot") && line.contains("User \"")
            };
            wrong.extend(log.lines().find(is_bad).map(|line| format!("{name} says: {line}")));
        }
        Ok(wrong)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let names: Vec<String> = self.programs.keys().cloned().collect();
        for name in names {
            self.kill(&name);
        }
        // The processes of pods outlive their syncers, on purpose.
        for left in ours_in(&self.folder, &self.binary) {
            signal(left.pid, "KILL");
        }
    }
}

/// What runs of a fleet: a person who reads its logs has its folder on a command line, too.
fn ours_in(folder: &Path, binary: &Path) -> Vec<Living> {
    let is_ours = |it: &Living| it.words.first().is_some_and(|word| Path::new(word) == binary);
    left_in(folder).into_iter().filter(is_ours).collect()
}

/// Asks a program to stop, and waits; what is wrong with how it ends.
fn end_one(name: &str, program: &mut Program) -> anyhow::Result<Option<String>> {
    let Some(mut child) = program.child.take() else { return Ok(None) };
    signal(child.id(), "TERM");
    let began = Instant::now();
    while began.elapsed() < TIMEOUT {
        if let Some(status) = child.try_wait()? {
            let is_good = status.success();
            return Ok((!is_good).then(|| format!("{name} ends with {status}")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    Ok(Some(format!("{name} does not stop within {} s", TIMEOUT.as_secs())))
}
