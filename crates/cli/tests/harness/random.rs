//! Numbers for tests that try something else with each seed.

/// Numbers that look random and are the same for the same seed (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

pub(crate) fn seed() -> u64 {
    let given = std::env::var("INTERLOCK_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or(0x1e57_1e57)
}
