//! A process that dies in the middle leaves nothing behind, and forgets nothing.

use super::up::{Up, cloud_name, example, identities, until};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn a_restart_in_the_middle_loses_nothing_and_leaves_nothing() {
    let mut up = Up::start();
    up.namespace("shop");
    for name in NAMES {
        up.client().must("POST", &identities("shop"), Some(&example(name)));
    }
    until("the first role is there", || {
        let (roles, _) = up.in_the_cloud();
        if roles.is_empty() { Err(up.says()) } else { Ok(()) }
    });
    up.kill_and_start_again();
    for name in NAMES {
        up.created(&format!("{}/{name}", identities("shop")));
    }
    let names: Vec<String> = NAMES.iter().map(|name| cloud_name("shop", name)).collect();
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let (roles, policies) = up.in_the_cloud();
    assert_eq!(sorted(roles), sorted(names.clone()));
    assert_eq!(sorted(policies), sorted(names));

    for name in NAMES {
        up.client().must("DELETE", &format!("{}/{name}", identities("shop")), None);
    }
    until("the first role is gone", || {
        let (roles, _) = up.in_the_cloud();
        if roles.len() == NAMES.len() { Err(up.says()) } else { Ok(()) }
    });
    up.kill_and_start_again();
    for name in NAMES {
        up.gone(&format!("{}/{name}", identities("shop")));
    }
    assert_eq!(up.in_the_cloud(), (vec![], vec![]), "{}", up.says());
}

#[test]
fn a_start_for_another_fleet_is_refused() {
    let mut up = Up::start();
    let (code, says) = up.start_as("another-fleet");
    assert_eq!(code, Some(2), "{says}");
    assert!(says.contains("start with --fleet test-fleet"), "{says}");
    up.kill_and_start_again();
}
