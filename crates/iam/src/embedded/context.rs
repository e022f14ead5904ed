//! What a call is decided on, and what comes out.

use super::fault::Fault;
use super::parameters::Parameters;
use super::state::{Change, State};
use crate::xml::Writer;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

/// All that a call is decided on. Time and randomness are handed in.
pub(super) struct Context<'a> {
    pub(super) state: &'a State,
    pub(super) parameters: &'a Parameters,
    pub(super) account: &'a str,
    pub(super) now_seconds: i64,
    /// A new id that begins so.
    pub(super) fresh: &'a dyn Fn(&str) -> String,
    /// Whether issuers on this machine may be without TLS.
    pub(super) http_issuers: bool,
}

/// What a call does and says.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// What is in its result element; None if it has none.
    pub(super) result: Option<String>,
    pub(super) change: Option<Change>,
}

pub(super) type Decided = Result<Answer, Fault>;

impl Answer {
    /// A change, and nothing to say about it.
    pub(super) fn done(change: Change) -> Answer {
        Answer { result: None, change: Some(change) }
    }

    /// Nothing to do.
    pub(super) fn nothing() -> Answer {
        Answer::default()
    }

    /// Something to say.
    pub(super) fn says(write: impl FnOnce(&mut Writer)) -> Answer {
        let mut writer = Writer::new();
        write(&mut writer);
        Answer { result: Some(writer.finish()), change: None }
    }

    #[must_use]
    pub(super) fn with(mut self, change: Change) -> Answer {
        self.change = Some(change);
        self
    }
}

/// A part of a list.
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    marker: Option<String>,
}

impl<T> Page<T> {
    /// What is asked for of all there is, by keys in order.
    pub(super) fn of(
        context: &Context<'_>,
        all: impl IntoIterator<Item = (String, T)>,
    ) -> Result<Page<T>, Fault> {
        let most = context.parameters.number("MaxItems", 1..=1_000)?.unwrap_or(100);
        let after = match context.parameters.get("Marker") {
            None => None,
            Some(marker) => {
                let wrong = || Fault::new(400, "ValidationError", "Invalid Marker.");
                let bytes = BASE64.decode(marker).map_err(|_| wrong())?;
                Some(String::from_utf8(bytes).map_err(|_| wrong())?)
            }
        };
        let mut all: Vec<(String, T)> = all.into_iter().collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        let rest =
            all.into_iter().filter(|(key, _)| after.as_ref().is_none_or(|after| key > after));
        let mut rest = rest.peekable();
        let (mut items, mut last) = (Vec::new(), String::new());
        while items.len() < usize::try_from(most).unwrap_or(usize::MAX) {
            let Some((key, item)) = rest.next() else { break };
            items.push(item);
            last = key;
        }
        let marker = rest.peek().is_some().then(|| BASE64.encode(last));
        Ok(Page { items, marker })
    }

    /// Whether there is more, and how to ask for it.
    pub(super) fn write_end(marker: Option<&str>, writer: &mut Writer) {
        writer.text("IsTruncated", if marker.is_some() { "true" } else { "false" });
        writer.optional("Marker", marker);
    }

    /// A list and its end.
    pub(super) fn write(self, list: &str, writer: &mut Writer, write: impl FnMut(&mut Writer, T)) {
        writer.list(list, self.items, write);
        Page::<T>::write_end(self.marker.as_deref(), writer);
    }
}
