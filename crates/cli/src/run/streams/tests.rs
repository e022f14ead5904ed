use super::*;
use bytes::Bytes;
use interlock_apiserver::streams::{Input, Size};
use interlock_outside::processes::{Locking, Run};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(180);
const WAITS: &str = "while [ ! -e over ]; do sleep 0.02; done";

/// A pod that is a process.
struct Scene {
    place: tempfile::TempDir,
    pods: OfProcesses,
}

impl Scene {
    fn start(script: &str) -> Scene {
        let place = tempfile::tempdir().expect("a temporary directory");
        let processes = Processes::open_allowing_root(place.path()).expect("it is opened");
        let run = Run {
            id: "uid".to_owned(),
            command: ["sh", "-c", &format!("ulimit -t 120; {script}")].map(str::to_owned).to_vec(),
            log_file: processes.log_file("uid").expect("a name"),
            ..Run::default()
        };
        let Ok(Locking::Taken(lock)) = processes.lock("ns.web") else { panic!("it is free") };
        processes.start(&run, lock).expect("it starts");
        Scene { place, pods: OfProcesses(Arc::new(processes)) }
    }

    fn of(&self) -> PodContainer {
        let [namespace, pod, uid, container] = ["ns", "web", "uid", "c"].map(str::to_owned);
        PodContainer { namespace, pod, uid, container }
    }

    fn end(&self) {
        std::fs::write(self.place.path().join("runs/uid/root/over"), "").expect("it is written");
    }

    async fn exec(&self, script: &str, wanted: Wanted) -> Session {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        self.pods.exec(self.of(), Command { words, wanted }).await.expect("it runs")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.pods.0.stop_all(Duration::ZERO);
    }
}

const ALL: Wanted = Wanted { stdin: true, stdout: true, stderr: true, tty: false };

/// What a command says until it ends: its output, its errors, its end.
async fn said(session: &mut Session) -> (String, String, Option<Ended>) {
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let ended = loop {
        match timeout(DEADLINE, session.output.recv()).await.expect("more in time") {
            Some(Output::Stdout(bytes)) => output.extend(bytes),
            Some(Output::Stderr(bytes)) => errors.extend(bytes),
            Some(Output::Ended(ended)) => break Some(ended),
            None => break None,
        }
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output), text(errors), ended)
}

async fn all(mut parts: mpsc::Receiver<Bytes>) -> String {
    let mut all = Vec::new();
    while let Some(part) = timeout(DEADLINE, parts.recv()).await.expect("more in time") {
        all.extend(part);
    }
    String::from_utf8(all).expect("text")
}

#[tokio::test]
async fn a_log_that_is_followed_ends_with_the_process() {
    let scene = Scene::start(&format!("echo one; {WAITS}; echo two"));
    let options = LogOptions { follow: true, ..LogOptions::default() };
    let mut parts = scene.pods.logs(scene.of(), options).await.expect("there is a log");
    let first = timeout(DEADLINE, parts.recv()).await.expect("a line in time");
    assert_eq!(first.as_deref(), Some(&b"one\n"[..]));
    scene.end();
    assert_eq!(all(parts).await, "two\n");
    let stamped = LogOptions { timestamps: true, tail_lines: Some(1), ..LogOptions::default() };
    let line = all(scene.pods.logs(scene.of(), stamped).await.expect("it is still there")).await;
    let (time, rest) = line.split_once(' ').expect("a time before the line");
    assert!(time.parse::<Timestamp>().is_ok() && time.len() == 30, "{time}");
    assert_eq!(rest, "two\n");
    let previous = LogOptions { previous: true, ..LogOptions::default() };
    let refused = scene.pods.logs(scene.of(), previous).await.expect_err("there was one start");
    assert!(refused.code == 400 && refused.message.contains("previous terminated"), "{refused:?}");
}

#[tokio::test]
async fn an_init_container_has_a_log_and_commands_of_its_own() {
    let scene = Scene::start(&format!("echo main; {WAITS}"));
    let processes = &scene.pods.0;
    let id = init_run("uid", "setup");
    let run = Run {
        id: id.clone(),
        command: ["echo", "setup"].map(str::to_owned).to_vec(),
        log_file: processes.log_file(&id).expect("a name"),
        ..Run::default()
    };
    let Ok(Locking::Taken(lock)) = processes.lock("ns.setup") else { panic!("it is free") };
    processes.start(&run, lock).expect("it starts");
    let setup = || PodContainer { container: "setup".to_owned(), ..scene.of() };
    let follow = || LogOptions { follow: true, ..LogOptions::default() };
    let log = all(scene.pods.logs(setup(), follow()).await.expect("there is a log")).await;
    assert_eq!(log, "setup\n");
    // It has ended, so nothing is executed there, and not in the other container instead.
    let words = vec!["true".to_owned()];
    let command = Command { words, wanted: Wanted { stdin: false, ..ALL } };
    let refused = scene.pods.exec(setup(), command).await.expect_err("it does not run");
    assert!(refused.message.contains("container not found (\"setup\")"), "{refused:?}");
    scene.end();
    let log = all(scene.pods.logs(scene.of(), follow()).await.expect("there is a log")).await;
    assert_eq!(log, "main\n");
}

#[tokio::test]
async fn commands_read_write_and_end() {
    let scene = Scene::start(WAITS);
    let mut session = scene.exec("cat; echo oops >&2; exit 5", ALL).await;
    // More than fits into pipes, so that both directions have to go on at once.
    let (input, large) = (session.input.clone(), vec![b'x'; 300_000]);
    let writing = tokio::spawn(async move {
        for part in large.chunks(10_000) {
            let part = Bytes::copy_from_slice(part);
            input.send(Input::Stdin(part)).await.expect("somebody reads");
        }
        input.send(Input::StdinEnds).await.expect("somebody reads");
    });
    let (output, errors, ended) = said(&mut session).await;
    writing.await.expect("no panic");
    assert_eq!((output.len(), errors.as_str(), ended), (300_000, "oops\n", Some(Ended::Code(5))));
    // What it leaves behind is not waited for.
    let mut session = scene.exec("sleep 1000 & echo left", ALL).await;
    let (output, _, ended) = said(&mut session).await;
    assert_eq!((output.as_str(), ended), ("left\n", Some(Ended::Code(0))));
}

#[tokio::test]
async fn a_terminal_has_a_size_and_ends_with_its_last_words() {
    let scene = Scene::start(WAITS);
    let wanted = Wanted { stderr: false, tty: true, ..ALL };
    let script = "stty -echo; echo ready; read line; stty size; echo \"got $line\"";
    let mut session = scene.exec(script, wanted).await;
    let mut output = Vec::new();
    while !output.ends_with(b"ready\r\n") {
        match timeout(DEADLINE, session.output.recv()).await.expect("more in time") {
            Some(Output::Stdout(bytes)) => output.extend(bytes),
            other => panic!("{other:?}"),
        }
    }
    session.input.send(Input::Resize(Size { columns: 99, rows: 33 })).await.expect("it is taken");
    session.input.send(Input::Stdin("hello\n".into())).await.expect("it is taken");
    let (output, _, ended) = said(&mut session).await;
    assert_eq!((output.as_str(), ended), ("33 99\r\ngot hello\r\n", Some(Ended::Code(0))));
}

#[tokio::test]
async fn a_command_ends_when_nobody_has_its_session_any_more() {
    let scene = Scene::start(WAITS);
    let session = scene.exec("echo $$ > pid.new; mv pid.new pid; sleep 1000", ALL).await;
    let pid = scene.place.path().join("runs/uid/root/pid");
    let began = Instant::now();
    let pid = loop {
        match std::fs::read_to_string(&pid) {
            Ok(pid) => break pid.trim().to_owned(),
            Err(_) => assert!(began.elapsed() < DEADLINE, "it does not begin"),
        }
        sleep(Duration::from_millis(5)).await;
    };
    drop(session);
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        assert!(began.elapsed() < DEADLINE, "it goes on");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_does_not_run_is_refused() {
    let scene = Scene::start("true");
    let began = Instant::now();
    while !scene.pods.0.is_gone("uid").expect("it is read") {
        assert!(began.elapsed() < DEADLINE, "it goes on");
        sleep(Duration::from_millis(5)).await;
    }
    let words = vec!["true".to_owned()];
    let exec = scene.pods.exec(scene.of(), Command { words, wanted: ALL }).await;
    let refused = exec.expect_err("it does not run");
    assert!(refused.code == 400 && refused.message.contains("container not found"), "{refused:?}");
    let attach = scene.pods.attach(scene.of(), ALL).await.expect_err("it reads nothing");
    assert!(attach.message.contains("reads nothing"), "{attach:?}");
    let Err(port) = scene.pods.port_forward(scene.of(), 80).await else { panic!("nobody listens") };
    assert!(port.message.contains("listens on port 80"), "{port:?}");
}

#[tokio::test]
async fn whoever_attaches_sees_what_is_written_from_then_on() {
    let scene = Scene::start(&format!("echo before; {WAITS}; echo after"));
    let options = LogOptions { follow: true, ..LogOptions::default() };
    let mut parts = scene.pods.logs(scene.of(), options).await.expect("there is a log");
    timeout(DEADLINE, parts.recv()).await.expect("it has begun");
    let wanted = Wanted { stdin: false, ..ALL };
    let mut session = scene.pods.attach(scene.of(), wanted).await.expect("it runs");
    scene.end();
    let (output, _, ended) = said(&mut session).await;
    assert_eq!((output.as_str(), ended), ("after\n", Some(Ended::Code(0))));
}

#[tokio::test]
async fn a_port_of_a_process_is_reached() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("it has one").port();
    drop(free);
    let scene = Scene::start(&format!(
        "exec perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(LocalAddr => \"127.0.0.1\", \
         LocalPort => {port}, Listen => 5, ReuseAddr => 1) or die $!; \
         while (my $c = $s->accept) {{ print $c \"hello\"; close $c }}'"
    ));
    let began = Instant::now();
    let mut connection = loop {
        match scene.pods.port_forward(scene.of(), port).await {
            Ok(connection) => break connection,
            Err(refused) => assert!(began.elapsed() < DEADLINE, "{refused:?}"),
        }
        sleep(Duration::from_millis(5)).await;
    };
    let mut said = String::new();
    connection.read_to_string(&mut said).await.expect("it is read to its end");
    assert_eq!(said, "hello");
}
