//! Which texts are the same document, and which are none.

use super::*;

fn wrapped(statement: &str) -> String {
    format!(r#"{{"Version": "2012-10-17", "Statement": [{statement}]}}"#)
}

const GET: &str =
    r#"{"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::b/*"]}"#;

#[test]
fn the_form_of_a_document_does_not_matter() {
    let text = wrapped(GET);
    let encoded: String =
        percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC)
            .to_string();
    let same = [
        text.clone(),
        encoded,
        text.replace(' ', "\n"),
        text.replace("[\"s3:GetObject\"]", "\"s3:GetObject\""),
        text.replace("s3:GetObject", "S3:getobject"),
        format!(r#"{{"Statement": {GET}, "Version": "2012-10-17"}}"#),
        wrapped(&GET.replace("\"Effect\"", "\"Sid\": \"\", \"Effect\"")),
        wrapped(&GET.replace("\"Effect\"", "\"Condition\": {}, \"Effect\"")),
    ];
    for other in same {
        assert!(is_same(&text, &other), "{other}");
    }
}

#[test]
fn the_order_of_lists_does_not_matter() {
    let put = GET.replace("Get", "Put");
    assert!(is_same(&wrapped(&format!("{GET},{put}")), &wrapped(&format!("{put},{GET}"))));
    let both = GET.replace("[\"s3:GetObject\"]", r#"["s3:GetObject", "s3:PutObject"]"#);
    let swapped = GET.replace("[\"s3:GetObject\"]", r#"["s3:PutObject", "s3:GetObject"]"#);
    assert!(is_same(&wrapped(&both), &wrapped(&swapped)));
    let when = |values: &str| {
        wrapped(&GET.replace(
            "\"Effect\"",
            &format!(
                r#""Condition": {{"StringEquals": {{"aws:PrincipalTag/x": {values}}}}}, "Effect""#
            ),
        ))
    };
    assert!(is_same(&when(r#"["a", "b"]"#), &when(r#"["b", "a"]"#)));
    assert!(is_same(&when(r#""true""#), &when("true")));
}

#[test]
fn what_a_document_says_matters() {
    let text = wrapped(GET);
    for (from, to) in [
        ("Allow", "Deny"),
        ("GetObject", "PutObject"),
        (":::b/*", ":::B/*"),
        ("\"Action\"", "\"NotAction\""),
        ("2012-10-17", "2008-10-17"),
        ("\"Effect\"", "\"Sid\": \"x\", \"Effect\""),
        ("\"Effect\"", r#""Condition": {"Bool": {"aws:SecureTransport": true}}, "Effect""#),
    ] {
        assert!(!is_same(&text, &text.replace(from, to)), "{from} is not {to}");
    }
    assert!(!is_same(&wrapped(GET), "%7B"));
}

fn trust(principal: &str) -> String {
    wrapped(&format!(
        r#"{{"Effect": "Allow", "Principal": {principal}, "Action": "sts:AssumeRole"}}"#
    ))
}

#[test]
fn an_account_is_its_root() {
    let number = trust(r#"{"AWS": "123456789012"}"#);
    assert!(is_same(&number, &trust(r#"{"AWS": ["arn:aws:iam::123456789012:root"]}"#)));
    assert!(is_same(&trust("\"*\""), &trust(r#"{"AWS": "*"}"#)));
    assert!(!is_same(&number, &trust(r#"{"AWS": "123456789013"}"#)));
}

#[test]
fn a_wrong_document_is_refused_with_the_statement_and_the_reason() {
    let second = |statement: &str| wrapped(&format!("{GET}, {statement}"));
    for (text, says) in [
        ("{".to_owned(), "not JSON"),
        ("[]".to_owned(), "must be an object"),
        (r#"{"Version": "2012-10-17"}"#.to_owned(), "no Statement"),
        (r#"{"Version": "2012-10-17", "Statement": []}"#.to_owned(), "no statement"),
        (wrapped(GET).replace("2012-10-17", "2020-01-01"), "Version 2020-01-01"),
        (wrapped(GET).replace("\"Version\"", "\"Verzion\""), "Verzion is not part"),
        (second(r#"{"Effect": "Allow", "Resource": "*"}"#), "statement 2"),
        (second(r#"{"Effect": "allow", "Action": "*", "Resource": "*"}"#), "Allow or Deny"),
        (second(r#"{"Effect": "Allow", "Action": "*"}"#), "no Resource"),
        (second(r#"{"Effect": "Allow", "Action": [], "Resource": "*"}"#), "Action is empty"),
        (second(r#"{"Effect": "Allow", "Action": "Get", "Resource": "*"}"#), "no action"),
        (second(r#"{"Effect": "Allow", "Action": "*", "Resource": "bucket"}"#), "must be an ARN"),
        (
            wrapped(&GET.replace("\"Effect\"", r#""Condition": {"Like": {"a": "b"}}, "Effect""#)),
            "no condition operator Like",
        ),
        (wrapped(&GET.replace("\"Effect\"", r#""Sid": "a b", "Effect""#)), "letters and digits"),
        (trust(r#"{"AWS": "123456789012"}"#), "no Principal"),
    ] {
        let error = check(&text, Kind::Permissions).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn a_trust_policy_names_who_and_not_what() {
    let provider = r#"{"Federated": "arn:aws:iam::123456789012:oidc-provider/hub:6443/issuers/a"}"#;
    assert!(check(&trust(provider), Kind::Trust).is_ok());
    let closed = trust("\"*\"").replace("Allow", "Deny");
    assert!(check(&closed, Kind::Trust).is_ok());
    for (text, says) in [
        (wrapped(GET), "no Resource"),
        (wrapped(r#"{"Effect": "Allow", "Action": "sts:AssumeRole"}"#), "needs a Principal"),
        (trust("{}"), "names none"),
        (trust(r#"{"Somebody": "*"}"#), "no sort of principal"),
        (trust(r#"{"AWS": "somebody"}"#), "no AWS principal"),
        (trust(provider).replace("sts:AssumeRole", "s3:GetObject"), "no action of STS"),
    ] {
        let error = check(&text, Kind::Trust).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn white_space_is_not_counted() {
    assert_eq!(size("{ \"a\":\n\t1 }"), 7);
}
