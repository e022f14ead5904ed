//! What the API promises, asked of a server in the same process: no socket, raw JSON, one file for each concern.

mod apply;
mod clusters;
mod custom;
mod definitions;
mod deletion;
mod discovery;
mod events;
mod fences;
mod forms;
mod garbage;
mod identities;
mod lists;
mod namespaces;
mod objects;
mod patches;
mod pods;
mod refusals;
mod scale;
mod support;
mod validation;
mod watches;
