//! What is known of a call that met a fault, and what is true of it.

use crate::proxy::{Fault, Proxy};
use crate::support::{Scene, allow, closed, done, root};
use interlock_iam::client::{Client, NewRole, Settings};
use interlock_iam::outcome::{Class, Outcome, Unknown};
use std::time::Duration;

const THROTTLED: &str = "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code>\
    <Message>Rate exceeded</Message></Error><RequestId>1</RequestId></ErrorResponse>";
const FAILED: &str = "<ErrorResponse><Error><Type>Receiver</Type><Code>ServiceFailure</Code>\
    <Message>m</Message></Error><RequestId>1</RequestId></ErrorResponse>";

struct Faulty {
    scene: Scene,
    proxy: Proxy,
    client: Client,
}

impl Faulty {
    async fn new(deadline: Duration) -> Faulty {
        let scene = Scene::new().await;
        let proxy = Proxy::start(scene.address).await;
        let settings = Settings {
            endpoint: Some(format!("http://{}", proxy.address)),
            clock: scene.clock(),
            deadline,
            ..Settings::default()
        };
        let client = Client::new(settings, root()).unwrap();
        Faulty { scene, proxy, client }
    }

    async fn create(&self, fault: Fault) -> Outcome<()> {
        self.proxy.next(fault);
        let role = NewRole { name: "role".to_owned(), trust: closed(), ..NewRole::default() };
        self.client.create_role(&role).await.map(drop)
    }

    /// What is true, past the proxy.
    async fn exists(&self) -> bool {
        match self.scene.client.get_role("role").await {
            Outcome::Done(_) => true,
            Outcome::Refused(refusal) if refusal.class == Class::NoSuchEntity => false,
            other => panic!("{other:?}"),
        }
    }
}

fn answer(status: u16, body: &'static str, is_passed_on: bool) -> Fault {
    Fault::Answer { status, body, is_passed_on }
}

#[tokio::test]
async fn a_call_that_may_be_done_is_never_said_to_be_refused() {
    for (fault, is_done) in [
        (Fault::DropBefore, false),
        (Fault::DropAfter, true),
        (Fault::HalfAnswer, true),
        (answer(500, FAILED, true), true),
        (answer(500, FAILED, false), false),
        (answer(503, "", true), true),
        (answer(502, "<html>bad gateway</html>", true), true),
        (answer(200, "garbage", true), true),
        (answer(200, "<CreateRoleResponse><CreateRoleResult>", true), true),
        (answer(200, "<CreateRoleResponse></CreateRoleResponse>", true), true),
        (answer(200, "<DeleteRoleResponse/>", true), true),
        (answer(403, "a proxy says no", true), true),
        (answer(200, "", false), false),
    ] {
        let faulty = Faulty::new(Duration::from_secs(30)).await;
        let outcome = faulty.create(fault.clone()).await;
        assert!(outcome.is_unknown(), "{fault:?}: {outcome:?}");
        assert_eq!(faulty.exists().await, is_done, "{fault:?}");
        // Nothing is repeated behind the caller's back.
        assert_eq!(faulty.proxy.passed_on(), usize::from(is_done), "{fault:?}");
    }
}

#[tokio::test]
async fn an_answer_that_never_comes_is_given_up_at_the_deadline() {
    let faulty = Faulty::new(Duration::from_secs(3)).await;
    let outcome = faulty.create(Fault::Silence).await;
    assert_eq!(outcome, Outcome::Unknown(Unknown::Deadline));
    assert!(faulty.exists().await);
}

#[tokio::test]
async fn throttling_is_certainly_not_done() {
    for fault in
        [answer(400, THROTTLED, false), answer(503, THROTTLED, false), answer(429, "", false)]
    {
        let faulty = Faulty::new(Duration::from_secs(30)).await;
        let outcome = faulty.create(fault.clone()).await;
        assert_eq!(outcome.class(), Some(Class::Throttled), "{fault:?}");
        assert!(!faulty.exists().await);
        assert_eq!(done(faulty.create(Fault::None).await), ());
        assert!(faulty.exists().await);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_was_sent_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = crate::support::client(address, interlock_iam::Clock::machine());
    assert_eq!(client.get_role("role").await.class(), Some(Class::NotSent));
}

#[tokio::test]
async fn a_list_that_breaks_in_the_middle_is_no_list() {
    let faulty = Faulty::new(Duration::from_secs(30)).await;
    faulty.scene.role("role").await;
    done(faulty.scene.client.put_role_policy("role", "one", &allow("*")).await);
    let page = "<ListRolePoliciesResponse><ListRolePoliciesResult><PolicyNames><member>one</member>\
        </PolicyNames><IsTruncated>true</IsTruncated><Marker>x</Marker></ListRolePoliciesResult>\
        </ListRolePoliciesResponse>";
    faulty.proxy.next(answer(200, page, false));
    faulty.proxy.next(answer(500, FAILED, false));
    assert!(faulty.client.list_role_policies("role").await.is_unknown());
    // A marker that stays the same would be read for ever.
    faulty.proxy.next(answer(200, page, false));
    faulty.proxy.next(answer(200, page, false));
    assert!(faulty.client.list_role_policies("role").await.is_unknown());
    assert_eq!(done(faulty.client.list_role_policies("role").await), ["one"]);
}
