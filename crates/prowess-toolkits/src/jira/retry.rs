//! When a request is made again, and after how long.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;

use super::error::JiraError;

/// No pause of ours is longer. What Jira asks for may be.
const LONGEST: Duration = Duration::from_secs(30);

/// How often and how soon.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    /// Requests after the first one.
    pub(super) most: u32,
    /// Before the second one, on average; it doubles.
    pub(super) first: Duration,
}

impl Backoff {
    /// How long to wait before the request is made again, if it is. `attempt` counts from 0,
    /// `left` is what is left of the time, `jitter` is between 0 and 1.
    pub(super) fn pause(
        self,
        attempt: u32,
        failure: &JiraError,
        left: Duration,
        jitter: f64,
    ) -> Option<Duration> {
        let asked = match failure {
            JiraError::Status { status: 429 | 502 | 503 | 504, retry_after, .. } => {
                retry_after.map(Duration::from_secs)
            }
            JiraError::RefreshFailed { retry_after, .. } => retry_after.map(Duration::from_secs),
            JiraError::Unreachable { .. } | JiraError::TooSlow { limit: "request_seconds", .. } => {
                None
            }
            _ => return None,
        };
        if attempt >= self.most {
            return None;
        }
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(attempt)).min(LONGEST);
        let own = doubled.mul_f64(0.5 + jitter.clamp(0.0, 1.0));
        // Never sooner than Jira asks for, and not all at once when it is over.
        let pause = asked.map_or(own, |asked| asked.saturating_add(own.min(asked.mul_f64(0.1))));
        (pause < left).then_some(pause)
    }
}

/// A number between 0 and 1.
pub(super) fn jitter() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// The seconds that `Retry-After` asks for: a number, or a date.
pub(super) fn retry_after(header: &str, now: Timestamp) -> Option<u64> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(header.parse().unwrap_or(u64::MAX));
    }
    let at = rfc2822::parse(header).ok()?.timestamp();
    let seconds = at.as_second().saturating_sub(now.as_second());
    Some(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, retry_after: Option<u64>) -> JiraError {
        JiraError::Status { status, message: String::new(), retry_after }
    }

    #[test]
    fn what_may_pass_is_tried_again_within_the_time() {
        let backoff = Backoff { most: 2, first: Duration::from_millis(100) };
        let minute = Duration::from_secs(60);
        let unreachable = JiraError::Unreachable { cause: String::new() };
        let slow = |limit| JiraError::TooSlow { limit, seconds: 1 };
        let table = [
            (0, status(429, None), minute, Some(100)),
            (1, status(429, None), minute, Some(200)),
            (2, status(429, None), minute, None),
            (0, status(429, Some(3)), minute, Some(3100)),
            (0, status(429, Some(0)), minute, Some(0)),
            (0, status(429, Some(60)), minute, None),
            (0, status(429, Some(u64::MAX)), minute, None),
            (0, status(503, Some(1)), minute, Some(1100)),
            (0, status(502, None), minute, Some(100)),
            (0, status(504, None), Duration::from_millis(100), None),
            (0, unreachable, minute, Some(100)),
            (0, slow("request_seconds"), minute, Some(100)),
            (0, slow("deadline_seconds"), minute, None),
            (0, status(500, None), minute, None),
            (0, status(404, Some(1)), minute, None),
            (0, JiraError::Unauthorized, minute, None),
            (0, JiraError::invalid("x"), minute, None),
            (0, JiraError::refresh_failed("x"), minute, Some(100)),
            (
                0,
                JiraError::RefreshFailed { cause: String::new(), retry_after: Some(60) },
                minute,
                None,
            ),
            (0, JiraError::refresh_refused("x"), minute, None),
            (0, JiraError::NoClient { cause: String::new() }, minute, None),
        ];
        for (attempt, failure, left, expected) in table {
            let pause = backoff.pause(attempt, &failure, left, 0.5);
            let pause = pause.map(|pause| pause.as_millis());
            assert_eq!(pause, expected, "{attempt} {failure:?}");
        }
    }

    #[test]
    fn pauses_differ_and_have_an_end() {
        let backoff = Backoff { most: u32::MAX, first: Duration::from_millis(500) };
        let pause = |attempt, jitter| {
            backoff.pause(attempt, &status(503, None), Duration::MAX, jitter).unwrap()
        };
        assert_eq!(pause(0, 0.0), Duration::from_millis(250));
        assert_eq!(pause(0, 1.0), Duration::from_millis(750));
        assert_eq!(pause(1000, 1.0), Duration::from_secs(45));
        assert!((0..100).all(|_| (0.0..1.0).contains(&jitter())));
        assert!((0..100).any(|_| jitter() != jitter()));
    }

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let table = [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Thu, 01 Jan 2026 00:00:30 GMT", Some(30)),
            ("Wed, 31 Dec 2025 23:59:30 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("soon", None),
        ];
        for (header, expected) in table {
            assert_eq!(retry_after(header, now), expected, "{header}");
        }
    }
}
