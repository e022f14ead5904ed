//! The subjects that a controller can be asked about, by number.

use crate::intern::Interner;
use interlock_kernel::Subject;

/// The subjects of one controller.
pub(crate) enum Subjects {
    /// All that there are, listed by the system: the controller is asked about each at any time.
    Listed(Vec<Subject>),
    /// Those that its watches name: it is asked about what is there, as after a start. They are
    /// numbered as they are found, over all states, and are at most so many.
    Found { names: Interner<Subject>, most: usize },
}

impl Subjects {
    pub(crate) fn found(most: usize) -> Subjects {
        Subjects::Found { names: Interner::default(), most }
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Subjects::Listed(all) => all.len(),
            Subjects::Found { most, .. } => *most,
        }
    }

    /// The subject of a number that was given out.
    pub(crate) fn name(&self, number: usize) -> Subject {
        match self {
            Subjects::Listed(all) => all[number].clone(),
            Subjects::Found { names, .. } => Subject::clone(&names.get(number as u32)),
        }
    }

    /// What an action about a number is called, before anything is found.
    pub(crate) fn label(&self, number: usize) -> String {
        match self {
            Subjects::Listed(all) => all[number].to_string(),
            Subjects::Found { .. } => (number + 1).to_string(),
        }
    }

    /// The numbers that the controller is asked about while its watches name these; the error is a
    /// subject for which there is no number.
    pub(crate) fn asked(&self, named: &[Subject]) -> Result<Vec<usize>, Subject> {
        match self {
            Subjects::Listed(all) => match named.iter().find(|subject| !all.contains(subject)) {
                Some(unknown) => Err(unknown.clone()),
                None => Ok((0..all.len()).collect()),
            },
            Subjects::Found { names, most } => {
                let number = |subject: &Subject| {
                    let number = names.put(subject.clone()) as usize;
                    assert!(
                        number < *most,
                        "{subject} is one subject more than the {most} allowed"
                    );
                    number
                };
                Ok(named.iter().map(number).collect())
            }
        }
    }
}
