//! The hub's record and its past: what a syncer may see, now or of old.

use super::name_of;
use interlock_checker::{Coder, Rng};

/// The most epochs that a past can hold.
pub(crate) const MOST_EPOCHS: usize = 3;

/// A set of writes: bit `w - 1` stands for write `w`.
pub(crate) type Writes = u8;

/// How much there is of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) clusters: usize,
    pub(crate) epochs: u8,
    pub(crate) writes: u8,
}

/// The bits that a number up to `most` takes.
pub(crate) fn width(most: usize) -> u32 {
    usize::BITS - most.leading_zeros()
}

impl Extent {
    pub(crate) fn code_cluster(self, cluster: &mut u8, coder: &mut Coder) {
        coder.u8(cluster, width(self.clusters - 1));
    }

    pub(crate) fn code_epoch(self, epoch: &mut u8, coder: &mut Coder) {
        coder.u8(epoch, width(self.epochs.into()));
    }

    pub(crate) fn code_writes(self, writes: &mut Writes, coder: &mut Coder) {
        coder.u8(writes, self.writes.into());
    }

    pub(crate) fn any_cluster(self, rng: &mut Rng) -> u8 {
        rng.below(self.clusters) as u8
    }

    pub(crate) fn any_epoch(self, rng: &mut Rng) -> u8 {
        rng.below(usize::from(self.epochs) + 1) as u8
    }

    pub(crate) fn any_writes(self, rng: &mut Rng) -> Writes {
        rng.below(1 << self.writes) as Writes
    }
}

/// What the hub says of the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Phase {
    /// Never granted yet.
    #[default]
    Unassigned,
    /// The owner may run it.
    Granted,
    /// The owner is to give it back.
    Revoking,
    /// The owner gave it back, with all writes.
    Released,
    /// The owner was declared dead.
    Fenced,
}

const ASSIGNED: [Phase; 4] = [Phase::Granted, Phase::Revoking, Phase::Released, Phase::Fenced];

/// The Grant: the one record that decides. Epoch 0 is `Unassigned`, with no owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Hub {
    pub(crate) epoch: u8,
    pub(crate) owner: u8,
    pub(crate) phase: Phase,
    pub(crate) pin: Writes,
}

impl Hub {
    pub(crate) fn is_owned_by(&self, cluster: usize) -> bool {
        self.epoch != 0 && usize::from(self.owner) == cluster
    }

    /// Owned, and not given back.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Granted | Phase::Revoking)
    }

    pub(crate) fn code(&mut self, extent: Extent, coder: &mut Coder) {
        extent.code_epoch(&mut self.epoch, coder);
        extent.code_cluster(&mut self.owner, coder);
        // Epoch 0 has one phase only, so the phase of the others takes two bits, not three.
        let mut phase = if self.epoch == 0 { Phase::Granted } else { self.phase };
        coder.of(&mut phase, &ASSIGNED);
        self.phase = if self.epoch == 0 { Phase::Unassigned } else { phase };
        extent.code_writes(&mut self.pin, coder);
    }

    /// The same with cluster `c` called `places[c]`.
    pub(crate) fn renamed(&self, places: &[usize]) -> Hub {
        if self.epoch == 0 {
            return *self;
        }
        Hub { owner: places[usize::from(self.owner)] as u8, ..*self }
    }

    pub(crate) fn show(&self) -> String {
        let owner = if self.epoch == 0 { "none" } else { name_of(self.owner.into()) };
        format!(
            "[o |-> {owner}, e |-> {}, ph |-> \"{:?}\", pin |-> {}]",
            self.epoch,
            self.phase,
            show_writes(self.pin)
        )
    }

    pub(crate) fn any(extent: Extent, rng: &mut Rng) -> Hub {
        match extent.any_epoch(rng) {
            0 => Hub::default(),
            epoch => Hub {
                epoch,
                owner: extent.any_cluster(rng),
                phase: ASSIGNED[rng.below(ASSIGNED.len())],
                pin: extent.any_writes(rng),
            },
        }
    }
}

/// How an epoch ended, as far as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Ending {
    #[default]
    Open,
    Released,
    Fenced,
}

const ENDINGS: [Ending; 3] = [Ending::Open, Ending::Released, Ending::Fenced];

/// What the record said during one epoch. Its phases only go forward and its pin changes only at
/// the end, so this little is the exact set of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Tenure {
    owner: u8,
    pin: Writes,
    revoked: bool,
    ending: Ending,
    pin_at_end: Writes,
}

impl Tenure {
    fn last_pin(&self) -> Writes {
        if self.ending == Ending::Open { self.pin } else { self.pin_at_end }
    }
}

/// Where the pin of a new grant comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PinOfGrant {
    /// It is the last pin of the epoch before, and need not be kept.
    Inherited,
    /// It is whatever the image was at that moment.
    Chosen,
}

/// Every value that the record has had (`hist`), epoch by epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Past {
    tenures: [Tenure; MOST_EPOCHS],
}

impl Past {
    pub(crate) fn remember(&mut self, hub: Hub) {
        let Some(epoch) = hub.epoch.checked_sub(1) else { return };
        let tenure = &mut self.tenures[usize::from(epoch)];
        match hub.phase {
            Phase::Unassigned => {}
            Phase::Granted => *tenure = Tenure { owner: hub.owner, pin: hub.pin, ..*tenure },
            Phase::Revoking => tenure.revoked = true,
            Phase::Released => {
                *tenure = Tenure { ending: Ending::Released, pin_at_end: hub.pin, ..*tenure };
            }
            Phase::Fenced => {
                *tenure = Tenure { ending: Ending::Fenced, pin_at_end: hub.pin, ..*tenure };
            }
        }
    }

    /// The values up to the present epoch, oldest first.
    pub(crate) fn each(&self, epoch_now: u8, mut see: impl FnMut(Hub)) {
        see(Hub::default());
        for (epoch, tenure) in (1..=epoch_now).zip(&self.tenures) {
            let granted =
                Hub { epoch, owner: tenure.owner, phase: Phase::Granted, pin: tenure.pin };
            see(granted);
            if tenure.revoked {
                see(Hub { phase: Phase::Revoking, ..granted });
            }
            let phase = match tenure.ending {
                Ending::Open => continue,
                Ending::Released => Phase::Released,
                Ending::Fenced => Phase::Fenced,
            };
            see(Hub { phase, pin: tenure.pin_at_end, ..granted });
        }
    }

    pub(crate) fn code(
        &mut self,
        extent: Extent,
        epoch_now: u8,
        pins: PinOfGrant,
        coder: &mut Coder,
    ) {
        let mut last_pin = 0;
        for (epoch, tenure) in (1..=extent.epochs).zip(&mut self.tenures) {
            extent.code_cluster(&mut tenure.owner, coder);
            match pins {
                PinOfGrant::Chosen => extent.code_writes(&mut tenure.pin, coder),
                PinOfGrant::Inherited if epoch <= epoch_now => tenure.pin = last_pin,
                PinOfGrant::Inherited => {}
            }
            coder.bool(&mut tenure.revoked);
            coder.of(&mut tenure.ending, &ENDINGS);
            extent.code_writes(&mut tenure.pin_at_end, coder);
            last_pin = tenure.last_pin();
        }
    }

    /// The same with cluster `c` called `places[c]`.
    pub(crate) fn renamed(&self, epoch_now: u8, places: &[usize]) -> Past {
        let mut renamed = self.clone();
        for tenure in &mut renamed.tenures[..epoch_now.into()] {
            tenure.owner = places[usize::from(tenure.owner)] as u8;
        }
        renamed
    }

    pub(crate) fn any(extent: Extent, epoch_now: u8, pins: PinOfGrant, rng: &mut Rng) -> Past {
        let mut past = Past::default();
        let mut last_pin = 0;
        for tenure in &mut past.tenures[..epoch_now.into()] {
            let ending = ENDINGS[rng.below(ENDINGS.len())];
            let [chosen, at_end] = std::array::from_fn(|_| extent.any_writes(rng));
            *tenure = Tenure {
                owner: extent.any_cluster(rng),
                pin: if pins == PinOfGrant::Inherited { last_pin } else { chosen },
                revoked: rng.flip(),
                ending,
                pin_at_end: if ending == Ending::Open { 0 } else { at_end },
            };
            last_pin = tenure.last_pin();
        }
        past
    }

    pub(crate) fn show(&self, epoch_now: u8) -> String {
        let mut values = Vec::new();
        self.each(epoch_now, |hub| values.push(hub.show()));
        show_set(values.into_iter())
    }
}

pub(crate) fn show_bool(value: bool) -> &'static str {
    if value { "TRUE" } else { "FALSE" }
}

pub(crate) fn show_set(elements: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", elements.collect::<Vec<_>>().join(", "))
}

pub(crate) fn show_writes(writes: Writes) -> String {
    show_set((0..Writes::BITS).filter(|w| writes >> w & 1 == 1).map(|w| (w + 1).to_string()))
}
