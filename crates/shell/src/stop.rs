//! An orderly end: what is under way is finished, nothing new is begun.

use tokio::sync::watch;

/// Asks for the end. To drop it asks too.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Knows whether the end was asked for, by any of those who may ask.
#[derive(Debug, Clone)]
pub struct Stop(Vec<watch::Receiver<bool>>);

impl Stopper {
    /// One who may ask for the end.
    #[allow(clippy::new_without_default, reason = "one that is made and dropped stops at once")]
    pub fn new() -> Stopper {
        Stopper(watch::Sender::new(false))
    }

    /// Asks for the end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// For those who are to end.
    pub fn signal(&self) -> Stop {
        Stop(vec![self.0.subscribe()])
    }
}

impl Stop {
    /// Asked for by either.
    #[must_use]
    pub fn or(mut self, other: &Stop) -> Stop {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// Whether the end was asked for.
    pub fn is_asked(&self) -> bool {
        self.0.iter().any(|asked| *asked.borrow() || asked.has_changed().is_err())
    }

    /// Returns once the end was asked for.
    pub async fn asked(&self) {
        let mut signals = self.0.clone();
        let each = signals.iter_mut().map(|signal| {
            Box::pin(async move {
                // An error says that nobody is left to ask: that is the end too.
                let _ = signal.wait_for(|asked| *asked).await;
            })
        });
        let each: Vec<_> = each.collect();
        if each.is_empty() {
            return std::future::pending().await;
        }
        futures::future::select_all(each).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn either_may_ask_and_to_drop_is_to_ask() {
        let (one, other) = (Stopper::new(), Stopper::new());
        let stop = one.signal().or(&other.signal());
        assert!(!stop.is_asked());
        other.stop();
        assert!(stop.is_asked());
        stop.asked().await;
        let alone = one.signal();
        assert!(!alone.is_asked());
        drop(one);
        assert!(alone.is_asked());
        alone.asked().await;
    }
}
