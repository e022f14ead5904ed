//! The entries of `metadata.managedFields`: who owns which fields since when.

use super::fieldset::Set;
use super::moment::Moment;
use super::typed::Type;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// How many entries of updates there may be before the oldest are folded together.
const MOST_UPDATE_ENTRIES: usize = 10;
/// Who owns what was folded together.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// Who wrote, by which operation, in which version, through which endpoint.
#[derive(Debug, Clone)]
pub(super) struct Identity<'a> {
    /// The field manager.
    pub(super) manager: Cow<'a, str>,
    /// Whether by server-side apply.
    pub(super) is_apply: bool,
    /// The version of the write. It does not tell appliers apart: their entry moves to the new
    /// version.
    pub(super) api_version: Cow<'a, str>,
    /// The endpoint: empty for the object itself.
    pub(super) subresource: Cow<'a, str>,
}

/// One owner's fields.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    /// Who.
    pub(super) identity: Identity<'a>,
    /// Since when; entries of appliers that never changed anything have none.
    pub(super) time: Option<Moment<'a>>,
    /// What.
    pub(super) set: Set<'a>,
    /// The set as it is stored, while it has not changed: a copy costs less than writing it anew.
    pub(super) stored: Option<&'a Value>,
}

/// All entries of an object.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries<'a> {
    /// In any order, each identity once.
    pub(super) list: Vec<Entry<'a>>,
}

impl Identity<'_> {
    /// Whether it is the same owner.
    pub(super) fn is(&self, other: &Identity<'_>) -> bool {
        self.order(other) == Ordering::Equal
    }

    /// The version, where it tells owners apart.
    fn version(&self) -> &str {
        if self.is_apply { "" } else { &self.api_version }
    }

    fn order(&self, other: &Identity<'_>) -> Ordering {
        self.manager
            .cmp(&other.manager)
            .then_with(|| other.is_apply.cmp(&self.is_apply))
            .then_with(|| self.version().cmp(other.version()))
            .then_with(|| self.subresource.is_empty().cmp(&other.subresource.is_empty()))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }
}

/// As conflicts name an owner: `"kubectl-edit" using apps/v1`.
impl fmt::Display for Identity<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.manager)?;
        if !self.subresource.is_empty() {
            write!(formatter, " with subresource {:?}", self.subresource)?;
        }
        if !self.is_apply {
            write!(formatter, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

/// Entries that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

impl<'a> Entries<'a> {
    /// Reads `metadata.managedFields` of a stored object.
    pub(super) fn decode(entries: &'a [Value]) -> Result<Self, Unreadable> {
        let mut all = Entries::default();
        for entry in entries {
            all.put(decode_entry(entry).ok_or(Unreadable)?);
        }
        Ok(all)
    }

    /// Reads entries that a client sent: they need not be written as we write them.
    pub(super) fn decode_given(entries: &'a [Value]) -> Result<Self, Unreadable> {
        let mut all = Self::decode(entries)?;
        all.list.iter_mut().for_each(|entry| entry.stored = None);
        Ok(all)
    }

    /// Takes the entry of an owner out.
    pub(super) fn take(&mut self, identity: &Identity<'_>) -> Option<Entry<'a>> {
        let place = self.list.iter().position(|entry| entry.identity.is(identity))?;
        Some(self.list.swap_remove(place))
    }

    /// Takes an entry in, in place of the owner's former one.
    pub(super) fn put(&mut self, entry: Entry<'a>) {
        match self.list.iter_mut().find(|own| own.identity.is(&entry.identity)) {
            Some(own) => *own = entry,
            None => self.list.push(entry),
        }
    }

    /// Adds fields to an owner's entry, which was changed just now.
    pub(super) fn add(&mut self, entry: Entry<'a>) {
        match self.list.iter_mut().find(|own| own.identity.is(&entry.identity)) {
            Some(own) => {
                own.set.unite(entry.set);
                own.stored = None;
                own.time = entry.time;
            }
            None => self.list.push(entry),
        }
    }

    /// Drops entries that own nothing.
    pub(super) fn drop_empty(&mut self) {
        self.list.retain(|entry| !entry.set.is_empty());
    }

    /// Follows a schema that changed since the entries were written.
    pub(super) fn follow_schema(&mut self, of: Type<'_>) {
        for entry in &mut self.list {
            if entry.set.follow_schema(of) {
                entry.stored = None;
            }
        }
    }

    /// In the order in which conflicts name them.
    pub(super) fn sort_by_owner(&mut self) {
        self.list.sort_by(|left, right| left.identity.order(&right.identity));
    }

    /// Folds the oldest entries of updates together, by version, until there are few enough.
    pub(super) fn fold_oldest(&mut self) {
        let updates =
            |entries: &[Entry<'_>]| entries.iter().filter(|entry| !entry.identity.is_apply).count();
        let mut too_many = updates(&self.list).saturating_sub(MOST_UPDATE_ENTRIES);
        if too_many == 0 {
            return;
        }
        self.list.sort_by(|left, right| {
            let (left_seconds, right_seconds) = (left.seconds(), right.seconds());
            left_seconds.cmp(&right_seconds).then_with(|| left.identity.order(&right.identity))
        });
        // Each version's oldest entry becomes the bucket for the next ones of that version.
        let mut buckets: Vec<Entry<'a>> = Vec::new();
        let mut kept: Vec<Entry<'a>> = Vec::new();
        for entry in std::mem::take(&mut self.list) {
            if entry.identity.is_apply || too_many == 0 {
                kept.push(entry);
                continue;
            }
            let version = &entry.identity.api_version;
            match buckets.iter_mut().find(|bucket| bucket.identity.api_version == *version) {
                None => buckets.push(entry),
                Some(bucket) => {
                    bucket.set.unite(entry.set);
                    bucket.stored = None;
                    bucket.time = entry.time;
                    bucket.identity.manager = Cow::Borrowed(ANCIENT_CHANGES);
                    bucket.identity.subresource = Cow::Borrowed("");
                    too_many -= 1;
                }
            }
        }
        self.list = buckets;
        for entry in kept {
            // A bucket of an earlier fold that was too young to be reached takes the new one in.
            self.add(entry);
        }
    }

    /// Writes `metadata.managedFields`: appliers first, then by time.
    pub(super) fn encode(mut self) -> Vec<Value> {
        self.list.sort_by(|left, right| {
            let (left_id, right_id) = (&left.identity, &right.identity);
            right_id
                .is_apply
                .cmp(&left_id.is_apply)
                .then_with(|| left.seconds().cmp(&right.seconds()))
                .then_with(|| left_id.manager.cmp(&right_id.manager))
                .then_with(|| left_id.api_version.cmp(&right_id.api_version))
                .then_with(|| left_id.subresource.cmp(&right_id.subresource))
        });
        self.list.into_iter().map(encode_entry).collect()
    }
}

impl Entry<'_> {
    fn seconds(&self) -> i64 {
        self.time.as_ref().map_or(0, |time| time.seconds)
    }
}

fn decode_entry(entry: &Value) -> Option<Entry<'_>> {
    let entry = entry.as_object()?;
    let text = |name: &str| match entry.get(name) {
        None | Some(Value::Null) => Some(""),
        Some(Value::String(text)) => Some(text.as_str()),
        Some(_) => None,
    };
    let is_apply = match text("operation")? {
        "Apply" => true,
        "Update" => false,
        _ => return None,
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() || text("fieldsType")? != "FieldsV1" {
        return None;
    }
    let time = match entry.get("time") {
        None | Some(Value::Null) => None,
        Some(Value::String(time)) => Some(Moment::parse(time)?),
        Some(_) => return None,
    };
    let set = match entry.get("fieldsV1") {
        None => Set::default(),
        Some(fields) => Set::decode(fields).ok()?,
    };
    let identity = Identity {
        manager: Cow::Borrowed(text("manager")?),
        is_apply,
        api_version: Cow::Borrowed(api_version),
        subresource: Cow::Borrowed(text("subresource")?),
    };
    Some(Entry { identity, time, set, stored: entry.get("fieldsV1") })
}

fn encode_entry(entry: Entry<'_>) -> Value {
    let mut out = Map::new();
    let mut add = |name: &str, value: Value| out.insert(name.to_owned(), value);
    let Identity { manager, is_apply, api_version, subresource } = entry.identity;
    add("apiVersion", Value::String(api_version.into_owned()));
    add("fieldsType", Value::String("FieldsV1".to_owned()));
    add("fieldsV1", entry.stored.cloned().unwrap_or_else(|| entry.set.encode()));
    if !manager.is_empty() {
        add("manager", Value::String(manager.into_owned()));
    }
    let operation = if is_apply { "Apply" } else { "Update" };
    add("operation", Value::String(operation.to_owned()));
    if !subresource.is_empty() {
        add("subresource", Value::String(subresource.into_owned()));
    }
    if let Some(time) = entry.time {
        add("time", Value::String(time.text.into_owned()));
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(manager: &str, operation: &str, time: &str) -> Value {
        json!({
            "manager": manager, "operation": operation,
            "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {format!("f:{manager}"): {}}, "time": time,
        })
    }

    #[test]
    fn entries_are_sorted_by_operation_then_time_then_owner() {
        let day = |day: u8| format!("2024-01-{day:02}T00:00:00Z");
        let entries = [
            entry("c", "Update", &day(1)),
            entry("b", "Update", &day(1)),
            entry("a", "Update", &day(2)),
            entry("z", "Apply", &day(3)),
        ];
        let encoded = Entries::decode(&entries).expect("they are well formed").encode();
        let order: Vec<&str> =
            encoded.iter().filter_map(|entry| entry["manager"].as_str()).collect();
        assert_eq!(order, ["z", "b", "c", "a"]);
        assert_eq!(Entries::decode(&encoded).expect("what we wrote").encode(), encoded);
    }

    #[test]
    fn malformed_entries_are_refused() {
        let good = entry("a", "Update", "2024-01-01T00:00:00Z");
        for (field, value) in [
            ("operation", json!("Create")),
            ("operation", json!(1)),
            ("apiVersion", json!("")),
            ("fieldsType", json!("FieldsV2")),
            ("fieldsType", Value::Null),
            ("fieldsV1", json!({"x": {}})),
            ("time", json!("yesterday")),
            ("manager", json!([])),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            assert_eq!(Entries::decode(&[bad]).err(), Some(Unreadable), "{field}");
        }
        assert_eq!(Entries::decode(&[json!(1)]).err(), Some(Unreadable));
    }

    #[test]
    fn the_oldest_updates_are_folded_into_one() {
        let entries: Vec<Value> = (1..=13)
            .map(|day| {
                entry(&format!("m{day:02}"), "Update", &format!("2024-01-{day:02}T00:00:00Z"))
            })
            .collect();
        let mut decoded = Entries::decode(&entries).expect("they are well formed");
        decoded.fold_oldest();
        let encoded = decoded.encode();
        assert_eq!(encoded.len(), 10);
        assert_eq!(encoded[0]["manager"], "ancient-changes");
        assert_eq!(encoded[0]["time"], "2024-01-04T00:00:00Z");
        let folded = json!({"f:m01": {}, "f:m02": {}, "f:m03": {}, "f:m04": {}});
        assert_eq!(encoded[0]["fieldsV1"], folded);
        assert_eq!(encoded[1]["manager"], "m05");
    }

    #[test]
    fn an_earlier_fold_takes_the_next_oldest_in() {
        let mut entries: Vec<Value> = (2..=11)
            .map(|day| {
                entry(&format!("m{day:02}"), "Update", &format!("2024-01-{day:02}T00:00:00Z"))
            })
            .collect();
        entries.push(entry("ancient-changes", "Update", "2024-01-01T00:00:00Z"));
        let mut decoded = Entries::decode(&entries).expect("they are well formed");
        decoded.fold_oldest();
        let encoded = decoded.encode();
        assert_eq!(encoded.len(), 10);
        assert_eq!(encoded[0]["manager"], "ancient-changes");
        assert_eq!(encoded[0]["fieldsV1"], json!({"f:ancient-changes": {}, "f:m02": {}}));
    }
}
