//! Amazon's signature, version 4, for requests to S3 servers.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Who signs, and for which server.
pub(super) struct Signer<'a> {
    pub(super) access_key: &'a str,
    pub(super) secret_key: &'a str,
    pub(super) region: &'a str,
}

/// What is signed.
pub(super) struct Signed<'a> {
    pub(super) method: &'a str,
    /// As it is sent, percent-encoded.
    pub(super) path: &'a str,
    /// Encoded, sorted, joined.
    pub(super) query: &'a str,
    /// In lower case and sorted by name.
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// The SHA-256 of the body, in hexadecimal.
    pub(super) body_hash: &'a str,
    /// `20130524T000000Z`.
    pub(super) time: &'a str,
}

impl Signer<'_> {
    /// The value of the header `Authorization`.
    pub(super) fn authorization(&self, signed: &Signed<'_>) -> String {
        let names: Vec<&str> = signed.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let mut canonical = format!("{}\n{}\n{}\n", signed.method, signed.path, signed.query);
        for (name, value) in signed.headers {
            let _ = writeln!(canonical, "{name}:{}", value.trim());
        }
        let _ = write!(canonical, "\n{names}\n{}", signed.body_hash);
        let day = signed.time.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let text = format!(
            "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
            signed.time,
            hexadecimal(&Sha256::digest(canonical.as_bytes()))
        );
        let mut key = keyed(format!("AWS4{}", self.secret_key).as_bytes(), day.as_bytes());
        for part in [self.region, "s3", "aws4_request"] {
            key = keyed(&key, part.as_bytes());
        }
        let signature = hexadecimal(&keyed(&key, text.as_bytes()));
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={names},Signature={signature}",
            self.access_key
        )
    }
}

fn keyed(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

/// Bytes as people write them.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Percent-encoded as the signature wants it.
pub(super) fn encoded(text: &str, with_slash: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            b'/' if !with_slash => encoded.push('/'),
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples that Amazon publishes with the specification.
    const SIGNER: Signer<'_> = Signer {
        access_key: "AKIAIOSFODNN7EXAMPLE",
        secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        region: "us-east-1",
    };
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn reading_a_part_is_signed_as_the_published_example_is() {
        let authorization = SIGNER.authorization(&Signed {
            method: "GET",
            path: "/test.txt",
            query: "",
            headers: &[
                ("host", "examplebucket.s3.amazonaws.com"),
                ("range", "bytes=0-9"),
                ("x-amz-content-sha256", EMPTY),
                ("x-amz-date", "20130524T000000Z"),
            ],
            body_hash: EMPTY,
            time: "20130524T000000Z",
        });
        assert!(
            authorization.ends_with(
                "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
            ),
            "{authorization}"
        );
    }

    #[test]
    fn listing_is_signed_as_the_published_example_is() {
        let authorization = SIGNER.authorization(&Signed {
            method: "GET",
            path: "/",
            query: "max-keys=2&prefix=J",
            headers: &[
                ("host", "examplebucket.s3.amazonaws.com"),
                ("x-amz-content-sha256", EMPTY),
                ("x-amz-date", "20130524T000000Z"),
            ],
            body_hash: EMPTY,
            time: "20130524T000000Z",
        });
        assert!(
            authorization.ends_with(
                "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
            ),
            "{authorization}"
        );
    }

    #[test]
    fn names_are_encoded_as_the_signature_wants_them() {
        assert_eq!(encoded("a b/ü~", false), "a%20b/%C3%BC~");
        assert_eq!(encoded("a b/", true), "a%20b%2F");
    }
}
