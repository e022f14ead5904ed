//! Restates what Kubernetes' built-in kinds look like in our own small text form:
//! `crates/apiserver/kinds`.
//!
//! Only facts are taken over (names, types, numbers, defaults), no sentences. Three sources agree
//! on them: the discovery documents and the OpenAPI v3 documents in the module of Kubernetes
//! itself, and the struct tags in the modules of its types, which alone say how protobuf numbers a
//! field and when JSON leaves it out.

mod go;
mod openapi;

use anyhow::{Context, Result, bail};
use go::Package;
use openapi::{Documents, Property};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const KUBERNETES: &str = "k8s.io/kubernetes@v1.35.0";
const API: &str = "k8s.io/api@v0.35.0";
const MACHINERY: &str = "k8s.io/apimachinery@v0.35.0";
const EXTENSIONS: &str = "k8s.io/apiextensions-apiserver@v0.35.0";
const AGGREGATOR: &str = "k8s.io/kube-aggregator@v0.35.0";

/// One table that is written: a group in a version.
struct Table {
    /// The file's name without its ending, and the name that other tables refer to it by.
    stem: &'static str,
    /// The API group; empty for core and for the types that all groups share.
    group: &'static str,
    version: &'static str,
    /// The module that its Go types are in, and the directory there.
    module: &'static str,
    directory: &'static str,
    /// Types that no resource leads to.
    more_types: &'static [&'static str],
    /// Resources of upstream's that we do not serve in this group; `*` is all of them.
    left_out: &'static [&'static str],
    /// Whether the objects are made by the server itself, and can only be read.
    is_read_only: bool,
}

const TABLES: &[Table] = &[
    Table {
        stem: "meta-v1",
        group: "",
        version: "v1",
        module: MACHINERY,
        directory: "pkg/apis/meta/v1",
        more_types: &["DeleteOptions", "ListMeta", "ObjectMeta", "Patch", "Status", "WatchEvent"],
        left_out: &["*"],
        is_read_only: false,
    },
    Table {
        stem: "core-v1",
        more_types: &["Binding"],
        left_out: &["bindings", "componentstatuses"],
        ..api("core-v1", "", "v1", "core/v1")
    },
    api("apps-v1", "apps", "v1", "apps/v1"),
    api("batch-v1", "batch", "v1", "batch/v1"),
    Table {
        more_types: &["Scale"],
        ..api("autoscaling-v1", "autoscaling", "v1", "autoscaling/v1")
    },
    api("autoscaling-v2", "autoscaling", "v2", "autoscaling/v2"),
    Table { more_types: &["Eviction"], ..api("policy-v1", "policy", "v1", "policy/v1") },
    api("networking-v1", "networking.k8s.io", "v1", "networking/v1"),
    api("storage-v1", "storage.k8s.io", "v1", "storage/v1"),
    api("rbac-v1", "rbac.authorization.k8s.io", "v1", "rbac/v1"),
    api("coordination-v1", "coordination.k8s.io", "v1", "coordination/v1"),
    api("events-v1", "events.k8s.io", "v1", "events/v1"),
    api("discovery-v1", "discovery.k8s.io", "v1", "discovery/v1"),
    api("scheduling-v1", "scheduling.k8s.io", "v1", "scheduling/v1"),
    api("node-v1", "node.k8s.io", "v1", "node/v1"),
    api("certificates-v1", "certificates.k8s.io", "v1", "certificates/v1"),
    api(
        "admissionregistration-v1",
        "admissionregistration.k8s.io",
        "v1",
        "admissionregistration/v1",
    ),
    Table {
        more_types: &["TokenRequest"],
        ..api("authentication-v1", "authentication.k8s.io", "v1", "authentication/v1")
    },
    api("authorization-v1", "authorization.k8s.io", "v1", "authorization/v1"),
    Table {
        module: EXTENSIONS,
        ..api("apiextensions-v1", "apiextensions.k8s.io", "v1", "pkg/apis/apiextensions/v1")
    },
    Table {
        module: AGGREGATOR,
        is_read_only: true,
        ..api("apiregistration-v1", "apiregistration.k8s.io", "v1", "pkg/apis/apiregistration/v1")
    },
    api("flowcontrol-v1", "flowcontrol.apiserver.k8s.io", "v1", "flowcontrol/v1"),
    api("resource-v1", "resource.k8s.io", "v1", "resource/v1"),
];

/// Subresources that a server without nodes can serve.
const SUBRESOURCES: &[&str] = &[
    "approval",
    "binding",
    "ephemeralcontainers",
    "eviction",
    "finalize",
    "resize",
    "scale",
    "status",
    "token",
];

const ALL_VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";

const fn api(
    stem: &'static str,
    group: &'static str,
    version: &'static str,
    directory: &'static str,
) -> Table {
    Table {
        stem,
        group,
        version,
        module: API,
        directory,
        more_types: &[],
        left_out: &[],
        is_read_only: false,
    }
}

impl Table {
    /// What OpenAPI calls the package: `io.k8s.api.core.v1`.
    fn package(&self) -> String {
        let module = self.module.split('@').next().unwrap_or_default();
        let module = module.strip_prefix("k8s.io/").unwrap_or(module);
        format!("io.k8s.{module}.{}", self.directory.replace('/', "."))
    }

    /// The file stem of upstream's documents: `apis__apps__v1`.
    fn document(&self) -> String {
        if self.group.is_empty() {
            return format!("api__{}", self.version);
        }
        format!("apis__{}__{}", self.group, self.version)
    }
}

/// Writes every table anew from upstream's published modules.
pub(crate) fn run(into: &Path) -> Result<()> {
    let kubernetes = module(KUBERNETES)?;
    let mut directories = BTreeMap::new();
    for name in [API, MACHINERY, EXTENSIONS, AGGREGATOR] {
        directories.insert(name, module(name)?);
    }
    let mut upstream = Upstream { documents: Documents::default(), packages: BTreeMap::new() };
    for table in TABLES {
        let path = format!("api/openapi-spec/v3/{}_openapi.json", table.document());
        upstream.documents.read(&kubernetes.join(path))?;
        let package = Package::read(&directories[table.module].join(table.directory))?;
        upstream.packages.insert(table.package(), (table.stem, package));
    }
    let mut resources = BTreeMap::new();
    let mut wanted: Vec<String> = Vec::new();
    for table in TABLES {
        let path = kubernetes.join(format!("api/discovery/{}.json", table.document()));
        let (text, kinds) = resource_lines(table, &read_json(&path)?)?;
        resources.insert(table.stem, text);
        let types = kinds.iter().map(String::as_str).chain(table.more_types.iter().copied());
        wanted.extend(types.map(|name| format!("{}.{name}", table.package())));
    }
    let mut types = upstream.types(wanted)?;
    for table in TABLES {
        let mut text = header(table);
        text.push_str(&resources[table.stem]);
        for (_, lines) in types.remove(table.stem).unwrap_or_default() {
            text.push_str(&lines);
        }
        let path = into.join(format!("{}.txt", table.stem));
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The directory of a module, downloaded if need be.
pub(crate) fn module(name: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", name])
        .current_dir(std::env::temp_dir())
        .output()
        .context("cannot run go, which fetches upstream's modules")?;
    let answer: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cannot read what go says about {name}"))?;
    match answer["Dir"].as_str() {
        Some(directory) => Ok(PathBuf::from(directory)),
        None => bail!("cannot download {name}: {}", answer["Error"]),
    }
}

fn read_json(path: &Path) -> Result<Value> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is not JSON", path.display()))
}

fn header(table: &Table) -> String {
    format!(
        "# Made by `cargo xtask kinds`; the form is explained in src/kinds.rs.\n\
         # Facts from {KUBERNETES} (discovery and OpenAPI v3 documents) and {} (struct tags).\n\
         group {} {} {}\n",
        table.module,
        if table.group.is_empty() { "-" } else { table.group },
        table.version,
        table.package(),
    )
}

/// The lines of a group's resources, and the kinds that they lead to.
fn resource_lines(table: &Table, discovery: &Value) -> Result<(String, BTreeSet<String>)> {
    let all = discovery["resources"].as_array().context("a discovery document lists resources")?;
    let mut kinds = BTreeSet::new();
    let mut text = String::new();
    for resource in all {
        let name = text_of(resource, "name")?;
        let (plural, sub) = name.split_once('/').unwrap_or((name, ""));
        if table.left_out.iter().any(|left| *left == "*" || *left == plural) {
            continue;
        }
        let verbs = match words(resource, "verbs") {
            _ if table.is_read_only && !sub.is_empty() => "get".to_owned(),
            _ if table.is_read_only => "get,list,watch".to_owned(),
            verbs if verbs == ALL_VERBS => "all".to_owned(),
            verbs => verbs,
        };
        let kind = text_of(resource, "kind")?;
        if !sub.is_empty() {
            if SUBRESOURCES.contains(&sub) {
                let group = resource["group"].as_str().unwrap_or(table.group);
                let version = resource["version"].as_str().unwrap_or(table.version);
                writeln!(text, "  sub {sub} {verbs} {group}/{version}/{kind}")?;
            }
            continue;
        }
        let scope = if resource["namespaced"] == true { "namespaced" } else { "cluster" };
        let singular = text_of(resource, "singularName")?;
        write!(text, "resource {plural} {singular} {kind} {scope} {verbs}")?;
        for (key, label) in [("shortNames", "short"), ("categories", "categories")] {
            let words = words(resource, key);
            if !words.is_empty() {
                write!(text, " {label}={words}")?;
            }
        }
        if let Some(hash) = resource["storageVersionHash"].as_str() {
            write!(text, " hash={hash}")?;
        }
        text.push('\n');
        kinds.insert(kind.to_owned());
    }
    Ok((text, kinds))
}

fn text_of<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("{key} is missing in {value}"))
}

fn words(value: &Value, key: &str) -> String {
    let all = value[key].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}

/// All that was read: OpenAPI schemas by name, Go structs by package.
struct Upstream {
    documents: Documents,
    packages: BTreeMap<String, (&'static str, Package)>,
}

impl Upstream {
    /// The lines of each type that the wanted ones lead to, by table and name.
    fn types(
        &self,
        mut wanted: Vec<String>,
    ) -> Result<BTreeMap<&'static str, BTreeMap<String, String>>> {
        let mut types: BTreeMap<&'static str, BTreeMap<String, String>> = BTreeMap::new();
        while let Some(full) = wanted.pop() {
            let (package, name) = full.rsplit_once('.').context("a type's name has a package")?;
            let (stem, package) = self
                .packages
                .get(package)
                .with_context(|| format!("{full} is in a package that no table is for"))?;
            if types.entry(stem).or_default().contains_key(name) {
                continue;
            }
            let lines = self.type_lines(stem, package, &full, &mut wanted)?;
            types.entry(stem).or_default().insert(name.to_owned(), lines);
        }
        Ok(types)
    }

    fn type_lines(
        &self,
        stem: &str,
        package: &Package,
        full: &str,
        wanted: &mut Vec<String>,
    ) -> Result<String> {
        let schema = self.documents.schema(full)?;
        let name = full.rsplit('.').next().unwrap_or(full);
        let mut text = format!("type {name}");
        if schema.is_kind {
            text.push_str(" kind");
        }
        if schema.is_atomic {
            text.push_str(" atomic");
        }
        text.push('\n');
        let mut fields = package.fields(name)?;
        fields.sort_by(|a, b| a.numbers.cmp(&b.numbers));
        for field in &fields {
            let Some(property) = schema.properties.get(&field.json) else {
                bail!("{full} has a field {} in Go but not in OpenAPI", field.json);
            };
            let numbers: Vec<String> = field.numbers.iter().map(u32::to_string).collect();
            let required = if property.is_required { "!" } else { "" };
            let shape = self.shape(stem, property, wanted)?;
            let pointer = if field.is_pointer { "?" } else { "" };
            write!(text, "  {} {}{required} {shape}{pointer}", numbers.join("."), field.json)?;
            if property.is_required && field.omits_empty {
                text.push_str(" omitted");
            }
            if !property.is_required && !field.omits_empty {
                text.push_str(" written");
            }
            if field.omits_zero {
                text.push_str(" omitzero");
            }
            text.push_str(&property.attributes());
            text.push('\n');
        }
        let described = schema.properties.len() - if schema.is_kind { 2 } else { 0 };
        if described != fields.len() {
            bail!("{full} has {described} fields in OpenAPI and {} in Go", fields.len());
        }
        Ok(text)
    }

    /// The type of a field in our own form, and what it leads to.
    fn shape(&self, stem: &str, property: &Property, wanted: &mut Vec<String>) -> Result<String> {
        let mut shape = property.shape.clone();
        if let Some(full) = &property.refers_to {
            let (package, name) = full.rsplit_once('.').context("a type's name has a package")?;
            let (other, _) = self
                .packages
                .get(package)
                .with_context(|| format!("{full} is in a package that no table is for"))?;
            let short = if *other == stem { name.to_owned() } else { format!("{other}.{name}") };
            shape = shape.replace('@', &short);
            wanted.push(full.clone());
        }
        Ok(shape)
    }
}
