//! Two processes and one lease.

use crate::line::line;
use crate::mirror::CONFIG_MAP;
use crate::{make_original, server, until};
use interlock_kernel::{
    Controller, LiveReads, Nothing, Object, Place, Step, Subject, View, Watch, Watcher,
};
use interlock_shell::leader::{Campaign, LeaseSettings};
use interlock_shell::{NoDriver, Runner, Server, Shell};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Who took a step, in order.
type Steps = Arc<Mutex<Vec<&'static str>>>;

/// Takes a step every few milliseconds, and says that it did.
struct Ticker {
    who: &'static str,
    steps: Steps,
}

impl Watcher for Ticker {
    fn name(&self) -> &'static str {
        "test/ticker"
    }
    fn watches(&self) -> Vec<Watch> {
        vec![Watch::all(Place::HUB, &CONFIG_MAP)]
    }
    fn subjects(&self, _: &Watch, _: &Object, _: &dyn View) -> Vec<Subject> {
        vec![Subject::from("the one")]
    }
}

impl Controller for Ticker {
    type Outside = Nothing;

    fn step(&self, _: &Subject, _: &dyn View, _: &LiveReads<Nothing>) -> Step<Nothing> {
        self.steps.lock().expect("no test panics with it").push(self.who);
        let at_most = Duration::from_millis(5);
        Step::Wait { because: "time passes".to_owned(), at_most }
    }
}

fn process(who: &'static str, client: &Client, steps: &Steps) -> (Shell, Runner) {
    let settings = LeaseSettings {
        namespace: "default".to_owned(),
        // Longer than a busy machine keeps the one who leads from renewing its lease.
        holds_for: Duration::from_secs(12),
        acts_for: Duration::from_secs(6),
        tries_every: Duration::from_millis(100),
        ..LeaseSettings::new("placement", who)
    };
    let shell = Shell::default().with_campaign(Campaign::begin(client.clone(), settings));
    let ticker = Ticker { who, steps: Arc::clone(steps) };
    let hub = Server::new("hub", client.clone());
    let runner = shell.run(ticker, [(Place::HUB, hub)], NoDriver).expect("it is wired");
    (shell, runner)
}

fn count(steps: &Steps, who: &str) -> usize {
    steps.lock().expect("no test panics with it").iter().filter(|step| **step == who).count()
}

#[tokio::test]
async fn a_leader_that_is_cut_off_stops_before_another_begins() {
    let server = server().await;
    let ((one, trouble), (other, _)) = (line(&server), line(&server));
    make_original(&other, "a", "no").await;
    let steps = Steps::default();
    let _one = process("one", &one, &steps);
    until("one leads", async || count(&steps, "one") > 5).await;
    let _other = process("other", &other, &steps);
    until("one goes on", async || count(&steps, "one") > 20).await;
    assert_eq!(count(&steps, "other"), 0);
    trouble.take_down();
    until("the other leads", async || count(&steps, "other") > 20).await;
    let order = steps.lock().expect("no test panics with it").clone();
    let first = order.iter().position(|who| *who == "other").expect("it took steps");
    assert!(order[first..].iter().all(|who| *who == "other"), "both took steps at once");
    trouble.repair();
    let before = count(&steps, "one");
    let others = count(&steps, "other");
    until("the other goes on", async || count(&steps, "other") > others + 50).await;
    assert_eq!(count(&steps, "one"), before, "the lease is not taken back from one who renews it");
}

#[tokio::test]
async fn a_leader_that_stops_in_order_gives_the_lease_back() {
    let server = server().await;
    let ((one, _), (other, _)) = (line(&server), line(&server));
    make_original(&other, "a", "no").await;
    let steps = Steps::default();
    let (shell, runner) = process("one", &one, &steps);
    until("one leads", async || count(&steps, "one") > 0).await;
    shell.stop().await;
    assert!(runner.is_over());
    let lease = Api::<Lease>::namespaced(other.clone(), "default").get("placement").await;
    let spec = lease.expect("it is there").spec.expect("it has a spec");
    assert_eq!(spec.holder_identity, None);
    let _other = process("other", &other, &steps);
    until("the other leads", async || count(&steps, "other") > 0).await;
}
