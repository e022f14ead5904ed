//! Writes: from what a client sent to what is committed.
//!
//! Every write is a loop of read, make, commit under a guard on what was read. A guard that failed means
//! that somebody else was faster: read again. A client that named the version it saw gets a conflict then.

use super::eviction;
use super::special;
use crate::admission::Operation as Admitted;
use crate::admission::{self, Admitting, Change, Held, LimitRanges, quota};
use crate::apply;
use crate::behaviour;
use crate::call::{Call, Endpoint, Live};
use crate::kinds;
use crate::name;
use crate::object;
use crate::schema;
use crate::status::{FieldError, Status};
use crate::storage::{self, NotCommitted};
use interlock_store::{Guard, Key, Operation, Revision, Transaction};
use serde_json::{Value, json};

/// How often a write reads again before it gives up. Each round means that somebody else got through.
const ROUNDS: usize = 64;

/// What a write did.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    /// The object as it is now, or as it was before it was removed.
    pub(crate) object: Value,
    /// How it came about.
    pub(crate) outcome: Outcome,
    /// What was stored, and at which revision; none if nothing was.
    pub(crate) stored: Option<(Vec<u8>, Revision)>,
}

impl Written {
    fn new(object: Value, outcome: Outcome) -> Self {
        Written { object, outcome, stored: None }
    }

    fn stored(mut object: Value, outcome: Outcome, encoded: Vec<u8>, revision: Revision) -> Self {
        object::set_resource_version(&mut object, revision);
        Written { object, outcome, stored: Some((encoded, revision)) }
    }
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is new.
    Created,
    /// It changed, or was as wanted already.
    Changed,
    /// It is gone.
    Removed,
}

/// What lets a write pass admission.
struct Passed {
    /// What must still be as it was when the write was judged.
    guards: Vec<Guard>,
    /// What is committed along with it.
    operations: Vec<Operation>,
    /// The policies by which it was judged stay in force until it is committed.
    held: Held,
}

/// Why one round of a write did not end it.
enum Round {
    Again,
    Refused(Status),
}

impl From<Status> for Round {
    fn from(status: Status) -> Self {
        Round::Refused(status)
    }
}

impl Call {
    /// Stores a new object.
    pub(crate) async fn create(&self, object: Value) -> Result<Written, Status> {
        let mut admitting = Admitting::new(self);
        for _ in 0..ROUNDS {
            match self.create_round(object.clone(), &mut admitting).await {
                Ok(written) => return Ok(written),
                Err(Round::Again) => {}
                Err(Round::Refused(status)) => return Err(status),
            }
        }
        Err(Status::conflict(
            &self.resource.group,
            &self.resource.plural,
            object::name(&object),
            "the objects it depends on change too fast; please try again",
        ))
    }

    async fn create_round(
        &self,
        object: Value,
        admitting: &mut Admitting,
    ) -> Result<Written, Round> {
        let mut object = self.mutated_new(object, admitting).await?;
        let is_generated = object::name(&object).is_empty();
        self.name_new(&mut object);
        self.stamp_new(&mut object, admitting);
        behaviour::prepare_create(&self.resource, &mut object);
        behaviour::bump_generation(&self.resource, None, &mut object);
        special::prepare_create(self, &mut object)?;
        let class = admission::fill_in_runtime_class(self, &mut object).await?;
        let limits = LimitRanges::read(self, true).await?;
        limits.fill_in(self, &mut object);
        self.track(None, &mut object)?;
        behaviour::complete_create(&self.resource, &mut object);
        self.check(None, &object)?;
        limits.check(self, &object)?;
        let mut plan = special::admit_create(self, &mut object).await?;
        let change = Change { operation: Admitted::Create, old: None, new: Some(&object) };
        admission::ask_webhooks(self, &change, admitting).await?;
        let held = admission::hold(self).await?;
        plan.guards.extend(admission::judge(self, &change).await?);
        plan.guards.extend(limits.guards());
        plan.guards.extend(class);
        let charge = quota::charge(self, None, &object).await?;
        plan.guards.extend(charge.guards.iter().cloned());
        plan.operations.extend(charge.operations.iter().cloned());
        let key = self.key_of(object::name(&object));
        plan.guards.insert(0, Guard::Absent(key.clone()));
        let encoded = self.stored(&object);
        plan.operations.insert(0, Operation::Put(key.clone(), encoded.clone()));
        let exists = || {
            Status::already_exists(
                &self.resource.group,
                &self.resource.plural,
                object::name(&object),
            )
        };
        if self.shared_object(object::name(&object)).is_some() {
            return Err(exists().into());
        }
        if self.is_dry_run() {
            if self.server.storage().get(&key).await?.is_some() {
                return Err(exists().into());
            }
            return Ok(Written::new(object, Outcome::Created));
        }
        match self.commit(plan, held).await {
            Ok(revision) => Ok(Written::stored(object, Outcome::Created, encoded, revision)),
            // A generated name that is taken: make another one.
            Err(NotCommitted::Guard(failed)) if failed == key && is_generated => Err(Round::Again),
            Err(NotCommitted::Guard(failed)) if failed == key => Err(exists().into()),
            Err(NotCommitted::Guard(_)) => Err(Round::Again),
            Err(NotCommitted::Refused(status)) => Err(status.into()),
        }
    }

    /// Changes the object that the call names. `make` says what it should be, from what it is; with
    /// `may_create` it is also asked when there is none.
    pub(crate) async fn change(
        &self,
        may_create: bool,
        make: impl Fn(Option<&Live>) -> Result<Value, Status>,
    ) -> Result<Written, Status> {
        let mut admitting = Admitting::new(self);
        for _ in 0..ROUNDS {
            let Some(live) = self.live().await? else {
                if !may_create {
                    return Err(self.not_found());
                }
                // Whoever may change objects may not yet make new ones.
                self.check_verb("create").await?;
                match self.create_round(make(None)?, &mut admitting).await {
                    Ok(written) => return Ok(written),
                    Err(Round::Again) => continue,
                    // Somebody made it in between: now it is a change.
                    Err(Round::Refused(status)) if status.reason == "AlreadyExists" => continue,
                    Err(Round::Refused(status)) => return Err(status),
                }
            };
            let new = make(Some(&live))?;
            match self.change_round(&live, new, &mut admitting).await {
                Ok(written) => return Ok(written),
                Err(Round::Again) => {}
                Err(Round::Refused(status)) => return Err(status),
            }
        }
        Err(self.modified_meanwhile())
    }

    async fn change_round(
        &self,
        live: &Live,
        new: Value,
        admitting: &mut Admitting,
    ) -> Result<Written, Round> {
        let old = &live.object;
        let mut new = self.mutated(old, new, admitting).await?;
        if self.endpoint != Endpoint::Other {
            behaviour::prepare_update(&self.resource, old, &mut new, self.endpoint.of_behaviour());
        }
        // A status, and the labels and annotations that came with it, is no change of what is wanted.
        if self.endpoint != Endpoint::Status {
            behaviour::bump_generation(&self.resource, Some(old), &mut new);
        }
        special::prepare_update(self, old, &mut new).await?;
        self.track(Some(old), &mut new)?;
        self.check(Some(old), &new)?;
        let limits = LimitRanges::read(self, false).await?;
        limits.check(self, &new)?;
        special::admit_update(self, old, &mut new).await?;
        let mut plan = Transaction::default();
        let change = Change { operation: Admitted::Update, old: Some(old), new: Some(&new) };
        admission::ask_webhooks(self, &change, admitting).await?;
        let held = admission::hold(self).await?;
        plan.guards.extend(admission::judge(self, &change).await?);
        plan.guards.extend(limits.guards());
        let key = self.key();
        // The last finalizer is gone: this write is the deletion.
        if object::is_deleting(&new) && may_go(&new) {
            let admitted = Passed { guards: plan.guards, operations: Vec::new(), held };
            return self.remove_round(live, new, admitted).await;
        }
        let encoded = self.stored(&new);
        if live.is_stored_as(&encoded) {
            return Ok(Written::new(old.clone(), Outcome::Changed));
        }
        let charge = quota::charge(self, Some(old), &new).await?;
        plan.guards.extend(charge.guards.iter().cloned());
        plan.operations.extend(charge.operations.iter().cloned());
        if self.is_dry_run() {
            return Ok(Written::new(new, Outcome::Changed));
        }
        plan.guards.insert(0, storage::guard(&key, live.modified));
        plan.operations.insert(0, Operation::Put(key, encoded.clone()));
        match self.commit(plan, held).await {
            Ok(revision) => Ok(Written::stored(new, Outcome::Changed, encoded, revision)),
            Err(NotCommitted::Guard(_)) => Err(Round::Again),
            Err(NotCommitted::Refused(status)) => Err(status.into()),
        }
    }

    async fn remove_round(
        &self,
        live: &Live,
        gone: Value,
        passed: Passed,
    ) -> Result<Written, Round> {
        if self.is_dry_run() {
            return Ok(Written::new(gone, Outcome::Removed));
        }
        let key = self.key();
        let mut plan =
            Transaction::one(storage::guard(&key, live.modified), Operation::Delete(key));
        plan.guards.extend(passed.guards);
        plan.operations.extend(passed.operations);
        match self.commit(plan, passed.held).await {
            Ok(revision) => {
                let mut object = gone;
                object::set_resource_version(&mut object, revision);
                Ok(Written::new(object, Outcome::Removed))
            }
            Err(NotCommitted::Guard(_)) => Err(Round::Again),
            Err(NotCommitted::Refused(status)) => Err(status.into()),
        }
    }

    /// Asks for the deletion of the object that the call names. `mark` puts the deletion mark and says whether
    /// the object can go at once.
    pub(crate) async fn delete(
        &self,
        mark: impl Fn(&Live) -> Result<(Value, bool), Status>,
    ) -> Result<Written, Status> {
        let mut admitting = Admitting::new(self);
        for _ in 0..ROUNDS {
            let live = self.found().await?;
            if live.modified.is_none() {
                return Err(self.not_found());
            }
            let (marked, goes) = mark(&live)?;
            let passed = self.admit_delete(&live, &mut admitting).await?;
            let round = if goes {
                self.remove_round(&live, marked, passed).await
            } else {
                self.mark_round(&live, marked, passed).await
            };
            match round {
                Ok(written) => return Ok(written),
                Err(Round::Again) => {}
                Err(Round::Refused(status)) => return Err(status),
            }
        }
        Err(self.modified_meanwhile())
    }

    /// Whether admission lets the object be deleted.
    async fn admit_delete(&self, live: &Live, admitting: &mut Admitting) -> Result<Passed, Status> {
        let change = Change { operation: Admitted::Delete, old: Some(&live.object), new: None };
        admission::mutate(self, &change, admitting).await?;
        admission::ask_webhooks(self, &change, admitting).await?;
        let held = admission::hold(self).await?;
        let mut plan = Transaction::default();
        plan.guards.extend(admission::judge(self, &change).await?);
        if self.is_eviction() {
            let charge = eviction::charge(self, &live.object).await?;
            plan.guards.extend(charge.guards);
            plan.operations.extend(charge.operations);
        }
        Ok(Passed { guards: plan.guards, operations: plan.operations, held })
    }

    async fn mark_round(
        &self,
        live: &Live,
        marked: Value,
        passed: Passed,
    ) -> Result<Written, Round> {
        let encoded = self.stored(&marked);
        if self.is_dry_run() || live.is_stored_as(&encoded) {
            return Ok(Written::new(marked, Outcome::Changed));
        }
        let key = self.key();
        let guard = storage::guard(&key, live.modified);
        let mut plan = Transaction::one(guard, Operation::Put(key, encoded.clone()));
        plan.guards.extend(passed.guards);
        plan.operations.extend(passed.operations);
        match self.commit(plan, passed.held).await {
            Ok(revision) => Ok(Written::stored(marked, Outcome::Changed, encoded, revision)),
            Err(NotCommitted::Guard(_)) => Err(Round::Again),
            Err(NotCommitted::Refused(status)) => Err(status.into()),
        }
    }

    /// Commits, and lets everybody in the process know what follows from it.
    async fn commit(&self, plan: Transaction, held: Held) -> Result<Revision, NotCommitted> {
        held.commit(&self.server, &self.cluster, plan).await
    }

    /// An object as it is stored.
    fn stored(&self, object: &Value) -> Vec<u8> {
        object::encode_as(object, &self.resource.stored_api_version())
    }

    fn name_new(&self, new: &mut Value) {
        let base = object::meta_text(new, "generateName").to_owned();
        if object::name(new).is_empty() && !base.is_empty() {
            let name = name::generate_name(&base, || self.server.random_u32());
            object::metadata_mut(new).insert("name".to_owned(), json!(name));
        }
    }

    fn stamp_new(&self, new: &mut Value, admitting: &mut Admitting) {
        let metadata = object::metadata_mut(new);
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"] {
            metadata.remove(field);
        }
        if self.resource.is_namespaced {
            metadata.insert("namespace".to_owned(), json!(self.namespace));
        } else {
            metadata.remove("namespace");
        }
        metadata.insert("uid".to_owned(), json!(admitting.uid(self)));
        metadata.insert("creationTimestamp".to_owned(), json!(self.now_text()));
    }

    /// An object must be where the URL says.
    pub(super) fn check_place(&self, object: &Value) -> Result<(), Status> {
        let (name, namespace) = (object::name(object), object::namespace(object));
        if !self.name.is_empty() && !name.is_empty() && name != self.name {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.name
            )));
        }
        if self.resource.is_namespaced && !namespace.is_empty() && namespace != self.namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(())
    }

    /// What the client says it saw must be what is there.
    pub(super) fn check_seen(&self, old: &Value, new: &Value) -> Result<(), Status> {
        let seen = object::meta_text(new, "resourceVersion");
        if !seen.is_empty() && seen != "0" && seen != object::meta_text(old, "resourceVersion") {
            return Err(self.modified_meanwhile());
        }
        let uid = object::uid(new);
        if !uid.is_empty() && uid != object::uid(old) {
            return Err(self.conflict(format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                object::uid(old)
            )));
        }
        Ok(())
    }

    /// What no client can change.
    pub(super) fn keep_unchangeable(&self, old: &Value, new: &mut Value) {
        let kept = object::metadata(old);
        let metadata = object::metadata_mut(new);
        for field in [
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "resourceVersion",
            "generateName",
        ] {
            match kept.get(field) {
                Some(value) => metadata.insert(field.to_owned(), value.clone()),
                None => metadata.remove(field),
            };
        }
        metadata.remove("selfLink");
    }

    /// managedFields after a write that was no apply; an apply has made its own.
    fn track(&self, old: Option<&Value>, new: &mut Value) -> Result<(), Status> {
        if self.is_apply {
            return Ok(());
        }
        if behaviour::has_face(&self.resource) {
            return self.track_in_face(old, new);
        }
        let empty = || kinds::built_in().empty(&self.resource);
        let empty = if old.is_none() { empty() } else { None };
        self.with_write(|write| apply::track_update(write, old.or(empty.as_ref()), new))
            .map_err(|error| self.apply_refused(error))
    }

    /// The same for a kind that is stored in another form: fields are owned by the names that the client knows.
    fn track_in_face(&self, old: Option<&Value>, new: &mut Value) -> Result<(), Status> {
        let old = old.map(|old| self.in_face(old));
        let mut shown = self.in_face(new);
        self.with_write(|write| apply::track_update(write, old.as_ref(), &mut shown))
            .map_err(|error| self.apply_refused(error))?;
        behaviour::rename_managed(&self.resource, &mut shown, false);
        let entries = object::metadata_mut(&mut shown).remove("managedFields");
        let metadata = object::metadata_mut(new);
        match entries {
            Some(entries) => metadata.insert("managedFields".to_owned(), entries),
            None => metadata.remove("managedFields"),
        };
        Ok(())
    }

    /// A stored object in the form of the version that was asked for, with all managedFields in its words.
    pub(super) fn in_face(&self, stored: &Value) -> Value {
        let mut shown = stored.clone();
        behaviour::to_face(&self.resource, &mut shown);
        behaviour::rename_managed(&self.resource, &mut shown, true);
        shown
    }

    /// Runs something that wants to know who writes what through which endpoint.
    pub(crate) fn with_write<T>(&self, run: impl FnOnce(&apply::Write<'_>) -> T) -> T {
        let reset: &[&[&str]] = match self.endpoint {
            Endpoint::Main if self.resource.has_status => &[&["status"]],
            Endpoint::Status => &[&["spec"]],
            Endpoint::Main | Endpoint::Other => &[],
        };
        let now = self.now_text();
        run(&apply::Write {
            shape: self.resource.schema.shape(),
            api_version: &self.resource.api_version(),
            manager: &self.manager,
            subresource: &self.subresource,
            now: &now,
            reset,
        })
    }

    /// What a refused apply is to the client.
    pub(crate) fn apply_refused(&self, error: apply::ApplyError) -> Status {
        error.into_status(
            &self.resource.group,
            &self.resource.plural,
            &self.resource.kind,
            &self.name,
        )
    }

    /// Whether the object may be stored.
    fn check(&self, old: Option<&Value>, new: &Value) -> Result<(), Status> {
        if object::is_too_deep(new) {
            return Err(Status::bad_request(format!(
                "the object, with its managedFields, is nested deeper than {} levels",
                object::DEPTH_LIMIT
            )));
        }
        let rule = behaviour::name_rule(&self.resource);
        let mut errors = name::validate_metadata(new, self.resource.is_namespaced, rule);
        if let Some(old) = old {
            errors.extend(new_finalizers_while_deleting(old, new));
        }
        if self.resource.is_custom() {
            for (path, finalizer) in name::unqualified_finalizers(new) {
                self.warn(format!(
                    "{path}: {finalizer:?}: prefer a domain-qualified finalizer name including a \
                     path (/) to avoid accidental conflicts with other finalizer writers"
                ));
            }
            errors.extend(schema::validate(new, old, self.resource.schema.shape()));
        } else {
            errors.extend(behaviour::validate(&self.resource, new));
            if behaviour::has_standard_finalizers(&self.resource) {
                errors.extend(name::unqualified_finalizers(new).map(|(path, finalizer)| {
                    let detail =
                        "name is neither a standard finalizer name nor is it fully qualified";
                    FieldError::invalid(path, &json!(finalizer), detail)
                }));
            }
            errors.extend(match old {
                // Its handler has made exactly the change that it may.
                Some(_) if self.endpoint == Endpoint::Other => Vec::new(),
                Some(old) => behaviour::validate_update(&self.resource, old, new),
                None => behaviour::validate_create(&self.resource, new),
            });
        }
        errors.extend(special::validate(self, old, new));
        if errors.is_empty() {
            return Ok(());
        }
        let shown = if object::name(new).is_empty() {
            object::meta_text(new, "generateName")
        } else {
            object::name(new)
        };
        Err(Status::invalid(&self.resource.group, &self.resource.kind, shown, &errors))
    }

    fn modified_meanwhile(&self) -> Status {
        self.conflict(
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// A guard on the namespace that a new object goes into: it must be there and not be going.
    pub(crate) async fn namespace_guard(&self, name: &str) -> Result<Option<Guard>, Status> {
        if !self.resource.is_namespaced {
            return Ok(None);
        }
        let key = Key::new(
            storage::table_of("", "namespaces", "-"),
            storage::row(&self.cluster.id, "", &self.namespace),
        );
        let Some(versioned) = self.server.storage().get(&key).await? else {
            return Err(Status::not_found("", "namespaces", &self.namespace));
        };
        if object::View::of(&versioned.value).is_deleting() {
            let mut status = Status::forbidden(
                &self.resource.group,
                &self.resource.plural,
                name,
                format!(
                    "unable to create new content in namespace {} because it is being terminated",
                    self.namespace
                ),
            );
            status.details.causes.push(crate::status::Cause {
                reason: "NamespaceTerminating",
                message: format!("namespace {} is being terminated", self.namespace),
                field: "metadata.namespace".to_owned(),
            });
            return Err(status);
        }
        Ok(Some(Guard::At(key, versioned.modified)))
    }
}

/// Whether nothing holds an object that is to be deleted.
pub(crate) fn may_go(object: &Value) -> bool {
    let grace = object::metadata(object).get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    let held_by_spec = object::text(object, "kind") == "Namespace"
        && object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    object::finalizers(object).next().is_none() && grace.unwrap_or(0) == 0 && !held_by_spec
}

fn new_finalizers_while_deleting(old: &Value, new: &Value) -> Option<FieldError> {
    if !object::is_deleting(old) {
        return None;
    }
    let added: Vec<&str> = object::finalizers(new)
        .filter(|name| !object::finalizers(old).any(|old_name| old_name == *name))
        .collect();
    if added.is_empty() {
        return None;
    }
    let shown: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
    Some(FieldError::forbidden(
        "metadata.finalizers",
        format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers \
             []string{{{}}}",
            shown.join(", ")
        ),
    ))
}
