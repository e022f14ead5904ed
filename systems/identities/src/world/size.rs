//! How large the world is: how many processes, and what may happen how often.

use super::account::{Account, HeldPolicy, HeldRole, arn};
use super::clients::Machine;
use super::people::Left;
use super::{NAME, OWN, SHOP, settings};
use crate::document;
use crate::kinds::{ACCOUNT, POLICY};
use crate::outside::{At, Tags};
use crate::owner::Owner;
use interlock_checker::{Size as Asked, SizeError, SizeKey};
use interlock_kernel::Kind;
use interlock_world::Hostility;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The keys of a size.
pub(super) const KEYS: [SizeKey; 15] = [
    SizeKey::new(
        "whole",
        "1: an IamRoleServiceAccount with all its children, 0: a Policy alone",
        0,
        0,
        1,
    ),
    SizeKey::new("processes", "processes that run the controllers", 2, 1, 2),
    SizeKey::new("crash", "crashes", 0, 0, 2),
    SizeKey::new("faults", "calls whose process stops waiting for the answer", 0, 0, 3),
    SizeKey::new("lags", "calls after which reads show the past", 0, 0, 3),
    SizeKey::new("elapses", "times that the late-call window passes", 2, 0, 7),
    SizeKey::new("drifts", "changes that somebody makes in the cloud", 0, 0, 3),
    SizeKey::new("edits", "changes of what is declared", 0, 0, 3),
    SizeKey::new("deletes", "1: the tenant deletes what it declared", 1, 0, 1),
    SizeKey::new("again", "1: the tenant declares it again afterwards", 0, 0, 1),
    SizeKey::new(
        "there",
        "1: a foreign policy is there, 2: a namesake's, 3: it may be adopted, 4: the status has its id, \
         5: a foreign role uses the policy",
        0,
        0,
        5,
    ),
    SizeKey::new("flights", "steps that are under way at once", 1, 0, 2),
    SizeKey::new("stale", "objects that are out of date at once", 0, 0, 2),
    SizeKey::new("refine", "1: every step is compared with spec/identities-mark", 1, 0, 1),
    SizeKey::new("live", "1: what must happen in the end is checked", 0, 0, 1),
];

/// How large the world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) whole: u64,
    pub(super) processes: u64,
    pub(super) crash: u64,
    pub(super) faults: u64,
    pub(super) lags: u64,
    pub(super) elapses: u64,
    pub(super) drifts: u64,
    pub(super) edits: u64,
    pub(super) deletes: u64,
    pub(super) again: u64,
    pub(super) there: u64,
    pub(super) flights: u64,
    pub(super) stale: u64,
    pub(super) refine: u64,
    pub(super) live: u64,
}

impl Size {
    /// One process, nothing fails, and nobody does anything: what mistakes are made larger from.
    pub(super) const SMALL: Size = Size {
        whole: 0,
        processes: 1,
        crash: 0,
        faults: 0,
        lags: 0,
        elapses: 2,
        drifts: 0,
        edits: 0,
        deletes: 0,
        again: 0,
        there: 0,
        flights: 0,
        stale: 0,
        refine: 0,
        live: 0,
    };

    pub(super) fn read(asked: &Asked) -> Result<Size, SizeError> {
        let [
            whole,
            processes,
            crash,
            faults,
            lags,
            elapses,
            drifts,
            edits,
            deletes,
            again,
            rest @ ..,
        ] = asked.numbers(NAME, &KEYS)?;
        let [there, flights, stale, refine, live] = rest;
        Ok(Size {
            whole,
            processes,
            crash,
            faults,
            lags,
            elapses,
            drifts,
            edits,
            deletes,
            again,
            there,
            flights,
            stale,
            refine,
            live,
        })
    }

    pub(super) fn hostility(&self) -> Hostility {
        // Crashes are counted: each is another process, with another name.
        Hostility::of([self.flights, self.stale, self.crash, 0, 1, 1])
    }

    /// Whether every step is compared with the protocol. It is about one object, which begins absent, is not made
    /// by others, and ends when it is gone; and there a process reads all that it decides by at one moment.
    pub(super) fn is_refined(&self) -> bool {
        let others = [self.whole, self.drifts, self.again, self.there, self.flights];
        self.refine == 1 && others == [0; 5]
    }

    pub(super) fn left(&self) -> Left {
        Left {
            faults: self.faults as u32,
            lags: self.lags as u32,
            elapses: self.elapses as u32,
            drifts: self.drifts as u32,
            edits: self.edits as u32,
            deletes: self.deletes as u32,
            again: self.again as u32,
        }
    }

    /// The kind of what the tenant declares.
    pub(super) fn kind(&self) -> Kind {
        if self.whole == 1 { ACCOUNT } else { POLICY }
    }

    /// What the tenant declares, in one of two ways.
    pub(super) fn declared(&self, number: u32) -> Value {
        let action = if number == 0 { "s3:Get*" } else { "s3:Put*" };
        let statement = json!([{"resource": "arn:aws:s3:::bucket", "action": [action]}]);
        let mut spec = match self.whole {
            0 => json!({"statement": statement}),
            _ => json!({"policy": {"statement": statement}}),
        };
        if self.there == 3 {
            spec["adopt"] = json!("SameName");
        }
        if self.there == 4 {
            spec["arn"] = json!(arn("policy", "/", "others"));
            return json!({"spec": spec, "status": {"policyID": "ANPA1"}});
        }
        json!({"spec": spec})
    }

    /// The cloud at first.
    pub(super) fn first_machine(&self) -> Machine {
        let mut machine = Machine::default();
        if self.there == 0 {
            return machine;
        }
        let owner = Owner {
            uid: "another".to_owned(),
            kind: "policy",
            fleet: settings().fleet.clone(),
            namespace: SHOP.to_owned(),
            name: OWN.to_owned(),
        };
        let At::Name { path, name } = owner.at() else { return machine };
        if self.there == 5 {
            let attached = BTreeSet::from([arn("policy", &path, &name)]);
            let role = HeldRole { path: "/".to_owned(), id: 1, attached, ..HeldRole::default() };
            let roles = BTreeMap::from([("others".to_owned(), role)]);
            machine.account = Account { roles, made: 1, ..Account::default() };
            return machine;
        }
        let (path, name) = match self.there {
            4 => ("/".to_owned(), "others".to_owned()),
            _ => (path, name),
        };
        let is_untagged = matches!(self.there, 1 | 4);
        let tags = if is_untagged { Tags::new() } else { owner.tags() };
        let text = document::of_statements(&[]).to_string();
        let versions = BTreeMap::from([(1, text)]);
        let policy = HeldPolicy { path, id: 1, tags, versions, default: 1 };
        let policies = BTreeMap::from([(name, policy)]);
        machine.account = Account { policies, made: 1, ..Account::default() };
        machine
    }

    /// Why something never happens in this size.
    pub(super) fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "StopWaiting" if self.faults == 0 => Some("in this size every call is answered"),
            "LandLate" | "GetLost" => Some("in this size every call is answered"),
            "AnswerAndLag" | "CatchUp" => Some("in this size reads show what is"),
            "Elapse" => Some("in this size nothing is late"),
            "Drift" | "DriftAway" | "DriftTags" => Some("in this size nobody changes the cloud"),
            "Edit" => Some("in this size nobody changes what is declared"),
            "Delete" => Some("in this size nothing is deleted"),
            "DeclareAgain" => Some("in this size nothing is declared again"),
            _ => None,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = [
            self.whole,
            self.processes,
            self.crash,
            self.faults,
            self.lags,
            self.elapses,
            self.drifts,
            self.edits,
            self.deletes,
            self.again,
            self.there,
            self.flights,
            self.stale,
            self.refine,
            self.live,
        ];
        let pairs = KEYS.iter().zip(values).map(|(key, value)| format!("{}={value}", key.key));
        formatter.write_str(&pairs.collect::<Vec<String>>().join(","))
    }
}
