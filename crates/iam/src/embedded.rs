//! An IAM and STS of our own: the Query API over the hub's store.
//!
//! A call is decided by a pure function on all there is, then committed as one transaction, then
//! answered. What AWS documents, it does; where it differs, `docs/iam-ledger.md` says why.
//!
//! | module | what it has |
//! |---|---|
//! | `serve` | connections, on loopback |
//! | `gate` | who calls, and whether they may |
//! | `signature` | Signature Version 4 |
//! | `actions` | the calls, by name |
//! | `roles`, `role_policies`, `policies`, `providers` | what each call does |
//! | `sts`, `token`, `keys`, `session` | tokens of service accounts exchanged for sessions |
//! | `rights`, `evaluate` | what policies and fences decide |
//! | `state` | what there is, in memory and in the store |
//! | `limits`, `fault`, `parameters`, `context` | what may be, refusals, forms, lists |

mod actions;
mod context;
mod evaluate;
mod fault;
mod gate;
mod keys;
mod limits;
mod parameters;
mod policies;
mod providers;
mod rights;
mod role_policies;
mod roles;
mod serve;
mod session;
mod signature;
mod state;
mod sts;
mod token;

pub use actions::calls;
pub use evaluate::Decision;
pub use keys::{Fetched, HttpKeys, Keys};
pub use serve::{ListenError, Listening};
pub use session::Session;

use crate::{Clock, Credentials};
use interlock_store::Store;
use ring::rand::{SecureRandom, SystemRandom};
use session::Secret;
use state::State;
use std::sync::Arc;
use tokio::sync::RwLock;

/// What a server is made of.
pub struct Settings {
    /// Twelve digits.
    pub account: String,
    /// The keys that may do everything.
    pub root: Credentials,
    /// The time of sessions and signatures.
    pub clock: Clock,
    /// Where the keys of issuers come from.
    pub keys: Arc<dyn Keys>,
    /// Whether issuers on this machine may be without TLS; AWS accepts none of these.
    pub http_issuers: bool,
}

/// Why a server does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The account is not one.
    #[error("{0:?} is no account: an account has twelve digits")]
    Account(String),
    /// The store does not give what is in it.
    #[error("IAM's objects cannot be read from the store: {0}")]
    Store(String),
    /// The system gave no random bytes.
    #[error("the machine gives no random bytes")]
    Random,
}

/// IAM and STS for one account.
pub struct Iam<S> {
    store: Arc<S>,
    settings: Settings,
    secret: Secret,
    /// Whoever writes has all of it, so that a decision still holds when it is committed.
    state: RwLock<State>,
}

impl<S: Store> Iam<S> {
    /// Reads what there is.
    pub async fn start(store: Arc<S>, settings: Settings) -> Result<Iam<S>, StartError> {
        let account = &settings.account;
        if account.len() != 12 || !account.bytes().all(|it| it.is_ascii_digit()) {
            return Err(StartError::Account(account.clone()));
        }
        let mut fresh = [0; 32];
        SystemRandom::new().fill(&mut fresh).map_err(|_| StartError::Random)?;
        let secret = state::secret(&*store, account, fresh).await.map_err(StartError::Store)?;
        let state = State::load(&*store, account).await.map_err(StartError::Store)?;
        Ok(Iam { store, settings, secret: Secret::new(&secret), state: RwLock::new(state) })
    }
}

/// A new id: a prefix and letters and digits that nobody else has.
fn fresh_id(prefix: &str) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut bytes = [0_u8; 17];
    SystemRandom::new().fill(&mut bytes).expect("the machine has a source of random numbers");
    let letters = bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    prefix.chars().chain(letters).collect()
}
