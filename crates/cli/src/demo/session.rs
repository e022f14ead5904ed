//! The cloud role of the ledger in the hands of the process that it is for: at its start each writer shows STS its own
//! token, and the one that the owner before it had, and says in a log outside what STS answered.
//!
//! The token of the last owner is kept outside, too, in a file that its user alone may read: what somebody has who
//! copied it from the cluster that the ledger left.

use super::judged;
use crate::output;
use anyhow::Context;
use interlock_apiserver::access::private_file;
use interlock_iam::client::{self, Client, WebIdentity};
use interlock_iam::{Credentials, Outcome};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file in which each writer says what STS answered.
const SESSIONS: &str = "sessions";
/// The file with the token of the last owner.
const TOKEN: &str = "token";
/// The name of every session: with that of the role it is the same after each move.
const NAME: &str = "ledger";
/// How long a writer waits before it asks an STS again that did not answer.
const AGAIN: Duration = Duration::from_millis(200);

/// What STS answers to a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// The id of the role that the token opens.
    Opened(String),
    /// Why it opens none.
    Refused(String),
}

/// What a writer was answered at its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) epoch: i64,
    /// To its own token.
    own: Answer,
    /// To the token of the owner before it; None: the writer knows of none.
    before: Option<Before>,
}

/// What STS answers to the token of an owner that has the namespace no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Before {
    epoch: i64,
    answer: Answer,
}

/// A token, and the epoch of the owner that it was issued to.
#[derive(Serialize, Deserialize)]
struct Kept {
    epoch: i64,
    token: String,
}

/// What a process has in its environment about its role, as every SDK of AWS reads it.
struct Role {
    sts: Client,
    arn: String,
    token: String,
}

impl Role {
    fn of_process() -> anyhow::Result<Role> {
        let file = variable("AWS_WEB_IDENTITY_TOKEN_FILE")?;
        let token = std::fs::read_to_string(&file);
        let token = token.with_context(|| format!("cannot read the token in {file}"))?;
        let endpoint = variable("AWS_ENDPOINT_URL_STS").ok();
        let settings = client::Settings { endpoint, ..client::Settings::default() };
        // The request is not signed: the token says who asks.
        let sts = Client::new(settings, Credentials::lasting("", ""));
        let sts = sts.context("cannot use AWS_ENDPOINT_URL_STS")?;
        Ok(Role { sts, arn: variable("AWS_ROLE_ARN")?, token })
    }

    /// Asks until STS answers.
    async fn assume(&self, token: &str) -> Answer {
        let identity = WebIdentity {
            role: self.arn.clone(),
            session: NAME.to_owned(),
            token: token.to_owned(),
            seconds: None,
        };
        loop {
            match self.sts.assume_role_with_web_identity(&identity).await {
                Outcome::Done(session) => return Answer::Opened(session.assumed_role_id),
                // Without a code no server has answered.
                Outcome::Refused(refusal) if !refusal.code.is_empty() => {
                    return Answer::Refused(refusal.code);
                }
                Outcome::Refused(_) | Outcome::Unknown(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }
}

fn variable(name: &str) -> anyhow::Result<String> {
    std::env::var(name).with_context(|| format!("the process has no variable {name}"))
}

/// Asks STS in a thread of its own: the writer does not wait for the cloud.
pub(super) fn ask_beside(directory: PathBuf, epoch: i64) {
    std::thread::spawn(move || {
        if let Err(error) = ask(&directory, epoch) {
            output::complain(&format!("error: {error:#}"));
        }
    });
}

/// Says what STS answers to the token of this process, and to that of the owner before it.
fn ask(directory: &Path, epoch: i64) -> anyhow::Result<()> {
    let role = match Role::of_process() {
        Ok(role) => role,
        Err(error) => {
            let own = Answer::Refused(format!("{error:#}"));
            return say(directory, &Session { epoch, own, before: None });
        }
    };
    let file = directory.join(TOKEN);
    let kept = private_file::read(&file);
    let kept = kept.with_context(|| format!("cannot read {}", file.display()))?;
    let kept = kept.and_then(|text| serde_json::from_str::<Kept>(&text).ok());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let session = runtime.context("cannot ask STS")?.block_on(async {
        let own = role.assume(&role.token).await;
        let before = match kept.filter(|kept| kept.epoch != epoch) {
            Some(Kept { epoch, token }) => {
                Some(Before { epoch, answer: role.assume(&token).await })
            }
            None => None,
        };
        Session { epoch, own, before }
    });
    say(directory, &session)?;
    let kept = serde_json::to_vec(&Kept { epoch, token: role.token }).context("a token")?;
    private_file::replace(&file, &kept).with_context(|| format!("cannot write {}", file.display()))
}

fn say(directory: &Path, session: &Session) -> anyhow::Result<()> {
    let file = directory.join(SESSIONS);
    let cannot = || format!("cannot write {}", file.display());
    let line = serde_json::to_string(session).context("a session")?;
    let opened = OpenOptions::new().create(true).append(true).open(&file);
    // In one piece: a line is there or not.
    opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).with_context(cannot)
}

/// What all writers were answered, the first one first.
pub(super) fn read(directory: &Path) -> Vec<Session> {
    let lines = super::records::read_lines(&directory.join(SESSIONS));
    lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Whether the writers of an epoch had the role, and nobody had it with the token of the owner before them.
pub(super) fn check(sessions: &[Session], epoch: i64, owner: &str) -> anyhow::Result<bool> {
    let broken = broken(sessions, epoch);
    let refused = sessions.iter().filter(|session| session.epoch == epoch);
    let refused = refused.filter_map(|session| session.before.as_ref()).next_back();
    let before = match refused {
        Some(Before { epoch, answer: Answer::Refused(code) }) => {
            format!(", and STS refused the token of epoch {epoch} ({code})")
        }
        Some(Before { answer: Answer::Opened(_), .. }) | None => String::new(),
    };
    let kept = format!("the process on {owner} assumed its role with its own token{before}");
    judged(&broken, &kept)
}

/// What is not as promised with the answers in an epoch.
fn broken(sessions: &[Session], epoch: i64) -> Vec<String> {
    let mut broken = Vec::new();
    let mut opened: Vec<&str> = Vec::new();
    for session in sessions.iter().filter(|session| session.epoch <= epoch) {
        match &session.own {
            Answer::Opened(role) => opened.push(role),
            Answer::Refused(why) if session.epoch == epoch => broken.push(format!(
                "STS refuses the token of the process that runs, epoch {epoch}: {why}"
            )),
            Answer::Refused(_) => {}
        }
        if let Some(Before { epoch: before, answer: Answer::Opened(role) }) = &session.before {
            let now = session.epoch;
            broken.push(format!("STS takes the token of epoch {before} for {role} in epoch {now}"));
        }
    }
    opened.dedup();
    if opened.len() > 1 {
        broken.push(format!("the ledger had more than one role: {}", opened.join(", ")));
    }
    let is_first = sessions.first().is_some_and(|first| first.epoch == epoch);
    let mut now = sessions.iter().filter(|session| session.epoch == epoch);
    if !is_first && broken.is_empty() && !now.any(|session| session.before.is_some()) {
        broken.push(format!("nobody tried the token of the owner before epoch {epoch}"));
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> Answer {
        Answer::Opened("AROA1:ledger".to_owned())
    }

    fn refused() -> Answer {
        Answer::Refused("AccessDenied".to_owned())
    }

    fn session(epoch: i64, own: Answer, before: Option<Answer>) -> Session {
        let before = before.map(|answer| Before { epoch: epoch - 1, answer });
        Session { epoch, own, before }
    }

    #[test]
    fn an_owner_that_has_the_role_while_the_one_before_has_it_no_more_is_as_promised() {
        let all = [session(1, opened(), None), session(2, opened(), Some(refused()))];
        assert_eq!(broken(&all, 1), [""; 0]);
        assert_eq!(broken(&all, 2), [""; 0]);
        // A process that is started again in its epoch knows no other token than its own.
        let again = [all.to_vec(), vec![session(2, opened(), None)]].concat();
        assert_eq!(broken(&again, 2), [""; 0]);
    }

    #[test]
    fn a_token_that_is_refused_or_opens_too_long_is_found() {
        let first = session(1, opened(), None);
        let found = |second: Session| broken(&[first.clone(), second], 2).join("; ");
        assert!(found(session(2, refused(), Some(refused()))).contains("process that runs"));
        assert!(found(session(2, opened(), Some(opened()))).contains("token of epoch 1"));
        assert!(found(session(2, opened(), None)).contains("nobody tried"));
        let other = Answer::Opened("AROA2:ledger".to_owned());
        assert!(found(session(2, other, Some(refused()))).contains("more than one role"));
    }

    #[test]
    fn what_a_writer_says_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path()), []);
        let all = [session(1, opened(), None), session(2, refused(), Some(opened()))];
        all.iter().for_each(|session| say(directory.path(), session).unwrap());
        assert_eq!(read(directory.path()), all);
    }
}
