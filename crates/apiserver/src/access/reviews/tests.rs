use super::*;
use crate::access::rules::Rule;

fn alice() -> Identity {
    Identity::authenticated("alice", vec!["dev".into()], Scope::Cluster("c1".into()))
}

fn refused(kind: AccessReview, review: &Value) -> String {
    question(kind, review, &alice(), "a").expect_err("a bad question").message
}

#[test]
fn the_own_review_is_about_the_caller() {
    let review = json!({
        "metadata": {"creationTimestamp": null},
        "spec": {"resourceAttributes": {
            "namespace": "a", "verb": "get", "group": "apps", "resource": "deployments",
            "subresource": "scale", "name": "d",
        }},
    });
    let asked = question(AccessReview::Own, &review, &alice(), "").expect("a good question");
    assert_eq!(asked.who, alice());
    assert_eq!(
        asked.what,
        Attributes {
            verb: "get",
            group: "apps",
            resource: "deployments",
            subresource: "scale",
            name: "d",
            namespace: "a",
            path: None,
        }
    );
    let decision = Decision { allowed: true, reason: "RBAC: because".into() };
    let answered = answer(review.clone(), &decision);
    assert_eq!(answered["status"], json!({"allowed": true, "reason": "RBAC: because"}));
    assert_eq!(answered["spec"], review["spec"]);
}

#[test]
fn a_review_of_somebody_takes_their_groups_as_they_are() {
    let review = json!({"spec": {
        "user": "bob", "groups": ["x"], "uid": "u", "extra": {"k": ["v"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }});
    let asked = question(AccessReview::Anyone, &review, &alice(), "").expect("a good question");
    assert_eq!(asked.who.user, "bob");
    assert_eq!(asked.who.groups, ["x"]);
    assert_eq!(asked.who.extra["k"], ["v"]);
    assert_eq!(asked.what, Attributes::path("get", "/metrics"));
    let denied = answer(review, &Decision { allowed: false, reason: String::new() });
    assert_eq!(denied["status"], json!({"allowed": false}));
}

#[test]
fn a_question_about_nothing_or_nobody_is_refused() {
    let message = refused(AccessReview::Anyone, &json!({"spec": {}}));
    assert!(message.contains("spec.resourceAttributes: Invalid value: null: exactly one of"));
    assert!(message.contains(r#"spec.user: Invalid value: "": at least one of user or group"#));
    let both = json!({"spec": {"resourceAttributes": {}, "nonResourceAttributes": {}}});
    assert!(refused(AccessReview::Own, &both).contains("in combination with"));
    let named = json!({"metadata": {"name": "x"}, "spec": {"resourceAttributes": {}}});
    assert!(refused(AccessReview::Own, &named).contains("metadata: Invalid value: must be empty"));
    let selector = json!({"spec": {"resourceAttributes": {
        "labelSelector": {"rawSelector": "a", "requirements": [{}]}, "fieldSelector": {},
    }}});
    let message = refused(AccessReview::Own, &selector);
    assert!(message.contains("labelSelector.rawSelector"), "{message}");
    assert!(message.contains("fieldSelector.requirements: Required value"), "{message}");
}

#[test]
fn a_local_review_is_about_its_namespace() {
    let local = |namespace: &str| {
        json!({"metadata": {"namespace": "a"}, "spec": {
            "user": "bob", "resourceAttributes": {"namespace": namespace, "verb": "get"},
        }})
    };
    assert!(question(AccessReview::Local, &local("a"), &alice(), "a").is_ok());
    assert!(refused(AccessReview::Local, &local("b")).contains("must match metadata.namespace"));
    let path = json!({"spec": {"user": "bob", "nonResourceAttributes": {"path": "/"}}});
    assert!(refused(AccessReview::Local, &path).contains("disallowed on this kind of request"));
}

#[test]
fn held_rules_are_shown_by_resource_and_by_path() {
    let all = || vec!["*".to_owned()];
    let held = HeldRules {
        rules: vec![
            Rule { groups: all(), resources: all(), verbs: all(), ..Rule::default() },
            Rule { urls: all(), verbs: all(), ..Rule::default() },
        ],
        missing: vec!["x not found".into()],
    };
    assert_eq!(
        rules_review(&held)["status"],
        json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
            "evaluationError": "x not found",
        })
    );
    assert!(rules_review_namespace(&json!({"spec": {}})).is_err());
    assert_eq!(rules_review_namespace(&json!({"spec": {"namespace": "a"}})), Ok("a"));
}

#[test]
fn a_token_review_says_whose_token_it_is() {
    let review = json!({"spec": {"token": "t", "audiences": ["vault"]}});
    let asked = token_asked_about(&review).expect("a token");
    assert_eq!(asked, ("t", vec!["vault".to_owned()]));
    let answered = token_answer(review, Ok((alice(), vec!["vault".into()])));
    assert_eq!(
        answered["status"],
        json!({
            "authenticated": true,
            "user": {"username": "alice", "groups": ["dev", "system:authenticated"]},
            "audiences": ["vault"],
        })
    );
}

#[test]
fn a_bad_token_is_an_answer_and_no_token_is_not() {
    let review = json!({"spec": {"token": "t"}});
    let answered = token_answer(review, Err("invalid bearer token".into()));
    assert_eq!(answered["status"], json!({"user": {}, "error": "invalid bearer token"}));
    assert_eq!(token_asked_about(&json!({"spec": {}})).expect_err("no token").code, 400);
}

#[test]
fn whoever_asks_who_they_are_gets_an_answer() {
    let review = self_review(&alice(), 0);
    assert_eq!(review["status"]["userInfo"]["username"], "alice");
    assert_eq!(review["metadata"]["creationTimestamp"], "1970-01-01T00:00:00Z");
}

#[test]
fn questions_of_any_shape_are_answered_or_refused() {
    let odd = [json!(null), json!(7), json!("x"), json!([]), json!([7]), json!({"verb": 7})];
    for kind in [AccessReview::Own, AccessReview::Anyone, AccessReview::Local] {
        for one in &odd {
            let _ = question(kind, one, &alice(), "a");
            for field in ["user", "groups", "extra", "resourceAttributes", "nonResourceAttributes"]
            {
                let review = json!({"metadata": one, "spec": {field: one, "user": "u"}});
                let _ = question(kind, &review, &alice(), "a");
                let _ = token_asked_about(&review);
                token_answer(review, Err(String::new()));
                answer(one.clone(), &Decision { allowed: false, reason: String::new() });
            }
        }
    }
}
