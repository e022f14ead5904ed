//! Signature Version 4: whether a request was signed with the secret of the key that it names.

use super::fault::Fault;
use http::request::Parts;
use ring::{digest, hmac};
use std::fmt::Write;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// A request is good for this long, and clocks may differ by as much.
const WINDOW_SECONDS: i64 = 300;

/// What the Authorization header of a request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signed<'a> {
    pub(super) access_key_id: &'a str,
    date: &'a str,
    region: &'a str,
    pub(super) service: &'a str,
    headers: Vec<&'a str>,
    signature: &'a str,
    /// The moment of the request: `20261117T080000Z`.
    moment: &'a str,
}

fn incomplete(message: &str) -> Fault {
    Fault::new(400, "IncompleteSignature", message)
}

fn mismatch(message: impl Into<String>) -> Fault {
    Fault::new(403, "SignatureDoesNotMatch", message)
}

fn header<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name).and_then(|value| value.to_str().ok())
}

impl<'a> Signed<'a> {
    /// None if the request is not signed at all.
    pub(super) fn read(parts: &'a Parts) -> Result<Option<Signed<'a>>, Fault> {
        let Some(text) = header(parts, "authorization") else { return Ok(None) };
        let Some(rest) = text.strip_prefix(ALGORITHM) else {
            return Err(incomplete("Unsupported AWS 'algorithm': use AWS4-HMAC-SHA256"));
        };
        let part = |name: &str| {
            let parts = rest.split(',').map(str::trim);
            parts.filter_map(|part| part.strip_prefix(name)).find_map(|it| it.strip_prefix('='))
        };
        let (Some(credential), Some(headers), Some(signature)) =
            (part("Credential"), part("SignedHeaders"), part("Signature"))
        else {
            return Err(incomplete(
                "Authorization header requires 'Credential', 'Signature' and 'SignedHeaders' parameters",
            ));
        };
        let scope: Vec<&str> = credential.split('/').collect();
        let &[access_key_id, date, region, service, "aws4_request"] = scope.as_slice() else {
            return Err(incomplete("Credential must have exactly 5 slash-delimited elements"));
        };
        let Some(moment) = header(parts, "x-amz-date") else {
            return Err(incomplete("Authorization header requires existence of 'X-Amz-Date'"));
        };
        let headers: Vec<&str> = headers.split(';').collect();
        Ok(Some(Signed { access_key_id, date, region, service, headers, signature, moment }))
    }

    /// Whether the request is from now, and signed with this secret.
    pub(super) fn verify(
        &self,
        parts: &Parts,
        body: &[u8],
        secret: &str,
        now_seconds: i64,
    ) -> Result<(), Fault> {
        self.is_recent(now_seconds)?;
        let must_be_signed = |name: &str| name == "host" || name.starts_with("x-amz-");
        let unsigned = parts.headers.keys().map(http::HeaderName::as_str);
        let unsigned = unsigned.filter(|name| must_be_signed(name));
        if let Some(name) = unsigned.into_iter().find(|name| !self.headers.contains(name)) {
            return Err(mismatch(format!("'{name}' must be a 'SignedHeader'")));
        }
        if !self.headers.contains(&"host") {
            return Err(mismatch("'host' must be a 'SignedHeader'"));
        }
        let canonical = self.canonical(parts, body)?;
        let hash = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
        let Signed { date, region, service, moment, .. } = self;
        let scope = format!("{date}/{region}/{service}/aws4_request");
        let text = format!("{ALGORITHM}\n{moment}\n{scope}\n{hash}");
        let key = [region, service, &"aws4_request"]
            .iter()
            .fold(mac(format!("AWS4{secret}").as_bytes(), date), |key, part| {
                mac(key.as_ref(), part)
            });
        let signature = from_hex(self.signature);
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_ref());
        let is_good = signature.is_some_and(|it| hmac::verify(&key, text.as_bytes(), &it).is_ok());
        if is_good {
            return Ok(());
        }
        Err(mismatch(
            "The request signature we calculated does not match the signature you provided. Check \
             your AWS Secret Access Key and signing method. Consult the service documentation for \
             details.",
        ))
    }

    fn is_recent(&self, now_seconds: i64) -> Result<(), Fault> {
        let Some(at) = moment_seconds(self.moment) else {
            return Err(incomplete("Date must be in ISO-8601 'basic format'"));
        };
        if !self.moment.starts_with(self.date) {
            return Err(mismatch(
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP",
            ));
        }
        let late = now_seconds.saturating_sub(at);
        if late > WINDOW_SECONDS {
            return Err(mismatch(format!(
                "Signature expired: {} is more than 5 min. ago",
                self.moment
            )));
        }
        if late < -WINDOW_SECONDS {
            return Err(mismatch(format!(
                "Signature not yet current: {} is more than 5 min. ahead",
                self.moment
            )));
        }
        Ok(())
    }

    fn canonical(&self, parts: &Parts, body: &[u8]) -> Result<String, Fault> {
        let mut query: Vec<&str> =
            parts.uri.query().unwrap_or_default().split('&').filter(|it| !it.is_empty()).collect();
        query.sort_unstable();
        let mut text = format!("{}\n{}\n{}\n", parts.method, parts.uri.path(), query.join("&"));
        for name in &self.headers {
            let values = parts.headers.get_all(*name).iter().map(|value| value.to_str());
            let values: Result<Vec<&str>, _> = values.collect();
            let values = values.map_err(|_| mismatch(format!("'{name}' is not text")))?;
            if values.is_empty() {
                return Err(mismatch(format!("'{name}' is signed, but not there")));
            }
            let tidy = |value: &&str| {
                value.split(' ').filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
            };
            let values: Vec<String> = values.iter().map(tidy).collect();
            let _ = writeln!(text, "{name}:{}", values.join(","));
        }
        let hash = hex(digest::digest(&digest::SHA256, body).as_ref());
        let _ = write!(text, "\n{}\n{hash}", self.headers.join(";"));
        Ok(text)
    }
}

/// `20261117T080000Z` as seconds since 1970.
fn moment_seconds(text: &str) -> Option<i64> {
    let at = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", text).ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}

fn mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    (0..32).map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // The request `get-vanilla` of AWS's test suite for Signature Version 4.
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    const NOW: i64 = 1_440_938_160;

    fn vanilla(signature: &str) -> Parts {
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, Signature={signature}"
        );
        let request = http::Request::get("/")
            .header("host", "example.amazonaws.com")
            .header("x-amz-date", "20150830T123600Z")
            .header("authorization", authorization);
        request.body(()).unwrap().into_parts().0
    }

    const GOOD: &str = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";

    fn verified(parts: &Parts, body: &[u8], now: i64) -> Result<(), String> {
        let signed = Signed::read(parts).map_err(|fault| fault.code.to_owned())?.unwrap();
        signed.verify(parts, body, SECRET, now).map_err(|fault| fault.message)
    }

    #[test]
    fn a_request_of_the_published_test_suite_is_accepted() {
        assert_eq!(verified(&vanilla(GOOD), b"", NOW), Ok(()));
    }

    #[test]
    fn what_is_signed_cannot_be_changed() {
        assert!(verified(&vanilla(GOOD), b"x", NOW).is_err());
        assert!(verified(&vanilla(&GOOD.replace('5', "6")), b"", NOW).is_err());
        assert!(verified(&vanilla("5fa0"), b"", NOW).is_err());
        let mut changed = vanilla(GOOD);
        changed.uri = "/?a=b".parse().unwrap();
        assert!(verified(&changed, b"", NOW).is_err());
        let mut changed = vanilla(GOOD);
        changed.headers.insert("host", "example.com".parse().unwrap());
        assert!(verified(&changed, b"", NOW).is_err());
        let mut changed = vanilla(GOOD);
        changed.headers.insert("x-amz-security-token", "t".parse().unwrap());
        let error = verified(&changed, b"", NOW).unwrap_err();
        assert!(error.contains("must be a 'SignedHeader'"), "{error}");
    }

    #[test]
    fn a_request_is_good_for_five_minutes() {
        assert_eq!(verified(&vanilla(GOOD), b"", NOW + 300), Ok(()));
        assert_eq!(verified(&vanilla(GOOD), b"", NOW - 300), Ok(()));
        assert!(verified(&vanilla(GOOD), b"", NOW + 301).unwrap_err().contains("expired"));
        assert!(verified(&vanilla(GOOD), b"", NOW - 301).unwrap_err().contains("not yet"));
    }

    #[test]
    fn a_header_that_is_no_signature_is_refused() {
        let read = |text: &str| {
            let request = http::Request::get("/").header("authorization", text);
            let parts = request.body(()).unwrap().into_parts().0;
            Signed::read(&parts).unwrap_err().code
        };
        for text in ["Bearer x", "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=a/b/c"] {
            assert_eq!(read(text), "IncompleteSignature", "{text}");
        }
    }
}
