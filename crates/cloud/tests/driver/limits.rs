//! The rate limit of the account holds for all that the driver does.

use crate::proxy::Fault;
use crate::support::{Options, Scene, create_policy, policy};
use interlock_identities::outside::{Asked, At, Cloud, Failure, Found, Question, RoleReading};
use interlock_kernel::CallRate;
use interlock_shell::Driver as Ask;
use std::time::{Duration, Instant};

const BURST: u32 = 12;

async fn slow() -> Scene {
    let rate = CallRate { per_second: 2, burst: BURST, ..CallRate::default() };
    Scene::with(Options { rate, ..Options::default() }).await
}

fn waits(found: &Found) -> Option<u64> {
    match found {
        Found::Failed(Failure::Throttled { after }) => Some(*after),
        _ => None,
    }
}

#[tokio::test]
async fn the_rate_of_the_account_is_never_exceeded() {
    let scene = slow().await;
    let mut served = [0; 8];
    for step in 0..240_u64 {
        for (number, count) in served.iter_mut().enumerate() {
            let at = At::Name { path: "/".to_owned(), name: format!("role-{number}") };
            let object = Asked::Role { at, reading: RoleReading::Attached };
            let question = Question { object, about: format!("uid-{number}") };
            let answer = scene.driver.answer(question).await;
            *count += u32::from(waits(&answer.found).is_none());
        }
        let allowed = u64::from(BURST) + 2 * step / 4;
        let requests = scene.proxy.passed_on() as u64;
        assert!(requests <= allowed, "{requests} requests, {allowed} allowed");
        scene.pass(250);
    }
    // Nobody is left out.
    assert!(served.iter().all(|count| *count >= 3), "{served:?}");
}

#[tokio::test]
async fn a_call_has_its_token_while_others_wait_to_begin() {
    let scene = slow().await;
    assert_eq!(scene.ask(policy(None)).await.found, Found::Absent);
    // Others begin until none can any more.
    for number in 0.. {
        let question = Question { object: policy(Some("v1")), about: format!("other-{number}") };
        let found = scene.driver.answer(question).await.found;
        if waits(&found).is_some() {
            break;
        }
    }
    let requests = scene.proxy.passed_on();
    scene.make([create_policy()]).await;
    // A call waits for its token as long as its live read is fresh, and is then not sent.
    for sent in 2.. {
        let error = scene.send(create_policy()).await.unwrap_err();
        if error.contains("rate limit") {
            break;
        }
        assert!(error.contains("EntityAlreadyExists"), "{error}");
        assert_eq!(scene.proxy.passed_on() - requests, sent);
    }
    assert!(scene.proxy.passed_on() <= BURST as usize, "{}", scene.proxy.passed_on());
}

/// A token is taken for what is sent and for nothing else: while there is time, all of the rate is used.
#[tokio::test]
async fn a_live_read_that_no_call_follows_costs_no_token_of_a_call() {
    let scene = slow().await;
    scene.make([create_policy()]).await;
    let mut answered = 0;
    for number in 0.. {
        let question = Question { object: policy(Some("v1")), about: format!("other-{number}") };
        if waits(&scene.driver.answer(question).await.found).is_some() {
            break;
        }
        answered += 1;
    }
    let requests = scene.proxy.passed_on();
    for _ in 0..60 {
        scene.pass(500);
        let question = Question { object: policy(Some("v1")), about: "late".to_owned() };
        answered += usize::from(waits(&scene.driver.answer(question).await.found).is_none());
    }
    // Two a second for thirty seconds, of which the first one or two fill up what is kept for calls.
    let sent = scene.proxy.passed_on() - requests;
    assert!(sent >= 54, "{sent} requests, {answered} answers");
}

#[tokio::test]
async fn without_a_token_nothing_is_sent_and_the_answer_says_when_there_is_one() {
    let scene = slow().await;
    let mut number = 0;
    let after = loop {
        let question = Question { object: policy(Some("v1")), about: format!("{number}") };
        let answer = scene.driver.answer(question).await;
        if let Some(after) = waits(&answer.found) {
            assert_eq!(answer.date, None);
            break after;
        }
        number += 1;
    };
    let requests = scene.proxy.passed_on();
    let again = || Question { object: policy(Some("v1")), about: format!("{number}") };
    assert_eq!(waits(&scene.driver.answer(again()).await.found), Some(after));
    assert_eq!(scene.proxy.passed_on(), requests);
    scene.pass(after * 1_000);
    assert_eq!(scene.driver.answer(again()).await.found, Found::Absent);
}

#[tokio::test]
async fn throttling_halves_the_rate() {
    let scene = slow().await;
    assert_eq!(scene.ask(policy(None)).await.found, Found::Absent);
    let body = "";
    scene.proxy.next(Fault::Answer { status: 429, body, is_passed_on: false });
    assert_eq!(waits(&scene.ask(policy(Some("v1"))).await.found), Some(2));
    let requests = scene.proxy.passed_on();
    for step in 0..32 {
        for object in 0..20 {
            let about = format!("{object}");
            let question = Question { object: policy(Some("v1")), about };
            scene.driver.answer(question).await;
        }
        let allowed = usize::try_from(BURST).unwrap() + step / 4;
        assert!(scene.proxy.passed_on() - requests <= allowed, "step {step}");
        scene.pass(250);
    }
}

#[tokio::test]
async fn more_questions_than_there_are_tokens_for_are_all_answered_in_turn() {
    let scene = Scene::new().await;
    let rate = CallRate { per_second: 40, burst: 8, ..CallRate::default() };
    let settings = interlock_cloud::Settings {
        rate,
        ..interlock_cloud::Settings::of(crate::support::ME, Duration::from_secs(60))
    };
    let driver = interlock_cloud::Driver::new(scene.direct.clone(), settings);
    let began = Instant::now();
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..24 {
        let driver = driver.clone();
        let question = Question { object: policy(Some("v1")), about: format!("{number}") };
        asked.spawn(async move { Ask::<Cloud>::ask(&driver, question).await });
    }
    while let Some(answer) = asked.join_next().await {
        let found = answer.expect("no panic").expect("an answer").found;
        assert_eq!(waits(&found), None);
    }
    // Who calls, and one request for each, of which at most twelve at once.
    assert!(began.elapsed() >= Duration::from_millis(13 * 25), "{:?}", began.elapsed());
}
