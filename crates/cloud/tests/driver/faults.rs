//! What is on record after a fault, and what is true then.

use crate::proxy::Fault;
use crate::support::{ME, Options, Scene, create_policy, create_role, place, policy, request};
use interlock_iam::outcome::Class;
use interlock_identities::outside::{
    Asked, Call, Code, Failure, Found, Process, RoleReading, Sent,
};
use std::time::Duration;

const THROTTLED: &str = "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code>\
    <Message>Rate exceeded</Message></Error><RequestId>1</RequestId></ErrorResponse>";
const FAILED: &str = "<ErrorResponse><Error><Type>Receiver</Type><Code>ServiceFailure</Code>\
    <Message>m</Message></Error><RequestId>1</RequestId></ErrorResponse>";

fn answer(status: u16, body: &'static str, is_passed_on: bool) -> Fault {
    Fault::Answer { status, body, is_passed_on }
}

/// A scene in which the account is known, so that the next request is the one that a test means.
async fn faulty(deadline: Duration) -> Scene {
    let scene = Scene::with(Options { deadline, ..Options::default() }).await;
    assert_eq!(scene.ask(policy(None)).await.found, Found::Absent);
    scene
}

async fn has_role(scene: &Scene) -> bool {
    scene.direct.get_role("x").await.class() != Some(Class::NoSuchEntity)
}

#[tokio::test]
async fn a_call_whose_answer_was_lost_is_unanswered_whether_it_took_effect_or_not() {
    for (fault, is_done) in [
        (Fault::DropBefore, false),
        (Fault::DropAfter, true),
        (Fault::HalfAnswer, true),
        (answer(500, FAILED, true), true),
        (answer(502, "a proxy", false), false),
    ] {
        let scene = faulty(Duration::from_secs(30)).await;
        scene.proxy.next(fault.clone());
        let error = scene.send(create_role()).await.unwrap_err();
        assert!(error.contains("may be done"), "{error}");
        assert_eq!(has_role(&scene).await, is_done, "{fault:?}");
        let answer = scene.ask(policy(None)).await;
        let sent = Sent { call: create_role(), is_answered: false, at: 0 };
        assert_eq!((answer.sent, answer.refused), (vec![sent], None), "{fault:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_late_is_unanswered_after_the_deadline() {
    let scene = faulty(Duration::from_millis(300)).await;
    scene.proxy.next(Fault::Silence);
    let error = scene.send(create_role()).await.unwrap_err();
    assert!(error.contains("deadline"), "{error}");
    let sent = scene.ask(policy(None)).await.sent;
    assert_eq!(sent.iter().map(|sent| sent.is_answered).collect::<Vec<_>>(), [false]);
}

#[tokio::test]
async fn a_call_that_is_cut_off_half_way_is_unanswered() {
    let scene = faulty(Duration::from_secs(30)).await;
    scene.proxy.next(Fault::Silence);
    let before = scene.proxy.passed_on();
    // The step ends where it is, as when the process no longer leads.
    tokio::select! {
        _ = scene.send(create_role()) => panic!("there is no answer"),
        () = async { while scene.proxy.passed_on() == before { tokio::task::yield_now().await } } => {}
    }
    let sent = scene.ask(policy(None)).await.sent;
    assert_eq!(sent, [Sent { call: create_role(), is_answered: false, at: 0 }]);
    // The same call may be made again, and is one more call on record.
    scene.send(create_role()).await.unwrap_err();
    let answer = scene.ask(policy(None)).await;
    assert_eq!(answer.sent.len(), 1);
    assert_eq!(answer.refused.map(|it| it.code), Some(Code::EntityAlreadyExists));
}

#[tokio::test]
async fn a_request_that_was_not_sent_is_not_on_record() {
    let scene = faulty(Duration::from_secs(30)).await;
    // A port that nobody listens on.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    let endpoint = Some(format!("http://{address}"));
    let settings = interlock_iam::client::Settings { endpoint, ..Default::default() };
    let client = interlock_iam::client::Client::new(settings, crate::support::root()).unwrap();
    drop(closed);
    let settings = interlock_cloud::Settings::of(ME, Duration::from_secs(60));
    let driver = interlock_cloud::Driver::new(client, settings);
    let process = Process { instance: ME.to_owned(), uptime: 0 };
    driver.send(request(create_role(), process)).await.unwrap_err();
    let question = interlock_identities::outside::Question {
        object: Asked::Role { at: place(), reading: RoleReading::Attached },
        about: crate::support::ABOUT.to_owned(),
    };
    let answer = driver.answer(question).await;
    assert!(matches!(answer.found, Found::Failed(Failure::Unavailable { .. })));
    assert_eq!((answer.sent, answer.date), (vec![], None));
    drop(scene);
}

#[tokio::test]
async fn a_call_of_another_process_or_on_an_old_live_read_is_never_sent() {
    let scene = faulty(Duration::from_secs(30)).await;
    scene.pass(10_000);
    let requests = scene.proxy.passed_on();
    for (instance, uptime, is_sent) in
        [("another-1", 10, false), (ME, 6, false), (ME, -1, false), (ME, 7, true)]
    {
        let process = Process { instance: instance.to_owned(), uptime };
        let sent = scene.driver.send(request(create_policy(), process)).await;
        assert_eq!(sent.is_ok(), is_sent, "{instance} {uptime}: {sent:?}");
        let count = scene.ask(policy(Some("v1"))).await.sent.len();
        assert_eq!(count, usize::from(is_sent), "{instance} {uptime}");
    }
    // One call, and four questions of one request each.
    assert_eq!(scene.proxy.passed_on() - requests, 5);
    // A moment more than three seconds is too old.
    scene.pass(1);
    let process = Process { instance: ME.to_owned(), uptime: 7 };
    let error = scene.driver.send(request(Call::DeletePolicy, process)).await.unwrap_err();
    assert!(error.contains("3.001s old"), "{error}");
}

#[tokio::test]
async fn a_refusal_is_reported_until_a_later_call_is_done() {
    let scene = faulty(Duration::from_secs(30)).await;
    scene.make([create_policy()]).await;
    scene.pass(2_000);
    scene.send(create_policy()).await.unwrap_err();
    let answer = scene.ask(policy(None)).await;
    let refusal = answer.refused.unwrap();
    assert_eq!((refusal.code, refusal.at), (Code::EntityAlreadyExists, 2));
    assert!(refusal.message.contains("EntityAlreadyExists"), "{}", refusal.message);
    assert_eq!(answer.sent.len(), 1);
    scene.make([create_role()]).await;
    assert_eq!(scene.ask(policy(None)).await.refused, None);
}

#[tokio::test]
async fn a_call_that_is_throttled_is_not_done_and_slows_the_account_down() {
    let scene = faulty(Duration::from_secs(30)).await;
    scene.proxy.next(answer(400, THROTTLED, false));
    scene.send(create_role()).await.unwrap_err();
    let answer_now = scene.ask(policy(None)).await;
    assert_eq!(answer_now.refused.map(|it| it.code), Some(Code::Throttling));
    assert_eq!(answer_now.sent, []);
    scene.proxy.next(answer(429, "", false));
    let found = scene.ask(policy(None)).await.found;
    assert_eq!(found, Found::Failed(Failure::Throttled { after: 2 }));
}
