//! What controllers would do, to the end: the shipped steps on a copy of what the servers have. A write changes
//! the copy; an action outside is played by a driver of the caller. Nothing else is written anywhere, so a
//! plan cannot say anything else than what the controllers will do.

use crate::foresee::Listed;
use crate::live_reads;
use crate::once::MOST_ROUNDS;
use crate::outside::Driver;
use crate::view::Places;
use crate::write::whole;
use interlock_kernel::{
    Action, Address, Controller, Effect, Kind, LiveReads, Name, Object, Outside, Place, Read,
    Selections, Step, Subject, View, Watch, Write,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A copy of what servers have, for controllers that write to nothing else.
pub struct Rehearsal {
    copy: Listed,
    /// The last version that was given to something in the copy.
    version: u64,
}

/// What a step came to.
#[derive(Debug)]
pub enum Rehearsed<O: Outside> {
    /// Nothing is to be done until something changes.
    Rests(String),
    /// Nothing is to be done for a while.
    Waits(String),
    /// This was written to the copy.
    Wrote(Box<Write>),
    /// This was given to the driver.
    Acted(O::Action),
}

impl Rehearsal {
    /// Copies every object that is watched, each as `shown` makes it. A kind that a server does not serve yet
    /// has no objects.
    pub async fn of(
        watches: &[Watch],
        places: &Places,
        shown: impl Fn(Object) -> Object,
    ) -> Result<Rehearsal, String> {
        Ok(Rehearsal { copy: Listed::read(watches, places, &shown).await?, version: 0 })
    }

    /// An object as it is in the copy.
    pub fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.copy.get(place, kind, name)
    }

    /// The objects of a kind in the copy.
    pub fn list(&self, place: Place, kind: &Kind) -> Vec<Object> {
        self.copy.list(place, kind, None)
    }

    /// One step of a controller about a subject. Whatever is not in the copy is read from the servers.
    pub async fn step<C: Controller>(
        &mut self,
        controller: &C,
        subject: &Subject,
        places: &Places,
        driver: &impl Driver<C::Outside>,
    ) -> Result<Rehearsed<C::Outside>, String>
    where
        <C::Outside as Outside>::Action: Clone,
    {
        let selections = Selections::of(&controller.watches());
        let mut live_reads = LiveReads::default();
        // What is not in the copy may change meanwhile, as it does while a controller runs.
        for _ in 0..=MOST_ROUNDS {
            let step = controller.step(subject, &selections.narrow(&self.copy), &live_reads);
            match step {
                Step::Rest { because } => return Ok(Rehearsed::Rests(because)),
                Step::Wait { because, .. } => return Ok(Rehearsed::Waits(because)),
                Step::LiveRead { reads, .. } => {
                    self.read(reads, places, driver, &mut live_reads).await?;
                }
                Step::Act(effect) => {
                    let Effect { action, .. } = *effect;
                    return match action {
                        Action::Write(write) => {
                            self.write(&write)?;
                            Ok(Rehearsed::Wrote(Box::new(write)))
                        }
                        Action::Outside(action) => {
                            driver.perform(action.clone()).await?;
                            Ok(Rehearsed::Acted(action))
                        }
                    };
                }
            }
        }
        Err(format!("{} reads again and again", controller.name()))
    }

    async fn read<O: Outside>(
        &self,
        reads: Vec<Read<O>>,
        places: &Places,
        driver: &impl Driver<O>,
        live_reads: &mut LiveReads<O>,
    ) -> Result<(), String> {
        for read in reads {
            match read {
                Read::Object(address) if self.copy.has(address.place, &address.kind) => {
                    let found = self.copy.get(address.place, &address.kind, &address.name);
                    live_reads.objects.insert(address, found);
                }
                Read::List { place, kind, namespace } if self.copy.has(place, &kind) => {
                    let found = self.copy.list(place, &kind, namespace.as_deref());
                    live_reads.lists.insert((place, kind, namespace), found);
                }
                Read::Selected { place, kind, selector } if self.copy.has(place, &kind) => {
                    let mut found = self.copy.list(place, &kind, None);
                    found.retain(|object| selector.selects(object));
                    live_reads.selected.insert((place, kind, selector), found);
                }
                other => live_reads::read_live(places, driver, vec![other], live_reads).await?,
            }
        }
        Ok(())
    }

    fn write(&mut self, write: &Write) -> Result<(), String> {
        let address = write.address();
        let there = self.copy.get(address.place, &address.kind, &address.name);
        match write {
            Write::Create { object, .. } if there.is_none() => self.make(address, object),
            Write::Create { .. } => Ok(()),
            Write::Patch { change, .. } => self.change(address, there, change),
            Write::Apply { object, .. } if there.is_none() => self.make(address, object),
            Write::Apply { object, .. } => self.change(address, there, object),
            Write::Delete { .. } => {
                let now = self.copy.now().to_string();
                let change = json!({"metadata": {"deletionTimestamp": now}});
                self.change(address, there, &change)
            }
        }
    }

    fn make(&mut self, address: &Address, object: &Value) -> Result<(), String> {
        let mut object = whole(address, object);
        object["metadata"]["uid"] = json!(format!("planned-{}", self.version + 1));
        object["metadata"]["generation"] = json!(1);
        self.put(address, object)
    }

    /// A merge patch. What is being deleted and has no finalizer any more is gone.
    fn change(
        &mut self,
        address: &Address,
        there: Option<Object>,
        change: &Value,
    ) -> Result<(), String> {
        let there = there.ok_or_else(|| format!("there is no {address} to write to"))?;
        let mut object = serde_json::to_value(&*there).map_err(|error| error.to_string())?;
        let spec = object["spec"].clone();
        merge(&mut object, change);
        if object["spec"] != spec {
            let generation = there.metadata.generation.unwrap_or(1) + 1;
            object["metadata"]["generation"] = json!(generation);
        }
        let metadata = &object["metadata"];
        let is_held = metadata["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        if metadata["deletionTimestamp"].is_string() && !is_held {
            self.copy.remove(address);
            return Ok(());
        }
        self.put(address, object)
    }

    fn put(&mut self, address: &Address, mut object: Value) -> Result<(), String> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(format!("planned-{}", self.version));
        let object = serde_json::from_value(object);
        let object = object.map_err(|error| format!("{address}: {error}"))?;
        self.copy.put(address, Arc::new(object));
        Ok(())
    }
}

/// A JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (key, value) in patch {
        match (value, target.as_object_mut()) {
            (Value::Null, Some(target)) => drop(target.remove(key)),
            (value, _) => merge(&mut target[key], value),
        }
    }
}
