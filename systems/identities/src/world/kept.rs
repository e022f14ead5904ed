//! What must be true of a cloud account, whoever watches: the predicates that promises of several worlds share.

use super::clients::Machine;
use crate::document;
use crate::outside::Tags;
use interlock_api::identities::TAG_OWNER_UID;
use interlock_api::placement::{Phase, RightsState};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

/// GoneIsClean: the uid of an object that is gone, though something in the cloud is tagged with it, or may still be
/// created for it.
pub fn left_over(machine: &Machine, lives: impl Fn(&str) -> bool) -> Option<String> {
    let account = &machine.account;
    let policies = account.policies.values().map(|policy| &policy.tags);
    let tags = policies.chain(account.roles.values().map(|role| &role.tags));
    let tagged = tags.filter_map(|tags: &Tags| tags.get(TAG_OWNER_UID).map(String::as_str));
    let mut owners = tagged.chain(machine.creating());
    owners.find(|uid| !lives(uid)).map(str::to_owned)
}

/// What a trust policy admits: the epoch that each statement names, and the issuer.
pub fn admitted(trust: &str) -> Vec<(i64, String)> {
    let document: Value = serde_json::from_str(trust).unwrap_or_default();
    let statements = document["Statement"].as_array().into_iter().flatten();
    let allowing = statements.filter(|it| it["Effect"] == "Allow");
    let admit = |it: &Value| {
        let sid = it["Sid"].as_str()?.strip_prefix("Epoch")?.parse().ok()?;
        let provider = it["Principal"]["Federated"].as_str()?;
        Some((sid, provider.split_once("oidc-provider/")?.1.to_owned()))
    };
    allowing.filter_map(admit).collect()
}

/// The latest time before which inline policies of a role deny sessions; the least number: none does.
pub fn denied_before<'a>(inline: impl Iterator<Item = &'a String>) -> i64 {
    let time = |text: &String| {
        let document: Value = serde_json::from_str(&document::canonical(text)?).ok()?;
        let time = &document["Statement"][0]["Condition"]["DateLessThan"]["aws:tokenissuetime"][0];
        Some(time.as_str()?.parse::<Timestamp>().ok()?.as_second())
    };
    inline.filter_map(time).max().unwrap_or(i64::MIN)
}

/// The first and the last session of each epoch of a role.
pub type Sessions = BTreeMap<i64, (i64, i64)>;

/// A role of a placed namespace, its Grant, and the sessions that there are.
#[derive(Debug)]
pub struct Rights<'a> {
    /// The phase of the Grant.
    pub phase: Phase,
    /// Its epoch.
    pub epoch: i64,
    /// The highest epoch that was ended by force.
    pub fenced_epoch: i64,
    /// What the Grant says of the role: epoch and state.
    pub said: &'a [(i64, RightsState)],
    /// Whether the owner runs the present epoch.
    pub is_running: bool,
    /// Whether the Role is there to stay.
    pub is_declared: bool,
    /// What the trust admits.
    pub admits: &'a [(i64, String)],
    /// The issuer of the owner, as the cloud names it.
    pub issuer: String,
    /// Sessions issued before this time are denied.
    pub denied_before: i64,
    /// The sessions.
    pub sessions: &'a Sessions,
}

impl Rights<'_> {
    /// Whether the role trusts the owner of the present epoch, and nobody else.
    fn is_trusted(&self) -> bool {
        matches!(self.admits, [(epoch, issuer)] if (*epoch, issuer) == (self.epoch, &self.issuer))
    }

    /// RightsFollowTheGrant: from the permit of an epoch until its release, the role trusts its owner, and nobody
    /// else.
    pub fn follow_the_grant(&self) -> bool {
        let is_due = self.is_running && self.phase.is_held() && self.is_declared;
        !is_due || self.is_trusted()
    }

    /// ReadyIsTrue: rights that are said to be ready for the present epoch are.
    pub fn are_ready_if_said(&self) -> bool {
        let is_ready = self.said.contains(&(self.epoch, RightsState::Ready));
        let is_due = is_ready && self.phase.is_held() && self.is_declared;
        !is_due || self.is_trusted()
    }

    /// Forced epochs up to this one are said to have no rights.
    pub fn claimed(&self) -> i64 {
        let claim = |(epoch, state): &(i64, RightsState)| match state {
            RightsState::Fenced => *epoch,
            RightsState::Ready if *epoch > self.fenced_epoch => self.fenced_epoch,
            RightsState::Ready | RightsState::Waiting => 0,
        };
        self.said.iter().map(claim).max().unwrap_or(0)
    }

    fn denies(&self, issued: i64) -> bool {
        issued < self.denied_before
    }

    /// FencedHasNoRights: where a forced epoch is said to have no rights, each session of it is denied.
    pub fn fenced_have_none(&self) -> bool {
        let claimed = self.claimed();
        self.sessions.iter().all(|(epoch, (_, last))| *epoch > claimed || self.denies(*last))
    }

    /// OwnerNotDenied: no fence denies a session of the present owner.
    pub fn owner_is_not_denied(&self) -> bool {
        let is_owned = self.epoch > self.fenced_epoch;
        let first = self.sessions.get(&self.epoch).filter(|_| is_owned);
        first.is_none_or(|(first, _)| !self.denies(*first))
    }
}
