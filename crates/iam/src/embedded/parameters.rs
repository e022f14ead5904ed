//! The parameters of a call, out of a form.

use super::fault::Fault;
use crate::client::Tags;
use std::collections::BTreeMap;

/// Parameters by name.
#[derive(Clone, Default)]
pub(super) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    pub(super) fn read(form: &[u8]) -> Parameters {
        let pairs = form_urlencoded::parse(form);
        Parameters(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// A parameter that may be there.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A parameter that must be there.
    pub(super) fn need(&self, name: &str) -> Result<&str, Fault> {
        self.get(name).ok_or_else(|| Fault::validation(name, "Member must not be null"))
    }

    /// A number, if it is there, within bounds.
    pub(super) fn number(
        &self,
        name: &str,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, Fault> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let Ok(number) = text.parse::<u64>() else {
            return Err(Fault::validation(name, "Member must be a number"));
        };
        if number < *bounds.start() {
            let rule =
                format!("Member must have value greater than or equal to {}", bounds.start());
            return Err(Fault::validation(name, &rule));
        }
        if number > *bounds.end() {
            let rule = format!("Member must have value less than or equal to {}", bounds.end());
            return Err(Fault::validation(name, &rule));
        }
        Ok(Some(number))
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// `<name>.member.1` and so on, up to the first that is not there.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let items = (1..).map_while(|index: usize| self.0.get(&format!("{name}.member.{index}")));
        items.cloned().collect()
    }

    /// `<name>.member.1.Key` and `.Value`, in order, as they were given.
    pub(super) fn pairs(&self, name: &str) -> Result<Vec<(String, String)>, Fault> {
        let mut pairs = Vec::new();
        for index in 1.. {
            let part = |part: &str| self.0.get(&format!("{name}.member.{index}.{part}"));
            match (part("Key"), part("Value")) {
                (Some(key), Some(value)) => pairs.push((key.clone(), value.clone())),
                (None, None) => break,
                _ => return Err(Fault::validation(name, "Member must have a key and a value")),
            }
        }
        Ok(pairs)
    }

    /// What a simulation assumes of the request: `ContextEntries`.
    pub(super) fn context(&self) -> BTreeMap<String, Vec<String>> {
        let mut found = BTreeMap::new();
        for index in 1.. {
            let at = format!("ContextEntries.member.{index}");
            let Some(key) = self.0.get(&format!("{at}.ContextKeyName")) else { break };
            found.insert(key.to_ascii_lowercase(), self.list(&format!("{at}.ContextKeyValues")));
        }
        found
    }

    /// Tags, checked.
    pub(super) fn tags(&self) -> Result<Tags, Fault> {
        super::limits::tags(self.pairs("Tags")?)
    }
}
