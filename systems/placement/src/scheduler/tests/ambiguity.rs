//! Two Placements that select one namespace.

use super::*;

fn rules(name: &str, region: &str) -> Value {
    json!({
        "kind": "Placement", "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {"clusterSelector": {"matchLabels": {"region": region}}},
    })
}

/// A namespace that Placements "first" and "second" both select.
fn ambiguous() -> (TestServers, Run<Nothing>) {
    let in_region = |region: &str| json!({"metadata": {"labels": {"region": region}}});
    settled(vec![
        shop(json!({})),
        rules("second", "us"),
        rules("first", "eu"),
        cluster("a", in_region("us")),
        cluster("b", in_region("eu")),
    ])
}

/// What an event says about the two Placements, after further steps.
fn told_again(world: &mut TestServers) -> Option<String> {
    let run = world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    told(&run)
}

fn told(run: &Run<Nothing>) -> Option<String> {
    let event = run.events.iter().find(|event| event.reason == "PlacementAmbiguous");
    event.map(|event| event.note.clone())
}

#[test]
fn of_two_placements_the_first_by_name_counts_and_both_are_named() {
    let (world, run) = ambiguous();
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(grant["status"]["owner"], reference("b"));
    let note = told(&run).expect("an event");
    assert!(note.contains("first and second"), "{note}");
    let narrow = "narrow the namespaceSelector of Placement first or of Placement second";
    assert_eq!(condition(&grant, "Placed")["next"], narrow);
}

#[test]
fn other_words_about_the_same_two_placements_are_no_news() {
    let (mut world, _) = ambiguous();
    let name = Name::cluster_wide(&grant_of("shop"));
    let mut conditions = grant_in(&world, &grant_of("shop"))["status"]["conditions"].clone();
    for condition in conditions.as_array_mut().expect("conditions") {
        condition["message"] = json!("as an earlier version of the program had it");
    }
    world.change(Place::HUB, &GRANT, &name, &json!({"status": {"conditions": conditions}}));
    assert_eq!(told_again(&mut world), None);
    let (_, reason, message) = placed(&world);
    assert_eq!(reason, "Granted");
    assert!(message.contains("first and second"), "{message}");
}

#[test]
fn another_second_placement_is_news() {
    let (mut world, _) = ambiguous();
    world.delete(Place::HUB, &PLACEMENT, &Name::cluster_wide("second"));
    world.put(Place::HUB, rules("third", "us"));
    let note = told_again(&mut world).expect("an event");
    assert!(note.contains("first and third"), "{note}");
}
