//! What an answer says, beside what was found.

use crate::proxy::Fault;
use crate::support::{
    ABOUT, CLOUD_SECONDS, ME, Options, Scene, WINDOW, allow, closed, create_policy, done, place,
    policy,
};
use interlock_iam::Credentials;
use interlock_iam::client::NewRole;
use interlock_identities::document;
use interlock_identities::outside::{
    Asked, Call, Failure, Found, PolicyReading, Question, RoleReading, Sent,
};

#[tokio::test]
async fn an_answer_has_the_clocks_of_the_cloud_and_of_the_process() {
    let scene = Scene::new().await;
    scene.pass(7_900);
    let answer = scene.ask(policy(None)).await;
    assert_eq!(answer.found, Found::Absent);
    assert_eq!((answer.process.instance.as_str(), answer.process.uptime), (ME, 7));
    // The cloud's clock has stopped; what passes since its last answer is counted.
    let date = answer.date.unwrap();
    assert!((CLOUD_SECONDS..CLOUD_SECONDS + 5).contains(&date), "{date}");
}

#[tokio::test]
async fn the_uptime_is_that_of_the_start_of_the_reading() {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;
    let scene = Scene::new().await;
    // Each look at this clock is a second later than the one before.
    let looks = AtomicU64::new(100);
    let next = move || Duration::from_secs(looks.fetch_add(1, Ordering::SeqCst));
    let settings = interlock_cloud::Settings {
        clock: interlock_cloud::Clock::new(next),
        ..interlock_cloud::Settings::of(ME, Duration::from_secs(WINDOW))
    };
    let driver = interlock_cloud::Driver::new(scene.direct.clone(), settings);
    let asked = Question {
        object: Asked::Role { at: place(), reading: RoleReading::Inline },
        about: ABOUT.into(),
    };
    // The look before that is for the token: a wait for it is no part of the reading.
    assert_eq!(driver.answer(asked).await.process.uptime, 101);
}

#[tokio::test]
async fn a_version_that_is_known_is_not_read_again() {
    let scene = Scene::new().await;
    scene.make([create_policy()]).await;
    let requests = scene.proxy.passed_on();
    let Found::Policy(found) = scene.ask(policy(Some("v1"))).await.found else { panic!() };
    assert_eq!((found.versions, found.attached_to), (None, None));
    assert_eq!(scene.proxy.passed_on() - requests, 1);
    scene.make([Call::CreatePolicyVersion { document: allow("s3:*") }]).await;
    let Found::Policy(found) = scene.ask(policy(Some("v1"))).await.found else { panic!() };
    assert_eq!(found.versions.map(|it| it.len()), Some(2));
}

/// A policy that is attached once, by its own count.
const ATTACHED_ONCE: &str = "<GetPolicyResponse><GetPolicyResult><Policy><PolicyName>x</PolicyName>\
    <PolicyId>ANPA1</PolicyId><Arn>arn:aws:iam::123456789012:policy/interlock/f/x</Arn>\
    <Path>/interlock/f/</Path><DefaultVersionId>v1</DefaultVersionId><AttachmentCount>1</AttachmentCount>\
    <CreateDate>2026-11-17T00:00:00Z</CreateDate><UpdateDate>2026-11-17T00:00:00Z</UpdateDate>\
    </Policy></GetPolicyResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>\
    </GetPolicyResponse>";

#[tokio::test]
async fn a_policy_that_is_attached_to_nothing_can_be_deleted_whatever_its_count_says() {
    let scene = Scene::new().await;
    scene.make([create_policy()]).await;
    scene.proxy.next(Fault::Answer { status: 200, body: ATTACHED_ONCE, is_passed_on: false });
    let found = scene.policy_by(PolicyReading::Attachments).await;
    assert_eq!(found.attached_to, Some(Vec::new()));
    assert_eq!(found.versions.map(|it| it.len()), Some(1), "so that others go before it does");
}

#[tokio::test]
async fn versions_are_read_oldest_first_also_beyond_the_tenth() {
    let scene = Scene::new().await;
    scene.make([create_policy()]).await;
    for version in 2..=11 {
        if version > 3 {
            let version = format!("v{}", version - 2);
            scene.make([Call::DeletePolicyVersion { version }]).await;
        }
        let document = allow(&format!("s3:Get{version}"));
        scene.make([Call::CreatePolicyVersion { document }]).await;
    }
    let versions = scene.policy().await.versions.unwrap();
    let ids: Vec<&str> = versions.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["v1", "v10", "v11"]);
    assert!(versions[2].document.contains("s3:Get11"));
}

#[tokio::test]
async fn what_this_process_sent_is_known_without_a_request_and_so_is_the_document_of_a_new_policy()
{
    let scene = Scene::new().await;
    scene.make([create_policy()]).await;
    let requests = scene.proxy.passed_on();
    let calls = scene.ask(Asked::Calls).await;
    assert_eq!((calls.found, calls.sent.len()), (Found::NotAsked, 1));
    assert_eq!(scene.proxy.passed_on() - requests, 0);
    assert_eq!(scene.policy().await.versions.map(|it| it.len()), Some(1));
    // The policy, and the list of its versions.
    assert_eq!(scene.proxy.passed_on() - requests, 2);
}

#[tokio::test]
async fn of_a_policy_that_has_the_wanted_document_nothing_else_is_read() {
    let scene = Scene::new().await;
    scene.make([create_policy()]).await;
    scene.policy().await;
    let wanted = allow("s3:List*");
    scene.make([Call::CreatePolicyVersion { document: wanted.clone() }]).await;
    let reading = |document: &str| PolicyReading::Wanted(document::digest(document));
    let requests = scene.proxy.passed_on();
    let found = scene.policy_by(reading(&wanted)).await;
    let ids: Vec<String> = found.versions.into_iter().flatten().map(|it| it.id).collect();
    assert_eq!((ids, found.default_version), (vec!["v2".to_owned()], "v2".to_owned()));
    // The policy alone: this process wrote the document.
    assert_eq!(scene.proxy.passed_on() - requests, 1);
    // Another document is wanted: the list is read, too, as an older version may have it.
    let found = scene.policy_by(reading(&allow("s3:Put*"))).await;
    assert_eq!(found.versions.map(|it| it.len()), Some(2));
    assert_eq!(scene.proxy.passed_on() - requests, 3);
}

#[tokio::test]
async fn a_list_of_several_pages_is_read_to_its_end() {
    let scene = Scene::new().await;
    scene.make([create_policy()]).await;
    let arn = scene.policy().await.arn;
    for number in 0..1_001 {
        let name = format!("role-{number}");
        let role = NewRole { name: name.clone(), trust: closed(), ..NewRole::default() };
        done(scene.direct.create_role(&role).await);
        done(scene.direct.attach_role_policy(&name, &arn).await);
    }
    let requests = scene.proxy.passed_on();
    let attached_to = scene.policy_by(PolicyReading::Attachments).await.attached_to;
    assert_eq!(attached_to.map(|it| it.len()), Some(1_001));
    // The policy, and two pages of roles; while it is attached, its versions are of no interest.
    assert_eq!(scene.proxy.passed_on() - requests, 3);
}

#[tokio::test]
async fn what_was_sent_is_in_every_answer_about_the_object_until_the_window_is_over() {
    let scene = Scene::new().await;
    scene.pass(5_500);
    scene.make([create_policy()]).await;
    let sent = Sent { call: create_policy(), is_answered: true, at: 5 };
    scene.pass(WINDOW * 1_000 - 1);
    assert_eq!(scene.ask(policy(None)).await.sent, std::slice::from_ref(&sent));
    let other = Question { object: policy(None), about: "another".to_owned() };
    assert_eq!(scene.driver.answer(other).await.sent, []);
    scene.pass(1);
    assert_eq!(scene.ask(policy(None)).await.sent, []);
}

#[tokio::test]
async fn credentials_that_are_not_good_are_about_the_process() {
    let credentials = Credentials::lasting("AKIAROOT", "another secret");
    let scene = Scene::with(Options { credentials, ..Options::default() }).await;
    let found = scene.ask(policy(None)).await.found;
    assert!(matches!(found, Found::Failed(Failure::Credentials { .. })), "{found:?}");
    scene.send(create_policy()).await.unwrap_err();
    let answer = scene.ask(policy(None)).await;
    assert_eq!((answer.sent, answer.refused), (vec![], None));
}
