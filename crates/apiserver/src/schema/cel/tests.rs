use super::{Declarations, Fault, Val, Variables, compile};
use crate::schema::{Schema, custom};
use crate::status::Path;
use serde_json::{Value, json};

/// A schema with something of each sort in it.
fn schema() -> Schema {
    let openapi = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"}, "min": {"type": "integer"}, "ratio": {"type": "number"},
        "name": {"type": "string"}, "on": {"type": "boolean"},
        "at": {"type": "string", "format": "date-time"},
        "span": {"type": "string", "format": "duration"},
        "port": {"x-kubernetes-int-or-string": true},
        "x-y": {"type": "string"}, "namespace": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}},
    }});
    custom::compile(&openapi, None, &Path::Root).expect("the schema is sound")
}

fn object() -> Value {
    json!({
        "metadata": {"name": "a"}, "replicas": 3, "min": 1, "ratio": 1.5, "name": "hello",
        "on": true, "at": "2024-02-29T10:00:00Z", "span": "1h30m", "port": "http", "x-y": "dash",
        "namespace": "n", "labels": {"a": "1", "b.c/d": "2"}, "numbers": [3, 1, 2],
        "set": ["x", "y"],
        "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 90}],
    })
}

fn evaluated(source: &str, budget: u64) -> Result<String, String> {
    let (schema, object) = (schema(), object());
    let declarations =
        Declarations { shape: schema.shape(), is_whole_object: true, has_optional_old_self: false };
    let (program, _) = compile(source, &declarations)?;
    let own = Val::from_json(&object, Some(schema.shape()));
    let variables = Variables::Rule { own: own.clone(), old: Some(own) };
    let mut left = budget;
    match program.evaluate(variables, &mut left) {
        Ok(Val::Bool(value)) => Ok(value.to_string()),
        Ok(other) => Ok(super::functions::shown(&other)),
        Err(fault) => Err(fault.to_string()),
    }
}

#[track_caller]
fn holds(sources: &[&str]) {
    for source in sources {
        assert_eq!(evaluated(source, 1_000_000), Ok("true".to_owned()), "{source}");
    }
}

#[track_caller]
fn fails(source: &str, wanted: &str) {
    let error = evaluated(source, 1_000_000).expect_err(source);
    let first = error.lines().next().unwrap_or("");
    assert_eq!(first, wanted, "{source}");
}

#[test]
fn operators_compute_and_compare() {
    holds(&[
        "self.replicas >= self.min && self.replicas < 4",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9",
        "7 / 2 == 3 && -7 / 2 == -3 && 7 % 3 == 1",
        "1.5 * 2.0 == 3.0 && self.ratio > 1",
        "'a' + 'b' == \"ab\" && b'a' + b'b' == b'ab'",
        "[1] + [2] == [1, 2]",
        "1 < 1.5 && 2u > 1 && dyn(1) == dyn(1.0) && dyn(3u) == dyn(3)",
        "self.on ? true : false",
        "!(1 == 2) && 1 != 2",
        "2 in [1, 2] && 'a' in self.labels && !('z' in self.labels)",
        "self.port == 'http' && dyn(self.port) != 80",
        "-9223372036854775808 < 0",
        "0x1F == 31 && 1e3 == 1000.0 && .5 == 0.5",
        "r'\\d' == '\\\\d' && '''a'b''' == \"a'b\" && '\\u00e9' == 'é' && '\\x41' == 'A'",
        "{'a': 1}.a == 1 && {'a': 1}['a'] == 1 && {1: 'x'}[1] == 'x'",
        "true || 1 / 0 == 1",
        "1 / 0 == 1 || true",
        "!(false && 1 / 0 == 1)",
    ]);
    fails("1 / 0 == 1", "division by zero");
    fails("9223372036854775807 + 1 > 0", "integer overflow");
    fails("self.numbers[7] == 1", "index out of bounds: 7");
    fails("self.labels.z == ''", "no such key: z");
}

#[test]
fn macros_run_over_lists_and_maps() {
    holds(&[
        "self.numbers.all(n, n > 0) && self.numbers.exists(n, n == 3)",
        "self.numbers.exists_one(n, n == 1) && self.numbers.existsOne(i, n, n == 1)",
        "self.numbers.map(n, n * 2) == [6, 2, 4] && self.numbers.map(n, n > 1, n) == [3, 2]",
        "self.numbers.filter(n, n > 1) == [3, 2]",
        "self.labels.all(k, k.size() > 0) && self.labels.exists(k, k == 'a')",
        "self.numbers.all(i, n, i < 3 && n > 0)",
        "self.numbers.transformList(i, n, i + n) == [3, 2, 4]",
        "self.labels.transformMap(k, v, v + '!')['a'] == '1!'",
        "self.numbers.transformMapEntry(i, n, {string(n): i})['3'] == 0",
        "self.ports.sortBy(p, -p.port)[0].name == 'b'",
        "has(self.name) && !has(self.labels.zzz) && has(self.labels.a)",
        "self.numbers.exists(n, 1 / (n - 1) == 0 || n == 3)",
        "self.numbers.all(self, self > 0)",
    ]);
}

#[test]
fn optionals_stand_for_what_may_not_be_there() {
    holds(&[
        "self.?name.orValue('x') == 'hello'",
        "self.labels[?'zzz'].orValue('none') == 'none'",
        "self.labels.?zzz.hasValue() == false",
        "optional.of(1).value() == 1 && !optional.none().hasValue()",
        "optional.of(1).optMap(x, x + 1).orValue(0) == 2",
        "optional.ofNonZeroValue('').or(optional.of('a')).value() == 'a'",
        "[?optional.none(), 1] == [1] && {?'a': optional.of(1)} == {'a': 1}",
        "self.?labels.a.orValue('') == '1'",
    ]);
}

#[test]
fn functions_do_what_kubernetes_says() {
    holds(&[
        "'hello'.startsWith('he') && 'hello'.endsWith('lo') && 'hello'.contains('ell')",
        "'hello'.matches('^h.*o$') && matches('a1', '[0-9]')",
        "size('é') == 1 && 'abc'.size() == 3 && self.numbers.size() == 3 && size(self.labels) == 2",
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
        "'abc'.indexOf('c') == 2 && 'abcabc'.lastIndexOf('a') == 3 && 'abc'.indexOf('z') == -1",
        "'abc'.substring(1) == 'bc' && 'abc'.substring(0, 2) == 'ab' && 'abc'.charAt(1) == 'b'",
        "'aXbX'.replace('X', '-') == 'a-b-' && 'aXbX'.replace('X', '', 1) == 'abX'",
        "' a '.trim() == 'a' && 'aB'.lowerAscii() == 'ab' && 'aB'.upperAscii() == 'AB'",
        "'%s is %d, %.2f, %x'.format(['a', 1, 1.5, 255]) == 'a is 1, 1.50, ff'",
        "'ab1c2'.find('[0-9]') == '1' && 'ab1c2'.findAll('[0-9]') == ['1', '2']",
        "[1, 2, 3].isSorted() && self.numbers.sum() == 6 && self.numbers.max() == 3",
        "self.numbers.min() == 1 && self.numbers.indexOf(2) == 2",
        "self.numbers.sort() == [1, 2, 3] && [1, 1].distinct() == [1] && lists.range(2) == [0, 1]",
        "[[1], [2]].flatten() == [1, 2] && self.numbers.slice(0, 1) == [3]",
        "self.numbers.reverse() == [2, 1, 3]",
        "sets.contains([1, 2], [1]) && sets.equivalent([1], [1, 1]) && !sets.intersects([1], [2])",
        "int('3') == 3 && double(1) == 1.0 && string(1.5) == '1.5' && uint(3) == 3u",
        "bool('true') && string(true) == 'true' && string(b'a') == 'a' && bytes('a') == b'a'",
        "type(1) == int && type('a') == string && type([]) == list",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && isQuantity('100m') && !isQuantity('x')",
        "quantity('1').add(quantity('500m')).compareTo(quantity('1.5')) == 0",
        "quantity('2k').asInteger() == 2000 && sign(quantity('-1')) == -1",
        "ip('10.0.0.1').family() == 4 && isIP('::1') && !isIP('x') && ip('127.0.0.1').isLoopback()",
        "cidr('10.0.0.0/8').containsIP('10.1.1.1')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "cidr('10.1.0.0/8').masked() == cidr('10.0.0.0/8')",
        "cidr('10.0.0.0/8').prefixLength() == 8 && cidr('10.0.0.0/8').ip() == ip('10.0.0.0')",
        "ip.isCanonical('10.0.0.1') && string(ip('::1')) == '::1'",
        "url('https://a:80/b?x=1').getHostname() == 'a' && url('https://a:80/b').getPort() == '80'",
        "url('https://a/b?x=1&x=2').getQuery()['x'] == ['1', '2'] && isURL('/a') && !isURL('a')",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.2.3') && !isSemver('1.2')",
        "semver('v1.2', true).minor() == 2 && semver('1.0.0-a').compareTo(semver('1.0.0')) == -1",
        "format.dns1123Label().validate('a-b') == optional.none()",
        "format.named('dns1123Label').value().validate('A').hasValue()",
        "strings.quote('a') == '\"a\"'",
    ]);
}

#[test]
fn moments_and_spans_are_computed_with() {
    holds(&[
        "self.at.getFullYear() == 2024 && self.at.getMonth() == 1 && self.at.getDate() == 29",
        "self.at.getHours() == 10 && self.at.getDayOfWeek() == 4 && self.at.getDayOfYear() == 59",
        "self.at.getHours('+02:00') == 12",
        "self.at + self.span == timestamp('2024-02-29T11:30:00Z')",
        "self.span > duration('1h') && self.span.getMinutes() == 90",
        "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
        "string(self.at) == '2024-02-29T10:00:00Z' && string(self.span) == '5400s'",
        "int(timestamp('1970-01-01T00:00:10Z')) == 10",
    ]);
}

#[test]
fn sets_and_keyed_lists_have_no_order() {
    holds(&[
        "self.set == ['y', 'x']",
        "(self.set + ['y', 'z']).size() == 3",
        "(self.ports + self.ports.filter(p, p.name == 'b')).size() == 2",
        "self.ports == self.ports.reverse()",
        "self.numbers != [1, 2, 3]",
    ]);
}

#[test]
fn fields_whose_names_are_no_identifiers_are_escaped() {
    holds(&["self.x__dash__y == 'dash' && self.__namespace__ == 'n' && has(self.x__dash__y)"]);
    holds(&["self.labels['b.c/d'] == '2'"]);
}

#[test]
fn what_could_never_work_is_reported_when_the_rule_is_compiled() {
    fails("self.foo > 1", "ERROR: <input>:1:5: undefined field 'foo'");
    fails("has(self.foo)", "ERROR: <input>:1:4: undefined field 'foo'");
    fails("self.metadata.labels == {}", "ERROR: <input>:1:14: undefined field 'labels'");
    fails("x > 1", "ERROR: <input>:1:1: undeclared reference to 'x' (in container '')");
    fails("foo(1)", "ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')");
    fails(
        "self.name > 1",
        "ERROR: <input>:1:11: found no matching overload for '_>_' applied to '(string, int)'",
    );
    fails(
        "self.replicas == 'a'",
        "ERROR: <input>:1:15: found no matching overload for '_==_' applied to '(int, string)'",
    );
    fails(
        "self.name.startsWith(1)",
        "ERROR: <input>:1:21: found no matching overload for 'startsWith' applied to \
         'string.(int)'",
    );
    fails(
        "self.replicas.all(x, true)",
        "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension \
         (must be list, map, or dynamic)",
    );
    fails("1 +", "ERROR: <input>:1:4: Syntax error: unexpected <EOF>");
    fails("'a", "ERROR: <input>:1:1: Syntax error: unterminated string");
    fails("Message{a: 1}", "ERROR: <input>:1:8: messages cannot be made in validation rules");
    assert!(evaluated("'a'.matches('(')", 1000).is_err());
    assert!(evaluated("duration('x') > duration('1s')", 1000).is_err());
}

#[test]
fn an_error_shows_its_place() {
    let error = evaluated("self.name == 'a' &&\n  self.foo > 1", 1000).expect_err("no such field");
    assert_eq!(error, "ERROR: <input>:2:7: undefined field 'foo'\n |   self.foo > 1\n | ......^");
}

#[test]
fn steps_are_counted_and_run_out() {
    let cost = Err(Fault::Cost.to_string());
    assert_eq!(evaluated("lists.range(100000000).size() > 0", 1_000_000), cost);
    let nested =
        "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))";
    assert_eq!(evaluated(nested, 1_000_000), cost);
    // Nothing may hide that the steps ran out.
    assert_eq!(evaluated(&format!("{nested} || true"), 1_000_000), cost);
    let doubled = format!("['aaaaaaaaaa']{}.size() == 1", ".map(x, x + x)".repeat(60));
    assert_eq!(evaluated(&doubled, 1_000_000), cost);
    let squared = format!("['aaaaaaaaaa']{}.size() == 1", ".map(x, x.replace('', x))".repeat(20));
    assert_eq!(evaluated(&squared, 1_000_000), cost);
    let shared = format!("[[1]]{}[0].size() == 2", ".map(x, [x, x])".repeat(40));
    assert_eq!(evaluated(&shared, 1_000_000), Ok("true".to_owned()));
    let compared = format!("[[1]]{chain} == [[1]]{chain}", chain = ".map(x, [x, x])".repeat(40));
    assert_eq!(evaluated(&compared, 1_000_000), cost);
    let types = format!("[1]{}.size() == 1", ".map(x, {x: x})".repeat(60));
    assert!(evaluated(&types, 1_000_000).is_err(), "maps are no keys");
    assert!(evaluated("'%.1000000000f'.format([1.0]) == ''", 1_000_000).is_err());
}

#[test]
fn expressions_may_be_long_but_not_deep() {
    let flat = vec!["self.on"; 1000].join(" && ");
    assert_eq!(evaluated(&flat, 1_000_000), Ok("true".to_owned()));
    for deep in [
        format!("{}1{}", "(".repeat(5000), ")".repeat(5000)),
        format!("{}true", "!".repeat(10_000)),
        format!("{}1", "-".repeat(10_000)),
        format!("{}{}", "[".repeat(5000), "]".repeat(5000)),
        vec!["1"; 5000].join("+"),
        format!("self{}", ".name".repeat(3000)),
        format!("self{}", "[0]".repeat(5000)),
        format!("{}true", "true ? true : ".repeat(1000)),
        format!("{}1{}", "(".repeat(90), "+1+1+1+1+1+1+1+1+1+1)".repeat(90)),
        "a".repeat(20_000),
    ] {
        assert!(evaluated(&deep, 1_000_000).is_err(), "{}", &deep[..20]);
    }
}

#[test]
fn no_expression_panics() {
    let words = [
        "self",
        "oldSelf",
        ".",
        ".?",
        "name",
        "numbers",
        "labels",
        "ports",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "?",
        "+",
        "-",
        "*",
        "/",
        "%",
        "&&",
        "||",
        "!",
        "==",
        "<",
        "in",
        "1",
        "0",
        "9223372036854775807",
        "1.5",
        "2u",
        "'a'",
        "'é'",
        "b'x'",
        "null",
        "true",
        "all(x, x)",
        "map(x, x)",
        "x",
        "size()",
        "has(self.name)",
        "split('')",
        "substring(1)",
        "replace('', 'b')",
        "format([1])",
        "'%s'",
        "matches('a')",
        "quantity('1')",
        "ip('::1')",
        "timestamp(1)",
        "sum()",
        "indexOf('a', 1)",
        "lastIndexOf('a', 9)",
        "charAt(3)",
        "slice(1, 0)",
        "flatten()",
        "sort()",
        "orValue(1)",
        "optMap(x, x)",
        "transformMap(k, v, v)",
        "duration('1s')",
        "\\",
        "'",
        "\"\"\"",
        "// c",
        "\n",
        "é",
    ];
    let (schema, object) = (schema(), object());
    let declarations =
        Declarations { shape: schema.shape(), is_whole_object: true, has_optional_old_self: true };
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits fit")
    };
    let mut compiled = 0;
    for _ in 0..60_000 {
        let mut source = String::from(if random() % 2 == 0 { "self." } else { "" });
        for _ in 0..1 + random() % 7 {
            source.push_str(words[random() % words.len()]);
            if random() % 4 == 0 {
                source.push('.');
            }
        }
        let Ok((program, _)) = compile(&source, &declarations) else { continue };
        compiled += 1;
        let own = Val::from_json(&object, Some(schema.shape()));
        let old = Some(Val::Optional(None));
        let _ = program.evaluate(Variables::Rule { own, old }, &mut 10_000);
    }
    assert!(compiled > 300, "the words made only {compiled} sound expressions");
}
