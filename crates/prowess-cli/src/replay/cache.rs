//! An ideal prefix cache.

/// What a request takes from the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Cached {
    /// Tokens that an earlier request began with.
    pub(crate) cached: usize,
    /// All others.
    pub(crate) uncached: usize,
}

/// A prefix counts from so many tokens on…
pub(crate) const LEAST: usize = 1_024;
/// …in steps of so many.
const STEP: usize = 128;

/// What each request takes from the cache: the longest beginning that it shares with any request
/// before it.
pub(crate) fn cached(requests: &[Vec<u32>]) -> Vec<Cached> {
    requests
        .iter()
        .enumerate()
        .map(|(at, request)| {
            let shared = |earlier: &Vec<u32>| {
                earlier.iter().zip(request).take_while(|(one, other)| one == other).count()
            };
            let longest = requests[..at].iter().map(shared).max().unwrap_or(0);
            let cached = if longest < LEAST { 0 } else { longest / STEP * STEP };
            Cached { cached, uncached: request.len() - cached }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_count_in_steps_from_the_least_on() {
        let request = |shared: usize| -> Vec<u32> {
            (0..2_000).map(|at| if at < shared { 1 } else { at as u32 + 10 }).collect()
        };
        let whole = vec![1; 2_000];
        for (shared, expected) in [(1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152)] {
            let cached = cached(&[whole.clone(), request(shared)]);
            assert_eq!(cached[0], Cached { cached: 0, uncached: 2_000 });
            assert_eq!(cached[1].cached, expected, "{shared}");
        }
    }

    #[test]
    fn any_earlier_request_helps() {
        let (a, b) = (vec![1; 1_500], vec![2; 1_500]);
        assert_eq!(cached(&[a.clone(), b, a])[2], Cached { cached: 1_408, uncached: 92 });
    }
}
