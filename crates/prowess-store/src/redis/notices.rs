//! What other processes change, told by the server.

use std::sync::Arc;
use std::time::Duration;

use prowess_runtime::SessionKey;
use redis::{FromRedisValue, PushInfo, PushKind, RedisError, cmd};
use tokio::sync::Notify;

use super::batch::SKILLS;
use super::link::Link;
use crate::notices::{Notice, Notices};

/// So often it is asked whether the server is still there.
const ALIVE: Duration = Duration::from_secs(5);
/// The times between two attempts to listen.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Listens until it is aborted; again, whenever the connection was lost.
pub(super) async fn listen(link: Link, notices: Notices) {
    let mut pause = SHORTEST_PAUSE;
    loop {
        let lost = Arc::new(Notify::new());
        match subscribe(&link, &notices, &lost).await {
            Ok(connection) => {
                pause = SHORTEST_PAUSE;
                // Whatever was told until now was told to nobody.
                notices.tell(Notice::Anything);
                until_lost(connection, &lost).await;
            }
            Err(error) => tracing::debug!(%error, "nobody tells of changes in Redis"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn subscribe(
    link: &Link,
    notices: &Notices,
    lost: &Arc<Notify>,
) -> Result<redis::aio::MultiplexedConnection, RedisError> {
    let (notices, lost) = (notices.clone(), Arc::clone(lost));
    let tell = move |push: PushInfo| match push.kind {
        PushKind::Disconnection => lost.notify_one(),
        PushKind::Message => {
            if let Some(notice) = notice(push) {
                notices.tell(notice);
            }
        }
        _ => {}
    };
    let mut connection = link.subscriber(tell).await?;
    connection.subscribe(&link.names().channel).await?;
    Ok(connection)
}

/// Waits until the connection is lost, or the server does not answer any more.
async fn until_lost(mut connection: redis::aio::MultiplexedConnection, lost: &Notify) {
    loop {
        if tokio::time::timeout(ALIVE, lost.notified()).await.is_ok() {
            return;
        }
        if cmd("PING").query_async::<String>(&mut connection).await.is_err() {
            return;
        }
    }
}

/// What a message says: a channel, and a text.
fn notice(push: PushInfo) -> Option<Notice> {
    let text = String::from_redis_value(push.data.into_iter().nth(1)?).ok()?;
    if text == SKILLS {
        return Some(Notice::Skills);
    }
    Some(Notice::Session(Arc::new(text.parse::<SessionKey>().ok()?)))
}
