//! irsa-operator's kinds as its users write them.

use interlock_api::identities::{
    Adopt, DeletionPolicy, IamRoleServiceAccount, OldCondition, Policy, Role,
};
use interlock_api::identity_definitions;
use serde_json::{Value, json};

fn schema(kind: &str, part: &str) -> Value {
    let found = identity_definitions().into_iter().find(|one| one.spec.names.kind == kind);
    let definition = serde_json::to_value(found.expect("a definition")).expect("it is JSON");
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part].clone()
}

#[test]
fn the_example_of_irsa_operator_is_read_as_it_is() {
    let text = r#"
apiVersion: irsa.voodoo.io/v1alpha1
kind: IamRoleServiceAccount
metadata:
  name: s3put
spec:
  policy:
    statement:
      - resource: "arn:aws:s3:::test-irsa-4gkut9fl"
        action:
          - "s3:Get*"
          - "s3:List*"
"#;
    let read: IamRoleServiceAccount = serde_saphyr::from_str(text).expect("it is an object");
    assert_eq!(read.spec.policy.statement[0].action, ["s3:Get*", "s3:List*"]);
    let written = serde_json::to_value(&read.spec).expect("it is JSON");
    let statement =
        json!([{"resource": "arn:aws:s3:::test-irsa-4gkut9fl", "action": ["s3:Get*", "s3:List*"]}]);
    assert_eq!(written, json!({"policy": {"statement": statement}}));
}

#[test]
fn what_irsa_operator_wrote_into_its_objects_is_read() {
    let policy = json!({"apiVersion": "irsa.voodoo.io/v1alpha1", "kind": "Policy",
        "metadata": {"name": "s3"}, "spec": {"arn": "arn:aws:iam::1:policy/p",
            "statement": [{"resource": "arn:aws:s3:::a", "action": ["s3:*"]}]},
        "status": {"condition": "created"}});
    let policy: Policy = serde_json::from_value(policy).expect("it is an object");
    assert_eq!(policy.status.expect("a status").condition, OldCondition::Created);
    let role = json!({"apiVersion": "irsa.voodoo.io/v1alpha1", "kind": "Role",
        "metadata": {"name": "s3"}, "spec": {"serviceAccountName": "s3",
            "policyarn": "arn:aws:iam::1:policy/p", "rolearn": "arn:aws:iam::1:role/r",
            "permissionsBoundariesPolicyARN": "arn:aws:iam::1:policy/b"},
        "status": {"condition": "progressing", "reason": ""}});
    let role: Role = serde_json::from_value(role).expect("it is an object");
    assert_eq!(role.spec.policy_arn.as_deref(), Some("arn:aws:iam::1:policy/p"));
    assert_eq!((role.spec.adopt, role.spec.deletion_policy), (None, None));
}

#[test]
fn no_field_is_required_that_irsa_operator_does_not_require() {
    for (kind, required) in [
        ("IamRoleServiceAccount", json!(["policy"])),
        ("Policy", json!(["statement"])),
        ("Role", json!(["serviceAccountName"])),
    ] {
        assert_eq!(schema(kind, "spec")["required"], required, "{kind}");
        assert_eq!(schema(kind, "status")["required"], Value::Null, "{kind}");
    }
}

#[test]
fn what_cannot_be_is_refused_by_the_schema() {
    let statement = &schema("Policy", "spec")["properties"]["statement"];
    assert_eq!(statement["minItems"], 1);
    let fields = &statement["items"]["properties"];
    assert!(fields["resource"]["pattern"].as_str().is_some_and(|it| it.starts_with("^arn:")));
    assert_eq!(
        (&fields["action"]["minItems"], &fields["action"]["items"]["minLength"]),
        (&json!(1), &json!(1))
    );
    let account = schema("IamRoleServiceAccount", "spec");
    assert_eq!(account["properties"]["adopt"]["enum"], json!(["Never", "SameName", "Legacy"]));
}

#[test]
fn what_an_object_does_not_say_is_the_careful_choice() {
    assert_eq!(Adopt::default(), Adopt::Never);
    assert_eq!(DeletionPolicy::default(), DeletionPolicy::Delete);
}
