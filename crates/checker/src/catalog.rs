//! The models that a program offers by name, and the sizes they can be asked for in.

use crate::check::Engine;
use crate::error::CheckError;
use crate::model::{Covers, Model};
use crate::mutants::MutantsReport;
use crate::options::Options;
use crate::report::Report;
use crate::simulate::{Walked, Walks};
use std::collections::BTreeMap;
use thiserror::Error;

/// A size as a person writes it: `nodes=2,dpus=1`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Size(BTreeMap<String, String>);

/// Why a size cannot be used.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SizeError {
    /// Not `key=value`.
    #[error("cannot read the size `{text}`: write key=value, several with commas between")]
    Unreadable {
        /// What was given.
        text: String,
    },
    /// A key that the model does not have.
    #[error("`{key}` is not a size of {model}; it has: {known}")]
    UnknownKey {
        /// The model that was asked.
        model: String,
        /// The key it does not have.
        key: String,
        /// The keys it has.
        known: String,
    },
    /// A value outside what the model can do.
    #[error("`{key}={value}` is out of range: {key} goes from {least} to {most}")]
    OutOfRange {
        /// Which key.
        key: String,
        /// What was given.
        value: String,
        /// The smallest that works.
        least: u64,
        /// The largest that works.
        most: u64,
    },
    /// Two sizes that do not go together, or one that means nothing.
    #[error("{0}")]
    Meaningless(String),
}

/// One key of a model's size.
#[derive(Debug, Clone, Copy)]
pub struct SizeKey {
    /// The key: `clusters`.
    pub key: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// Used when it is not given.
    pub default: u64,
    /// The smallest value.
    pub least: u64,
    /// The largest value: what fits in the packed state.
    pub most: u64,
}

impl SizeKey {
    /// A key with its default and range.
    pub const fn new(
        key: &'static str,
        help: &'static str,
        default: u64,
        least: u64,
        most: u64,
    ) -> Self {
        SizeKey { key, help, default, least, most }
    }
}

impl Size {
    /// Reads `key=value,key=value`.
    pub fn parse(text: &str) -> Result<Self, SizeError> {
        let mut pairs = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| SizeError::Unreadable { text: part.to_owned() })?;
            pairs.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        Ok(Size(pairs))
    }

    /// The numbers for all of `keys`, in their order; unknown keys and values out of range are errors.
    pub fn numbers<const N: usize>(
        &self,
        model: &str,
        keys: &[SizeKey; N],
    ) -> Result<[u64; N], SizeError> {
        if let Some(key) = self.0.keys().find(|key| !keys.iter().any(|k| k.key == **key)) {
            let known = keys.iter().map(|k| k.key).collect::<Vec<_>>().join(", ");
            return Err(SizeError::UnknownKey { model: model.to_owned(), key: key.clone(), known });
        }
        let mut numbers = [0; N];
        for (number, key) in numbers.iter_mut().zip(keys) {
            *number = self.number(key)?;
        }
        Ok(numbers)
    }

    /// Takes out a key whose value is a word, not a number; to be called before [`Size::numbers`].
    pub fn take_word(&mut self, key: &str) -> Option<String> {
        self.0.remove(key)
    }

    /// Adds or replaces a key.
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        self.0.insert(key.to_owned(), value.into());
    }

    fn number(&self, key: &SizeKey) -> Result<u64, SizeError> {
        let Some(value) = self.0.get(key.key) else { return Ok(key.default) };
        match value.parse::<u64>() {
            Ok(number) if (key.least..=key.most).contains(&number) => Ok(number),
            _ => Err(SizeError::OutOfRange {
                key: key.key.to_owned(),
                value: value.clone(),
                least: key.least,
                most: key.most,
            }),
        }
    }
}

/// A model that can be asked for by name.
pub struct Entry {
    /// `seed/kcp-storage`
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// The keys of its size.
    pub keys: &'static [SizeKey],
    /// Keys of its size whose values are words, each with what it takes.
    pub words: &'static [(&'static str, &'static str)],
    /// The size that the authors of a seed gave, where they gave one.
    pub seed_config: Option<&'static str>,
    /// Builds it in a size.
    pub build: fn(&Size) -> Result<Box<dyn AnyModel>, SizeError>,
}

impl Entry {
    /// What a check of the model says something about.
    pub fn covers(&self) -> Result<Covers, SizeError> {
        Ok((self.build)(&Size::default())?.covers())
    }

    /// Builds it in a size that is written as `key=value,key=value`.
    pub fn in_size(&self, text: &str) -> Result<Box<dyn AnyModel>, SizeError> {
        (self.build)(&Size::parse(text)?)
    }

    /// Which of these mutants no promise notices.
    pub fn survivors<'a>(
        &self,
        model: &dyn AnyModel,
        mutants: &[&'a str],
    ) -> Result<Vec<&'a str>, CheckError> {
        let mut survivors = Vec::new();
        for &name in mutants {
            let options = Options { mutant: Some(name.to_owned()), ..Options::default() };
            if !model.check_mutants(self.name, &options)?.all_killed() {
                survivors.push(name);
            }
        }
        Ok(survivors)
    }
}

/// Any model, with its types hidden.
pub trait AnyModel: Sync + Send {
    /// See [`Model::size`].
    fn size(&self) -> String;
    /// See [`Model::covers`].
    fn covers(&self) -> Covers;
    /// See [`crate::check`].
    fn check(&self, name: &str, options: &Options) -> Result<Report, CheckError>;
    /// See [`crate::check_mutants`].
    fn check_mutants(&self, name: &str, options: &Options) -> Result<MutantsReport, CheckError>;
    /// See [`crate::simulate`].
    fn simulate(&self, name: &str, walks: &Walks) -> Walked;
    /// What it promises: the name, the kind, and the sentence.
    fn promises(&self) -> Vec<(String, &'static str, String)>;
    /// The names of its mutants, without checking one: see [`Model::mutants`].
    fn mutant_names(&self) -> Vec<String>;
}

impl<M: Model<Packed: Engine>> AnyModel for M {
    fn size(&self) -> String {
        Model::size(self)
    }
    fn covers(&self) -> Covers {
        Model::covers(self)
    }
    fn check(&self, name: &str, options: &Options) -> Result<Report, CheckError> {
        crate::check(name, self, options)
    }
    fn check_mutants(&self, name: &str, options: &Options) -> Result<MutantsReport, CheckError> {
        crate::check_mutants(name, self, options)
    }
    fn simulate(&self, name: &str, walks: &Walks) -> Walked {
        crate::simulate(name, self, walks)
    }
    fn promises(&self) -> Vec<(String, &'static str, String)> {
        let invariants = self.invariants().into_iter().map(|p| (p.name, "always", p.sentence));
        let rules = self.step_rules().into_iter().map(|p| (p.name, "every step", p.sentence));
        let properties = self.properties().into_iter().map(|p| (p.name, "eventually", p.sentence));
        let reachable = self.reachable().into_iter().map(|p| (p.name, "sometimes", p.sentence));
        invariants
            .chain(rules)
            .chain(properties)
            .chain(reachable)
            .map(|(name, kind, sentence)| (name.to_owned(), kind, sentence.to_owned()))
            .collect()
    }
    fn mutant_names(&self) -> Vec<String> {
        self.mutants().into_iter().map(|mutant| mutant.name).collect()
    }
}
