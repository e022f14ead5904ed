use super::frame::{Broken, Control, Decoder, Event, header};
use super::*;
use tokio::io::DuplexStream;

/// A frame as a client sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..=125 => frame.push(0x80 | length as u8),
        length @ 126..=0xFFFF => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    let mask = [7, 11, 13, 17];
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

const WHOLE: u8 = 0x82;
const BEGINNING: u8 = 0x02;
const MORE: u8 = 0x00;
const REST: u8 = 0x80;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;

/// What bytes say that come in pieces of this size, up to what they may not say.
fn events(bytes: &[u8], piece: usize) -> (Vec<Event>, Option<Broken>) {
    let (mut decoder, mut buffer) = (Decoder::default(), BytesMut::new());
    let mut events = Vec::new();
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(broken) => return (events, Some(broken)),
            }
        }
        assert!(buffer.len() <= 125 + 14, "{} bytes are kept", buffer.len());
    }
    (events, None)
}

/// The messages in what came.
fn messages(events: &[Event]) -> Vec<Vec<u8>> {
    let (mut messages, mut open) = (Vec::new(), None::<Vec<u8>>);
    for event in events {
        let Event::Part(part) = event else { continue };
        assert_eq!(part.begins, open.is_none(), "a message begins where none is open");
        let message = open.get_or_insert_with(Vec::new);
        message.extend_from_slice(&part.bytes);
        if part.ends {
            messages.extend(open.take());
        }
    }
    messages
}

#[test]
fn messages_are_the_same_in_whatever_pieces_they_come() {
    let long: Vec<u8> = (0..70_000_u32).map(|number| number as u8).collect();
    let bytes = [
        frame(WHOLE, b"\x00hello"),
        frame(BEGINNING, b"\x00be"),
        frame(PING, b"are you there"),
        frame(MORE, b""),
        frame(REST, b"low"),
        frame(WHOLE, b""),
        frame(0x81, &long),
        frame(CLOSE, &[3, 232]),
    ]
    .concat();
    let expected = vec![b"\x00hello".to_vec(), b"\x00below".to_vec(), Vec::new(), long];
    for piece in [1, 2, 3, 7, 125, 4096, bytes.len()] {
        let (events, broken) = events(&bytes, piece);
        assert_eq!(broken, None);
        assert_eq!(messages(&events), expected, "in pieces of {piece}");
        let pings = events.iter().filter(
            |event| matches!(event, Event::Ping(payload) if **payload == *b"are you there"),
        );
        assert_eq!(pings.count(), 1);
        assert_eq!(events.last(), Some(&Event::Close));
    }
}

#[test]
fn what_a_client_may_not_send_is_noticed_at_the_head_of_its_frame() {
    let unmasked = vec![WHOLE, 5, b'h', b'e'];
    let long_ping = vec![PING, 0x80 | 126, 0, 200];
    let huge = [&[WHOLE, 0x80 | 127][..], &[0xFF; 8], &[0; 4]].concat();
    for (bytes, expected) in [
        (unmasked, Broken::NotMasked),
        (frame(0xC2, b""), Broken::ReservedBits),
        (frame(0x83, b""), Broken::Operation(3)),
        (frame(0x8F, b""), Broken::Operation(15)),
        (frame(0x09, b""), Broken::Control),
        (long_ping, Broken::Control),
        (huge, Broken::Length),
        (frame(REST, b"of nothing"), Broken::Order),
        ([frame(BEGINNING, b"a"), frame(WHOLE, b"b")].concat(), Broken::Order),
    ] {
        for piece in [1, 64] {
            assert_eq!(events(&bytes, piece).1, Some(expected), "{bytes:?}");
        }
    }
}

#[test]
fn a_frame_that_says_it_is_huge_is_passed_on_as_it_comes() {
    let head = [&[WHOLE, 0x80 | 127][..], &(1_u64 << 62).to_be_bytes(), &[0; 4]].concat();
    let bytes = [head, vec![b'x'; 100_000]].concat();
    let (events, broken) = events(&bytes, 1000);
    let passed_on: usize = events
        .iter()
        .map(|event| match event {
            Event::Part(part) => part.bytes.len(),
            _ => 0,
        })
        .sum();
    assert_eq!((passed_on, broken), (100_000, None));
}

#[test]
fn no_bytes_make_it_fail_or_keep_much() {
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut number = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let (mut broken, mut whole) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..number() % 5 {
            let first = [WHOLE, BEGINNING, MORE, REST, PING, CLOSE][(number() % 6) as usize];
            let length = [0, 1, 125, 126, 300][(number() % 5) as usize];
            bytes.extend(frame(first, &vec![number() as u8; length]));
        }
        for _ in 0..number() % 4 {
            if !bytes.is_empty() {
                let place = (number() as usize) % bytes.len();
                bytes[place] ^= 1 << (number() % 8);
            }
        }
        bytes.truncate(bytes.len() - (number() as usize) % (bytes.len() + 1) / 3);
        match events(&bytes, 1 + (number() % 40) as usize).1 {
            Some(_) => broken += 1,
            None => whole += 1,
        }
    }
    assert!(broken > 1000 && whole > 1000, "{broken} were broken, {whole} were not");
}

#[test]
fn heads_are_as_short_as_they_can_be() {
    assert_eq!(header(None, 125), [0x82, 125]);
    assert_eq!(header(None, 126), [0x82, 126, 0, 126]);
    assert_eq!(header(None, 65_536), [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(header(Some(Control::Pong), 0), [0x8A, 0]);
}

fn socket() -> (Socket, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    (Socket::over(ours), theirs)
}

#[tokio::test]
async fn pings_are_answered_and_a_farewell_is_returned() {
    let (mut socket, mut client) = socket();
    client.write_all(&frame(PING, b"1")).await.expect("it is open");
    let mut said = [0; 3];
    client.read_exact(&mut said).await.expect("an answer");
    assert_eq!(said, [0x8A, 1, b'1']);
    client.write_all(&frame(CLOSE, &[3, 232])).await.expect("it is open");
    assert_eq!(socket.incoming.recv().await, None);
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.expect("the end");
    assert_eq!(rest, [0x88, 2, 3, 232]);
}

#[tokio::test]
async fn whoever_breaks_the_rules_hears_why_and_is_cut_off() {
    let (mut socket, mut client) = socket();
    client.write_all(&[WHOLE, 1, b'x']).await.expect("it is open");
    assert_eq!(socket.incoming.recv().await, None);
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.expect("the end");
    assert_eq!(rest, [0x88, 2, 3, 234]);
}

#[tokio::test]
async fn what_was_said_comes_before_the_farewell() {
    let (socket, mut client) = socket();
    for word in ["one", "two"] {
        socket.outgoing.send(word.into()).await.expect("somebody writes");
    }
    let Socket { outgoing, reader: _reader, incoming: _incoming } = socket;
    drop(outgoing);
    let mut said = Vec::new();
    client.read_to_end(&mut said).await.expect("the end");
    assert_eq!(said, b"\x82\x03one\x82\x03two\x88\x02\x03\xE8");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_is_asked_whether_it_is_there() {
    let (_socket, mut client) = socket();
    let mut said = [0; 2];
    client.read_exact(&mut said).await.expect("a ping");
    assert_eq!(said, [0x89, 0]);
}
