//! What is written next about a cluster. First matching rule wins.

/// A cluster that is not heard of for this long is not reachable. The syncer counts every 10 s, so
/// three counts may get lost.
pub const SILENCE_SECONDS: i64 = 40;

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether our finalizer is on it.
    pub has_finalizer: bool,
    /// Its last sign of life.
    pub heartbeat: Heartbeat,
    /// How long after it the cluster is taken for unreachable.
    pub silence_seconds: i64,
    /// Whether its conditions say what follows from that.
    pub is_told: bool,
    /// What a person wants forgotten.
    pub forget: Option<Forget>,
    /// Whether no grant is owned by it, is to be, or has data on it, as the cache shows it.
    pub is_empty: bool,
    /// The same by a fresh look.
    pub is_surely_empty: Option<bool>,
}

/// The last sign of life of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    /// There never was one.
    Never,
    /// There is one that nobody noted.
    New,
    /// It was noted this long ago.
    Noted {
        /// By the clock of the hub.
        seconds_ago: i64,
    },
}

impl Heartbeat {
    /// Whether the cluster was heard of within so many seconds.
    pub fn is_reachable(self, silence_seconds: i64) -> bool {
        match self {
            Heartbeat::Never => false,
            Heartbeat::New => true,
            Heartbeat::Noted { seconds_ago } => seconds_ago < silence_seconds,
        }
    }
}

/// What a person wants forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forget {
    /// A copy that can be given up.
    Copy,
    /// The copy of an owner, which cannot.
    Owners,
    /// Nothing that is there, or is there any more.
    Nothing,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Put our finalizer on it.
    PutFinalizer,
    /// Note the sign of life, and all that goes with it.
    Stamp,
    /// Say in its conditions what is true.
    Tell,
    /// Drop a copy from the grant that a person named.
    ForgetCopy,
    /// Refuse to drop the copy of an owner, and take the wish away.
    RefuseToForget,
    /// What was to be forgotten is: take the wish away.
    TakeWishOff,
    /// See whether any grant is left.
    LookForGrants,
    /// Nothing is left: let it go.
    TakeFinalizerOff,
    /// Nothing, until it has been silent for too long.
    WaitForSilence {
        /// How long until then.
        seconds: i64,
    },
    /// Nothing, and why.
    Nothing(Why),
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is silent, and its conditions say so.
    Silent,
    /// It goes, and grants are left that the cache does not show.
    CacheBehind,
    /// It goes, and is silent, and grants are left.
    GrantsLeft,
    /// It is on its way out.
    Gone,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    // Nothing can be granted to it before this: it is not Ready until it is told so.
    if !facts.is_deleting && !facts.has_finalizer {
        return Decision::PutFinalizer;
    }
    if facts.heartbeat == Heartbeat::New {
        return Decision::Stamp;
    }
    match facts.forget {
        Some(Forget::Copy) => return Decision::ForgetCopy,
        Some(Forget::Owners) => return Decision::RefuseToForget,
        Some(Forget::Nothing) => return Decision::TakeWishOff,
        None => {}
    }
    if facts.is_deleting && facts.is_empty {
        return leave(facts);
    }
    if !facts.is_told {
        return Decision::Tell;
    }
    match facts.heartbeat {
        Heartbeat::Noted { seconds_ago } if seconds_ago < facts.silence_seconds => {
            Decision::WaitForSilence { seconds: (facts.silence_seconds - seconds_ago).max(1) }
        }
        _ if facts.is_deleting => Decision::Nothing(Why::GrantsLeft),
        Heartbeat::Never | Heartbeat::New | Heartbeat::Noted { .. } => {
            Decision::Nothing(Why::Silent)
        }
    }
}

/// Letting it go is final, so it does not rest on a cache.
fn leave(facts: &Facts) -> Decision {
    match (facts.has_finalizer, facts.is_surely_empty) {
        (false, _) => Decision::Nothing(Why::Gone),
        (true, None) => Decision::LookForGrants,
        (true, Some(true)) => Decision::TakeFinalizerOff,
        (true, Some(false)) => Decision::Nothing(Why::CacheBehind),
    }
}
