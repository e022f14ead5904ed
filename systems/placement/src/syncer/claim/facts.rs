//! What is known of one claim, and what follows from it.

use crate::syncer::tenancy::{self, Epoch, LastSnapshot, Volume};
use interlock_api::placement::Fill;
use interlock_kernel::conditions::Finding;
use serde::{Deserialize, Serialize};

/// One claim that the grant lists.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// Which it is.
    pub uid: String,
    /// The claim at the hub, of this very uid.
    pub at_hub: Option<AtHub>,
    /// What a live read of the hub showed: whether it is there; None: not read.
    pub hub_read: Option<bool>,
    /// What the hub knows of its data here.
    pub fill: Fill,
    /// How far the hub was informed that its data has come.
    pub reported: Option<Progress>,
    /// Whether that was just now.
    pub is_reported_lately: bool,
    /// What it starts from.
    pub pin: Pin,
    /// Whatever has its name here.
    pub here: Here,
    /// Whether that has its volume.
    pub binding: Binding,
    /// Whatever takes snapshots of it here.
    pub source: Option<Source>,
    /// Whatever brings the snapshot of this epoch here.
    pub destination: Option<Destination>,
    /// What removes from a repository what earlier moves of it left there.
    pub tidying: Tidying,
}

/// Where a claim is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct At {
    /// The cluster, for people.
    pub cluster: String,
    /// The namespace at the hub.
    pub namespace: String,
    /// The grant, and the namespace here.
    pub grant: String,
    /// The epoch of the grant.
    pub epoch: Epoch,
    /// Volumes here up to this epoch may have what no snapshot has; 0: there are none.
    pub written_until: Epoch,
    /// Whether somebody here takes snapshots of claims and fills claims from them.
    pub is_copying: bool,
    /// Whether the namespace is to stay on this cluster.
    pub stays: bool,
    /// The Secret of the repository that data leaves through, if it leaves through one.
    pub repository: Option<String>,
}

/// A claim at the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct AtHub {
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether our finalizer is on it.
    pub has_finalizer: bool,
}

/// How far data has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Progress {
    /// So much of it is here.
    pub bytes: i64,
    /// So much there is, if anybody knows.
    pub of_bytes: Option<i64>,
}

/// What a claim starts from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Pin {
    /// Nothing: it was never used.
    Fresh,
    /// A volume that an earlier epoch left in place.
    InPlace {
        /// Whether that is on this cluster.
        is_here: bool,
        /// The cluster, for people.
        cluster: String,
        /// The volume.
        volume: String,
    },
    /// A snapshot that has to be brought here.
    Snapshot {
        /// Where it is, for people.
        place: String,
        /// The Secret of the repository that it is in, if it is in one.
        secret: Option<String>,
        /// The epoch that it is of.
        epoch: Epoch,
        /// How much data it has.
        bytes: i64,
    },
}

/// What has the name of a claim here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Here {
    /// Nothing.
    Missing,
    /// A claim of somebody else.
    Foreign,
    /// The volume of an earlier claim of that name.
    Earlier,
    /// The volume of this very claim.
    Own(Own),
}

/// The volume of a claim here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Own {
    /// The epoch that it was last taken for.
    pub epoch: Epoch,
    /// Whether the claim is being deleted.
    pub is_terminating: bool,
    /// Whether it is kept.
    pub is_kept: bool,
    /// Whether the claim has its volume.
    pub is_bound: bool,
    /// Whether whoever fills it has a hand on it.
    pub is_being_filled: bool,
    /// Whether it is the volume that the pin names.
    pub is_pinned: bool,
    /// Whether it was noted as what this epoch leaves.
    pub is_last: bool,
    /// The volume that the claim is bound to.
    pub volume: Bound,
}

/// The volume that a claim is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Bound {
    /// None.
    Nothing,
    /// One that the cache does not show.
    Unseen,
    /// One that is deleted with its claim.
    Terminating,
    /// One that stays when its claim is being deleted, and is known to be of this grant.
    Staying,
}

/// Whether a claim on this cluster has its volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Binding {
    /// It has.
    Bound,
    /// It had, and the volume is gone.
    Lost,
    /// Not yet.
    Unbound,
    /// It gets one when the first pod that uses it has found its place, and not before.
    AwaitsConsumer,
    /// Whoever makes its volumes is not waited for: nothing has to arrive.
    NotAsked,
}

/// What takes snapshots of a claim here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Whether the syncer made it for this grant.
    pub is_ours: bool,
    /// Whether it is for this very claim.
    pub is_for_claim: bool,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether it was asked for the last snapshot of this epoch.
    pub is_asked: bool,
    /// Whether it has done what it was asked for.
    pub is_confirmed: bool,
    /// Whether it is at work.
    pub is_syncing: bool,
    /// Whether it gave up because its snapshot was deleted.
    pub has_lost_snapshot: bool,
    /// What is in its way.
    pub trouble: Option<Obstacle>,
    /// Whether it saves into a repository.
    pub is_saving: bool,
    /// The Secret of that repository.
    pub secret: Option<String>,
    /// Whether it names a snapshot in that repository.
    pub has_saved: bool,
    /// Whether it names a snapshot.
    pub names_snapshot: bool,
    /// That snapshot, as the cache shows it.
    pub snapshot: Option<SnapshotHere>,
    /// What a live read showed: whether that snapshot is there to stay; None: not read.
    pub snapshot_read: Option<bool>,
}

/// A snapshot on this cluster.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct SnapshotHere {
    /// Which it is.
    pub uid: String,
    /// Whether it is complete.
    pub is_ready: bool,
    /// Whether we hold it.
    pub is_held: bool,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

/// What brings a snapshot here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Destination {
    /// Whether the syncer made it, for this very claim.
    pub is_own: bool,
    /// Whether the snapshot has been brought.
    pub has_arrived: bool,
    /// Whether it gave up because the snapshot was deleted.
    pub has_lost_snapshot: bool,
    /// What is in its way.
    pub trouble: Option<Obstacle>,
    /// Whether it names the snapshot that it brought.
    pub names_snapshot: bool,
    /// Whether the cache shows that snapshot.
    pub is_snapshot_here: bool,
    /// What a live read showed: whether that snapshot is there; None: not read.
    pub snapshot_read: Option<bool>,
    /// How many bytes have arrived.
    pub bytes: Option<i64>,
    /// Of how many.
    pub of_bytes: Option<i64>,
}

/// What removes from a repository what earlier moves left there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Tidying {
    /// Nothing has to: the data did not come through a repository.
    NotNeeded,
    /// Nothing is there for it.
    Missing,
    /// It was asked for an earlier epoch.
    Earlier,
    /// It was asked, or cannot be.
    Asked,
}

/// Why a claim cannot be filled or handed over, for people.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Obstacle {
    /// One word.
    #[serde(deserialize_with = "interlock_kernel::word")]
    pub reason: interlock_kernel::Word,
    /// The sentence.
    pub message: String,
    /// What a person does next; None: nobody has to do anything, or nobody knows what.
    pub next: Option<String>,
}

impl Obstacle {
    /// An obstacle that ends by itself, or that nobody knows what to do about.
    pub fn new(reason: &'static str, message: String) -> Obstacle {
        Obstacle { reason, message, next: None }
    }

    /// The obstacle as what a condition says.
    pub fn finding(self, kind: &'static str) -> Finding {
        Finding::fails(kind, self.reason, self.message).next(self.next)
    }
}

impl Facts {
    /// What the rules of tenancy know of it.
    pub fn outline(&self, at: &At) -> tenancy::Claim {
        tenancy::Claim {
            volume: self.volume(at).unwrap_or(Volume::Filling),
            is_filled: self.is_filled() || self.is_left_in_place(at),
            last: self.last_snapshot(),
        }
    }

    /// Whether the hub knows that it is filled: something may have written to it since.
    pub fn is_filled(&self) -> bool {
        self.fill == Fill::Filled
    }

    /// Whether the hub knows that it is filled, and it has its volume.
    pub fn has_its_data(&self) -> bool {
        self.is_filled() && self.binding == Binding::Bound
    }

    /// The volume of this very claim here.
    pub fn own(&self) -> Option<&Own> {
        match &self.here {
            Here::Own(own) => Some(own),
            Here::Missing | Here::Foreign | Here::Earlier => None,
        }
    }

    /// Whether nobody needs it: it is not alive at the hub, and this epoch has no volume for it
    /// here. Nothing is made for it, and nothing is lost by that.
    pub fn is_gone(&self, at: &At) -> bool {
        let is_alive = self.at_hub.is_some_and(|claim| !claim.is_terminating);
        let has_volume = self.own().is_some_and(|own| own.epoch >= at.epoch);
        !is_alive && !has_volume
    }

    /// Whether what it is to be filled from is the very volume that an earlier epoch left here, with
    /// all that was written to it. A snapshot can be taken of it before this epoch has used it: handed
    /// over as it came, it could only ever come back here.
    pub fn is_left_in_place(&self, at: &At) -> bool {
        let is_here = matches!(self.pin, Pin::InPlace { is_here: true, .. });
        at.is_copying && is_here && self.own().is_some_and(|own| own.is_pinned)
    }

    /// Whether its data has to be brought here.
    pub fn is_copied(&self) -> bool {
        matches!(self.pin, Pin::Snapshot { .. })
    }

    /// The Secret of the repository that its data comes from.
    pub fn secret(&self) -> Option<&str> {
        match &self.pin {
            Pin::Snapshot { secret, .. } => secret.as_deref(),
            Pin::Fresh | Pin::InPlace { .. } => None,
        }
    }

    /// The destination of this very claim at this epoch.
    pub fn own_destination(&self) -> Option<&Destination> {
        self.destination.as_ref().filter(|destination| destination.is_own)
    }

    /// The source of this very claim.
    pub fn own_source(&self) -> Option<&Source> {
        self.source.as_ref().filter(|source| source.is_ours && source.is_for_claim)
    }

    /// The source, if it has confirmed the last snapshot of this epoch.
    pub fn confirmed_source(&self) -> Option<&Source> {
        self.own_source().filter(|source| source.is_asked && source.is_confirmed)
    }

    /// The last snapshot of this epoch, once its source has confirmed it.
    pub fn made_snapshot(&self) -> Option<&SnapshotHere> {
        self.confirmed_source()?.snapshot.as_ref().filter(|snapshot| snapshot.is_ready)
    }

    /// Whether the last snapshot of this epoch is in a repository.
    pub fn is_saved(&self) -> bool {
        let source = self.confirmed_source().filter(|source| source.is_saving);
        source.is_some_and(|source| source.secret.is_some() && source.has_saved)
    }

    /// The snapshot that was made for the end of this epoch.
    pub fn last_snapshot_uid(&self) -> Option<&str> {
        Some(&self.confirmed_source()?.snapshot.as_ref()?.uid)
    }

    /// How far the last snapshot of this epoch is.
    pub fn last_snapshot(&self) -> LastSnapshot {
        if self.own().is_some_and(|own| own.is_last) {
            return LastSnapshot::Held;
        }
        let Some(source) = self.own_source() else { return LastSnapshot::None };
        if source.is_terminating || !source.is_asked {
            return LastSnapshot::None;
        }
        if source.is_saving {
            // In a repository nobody forgets it while this epoch is not over.
            return if self.is_saved() { LastSnapshot::Held } else { LastSnapshot::Asked };
        }
        match self.made_snapshot() {
            Some(snapshot) if snapshot.is_held => LastSnapshot::Held,
            Some(snapshot) if !snapshot.is_terminating => LastSnapshot::Made,
            // It is being made, or gone again: only a live read can tell.
            Some(_) | None => LastSnapshot::Asked,
        }
    }

    /// How far its volume for this epoch is, or what is in the way.
    pub fn volume(&self, at: &At) -> Result<Volume, Obstacle> {
        let name = &self.name;
        let obstacle = |reason, message| Err(Obstacle::new(reason, message));
        let own = match &self.here {
            Here::Missing => return self.missing_volume(at),
            Here::Foreign => {
                let message = format!("a claim {name} that Interlock did not create has the name");
                return obstacle("NameTaken", message);
            }
            Here::Earlier => {
                let message = format!(
                    "the volume of an earlier claim {name} has the name; the volume is deleted \
                     with its copy"
                );
                return obstacle("NameTaken", message);
            }
            Here::Own(own) => own,
        };
        if own.epoch == at.epoch {
            return self.volume_of_this_epoch(at);
        }
        if own.epoch > at.epoch {
            let message = format!("the volume of claim {name} is of a later epoch, {}", own.epoch);
            return obstacle("OldNews", message);
        }
        match &self.pin {
            Pin::Fresh if own.epoch <= at.written_until => {
                let message = format!(
                    "the volume of claim {name} on this cluster has data that was written after \
                     its owner was declared gone; the volume is not used as an empty one"
                );
                obstacle("Diverged", message)
            }
            // It was never used: whatever epoch made it, it is empty.
            Pin::Fresh => Ok(Volume::Missing),
            Pin::InPlace { is_here: true, .. } if own.is_pinned => Ok(Volume::Missing),
            Pin::InPlace { is_here: true, volume, .. } => {
                let message = format!("claim {name} is on another volume than {volume}");
                obstacle("VolumeMissing", message)
            }
            Pin::InPlace { cluster, .. } => {
                let message = format!("the data of claim {name} is on cluster {cluster}");
                obstacle("DataElsewhere", message)
            }
            // What is here is of an earlier epoch, and makes room for a new volume.
            Pin::Snapshot { .. } => self.can_be_copied(at),
        }
    }

    /// A volume that was made or taken for this epoch is filled once the claim has it: whoever fills
    /// a claim hands the volume over when all of the data is in it.
    fn volume_of_this_epoch(&self, at: &At) -> Result<Volume, Obstacle> {
        let has_arrived = self.own_destination().is_some_and(|found| found.has_arrived);
        match self.binding {
            Binding::Bound | Binding::NotAsked => Ok(Volume::Filled),
            Binding::Lost => {
                let message = format!("claim {} has lost its volume", self.name);
                Err(Obstacle::new("VolumeMissing", message))
            }
            // Once the hub was informed, something may have written to it.
            Binding::AwaitsConsumer | Binding::Unbound if self.is_filled() => Ok(Volume::Filled),
            Binding::AwaitsConsumer if !self.is_copied() || has_arrived => Ok(Volume::Filled),
            Binding::AwaitsConsumer | Binding::Unbound => match self.own_destination() {
                // Somebody deleted it on the way: it is made anew.
                None if self.is_copied() => self.can_be_copied(at),
                Some(_) | None => Ok(Volume::Filling),
            },
        }
    }

    fn missing_volume(&self, at: &At) -> Result<Volume, Obstacle> {
        let lost = || {
            let message = format!(
                "the volume of claim {} is not on this cluster any more; no empty volume is \
                 created instead",
                self.name
            );
            Obstacle::new("VolumeMissing", message)
        };
        // Once it was filled, it may have been written: an empty one would hide the loss.
        match &self.pin {
            _ if self.is_filled() => Err(lost()),
            Pin::Fresh => Ok(Volume::Missing),
            Pin::InPlace { .. } => Err(lost()),
            Pin::Snapshot { .. } => self.can_be_copied(at),
        }
    }

    /// Whether a volume can be filled from a snapshot of another cluster: then it is missing so far.
    fn can_be_copied(&self, at: &At) -> Result<Volume, Obstacle> {
        let name = &self.name;
        let obstacle = |reason, message| Err(Obstacle::new(reason, message));
        if !at.is_copying {
            let message = format!(
                "the data of claim {name} has to be copied, and no mover runs on this cluster"
            );
            return obstacle("CopyNotSupported", message);
        }
        if self.destination.is_some() && self.own_destination().is_none() {
            let message =
                format!("the ReplicationDestination for claim {name} was not created by Interlock");
            return obstacle("NameTaken", message);
        }
        Ok(Volume::Missing)
    }
}
