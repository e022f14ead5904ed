//! A client of HTTP/2 that may leave its windows closed: it asks, and reads nothing of what it asked for.
//!
//! Clients that are made for use open their windows by themselves, so the few frames that matter are made here.

use super::http::Place;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// So much of the end of an answer is kept.
const TAIL: usize = 4096;
const PAUSE: Duration = Duration::from_millis(20);

/// What is known of one request.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) status: Option<u16>,
    /// The server ended it, in whichever way.
    pub(super) is_over: bool,
    /// The end of what came.
    pub(super) tail: Vec<u8>,
}

/// A connection.
pub(super) struct Frames {
    stream: TcpStream,
    unread: Vec<u8>,
    place: Place,
    next: u32,
    pub(super) streams: BTreeMap<u32, Stream>,
    /// The server closed the connection.
    pub(super) is_closed: bool,
}

impl Frames {
    /// Connects; every stream begins with a window of so many bytes.
    pub(super) fn connect(place: &Place, window: u32) -> anyhow::Result<Frames> {
        let stream = TcpStream::connect(&place.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PAUSE))?;
        stream.set_write_timeout(Some(Duration::from_secs(60)))?;
        let mut frames = Frames {
            stream,
            unread: Vec::new(),
            place: place.clone(),
            next: 1,
            streams: BTreeMap::new(),
            is_closed: false,
        };
        // No table for header fields: each status then comes as it is. No pushes.
        let mut settings = Vec::new();
        for (name, value) in [(1_u16, 0_u32), (2, 0), (4, window)] {
            settings.extend_from_slice(&name.to_be_bytes());
            settings.extend_from_slice(&value.to_be_bytes());
        }
        frames.stream.write_all(PREFACE)?;
        frames.write(SETTINGS, 0, 0, &settings)?;
        Ok(frames)
    }

    fn write(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) -> anyhow::Result<()> {
        let length = u32::try_from(payload.len())?.to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend_from_slice(&id.to_be_bytes());
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame)?;
        Ok(())
    }

    /// Asks for a path below the place.
    pub(super) fn get(&mut self, path: &str) -> anyhow::Result<()> {
        let id = self.next;
        self.next += 2;
        // By their places in the static table: `:method: GET`, `:scheme: http`, `:path`, `:authority`, `authorization`.
        let mut block = vec![0x82, 0x86, 0x04];
        text(&mut block, &format!("{}{path}", self.place.root));
        block.push(0x01);
        text(&mut block, "localhost");
        block.extend([0x0f, 0x08]);
        text(&mut block, &format!("Bearer {}", self.place.token));
        self.streams.insert(id, Stream::default());
        self.write(HEADERS, END_STREAM | END_HEADERS, id, &block)
    }

    /// Opens the windows of the connection and of all streams.
    pub(super) fn open(&mut self) -> anyhow::Result<()> {
        let more = (1_u32 << 30).to_be_bytes();
        let ids: Vec<u32> =
            self.streams.iter().filter(|(_, it)| !it.is_over).map(|it| *it.0).collect();
        for id in [0].into_iter().chain(ids) {
            self.write(WINDOW_UPDATE, 0, id, &more)?;
        }
        Ok(())
    }

    /// Reads what comes until something is so; whether it is.
    pub(super) fn until(
        &mut self,
        timeout: Duration,
        is_so: impl Fn(&Frames) -> bool,
    ) -> anyhow::Result<bool> {
        let deadline = Instant::now() + timeout;
        while !is_so(self) {
            if Instant::now() >= deadline || self.is_closed {
                return Ok(is_so(self));
            }
            self.read()?;
        }
        Ok(true)
    }

    fn read(&mut self) -> anyhow::Result<()> {
        let mut piece = [0; 64 * 1024];
        match self.stream.read(&mut piece) {
            Ok(0) => self.is_closed = true,
            Ok(read) => self.unread.extend_from_slice(&piece[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => self.is_closed = true,
            Err(error) => return Err(error.into()),
        }
        let mut at = 0;
        while let Some((frame, size)) = Frame::first(&self.unread[at..]) {
            let (kind, flags, id) = (frame.kind, frame.flags, frame.id);
            let payload = frame.payload.to_vec();
            at += size;
            self.take(kind, flags, id, &payload)?;
        }
        self.unread.drain(..at);
        Ok(())
    }

    fn take(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) -> anyhow::Result<()> {
        match kind {
            SETTINGS if flags & ACK == 0 => return self.write(SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => return self.write(PING, ACK, 0, payload),
            GOAWAY => self.is_closed = true,
            _ => {}
        }
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        match kind {
            HEADERS if stream.status.is_none() => stream.status = Some(status(payload)?),
            DATA => {
                stream.tail.extend_from_slice(payload);
                let spare = stream.tail.len().saturating_sub(TAIL);
                stream.tail.drain(..spare);
            }
            RST_STREAM => stream.is_over = true,
            _ => {}
        }
        stream.is_over |= matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0;
        Ok(())
    }
}

/// One frame of what was read.
struct Frame<'a> {
    kind: u8,
    flags: u8,
    id: u32,
    payload: &'a [u8],
}

impl Frame<'_> {
    /// The first one, if it is whole, and its size.
    fn first(bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
        let head = bytes.get(..9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        let payload = bytes.get(9..9 + length)?;
        Some((Frame { kind: head[3], flags: head[4], id, payload }, 9 + length))
    }
}

/// A text as header fields have it: its length, seven bits in the first byte, and its bytes.
fn text(block: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    if length < 127 {
        block.push(length as u8);
    } else {
        block.push(127);
        length -= 127;
        while length >= 128 {
            block.push((length % 128) as u8 | 128);
            length /= 128;
        }
        block.push(length as u8);
    }
    block.extend_from_slice(text.as_bytes());
}

/// The status, which is the first field of an answer. Before it the size of the table may be said.
fn status(block: &[u8]) -> anyhow::Result<u16> {
    let first = block.iter().position(|byte| byte & 0xe0 != 0x20).context("an empty header")?;
    let block = &block[first..];
    let by_index = [(0x88, 200), (0x89, 204), (0x8a, 206), (0x8b, 304), (0x8c, 400), (0x8d, 404)];
    if let Some((_, status)) = by_index.iter().find(|(byte, _)| *byte == block[0]) {
        return Ok(*status);
    }
    match (block[0], block.get(1)) {
        (0x8e, _) => Ok(500),
        (0x08 | 0x18 | 0x48, Some(&length)) => {
            let size = usize::from(length & 0x7f);
            let bytes = block.get(2..2 + size).context("a status that is cut")?;
            let is_coded = length & 0x80 != 0;
            let digits =
                if is_coded { digits(bytes)? } else { std::str::from_utf8(bytes)?.to_owned() };
            digits.parse().with_context(|| format!("no status: {digits:?}"))
        }
        (byte, _) => bail!("an answer begins with {byte:#x} and no status"),
    }
}

/// Digits in the code of HPACK: 0 to 2 have five bits, the others six, and ones fill the last byte.
fn digits(bytes: &[u8]) -> anyhow::Result<String> {
    let bits: Vec<u8> =
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |place| byte >> place & 1)).collect();
    let number = |bits: &[u8]| bits.iter().fold(0_u8, |sum, bit| sum << 1 | bit);
    let (mut digits, mut at) = (String::new(), 0);
    while bits.len() - at >= 5 && bits[at..].contains(&0) {
        let short = number(&bits[at..at + 5]);
        if short < 3 {
            digits.push(char::from(b'0' + short));
            at += 5;
            continue;
        }
        let long = number(bits.get(at..at + 6).context("a digit that is cut")?);
        if !(0b01_1001..=0b01_1111).contains(&long) {
            bail!("a status that has no digits");
        }
        digits.push(char::from(b'3' + long - 0b01_1001));
        at += 6;
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_in_every_form() {
        assert_eq!(status(&[0x88]).expect("200"), 200);
        assert_eq!(status(&[0x20, 0x8d]).expect("404"), 404);
        assert_eq!(status(&[0x08, 3, b'4', b'2', b'9']).expect("plain"), 429);
        // 429 is 011010 00010 011111, and ones to the end: 0110 1000 0100 1111 1111 1111.
        assert_eq!(status(&[0x48, 0x83, 0x68, 0x4f, 0xff]).expect("in the code"), 429);
        assert!(status(&[0x20]).is_err());
        assert!(status(&[0x41, 0x00]).is_err());
    }

    #[test]
    fn a_long_text_has_its_length_in_several_bytes() {
        let mut block = Vec::new();
        text(&mut block, &"x".repeat(1337));
        assert_eq!(block[..3], [127, 0xba, 0x09]);
        assert_eq!(block.len(), 3 + 1337);
        let mut block = Vec::new();
        text(&mut block, "ab");
        assert_eq!(block, [2, b'a', b'b']);
    }

    #[test]
    fn a_frame_that_is_not_whole_waits() {
        let whole = [0, 0, 2, DATA, END_STREAM, 0, 0, 0, 5, b'h', b'i', 0];
        let (frame, size) = Frame::first(&whole).expect("it is whole");
        assert_eq!((frame.id, frame.payload, size), (5, &b"hi"[..], 11));
        assert!(Frame::first(&whole[..10]).is_none());
    }
}
