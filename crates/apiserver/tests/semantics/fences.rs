//! The fence of rollouts: a write that carries an old token does not land.

use crate::support::{Api, MAPS, text};
use serde_json::{Value, json};

const FENCE: &str = "/api/v1/namespaces/interlock-system/configmaps";

async fn fence(api: &Api, token: u64) {
    api.namespace("interlock-system").await;
    let body = json!({"metadata": {"name": "rollout-fence"}, "data": {"token": token.to_string()}});
    api.post(FENCE, &body).await.made();
}

fn map(name: &str, token: Option<u64>) -> Value {
    let mut body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}});
    if let Some(token) = token {
        body["metadata"]["annotations"] = json!({"interlock.dev/token": token.to_string()});
    }
    body
}

#[tokio::test]
async fn a_write_of_a_rollout_must_not_be_older_than_the_fence() {
    let api = Api::new().await;
    fence(&api, 5).await;
    let maps = format!("{MAPS}?fieldManager=interlock-rollouts");
    for token in [None, Some(4)] {
        let status = api.post(&maps, &map("a", token)).await.refused(403, "Forbidden");
        assert!(text(&status["message"]).contains("the fence stands at 5"), "{status}");
    }
    api.post(&maps, &map("a", Some(5))).await.made();
    let path = format!("{MAPS}/a?fieldManager=interlock-rollouts");
    let forced = format!("{path}&force=true");
    api.apply(&forced, &map("a", Some(4))).await.refused(403, "Forbidden");
    api.apply(&forced, &map("a", Some(6))).await.ok();
    let raise = json!({"data": {"token": "7"}});
    let fence_path = format!("{FENCE}/rollout-fence?fieldManager=interlock-rollouts");
    api.merge(&fence_path, &raise).await.ok();
    let late = json!({"data": {"k": "v"}});
    api.merge(&path, &late).await.refused(403, "Forbidden");
    // Everybody else is not concerned.
    api.merge(&format!("{MAPS}/a"), &late).await.ok();
}

#[tokio::test]
async fn the_user_of_rollouts_is_fenced_whatever_it_calls_itself() {
    let api = Api::new().await;
    fence(&api, 5).await;
    let rollouts = api.as_user("system:interlock:rollouts", &["system:masters"]);
    rollouts.post(MAPS, &map("a", Some(4))).await.refused(403, "Forbidden");
    rollouts.post(MAPS, &map("a", Some(5))).await.made();
    let path = format!("{MAPS}/a");
    api.merge(&format!("{FENCE}/rollout-fence"), &json!({"data": {"token": "6"}})).await.ok();
    rollouts.delete(&path).await.refused(403, "Forbidden");
    api.get(&path).await.ok();
}

#[tokio::test]
async fn a_fence_that_rises_meanwhile_stops_the_write() {
    let api = Api::new().await;
    fence(&api, 1).await;
    let path = format!("{MAPS}/a?fieldManager=interlock-rollouts");
    let maps = format!("{MAPS}?fieldManager=interlock-rollouts");
    api.post(&maps, &map("a", Some(1))).await.made();
    let writer = {
        let api = api.clone();
        tokio::spawn(async move {
            for number in 0.. {
                let mut body = map("a", Some(1));
                body["data"] = json!({"k": number.to_string()});
                let answer = api.apply(&format!("{path}&force=true"), &body).await;
                if answer.code == 403 {
                    return;
                }
                assert_eq!(answer.code, 200, "{}", answer.body);
            }
        })
    };
    tokio::task::yield_now().await;
    let raise = json!({"data": {"token": "2"}});
    let raised = api.merge(&format!("{FENCE}/rollout-fence"), &raise).await.ok();
    writer.await.expect("the writer is stopped");
    let last = api.get(&format!("{MAPS}/a")).await.ok();
    assert!(
        crate::support::version(&last) < crate::support::version(&raised),
        "nothing landed after the fence rose"
    );
}
