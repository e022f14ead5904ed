//! The BundleRevision: a part of a bundle, by the digest of the whole.

use kube_derive::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// A part of a bundle. The spec is immutable: another content has another digest.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema,
)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "BundleRevision",
    plural = "bundlerevisions",
    shortname = "brev",
    category = "interlock",
    derive = "PartialEq",
    derive = "Default",
    doc = "A BundleRevision is a part of a bundle of manifests, named for the digest of the whole bundle. Every reader checks the bundle against the digest. It may hold Secrets: grant nobody the right to list BundleRevisions.",
    printcolumn(name = "Part", type_ = "integer", json_path = ".spec.part"),
    printcolumn(name = "Parts", type_ = "integer", json_path = ".spec.parts"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name == self.spec.digest + '-' + string(self.spec.part)").message(
        Message::Expression(
            "'a BundleRevision is named <digest>-<part>: name this one ' \
             + self.spec.digest + '-' + string(self.spec.part)".to_owned()
        )
    ),
    attr = "x_kube(crates(kube_core = \"::kube_core\"))",
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self == oldSelf")
        .message("a BundleRevision cannot be edited: another content has another digest"),
    validation = Rule::new("self.part < self.parts").message("parts are counted from 0")
)]
pub struct BundleRevisionSpec {
    /// The digest of the whole bundle in its canonical form: sha256- and 64 hexadecimal digits.
    #[schemars(length(min = 71, max = 71), regex(pattern = r"^sha256-[0-9a-f]{64}$"))]
    pub digest: String,
    /// Which part this is, counted from 0.
    #[schemars(range(min = 0, max = 15))]
    pub part: u32,
    /// How many parts the bundle has.
    #[schemars(range(min = 1, max = 16))]
    pub parts: u32,
    /// The objects that begin in this part, as in apps/Deployment/shop/web.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10_000), inner(length(min = 1, max = 640)))]
    pub ids: Vec<String>,
    /// This part of the canonical form, compressed by zstd, in base64.
    #[schemars(length(min = 1, max = 1_048_576))]
    pub data: String,
}

impl BundleRevisionSpec {
    /// The name of the object.
    pub fn object_name(&self) -> String {
        part_name(&self.digest, self.part)
    }
}

/// The name of a part of a bundle: `<digest>-<part>`.
pub fn part_name(digest: &str, part: u32) -> String {
    format!("{digest}-{part}")
}
