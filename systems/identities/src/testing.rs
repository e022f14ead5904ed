//! A cloud for the tests of the rooms: every call takes effect at once, unless a test says otherwise.

use crate::outside::{
    Answer, Call, Cloud, Code, Failure, Found, Process, Question, Refusal, Remembered, Request,
    Sent,
};
use crate::settings::Settings;
use crate::world::account::Account;
use interlock_kernel::testing::Machine;
use std::cell::Cell;
use std::sync::Arc;

/// What happens to the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// They are done and answered.
    Answered,
    /// They are done, and the answer is lost.
    Unheard,
    /// They are refused.
    Refused(Code),
}

/// A cloud account, and the client of one process.
#[derive(Debug, Clone)]
pub(crate) struct FakeCloud {
    pub(crate) account: Account,
    pub(crate) process: Process,
    pub(crate) sent: Vec<Sent>,
    pub(crate) refused: Option<Refusal>,
    pub(crate) remembered: Remembered,
    pub(crate) calls: Calls,
    pub(crate) failure: Option<Failure>,
    pub(crate) made: Vec<&'static str>,
    /// How often the account was read.
    reads: Cell<usize>,
}

impl FakeCloud {
    pub(crate) fn new() -> FakeCloud {
        FakeCloud {
            account: Account::default(),
            process: Process { instance: "me".to_owned(), uptime: 1000 },
            sent: Vec::new(),
            refused: None,
            remembered: Remembered::default(),
            calls: Calls::Answered,
            failure: None,
            made: Vec::new(),
            reads: Cell::default(),
        }
    }

    /// How often the account was read since the last time.
    pub(crate) fn take_reads(&self) -> usize {
        self.reads.take()
    }

    /// The late-call window passes.
    pub(crate) fn pass(&mut self, seconds: i64) {
        self.process.uptime += seconds;
        let now = self.process.uptime;
        self.sent.retain(|sent| sent.at + 60 > now);
        if seconds >= 600 {
            self.remembered = Remembered::default();
        }
    }

    /// The process is started again.
    pub(crate) fn restart(&mut self) {
        self.process = Process { instance: format!("{}-again", self.process.instance), uptime: 5 };
        self.sent.clear();
        self.refused = None;
        self.remembered = Remembered::default();
    }

    /// The calls since the last time.
    pub(crate) fn take(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.made)
    }
}

impl Machine<Cloud> for FakeCloud {
    fn ask(&self, question: &Question) -> Answer {
        let found = self.account.found(&question.object);
        self.reads.set(self.reads.get() + usize::from(found != Found::NotAsked));
        Answer {
            found: self.failure.clone().map_or(found, Found::Failed),
            process: self.process.clone(),
            date: Some(1_000_000 + self.process.uptime),
            sent: self.sent.clone(),
            refused: self.refused.clone(),
            remembered: self.remembered,
        }
    }

    fn perform(&mut self, request: &Request) -> bool {
        self.made.push(request.call.name());
        let at = self.process.uptime;
        let outcome = match self.calls {
            Calls::Refused(code) => Err(code),
            Calls::Answered | Calls::Unheard => self.account.apply(&request.at, &request.call),
        };
        let call: Call = request.call.clone();
        self.remembered = self.remembered.sends(&call);
        match outcome {
            Ok(()) => {
                let is_answered = self.calls == Calls::Answered;
                if is_answered {
                    self.remembered = self.remembered.learns(&call);
                }
                self.sent.push(Sent { call, is_answered, at });
                self.refused = None;
            }
            Err(code) => {
                let message = format!("{code:?}");
                self.refused = Some(Refusal { call, code, message, at });
            }
        }
        true
    }
}

/// The settings of the tests.
pub(crate) fn settings() -> Arc<Settings> {
    Arc::new(Settings {
        provider_arn: Some("arn:aws:iam::1:oidc-provider/issuer.example".to_owned()),
        cluster_name: Some("old".to_owned()),
        ..Settings::of_fleet("fleet")
    })
}
