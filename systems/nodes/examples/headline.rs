use interlock_checker::*;
use interlock_nodes::seed::DpuMultiTenant;
fn main() {
    let size = std::env::args().nth(1).unwrap_or_default();
    let model = if size == "seed" {
        DpuMultiTenant::seed_config().unwrap()
    } else {
        DpuMultiTenant::from_size(&Size::parse(&size).unwrap()).unwrap()
    };
    let args: Vec<String> = std::env::args().collect();
    let options = Options {
        symmetry: args.contains(&"sym".into()),
        liveness: if args.contains(&"live".into()) { Liveness::On } else { Liveness::Off },
        progress: Some(std::sync::Arc::new(|p: &Progress| eprintln!("{p:?}"))),
        ..Options::default()
    };
    let r = check("x", &model, &options).unwrap();
    println!(
        "distinct {} generated {} depth {} sec {:.2} bytes/state {:.3} reduction {:?}",
        r.distinct_states, r.generated_states, r.depth, r.seconds, r.bytes_per_state, r.reduction
    );
    for i in &r.invariants {
        println!("{} {:?} {:?}", i.name, i.verdict, i.steps);
    }
    for i in &r.properties {
        println!("{} {:?} {:?} {:?}", i.name, i.verdict, i.prefix_steps, i.loop_steps);
    }
    println!("live {:.2}", r.liveness_seconds);
}
