//! Protobuf messages as they are written: numbered values, one after the other.

use serde_json::Value;

/// A message that is being written.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// What was written.
    pub(super) fn bytes(self) -> Vec<u8> {
        self.0
    }

    /// A message inside.
    pub(super) fn message(&mut self, number: u32, inner: Message) {
        self.raw(number, &inner.0);
    }

    /// A message inside that is written already.
    pub(super) fn raw(&mut self, number: u32, bytes: &[u8]) {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A text.
    pub(super) fn text(&mut self, number: u32, text: &str) {
        self.raw(number, text.as_bytes());
    }

    /// A text, if the value is one.
    pub(super) fn text_if_any(&mut self, number: u32, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.text(number, text);
        }
    }

    /// True, if the value is; nothing means false.
    pub(super) fn bool_if_true(&mut self, number: u32, value: &Value) {
        if *value == true {
            self.varint(u64::from(number) << 3);
            self.varint(1);
        }
    }

    /// A whole number that is not negative, if the value is one.
    pub(super) fn count_if_any(&mut self, number: u32, value: &Value) {
        if let Some(count) = value.as_u64() {
            self.varint(u64::from(number) << 3);
            self.varint(count);
        }
    }

    /// A number, if the value is one.
    pub(super) fn double_if_any(&mut self, number: u32, value: &Value) {
        if let Some(double) = value.as_f64() {
            self.varint(u64::from(number) << 3 | 1);
            self.0.extend_from_slice(&double.to_le_bytes());
        }
    }

    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 & 0x7f | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_with_their_numbers() {
        let mut message = Message::default();
        message.text(1, "ab");
        message.count_if_any(2, &json!(300));
        message.bool_if_true(3, &json!(true));
        message.bool_if_true(4, &json!(false));
        message.double_if_any(5, &json!(1.5));
        message.text_if_any(6, &json!(null));
        message.message(31, Message::default());
        assert_eq!(
            message.bytes(),
            [&b"\x0a\x02ab\x10\xac\x02\x18\x01\x29"[..], &1.5f64.to_le_bytes(), b"\xfa\x01\x00"]
                .concat()
        );
    }
}
