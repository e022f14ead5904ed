//! What is done to a fleet, and when: drawn from a seed, or read from a file.

use super::fleet::{CLUSTERS, HUB, NAMESPACES, programs};
use super::machines::{COUNT, TENANTS};
use anyhow::{Context, bail};
use clap::ValueEnum;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A mistake that is made on purpose, so that the judges have something to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Flaw {
    /// A second writer is started that asks neither the fleet nor a lock of the fleet
    Unlocked,
    /// The last records in the volume of a namespace are thrown away
    Forgets,
}

/// All that is done in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) seed: u64,
    /// How long it takes, without the quiet period.
    pub(crate) ms: u64,
    pub(crate) events: Vec<Event>,
}

/// Something that is done, so long after the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) ms: u64,
    pub(crate) what: What,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A person asks for another cluster for a namespace.
    Move { namespace: String, to: String },
    /// A tenant asks for so many machines.
    Assign { tenant: String, count: u64 },
    /// A person asks for a version of a cluster, which is good, or never becomes healthy.
    Update { cluster: String, version: u64, is_good: bool },
    /// Something happens to a program, and is over after a while.
    Harm { harm: Harm, program: String, ms: u64 },
    /// A flaw, in a namespace.
    Flaw { flaw: Flaw, namespace: String },
}

/// What happens to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Harm {
    /// kill -9; started again later
    Kill,
    /// SIGSTOP; SIGCONT later
    Stop,
    /// Its connections to the hub are closed, and none can be made until later
    Drop,
    /// Nothing passes between it and the hub until later, and then all that was sent
    Stall,
    /// There is no room on its disk until later: that of the hub only
    Full,
}

impl Harm {
    /// How it is called in a script.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Harm::Kill => "kill",
            Harm::Stop => "stop",
            Harm::Drop => "drop",
            Harm::Stall => "stall",
            Harm::Full => "full",
        }
    }
}

impl Flaw {
    /// How it is called in a script.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Flaw::Unlocked => "unlocked",
            Flaw::Forgets => "forgets",
        }
    }
}

/// Numbers that look random and are the same for the same seed (splitmix).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let place = usize::try_from(self.below(all.len() as u64)).unwrap_or_default();
        &all[place]
    }
}

impl Script {
    /// What a seed does.
    pub(crate) fn drawn(seed: u64, ms: u64, flaw: Option<Flaw>) -> Script {
        let mut random = Random(seed);
        let mut events = Vec::new();
        let mut at = vec![CLUSTERS[0]; NAMESPACES.len()];
        let mut now = 1_000;
        while now < ms {
            let place = usize::try_from(random.below(NAMESPACES.len() as u64)).unwrap_or_default();
            let others: Vec<&str> = CLUSTERS.into_iter().filter(|it| *it != at[place]).collect();
            at[place] = *random.one_of(&others);
            let (namespace, to) = (NAMESPACES[place].to_owned(), at[place].to_owned());
            events.push(Event { ms: now, what: What::Move { namespace, to } });
            // Chance alone seldom hits the moments that matter.
            if random.below(2) == 0 {
                let ms = now + random.below(900);
                events.push(Event { ms, what: harm(&mut random) });
            }
            now += 800 + random.below(4_000);
        }
        now = 2_000;
        while now < ms {
            events.extend(assigned(now, &mut random));
            now += 2_000 + random.below(6_000);
        }
        now = 1_500;
        for version in 1.. {
            if now >= ms {
                break;
            }
            let cluster = (*random.one_of(&CLUSTERS)).to_owned();
            let is_good = random.below(4) > 0;
            events.push(Event { ms: now, what: What::Update { cluster, version, is_good } });
            now += 1_500 + random.below(7_000);
        }
        now = 500;
        while now < ms {
            events.push(Event { ms: now, what: harm(&mut random) });
            now += 300 + random.below(4_000);
        }
        if let Some(flaw) = flaw {
            let mut now = 2_000 + random.below(2_000);
            while now < ms {
                let namespace = (*random.one_of(&NAMESPACES)).to_owned();
                events.push(Event { ms: now, what: What::Flaw { flaw, namespace } });
                now += 2_000 + random.below(3_000);
            }
        }
        events.sort_by_key(|event| event.ms);
        Script { seed, ms, events }
    }

    /// As a file has it.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "# cargo xtask chaos --script FILE: times are milliseconds from the start.\n\
             seed {}\nlasts {}\n",
            self.seed, self.ms
        );
        for Event { ms, what } in &self.events {
            let words = match what {
                What::Move { namespace, to } => format!("move {namespace} {to}"),
                What::Assign { tenant, count } => format!("assign {tenant} {count}"),
                What::Update { cluster, version, is_good } => {
                    let word = if *is_good { "good" } else { "bad" };
                    format!("update {cluster} {version} {word}")
                }
                What::Harm { harm, program, ms } => format!("{} {program} {ms}", harm.word()),
                What::Flaw { flaw, namespace } => format!("{} {namespace}", flaw.word()),
            };
            // Writing into a text cannot fail.
            let _ = writeln!(text, "{ms} {words}");
        }
        text
    }

    /// What a file says.
    pub(crate) fn read(text: &str) -> anyhow::Result<Script> {
        let mut script = Script { seed: 0, ms: 0, events: Vec::new() };
        for (place, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let taken = script.take(&words);
            taken.with_context(|| format!("line {}: {}", place + 1, line.trim()))?;
        }
        script.events.sort_by_key(|event| event.ms);
        let last = script.events.last().map_or(0, |event| event.ms);
        script.ms = script.ms.max(last + 1_000);
        Ok(script)
    }

    fn take(&mut self, words: &[&str]) -> anyhow::Result<()> {
        let what = match words {
            [] => return Ok(()),
            ["seed", seed] => {
                self.seed = seed.parse()?;
                return Ok(());
            }
            ["lasts", ms] => {
                self.ms = ms.parse()?;
                return Ok(());
            }
            [_, "move", namespace, to] => {
                let (namespace, to) = (known(namespace, &NAMESPACES)?, known(to, &CLUSTERS)?);
                What::Move { namespace, to }
            }
            [_, "assign", tenant, count] => {
                let count: u64 = count.parse()?;
                if count > COUNT {
                    bail!("there are {COUNT} machines");
                }
                What::Assign { tenant: known(tenant, &TENANTS)?, count }
            }
            [_, "update", cluster, version, word @ ("good" | "bad")] => {
                let (version, is_good) = (version.parse()?, *word == "good");
                What::Update { cluster: known(cluster, &CLUSTERS)?, version, is_good }
            }
            [_, word, namespace] => {
                let flaw = Flaw::from_str(word, false).map_err(anyhow::Error::msg)?;
                What::Flaw { flaw, namespace: known(namespace, &NAMESPACES)? }
            }
            [_, word, program, ms] => {
                let harm = Harm::from_str(word, false).map_err(anyhow::Error::msg)?;
                let all = programs();
                let all: Vec<&str> = match harm {
                    Harm::Full => vec![HUB],
                    Harm::Kill | Harm::Stop | Harm::Drop | Harm::Stall => {
                        all.iter().map(String::as_str).collect()
                    }
                };
                What::Harm { harm, program: known(program, &all)?, ms: ms.parse()? }
            }
            _ => bail!("there is no such line"),
        };
        self.events.push(Event { ms: words[0].parse()?, what });
        Ok(())
    }

    /// The places of all that is injected: what is left are people.
    pub(crate) fn injected(&self) -> Vec<usize> {
        let is_injected = |place: &usize| match self.events[*place].what {
            What::Move { .. } | What::Assign { .. } | What::Update { .. } => false,
            What::Harm { .. } | What::Flaw { .. } => true,
        };
        (0..self.events.len()).filter(is_injected).collect()
    }

    /// The same without these.
    pub(crate) fn without(&self, places: &[usize]) -> Script {
        let out: BTreeSet<usize> = places.iter().copied().collect();
        let kept = self.events.iter().enumerate().filter(|(place, _)| !out.contains(place));
        let events = kept.map(|(_, event)| event.clone()).collect();
        Script { seed: self.seed, ms: self.ms, events }
    }

    /// The same, up to a time.
    pub(crate) fn until(&self, ms: u64) -> Script {
        let events = self.events.iter().filter(|event| event.ms <= ms).cloned().collect();
        Script { seed: self.seed, ms: self.ms.min(ms + 1_000), events }
    }
}

fn known(name: &str, all: &[&str]) -> anyhow::Result<String> {
    if !all.contains(&name) {
        bail!("there is no `{name}`, only {}", all.join(", "));
    }
    Ok(name.to_owned())
}

/// All machines are shared out anew: what one tenant gives back, the other one waits for.
fn assigned(ms: u64, random: &mut Random) -> Vec<Event> {
    let count = random.below(COUNT + 1);
    let [first, second] = TENANTS.map(str::to_owned);
    let asks = |tenant: String, count: u64| Event { ms, what: What::Assign { tenant, count } };
    vec![asks(first, count), asks(second, COUNT - count)]
}

/// Something that happens to some program. All of it is over in less time than the audit takes a step to last at most,
/// so that nothing that a program did and could not record is missed there.
fn harm(random: &mut Random) -> What {
    let all = programs();
    let program = random.one_of(&all).clone();
    let (harm, ms) = match random.below(9) {
        0 | 1 => (Harm::Stop, 300 + random.below(5_000)),
        2 if program != HUB => (Harm::Drop, 300 + random.below(8_000)),
        3 | 4 if program != HUB => (Harm::Stall, 300 + random.below(4_500)),
        2..=4 => (Harm::Full, 500 + random.below(5_000)),
        _ => (Harm::Kill, random.below(2_500)),
    };
    What::Harm { harm, program, ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_draws_the_same_and_a_file_has_all_of_it() {
        for flaw in [None, Some(Flaw::Unlocked), Some(Flaw::Forgets)] {
            let script = Script::drawn(7, 60_000, flaw);
            assert_eq!(script, Script::drawn(7, 60_000, flaw));
            assert_ne!(script.events, Script::drawn(8, 60_000, flaw).events);
            let read = Script::read(&script.text()).expect("it is a script");
            assert_eq!(read.events, script.events);
            assert_eq!(read.seed, 7);
        }
    }

    #[test]
    fn without_what_is_injected_only_people_are_left() {
        let script = Script::drawn(7, 60_000, Some(Flaw::Unlocked));
        let injected = script.injected();
        assert!(injected.len() > 20, "{injected:?}");
        let rest = script.without(&injected);
        assert!(rest.injected().is_empty());
        assert_eq!(rest.events.len() + injected.len(), script.events.len());
        assert!(rest.events.len() > 5);
    }

    #[test]
    fn a_line_that_says_nothing_is_named() {
        let error =
            Script::read("seed 1\n10 kill nobody 5\n").expect_err("there is no such program");
        let text = format!("{error:#}");
        assert!(text.contains("line 2") && text.contains("controllers-a"), "{text}");
    }

    #[test]
    fn only_the_disk_of_the_hub_gets_full() {
        let is_full = |event: &Event| matches!(&event.what, What::Harm { harm: Harm::Full, program, .. } if program == HUB);
        assert!(Script::drawn(7, 600_000, None).events.iter().any(is_full));
        assert!(Script::read("10 full hub 500\n").is_ok());
        assert!(Script::read("10 full west-a 500\n").is_err());
    }
}
