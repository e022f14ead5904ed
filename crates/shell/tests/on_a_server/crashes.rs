//! A crash or a lost message at every seam, and a restart: it ends as if nothing had happened.

use crate::line::line;
use crate::mirror::Mirror;
use crate::{is_mirrored, make_original, server, until};
use interlock_kernel::Place;
use interlock_shell::faults::{Fault, Faults, Point, Seam};
use interlock_shell::{NoDriver, Server, Shell};
use std::sync::atomic::Ordering;

/// One fault, at one seam.
struct At {
    number: u64,
    before: Fault,
    after: Fault,
}

impl Faults for At {
    fn before(&self, point: &Point<'_>) -> Fault {
        if point.number == self.number { self.before } else { Fault::None }
    }
    fn after(&self, point: &Point<'_>) -> Fault {
        if point.number == self.number { self.after } else { Fault::None }
    }
}

/// How many effects a mirrored ConfigMap takes.
const EFFECTS: u64 = 3;

#[tokio::test]
async fn a_crash_at_any_seam_and_a_restart_end_right() {
    for number in 1..=EFFECTS {
        for (before, after) in [(Fault::Crash, Fault::None), (Fault::None, Fault::Crash)] {
            let (client, _) = line(&server().await);
            make_original(&client, "a", "yes").await;
            let seam = Seam::with(At { number, before, after });
            let shell = Shell::default().with_seam(seam.clone());
            let hub = Server::new("hub", client.clone());
            let runner =
                shell.run(Mirror::default(), [(Place::HUB, hub)], NoDriver).expect("it is wired");
            until("it crashes", async || runner.has_crashed() && runner.is_over()).await;
            assert_eq!(seam.effects(), number, "a dead runner does nothing more");
            let again = Shell::default();
            let hub = Server::new("hub", client.clone());
            let _runner =
                again.run(Mirror::default(), [(Place::HUB, hub)], NoDriver).expect("it is wired");
            until("mirrored", || is_mirrored(&client, "a", "one")).await;
            again.stop().await;
        }
    }
}

#[tokio::test]
async fn a_runner_that_is_killed_gives_up_the_step_under_way_and_another_one_goes_on() {
    let (client, trouble) = line(&server().await);
    make_original(&client, "a", "yes").await;
    // The second step writes the copy.
    trouble.held.send_replace(Some("/a-copy"));
    let (shell, mirror) = (Shell::default(), Mirror::default());
    let (steps, hub) = (mirror.steps.clone(), Server::new("hub", client.clone()));
    let runner = shell.run(mirror, [(Place::HUB, hub.clone())], NoDriver).expect("it is wired");
    until("a step waits", async || steps.load(Ordering::SeqCst) >= 2).await;
    runner.kill();
    until("it has ended, and the step has not", async || runner.is_over()).await;
    trouble.held.send_replace(None);
    let _runner = shell.run(Mirror::default(), [(Place::HUB, hub)], NoDriver).expect("it is wired");
    until("mirrored", || is_mirrored(&client, "a", "one")).await;
    shell.stop().await;
}

#[tokio::test]
async fn a_lost_request_or_reply_at_any_seam_ends_right() {
    for number in 1..=EFFECTS {
        for before in [Fault::LoseRequest, Fault::LoseReply] {
            let (client, _) = line(&server().await);
            make_original(&client, "a", "yes").await;
            let seam = Seam::with(At { number, before, after: Fault::None });
            let shell = Shell::default().with_seam(seam);
            let hub = Server::new("hub", client.clone());
            let _runner =
                shell.run(Mirror::default(), [(Place::HUB, hub)], NoDriver).expect("it is wired");
            until("mirrored", || is_mirrored(&client, "a", "one")).await;
            shell.stop().await;
        }
    }
}
