//! Frames of SPDY/3.1, from bytes and to bytes.

use super::inflate::Inflater;
use bytes::{Buf, Bytes, BytesMut};

/// A longer control frame is refused: all that clients send fit into this many times over.
const MOST_CONTROL_BYTES: usize = 16 * 1024;
/// The same for headers once they are decompressed, and for their number.
const MOST_HEADER_BYTES: usize = 64 * 1024;
const MOST_HEADERS: u32 = 64;

const VERSION: u16 = 0x8003;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;
const FLAG_FINAL: u8 = 1;

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Event {
    /// The client opens a stream.
    Open { id: u32, headers: Vec<(String, String)>, is_final: bool },
    /// A part of what it says on a stream.
    Data { id: u32, bytes: Bytes, is_final: bool },
    /// It gives a stream up.
    Reset { id: u32 },
    /// It wants this said back.
    Ping { number: u32 },
    /// It opens no more streams.
    GoAway,
    /// Nothing that matters here.
    Other,
}

/// What a client may not send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    Version,
    TooLong,
    TooShort,
    Headers,
    /// Streams of a client have odd numbers, each higher than the one before.
    StreamId,
}

/// Takes the frames of a client apart.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    inflater: Inflater,
    /// The data frame that is being read.
    data: Option<Data>,
    last_stream: u32,
}

#[derive(Debug, Clone, Copy)]
struct Data {
    id: u32,
    left: usize,
    is_final: bool,
}

impl Decoder {
    /// What comes next in the bytes; None if more of them are needed.
    pub(super) fn next(&mut self, bytes: &mut BytesMut) -> Result<Option<Event>, Broken> {
        if let Some(data) = self.data {
            return Ok(self.data(data, bytes));
        }
        let Some(head) = bytes.first_chunk::<8>().copied() else { return Ok(None) };
        let [a, b, c, d, flags, long, middle, short] = head;
        let length = u32::from_be_bytes([0, long, middle, short]) as usize;
        if a & 0x80 == 0 {
            bytes.advance(head.len());
            let is_final = flags & FLAG_FINAL != 0;
            let data = Data { id: u32::from_be_bytes([a, b, c, d]), left: length, is_final };
            return Ok(self.data(data, bytes));
        }
        if u16::from_be_bytes([a, b]) != VERSION {
            return Err(Broken::Version);
        }
        if length > MOST_CONTROL_BYTES {
            return Err(Broken::TooLong);
        }
        if bytes.len() < head.len() + length {
            return Ok(None);
        }
        bytes.advance(head.len());
        let frame = bytes.split_to(length).freeze();
        self.control(u16::from_be_bytes([c, d]), flags, frame).map(Some)
    }

    /// A part of a data frame, as it came. An empty one is passed on if it is the last.
    fn data(&mut self, mut data: Data, bytes: &mut BytesMut) -> Option<Event> {
        let part = bytes.split_to(data.left.min(bytes.len())).freeze();
        data.left -= part.len();
        self.data = (data.left > 0).then_some(data);
        if data.left > 0 && part.is_empty() {
            return None;
        }
        let is_final = data.is_final && data.left == 0;
        Some(Event::Data { id: data.id, bytes: part, is_final })
    }

    fn control(&mut self, kind: u16, flags: u8, mut frame: Bytes) -> Result<Event, Broken> {
        match kind {
            SYN_STREAM => {
                let id = number(&mut frame)? & 0x7FFF_FFFF;
                // The stream that it belongs to, its priority, and a slot for certificates.
                if frame.len() < 6 {
                    return Err(Broken::TooShort);
                }
                frame.advance(6);
                let headers = self.headers(&frame)?;
                if id % 2 == 0 || id <= self.last_stream {
                    return Err(Broken::StreamId);
                }
                self.last_stream = id;
                Ok(Event::Open { id, headers, is_final: flags & FLAG_FINAL != 0 })
            }
            // They are decompressed for what comes after them.
            SYN_REPLY | HEADERS => {
                number(&mut frame)?;
                self.headers(&frame)?;
                Ok(Event::Other)
            }
            RST_STREAM => Ok(Event::Reset { id: number(&mut frame)? & 0x7FFF_FFFF }),
            PING => Ok(Event::Ping { number: number(&mut frame)? }),
            GOAWAY => Ok(Event::GoAway),
            _ => Ok(Event::Other),
        }
    }

    fn headers(&mut self, block: &[u8]) -> Result<Vec<(String, String)>, Broken> {
        let said = self.inflater.inflate(block, MOST_HEADER_BYTES);
        let mut said = Bytes::from(said.map_err(|_| Broken::Headers)?);
        let count = number(&mut said)?;
        if count > MOST_HEADERS {
            return Err(Broken::Headers);
        }
        let mut headers = Vec::new();
        for _ in 0..count {
            headers.push((text(&mut said)?.to_ascii_lowercase(), text(&mut said)?));
        }
        Ok(headers)
    }
}

fn number(bytes: &mut Bytes) -> Result<u32, Broken> {
    let number = *bytes.first_chunk::<4>().ok_or(Broken::TooShort)?;
    bytes.advance(number.len());
    Ok(u32::from_be_bytes(number))
}

fn text(bytes: &mut Bytes) -> Result<String, Broken> {
    let length = number(bytes)? as usize;
    if length > bytes.len() {
        return Err(Broken::Headers);
    }
    let text = bytes.split_to(length);
    String::from_utf8(text.into()).map_err(|_| Broken::Headers)
}

fn control(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(8 + payload.len());
    frame.extend(VERSION.to_be_bytes());
    frame.extend(kind.to_be_bytes());
    frame.push(0);
    frame.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    frame.extend(payload);
    frame
}

/// Compresses what the server says in headers, which is nothing: an empty list, stored as it is.
#[derive(Debug, Default)]
pub(super) struct Replies {
    has_begun: bool,
}

impl Replies {
    /// That a stream is open.
    pub(super) fn reply(&mut self, id: u32) -> Vec<u8> {
        let mut payload = id.to_be_bytes().to_vec();
        if !self.has_begun {
            payload.extend([0x78, 0x01]);
            self.has_begun = true;
        }
        // A stored block with the number of headers, and an empty one that flushes it.
        payload.extend([0, 4, 0, 0xFB, 0xFF, 0, 0, 0, 0]);
        payload.extend([0, 0, 0, 0xFF, 0xFF]);
        control(SYN_REPLY, &payload)
    }
}

/// What the server says on a stream: at most 16 MiB at once.
pub(in super::super) fn data(id: u32, bytes: &[u8], is_final: bool) -> Vec<u8> {
    let mut frame = Vec::with_capacity(8 + bytes.len());
    frame.extend(id.to_be_bytes());
    frame.push(if is_final { FLAG_FINAL } else { 0 });
    frame.extend(&(bytes.len() as u32).to_be_bytes()[1..]);
    frame.extend(bytes);
    frame
}

/// That a stream is refused.
pub(in super::super) fn refused(id: u32) -> Vec<u8> {
    const REFUSED_STREAM: u32 = 3;
    let mut payload = id.to_be_bytes().to_vec();
    payload.extend(REFUSED_STREAM.to_be_bytes());
    control(RST_STREAM, &payload)
}

pub(super) fn ping(number: u32) -> Vec<u8> {
    control(PING, &number.to_be_bytes())
}
