//! The grammar of label selectors in queries.
//!
//! ```text
//! selector    = requirement { "," requirement }
//! requirement = key | "!" key | key compare [ value ] | key ("in" | "notin") "(" values ")"
//! compare     = "=" | "==" | "!=" | ">" | "<"
//! ```
//! Values may be empty, and nothing is quoted. The texts of errors are upstream's.

use super::label::{LabelOperator, LabelRequirement, check_key};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    End,
    Open,
    Close,
    Comma,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    /// A key, a value, or the words `in` and `notin`: which, is known only where they stand.
    Word(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Token::End => "",
            Token::Open => "(",
            Token::Close => ")",
            Token::Comma => ",",
            Token::Not => "!",
            Token::Equals => "=",
            Token::DoubleEquals => "==",
            Token::NotEquals => "!=",
            Token::Greater => ">",
            Token::Less => "<",
            Token::Word(word) => word,
        }
    }
}

/// The requirements in the order in which they stand, or what is wrong.
pub(super) fn parse(text: &str) -> Result<Vec<LabelRequirement>, String> {
    let mut parser = Parser { rest: text };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::Word(_) | Token::Not => {
                let requirement = parser
                    .requirement()
                    .map_err(|error| format!("unable to parse requirement: {error}"))?;
                requirements.push(requirement);
            }
            Token::End => return Ok(requirements),
            other => {
                let found = other.text();
                return Err(format!(
                    "found '{found}', expected: !, identifier, or 'end of string'"
                ));
            }
        }
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Comma => match parser.peek() {
                Token::Word(_) | Token::Not => {}
                other => {
                    let found = other.text();
                    return Err(format!("found '{found}', expected: identifier after ','"));
                }
            },
            other => {
                let found = other.text();
                return Err(format!("found '{found}', expected: ',' or 'end of string'"));
            }
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        Parser { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let two = self.rest.get(..2).unwrap_or_default();
        let (token, length) = match (two, self.rest.bytes().next()) {
            ("==", _) => (Token::DoubleEquals, 2),
            ("!=", _) => (Token::NotEquals, 2),
            (_, None) => (Token::End, 0),
            (_, Some(b'(')) => (Token::Open, 1),
            (_, Some(b')')) => (Token::Close, 1),
            (_, Some(b',')) => (Token::Comma, 1),
            (_, Some(b'!')) => (Token::Not, 1),
            (_, Some(b'=')) => (Token::Equals, 1),
            (_, Some(b'>')) => (Token::Greater, 1),
            (_, Some(b'<')) => (Token::Less, 1),
            (_, Some(_)) => {
                let stops = ['=', '!', '(', ')', ',', '>', '<', ' ', '\t', '\r', '\n'];
                let length = self.rest.find(stops).unwrap_or(self.rest.len());
                (Token::Word(&self.rest[..length]), length)
            }
        };
        self.rest = &self.rest[length..];
        token
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let mut token = self.next();
        let is_negated = token == Token::Not;
        if is_negated {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.text()));
        };
        check_key(key, "")?;
        if is_negated {
            return LabelRequirement::new(key, LabelOperator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return LabelRequirement::new(key, LabelOperator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            LabelOperator::In | LabelOperator::NotIn => self.values()?,
            LabelOperator::Equals
            | LabelOperator::DoubleEquals
            | LabelOperator::NotEquals
            | LabelOperator::GreaterThan
            | LabelOperator::LessThan
            | LabelOperator::Exists
            | LabelOperator::DoesNotExist => vec![self.value()?],
        };
        LabelRequirement::new(key, operator, values)
    }

    fn operator(&mut self) -> Result<LabelOperator, String> {
        match self.next() {
            Token::Equals => Ok(LabelOperator::Equals),
            Token::DoubleEquals => Ok(LabelOperator::DoubleEquals),
            Token::NotEquals => Ok(LabelOperator::NotEquals),
            Token::Greater => Ok(LabelOperator::GreaterThan),
            Token::Less => Ok(LabelOperator::LessThan),
            Token::Word("in") => Ok(LabelOperator::In),
            Token::Word("notin") => Ok(LabelOperator::NotIn),
            other => {
                let found = other.text();
                Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt"))
            }
        }
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(value) => Ok(value.to_owned()),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open != Token::Open {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        match self.peek() {
            Token::Close => {
                self.next();
                return Ok(vec![String::new()]);
            }
            Token::Word(_) | Token::Comma => {}
            other => {
                let found = other.text();
                return Err(format!("found '{found}', expected: ',', ')' or identifier"));
            }
        }
        let mut values = Vec::new();
        loop {
            // A comma without a word before it stands for an empty value.
            match self.next() {
                Token::Word(value) => {
                    values.push(value.to_owned());
                    match self.next() {
                        Token::Comma => {}
                        Token::Close => return Ok(values),
                        other => {
                            return Err(format!("found '{}', expected: ',' or ')'", other.text()));
                        }
                    }
                }
                Token::Comma => values.push(String::new()),
                Token::Close => {
                    values.push(String::new());
                    return Ok(values);
                }
                other => {
                    let found = other.text();
                    return Err(format!("found '{found}', expected: ',', or identifier"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::selector::LabelSelector;
    use serde_json::json;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        let selector = LabelSelector::parse(selector).expect("the test's selector is valid");
        selector
            .matches(|key| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value))
    }

    fn message(selector: &str) -> String {
        let status = LabelSelector::parse(selector).expect_err("it is not valid");
        assert_eq!(status.code, 400);
        status.message
    }

    #[test]
    fn each_operator_selects_what_it_says() {
        let web = [("app", "web"), ("n", "5")];
        for yes in [
            "",
            "app",
            "app=web",
            "app==web",
            "app!=x",
            "zone!=x",
            "app in (web,x)",
            "!zone",
            "app notin (x)",
            "zone notin (x)",
            "n>4",
            "n<6",
            "app=web,n>4",
            " app in ( web ) , n ",
        ] {
            assert!(selects(yes, &web), "{yes}");
        }
        for no in [
            "zone",
            "app=x",
            "app!=web",
            "app in (x,y)",
            "zone in (x)",
            "!app",
            "app notin (web)",
            "n>5",
            "n<5",
            "app>1",
            "app=web,n=6",
            "app=",
            "zone=",
        ] {
            assert!(!selects(no, &web), "{no}");
        }
    }

    #[test]
    fn empty_values_are_values() {
        assert!(selects("a=", &[("a", "")]));
        assert!(selects("a in ()", &[("a", "")]));
        assert!(selects("a in (,b)", &[("a", "")]));
        assert!(selects("a in (b,,c)", &[("a", "")]));
        assert!(selects("a in (b,)", &[("a", "")]));
        assert!(!selects("a in (b)", &[("a", "")]));
    }

    #[test]
    fn the_words_in_and_notin_may_be_keys_and_values() {
        assert!(selects("in in (in,notin)", &[("in", "notin")]));
        assert!(selects("notin", &[("notin", "")]));
    }

    #[test]
    fn the_printed_form_is_canonical() {
        for (text, printed) in [
            ("b , a", "a,b"),
            ("x in (c,b,b)", "x in (b,c)"),
            ("x==1,!y,z!=2", "x==1,!y,z!=2"),
            ("x notin ()", "x notin ()"),
            ("x>1,y<2", "x>1,y<2"),
        ] {
            let selector = LabelSelector::parse(text).expect("the test's selector is valid");
            assert_eq!(selector.to_string(), printed);
        }
    }

    #[test]
    fn errors_have_the_texts_that_clients_know() {
        assert_eq!(message(","), "found ',', expected: !, identifier, or 'end of string'");
        assert_eq!(message("a,"), "found '', expected: identifier after ','");
        assert_eq!(
            message("a b"),
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
        );
        assert_eq!(message("a=b c"), "found 'c', expected: ',' or 'end of string'");
        assert_eq!(message("a in b"), "unable to parse requirement: found 'b' expected: '('");
        assert!(message("a=-").starts_with(
            "unable to parse requirement: values[0][a]: Invalid value: \"-\": a valid label must be"
        ));
        assert!(message("-=a").starts_with(
            "unable to parse requirement: <nil>: Invalid value: \"-\": name part must consist of"
        ));
        assert!(message("a>b").contains("the value must be an integer"));
        assert!(message("a=b=c").starts_with("found '='"));
        assert!(message("!a=b").starts_with("found '='"));
        assert!(LabelSelector::parse(&"a".repeat(20_000)).is_err());
        assert!(LabelSelector::parse(&vec!["a"; 2_000].join(",")).is_err());
    }

    #[test]
    fn an_object_selects_as_a_text_does() {
        let selector = LabelSelector::from_object(&json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }));
        let selector = selector.expect("the test's selector is valid");
        assert_eq!(selector.to_string(), "app=web,!old,tier in (a,b)");
        for bad in [
            json!({"matchLabels": {"a": 1}}),
            json!({"matchLabels": [1]}),
            json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}),
            json!({"matchExpressions": 1}),
            json!({"matchExpressions": [1]}),
        ] {
            assert_eq!(LabelSelector::from_object(&bad).expect_err("it is not valid").code, 400);
        }
        assert!(LabelSelector::from_object(&json!(null)).expect("null is empty").is_empty());
    }

    #[test]
    fn no_text_makes_it_panic_and_what_it_prints_it_reads() {
        let pieces =
            ["a", "in", "notin", "(", ")", ",", "!", "=", ">", "<", " ", "é", "1", "/", "\0"];
        let mut state: u64 = 0x2545_F491_4F6C_DD1D;
        for _ in 0..40_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let length = state % 12;
            let text: String = (0..length)
                .map(|place| pieces[(state >> (place * 5)) as usize % pieces.len()])
                .collect();
            if let Ok(selector) = LabelSelector::parse(&text) {
                assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector), "{text}");
            }
        }
    }
}
