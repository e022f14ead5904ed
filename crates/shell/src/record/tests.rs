use super::*;
use interlock_kernel::{Line, Record};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// An empty directory of this test.
fn directory(test: &str) -> PathBuf {
    let directory =
        std::env::temp_dir().join(format!("interlock-record-{}-{test}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

fn open(settings: LogSettings) -> Recorder {
    Recorder::open(settings, "1.0.0", "here-1").expect("the directory can be made")
}

fn step(subject: &str, facts: &str, effect: Option<&str>) -> Entry {
    Entry {
        time: Timestamp::UNIX_EPOCH,
        controller: "turns/turn",
        at: Arc::new([("hub".to_owned(), "hub".to_owned())].into()),
        subject: subject.into(),
        view: 7,
        decided: Decided { facts: facts.to_owned(), decision: "\"WaitForCache\"".to_owned() },
        round: 0,
        because: "it is a test".to_owned(),
        effect: effect.map(|action| RecordedEffect {
            action: action.to_owned(),
            place: Some("hub".to_owned()),
            kind: None,
            name: None,
            uid: None,
            seen: Some("3".to_owned()),
            now: Some("4".to_owned()),
        }),
        end: if effect.is_some() { End::Done } else { End::Rests },
        same: 0,
    }
}

fn read(directory: &Path) -> Vec<Read> {
    let mut lines = Lines::all(directory).expect("the log is there");
    std::iter::from_fn(|| lines.read_next().expect("it can be read")).collect()
}

fn steps(read: &[Read]) -> Vec<Record> {
    let step = |read: &Read| match read {
        Read::Line(line) => match &**line {
            Line::Step(record) => Some((**record).clone()),
            Line::Begins(_) | Line::Missing(_) => None,
        },
        other => panic!("{other:?} is no line"),
    };
    read.iter().filter_map(step).collect()
}

#[test]
fn a_step_is_read_back_as_it_was_taken() {
    let directory = directory("whole");
    let recorder = open(LogSettings::new(&directory));
    recorder.put(step("west", r#"{"holder":null}"#, Some("patch")));
    drop(recorder);
    let read = read(&directory);
    assert!(matches!(&read[0], Read::Line(line) if matches!(&**line, Line::Begins(begins)
        if begins.version == "1.0.0" && begins.process == "here-1" && !begins.goes_on)));
    let [record] = &steps(&read)[..] else { panic!("one step was taken: {read:?}") };
    assert_eq!((record.number, &*record.controller, &*record.subject), (1, "turns/turn", "west"));
    assert_eq!((&*record.view, record.end), ("0000000000000007", End::Done));
    assert_eq!(
        (&record.facts, &record.decision),
        (&json!({"holder": null}), &json!("WaitForCache"))
    );
    let effect = record.effect.as_ref().expect("it did something");
    assert_eq!((effect.seen.as_deref(), effect.now.as_deref()), (Some("3"), Some("4")));
}

#[test]
fn an_effect_is_on_record_before_it_is_done() {
    let directory = directory("under-way");
    let recorder = open(LogSettings::new(&directory));
    // Two steps that change nothing: only the first one is written.
    recorder.put(step("west", "1", None));
    recorder.put(step("west", "1", None));
    let Entry { time, controller, at, subject, view, decided, round, .. } = step("west", "2", None);
    let noting = Noting { recorder: recorder.clone(), at };
    let about = About { subject: &subject, round, view, time, decided };
    let mut noted = noting.begin(controller, about);
    let effect = step("west", "2", Some("patch")).effect.expect("it has one");
    noted.does(effect, "it is a test");
    noted.done(End::Done, Some("9".to_owned()));
    drop((noting, recorder));
    let steps = steps(&read(&directory));
    let seen: Vec<_> = steps.iter().map(|it| (it.number, it.end, it.same)).collect();
    assert_eq!(seen, [(1, End::Rests, 0), (2, End::UnderWay, 0), (3, End::Done, 1)]);
    assert_eq!((steps[1].time, &steps[1].facts), (steps[2].time, &steps[2].facts));
}

#[test]
fn steps_that_change_nothing_are_counted_and_not_written_again() {
    let directory = directory("same");
    let recorder = open(LogSettings::new(&directory));
    for _ in 0..3 {
        recorder.put(step("west", "1", None));
    }
    recorder.put(step("east", "1", None));
    recorder.put(step("west", "2", None));
    // What was done twice is no repetition.
    recorder.put(step("west", "3", Some("patch")));
    recorder.put(step("west", "3", Some("patch")));
    drop(recorder);
    let steps = steps(&read(&directory));
    let seen: Vec<_> = steps.iter().map(|it| (&*it.subject, it.facts.clone(), it.same)).collect();
    assert_eq!(
        seen,
        [
            ("west", json!(1), 0),
            ("east", json!(1), 0),
            ("west", json!(2), 2),
            ("west", json!(3), 0),
            ("west", json!(3), 0),
        ]
    );
}

#[test]
fn the_oldest_files_go_and_nobody_else_may_read_them() {
    let directory = directory("rotation");
    let settings = LogSettings { file_bytes: 1000, files: 3, ..LogSettings::new(&directory) };
    let recorder = open(settings);
    for number in 0..40 {
        recorder.put(step("west", &number.to_string(), None));
    }
    drop(recorder);
    let files: Vec<_> = std::fs::read_dir(&directory).expect("it is there").flatten().collect();
    assert_eq!(files.len(), 3);
    for file in &files {
        let metadata = file.metadata().expect("it is there");
        assert!(metadata.len() <= 1000, "{} bytes", metadata.len());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    let read = read(&directory);
    let numbers: Vec<u64> = steps(&read).iter().map(|step| step.number).collect();
    assert_eq!(numbers.last(), Some(&40));
    assert!(numbers.windows(2).all(|two| two[0] + 1 == two[1]), "{numbers:?}");
    let goes_on = |read: &&Read| {
        matches!(read, Read::Line(line)
            if matches!(&**line, Line::Begins(Begins { goes_on: true, .. })))
    };
    assert_eq!(read.iter().filter(goes_on).count(), 3);
}

#[test]
fn a_program_that_is_started_again_and_again_keeps_what_it_recorded() {
    let directory = directory("restarts");
    std::fs::create_dir_all(&directory).expect("it can be made");
    for number in 0..40 {
        let name = format!("{number:014}-1-000001{}", files::ENDING);
        std::fs::write(directory.join(name), "{}\n").expect("it is ours");
    }
    drop(open(LogSettings { files: 3, ..LogSettings::new(&directory) }));
    let files = files::list(&directory).expect("it is there");
    assert_eq!(files.len(), 33, "two full ones are 32 parts, and one may become full");
}

#[test]
fn a_log_is_read_while_it_is_written() {
    let directory = directory("follow");
    let settings = LogSettings { file_bytes: 1000, ..LogSettings::new(&directory) };
    let recorder = open(settings);
    let mut lines = Lines::from_newest(&directory).expect("the log is there");
    let (mut wanted, mut seen) = (0, Vec::new());
    let began = std::time::Instant::now();
    while wanted < 30 || seen.len() < 30 {
        assert!(began.elapsed().as_secs() < 60, "only {} steps were read", seen.len());
        if wanted < 30 {
            recorder.put(step("west", &wanted.to_string(), None));
            wanted += 1;
        }
        while let Some(read) = lines.read_next().expect("it can be read") {
            seen.extend(steps(&[read]).iter().map(|step| step.number));
        }
    }
    assert_eq!(seen, (1..=30).collect::<Vec<u64>>());
}

#[test]
fn half_a_line_and_a_line_of_somebody_else_are_said() {
    let directory = directory("torn");
    let recorder = open(LogSettings::new(&directory));
    recorder.put(step("west", "1", None));
    drop(recorder);
    let path = files::list(&directory).expect("it is there").remove(0);
    let mut text = std::fs::read_to_string(&path).expect("it is text");
    text += "nonsense\n{\"step\":{\"ti";
    std::fs::write(&path, text).expect("it is written");
    std::fs::write(directory.join(format!("9{}", files::ENDING)), "").expect("it is written");
    let read = read(&directory);
    assert!(matches!(&read[2], Read::Unreadable { line: 3, .. }), "{read:?}");
    assert_eq!(read[3], Read::Torn(path));
}

#[test]
fn what_the_disk_does_not_take_is_counted() {
    let directory = directory("full");
    let settings = LogSettings { file_bytes: 1, ..LogSettings::new(&directory) };
    let recorder = open(settings);
    recorder.put(step("west", "1", None));
    // Each step begins a file, and there is no place for another one any more.
    let began = std::time::Instant::now();
    while recorder.counts().written.load(Ordering::Relaxed) < 1 {
        assert!(began.elapsed().as_secs() < 60, "the first step was not written");
        std::thread::yield_now();
    }
    std::fs::remove_dir_all(&directory).expect("it was there");
    recorder.put(step("west", "2", None));
    recorder.put(step("west", "3", None));
    let counts = recorder.counts();
    drop(recorder);
    assert_eq!(counts.missing.load(Ordering::Relaxed), 2);
    assert!(counts.render().contains("{record=\"missing\"} 2"), "{}", counts.render());
}
