//! The rolling hash that cuts files into blobs, in place of the published crate of this name.
//!
//! rustic_core sets a new one up for every file. The published one fills its tables entry by entry, a
//! third of a millisecond each time: with small files, more than all the rest of a backup. The tables
//! are linear, so eight of their 256 entries give the others, in about a microsecond. Where files are
//! cut is the same, byte for byte; `[patch.crates-io]` of the workspace puts this one in.
//!
//! A file is a polynomial over two elements, a bit for each coefficient, and its hash is what is left
//! of the last 64 bytes after division by the polynomial of the repository.

/// A polynomial: bit `n` is the coefficient of `x^n`.
pub type Polynom64 = u64;

/// What rustic_core asks of a polynomial.
pub trait Polynom {
    /// The highest power in it; -1 if there is none.
    fn degree(&self) -> i32;

    /// What is left after division.
    #[must_use]
    fn modulo(&self, divisor: &Self) -> Self;
}

impl Polynom for Polynom64 {
    fn degree(&self) -> i32 {
        63 - self.leading_zeros().cast_signed()
    }

    fn modulo(&self, divisor: &Self) -> Self {
        let mut rest = *self;
        while rest.degree() >= divisor.degree() {
            rest ^= divisor << (rest.degree() - divisor.degree());
        }
        rest
    }
}

/// A hash of the last bytes that were seen.
pub trait RollingHash64 {
    /// Begins anew with these bytes, all but the last of the window; tells how many there were.
    fn reset_and_prefill_window<I: Iterator<Item = u8>>(&mut self, bytes: &mut I) -> usize;

    /// Takes a byte in, and the oldest out.
    fn slide(&mut self, byte: u8);
}

const WINDOW: usize = 64;

/// The hash of the last 64 bytes, after Rabin.
#[derive(Debug, Clone)]
pub struct Rabin64 {
    /// What a byte has become when it leaves the window.
    leaving: [Polynom64; 256],
    /// What brings the hash back below the divisor, by the byte that is above it.
    above: [Polynom64; 256],
    /// How many bits the hash has below its highest byte.
    shift: u32,
    window: [u8; WINDOW],
    oldest: usize,
    /// The hash.
    pub hash: Polynom64,
}

impl Rabin64 {
    /// One that has seen nothing, for a window of `2^bits` bytes, which is always 64, and a divisor,
    /// which in a repository always has degree 53.
    #[must_use]
    pub fn new_with_polynom(bits: u32, divisor: &Polynom64) -> Self {
        let degree = divisor.degree();
        assert_eq!(1 << bits, WINDOW, "rustic_core asks for one size of window only");
        assert!((8..=55).contains(&degree), "no repository has a divisor of degree {degree}");
        let degree = degree.unsigned_abs();
        // As often as there are bits in the bytes after it.
        let before_it_leaves = (0..(WINDOW - 1) * 8).fold(1, |hash, _| times_x(hash, *divisor));
        let over = divisor ^ (1 << degree);
        let above = table(over, *divisor);
        Rabin64 {
            leaving: table(before_it_leaves, *divisor),
            above: std::array::from_fn(|byte| above[byte] | ((byte as u64) << degree)),
            shift: degree - 8,
            window: [0; WINDOW],
            oldest: 0,
            hash: 0,
        }
    }
}

/// One bit further from the end of the file.
fn times_x(hash: Polynom64, divisor: Polynom64) -> Polynom64 {
    let next = hash << 1;
    if next.degree() == divisor.degree() { next ^ divisor } else { next }
}

/// Each byte times a polynomial.
fn table(one: Polynom64, divisor: Polynom64) -> [Polynom64; 256] {
    let mut table = [0; 256];
    let mut bit = one;
    for number in 0..8 {
        let start = 1 << number;
        for rest in 0..start {
            table[start | rest] = bit ^ table[rest];
        }
        bit = times_x(bit, divisor);
    }
    table
}

impl RollingHash64 for Rabin64 {
    fn reset_and_prefill_window<I: Iterator<Item = u8>>(&mut self, bytes: &mut I) -> usize {
        (self.window, self.oldest, self.hash) = ([0; WINDOW], 0, 0);
        let before = bytes.take(WINDOW - 1).map(|byte| self.slide(byte));
        before.count()
    }

    #[inline]
    fn slide(&mut self, byte: u8) {
        let leaves = std::mem::replace(&mut self.window[self.oldest], byte);
        self.oldest = (self.oldest + 1) % WINDOW;
        let hash = self.hash ^ self.leaving[usize::from(leaves)];
        let above = (hash >> self.shift) & 0xff;
        self.hash = ((hash << 8) | u64::from(byte)) ^ self.above[above as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that restic chose.
    const DIVISOR: Polynom64 = 0x003D_A335_8B4D_C173;

    /// The hash of some bytes, by long division.
    fn divided(bytes: &[u8]) -> Polynom64 {
        let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
        bits.fold(0, |hash, bit| times_x(hash, DIVISOR) ^ u64::from(bit))
    }

    #[test]
    fn the_hash_is_what_is_left_of_the_last_64_bytes() {
        let bytes: Vec<u8> = (0_u32..1_000).map(|at| (at.pow(3) >> 5) as u8).collect();
        let mut rabin = Rabin64::new_with_polynom(6, &DIVISOR);
        assert_eq!(rabin.reset_and_prefill_window(&mut bytes[..64].iter().copied()), 63);
        for (at, byte) in bytes.iter().enumerate().skip(63) {
            rabin.slide(*byte);
            assert_eq!(rabin.hash, divided(&bytes[at - 63..=at]), "after byte {at}");
        }
    }

    #[test]
    fn what_was_seen_before_a_reset_is_forgotten() {
        let mut rabin = Rabin64::new_with_polynom(6, &DIVISOR);
        (0..200).for_each(|byte| rabin.slide(byte));
        let mut fresh = Rabin64::new_with_polynom(6, &DIVISOR);
        for one in [&mut rabin, &mut fresh] {
            one.reset_and_prefill_window(&mut (1..=63));
            (64..=200).for_each(|byte| one.slide(byte));
        }
        assert_eq!(rabin.hash, fresh.hash);
    }

    #[test]
    fn the_tables_are_what_long_division_gives() {
        let rabin = Rabin64::new_with_polynom(6, &DIVISOR);
        for byte in 0..=255_u8 {
            let mut bytes = [0; WINDOW];
            bytes[0] = byte;
            assert_eq!(rabin.leaving[usize::from(byte)], divided(&bytes));
            let high = u64::from(byte) << 53;
            assert_eq!(rabin.above[usize::from(byte)], high | high.modulo(&DIVISOR));
        }
    }

    #[test]
    fn degrees_and_rests() {
        assert_eq!([0_u64.degree(), 1.degree(), 0xff.degree(), DIVISOR.degree()], [-1, 0, 7, 53]);
        // x^4 + x + 1 is x^3 times x, with x + 1 left.
        assert_eq!(0b1_0011_u64.modulo(&0b1000), 0b11);
    }
}
