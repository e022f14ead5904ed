//! Each row of what happens to the requests of a cluster.

mod facts;
mod hub;
mod rows;

use super::*;
