//! Questions and actions of the rooms.

use crate::account::Account;
use crate::calling::send;
use crate::clock::{Clock, seconds};
use crate::counts::Result as Counted;
use crate::failures::{Meaning, no_token, of_call};
use crate::place::{Kind, Target};
use crate::reading::Reading;
use crate::record::{Known, Number, Record, Said};
use crate::tokens::{NotYet, Tokens};
use interlock_iam::Outcome;
use interlock_iam::client::Client;
use interlock_iam::outcome::{Class, Refusal};
use interlock_identities::outside::{
    Answer, Asked, At, Call, Cloud, FRESH_SECONDS, Failure, Found, Process, Question, Request,
};
use interlock_kernel::{CallRate, Nothing};
use std::sync::Arc;
use std::time::Duration;

/// How long the live read is fresh that a call rests on.
const FRESH: Duration = Duration::from_secs(FRESH_SECONDS.unsigned_abs());

/// How long a step waits until it may begin. Then others have their turn, and it comes back.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(30);

/// What a driver is made of, beside its client.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The identity under which this process holds its lease; another one after each start.
    pub instance: String,
    /// Within this time of being sent a call takes effect, or never.
    pub late_call_window: Duration,
    /// How often the account may be called.
    pub rate: CallRate,
    /// The time since this process started.
    pub clock: Clock,
}

impl Settings {
    /// Those of a process that starts now.
    pub fn of(instance: &str, late_call_window: Duration) -> Settings {
        Settings {
            instance: instance.to_owned(),
            late_call_window,
            rate: CallRate::default(),
            clock: Clock::machine(),
        }
    }
}

/// Asks one cloud account, and changes it. Clones are the same driver.
#[derive(Debug, Clone)]
pub struct Driver(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    account: Account,
    instance: String,
    record: Record,
}

impl Driver {
    /// A driver; no request is made yet.
    pub fn new(client: Client, settings: Settings) -> Driver {
        let Settings { instance, late_call_window, rate, clock } = settings;
        let (record, tokens) = (Record::new(late_call_window), Tokens::new(rate));
        let (home, counts, documents) = Default::default();
        let account = Account { client, tokens, clock, home, counts, documents };
        Driver(Arc::new(Parts { account, instance, record }))
    }

    /// What the cloud and this process know.
    pub async fn answer(&self, question: Question) -> Answer {
        self.0.answer(question, Duration::ZERO).await
    }

    /// The same, once the question may be asked: after a wait for the rate limit, if need be.
    pub async fn answer_in_turn(&self, question: Question) -> Answer {
        self.0.answer(question, TOKEN_TIMEOUT).await
    }

    /// What was called, and waited for, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        let account = &self.0.account;
        account.counts.render(account.tokens.per_second(account.uptime()))
    }

    /// Sends a request, once, if it may be sent. What became of it is in the next answer; an error says
    /// why it is not known to be done.
    pub async fn send(&self, request: Request) -> Result<(), String> {
        self.0.send(request).await
    }
}

impl Parts {
    /// What is known, once the question may be asked; if that takes too long, then that.
    async fn answer(&self, question: Question, at_most: Duration) -> Answer {
        let Question { object, about } = question;
        let token = match object {
            Asked::Calls => Ok(()),
            Asked::Policy { .. } | Asked::Role { .. } | Asked::Provider { .. } => {
                self.account.begin(&about, at_most).await
            }
        };
        let began = self.account.uptime();
        // As of the start: a call that leaves the window during the reading may have taken effect during it.
        let Known { sent, refused, remembered } = self.record.of(&about, began);
        let found = match token {
            Ok(()) => Reading::begun(&self.account).found(&object).await,
            Err(NotYet(wait)) => Found::Failed(no_token(wait)),
        };
        let date = match &found {
            Found::Failed(Failure::Throttled { .. } | Failure::Unavailable { .. }) => None,
            _ => self.account.client.cloud_seconds(),
        };
        let process = Process { instance: self.instance.clone(), uptime: seconds(began) };
        Answer { found, process, date, sent, refused, remembered }
    }

    async fn send(&self, request: Request) -> Result<(), String> {
        let Request { about, decided, at, call } = request;
        let target = self.target(&call, &at).await?;
        let fresh_for = self.may_send(&decided)?;
        let name = call.name();
        let no_token = |NotYet(wait)| format!("{name} waits {wait:?} for the rate limit");
        self.account.further(fresh_for).await.map_err(no_token)?;
        self.may_send(&decided)?;
        let number = self.record.begin(&about, &call, self.account.uptime());
        // If this future is dropped from here on, the call stays on record as unanswered.
        let outcome = send(&self.account, &target, call.clone()).await;
        self.account.counts.called(name, Counted::of(&outcome));
        match outcome {
            Outcome::Done(()) => {
                self.record.done(&about, number);
                Ok(())
            }
            Outcome::Refused(refusal) => self.refused(&about, &call, number, &refusal),
            Outcome::Unknown(why) => Err(format!("{name} may be done: {why}")),
        }
    }

    /// For how long a request may still be sent: if it is of this process, and the live read that it rests
    /// on is fresh.
    fn may_send(&self, decided: &Process) -> Result<Duration, String> {
        let now = self.account.uptime();
        if decided.instance != self.instance {
            return Err("another process decided on this call".to_owned());
        }
        let decided = Duration::from_secs(u64::try_from(decided.uptime).unwrap_or(0));
        let age = now.saturating_sub(decided);
        FRESH
            .checked_sub(age)
            .ok_or_else(|| format!("the live read that this call rests on is {age:?} old"))
    }

    async fn target(&self, call: &Call, at: &At) -> Result<Target, String> {
        let home = Reading::further(&self.account).home().await;
        let home = home.map_err(|failure| format!("the account is not known: {failure:?}"))?;
        if let Call::CreateOpenIdConnectProvider { issuer, .. } = call {
            let arn = home.provider(issuer);
            return Ok(Target { arn, path: String::new(), name: String::new() });
        }
        let target = home.target(Kind::of(call), at);
        target.ok_or_else(|| format!("{} is of another account, or of another kind", shown(at)))
    }

    fn refused(
        &self,
        about: &str,
        call: &Call,
        number: Number,
        refusal: &Refusal,
    ) -> Result<(), String> {
        let now = self.account.uptime();
        if refusal.class == Class::Throttled {
            self.account.tokens.throttled(now);
        }
        match of_call(call, refusal.class) {
            Meaning::Done => {
                self.record.done(about, number);
                return Ok(());
            }
            Meaning::NotSent | Meaning::Credentials => self.record.not_sent(about, number),
            Meaning::Refused(code) => {
                let said = Said { code, message: refusal.to_string() };
                self.record.refused(about, number, said, now);
            }
        }
        Err(format!("the cloud refuses {}: {refusal}", call.name()))
    }
}

fn shown(at: &At) -> String {
    match at {
        At::Name { path, name } => format!("{path}{name}"),
        At::Arn(arn) => arn.clone(),
    }
}

impl interlock_shell::Driver<Cloud> for Driver {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        Ok(self.answer_in_turn(question).await)
    }

    async fn perform(&self, request: Request) -> Result<(), String> {
        self.send(request).await
    }
}

/// For rooms of the same program that work within the API only.
impl interlock_shell::Driver<Nothing> for Driver {
    async fn ask(&self, question: Nothing) -> Result<Nothing, String> {
        match question {}
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}
