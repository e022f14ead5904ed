//! The driver of identities: asks a cloud account, and changes it, one request at a time.
//!
//! The rooms of `interlock-identities` decide; [`Driver`] carries out what they decided over the client of
//! `interlock-iam`, and keeps the promises that the rooms rely on:
//!
//! * A call is on record before its first byte is sent (`record`). A call whose answer was lost, or that was
//!   cut off, shows as unanswered until the late-call window is over.
//! * A call that another process decided on, or that rests on a live read which is too old, is never sent.
//! * One action is one request. Nothing is repeated here.
//! * No request is sent without a token of the account (`tokens`). A step that has begun goes before all who
//!   wait to begin.
//!
//! | module | what it has |
//! |---|---|
//! | `driver` | questions and actions of the rooms |
//! | `reading` | a question as requests |
//! | `calling` | an action as one request |
//! | `account` | the account that is called |
//! | `place` | where a cloud object is, in the account that the credentials are of |
//! | `record` | what was sent, and what was refused |
//! | `tokens` | the rate limit of the account |
//! | `counts` | what was called, and waited for |
//! | `documents` | documents of policy versions that were read or written |
//! | `failures` | what an outcome means to a room |

mod account;
mod calling;
mod clock;
mod counts;
mod documents;
mod driver;
mod failures;
mod place;
mod reading;
mod record;
mod tokens;

pub use clock::Clock;
pub use driver::{Driver, Settings};
pub use place::kind_of;
