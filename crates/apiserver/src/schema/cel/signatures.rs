//! Which functions there are, and what they take and give.
//!
//! A signature is a few letters: what is before a dot is the target of a method, then the
//! arguments, and behind the colon the result. `b` bool, `i` int, `u` uint, `d` double, `s` string,
//! `y` bytes, `t` timestamp, `r` duration, `n` null, `*` anything, `T` a type; `L` list of what
//! follows, `M` map from one to the other, `O` optional; `Q` quantity, `V` version, `P` address,
//! `C` network, `U` URL, `F` format; `Z` authorizer, `p`, `g` and `R` its questions about a path, a
//! group and a resource, `D` the answer; `A` and `B` stand for any one type.

/// The signatures of a function by its name, parted by spaces.
const SIGNATURES: [(&str, &str); 97] = [
    ("add", "Q.Q:Q Q.i:Q"),
    ("asApproximateFloat", "Q.:d"),
    ("asInteger", "Q.:i"),
    ("bool", "b:b s:b"),
    ("bytes", "y:y s:y"),
    ("charAt", "s.i:s"),
    ("cidr", "s:C"),
    ("compareTo", "Q.Q:i V.V:i"),
    ("contains", "s.s:b"),
    ("containsCIDR", "C.s:b C.C:b"),
    ("containsIP", "C.s:b C.P:b"),
    ("distinct", "LA.:LA"),
    ("double", "d:d i:d u:d s:d"),
    ("duration", "r:r s:r i:r"),
    ("dyn", "A:*"),
    ("endsWith", "s.s:b"),
    ("family", "P.:i"),
    ("find", "s.s:s"),
    ("findAll", "s.s:Ls s.si:Ls"),
    ("first", "LA.:OA"),
    ("flatten", "L*.:L* L*.i:L*"),
    ("format", "s.L*:s"),
    ("format.named", "s:OF"),
    ("getDate", "t.:i t.s:i"),
    ("getDayOfMonth", "t.:i t.s:i"),
    ("getDayOfWeek", "t.:i t.s:i"),
    ("getDayOfYear", "t.:i t.s:i"),
    ("getEscapedPath", "U.:s"),
    ("getFullYear", "t.:i t.s:i"),
    ("getHost", "U.:s"),
    ("getHostname", "U.:s"),
    ("getHours", "t.:i t.s:i r.:i"),
    ("getMilliseconds", "t.:i t.s:i r.:i"),
    ("getMinutes", "t.:i t.s:i r.:i"),
    ("getMonth", "t.:i t.s:i"),
    ("getPort", "U.:s"),
    ("getQuery", "U.:MsLs"),
    ("getScheme", "U.:s"),
    ("getSeconds", "t.:i t.s:i r.:i"),
    ("hasValue", "OA.:b"),
    ("indexOf", "s.s:i s.si:i LA.A:i"),
    ("int", "i:i u:i d:i s:i t:i r:i"),
    ("ip", "s:P C.:P"),
    ("ip.isCanonical", "s:b"),
    ("isCIDR", "s:b"),
    ("isGlobalUnicast", "P.:b"),
    ("isGreaterThan", "Q.Q:b V.V:b"),
    ("isIP", "s:b"),
    ("isInteger", "Q.:b"),
    ("isLessThan", "Q.Q:b V.V:b"),
    ("isLinkLocalMulticast", "P.:b"),
    ("isLinkLocalUnicast", "P.:b"),
    ("isLoopback", "P.:b"),
    ("isQuantity", "s:b"),
    ("isSemver", "s:b sb:b"),
    ("isSorted", "LA.:b"),
    ("isURL", "s:b"),
    ("isUnspecified", "P.:b"),
    ("join", "Ls.:s Ls.s:s"),
    ("last", "LA.:OA"),
    ("lastIndexOf", "s.s:i s.si:i LA.A:i"),
    ("lists.range", "i:Li"),
    ("lowerAscii", "s.:s"),
    ("major", "V.:i"),
    ("masked", "C.:C"),
    ("matches", "s.s:b ss:b"),
    ("max", "LA.:A"),
    ("min", "LA.:A"),
    ("minor", "V.:i"),
    ("optional.none", ":O*"),
    ("optional.of", "A:OA"),
    ("optional.ofNonZeroValue", "A:OA"),
    ("or", "OA.OA:OA"),
    ("orValue", "OA.A:A"),
    ("patch", "V.:i"),
    ("prefixLength", "C.:i"),
    ("quantity", "s:Q"),
    ("replace", "s.ss:s s.ssi:s"),
    ("reverse", "LA.:LA"),
    ("semver", "s:V sb:V"),
    ("sets.contains", "LALA:b"),
    ("sets.equivalent", "LALA:b"),
    ("sets.intersects", "LALA:b"),
    ("sign", "Q:i"),
    ("size", "s:i s.:i y:i y.:i LA:i LA.:i MAB:i MAB.:i"),
    ("slice", "LA.ii:LA"),
    ("sort", "LA.:LA"),
    ("split", "s.s:Ls s.si:Ls"),
    ("startsWith", "s.s:b"),
    ("string", "s:s b:s i:s u:s d:s y:s t:s r:s P:s C:s"),
    ("strings.quote", "s:s"),
    ("sub", "Q.Q:Q Q.i:Q"),
    ("substring", "s.i:s s.ii:s"),
    ("sum", "Li.:i Lu.:u Ld.:d Lr.:r"),
    ("timestamp", "t:t s:t i:t"),
    ("trim", "s.:s"),
    ("type", "A:T"),
];

/// Functions that stand apart in the order of the table above.
const MORE: [(&str, &str); 4] =
    [("uint", "u:u i:u d:u s:u"), ("upperAscii", "s.:s"), ("url", "s:U"), ("validate", "F.s:OLs")];

/// What can be asked of `authorizer`.
const AUTHORIZER: [(&str, &str); 14] = [
    ("allowed", "D.:b"),
    ("check", "R.s:D p.s:D"),
    ("error", "D.:s"),
    ("errored", "D.:b"),
    ("fieldSelector", "R.s:R"),
    ("group", "Z.s:g"),
    ("labelSelector", "R.s:R"),
    ("name", "R.s:R"),
    ("namespace", "R.s:R"),
    ("path", "Z.s:p"),
    ("reason", "D.:s"),
    ("resource", "g.s:R"),
    ("serviceAccount", "Z.ss:Z"),
    ("subresource", "R.s:R"),
];

/// The ways to call a function; nothing if there is none of that name.
pub(super) fn overloads(name: &str) -> Option<&'static str> {
    if name.strip_prefix("format.").is_some_and(super::functions::is_format) {
        return Some(":F");
    }
    if name == "value" {
        return Some("OA.:A");
    }
    let mut known = SIGNATURES.iter().chain(&MORE).chain(&AUTHORIZER);
    known.find(|(known, _)| *known == name).map(|(_, signatures)| *signatures)
}

/// Whether a name with a dot is that of a function, not of a field's method.
pub(super) fn is_qualified(name: &str) -> bool {
    name.contains('.') && overloads(name).is_some()
}

/// The names of types, as values.
pub(super) fn type_named(name: &str) -> Option<&'static str> {
    const TYPES: [&str; 10] =
        ["null_type", "bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"];
    TYPES.iter().copied().find(|known| *known == name)
}
