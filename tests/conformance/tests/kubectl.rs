//! The real kubectl against a real `interlock serve`, over TLS.
//!
//! `cargo xtask test-real` runs these with each kubectl that it knows of. Several versions can be named:
//! `INTERLOCK_KUBECTL=/opt/1.30/kubectl:/opt/1.33/kubectl`.

#[path = "kubectl/access.rs"]
mod access;
#[path = "kubectl/applying.rs"]
mod applying;
#[path = "kubectl/changing.rs"]
mod changing;
#[path = "kubectl/clusters.rs"]
mod clusters;
#[path = "kubectl/custom.rs"]
mod custom;
#[path = "kubectl/deleting.rs"]
mod deleting;
#[path = "kubectl/identities.rs"]
mod identities;
#[path = "kubectl/inert.rs"]
mod inert;
#[path = "kubectl/issuers.rs"]
mod issuers;
#[path = "kubectl/reading.rs"]
mod reading;
#[path = "kubectl/world.rs"]
mod world;
