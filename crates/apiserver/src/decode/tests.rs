//! What bodies mean.

use super::*;
use serde_json::json as value;

fn read_json(text: &str) -> Decoded {
    json(text.as_bytes()).expect("the test's text is valid")
}

fn read_yaml(text: &str) -> Value {
    yaml(text.as_bytes()).expect("the test's text is valid").value
}

fn yaml_refusal(text: &str) -> String {
    let status = yaml(text.as_bytes()).expect_err("the test's text is not valid");
    assert_eq!((status.code, status.reason), (400, "BadRequest"));
    status.message
}

#[test]
fn numbers_keep_their_kind() {
    let read = read_json(r#"[1, -1, 18446744073709551615, 1.0, 1e2, 100000000000000000000]"#).value;
    assert_eq!(read[0], value!(1));
    assert_eq!(read[1], value!(-1));
    assert_eq!(read[2], value!(u64::MAX));
    assert!(read[3].is_f64() && read[4].is_f64() && read[5].is_f64());
    assert_eq!(json(b"1e999").expect_err("it is out of range").code, 400);
    assert_eq!(json(b"NaN").expect_err("JSON has no NaN").code, 400);
}

#[test]
fn broken_json_is_refused_with_its_position() {
    let status = json(b"{\"a\":\n 1,}").expect_err("it is broken");
    assert_eq!(status.code, 400);
    assert!(status.message.contains("line 2 column"), "{}", status.message);
    for text in ["", " ", "{", "{}{}", "{1:2}", "[1,]", "\"\\ud800\"", "{} x"] {
        assert_eq!(json(text.as_bytes()).expect_err("it is broken").code, 400, "{text}");
    }
    assert_eq!(json(b"\"\xff\"").expect_err("it is not UTF-8").code, 400);
}

#[test]
fn keys_that_stand_twice_are_reported_by_path_and_the_last_one_counts() {
    let read = read_json(r#"{"spec":{"a":1,"a":2,"b":[{},{"c":1,"c":1,"c":3}]},"spec":{"x":1}}"#);
    assert_eq!(read.duplicates, ["spec.a", "spec.b[1].c", "spec"]);
    assert_eq!(read.value, value!({"spec": {"x": 1}}));
    assert_eq!(read.strict_errors()[0], "duplicate field \"spec.a\"");
}

#[test]
fn many_duplicates_do_not_fill_the_memory() {
    let fields: Vec<String> = (0..500).map(|n| format!("\"a{n}\":1,\"a{n}\":1")).collect();
    let read = read_json(&format!("{{{}}}", fields.join(",")));
    assert_eq!(read.duplicates.len(), 100);
    let below_a_long_key = format!("{{\"{}\":{{{}}}}}", "k".repeat(1_000_000), fields.join(","));
    assert_eq!(read_json(&below_a_long_key).duplicates.len(), 1);
    let read = yaml(below_a_long_key.as_bytes()).expect("the test's text is valid");
    assert_eq!(read.duplicates.len(), 1);
}

#[test]
fn both_formats_stop_at_the_same_depth() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(json(nested(127).as_bytes()).is_ok());
    assert!(yaml(nested(127).as_bytes()).is_ok());
    assert_eq!(json(nested(128).as_bytes()).expect_err("too deep").code, 400);
    assert_eq!(yaml(nested(128).as_bytes()).expect_err("too deep").code, 400);
    for piece in ["[", "{\"a\":", "- ", "? ", "a: ", "!!x "] {
        let status = yaml(piece.repeat(50_000).as_bytes());
        assert!(piece == "!!x " || status.is_err(), "{piece}");
    }
    assert!(json("[".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn yaml_maps_and_lists_become_values() {
    let read = read_yaml(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {x: \"1\", w: 'z'}\n\
         data:\n  text: |\n    one\n    two\nlist:\n- 1\n- - 2\n- k: v\nempty:\n",
    );
    let expected = value!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"x": "1", "w": "z"}},
        "data": {"text": "one\ntwo\n"}, "list": [1, [2], {"k": "v"}], "empty": null,
    });
    assert_eq!(read, expected);
    assert_eq!(read_yaml(""), Value::Null);
    assert_eq!(read_yaml("---\na: 1\n"), value!({"a": 1}));
}

#[test]
fn yaml_scalars_mean_what_upstream_reads() {
    for (text, expected) in [
        ("yes", value!(true)),
        ("On", value!(true)),
        ("y", value!(true)),
        ("off", value!(false)),
        ("NO", value!(false)),
        ("~", Value::Null),
        ("1", value!(1)),
        ("-7", value!(-7)),
        ("+7", value!(7)),
        ("010", value!(8)),
        ("0o10", value!(8)),
        ("0x1F", value!(31)),
        ("0b101", value!(5)),
        ("-0b101", value!(-5)),
        ("1_000", value!(1000)),
        ("08", value!(8)),
        ("18446744073709551615", value!(u64::MAX)),
        ("1.5", value!(1.5)),
        (".5", value!(0.5)),
        ("1.0", value!(1)),
        ("1e3", value!(1000)),
        ("1e999", value!("1e999")),
        ("1.2.3", value!("1.2.3")),
        ("100m", value!("100m")),
        ("2020-01-01", value!("2020-01-01")),
        ("12:30", value!("12:30")),
        ("-", value!("-")),
        ("+-1", value!("+-1")),
        ("\"yes\"", value!("yes")),
        ("'1'", value!("1")),
        ("!!str 1", value!("1")),
        ("!!int 1", value!(1)),
        ("!mine 1", value!("1")),
        ("infinity", value!("infinity")),
    ] {
        if text == "-" {
            assert_eq!(scalar::plain(text), Ok(expected));
            continue;
        }
        assert_eq!(read_yaml(text), expected, "{text}");
    }
    for text in [".nan", "-.inf", "!!int x", "!!binary aGk="] {
        yaml_refusal(text);
    }
}

#[test]
fn yaml_keys_become_texts() {
    let read = read_yaml("1: a\n0x10: b\nyes: c\n1.5: d\n1e22: e\n");
    assert_eq!(read, value!({"1": "a", "16": "b", "true": "c", "1.5": "d", "1e+22": "e"}));
    assert!(yaml_refusal("~: a").contains("map key"));
    assert!(yaml_refusal("? [a]\n: b").contains("map key"));
}

#[test]
fn what_multiplies_is_refused() {
    assert!(yaml_refusal("a: &x 1\nb: *x\n").ends_with("line 1: anchors are not supported"));
    assert!(yaml_refusal("a: &x {b: 1}\n").contains("anchors"));
    assert!(yaml_refusal("a: 1\n<<: {b: 1}\n").ends_with("line 2: merge keys are not supported"));
    assert!(yaml_refusal("a: 1\n---\nb: 1\n").contains("more than one document"));
}

#[test]
fn broken_yaml_is_refused_with_its_line() {
    assert!(
        yaml_refusal("a: 1\nb: [1\n").starts_with("error converting YAML to JSON: yaml: line ")
    );
    assert!(yaml_refusal("a: b: c").contains("line 1"));
    let status = yaml(b"a: 1\nb: \xff\n").expect_err("it is not UTF-8");
    assert!(status.message.ends_with("line 2: invalid UTF-8"));
}

#[test]
fn yaml_tells_duplicates_by_path_and_by_line() {
    let text = "spec:\n  a: 1\n  a: 2\n  list:\n  - b: 1\n  - b: 1\n    b:\n      c: 1\n";
    let read = yaml(text.as_bytes()).expect("the test's text is valid");
    assert_eq!(read.duplicates, ["spec.a", "spec.list[1].b"]);
    assert_eq!(
        read.strict_errors(),
        ["yaml: unmarshal errors:\n  line 3: key \"a\" already set in map\n  \
          line 8: key \"b\" already set in map"]
    );
    assert_eq!(read.value["spec"]["a"], value!(2));
}

#[test]
fn the_content_type_decides() {
    assert_eq!(BodyForm::of(None, true), Ok(BodyForm::Json));
    assert_eq!(BodyForm::of(Some("Application/JSON; charset=utf-8"), true), Ok(BodyForm::Json));
    assert_eq!(BodyForm::of(Some("application/yaml"), true), Ok(BodyForm::Yaml));
    let protobuf = Some("application/vnd.kubernetes.protobuf");
    assert_eq!(BodyForm::of(protobuf, false), Ok(BodyForm::Protobuf));
    assert_eq!(BodyForm::of(protobuf, true).expect_err("custom kinds have none").code, 415);
    assert_eq!(BodyForm::of(Some("text/plain"), false).expect_err("unknown").code, 415);
    let strategic = Some("application/strategic-merge-patch+json");
    assert_eq!(PatchForm::of(strategic, false), Ok(PatchForm::Strategic));
    assert_eq!(
        PatchForm::of(strategic, true).expect_err("custom kinds have none").message,
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
    assert_eq!(PatchForm::of(None, false).expect_err("nothing is said").code, 415);
}

#[test]
fn apply_bodies_may_be_json_or_yaml() {
    for text in ["{\"a\": 1}", "a: 1"] {
        let read = patch_body(PatchForm::Apply, text.as_bytes()).expect("both are fine");
        assert_eq!(read.value, value!({"a": 1}));
    }
    assert!(patch_body(PatchForm::Merge, b"a: 1").is_err());
    let read = patch_body(PatchForm::Apply, b"{\"a\": 1,\n\"a\": 2}").expect("it is valid");
    assert!(read.strict_errors()[0].contains("line 2: key \"a\""));
}

#[test]
fn no_bytes_make_it_panic() {
    let pieces = [
        "{", "}", "[", "]", ":", ",", "\"", "a", "- ", "? ", ": ", "\n", "  ", "&x", "*x",
        "!!int ", "|", ">", "1", "e9", ".", "'", "#", "---", "...", "%TAG", "\u{feff}", "é", "\t",
        "\0", "<<", "\\u",
    ];
    let mut state: u64 = 0x0123_4567_89AB_CDEF;
    for round in 0..30_000_u32 {
        let mut bytes = Vec::new();
        for _ in 0..(state % 14) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(pieces[(state >> 9) as usize % pieces.len()].as_bytes());
        }
        if round % 7 == 0 {
            bytes.push((state >> 20) as u8);
        }
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15) | 1;
        let as_json = json(&bytes);
        let _ = yaml(&bytes);
        if let Ok(decoded) = as_json {
            assert_eq!(read_json(&decoded.value.to_string()).value, decoded.value);
        }
    }
}
