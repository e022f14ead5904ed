//! The key of a repository: what seals its files, and what opens them.

use aes256ctr_poly1305aes::aead::AeadInPlace;
use aes256ctr_poly1305aes::{Aes256CtrPoly1305Aes, Key, Nonce, Tag};
use rustic_core::repofile::MasterKey;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fmt::Write;

/// Bytes of nonce before, and of code after what is sealed.
const NONCE: usize = 16;
const TAG: usize = 16;

/// No file but a pack is larger when it is opened; what says so is broken or means harm.
const LARGEST_FILE: usize = 1 << 30;

/// The key of a repository, or of one of its key files.
#[derive(Clone)]
pub(crate) struct Seal(Key);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(***)")
    }
}

impl Seal {
    /// From the three parts that restic writes down.
    pub(crate) fn from_parts(encrypt: &[u8], k: &[u8], r: &[u8]) -> Option<Self> {
        if (encrypt.len(), k.len(), r.len()) != (32, 16, 16) {
            return None;
        }
        Some(Seal(Key::clone_from_slice(&[encrypt, k, r].concat())))
    }

    /// From what a password was stretched to.
    pub(crate) fn from_bytes(bytes: &[u8; 64]) -> Self {
        Seal(Key::clone_from_slice(bytes))
    }

    pub(crate) fn from_master(master: &MasterKey) -> Option<Self> {
        Seal::from_parts(&master.encrypt, &master.mac.k, &master.mac.r)
    }

    /// Seals.
    pub(crate) fn close(&self, text: &[u8]) -> Vec<u8> {
        let nonce = random::<NONCE>();
        let mut sealed = Vec::with_capacity(NONCE + text.len() + TAG);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(text);
        let tag = Aes256CtrPoly1305Aes::new(&self.0)
            .encrypt_in_place_detached(Nonce::from_slice(&nonce), &[], &mut sealed[NONCE..])
            .expect("the cipher takes every length that memory holds");
        sealed.extend_from_slice(&tag);
        sealed
    }

    /// Opens; nothing if it was sealed with another key, or is not what was sealed.
    pub(crate) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let text_end = sealed.len().checked_sub(TAG).filter(|end| *end >= NONCE)?;
        let mut text = sealed[NONCE..text_end].to_vec();
        Aes256CtrPoly1305Aes::new(&self.0)
            .decrypt_in_place_detached(
                Nonce::from_slice(&sealed[..NONCE]),
                &[],
                &mut text,
                Tag::from_slice(&sealed[text_end..]),
            )
            .ok()?;
        Some(text)
    }

    /// Opens a file that is JSON inside, compressed or not.
    pub(crate) fn open_file(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let text = self.open(sealed)?;
        match text.split_first() {
            Some((b'{' | b'[', _)) => Some(text),
            Some((2, compressed)) => unpressed(compressed, LARGEST_FILE),
            _ => None,
        }
    }
}

/// What was compressed, unless it is larger than it may be.
pub(crate) fn unpressed(compressed: &[u8], at_most: usize) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut text = Vec::new();
    let reader = zstd::stream::read::Decoder::new(compressed).ok()?;
    reader.take(at_most as u64 + 1).read_to_end(&mut text).ok()?;
    (text.len() <= at_most).then_some(text)
}

/// The name of a file with this in it.
pub(crate) fn name_of(content: &[u8]) -> String {
    hexadecimal(&Sha256::digest(content))
}

/// Bytes as people write them.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// So many random bytes.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            // There is no way on without: a nonce that repeats gives the key away.
            Err(error) => panic!("the kernel gives no random bytes: {error}"),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal() -> Seal {
        Seal::from_bytes(&random())
    }

    #[test]
    fn what_was_sealed_is_opened() {
        let seal = seal();
        for text in [&b""[..], b"{}", &[7; 100_000]] {
            assert_eq!(seal.open(&seal.close(text)).unwrap(), text);
        }
    }

    #[test]
    fn what_was_changed_or_cut_or_sealed_otherwise_is_not() {
        let ours = seal();
        let sealed = ours.close(b"{\"a\":1}");
        assert!(seal().open(&sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(ours.open(&changed).is_none(), "byte {at}");
            assert!(ours.open(&sealed[..at]).is_none(), "{at} bytes");
        }
    }

    #[test]
    fn a_file_is_opened_compressed_or_not() {
        let seal = seal();
        let mut compressed = vec![2];
        zstd::stream::copy_encode(&b"[1,2]"[..], &mut compressed, 3).unwrap();
        assert_eq!(seal.open_file(&seal.close(b"[1,2]")).unwrap(), b"[1,2]");
        assert_eq!(seal.open_file(&seal.close(&compressed)).unwrap(), b"[1,2]");
        assert!(seal.open_file(&seal.close(b"x")).is_none());
    }

    #[test]
    fn a_little_that_unfolds_to_too_much_is_refused() {
        let bomb = zstd::stream::encode_all(&vec![0; 1 << 20][..], 3).unwrap();
        assert!(unpressed(&bomb, (1 << 20) - 1).is_none());
        assert_eq!(unpressed(&bomb, 1 << 20).unwrap().len(), 1 << 20);
    }
}
