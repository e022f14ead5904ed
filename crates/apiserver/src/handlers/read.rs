//! Reads: one object, or many in pages that all show one revision.

use super::listing::Listing;
use super::render::Rendering;
use super::selection::Reading;
use crate::call::Call;
use crate::http::{self, Body};
use crate::object;
use crate::request::ListOptions;
use crate::status::Status;
use crate::storage::{self, Owner};
use ::http::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use interlock_store::{KeyRange, Page, ReadError, Revision, Store, Versioned};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How many rows are read in one go while a selector skips most of them.
const CHUNK: usize = 1000;

/// Where a list goes on. Opaque to clients.
#[derive(Debug, Serialize, Deserialize)]
struct Continue {
    /// The revision of the first page; 0 means whatever is newest, after the first one was compacted.
    #[serde(rename = "rv")]
    revision: Revision,
    /// The last row that was handed out. It must be in the range that is read.
    after: String,
}

/// The items of a page, and how to go on.
pub(super) struct Found {
    /// The objects as they are stored.
    pub(super) items: Vec<Versioned>,
    revision: Revision,
    continue_token: Option<String>,
    remaining: Option<usize>,
}

impl Call {
    /// Reads one object.
    pub(crate) async fn get(&self, rendering: &Rendering) -> Result<Response<Body>, Status> {
        let key = self.key();
        if let Some(versioned) = self.server.storage().get(&key).await? {
            let mut out = Vec::new();
            rendering.write(&mut out, &versioned.value, &key.row, versioned.modified);
            return Ok(http::json_bytes(200, out));
        }
        let shared = self.shared_object(&self.name);
        let object = shared.ok_or_else(|| self.not_found())?;
        Ok(http::json(200, &rendering.value(object)))
    }

    /// Lists objects.
    pub(crate) async fn list(
        &self,
        options: &ListOptions,
        reading: Reading,
    ) -> Result<Response<Body>, Status> {
        let found = self.find(options, &reading).await?;
        let shared = self.shared_items(&found, &reading);
        Ok(self.listing(found, reading.rendering).with_shared(shared).answer())
    }

    /// The list of what was found.
    pub(super) fn listing(&self, found: Found, rendering: Rendering) -> Listing {
        let mut metadata = json!({"resourceVersion": found.revision.to_string()});
        if let Some(token) = &found.continue_token {
            metadata["continue"] = json!(token);
        }
        if let Some(remaining) = found.remaining.filter(|count| *count > 0) {
            metadata["remainingItemCount"] = json!(remaining);
        }
        Listing::new(self, rendering, metadata, found.items)
    }

    /// Objects of the shared layer come with the last page.
    fn shared_items(&self, found: &Found, reading: &Reading) -> Vec<Value> {
        if found.continue_token.is_some() || reading.is_wildcard {
            return Vec::new();
        }
        let mut shared = self.shared_objects();
        shared.retain(|object| {
            reading.selection.takes_object(object)
                && !found.items.iter().any(|item| is_row_of(&item.key.row, object))
        });
        shared
    }

    /// The rows of a request.
    pub(crate) fn range(&self, is_wildcard: bool) -> KeyRange {
        let owner = if is_wildcard { Owner::Everybody } else { Owner::Cluster(&self.cluster.id) };
        let namespace = (!self.namespace.is_empty()).then_some(self.namespace.as_str());
        KeyRange::prefix(storage::table(&self.resource), storage::prefix(owner, namespace))
    }

    /// The objects that a request selects: all, or a page of them.
    pub(super) async fn find(
        &self,
        options: &ListOptions,
        reading: &Reading,
    ) -> Result<Found, Status> {
        let limit = usize::try_from(options.limit).ok().filter(|limit| *limit > 0);
        if let Some(name) = reading.selection.only_name()
            && options.continue_token.is_empty()
            && !reading.is_wildcard
            && (!self.resource.is_namespaced || !self.namespace.is_empty())
            && options.resource_version_match != "Exact"
        {
            return self.find_one(name, options, reading).await;
        }
        let (at, after) = self.start(options, limit.is_some()).await?;
        let mut range = self.range(reading.is_wildcard);
        if let Some(after) = after {
            // A token of another list would skip what it never showed.
            if !after.starts_with(&*range.prefix) {
                return Err(wrong_token());
            }
            range = range.after(after);
        }
        self.gather(range, at, limit, reading).await
    }

    /// Looks through a range until the page is full.
    async fn gather(
        &self,
        mut range: KeyRange,
        mut at: Option<Revision>,
        limit: Option<usize>,
        reading: &Reading,
    ) -> Result<Found, Status> {
        let mut items = Vec::new();
        loop {
            let wanted = match limit {
                None => usize::MAX,
                Some(limit) if reading.selection.is_everything() => limit - items.len(),
                Some(_) => CHUNK,
            };
            let page = self.page(range.clone(), at, wanted).await?;
            at = Some(page.revision);
            let mut last = None;
            let mut skipped = 0;
            for item in page.items {
                if limit.is_some_and(|limit| items.len() == limit) {
                    skipped += 1;
                    continue;
                }
                last = Some(item.key.row.clone());
                if reading.selection.takes(&item) {
                    items.push(item);
                }
            }
            let remaining = page.remaining + skipped;
            let is_full = limit.is_some_and(|limit| items.len() >= limit);
            if remaining == 0 || is_full {
                let token = last.filter(|_| remaining > 0).map(|last| token(page.revision, &last));
                let remaining = reading.selection.is_everything().then_some(remaining);
                return Ok(Found {
                    items,
                    revision: page.revision,
                    continue_token: token,
                    remaining,
                });
            }
            let Some(last) = last else {
                return Ok(Found {
                    items,
                    revision: page.revision,
                    continue_token: None,
                    remaining: None,
                });
            };
            range = range.after(last);
        }
    }

    async fn page(
        &self,
        range: KeyRange,
        at: Option<Revision>,
        limit: usize,
    ) -> Result<Page, Status> {
        let after = range.after.clone();
        match self.server.storage().range(range, at, limit).await {
            Ok(page) => Ok(page),
            Err(ReadError::Compacted { .. }) => {
                let mut status = Status::expired(
                    "The provided continue parameter is too old to display a consistent list \
                     result. You can start a new list without the continue parameter, or use the \
                     continue token in this response to retrieve the remainder of the results.",
                );
                // The fresh token reads on at whatever is newest then.
                if let Some(after) = after {
                    status.continue_token = Some(token(0, &after));
                }
                Err(status)
            }
            Err(error) => Err(storage::read_refused(error)),
        }
    }

    async fn find_one(
        &self,
        name: &str,
        options: &ListOptions,
        reading: &Reading,
    ) -> Result<Found, Status> {
        if let Some(version) = options.list_version()? {
            self.server.wait_for(version).await?;
        }
        let one = self.for_name(name, &self.namespace);
        let revision = self.server.storage().store.newest().await.map_err(storage::read_refused)?;
        let item = self.server.storage().get(&one.key()).await?;
        let revision = item.as_ref().map_or(revision, |item| item.modified.max(revision));
        let items = item.into_iter().filter(|item| reading.selection.takes(item)).collect();
        Ok(Found { items, revision, continue_token: None, remaining: None })
    }

    /// At which revision to read, and after which row.
    async fn start(
        &self,
        options: &ListOptions,
        is_paged: bool,
    ) -> Result<(Option<Revision>, Option<String>), Status> {
        if !options.continue_token.is_empty() {
            if !matches!(options.resource_version.as_str(), "" | "0") {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let token = read_token(&options.continue_token)?;
            let at = (token.revision > 0).then_some(token.revision);
            return Ok((at, Some(token.after)));
        }
        let Some(version) = options.list_version()?.filter(|version| *version > 0) else {
            return Ok((None, None));
        };
        self.server.wait_for(version).await?;
        let is_exact = options.resource_version_match == "Exact"
            || options.resource_version_match.is_empty() && is_paged;
        Ok((is_exact.then_some(version), None))
    }
}

/// Whether a row is that of an object.
pub(super) fn is_row_of(row: &str, object: &Value) -> bool {
    let (_, namespace, name) = storage::parts(row);
    name == object::name(object) && namespace == object::namespace(object)
}

fn token(revision: Revision, after: &str) -> String {
    let token = Continue { revision, after: after.to_owned() };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
}

fn read_token(text: &str) -> Result<Continue, Status> {
    let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong_token())?;
    serde_json::from_slice(&json).map_err(|_| match json.first() {
        // In the words of upstream, whose tokens are objects, too.
        Some(first) if first.is_ascii_graphic() && *first != b'{' => Status::bad_request(format!(
            "invalid continue token: continue key is not valid: invalid character '{}' looking \
             for beginning of value",
            char::from(*first)
        )),
        _ => wrong_token(),
    })
}

fn wrong_token() -> Status {
    Status::bad_request("continue key is not valid: it is none of this list's")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let read = read_token(&token(7, "c1/default/ü")).expect("it is ours");
        assert_eq!((read.revision, read.after.as_str()), (7, "c1/default/ü"));
    }

    #[test]
    fn no_token_makes_it_panic_and_garbage_is_refused() {
        let good = token(12, "c1/default/a");
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from((state >> 11) % bound as u64).expect("below a usize")
        };
        for _ in 0..20_000 {
            let mut bytes = good.clone().into_bytes();
            for _ in 0..=below(4) {
                let place = below(bytes.len());
                bytes[place] = u8::try_from(32 + below(95)).expect("a letter");
            }
            bytes.truncate(below(good.len() + 1));
            if let Err(status) = read_token(&String::from_utf8_lossy(&bytes)) {
                assert_eq!(status.code, 400);
            }
        }
    }
}
