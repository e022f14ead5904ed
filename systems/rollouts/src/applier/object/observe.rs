//! Objects to facts.

use super::decide::{Facts, Live, Placed, Refused, Role, Served, There, Tried};
use crate::applier::compare::{contains, is_same, json};
use crate::applier::outside::{Answer, Held, Question, Reach};
use crate::applier::{Followed, NAMESPACE, Serves, fenced, wanted};
use crate::bundle::{Bundle, ObjectId};
use crate::fence::word_of;
use interlock_api::names::ANNOTATION_GRANT;
use interlock_api::rollouts::{
    ANNOTATION_CONTENT, ANNOTATION_TOKEN, FenceMode, ROLLOUT_MANAGER, RolloutReportStatus, Verdict,
};
use interlock_kernel::metadata::{annotation, is_deleting};
use interlock_kernel::{
    Address, DryRun, Kind, LiveReads, Name, Object, Place, Read, Refusal, Subject, View,
};
use std::sync::Arc;

/// The most characters of a message in a report.
const MOST_CHARACTERS: usize = 1_000;

/// What a step is about.
pub struct Scene {
    pub(super) token: i64,
    pub(super) id: ObjectId,
    /// The bundles to ask for, and the question about the kind.
    pub(super) bundles: Vec<Read<Reach>>,
    pub(super) kind: Option<(String, String)>,
    /// The object as it was read, and where it is.
    pub(super) address: Option<Address>,
    pub(super) there: Option<Object>,
    /// The apply, as it is tried and done.
    pub(super) apply: Option<DryRun>,
    /// The namespace to read before the apply, where no policy of the cluster refuses those of Grants.
    pub(super) home: Option<Address>,
    /// The token of a late write, if what is there is one.
    pub(super) late: Option<i64>,
    pub(super) report: Object,
    pub(super) said: RolloutReportStatus,
}

impl Scene {
    /// Of an object of which nothing was read yet.
    fn of(followed: &Followed, id: ObjectId) -> Scene {
        Scene {
            token: followed.status.target.token,
            id,
            bundles: questions(followed),
            kind: None,
            address: None,
            there: None,
            apply: None,
            home: None,
            late: None,
            report: followed.report.clone(),
            said: followed.said.clone(),
        }
    }
}

/// What the record and the report say of an object.
fn of_record(followed: &Followed, id: &ObjectId, subject: &Subject) -> Facts {
    let (target, said) = (&followed.status.target, &followed.said);
    let is_of_token = said.token == target.token;
    let noted = said.failed.iter().find(|failed| *failed.id == **subject);
    let noted = noted.filter(|_| is_of_token);
    Facts {
        token: target.token,
        is_named: is_of_token && said.pending.iter().any(|named| **named == **subject),
        is_fenced: is_of_token
            && fenced::is_reported(said.fence.as_ref(), target.token, followed.spec.fence),
        is_quiet: followed.is_quiet(),
        is_forced: target.force,
        is_kept: wanted::is_kept(id) && !target.prune_data,
        noted: noted.map(|it| Refused { code: it.code.clone(), message: it.message.clone() }),
        ..Facts::default()
    }
}

pub(super) fn observe(
    serves: &Serves,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Reach>,
) -> Result<(Facts, Scene), String> {
    let followed = serves.read(view)?;
    let id = ObjectId::read(subject).ok_or_else(|| format!("{subject:?} names no object"))?;
    let (target, said) = (&followed.status.target, &followed.said);
    let mut facts = of_record(&followed, &id, subject);
    let mut scene = Scene::of(&followed, id);
    let held = match bundles(&followed, live_reads) {
        Bundles::Unasked => return Ok((facts, scene)),
        Bundles::Unreadable(_) => {
            facts.role = Role::Unreadable;
            return Ok((facts, scene));
        }
        Bundles::Read(held) => held,
    };
    let found = held.role_of(&scene.id);
    facts.role = found.0;
    let Some(object) = found.1 else { return Ok((facts, scene)) };
    let (api_version, kind) = object.kind();
    scene.kind = Some((api_version.clone(), kind.clone()));
    let kind = match live_reads.answers.get(&Question::Served(api_version, kind)) {
        Some(Answer::Served(Some(kind))) => kind.clone(),
        Some(Answer::Served(None)) => {
            facts.served = Served::No;
            return Ok((facts, scene));
        }
        Some(Answer::Bundle(_) | Answer::Refuses(_) | Answer::Lacks(_)) | None => {
            return Ok((facts, scene));
        }
    };
    facts.served = Served::Yes;
    let address = wanted::address(&scene.id, &kind);
    scene.address = Some(address.clone());
    let Some(there) = live_reads.objects.get(&address) else { return Ok((facts, scene)) };
    scene.there.clone_from(there);
    facts.live = match there {
        None => Live::Absent,
        Some(there) => Live::There(There {
            is_ours: wanted::is_ours(there, &serves.cluster.uid, &scene.id),
            is_deleting: is_deleting(there),
            differs: facts.role == Role::Wanted && differs(there, &object),
            mark: wanted::mark_of(there),
        }),
    };
    scene.late = there.as_ref().and_then(|there| late(&facts, &followed, there, &object));
    if facts.role == Role::Wanted {
        // The policy of the fence refuses whatever is in a namespace of a Grant, and so it refuses the dry run.
        let has_policy = said.fence.as_ref().is_some_and(|fence| fence.mode != FenceMode::None);
        scene.home = if has_policy { None } else { home(&address) };
        let apply = apply(&address, object.stamped(&serves.cluster.uid, target), there.as_ref());
        let apply = DryRun { is_forced: target.force, ..apply };
        facts.placed = placed(&address, live_reads);
        facts.tried = tried(live_reads.dry_runs.get(&apply), there.as_ref());
        scene.apply = Some(apply);
    }
    Ok((facts, scene))
}

/// The bundles of a record.
pub(in crate::applier) struct HeldBundles {
    pub(in crate::applier) target: Option<Arc<Bundle>>,
    pub(in crate::applier) others: Vec<Arc<Bundle>>,
}

/// The bundles of a record, as far as they were asked for.
pub(in crate::applier) enum Bundles {
    /// Not all of them were asked for.
    Unasked,
    /// One that is needed cannot be read, and why.
    Unreadable(String),
    /// They were read.
    Read(HeldBundles),
}

impl HeldBundles {
    /// Every object of every bundle.
    pub(in crate::applier) fn all(&self) -> impl Iterator<Item = wanted::Wanted<'_>> {
        let bundles = self.target.iter().chain(&self.others);
        let objects = bundles.flat_map(|bundle| bundle.objects());
        objects.map(|(id, manifest)| wanted::Wanted { id, manifest })
    }

    /// What an object is, and as which it is found.
    fn role_of(&self, id: &ObjectId) -> (Role, Option<wanted::Wanted<'_>>) {
        let of_target = self.target.as_ref().and_then(|bundle| wanted::find(bundle, id));
        if of_target.is_some() {
            return (Role::Wanted, of_target);
        }
        match self.others.iter().find_map(|bundle| wanted::find(bundle, id)) {
            Some(listed) => (Role::Listed, Some(listed)),
            None => (Role::Unlisted, None),
        }
    }
}

/// The questions for all bundles of a record.
pub(in crate::applier) fn questions(followed: &Followed) -> Vec<Read<Reach>> {
    let all = followed.status.target.digest.iter().cloned().chain(followed.others());
    all.map(|digest| Read::Ask(Question::Bundle(digest))).collect()
}

/// The bundles. That of the target must be there, and those of which objects may exist; of the history only what can
/// still be read counts: what it lists besides is not deleted.
pub(in crate::applier) fn bundles(followed: &Followed, live_reads: &LiveReads<Reach>) -> Bundles {
    let held = |digest: &String| match live_reads.answers.get(&Question::Bundle(digest.clone())) {
        Some(Answer::Bundle(held)) => Some(held.clone()),
        Some(Answer::Served(_) | Answer::Refuses(_) | Answer::Lacks(_)) | None => None,
    };
    let target = match &followed.status.target.digest {
        None => None,
        Some(digest) => match held(digest) {
            None => return Bundles::Unasked,
            Some(Held::Unreadable(why)) => return Bundles::Unreadable(why),
            Some(Held::Whole(bundle)) => Some(bundle),
        },
    };
    let mut others = Vec::new();
    for digest in followed.others() {
        match held(&digest) {
            None => return Bundles::Unasked,
            Some(Held::Whole(bundle)) => others.push(bundle),
            Some(Held::Unreadable(why)) if followed.status.may_exist.contains(&digest) => {
                return Bundles::Unreadable(why);
            }
            Some(Held::Unreadable(_)) => {}
        }
    }
    Bundles::Read(HeldBundles { target, others })
}

/// Whether an object lacks what the target states, as far as its text says.
pub(in crate::applier) fn differs(there: &Object, wanted: &wanted::Wanted<'_>) -> bool {
    let is_applied = annotation(there, ANNOTATION_CONTENT) == Some(wanted.content().as_str());
    !is_applied || !contains(&json(there), wanted.manifest)
}

/// The token of a late write, if what is there is one: it is ours and was applied under an older token, and it was not
/// there, or had the content of the target, when the target was verified. People who change an object leave the annotation
/// of its content as it is.
fn late(
    facts: &Facts,
    followed: &Followed,
    there: &Object,
    object: &wanted::Wanted<'_>,
) -> Option<i64> {
    let is_verified =
        followed.said.token == facts.token && followed.said.verdict == Verdict::Soaked;
    let is_ours = matches!(facts.live, Live::There(There { is_ours: true, .. }));
    let content = annotation(there, ANNOTATION_CONTENT);
    let is_other = match facts.role {
        Role::Listed => true,
        Role::Wanted => content.is_some_and(|content| content != object.content()),
        Role::Unasked | Role::Unreadable | Role::Unlisted => false,
    };
    let token: i64 = annotation(there, ANNOTATION_TOKEN)?.parse().ok()?;
    (is_verified && is_ours && is_other && token < facts.token).then_some(token)
}

/// The apply of an object. One that is there is named by uid and version.
pub(in crate::applier) fn apply(
    address: &Address,
    object: serde_json::Value,
    there: Option<&Object>,
) -> DryRun {
    DryRun {
        address: address.clone(),
        object,
        manager: ROLLOUT_MANAGER,
        is_forced: false,
        uid: there.and_then(|there| there.metadata.uid.clone()),
        resource_version: there.and_then(|there| there.metadata.resource_version.clone()),
    }
}

/// The namespace of an object, or the object itself where it is a namespace.
fn home(address: &Address) -> Option<Address> {
    let is_namespace = address.kind.group.is_empty() && address.kind.kind == "Namespace";
    let own = is_namespace.then_some(&address.name.name);
    let home = address.name.namespace.as_ref().or(own)?;
    let kind: &Kind = &NAMESPACE;
    Some(Address::new(Place::CLUSTER, kind, Name::cluster_wide(home)))
}

fn placed(address: &Address, live_reads: &LiveReads<Reach>) -> Placed {
    let home = home(address).and_then(|home| live_reads.objects.get(&home).cloned().flatten());
    match home.as_ref().and_then(|home| annotation(home, ANNOTATION_GRANT)) {
        Some(grant) => Placed::By(grant.to_owned()),
        None => Placed::No,
    }
}

fn tried(answer: Option<&Result<Object, Refusal>>, there: Option<&Object>) -> Tried {
    match (answer, there) {
        (None, _) => Tried::Unasked,
        (Some(Ok(would_be)), Some(there)) if is_same(there, would_be) => Tried::Same,
        (Some(Ok(_)), _) => Tried::Changes,
        (Some(Err(refusal)), _) if refusal.code == 409 && refusal.reason == "Conflict" => {
            Tried::Changed
        }
        (Some(Err(refusal)), _) => Tried::Refused(said(refusal)),
    }
}

/// A refusal as the report has it. One of the policy of the fence has a word of its own.
pub(in crate::applier) fn said(refusal: &Refusal) -> Refused {
    let code = match (word_of(&refusal.message), refusal.reason.as_str()) {
        (Some(word), _) => word.to_owned(),
        (None, "") => format!("Status{}", refusal.code),
        (None, reason) => reason.chars().take(64).collect(),
    };
    let message: String = refusal.message.chars().take(MOST_CHARACTERS).collect();
    Refused { code, message }
}
