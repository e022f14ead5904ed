//! Identities: a service account gets a role and a policy in the cloud, and they stay as asked for.
//!
//! * `irsa`: makes of an identity its policy, its role and its service account.
//! * `policy`: keeps one cloud policy as declared. `role`: the same of a role, whose trust follows the Grant.
//! * `providers`: the cloud knows the issuer of each cluster. `entries`: a Grant lists no Role that is gone.
//! * `outside`: what is asked of the cloud, and done to it. `document`: policy documents. `owner`: whose a cloud
//!   object is. `journal`: when a call may be made. `standing`: how far an object is.
//! * `world`: the shipped rooms, explored.
//! * `seed`: the IrsaOperator specification as its author wrote it, defects included.
//! * `fixed`: one effect per pass, a worker that is always given back, and repair after drift.
//! * `spec`: the protocol, with drift, crashes and deletion.
//! * `late_create`: when absence in the cloud may be believed.
//! * `mark`: the same for several processes; `rights`: the trust of a role follows the Grant.

pub mod document;
pub mod entries;
pub mod fixed;
pub mod irsa;
pub mod journal;
pub mod kinds;
pub mod late_create;
pub mod mark;
pub mod outside;
pub mod owner;
pub mod policy;
pub mod providers;
mod queue;
pub mod rights;
pub mod role;
pub mod seed;
pub mod settings;
mod speak;
pub mod spec;
pub mod standing;
mod subject;
#[cfg(test)]
mod testing;
mod valid;
pub mod world;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![
        seed::ENTRY,
        fixed::ENTRY,
        spec::ENTRY,
        late_create::ENTRY,
        mark::ENTRY,
        rights::ENTRY,
        world::ENTRY,
        world::placed::ENTRY,
    ]
}
