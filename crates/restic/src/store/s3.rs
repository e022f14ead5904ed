//! A repository in a bucket of an S3 server, in restic's default layout.

use super::http::{Answer, Http};
use super::signature::{Signed, Signer, encoded, hexadecimal};
use super::{File, Kind, Store, StoreError, is_name};
use crate::failure::Failure;
use crate::settings::S3Place;
use bytes::Bytes;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use ureq::http::Request;

/// A repository in a bucket.
pub(super) struct S3 {
    http: Http,
    place: S3Place,
}

/// One request, before it is signed.
struct Call<'a> {
    method: &'a str,
    /// Below the bucket, not encoded.
    key: String,
    query: String,
    /// In lower case and sorted by name.
    headers: Vec<(&'a str, &'a str)>,
    body: &'a [u8],
    /// The SHA-256 of the body, where it is known already.
    body_hash: Option<&'a str>,
}

impl<'a> Call<'a> {
    fn new(method: &'a str, key: String) -> Self {
        Call { method, key, query: String::new(), headers: vec![], body: &[], body_hash: None }
    }
}

impl S3 {
    pub(super) fn new(place: S3Place) -> Result<Self, Failure> {
        Ok(S3 { http: Http::new(None)?, place })
    }

    fn key(&self, file: File<'_>) -> String {
        format!("{}{}", self.place.prefix, file.path())
    }

    fn send(&self, call: &Call<'_>) -> Result<Answer, StoreError> {
        let path = match call.key.is_empty() {
            true => format!("/{}", encoded(&self.place.bucket, true)),
            false => {
                format!("/{}/{}", encoded(&self.place.bucket, true), encoded(&call.key, false))
            }
        };
        let computed;
        let body_hash = match call.body_hash {
            Some(hash) => hash,
            None => {
                computed = hexadecimal(&Sha256::digest(call.body));
                &computed
            }
        };
        let host = self.place.endpoint.split_once("://").map_or("", |(_, host)| host);
        // Signed anew for every attempt: servers refuse signatures that are some minutes old.
        self.http.send(|| {
            let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
            let mut headers = call.headers.clone();
            headers.extend([
                ("host", host),
                ("x-amz-content-sha256", body_hash),
                ("x-amz-date", &time),
            ]);
            if let Some(token) = &self.place.session_token {
                headers.push(("x-amz-security-token", &token.0));
            }
            headers.sort_unstable();
            let signer = Signer {
                access_key: &self.place.access_key.0,
                secret_key: &self.place.secret_key.0,
                region: &self.place.region,
            };
            let authorization = signer.authorization(&Signed {
                method: call.method,
                path: &path,
                query: &call.query,
                headers: &headers,
                body_hash,
                time: &time,
            });
            let question = if call.query.is_empty() { "" } else { "?" };
            let uri = format!("{}{path}{question}{}", self.place.endpoint, call.query);
            let mut builder = Request::builder().method(call.method).uri(uri);
            for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
                builder = builder.header(*name, *value);
            }
            builder.header("Authorization", authorization).body(call.body.to_vec())
        })
    }

    fn good(&self, answer: Answer, what: &str) -> Result<Answer, StoreError> {
        let code = answer.code();
        if code.contains("NoSuchBucket") {
            let bucket = &self.place.bucket;
            return Err(StoreError::Unreachable(format!(
                "there is no bucket {bucket}: create it first"
            )));
        }
        if matches!(answer.status.as_u16(), 301 | 307) {
            return Err(StoreError::Unreachable(format!(
                "the bucket is not in the region {}: set AWS_DEFAULT_REGION",
                self.place.region
            )));
        }
        answer.good(what)
    }

    fn put(&self, file: File<'_>, body: &[u8], only_if_absent: bool) -> Result<(), StoreError> {
        let mut call = Call::new("PUT", self.key(file));
        call.body = body;
        // Every file but the config is named for its hash, so the server checks it for nothing.
        call.body_hash = is_name(file.name).then_some(file.name);
        if only_if_absent {
            call.headers.push(("if-none-match", "*"));
        }
        self.good(self.send(&call)?, &file.title()).map(|_| ())
    }
}

impl Store for S3 {
    fn has_config(&self) -> Result<bool, StoreError> {
        let answer = self.send(&Call::new("HEAD", self.key(File::CONFIG)))?;
        match self.good(answer, "config") {
            Err(StoreError::Missing(_)) => Ok(false),
            answer => answer.map(|_| true),
        }
    }

    fn list(&self, kind: Kind) -> Result<Vec<(String, u64)>, StoreError> {
        let prefix = format!("{}{}/", self.place.prefix, kind.folder());
        let mut found = Vec::new();
        let mut token = None;
        loop {
            let mut call = Call::new("GET", String::new());
            let token_query = token.as_ref().map_or_else(String::new, |token: &String| {
                format!("continuation-token={}&", encoded(token, true))
            });
            call.query = format!("{token_query}list-type=2&prefix={}", encoded(&prefix, true));
            let answer = self.good(self.send(&call)?, &format!("{}/", kind.folder()))?;
            let page = Page::read(&String::from_utf8_lossy(&answer.body)).ok_or_else(|| {
                StoreError::Unreachable("the server's list is not one of S3".to_owned())
            })?;
            for (key, size) in page.files {
                let name = key.rsplit('/').next().unwrap_or_default();
                if is_name(name) {
                    found.push((name.to_owned(), size));
                }
            }
            match page.next {
                Some(next) => token = Some(next),
                None => return Ok(found),
            }
        }
    }

    fn read(&self, file: File<'_>) -> Result<Bytes, StoreError> {
        let answer = self.send(&Call::new("GET", self.key(file)))?;
        Ok(self.good(answer, &file.title())?.body)
    }

    fn read_part(&self, file: File<'_>, from: u64, bytes: usize) -> Result<Bytes, StoreError> {
        if bytes == 0 {
            return Ok(Bytes::new());
        }
        let range = format!("bytes={from}-{}", from + bytes as u64 - 1);
        let mut call = Call::new("GET", self.key(file));
        call.headers.push(("range", &range));
        self.send(&call)?.part(&file.title(), from, bytes)
    }

    fn write(&self, file: File<'_>, parts: &[Bytes]) -> Result<(), StoreError> {
        let body = parts.concat();
        if file.kind != Kind::Config {
            return self.put(file, &body, false);
        }
        match self.put(file, &body, true) {
            // A server that knows no conditions: the next best thing, and whoever initialises looks
            // again.
            Err(StoreError::Unreachable(_)) if !self.has_config()? => self.put(file, &body, false),
            Err(StoreError::Unreachable(_)) => Err(StoreError::Exists(file.title())),
            written => written,
        }
    }

    fn remove(&self, file: File<'_>) -> Result<(), StoreError> {
        let answer = self.send(&Call::new("DELETE", self.key(file)))?;
        match self.good(answer, &file.title()) {
            Err(StoreError::Missing(_)) => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    fn prepare(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn is_far(&self) -> bool {
        true
    }
}

/// One page of a list.
struct Page {
    files: Vec<(String, u64)>,
    next: Option<String>,
}

impl Page {
    /// Reads the few elements that matter. Their values are never nested, so looking for their tags is
    /// reading them right.
    fn read(text: &str) -> Option<Page> {
        let (_, text) = text.split_once("<ListBucketResult")?;
        let (text, _) = text.rsplit_once("</ListBucketResult>")?;
        let mut files = Vec::new();
        for entry in text.split("<Contents>").skip(1) {
            let (entry, _) = entry.split_once("</Contents>")?;
            files.push((element(entry, "Key")?, element(entry, "Size")?.parse().ok()?));
        }
        // Keys come before or after; the elements of the page itself are outside of all entries.
        let outside: String = text
            .split("<Contents>")
            .enumerate()
            .map(
                |(i, part)| {
                    if i == 0 { part } else { part.split_once("</Contents>").map_or("", |p| p.1) }
                },
            )
            .collect();
        let is_truncated = element(&outside, "IsTruncated").is_some_and(|value| value == "true");
        let next = element(&outside, "NextContinuationToken");
        match (is_truncated, next) {
            (true, None) => None,
            (true, next) => Some(Page { files, next }),
            (false, _) => Some(Page { files, next: None }),
        }
    }
}

fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once(&format!("</{name}>"))?;
    let value = value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    Some(value.replace("&#39;", "'").replace("&apos;", "'").replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_page_by_page() {
        let text = "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><Name>b</Name>\
            <Contents><Key>p/locks/ab&amp;c</Key><Size>17</Size></Contents>\
            <Contents><Key>p/locks/d</Key><Size>0</Size></Contents>\
            <IsTruncated>true</IsTruncated><NextContinuationToken>1/a=</NextContinuationToken>\
            </ListBucketResult>";
        let page = Page::read(text).unwrap();
        assert_eq!(page.files, [("p/locks/ab&c".to_owned(), 17), ("p/locks/d".to_owned(), 0)]);
        assert_eq!(page.next.as_deref(), Some("1/a="));
    }

    #[test]
    fn a_list_that_was_cut_off_is_no_list() {
        assert!(Page::read("").is_none());
        assert!(Page::read("<html>sorry</html>").is_none());
        assert!(Page::read("<ListBucketResult><Contents><Key>a</Key>").is_none());
        let no_token = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>";
        assert!(Page::read(no_token).is_none());
    }
}
