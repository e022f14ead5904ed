use super::{Asked, Bundle, Checked, Decision, Facts, Home, Lack, Preflight};
use crate::applier::testing::{Pair, bundle, config, namespace};
use interlock_kernel::Room;
use serde_json::{Value, json};

fn asked() -> Facts {
    let asked = Asked { uid: "u".to_owned(), digest: "d".to_owned() };
    Facts {
        asked: Some(asked),
        bundle: Bundle::Read,
        are_kinds_known: true,
        are_namespaces_known: true,
        are_rights_known: true,
        ..Facts::default()
    }
}

#[test]
fn each_thing_is_asked_before_the_answer() {
    let answered = Facts { answered: asked().asked, ..asked() };
    for facts in [Facts { asked: None, ..asked() }, answered] {
        assert!(matches!(Preflight::decide(&facts), Decision::Rest(_)));
    }
    for (facts, decision) in [
        (Facts { bundle: Bundle::Unasked, ..asked() }, Decision::AskBundle),
        (Facts { are_kinds_known: false, ..asked() }, Decision::AskKinds),
        (Facts { are_namespaces_known: false, ..asked() }, Decision::ListNamespaces),
        (Facts { are_rights_known: false, ..asked() }, Decision::AskRights),
        (Facts { is_untried: true, ..asked() }, Decision::Try),
    ] {
        assert_eq!(Preflight::decide(&facts), decision);
    }
}

#[test]
fn the_answer_names_what_would_fail() {
    let fine = Checked {
        id: "/ConfigMap/shop/a".to_owned(),
        is_served: true,
        home: Home::Fine,
        lacks: None,
        refused: None,
    };
    let code = |checked: Checked| {
        let facts = Facts { objects: vec![checked], ..asked() };
        let Decision::Answer(report) = Preflight::decide(&facts) else { panic!("no answer") };
        report.failures.first().map(|failure| failure.code.clone()).unwrap_or_default()
    };
    let text = || "x".to_owned();
    assert_eq!(code(fine.clone()), "");
    assert_eq!(code(Checked { is_served: false, ..fine.clone() }), "KindNotServed");
    assert_eq!(code(Checked { home: Home::System, ..fine.clone() }), "SystemNamespace");
    assert_eq!(code(Checked { home: Home::Missing(text()), ..fine.clone() }), "NamespaceMissing");
    let placed = Home::Placed(text(), text());
    assert_eq!(code(Checked { home: placed, ..fine.clone() }), "NamespaceIsPlaced");
    let lacks = Lack { verbs: vec![text()], resource: text(), namespace: None };
    assert_eq!(code(Checked { lacks: Some(lacks), ..fine.clone() }), "RightMissing");
    assert_eq!(code(Checked { refused: Some((text(), text())), ..fine }), "x");
    let lost = Facts { bundle: Bundle::Unreadable(text()), ..asked() };
    let Decision::Answer(report) = Preflight::decide(&lost) else { panic!("no answer") };
    assert_eq!(report.failures[0].code, "RevisionMissing");
}

/// The codes of what would fail, by id.
fn failures(objects: &[Value], mode: &str) -> Vec<(String, String)> {
    let bundle = bundle(objects);
    let preflight = json!({"uid": "u", "digest": bundle.digest(), "mode": mode});
    let mut pair = Pair::new(&[&bundle], json!({}), json!({"preflight": preflight}));
    let grant = json!({"metadata": {"annotations": {"interlock.dev/grant": "g-1"}}});
    let placed = interlock_kernel::Name::cluster_wide("default");
    let place = interlock_kernel::Place::CLUSTER;
    pair.servers.change(place, &crate::applier::NAMESPACE, &placed, &grant);
    assert_eq!(pair.check().writes.len(), 1);
    assert!(pair.check().writes.is_empty());
    let said = pair.said()["preflight"].take();
    assert_eq!((said["uid"].clone(), said["digest"].clone()), (json!("u"), json!(bundle.digest())));
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = said["failures"].as_array().into_iter().flatten();
    all.map(|failure| (word(&failure["id"]), word(&failure["code"]))).collect()
}

fn widget(namespace: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": namespace}})
}

#[test]
fn kinds_and_namespaces_are_served_or_in_the_bundle() {
    for mode in ["Schema", "DryRun"] {
        assert!(failures(&[config("a", "1")], mode).is_empty());
        let mut elsewhere = config("a", "1");
        elsewhere["metadata"]["namespace"] = json!("new");
        let id = "/ConfigMap/new/a".to_owned();
        assert_eq!(
            failures(std::slice::from_ref(&elsewhere), mode),
            [(id, "NamespaceMissing".to_owned())]
        );
        assert!(failures(&[elsewhere, namespace("new")], mode).is_empty());
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "names": {"kind": "Widget"}}});
        let found = failures(&[widget("shop")], mode);
        assert_eq!(found, [("example.com/Widget/shop/w".to_owned(), "KindNotServed".to_owned())]);
        // The fake cluster does not serve definitions, and says so.
        let found = failures(&[widget("shop"), definition], mode);
        assert!(found.iter().all(|(id, _)| !id.contains("/Widget/")), "{found:?}");
    }
}

#[test]
fn namespaces_of_grants_and_of_the_agent_are_refused() {
    let within = |namespace: &str| {
        let mut config = config("a", "1");
        config["metadata"]["namespace"] = json!(namespace);
        failures(&[config], "Schema").first().map(|(_, code)| code.clone()).unwrap_or_default()
    };
    assert_eq!(within("default"), "NamespaceIsPlaced");
    assert_eq!(within("interlock-system"), "SystemNamespace");
    assert_eq!(within(""), "NamespaceIsPlaced");
    assert_eq!(within("shop"), "");
}

#[test]
fn what_the_agent_may_not_do_is_said_before_anything_is_written() {
    let bundle = bundle(&[config("a", "1"), namespace("shop")]);
    let preflight = json!({"uid": "u", "digest": bundle.digest()});
    let mut pair = Pair::new(&[&bundle], json!({}), json!({"preflight": preflight}));
    pair.around.lacks = vec!["create".to_owned(), "patch".to_owned()];
    pair.check();
    let failures = pair.said()["preflight"]["failures"].take();
    for (place, words) in [
        (0, "create, patch of configmaps in namespace shop;"),
        (1, "create, patch of namespaces in the cluster as a whole;"),
    ] {
        assert_eq!(failures[place]["code"], "RightMissing", "{failures:#}");
        let message = failures[place]["message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{message}");
    }
}
