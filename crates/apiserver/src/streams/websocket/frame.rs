//! One frame after the other, from bytes and to bytes.

use super::Part;
use bytes::{Buf, Bytes, BytesMut};

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    Part(Part),
    Ping(Bytes),
    Pong,
    Close,
}

/// What a client may not send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// A bit that means something to an extension that was not agreed on.
    ReservedBits,
    /// An operation that is none.
    Operation(u8),
    /// A client hides what it sends behind a mask, always.
    NotMasked,
    /// A control frame in several parts, or of more than 125 bytes.
    Control,
    /// A length with its first bit set.
    Length,
    /// A message within another one, or the rest of none.
    Order,
}

/// Frames that say something about the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    Close,
    Ping,
    Pong,
}

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
const MOST_CONTROL_BYTES: u64 = 125;

/// The head of a frame from the server, whose payload has this length: a whole binary message, or a control frame.
pub(super) fn header(control: Option<Control>, length: usize) -> Vec<u8> {
    let operation = match control {
        None => BINARY,
        Some(Control::Close) => CLOSE,
        Some(Control::Ping) => PING,
        Some(Control::Pong) => PONG,
    };
    let mut header = vec![FINAL | operation];
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length @ 0..=125), _) => header.push(length),
        (_, Ok(length)) => {
            header.push(126);
            header.extend(length.to_be_bytes());
        }
        _ => {
            header.push(127);
            header.extend((length as u64).to_be_bytes());
        }
    }
    header
}

/// Takes the frames of a client apart.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The frame whose payload is being read.
    frame: Option<Frame>,
    /// Whether a message has begun, and a frame that continues it must come.
    is_in_message: bool,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    operation: u8,
    is_final: bool,
    left_bytes: u64,
    mask: [u8; 4],
    /// Which byte of the mask is next.
    phase: usize,
    /// Whether no part of its message was passed on yet.
    begins: bool,
}

impl Decoder {
    /// What comes next in the bytes; None if more of them are needed.
    pub(super) fn next(&mut self, bytes: &mut BytesMut) -> Result<Option<Event>, Broken> {
        let frame = match self.frame {
            Some(frame) => frame,
            None => match self.begin(bytes)? {
                Some(frame) => frame,
                None => return Ok(None),
            },
        };
        self.frame = Some(frame);
        if frame.operation >= CLOSE {
            return Ok(self.control(frame, bytes));
        }
        Ok(self.data(frame, bytes))
    }

    fn begin(&self, bytes: &mut BytesMut) -> Result<Option<Frame>, Broken> {
        let [first, second, ..] = bytes[..] else { return Ok(None) };
        if first & 0x70 != 0 {
            return Err(Broken::ReservedBits);
        }
        let (operation, is_final) = (first & 0x0F, first & FINAL != 0);
        let is_known = matches!(operation, CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG);
        if !is_known {
            return Err(Broken::Operation(operation));
        }
        if second & MASKED == 0 {
            return Err(Broken::NotMasked);
        }
        let (length_bytes, short) = match second & !MASKED {
            126 => (2, 0),
            127 => (8, 0),
            short => (0, u64::from(short)),
        };
        if operation >= CLOSE && (!is_final || length_bytes > 0) {
            return Err(Broken::Control);
        }
        if (operation == CONTINUATION) != self.is_in_message && operation < CLOSE {
            return Err(Broken::Order);
        }
        let head_bytes = 2 + length_bytes + 4;
        let Some(head) = bytes.get(..head_bytes) else { return Ok(None) };
        let long =
            head[2..2 + length_bytes].iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let left_bytes = if length_bytes == 0 { short } else { long };
        if left_bytes >> 63 != 0 {
            return Err(Broken::Length);
        }
        let mut mask = [0; 4];
        mask.copy_from_slice(&head[2 + length_bytes..]);
        bytes.advance(head_bytes);
        let begins = operation != CONTINUATION;
        Ok(Some(Frame { operation, is_final, left_bytes, mask, phase: 0, begins }))
    }

    /// A control frame comes whole.
    fn control(&mut self, mut frame: Frame, bytes: &mut BytesMut) -> Option<Event> {
        let length = usize::try_from(frame.left_bytes.min(MOST_CONTROL_BYTES)).unwrap_or(0);
        if bytes.len() < length {
            return None;
        }
        let payload = frame.unmasked(bytes.split_to(length));
        self.frame = None;
        Some(match frame.operation {
            PING => Event::Ping(payload),
            PONG => Event::Pong,
            _ => Event::Close,
        })
    }

    fn data(&mut self, mut frame: Frame, bytes: &mut BytesMut) -> Option<Event> {
        if bytes.is_empty() && frame.left_bytes > 0 {
            return None;
        }
        let length = usize::try_from(frame.left_bytes).unwrap_or(usize::MAX).min(bytes.len());
        let payload = frame.unmasked(bytes.split_to(length));
        frame.left_bytes -= length as u64;
        let is_whole = frame.left_bytes == 0;
        let part = Part { begins: frame.begins, ends: is_whole && frame.is_final, bytes: payload };
        frame.begins = false;
        self.frame = (!is_whole).then_some(frame);
        if is_whole {
            self.is_in_message = !frame.is_final;
        }
        Some(Event::Part(part))
    }
}

impl Frame {
    fn unmasked(&mut self, mut payload: BytesMut) -> Bytes {
        for byte in &mut payload[..] {
            *byte ^= self.mask[self.phase];
            self.phase = (self.phase + 1) % 4;
        }
        payload.freeze()
    }
}
