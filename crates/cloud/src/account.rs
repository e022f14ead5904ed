//! The account that is called: its client, its rate limit, and which account it is.

use crate::clock::Clock;
use crate::place::Home;
use crate::tokens::Tokens;
use interlock_iam::client::Client;
use std::time::Duration;
use tokio::sync::OnceCell;

/// One cloud account.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) client: Client,
    pub(crate) tokens: Tokens,
    pub(crate) clock: Clock,
    /// Which account the credentials are of, once STS has said so.
    pub(crate) home: OnceCell<Home>,
}

impl Account {
    pub(crate) fn uptime(&self) -> Duration {
        self.clock.uptime()
    }
}
