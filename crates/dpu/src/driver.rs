//! Questions and actions of the rooms.

use crate::calls::Calls;
use crate::counted::{Counted, page};
use crate::failures;
use crate::files::Folder;
use crate::linux::{Linux, Wiring};
use crate::local::Local;
use crate::protocol::{Device, Protocol};
use interlock_kernel::Nothing;
use interlock_nodes::outside::{Action, Answer, Dpu, Failure, Question};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What every driver is made of.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder of the records and locks, on a disk of this machine. All agents of one DPU have the same.
    pub folder: PathBuf,
    /// Which boot of the DPU this is.
    pub boot: String,
    /// What runs before each call that changes something: nothing, but in tests.
    pub calls: Calls,
}

impl Settings {
    /// Those of this boot of this machine.
    pub fn of(folder: &Path) -> Result<Settings, Failure> {
        let file = "/proc/sys/kernel/random/boot_id";
        let boot = std::fs::read_to_string(file);
        let boot = boot.map_err(|error| failures::storage(file, &error))?.trim().to_owned();
        Ok(Settings { folder: folder.to_owned(), boot, calls: Calls::default() })
    }
}

/// Asks a DPU, and changes it. Clones are the same driver; drivers of several processes may share a folder.
#[derive(Debug, Clone)]
pub struct Driver(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    device: Box<dyn Device>,
    /// What went wrong with the last action about a port. For people only: it is lost with the process.
    failures: Mutex<BTreeMap<String, Failure>>,
    counted: Counted,
}

impl Driver {
    /// A DPU without hardware: any name is a port.
    pub fn local(settings: Settings) -> Result<Driver, Failure> {
        let Settings { folder, boot, calls } = settings;
        let folder = Arc::new(Folder::open(&folder, calls)?);
        let hardware = Local { folder: folder.clone(), boot: boot.clone() };
        Ok(Driver::of(Protocol { folder, boot, hardware }))
    }

    /// The kernel of this machine: its interfaces, in the network namespace of this process.
    pub fn linux(settings: Settings, wiring: Wiring) -> Result<Driver, Failure> {
        let Settings { folder, boot, calls } = settings;
        let folder = Arc::new(Folder::open(&folder, calls)?);
        let hardware = Linux::new(wiring, folder.clone())?;
        Ok(Driver::of(Protocol { folder, boot, hardware }))
    }

    fn of(device: impl Device + 'static) -> Driver {
        let (device, failures) = (Box::new(device), Mutex::default());
        Driver(Arc::new(Parts { device, failures, counted: Counted::default() }))
    }

    /// What was done and refused by the drivers of these DPUs, as Prometheus reads it.
    pub fn metrics<'a>(dpus: impl Iterator<Item = (String, &'a Driver)>) -> String {
        page(dpus.map(|(dpu, driver)| (dpu, &driver.0.counted)))
    }

    /// What the device says. Blocks until the ports that are asked for are free.
    pub fn answer(&self, question: &Question) -> Result<Answer, Failure> {
        let mut answer = self.0.device.answer(question)?;
        let failures = self.0.failures();
        for port in &mut answer.ports {
            port.failure = failures.get(&port.name).cloned();
        }
        Ok(answer)
    }

    /// Changes the device, or says why not. Blocks until the port is free.
    pub fn perform(&self, action: &Action) -> Result<(), Failure> {
        let done = self.0.device.perform(action);
        self.0.counted.add(action, &done);
        let port = port_of(action).map(str::to_owned);
        let mut failures = self.0.failures();
        match (&done, port) {
            (Ok(()), Some(port)) => drop(failures.remove(&port)),
            (Err(failure), Some(port)) => drop(failures.insert(port, failure.clone())),
            (_, None) => {}
        }
        done
    }

    /// Runs it where it may block. A step that is given up leaves it running: it holds its lock until it is done.
    async fn apart<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Driver) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, String> {
        let driver = self.clone();
        let done = tokio::task::spawn_blocking(move || call(&driver)).await;
        let done = done.map_err(|error| format!("the driver of the DPU stopped: {error}"))?;
        done.map_err(|failure| format!("{}: {}", failure.reason, failure.message))
    }
}

impl Parts {
    fn failures(&self) -> MutexGuard<'_, BTreeMap<String, Failure>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn port_of(action: &Action) -> Option<&str> {
    match action {
        Action::Adopt { port, .. }
        | Action::Isolate { port, .. }
        | Action::Attach { port, .. }
        | Action::Detach { port, .. } => Some(port),
        Action::Flood { .. } | Action::Forget { .. } => None,
    }
}

impl interlock_shell::Driver<Dpu> for Driver {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        self.apart(move |driver| driver.answer(&question)).await
    }

    async fn perform(&self, action: Action) -> Result<(), String> {
        self.apart(move |driver| Driver::perform(driver, &action)).await
    }
}

/// For rooms of the same program that work within the API only.
impl interlock_shell::Driver<Nothing> for Driver {
    async fn ask(&self, question: Nothing) -> Result<Nothing, String> {
        match question {}
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}
