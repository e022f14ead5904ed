//! The DPUs: the stand-in of the checker's world, whose actions get lost, or land when nobody waits for them any more.

use crate::engine::line::{Errand, Gate, Way};
use interlock_kernel::Nothing;
use interlock_nodes::outside::{Action, Answer, Dpu, Entry, Question};
use interlock_nodes::power::{IsOff, Power, PowerOff, PowerState};
use interlock_nodes::world::device::{Device, Disk, Forgets};
use interlock_shell::Driver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How the words of a refusal end: the port changed after the action was decided, and the next step decides anew.
pub(crate) const REFUSED: &str = "refused by the DPU";
/// What is said of a question or an action that got lost.
const LOST: &str = "the driver of the DPU does not answer";
/// How often a DPU starts at most: a device numbers the lives of its records with small numbers.
const STARTS: usize = 8;

/// All DPUs, on or off.
pub(crate) struct Dpus {
    devices: Vec<Device>,
    /// How often each has started.
    starts: Vec<usize>,
    /// The one that never comes back.
    dead: Option<usize>,
    /// How often any of them changed.
    changes: u64,
}

impl Dpus {
    /// So many DPUs, for machines that are each wired through some of them.
    pub(crate) fn new(count: usize, wiring: &[Vec<usize>], forgets: Forgets) -> Dpus {
        let device = |dpu: usize| {
            let wired = wiring.iter().zip(super::PORTS).filter(|(dpus, _)| dpus.contains(&dpu));
            Device::with_ports(wired.map(|(_, port)| port)).forgetting(forgets)
        };
        let devices = (0..count).map(device).collect();
        Dpus { devices, starts: vec![0; count], dead: None, changes: 0 }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.devices.len()
    }

    /// How often any of them changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether it has power.
    pub(crate) fn is_on(&self, dpu: usize) -> bool {
        self.devices[dpu].is_on()
    }

    /// Whether it never comes back.
    pub(crate) fn is_dead(&self, dpu: usize) -> bool {
        self.dead == Some(dpu)
    }

    /// Everything that is open: at which DPU, at which port, for whom.
    pub(crate) fn open(&self) -> impl Iterator<Item = (usize, &str, &Entry)> {
        let devices = self.devices.iter().enumerate();
        devices.flat_map(|(dpu, device)| device.open().map(move |(port, it)| (dpu, port, it)))
    }

    /// It loses its power and has it again at once, with this on its disk; whether it did.
    pub(crate) fn restart(&mut self, dpu: usize, disk: Disk) -> bool {
        let may_start = self.is_on(dpu) && self.starts[dpu] < STARTS;
        if may_start {
            self.starts[dpu] += 1;
            self.change(dpu, self.devices[dpu].restarted(disk));
        }
        may_start
    }

    /// It loses its power, perhaps for ever: that happens to one at most. Whether it did.
    pub(crate) fn power_off(&mut self, dpu: usize, is_for_ever: bool) -> bool {
        let may_stop = self.is_on(dpu) && self.starts[dpu] < STARTS;
        if may_stop {
            if is_for_ever && self.dead.is_none() {
                self.dead = Some(dpu);
            }
            self.starts[dpu] += 1;
            self.change(dpu, self.devices[dpu].powered_off());
        }
        may_stop
    }

    /// It has power again, unless it never comes back; whether it has.
    pub(crate) fn power_on(&mut self, dpu: usize) -> bool {
        let may_start = !self.is_on(dpu) && !self.is_dead(dpu);
        if may_start {
            self.change(dpu, self.devices[dpu].powered_on());
        }
        may_start
    }

    fn change(&mut self, dpu: usize, after: Device) {
        self.devices[dpu] = after;
        self.changes += 1;
    }

    fn ask(&self, dpu: usize, question: &Question) -> Answer {
        self.devices[dpu].ask(question)
    }

    /// Which boot of a DPU this is.
    fn boot(&self, dpu: usize) -> String {
        self.ask(dpu, &Question::Device).boot
    }

    fn perform(&mut self, dpu: usize, action: &Action) -> Result<(), String> {
        match self.devices[dpu].perform(action) {
            Ok(after) => {
                self.change(dpu, after);
                Ok(())
            }
            Err(why) => Err(format!("{why:?}: {REFUSED}")),
        }
    }
}

/// The driver of one program: of an agent on its DPU, or of one that has nothing to do with any.
#[derive(Clone)]
pub(crate) struct OnDpu {
    pub(crate) dpus: Arc<Mutex<Dpus>>,
    pub(crate) dpu: usize,
    pub(crate) gate: Arc<Gate>,
}

impl OnDpu {
    fn dpus(&self) -> MutexGuard<'_, Dpus> {
        self.dpus.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An action that its program did not live to see done. What was under way ends with the boot.
async fn done_late(of: OnDpu, action: Action, boot: String) {
    let mut dpus = of.dpus();
    if dpus.is_on(of.dpu) && dpus.boot(of.dpu) == boot {
        // Nobody hears of a refusal.
        let _ = dpus.perform(of.dpu, &action);
    }
}

impl Driver<Dpu> for OnDpu {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        let way = self.gate.turn(Errand::Any).await;
        match way {
            Way::Through => Ok(self.dpus().ask(self.dpu, &question)),
            Way::RequestLost | Way::ReplyLost => Err(LOST.to_owned()),
            Way::LeftBehind => {
                self.gate.leave_behind(Box::pin(async {})).await;
                Err(LOST.to_owned())
            }
        }
    }

    async fn perform(&self, action: Action) -> Result<(), String> {
        let errand = match &action {
            Action::Attach { .. } => Errand::Start,
            Action::Adopt { .. }
            | Action::Isolate { .. }
            | Action::Detach { .. }
            | Action::Flood { .. }
            | Action::Forget { .. } => Errand::Any,
        };
        let way = self.gate.turn(errand).await;
        match way {
            Way::Through => self.dpus().perform(self.dpu, &action),
            Way::RequestLost => Err(LOST.to_owned()),
            Way::ReplyLost => {
                let _ = self.dpus().perform(self.dpu, &action);
                Err(LOST.to_owned())
            }
            Way::LeftBehind => {
                let boot = self.dpus().boot(self.dpu);
                self.gate.leave_behind(Box::pin(done_late(self.clone(), action, boot))).await;
                Err(LOST.to_owned())
            }
        }
    }
}

/// The rack leaves it to people to see a DPU off: the command of the platform is never asked.
impl Driver<Power> for OnDpu {
    async fn ask(&self, question: IsOff) -> Result<PowerState, String> {
        Ok(PowerState::Unknown(format!("there is no command that knows {}", question.0)))
    }

    async fn perform(&self, action: PowerOff) -> Result<(), String> {
        Err(format!("there is no command that turns {} off", action.0))
    }
}

impl Driver<Nothing> for OnDpu {
    async fn ask(&self, question: Nothing) -> Result<Nothing, String> {
        match question {}
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}
