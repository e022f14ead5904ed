//! The containers of a pod. Its init containers run one after another, each until it succeeds, and then its
//! container runs.

use super::facts::Stage;
use super::outside::{Ending, Known, Question, init_run};
use interlock_kernel::Object;
use interlock_kernel::metadata::uid_of;
use serde_json::Value;

/// One of the containers of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The init container with this number.
    Init(usize),
    /// The container that runs when all of these are done.
    Main,
}

impl Part {
    /// What the specification of the pod says of it.
    pub(super) fn described(self, pod: &Object) -> &Value {
        match self {
            Part::Init(number) => &pod.data["spec"]["initContainers"][number],
            Part::Main => &pod.data["spec"]["containers"][0],
        }
    }

    /// What the status of the pod says of it.
    pub(super) fn said(self, pod: &Object) -> &Value {
        let status = &pod.data["status"];
        match self {
            Part::Init(_) => {
                let mut all = status["initContainerStatuses"].as_array().into_iter().flatten();
                all.find(|said| said["name"] == self.name(pod)).unwrap_or(&Value::Null)
            }
            Part::Main => &status["containerStatuses"][0],
        }
    }

    /// Its name.
    pub(super) fn name(self, pod: &Object) -> &str {
        self.described(pod)["name"].as_str().unwrap_or_default()
    }

    /// What the machine calls its run.
    pub(super) fn run_id(self, pod: &Object) -> String {
        match self {
            Part::Init(_) => init_run(uid_of(pod), self.name(pod)),
            Part::Main => uid_of(pod).to_owned(),
        }
    }
}

/// The names of the init containers of a pod, in the order in which they run.
pub(super) fn init_names(pod: &Object) -> Vec<String> {
    let inits = pod.data["spec"]["initContainers"].as_array().map_or(0, Vec::len);
    (0..inits).map(|number| Part::Init(number).name(pod).to_owned()).collect()
}

/// The question for the processes of the init containers of a pod; None: it has none.
pub(super) fn inits_of(pod: &Object) -> Option<Question> {
    let containers = init_names(pod);
    let pod = uid_of(pod).to_owned();
    (!containers.is_empty()).then_some(Question::Inits { pod, containers })
}

/// What the machine knows of the containers of a pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Containers {
    /// Its init containers, in the order in which they run.
    pub(super) inits: Vec<Known>,
    /// The container that runs after them.
    pub(super) main: Known,
}

impl Containers {
    /// The containers of a pod about which the machine was not asked.
    pub(super) fn unknown(pod: &Object) -> Containers {
        Containers { inits: vec![Known::Nothing; init_names(pod).len()], main: Known::Nothing }
    }

    /// The container that the pod is at. Once the last one was started, no init container runs again.
    pub(super) fn at(&self) -> Part {
        if self.main != Known::Nothing {
            return Part::Main;
        }
        let is_due = |known: &Known| !matches!(known, Known::Gone { ending: Ending::Code(0), .. });
        self.inits.iter().position(is_due).map_or(Part::Main, Part::Init)
    }

    /// What is known of one of them.
    pub(super) fn known(&self, part: Part) -> Known {
        match part {
            Part::Init(number) => self.inits.get(number).copied().unwrap_or(Known::Nothing),
            Part::Main => self.main,
        }
    }

    /// How far the pod is, as a decision has it.
    pub(super) fn stage(&self) -> Stage {
        match self.at() {
            Part::Init(number) => Stage { is_init: true, has_begun: number > 0 },
            Part::Main => Stage { is_init: false, has_begun: !self.inits.is_empty() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::outside::Started;
    use jiff::Timestamp;

    const RUN: Started = Started { pid: 7, since: Timestamp::UNIX_EPOCH };

    fn gone(ending: Ending) -> Known {
        Known::Gone { run: RUN, ending, finished: None }
    }

    #[test]
    fn an_init_container_runs_when_all_before_it_succeeded() {
        let done = gone(Ending::Code(0));
        for (inits, part, has_begun) in [
            (vec![], Part::Main, false),
            (vec![Known::Nothing, Known::Nothing], Part::Init(0), false),
            (vec![Known::Lives(RUN), Known::Nothing], Part::Init(0), false),
            (vec![gone(Ending::Code(1)), Known::Nothing], Part::Init(0), false),
            (vec![done, Known::Nothing], Part::Init(1), true),
            (vec![done, gone(Ending::Signal(9))], Part::Init(1), true),
            // Nobody saw how it ended.
            (vec![done, gone(Ending::Unknown)], Part::Init(1), true),
            (vec![done, done], Part::Main, true),
        ] {
            let containers = Containers { inits, main: Known::Nothing };
            let stage = Stage { is_init: part != Part::Main, has_begun };
            assert_eq!((containers.at(), containers.stage()), (part, stage), "{containers:?}");
        }
    }

    #[test]
    fn no_init_container_runs_again_once_the_container_was_started() {
        for main in [Known::Lives(RUN), gone(Ending::Code(1))] {
            let containers = Containers { inits: vec![Known::Nothing], main };
            assert_eq!(containers.at(), Part::Main, "{containers:?}");
        }
    }
}
