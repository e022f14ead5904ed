//! Sources and destinations from their triggers to their rest, and what can go wrong on the way.

mod destination;
mod source;
