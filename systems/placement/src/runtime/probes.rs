//! The probes of a pod, as the machine is asked to run them.

use super::address::address_of;
use super::outside::{Check, Probe, Probes, Watched};
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{Object, View};
use serde_json::Value;

/// The probes of a container by their fields.
const FIELDS: [&str; 3] = ["startupProbe", "livenessProbe", "readinessProbe"];

/// What the machine is asked about the probes of a pod; None: it has none.
pub(super) fn watched(pod: &Object, view: &dyn View) -> Option<Watched> {
    let container = &pod.data["spec"]["containers"][0];
    if !is_probed(container) {
        return None;
    }
    let address = address_of(pod, view).to_string();
    // One that cannot be read is refused before anything starts.
    let probe =
        |field: &str| Reading { container, address: &address }.probe(&container[field]).ok();
    let probe = |field: &str| probe(field).flatten();
    let said = &pod.data["status"]["containerStatuses"][0];
    Some(Watched {
        id: uid_of(pod).to_owned(),
        working_directory: container["workingDir"].as_str().map(str::to_owned),
        probes: Probes {
            startup: probe(FIELDS[0]),
            liveness: probe(FIELDS[1]),
            readiness: probe(FIELDS[2]),
        },
        is_started: said["started"] == true && said["state"]["running"].is_object(),
    })
}

/// Whether a container has any probe.
pub(super) fn is_probed(container: &Value) -> bool {
    FIELDS.iter().any(|field| !container[*field].is_null())
}

/// What is asked of probes that a process cannot have.
pub(super) fn refused(container: &Value) -> Vec<String> {
    let reading = Reading { container, address: "" };
    FIELDS.iter().filter_map(|field| reading.probe(&container[*field]).err()).collect()
}

/// How long a stop because of a failed probe may take, if a probe says so.
pub(super) fn grace_seconds(container: &Value) -> Option<u64> {
    ["livenessProbe", "startupProbe"]
        .iter()
        .find_map(|field| container[*field]["terminationGracePeriodSeconds"].as_u64())
}

struct Reading<'a> {
    container: &'a Value,
    /// The address of the pod.
    address: &'a str,
}

impl Reading<'_> {
    /// Nothing is no probe; the error says what cannot be done.
    fn probe(&self, probe: &Value) -> Result<Option<Probe>, String> {
        if probe.is_null() {
            return Ok(None);
        }
        let number = |field: &str, default: u64, least: u64| {
            probe[field].as_u64().unwrap_or(default).max(least)
        };
        Ok(Some(Probe {
            check: self.check(probe)?,
            initial_delay_seconds: number("initialDelaySeconds", 0, 0),
            period_seconds: number("periodSeconds", 10, 1),
            timeout_seconds: number("timeoutSeconds", 1, 1),
            successes: number("successThreshold", 1, 1),
            failures: number("failureThreshold", 3, 1),
        }))
    }

    fn check(&self, probe: &Value) -> Result<Check, String> {
        let words = |list: &Value| -> Vec<String> {
            let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            words.map(str::to_owned).collect()
        };
        if probe["exec"].is_object() {
            return Ok(Check::Exec(words(&probe["exec"]["command"])));
        }
        if probe["tcpSocket"].is_object() {
            let (host, port) = self.target(&probe["tcpSocket"])?;
            return Ok(Check::Tcp { host, port });
        }
        let get = &probe["httpGet"];
        if !get.is_object() {
            return Err("a grpc probe (write an exec, httpGet or tcpSocket probe)".to_owned());
        }
        if get["scheme"] == "HTTPS" {
            return Err("an httpGet probe over HTTPS (write an exec probe)".to_owned());
        }
        let (host, port) = self.target(get)?;
        let headers = get["httpHeaders"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let path = text(&get["path"]);
        Ok(Check::Http {
            host,
            port,
            path: if path.starts_with('/') { path } else { format!("/{path}") },
            headers: headers.map(|it| (text(&it["name"]), text(&it["value"]))).collect(),
        })
    }

    /// Whom a probe asks, and at which port: by number, or by the name of a port of the container.
    fn target(&self, of: &Value) -> Result<(String, u16), String> {
        let host = of["host"].as_str().filter(|host| !host.is_empty()).unwrap_or(self.address);
        let number = |port: &Value| port.as_u64().and_then(|port| u16::try_from(port).ok());
        let named = |name: &str| {
            let ports = self.container["ports"].as_array().into_iter().flatten();
            let mut ports = ports.filter(|port| port["name"] == name);
            ports.next().and_then(|port| number(&port["containerPort"]))
        };
        let asked = &of["port"];
        let text = || asked.as_str().and_then(|text| text.parse().ok().or_else(|| named(text)));
        match number(asked).or_else(text).filter(|port| *port > 0) {
            Some(port) => Ok((host.to_owned(), port)),
            None => Err(format!("a probe at port {asked}, which the container does not list")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(container: Value, probe: Value) -> Result<Check, String> {
        let reading = Reading { container: &container, address: "127.64.0.1" };
        reading.probe(&probe).map(|probe| probe.unwrap().check)
    }

    #[test]
    fn what_is_not_said_is_as_in_kubernetes() {
        let container = json!({});
        let reading = Reading { container: &container, address: "127.64.0.1" };
        let probe = reading.probe(&json!({"tcpSocket": {"port": 80}})).unwrap().unwrap();
        assert_eq!(
            probe,
            Probe {
                check: Check::Tcp { host: "127.64.0.1".into(), port: 80 },
                initial_delay_seconds: 0,
                period_seconds: 10,
                timeout_seconds: 1,
                successes: 1,
                failures: 3,
            }
        );
        assert_eq!(reading.probe(&Value::Null), Ok(None));
    }

    #[test]
    fn a_port_is_found_by_its_name() {
        let container = json!({"ports": [{"name": "web", "containerPort": 8080}]});
        let get = json!({"httpGet": {"port": "web", "path": "healthz", "host": "localhost",
            "httpHeaders": [{"name": "A", "value": "b"}]}});
        assert_eq!(
            check(container.clone(), get),
            Ok(Check::Http {
                host: "localhost".into(),
                port: 8080,
                path: "/healthz".into(),
                headers: vec![("A".into(), "b".into())],
            })
        );
        let unknown = check(container, json!({"tcpSocket": {"port": "db"}}));
        assert_eq!(
            unknown,
            Err("a probe at port \"db\", which the container does not list".to_owned())
        );
    }

    #[test]
    fn what_cannot_be_probed_is_refused_by_name() {
        let container = json!({
            "startupProbe": {"grpc": {"port": 1}},
            "livenessProbe": {"httpGet": {"port": 1, "scheme": "HTTPS"}},
            "readinessProbe": {"exec": {"command": ["true"]}},
        });
        assert_eq!(
            refused(&container),
            [
                "a grpc probe (write an exec, httpGet or tcpSocket probe)",
                "an httpGet probe over HTTPS (write an exec probe)",
            ]
        );
    }

    #[test]
    fn a_probe_may_say_how_long_its_restart_takes() {
        assert_eq!(grace_seconds(&json!({"livenessProbe": {}})), None);
        let own = json!({"livenessProbe": {"terminationGracePeriodSeconds": 3}});
        assert_eq!(grace_seconds(&own), Some(3));
    }
}
