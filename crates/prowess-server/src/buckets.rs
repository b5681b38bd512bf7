//! How often somebody may do something.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many are remembered at most.
const REMEMBERED: usize = 10_000;

/// A bucket of tokens for everybody: it holds `most` and fills up within `period`.
#[derive(Debug)]
pub(crate) struct Buckets<K> {
    most: f64,
    per_second: f64,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl<K: Eq + Hash> Buckets<K> {
    pub(crate) fn new(most: u32, period: Duration) -> Self {
        let most = f64::from(most);
        Self { most, per_second: most / period.as_secs_f64(), buckets: Mutex::default() }
    }

    fn now(&self, bucket: Bucket, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.tokens + passed * self.per_second).min(self.most)
    }

    /// Takes a token; or says after how many seconds there is one.
    pub(crate) fn take(&self, key: K, now: Instant) -> Result<(), u64> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= REMEMBERED && !buckets.contains_key(&key) {
            // A full bucket is as good as none.
            buckets.retain(|_, bucket| self.now(*bucket, now) < self.most);
            if buckets.len() >= REMEMBERED {
                buckets.clear();
            }
        }
        let bucket = buckets.entry(key).or_insert(Bucket { tokens: self.most, at: now });
        let tokens = self.now(*bucket, now);
        *bucket = Bucket { tokens, at: now };
        if tokens < 1.0 {
            return Err(self.wait(tokens));
        }
        bucket.tokens = tokens - 1.0;
        Ok(())
    }

    fn wait(&self, tokens: f64) -> u64 {
        // At least a second, and never so many that it would not fit.
        ((1.0 - tokens) / self.per_second).ceil().max(1.0) as u64
    }
}

/// Whom an address belongs to: one network of IPv6 is one neighbour.
pub(crate) fn neighbour(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(six) => match six.to_ipv4_mapped() {
            Some(four) => IpAddr::V4(four),
            None => IpAddr::V6((u128::from(six) >> 64 << 64).into()),
        },
        four => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_may_be_and_then_one_after_the_other() {
        let buckets = Buckets::new(20, Duration::from_secs(60));
        let start = Instant::now();
        for _ in 0..20 {
            assert_eq!(buckets.take("a", start), Ok(()));
        }
        assert_eq!(buckets.take("a", start), Err(3));
        assert_eq!(buckets.take("b", start), Ok(()), "others are not hurt");
        let later = start + Duration::from_millis(3001);
        assert_eq!(buckets.take("a", later), Ok(()));
        assert_eq!(buckets.take("a", later), Err(3));
    }

    #[test]
    fn the_number_of_those_who_are_remembered_is_bounded() {
        let buckets = Buckets::new(1, Duration::from_secs(1));
        let start = Instant::now();
        for number in 0..3 * REMEMBERED {
            buckets.take(number, start).unwrap();
        }
        assert!(buckets.buckets.lock().unwrap().len() <= REMEMBERED);
    }

    #[test]
    fn a_network_of_ipv6_is_one_neighbour() {
        let of = |text: &str| neighbour(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(of("10.0.0.1"), "10.0.0.1");
    }
}
