//! What must hold for any configurations by anybody in any order.

use super::super::fieldset::Set;
use super::*;

/// Xorshift: the same numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// Some of the fields that the schema of [`desk`] has, with few different values.
    fn spec(&mut self) -> Value {
        let mut spec = json!({});
        for field in ["replicas", "text", "labels", "set", "items", "leaf", "free", "inner"] {
            if self.below(2) == 0 {
                spec[field] = self.field(field);
            }
        }
        spec
    }

    fn field(&mut self, field: &str) -> Value {
        match field {
            "replicas" => json!(self.below(3)),
            "text" => json!(self.pick(&["x", "y"])),
            "labels" => {
                let mut labels = json!({});
                for _ in 0..self.below(3) {
                    labels[self.pick(&["a", "b", "c"])] = json!(self.pick(&["1", "2"]));
                }
                labels
            }
            "set" => {
                let mut set: Vec<&str> = vec!["p", "q", "r"];
                set.remove(self.below(3));
                // An empty list owns nothing, so upstream removes it with what it held before.
                set.truncate(1 + self.below(2));
                json!(set)
            }
            "items" => {
                let mut names = vec!["u", "v", "w"];
                names.swap(0, 2);
                names.remove(self.below(3));
                let items = names.into_iter().map(|name| {
                    let mut item = json!({"name": name});
                    if self.below(2) == 0 {
                        item["value"] = json!(self.pick(&["1", "2"]));
                    }
                    item
                });
                Value::Array(items.collect())
            }
            "leaf" => json!([self.below(2)]),
            "inner" => json!({"x": self.below(2)}),
            _ => self.anything(3),
        }
    }

    fn anything(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => json!(self.below(2)),
            2 => json!(self.pick(&["x", "1", "f:a", "k:{}"])),
            3 => json!(0.5),
            4 => (0..self.below(3)).map(|_| self.anything(depth - 1)).collect(),
            _ => {
                let mut fields = json!({});
                for _ in 0..self.below(4) {
                    let names =
                        ["a", "name", "f:a", ".", "k:{\"name\":1}", "v:2", "i:0", "fieldsV1"];
                    fields[self.pick(&names)] = self.anything(depth - 1);
                }
                fields
            }
        }
    }
}

fn desk() -> Desk {
    Desk::with_spec(json!({
        "replicas": "number", "text": "text", "labels": {"map": "text"}, "set": {"set": "text"},
        "items": {"by": ["name"], "keyed": {"fields": {"name": "text", "value": "text"}}},
        "leaf": {"list": "number"}, "free": "any", "inner": {"fields": {"x": "number"}},
    }))
}

/// Whether all that was applied is in the object.
fn is_in(applied: &Value, object: &Value) -> bool {
    match (applied, object) {
        (Value::Object(applied), Value::Object(object)) => applied
            .iter()
            .all(|(name, value)| object.get(name).is_some_and(|found| is_in(value, found))),
        (Value::Array(applied), Value::Array(object)) => {
            applied.iter().all(|value| object.iter().any(|found| is_in(value, found)))
        }
        (Value::Null, _) => true,
        _ => applied == object,
    }
}

#[test]
fn what_is_applied_is_there_and_applying_it_again_changes_nothing() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..150 {
        let mut desk = desk();
        for _ in 0..8 {
            let manager = random.pick(&["a", "b", "c"]);
            let spec = random.spec();
            if random.below(3) == 0 {
                desk.update(manager, spec);
                continue;
            }
            let force = random.below(2) == 0;
            let applied = json!({"spec": spec});
            match desk.try_apply(manager, applied.clone(), force) {
                Ok(()) => {}
                Err(ApplyError::Conflicts(_)) if !force => continue,
                Err(other) => panic!("{other:?}"),
            }
            assert!(is_in(&spec, desk.spec()), "{spec} in {}", desk.spec());
            let before = desk.live().clone();
            desk.try_apply(manager, applied, false).expect("the applier owns what it applied");
            assert_eq!(*desk.live(), before);
            desk.second = 0;
        }
    }
}

#[test]
fn nothing_that_comes_in_makes_it_panic() {
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let mut desk = desk();
    for _ in 0..2000 {
        let (live, applied) = (random.anything(6), random.anything(6));
        let mut object =
            json!({"apiVersion": "apps/v1", "spec": applied, "metadata": random.anything(3)});
        if random.below(2) == 0 {
            object["metadata"] = json!({"managedFields": [{
                "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": random.anything(6),
            }]});
        }
        desk.live = Some(json!({"metadata": object["metadata"], "spec": live}));
        let _ = desk.write(|write, live| {
            let mut new = object.clone();
            track_update(write, live, &mut new)?;
            Ok(json!({}))
        });
        desk.live = Some(object.clone());
        let force = random.below(2) == 0;
        let _ = desk.write(|write, live| apply(write, live, &random.anything(4), force));
        let _ = desk.write(|write, live| {
            apply(
                write,
                live,
                &json!({"apiVersion": "apps/v1", "spec": random.anything(6)}),
                force,
            )?;
            Ok(json!({}))
        });
        desk.second = 0;
    }
}

#[test]
fn sets_of_fields_are_read_as_they_were_written() {
    let mut random = Random(0xDEAD_BEEF_0BAD_CAFE);
    let mut read = 0;
    for _ in 0..3000 {
        let fields = random.anything(5);
        let Ok(set) = Set::decode(&fields) else { continue };
        let written = set.encode();
        assert_eq!(Set::decode(&written).expect("what we wrote"), set, "{fields}");
        assert_eq!(Set::decode(&written).expect("what we wrote").encode(), written);
        read += 1;
    }
    assert!(read > 100, "only {read} were sets");
}
