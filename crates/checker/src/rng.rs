//! Seeded randomness for walks and samples: the same seed gives the same sequence, on any machine.

/// SplitMix64: small, fast, and good enough to choose among successors.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A sequence fixed by its seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; the bias of the multiply-shift is under 2^-32 for small bounds.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        debug_assert!(bound > 0);
        (((self.bits() >> 32) * bound as u64) >> 32) as usize
    }

    /// A coin.
    #[inline]
    pub fn flip(&mut self) -> bool {
        self.bits() & 1 == 1
    }
}
