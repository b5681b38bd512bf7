//! What one process tells the others.

use std::sync::Arc;

use prowess_runtime::SessionKey;
use tokio::sync::broadcast;

/// So many notices wait for somebody who is slow; whoever misses one looks at everything.
const WAITING: usize = 1024;

/// Something that was changed, by whichever process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A skill of the registry.
    Skills,
    /// A session: something was committed to it.
    Session(Arc<SessionKey>),
    /// Anything: notices may have been lost.
    Anything,
}

/// Tells of changes. Cheap to clone.
///
/// A notice says that it is worth looking, and nothing else; it may come twice, or not at all if
/// whoever carries it is away. Whoever must know looks now and then by themselves.
#[derive(Clone, Debug)]
pub struct Notices {
    sender: broadcast::Sender<Notice>,
}

impl Default for Notices {
    fn default() -> Self {
        Self { sender: broadcast::channel(WAITING).0 }
    }
}

impl Notices {
    /// Tells everybody who listens.
    pub fn tell(&self, notice: Notice) {
        // Nobody listens: nobody needs to know.
        let _ = self.sender.send(notice);
    }

    /// Listens from now on.
    pub fn listen(&self) -> Listener {
        Listener { receiver: self.sender.subscribe() }
    }
}

/// Hears notices.
#[derive(Debug)]
pub struct Listener {
    receiver: broadcast::Receiver<Notice>,
}

impl Listener {
    /// The next notice. Waits for ever where nobody tells any more.
    pub async fn next(&mut self) -> Notice {
        match self.receiver.recv().await {
            Ok(notice) => notice,
            Err(broadcast::error::RecvError::Lagged(_)) => Notice::Anything,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_misses_a_notice_is_told_to_look_at_everything() {
        let notices = Notices::default();
        notices.tell(Notice::Skills);
        let mut listener = notices.listen();
        for _ in 0..=WAITING {
            notices.tell(Notice::Skills);
        }
        assert_eq!(listener.next().await, Notice::Anything);
        assert_eq!(listener.next().await, Notice::Skills);
    }
}
