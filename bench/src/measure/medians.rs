//! The time of short things: contenders take turns, medians count.

use std::hint::black_box;
use std::time::Instant;

/// How often the contenders take turns.
const ROUNDS: usize = 21;
/// How long one turn lasts, about.
const TURN_SECONDS: f64 = 0.02;

/// Something to time.
pub(crate) type Contender<'a> = &'a dyn Fn();

/// The median seconds per call of each contender.
pub(crate) fn medians<const N: usize>(contenders: [Contender<'_>; N]) -> [f64; N] {
    let calls = contenders.map(|contender| {
        let once = seconds(contender, 200) / 200.0;
        ((TURN_SECONDS / once.max(1e-9)) as usize).max(1)
    });
    let mut samples: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        for at in 0..N {
            samples[at].push(seconds(contenders[at], calls[at]) / calls[at] as f64);
        }
    }
    samples.map(|mut samples| {
        samples.sort_by(f64::total_cmp);
        samples[ROUNDS / 2]
    })
}

pub(crate) fn seconds(contender: Contender<'_>, calls: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(contender)();
    }
    start.elapsed().as_secs_f64()
}
