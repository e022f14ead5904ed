//! The versions of a CRD, and where errors about them are said to be.

use serde_json::{Map, Value};

/// The versions in order.
pub(super) fn of(
    spec: &Map<String, Value>,
) -> impl Iterator<Item = &Map<String, Value>> + Clone + use<'_> {
    let list = spec.get("versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_object)
}

/// Whether objects are stored in this version.
pub(super) fn is_storage(version: &Map<String, Value>) -> bool {
    version.get("storage").and_then(Value::as_bool).unwrap_or(false)
}

/// Its schema.
pub(super) fn schema(version: &Map<String, Value>) -> Option<&Value> {
    version.get("schema")?.get("openAPIV3Schema").filter(|schema| !schema.is_null())
}

/// What all versions have in common. Upstream moves that out of the versions before it validates,
/// so that errors about the only version of a CRD are at `spec.validation`, not at
/// `spec.versions[0].schema`.
pub(super) struct Paths {
    pub(super) schemas_are_equal: bool,
    pub(super) subresources_are_equal: bool,
    pub(super) columns_are_equal: bool,
}

impl Paths {
    pub(super) fn of(spec: &Map<String, Value>) -> Self {
        let are_equal = |name: &str| {
            let mut values = of(spec).map(|version| version.get(name));
            values.next().is_some_and(|first| values.all(|value| value == first))
        };
        Paths {
            schemas_are_equal: are_equal("schema"),
            subresources_are_equal: are_equal("subresources"),
            columns_are_equal: are_equal("additionalPrinterColumns"),
        }
    }
}
