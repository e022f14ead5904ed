//! One holder: the node is programmed for nobody or for one tenant, and goes from one tenant to the
//! next only through nobody. Whatever the nodes protocol does must look like this from outside.

use interlock_checker::{Action, Coder, Entry, Model, Rng, Size, SizeError, SizeKey, Steps};

const NAME: &str = "spec/one-holder";
const KEYS: [SizeKey; 1] = [SizeKey::new("tenants", "tenants that may hold the node", 2, 1, 8)];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a node is held by nobody or by one tenant, and changes hands only through nobody",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(OneHolder::from_size(size)?)),
};

/// The tenants that the node is programmed for, as a bit mask: more than one is a state that can be
/// written, so that a protocol can be seen to reach it, but that no step leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holders(u8);

impl Holders {
    /// These and one more.
    pub fn with(self, tenant: u8) -> Self {
        Holders(self.0 | 1 << tenant)
    }

    /// How many there are.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }
}

/// The specification, for some number of tenants.
#[derive(Debug, Clone)]
pub struct OneHolder {
    tenants: u8,
}

impl OneHolder {
    /// The specification in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [tenants] = size.numbers(NAME, &KEYS)?;
        Ok(OneHolder { tenants: tenants as u8 })
    }

    /// The specification for as many tenants as a protocol has.
    pub(crate) fn of(tenants: u8) -> Self {
        OneHolder { tenants }
    }
}

// Action ids: the node is left, then taken by each tenant.
const LEAVE: u16 = 0;
const TAKE: u16 = 1;

impl Model for OneHolder {
    type State = Holders;
    type Packed = u64;

    fn size(&self) -> String {
        format!("tenants={}", self.tenants)
    }

    fn code(&self, state: &mut Holders, coder: &mut Coder) {
        coder.u8(&mut state.0, u32::from(self.tenants));
    }

    fn initial(&self) -> Vec<Holders> {
        vec![Holders::default()]
    }

    fn actions(&self) -> Vec<Action> {
        let take = |t| Action::new(format!("Take(t{t})"), format!("tenant t{t}")).to("node");
        let leave = Action::new("Leave", "node");
        std::iter::once(leave).chain((1..=self.tenants).map(take)).collect()
    }

    fn next(&self, state: &Holders, steps: &mut Steps<Holders>) {
        match state.count() {
            0 => {
                for tenant in 0..self.tenants {
                    steps.step(TAKE + u16::from(tenant), state.with(tenant));
                }
            }
            1 => steps.step(LEAVE, Holders::default()),
            _ => {}
        }
    }

    fn describe(&self, state: &Holders) -> Vec<(&'static str, String)> {
        let held = (0..self.tenants).filter(|tenant| state.0 & (1 << tenant) != 0);
        let held = held.map(|tenant| format!("t{}", tenant + 1)).collect::<Vec<_>>();
        vec![("holders", format!("{{{}}}", held.join(", ")))]
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<Holders> {
        Some(Holders(rng.below(1 << self.tenants) as u8))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use interlock_checker::{Liveness, Options, Verdict, check, reference};

    /// Whether every step of a model, seen from outside, changes hands only through nobody.
    pub(crate) fn has_one_holder<M: Model<Packed: interlock_checker::Engine>>(model: &M) -> bool {
        let (only, liveness) = (vec![NAME.to_owned()], Liveness::Off);
        let options = Options { only, liveness, first: true, ..Options::default() };
        let report = check("nodes", model, &options).expect("the model refines this one");
        report.refines[NAME].verdict == Verdict::Holds
    }

    #[test]
    fn there_is_one_state_per_tenant_and_one_more() {
        let counts = reference::explore(&OneHolder { tenants: 3 });
        assert_eq!((counts.generated, counts.distinct, counts.depth), (7, 4, 2));
        assert_eq!(counts.deadlock, None);
    }
}
