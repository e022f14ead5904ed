//! Random numbers, and the ids that are made of them.

use ring::rand::{SecureRandom, SystemRandom};

/// A random number of the machine's.
pub(crate) fn machine() -> u64 {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).expect("the machine has a source of random numbers");
    u64::from_le_bytes(bytes)
}

/// A random UUID (version 4).
pub(crate) fn uuid(random: &dyn Fn() -> u64) -> String {
    let (high, low) = (random(), random());
    let high = high & !0xf000 | 0x4000;
    let low = low & !(0b11 << 62) | (0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_says_that_it_is_random() {
        assert_eq!(uuid(&|| u64::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid(&|| 0), "00000000-0000-4000-8000-000000000000");
        assert_ne!(uuid(&machine), uuid(&machine));
    }
}
