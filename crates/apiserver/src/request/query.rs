//! The query parameters of a request, decoded but not yet judged.

use crate::selector::FieldSelector;
use crate::status::Status;

/// Longer queries are refused. Two selectors at their limit and a long continue token fit.
const QUERY_LIMIT_BYTES: usize = 64 * 1024;

/// What `+` means in an encoded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plus {
    /// In a path it is itself.
    IsPlus,
    /// In a query it is a space.
    IsSpace,
}

/// The query parameters in the order in which they came. Which of them matter depends on the verb,
/// and so does what is wrong with them: see [`Query::list_options`], [`Query::write_options`],
/// [`Query::delete_options`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Decodes the text after the question mark.
    pub(crate) fn parse(text: Option<&str>) -> Result<Query, Status> {
        let text = text.unwrap_or_default();
        if text.len() > QUERY_LIMIT_BYTES {
            return Err(Status::new(
                414,
                "BadRequest",
                format!("the query is longer than {QUERY_LIMIT_BYTES} bytes"),
            ));
        }
        Ok(Query { pairs: pairs(text) })
    }

    /// The first value of a parameter, as upstream takes it; `None` if it is not there.
    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All the values of a parameter that may be repeated.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        self.pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.clone()).collect()
    }

    /// The first value of a parameter, empty if it is not there.
    pub(super) fn text(&self, name: &str) -> String {
        self.first(name).unwrap_or_default().to_owned()
    }

    /// A switch. As upstream has it, only `0` and `false` mean no: `?watch` and `?watch=yes` mean
    /// yes.
    pub(super) fn switch(&self, name: &str) -> Option<bool> {
        self.first(name).map(is_on)
    }

    /// A whole number; anything else is 400 in upstream's words. A parameter without a value is not
    /// a number.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.first(name) else { return Ok(None) };
        match parse_go_integer(text) {
            Ok(number) => Ok(Some(number)),
            Err(why) => {
                Err(Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}")))
            }
        }
    }

    /// Whether the answer is to be indented. This one is read as Go reads booleans, and nonsense
    /// means no.
    pub(crate) fn pretty(&self) -> Option<bool> {
        let text = self.first("pretty").filter(|text| !text.is_empty())?;
        Some(matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True"))
    }
}

/// A decimal number with an optional sign, as Go's `ParseInt` takes it.
fn parse_go_integer(text: &str) -> Result<i64, &'static str> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("invalid syntax");
    }
    text.parse().map_err(|_| "value out of range")
}

fn is_on(text: &str) -> bool {
    text != "0" && !text.eq_ignore_ascii_case("false")
}

/// Whether a read of many objects is a watch. It must be known before authorization, so a query
/// that is broken elsewhere does not change it.
pub(super) fn asks_for_watch(query: Option<&str>) -> bool {
    Query::parse(query).is_ok_and(|query| query.switch("watch").unwrap_or(false))
}

/// The name that a field selector pins down, if it could be one.
pub(super) fn selected_name(query: Option<&str>) -> Option<String> {
    let query = Query::parse(query).ok()?;
    let selector = FieldSelector::parse(query.first("fieldSelector")?).ok()?;
    let name = selector.exact("metadata.name")?;
    let is_name = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '%']);
    is_name.then(|| name.to_owned())
}

/// Go drops pairs that it cannot decode, and those with a semicolon. So do we.
fn pairs(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter(|pair| !pair.is_empty() && !pair.contains(';'))
        .filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((percent_decode(key, Plus::IsSpace)?, percent_decode(value, Plus::IsSpace)?))
        })
        .collect()
}

/// The decoded text, or nothing if an encoding is broken or the outcome is not UTF-8.
pub(super) fn percent_decode(text: &str, plus: Plus) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if plus == Plus::IsSpace => b' ',
            other => other,
        };
        decoded.push(byte);
    }
    String::from_utf8(decoded).ok()
}
