//! JSON Patch (RFC 6902), with the habits of upstream's library that clients rely on.
//!
//! It differs from the RFC where upstream does: `replace` also adds a field that is not there,
//! `test` for `null` holds for one that is not there, and negative indices count from the end.

use super::rejected;
use crate::status::Status;
use serde_json::Value;

/// As upstream: longer patches are refused with 413.
const OPERATIONS_LIMIT: usize = 10_000;

/// What all `copy` operations together may add, or a short patch could double an object again and
/// again.
const COPIES_LIMIT_BYTES: usize = 3 * 1024 * 1024;

/// How many elements of lists may move, in all: an operation on a long list costs as much as the
/// list is long.
const ELEMENTS_LIMIT: usize = 50_000_000;

/// As the decoder's: operations must not nest values deeper than it would have let them in, or
/// whoever walks the outcome runs out of stack.
const DEPTH_LIMIT: usize = 128;

/// Applies all operations, or none. What is no patch is 400, too long a patch 413, an operation
/// that does not apply or a `test` that fails 422.
pub(crate) fn json(target: &Value, patch: &Value) -> Result<Value, Status> {
    let Value::Array(operations) = patch else {
        return Err(Status::bad_request("error decoding patch: a JSON patch must be a list"));
    };
    if operations.iter().any(|operation| !operation.is_object()) {
        return Err(Status::bad_request("error decoding patch: each operation must be an object"));
    }
    if operations.len() > OPERATIONS_LIMIT {
        return Err(Status::too_large(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_LIMIT}, got {}",
            operations.len()
        )));
    }
    let mut patched = Patched { value: target.clone(), copied_bytes: 0, moved_elements: 0 };
    for operation in operations {
        patched.apply(operation).map_err(rejected)?;
    }
    Ok(patched.value)
}

struct Patched {
    value: Value,
    copied_bytes: usize,
    moved_elements: usize,
}

impl Patched {
    fn apply(&mut self, operation: &Value) -> Result<(), String> {
        let kind = operation.get("op").and_then(Value::as_str).unwrap_or("unknown");
        let path = text(operation, "path")
            .ok_or_else(|| format!("{kind} operation failed to decode path: missing value"));
        let from = text(operation, "from")
            .ok_or_else(|| format!("{kind} operation failed to decode from: missing value"));
        let value = operation.get("value").unwrap_or(&Value::Null);
        match kind {
            "add" => self.add(path?, value.clone()),
            "remove" => {
                let path = path?;
                self.remove(path).map(drop)
            }
            "replace" => self.replace(path?, value),
            "move" => {
                let (from, path) = (from?, path?);
                let value = self.remove(from)?;
                self.add(path, value)
            }
            "copy" => self.copy(from?, path?),
            "test" => self.test(path?, value),
            _ => Err("Unexpected kind of operation".to_owned()),
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Result<(), String> {
        refuse_depth(path, &value)?;
        match self.find(path)? {
            Target::Field(Value::Object(map), key) => {
                map.insert(key, value);
            }
            Target::Field(Value::Array(list), key) => {
                let at = if key == "-" { list.len() } else { index(&key, list.len() + 1)? };
                let moved = list.len() - at;
                list.insert(at, value);
                self.count(moved)?;
            }
            Target::Field(..) | Target::Root => return Err(missing(path)),
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<Value, String> {
        match self.find(path)? {
            Target::Field(Value::Object(map), key) => map
                .remove(&key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
            Target::Field(Value::Array(list), key) => {
                let at = index(&key, list.len())?;
                let moved = list.len() - at;
                let value = list.remove(at);
                self.count(moved)?;
                Ok(value)
            }
            Target::Field(..) | Target::Root => Err(missing(path)),
        }
    }

    fn replace(&mut self, path: &str, value: &Value) -> Result<(), String> {
        refuse_depth(path, value)?;
        match self.find(path)? {
            Target::Root if value.is_object() || value.is_array() => self.value = value.clone(),
            Target::Root => {
                return Err("replace operation value must be object or array".to_owned());
            }
            Target::Field(Value::Object(map), key) => {
                map.insert(key, value.clone());
            }
            Target::Field(Value::Array(list), key) => {
                let at = index(&key, list.len())?;
                list[at] = value.clone();
            }
            Target::Field(..) => return Err(missing(path)),
        }
        Ok(())
    }

    fn copy(&mut self, from: &str, path: &str) -> Result<(), String> {
        let bytes = size_bytes(self.get(from)?);
        self.copied_bytes = self.copied_bytes.saturating_add(bytes);
        if self.copied_bytes > COPIES_LIMIT_BYTES {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, \
                 exceeding the limit {COPIES_LIMIT_BYTES}",
                self.copied_bytes
            ));
        }
        let value = self.get(from)?.clone();
        self.add(path, value)
    }

    fn test(&mut self, path: &str, value: &Value) -> Result<(), String> {
        if self.get(path)? == value {
            return Ok(());
        }
        Err(format!("testing value {path} failed: test failed"))
    }

    /// A value; `null` for a field that is not there.
    fn get(&mut self, path: &str) -> Result<&Value, String> {
        static NOTHING: Value = Value::Null;
        if path.is_empty() {
            return Ok(&self.value);
        }
        match self.find(path)? {
            Target::Field(Value::Object(map), key) => Ok(map.get(&key).unwrap_or(&NOTHING)),
            Target::Field(Value::Array(list), key) => {
                let at = index(&key, list.len())?;
                Ok(&list[at])
            }
            Target::Field(..) | Target::Root => Err(missing(path)),
        }
    }

    /// The object or list that holds the last segment of a path.
    fn find(&mut self, path: &str) -> Result<Target<'_>, String> {
        if path.is_empty() {
            return Ok(Target::Root);
        }
        let (parents, key) = path
            .strip_prefix('/')
            .and_then(|_| path.rsplit_once('/'))
            .ok_or_else(|| missing(path))?;
        let mut value = &mut self.value;
        for segment in parents.split('/').skip(1) {
            let segment = unescape(segment);
            value = match value {
                Value::Object(map) => map.get_mut(&segment).ok_or_else(|| missing(path))?,
                Value::Array(list) => {
                    let at = index(&segment, list.len()).map_err(|_| missing(path))?;
                    &mut list[at]
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    return Err(missing(path));
                }
            };
        }
        Ok(Target::Field(value, unescape(key)))
    }

    fn count(&mut self, elements: usize) -> Result<(), String> {
        self.moved_elements = self.moved_elements.saturating_add(elements);
        if self.moved_elements <= ELEMENTS_LIMIT {
            return Ok(());
        }
        Err("the operations of the patch move too many elements".to_owned())
    }
}

/// What a path leads to.
enum Target<'a> {
    Root,
    Field(&'a mut Value, String),
}

fn refuse_depth(path: &str, value: &Value) -> Result<(), String> {
    if path.matches('/').count() + depth(value) < DEPTH_LIMIT {
        return Ok(());
    }
    Err(format!("the value would be nested more than {DEPTH_LIMIT} deep"))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
    }
}

fn text<'a>(operation: &'a Value, name: &str) -> Option<&'a str> {
    operation.get(name).and_then(Value::as_str)
}

fn missing(path: &str) -> String {
    format!("doc is missing path: \"{path}\": missing value")
}

/// An index below a length; a negative one counts from the end.
fn index(text: &str, length: usize) -> Result<usize, String> {
    let invalid = || format!("Unable to access invalid index: {text}: invalid index referenced");
    let number: i64 = text.parse().map_err(|_| invalid())?;
    let length = i64::try_from(length).map_err(|_| invalid())?;
    let at = if number < 0 { number.saturating_add(length) } else { number };
    if !(0..length).contains(&at) {
        return Err(invalid());
    }
    usize::try_from(at).map_err(|_| invalid())
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// About the length of the value as JSON.
fn size_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(list) => 2 + list.iter().map(|value| size_bytes(value) + 1).sum::<usize>(),
        Value::Object(map) => {
            2 + map.iter().map(|(key, value)| key.len() + 4 + size_bytes(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json as value;

    fn check(target: Value, patch: Value, expected: Value) {
        assert_eq!(json(&target, &patch), Ok(expected), "{patch}");
    }

    fn refused(target: Value, patch: Value, code: u16, text: &str) {
        let status = json(&target, &patch).expect_err("the patch must be refused");
        assert_eq!(status.code, code);
        assert!(status.message.contains(text), "{}", status.message);
    }

    #[test]
    fn each_operation_does_what_the_rfc_says() {
        check(value!({}), value!([{"op": "add", "path": "/a", "value": 1}]), value!({"a": 1}));
        check(
            value!({"a": [1, 3]}),
            value!([
                {"op": "add", "path": "/a/1", "value": 2},
                {"op": "add", "path": "/a/-", "value": 4},
            ]),
            value!({"a": [1, 2, 3, 4]}),
        );
        check(value!({"a": 1, "b": 2}), value!([{"op": "remove", "path": "/a"}]), value!({"b": 2}));
        check(
            value!({"a": [1, 2]}),
            value!([{"op": "remove", "path": "/a/0"}]),
            value!({"a": [2]}),
        );
        check(
            value!({"a": [1, 2]}),
            value!([{"op": "replace", "path": "/a/1", "value": 9}]),
            value!({"a": [1, 9]}),
        );
        check(
            value!({"a": {"b": 1}}),
            value!([{"op": "move", "from": "/a/b", "path": "/c"}]),
            value!({"a": {}, "c": 1}),
        );
        check(
            value!({"a": {"b": 1}}),
            value!([{"op": "copy", "from": "/a", "path": "/c"}]),
            value!({"a": {"b": 1}, "c": {"b": 1}}),
        );
        check(
            value!({"a/b": {"m~n": 1}}),
            value!([{"op": "test", "path": "/a~1b/m~0n", "value": 1}]),
            value!({"a/b": {"m~n": 1}}),
        );
        check(value!({}), value!([]), value!({}));
    }

    #[test]
    fn upstreams_habits_are_kept() {
        check(value!({}), value!([{"op": "replace", "path": "/a", "value": 1}]), value!({"a": 1}));
        check(value!({}), value!([{"op": "test", "path": "/a", "value": null}]), value!({}));
        check(value!({}), value!([{"op": "add", "path": "/a"}]), value!({"a": null}));
        check(
            value!({"a": [1, 2]}),
            value!([{"op": "remove", "path": "/a/-1"}]),
            value!({"a": [1]}),
        );
        check(value!({"a": 1}), value!([{"op": "replace", "path": "", "value": {}}]), value!({}));
    }

    #[test]
    fn what_does_not_apply_is_invalid() {
        let one = |operation: Value| value!([operation]);
        for (operation, text) in [
            (
                value!({"op": "test", "path": "/a", "value": 2}),
                "testing value /a failed: test failed",
            ),
            (value!({"op": "remove", "path": "/x"}), "nonexistent key: x"),
            (value!({"op": "add", "path": "/x/y", "value": 1}), "missing path"),
            (value!({"op": "add", "path": "/l/9", "value": 1}), "invalid index"),
            (value!({"op": "remove", "path": "/l/-9"}), "invalid index"),
            (value!({"op": "replace", "path": "/l/x", "value": 1}), "invalid index"),
            (value!({"op": "add", "path": "a", "value": 1}), "missing path"),
            (value!({"op": "add", "path": "/a/b", "value": 1}), "missing path"),
            (value!({"op": "add", "value": 1}), "failed to decode path"),
            (value!({"op": "move", "path": "/b"}), "failed to decode from"),
            (value!({"op": "grow", "path": "/b"}), "Unexpected kind"),
            (value!({}), "Unexpected kind"),
        ] {
            refused(value!({"a": 1, "l": [1]}), one(operation), 422, text);
        }
        let sentence = "the server rejected our request due to an error in our request";
        refused(value!({}), one(value!({"op": "remove", "path": "/x"})), 422, sentence);
    }

    #[test]
    fn what_is_no_patch_is_a_bad_request_and_too_long_a_patch_is_too_large() {
        refused(value!({}), value!({"a": 1}), 400, "must be a list");
        refused(value!({}), value!([1]), 400, "must be an object");
        let long = Value::Array(vec![value!({"op": "test", "path": "/a"}); 10_001]);
        refused(value!({}), long, 413, "The allowed maximum operations in a JSON patch is 10000");
    }

    #[test]
    fn copies_cannot_grow_an_object_without_end() {
        let target = value!({"a": ["x".repeat(1_000)]});
        let double = value!({"op": "copy", "from": "/a", "path": "/a/-"});
        let patch = Value::Array(vec![double; 100]);
        refused(target, patch, 422, "accumulated size increase of copy");
    }

    #[test]
    fn work_on_long_lists_is_bounded() {
        let target = value!({"a": vec![1; 100_000]});
        let shift = value!({"op": "add", "path": "/a/0", "value": 1});
        refused(target, Value::Array(vec![shift; 10_000]), 422, "too many elements");
    }

    #[test]
    fn operations_cannot_nest_without_end() {
        let grow = value!([{"op": "copy", "from": "/a", "path": "/b"}]);
        let mut target = value!({"a": {"a": 1}});
        for round in 0..200 {
            let deeper = "/a".repeat(round + 2);
            let patch = value!([{"op": "add", "path": deeper, "value": {"a": 1}}]);
            match json(&target, &patch) {
                Ok(patched) => target = patched,
                Err(status) => {
                    assert!(status.message.contains("deep"), "{}", status.message);
                    assert!(round > 100);
                    assert!(json(&target, &grow).is_ok());
                    return;
                }
            }
        }
        panic!("nothing stopped it");
    }

    #[test]
    fn a_failed_patch_changes_nothing_and_no_patch_panics() {
        let kinds = ["add", "remove", "replace", "move", "copy", "test"];
        let paths =
            ["", "/", "/a", "/a/b", "/l", "/l/0", "/l/-", "/l/-1", "/l/7", "/a/~1", "x", "/l/+1"];
        let values = [value!(1), value!({"b": {}}), value!([1, [2]]), value!(null)];
        let mut state: u64 = 0xABCD_EF01_2345_6789;
        let mut next = |limit: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 7) as usize % limit
        };
        for _ in 0..20_000 {
            let operations: Vec<Value> = (0..next(4))
                .map(|_| {
                    value!({
                        "op": kinds[next(kinds.len())], "path": paths[next(paths.len())],
                        "from": paths[next(paths.len())], "value": values[next(values.len())],
                    })
                })
                .collect();
            let _ = json(&value!({"a": {"b": 1}, "l": [1, {"c": 2}]}), &Value::Array(operations));
        }
    }
}
