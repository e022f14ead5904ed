//! An owner that is cut off loses the namespace by force, while its workload runs on with the sessions that it has.

use super::apart::{Apart, reader_of_roles};
use super::cloud::Caller;
use super::harness::Client;
use super::processes::left_in;
use super::up::{KINDS, cloud_name, until};
use super::watching::ready;
use interlock_api::names::grant_name;
use interlock_iam::Outcome;
use interlock_iam::client::WebIdentitySession;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

const NAME: &str = "reader";
/// How long after it was sent a call may take effect.
const WINDOW_SECONDS: u32 = 4;

/// A pod that notes when it starts, in which epoch, and with which token; and then runs on.
fn pod(folder: &Path) -> Value {
    let script = format!(
        "cd {}; echo \"$(date +%s%N) $INTERLOCK_EPOCH\" >> starts; \
         cp \"$AWS_WEB_IDENTITY_TOKEN_FILE\" new; mv new token-$INTERLOCK_EPOCH; \
         while true; do sleep 0.1; done",
        folder.display()
    );
    json!({
        "metadata": {"name": "reader"},
        "spec": {
            "runtimeClassName": "interlock-process", "serviceAccountName": NAME,
            "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "reader", "image": "none", "command": ["sh", "-c", script]}],
        },
    })
}

/// What the pods of the namespace have noted.
struct Notes(PathBuf);

impl Notes {
    /// Waits until an epoch has started; its token.
    fn token(&self, epoch: i64, story: impl Fn() -> String) -> String {
        until(&format!("epoch {epoch} starts"), || {
            std::fs::read_to_string(self.0.join(format!("token-{epoch}"))).map_err(|_| story())
        })
    }

    /// When an epoch started.
    fn start(&self, epoch: i64) -> Timestamp {
        let text = std::fs::read_to_string(self.0.join("starts")).expect("pods have started");
        let of_epoch = |line: &str| {
            let (at, of) = line.split_once(' ')?;
            (of == epoch.to_string()).then(|| at.parse().expect("nanoseconds"))
        };
        let all: Vec<i128> = text.lines().filter_map(of_epoch).collect();
        assert_eq!(all.len(), 1, "each epoch has one start: {text}");
        Timestamp::from_nanosecond(all[0]).expect("a time")
    }
}

/// What the old owner got, tried without pause.
#[derive(Debug, Default)]
struct Got {
    /// How often it was tried.
    tries: usize,
    /// Sessions for its token.
    sessions: usize,
    /// When the last try began that its first session was good for, and when the first one ended that it was not.
    good_at: Option<Timestamp>,
    bad_at: Option<Timestamp>,
    /// When the last try began that any of its sessions, or its token, was good for.
    anything_at: Option<Timestamp>,
    /// What must never be.
    wrong: Vec<String>,
}

/// Uses what the old owner has, until it is stopped.
struct OldOwner {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<Got>,
}

/// What it has.
struct Has {
    hub: Client,
    grant: String,
    caller: Caller,
    arn: String,
    token: String,
    first: WebIdentitySession,
    /// The last session that it got.
    last: WebIdentitySession,
}

impl OldOwner {
    fn tries(mut has: Has) -> OldOwner {
        let is_over: Arc<AtomicBool> = Arc::default();
        let over = Arc::clone(&is_over);
        let task = thread::spawn(move || {
            let mut got = Got::default();
            while !over.load(Ordering::Relaxed) {
                has.tries(&mut got);
            }
            got
        });
        OldOwner { is_over, task }
    }

    fn got(self) -> Got {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.join().expect("it only tries")
    }
}

impl Has {
    fn tries(&mut self, got: &mut Got) {
        let grant = self.hub.must("GET", &self.grant, None);
        let is_next_ready = ready(&grant).is_some_and(|(epoch, _)| epoch > 1);
        let began = Timestamp::now();
        got.tries += 1;
        let is_first_good = self.is_good(&self.first);
        if is_first_good {
            got.good_at = Some(began);
        } else {
            got.bad_at.get_or_insert_with(Timestamp::now);
        }
        if is_first_good && got.bad_at.is_some() {
            got.wrong.push("a session that was denied is good again".to_owned());
        }
        let session = match self.caller.assume(&self.arn, &self.token) {
            Outcome::Done(session) => Some(session),
            Outcome::Refused(refusal) if refusal.code == "AccessDenied" => None,
            other => panic!("{other:?}"),
        };
        let is_let_in = session.is_some();
        if let Some(session) = session {
            got.sessions += 1;
            self.last = session;
        }
        let is_last_good = self.is_good(&self.last);
        if is_first_good || is_let_in || is_last_good {
            got.anything_at = Some(began);
            if is_next_ready {
                let what = format!("{is_first_good} {is_let_in} {is_last_good}: {grant:#}");
                got.wrong.push(format!("the next owner may run beside the old one: {what}"));
            }
        }
    }

    /// Whether a session may do what the policy of the role allows.
    fn is_good(&self, session: &WebIdentitySession) -> bool {
        match self.caller.read_as(session, &cloud_name("shop", NAME)) {
            Outcome::Done(_) => true,
            Outcome::Refused(refusal) if refusal.code == "AccessDenied" => false,
            other => panic!("{other:?}"),
        }
    }
}

fn session(caller: &Caller, arn: &str, token: &str) -> WebIdentitySession {
    match caller.assume(arn, token) {
        Outcome::Done(session) => session,
        other => panic!("{other:?}"),
    }
}

/// A person says that nobody needs what west has of the namespace: without that the namespace cannot be deleted.
fn forget_copy(apart: &Apart, uid: &str) {
    let (fleet, group) = (&apart.fleet, super::up::GROUP);
    let copy_of_west = |grant: &Value| {
        let copies = grant["status"]["copies"].as_array().into_iter().flatten();
        copies.into_iter().find(|copy| copy["cluster"]["name"] == "west").cloned()
    };
    let grant = until("west says what it has", || {
        let grant = fleet.grant("shop", uid);
        let is_said = copy_of_west(&grant).is_none_or(|copy| copy["state"] == "Diverged");
        if is_said { Ok(grant) } else { Err(fleet.story(&grant)) }
    });
    let forget = json!({"metadata": {"annotations": {
        "interlock.dev/forget-copies": grant["metadata"]["uid"],
    }}});
    fleet.client().must("PATCH", &format!("{group}/workloadclusters/west"), Some(&forget));
    until("the copy is forgotten", || {
        let grant = fleet.grant("shop", uid);
        if copy_of_west(&grant).is_none() { Ok(()) } else { Err(fleet.story(&grant)) }
    });
}

#[test]
fn sessions_of_an_owner_that_was_forced_are_denied_before_the_next_owner_starts() {
    let apart = Apart::start(WINDOW_SECONDS);
    let (fleet, folder) = (&apart.fleet, apart.fleet.path("notes"));
    std::fs::create_dir(&folder).expect("the directory is ours");
    let notes = Notes(folder.clone());
    let uid = fleet.place_empty("shop", "west");
    apart.declare("shop", &reader_of_roles(NAME));
    let arn = apart.created("shop", NAME);
    fleet.client().must("POST", "/api/v1/namespaces/shop/pods", Some(&pod(&folder)));
    let story = || fleet.story(&fleet.grant("shop", &uid));
    let token = notes.token(1, story);
    let first = session(&apart.caller, &arn, &token);
    let running = || left_in(&folder).into_iter().map(|(pid, _)| pid).collect::<Vec<_>>();
    let on_west = running();
    assert!(!on_west.is_empty());

    // West is cut off from the hub. Its workload is not, from the cloud.
    fleet.kill("west");
    let (hub, caller) = (fleet.client(), apart.account.caller());
    let grant = format!("{}/grants/{}", super::up::GROUP, grant_name("shop", &uid));
    let has = Has { hub, grant, caller, arn: arn.clone(), token, last: first.clone(), first };
    let old_owner = OldOwner::tries(has);
    fleet.place_on("shop", "east");
    let force = ["force-release", "shop", "--owner", "west", "--epoch", "1"];
    let why = ["--attest", "accept-divergence", "--reason", "west is cut off", "--yes"];
    until("the release is forced", || {
        let said = fleet.run(&[&force[..], &why[..]].concat());
        if said.code == Some(0) { Ok(()) } else { Err(format!("{said:?}")) }
    });
    let forced = Timestamp::now();
    let token = notes.token(2, story);
    let started = notes.start(2);
    let got = old_owner.got();
    let role = fleet.get(&format!("{KINDS}/namespaces/shop/roles/{NAME}"));
    let before: Timestamp = role["status"]["fence"]["before"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("no fence: {role:#}"));
    eprintln!("forced {forced}, fence before {before}, east started {started}: {got:?}");
    assert_eq!(got.wrong, Vec::<String>::new());
    assert!(got.tries > 20 && got.sessions > 0, "{got:?}");
    let (good_at, bad_at) = got.good_at.zip(got.bad_at).expect("first one, then the other");
    assert!(good_at < bad_at, "{got:?}");
    let window = jiff::SignedDuration::from_secs(i64::from(WINDOW_SECONDS));
    assert!(bad_at <= before + window, "denied within the late-call window of the fence: {got:?}");
    assert!(got.anything_at.is_some_and(|at| at < started), "east started at {started}: {got:?}");
    assert!(on_west.iter().all(|pid| running().contains(pid)), "the workload of west still runs");

    // The fence is not for the next owner.
    let session = session(&apart.caller, &arn, &token);
    let read = apart.caller.read_as(&session, &cloud_name("shop", NAME));
    assert!(matches!(read, Outcome::Done(_)), "{read:?}");

    // West comes back, and stops.
    fleet.start("west");
    until("the workload of west ends", || {
        let left: Vec<u32> = running().into_iter().filter(|pid| on_west.contains(pid)).collect();
        if left.is_empty() { Ok(()) } else { Err(story()) }
    });
    forget_copy(&apart, &uid);
    apart.delete("shop", NAME);
    apart.prove_that_nothing_is_left();
    apart.fleet.end(&["shop"]);
}
