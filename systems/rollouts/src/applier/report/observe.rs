//! Objects to facts.

use super::Reports;
use super::decide::{Bundles, Extra, Facts, Listed, Wanted};
use crate::applier::compare::{contains, is_same, json};
use crate::applier::object::{Bundles as Held, HeldBundles, apply, bundles, questions};
use crate::applier::outside::{Answer, Question, Reach};
use crate::applier::{Serves, fenced, wanted};
use crate::bundle::ObjectId;
use crate::health::{Health, State, health};
use interlock_api::rollouts::{ANNOTATION_CONTENT, LABEL_ROLLOUT, RolloutReportStatus, Target};
use interlock_kernel::metadata::annotation;
use interlock_kernel::{DryRun, Kind, LiveReads, Name, Object, Place, Read, Selector, View};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a step is about.
pub struct Scene {
    pub(super) bundles: Vec<Read<Reach>>,
    pub(super) kinds: Vec<Read<Reach>>,
    pub(super) lists: Vec<Read<Reach>>,
    pub(super) dry_runs: Vec<Read<Reach>>,
    pub(super) report: Object,
    pub(super) said: RolloutReportStatus,
}

pub(super) fn observe(
    room: &Reports,
    view: &dyn View,
    live_reads: &LiveReads<Reach>,
) -> Result<(Facts, Scene), String> {
    let followed = room.serves.read(view)?;
    let target = followed.status.target.clone();
    let mut facts = Facts {
        now: view.now().as_second(),
        token: target.token,
        soak_seconds: i64::from(target.soak_seconds),
        settle_seconds: i64::from(followed.spec.settle_seconds),
        every_seconds: i64::try_from(room.every.as_secs()).unwrap_or(i64::MAX),
        needed: followed.spec.fence,
        is_quiet: followed.is_quiet(),
        said: followed.said.clone(),
        fence: fenced::seen(live_reads, &room.serves.user),
        ..Facts::default()
    };
    let mut scene = Scene {
        bundles: questions(&followed),
        kinds: Vec::new(),
        lists: Vec::new(),
        dry_runs: Vec::new(),
        report: followed.report.clone(),
        said: followed.said.clone(),
    };
    let held = match bundles(&followed, live_reads) {
        Held::Unasked => return Ok((facts, scene)),
        Held::Unreadable(why) => {
            facts.bundles = Bundles::Unreadable(why);
            return Ok((facts, scene));
        }
        Held::Read(held) => held,
    };
    facts.bundles = Bundles::Read;
    let names: BTreeSet<(String, String)> = held.all().map(|object| object.kind()).collect();
    let Some(kinds) = served(&names, live_reads) else {
        let asked = names.into_iter().map(|(version, kind)| Question::Served(version, kind));
        scene.kinds = asked.map(Read::Ask).collect();
        return Ok((facts, scene));
    };
    facts.are_kinds_known = true;
    let of = Selected { serves: &room.serves, target: &target, kinds: &kinds, live_reads };
    scene.lists = of.lists();
    if let Some(on_cluster) = of.on_cluster() {
        let is_watched = kinds.values().flatten().all(|kind| room.watched.contains(kind));
        let (mut listed, dry_runs) = of.listed(&held, &on_cluster, view.now());
        listed.is_watched = is_watched;
        scene.dry_runs = dry_runs;
        facts.listed = Some(listed);
    }
    Ok((facts, scene))
}

/// What the cluster serves of the kinds of some bundles; None: it was not asked about all of them.
pub(in crate::applier) type Kinds = BTreeMap<(String, String), Option<Kind>>;

/// What the cluster said of some kinds.
pub(in crate::applier) fn served(
    names: &BTreeSet<(String, String)>,
    live_reads: &LiveReads<Reach>,
) -> Option<Kinds> {
    let answer = |name: &(String, String)| {
        let (version, kind) = name.clone();
        match live_reads.answers.get(&Question::Served(version, kind)) {
            Some(Answer::Served(kind)) => Some((name.clone(), kind.clone())),
            Some(Answer::Bundle(_) | Answer::Refuses(_) | Answer::Lacks(_)) | None => None,
        }
    };
    names.iter().map(answer).collect()
}

/// All that is ours on the cluster, by kind and name.
type OnCluster<'a> = HashMap<(&'a Kind, Name), &'a Object>;

/// How the objects of a cluster are read.
struct Selected<'a> {
    serves: &'a Serves,
    target: &'a Target,
    kinds: &'a Kinds,
    live_reads: &'a LiveReads<Reach>,
}

impl<'a> Selected<'a> {
    fn keys(&self) -> impl Iterator<Item = (Place, Kind, Selector)> {
        let kinds: BTreeSet<&Kind> = self.kinds.values().flatten().collect();
        let selector = Selector::labelled_as(LABEL_ROLLOUT, &self.serves.cluster.uid);
        kinds.into_iter().map(move |kind| (Place::CLUSTER, kind.clone(), selector.clone()))
    }

    fn lists(&self) -> Vec<Read<Reach>> {
        let read = |(place, kind, selector)| Read::Selected { place, kind, selector };
        self.keys().map(read).collect()
    }

    /// None: not all kinds were listed.
    fn on_cluster(&self) -> Option<OnCluster<'a>> {
        let mut found = OnCluster::new();
        for key in self.keys() {
            let ((_, kind, _), objects) = self.live_reads.selected.get_key_value(&key)?;
            found.extend(objects.iter().map(|object| ((kind, Name::of(object)), object)));
        }
        Some(found)
    }

    fn listed(
        &self,
        held: &HeldBundles,
        on_cluster: &OnCluster<'a>,
        now: Timestamp,
    ) -> (Listed, Vec<Read<Reach>>) {
        let (mut listed, mut dry_runs) = (Listed::default(), Vec::new());
        let of_target = held.target.iter().flat_map(|bundle| bundle.objects());
        for (id, manifest) in of_target {
            let object = wanted::Wanted { id, manifest };
            let (seen, unsettled) = self.wanted(&object, on_cluster, now);
            listed.wanted.push(seen);
            dry_runs.extend(unsettled);
        }
        listed.is_unsettled = !dry_runs.is_empty();
        let mut known = BTreeSet::new();
        let of_others = held.others.iter().flat_map(|bundle| bundle.objects());
        for (id, manifest) in of_others {
            let object = wanted::Wanted { id, manifest };
            let is_wanted = held.target.as_ref().is_some_and(|it| wanted::find(it, id).is_some());
            if is_wanted || !known.insert(id) || self.ours(&object, on_cluster).is_none() {
                continue;
            }
            let is_kept = wanted::is_kept(id) && !self.target.prune_data;
            listed.extra.push(Extra { id: id.to_string(), wave: object.wave(), is_kept });
        }
        (listed, dry_runs)
    }

    /// The object on the cluster, if it is there and ours.
    fn ours(&self, object: &wanted::Wanted<'_>, on_cluster: &OnCluster<'a>) -> Option<&'a Object> {
        let kind = self.kinds.get(&object.kind())?.as_ref()?;
        let name = wanted::address(object.id, kind).name;
        let found = on_cluster.get(&(kind, name)).copied();
        found.filter(|found| wanted::is_ours(found, &self.serves.cluster.uid, object.id))
    }

    /// How an object of the target is, and the dry run that it takes to say so.
    fn wanted(
        &self,
        object: &wanted::Wanted<'_>,
        on_cluster: &OnCluster<'a>,
        now: Timestamp,
    ) -> (Wanted, Option<Read<Reach>>) {
        let mut seen = Wanted {
            id: object.id.to_string(),
            wave: object.wave(),
            is_applied: false,
            is_served: true,
            health: missing(object.id),
        };
        let Some(Some(kind)) = self.kinds.get(&object.kind()) else {
            seen.is_served = false;
            return (seen, None);
        };
        let Some(there) = self.ours(object, on_cluster) else { return (seen, None) };
        seen.health = health(there, now);
        if annotation(there, ANNOTATION_CONTENT) != Some(object.content().as_str()) {
            return (seen, None);
        }
        seen.is_applied = contains(&json(there), object.manifest);
        if seen.is_applied {
            return (seen, None);
        }
        let address = wanted::address(object.id, kind);
        let stamped = object.stamped(&self.serves.cluster.uid, self.target);
        let asked = apply(&address, stamped, Some(there));
        let asked = DryRun { is_forced: self.target.force, ..asked };
        match self.live_reads.dry_runs.get(&asked) {
            None => (seen, Some(Read::DryRun(Box::new(asked)))),
            Some(answer) => {
                seen.is_applied = answer.as_ref().is_ok_and(|it| is_same(there, it));
                (seen, None)
            }
        }
    }
}

fn missing(id: &ObjectId) -> Health {
    let message = format!("{id} is not on the cluster");
    Health { state: State::Unknown, reason: "NotApplied".to_owned(), message }
}
