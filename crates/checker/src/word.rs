//! Packed states: a fixed number of bits, compared and stored exactly.

use std::fmt::Debug;
use std::hash::Hash;

/// A packed state as the engine stores it: `u64`, `u128` or `[u64; N]`.
pub trait Word: Copy + Eq + Ord + Hash + Debug + Default + Send + Sync + 'static {
    /// How many bits fit.
    const BITS: u32;
    /// How many bytes one takes in memory and in a checkpoint.
    const BYTES: usize = Self::BITS as usize / 8;
    /// The word made of these limbs, lowest first; limbs beyond its width are ignored.
    fn from_limbs(limbs: &[u64; MAX_LIMBS]) -> Self;
    /// The limbs of this word, lowest first, zero beyond its width.
    fn limbs(&self) -> [u64; MAX_LIMBS];
    /// A well-mixed 64-bit hash; it decides the shard and the slot, never equality.
    fn mix(&self) -> u64;
}

/// The widest packed state, in 64-bit limbs.
pub const MAX_LIMBS: usize = 8;

#[inline]
fn scramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

impl Word for u64 {
    const BITS: u32 = 64;
    #[inline]
    fn from_limbs(limbs: &[u64; MAX_LIMBS]) -> Self {
        limbs[0]
    }
    #[inline]
    fn limbs(&self) -> [u64; MAX_LIMBS] {
        let mut limbs = [0; MAX_LIMBS];
        limbs[0] = *self;
        limbs
    }
    #[inline]
    fn mix(&self) -> u64 {
        scramble(*self)
    }
}

impl Word for u128 {
    const BITS: u32 = 128;
    #[inline]
    fn from_limbs(limbs: &[u64; MAX_LIMBS]) -> Self {
        u128::from(limbs[0]) | (u128::from(limbs[1]) << 64)
    }
    #[inline]
    fn limbs(&self) -> [u64; MAX_LIMBS] {
        let mut limbs = [0; MAX_LIMBS];
        limbs[0] = *self as u64;
        limbs[1] = (*self >> 64) as u64;
        limbs
    }
    #[inline]
    fn mix(&self) -> u64 {
        scramble(scramble(*self as u64) ^ (*self >> 64) as u64)
    }
}

/// Wide states: `[u64; 3]` up to `[u64; 8]`.
impl<const N: usize> Word for [u64; N]
where
    [u64; N]: Default,
{
    const BITS: u32 = 64 * N as u32;
    #[inline]
    fn from_limbs(limbs: &[u64; MAX_LIMBS]) -> Self {
        let mut word = [0; N];
        word.copy_from_slice(&limbs[..N]);
        word
    }
    #[inline]
    fn limbs(&self) -> [u64; MAX_LIMBS] {
        let mut limbs = [0; MAX_LIMBS];
        limbs[..N].copy_from_slice(self);
        limbs
    }
    #[inline]
    fn mix(&self) -> u64 {
        self.iter().fold(0, |hash, limb| scramble(hash ^ *limb))
    }
}

/// Walks the fields of a state, writing them into bits or reading them back.
///
/// One function per model names each field with its width; packing and unpacking both run it, so the
/// two can never disagree.
#[derive(Debug)]
pub struct Coder {
    limbs: [u64; MAX_LIMBS],
    at: u32,
    reading: bool,
}

impl Coder {
    /// A coder that collects bits.
    pub fn writer() -> Self {
        Coder { limbs: [0; MAX_LIMBS], at: 0, reading: false }
    }

    /// A coder that hands out the bits of a packed state.
    pub fn reader<W: Word>(word: &W) -> Self {
        Coder { limbs: word.limbs(), at: 0, reading: true }
    }

    /// The packed state collected so far.
    pub fn word<W: Word>(&self) -> W {
        assert!(
            self.at <= W::BITS,
            "the state needs {} bits, the packed word has {}",
            self.at,
            W::BITS
        );
        W::from_limbs(&self.limbs)
    }

    /// How many bits were written or read.
    pub fn width(&self) -> u32 {
        self.at
    }

    /// One unsigned field of `width` bits, at most 64.
    #[inline]
    pub fn u64(&mut self, value: &mut u64, width: u32) {
        debug_assert!(width <= 64);
        if width == 0 {
            return;
        }
        let (limb, shift) = ((self.at / 64) as usize, self.at % 64);
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        let spills = shift + width > 64;
        assert!(limb + usize::from(spills) < MAX_LIMBS, "a packed state has at most 512 bits");
        if self.reading {
            let mut bits = self.limbs[limb] >> shift;
            if spills {
                bits |= self.limbs[limb + 1] << (64 - shift);
            }
            *value = bits & mask;
        } else {
            assert!(*value <= mask, "the value {value} does not fit in {width} bits");
            self.limbs[limb] |= *value << shift;
            if spills {
                self.limbs[limb + 1] |= *value >> (64 - shift);
            }
        }
        self.at += width;
    }

    /// One field of a byte or less.
    #[inline]
    pub fn u8(&mut self, value: &mut u8, width: u32) {
        let mut wide = u64::from(*value);
        self.u64(&mut wide, width);
        *value = wide as u8;
    }

    /// One field of two bytes or less, often a small set as a bit mask.
    #[inline]
    pub fn u16(&mut self, value: &mut u16, width: u32) {
        let mut wide = u64::from(*value);
        self.u64(&mut wide, width);
        *value = wide as u16;
    }

    /// One field of four bytes or less.
    #[inline]
    pub fn u32(&mut self, value: &mut u32, width: u32) {
        let mut wide = u64::from(*value);
        self.u64(&mut wide, width);
        *value = wide as u32;
    }

    /// One bit.
    #[inline]
    pub fn bool(&mut self, value: &mut bool) {
        let mut wide = u64::from(*value);
        self.u64(&mut wide, 1);
        *value = wide != 0;
    }

    /// A field with named values, kept as its place in `values`.
    #[inline]
    pub fn of<T: Copy + PartialEq + Debug>(&mut self, value: &mut T, values: &[T]) {
        let width = usize::BITS - (values.len() - 1).leading_zeros();
        let mut place = if self.reading {
            0
        } else {
            values
                .iter()
                .position(|v| v == value)
                .unwrap_or_else(|| panic!("{value:?} is not one of {values:?}")) as u64
        };
        self.u64(&mut place, width);
        if self.reading {
            *value = values[place as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_across_a_limb_boundary_come_back_as_they_went_in() {
        let fields =
            [(0x1f_ffff_u64, 21), (0x3_ffff_ffff_ffff, 50), (1, 1), (u64::MAX, 64), (5, 3)];
        let mut writer = Coder::writer();
        for (value, width) in fields {
            writer.u64(&mut value.clone(), width);
        }
        let word: [u64; 3] = writer.word();
        let mut reader = Coder::reader(&word);
        for (value, width) in fields {
            let mut back = 0;
            reader.u64(&mut back, width);
            assert_eq!(back, value);
        }
        assert_eq!(reader.width(), 139);
    }

    #[test]
    #[should_panic(expected = "does not fit in 2 bits")]
    fn a_value_too_wide_for_its_field_is_refused_rather_than_cut() {
        Coder::writer().u64(&mut 4, 2);
    }

    #[test]
    fn named_values_take_only_the_bits_they_need() {
        let mut writer = Coder::writer();
        writer.of(&mut 'c', &['a', 'b', 'c']);
        assert_eq!(writer.width(), 2);
        let word: u64 = writer.word();
        let mut back = 'a';
        Coder::reader(&word).of(&mut back, &['a', 'b', 'c']);
        assert_eq!(back, 'c');
    }
}
