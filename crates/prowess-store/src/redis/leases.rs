//! Who works on a session, by the clock of the server.

use std::time::Duration;

use prowess_runtime::{Fence, SessionKey, StoreError};

use super::link::{Link, Unavailable};
use super::script::{Call, LEASE, RELEASE, RENEW};
use super::sessions::Result;

/// The longest time that is told to the server: a hundred years.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

fn micros(time: Duration) -> u64 {
    u64::try_from(time.min(LONGEST).as_micros()).unwrap_or(u64::MAX)
}

pub(super) async fn lease(
    link: &Link,
    key: &SessionKey,
    holder: &str,
    time: Duration,
) -> Result<Fence> {
    let call = Call::new(&LEASE, &link.names().session(key)).arg(holder).arg(micros(time));
    let answer: Vec<String> = link.run(&call).await?;
    let number = |text: &String| text.parse::<u64>().ok();
    match answer.as_slice() {
        [word, fence] if word == "taken" => {
            number(fence).map(Fence).ok_or_else(|| strange(&answer).into())
        }
        [word, holder, left] if word == "held" => Err(held(holder, number(left).unwrap_or(1))),
        _ => Err(strange(&answer).into()),
    }
}

fn strange(answer: &[String]) -> Unavailable {
    Unavailable(format!("Redis has answered {answer:?}"))
}

/// What others are told who ask for a session that somebody has for so many microseconds more.
pub(super) fn held(holder: &str, left: u64) -> StoreError {
    StoreError::Leased { holder: holder.to_owned(), expires_in: Duration::from_micros(left) }
}

pub(super) async fn renew(
    link: &Link,
    key: &SessionKey,
    fence: Fence,
    time: Duration,
) -> Result<()> {
    let call = Call::new(&RENEW, &link.names().session(key)).arg(fence.0).arg(micros(time));
    match link.run(&call).await? {
        true => Ok(()),
        false => Err(StoreError::Fenced { key: key.clone(), fence }),
    }
}

pub(super) async fn release(link: &Link, key: &SessionKey, fence: Fence) -> Result<()> {
    let call = Call::new(&RELEASE, &link.names().session(key)).arg(fence.0);
    link.run::<bool>(&call).await?;
    Ok(())
}
