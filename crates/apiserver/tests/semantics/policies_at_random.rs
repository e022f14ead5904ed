//! Policies that a seed draws, bound and asked: none panics or takes long, each gives the same verdict twice, and one
//! that ignores failures refuses nothing that the same one without them lets in.

use crate::support::{Answer, Api, MAPS, text};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const ROUNDS: usize = 150;
const WRITES: usize = 12;
/// Far more than any verdict takes, also on a slow machine.
const LONG: Duration = Duration::from_secs(60);

/// A sequence of numbers that its seed fixes (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % bound as u64).expect("it is below the bound")
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn truth(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self
                .one(&["true", "false", "has(object.data)", "has(object.data.a)"])
                .to_owned();
        }
        let depth = depth - 1;
        match self.below(12) {
            0 => format!("!({})", self.truth(depth)),
            1 => format!("({} && {})", self.truth(depth), self.truth(depth)),
            2 => format!("({} || {})", self.truth(depth), self.truth(depth)),
            3 => format!("({} == {})", self.word(depth), self.word(depth)),
            4 => format!("{}.startsWith({})", self.word(depth), self.word(depth)),
            5 => format!(
                "{}.matches({})",
                self.word(depth),
                self.one(&["'^a+$'", "'(a|b)*c'", "'['"])
            ),
            6 => format!("({} in {})", self.word(depth), self.words(depth)),
            7 => format!("{}.all(x, x != {})", self.words(depth), self.word(depth)),
            8 => format!("{}.exists_one(x, size(x) > {})", self.words(depth), self.number(depth)),
            9 => format!("({} ? {} : {})", self.truth(depth), self.truth(depth), self.truth(depth)),
            10 => format!("quantity({}).isLessThan(quantity('1Gi'))", self.word(depth)),
            _ => format!("({} < {})", self.number(depth), self.number(depth)),
        }
    }

    fn number(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.one(&["0", "1", "-1", "9223372036854775807", "7"]).to_owned();
        }
        let depth = depth - 1;
        match self.below(6) {
            0 => format!("({} + {})", self.number(depth), self.number(depth)),
            1 => format!("({} * {})", self.number(depth), self.number(depth)),
            2 => format!("({} / {})", self.number(depth), self.number(depth)),
            3 => format!("int({})", self.word(depth)),
            4 => format!("size({})", self.words(depth)),
            _ => format!("size({})", self.word(depth)),
        }
    }

    /// A text.
    fn word(&mut self, depth: usize) -> String {
        let plain = [
            "'a'",
            "''",
            "'é'",
            "string(object.metadata.name)",
            "string(object.data.a)",
            "string(object.data.b)",
            "string(params.data.a)",
            "request.namespace",
            "request.userInfo.username",
        ];
        if depth == 0 {
            return self.one(&plain).to_owned();
        }
        let depth = depth - 1;
        match self.below(8) {
            0 => format!("({} + {})", self.word(depth), self.word(depth)),
            1 => format!("string({})", self.number(depth)),
            2 => format!("{}.substring({})", self.word(depth), self.number(depth)),
            3 => {
                format!("{}.replace({}, {})", self.word(depth), self.word(depth), self.word(depth))
            }
            4 => format!("string({}[{}])", self.words(depth), self.number(depth)),
            5 => format!("{}.join({})", self.words(depth), self.word(depth)),
            6 => format!("'%s %d'.format([{}, {}])", self.word(depth), self.number(depth)),
            _ => self.one(&plain).to_owned(),
        }
    }

    /// A list of texts.
    fn words(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.one(&["['a', 'b']", "['']", "request.userInfo.groups"]).to_owned();
        }
        let depth = depth - 1;
        match self.below(5) {
            0 => format!("[{}, {}]", self.word(depth), self.word(depth)),
            1 => format!("{}.split({})", self.word(depth), self.word(depth)),
            2 => format!("({} + {})", self.words(depth), self.words(depth)),
            3 => format!("{}.map(x, x + {})", self.words(depth), self.word(depth)),
            _ => format!("{}.filter(x, x != {})", self.words(depth), self.word(depth)),
        }
    }

    /// The spec of a policy about config maps.
    fn policy(&mut self) -> Value {
        let mut spec = json!({
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE"],
            }]},
        });
        let validation = |random: &mut Random| json!({"expression": random.truth(3), "messageExpression": random.word(2)});
        let validations = (0..1 + self.below(3)).map(|_| validation(self)).collect();
        spec["validations"] = Value::Array(validations);
        if self.below(3) == 0 {
            let condition = json!({"name": "drawn", "expression": self.truth(2)});
            spec["matchConditions"] = json!([condition]);
        }
        if self.below(3) == 0 {
            let name = self.one(&["drawn", "unused"]).to_owned();
            spec["variables"] = json!([{"name": name, "expression": self.words(2)}]);
            let asks = json!({"expression": format!("size(variables.{name}) < 3")});
            spec["validations"].as_array_mut().expect("it is a list").push(asks);
        }
        if self.below(4) == 0 {
            spec["auditAnnotations"] = json!([{"key": "drawn", "valueExpression": self.word(2)}]);
        }
        spec
    }

    fn binding(&mut self) -> Value {
        let action = self.one(&["Allow", "Deny"]);
        let reference = match self.below(3) {
            0 => {
                json!({"name": "there", "namespace": "default", "parameterNotFoundAction": action})
            }
            1 => json!({"name": "missing", "parameterNotFoundAction": action}),
            _ => json!({"selector": {}, "parameterNotFoundAction": action}),
        };
        json!({"metadata": {"name": "drawn"}, "spec": {
            "policyName": "drawn", "validationActions": ["Deny"], "paramRef": reference,
        }})
    }

    fn map(&mut self) -> Value {
        let mut map = json!({"metadata": {"name": self.one(&["a", "b-c"])}});
        if self.below(5) > 0 {
            let values = ["", "a", "aaac", "12", "-1", "1Gi", "é", "\n", "99999999999999999999"];
            map["data"] = json!({"a": self.one(&values), "b": self.one(&values)});
            if self.below(2) == 0 {
                map["data"]["c"] = json!(self.one(&values));
            }
        }
        map
    }
}

/// The verdict on a write, which is one in time, in the form of a Status if it is a refusal.
async fn verdict(api: &Api, map: &Value) -> (u16, String) {
    let began = Instant::now();
    let Answer { code, body, .. } = api.post(&format!("{MAPS}?dryRun=All"), map).await;
    assert!(began.elapsed() < LONG, "{:?} for {map}", began.elapsed());
    match code {
        201 => (code, String::new()),
        422 => {
            let why = text(&body["message"]);
            assert!(why.contains("ValidatingAdmissionPolicy 'drawn'"), "{body}");
            (code, why)
        }
        _ => panic!("{code} for {map}: {body}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_that_are_drawn_give_verdicts_that_hold_together() {
    let api = Api::new().await;
    api.config_map("there", json!({"a": "a", "b": "12"})).await;
    let mut random = Random(2026);
    let (mut bound, mut allowed, mut refused) = (0, 0, 0);
    let one = format!("{POLICIES}/drawn");
    for _ in 0..ROUNDS {
        let policy = json!({"metadata": {"name": "drawn"}, "spec": random.policy()});
        let written = api.post(POLICIES, &policy).await;
        if written.code != 201 {
            written.refused(422, "Invalid");
            continue;
        }
        bound += 1;
        api.post(BINDINGS, &random.binding()).await.made();
        let maps: Vec<Value> = (0..WRITES).map(|_| random.map()).collect();
        let mut verdicts = Vec::new();
        for map in &maps {
            let first = verdict(&api, map).await;
            assert_eq!(first, verdict(&api, map).await, "{policy}");
            verdicts.push(first.0);
        }
        api.merge(&one, &json!({"spec": {"failurePolicy": "Ignore"}})).await.ok();
        for (map, strict) in maps.iter().zip(&verdicts) {
            let (lenient, why) = verdict(&api, map).await;
            assert!(*strict == 422 || lenient == 201, "{why}: {policy}");
        }
        allowed += verdicts.iter().filter(|code| **code == 201).count();
        refused += verdicts.iter().filter(|code| **code == 422).count();
        api.delete(&format!("{BINDINGS}/drawn")).await.ok();
        api.delete(&one).await.ok();
    }
    // A draw of which nothing can be written, or all gives one verdict, would show nothing.
    assert!(bound >= ROUNDS / 3, "{bound} of {ROUNDS} policies were written");
    assert!(allowed > 100 && refused > 100, "{allowed} allowed, {refused} refused");
}
