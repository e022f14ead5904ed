//! The conditions of identities, and their reasons.

/// Whether the cloud is as declared, for the generation that the condition names.
pub const READY: &str = "Ready";
/// Whether the controller is at work, or waits for something that ends by itself.
pub const RECONCILING: &str = "Reconciling";
/// Whether a person has to act.
pub const STALLED: &str = "Stalled";
/// Whether an ARN in the spec names something that is not this object's.
pub const SPEC_ARN_IGNORED: &str = "SpecArnIgnored";

/// Everything is as declared.
pub const AS_DECLARED: &str = "AsDeclared";
/// Calls are being made.
pub const PROGRESSING: &str = "Progressing";
/// The cloud asks for fewer calls.
pub const THROTTLED: &str = "Throttled";
/// The cloud does not answer.
pub const UNAVAILABLE: &str = "Unavailable";
/// The policy is not there yet.
pub const WAITING_FOR_POLICY: &str = "WaitingForPolicy";
/// The role is not there yet.
pub const WAITING_FOR_ROLE: &str = "WaitingForRole";
/// A call whose answer nobody saw may still take effect.
pub const WAITING_FOR_LATE_CALL: &str = "WaitingForLateCall";
/// The owner cluster has no issuer that the cloud trusts.
pub const ISSUER_NOT_READY: &str = "IssuerNotReady";
/// The policy is attached to something that Interlock did not attach it to.
pub const ATTACHED_ELSEWHERE: &str = "AttachedElsewhere";
/// The spec asks for something that the cloud cannot have.
pub const INVALID: &str = "Invalid";
/// Something of that name belongs to another.
pub const CONFLICT: &str = "Conflict";
/// The controller lacks a right in the cloud.
pub const FORBIDDEN: &str = "Forbidden";
/// A limit of the cloud account is reached.
pub const LIMIT_EXCEEDED: &str = "LimitExceeded";

/// The cloud knows the issuer of the cluster.
pub const PROVIDER_FOUND: &str = "ProviderFound";
/// The cloud does not know the issuer of the cluster.
pub const NO_PROVIDER: &str = "NoProvider";
/// The cluster has not reported the issuer of its tokens.
pub const ISSUER_MISSING: &str = "IssuerMissing";
/// Another cluster reports the same issuer.
pub const ISSUER_SHARED: &str = "IssuerShared";
