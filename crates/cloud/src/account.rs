//! The account that is called: its client, its rate limit, and which account it is.

use crate::clock::Clock;
use crate::counts::Counts;
use crate::documents::Documents;
use crate::place::Home;
use crate::tokens::{NotYet, Tokens};
use interlock_iam::client::Client;
use std::time::Duration;
use tokio::sync::OnceCell;

/// A clock may say that no time has passed.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// One cloud account.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) client: Client,
    pub(crate) tokens: Tokens,
    pub(crate) clock: Clock,
    /// Which account the credentials are of, once STS has said so.
    pub(crate) home: OnceCell<Home>,
    pub(crate) counts: Counts,
    pub(crate) documents: Documents,
}

impl Account {
    pub(crate) fn uptime(&self) -> Duration {
        self.clock.uptime()
    }

    /// Waits until a step about an object may begin. A reservation holds for a second or two only:
    /// whoever came back later, from a queue, would find it given up, reserve anew, and so for ever while
    /// many wait.
    pub(crate) async fn begin(&self, about: &str, at_most: Duration) -> Result<(), NotYet> {
        self.wait(at_most, || self.tokens.begin(about, self.uptime())).await
    }

    /// Waits for the token of one more request of a step that has begun.
    pub(crate) async fn further(&self, at_most: Duration) -> Result<(), NotYet> {
        self.wait(at_most, || self.tokens.further(self.uptime())).await
    }

    async fn wait(
        &self,
        at_most: Duration,
        take: impl Fn() -> Result<(), NotYet>,
    ) -> Result<(), NotYet> {
        let mut waited = Duration::ZERO;
        let result = loop {
            let Err(NotYet(wait)) = take() else { break Ok(()) };
            let wait = wait.max(SHORTEST_WAIT);
            if waited + wait > at_most {
                break Err(NotYet(wait));
            }
            tokio::time::sleep(wait).await;
            waited += wait;
        };
        self.counts.waited(waited);
        result
    }
}
