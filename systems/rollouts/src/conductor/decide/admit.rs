//! Requests that have no number yet.

use super::super::facts::{Candidate, Request, Revision, Source};
use super::{At, Decision};
use crate::record::{MOST_ENTRIES, MOST_WAITING, Why};
use interlock_api::rollouts::UpdatePhase;

/// A request is held until it has ended: one that vanished while it is in flight would be one that nobody can cancel.
pub(super) fn finalizer(at: &At<'_>) -> Option<Decision> {
    let mut without = at.facts.unnumbered.iter();
    let bare = without.find(|request| !request.has_finalizer && !request.is_deleting)?;
    Some(Decision::AddFinalizer(bare.uid.clone()))
}

/// A request is numbered once, with its verdict in the same write.
pub(super) fn number(at: &At<'_>) -> Option<Decision> {
    // A record that is full waits for the mirror, and one that is to go takes nobody.
    if at.record.entries >= MOST_ENTRIES || at.record.is_terminating {
        return None;
    }
    match &at.facts.candidate {
        Candidate::None | Candidate::Behind => None,
        Candidate::Unread(_) => Some(Decision::ReadCandidate),
        Candidate::Here(request) => Some(judge(at, request)),
    }
}

fn judge(at: &At<'_>, request: &Request) -> Decision {
    let rejected = |why: Why| Decision::Number(UpdatePhase::Rejected, why);
    if request.is_cancelled {
        return rejected(Why::Cancelled);
    }
    if !request.is_allowed {
        let (namespace, record) = (request.namespace.clone(), at.facts.name.clone());
        return rejected(Why::NamespaceNotAllowed { namespace, record });
    }
    if at.record.unmirrored >= MOST_WAITING {
        return rejected(Why::TooManyWaiting(at.record.unmirrored));
    }
    let (bad, revision) = match &request.source {
        Source::Missing(words) => return rejected(Why::SourceMissing(words.clone())),
        Source::Invalid(words) => return rejected(Why::InvalidBundle(words.clone())),
        Source::Bundle { bad, revision, .. } => (bad, revision),
    };
    if let Some(words) = bad.as_ref().filter(|_| !request.retry_bad) {
        return rejected(Why::KnownBad(words.clone()));
    }
    match revision {
        Revision::Unread(parts) => Decision::ReadParts(parts.clone()),
        Revision::Lacks(part) => Decision::CreatePart(*part),
        Revision::Broken(words) => rejected(Why::RevisionMissing(words.clone())),
        Revision::Complete => Decision::Number(UpdatePhase::Queued, Why::Valid),
    }
}
