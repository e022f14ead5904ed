//! Events and marks as they are written.

use interlock_api::identities::Mark;
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{Address, Event, Importance, Kind, Name, Object, Place};
use serde_json::{Value, json};

/// A mark in the change of a status. Whatever the mark before said is replaced as a whole.
pub(crate) fn mark(mark: &Mark) -> Value {
    let settled = mark.settled.then_some(true);
    json!({"instance": mark.instance, "quietAt": mark.quiet_at, "settled": settled})
}

/// An event about an object, without its sentence.
pub(crate) fn event(
    kind: &Kind,
    object: &Object,
    importance: Importance,
    reason: &'static str,
) -> Event {
    let about = Address::new(Place::HUB, kind, Name::of(object));
    Event { about, uid: uid_of(object).to_owned(), importance, reason, note: String::new() }
}

/// The same with a sentence.
pub(crate) fn saying(event: Event, note: String) -> Event {
    Event { note, ..event }
}

/// The reason of the event about a call. What differs although the status says that all is as declared was
/// changed by somebody else.
pub(crate) fn reason_of_call(was_as_declared: bool) -> &'static str {
    if was_as_declared { "DriftRepaired" } else { "Changing" }
}
