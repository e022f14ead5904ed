//! The pod and the container that a request means, and whether they can be asked.

use super::PodContainer;
use crate::call::Call;
use crate::object;
use crate::status::Status;
use serde_json::Value;

/// What a request wants of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// What it wrote in its last start, or writes.
    Log,
    /// What it wrote in the start before.
    LogBefore,
    /// A command in it, or its output from now on.
    Command,
    /// Its ports.
    Port,
}

/// The container that is meant, if it can be asked for that. Otherwise 400, as upstream has it.
pub(super) fn container(
    call: &Call,
    pod: &Value,
    named: Option<&str>,
    purpose: Purpose,
) -> Result<PodContainer, Status> {
    let container = match purpose {
        Purpose::Port => names(pod, "containers").next().unwrap_or_default().to_owned(),
        _ => chosen(&call.name, pod, named)?,
    };
    let about = |status: Status| status.about("", "pods", &call.name);
    check_phase(&call.name, pod, purpose).map_err(about)?;
    check_state(&call.name, pod, &container, purpose).map_err(about)?;
    Ok(PodContainer {
        namespace: call.namespace.clone(),
        pod: call.name.clone(),
        uid: object::uid(pod).to_owned(),
        container,
    })
}

fn names<'a>(pod: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    let containers = pod["spec"][field].as_array().into_iter().flatten();
    containers.filter_map(|container| container["name"].as_str())
}

fn chosen(name: &str, pod: &Value, named: Option<&str>) -> Result<String, Status> {
    let containers: Vec<&str> = names(pod, "containers").collect();
    let init: Vec<&str> = names(pod, "initContainers").collect();
    if let Some(named) = named {
        return match containers.iter().chain(&init).any(|container| *container == named) {
            true => Ok(named.to_owned()),
            false => {
                let why = format!("container {named} is not valid for pod {name}");
                Err(Status::bad_request(why))
            }
        };
    }
    match containers.as_slice() {
        [one] => Ok((*one).to_owned()),
        several => {
            let mut why = format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                several.join(" ")
            );
            if !init.is_empty() {
                why = format!("{why} or one of the init containers: [{}]", init.join(" "));
            }
            Err(Status::bad_request(why))
        }
    }
}

fn check_phase(name: &str, pod: &Value, purpose: Purpose) -> Result<(), Status> {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    let is_over = matches!(phase, "Succeeded" | "Failed");
    match purpose {
        Purpose::Command if is_over => Err(Status::bad_request(format!(
            "cannot exec into a container in a completed pod; current phase is {phase}"
        ))),
        Purpose::Port if phase != "Running" => Err(Status::bad_request(format!(
            "unable to forward port because pod {name} is not running. Current status={phase}"
        ))),
        _ => Ok(()),
    }
}

fn check_state(name: &str, pod: &Value, container: &str, purpose: Purpose) -> Result<(), Status> {
    let statuses =
        ["containerStatuses", "initContainerStatuses"].map(|field| &pod["status"][field]);
    let mut statuses = statuses.into_iter().filter_map(Value::as_array).flatten();
    let status = statuses.find(|status| status["name"] == container);
    let status = status.unwrap_or(&Value::Null);
    let (state, last) = (&status["state"], &status["lastState"]);
    let is_running = state["running"].is_object();
    match purpose {
        Purpose::LogBefore if !last["terminated"].is_object() => Err(Status::bad_request(format!(
            "previous terminated container {container:?} in pod {name:?} not found"
        ))),
        Purpose::Log if is_running || state["terminated"].is_object() => Ok(()),
        // Between two starts it shows that of the last one.
        Purpose::Log if last["terminated"].is_object() => Ok(()),
        Purpose::Log => Err(Status::bad_request(format!(
            "container {container:?} in pod {name:?} is waiting to start: {}",
            waiting(pod, state)
        ))),
        Purpose::Command if !is_running => Err(Status::bad_request(format!(
            "container not found ({container:?}): it does not run in pod {name:?}: {}",
            waiting(pod, state)
        ))),
        Purpose::LogBefore | Purpose::Command | Purpose::Port => Ok(()),
    }
}

/// Why a container does not run.
fn waiting<'a>(pod: &'a Value, state: &'a Value) -> &'a str {
    let reason = state["waiting"]["reason"].as_str().or(state["terminated"]["reason"].as_str());
    let reason = reason.or(pod["status"]["reason"].as_str()).filter(|reason| !reason.is_empty());
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut unscheduled = conditions
        .filter(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False");
    let unscheduled = unscheduled.find_map(|condition| condition["message"].as_str());
    reason.or(unscheduled).unwrap_or("ContainerCreating")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(pod: &Value, named: Option<&str>, purpose: Purpose) -> String {
        let container = match chosen("p", pod, named) {
            Ok(container) => container,
            Err(status) => return status.message,
        };
        let state = || check_state("p", pod, &container, purpose);
        let checked = check_phase("p", pod, purpose).and_then(|()| state());
        checked.err().map_or_else(String::new, |status| status.message)
    }

    #[test]
    fn the_only_container_needs_no_name_and_one_of_several_does() {
        let one = json!({"spec": {"containers": [{"name": "a"}]}});
        assert_eq!(chosen("p", &one, None).expect("there is one"), "a");
        let why = refused(&one, Some("b"), Purpose::Log);
        assert_eq!(why, "container b is not valid for pod p");
        let two = json!({"spec": {
            "containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}],
        }});
        let why = refused(&two, None, Purpose::Log);
        assert!(why.contains("choose one of: [a b] or one of the init containers: [i]"), "{why}");
        assert_eq!(chosen("p", &two, Some("i")).expect("it is there"), "i");
        let none = json!({"spec": {}});
        assert!(chosen("p", &none, None).is_err());
    }

    #[test]
    fn a_container_that_does_not_run_says_why() {
        let with = |phase: &str, state: Value| {
            json!({
                "spec": {"containers": [{"name": "a"}]},
                "status": {"phase": phase, "containerStatuses": [{"name": "a", "state": state}]},
            })
        };
        let crashing = with("Running", json!({"waiting": {"reason": "CrashLoopBackOff"}}));
        let why = refused(&crashing, None, Purpose::Command);
        assert!(why.starts_with("container not found (\"a\")"), "{why}");
        assert!(why.contains("CrashLoopBackOff"), "{why}");
        let over = with("Failed", json!({"terminated": {"reason": "Error"}}));
        assert!(refused(&over, None, Purpose::Command).contains("completed pod"));
        assert_eq!(refused(&over, None, Purpose::Log), "");
        assert!(refused(&over, None, Purpose::LogBefore).contains("not found"));
        assert!(refused(&over, None, Purpose::Port).contains("Current status=Failed"));
        let pending = with("Pending", json!({}));
        let why = refused(&pending, None, Purpose::Log);
        assert_eq!(why, "container \"a\" in pod \"p\" is waiting to start: ContainerCreating");
        let nowhere = json!({"spec": {"containers": [{"name": "a"}]}, "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "message": "no node"}],
        }});
        assert!(refused(&nowhere, None, Purpose::Log).ends_with("no node"));
    }
}
