//! When a call may be made, and when absence in the cloud may be believed.
//!
//! The mark in an object's status names the process that may have calls under way. A process makes calls
//! only under its own mark, which it read live after it had read the cloud. The mark of another process
//! proves nothing about the calls of that process: it is taken over, and for as long as a call can be late
//! nothing is sent, and nothing that the cloud does not show is believed to be gone.

use crate::outside::{Answer, Call, Code, Process, Refusal, Register, Remembered, Sent};
use interlock_api::identities::Mark;
use serde::{Deserialize, Serialize};

/// How long a call that was refused for good is not made again.
const RETRY_SECONDS: i64 = 300;

/// What is known of the calls about one object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Journal {
    /// The mark of the object, by a live read after the cloud was read.
    pub mark: Option<Mark>,
    /// This process.
    pub process: Process,
    /// What this process sent within the late-call window.
    pub sent: Vec<Sent>,
    /// The last call that was refused.
    pub refused: Option<Refusal>,
    /// What the answers to the calls of this process said, after the late-call window, too.
    pub remembered: Remembered,
    /// The late-call window.
    pub late_call_seconds: i64,
}

/// Whether a call may be made now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Gate {
    /// It may.
    Open,
    /// Write this mark first.
    Mark(Mark),
    /// A call of another process, or of this one, may still take effect: wait so many seconds.
    Late {
        /// At most.
        seconds: i64,
    },
    /// The cloud said that something of that name is there, and does not show it yet: wait so many seconds.
    Hidden {
        /// At most.
        seconds: i64,
    },
    /// The cloud has refused this very call, and will refuse it again.
    Refused {
        /// What it said.
        refusal: Refusal,
        /// After so many seconds it is tried again.
        seconds: i64,
    },
}

/// Whether what the cloud does not show is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Going {
    /// It is.
    Gone,
    /// Write this mark first.
    Mark(Mark),
    /// A call may still create it: wait so many seconds.
    Late {
        /// At most.
        seconds: i64,
    },
}

/// What happens to the mark when nothing is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Resting {
    /// There is none.
    Quiet,
    /// It is removed.
    Unmark {
        /// Whether the cloud was found as declared under it: it is compared again with the next resync.
        is_compared: bool,
    },
    /// Calls may be under way for so many seconds.
    Wait {
        /// At most.
        seconds: i64,
    },
    /// It is another process's. Whoever has something to do next takes it over.
    Another,
}

impl Journal {
    /// What the client said, without a mark.
    pub fn of(answer: &Answer) -> Journal {
        Journal {
            process: answer.process.clone(),
            sent: answer.sent.clone(),
            refused: answer.refused.clone(),
            remembered: answer.remembered,
            ..Journal::default()
        }
    }

    /// Whether what the cloud does not show is gone.
    ///
    /// An object without a mark proves nothing about a read of the cloud that was made before: another process
    /// may have marked the object, created something and removed the mark in between. Under a mark of this
    /// process no other can, so the absence that counts is one that was read after the mark was written.
    pub fn going(&self) -> Going {
        match self.mark_first() {
            Some(mark) => Going::Mark(mark),
            None if self.is_quiet() => Going::Gone,
            None => Going::Late { seconds: self.quiet_in() },
        }
    }

    /// What happens to the mark when nothing is to be done.
    pub fn resting(&self) -> Resting {
        match &self.mark {
            None => Resting::Quiet,
            Some(mark) if !self.is_mine(mark) => Resting::Another,
            Some(Mark { quiet_at: None, .. }) => Resting::Another,
            Some(mark) if self.is_quiet() => Resting::Unmark { is_compared: mark.settled },
            Some(_) => Resting::Wait { seconds: self.quiet_in() },
        }
    }

    fn is_mine(&self, mark: &Mark) -> bool {
        mark.instance == self.process.instance
    }

    /// Whether calls of another process may still land.
    fn is_early(&self, mark: &Mark) -> bool {
        mark.quiet_at.is_none_or(|quiet_at| self.process.uptime < quiet_at)
    }

    /// The mark that has to be written before anything else; None: it is this process's own, and complete.
    ///
    /// A mark of another process is taken over in two writes. The first one may land late, and the other
    /// process makes calls until then: so the window is counted only from when this process has read that the
    /// mark is its own.
    pub fn mark_first(&self) -> Option<Mark> {
        let quiet_at = match &self.mark {
            None => Some(0),
            Some(mark) if !self.is_mine(mark) => None,
            Some(Mark { quiet_at: Some(_), .. }) => return None,
            Some(_) => Some(self.process.uptime.saturating_add(self.late_call_seconds)),
        };
        Some(Mark { instance: self.process.instance.clone(), quiet_at, settled: false })
    }

    /// The mark that says whether this process has found the cloud as declared, with nothing under way that could
    /// change it; None: the mark says so already.
    pub fn settling(&self, is_as_declared: bool) -> Option<Mark> {
        let mine =
            self.mark.as_ref().filter(|mark| self.is_mine(mark) && mark.quiet_at.is_some())?;
        let settled = is_as_declared && !self.is_early(mine) && !self.has_unanswered();
        (mine.settled != settled).then(|| Mark { settled, ..mine.clone() })
    }

    /// Whether this process has found the cloud as declared under its mark, and all that it sent since is answered.
    /// It saves reads, and decides nothing else: whoever believes it waits, or removes the mark once nothing is under
    /// way.
    pub fn is_settled(&self) -> bool {
        let is_it = |mark: &Mark| self.is_mine(mark) && mark.settled;
        self.mark.as_ref().is_some_and(is_it) && !self.has_unanswered()
    }

    /// Whether a call of this process may still take effect.
    fn has_unanswered(&self) -> bool {
        self.sent.iter().any(|sent| !sent.is_answered)
    }

    /// Whether this process knows that no call about the object can take effect any more.
    pub fn is_quiet(&self) -> bool {
        let quiet = |mark: &Mark| self.is_mine(mark) && !self.is_early(mark);
        self.mark.as_ref().is_some_and(quiet) && self.sent.is_empty()
    }

    /// After how many seconds it is quiet, if nothing else is sent.
    pub fn quiet_in(&self) -> i64 {
        let mine = self.mark.as_ref().filter(|mark| self.is_mine(mark));
        let until = mine.and_then(|mark| mark.quiet_at);
        let ends = self.sent.iter().map(|sent| sent.at.saturating_add(self.late_call_seconds));
        let last = ends.chain(until).max().unwrap_or(0);
        last.saturating_sub(self.process.uptime).clamp(1, self.late_call_seconds.max(1))
    }

    /// Whether a call may be made now.
    pub fn gate(&self, call: &Call) -> Gate {
        if let Some(refusal) = self.refused.as_ref().filter(|it| it.call == *call) {
            let retry = refusal.at.saturating_add(self.retried_after(refusal.code));
            let seconds = retry.saturating_sub(self.process.uptime);
            let is_hidden = refusal.code == Code::EntityAlreadyExists;
            if is_hidden && self.process.uptime < refusal.at.saturating_add(self.late_call_seconds)
            {
                return Gate::Hidden { seconds: self.late_call_seconds };
            }
            if seconds > 0 {
                return Gate::Refused { refusal: refusal.clone(), seconds };
            }
        }
        if let Some(mark) = self.mark_first() {
            return Gate::Mark(mark);
        }
        if self.mark.as_ref().is_some_and(|mark| self.is_early(mark)) || self.is_contradicted(call)
        {
            return Gate::Late { seconds: self.quiet_in() };
        }
        Gate::Open
    }

    /// Whether an unanswered call, other than this one, may still change what it changes.
    fn is_contradicted(&self, call: &Call) -> bool {
        let register = call.register();
        let unanswered = self.sent.iter().filter(|sent| !sent.is_answered);
        unanswered.into_iter().any(|sent| sent.call.register() == register && sent.call != *call)
    }

    /// Whether this was the last call of this process on its register, and the cloud said that it is done.
    /// The cloud may show it only later.
    pub fn has_done(&self, call: &Call) -> bool {
        let register = call.register();
        let last = self.sent.iter().rev().find(|sent| sent.call.register() == register);
        last.is_some_and(|sent| sent.is_answered && sent.call == *call)
    }

    /// Whether a call on the same register is unanswered.
    pub fn is_unanswered(&self, register: &Register) -> bool {
        self.sent.iter().any(|sent| !sent.is_answered && sent.call.register() == *register)
    }

    /// Whether what is known of a register may be written down for others to rely on: under a mark of this
    /// process, once no call of another process can land, and while no call of its own is unanswered.
    pub fn ground(&self, register: &Register) -> Gate {
        if let Some(mark) = self.mark_first() {
            return Gate::Mark(mark);
        }
        if self.mark.as_ref().is_some_and(|mark| self.is_early(mark))
            || self.is_unanswered(register)
        {
            return Gate::Late { seconds: self.quiet_in() };
        }
        Gate::Open
    }

    /// How long a call is not repeated after it was refused.
    fn retried_after(&self, code: Code) -> i64 {
        match code {
            // The next live read shows what there is.
            Code::NoSuchEntity | Code::DeleteConflict => 1,
            Code::ConcurrentModification | Code::Throttling => 2,
            Code::EntityAlreadyExists
            | Code::LimitExceeded
            | Code::MalformedPolicyDocument
            | Code::InvalidInput
            | Code::UnmodifiableEntity
            | Code::PolicyNotAttachable
            | Code::AccessDenied
            | Code::IssuerUnreachable => RETRY_SECONDS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATE: Call = Call::DeletePolicy;

    fn journal(mark: Option<(&str, i64)>) -> Journal {
        let mark = mark.map(|(instance, quiet_at)| Mark {
            instance: instance.to_owned(),
            quiet_at: (quiet_at >= 0).then_some(quiet_at),
            settled: false,
        });
        let process = Process { instance: "me".to_owned(), uptime: 100 };
        Journal { mark, process, late_call_seconds: 60, ..Journal::default() }
    }

    fn sent(call: Call, is_answered: bool) -> Sent {
        Sent { call, is_answered, at: 90 }
    }

    #[test]
    fn a_call_is_made_only_under_the_mark_of_this_process() {
        let mine = |quiet_at| Mark { instance: "me".to_owned(), quiet_at, settled: false };
        assert_eq!(journal(None).gate(&CREATE), Gate::Mark(mine(Some(0))));
        assert_eq!(journal(Some(("other", 7))).gate(&CREATE), Gate::Mark(mine(None)));
        // Taken over, and read: the window begins.
        assert_eq!(journal(Some(("me", -1))).gate(&CREATE), Gate::Mark(mine(Some(160))));
        assert_eq!(journal(Some(("me", 130))).gate(&CREATE), Gate::Late { seconds: 30 });
        assert_eq!(journal(Some(("me", 100))).gate(&CREATE), Gate::Open);
    }

    #[test]
    fn the_mark_of_another_process_is_never_quiet() {
        assert!(!journal(None).is_quiet() && matches!(journal(None).going(), Going::Mark(_)));
        assert!(!journal(Some(("other", 0))).is_quiet());
        assert!(!journal(Some(("me", 101))).is_quiet() && !journal(Some(("me", -1))).is_quiet());
        assert!(journal(Some(("me", 100))).is_quiet());
        let busy = Journal { sent: vec![sent(CREATE, true)], ..journal(Some(("me", 0))) };
        assert!(!busy.is_quiet());
        assert_eq!(busy.quiet_in(), 50);
    }

    #[test]
    fn an_unanswered_call_keeps_others_of_its_register_waiting_and_not_itself() {
        let trust = |trust: &str| Call::UpdateAssumeRolePolicy { trust: trust.to_owned() };
        let mine = Journal { sent: vec![sent(trust("a"), false)], ..journal(Some(("me", 0))) };
        assert_eq!(mine.gate(&trust("a")), Gate::Open);
        assert_eq!(mine.gate(&trust("b")), Gate::Late { seconds: 50 });
        assert_eq!(mine.gate(&Call::DeleteRole), Gate::Open);
        let answered = Journal { sent: vec![sent(trust("a"), true)], ..mine };
        assert_eq!(answered.gate(&trust("b")), Gate::Open);
    }

    #[test]
    fn what_is_known_is_written_down_only_under_a_quiet_mark_of_this_process() {
        let trust = Call::UpdateAssumeRolePolicy { trust: "a".to_owned() };
        let ground = |journal: &Journal| journal.ground(&Register::Trust);
        assert!(matches!(ground(&journal(None)), Gate::Mark(_)));
        assert!(matches!(ground(&journal(Some(("other", 0)))), Gate::Mark(_)));
        assert_eq!(ground(&journal(Some(("me", 130)))), Gate::Late { seconds: 30 });
        let mine = journal(Some(("me", 0)));
        assert_eq!(ground(&mine), Gate::Open);
        // Even the same call: what comes after it would have to wait.
        let late = Journal { sent: vec![sent(trust.clone(), false)], ..mine.clone() };
        assert_eq!(ground(&late), Gate::Late { seconds: 50 });
        assert_eq!(ground(&Journal { sent: vec![sent(trust, true)], ..mine }), Gate::Open);
    }

    #[test]
    fn only_the_own_mark_says_that_the_cloud_is_as_declared() {
        let mine = journal(Some(("me", 0)));
        assert!(mine.settling(false).is_none());
        let settled = mine.settling(true).expect("a mark");
        assert!(settled.settled && !mine.is_settled());
        let mine = Journal { mark: Some(settled), ..mine };
        assert!(mine.is_settled() && mine.settling(true).is_none());
        assert_eq!(mine.settling(false).map(|mark| mark.settled), Some(false));
        // What another process says of its calls says nothing of this one's.
        let other = Mark { instance: "other".to_owned(), quiet_at: Some(0), settled: true };
        let other = Journal { mark: Some(other), ..mine };
        assert!(!other.is_settled() && other.settling(true).is_none());
        assert!(
            journal(None).settling(true).is_none()
                && journal(Some(("me", -1))).settling(true).is_none()
        );
    }

    #[test]
    fn while_a_call_may_be_late_the_mark_does_not_say_that_the_cloud_is_as_declared() {
        let early = journal(Some(("me", 130)));
        assert!(early.settling(true).is_none());
        let mine = journal(Some(("me", 0)));
        let answered = Journal { sent: vec![sent(CREATE, true)], ..mine.clone() };
        assert_eq!(answered.settling(true).map(|mark| mark.settled), Some(true));
        let late = Journal { sent: vec![sent(CREATE, false)], ..mine.clone() };
        assert!(late.settling(true).is_none());
        // It was said before the call was sent: it is taken back.
        let late = Journal { mark: mine.settling(true), ..late };
        assert!(!late.is_settled());
        assert_eq!(late.settling(true).map(|mark| mark.settled), Some(false));
    }

    #[test]
    fn a_call_that_was_refused_for_good_is_not_repeated_at_once() {
        let refusal =
            Refusal { call: CREATE, code: Code::AccessDenied, message: "no".to_owned(), at: 90 };
        let refused = Journal { refused: Some(refusal), ..journal(Some(("me", 0))) };
        assert!(matches!(refused.gate(&CREATE), Gate::Refused { seconds: 290, .. }));
        assert_eq!(refused.gate(&Call::DeleteRole), Gate::Open);
        let later = Process { uptime: 390, ..refused.process.clone() };
        assert_eq!(Journal { process: later, ..refused }.gate(&CREATE), Gate::Open);
    }
}
