//! The rules of the packet filter, as JSON that nft reads and lists.
//!
//! One table of family `bridge` for all ports. A frame that a port sends runs through the chain of that port, which
//! drops whatever does not come from the entry's addresses; and no frame of a port or a tunnel reaches the DPU itself.
//! nft sorts sets, and lists a set of one as what is in it; so both sides are compared without order.

use interlock_nodes::outside::Entry;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// The table.
pub(super) const TABLE: &str = "interlock";
/// From the port's name to its chain.
const PORTS: &str = "ports";
/// The ports and tunnels, whose frames do not reach the DPU.
const INSIDE: &str = "inside";

/// What an entry's rules are, and where.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    pub(super) port: &'a str,
    pub(super) tunnel: &'a str,
    pub(super) entry: &'a Entry,
    pub(super) mac: [u8; 6],
}

/// What nft listed of a table.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Listed {
    chains: BTreeMap<String, Value>,
    rules: BTreeMap<String, Vec<Value>>,
    elements: BTreeMap<String, BTreeMap<String, Value>>,
}

fn chain_of(port: &str) -> String {
    format!("port-{port}")
}

fn field(protocol: &str, field: &str) -> Value {
    json!({"payload": {"protocol": protocol, "field": field}})
}

fn drops(mut matches: Vec<Value>) -> Value {
    matches.push(json!({"drop": null}));
    Value::Array(matches)
}

fn is(left: Value, right: impl Into<Value>) -> Value {
    json!({"match": {"op": "==", "left": left, "right": right.into()}})
}

fn is_not(left: Value, right: impl Into<Value>) -> Value {
    json!({"match": {"op": "!=", "left": left, "right": right.into()}})
}

fn one_of(values: impl IntoIterator<Item = String>) -> Value {
    json!({"set": values.into_iter().collect::<Vec<_>>()})
}

/// The address that a machine gives itself (RFC 4291, appendix A), and without which it finds no neighbour.
pub(super) fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let tail = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Ipv6Addr::from(0xfe80_u128 << 112 | u128::from(tail))
}

impl Rules<'_> {
    /// The chain of the port: what is not dropped passes.
    fn chain(&self) -> Vec<Value> {
        let [a, b, c, d, e, f] = self.mac;
        let mac = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
        let (mut four, mut six) = (Vec::new(), Vec::new());
        for address in &self.entry.addresses {
            match address {
                IpAddr::V4(address) => four.push(*address),
                IpAddr::V6(address) => six.push(*address),
            }
        }
        // VLAN tags, LLC and types that nobody knows have no place in either list.
        let mut kinds = Vec::new();
        if !four.is_empty() {
            kinds.extend(["arp", "ip"]);
        }
        if !six.is_empty() {
            kinds.push("ip6");
            six.push(link_local(self.mac));
        }
        if kinds.is_empty() {
            return vec![drops(vec![])];
        }
        let kinds = one_of(kinds.into_iter().map(str::to_owned));
        let mut rules = vec![
            drops(vec![is_not(field("ether", "saddr"), mac.clone())]),
            drops(vec![is_not(field("ether", "type"), kinds)]),
        ];
        if !four.is_empty() {
            let own = four.iter().map(ToString::to_string);
            // Who asks whether an address is free has none yet.
            let probe = own.clone().chain(["0.0.0.0".to_owned()]);
            rules.extend([
                drops(vec![is_not(field("arp", "saddr ether"), mac)]),
                drops(vec![is_not(field("arp", "saddr ip"), one_of(probe))]),
                drops(vec![is_not(field("ip", "saddr"), one_of(own))]),
            ]);
        }
        if !six.is_empty() {
            rules.extend(of_version_6(&six));
        }
        rules
    }

    /// One transaction that makes the table, if need be, and the rules of this port, whatever they were before.
    pub(super) fn batch(&self) -> String {
        let mut commands = table(TABLE);
        commands.extend(self.commands(TABLE));
        let element = |map: &str, name: &str, verdict: Value| {
            json!({"add": {"element": {"family": "bridge", "table": TABLE, "name": map,
                "elem": [[name, verdict]]}}})
        };
        commands.push(element(PORTS, self.port, self.verdict()));
        commands.push(element(INSIDE, self.port, json!({"drop": null})));
        commands.push(element(INSIDE, self.tunnel, json!({"drop": null})));
        json!({"nftables": commands}).to_string()
    }

    /// One transaction that adds all rules to a table of that name and removes it: it changes nothing, and fails
    /// where rules cannot be added.
    pub(super) fn trial(&self, name: &str) -> String {
        let mut commands = table(name);
        commands.extend(self.commands(name));
        commands.push(json!({"delete": {"table": {"family": "bridge", "name": name}}}));
        json!({"nftables": commands}).to_string()
    }

    fn commands(&self, table: &str) -> Vec<Value> {
        let chain = json!({"family": "bridge", "table": table, "name": chain_of(self.port)});
        let mut commands =
            vec![json!({"add": {"chain": chain}}), json!({"flush": {"chain": chain}})];
        commands.extend(self.chain().into_iter().map(|it| rule(table, &chain_of(self.port), it)));
        commands
    }

    fn verdict(&self) -> Value {
        json!({"jump": {"target": chain_of(self.port)}})
    }

    /// What is listed otherwise than `batch` made it, in words.
    pub(super) fn differs(&self, listed: &Listed) -> Option<String> {
        for (name, hook, jump) in base() {
            let chain = json!({"type": "filter", "hook": hook, "prio": -300, "policy": "accept"});
            if listed.chains.get(name) != Some(&chain) || listed.of(name) != [without_order(&jump)]
            {
                return Some(format!("chain {name} of nft table bridge {TABLE} was changed"));
            }
        }
        let expected: Vec<Value> = self.chain().iter().map(without_order).collect();
        if listed.of(&chain_of(self.port)) != expected {
            return Some(format!("the rules of {} are not those of its entry", self.port));
        }
        let drop = json!({"drop": null});
        let elements = [
            (PORTS, self.port, self.verdict()),
            (INSIDE, self.port, drop.clone()),
            (INSIDE, self.tunnel, drop),
        ];
        let missing = |it: &&(&str, &str, Value)| {
            listed.elements.get(it.0).and_then(|map| map.get(it.1)) != Some(&it.2)
        };
        let (map, name, _) = elements.iter().find(missing)?;
        Some(format!("{name} is not in the map {map} of nft table bridge {TABLE}"))
    }
}

fn of_version_6(six: &[Ipv6Addr]) -> Vec<Value> {
    let own = six.iter().map(ToString::to_string);
    // Who asks whether an address is free has none yet.
    let probe = own.chain(["::".to_owned()]);
    let message = || field("icmpv6", "type");
    let unspecified = || is(field("ip6", "saddr"), "::");
    // nft 1.0.6 does not know the target of an advertisement by name.
    let target = json!({"payload": {"base": "th", "offset": 64, "len": 128}});
    let targets = one_of(six.iter().map(|it| format!("0x{:032x}", u128::from(*it))));
    let misleading = one_of(["nd-router-advert", "nd-redirect"].map(str::to_owned));
    vec![
        drops(vec![is_not(field("ip6", "saddr"), one_of(probe))]),
        drops(vec![unspecified(), is_not(json!({"meta": {"key": "l4proto"}}), "ipv6-icmp")]),
        drops(vec![unspecified(), is_not(message(), "nd-neighbor-solicit")]),
        drops(vec![is(message(), misleading)]),
        drops(vec![is(message(), "nd-neighbor-advert"), is_not(target, targets)]),
    ]
}

/// The chains that frames run through first, each with its hook and its only rule.
fn base() -> [(&'static str, &'static str, Value); 2] {
    let jump = |map: &str| json!([{"vmap": {"key": {"meta": {"key": "iifname"}}, "data": format!("@{map}")}}]);
    [("pre", "prerouting", jump(PORTS)), ("local", "input", jump(INSIDE))]
}

fn table(name: &str) -> Vec<Value> {
    let mut commands = vec![json!({"add": {"table": {"family": "bridge", "name": name}}})];
    for map in [PORTS, INSIDE] {
        commands.push(json!({"add": {"map": {"family": "bridge", "table": name, "name": map,
            "type": "ifname", "map": "verdict"}}}));
    }
    for (chain, hook, jump) in base() {
        commands.push(json!({"add": {"chain": {"family": "bridge", "table": name, "name": chain,
            "type": "filter", "hook": hook, "prio": -300, "policy": "accept"}}}));
        commands
            .push(json!({"flush": {"chain": {"family": "bridge", "table": name, "name": chain}}}));
        commands.push(rule(name, chain, jump));
    }
    commands
}

fn rule(table: &str, chain: &str, expression: Value) -> Value {
    json!({"add": {"rule": {"family": "bridge", "table": table, "chain": chain, "expr": expression}}})
}

/// What lists the whole table; or, in several runs, what concerns one port. A run of nft lists one chain: of two, it
/// reads the sets of the last one only (1.0.6).
pub(super) fn listing(port: Option<&str>) -> Vec<String> {
    let Some(port) = port else {
        let table = json!({"family": "bridge", "name": TABLE});
        return vec![json!({"nftables": [{"list": {"table": table}}]}).to_string()];
    };
    let of = |kind: &str, name: &str| json!({"list": {kind: {"family": "bridge", "table": TABLE, "name": name}}});
    let runs = [
        vec![of("chain", &chain_of(port))],
        vec![of("chain", "pre"), of("map", PORTS)],
        vec![of("chain", "local"), of("map", INSIDE)],
    ];
    runs.into_iter().map(|commands| json!({"nftables": commands}).to_string()).collect()
}

/// A value with its sets sorted, and a set of one as what is in it.
fn without_order(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(without_order).collect(),
        Value::Object(fields) => {
            if let Some(Value::Array(set)) = fields.get("set").filter(|_| fields.len() == 1) {
                let mut set: Vec<Value> = set.iter().map(without_order).collect();
                set.sort_by_key(Value::to_string);
                set.dedup();
                return if set.len() == 1 { set.remove(0) } else { json!({"set": set}) };
            }
            fields.iter().map(|(name, value)| (name.clone(), without_order(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

impl Listed {
    /// Adds what nft printed: one document for each command. False if it is not understood.
    pub(super) fn read(&mut self, text: &str) -> bool {
        for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            let document = document.unwrap_or_default();
            let Some(items) = document["nftables"].as_array() else { return false };
            items.iter().for_each(|item| self.add(item));
        }
        true
    }

    fn add(&mut self, item: &Value) {
        let name = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
        if let Some(chain) = item.get("chain") {
            let fields = ["type", "hook", "prio", "policy"];
            let spec =
                fields.iter().filter_map(|it| Some(((*it).to_owned(), chain.get(*it)?.clone())));
            self.chains.insert(name(chain, "name"), Value::Object(spec.collect()));
        }
        if let Some(rule) = item.get("rule") {
            // With a chain of several hundred ports in one listing, each rule goes to its own.
            let rules = self.rules.entry(name(rule, "chain")).or_default();
            rules.push(without_order(&rule["expr"]));
        }
        if let Some(map) = item.get("map") {
            let elements = self.elements.entry(name(map, "name")).or_default();
            for element in map["elem"].as_array().into_iter().flatten() {
                if let (Some(key), verdict) = (element[0].as_str(), &element[1]) {
                    elements.insert(key.to_owned(), verdict.clone());
                }
            }
        }
    }

    fn of(&self, chain: &str) -> &[Value] {
        self.rules.get(chain).map_or(&[], Vec::as_slice)
    }
}
