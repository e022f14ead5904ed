//! The rows of the claims of a tenant, one by one, and the races between them.

use super::*;
use crate::choice::rank;
use crate::hub_testing::*;
use crate::kinds::LEASE_NAMESPACE;
use interlock_api::nodes::vni_lease;
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Action, Address, Importance, Name, Write};
use serde_json::{Value, json};

fn claims() -> Claims {
    Claims::new(Ref::new("red", "uid-red"))
}

fn servers(objects: Vec<Value>) -> TestServers {
    TestServers::of(&claims()).with(objects)
}

fn settled(objects: Vec<Value>) -> (TestServers, Run<Nothing>) {
    let mut servers = servers(objects);
    let run = servers.settle(&claims(), &mut NoMachine, "web");
    (servers, run)
}

fn node_in(servers: &TestServers, name: &str) -> Value {
    servers.json(Place::HUB, &PHYSICAL_NODE, &Name::cluster_wide(name))
}

fn claim_in(servers: &TestServers) -> Value {
    servers.json(TENANT_PLANE, &NODE_CLAIM, &Name::cluster_wide("web"))
}

fn states(servers: &TestServers) -> Vec<String> {
    let nodes = claim_in(servers)["status"]["nodes"].as_array().cloned().unwrap_or_default();
    let one = |entry: &Value| {
        format!(
            "{} {} {}",
            entry["name"].as_str().unwrap(),
            entry["state"].as_str().unwrap(),
            entry["epoch"]
        )
    };
    nodes.iter().map(one).collect()
}

/// What was written, in order: the kind, and the new phase, or the states of the entries.
fn written(run: &Run<Nothing>) -> Vec<String> {
    let word = |write: &Write| {
        let Write::Patch { address, change, .. } = write else { return format!("{write:?}") };
        let status = &change["status"];
        let entries = status["nodes"].as_array().map(|all| {
            all.iter()
                .map(|it| it["state"].as_str().unwrap_or_default())
                .collect::<Vec<_>>()
                .join("+")
        });
        let what = status["phase"].as_str().map(str::to_owned).or(entries);
        format!("{} {}", address.kind.kind, what.unwrap_or_else(|| "metadata".to_owned()))
    };
    run.writes.iter().map(word).collect()
}

fn with_entries(entries: &[Value]) -> Value {
    claim(json!({"status": {"nodes": entries}}))
}

fn terminating(object: Value) -> Value {
    patched(object, &json!({"metadata": {"deletionTimestamp": SINCE}}))
}

#[test]
fn a_claim_gets_a_node_and_its_choice_is_written_before_the_node() {
    let fresh = claim(json!({"metadata": {"finalizers": null}}));
    let (servers, run) =
        settled(vec![tenant(json!({})), rack(json!({})), node("n1", json!({})), fresh]);
    assert_eq!(
        written(&run),
        ["NodeClaim metadata", "NodeClaim Chosen", "PhysicalNode Bound", "NodeClaim Bound"]
    );
    let status = &node_in(&servers, "n1")["status"];
    assert_eq!((&status["epoch"], &status["floor"]), (&json!(7), &json!(6)));
    let assignment =
        json!({"tenant": reference("red"), "claim": reference("web"), "epoch": 7, "vni": 5000});
    assert_eq!(status["assignment"], assignment);
    assert_ne!(status["phaseSince"], SINCE);
    assert_eq!(condition(&node_in(&servers, "n1"), "NetworkReady")["reason"], "Programming");
    assert_eq!(states(&servers), ["n1 Bound 7"]);
    let learnt = &claim_in(&servers)["status"]["nodes"][0];
    assert_eq!((&learnt["vni"], &learnt["dpus"][1]["dpu"]), (&json!(5000), &json!("d2")));
    assert_eq!(condition(&claim_in(&servers), "Bound")["status"], "True");
    assert_eq!(condition(&claim_in(&servers), "NetworkReady")["reason"], "Programming");
    assert_eq!(run.events[0].reason, "NodeAssigned");
}

#[test]
fn a_phase_begins_later_than_the_one_before_whatever_the_clock_says() {
    let ahead = json!({"status": {"phaseSince": "2030-01-01T00:00:00Z"}});
    let (servers, _) = settled(vec![tenant(json!({})), node("n1", ahead), claim(json!({}))]);
    assert_eq!(node_in(&servers, "n1")["status"]["phaseSince"], "2030-01-01T00:00:01Z");
}

#[test]
fn each_claim_chooses_in_an_order_of_its_own() {
    let names = ["n1", "n2", "n3", "n4", "n5"];
    let mut objects = vec![tenant(json!({})), claim(json!({}))];
    objects.extend(names.map(|name| node(name, json!({}))));
    let (servers, _) = settled(objects);
    let first = names.into_iter().min_by_key(|name| rank("uid-web", name)).unwrap();
    assert_eq!(states(&servers), [format!("{first} Bound 7")]);
}

#[test]
fn of_two_that_bind_a_node_at_the_same_version_one_wins() {
    let chosen = with_entries(&[entry("n1", "Chosen", 0)]);
    let mut servers = servers(vec![tenant(json!({})), node("n1", json!({})), chosen]);
    let bind = |servers: &TestServers| match servers.step(&claims(), &NoMachine, "web") {
        Step::Act(effect) => match effect.action {
            Action::Write(write) => write,
            Action::Outside(none) => match none {},
        },
        other => panic!("{other:?}"),
    };
    let (one, other) = (bind(&servers), bind(&servers));
    assert_eq!(one.address().kind, PHYSICAL_NODE);
    servers.apply(&one).expect("the first wins");
    assert!(servers.apply(&other).is_err(), "the node has another version");
}

#[test]
fn a_node_is_not_bound_without_a_network_and_the_claim_says_so() {
    let without = tenant(json!({"status": {"vni": null}}));
    let (servers, run) = settled(vec![without, node("n1", json!({})), claim(json!({}))]);
    assert_eq!(written(&run), ["NodeClaim "]);
    assert_eq!(condition(&claim_in(&servers), "Bound")["reason"], "NetworkPending");
}

#[test]
fn a_claim_that_is_not_accepted_says_why_and_what_to_do() {
    let two_names = json!({"spec": {"count": 3, "nodeNames": ["n1", "n2"]}});
    let full = json!({"spec": {"nodeQuota": 1}});
    let cases = [
        (
            json!({"spec": {"count": "three"}}),
            tenant(json!({})),
            "InvalidSpec",
            "cannot be read",
            "correct spec",
        ),
        (
            two_names,
            tenant(json!({})),
            "TooFewNames",
            "names 2 nodes, and spec.count is 3",
            "set spec.count to 2",
        ),
        (
            json!({}),
            tenant(json!({"metadata": {"uid": "another"}})),
            "UnknownTenant",
            "no Tenant red",
            "Tenant red",
        ),
        (
            json!({}),
            terminating(tenant(json!({}))),
            "TenantTerminating",
            "is being deleted",
            "delete",
        ),
        (
            json!({}),
            tenant(full),
            "OverQuota",
            "may have 1 nodes and has 1; NodeClaim web wants 1 more",
            "nodeQuota",
        ),
    ];
    for (patch, tenant, reason, message, next) in cases {
        let other = json!({"status": {"assignment": {"claim": reference("other")}}});
        let held = bound("n9", other);
        let (servers, run) = settled(vec![tenant, held, node("n1", json!({})), claim(patch)]);
        let accepted = condition(&claim_in(&servers), "Accepted").clone();
        assert_eq!((&accepted["status"], &accepted["reason"]), (&json!("False"), &json!(reason)));
        assert!(accepted["message"].as_str().unwrap().contains(message), "{accepted}");
        assert!(accepted["next"].as_str().unwrap().contains(next), "{accepted}");
        assert!(run.writes.iter().all(|write| write.address().kind == NODE_CLAIM), "{reason}");
        assert_eq!(states(&servers), [""; 0]);
    }
}

#[test]
fn a_choice_that_is_over_the_quota_by_now_is_not_bound() {
    let other = json!({"status": {"assignment": {"claim": reference("other")}}});
    let full = tenant(json!({"spec": {"nodeQuota": 1}}));
    let chosen = with_entries(&[entry("n1", "Chosen", 0)]);
    let (servers, _) = settled(vec![full, bound("n9", other), node("n1", json!({})), chosen]);
    assert_eq!(node_in(&servers, "n1")["status"]["phase"], "Available");
    assert_eq!(states(&servers), [""; 0]);
}

#[test]
fn an_entry_says_what_its_node_says() {
    let another =
        json!({"status": {"epoch": 8, "assignment": {"claim": reference("other"), "epoch": 8}}});
    let cases = [
        (bound("n1", json!({})), entry("n1", "Chosen", 0), "n1 Bound 7"),
        (bound("n1", json!({})), entry("n1", "Bound", 7), "n1 Bound 7"),
        (releasing("n1", json!({})), entry("n1", "Bound", 7), "n1 Releasing 7"),
        (
            node("n1", json!({"status": {"epoch": 7, "floor": 7}})),
            entry("n1", "Releasing", 7),
            "n1 Released 7",
        ),
        (
            node("n1", json!({"status": {"epoch": 7, "floor": 7}})),
            entry("n1", "Bound", 7),
            "n1 Released 7",
        ),
        (bound("n1", another), entry("n1", "Bound", 7), "n1 Released 7"),
        // The cache shows the node as it was before the end of the epoch, or before the epoch.
        (bound("n1", json!({})), entry("n1", "Releasing", 7), "n1 Releasing 7"),
        (node("n1", json!({})), entry("n1", "Bound", 7), "n1 Bound 7"),
    ];
    for (node, entry, wanted) in cases {
        let tenant = tenant(json!({"spec": {"nodeQuota": 0}}));
        let (servers, run) =
            settled(vec![tenant, node, with_entries(std::slice::from_ref(&entry))]);
        assert_eq!(states(&servers), [wanted], "{entry}");
        assert!(
            run.writes.iter().all(|write| write.address().kind == NODE_CLAIM),
            "{:?}",
            run.writes
        );
    }
}

#[test]
fn a_node_that_the_hub_itself_does_not_have_is_released() {
    let tenant = tenant(json!({"spec": {"nodeQuota": 0}}));
    let (servers, _) = settled(vec![tenant.clone(), with_entries(&[entry("n1", "Bound", 7)])]);
    assert_eq!(states(&servers), ["n1 Released 7"]);
    let again = node("n1", json!({"metadata": {"uid": "another"}}));
    let (servers, _) =
        settled(vec![tenant.clone(), again, with_entries(&[entry("n1", "Releasing", 7)])]);
    assert_eq!(states(&servers), ["n1 Released 7"]);
    // The cache alone proves nothing.
    let hub = TestServers::of(&claims()).with([tenant, with_entries(&[entry("n1", "Bound", 7)])]);
    let step = hub.view().step_with(&claims(), "web", &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    let mut live_reads = LiveReads::default();
    let there = TestServers::of(&claims()).with([bound("n1", json!({}))]);
    let read = interlock_kernel::Read::Object(super::observe::node_at("n1"));
    there.view().read_live(read, |none| match *none {}, &mut live_reads);
    let step = hub.view().step_with(&claims(), "web", &live_reads);
    let Step::Act(effect) = step else { panic!("{step:?}") };
    assert!(effect.because.contains("conditions"), "the entry stays: {effect:?}");
}

#[test]
fn a_node_that_was_released_is_listed_for_ten_minutes() {
    let full = tenant(json!({"spec": {"nodeQuota": 0}}));
    let since = json!({"since": "1970-01-12T13:40:00Z"});
    let recent = patched(entry("n1", "Released", 7), &since);
    let gone_for = node("n1", json!({"status": {"epoch": 7, "floor": 7}}));
    let (mut servers, run) = settled(vec![full, gone_for, with_entries(&[recent])]);
    assert_eq!((states(&servers), run.waits_seconds), (vec!["n1 Released 7".into()], Some(200)));
    servers.pass(200);
    servers.settle(&claims(), &mut NoMachine, "web");
    assert_eq!(states(&servers), [""; 0]);
}

#[test]
fn a_claim_that_is_deleted_gives_its_node_back_and_stays_until_no_node_names_it() {
    let deleted = terminating(with_entries(&[entry("n1", "Bound", 7)]));
    let (mut servers, run) = settled(vec![tenant(json!({})), in_use("n1", json!({})), deleted]);
    assert_eq!(written(&run)[0], "PhysicalNode Releasing");
    assert_eq!(node_in(&servers, "n1")["status"]["floor"], 7);
    assert_eq!(states(&servers), ["n1 Releasing 7"]);
    assert_eq!(run.events[0].reason, "NodeRevoked");
    let name = Name::cluster_wide("n1");
    let returned = json!({"status": {"phase": "Available", "assignment": null}});
    servers.change(Place::HUB, &PHYSICAL_NODE, &name, &returned);
    servers.settle(&claims(), &mut NoMachine, "web");
    assert_eq!(claim_in(&servers), Value::Null, "the finalizer is off");
}

#[test]
fn a_claim_that_asks_for_fewer_gives_the_last_back() {
    let entries = [entry("n1", "Bound", 7), entry("n2", "Bound", 7)];
    let (servers, _) = settled(vec![
        tenant(json!({})),
        in_use("n1", json!({})),
        in_use("n2", json!({})),
        with_entries(&entries),
    ]);
    assert_eq!(node_in(&servers, "n1")["status"]["phase"], "Bound");
    assert_eq!(node_in(&servers, "n2")["status"]["phase"], "Releasing");
    let entries = [entry("n1", "Bound", 7), entry("n2", "Chosen", 0)];
    let (servers, _) = settled(vec![
        tenant(json!({})),
        in_use("n1", json!({})),
        node("n2", json!({})),
        with_entries(&entries),
    ]);
    assert_eq!(states(&servers), ["n1 Bound 7"]);
    assert_eq!(node_in(&servers, "n2")["status"]["phase"], "Available");
}

#[test]
fn a_node_that_is_draining_is_given_back_already() {
    let draining = json!({"status": {"phase": "Draining", "cluster": reference("a")}});
    let entries = [entry("n1", "Bound", 7), entry("n2", "Bound", 7)];
    let (servers, _) = settled(vec![
        tenant(json!({})),
        in_use("n1", json!({})),
        in_use("n2", draining),
        with_entries(&entries),
    ]);
    assert_eq!(node_in(&servers, "n1")["status"]["phase"], "Bound");
    assert_eq!(states(&servers), ["n1 Bound 7", "n2 Bound 7"]);
}

#[test]
fn a_node_with_a_cluster_is_drained_before_its_epoch_ends() {
    let with_cluster = json!({"status": {"cluster": reference("a")}});
    let deleted = terminating(with_entries(&[entry("n1", "Bound", 7)]));
    let (servers, run) = settled(vec![tenant(json!({})), in_use("n1", with_cluster), deleted]);
    let status = &node_in(&servers, "n1")["status"];
    assert_eq!((&status["phase"], &status["floor"]), (&json!("Draining"), &json!(6)));
    assert!(run.events[0].note.contains("once cluster a is drained"), "{:?}", run.events);
    assert!(!claim_in(&servers).is_null(), "the node still names the claim");
}

#[test]
fn a_bound_node_that_its_claim_does_not_list_is_taken_back_unless_it_is_in_use() {
    let (servers, run) = settled(vec![
        tenant(json!({"spec": {"nodeQuota": 0}})),
        bound("n1", json!({})),
        claim(json!({})),
    ]);
    assert_eq!(node_in(&servers, "n1")["status"]["phase"], "Releasing");
    assert!(run.events[0].note.contains("never programmed"), "{:?}", run.events);
    let (servers, _) = settled(vec![tenant(json!({})), in_use("n1", json!({})), claim(json!({}))]);
    assert_eq!(node_in(&servers, "n1")["status"]["phase"], "Bound");
    assert_eq!(states(&servers), ["n1 Bound 7"]);
    // It was programmed once: whoever used it may still do.
    let interrupted = json!({"status": {"conditions": [consistent(), said("NetworkReady", "False", "Interrupted")]}});
    let (servers, _) = settled(vec![tenant(json!({})), bound("n1", interrupted), claim(json!({}))]);
    assert_eq!(states(&servers), ["n1 Bound 7"]);
}

#[test]
fn a_claim_that_is_missing_is_not_taken_as_deleted() {
    let (mut servers, run) = settled(vec![tenant(json!({})), in_use("n1", json!({}))]);
    let found = node_in(&servers, "n1");
    assert_eq!(found["status"]["phase"], "Bound");
    let present = condition(&found, "ClaimPresent");
    assert_eq!((&present["status"], &present["reason"]), (&json!("False"), &json!("ClaimMissing")));
    assert!(present["next"].as_str().unwrap().contains("interlock node reclaim n1"), "{present}");
    assert_eq!(run.waits_seconds, Some(60));
    assert_eq!(
        (run.events[0].reason, run.events[0].importance),
        ("ClaimMissing", Importance::Warning)
    );
    servers.put(TENANT_PLANE, with_entries(&[entry("n1", "Bound", 7)]));
    servers.settle(&claims(), &mut NoMachine, "web");
    assert_eq!(condition(&node_in(&servers, "n1"), "ClaimPresent")["status"], "True");
}

#[test]
fn a_claim_of_another_uid_is_another_claim() {
    let again = claim(json!({"metadata": {"uid": "another"}}));
    let (servers, _) =
        settled(vec![tenant(json!({"spec": {"nodeQuota": 0}})), in_use("n1", json!({})), again]);
    let found = node_in(&servers, "n1");
    assert_eq!(found["status"]["phase"], "Bound");
    assert_eq!(condition(&found, "ClaimPresent")["status"], "False");
}

#[test]
fn a_missing_claim_gives_its_node_back_where_it_was_never_used_or_the_tenant_says_release() {
    let release = tenant(json!({"spec": {"orphanPolicy": "Release"}}));
    for objects in
        [vec![release, in_use("n1", json!({}))], vec![tenant(json!({})), bound("n1", json!({}))]]
    {
        let (servers, _) = settled(objects);
        let status = &node_in(&servers, "n1")["status"];
        assert_eq!((&status["phase"], &status["floor"]), (&json!("Releasing"), &json!(7)));
    }
}

#[test]
fn that_a_claim_is_not_in_the_cache_proves_nothing() {
    let hub = servers(vec![tenant(json!({})), bound("n1", json!({}))]);
    let step = hub.view().step_with(&claims(), "web", &LiveReads::default());
    let Step::LiveRead { reads, .. } = step else { panic!("{step:?}") };
    let plane = servers(vec![with_entries(&[entry("n1", "Chosen", 0)])]);
    let mut live_reads = LiveReads::default();
    for read in reads {
        plane.view().read_live(read, |none| match *none {}, &mut live_reads);
    }
    let step = hub.view().step_with(&claims(), "web", &live_reads);
    assert!(matches!(step, Step::Rest { .. }), "the choice is on the claim: {step:?}");
}

#[test]
fn a_choice_that_came_to_nothing_is_dropped() {
    let other = json!({"status": {"assignment": {"claim": reference("other")}}});
    let quarantined = json!({"status": {"phase": "Quarantined"}});
    let unfit = json!({"spec": {"rack": "r2"}});
    let full = tenant(json!({"spec": {"nodeQuota": 5}}));
    let taken = [
        bound("n1", other),
        node("n1", quarantined),
        releasing("n1", json!({})),
        node("n1", unfit),
    ];
    for node in taken {
        let name = node["status"]["phase"].to_string();
        let chosen = with_entries(&[entry("n1", "Chosen", 0)]);
        let (servers, _) = settled(vec![full.clone(), node, chosen]);
        assert_eq!(states(&servers), [""; 0], "{name}");
        assert_eq!(condition(&claim_in(&servers), "Bound")["reason"], "NoNodeAvailable");
    }
    let chosen = terminating(with_entries(&[entry("n1", "Chosen", 0)]));
    let (servers, _) = settled(vec![full, node("n1", json!({})), chosen]);
    assert_eq!(claim_in(&servers), Value::Null);
    assert_eq!(node_in(&servers, "n1")["status"]["phase"], "Available");
}

#[test]
fn a_node_whose_wiring_is_not_in_order_is_not_chosen() {
    let inconsistent =
        json!({"status": {"conditions": [said("ConfigurationConsistent", "False", "PortTaken")]}});
    let moved = json!({"metadata": {"labels": {"dpu.interlock.dev/r1.d2": "p-other"}}});
    let leaving = json!({"metadata": {"deletionTimestamp": SINCE}});
    let ill = json!({"spec": {"quarantine": {"reason": "the fan is loud"}}});
    for patch in [inconsistent, moved, leaving, ill] {
        let (servers, _) =
            settled(vec![tenant(json!({})), node("n1", patch.clone()), claim(json!({}))]);
        assert_eq!(states(&servers), [""; 0], "{patch}");
    }
}

#[test]
fn what_does_not_fit_is_said_part_by_part() {
    let selector = json!({"rack": "r2", "dpu": "d1", "labels": {"gpu": "true"}});
    let picky = claim(json!({"spec": {"selector": selector}}));
    let gpu = json!({"metadata": {"labels": {"gpu": "true"}}});
    let (servers, _) =
        settled(vec![tenant(json!({})), node("n1", gpu), node("n2", json!({})), picky]);
    let bound = condition(&claim_in(&servers), "Bound").clone();
    assert_eq!(bound["reason"], "NoNodeAvailable");
    assert_eq!(
        bound["message"],
        "0 of 1 nodes are bound; 2 nodes are available, 2 of them not in rack r2, 0 of them not wired to DPU d1, \
         1 of them not labelled gpu=true"
    );
    let named = claim(json!({"spec": {"nodeNames": ["n7"]}}));
    let (servers, _) = settled(vec![tenant(json!({})), node("n1", json!({})), named]);
    let message = condition(&claim_in(&servers), "Bound")["message"].clone();
    assert_eq!(message, "0 of 1 nodes are bound; 1 node is available, 0 of the 1 named ones");
}

#[test]
fn a_claim_gets_the_node_that_it_selects() {
    let gpu = json!({"metadata": {"labels": {"gpu": "true"}}});
    for spec in [json!({"selector": {"labels": {"gpu": "true"}}}), json!({"nodeNames": ["n2"]})] {
        let objects = vec![
            tenant(json!({})),
            node("n1", json!({})),
            node("n2", gpu.clone()),
            node("n3", json!({})),
            claim(json!({"spec": spec})),
        ];
        let (servers, _) = settled(objects);
        assert_eq!(states(&servers), ["n2 Bound 7"]);
    }
}

#[test]
fn the_network_of_a_claim_is_ready_once_all_its_nodes_are_programmed() {
    let listed = with_entries(&[entry("n1", "Bound", 7)]);
    let (servers, _) = settled(vec![tenant(json!({})), in_use("n1", json!({})), listed]);
    assert_eq!(condition(&claim_in(&servers), "NetworkReady")["status"], "True");
}

fn network(objects: Vec<Value>) -> (TestServers, Run<Nothing>) {
    let mut servers = servers(objects);
    let run = servers.settle(&claims(), &mut NoMachine, NETWORK);
    (servers, run)
}

fn tenant_in(servers: &TestServers) -> Value {
    servers.json(Place::HUB, &TENANT, &Name::cluster_wide("red"))
}

fn lease(vni: u32, holder: &str) -> Write {
    let name = Name::within(LEASE_NAMESPACE, &vni_lease(vni));
    let object = json!({"spec": {"holderIdentity": holder}});
    Write::Create { address: Address::new(Place::HUB, &LEASE, name), object }
}

#[test]
fn a_tenant_wins_its_network_by_creating_the_lease() {
    let fresh = tenant(json!({"metadata": {"finalizers": null}, "status": {"vni": null}}));
    let (servers, run) = network(vec![fresh]);
    let vni = crate::choice::vni("uid-red", 0);
    assert_eq!(tenant_in(&servers)["status"]["vni"], vni);
    assert_eq!(run.writes.len(), 3, "finalizer, Lease, number: {:?}", run.writes);
    assert_eq!(run.writes[1], lease(vni, "uid-red"));
}

#[test]
fn a_number_that_another_tenant_has_is_not_given_again() {
    let fresh = tenant(json!({"status": {"vni": null}}));
    let mut servers = servers(vec![fresh]);
    let first = crate::choice::vni("uid-red", 0);
    servers.apply(&lease(first, "uid-blue")).unwrap();
    servers.settle(&claims(), &mut NoMachine, NETWORK);
    assert_eq!(tenant_in(&servers)["status"]["vni"], crate::choice::vni("uid-red", 1));
}

#[test]
fn whoever_creates_a_lease_after_another_tenant_did_takes_the_next_number() {
    let fresh = tenant(json!({"status": {"vni": null}}));
    let mut servers = servers(vec![fresh]);
    let first = crate::choice::vni("uid-red", 0);
    let Step::Act(effect) = servers.step(&claims(), &NoMachine, NETWORK) else { panic!() };
    let Action::Write(create) = effect.action else { panic!() };
    servers.apply(&lease(first, "uid-blue")).unwrap();
    servers.apply(&create).expect("one that is there stays as it is");
    servers.settle(&claims(), &mut NoMachine, NETWORK);
    assert_eq!(tenant_in(&servers)["status"]["vni"], crate::choice::vni("uid-red", 1));
}

#[test]
fn a_crash_between_lease_and_number_wins_no_second_network() {
    let fresh = tenant(json!({"status": {"vni": null}}));
    let mut servers = servers(vec![fresh]);
    let (first, second) = (crate::choice::vni("uid-red", 0), crate::choice::vni("uid-red", 1));
    servers.apply(&lease(first, "uid-blue")).unwrap();
    servers.apply(&lease(second, "uid-red")).unwrap();
    let run = servers.settle(&claims(), &mut NoMachine, NETWORK);
    assert_eq!(
        (tenant_in(&servers)["status"]["vni"].clone(), run.writes.len()),
        (json!(second), 1)
    );
}

#[test]
fn a_tenant_lists_the_dpus_that_hold_its_nodes() {
    let one = json!({"spec": {"dpus": [{"rack": "r1", "dpu": "d2", "port": "p", "mac": "02:00:00:00:00:01"}]}});
    let (servers, _) =
        network(vec![tenant(json!({})), rack(json!({})), bound("n1", one), node("n2", json!({}))]);
    assert_eq!(tenant_in(&servers)["status"]["vteps"], json!(["10.0.0.2"]));
    let listed = tenant(json!({"status": {"vteps": ["10.0.0.2"]}}));
    let (servers, _) = network(vec![listed.clone(), rack(json!({})), releasing("n1", json!({}))]);
    assert_eq!(tenant_in(&servers)["status"]["vteps"], json!([]));
    let (_, run) = network(vec![listed, bound("n1", json!({}))]);
    assert!(run.writes.is_empty(), "the cache does not show the rack: {:?}", run.writes);
}

#[test]
fn a_tenant_that_is_deleted_stays_while_a_node_names_it() {
    let (mut servers, _) =
        network(vec![terminating(tenant(json!({}))), releasing("n1", json!({}))]);
    let said = condition(&tenant_in(&servers), "InUse").clone();
    assert!(said["message"].as_str().unwrap().contains("has nodes: n1"), "{said}");
    servers.change(
        Place::HUB,
        &PHYSICAL_NODE,
        &Name::cluster_wide("n1"),
        &json!({"status": {"assignment": null}}),
    );
    servers.settle(&claims(), &mut NoMachine, NETWORK);
    assert_eq!(tenant_in(&servers), Value::Null);
}

#[test]
fn a_node_wakes_the_claims_that_it_concerns() {
    let waiting = claim(json!({"metadata": {"name": "waiting", "uid": "w"}}));
    let full = patched(
        with_entries(&[entry("n1", "Bound", 7)]),
        &json!({"metadata": {"name": "full", "uid": "f"}}),
    );
    let hub = servers(vec![
        tenant(json!({})),
        bound("n1", json!({})),
        node("n2", json!({})),
        waiting,
        full,
    ]);
    let woken = |name: &str| {
        let node = hub.get(Place::HUB, &PHYSICAL_NODE, &Name::cluster_wide(name)).unwrap();
        claims().subjects(&Watch::all(Place::HUB, &PHYSICAL_NODE), &node, &hub.view())
    };
    assert_eq!(woken("n1"), ["/network", "full", "web"].map(Subject::from));
    assert_eq!(woken("n2"), ["waiting"].map(Subject::from));
}

#[test]
fn broken_objects_do_not_break_it() {
    let entries = [entry("n1", "Bound", 7), entry("n2", "Chosen", 0), entry("n3", "Released", 5)];
    let objects = [
        tenant(json!({})),
        rack(json!({})),
        in_use("n1", json!({})),
        node("n2", json!({})),
        with_entries(&entries),
    ];
    survives(&claims(), &NoMachine, &objects);
}

/// The hub was restored from a backup: what the machine says of itself is older than what its DPU has seen.
#[test]
fn a_node_of_which_a_dpu_knows_a_later_epoch_is_given_to_nobody() {
    for port in [clean("n1", 7), open("n1", 7)] {
        let objects = vec![tenant(json!({})), claim(json!({})), node("n1", json!({}))];
        let with = |port: Value| [objects.clone(), vec![report("d1", json!([port]))]].concat();
        let (servers, _) = settled(with(port));
        assert!(states(&servers).is_empty(), "it is not even chosen: {:?}", states(&servers));
        assert_eq!(node_in(&servers, "n1")["status"]["phase"], "Available");
        let (servers, _) = settled(with(clean("n1", 6)));
        assert_eq!(states(&servers), ["n1 Bound 7"]);
    }
}
