//! The few messages of etcd's API that are needed, written and read by hand.

use anyhow::Context;

/// A message that is being written.
#[derive(Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A number, in a field.
    pub fn number(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    /// Bytes, a text or another message, in a field.
    pub fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }
}

fn put(key: &[u8], value: &[u8]) -> Message {
    Message::default().bytes(1, key).bytes(2, value)
}

/// A put on the condition that the key was last written at a revision; 0 means that it is absent. If it was
/// not, what is there is read: this is how kube-apiserver writes.
pub fn guarded_put(key: &[u8], last: u64, value: &[u8]) -> Message {
    // Equal is 0 and need not be written; 2 is the revision of the last change.
    let compare = Message::default().number(2, 2).bytes(3, key).number(6, last);
    let write = Message::default().bytes(2, &put(key, value).0);
    let read = Message::default().bytes(1, &Message::default().bytes(1, key).0);
    Message::default().bytes(1, &compare.0).bytes(2, &write.0).bytes(3, &read.0)
}

/// Many puts at once, without a condition.
pub fn puts<'a>(pairs: impl Iterator<Item = (String, &'a [u8])>) -> Message {
    pairs.fold(Message::default(), |message, (key, value)| {
        let write = Message::default().bytes(2, &put(key.as_bytes(), value).0);
        message.bytes(2, &write.0)
    })
}

/// The first keys between two.
pub fn range(from: &[u8], to: &[u8], limit: u64) -> Message {
    Message::default().bytes(1, from).bytes(2, to).number(3, limit)
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> anyhow::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().context("a message ends in a number")?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(number);
        }
    }
    anyhow::bail!("a number is too long")
}

fn next<'a>(bytes: &mut &'a [u8]) -> anyhow::Result<Option<(u64, Field<'a>)>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let tag = varint(bytes)?;
    let field = match tag & 7 {
        0 => Field::Number(varint(bytes)?),
        2 => {
            let length = usize::try_from(varint(bytes)?)?;
            let (value, rest) = bytes.split_at_checked(length).context("a message is cut short")?;
            *bytes = rest;
            Field::Bytes(value)
        }
        other => anyhow::bail!("a field of type {other} was not expected"),
    };
    Ok(Some((tag >> 3, field)))
}

/// The revision in the head of an answer, whether a transaction's condition held, and how many keys came.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The store's revision.
    pub revision: u64,
    /// For a transaction.
    pub succeeded: bool,
    /// For a range.
    pub keys: usize,
}

/// Reads the answer to a transaction.
pub fn transaction_answer(bytes: &[u8]) -> anyhow::Result<Answer> {
    let mut rest = bytes;
    let mut answer = Answer::default();
    while let Some((field, value)) = next(&mut rest)? {
        match (field, value) {
            (1, Field::Bytes(head)) => answer.revision = revision(head)?,
            (2, Field::Number(succeeded)) => answer.succeeded = succeeded == 1,
            _ => {}
        }
    }
    Ok(answer)
}

/// Reads the answer to a range.
pub fn range_answer(bytes: &[u8]) -> anyhow::Result<Answer> {
    let mut rest = bytes;
    let mut answer = Answer::default();
    while let Some((field, value)) = next(&mut rest)? {
        match (field, value) {
            (1, Field::Bytes(head)) => answer.revision = revision(head)?,
            (2, Field::Bytes(_)) => answer.keys += 1,
            _ => {}
        }
    }
    Ok(answer)
}

fn revision(mut head: &[u8]) -> anyhow::Result<u64> {
    while let Some((field, value)) = next(&mut head)? {
        if let (3, Field::Number(revision)) = (field, value) {
            return Ok(revision);
        }
    }
    Ok(0)
}
