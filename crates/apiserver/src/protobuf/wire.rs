//! The wire format of protobuf: numbered values, one after the other.

/// A value as it is on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// Reads what is left of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

const CUT_SHORT: &str = "the message is cut short";

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// The next number and value; nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| format!("field {} ?", tag >> 3))?;
        if number == 0 {
            return Err("no field has the number 0".to_owned());
        }
        let value = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| CUT_SHORT)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.fixed()?)),
            other => return Err(format!("field {number} has the unknown wire type {other}")),
        };
        Ok(Some((number, value)))
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(CUT_SHORT)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number has more than ten bytes".to_owned())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT_SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], String> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(CUT_SHORT)?;
        self.rest = rest;
        Ok(*taken)
    }
}

/// Writes a message.
#[derive(Debug, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// A message that something stands before.
    pub(super) fn after(prefix: &[u8]) -> Self {
        Writer { bytes: prefix.to_vec() }
    }

    pub(super) fn bytes(&mut self, field: u32, content: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(content.len() as u64);
        self.bytes.extend_from_slice(content);
    }

    pub(super) fn number(&mut self, field: u32, number: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(number);
    }

    pub(super) fn double(&mut self, field: u32, number: f64) {
        self.varint(u64::from(field) << 3 | 1);
        self.bytes.extend_from_slice(&number.to_bits().to_le_bytes());
    }

    pub(super) fn written(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn varint(&mut self, mut left: u64) {
        while left > 0x7f {
            self.bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        self.bytes.push(left as u8);
    }
}

impl<'a> Wire<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], String> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            Wire::Varint(_) | Wire::Fixed64(_) | Wire::Fixed32(_) => Err(self.unexpected()),
        }
    }

    pub(super) fn text(self) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes()?).map_err(|_| "a text is not UTF-8".to_owned())
    }

    pub(super) fn number(self) -> Result<u64, String> {
        match self {
            Wire::Varint(number) => Ok(number),
            Wire::Bytes(_) | Wire::Fixed64(_) | Wire::Fixed32(_) => Err(self.unexpected()),
        }
    }

    pub(super) fn double(self) -> Result<f64, String> {
        match self {
            Wire::Fixed64(bits) => Ok(f64::from_bits(bits)),
            Wire::Varint(_) | Wire::Bytes(_) | Wire::Fixed32(_) => Err(self.unexpected()),
        }
    }

    fn unexpected(self) -> String {
        let wire_type = match self {
            Wire::Varint(_) => 0,
            Wire::Fixed64(_) => 1,
            Wire::Bytes(_) => 2,
            Wire::Fixed32(_) => 5,
        };
        format!("wire type {wire_type} is wrong here")
    }
}
