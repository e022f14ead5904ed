//! The work queue of client-go: a request waits once, and no two workers have the same one.

use interlock_checker::{Coder, Rng};

/// Which resource is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Irsa,
    Policy,
    Role,
    Account,
}

pub(crate) const REQUESTS: [Request; 4] =
    [Request::Irsa, Request::Policy, Request::Role, Request::Account];

/// A request, or none.
pub(crate) const MAYBE_REQUESTS: [Option<Request>; 5] =
    [None, Some(Request::Irsa), Some(Request::Policy), Some(Request::Role), Some(Request::Account)];

impl Request {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Request::Irsa => "irsa",
            Request::Policy => "policy",
            Request::Role => "role",
            Request::Account => "sa",
        }
    }
}

/// Requests in the order they came. Two bits each, the first lowest; a one above the last ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line(u32);

impl Default for Line {
    fn default() -> Self {
        Line(1)
    }
}

impl Line {
    pub(crate) fn of(requests: &[Request]) -> Self {
        let mut line = Line::default();
        for request in requests {
            line.append(*request);
        }
        line
    }

    /// Any line of at most `longest` requests.
    pub(crate) fn arbitrary(rng: &mut Rng, longest: usize) -> Self {
        let mut line = Line::default();
        for _ in 0..rng.below(longest + 1) {
            line.append(REQUESTS[rng.below(REQUESTS.len())]);
        }
        line
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Line::default()
    }

    pub(crate) fn length(self) -> u32 {
        self.0.ilog2() / 2
    }

    pub(crate) fn append(&mut self, request: Request) {
        let end = self.0.ilog2();
        self.0 += (0b11 << end) + ((request as u32) << end);
    }

    pub(crate) fn take_head(&mut self) -> Option<Request> {
        let head = self.iter().next()?;
        self.0 >>= 2;
        Some(head)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Request> {
        (0..self.length()).map(move |place| REQUESTS[(self.0 >> (2 * place) & 0b11) as usize])
    }

    pub(crate) fn code(&mut self, coder: &mut Coder, longest: u32) {
        coder.u32(&mut self.0, 2 * longest + 1);
    }

    pub(crate) fn show(self) -> String {
        let names = self.iter().map(|request| format!("\"{}\"", request.name()));
        format!("<<{}>>", names.collect::<Vec<_>>().join(", "))
    }
}

/// A set of requests, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RequestSet(u8);

impl RequestSet {
    pub(crate) fn arbitrary(rng: &mut Rng) -> Self {
        RequestSet(rng.below(1 << REQUESTS.len()) as u8)
    }

    pub(crate) fn contains(self, request: Request) -> bool {
        self.0 & (1 << request as u8) != 0
    }

    pub(crate) fn insert(&mut self, request: Request) {
        self.0 |= 1 << request as u8;
    }

    pub(crate) fn remove(&mut self, request: Request) {
        self.0 &= !(1 << request as u8);
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Request> {
        REQUESTS.into_iter().filter(move |request| self.contains(*request))
    }

    fn code(&mut self, coder: &mut Coder) {
        coder.u8(&mut self.0, REQUESTS.len() as u32);
    }

    fn show(self) -> String {
        let names = self.iter().map(|request| format!("\"{}\"", request.name()));
        format!("{{{}}}", names.collect::<Vec<_>>().join(", "))
    }
}

impl FromIterator<Request> for RequestSet {
    fn from_iter<I: IntoIterator<Item = Request>>(requests: I) -> Self {
        let mut set = RequestSet::default();
        for request in requests {
            set.insert(request);
        }
        set
    }
}

/// `wq`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WorkQueue {
    /// What is to be processed.
    pub(crate) dirty: RequestSet,
    /// What a worker has in hand.
    pub(crate) processing: RequestSet,
    /// What a worker may take.
    pub(crate) queue: Line,
}

impl WorkQueue {
    /// A request waits in the queue once; while a worker has it in hand it waits outside.
    pub(crate) fn add(&mut self, request: Request) {
        if self.dirty.contains(request) {
            return;
        }
        self.dirty.insert(request);
        if !self.processing.contains(request) {
            self.queue.append(request);
        }
    }

    /// The first request goes into a worker's hand.
    pub(crate) fn take(&mut self) -> Option<Request> {
        let head = self.queue.take_head()?;
        self.dirty.remove(head);
        self.processing.insert(head);
        Some(head)
    }

    /// A worker gives a request back; if it was asked for again meanwhile, it is queued now.
    pub(crate) fn done(&mut self, request: Request) {
        self.processing.remove(request);
        if self.dirty.contains(request) {
            self.queue.append(request);
        }
    }

    pub(crate) fn code(&mut self, coder: &mut Coder, longest: u32) {
        self.dirty.code(coder);
        self.processing.code(coder);
        self.queue.code(coder, longest);
    }

    pub(crate) fn arbitrary(rng: &mut Rng, longest: usize) -> Self {
        WorkQueue {
            dirty: RequestSet::arbitrary(rng),
            processing: RequestSet::arbitrary(rng),
            queue: Line::arbitrary(rng, longest),
        }
    }

    pub(crate) fn show(&self) -> String {
        format!(
            "[dirty |-> {}, processing |-> {}, queue |-> {}]",
            self.dirty.show(),
            self.processing.show(),
            self.queue.show()
        )
    }
}

/// A worker, and the request it has in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Worker {
    /// `~idle`: it has not finished with the request.
    pub(crate) is_busy: bool,
    pub(crate) request: Option<Request>,
}

impl Worker {
    /// The request that it is working on, if any.
    pub(crate) fn works_on(self) -> Option<Request> {
        self.request.filter(|_| self.is_busy)
    }

    pub(crate) fn code(&mut self, coder: &mut Coder) {
        coder.bool(&mut self.is_busy);
        coder.of(&mut self.request, &MAYBE_REQUESTS);
    }

    pub(crate) fn arbitrary(rng: &mut Rng) -> Self {
        Worker { is_busy: rng.flip(), request: MAYBE_REQUESTS[rng.below(MAYBE_REQUESTS.len())] }
    }

    pub(crate) fn show(self) -> String {
        let request = self.request.map_or("NULL", Request::name);
        let idle = if self.is_busy { "FALSE" } else { "TRUE" };
        format!("[req |-> \"{request}\", idle |-> {idle}]")
    }
}

/// `workers`, as TLA+ prints a function over strings.
pub(crate) fn show_workers(workers: &[Worker]) -> String {
    let one = |(w, worker): (usize, &Worker)| format!("w{w} |-> {}", worker.show());
    format!("[{}]", workers.iter().enumerate().map(one).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_hands_out_what_came_first() {
        let mut line = Line::of(&[Request::Role, Request::Irsa, Request::Account]);
        assert_eq!(line.show(), "<<\"role\", \"irsa\", \"sa\">>");
        assert_eq!(line.length(), 3);
        assert_eq!(line.take_head(), Some(Request::Role));
        line.append(Request::Policy);
        assert_eq!(line.show(), "<<\"irsa\", \"sa\", \"policy\">>");
        assert_eq!(std::iter::from_fn(|| line.take_head()).count(), 3);
        assert!(line.is_empty());
    }

    #[test]
    fn a_request_in_hand_is_queued_again_only_when_it_is_given_back() {
        let mut queue = WorkQueue::default();
        queue.add(Request::Irsa);
        queue.add(Request::Irsa);
        assert_eq!(queue.queue.length(), 1);
        assert_eq!(queue.take(), Some(Request::Irsa));
        queue.add(Request::Irsa);
        assert!(queue.queue.is_empty());
        queue.done(Request::Irsa);
        assert_eq!(queue.take(), Some(Request::Irsa));
    }
}
