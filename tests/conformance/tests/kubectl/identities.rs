//! The kinds of irsa-operator: what its users have written is applied as it is.

use crate::world::each;

const DEFINITION: &str = include_str!("../../../../crates/api/crds/iamroleserviceaccounts.yaml");

/// The example of irsa-operator, `config/samples/irsa_v1alpha1_iamroleserviceaccount.yaml`, as it is.
const EXAMPLE: &str = r#"apiVersion: irsa.voodoo.io/v1alpha1
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

#[test]
#[ignore = "needs kubectl: cargo xtask test-real"]
fn the_example_of_irsa_operator_is_applied_as_it_is() {
    const APPLIED: &str = "iamroleserviceaccount.irsa.voodoo.io/s3put";
    each(|k| {
        k.file("definition.yaml", DEFINITION);
        k.ok("apply -f definition.yaml");
        let kind = "crd/iamroleserviceaccounts.irsa.voodoo.io";
        k.ok(&format!("wait --for=condition=Established {kind} --timeout=60s"));
        k.file("example.yaml", EXAMPLE);
        k.says("apply -f example.yaml", &format!("{APPLIED} created"));
        k.says("apply -f example.yaml", &format!("{APPLIED} unchanged"));
        k.says(
            "get irsa s3put -o jsonpath={.spec}",
            r#"{"policy":{"statement":[{"action":["s3:Get*","s3:List*"],"resource":"arn:aws:s3:::test-irsa-4gkut9fl"}]}}"#,
        );
        k.deletes(
            "delete -f example.yaml",
            &["iamroleserviceaccount.irsa.voodoo.io \"s3put\" deleted"],
        );
    });
}
