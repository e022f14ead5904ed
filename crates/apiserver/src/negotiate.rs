//! The form of an answer: what the client's `Accept` header takes, and the endpoint can make.

use crate::status::Status;

/// More alternatives than this are not read.
const ALTERNATIVES_LIMIT: usize = 64;

/// The media types of answers in protobuf, and of watches.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub(crate) const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// How an answer is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    /// `application/json`.
    #[default]
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// What an answer is made into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Rendering {
    /// The object as it is.
    #[default]
    Plain,
    /// A `Table` of `meta.k8s.io/v1`, with rows and columns.
    Table,
    /// Only the metadata of one object; also of the objects in watch events.
    PartialObjectMetadata,
    /// Only the metadata of a list's objects.
    PartialObjectMetadataList,
    /// All groups, versions and resources in one document (`apidiscovery.k8s.io/v2`).
    AggregatedDiscovery,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Accepted {
    /// How it is written down.
    pub(crate) encoding: Encoding,
    /// What it is made into.
    pub(crate) rendering: Rendering,
    /// In which version of `meta.k8s.io` a table or metadata are wanted.
    pub(crate) meta_version: MetaVersion,
    /// Whether it is to be indented.
    pub(crate) is_pretty: bool,
}

/// A version of `meta.k8s.io`. They differ in name only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MetaVersion {
    /// `v1`.
    #[default]
    V1,
    /// `v1beta1`, which old clients ask for.
    V1Beta1,
}

impl MetaVersion {
    /// The `apiVersion` of what is made.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What can be asked for at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Objects and lists: also as a table, or only their metadata.
    Objects,
    /// A stream of changes: the same, but there is no stream in YAML.
    Watch,
    /// `/api` and `/apis`: also the aggregated document.
    DiscoveryRoot,
    /// Reviews, versions, other discovery: nothing but themselves.
    Plain,
}

impl Accepted {
    /// What the answer's `Content-Type` says.
    pub(crate) fn content_type(&self) -> &'static str {
        match (self.encoding, self.rendering) {
            (Encoding::Json, Rendering::AggregatedDiscovery) => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            (Encoding::Yaml, Rendering::AggregatedDiscovery) => {
                "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            (Encoding::Json, _) => "application/json",
            (Encoding::Yaml, _) => "application/yaml",
            (Encoding::Protobuf, _) => PROTOBUF,
        }
    }
}

/// The first form that the client takes and the endpoint can make, in the client's order. None of
/// them is 406.
pub(crate) fn negotiate(
    accept: Option<&str>,
    endpoint: Endpoint,
    has_protobuf: bool,
) -> Result<Accepted, Status> {
    let accept = accept.map(str::trim).unwrap_or_default();
    if accept.is_empty() {
        return Ok(Accepted::default());
    }
    let mut alternatives: Vec<Alternative<'_>> =
        accept.split(',').take(ALTERNATIVES_LIMIT).filter_map(Alternative::parse).collect();
    // The sort keeps the client's order among equals.
    alternatives.sort_by_key(|alternative| alternative.rank());
    let accepted = alternatives.iter().find_map(|it| it.accepted(endpoint, has_protobuf));
    accepted.ok_or_else(|| {
        Status::not_acceptable(match (endpoint, has_protobuf) {
            (Endpoint::Watch, false) => "application/json;stream=watch",
            (Endpoint::Watch, true) => {
                "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
            }
            (_, false) => "application/json, application/yaml",
            (_, true) => "application/json, application/yaml, application/vnd.kubernetes.protobuf",
        })
    })
}

/// One of the client's alternatives.
#[derive(Debug, Default)]
struct Alternative<'a> {
    kind: String,
    subkind: String,
    /// 1,000 for `q=1`, the most wanted.
    quality_per_mille: u16,
    conversion: Conversion<'a>,
    stream: &'a str,
    is_pretty: bool,
}

/// `as`, `g` and `v` of a media type: what the object is to be made into.
#[derive(Debug, Default, PartialEq, Eq)]
struct Conversion<'a> {
    kind: Option<&'a str>,
    group: Option<&'a str>,
    version: Option<&'a str>,
}

impl<'a> Alternative<'a> {
    fn parse(text: &'a str) -> Option<Alternative<'a>> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subkind) = match parts.next()?.split_once('/') {
            Some((kind, subkind)) => (kind.trim(), subkind.trim()),
            // Some old clients send a lone star.
            None if text.trim() == "*" => ("*", "*"),
            None => return None,
        };
        let mut alternative = Alternative {
            kind: kind.to_ascii_lowercase(),
            subkind: subkind.to_ascii_lowercase(),
            quality_per_mille: 1_000,
            ..Alternative::default()
        };
        for parameter in parts {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let (name, value) = (name.trim(), value.trim());
            match name {
                "q" => alternative.quality_per_mille = quality_per_mille(value),
                "as" => alternative.conversion.kind = Some(value),
                "g" => alternative.conversion.group = Some(value),
                "v" => alternative.conversion.version = Some(value),
                "stream" => alternative.stream = value,
                "pretty" => alternative.is_pretty = value == "1",
                // Character sets, profiles and whatever else: ignored, as upstream does.
                _ => {}
            }
        }
        (alternative.quality_per_mille > 0).then_some(alternative)
    }

    /// What is wanted more comes first; then what is named exactly.
    fn rank(&self) -> (u16, bool, bool) {
        (1_000 - self.quality_per_mille, self.kind == "*", self.subkind == "*")
    }

    fn accepted(&self, endpoint: Endpoint, has_protobuf: bool) -> Option<Accepted> {
        let encoding = match (self.kind.as_str(), self.subkind.as_str()) {
            ("application", "json" | "*") | ("*", "*") => Encoding::Json,
            ("application", "yaml") if endpoint != Endpoint::Watch => Encoding::Yaml,
            ("application", "vnd.kubernetes.protobuf") if has_protobuf => Encoding::Protobuf,
            _ => return None,
        };
        if !self.stream.is_empty() && self.stream != "watch" {
            return None;
        }
        let rendering = self.conversion.rendering(endpoint)?;
        if encoding == Encoding::Protobuf && rendering == Rendering::Table {
            return None;
        }
        let meta_version = match self.conversion.version {
            Some("v1beta1") => MetaVersion::V1Beta1,
            Some(_) | None => MetaVersion::V1,
        };
        Some(Accepted { encoding, rendering, meta_version, is_pretty: self.is_pretty })
    }
}

impl Conversion<'_> {
    fn rendering(&self, endpoint: Endpoint) -> Option<Rendering> {
        if *self == Conversion::default() {
            return Some(Rendering::Plain);
        }
        let has_objects = matches!(endpoint, Endpoint::Objects | Endpoint::Watch);
        match (self.group?, self.version?, self.kind?) {
            ("meta.k8s.io", "v1" | "v1beta1", "Table") if has_objects => Some(Rendering::Table),
            ("meta.k8s.io", "v1" | "v1beta1", "PartialObjectMetadata") if has_objects => {
                Some(Rendering::PartialObjectMetadata)
            }
            ("meta.k8s.io", "v1" | "v1beta1", "PartialObjectMetadataList") if has_objects => {
                Some(Rendering::PartialObjectMetadataList)
            }
            ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
                if endpoint == Endpoint::DiscoveryRoot =>
            {
                Some(Rendering::AggregatedDiscovery)
            }
            _ => None,
        }
    }
}

/// `0.5` as 500. What is no number means "not wanted".
fn quality_per_mille(text: &str) -> u16 {
    let quality = text.parse::<f32>().unwrap_or(0.0);
    // The cast saturates, and takes NaN for zero.
    (quality.clamp(0.0, 1.0) * 1_000.0) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accept: &str, endpoint: Endpoint) -> (Encoding, Rendering) {
        let accepted = negotiate(Some(accept), endpoint, false).expect("something is acceptable");
        (accepted.encoding, accepted.rendering)
    }

    const JSON: (Encoding, Rendering) = (Encoding::Json, Rendering::Plain);
    const YAML: (Encoding, Rendering) = (Encoding::Yaml, Rendering::Plain);
    const TABLE: (Encoding, Rendering) = (Encoding::Json, Rendering::Table);

    #[test]
    fn whoever_says_nothing_gets_json() {
        assert_eq!(negotiate(None, Endpoint::Objects, false), Ok(Accepted::default()));
        for accept in ["", " ", "*/*", "*", "application/*", "text/html,*/*;q=0.1"] {
            assert_eq!(form(accept, Endpoint::Objects), JSON, "{accept}");
        }
    }

    #[test]
    fn kubectl_gets_its_table_and_falls_back_where_there_is_none() {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,\
                      application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(form(accept, Endpoint::Objects), TABLE);
        assert_eq!(form(accept, Endpoint::Watch), TABLE);
        assert_eq!(form(accept, Endpoint::Plain), JSON);
        let only = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let status = negotiate(Some(only), Endpoint::Plain, false).expect_err("there is no table");
        assert_eq!((status.code, status.reason), (406, "NotAcceptable"));
        let beta = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
        let accepted =
            negotiate(Some(beta), Endpoint::Objects, false).expect("old clients ask for it");
        assert_eq!(accepted.rendering, Rendering::Table);
        assert_eq!(accepted.meta_version.api_version(), "meta.k8s.io/v1beta1");
    }

    #[test]
    fn built_in_kinds_have_protobuf_and_custom_kinds_fall_back_to_json() {
        let accept = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(form(accept, Endpoint::Objects), JSON);
        for endpoint in [Endpoint::Objects, Endpoint::Watch] {
            let accepted = negotiate(Some(accept), endpoint, true).expect("it is served");
            assert_eq!(
                (accepted.encoding, accepted.content_type()),
                (Encoding::Protobuf, PROTOBUF)
            );
        }
        let alone = negotiate(Some(PROTOBUF), Endpoint::Objects, false);
        assert_eq!(
            alone.expect_err("a custom kind has none").message,
            "only the following media types are accepted: application/json, application/yaml"
        );
        let table =
            "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json";
        let accepted = negotiate(Some(table), Endpoint::Objects, true).expect("it is served");
        assert_eq!((accepted.encoding, accepted.rendering), JSON);
    }

    #[test]
    fn metadata_informers_are_served() {
        let accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;\
                      g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;\
                      g=meta.k8s.io;v=v1,application/json";
        let expected = (Encoding::Json, Rendering::PartialObjectMetadataList);
        assert_eq!(form(accept, Endpoint::Objects), expected);
    }

    #[test]
    fn aggregated_discovery_is_only_at_the_roots() {
        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                      application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                      application/json";
        let accepted =
            negotiate(Some(accept), Endpoint::DiscoveryRoot, false).expect("it is served");
        assert_eq!(accepted.rendering, Rendering::AggregatedDiscovery);
        assert!(accepted.content_type().ends_with("as=APIGroupDiscoveryList"));
        assert_eq!(form(accept, Endpoint::Plain), JSON);
        let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        assert!(negotiate(Some(beta), Endpoint::DiscoveryRoot, false).is_err());
    }

    #[test]
    fn quality_comes_before_order_and_exact_before_stars() {
        assert_eq!(form("application/json;q=0.5,application/yaml", Endpoint::Objects), YAML);
        assert_eq!(form("*/*,application/yaml", Endpoint::Objects), YAML);
        assert_eq!(form("application/yaml,application/json", Endpoint::Objects), YAML);
        assert_eq!(form("application/yaml;q=0,application/json;q=0.1", Endpoint::Objects), JSON);
        assert!(negotiate(Some("application/yaml"), Endpoint::Watch, false).is_err());
        assert_eq!(form("application/json;stream=watch", Endpoint::Watch), JSON);
        assert!(negotiate(Some("application/json;stream=x"), Endpoint::Watch, false).is_err());
    }

    #[test]
    fn no_header_makes_it_panic() {
        let pieces =
            ["application", "/", "json", ";", "q=", "0.5", "as=Table", ",", "*", "NaN", "é", " "];
        let mut state: u64 = 0xDEAD_BEEF_CAFE_F00D;
        for _ in 0..20_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let header: String = (0..state % 12)
                .map(|place| pieces[(state >> (place * 5)) as usize % pieces.len()])
                .collect();
            let _ = negotiate(Some(&header), Endpoint::Objects, state.is_multiple_of(2));
        }
    }
}
