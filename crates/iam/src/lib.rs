//! A client of IAM and STS, and an IAM and STS of our own in the hub's store.
//!
//! [`client`] makes the calls that the controllers of identities need, one request for each call, on
//! AWS or on anything that speaks its Query API. Each answer is an [`Outcome`]: done, certainly not
//! done, or not known.
//!
//! [`embedded`] serves the same API from the store, so that `interlock up` needs no account. It
//! verifies signatures and web identity tokens, and evaluates trust, policies and fences.
//!
//! | module | what it has |
//! |---|---|
//! | `arn` | names of resources, taken apart |
//! | `document` | policy documents: read, compared in a canonical form, checked |
//! | `outcome` | what is known after a call |
//! | `client` | typed calls |
//! | `embedded` | the server |

pub mod arn;
pub mod client;
mod clock;
pub mod credentials;
pub mod document;
pub mod embedded;
pub mod http;
pub mod outcome;
mod xml;

pub use clock::Clock;
pub use credentials::{Credentials, Keys, Source};
pub use http::EndpointError;
pub use outcome::Outcome;
