//! Choosing without asking all: who comes first follows from a hash, so that two who choose at the same time rarely
//! choose the same.

use interlock_api::nodes::{FIRST_VNI, LAST_VNI};

/// How many numbers of networks there are.
const VNIS: u64 = (LAST_VNI - FIRST_VNI + 1) as u64;

/// FNV-1a: it must give the same on every machine and in every version, and guards against nobody.
fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let bytes = texts.into_iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Where a node is in the order in which a claim chooses: the lowest first. Each claim has an order of its own.
pub(crate) fn rank(claim_uid: &str, node: &str) -> u64 {
    hash([claim_uid, node])
}

/// The network that a tenant tries to win after so many others.
pub(crate) fn vni(tenant_uid: &str, tries: u32) -> u32 {
    let place = (hash([tenant_uid]) % VNIS + u64::from(tries)) % VNIS;
    FIRST_VNI + u32::try_from(place).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_has_an_order_of_its_own() {
        let nodes: Vec<String> = (0..20).map(|node| format!("n{node}")).collect();
        let first = |claim: &str| nodes.iter().min_by_key(|node| rank(claim, node)).cloned();
        let firsts: std::collections::BTreeSet<_> =
            (0..20).map(|claim| first(&format!("claim-{claim}"))).collect();
        assert!(firsts.len() > 5, "{firsts:?}");
        assert_eq!(first("c"), first("c"));
        assert_ne!(rank("ab", "c"), rank("a", "bc"));
    }

    #[test]
    fn the_numbers_of_networks_follow_each_other_and_stay_in_bounds() {
        for tenant in ["a", "b", "a-long-uid"] {
            for tries in [0, 1, 2, u32::MAX] {
                let number = vni(tenant, tries);
                assert!((FIRST_VNI..=LAST_VNI).contains(&number), "{number}");
            }
            let (one, next) = (vni(tenant, 0), vni(tenant, 1));
            assert_eq!(next, if one == LAST_VNI { FIRST_VNI } else { one + 1 });
        }
        assert_ne!(vni("a", 0), vni("b", 0));
    }
}
