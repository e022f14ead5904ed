//! Strategic merge patches by example, and compared with what upstream's library makes of the same
//! patches.

use super::merge::without_nulls;
use super::strategic;
use crate::schema::{Field, Form, List, Map, Node, NodeId, Object, PatchStrategy, Schema};
use serde_json::{Value, json};

/// Patches and outcomes of upstream's library, one JSON object in each line: `target`, `patch`, and
/// `result` or `error`.
const UPSTREAM_CASES: &str = include_str!("strategic_cases.jsonl");

/// A kind with each sort of field. `list`, `atomic`, `kept` and `inner` hold things of the same
/// kind.
pub(crate) fn item_schema() -> Schema {
    let mut schema = Schema::default();
    let root = schema.add(Node::default());
    let text = schema.add(Node { form: Form::String, ..Node::default() });
    let number = schema.add(Node { form: Form::Integer, ..Node::default() });
    let labels = Form::Map(Map { values: text, is_atomic: false });
    let labels = schema.add(Node { form: labels, ..Node::default() });
    let mut list_of = |items: NodeId| {
        let form = Form::List(List { items, ..List::default() });
        schema.add(Node { form, ..Node::default() })
    };
    let (items, words) = (list_of(root), list_of(text));
    let merged = PatchStrategy { merge: true, ..PatchStrategy::default() };
    let keyed = PatchStrategy { merge_key: Some("name".into()), ..merged.clone() };
    let retained = PatchStrategy { retain_keys: true, ..PatchStrategy::default() };
    let plain = PatchStrategy::default();
    let mut object = Object::default();
    for (name, node, patch) in [
        ("name", text, &plain),
        ("value", number, &plain),
        ("labels", labels, &plain),
        ("list", items, &keyed),
        ("atomic", items, &plain),
        ("words", words, &merged),
        ("plain", words, &plain),
        ("kept", root, &retained),
        ("inner", root, &plain),
    ] {
        object.fields.insert(name.into(), Field { node, patch: patch.clone() });
    }
    schema.nodes[0].form = Form::Object(object);
    schema
}

fn check(target: Value, patch: Value, expected: Value) {
    let schema = item_schema();
    assert_eq!(strategic(&target, &patch, schema.shape()), Ok(expected), "{patch}");
}

fn refused(target: Value, patch: Value, code: u16, text: &str) {
    let schema = item_schema();
    let status = strategic(&target, &patch, schema.shape()).expect_err("the patch must be refused");
    assert_eq!(status.code, code, "{}", status.message);
    assert!(status.message.contains(text), "{}", status.message);
}

#[test]
fn objects_merge_and_null_removes() {
    check(
        json!({"value": 1, "labels": {"a": "1", "b": "2"}}),
        json!({"value": null, "labels": {"a": null, "c": "3"}, "inner": {"name": null}}),
        json!({"labels": {"b": "2", "c": "3"}, "inner": {}}),
    );
}

#[test]
fn lists_merge_by_key_and_others_are_replaced() {
    check(
        json!({"list": [{"name": "a", "value": 1}, {"name": "b"}], "plain": ["x"], "words": ["x"]}),
        json!({
            "list": [{"name": "a", "labels": {"k": "v"}}, {"name": "c"}],
            "plain": ["y"], "words": ["y"],
        }),
        json!({
            "list": [{"name": "a", "value": 1, "labels": {"k": "v"}}, {"name": "c"}, {"name": "b"}],
            "plain": ["y"], "words": ["y", "x"],
        }),
    );
}

#[test]
fn directives_in_lists_delete_and_replace() {
    let target = json!({"list": [{"name": "a"}, {"name": "b"}]});
    let delete = json!({"list": [{"name": "a", "$patch": "delete"}]});
    check(target.clone(), delete, json!({"list": [{"name": "b"}]}));
    let replace = json!({"list": [{"$patch": "replace"}, {"name": "c"}]});
    check(target.clone(), replace, json!({"list": [{"name": "c"}]}));
    refused(
        target.clone(),
        json!({"list": [{"$patch": "merge", "name": "a"}]}),
        422,
        "merging lists",
    );
    refused(
        target.clone(),
        json!({"list": [{"$patch": "x", "name": "a"}]}),
        422,
        "unknown patch type",
    );
    refused(target, json!({"list": [{"$patch": "delete"}]}), 422, "declared merge key: name");
}

#[test]
fn directives_in_objects_replace_and_empty() {
    let target = json!({"inner": {"name": "a", "value": 1}});
    let replace = json!({"inner": {"$patch": "replace", "value": 2}});
    check(target.clone(), replace, json!({"inner": {"value": 2}}));
    check(target.clone(), json!({"inner": {"$patch": "delete"}}), json!({"inner": {}}));
    check(target.clone(), json!({"kept": {"$patch": "delete"}}), target.clone());
    refused(target, json!({"inner": {"$patch": "merge"}}), 422, "unknown patch type");
}

#[test]
fn retained_keys_drop_the_rest() {
    let target = json!({"kept": {"name": "a", "value": 1, "plain": ["x"]}});
    check(
        target.clone(),
        json!({"kept": {"$retainKeys": ["name", "value"], "value": 2}}),
        json!({"kept": {"name": "a", "value": 2}}),
    );
    let foreign = json!({"kept": {"$retainKeys": ["name"], "value": 2}});
    refused(target.clone(), foreign, 400, "invalid patch format of retainKeys");
    refused(target, json!({"kept": {"$retainKeys": "name"}}), 400, "retainKeys");
}

#[test]
fn scalars_are_taken_from_lists() {
    check(
        json!({"words": ["a", "b", "c"]}),
        json!({"$deleteFromPrimitiveList/words": ["b"], "words": ["d"]}),
        json!({"words": ["d", "a", "c"]}),
    );
    let nothing = json!({"$deleteFromPrimitiveList/words": ["b"]});
    check(json!({}), nothing, json!({}));
    let bad = json!({"$deleteFromPrimitiveListwords": ["b"]});
    refused(json!({}), bad, 400, "invalid patch format of primitive list");
}

#[test]
fn the_order_of_elements_can_be_set() {
    check(
        json!({"list": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
        json!({
            "$setElementOrder/list": [{"name": "d"}, {"name": "c"}, {"name": "a"}],
            "list": [{"name": "d"}, {"name": "c", "value": 1}],
        }),
        json!({"list": [{"name": "d"}, {"name": "b"}, {"name": "c", "value": 1}, {"name": "a"}]}),
    );
    check(
        json!({"words": ["a", "b", "c"]}),
        json!({"$setElementOrder/words": ["c", "a"]}),
        json!({"words": ["b", "c", "a"]}),
    );
    let foreign = json!({"$setElementOrder/words": ["c"], "words": ["d"]});
    refused(json!({}), foreign, 422, "$setElementOrder");
    refused(json!({}), json!({"$setElementOrder": ["c"]}), 400, "setElementOrder");
    refused(json!({}), json!({"$setElementOrder/words": 1}), 422, "expected a list");
}

#[test]
fn lists_that_cannot_be_merged_are_refused() {
    let target = json!({"list": [{"name": "a"}], "words": ["a"]});
    refused(target.clone(), json!({"list": [{"value": 1}]}), 422, "declared merge key: name");
    refused(target.clone(), json!({"list": ["a"]}), 422, "types are not identical");
    refused(target.clone(), json!({"list": [[1]]}), 422, "lists of lists");
    refused(target.clone(), json!({"list": [{"name": {}}]}), 422, "must be a scalar");
    refused(target.clone(), json!({"words": [null]}), 422, "null elements");
    refused(target.clone(), json!([1]), 400, "invalid JSON document");
    refused(target, json!({"$patch": 1}), 422, "unknown patch type");
}

#[test]
fn errors_do_not_show_the_object() {
    let target = json!({"list": [{"name": "a", "labels": {"k": "topsecret"}}]});
    let patch = json!({"list": [{"value": 1, "labels": {"k": "topsecret"}}]});
    let schema = item_schema();
    let status = strategic(&target, &patch, schema.shape()).expect_err("there is no key");
    assert!(!status.message.contains("topsecret"));
}

#[test]
fn long_lists_take_no_quadratic_time() {
    let name = |n: usize| json!({"name": n.to_string(), "value": n});
    let list: Vec<Value> = (0..20_000).map(name).collect();
    let target =
        json!({"list": list, "words": (0..20_000).map(|n| n.to_string()).collect::<Vec<_>>()});
    let patch = json!({
        "list": target["list"], "words": target["words"],
        "$setElementOrder/words": target["words"], "$setElementOrder/list": target["list"],
    });
    check(target.clone(), patch, target);
}

#[test]
fn the_outcome_is_upstreams() {
    let schema = item_schema();
    let mut cases = 0;
    for line in UPSTREAM_CASES.lines() {
        let case: Value = serde_json::from_str(line).expect("the cases are JSON");
        let outcome = strategic(&case["target"], &case["patch"], schema.shape());
        match (outcome, case.get("result")) {
            // Upstream leaves some nulls in, which its types drop later.
            (Ok(value), Some(result)) => {
                assert_eq!(without_nulls(&value), without_nulls(result), "{line}");
            }
            (Err(_), None) => {}
            (Ok(value), None) => panic!("upstream refuses it, here it becomes {value}: {line}"),
            (Err(status), Some(_)) => panic!("{}: {line}", status.message),
        }
        cases += 1;
    }
    assert!(cases >= 100, "only {cases} cases");
}

#[test]
fn no_patch_makes_it_panic() {
    let schema = item_schema();
    let keys = [
        "name",
        "value",
        "labels",
        "list",
        "atomic",
        "words",
        "kept",
        "inner",
        "$patch",
        "$retainKeys",
        "$setElementOrder/list",
        "$setElementOrder/words",
        "$deleteFromPrimitiveList/words",
        "$x",
        "",
    ];
    let mut state: u64 = 0x5DEE_CE66_D123_4567;
    let mut next = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 9) as usize % limit
    };
    for _ in 0..20_000 {
        let (target, patch) = (random(&mut next, &keys, 3), random(&mut next, &keys, 3));
        let _ = strategic(&target, &patch, schema.shape());
    }
}

fn random(next: &mut impl FnMut(usize) -> usize, keys: &[&str], depth: usize) -> Value {
    let sort = if depth == 3 { 0 } else { next(if depth == 0 { 5 } else { 9 }) };
    match sort {
        1 => json!("a"),
        2 => json!(["delete", "replace", "merge", "name"][next(4)]),
        3 => json!(next(2)),
        4 => json!(null),
        5 | 6 => Value::Array((0..next(4)).map(|_| random(next, keys, depth - 1)).collect()),
        _ if depth == 0 => json!(1.5),
        _ => Value::Object(
            (0..next(5))
                .map(|_| (keys[next(keys.len())].to_owned(), random(next, keys, depth - 1)))
                .collect(),
        ),
    }
}
