//! The claims that a grant lists, each with all that is here of it.

use super::facts::{
    At, AtHub, Binding, Bound, Destination, Facts, Here, Own, Pin, Progress, SnapshotHere, Source,
    Tidying,
};
use super::objects::{class_wanted, is_on, noted_epoch, place_of, snapshot_class};
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT, SOURCE, STORAGE_CLASS, VOLUME};
use crate::record::GrantRecord;
use crate::syncer::copying::{
    asked, confirmed, destination_name, has_given_up, is_arrival, is_final, is_syncing,
    is_through_repository, reported, reported_number, secret_of, source_name, tidy_name, tidy_tag,
    trouble,
};
use crate::syncer::marks::{ANNOTATION_LAST, from_uid, is_ours};
use crate::syncer::observe::StepInputs;
use interlock_api::names::{FINALIZER_KEEP, FINALIZER_POPULATE, LOCAL_DRIVER, hold_finalizer};
use interlock_api::placement::{self, Claim, Snapshot};
use interlock_kernel::metadata::{annotation, has_finalizer, is_deleting, name_of, uid_of};
use interlock_kernel::{Address, Kind, Name, Object, Place, View};
use kube_core::DynamicObject;

/// How often it is reported, at most, how far the data has come.
const TOLD_EVERY_SECONDS: i64 = 1;

const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// A claim that the grant lists, with the objects that are about it.
#[derive(Debug)]
pub(crate) struct ClaimSeen {
    /// As the grant lists it.
    pub(in crate::syncer) listed: Claim,
    /// What it starts from.
    pub(in crate::syncer) pin: Option<placement::Pin>,
    /// The claim at the hub, of this very uid.
    pub(in crate::syncer) at_hub: Option<Object>,
    /// Whatever has its name on the cluster.
    pub(in crate::syncer) here: Option<Object>,
    /// The volume that this is bound to.
    pub(in crate::syncer) volume: Option<Object>,
    /// Whatever takes snapshots of it here.
    pub(in crate::syncer) source: Option<Object>,
    /// The snapshot that the source says it made last.
    pub(in crate::syncer) snapshot: Option<Object>,
    /// Whatever brings the snapshot of this epoch here.
    pub(in crate::syncer) destination: Option<Object>,
    /// Whatever removes what earlier moves left in a repository.
    pub(in crate::syncer) tidying: Option<Object>,
    /// The class of snapshots of the volume that is here.
    pub(in crate::syncer) class_here: &'static str,
    /// The class of snapshots of the volume that it is to have.
    pub(in crate::syncer) class_wanted: &'static str,
}

/// All claims that the grant lists.
pub(in crate::syncer) fn observe(inputs: &StepInputs<'_>, at: &At) -> (Vec<Facts>, Vec<ClaimSeen>) {
    let Some(grant) = &inputs.grant else { return Default::default() };
    let listed = &grant.status.claims;
    let classes = match at.is_copying && !listed.is_empty() {
        true => inputs.view.list(Place::CLUSTER, &STORAGE_CLASS, None),
        false => Vec::new(),
    };
    let observing = Observing { inputs, at, grant, classes: &classes };
    listed.iter().map(|listed| observe_one(&observing, listed)).unzip()
}

/// What every claim of a grant is observed with.
struct Observing<'a> {
    inputs: &'a StepInputs<'a>,
    at: &'a At,
    grant: &'a GrantRecord,
    classes: &'a [Object],
}

fn observe_one(observing: &Observing<'_>, listed: &Claim) -> (Facts, ClaimSeen) {
    let Observing { inputs, at, grant, classes } = *observing;
    let view = inputs.view;
    let within = |other: &str| Name::within(inputs.name, other);
    let copying = at.is_copying.then_some(view);
    let found = |kind: &Kind, other: &str| copying?.get(Place::CLUSTER, kind, &within(other));
    let hub = Address::new(Place::HUB, &CLAIM, Name::within(&at.namespace, &listed.name));
    let at_hub = view.get(Place::HUB, &CLAIM, &hub.name);
    let at_hub = at_hub.filter(|claim| uid_of(claim) == listed.uid);
    let here = view.get(Place::CLUSTER, &CLAIM, &within(&listed.name));
    let source = found(&SOURCE, &source_name(&listed.name));
    let pin = grant.status.pins.iter().find(|pin| pin.claim_uid == listed.uid);
    let class_of_snapshots =
        |name: Option<&str>| snapshot_class(class_of(name, classes).map(|class| &**class));
    let class_wanted = at_hub
        .as_deref()
        .map_or("", |at_hub| class_of_snapshots(class_wanted(at_hub, &grant.spec.volumes)));
    let class_here = here
        .as_deref()
        .map_or("", |here| class_of_snapshots(here.data["spec"]["storageClassName"].as_str()));
    let is_restic = pin.is_some_and(|pin| matches!(pin.snapshot, Snapshot::Restic { .. }));
    let seen = ClaimSeen {
        listed: listed.clone(),
        pin: pin.cloned(),
        at_hub,
        volume: here.as_ref().and_then(|here| found_volume(here, copying?)),
        here,
        snapshot: source.as_ref().and_then(|source| snapshot_of(source, inputs)),
        source,
        destination: found(&DESTINATION, &destination_name(&listed.name, at.epoch)),
        tidying: if is_restic { found(&SOURCE, &tidy_name(&listed.name)) } else { None },
        class_here,
        class_wanted,
    };
    let reported_before = listed.progress.as_ref();
    let facts = Facts {
        name: listed.name.clone(),
        uid: listed.uid.clone(),
        at_hub: seen.at_hub.as_ref().map(|claim| AtHub {
            is_terminating: is_deleting(claim),
            has_finalizer: has_finalizer(claim, &inputs.syncer.finalizer),
        }),
        hub_read: inputs
            .live_reads
            .objects
            .get(&hub)
            .map(|found| found.as_ref().is_some_and(|found| uid_of(found) == listed.uid)),
        fill: listed.fill,
        reported: reported_before
            .map(|reported| Progress { bytes: reported.bytes, of_bytes: reported.of_bytes }),
        is_reported_lately: reported_before.is_some_and(|reported| {
            let ago = view.now().as_second().saturating_sub(reported.at.0.as_second());
            (0..TOLD_EVERY_SECONDS).contains(&ago)
        }),
        pin: pin_facts(inputs, pin),
        here: here_facts(inputs, at, &seen),
        binding: match at.is_copying {
            true => binding(seen.here.as_deref(), classes),
            false => Binding::NotAsked,
        },
        source: seen.source.as_ref().map(|source| source_facts(inputs, at, &seen, source)),
        destination: seen
            .destination
            .as_ref()
            .map(|destination| destination_facts(inputs, at, &seen, destination)),
        tidying: match &seen.tidying {
            _ if !is_restic || !at.is_copying => Tidying::NotNeeded,
            None => Tidying::Missing,
            Some(there) if can_be_asked_to_tidy(there, at) => Tidying::Earlier,
            Some(_) => Tidying::Asked,
        },
    };
    (facts, seen)
}

fn pin_facts(inputs: &StepInputs<'_>, pin: Option<&placement::Pin>) -> Pin {
    let Some(pin) = pin else { return Pin::Fresh };
    match &pin.snapshot {
        Snapshot::Fresh {} => Pin::Fresh,
        Snapshot::InPlace { cluster, volume } => Pin::InPlace {
            is_here: cluster.is_same(&inputs.syncer.cluster),
            cluster: cluster.to_string(),
            volume: volume.clone(),
        },
        Snapshot::VolumeSnapshot { .. } => Pin::Snapshot {
            place: place_of(&pin.snapshot),
            secret: None,
            epoch: pin.epoch,
            bytes: pin.bytes,
        },
        Snapshot::Restic { secret, .. } => Pin::Snapshot {
            place: place_of(&pin.snapshot),
            secret: Some(secret.clone()),
            epoch: pin.epoch,
            bytes: pin.bytes,
        },
    }
}

fn here_facts(inputs: &StepInputs<'_>, at: &At, seen: &ClaimSeen) -> Here {
    let Some(here) = &seen.here else { return Here::Missing };
    if !is_ours(here, inputs.name) {
        return Here::Foreign;
    }
    if from_uid(here) != Some(&seen.listed.uid) {
        return Here::Earlier;
    }
    let pinned = match seen.pin.as_ref().map(|pin| &pin.snapshot) {
        Some(Snapshot::InPlace { volume, .. }) => Some(volume),
        _ => None,
    };
    let bound_to = here.data["spec"]["volumeName"].as_str().filter(|volume| !volume.is_empty());
    Here::Own(Own {
        epoch: noted_epoch(here),
        is_terminating: is_deleting(here),
        is_kept: has_finalizer(here, FINALIZER_KEEP),
        is_bound: here.data["status"]["phase"] == "Bound",
        is_being_filled: has_finalizer(here, FINALIZER_POPULATE),
        is_pinned: pinned.is_some_and(|volume| is_on(here, volume)),
        is_last: last(here, at).is_some(),
        volume: match (bound_to, &seen.volume) {
            (None, _) => Bound::Nothing,
            (Some(_), None) => Bound::Unseen,
            (Some(_), Some(volume)) if stays(volume, inputs.name) => Bound::Staying,
            (Some(_), Some(_)) => Bound::Terminating,
        },
    })
}

/// The volume that was noted as what this epoch leaves.
pub(super) fn last<'a>(here: &'a Object, at: &At) -> Option<&'a str> {
    let (epoch, volume) = annotation(here, ANNOTATION_LAST)?.split_once('@')?;
    (epoch.parse() == Ok(at.epoch) && !volume.is_empty()).then_some(volume)
}

fn found_volume(here: &Object, view: &dyn View) -> Option<Object> {
    let volume = here.data["spec"]["volumeName"].as_str().filter(|volume| !volume.is_empty())?;
    view.get(Place::CLUSTER, &VOLUME, &Name::cluster_wide(volume))
}

/// Whether a volume stays when its claim is being deleted, and is known to be of this grant.
fn stays(volume: &DynamicObject, grant: &str) -> bool {
    is_ours(volume, grant) && volume.data["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
}

/// Whether a claim on this cluster has its volume.
fn binding(here: Option<&DynamicObject>, classes: &[Object]) -> Binding {
    let Some(here) = here else { return Binding::NotAsked };
    match here.data["status"]["phase"].as_str() {
        Some("Bound") => return Binding::Bound,
        Some("Lost") => return Binding::Lost,
        _ => {}
    }
    let class = class_of(here.data["spec"]["storageClassName"].as_str(), classes);
    let is_ours = class.as_ref().is_some_and(|class| class.data["provisioner"] == LOCAL_DRIVER);
    if !is_ours && here.data["spec"]["dataSourceRef"].is_null() {
        return Binding::NotAsked;
    }
    match class.is_some_and(|class| class.data["volumeBindingMode"] == "WaitForFirstConsumer") {
        true => Binding::AwaitsConsumer,
        false => Binding::Unbound,
    }
}

/// The class of this name, or that of claims which name none.
fn class_of<'a>(wanted: Option<&str>, classes: &'a [Object]) -> Option<&'a Object> {
    classes.iter().find(|class| match wanted {
        Some(wanted) => name_of(class) == wanted,
        None => annotation(class, IS_DEFAULT) == Some("true"),
    })
}

/// The snapshot that a source says it made last, if that very one is in the cache.
fn snapshot_of(source: &Object, inputs: &StepInputs<'_>) -> Option<Object> {
    let snapshot = Name::within(inputs.name, reported(source, "snapshot")?);
    let snapshot = inputs.view.get(Place::CLUSTER, &SNAPSHOT, &snapshot)?;
    (Some(uid_of(&snapshot)) == reported(source, "snapshotUID")).then_some(snapshot)
}

/// What a live read showed of the snapshot that a source or destination names.
fn snapshot_read(inputs: &StepInputs<'_>, mover: &Object) -> Option<Option<Object>> {
    let snapshot = Name::within(inputs.name, reported(mover, "snapshot")?);
    let found =
        inputs.live_reads.objects.get(&Address::new(Place::CLUSTER, &SNAPSHOT, snapshot))?.clone();
    Some(found.filter(|found| Some(uid_of(found)) == reported(mover, "snapshotUID")))
}

fn source_facts(inputs: &StepInputs<'_>, at: &At, seen: &ClaimSeen, source: &Object) -> Source {
    let hold = hold_finalizer(inputs.grant_uid());
    Source {
        name: name_of(source).to_owned(),
        is_ours: is_ours(source, inputs.name),
        is_for_claim: from_uid(source) == Some(&seen.listed.uid),
        is_terminating: is_deleting(source),
        is_asked: asked(source).is_some_and(|tag| is_final(tag, at.epoch)),
        is_confirmed: asked(source) == confirmed(source),
        is_syncing: is_syncing(source),
        has_lost_snapshot: has_given_up(source, "SnapshotGone"),
        trouble: trouble(source),
        is_saving: is_through_repository(source),
        secret: secret_of(source).map(str::to_owned),
        has_saved: reported(source, "snapshotID").is_some(),
        names_snapshot: reported(source, "snapshot").is_some()
            && reported(source, "snapshotUID").is_some(),
        snapshot: seen.snapshot.as_ref().map(|snapshot| SnapshotHere {
            uid: uid_of(snapshot).to_owned(),
            is_ready: snapshot.data["status"]["readyToUse"] == true,
            is_held: has_finalizer(snapshot, &hold),
            is_terminating: is_deleting(snapshot),
        }),
        snapshot_read: snapshot_read(inputs, source)
            .map(|found| found.is_some_and(|found| !is_deleting(&found))),
    }
}

fn destination_facts(
    inputs: &StepInputs<'_>,
    at: &At,
    seen: &ClaimSeen,
    found: &Object,
) -> Destination {
    let is_own = is_ours(found, inputs.name) && from_uid(found) == Some(&seen.listed.uid);
    Destination {
        is_own,
        has_arrived: asked(found).is_some_and(|tag| is_arrival(tag, at.epoch))
            && confirmed(found) == asked(found),
        has_lost_snapshot: has_given_up(found, "SnapshotLost"),
        trouble: trouble(found),
        names_snapshot: reported(found, "snapshot").is_some()
            && reported(found, "snapshotUID").is_some(),
        is_snapshot_here: snapshot_of(found, inputs).is_some(),
        snapshot_read: snapshot_read(inputs, found).map(|found| found.is_some()),
        bytes: reported_number(found, "progressBytes"),
        of_bytes: reported_number(found, "progressOfBytes"),
    }
}

/// Whether whatever removes what earlier moves left can be asked for this epoch: it is ours and
/// stays, is not at work for an earlier epoch, and was not asked yet.
fn can_be_asked_to_tidy(there: &Object, at: &At) -> bool {
    is_ours(there, &at.grant)
        && !is_deleting(there)
        && asked(there) == confirmed(there)
        && asked(there) != Some(&tidy_tag(at.epoch))
}
