use super::*;

#[test]
fn the_policy_is_for_one_user_and_knows_its_parameter() {
    let policy = policy("o'neill");
    let conditions = &policy["spec"]["matchConditions"];
    assert_eq!(conditions[0]["expression"], "request.userInfo.username == 'o\\'neill'");
    assert_eq!(policy["spec"]["failurePolicy"], "Fail");
    assert_eq!(binding()["spec"]["paramRef"]["name"], config_map()["metadata"]["name"]);
    assert_eq!(binding()["spec"]["policyName"], policy["metadata"]["name"]);
    assert_eq!(binding()["spec"]["paramRef"]["parameterNotFoundAction"], "Allow");
}

#[test]
fn the_fence_comes_before_the_policy_that_refuses_nothing_without_it() {
    let kinds: Vec<String> = manifests("a")
        .iter()
        .map(|manifest| manifest["kind"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(kinds[..2], ["Namespace", "ConfigMap"]);
    assert_eq!(kinds[2..], [POLICY.kind.to_string(), BINDING.kind.to_string()]);
}

#[test]
fn only_a_refusal_by_the_fence_proves_anything() {
    let said = "configmaps \"interlock-rollout-probe\" is forbidden: ValidatingAdmissionPolicy \
                'interlock-rollout-fence' with binding 'interlock-rollout-fence' denied request: Fenced: the write \
                has token 6, and the fence is at 7";
    assert!(is_refusal(said));
    assert!(!is_refusal("configmaps is forbidden: User \"a\" cannot create resource"));
    assert!(!is_refusal(
        "ValidatingAdmissionPolicy 'interlock-rollout-fence' denied request: NamespaceIsPlaced"
    ));
    assert_eq!(probe(6)["metadata"]["annotations"]["interlock.dev/token"], "6");
}

#[test]
fn whatever_the_policy_refuses_it_says_in_a_word_of_its_own() {
    for validation in validations().as_array().expect("a list") {
        let message = validation["message"].as_str().expect("each has one");
        let (word, _) = message.split_once(':').expect("it begins with a word");
        let said = format!(
            "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'interlock-rollout-fence' with binding \
             'interlock-rollout-fence' denied request: {message}"
        );
        assert_eq!(word_of(&said), Some(word));
        assert_eq!(word_of(&said.replace(FENCE_POLICY, "another")), None);
    }
    for said in
        ["", "denied request: ", "NotOurs: x", "interlock-rollout-fence denied request: Other: x"]
    {
        assert_eq!(word_of(said), None, "{said}");
    }
}
