//! Decompresses the headers of one side of a connection: zlib (RFC 1950, RFC 1951), as far as SPDY needs it.
//!
//! All blocks of a connection are one stream: what one block said, the next one may refer to. Each block ends with
//! a flush, so it begins and ends with a whole byte. Whatever the bytes are, no more memory is used than was
//! allowed, and every step takes something from them.

use super::dictionary::{DICTIONARY, DICTIONARY_ID};

/// Bytes that are no such stream, or say too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Corrupt;

/// How far a stream may refer back.
const WINDOW_BYTES: usize = 32 * 1024;

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Inflater {
    /// What was said last.
    window: Vec<u8>,
    has_begun: bool,
}

impl Inflater {
    /// What the next block of the stream says.
    pub(super) fn inflate(&mut self, block: &[u8], most_bytes: usize) -> Result<Vec<u8>, Corrupt> {
        let block = if self.has_begun { block } else { self.begin(block)? };
        let start = self.window.len();
        let most = start + most_bytes;
        let mut bits = Bits { bytes: block, at: 0, held: 0, count: 0 };
        while bits.at < block.len() {
            let is_last = bits.take(1)? == 1;
            match bits.take(2)? {
                0 => self.stored(&mut bits, most)?,
                1 => self.coded(&mut bits, &Tables::fixed(), most)?,
                2 => {
                    let tables = Tables::read(&mut bits)?;
                    self.coded(&mut bits, &tables, most)?;
                }
                _ => return Err(Corrupt),
            }
            // Headers may come at any time: the stream ends with the connection only.
            if is_last {
                return Err(Corrupt);
            }
        }
        let said = self.window[start..].to_vec();
        let too_much = self.window.len().saturating_sub(WINDOW_BYTES);
        self.window.drain(..too_much);
        Ok(said)
    }

    fn begin<'a>(&mut self, block: &'a [u8]) -> Result<&'a [u8], Corrupt> {
        let [method, flags, rest @ ..] = block else { return Err(Corrupt) };
        if method & 0x0F != 8 || u16::from_be_bytes([*method, *flags]) % 31 != 0 {
            return Err(Corrupt);
        }
        self.has_begun = true;
        if flags & 0x20 == 0 {
            return Ok(rest);
        }
        let (id, rest) = rest.split_first_chunk().ok_or(Corrupt)?;
        if u32::from_be_bytes(*id) != DICTIONARY_ID {
            return Err(Corrupt);
        }
        self.window.extend_from_slice(DICTIONARY);
        Ok(rest)
    }

    fn stored(&mut self, bits: &mut Bits<'_>, most: usize) -> Result<(), Corrupt> {
        bits.align();
        let length = bits.take(16)?;
        if bits.take(16)? != !length & 0xFFFF {
            return Err(Corrupt);
        }
        let end = bits.at + length as usize;
        let bytes = bits.bytes.get(bits.at..end).ok_or(Corrupt)?;
        bits.at = end;
        if self.window.len() + bytes.len() > most {
            return Err(Corrupt);
        }
        self.window.extend_from_slice(bytes);
        Ok(())
    }

    fn coded(&mut self, bits: &mut Bits<'_>, tables: &Tables, most: usize) -> Result<(), Corrupt> {
        loop {
            let symbol = tables.literals.next(bits)?;
            if let Ok(byte) = u8::try_from(symbol) {
                if self.window.len() >= most {
                    return Err(Corrupt);
                }
                self.window.push(byte);
                continue;
            }
            if symbol == END_OF_BLOCK {
                return Ok(());
            }
            let (base, extra) = *LENGTHS.get(usize::from(symbol) - 257).ok_or(Corrupt)?;
            let length = usize::from(base) + bits.take(u32::from(extra))? as usize;
            let code = tables.distances.next(bits)?;
            let (base, extra) = *DISTANCES.get(usize::from(code)).ok_or(Corrupt)?;
            let distance = usize::from(base) + bits.take(u32::from(extra))? as usize;
            let from = self.window.len().checked_sub(distance).ok_or(Corrupt)?;
            if distance > WINDOW_BYTES || self.window.len() + length > most {
                return Err(Corrupt);
            }
            for place in from..from + length {
                self.window.push(self.window[place]);
            }
        }
    }
}

const END_OF_BLOCK: u16 = 256;

/// The least length of each code from 257 on, and how many bits say how much more it is.
const LENGTHS: [(u16, u8); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];

/// The same for distances.
const DISTANCES: [(u16, u8); 30] = [
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 1),
    (7, 1),
    (9, 2),
    (13, 2),
    (17, 3),
    (25, 3),
    (33, 4),
    (49, 4),
    (65, 5),
    (97, 5),
    (129, 6),
    (193, 6),
    (257, 7),
    (385, 7),
    (513, 8),
    (769, 8),
    (1025, 9),
    (1537, 9),
    (2049, 10),
    (3073, 10),
    (4097, 11),
    (6145, 11),
    (8193, 12),
    (12289, 12),
    (16385, 13),
    (24577, 13),
];

/// In which order the lengths of the codes for lengths come.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bits of the byte before `at` that were not taken yet.
    held: u32,
    count: u32,
}

impl Bits<'_> {
    /// So many bits, at most 16.
    fn take(&mut self, count: u32) -> Result<u32, Corrupt> {
        while self.count < count {
            let byte = *self.bytes.get(self.at).ok_or(Corrupt)?;
            self.held |= u32::from(byte) << self.count;
            self.at += 1;
            self.count += 8;
        }
        let taken = self.held & ((1 << count) - 1);
        self.held >>= count;
        self.count -= count;
        Ok(taken)
    }

    fn align(&mut self) {
        (self.held, self.count) = (0, 0);
    }
}

/// Which bits stand for which symbols.
struct Codes {
    /// How many codes there are of each length.
    counts: [u16; 16],
    /// The symbols, by length and then by number.
    symbols: Vec<u16>,
}

impl Codes {
    fn of(lengths: &[u8]) -> Result<Codes, Corrupt> {
        let mut counts = [0_u16; 16];
        for length in lengths {
            *counts.get_mut(usize::from(*length)).ok_or(Corrupt)? += 1;
        }
        let mut left = 1_i32;
        for count in &counts[1..] {
            left = (left << 1) - i32::from(*count);
            if left < 0 {
                return Err(Corrupt);
            }
        }
        counts[0] = 0;
        let mut symbols = Vec::with_capacity(lengths.len());
        for wanted in 1..=15_u8 {
            let of_length = (0_u16..).zip(lengths).filter(|(_, length)| **length == wanted);
            symbols.extend(of_length.map(|(symbol, _)| symbol));
        }
        Ok(Codes { counts, symbols })
    }

    fn next(&self, bits: &mut Bits<'_>) -> Result<u16, Corrupt> {
        let (mut code, mut first, mut index) = (0_u32, 0_u32, 0_u32);
        for count in &self.counts[1..] {
            let count = u32::from(*count);
            code |= bits.take(1)?;
            if code < first + count {
                let place = index + code - first;
                return self.symbols.get(place as usize).copied().ok_or(Corrupt);
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        Err(Corrupt)
    }
}

/// The codes of a block.
struct Tables {
    literals: Codes,
    distances: Codes,
}

impl Tables {
    fn fixed() -> Tables {
        let literals = (0..288).map(|symbol| match symbol {
            0..=143 => 8,
            144..=255 => 9,
            256..=279 => 7,
            _ => 8,
        });
        let literals: Vec<u8> = literals.collect();
        let whole = "the codes of the specification are whole";
        Tables {
            literals: Codes::of(&literals).expect(whole),
            distances: Codes::of(&[5; 30]).expect(whole),
        }
    }

    fn read(bits: &mut Bits<'_>) -> Result<Tables, Corrupt> {
        let literals = bits.take(5)? as usize + 257;
        let distances = bits.take(5)? as usize + 1;
        let count = bits.take(4)? as usize + 4;
        let mut lengths = [0_u8; 19];
        for place in &ORDER[..count] {
            lengths[*place] = bits.take(3)? as u8;
        }
        let codes = Codes::of(&lengths)?;
        let mut lengths: Vec<u8> = Vec::with_capacity(literals + distances);
        while lengths.len() < literals + distances {
            let (length, times) = match codes.next(bits)? {
                16 => (*lengths.last().ok_or(Corrupt)?, bits.take(2)? + 3),
                17 => (0, bits.take(3)? + 3),
                18 => (0, bits.take(7)? + 11),
                length => (u8::try_from(length).map_err(|_| Corrupt)?, 1),
            };
            lengths.extend(std::iter::repeat_n(length, times as usize));
        }
        if lengths.len() > literals + distances || lengths[usize::from(END_OF_BLOCK)] == 0 {
            return Err(Corrupt);
        }
        let (literals, distances) = lengths.split_at(literals);
        Ok(Tables { literals: Codes::of(literals)?, distances: Codes::of(distances)? })
    }
}
