use super::*;
use serde_json::json;

/// Objects of our own as client-go 0.35 encodes them: a name, the bytes in hexadecimal, and the
/// JSON that upstream makes of the bytes.
const ENCODED: &str = include_str!("encoded.txt");

fn encoded() -> impl Iterator<Item = (&'static str, Vec<u8>, Value)> {
    let lines: Vec<&'static str> = ENCODED.lines().collect();
    lines.chunks(3).map(of_three).collect::<Vec<_>>().into_iter()
}

fn of_three(lines: &[&'static str]) -> (&'static str, Vec<u8>, Value) {
    let [name, hexadecimal, text] = lines else { panic!("each object has three lines") };
    let bytes = hexadecimal
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).expect("it is ASCII"))
        .map(|pair| u8::from_str_radix(pair, 16).expect("it is hexadecimal"))
        .collect();
    (name, bytes, serde_json::from_str(text).expect("it is JSON"))
}

/// A small generator, the same numbers each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("it is below a usize")
    }
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &meta), field(2, raw)].concat()
}

/// A field with a length.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for mut left in [number as usize * 8 + 2, content.len()] {
        while left > 0x7f {
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
    }
    bytes.extend_from_slice(content);
    bytes
}

#[test]
fn what_client_go_encodes_becomes_what_upstream_would_write() {
    let mut count = 0;
    for (name, bytes, expected) in encoded() {
        let decoded = decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(decoded, expected, "{name}: {decoded}");
        count += 1;
    }
    assert_eq!(count, 29);
}

#[test]
fn what_is_encoded_is_decoded_to_the_same() {
    for (name, _, object) in encoded() {
        let bytes = encode(&object).unwrap_or_else(|| panic!("{name} cannot be encoded"));
        assert_eq!(decode(&bytes).as_ref(), Ok(&object), "{name}");
    }
}

#[test]
fn lists_and_metadata_have_the_fields_that_all_of_them_have() {
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"},
        "items": [{"metadata": {"name": "a"}, "data": {"k": "v"}}],
    });
    let item = [field(1, &field(1, b"a")), field(2, &[field(1, b"k"), field(2, b"v")].concat())];
    let raw = [field(1, &field(2, b"7")), field(2, &item.concat())].concat();
    let whole = [body("v1", "ConfigMapList", &raw), field(3, b""), field(4, b"")].concat();
    assert_eq!(encode(&list), Some(whole));
    let metadata = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"},
    });
    let raw = field(1, &field(1, b"a"));
    let whole =
        [body("meta.k8s.io/v1", "PartialObjectMetadata", &raw), field(3, b""), field(4, b"")];
    assert_eq!(encode(&metadata), Some(whole.concat()));
}

#[test]
fn what_has_no_protobuf_is_not_encoded() {
    let odd = [
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {}}),
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "Table", "rows": []}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": 1}}),
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "not base64!"}}),
        json!({"kind": "ConfigMap"}),
        json!("text"),
    ];
    odd.iter().for_each(|value| assert_eq!(encode(value), None, "{value}"));
}

#[test]
fn a_change_of_a_watch_has_its_length_first() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let frame = watch_frame("ADDED", object.to_string().as_bytes()).expect("it is encoded");
    let (length, change) = frame.split_first_chunk().expect("four bytes");
    assert_eq!(u32::from_be_bytes(*length) as usize, change.len());
    let encoded = encode(&object).expect("it is encoded");
    assert_eq!(change, [field(1, b"ADDED"), field(2, &field(1, &encoded))].concat());
}

#[test]
fn what_upstream_would_write_is_left_as_it_is() {
    for (name, _, mut object) in encoded() {
        let api_version = object["apiVersion"].as_str().expect("it has one");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = object["kind"].as_str().expect("it has one");
        let Some(found) = built_in().find_kind(group, version, kind) else { continue };
        let before = object.clone();
        built_in().as_upstream_writes(&found.openapi_name, &mut object);
        assert_eq!(object, before, "{name}");
    }
}

#[test]
fn fields_of_a_newer_client_are_passed_over() {
    let raw = [&[0x0a, 3, 0x0a, 1, b'a'][..], &[0xf8, 0x3f, 1], &[0xfd, 0x3f, 1, 2, 3, 4]].concat();
    let decoded = decode(&body("v1", "Namespace", &raw)).expect("it is well formed");
    assert_eq!(decoded["metadata"], json!({"name": "a"}));
}

#[test]
fn bodies_that_make_no_sense_are_refused() {
    let refused = |bytes: &[u8]| decode(bytes).expect_err("it makes no sense");
    assert_eq!(refused(b""), "the body does not begin as protobuf bodies do");
    assert_eq!(refused(b"{}"), "the body does not begin as protobuf bodies do");
    assert_eq!(refused(MAGIC), "the body does not say what kind it is of");
    assert_eq!(
        refused(&body("example.com/v1", "Foo", b"")),
        "no kind \"Foo\" is registered for version \"example.com/v1\""
    );
    let wrong_type = body("v1", "Namespace", &[0x08, 1]);
    assert_eq!(refused(&wrong_type), "metadata: wire type 0 is wrong here");
    let cut = body("v1", "Namespace", &[0x0a, 9, 1]);
    assert_eq!(refused(&cut), "the message is cut short");
}

#[test]
fn messages_cannot_be_nested_without_end() {
    // A JSON schema whose "not" is a JSON schema, and so on.
    let mut schema = Vec::new();
    for _ in 0..5000 {
        schema = field(28, &schema);
    }
    let id = built_in()
        .tables()
        .find("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
        .expect("it is known");
    let mut decoder = Decoder { tables: built_in().tables(), values_left: MOST_VALUES };
    let error = decoder.message(id, &schema, &mut Map::new(), 0).expect_err("it is too deep");
    assert!(error.ends_with("messages are in each other more than 100 deep"), "{error}");
}

#[test]
fn a_small_body_cannot_become_a_large_object() {
    let raw: Vec<u8> = std::iter::repeat_n([0x12, 0], 400_000).flatten().collect();
    let pod = field(2, &raw);
    let error = decode(&body("v1", "Pod", &pod)).expect_err("it is too large");
    assert!(error.ends_with("it holds more than 500000 values"), "{error}");
}

#[test]
fn no_bytes_at_all_make_it_panic() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let samples: Vec<Vec<u8>> = encoded().map(|(_, bytes, _)| bytes).collect();
    for round in 0..20_000 {
        let mut bytes = samples[numbers.below(samples.len())].clone();
        match round % 4 {
            0 => bytes.truncate(numbers.below(bytes.len())),
            1 => {
                for _ in 0..=numbers.below(4) {
                    let place = numbers.below(bytes.len());
                    bytes[place] = numbers.below(256) as u8;
                }
            }
            2 => {
                let place = numbers.below(bytes.len());
                bytes.insert(place, numbers.below(256) as u8);
            }
            _ => {
                let raw: Vec<u8> =
                    (0..numbers.below(40)).map(|_| numbers.below(256) as u8).collect();
                bytes = body("apps/v1", "Deployment", &raw);
            }
        }
        let _ = decode(&bytes);
    }
}
