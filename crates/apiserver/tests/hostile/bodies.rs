//! Bodies: objects in every form they can come in, patches of every sort, and definitions with random schemas.

use crate::asking::Numbers;
use crate::values::{any, damage, damage_bytes, number, text};
use serde_json::{Map, Value, json};

/// What client-go has encoded as protobuf: name, hexadecimal, JSON.
const ENCODED: &str = include_str!("../../src/protobuf/encoded.txt");

/// What YAML has that JSON has not.
const YAML: &[&str] = &[
    "a: &x [*x]\nb: *x\n",
    "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
    "---\na: 1\n---\nb: 2\n",
    "? [a, b]\n: c\n",
    "<<: {a: 1}\nb: 2\n",
    "a: !!binary aGk=\n",
    "a: !!python/object:os.system x\n",
    "\ta: 1\n",
    "a: |\n  x\n y\n",
    "a: 0x1f\nb: 0o17\nc: 1_000\nd: .inf\ne: ~\n",
    "yes: no\n",
    "a: 1\na: 2\n",
    "%YAML 9.9\n---\na\n",
    "- - - - - x\n",
    "a: \"\\x\"\n",
    "{a: [}",
    "'",
    "a: 2026-01-01\n",
    "1: 2\nnull: 3\n",
    "a: >-\n\n\n",
    "# nothing\n",
    "*a",
];

/// An object as bytes, and the content type that says which form it has.
pub(crate) fn encoded(numbers: &mut Numbers, object: &Value) -> (String, Vec<u8>) {
    let mut object = object.clone();
    for _ in 0..numbers.below(6) / 3 {
        damage(&mut object, numbers);
    }
    let mut bytes = object.to_string().into_bytes();
    if numbers.one_in(16) {
        damage_bytes(&mut bytes, numbers);
    }
    let content_type = match numbers.below(40) {
        0 => "application/yaml",
        1 => "",
        2 => "application/json; charset=utf-8",
        3 => "application/vnd.kubernetes.protobuf",
        4 => "text/plain",
        _ => "application/json",
    };
    if content_type == "application/yaml" && numbers.one_in(2) {
        bytes = yaml(numbers, bytes);
    }
    (content_type.to_owned(), bytes)
}

fn yaml(numbers: &mut Numbers, object: Vec<u8>) -> Vec<u8> {
    let odd = numbers.pick(YAML).as_bytes().to_vec();
    match numbers.below(4) {
        0 => [object, b"\n".to_vec(), odd].concat(),
        1 => " ".repeat(numbers.below(2000)).into_bytes().into_iter().chain(odd).collect(),
        2 => {
            let mut bytes = odd;
            damage_bytes(&mut bytes, numbers);
            bytes
        }
        _ => odd,
    }
}

/// A protobuf body, mostly damaged, and what it was: its version, kind and name.
pub(crate) fn protobuf(numbers: &mut Numbers) -> (Value, Vec<u8>) {
    let lines: Vec<&str> = ENCODED.lines().collect();
    let objects: Vec<&[&str]> = lines.chunks(3).collect();
    let one = numbers.pick(&objects);
    let pairs = one[1].as_bytes().chunks(2);
    let digits = pairs.map(|pair| std::str::from_utf8(pair).expect("it is ASCII"));
    let mut bytes: Vec<u8> =
        digits.map(|pair| u8::from_str_radix(pair, 16).expect("it is hexadecimal")).collect();
    if !numbers.one_in(4) {
        damage_bytes(&mut bytes, numbers);
    }
    (serde_json::from_str(one[2]).expect("it is JSON"), bytes)
}

/// A patch of one of the four sorts, for an object that is somewhat like this.
pub(crate) fn patch(numbers: &mut Numbers, object: &Value) -> (String, Vec<u8>) {
    let (content_type, patch) = match numbers.below(4) {
        0 => ("application/json-patch+json", operations(numbers, object)),
        1 => ("application/merge-patch+json", piece(numbers, object, false)),
        2 => ("application/strategic-merge-patch+json", piece(numbers, object, true)),
        _ => ("application/apply-patch+yaml", object.clone()),
    };
    let mut patch = patch;
    if numbers.one_in(2) {
        damage(&mut patch, numbers);
    }
    let mut bytes = patch.to_string().into_bytes();
    if numbers.one_in(12) {
        damage_bytes(&mut bytes, numbers);
    }
    (content_type.to_owned(), bytes)
}

fn operations(numbers: &mut Numbers, object: &Value) -> Value {
    let words = ["add", "remove", "replace", "move", "copy", "test", "grow", ""];
    let count = numbers.below(6);
    (0..count)
        .map(|_| {
            json!({
                "op": numbers.pick(&words), "path": pointer(numbers, object),
                "from": pointer(numbers, object), "value": any(numbers, 2),
            })
        })
        .collect()
}

/// A JSON pointer into a value, or a little beside it.
fn pointer(numbers: &mut Numbers, value: &Value) -> String {
    let mut path = String::new();
    let mut value = value;
    loop {
        let (segment, inner) = match value {
            Value::Object(map) if !map.is_empty() => {
                let place = numbers.below(map.len());
                let (name, inner) = map.iter().nth(place).expect("it is within the map");
                (name.replace('~', "~0").replace('/', "~1"), Some(inner))
            }
            Value::Array(list) if !list.is_empty() => {
                let place = numbers.below(list.len());
                (place.to_string(), list.get(place))
            }
            _ => (text(numbers), None),
        };
        path = format!("{path}/{segment}");
        match inner {
            Some(inner) if !numbers.one_in(3) => value = inner,
            Some(_) if numbers.one_in(4) => {
                let odd = ["-", "-1", "99999999999999999999", "~", "~2", "", "00", "+1", "/"];
                return format!("{path}/{}", numbers.pick(&odd));
            }
            _ => return path,
        }
    }
}

/// A part of an object, with directives if wanted.
fn piece(numbers: &mut Numbers, value: &Value, with_directives: bool) -> Value {
    match value {
        Value::Object(map) => {
            let mut part = Map::new();
            for (name, inner) in map {
                if numbers.one_in(2) {
                    part.insert(name.clone(), piece(numbers, inner, with_directives));
                }
                if with_directives && numbers.one_in(6) {
                    let directive = match numbers.below(4) {
                        0 => "$patch".to_owned(),
                        1 => "$retainKeys".to_owned(),
                        2 => format!("$setElementOrder/{name}"),
                        _ => format!("$deleteFromPrimitiveList/{name}"),
                    };
                    let words = [
                        json!("delete"),
                        json!("replace"),
                        json!("merge"),
                        json!([name]),
                        inner.clone(),
                    ];
                    let what = if numbers.one_in(4) {
                        any(numbers, 1)
                    } else {
                        numbers.pick(&words).clone()
                    };
                    part.insert(directive, what);
                }
            }
            Value::Object(part)
        }
        Value::Array(list) => {
            list.iter().map(|inner| piece(numbers, inner, with_directives)).collect()
        }
        other if numbers.one_in(3) => {
            any(numbers, 1).as_null().map_or(other.clone(), |()| Value::Null)
        }
        other => other.clone(),
    }
}

/// Definitions are made and made again under these names.
pub(crate) const DEFINED: &[&str] = &["things", "others", "wholes"];

/// A definition that lets anything in.
pub(crate) fn open_definition(plural: &str) -> Value {
    let mut definition = definition_of(&mut crate::asking::Numbers::new(1), plural);
    definition["spec"]["versions"][0] = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    });
    definition
}

/// A definition with random schemas.
pub(crate) fn definition(numbers: &mut Numbers) -> Value {
    let plural = *numbers.pick(DEFINED);
    definition_of(numbers, plural)
}

fn definition_of(numbers: &mut Numbers, plural: &str) -> Value {
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..plural.len() - 1]);
    let scope = if plural == "wholes" { "Cluster" } else { "Namespaced" };
    let mut root = schema(numbers, 5, "object");
    if numbers.one_in(2) {
        root["properties"]["spec"] = schema(numbers, 4, "object");
        root["properties"]["status"] = schema(numbers, 2, "object");
    }
    let mut version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root},
        "subresources": {"status": {}},
    });
    if numbers.one_in(2) {
        version["subresources"]["scale"] = json!({
            "specReplicasPath": ".spec.a", "statusReplicasPath": ".status.b", "labelSelectorPath": ".status.c",
        });
    }
    if numbers.one_in(2) {
        let paths = [
            ".spec.a",
            ".spec.*",
            ".metadata.creationTimestamp",
            ".spec[?(@.a=='b')].c",
            ".spec.a[-1:9:0]",
            "..",
            ".spec['a']",
            ".status.b",
        ];
        let kinds = ["string", "integer", "number", "boolean", "date"];
        version["additionalPrinterColumns"] = (0..numbers.below(4))
            .map(|_| json!({"name": text(numbers), "type": numbers.pick(&kinds), "jsonPath": numbers.pick(&paths)}))
            .collect();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": scope,
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [version],
        },
    })
}

fn schema(numbers: &mut Numbers, depth: usize, type_name: &str) -> Value {
    let mut schema = json!({"type": type_name});
    let types = ["string", "integer", "number", "boolean", "object", "array"];
    let inner = |numbers: &mut Numbers| {
        let types = if depth == 0 { &types[..4] } else { &types[..] };
        let type_name = *numbers.pick(types);
        self::schema(numbers, depth.saturating_sub(1), type_name)
    };
    match type_name {
        "object" if numbers.one_in(4) => schema["additionalProperties"] = inner(numbers),
        "object" => {
            for name in ["a", "b", "c"] {
                if numbers.one_in(2) {
                    schema["properties"][name] = inner(numbers);
                }
            }
            if numbers.one_in(4) {
                schema["required"] = json!(["a"]);
            }
        }
        "array" => schema["items"] = inner(numbers),
        _ => {}
    }
    if numbers.one_in(12) {
        let (name, value) = keyword(numbers);
        schema[name] = value;
    } else if numbers.one_in(3) {
        fitting_keyword(numbers, type_name, &mut schema);
    }
    schema
}

/// A keyword that belongs to a type.
fn fitting_keyword(numbers: &mut Numbers, type_name: &str, schema: &mut Value) {
    let rules: &[&str] = match type_name {
        "object" => &[
            "has(self.a)",
            "size(self) < 3",
            "'a' in self",
            "self == oldSelf",
            "self.all(k, k != 'x')",
        ],
        "array" => {
            &["self.all(x, x == x)", "size(self) < 3", "self.exists_one(x, true)", "self == self"]
        }
        "string" => &[
            "self.matches('^[a-z]*$')",
            "size(self) > 1 && self.charAt(0) == 'a'",
            "self.split(',').size() < 3",
            "self == oldSelf",
            "isQuantity(self)",
            "isIP(self)",
            "isURL(self)",
            "duration(self) > duration('1s')",
            "timestamp(self) > timestamp('2020-01-01T00:00:00Z')",
            "self.substring(1, 2) == 'x'",
            "int(self) > 1",
            "self.find('[0-9]+') == ''",
            "self.replace('a', 'b').upperAscii() == self",
            "base64.decode(self) == b''",
        ],
        "boolean" => &["self", "!self || self"],
        _ => &[
            "self > 0",
            "self % 2 == 0",
            "self / 0 > 1",
            "self + 9223372036854775807 > 0",
            "-self < 0",
            "double(self) > 0.1",
        ],
    };
    match numbers.below(4) {
        0 | 1 => {
            schema["x-kubernetes-validations"] =
                json!([{"rule": numbers.pick(rules), "message": "no"}]);
        }
        2 => {
            let default = match type_name {
                "object" => json!({}),
                "array" => json!([]),
                "string" => json!("x"),
                "boolean" => json!(true),
                _ => json!(7),
            };
            schema["default"] = default;
        }
        _ => match type_name {
            "array" => schema["maxItems"] = json!(2),
            "string" => {
                let formats =
                    ["date-time", "byte", "uuid", "ipv4", "cidr", "email", "duration", "date"];
                schema["format"] = json!(*numbers.pick(&formats));
            }
            "object" => schema["x-kubernetes-preserve-unknown-fields"] = json!(true),
            "boolean" => schema["nullable"] = json!(true),
            _ => schema["maximum"] = json!(10),
        },
    }
}

/// A keyword, sometimes where it does not belong.
fn keyword(numbers: &mut Numbers) -> (&'static str, Value) {
    let rules = [
        "self == oldSelf",
        "self > 0",
        "self.a == self.b",
        "has(self.a)",
        "self.all(x, x > 0)",
        "self.size() < 10",
        "self.map(x, x).map(y, y).size() > 0",
        "1 / 0 == 1",
        "self.matches('(a*)*b')",
        "!",
        "self.a.b.c.d",
        "[1,2,3].exists(x, x == self)",
        "'%s'.format([self]) == ''",
        "quantity('1Ki').isGreaterThan(quantity('1'))",
        "ip(self).family() == 4",
        "duration('99999999999h') > duration('1s')",
        "timestamp('x') == timestamp('y')",
        "self.split('').join('') == self",
        "9223372036854775807 + 1 > 0",
        "-9223372036854775808 / -1 == 1",
        "self[0]",
        "self['a']",
        "type(self) == int",
        "optional.of(self).hasValue()",
        "url(self).getHost() == ''",
    ];
    match numbers.below(16) {
        0 => ("default", any(numbers, 2)),
        1 => ("x-kubernetes-preserve-unknown-fields", json!(true)),
        2 => ("x-kubernetes-int-or-string", json!(true)),
        3 => ("x-kubernetes-embedded-resource", json!(true)),
        4 => ("x-kubernetes-list-type", json!(*numbers.pick(&["set", "map", "atomic", "x"]))),
        5 => ("x-kubernetes-list-map-keys", json!(["a"])),
        6 => ("pattern", json!(text(numbers))),
        7 => (
            "format",
            json!(*numbers.pick(&["date-time", "int32", "byte", "uuid", "ipv4", "quantity", "x"])),
        ),
        8 => ("maxLength", number(numbers)),
        9 => ("maxItems", number(numbers)),
        10 => ("minimum", number(numbers)),
        11 => ("enum", json!([any(numbers, 1), text(numbers)])),
        12 => ("nullable", json!(true)),
        13 => ("not", json!({"type": "string"})),
        14 => ("multipleOf", number(numbers)),
        _ => {
            let rule = json!({"rule": numbers.pick(&rules), "message": text(numbers)});
            ("x-kubernetes-validations", json!([rule]))
        }
    }
}
