//! A Tenant or a Rack that nodes name stays, and says who they are.

use crate::kinds::PHYSICAL_NODE;
use interlock_api::nodes::FINALIZER_NODE_IN_USE;
use interlock_api::nodes::condition::IN_USE;
use interlock_kernel::conditions::{Condition, Finding, with_all};
use interlock_kernel::metadata::{has_finalizer, is_deleting, put_finalizer, take_finalizer_off};
use interlock_kernel::{Kind, LiveReads, Object, Outside, Place, Read, Step, Write};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How many nodes one message names.
const NAMED: usize = 5;

/// What a Tenant or a Rack is, as far as nodes keep it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Kept {
    /// `Tenant red`
    pub what: String,
    /// What a person does about a node that names it.
    #[serde(deserialize_with = "interlock_kernel::word")]
    pub how: interlock_kernel::Word,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether it has our finalizer.
    pub has_finalizer: bool,
    /// The nodes that name it, by a live list; None: it was not read.
    pub users: Option<Vec<String>>,
    /// What its conditions say.
    pub said: Vec<Condition>,
}

impl Kept {
    /// Reads what keeps an object; `names` says which node names it.
    pub(crate) fn read<O: Outside>(
        object: &Object,
        words: Words,
        live_reads: &LiveReads<O>,
        names: impl Fn(&Object) -> bool,
    ) -> Kept {
        let listed = live_reads.lists.get(&(Place::HUB, PHYSICAL_NODE, None));
        let users = listed.map(|nodes| {
            let users = nodes.iter().filter(|node| names(node));
            users.filter_map(|node| node.metadata.name.clone()).collect()
        });
        Kept {
            what: words.what,
            how: words.how,
            is_terminating: is_deleting(object),
            has_finalizer: has_finalizer(object, FINALIZER_NODE_IN_USE),
            users,
            said: conditions_of(object),
        }
    }
}

/// What an object is called, and what a person does about a node that names it.
pub(crate) struct Words {
    pub(crate) what: String,
    pub(crate) how: &'static str,
}

fn conditions_of(object: &Object) -> Vec<Condition> {
    Vec::deserialize(&object.data["status"]["conditions"]).unwrap_or_default()
}

/// What happens to the finalizer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Keeping {
    /// It is as it should be.
    AsItShould(&'static str),
    /// Put it on.
    PutFinalizer,
    /// List the nodes live: a cache proves no absence.
    ReadNodes,
    /// Say who uses it.
    SayInUse(Finding),
    /// Take it off.
    TakeFinalizerOff,
}

/// What happens to the finalizer. First matching rule wins.
pub(crate) fn keep(kept: &Kept) -> Keeping {
    match (kept.is_terminating, kept.has_finalizer) {
        (false, false) => return Keeping::PutFinalizer,
        (false, true) => return Keeping::AsItShould("it stays while a node names it"),
        (true, false) => return Keeping::AsItShould("it is being deleted"),
        (true, true) => {}
    }
    let Some(users) = &kept.users else { return Keeping::ReadNodes };
    let Some(first) = users.first() else { return Keeping::TakeFinalizerOff };
    let names = users[..users.len().min(NAMED)].join(", ");
    let more = users.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!("{} is being deleted, and has nodes: {names}{more}", kept.what);
    let next = format!("for node {first} and each other: {}", kept.how);
    let finding = Finding::holds(IN_USE, "HasNodes", message).next(next);
    if finding.is_in(&kept.said) {
        return Keeping::AsItShould("it is being deleted, and nodes name it");
    }
    Keeping::SayInUse(finding)
}

/// The one effect of that.
pub(crate) fn step<O: Outside>(
    kind: &Kind,
    object: &Object,
    now: Timestamp,
    keeping: Keeping,
) -> Step<O> {
    let patch = |change| Write::patch(Place::HUB, kind, object, change);
    match keeping {
        Keeping::AsItShould(because) => Step::rest(because),
        Keeping::PutFinalizer => {
            let write = patch(put_finalizer(object, FINALIZER_NODE_IN_USE));
            Step::write(write, "it stays while a node names it")
        }
        Keeping::TakeFinalizerOff => {
            let write = patch(take_finalizer_off(object, FINALIZER_NODE_IN_USE));
            Step::write(write, "by a live list no node names it")
        }
        Keeping::ReadNodes => Step::LiveRead {
            reads: vec![Read::List { place: Place::HUB, kind: PHYSICAL_NODE, namespace: None }],
            because: "only a live read can show that no node names it".to_owned(),
        },
        Keeping::SayInUse(finding) => {
            let known = conditions_of(object);
            let conditions = with_all(&known, &[finding], now, object.metadata.generation);
            let change = json!({ "status": { "conditions": conditions } });
            Step::write(Write::patch_status(Place::HUB, kind, object, change), "nodes name it")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(is_terminating: bool, has_finalizer: bool, users: Option<&[&str]>) -> Keeping {
        let users = users.map(|users| users.iter().map(|user| (*user).to_owned()).collect());
        let what = "Rack r1".to_owned();
        keep(&Kept {
            what,
            how: "delete it",
            is_terminating,
            has_finalizer,
            users,
            said: Vec::new(),
        })
    }

    #[test]
    fn what_nodes_name_stays_and_says_who_they_are() {
        assert_eq!(kept(false, false, None), Keeping::PutFinalizer);
        assert!(matches!(kept(false, true, None), Keeping::AsItShould(_)));
        assert_eq!(kept(true, true, None), Keeping::ReadNodes);
        assert_eq!(kept(true, true, Some(&[])), Keeping::TakeFinalizerOff);
        assert!(matches!(kept(true, false, None), Keeping::AsItShould(_)));
        let many = ["n1", "n2", "n3", "n4", "n5", "n6", "n7"];
        let Keeping::SayInUse(finding) = kept(true, true, Some(&many)) else { panic!() };
        assert_eq!(
            finding.message,
            "Rack r1 is being deleted, and has nodes: n1, n2, n3, n4, n5 and 2 more"
        );
        assert_eq!(finding.next.as_deref(), Some("for node n1 and each other: delete it"));
    }
}
