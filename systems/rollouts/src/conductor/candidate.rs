//! The request that is to be numbered, by live reads of it and of its bundle.

use super::facts::{Candidate, Request, Revision, Source as Found};
use crate::bundle::{Bundle, File, Flaw, PART_KEY, decompressed, joined, revisions, unpacked};
use crate::kinds::{BUNDLE_REVISION, CLUSTER_UPDATE, CONFIG_MAP, NAMESPACE, SECRET};
use crate::record::Record;
use crate::selector::{is_empty, is_selected};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interlock_api::rollouts::{
    BundleRevisionSpec, ClusterRolloutStatus, ClusterUpdateSpec, ClusterUpdateStatus,
    FINALIZER_ROLLOUT, MOST_INLINE_BYTES, RawObject, Source, part_name,
};
use interlock_kernel::metadata::{has_finalizer, is_deleting, name_of, namespace_of, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Nothing, Object, Place, Read, read_part};
use kube_core::DynamicObject;
use serde_json::Value;

/// The most flaws of a bundle that are named in the reason of a request.
const MOST_NAMED: usize = 3;

/// What live reads say, and what `act` writes of it.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The request, as the live read shows it.
    pub(super) request: Option<Object>,
    /// The digest of its bundle.
    pub(super) digest: Option<String>,
    /// The parts of its bundle, if the bundle itself was read.
    pub(super) parts: Vec<BundleRevisionSpec>,
}

fn address(kind: &interlock_kernel::Kind, name: Name) -> Address {
    Address::new(Place::HUB, kind, name)
}

/// Where a part of a bundle is.
pub(super) fn part_address(digest: &str, part: u32) -> Address {
    address(&BUNDLE_REVISION, Name::cluster_wide(&part_name(digest, part)))
}

fn spec_of(update: &DynamicObject) -> Option<ClusterUpdateSpec> {
    read_part(update, "spec").ok().flatten()
}

/// Whether the status of a request says its outcome. The schema makes that final, so an old version is as good as any.
pub(crate) fn is_over(update: &DynamicObject) -> bool {
    let status = read_part::<ClusterUpdateStatus>(update, "status").ok().flatten();
    status.is_some_and(|status| status.phase.is_terminal())
}

/// What is read live of a request before it is numbered: the request first, since what it names may change until it is.
pub(super) fn reads(update: &DynamicObject, record: &Record) -> Vec<Read<Nothing>> {
    let namespace = namespace_of(update);
    let mut all = vec![address(&CLUSTER_UPDATE, Name::of(update))];
    if !is_empty(&record.spec.allowed_namespaces) {
        all.push(address(&NAMESPACE, Name::cluster_wide(namespace)));
    }
    match spec_of(update).map(|spec| spec.source) {
        Some(Source::ConfigMap(source)) => {
            all.push(address(&CONFIG_MAP, Name::within(namespace, &source.name)));
        }
        Some(Source::Packed(source)) => {
            let each = source.secrets.iter().map(|name| Name::within(namespace, name));
            all.extend(each.map(|name| address(&SECRET, name)));
        }
        Some(Source::Inline(_) | Source::Revision(_)) | None => {}
    }
    all.into_iter().map(Read::Object).collect()
}

/// What live reads say of a request that the cache shows without an entry.
pub(super) fn observe(
    update: &Object,
    record: &Record,
    live: &LiveReads<Nothing>,
) -> (Candidate, Seen) {
    let found = live.objects.get(&address(&CLUSTER_UPDATE, Name::of(update)));
    let Some(found) = found else {
        return (Candidate::Unread(uid_of(update).to_owned()), Seen::default());
    };
    let same = found.as_ref().filter(|found| uid_of(found) == uid_of(update));
    let same = same.filter(|found| !is_over(found) && has_finalizer(found, FINALIZER_ROLLOUT));
    let Some(request) = same else { return (Candidate::Behind, Seen::default()) };
    let mut seen = Seen { request: Some(request.clone()), ..Seen::default() };
    let spec = spec_of(request);
    let source = match &spec {
        Some(spec) => source(spec, namespace_of(request), live),
        None => Err(Found::Invalid("spec cannot be read".to_owned())),
    };
    let source = match source {
        Ok(of) => of.found(&record.status, live, &mut seen),
        Err(found) => found,
    };
    let request = Request {
        uid: uid_of(request).to_owned(),
        namespace: namespace_of(request).to_owned(),
        is_cancelled: is_deleting(request) || spec.as_ref().is_some_and(|spec| spec.cancel),
        is_allowed: is_allowed(request, record, live),
        retry_bad: spec.is_some_and(|spec| spec.retry_bad),
        source,
    };
    (Candidate::Here(Box::new(request)), seen)
}

fn is_allowed(request: &DynamicObject, record: &Record, live: &LiveReads<Nothing>) -> bool {
    let selector = &record.spec.allowed_namespaces;
    let namespace = address(&NAMESPACE, Name::cluster_wide(namespace_of(request)));
    let there = live.objects.get(&namespace).and_then(Option::as_ref);
    is_empty(selector)
        || there.is_some_and(|there| is_selected(selector, there.metadata.labels.as_ref()))
}

/// A bundle as a request names it.
enum Named {
    /// The bundle itself.
    Bundle(Bundle),
    /// One of the history.
    Revision(String),
}

fn source(
    spec: &ClusterUpdateSpec,
    namespace: &str,
    live: &LiveReads<Nothing>,
) -> Result<Named, Found> {
    match &spec.source {
        Source::Inline(objects) => inline(objects),
        Source::Revision(digest) => Ok(Named::Revision(digest.clone())),
        Source::ConfigMap(source) => {
            let found = there(&CONFIG_MAP, namespace, &source.name, live)?;
            let data = found.data["data"].as_object().into_iter().flatten();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let files: Vec<File> =
                data.map(|(name, value)| File { name: name.clone(), text: text(value) }).collect();
            Bundle::from_files(&files).map(Named::Bundle).map_err(|flaws| invalid(&flaws))
        }
        Source::Packed(source) => {
            let mut parts = Vec::new();
            for name in &source.secrets {
                let found = there(&SECRET, namespace, name, live)?;
                let encoded = found.data["data"][PART_KEY].as_str().unwrap_or_default();
                let part = STANDARD.decode(encoded).map_err(|error| {
                    Found::Invalid(format!("Secret {namespace}/{name} has no {PART_KEY}: {error}"))
                })?;
                parts.push(part);
            }
            let bundle = unpacked(&source.digest, &parts);
            bundle.map(Named::Bundle).map_err(|flaw| invalid(&[flaw]))
        }
    }
}

fn inline(objects: &[RawObject]) -> Result<Named, Found> {
    let objects: Vec<Value> = objects.iter().map(|raw| Value::Object(raw.0.clone())).collect();
    let bytes: usize = objects.iter().map(|object| object.to_string().len()).sum();
    if bytes > MOST_INLINE_BYTES {
        return Err(Found::Invalid(format!(
            "spec.source.inline has {bytes} bytes, at most {MOST_INLINE_BYTES}; \
             use: interlock rollout submit --directory"
        )));
    }
    Bundle::from_objects(objects).map(Named::Bundle).map_err(|flaws| invalid(&flaws))
}

fn there<'a>(
    kind: &interlock_kernel::Kind,
    namespace: &str,
    name: &str,
    live: &'a LiveReads<Nothing>,
) -> Result<&'a Object, Found> {
    let found = live.objects.get(&address(kind, Name::within(namespace, name)));
    let missing = || Found::Missing(format!("there is no {kind} {namespace}/{name}"));
    found.and_then(Option::as_ref).ok_or_else(missing)
}

fn invalid(flaws: &[Flaw]) -> Found {
    let mut words: Vec<String> = flaws.iter().take(MOST_NAMED).map(Flaw::to_string).collect();
    if flaws.len() > MOST_NAMED {
        words.push(format!("and {} more", flaws.len() - MOST_NAMED));
    }
    Found::Invalid(words.join("; "))
}

impl Named {
    fn found(
        self,
        status: &ClusterRolloutStatus,
        live: &LiveReads<Nothing>,
        seen: &mut Seen,
    ) -> Found {
        let (digest, revision) = match self {
            Named::Bundle(bundle) => {
                let parts = revisions(&bundle);
                let revision = of_bundle(&parts, live);
                seen.parts = parts;
                (bundle.digest().to_owned(), revision)
            }
            Named::Revision(digest) if !status.names_digest(&digest) => {
                let words = format!("{digest} is not in the history of the cluster");
                return Found::Missing(words);
            }
            Named::Revision(digest) => {
                let revision = of_history(&digest, live);
                (digest, revision)
            }
        };
        seen.digest = Some(digest.clone());
        let bad = status.bad.iter().find(|bad| bad.digest == digest);
        Found::Bundle { bad: bad.map(|bad| bad.reason.clone()), digest, revision }
    }
}

/// What is at the hub of a bundle that can be made there.
fn of_bundle(parts: &[BundleRevisionSpec], live: &LiveReads<Nothing>) -> Revision {
    let mut unread = Vec::new();
    for part in parts {
        match live.objects.get(&part_address(&part.digest, part.part)) {
            None => unread.push(part.part),
            Some(None) => return Revision::Lacks(part.part),
            Some(Some(there)) if !is_same(there, part) => return Revision::Broken(other(there)),
            Some(Some(_)) => {}
        }
    }
    if unread.is_empty() { Revision::Complete } else { Revision::Unread(unread) }
}

fn other(there: &DynamicObject) -> String {
    format!("BundleRevision {} has another content: delete it", name_of(there))
}

/// Two parts are the same if their content is: compressors may differ.
fn is_same(there: &DynamicObject, part: &BundleRevisionSpec) -> bool {
    let found = read_part::<BundleRevisionSpec>(there, "spec").ok().flatten();
    let content = |part: &BundleRevisionSpec| decompressed(&STANDARD.decode(&part.data).ok()?).ok();
    found.is_some_and(|found| {
        (&found.digest, found.part, found.parts) == (&part.digest, part.part, part.parts)
            && (found.data == part.data || content(&found) == content(part))
    })
}

/// What is at the hub of a bundle of the history.
fn of_history(digest: &str, live: &LiveReads<Nothing>) -> Revision {
    let lost = |part: u32| {
        Revision::Broken(format!(
            "BundleRevision {} is not there any more",
            part_name(digest, part)
        ))
    };
    let mut parts: Vec<BundleRevisionSpec> = Vec::new();
    let mut unread = Vec::new();
    for part in 0.. {
        let count = parts.first().map_or(1, |first| first.parts);
        if part >= count {
            break;
        }
        match live.objects.get(&part_address(digest, part)) {
            None => unread.push(part),
            Some(None) => return lost(part),
            Some(Some(there)) => match read_part(there, "spec") {
                Ok(Some(spec)) => parts.push(spec),
                Ok(None) | Err(_) => return Revision::Broken(other(there)),
            },
        }
    }
    if !unread.is_empty() {
        return Revision::Unread(unread);
    }
    match joined(digest, &parts) {
        Ok(_) => Revision::Complete,
        Err(flaw) => Revision::Broken(flaw.message),
    }
}
