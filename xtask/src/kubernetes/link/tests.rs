use super::*;
use std::time::Duration;

/// A frame with a text.
fn frame(kind: u8, flags: u8, stream: u8, text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("a short text");
    let mut bytes = vec![0, 0, length, kind, flags, 0, 0, 0, stream];
    bytes.extend(text.as_bytes());
    bytes
}

/// A server that answers what has a text by the same text, on its stream.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            spawn(move || {
                let mut preface = vec![0; PREFACE.len()];
                stream.read_exact(&mut preface).expect("the preface comes first");
                while let Ok(frame) = Frame::read(&mut stream) {
                    let text = String::from_utf8_lossy(&frame.0[HEAD..]).into_owned();
                    let stream_of_it = u8::try_from(frame.stream()).expect("a small number");
                    let answer = self::frame(DATA, 0, stream_of_it, &text);
                    if frame.kind() == DATA && stream.write_all(&answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// A client of the server, with two calls that are begun: stream 1, and stream 3.
fn client(link: &Link) -> TcpStream {
    let mut client = TcpStream::connect(link.address).expect("it listens");
    client.write_all(PREFACE).expect("it is open");
    for stream in [1, 3] {
        send(&mut client, &frame(HEADERS, 0, stream, "headers"));
    }
    client
}

fn send(client: &mut TcpStream, bytes: &[u8]) {
    client.write_all(bytes).expect("it is open");
}

/// The next answer that comes at all: its stream and its text.
fn answer(client: &mut TcpStream) -> (u32, String) {
    client.set_read_timeout(Some(Duration::from_secs(60))).expect("it is no zero");
    let frame = Frame::read(client).expect("an answer comes");
    (frame.stream(), String::from_utf8_lossy(&frame.0[HEAD..]).into_owned())
}

fn is(stream: u32, text: &str) -> (u32, String) {
    (stream, text.to_owned())
}

#[test]
fn what_a_watch_brings_is_held_and_other_calls_are_answered() {
    let link = Link::start(server()).expect("a port");
    let mut client = client(&link);
    send(&mut client, &frame(DATA, 0, 1, "watch"));
    assert_eq!(answer(&mut client), is(1, "watch"));
    link.set(Hold::Watches);
    // The answer to the first would come first.
    send(&mut client, &frame(DATA, 0, 1, "news"));
    send(&mut client, &frame(DATA, END_STREAM, 3, "call"));
    assert_eq!(answer(&mut client), is(3, "call"));
    link.set(Hold::Nothing);
    assert_eq!(answer(&mut client), is(1, "news"));
    send(&mut client, &frame(DATA, 0, 1, "more"));
    assert_eq!(answer(&mut client), is(1, "more"));
}

#[test]
fn a_call_with_the_text_is_held_until_it_is_released_and_that_it_was_given_up_is_known() {
    let link = Link::start(server()).expect("a port");
    let mut client = client(&link);
    link.set(Hold::CallsWith("late".to_owned()));
    send(&mut client, &frame(DATA, END_STREAM, 1, "a late write"));
    send(&mut client, &frame(DATA, END_STREAM, 3, "another"));
    assert_eq!(answer(&mut client), is(3, "another"));
    assert_eq!((link.caught(), link.given_up()), (1, 0));
    send(&mut client, &frame(RESET, 0, 1, "0000"));
    send(&mut client, &frame(HEADERS, 0, 5, "headers"));
    send(&mut client, &frame(DATA, END_STREAM, 5, "a third"));
    assert_eq!(answer(&mut client), is(5, "a third"));
    assert_eq!((link.caught(), link.given_up()), (1, 1));
    link.set(Hold::Nothing);
    assert_eq!(answer(&mut client), is(1, "a late write"));
}
