//! The variables of the rollouts protocol, how they are packed and how they are shown.

use super::RolloutsFence;
use interlock_checker::{Coder, Rng};

pub(super) const OBJECTS: usize = 2;
pub(super) const MOST_VERSIONS: usize = 3;
pub(super) const MOST_WRITES: usize = 2;
pub(super) const MOST_TAKEOVERS: u64 = 1;
const MOST_TOKENS: usize = 2 * MOST_VERSIONS + MOST_TAKEOVERS as usize;

/// What the controller does with the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// Nothing.
    #[default]
    Idle,
    /// Objects are written.
    Applying,
    /// All are written; their health is watched.
    Verifying,
    /// The last good version is written back.
    RollingBack,
}

pub(super) const STAGES: [Stage; 4] =
    [Stage::Idle, Stage::Applying, Stage::Verifying, Stage::RollingBack];

/// How far a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// Not submitted.
    #[default]
    New,
    /// Waiting.
    Queued,
    /// Being applied.
    Applying,
    /// Being verified.
    Verifying,
    /// Being undone.
    RollingBack,
    /// Refused at admission.
    Rejected,
    /// A newer one came while it waited.
    Superseded,
    /// Preflight failed: nothing was changed.
    Failed,
    /// Verified.
    Succeeded,
    /// Undone.
    RolledBack,
    /// Could not be undone.
    RollbackFailed,
}

const OUTCOMES: [Outcome; 11] = [
    Outcome::New,
    Outcome::Queued,
    Outcome::Applying,
    Outcome::Verifying,
    Outcome::RollingBack,
    Outcome::Rejected,
    Outcome::Superseded,
    Outcome::Failed,
    Outcome::Succeeded,
    Outcome::RolledBack,
    Outcome::RollbackFailed,
];

impl Outcome {
    pub(super) fn is_active(self) -> bool {
        matches!(self, Outcome::Applying | Outcome::Verifying | Outcome::RollingBack)
    }

    pub(super) fn is_final(self) -> bool {
        !self.is_active() && !matches!(self, Outcome::New | Outcome::Queued)
    }
}

/// An object on the cluster; revision 0 is that of an absent one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Object {
    pub(super) value: u8,
    pub(super) revision: u8,
    pub(super) token: u8,
}

impl Object {
    pub(super) fn exists(&self) -> bool {
        self.revision != 0
    }

    pub(super) fn is_as(&self, wanted: Option<u8>) -> bool {
        self.exists().then_some(self.value) == wanted
    }
}

/// The value of an object in a version: the first object is the same in all but the empty one, the
/// second is there in every other version, each time another.
pub(super) fn wanted(object: usize, version: u8) -> Option<u8> {
    match (object, version) {
        (_, 0) => None,
        (0, _) => Some(1),
        (_, version) => version.is_multiple_of(2).then_some(version),
    }
}

/// A write under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Write {
    pub(super) object: usize,
    pub(super) is_delete: bool,
    pub(super) token: u8,
    pub(super) value: u8,
    /// The revision it was made for.
    pub(super) before: u8,
}

/// The set of writes under way: in order, the free places last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Writes([Option<Write>; MOST_WRITES]);

impl Writes {
    pub(super) fn each(&self) -> impl Iterator<Item = Write> + use<> {
        self.0.into_iter().flatten()
    }

    pub(super) fn with(mut self, write: Write) -> Self {
        if let Some(place) = self.0.iter().position(Option::is_none) {
            self.0[place] = Some(write);
        }
        self.in_order()
    }

    pub(super) fn without(mut self, write: Write) -> Self {
        for place in &mut self.0 {
            *place = place.filter(|other| *other != write);
        }
        self.in_order()
    }

    fn in_order(mut self) -> Self {
        self.0.sort_by_key(|place| (place.is_none(), *place));
        self
    }
}

/// The variables of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub(super) last_version: u8,
    pub(super) queued: u8,
    pub(super) active: u8,
    pub(super) stage: Stage,
    pub(super) token: u8,
    /// The version that each token works towards.
    pub(super) targets: [u8; MOST_TOKENS + 1],
    pub(super) good: u8,
    pub(super) is_degraded: bool,
    pub(super) outcomes: [Outcome; MOST_VERSIONS],
    pub(super) objects: [Object; OBJECTS],
    /// What the controller read of each object, if it did.
    pub(super) seen: [Option<Object>; OBJECTS],
    pub(super) fence: u8,
    pub(super) writes: Writes,
    pub(super) next_revision: u8,
    pub(super) takeovers: u8,
}

fn width(most: u8) -> u32 {
    u8::BITS - most.leading_zeros()
}

impl State {
    pub(super) fn outcome(&self, version: u8) -> Outcome {
        self.outcomes[usize::from(version) - 1]
    }

    pub(super) fn set_outcome(&mut self, version: u8, outcome: Outcome) {
        self.outcomes[usize::from(version) - 1] = outcome;
    }

    pub(super) fn count(&self, is: impl Fn(Outcome) -> bool) -> usize {
        self.outcomes.iter().filter(|outcome| is(**outcome)).count()
    }

    /// The version that a token works towards.
    pub(super) fn target(&self, token: u8) -> u8 {
        self.targets[usize::from(token)]
    }

    pub(super) fn has_on_cluster(&self, version: u8) -> bool {
        let mut objects = self.objects.iter().enumerate();
        objects.all(|(o, object)| object.is_as(wanted(o, version)))
    }

    pub(super) fn code(&mut self, model: &RolloutsFence, coder: &mut Coder) {
        let of_version = width(model.versions);
        let of_token = width(model.most_tokens());
        coder.u8(&mut self.last_version, of_version);
        coder.u8(&mut self.queued, of_version);
        coder.u8(&mut self.active, of_version);
        coder.of(&mut self.stage, &STAGES);
        coder.u8(&mut self.token, of_token);
        for target in &mut self.targets[1..=usize::from(model.most_tokens())] {
            coder.u8(target, of_version);
        }
        coder.u8(&mut self.good, of_version);
        coder.bool(&mut self.is_degraded);
        for outcome in &mut self.outcomes[..usize::from(model.versions)] {
            coder.of(outcome, &OUTCOMES);
        }
        for object in &mut self.objects {
            code_object(object, model, coder);
        }
        for seen in &mut self.seen {
            let mut is_known = seen.is_some();
            let mut object = seen.unwrap_or_default();
            coder.bool(&mut is_known);
            code_object(&mut object, model, coder);
            *seen = is_known.then_some(object);
        }
        coder.u8(&mut self.fence, of_token);
        for place in &mut self.writes.0[..usize::from(model.messages)] {
            code_write(place, model, coder);
        }
        coder.u8(&mut self.next_revision, width(model.most_revisions()));
        coder.u8(&mut self.takeovers, width(model.takeovers));
    }

    pub(super) fn describe(&self, model: &RolloutsFence) -> Vec<(&'static str, String)> {
        let list = |members: Vec<String>| members.join(", ");
        let target = |token: u8| format!("{token} :> {}", self.target(token));
        let targets = (0..=model.most_tokens()).map(target).collect::<Vec<_>>();
        let outcomes = self.outcomes[..usize::from(model.versions)].iter();
        let named = |(o, shown): (usize, String)| format!("o{} |-> {shown}", o + 1);
        let objects = self.objects.iter().map(show_object).enumerate().map(named);
        let seen = self.seen.iter().map(show_seen).enumerate().map(named);
        vec![
            ("lastV", self.last_version.to_string()),
            ("q", self.queued.to_string()),
            ("act", self.active.to_string()),
            ("ph", format!("\"{:?}\"", self.stage)),
            ("token", self.token.to_string()),
            ("tgt", format!("({})", targets.join(" @@ "))),
            ("good", self.good.to_string()),
            ("deg", boolean(self.is_degraded)),
            ("phase", format!("<<{}>>", list(outcomes.map(|o| format!("\"{o:?}\"")).collect()))),
            ("obj", format!("[{}]", list(objects.collect()))),
            ("seen", format!("[{}]", list(seen.collect()))),
            ("fence", self.fence.to_string()),
            ("msg", format!("{{{}}}", list(self.writes.each().map(show_write).collect()))),
            ("nrv", self.next_revision.to_string()),
            ("take", self.takeovers.to_string()),
        ]
    }

    /// Well typed, with a request behind every stage and room for a step; otherwise anything.
    pub(super) fn arbitrary(model: &RolloutsFence, rng: &mut Rng) -> State {
        let up_to = |rng: &mut Rng, most: u8| rng.below(usize::from(most) + 1) as u8;
        let next_revision = 1 + up_to(rng, model.most_revisions() - 1);
        let object = |rng: &mut Rng| match rng.flip() {
            true => Object {
                value: up_to(rng, model.versions),
                revision: up_to(rng, next_revision - 1),
                token: up_to(rng, model.most_tokens()),
            },
            false => Object::default(),
        };
        let stage = STAGES[rng.below(STAGES.len())];
        let active = if stage == Stage::Idle { 0 } else { 1 + up_to(rng, model.versions - 1) };
        let mut state = State {
            last_version: up_to(rng, model.versions),
            queued: up_to(rng, model.versions),
            active,
            stage,
            token: up_to(rng, model.most_tokens() - 1),
            good: up_to(rng, model.versions),
            is_degraded: rng.flip(),
            objects: [object(rng), object(rng)],
            fence: up_to(rng, model.most_tokens()),
            next_revision,
            takeovers: up_to(rng, model.takeovers),
            ..State::default()
        };
        for target in &mut state.targets[1..=usize::from(model.most_tokens())] {
            *target = up_to(rng, model.versions);
        }
        for outcome in &mut state.outcomes[..usize::from(model.versions)] {
            *outcome = OUTCOMES[rng.below(OUTCOMES.len())];
        }
        for seen in &mut state.seen {
            *seen = rng.flip().then(|| object(rng));
        }
        if rng.flip() {
            state.writes = Writes::default().with(Write {
                object: rng.below(OBJECTS),
                is_delete: rng.flip(),
                token: 1 + up_to(rng, model.most_tokens() - 1),
                value: up_to(rng, model.versions),
                before: up_to(rng, next_revision - 1),
            });
        }
        state
    }
}

fn code_object(object: &mut Object, model: &RolloutsFence, coder: &mut Coder) {
    coder.u8(&mut object.value, width(model.versions));
    coder.u8(&mut object.revision, width(model.most_revisions()));
    coder.u8(&mut object.token, width(model.most_tokens()));
}

fn code_write(place: &mut Option<Write>, model: &RolloutsFence, coder: &mut Coder) {
    let mut write = place.unwrap_or_default();
    let mut number = write.object as u8;
    coder.u8(&mut number, width(OBJECTS as u8 - 1));
    write.object = usize::from(number);
    coder.bool(&mut write.is_delete);
    // Tokens start at 1: 0 marks a free place.
    coder.u8(&mut write.token, width(model.most_tokens()));
    coder.u8(&mut write.value, width(model.versions));
    coder.u8(&mut write.before, width(model.most_revisions()));
    *place = (write.token != 0).then_some(write);
}

fn boolean(value: bool) -> String {
    if value { "TRUE" } else { "FALSE" }.to_owned()
}

fn show_object(object: &Object) -> String {
    let Object { value, revision, token } = object;
    let exists = boolean(object.exists());
    format!("[ex |-> {exists}, val |-> {value}, rv |-> {revision}, tok |-> {token}]")
}

fn show_seen(seen: &Option<Object>) -> String {
    let unknown = || "[ex |-> FALSE, val |-> 99, rv |-> 99, tok |-> 0]".to_owned();
    seen.as_ref().map_or_else(unknown, show_object)
}

fn show_write(write: Write) -> String {
    let Write { object, is_delete, token, value, before } = write;
    let kind = if is_delete { "del" } else { "put" };
    let what = format!("o |-> \"o{}\", k |-> \"{kind}\"", object + 1);
    format!("[{what}, tok |-> {token}, val |-> {value}, pre |-> {before}]")
}
