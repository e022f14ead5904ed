//! Messages to the kernel's rtnetlink and back: bytes in, bytes out (rtnetlink(7)).

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// NLM_F_*: what a request asks for.
pub(super) const CREATE: u16 = 0x400;
pub(super) const EXCLUSIVE: u16 = 0x200;
pub(super) const APPEND: u16 = 0x800;
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const DUMP: u16 = 0x300;
const DUMP_INTERRUPTED: u16 = 0x10;

/// NLMSG_*: what the kernel answers beside what was asked for.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// The kernel answers at once, or is not the kernel that we know.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// A part of a dump has at most 32 KiB.
const BUFFER: usize = 1 << 16;
/// A list that changes all the time is not read for ever.
const DUMPS: usize = 20;

/// A request, or the attributes within one.
#[derive(Debug, Default)]
pub(super) struct Bytes(Vec<u8>);

impl Bytes {
    /// Begins with the fixed part of a request.
    pub(super) fn of(fixed: &[u8]) -> Bytes {
        Bytes(fixed.to_vec())
    }

    /// Adds an attribute.
    pub(super) fn with(mut self, kind: u16, value: &[u8]) -> Bytes {
        let length = u16::try_from(value.len() + 4).expect("names and numbers are short");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Adds a name, which ends with a zero.
    pub(super) fn with_name(self, kind: u16, name: &str) -> Bytes {
        self.with(kind, &[name.as_bytes(), &[0]].concat())
    }

    /// Adds a number in the order of this machine.
    pub(super) fn with_number(self, kind: u16, number: u32) -> Bytes {
        self.with(kind, &number.to_ne_bytes())
    }

    /// Adds attributes as one.
    pub(super) fn with_all(self, kind: u16, within: Bytes) -> Bytes {
        const NESTED: u16 = 0x8000;
        self.with(kind | NESTED, &within.0)
    }
}

/// The attributes in some bytes: kind and value. What is cut off is left out.
pub(super) fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    const KIND: u16 = 0x3fff;
    let mut found = Vec::new();
    while let (Some(length), Some(kind)) = (number16(bytes, 0), number16(bytes, 2)) {
        let length = usize::from(length);
        let Some(value) = bytes.get(4..length) else { break };
        found.push((kind & KIND, value));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

pub(super) fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

pub(super) fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// What the kernel sent: a header, and what follows.
struct Message<'a> {
    kind: u16,
    flags: u16,
    body: &'a [u8],
}

fn messages(mut bytes: &[u8]) -> Vec<Message<'_>> {
    let mut found = Vec::new();
    while let (Some(length), Some(kind), Some(flags)) =
        (number32(bytes, 0), number16(bytes, 4), number16(bytes, 6))
    {
        let length = length as usize;
        let Some(body) = bytes.get(16..length) else { break };
        found.push(Message { kind, flags, body });
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// A request: its number, RTM_*, and what follows.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) body: Bytes,
}

impl Request {
    /// Asks for a change. When this returns, the kernel has made it or refused it.
    pub(super) fn change(self) -> io::Result<()> {
        let socket = self.send(REQUEST | ACK)?;
        let mut buffer = vec![0; BUFFER];
        loop {
            let bytes = receive(&socket, &mut buffer)?;
            if let Some(message) = messages(bytes).iter().find(|it| it.kind == ERROR) {
                return result(message.body);
            }
        }
    }

    /// Asks for one thing.
    pub(super) fn one(self) -> io::Result<Vec<u8>> {
        let socket = self.send(REQUEST)?;
        let mut buffer = vec![0; BUFFER];
        let bytes = receive(&socket, &mut buffer)?;
        match messages(bytes).first() {
            Some(message) if message.kind == ERROR => {
                result(message.body)?;
                Err(io::Error::other("the kernel answered without an answer"))
            }
            Some(message) => Ok(message.body.to_vec()),
            None => Err(io::Error::other("the kernel answered nothing")),
        }
    }

    /// Asks for all of a kind; again if the kernel says that it changed meanwhile.
    pub(super) fn all(self) -> io::Result<Vec<Vec<u8>>> {
        for _ in 0..DUMPS {
            if let Some(found) = self.dumped()? {
                return Ok(found);
            }
        }
        Err(io::Error::other("the list changed each time that it was read"))
    }

    fn dumped(&self) -> io::Result<Option<Vec<Vec<u8>>>> {
        let socket = self.send(REQUEST | DUMP)?;
        let (mut buffer, mut found, mut is_whole) = (vec![0; BUFFER], Vec::new(), true);
        loop {
            for message in messages(receive(&socket, &mut buffer)?) {
                is_whole &= message.flags & DUMP_INTERRUPTED == 0;
                match message.kind {
                    DONE => return Ok(is_whole.then_some(found)),
                    ERROR => result(message.body)?,
                    _ => found.push(message.body.to_vec()),
                }
            }
        }
    }

    fn send(&self, flags: u16) -> io::Result<OwnedFd> {
        // A socket for each request: no answer is taken for another one's.
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )?;
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT))?;
        let Request { kind, flags: more, body: Bytes(body) } = self;
        let length = u32::try_from(body.len() + 16).expect("requests are short");
        let mut bytes = Vec::with_capacity(body.len() + 16);
        bytes.extend(length.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | more).to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(body);
        rustix::net::send(&socket, &bytes, SendFlags::empty())?;
        Ok(socket)
    }
}

fn receive<'a>(socket: &OwnedFd, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    loop {
        match rustix::net::recv(socket, &mut *buffer, RecvFlags::TRUNC) {
            Ok((_, whole)) if whole > buffer.len() => {
                return Err(io::Error::other("the kernel answered more than fits"));
            }
            Ok((length, _)) => return Ok(&buffer[..length]),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What an error message says; zero is an acknowledgement.
fn result(body: &[u8]) -> io::Result<()> {
    let number =
        number32(body, 0).ok_or_else(|| io::Error::other("the kernel's error is cut off"))?;
    match number.cast_signed() {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(-number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_written() {
        let within = Bytes::default().with_name(1, "vxlan").with_number(2, 7);
        let bytes =
            Bytes::of(&[]).with_name(3, "p0").with_all(18, within).with(4, &[1, 2, 3, 4, 5]);
        assert_eq!(bytes.0.len() % 4, 0);
        let read = attributes(&bytes.0);
        assert_eq!(read[0], (3, &b"p0\0"[..]));
        assert_eq!(read[2], (4, &[1, 2, 3, 4, 5][..]));
        assert_eq!(attributes(read[1].1), [(1, &b"vxlan\0"[..]), (2, &7_u32.to_ne_bytes()[..])]);
    }

    #[test]
    fn what_is_cut_off_or_lies_about_its_length_is_left_out() {
        let bytes = Bytes::default().with_number(1, 7).with_number(2, 8).0;
        for end in 0..bytes.len() {
            assert_eq!(attributes(&bytes[..end]).len(), end / 8, "{end}");
        }
        assert!(attributes(&[0, 0, 1, 0, 9, 9]).is_empty(), "a length of nothing ends it");
        assert!(messages(&[3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_empty());
    }
}
