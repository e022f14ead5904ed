//! Somebody who runs pods in no other way than by saying what they would say.
//!
//! The real one needs processes, which this crate knows nothing of; it has tests of its own.

use bytes::Bytes;
use interlock_apiserver::Status;
use interlock_apiserver::streams::{
    Answer, Command, Connection, Ended, Input, LogOptions, Output, PodContainer, PodStreams,
    Session, Wanted,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

/// What was asked, and what is under way.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) logs: Mutex<Vec<(PodContainer, LogOptions)>>,
    pub(crate) commands: Mutex<Vec<(PodContainer, Command)>>,
    /// Commands, attached clients and connections that have not ended.
    pub(crate) under_way: Arc<AtomicU32>,
    /// A log that is followed has these lines, and ends when this does.
    pub(crate) followed: Mutex<Option<mpsc::Receiver<Bytes>>>,
}

impl Fake {
    pub(crate) fn is_quiet(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) == 0
    }
}

struct UnderWay(Arc<AtomicU32>);

impl UnderWay {
    fn new(fake: &Fake) -> UnderWay {
        fake.under_way.fetch_add(1, Ordering::SeqCst);
        UnderWay(Arc::clone(&fake.under_way))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl PodStreams for Fake {
    fn logs(&self, of: PodContainer, options: LogOptions) -> Answer<mpsc::Receiver<Bytes>> {
        let follow = options.follow;
        self.logs.lock().expect("no panic").push((of, options));
        let followed = self.followed.lock().expect("no panic").take().filter(|_| follow);
        Box::pin(async move {
            if let Some(followed) = followed {
                return Ok(followed);
            }
            let (sender, receiver) = mpsc::channel(1);
            tokio::spawn(async move {
                for line in ["\"one\"\n", "\"two\"\n"] {
                    let _ = sender.send(Bytes::from_static(line.as_bytes())).await;
                }
            });
            Ok(receiver)
        })
    }

    /// Knows the commands `cat`, `shout` (errors), `size`, `sleep`, `exit <code>`, `flood`, and no other.
    fn exec(&self, of: PodContainer, command: Command) -> Answer<Session> {
        self.commands.lock().expect("no panic").push((of, command.clone()));
        let under_way = UnderWay::new(self);
        Box::pin(async move {
            let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
            if !["cat", "shout", "size", "sleep", "exit", "flood"].contains(&words[0]) {
                return Err(Status::bad_request(format!("there is no command {:?}", words[0])));
            }
            let (input, inputs) = mpsc::channel(1);
            let (outputs, output) = mpsc::channel(1);
            tokio::spawn(run(command.words, inputs, outputs, under_way));
            Ok(Session { input, output })
        })
    }

    fn attach(&self, of: PodContainer, wanted: Wanted) -> Answer<Session> {
        let words = vec!["flood".to_owned()];
        self.exec(of, Command { words, wanted })
    }

    /// Port 7 is an echo, 9 takes everything and says nothing, 80 says hello and ends.
    fn port_forward(&self, of: PodContainer, port: u16) -> Answer<Box<dyn Connection>> {
        let under_way = UnderWay::new(self);
        Box::pin(async move {
            if ![7, 9, 80].contains(&port) {
                return Err(Status::bad_request(format!("{} does not listen on {port}", of.pod)));
            }
            let (ours, theirs) = tokio::io::duplex(1024);
            tokio::spawn(listen(port, theirs, under_way));
            let connection: Box<dyn Connection> = Box::new(ours);
            Ok(connection)
        })
    }
}

async fn run(
    words: Vec<String>,
    mut inputs: mpsc::Receiver<Input>,
    outputs: mpsc::Sender<Output>,
    _under_way: UnderWay,
) {
    let running = async {
        let mut code = 0;
        match words[0].as_str() {
            "exit" => code = words[1].parse().expect("a number"),
            "flood" => loop {
                if outputs.send(Output::Stdout(Bytes::from_static(&[b'x'; 8192]))).await.is_err() {
                    return;
                }
            },
            "sleep" => std::future::pending().await,
            _ => loop {
                let said = match inputs.recv().await {
                    None => return,
                    Some(Input::StdinEnds) => break,
                    Some(Input::Stdin(bytes)) if words[0] == "shout" => Output::Stderr(bytes),
                    Some(Input::Stdin(bytes)) => Output::Stdout(bytes),
                    Some(Input::Resize(size)) => {
                        Output::Stdout(format!("{}x{}", size.columns, size.rows).into())
                    }
                };
                if outputs.send(said).await.is_err() {
                    return;
                }
            },
        }
        let _ = outputs.send(Output::Ended(Ended::Code(code))).await;
    };
    tokio::select! {
        () = running => {}
        () = outputs.closed() => {}
    }
}

async fn listen(port: u16, mut connection: DuplexStream, _under_way: UnderWay) {
    if port == 80 {
        let _ = connection.write_all(b"hello").await;
        return;
    }
    let mut part = [0; 512];
    while let Ok(count @ 1..) = connection.read(&mut part).await {
        if port == 7 && connection.write_all(&part[..count]).await.is_err() {
            return;
        }
    }
}
