//! What is never done to machines and their ports.

use super::{Keeper, Promise, is_done, may_be_done, named, number, text};
use interlock_kernel::Record;
use std::collections::BTreeMap;

/// No port is open for two tenants.
pub(super) const ONE_TENANT: Promise = Promise {
    name: "OneTenant",
    sentence: "no port of a DPU is opened for a tenant while it is open for another one",
    keeper: || Box::<Ports>::default(),
};

/// Nothing is opened at or under a floor.
pub(super) const FLOORS_HOLD: Promise = Promise {
    name: "FloorsHold",
    sentence: "no port is opened for an epoch that is revoked at its DPU",
    keeper: || Box::<Floors>::default(),
};

/// No machine has two claims.
pub(super) const BOUND_ONCE: Promise = Promise {
    name: "BoundOnce",
    sentence: "a machine is given to a claim only after it was returned by the one before",
    keeper: || Box::<Bound>::default(),
};

/// What an agent opens a port for. A port is named by the term of its record: it is closed whenever it gets another one.
struct Opened<'a> {
    term: &'a str,
    tenant: &'a str,
    node: &'a str,
    epoch: i64,
}

fn opened(record: &Record) -> Option<Opened<'_>> {
    let attach = record.decision.get("Attach").filter(|_| record.controller == "nodes/attach")?;
    Some(Opened {
        term: text(attach, "/term")?,
        tenant: text(attach, "/given/entry/tag/tenant")?,
        node: text(attach, "/given/entry/tag/node")?,
        epoch: number(attach, "/given/entry/tag/epoch")?,
    })
}

/// The tenants that ports are open for, by term.
#[derive(Default)]
struct Ports(BTreeMap<String, (String, i64)>);

impl Keeper for Ports {
    fn hear(&mut self, record: &Record) -> Result<(), String> {
        let closed = match &*record.controller {
            "nodes/attach" => text(&record.decision, "/Detach/term"),
            "nodes/dpu" => ["/Detach/port/term", "/Isolate/port/term", "/Adopt/port/term"]
                .into_iter()
                .find_map(|path| text(&record.decision, path)),
            _ => return Ok(()),
        };
        if let Some(term) = closed.filter(|_| may_be_done(record)) {
            self.0.remove(term);
        }
        let Some(Opened { term, tenant, epoch, .. }) = opened(record).filter(|_| is_done(record))
        else {
            return Ok(());
        };
        match self.0.insert(term.to_owned(), (tenant.to_owned(), epoch)) {
            Some((other, before)) if other != tenant => Err(format!(
                "the port is opened for tenant {tenant} at epoch {epoch} while it is open for tenant \
                 {other} at epoch {before}"
            )),
            Some(_) | None => Ok(()),
        }
    }
}

/// The floors at DPUs, by term and machine.
#[derive(Default)]
struct Floors(BTreeMap<(String, String), i64>);

impl Keeper for Floors {
    fn hear(&mut self, record: &Record) -> Result<(), String> {
        if let Some(isolate) = record.decision.get("Isolate").filter(|_| is_done(record)) {
            let (term, node) = (text(isolate, "/port/term"), text(isolate, "/node"));
            if let (Some(term), Some(node), Some(floor)) = (term, node, number(isolate, "/floor")) {
                let known = self.0.entry((term.to_owned(), node.to_owned())).or_insert(floor);
                *known = floor.max(*known);
            }
        }
        let Some(Opened { term, node, epoch, .. }) = opened(record).filter(|_| is_done(record))
        else {
            return Ok(());
        };
        match self.0.get(&(term.to_owned(), node.to_owned())) {
            Some(floor) if epoch <= *floor => Err(format!(
                "the port is opened for epoch {epoch} of machine {node}; all up to {floor} are revoked"
            )),
            Some(_) | None => Ok(()),
        }
    }
}

/// The machines that were given to claims: the claim, by the uid of the machine.
#[derive(Default)]
struct Bound(BTreeMap<String, String>);

impl Keeper for Bound {
    fn hear(&mut self, record: &Record) -> Result<(), String> {
        let Some(uid) = record.effect.as_ref().and_then(|effect| effect.uid.clone()) else {
            return Ok(());
        };
        let is_returned = record.controller == "nodes/pool"
            && named(&record.decision, &["Node", "Return"]).is_some();
        if is_returned && may_be_done(record) {
            self.0.remove(&uid);
        }
        let is_given = record.controller == "nodes/claims"
            && named(&record.decision, &["Claim", "Bind"]).is_some();
        if !is_given || !is_done(record) {
            return Ok(());
        }
        let tenant = text(&record.facts, "/Claim/tenant/uid").unwrap_or_default();
        let to = format!("{} of tenant {tenant}", record.subject);
        match self.0.insert(uid.clone(), to.clone()) {
            None => Ok(()),
            Some(before) => Err(format!("machine {uid} is given to {to}; {before} has it")),
        }
    }
}
