//! A step that is given up in the middle of its action.

use crate::support::{PORT, Scene, attach, driver, entry, watched};
use interlock_dpu::Calls;
use interlock_nodes::outside::{Dpu, Gate};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::task::Poll;

#[test]
fn a_step_that_is_given_up_frees_nothing_before_its_action_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let other = Scene(driver(folder.path(), "boot"));
    other.adopt("n", 1).unwrap();
    let term = other.term();

    let (reached, is_reached) = channel();
    let (go_on, goes_on) = channel::<()>();
    let (reached, goes_on) = (Mutex::new(reached), Mutex::new(goes_on));
    let calls = Calls::watched(move |call| {
        if call == "rename" {
            let _ = reached.lock().unwrap().send(());
            let _ = goes_on.lock().unwrap().recv();
        }
    });
    let held = watched(folder.path(), "boot", calls);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let action = attach(term, entry("n", 2));
        let mut step = Box::pin(interlock_shell::Driver::<Dpu>::perform(&held, action));
        let is_done = |step: Poll<Result<(), String>>| Poll::Ready(step.is_ready());
        assert!(!std::future::poll_fn(|context| is_done(step.as_mut().poll(context))).await);
        is_reached.recv().unwrap();
        // Given up, with the record written and not yet in its place.
        drop(step);
    });
    let lock = File::open(folder.path().join(format!("{PORT}.lock"))).unwrap();
    let taken = flock(&lock, FlockOperation::NonBlockingLockExclusive);
    assert_eq!(taken, Err(rustix::io::Errno::WOULDBLOCK), "nobody else acts on the port");
    drop(go_on);
    drop(runtime);
    // The action was done to its end, and whoever comes next finds it.
    assert_eq!(other.gate(), Gate::Open(entry("n", 2)));
    other.isolate("n", 2).unwrap();
    assert_eq!(other.gate(), Gate::Closed);
}
