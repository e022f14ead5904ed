//! The Kubernetes API over the store, with logical clusters, in one process.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use interlock_apiserver::{Listening, Server, Transport};
//!
//! let server = Server::in_memory().await?;
//! let listening = Listening::on(&server, "127.0.0.1:0".parse()?, Transport::InTheClear).await?;
//! println!("the API is at http://{}", listening.address());
//! listening.run().await;
//! # Ok(()) }
//! ```
//!
//! A request goes one way: [`gate`](gate) says who calls and whether they may, `handlers` decode, default, validate
//! and commit, `handlers::render` shows what is stored. `background` is what the server does by itself.

pub mod access;
mod admission;
mod admission_registration;
mod age;
mod apply;
pub mod audit;
mod background;
mod behaviour;
mod body;
mod brought;
mod call;
mod clusters;
mod crd;
mod decode;
mod discovery;
mod endpoints;
mod flowcontrol;
mod gate;
mod handlers;
mod health;
mod heavy;
mod http;
mod impersonation;
mod in_process;
mod kinds;
pub mod kubeconfig;
pub mod limits;
pub mod metrics;
mod name;
mod negotiate;
mod object;
mod openapi;
mod openapi_cache;
mod patch;
mod peers;
mod pipe;
mod pod_streams;
mod protobuf;
mod quota_locks;
mod random;
mod request;
mod resource;
mod schema;
mod selector;
mod serve;
mod server;
mod stall;
mod standing;
mod start;
mod status;
mod storage;
mod stored_bytes;
mod stored_roles;
pub mod streams;
mod table;
mod timestamp;
mod upgrade;

pub use access::Identity;
pub use admission_registration::{Network, WebhookReach};
pub use body::Stalled;
pub use gate::Caller;
pub use http::Body;
pub use in_process::InProcess;
pub use serve::{ListenError, Listening, Transport};
pub use server::{Clock, Config, Random, Server};
pub use start::StartError;
pub use status::Status;

pub use interlock_store::{OpenError, Recovery};
