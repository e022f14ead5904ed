//! Client certificates, written byte by byte: rcgen knows one organization per name, and groups are
//! organizations.

use rcgen::{Issuer, KeyPair, PublicKeyData, SigningKey};
use ring::rand::{SecureRandom, SystemRandom};
use time::OffsetDateTime;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const UTF8_STRING: u8 = 0x0c;
const GENERALIZED_TIME: u8 = 0x18;
const UTC_TIME: u8 = 0x17;

const COMMON_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x0a];
const KEY_USAGE: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x25];
const ALTERNATIVE_NAMES: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x11];
const CLIENT_AUTHENTICATION: &[u8] = &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];
const ECDSA_WITH_SHA256: &[u8] =
    &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const TRUE: &[u8] = &[0x01, 0x01, 0xff];
/// Bit 0 of the key usage: digital signature.
const DIGITAL_SIGNATURE: &[u8] = &[BIT_STRING, 0x02, 0x07, 0x80];
const VERSION_3: &[u8] = &[0xa0, 0x03, INTEGER, 0x01, 0x02];

/// What a client certificate says.
pub(super) struct ClientCertificate<'a> {
    pub(super) user: &'a str,
    pub(super) groups: &'a [String],
    /// A URI among the subject alternative names.
    pub(super) uri: Option<String>,
    pub(super) not_before: OffsetDateTime,
    pub(super) not_after: OffsetDateTime,
    /// The authority's name, as its own certificate writes it.
    pub(super) issuer_name: &'a [u8],
}

impl ClientCertificate<'_> {
    /// The certificate for this key, signed by an authority whose key is ECDSA P-256.
    pub(super) fn sign(
        &self,
        key: &KeyPair,
        issuer: &Issuer<'static, KeyPair>,
    ) -> Result<Vec<u8>, rcgen::Error> {
        let to_sign = element(
            SEQUENCE,
            &[
                VERSION_3,
                &element(INTEGER, &[&serial_number()?]),
                ECDSA_WITH_SHA256,
                self.issuer_name,
                &element(SEQUENCE, &[&moment(self.not_before), &moment(self.not_after)]),
                &self.subject(),
                &key.subject_public_key_info(),
                &self.extensions(),
            ],
        );
        let signature = issuer.key().sign(&to_sign)?;
        Ok(element(
            SEQUENCE,
            &[&to_sign, ECDSA_WITH_SHA256, &element(BIT_STRING, &[&[0], &signature])],
        ))
    }

    fn subject(&self) -> Vec<u8> {
        let mut parts = Vec::new();
        for group in self.groups {
            parts.extend(attribute(ORGANIZATION, group));
        }
        parts.extend(attribute(COMMON_NAME, self.user));
        element(SEQUENCE, &[&parts])
    }

    fn extensions(&self) -> Vec<u8> {
        let mut all = extension(KEY_USAGE, TRUE, DIGITAL_SIGNATURE);
        let usages = element(SEQUENCE, &[CLIENT_AUTHENTICATION]);
        all.extend(extension(EXTENDED_KEY_USAGE, &[], &usages));
        if let Some(uri) = &self.uri {
            let names = element(SEQUENCE, &[&element(0x86, &[uri.as_bytes()])]);
            all.extend(extension(ALTERNATIVE_NAMES, &[], &names));
        }
        element(0xa3, &[&element(SEQUENCE, &[&all])])
    }
}

fn attribute(kind: &[u8], text: &str) -> Vec<u8> {
    let value = element(UTF8_STRING, &[text.as_bytes()]);
    element(SET, &[&element(SEQUENCE, &[kind, &value])])
}

fn extension(kind: &[u8], critical: &[u8], value: &[u8]) -> Vec<u8> {
    element(SEQUENCE, &[kind, critical, &element(OCTET_STRING, &[value])])
}

/// A positive number of 16 random bytes whose first is neither zero nor has its sign bit set.
fn serial_number() -> Result<[u8; 16], rcgen::Error> {
    let mut serial = [0; 16];
    SystemRandom::new().fill(&mut serial).map_err(|_| rcgen::Error::RingUnspecified)?;
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(serial)
}

/// Two digits of the year until 2049, four after, as RFC 5280 wants it.
fn moment(time: OffsetDateTime) -> Vec<u8> {
    let rest = format!(
        "{:02}{:02}{:02}{:02}{:02}Z",
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    );
    match time.year() {
        year @ 1950..2050 => element(UTC_TIME, &[format!("{:02}{rest}", year % 100).as_bytes()]),
        year => element(GENERALIZED_TIME, &[format!("{year:04}{rest}").as_bytes()]),
    }
}

/// A tag, the length of all parts, and the parts.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => bytes.push(short),
        Ok(_) | Err(_) => {
            let digits = length.to_be_bytes();
            let digits = &digits[length.leading_zeros() as usize / 8..];
            bytes.push(0x80 | u8::try_from(digits.len()).expect("a length has at most 8 bytes"));
            bytes.extend(digits);
        }
    }
    for part in parts {
        bytes.extend(*part);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_in_the_shortest_form() {
        assert_eq!(element(SEQUENCE, &[]), [0x30, 0]);
        assert_eq!(element(SEQUENCE, &[&[1; 127]])[..2], [0x30, 0x7f]);
        assert_eq!(element(SEQUENCE, &[&[1; 128]])[..3], [0x30, 0x81, 0x80]);
        assert_eq!(element(SEQUENCE, &[&[1; 256]])[..4], [0x30, 0x82, 1, 0]);
    }

    #[test]
    fn years_after_2049_have_four_digits() {
        let at = |unix| moment(OffsetDateTime::from_unix_timestamp(unix).expect("in range"));
        assert_eq!(at(1_794_729_448)[2..], *b"261115075728Z");
        assert_eq!(at(2_524_608_000)[2..], *b"20500101000000Z");
    }
}
