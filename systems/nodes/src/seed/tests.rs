use super::*;
use interlock_checker::reference;

fn model(size: &str) -> DpuMultiTenant {
    DpuMultiTenant::from_size(&Size::parse(size).unwrap()).unwrap()
}

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, generated, distinct, depth) in [
        ("nodes=1,dpus=1,tenants=1", 45_593, 4_896, 14),
        ("nodes=1,dpus=2,tenants=1", 84_633, 8_256, 15),
        ("nodes=2,dpus=1,tenants=1", 902_057, 89_568, 19),
        ("nodes=2,dpus=1,tenants=2,faults=none", 382_763, 55_656, 29),
    ] {
        let counts = reference::explore(&model(size));
        assert_eq!(
            (counts.generated, counts.distinct, counts.depth),
            (generated, distinct, depth),
            "{size}"
        );
        assert_eq!(counts.violated, []);
    }
}

#[test]
fn a_topology_node_by_node_reads_back_as_it_was_written() {
    let text = "n1@r1:r1/d1+r1/d2 n2@r1:r1/d1";
    let model = model(&format!("dpus=2,tenants=1,topology={text}"));
    assert!(Model::size(&model).contains(&format!("topology={text}")));
}

#[test]
fn a_topology_that_breaks_consistency_is_reported_not_refused() {
    let counts = reference::explore(&model("tenants=1,topology=n1@r1:r1/d3"));
    assert_eq!(counts.violated, [("ConfigurationConsistency", 1)]);
}

#[test]
fn a_size_that_does_not_fit_says_how_many_bits_it_needs() {
    let error = DpuMultiTenant::from_size(&Size::parse("nodes=6,dpus=3,tenants=4").unwrap());
    assert!(error.unwrap_err().to_string().contains("bits and there are 64"));
}
