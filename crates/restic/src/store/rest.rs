//! A repository on a server that speaks restic's REST protocol.

use super::http::Http;
use super::{File, Kind, Store, StoreError, is_name};
use crate::failure::Failure;
use crate::settings::RestPlace;
use base64::Engine;
use bytes::Bytes;
use serde::Deserialize;
use ureq::http::Request;
use ureq::http::request::Builder;

/// The second version of the protocol, whose listings have sizes.
const VERSION_2: &str = "application/vnd.x.restic.rest.v2";

/// A repository behind the REST protocol.
pub(super) struct Rest {
    http: Http,
    url: String,
    authorization: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    size: u64,
}

impl Rest {
    pub(super) fn new(place: &RestPlace) -> Result<Self, Failure> {
        let authorization = place.login.as_ref().map(|(user, password)| {
            let login = format!("{}:{}", user.0, password.0);
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(login))
        });
        let http = Http::new(place.authority.as_deref())?;
        Ok(Rest { http, url: place.url.clone(), authorization })
    }

    fn request(&self, method: &str, path: &str) -> Builder {
        let builder = Request::builder().method(method).uri(format!("{}{path}", self.url));
        match &self.authorization {
            Some(authorization) => builder.header("Authorization", authorization),
            None => builder,
        }
    }

    /// The protocol has no folders within `data`.
    fn path(file: File<'_>) -> String {
        file.title()
    }

    /// The size of a file, where there is one.
    fn size(&self, file: File<'_>) -> Result<Option<u64>, StoreError> {
        let answer = self.http.send(|| self.request("HEAD", &Self::path(file)).body(Vec::new()))?;
        if answer.status.as_u16() == 404 {
            return Ok(None);
        }
        let answer = answer.good(&file.title())?;
        let size = answer.headers.get("content-length").and_then(|size| size.to_str().ok());
        Ok(Some(size.and_then(|size| size.parse().ok()).unwrap_or_default()))
    }
}

impl Store for Rest {
    fn has_config(&self) -> Result<bool, StoreError> {
        Ok(self.size(File::CONFIG)?.is_some())
    }

    fn list(&self, kind: Kind) -> Result<Vec<(String, u64)>, StoreError> {
        let path = format!("{}/", kind.folder());
        let answer = self
            .http
            .send(|| self.request("GET", &path).header("Accept", VERSION_2).body(Vec::new()))?;
        // Servers that make folders with their first file know none before.
        if answer.status.as_u16() == 404 {
            return Ok(Vec::new());
        }
        let answer = answer.good(&path)?;
        let listed: Vec<Listed> = serde_json::from_slice(&answer.body).map_err(|_| {
            StoreError::Unreachable(format!(
                "the server's list of {path} is not of version 2 of the REST protocol"
            ))
        })?;
        let listed = listed.into_iter().filter(|file| is_name(&file.name));
        Ok(listed.map(|file| (file.name, file.size)).collect())
    }

    fn read(&self, file: File<'_>) -> Result<Bytes, StoreError> {
        let answer = self.http.send(|| self.request("GET", &Self::path(file)).body(Vec::new()))?;
        Ok(answer.good(&file.title())?.body)
    }

    fn read_part(&self, file: File<'_>, from: u64, bytes: usize) -> Result<Bytes, StoreError> {
        if bytes == 0 {
            return Ok(Bytes::new());
        }
        let range = format!("bytes={from}-{}", from + bytes as u64 - 1);
        let answer = self.http.send(|| {
            self.request("GET", &Self::path(file)).header("Range", &range).body(Vec::new())
        })?;
        answer.part(&file.title(), from, bytes)
    }

    fn write(&self, file: File<'_>, parts: &[Bytes]) -> Result<(), StoreError> {
        // The protocol cannot say "only if there is none"; servers differ in what they do.
        if file.kind == Kind::Config && self.has_config()? {
            return Err(StoreError::Exists(file.title()));
        }
        let body = parts.concat();
        let answer = self.http.send(|| {
            self.request("POST", &Self::path(file))
                .header("Content-Type", "application/octet-stream")
                .body(body.clone())
        })?;
        match answer.good(&file.title()) {
            // Some servers refuse a file that they have: ours, of an attempt whose answer was lost.
            Err(StoreError::Denied(message)) if file.kind != Kind::Config => {
                match self.size(file)? {
                    Some(size) if size == body.len() as u64 => Ok(()),
                    _ => Err(StoreError::Denied(message)),
                }
            }
            answer => answer.map(|_| ()),
        }
    }

    fn remove(&self, file: File<'_>) -> Result<(), StoreError> {
        let answer =
            self.http.send(|| self.request("DELETE", &Self::path(file)).body(Vec::new()))?;
        match answer.good(&file.title()) {
            Err(StoreError::Missing(_)) => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    fn prepare(&self) -> Result<(), StoreError> {
        let answer = self.http.send(|| self.request("POST", "?create=true").body(Vec::new()))?;
        answer.good("the repository").map(|_| ())
    }

    fn is_far(&self) -> bool {
        true
    }
}
