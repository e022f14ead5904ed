use super::*;

#[track_caller]
fn check(format: &str, fine: &[&str], wrong: &[&str]) {
    for text in fine {
        assert_eq!(has_format(format, text), Some(true), "{format} {text:?}");
    }
    for text in wrong {
        assert_eq!(has_format(format, text), Some(false), "{format} {text:?}");
    }
}

#[test]
fn formats_tell_right_from_wrong() {
    check("ipv4", &["10.0.0.1"], &["10.0.0", "::1", "10.0.0.01"]);
    check("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "::g"]);
    check("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8"]);
    check("mac", &["01:23:45:67:89:ab", "0123.4567.89ab"], &["01:23:45", "zz:23:45:67:89:ab"]);
    let uuid = "123e4567-e89b-42d3-a456-426614174000";
    check("uuid", &[uuid, "123E4567E89B42D3A456426614174000"], &["123e4567", "x"]);
    check("uuid4", &[uuid], &["123e4567-e89b-12d3-a456-426614174000"]);
    check("byte", &["aGVsbG8=", "aGk="], &["", "a", "aGVsbG8", "=aaa", "aGk=a"]);
    check("date", &["2024-02-29"], &["2023-02-29", "2024-13-01", "24-01-01"]);
    check(
        "date-time",
        &["2024-02-29T10:00:00Z", "2024-02-29t10:00:00.5+01:00"],
        &["2024-02-29", "2024-02-29T25:00:00Z", "2024-02-29T10:00:00"],
    );
    check("duration", &["1h30m", "3 days", "-1.5s", "0"], &["", "x", "1"]);
    check("hostname", &["example.com", "a"], &["-a", "a..b", "a_b"]);
    check("email", &["a@b.c", "A B <a@b.c>"], &["a", "@b", "a@"]);
    check("uri", &["https://a/b?c", "/a"], &["", "a/b", "https://a b/", "http://a/%zz"]);
    check("isbn", &["0321751043", "978-0321751041"], &["0321751044"]);
    check("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]);
    check("hexcolor", &["#fff", "00ff00"], &["#ff"]);
    check("rgbcolor", &["rgb(1,2,255)"], &["rgb(1,2)"]);
    check("ssn", &["111-11-1111"], &["1"]);
    check("k8s-short-name", &["a-b"], &["A", "-a", ""]);
    check("k8s-long-name", &["a.b-c"], &["a..b"]);
    assert_eq!(has_format("int32", "x"), None);
}

#[test]
fn moments_count_from_1970() {
    let at = |text| parse_rfc3339(text).map(|moment| (moment.seconds, moment.nanoseconds));
    assert_eq!(at("1970-01-01T00:00:00Z"), Some((0, 0)));
    assert_eq!(at("2000-03-01T01:00:00.25+01:00"), Some((951_868_800, 250_000_000)));
    assert_eq!(at("1969-12-31T23:59:59Z"), Some((-1, 0)));
    assert_eq!(at("2000-03-01 01:00:00Z"), None);
}

#[test]
fn durations_are_those_of_go() {
    assert_eq!(parse_duration("1h1m1.5s"), Some(3_661_500_000_000));
    assert_eq!(parse_duration("-10us"), Some(-10_000));
    assert_eq!(parse_duration("9999999h"), None);
    assert_eq!(parse_duration("."), None);
    assert_eq!(parse_duration("1µs"), Some(1_000));
}

#[test]
fn no_text_makes_a_format_panic() {
    let formats = [
        "bsonobjectid",
        "uri",
        "email",
        "hostname",
        "ipv4",
        "cidr",
        "mac",
        "uuid",
        "isbn",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "byte",
        "date",
        "duration",
        "date-time",
        "k8s-long-name",
    ];
    let letters: Vec<char> = "019afzZ-:./@<>%=+ tT#()é≈µ\n,".chars().collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..3000 {
        let mut text = String::new();
        for _ in 0..state % 24 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push(letters[(state >> 20) as usize % letters.len()]);
        }
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        for format in formats {
            has_format(format, &text);
        }
        parse_rfc3339(&text);
    }
}
