use super::*;
use crate::limits::{Caller, Caps, Limits, Work};

fn place(limits: &Limits) -> Permit {
    let caller = Caller { cluster: "c", user: "u", is_privileged: false };
    limits.enter(&caller, Work::Read, std::time::Instant::now()).expect("there is room")
}

fn next(body: &mut Body) -> Option<Result<Bytes, Stalled>> {
    let mut context = Context::from_waker(std::task::Waker::noop());
    match Pin::new(body).poll_frame(&mut context) {
        Poll::Ready(frame) => frame.map(|frame| frame.map(|it| it.into_data().expect("data"))),
        Poll::Pending => panic!("a body that is there does not wait"),
    }
}

fn held(limits: &Limits) -> (u32, u64) {
    let used = limits.in_flight();
    (used.reads, used.unsent_bytes)
}

#[tokio::test]
async fn a_place_and_its_bytes_are_held_until_the_last_byte_is_gone() {
    let limits = Limits::new(Caps::default());
    let large = vec![7; 3 * PART_BYTES + 1];
    let size = large.len() as u64;
    let mut body = Body::whole(large).until_sent(place(&limits), true).expect("room");
    assert_eq!(body.size_hint().exact(), Some(size));
    let mut taken = Vec::new();
    while let Some(part) = next(&mut body) {
        taken.push(part.expect("nobody waits"));
    }
    assert_eq!(
        taken.iter().map(Bytes::len).collect::<Vec<_>>(),
        [PART_BYTES, PART_BYTES, PART_BYTES, 1]
    );
    drop(body);
    // As HTTP/2 does with what does not fit into the window.
    let last = taken.pop();
    assert_eq!(held(&limits), (1, size));
    drop(taken);
    assert_eq!(held(&limits), (1, size));
    drop(last);
    assert_eq!(held(&limits), (0, 0));
}

#[tokio::test]
async fn a_part_that_is_under_way_holds_the_place() {
    let limits = Limits::new(Caps::default());
    let mut count = 0;
    let parts: Parts = Box::new(move || {
        count += 1;
        (count < 3).then(|| vec![7; 10])
    });
    let mut body = Body::parts(parts, 1 << 20).until_sent(place(&limits), true).expect("room");
    let first = next(&mut body);
    assert_eq!(next(&mut body), Some(Ok(Bytes::from_static(&[7; 10]))));
    assert_eq!(next(&mut body), None);
    assert!(body.is_end_stream());
    drop(body);
    assert_eq!(held(&limits), (1, 1 << 20));
    drop(first);
    assert_eq!(held(&limits), (0, 0));
}

/// Makes parts elsewhere, and none any more as soon as the flag is set.
fn elsewhere(fails: &Arc<std::sync::atomic::AtomicBool>) -> Beside {
    let fails = Arc::clone(fails);
    Box::new(move |mut parts| {
        let fails = fails.load(std::sync::atomic::Ordering::Relaxed);
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            (!fails).then(|| Made { part: parts(), parts })
        })
    })
}

async fn awaited(body: &mut Body) -> Option<Result<Bytes, Stalled>> {
    let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
    frame.map(|frame| frame.map(|it| it.into_data().expect("data")))
}

#[tokio::test]
async fn parts_that_are_made_elsewhere_come_in_order() {
    let limits = Limits::new(Caps::default());
    let mut count = 0;
    let parts: Parts = Box::new(move || {
        count += 1;
        (count < 4).then(|| vec![count; 10])
    });
    let body = Body::parts(parts, 1 << 20).made_beside(elsewhere(&Arc::default()));
    let mut body = body.until_sent(place(&limits), true).expect("room");
    for count in 1..4 {
        assert_eq!(awaited(&mut body).await, Some(Ok(Bytes::from(vec![count; 10]))));
    }
    assert_eq!(awaited(&mut body).await, None);
    assert!(body.is_end_stream());
    drop(body);
    assert_eq!(held(&limits), (0, 0));
}

#[tokio::test]
async fn an_answer_that_cannot_be_made_to_its_end_does_not_look_whole() {
    let limits = Limits::new(Caps::default());
    let fails = Arc::default();
    let parts: Parts = Box::new(|| Some(vec![7; 10]));
    let body = Body::parts(parts, 1 << 20).made_beside(elsewhere(&fails));
    let mut body = body.until_sent(place(&limits), true).expect("room");
    assert!(awaited(&mut body).await.is_some_and(|part| part.is_ok()));
    fails.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(awaited(&mut body).await, Some(Err(Stalled)));
    assert!(!body.is_end_stream());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_a_part_is_not_cut_off() {
    let limits = Limits::new(Caps::default());
    let slowly: Beside = Box::new(|mut parts| {
        tokio::spawn(async move {
            tokio::time::sleep(STALL + Duration::from_secs(5)).await;
            Some(Made { part: parts(), parts })
        })
    });
    let parts: Parts = Box::new(|| Some(vec![7; 10]));
    let body = Body::parts(parts, 1 << 20).made_beside(slowly);
    let mut body = body.until_sent(place(&limits), true).expect("room");
    assert!(awaited(&mut body).await.is_some_and(|part| part.is_ok()));
    // Whoever does not take what was made is cut off as before.
    let mut context = Context::from_waker(std::task::Waker::noop());
    assert!(Pin::new(&mut body).poll_frame(&mut context).is_pending());
    tokio::time::sleep(3 * STALL).await;
    assert_eq!(awaited(&mut body).await, Some(Err(Stalled)));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_reads_is_freed_and_the_reader_learns_of_it() {
    let limits = Limits::new(Caps::default());
    let pinned = Arc::new(());
    let theirs = Arc::clone(&pinned);
    let parts: Parts = Box::new(move || {
        let _ = &theirs;
        Some(vec![7; 10])
    });
    let mut body = Body::parts(parts, 1 << 20).until_sent(place(&limits), true).expect("room");
    // Whoever reads on is not cut off for a pause.
    for _ in 0..2 {
        tokio::time::sleep(STALL - Duration::from_secs(1)).await;
        assert!(next(&mut body).is_some_and(|part| part.is_ok()));
    }
    assert_eq!(Arc::strong_count(&pinned), 2);
    tokio::time::sleep(STALL + Duration::from_secs(1)).await;
    assert_eq!(Arc::strong_count(&pinned), 1);
    assert_eq!(next(&mut body), Some(Err(Stalled)));
}

#[tokio::test(start_paused = true)]
async fn whoever_reads_drop_by_drop_is_cut_off_in_the_end() {
    let limits = Limits::new(Caps::default());
    let parts: Parts = Box::new(|| Some(vec![7; 10]));
    let mut body = Body::parts(parts, 1 << 20).until_sent(place(&limits), true).expect("room");
    let began = Instant::now();
    while next(&mut body).is_some_and(|part| part.is_ok()) {
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(began.elapsed() < Duration::from_secs(120), "it is never cut off");
    }
    assert!(began.elapsed() >= SLOWEST, "it was cut off after {:?}", began.elapsed());
}

#[tokio::test]
async fn an_answer_beyond_the_budget_is_refused_but_not_that_to_a_write() {
    let limits = Limits::new(Caps { unsent_bytes_per_caller: 100_000, ..Caps::default() });
    let large = || Body::whole(vec![7; 100_000]);
    let first = large().until_sent(place(&limits), true).expect("room");
    let refused = large().until_sent(place(&limits), true).expect_err("the budget is used up");
    assert_eq!((refused.code, refused.retry_after_seconds), (429, Some(1)));
    assert!(Body::whole("small").until_sent(place(&limits), true).is_ok());
    assert!(large().until_sent(place(&limits), false).is_ok());
    drop(first);
    assert!(large().until_sent(place(&limits), true).is_ok());
    assert_eq!(held(&limits), (0, 0));
}
