//! Volumes of files that are made before a process starts: ConfigMaps, Secrets, fields of the pod, and folders
//! that begin empty. They are made anew for each start, and follow no change in between.

use super::env::Sources;
use super::outside::{FileText, FilesMount};
use super::tokens::has_tokens;
use crate::kinds::{CONFIG_MAP, SECRET};
use crate::syncer::objects::desired::TOKEN_VOLUME_PREFIX;
use interlock_kernel::Kind;
use serde_json::Value;
use std::collections::BTreeMap;

/// Who may read a file where the pod does not say.
const MODE: u32 = 0o644;

/// Whether a volume is made of files.
pub(super) fn is_of_files(volume: &Value) -> bool {
    // Admission adds one to every pod.
    if volume["name"].as_str().is_some_and(|name| name.starts_with(TOKEN_VOLUME_PREFIX)) {
        return false;
    }
    let of_source = |source: &Value| {
        ["configMap", "secret", "downwardAPI", "serviceAccountToken"]
            .iter()
            .any(|field| source[*field].is_object())
    };
    let is_plain =
        ["configMap", "secret", "downwardAPI", "emptyDir"].iter().any(|it| volume[*it].is_object());
    let mut sources = items(&volume["projected"]["sources"]).peekable();
    is_plain || sources.peek().is_some() && sources.all(of_source)
}

/// The volumes of files that a container mounts; the error says what is missing on the cluster.
pub(super) fn files_of(
    sources: &Sources<'_>,
    container: &Value,
) -> Result<Vec<FilesMount>, String> {
    let volumes = &sources.pod.data["spec"]["volumes"];
    let mut mounts = Vec::new();
    for mount in items(&container["volumeMounts"]) {
        let volume = items(volumes).find(|volume| volume["name"] == mount["name"]);
        let Some(volume) = volume.filter(|volume| is_of_files(volume)) else { continue };
        let text = |field: &str| mount[field].as_str().unwrap_or_default().to_owned();
        let files = match volume["emptyDir"].is_object() {
            true => None,
            false => Some(contents(sources, volume)?),
        };
        mounts.push(FilesMount {
            name: text("name"),
            path: text("mountPath"),
            part: text("subPath"),
            has_tokens: has_tokens(volume),
            files,
        });
    }
    // Of a volume that has only tokens, everything is said elsewhere.
    mounts.retain(|mount| !mount.has_tokens || mount.files.iter().any(|files| !files.is_empty()));
    Ok(mounts)
}

/// The files of a volume. A path that two sources have is the last one's.
fn contents(sources: &Sources<'_>, volume: &Value) -> Result<Vec<FileText>, String> {
    let mut files = BTreeMap::new();
    let projected = &volume["projected"];
    let plain = [volume].into_iter().filter(|_| projected.is_null());
    for source in plain.chain(items(&projected["sources"])) {
        let default = |of: &Value| mode_of(&of["defaultMode"]);
        let shared = default(projected);
        let config = &source["configMap"];
        if config.is_object() {
            let (name, mode) = (&config["name"], default(config).or(shared));
            files.extend(chosen(sources, &CONFIG_MAP, name, Chosen { of: config, mode })?);
        }
        let secret = &source["secret"];
        if secret.is_object() {
            let name =
                [&secret["secretName"], &secret["name"]].into_iter().find(|it| it.is_string());
            let (name, mode) = (name.unwrap_or(&Value::Null), default(secret).or(shared));
            files.extend(chosen(sources, &SECRET, name, Chosen { of: secret, mode })?);
        }
        let fields = &source["downwardAPI"];
        for item in items(&fields["items"]) {
            let mode = mode_of(&item["mode"]).or(default(fields)).or(shared).unwrap_or(MODE);
            if !item["fieldRef"].is_object() {
                return Err("a downwardAPI volume of resources is not supported".to_owned());
            }
            let bytes = sources.field(&item["fieldRef"])?.into_bytes();
            files.insert(path_of(item), (bytes, mode));
        }
    }
    let file = |(path, (bytes, mode))| FileText { path, bytes, mode };
    Ok(files.into_iter().map(file).collect())
}

/// Which keys of an object are put into files, and how.
struct Chosen<'a> {
    of: &'a Value,
    /// Who may read those of which nothing else is said.
    mode: Option<u32>,
}

type Files = BTreeMap<String, (Vec<u8>, u32)>;

fn chosen(
    sources: &Sources<'_>,
    kind: &Kind,
    name: &Value,
    Chosen { of, mode }: Chosen<'_>,
) -> Result<Files, String> {
    let name = name.as_str().unwrap_or_default();
    let is_optional = of["optional"] == true;
    let mut found = sources.bytes_of(kind, name, is_optional)?;
    let mode = mode.unwrap_or(MODE);
    if !of["items"].is_array() {
        return Ok(found.into_iter().map(|(key, bytes)| (key, (bytes, mode))).collect());
    }
    let mut files = Files::new();
    for item in items(&of["items"]) {
        let key = item["key"].as_str().unwrap_or_default();
        match found.remove(key) {
            Some(bytes) => {
                files.insert(path_of(item), (bytes, mode_of(&item["mode"]).unwrap_or(mode)));
            }
            None if is_optional => {}
            None => return Err(format!("{kind} {name} has no key {key}")),
        }
    }
    Ok(files)
}

fn path_of(item: &Value) -> String {
    item["path"].as_str().unwrap_or_default().to_owned()
}

fn mode_of(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|mode| u32::try_from(mode).ok())
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
