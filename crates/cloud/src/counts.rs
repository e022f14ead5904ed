//! What was called, and how long was waited for tokens, as Prometheus reads it.

use interlock_iam::Outcome;
use interlock_iam::outcome::Class;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is counted of one account.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// By action and result.
    calls: BTreeMap<(String, Result), u64>,
    waits: u64,
    waited: Duration,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Result {
    Done,
    /// There is no such thing: for a read an answer like any other.
    NotFound,
    Throttled,
    Forbidden,
    Credentials,
    Refused,
    /// There was no connection.
    NotSent,
    /// There was no answer, or one that does not say.
    Unknown,
}

impl Result {
    pub(crate) fn of<T>(outcome: &Outcome<T>) -> Result {
        let class = match outcome {
            Outcome::Done(_) => return Result::Done,
            Outcome::Unknown(_) => return Result::Unknown,
            Outcome::Refused(refusal) => refusal.class,
        };
        match class {
            Class::NoSuchEntity => Result::NotFound,
            Class::Throttled => Result::Throttled,
            Class::AccessDenied => Result::Forbidden,
            Class::Credentials => Result::Credentials,
            Class::NotSent => Result::NotSent,
            Class::EntityAlreadyExists
            | Class::DeleteConflict
            | Class::LimitExceeded
            | Class::MalformedPolicyDocument
            | Class::InvalidInput
            | Class::ConcurrentModification
            | Class::UnmodifiableEntity
            | Class::PolicyNotAttachable
            | Class::IssuerUnreachable
            | Class::IdentityToken
            | Class::Other => Result::Refused,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Result::Done => "done",
            Result::NotFound => "not_found",
            Result::Throttled => "throttled",
            Result::Forbidden => "forbidden",
            Result::Credentials => "credentials",
            Result::Refused => "refused",
            Result::NotSent => "not_sent",
            Result::Unknown => "unknown",
        }
    }
}

impl Counts {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn called(&self, action: &str, result: Result) {
        *self.inner().calls.entry((action.to_owned(), result)).or_default() += 1;
    }

    pub(crate) fn waited(&self, time: Duration) {
        if !time.is_zero() {
            let mut inner = self.inner();
            inner.waits += 1;
            inner.waited += time;
        }
    }

    pub(crate) fn render(&self, per_second: u32) -> String {
        let inner = self.inner();
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, lines: &[(String, String)]| {
            let _ = writeln!(text, "# HELP interlock_cloud_{name} {help}");
            let _ = writeln!(text, "# TYPE interlock_cloud_{name} {kind}");
            for (rest, value) in lines {
                let _ = writeln!(text, "interlock_cloud_{name}{rest} {value}");
            }
        };
        let calls = inner.calls.iter().map(|((action, result), count)| {
            let labels = format!("{{action=\"{action}\",result=\"{}\"}}", result.word());
            (labels, count.to_string())
        });
        let calls: Vec<_> = calls.collect();
        family("calls_total", "counter", "Calls to IAM and STS, by result.", &calls);
        let waits = [
            ("_sum".to_owned(), inner.waited.as_secs_f64().to_string()),
            ("_count".to_owned(), inner.waits.to_string()),
        ];
        family("token_wait_seconds", "summary", "Waits for the rate limit.", &waits);
        let rate = [(String::new(), per_second.to_string())];
        family("calls_per_second", "gauge", "Calls a second that are allowed now.", &rate);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_iam::outcome::{Refusal, Unknown};

    #[test]
    fn what_is_counted_can_be_read() {
        let refused = |code: &str| {
            let (class, code) = (Class::of(code), code.to_owned());
            Result::of(&Outcome::<()>::Refused(Refusal { class, code, message: String::new() }))
        };
        let counts = Counts::default();
        counts.called("GetRole", Result::of(&Outcome::Done(())));
        counts.called("GetRole", Result::of(&Outcome::Done(())));
        counts.called("GetRole", refused("NoSuchEntity"));
        counts.called("CreateRole", refused("AccessDenied"));
        counts.called("CreateRole", refused("Throttling"));
        counts.called("CreateRole", refused("ExpiredToken"));
        counts.called("CreateRole", refused("LimitExceeded"));
        counts.called("CreateRole", Result::of(&Outcome::<()>::Unknown(Unknown::Deadline)));
        counts.waited(Duration::ZERO);
        counts.waited(Duration::from_millis(1_500));
        let text = counts.render(5);
        for expected in [
            "calls_total{action=\"GetRole\",result=\"done\"} 2",
            "calls_total{action=\"GetRole\",result=\"not_found\"} 1",
            "calls_total{action=\"CreateRole\",result=\"forbidden\"} 1",
            "calls_total{action=\"CreateRole\",result=\"throttled\"} 1",
            "calls_total{action=\"CreateRole\",result=\"credentials\"} 1",
            "calls_total{action=\"CreateRole\",result=\"refused\"} 1",
            "calls_total{action=\"CreateRole\",result=\"unknown\"} 1",
            "token_wait_seconds_sum 1.5",
            "token_wait_seconds_count 1",
            "calls_per_second 5",
        ] {
            let expected = format!("\ninterlock_cloud_{expected}\n");
            assert!(text.contains(&expected), "{expected} is not in\n{text}");
        }
    }
}
