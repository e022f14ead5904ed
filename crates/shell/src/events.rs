//! Events for the owners of objects. To send one never waits and never fails a step.
//!
//! An event is reported once its write is known to be done. If the reply to the write is lost, so is the
//! event: the next step sees what was written and has nothing left to say. That is no harm, since
//! nobody decides by events, and all that they tell stands on the objects too, in phases, the time
//! since when, and conditions. To tell it anyway would tell things that were never done.
//!
//! The same thing said again within minutes is counted on the event that is there. An object that
//! much is said about is said less about.

use interlock_kernel::{Event, Importance};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as Wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tracing::debug;

/// How many events may wait to be sent; more are dropped.
const WAITING: usize = 1000;
/// How long after the last time something is still the same story.
const STORY: Duration = Duration::from_secs(6 * 60);
/// How many stories are remembered.
const STORIES: usize = 4096;
/// How many new events an object may have at once, and how long until it may have one more.
const BURST: u32 = 25;
const ONE_MORE_EVERY: Duration = Duration::from_secs(10);
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Takes the events about objects of one server.
#[derive(Debug, Clone)]
pub(crate) struct EventSink(mpsc::Sender<(&'static str, Event)>);

impl EventSink {
    /// Begins to send what is put in; ends when the last sink is dropped.
    pub(crate) fn start(client: Client) -> EventSink {
        let (sender, mut receiver) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            let started = Instant::now();
            let mut stories = Stories::default();
            while let Some((controller, event)) = receiver.recv().await {
                let telling = stories.tell(controller, &event, started.elapsed());
                let sent = timeout(SEND_TIMEOUT, send(&client, &event, telling)).await;
                match sent {
                    Ok(Ok(())) => {}
                    Ok(Err(reason)) => debug!(about = %event.about, reason, "cannot send an event"),
                    Err(_) => {
                        debug!(about = %event.about, "the API server did not accept an event in \
                            time")
                    }
                }
            }
        });
        EventSink(sender)
    }

    /// Puts an event in, if there is room. Whether there was.
    pub(crate) fn put(&self, controller: &'static str, event: Event) -> bool {
        self.0.try_send((controller, event)).is_ok()
    }
}

/// What is reported an event.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Telling {
    /// It is new.
    New { name: String, controller: &'static str },
    /// It was reported before, under this name, and this is which time.
    Again { name: String, count: i32 },
    /// Too much was said about the object.
    Silence,
}

/// Which events were reported lately.
#[derive(Debug, Default)]
struct Stories {
    by_key: HashMap<Key, Story>,
    objects: HashMap<String, Allowance>,
    told: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    uid: String,
    reason: &'static str,
    is_warning: bool,
    controller: &'static str,
}

#[derive(Debug)]
struct Story {
    name: String,
    note: String,
    count: i32,
    last: Duration,
}

impl Story {
    fn is_over(&self, now: Duration) -> bool {
        self.last + STORY < now
    }
}

/// How much may still be said about an object: until when what was said uses it up.
#[derive(Debug, Default)]
struct Allowance {
    used_until: Duration,
}

impl Allowance {
    fn take(&mut self, now: Duration) -> bool {
        let used_until = self.used_until.max(now) + ONE_MORE_EVERY;
        let is_allowed = used_until <= now + ONE_MORE_EVERY * BURST;
        if is_allowed {
            self.used_until = used_until;
        }
        is_allowed
    }
}

impl Stories {
    fn tell(&mut self, controller: &'static str, event: &Event, now: Duration) -> Telling {
        self.make_room(now);
        let key = Key {
            uid: event.uid.clone(),
            reason: event.reason,
            is_warning: event.importance == Importance::Warning,
            controller,
        };
        if self.by_key.get(&key).is_some_and(|story| story.is_over(now)) {
            self.by_key.remove(&key);
        }
        let is_said_again = self.by_key.get(&key).is_some_and(|story| story.note == event.note);
        let is_allowed =
            is_said_again || self.objects.entry(event.uid.clone()).or_default().take(now);
        if let Some(story) = self.by_key.get_mut(&key)
            // Once too much was said, other words for the same reason are counted too.
            && (story.note == event.note || !is_allowed)
        {
            story.count = story.count.saturating_add(1);
            story.last = now;
            return Telling::Again { name: story.name.clone(), count: story.count };
        }
        if !is_allowed {
            return Telling::Silence;
        }
        let name = self.name(event);
        let story = Story { name: name.clone(), note: event.note.clone(), count: 1, last: now };
        self.by_key.insert(key, story);
        Telling::New { name, controller }
    }

    /// Names need only differ from those of other events about the object.
    fn name(&mut self, event: &Event) -> String {
        self.told += 1;
        let number = crate::backoff::random() ^ self.told;
        let about: String = event.about.name.name.chars().take(230).collect();
        format!("{about}.{number:016x}")
    }

    /// Makes room once there is none: what is over goes, and if that is not enough, all of it.
    fn make_room(&mut self, now: Duration) {
        if self.by_key.len() >= STORIES {
            self.by_key.retain(|_, story| !story.is_over(now));
        }
        if self.by_key.len() >= STORIES {
            self.by_key.clear();
        }
        if self.objects.len() >= STORIES {
            self.objects.retain(|_, allowance| allowance.used_until > now);
        }
        if self.objects.len() >= STORIES {
            self.objects.clear();
        }
    }
}

async fn send(client: &Client, event: &Event, telling: Telling) -> Result<(), String> {
    // Events about objects of the cluster as a whole are kept where Kubernetes keeps them.
    let namespace = event.about.name.namespace.as_deref().unwrap_or("default");
    let api: Api<Wire> = Api::namespaced(client.clone(), namespace);
    let (name, controller) = match telling {
        Telling::Silence => return Ok(()),
        Telling::New { name, controller } => (name, controller),
        Telling::Again { name, count } => {
            let now = MicroTime(Timestamp::now());
            let series = json!({"series": {"count": count, "lastObservedTime": now}});
            let params = PatchParams::default();
            let patched = api.patch(&name, &params, &Patch::Merge(series)).await;
            return patched.map(|_| ()).map_err(|error| error.to_string());
        }
    };
    let wire = wire(event, namespace, name, controller);
    let created = api.create(&PostParams::default(), &wire).await;
    created.map(|_| ()).map_err(|error| error.to_string())
}

fn wire(event: &Event, namespace: &str, name: String, controller: &str) -> Wire {
    let about = &event.about;
    Wire {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(Timestamp::now())),
        regarding: Some(ObjectReference {
            api_version: Some(about.kind.api_version()),
            kind: Some(about.kind.kind.to_string()),
            namespace: about.name.namespace.as_deref().map(str::to_owned),
            name: Some(about.name.name.to_string()),
            uid: Some(event.uid.clone()).filter(|uid| !uid.is_empty()),
            ..ObjectReference::default()
        }),
        action: Some(event.reason.to_owned()),
        reason: Some(event.reason.to_owned()),
        note: Some(event.note.chars().take(1000).collect()),
        type_: Some(match event.importance {
            Importance::Normal => "Normal".to_owned(),
            Importance::Warning => "Warning".to_owned(),
        }),
        reporting_controller: Some(format!("interlock.dev/{}", controller.replace('/', "-"))),
        reporting_instance: Some("interlock".to_owned()),
        ..Wire::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_kernel::GroupVersion;
    use interlock_kernel::{Address, Kind, Name, Place};

    const POD: Kind = Kind::namespaced(GroupVersion::new("", "v1"), "Pod", "pods");

    fn event(uid: &str, note: &str) -> Event {
        Event {
            about: Address::new(Place::HUB, &POD, Name::within("a", "x")),
            uid: uid.to_owned(),
            importance: Importance::Normal,
            reason: "MoveDelayed",
            note: note.to_owned(),
        }
    }

    fn count(telling: &Telling) -> i32 {
        match telling {
            Telling::New { .. } => 1,
            Telling::Again { count, .. } => *count,
            Telling::Silence => 0,
        }
    }

    #[test]
    fn what_is_said_again_within_minutes_is_counted() {
        let mut stories = Stories::default();
        let mut tell = |seconds| {
            count(&stories.tell("c", &event("u", "b is full"), Duration::from_secs(seconds)))
        };
        assert_eq!([tell(0), tell(100), tell(400)], [1, 2, 3]);
        assert_eq!(tell(400 + 361), 1);
    }

    #[test]
    fn other_words_are_a_new_event_until_too_much_was_said() {
        let mut stories = Stories::default();
        let mut tell = |note: &str| count(&stories.tell("c", &event("u", note), Duration::ZERO));
        let told: Vec<_> = (0..30).map(|note| tell(&format!("{note} are left"))).collect();
        assert_eq!(told[..25], [1; 25]);
        assert_eq!(told[25..], [2, 3, 4, 5, 6]);
    }

    #[test]
    fn what_is_remembered_does_not_grow_with_history() {
        let mut stories = Stories::default();
        for number in 0..100_000_u64 {
            let now = Duration::from_millis(number);
            stories.tell("c", &event(&format!("u{number}"), "b is full"), now);
        }
        assert!(stories.by_key.len() <= STORIES && stories.objects.len() <= STORIES);
    }
}
