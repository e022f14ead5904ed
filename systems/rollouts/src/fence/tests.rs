use super::*;

#[test]
fn the_policy_is_for_one_user_and_knows_its_parameter() {
    let policy = policy("o'neill");
    let conditions = &policy["spec"]["matchConditions"];
    assert_eq!(conditions[0]["expression"], "request.userInfo.username == 'o\\'neill'");
    assert_eq!(policy["spec"]["failurePolicy"], "Fail");
    assert_eq!(binding()["spec"]["paramRef"]["name"], config_map()["metadata"]["name"]);
    assert_eq!(binding()["spec"]["policyName"], policy["metadata"]["name"]);
    assert_eq!(binding()["spec"]["paramRef"]["parameterNotFoundAction"], "Deny");
}

#[test]
fn the_fence_comes_before_what_refuses_everything_without_it() {
    let kinds: Vec<String> = manifests("a")
        .iter()
        .map(|manifest| manifest["kind"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(kinds[..2], ["Namespace", "ConfigMap"]);
    assert_eq!(kinds[2..], [POLICY.kind.to_string(), BINDING.kind.to_string()]);
}
