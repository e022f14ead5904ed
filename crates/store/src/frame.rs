//! Frames: what one batch of transactions looks like in the log.
//!
//! A frame is a header of 40 bytes and a payload. The header holds magic, payload length, the id of
//! the segment, the frame's sequence number, the revision of its first transaction, how many
//! transactions there are, and the checksum of all the rest. The segment's id is random, so that
//! neither stale bytes of a reused block nor bytes that a client put into a value can pass for a
//! frame.

use crate::Revision;
use crate::encoding::{Reader, checksum, push_bytes};

/// The length of a frame's header.
pub(crate) const FRAME_HEADER: usize = 40;
/// No frame's payload is longer: a batch is 8 MiB at most, and its lengths and counts add little.
pub(crate) const LONGEST_PAYLOAD: usize = 16 << 20;

const MAGIC: [u8; 4] = *b"ILKf";
const CHECKSUM_AT: usize = 36;
const PUT: u8 = 1;
const DELETE: u8 = 2;

/// Where a frame belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FramePlace {
    /// The random id of the segment.
    pub(crate) segment: u64,
    /// Counts frames, over all segments.
    pub(crate) sequence: u64,
    /// The revision of the first transaction; the others follow without a gap.
    pub(crate) first_revision: Revision,
}

/// A frame being made.
pub(crate) struct FrameBuilder {
    bytes: Vec<u8>,
    transactions: u32,
}

impl FrameBuilder {
    /// An empty frame.
    pub(crate) fn new() -> Self {
        FrameBuilder { bytes: vec![0; FRAME_HEADER], transactions: 0 }
    }

    /// Forgets the transactions, but keeps the memory unless it is much.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
        self.bytes.resize(FRAME_HEADER, 0);
        self.transactions = 0;
    }

    /// How many transactions there are.
    pub(crate) fn transactions(&self) -> u32 {
        self.transactions
    }

    /// Begins a transaction of so many operations.
    pub(crate) fn transaction(&mut self, operations: usize) {
        let operations = u32::try_from(operations).expect("transactions have at most 128");
        self.bytes.extend_from_slice(&operations.to_le_bytes());
        self.transactions += 1;
    }

    /// One operation of the transaction that was begun last.
    pub(crate) fn operation(&mut self, operation: LoggedOperation<'_>) {
        self.bytes.push(if operation.value.is_some() { PUT } else { DELETE });
        push_bytes(&mut self.bytes, operation.table.as_bytes());
        push_bytes(&mut self.bytes, operation.row.as_bytes());
        if let Some(value) = operation.value {
            push_bytes(&mut self.bytes, value);
        }
    }

    /// How many bytes the frame takes.
    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Fills in the header. The bytes may be written as they are, also followed by more zeros.
    pub(crate) fn finish(&mut self, place: FramePlace) -> &mut Vec<u8> {
        let length = u32::try_from(self.bytes.len() - FRAME_HEADER).expect("batches are limited");
        let header = &mut self.bytes[..FRAME_HEADER];
        header[0..4].copy_from_slice(&MAGIC);
        header[4..8].copy_from_slice(&length.to_le_bytes());
        header[8..16].copy_from_slice(&place.segment.to_le_bytes());
        header[16..24].copy_from_slice(&place.sequence.to_le_bytes());
        header[24..32].copy_from_slice(&place.first_revision.to_le_bytes());
        header[32..CHECKSUM_AT].copy_from_slice(&self.transactions.to_le_bytes());
        let sum = checksum(&[&self.bytes[..CHECKSUM_AT], &self.bytes[FRAME_HEADER..]]);
        self.bytes[CHECKSUM_AT..FRAME_HEADER].copy_from_slice(&sum.to_le_bytes());
        &mut self.bytes
    }
}

/// A frame that was read, and that checks.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    /// Where it says that it belongs.
    pub(crate) place: FramePlace,
    /// How many transactions it says it has.
    pub(crate) transactions: u32,
    /// Header and payload together.
    pub(crate) length: usize,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at the front of some bytes, if a whole and undamaged one of this segment is there.
    pub(crate) fn read(bytes: &'a [u8], segment: u64) -> Option<Self> {
        let header = bytes.get(..FRAME_HEADER)?;
        let mut reader = Reader::new(header.strip_prefix(&MAGIC)?);
        let length = usize::try_from(reader.u32()?).ok()?;
        let place = FramePlace {
            segment: reader.u64()?,
            sequence: reader.u64()?,
            first_revision: reader.u64()?,
        };
        let transactions = reader.u32()?;
        let expected = reader.u32()?;
        if place.segment != segment || length > LONGEST_PAYLOAD {
            return None;
        }
        let payload = bytes.get(FRAME_HEADER..FRAME_HEADER + length)?;
        if checksum(&[&header[..CHECKSUM_AT], payload]) != expected {
            return None;
        }
        Some(Frame { place, transactions, length: FRAME_HEADER + length, payload })
    }

    /// The transactions, one list of operations each; none if the payload makes no sense.
    pub(crate) fn decode(&self) -> Option<Vec<Vec<LoggedOperation<'a>>>> {
        let mut reader = Reader::new(self.payload);
        let mut transactions = Vec::new();
        for _ in 0..self.transactions {
            let operations = reader.u32()?;
            let decoded: Option<Vec<_>> = (0..operations).map(|_| operation(&mut reader)).collect();
            transactions.push(decoded?);
        }
        reader.is_done().then_some(transactions)
    }
}

fn operation<'a>(reader: &mut Reader<'a>) -> Option<LoggedOperation<'a>> {
    let kind = reader.u8()?;
    let table = reader.text()?;
    let row = reader.text()?;
    let value = match kind {
        PUT => Some(reader.bytes()?),
        DELETE => None,
        _ => return None,
    };
    Some(LoggedOperation { table, row, value })
}

/// One change as the log has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoggedOperation<'a> {
    /// Which table.
    pub(crate) table: &'a str,
    /// Which row in it.
    pub(crate) row: &'a str,
    /// What it says from now on; none if it was deleted.
    pub(crate) value: Option<&'a [u8]>,
}

/// Where in some bytes the first whole frame of a segment begins, of those from a sequence number
/// on. An earlier one could only be a copy that somebody stored as a value.
pub(crate) fn find_frame(bytes: &[u8], segment: u64, sequence: u64) -> Option<usize> {
    let is_frame = |at: &usize| {
        let frame = Frame::read(&bytes[*at..], segment);
        frame.is_some_and(|frame| frame.place.sequence >= sequence)
    };
    (0..bytes.len().saturating_sub(FRAME_HEADER))
        .filter(|at| bytes[*at..].starts_with(&MAGIC))
        .find(is_frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: FramePlace = FramePlace { segment: 7, sequence: 3, first_revision: 12 };

    fn two_transactions() -> Vec<u8> {
        let mut builder = FrameBuilder::new();
        builder.transaction(2);
        builder.operation(LoggedOperation { table: "pods", row: "a", value: Some(b"one") });
        builder.operation(LoggedOperation { table: "nodes", row: "b", value: None });
        builder.transaction(1);
        builder.operation(LoggedOperation { table: "pods", row: "", value: Some(b"") });
        builder.finish(PLACE).clone()
    }

    #[test]
    fn a_frame_is_read_back_as_it_was_written() {
        let bytes = two_transactions();
        let frame = Frame::read(&bytes, 7).expect("it was just made");
        assert_eq!(frame.place, PLACE);
        assert_eq!(frame.length, bytes.len());
        let transactions = frame.decode().expect("it was just made");
        assert_eq!(transactions.len(), 2);
        assert_eq!(transactions[0][1].table, "nodes");
        assert_eq!(transactions[1][0].value, Some(&b""[..]));
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let bytes = two_transactions();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Frame::read(&damaged, 7).is_none(), "bit {bit} was flipped unnoticed");
        }
    }

    #[test]
    fn a_frame_cut_short_is_none() {
        let bytes = two_transactions();
        for length in 0..bytes.len() {
            assert!(Frame::read(&bytes[..length], 7).is_none());
        }
    }

    #[test]
    fn a_frame_of_another_segment_is_none() {
        assert!(Frame::read(&two_transactions(), 8).is_none());
    }

    #[test]
    fn a_frame_is_found_behind_rubbish() {
        let mut bytes = b"ILKfILKf rubbish".to_vec();
        bytes.extend(two_transactions());
        assert_eq!(find_frame(&bytes, 7, 3), Some(16));
        assert_eq!(find_frame(&bytes, 7, 4), None);
        assert_eq!(find_frame(&bytes, 8, 3), None);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20_000 {
            let payload: Vec<u8> = (0..state % 40)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    if state & 0x300 == 0 { (state >> 40) as u8 } else { (state >> 40) as u8 % 3 }
                })
                .collect();
            let frame = Frame { place: PLACE, transactions: 2, length: 0, payload: &payload };
            frame.decode();
            state = state.wrapping_add(0x1234_5678_9ABC_DEF1);
        }
    }
}
