//! The environment of a container: variables, where their values come from, and `$(NAME)` in words.

use super::address::{HOST, address_of};
use crate::kinds::{CONFIG_MAP, SECRET};
use interlock_kernel::metadata::{annotation, label};
use interlock_kernel::{Kind, Name, Object, Place, View};
use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The variable that has the address of the pod in it, unless the container sets it itself.
const POD_IP: &str = "POD_IP";
/// The variable that has the name of the pod in it, as in a container, whose host name that is.
const HOST_NAME: &str = "HOSTNAME";

/// A pod, and the objects that it takes values from.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) pod: &'a Object,
    pub(super) view: &'a dyn View,
}

impl Sources<'_> {
    /// The environment of a container; the error says what is missing on the cluster.
    pub(super) fn environment(
        &self,
        container: &Value,
    ) -> Result<BTreeMap<String, String>, String> {
        let address = address_of(self.pod, self.view).to_string();
        let named = self.pod.data["spec"]["hostname"].as_str();
        let name = named.or(self.pod.metadata.name.as_deref()).unwrap_or_default();
        let mut values =
            BTreeMap::from([(POD_IP.to_owned(), address), (HOST_NAME.to_owned(), name.to_owned())]);
        for source in items(&container["envFrom"]) {
            let prefix = source["prefix"].as_str().unwrap_or_default();
            for (kind, field) in [(CONFIG_MAP, "configMapRef"), (SECRET, "secretRef")] {
                for (key, value) in self.texts_of(&kind, &source[field])? {
                    values.insert(format!("{prefix}{key}"), value);
                }
            }
        }
        for variable in items(&container["env"]) {
            let Some(name) = variable["name"].as_str() else { continue };
            if let Some(value) = self.value_of(variable, &values)? {
                values.insert(name.to_owned(), value);
            }
        }
        Ok(values)
    }

    fn value_of(
        &self,
        variable: &Value,
        known: &BTreeMap<String, String>,
    ) -> Result<Option<String>, String> {
        let from = &variable["valueFrom"];
        if from.is_null() {
            let value = variable["value"].as_str().unwrap_or_default();
            return Ok(Some(expand(value, known)));
        }
        for (kind, field) in [(CONFIG_MAP, "configMapKeyRef"), (SECRET, "secretKeyRef")] {
            let reference = &from[field];
            if reference.is_null() {
                continue;
            }
            let key = reference["key"].as_str().unwrap_or_default();
            let found = self.texts_of(&kind, reference)?.remove(key);
            if found.is_none() && reference["optional"] != true {
                let of = reference["name"].as_str().unwrap_or_default();
                return Err(format!("{kind} {of} has no key {key}"));
            }
            return Ok(found);
        }
        self.field(&from["fieldRef"]).map(Some)
    }

    /// The text in a ConfigMap or Secret.
    fn texts_of(&self, kind: &Kind, reference: &Value) -> Result<BTreeMap<String, String>, String> {
        if reference.is_null() {
            return Ok(BTreeMap::new());
        }
        let name = reference["name"].as_str().unwrap_or_default();
        let entries = self.entries(kind, name, reference["optional"] == true)?;
        let is_text = |key: &String| !key.starts_with(BINARY);
        let texts = entries.into_iter().filter(|(key, _)| is_text(key)).map(|(key, bytes)| {
            let text = String::from_utf8(bytes);
            let text = text.map_err(|_| format!("{kind} {name}: {key} is not text"))?;
            Ok((key, text))
        });
        texts.collect()
    }

    /// Everything in a ConfigMap or Secret, to be put into files.
    pub(super) fn bytes_of(
        &self,
        kind: &Kind,
        name: &str,
        is_optional: bool,
    ) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let entries = self.entries(kind, name, is_optional)?.into_iter();
        let plain = |key: String| key.strip_prefix(BINARY).map(str::to_owned).unwrap_or(key);
        Ok(entries.map(|(key, bytes)| (plain(key), bytes)).collect())
    }

    /// What is in a ConfigMap or Secret; keys of binary data are marked.
    fn entries(
        &self,
        kind: &Kind,
        name: &str,
        is_optional: bool,
    ) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or_default();
        let Some(found) = self.view.get(Place::CLUSTER, kind, &Name::within(namespace, name))
        else {
            return match is_optional {
                true => Ok(BTreeMap::new()),
                false => Err(format!("{kind} {name} does not exist on this cluster")),
            };
        };
        let binary = |value: &Value| ByteString::deserialize(value).ok().map(|bytes| bytes.0);
        let plain = |value: &Value| match *kind == SECRET {
            true => binary(value),
            false => value.as_str().map(|text| text.as_bytes().to_vec()),
        };
        let of = |field: &str| found.data[field].as_object().into_iter().flatten();
        let broken = |key: &String| format!("{kind} {name}: {key} is not text");
        let mut entries = BTreeMap::new();
        for (key, value) in of("data") {
            entries.insert(key.clone(), plain(value).ok_or_else(|| broken(key))?);
        }
        for (key, value) in of("binaryData").filter(|_| *kind == CONFIG_MAP) {
            entries.insert(format!("{BINARY}{key}"), binary(value).ok_or_else(|| broken(key))?);
        }
        Ok(entries)
    }

    /// The value of a field of the pod.
    pub(super) fn field(&self, reference: &Value) -> Result<String, String> {
        let path = reference["fieldPath"].as_str().unwrap_or_default();
        let (metadata, spec) = (&self.pod.metadata, &self.pod.data["spec"]);
        let of_spec = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
        let address = || address_of(self.pod, self.view).to_string();
        let known = match path {
            "metadata.name" => metadata.name.clone(),
            "metadata.namespace" => metadata.namespace.clone(),
            "metadata.uid" => metadata.uid.clone(),
            "metadata.labels" => Some(lines(metadata.labels.as_ref())),
            "metadata.annotations" => Some(lines(metadata.annotations.as_ref())),
            "spec.nodeName" => Some(of_spec("nodeName")),
            "spec.serviceAccountName" => Some(of_spec("serviceAccountName")),
            "status.podIP" | "status.podIPs" => Some(address()),
            "status.hostIP" | "status.hostIPs" => Some(HOST.to_string()),
            _ => {
                let key = |of: &str| path.strip_prefix(of)?.strip_suffix("']");
                let label = key("metadata.labels['").map(|key| label(self.pod, key));
                let found = label
                    .or_else(|| key("metadata.annotations['").map(|key| annotation(self.pod, key)));
                found.map(|found| found.unwrap_or_default().to_owned())
            }
        };
        known.ok_or_else(|| format!("the field {path} is unknown"))
    }
}

/// Before the keys of binary data: no key begins with it.
const BINARY: &str = "/";

/// Labels or annotations as a file has them, one in each line.
fn lines(marks: Option<&BTreeMap<String, String>>) -> String {
    let marks = marks.into_iter().flatten();
    let lines: Vec<String> = marks.map(|(key, value)| format!("{key}={value:?}")).collect();
    lines.join("\n")
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Puts values in the place of `$(NAME)`; `$$` is a dollar, and a name that is not known stays.
pub(super) fn expand(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        expanded.push_str(before);
        if let Some(after) = after.strip_prefix("$$") {
            expanded.push('$');
            rest = after;
            continue;
        }
        let named = after.strip_prefix("$(").and_then(|named| named.split_once(')'));
        match named.and_then(|(name, after)| Some((values.get(name)?, after))) {
            Some((value, after)) => {
                expanded.push_str(value);
                rest = after;
            }
            None => {
                expanded.push('$');
                rest = &after[1..];
            }
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_into_words() {
        let values = BTreeMap::from([("A".to_owned(), "x$(B)".to_owned())]);
        assert_eq!(expand("$(A)-$(B)-$$(A)-$", &values), "x$(B)-$(B)-$(A)-$");
        assert_eq!(expand("$(A", &values), "$(A");
        assert_eq!(expand("é$(A)é", &values), "éx$(B)é");
    }

    #[test]
    fn labels_are_lines_of_a_file() {
        let labels = BTreeMap::from([("a".to_owned(), "x\"y".to_owned()), ("b".into(), "".into())]);
        assert_eq!(lines(Some(&labels)), "a=\"x\\\"y\"\nb=\"\"");
    }
}
