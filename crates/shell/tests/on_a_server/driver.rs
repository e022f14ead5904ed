//! What a controller asks and does outside of the API, and how an orderly end waits for it.

use crate::line::line;
use crate::mirror::CONFIG_MAP;
use crate::{make_original, server, until};
use interlock_kernel::{
    Controller, LiveReads, Object, Outside, Place, Read, Step, Subject, View, Watch, Watcher,
};
use interlock_shell::{Driver, Ended, News, Places, Server, Shell, Wiring, step_once};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

/// A door that can be asked for and opened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Door {}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct IsItOpen;

#[derive(Debug, Clone)]
struct Open;

impl Outside for Door {
    type Question = IsItOpen;
    type Answer = bool;
    type Action = Open;
}

/// Opens the door if it is shut; it asks each time.
struct Porter;

impl Watcher for Porter {
    fn name(&self) -> &'static str {
        "test/porter"
    }
    fn watches(&self) -> Vec<Watch> {
        vec![Watch::all(Place::HUB, &CONFIG_MAP)]
    }
    fn subjects(&self, _: &Watch, _: &Object, _: &dyn View) -> Vec<Subject> {
        vec![Subject::from("the door")]
    }
}

impl Controller for Porter {
    type Outside = Door;

    fn step(&self, _: &Subject, _: &dyn View, live_reads: &LiveReads<Door>) -> Step<Door> {
        match live_reads.answers.get(&IsItOpen) {
            Some(true) => Step::rest("it is open"),
            Some(false) => Step::outside(Open, "it is shut"),
            None => Step::LiveRead {
                reads: vec![Read::Ask(IsItOpen)],
                because: "nobody knows how it is".to_owned(),
            },
        }
    }
}

/// A door that opens at the second push, and only while it is not held.
#[derive(Clone, Default)]
struct Stuck {
    pushes: Arc<AtomicUsize>,
    held: Arc<watch::Sender<bool>>,
}

impl Driver<Door> for Stuck {
    async fn ask(&self, _: IsItOpen) -> Result<bool, String> {
        Ok(self.pushes.load(Ordering::SeqCst) >= 2)
    }
    async fn perform(&self, _: Open) -> Result<(), String> {
        let pushes = self.pushes.fetch_add(1, Ordering::SeqCst) + 1;
        let _ = self.held.subscribe().wait_for(|held| !held).await;
        if pushes < 2 { Err("it is stuck".to_owned()) } else { Ok(()) }
    }
}

#[tokio::test]
async fn an_action_outside_is_done_after_the_question_and_tried_again() {
    let wiring = Wiring::new(Porter, Places::default(), Stuck::default());
    let door = Subject::from("the door");
    assert_eq!(step_once(&wiring, &door).await, Ended::Refused("it is stuck".to_owned()));
    let opened = Ended::Acted { event: None, news: News::Seen, then: None };
    assert_eq!(step_once(&wiring, &door).await, opened);
    assert_eq!(step_once(&wiring, &door).await, Ended::Rests);
}

#[tokio::test]
async fn an_orderly_end_waits_for_the_step_that_is_under_way() {
    let (client, _) = line(&server().await);
    make_original(&client, "a", "no").await;
    let driver = Stuck::default();
    driver.held.send_replace(true);
    let shell = Shell::default();
    let hub = Server::new("hub", client);
    let runner = shell.run(Porter, [(Place::HUB, hub)], driver.clone()).expect("it is wired");
    until("it pushes", async || driver.pushes.load(Ordering::SeqCst) == 1).await;
    let stopping = tokio::spawn(shell.stop());
    tokio::task::yield_now().await;
    assert!(!stopping.is_finished() && !runner.is_over());
    driver.held.send_replace(false);
    stopping.await.expect("it stops");
    assert!(runner.is_over());
    assert_eq!(driver.pushes.load(Ordering::SeqCst), 1, "nothing new is begun");
}
