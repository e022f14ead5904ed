//! The rows against an ordered map that is obviously right.

use super::*;
use std::collections::BTreeMap;

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn version(revision: Revision, is_live: bool) -> Version {
    let value = is_live.then(|| Arc::new(Value::new(revision.to_le_bytes().to_vec())));
    Version { created: 0, modified: revision, value }
}

fn live(rows: &Rows, range: &KeyRange) -> Vec<(String, Revision)> {
    rows.between(rows.start_of(range), rows.end_of(range))
        .filter_map(|entry| Some((entry.row.to_string(), entry.at(Revision::MAX)?.modified)))
        .collect()
}

#[test]
fn rows_are_what_an_ordered_map_says_they_are() {
    for seed in 1..=20_u64 {
        let mut state = seed;
        let mut rows = Rows::default();
        let mut model = BTreeMap::<String, Revision>::new();
        // Few names make deep histories, many make many chunks.
        let names = [50, 3000][usize::from(seed % 2 == 0)];
        for revision in 1..=4000_u64 {
            let name = format!("{:04}", random(&mut state) % names);
            let is_live = !random(&mut state).is_multiple_of(3);
            rows.put(Arc::from(&*name), version(revision, is_live));
            rows.forget(&name, revision.saturating_sub(random(&mut state) % 3));
            match is_live {
                true => model.insert(name, revision),
                false => model.remove(&name),
            };
        }
        for prefix in ["", "0", "01", "012", "0123", "01234", "9", "x"] {
            for after in [None, Some("0100"), Some("02"), Some("9999")] {
                let mut range = KeyRange::prefix("t", prefix);
                range.after = after.map(Arc::from);
                let expected: Vec<_> = model
                    .iter()
                    .filter(|(row, _)| range.contains(&crate::Key::new("t", row.as_str())))
                    .map(|(row, revision)| (row.clone(), *revision))
                    .collect();
                assert_eq!(live(&rows, &range), expected, "{prefix} after {after:?}");
                let (start, end) = (rows.start_of(&range), rows.end_of(&range));
                assert_eq!(rows.live_between(start, end), expected.len());
            }
        }
        for (row, revision) in &model {
            assert_eq!(rows.get(row).expect("it is in the model").newest.modified, *revision);
        }
    }
}

#[test]
fn a_row_is_as_it_was_at_each_revision_above_the_floor() {
    let mut rows = Rows::default();
    for revision in 1..=20 {
        rows.put(Arc::from("a"), version(revision, revision % 5 != 0));
    }
    rows.forget("a", 7);
    let entry = rows.get("a").expect("it has versions");
    for revision in 7..=20 {
        let expected = (revision % 5 != 0).then_some(revision);
        assert_eq!(entry.at(revision).map(|version| version.modified), expected);
    }
    assert!(entry.at(6).is_none());
}

#[test]
fn a_deleted_row_is_gone_once_the_floor_has_passed_it() {
    let mut rows = Rows::default();
    for index in 0..1000 {
        rows.put(Arc::from(format!("{index}")), version(1, true));
        rows.put(Arc::from(format!("{index}")), version(2, false));
    }
    for index in 0..1000 {
        rows.forget(&format!("{index}"), 1);
        assert!(rows.get(&format!("{index}")).is_some_and(|entry| entry.at(1).is_some()));
        rows.forget(&format!("{index}"), 2);
    }
    assert!(rows.is_empty());
}

#[test]
fn rows_that_arrive_in_order_fill_their_chunks() {
    let mut rows = Rows::default();
    for index in 0..LONGEST_CHUNK * 4 {
        assert!(rows.append(Arc::from(format!("{index:05}")), version(1, true)));
    }
    assert_eq!(rows.chunks.len(), 4);
    assert!(!rows.append(Arc::from("00000"), version(1, true)));
}
