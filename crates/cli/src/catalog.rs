//! Every model of every system, by name.

use anyhow::{anyhow, bail};
use clap::Args;
use interlock_checker::{AnyModel, Covers, Entry, Size};
use interlock_kernel::nearest;

/// Which model, and how large.
#[derive(Debug, Clone, Args)]
pub(crate) struct Subject {
    /// The model: see `interlock check --list`
    pub(crate) model: Option<String>,
    /// The size of the model: key=value pairs, separated by commas
    #[arg(long, value_name = "KEY=VALUE,...", default_value = "")]
    pub(crate) size: String,
    /// Which failures to include, for models that support the choice
    #[arg(long, value_name = "none|core|all")]
    pub(crate) faults: Option<String>,
    /// Use the configuration of the authors of the seed specification
    #[arg(long, conflicts_with = "size")]
    pub(crate) seed_config: bool,
}

/// All models, in the order of the systems.
pub(crate) fn entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    entries.extend(interlock_placement::models());
    entries.extend(interlock_volumes::models());
    entries.extend(interlock_programs::world::models());
    entries.extend(interlock_nodes::models());
    entries.extend(interlock_identities::models());
    entries.extend(interlock_rollouts::models());
    entries.extend(interlock_workloads::models());
    entries.extend(interlock_turns::models());
    entries.extend(interlock_kernel::models());
    entries
}

impl Subject {
    /// The model that was asked for.
    pub(crate) fn find(&self) -> anyhow::Result<Entry> {
        let Some(name) = &self.model else {
            bail!("no model is named; see `interlock check --list`")
        };
        let mut entries = entries();
        match entries.iter().position(|entry| entry.name == name) {
            Some(place) => Ok(entries.swap_remove(place)),
            None => Err(anyhow!("{}", unknown(name, &entries))),
        }
    }

    /// The model that was asked for, in the size that was asked for.
    pub(crate) fn build(&self, entry: &Entry) -> anyhow::Result<Box<dyn AnyModel>> {
        let text = match (self.seed_config, entry.seed_config) {
            (false, _) => self.size.as_str(),
            (true, Some(size)) => size,
            (true, None) => bail!("{} has no seed configuration", entry.name),
        };
        let mut size = Size::parse(text)?;
        if let Some(faults) = &self.faults {
            if !entry.words.iter().any(|(key, _)| *key == "faults") {
                bail!("{} does not support --faults", entry.name);
            }
            size.set("faults", faults);
        }
        Ok((entry.build)(&size)?)
    }
}

fn unknown(name: &str, entries: &[Entry]) -> String {
    let names = || entries.iter().map(|entry| entry.name);
    let begun = names().find(|known| known.starts_with(name));
    let near = begun.or_else(|| nearest(name, names()).first().copied());
    let hint = near.map_or_else(String::new, |known| format!("; did you mean `{known}`?"));
    format!("model `{name}` does not exist{hint}\nnext: interlock check --list")
}

/// The list of models, for people.
pub(crate) fn list() -> String {
    let entries = entries();
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in &entries {
        let covers = entry.covers().map_or("", Covers::word);
        text += &format!("{:width$}  {covers:8}  {}\n", entry.name, entry.summary);
        let keys = entry.keys.iter().map(|key| {
            format!("{}={} ({}, {} to {})", key.key, key.default, key.help, key.least, key.most)
        });
        let words = entry.words.iter().map(|(key, help)| format!("{key}= ({help})"));
        for line in keys.chain(words) {
            text += &format!("{:width$}    --size {line}\n", "");
        }
    }
    text += "\nseed: a specification as its author wrote it; protocol: what shipped code must follow; \
             shipped: the code that runs\nnext: interlock check placement\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_models_have_one_name() {
        let mut names: Vec<_> = entries().iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_name_nearly_right_is_answered_with_the_right_one() {
        let text = unknown("seed/kcp-storge", &entries());
        assert!(text.contains("did you mean `seed/kcp-storage`?"), "{text}");
        assert!(!unknown("xyz", &entries()).contains("did you mean"));
    }

    #[test]
    fn every_model_builds_in_its_default_size() {
        for entry in entries() {
            let model = (entry.build)(&Size::default()).unwrap();
            assert!(!model.size().is_empty(), "{}", entry.name);
        }
    }
}
