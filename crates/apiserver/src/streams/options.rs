//! The parameters of a request for a stream, in upstream's words where they are wrong.

use super::{LogOptions, Wanted};
use crate::behaviour::read::is_true;
use crate::request::Query;
use crate::status::{FieldError, Status};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A switch: there, and not `false` or `0`.
fn is_on(query: &Query, name: &str) -> bool {
    let Some(text) = query.first(name) else { return false };
    !matches!(text.to_ascii_lowercase().as_str(), "false" | "0")
}

/// A parameter that is given and not empty.
fn given<'a>(query: &'a Query, name: &str) -> Option<&'a str> {
    query.first(name).filter(|text| !text.is_empty())
}

/// The name of the container that a request means; None: the client does not say.
pub(super) fn container(query: &Query) -> Option<&str> {
    given(query, "container")
}

/// What a log is asked for.
pub(super) fn log(query: &Query, pod: &str, now: Timestamp) -> Result<LogOptions, Status> {
    let mut wrong = Vec::new();
    let mut number = |name: &str, least: i64, why: &str| -> Result<Option<u64>, Status> {
        let Some(text) = given(query, name) else { return Ok(None) };
        let read: i64 = text.parse().map_err(|_| {
            Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
        })?;
        if read < least {
            wrong.push(FieldError::invalid(name, &json!(read), why));
        }
        Ok(u64::try_from(read).ok())
    };
    let tail_lines = number("tailLines", 0, "must be greater than or equal to 0")?;
    let limit_bytes = number("limitBytes", 1, "must be greater than 0")?;
    let since_seconds = number("sinceSeconds", 1, "must be greater than 0")?;
    let since_time = match given(query, "sinceTime") {
        None => None,
        Some(text) => Some(text.parse::<Timestamp>().map_err(|_| {
            Status::bad_request(format!("sinceTime {text:?} is not a time as in RFC 3339"))
        })?),
    };
    if since_seconds.is_some() && since_time.is_some() {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        wrong.push(FieldError::forbidden("", why));
    }
    if given(query, "stream").is_some_and(|stream| stream != "All") {
        let why = "output and errors of a process are in one file: only All can be had";
        wrong.push(FieldError::invalid("stream", &text(query, "stream"), why));
    }
    if !wrong.is_empty() {
        return Err(Status::invalid("", "PodLogOptions", pod, &wrong));
    }
    let long_ago = |seconds: u64| {
        let span = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        now.checked_sub(span).unwrap_or(Timestamp::MIN)
    };
    Ok(LogOptions {
        follow: is_on(query, "follow"),
        previous: is_on(query, "previous"),
        since: since_time.or_else(|| since_seconds.map(long_ago)),
        timestamps: is_on(query, "timestamps"),
        tail_lines,
        limit_bytes,
    })
}

fn text(query: &Query, name: &str) -> Value {
    json!(query.first(name).unwrap_or_default())
}

/// The options of a connection as upstream has them: admission is shown them, and its webhooks may change them.
pub(super) fn of_connection(subresource: &str, query: &Query) -> Result<Value, Status> {
    if subresource == "portforward" {
        let mut options = json!({"kind": "PodPortForwardOptions", "apiVersion": "v1"});
        let ports = ports(query)?;
        if !ports.is_empty() {
            options["ports"] = json!(ports);
        }
        return Ok(options);
    }
    let is_exec = subresource == "exec";
    let kind = if is_exec { "PodExecOptions" } else { "PodAttachOptions" };
    let mut options = json!({"kind": kind, "apiVersion": "v1"});
    for switch in ["stdin", "stdout", "stderr", "tty"] {
        if is_on(query, switch) {
            options[switch] = json!(true);
        }
    }
    if let Some(container) = container(query) {
        options["container"] = json!(container);
    }
    if is_exec {
        let words = query.all("command");
        // A list without elements is null in upstream's objects.
        options["command"] = if words.is_empty() { Value::Null } else { json!(words) };
    }
    Ok(options)
}

/// The ports that a client wants to reach. It says so for admission only: each connection names its port.
fn ports(query: &Query) -> Result<Vec<u16>, Status> {
    let given = query.all("ports");
    let all = given.iter().flat_map(|text| text.split(','));
    let read = |text: &str| {
        text.parse::<u16>().map_err(|_| {
            Status::bad_request(format!("cannot convert to []int32: {text:?} is not a port"))
        })
    };
    all.map(read).collect()
}

/// What is to be connected of a command, by its options.
pub(super) fn wanted(options: &Value) -> Result<Wanted, Status> {
    let tty = is_true(options, "tty");
    let wanted = Wanted {
        stdin: is_true(options, "stdin"),
        stdout: is_true(options, "stdout"),
        // A terminal has one output.
        stderr: is_true(options, "stderr") && !tty,
        tty,
    };
    if !(wanted.stdin || wanted.stdout || wanted.stderr) {
        let why = "you must specify at least 1 of stdin, stdout, stderr";
        return Err(Status::bad_request(why));
    }
    Ok(wanted)
}

/// The name of the container that the options of a connection mean; None: they do not say.
pub(super) fn named(options: &Value) -> Result<Option<&str>, Status> {
    match &options["container"] {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name.as_str()).filter(|name| !name.is_empty())),
        _ => Err(misshapen("container")),
    }
}

/// The command that the options of a connection mean.
pub(super) fn words(options: &Value) -> Result<Vec<String>, Status> {
    let word = |word: &Value| word.as_str().map(str::to_owned).ok_or_else(|| misshapen("command"));
    match &options["command"] {
        Value::Null => Ok(Vec::new()),
        Value::Array(words) => words.iter().map(word).collect(),
        _ => Err(misshapen("command")),
    }
}

/// A mutating webhook made something else of a field than it may be.
fn misshapen(field: &str) -> Status {
    Status::internal(format!("the field {field} has the wrong type after admission webhooks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LogOptions, Status> {
        let query = Query::parse(Some(text)).expect("a query");
        log(&query, "a", Timestamp::from_second(1_000).expect("a time"))
    }

    #[test]
    fn the_parameters_of_a_log_are_those_of_kubectl() {
        let options = read(
            "follow=true&previous=false&timestamps=1&tailLines=0&limitBytes=7&sinceSeconds=60",
        );
        let expected = LogOptions {
            follow: true,
            previous: false,
            since: Some(Timestamp::from_second(940).expect("a time")),
            timestamps: true,
            tail_lines: Some(0),
            limit_bytes: Some(7),
        };
        assert_eq!(options.expect("they are right"), expected);
        let at = read("sinceTime=1970-01-01T00:00:10Z").expect("it is right").since;
        assert_eq!(at, Some(Timestamp::from_second(10).expect("a time")));
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (text, code, named) in [
            ("tailLines=-1", 422, "tailLines"),
            ("tailLines=many", 400, "many"),
            ("limitBytes=0", 422, "limitBytes"),
            ("sinceSeconds=0", 422, "sinceSeconds"),
            ("sinceTime=yesterday", 400, "yesterday"),
            ("sinceSeconds=1&sinceTime=1970-01-01T00:00:10Z", 422, "sinceTime"),
            ("stream=Stderr", 422, "stream"),
            ("tailLines=9223372036854775808", 400, "tailLines"),
        ] {
            let refused = read(text).expect_err(text);
            assert_eq!(refused.code, code, "{text}: {}", refused.message);
            let said = format!("{} {text}", refused.message);
            assert!(said.contains(named), "{text}: {}", refused.message);
        }
        let huge = read(&format!("sinceSeconds={}", i64::MAX)).expect("a long time ago");
        assert_eq!(huge.since, Some(Timestamp::MIN));
    }

    #[test]
    fn a_terminal_has_no_errors_of_its_own() {
        let options = connection("attach", "stdin=true&stdout=true&stderr=true&tty=true");
        let wanted = wanted(&options.expect("they are right")).expect("it is right");
        assert_eq!(wanted, Wanted { stdin: true, stdout: true, stderr: false, tty: true });
    }

    fn connection(subresource: &str, text: &str) -> Result<Value, Status> {
        of_connection(subresource, &Query::parse(Some(text)).expect("a query"))
    }

    #[test]
    fn the_options_of_a_connection_are_the_objects_of_upstream() {
        let exec = connection("exec", "command=ls&command=-l&stdout=true&tty=false&container=web");
        let expected = json!({
            "kind": "PodExecOptions", "apiVersion": "v1",
            "command": ["ls", "-l"], "container": "web", "stdout": true,
        });
        assert_eq!(exec, Ok(expected));
        let attach = connection("attach", "stdin=1&command=ls");
        let expected = json!({"kind": "PodAttachOptions", "apiVersion": "v1", "stdin": true});
        assert_eq!(attach, Ok(expected));
        let forward = connection("portforward", "ports=80,81&ports=443");
        let expected =
            json!({"kind": "PodPortForwardOptions", "apiVersion": "v1", "ports": [80, 81, 443]});
        assert_eq!(forward, Ok(expected));
        assert_eq!(connection("portforward", "ports=many").map_err(|why| why.code), Err(400));
    }

    #[test]
    fn options_that_webhooks_gave_the_wrong_types_are_refused() {
        for options in [json!({"command": ["ls", 5]}), json!({"command": "ls"})] {
            assert_eq!(words(&options).map_err(|why| why.code), Err(500), "{options}");
        }
        assert_eq!(named(&json!({"container": 5})).map_err(|why| why.code), Err(500));
        assert_eq!(named(&json!({"container": ""})), Ok(None));
    }
}
