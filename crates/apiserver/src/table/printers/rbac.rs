//! How role bindings are shown. Roles have no printer of their own.

use super::{AGE, Heading, NAME, Printer, age, name, text_column, wide};
use crate::behaviour::read::{list, text};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let is_binding = matches!(kind, "RoleBinding" | "ClusterRoleBinding");
    is_binding.then_some(Printer { headings: &BINDING, cells: binding })
}

static BINDING: [Heading; 6] = [
    NAME,
    text_column("Role", ".roleRef"),
    AGE,
    wide("Users", "The users that get the role."),
    wide("Groups", "The groups that get the role."),
    wide("ServiceAccounts", "The ServiceAccounts that get the role."),
];

fn binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let subjects = |kind: &str| {
        let names: Vec<String> = list(object, "subjects")
            .iter()
            .filter(|subject| text(subject, "kind") == kind)
            .map(|subject| match (kind, text(subject, "namespace")) {
                ("ServiceAccount", namespace) => {
                    format!("{namespace}/{}", text(subject, "name"))
                }
                _ => text(subject, "name").to_owned(),
            })
            .collect();
        json!(names.join(", "))
    };
    vec![
        name(object),
        json!(format!("{}/{}", text(object, "roleRef.kind"), text(object, "roleRef.name"))),
        age(object, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
