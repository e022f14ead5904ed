//! Objects to facts.

use super::{Asked, Bundle, Checked, Facts, Home, Lack, SYSTEM};
use crate::applier::object::{apply, said};
use crate::applier::outside::{Answer, Held, Question, Reach, Scope};
use crate::applier::report::{Kinds, served};
use crate::applier::{NAMESPACE, Serves, wanted};
use crate::bundle::ObjectId;
use interlock_api::names::ANNOTATION_GRANT;
use interlock_api::rollouts::{PreflightMode, PreflightTarget, Target};
use interlock_kernel::metadata::{annotation, name_of};
use interlock_kernel::{DryRun, Kind, LiveReads, Object, Place, Read, View};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What a step is about.
pub struct Scene {
    pub(super) bundle: Vec<Read<Reach>>,
    pub(super) kinds: Vec<Read<Reach>>,
    pub(super) rights: Vec<Read<Reach>>,
    pub(super) dry_runs: Vec<Read<Reach>>,
    pub(super) report: Object,
}

impl Scene {
    fn of(report: &Object) -> Scene {
        let (bundle, kinds, rights, dry_runs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Scene { bundle, kinds, rights, dry_runs, report: report.clone() }
    }
}

/// The namespaces of the cluster.
pub(super) fn namespaces() -> Read<Reach> {
    Read::List { place: Place::CLUSTER, kind: NAMESPACE, namespace: None }
}

pub(super) fn observe(
    serves: &Serves,
    view: &dyn View,
    live_reads: &LiveReads<Reach>,
) -> Result<(Facts, Scene), String> {
    let followed = serves.read(view)?;
    let asked = followed.status.preflight.clone();
    let answered = followed.said.preflight.as_ref();
    let mut facts = Facts {
        asked: asked.as_ref().map(|it| Asked { uid: it.uid.clone(), digest: it.digest.clone() }),
        answered: answered.map(|it| Asked { uid: it.uid.clone(), digest: it.digest.clone() }),
        ..Facts::default()
    };
    let mut scene = Scene::of(&followed.report);
    let Some(asked) = asked else { return Ok((facts, scene)) };
    let question = Question::Bundle(asked.digest.clone());
    scene.bundle = vec![Read::Ask(question.clone())];
    let bundle = match live_reads.answers.get(&question) {
        Some(Answer::Bundle(Held::Whole(bundle))) => bundle,
        Some(Answer::Bundle(Held::Unreadable(why))) => {
            facts.bundle = Bundle::Unreadable(why.clone());
            return Ok((facts, scene));
        }
        Some(Answer::Served(_) | Answer::Refuses(_) | Answer::Lacks(_)) | None => {
            return Ok((facts, scene));
        }
    };
    facts.bundle = Bundle::Read;
    let objects = || bundle.objects().iter().map(|(id, manifest)| wanted::Wanted { id, manifest });
    let names: BTreeSet<(String, String)> = objects().map(|object| object.kind()).collect();
    let Some(kinds) = served(&names, live_reads) else {
        let asked = names.into_iter().map(|(version, kind)| Question::Served(version, kind));
        scene.kinds = asked.map(Read::Ask).collect();
        return Ok((facts, scene));
    };
    facts.are_kinds_known = true;
    let Some(homes) = live_reads.lists.get(&(Place::CLUSTER, NAMESPACE, None)) else {
        return Ok((facts, scene));
    };
    facts.are_namespaces_known = true;
    let scopes: BTreeSet<Scope> = objects().filter_map(|it| scope(&it, &kinds)).collect();
    let question = Question::Lacks(scopes.into_iter().collect());
    scene.rights = vec![Read::Ask(question.clone())];
    let Some(Answer::Lacks(lacking)) = live_reads.answers.get(&question) else {
        return Ok((facts, scene));
    };
    facts.are_rights_known = true;
    let of = Checking { asked: &asked, objects: bundle.objects(), kinds: &kinds, homes, lacking };
    // Dry runs are judged by the fence like any write: they are of the present token.
    let target = Target { force: asked.force, ..followed.status.target };
    for object in objects() {
        let mut checked = of.checked(&object);
        let dry_run = of.dry_run(&object, &checked, serves, &target);
        match dry_run.as_ref().map(|it| live_reads.dry_runs.get(it)) {
            None | Some(Some(Ok(_))) => {}
            Some(None) => scene.dry_runs.extend(dry_run.map(|it| Read::DryRun(Box::new(it)))),
            Some(Some(Err(refusal))) => {
                let refused = said(refusal);
                checked.refused = Some((refused.code, refused.message));
            }
        }
        facts.objects.push(checked);
    }
    facts.is_untried = !scene.dry_runs.is_empty();
    Ok((facts, scene))
}

/// What the objects of a request are checked against.
struct Checking<'a> {
    asked: &'a PreflightTarget,
    objects: &'a [(ObjectId, Value)],
    kinds: &'a Kinds,
    homes: &'a [Object],
    lacking: &'a BTreeMap<Scope, Vec<String>>,
}

/// Where the applier needs rights for an object; None: nobody serves its kind yet.
fn scope(object: &wanted::Wanted<'_>, kinds: &Kinds) -> Option<Scope> {
    let kind = kinds.get(&object.kind())?.as_ref()?;
    let namespace = wanted::address(object.id, kind).name.namespace;
    Some(Scope { kind: kind.clone(), namespace: namespace.map(|it| it.to_string()) })
}

impl Checking<'_> {
    fn checked(&self, object: &wanted::Wanted<'_>) -> Checked {
        let kind = self.kinds.get(&object.kind()).and_then(Option::as_ref);
        let is_served = kind.is_some() || self.is_defined(object.id);
        let home = self.home(object.id, kind);
        let lacks = self.lacks(object);
        Checked { id: object.id.to_string(), is_served, home, lacks, refused: None }
    }

    fn lacks(&self, object: &wanted::Wanted<'_>) -> Option<Lack> {
        let scope = scope(object, self.kinds)?;
        let verbs = self.lacking.get(&scope).filter(|verbs| !verbs.is_empty())?;
        let Scope { kind, namespace } = scope;
        let resource = match &*kind.group {
            "" => kind.plural.to_string(),
            group => format!("{}.{group}", kind.plural),
        };
        Some(Lack { verbs: verbs.clone(), resource, namespace })
    }

    /// Whether the bundle defines the kind itself.
    fn is_defined(&self, id: &ObjectId) -> bool {
        self.objects.iter().any(|(defines, manifest)| {
            let spec = &manifest["spec"];
            defines.kind == "CustomResourceDefinition"
                && spec["group"] == id.group.as_str()
                && spec["names"]["kind"] == id.kind.as_str()
        })
    }

    fn home(&self, id: &ObjectId, kind: Option<&Kind>) -> Home {
        let is_namespace = id.group.is_empty() && id.kind == "Namespace";
        let is_in_one = kind.is_some_and(|kind| kind.is_namespaced) || !id.namespace.is_empty();
        let name = match (is_namespace, is_in_one, id.namespace.as_str()) {
            (true, _, _) => &id.name,
            (false, false, _) => return Home::Fine,
            (false, true, "") => "default",
            (false, true, namespace) => namespace,
        };
        if name == SYSTEM {
            return Home::System;
        }
        let found = self.homes.iter().find(|home| name_of(home) == name);
        match found.map(|home| annotation(home, ANNOTATION_GRANT)) {
            Some(Some(grant)) => Home::Placed(name.to_owned(), grant.to_owned()),
            Some(None) => Home::Fine,
            None if is_namespace || self.is_in_bundle(name) => Home::Fine,
            None => Home::Missing(name.to_owned()),
        }
    }

    fn is_in_bundle(&self, namespace: &str) -> bool {
        let is_it = |id: &ObjectId| id.group.is_empty() && id.kind == "Namespace";
        self.objects.iter().any(|(id, _)| is_it(id) && id.name == namespace)
    }

    /// The dry run of an object, if the request asks for it and it can be made now: its kind is served, and its
    /// namespace is there.
    fn dry_run(
        &self,
        object: &wanted::Wanted<'_>,
        checked: &Checked,
        serves: &Serves,
        target: &Target,
    ) -> Option<DryRun> {
        if self.asked.mode != PreflightMode::DryRun || checked.home != Home::Fine {
            return None;
        }
        let kind = self.kinds.get(&object.kind())?.as_ref()?;
        let address = wanted::address(object.id, kind);
        let home = address.name.namespace.as_deref();
        let is_home = |home: &str| self.homes.iter().any(|there| name_of(there) == home);
        if !home.is_none_or(is_home) {
            return None;
        }
        let stamped = object.stamped(&serves.cluster.uid, target);
        Some(DryRun { is_forced: target.force, ..apply(&address, stamped, None) })
    }
}
