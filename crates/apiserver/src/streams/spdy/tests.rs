use super::frame::{Broken, Decoder, Event, Replies, data, ping, refused};
use super::inflate::{Corrupt, Inflater};
use super::*;

/// Blocks that zlib made with the dictionary of SPDY, each with its flush: two lists of headers of a connection.
const FIRST: &[u8] = include_bytes!("first.bin");
const SECOND: &[u8] = include_bytes!("second.bin");
/// The same text with other settings: without compression, and with codes of its own.
const DYNAMIC: &[u8] = include_bytes!("dynamic.bin");

fn list(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut list = (headers.len() as u32).to_be_bytes().to_vec();
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        list.extend((text.len() as u32).to_be_bytes());
        list.extend(text.as_bytes());
    }
    list
}

fn first() -> Vec<u8> {
    list(&[("Streamtype", "error"), ("Port", "8080"), ("Requestid", "0")])
}

fn second() -> Vec<u8> {
    list(&[("Streamtype", "data"), ("Port", "8080"), ("Requestid", "0")])
}

#[test]
fn blocks_of_one_connection_are_one_stream() {
    let mut inflater = Inflater::default();
    assert_eq!(inflater.inflate(FIRST, 1000).expect("it is whole"), first());
    assert_eq!(inflater.inflate(SECOND, 1000).expect("it goes on"), second());
    let mut other = Inflater::default();
    assert_eq!(other.inflate(SECOND, 1000), Err(Corrupt), "it does not begin there");
}

#[test]
fn codes_of_their_own_are_read() {
    let text: Vec<u8> =
        (0..3000_u32).flat_map(|number| (number * number).to_string().into_bytes()).collect();
    assert_eq!(Inflater::default().inflate(DYNAMIC, 100_000).expect("it is whole"), text);
    assert_eq!(Inflater::default().inflate(DYNAMIC, 1000), Err(Corrupt), "it says too much");
}

fn numbers() -> impl FnMut() -> u64 {
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    }
}

#[test]
fn no_block_makes_it_fail_or_say_more_than_it_may() {
    let mut number = numbers();
    for _ in 0..30_000 {
        let mut block = [FIRST, DYNAMIC][(number() % 2) as usize].to_vec();
        block.truncate(1 + (number() as usize) % block.len());
        for _ in 0..1 + number() % 4 {
            let place = (number() as usize) % block.len().min(60);
            block[place] = number() as u8;
        }
        // Past the dictionary, which a change would break at once.
        let mut inflater = Inflater::default();
        inflater.inflate(&FIRST[..6], 1000).expect("its beginning is whole");
        if let Ok(said) = inflater.inflate(&block, 5000) {
            assert!(said.len() <= 5000);
        }
        let _ = inflater.inflate(&block, 5000);
    }
}

fn control(kind: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80, 3];
    frame.extend(kind.to_be_bytes());
    frame.push(flags);
    frame.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    frame.extend(payload);
    frame
}

fn open(id: u32, block: &[u8]) -> Vec<u8> {
    control(1, 0, &[&id.to_be_bytes()[..], &[0; 6], block].concat())
}

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
        assert!(buffer.len() <= 20 * 1024, "{} bytes are kept", buffer.len());
    }
    (events, None)
}

#[test]
fn frames_are_the_same_in_whatever_pieces_they_come() {
    let bytes = [
        open(1, FIRST),
        control(4, 0, &[0; 12]),
        open(3, SECOND),
        ping(7),
        data(3, &[b'x'; 3000], false),
        data(1, b"", true),
        data(3, b"end", true),
        refused(3),
        control(7, 0, &[0; 8]),
    ]
    .concat();
    for piece in [1, 5, 100, bytes.len()] {
        let (events, broken) = events(&bytes, piece);
        assert_eq!(broken, None);
        let opened: Vec<(u32, &str)> = events
            .iter()
            .filter_map(|event| match event {
                Event::Open { id, headers, .. } => Some((*id, header(headers, "streamtype"))),
                _ => None,
            })
            .collect();
        assert_eq!(opened, [(1, "error"), (3, "data")]);
        let mut said = Vec::new();
        for event in &events {
            if let Event::Data { id: 3, bytes, .. } = event {
                said.extend_from_slice(bytes);
            }
        }
        assert_eq!(said, [&[b'x'; 3000][..], b"end"].concat(), "in pieces of {piece}");
        let ends = |wanted: u32| {
            let is_end = |event: &&Event| matches!(event, Event::Data { id, is_final: true, .. } if *id == wanted);
            events.iter().filter(is_end).count()
        };
        assert_eq!((ends(1), ends(3)), (1, 1));
        let last = &events[events.len() - 2..];
        assert_eq!(last, [Event::Reset { id: 3 }, Event::GoAway]);
        assert!(events.contains(&Event::Ping { number: 7 }));
    }
}

#[test]
fn what_a_client_may_not_send_is_refused() {
    let too_long = [&[0x80, 3, 0, 1, 0][..], &[0xFF; 3]].concat();
    for (bytes, expected) in [
        (vec![0x80, 2, 0, 1, 0, 0, 0, 0], Broken::Version),
        (too_long, Broken::TooLong),
        (control(1, 0, &[0, 0, 0, 1]), Broken::TooShort),
        (control(6, 0, &[1]), Broken::TooShort),
        (open(2, FIRST), Broken::StreamId),
        ([open(3, FIRST), open(1, SECOND)].concat(), Broken::StreamId),
        (open(1, b"\x78\x02 nothing"), Broken::Headers),
        (open(1, &FIRST[..FIRST.len() - 12]), Broken::Headers),
    ] {
        assert_eq!(events(&bytes, 1).1, Some(expected), "{bytes:?}");
    }
}

#[test]
fn no_frames_make_it_fail_or_keep_much() {
    let mut number = numbers();
    let whole = [open(1, FIRST), open(3, SECOND), data(3, &[1; 200], false), ping(1)].concat();
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + number() % 4 {
            let place = (number() as usize) % bytes.len();
            bytes[place] = number() as u8;
        }
        bytes.truncate((number() as usize) % (bytes.len() + 1));
        let _ = events(&bytes, 1 + (number() % 50) as usize);
    }
}

#[test]
fn what_the_server_says_in_headers_is_read_by_zlib() {
    let mut replies = Replies::default();
    let mut inflater = Inflater::default();
    for id in [1, 3] {
        let frame = replies.reply(id);
        assert_eq!(frame[..4], [0x80, 3, 0, 2]);
        assert_eq!(usize::from(frame[7]), frame.len() - 8);
        assert_eq!(frame[8..12], id.to_be_bytes());
        assert_eq!(inflater.inflate(&frame[12..], 100).expect("it is whole"), [0, 0, 0, 0]);
    }
}

#[tokio::test]
async fn pings_are_returned_and_too_many_streams_refused() {
    let (ours, mut theirs) = tokio::io::duplex(4096);
    let mut connection = Connection::over(ours);
    theirs.write_all(&[ping(9), open(1, FIRST)].concat()).await.expect("it is open");
    let event = connection.next().await.expect("a stream");
    let Event::Open { id, .. } = event else { panic!("{event:?}") };
    assert!(!connection.open(id, 512).await);
    drop(connection);
    let mut said = Vec::new();
    theirs.read_to_end(&mut said).await.expect("the end");
    assert_eq!(said, [ping(9), refused(1)].concat());
}
