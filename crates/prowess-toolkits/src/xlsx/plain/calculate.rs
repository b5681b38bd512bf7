//! The steps of formulas taken, each formula after those that it needs.

use std::time::{Duration, Instant};

use super::grid::{Grid, Place, Slot};
use super::program::{Aggregate, Binary, Comparison, Program, Step};
use super::round::rounded;

/// How many cells may be looked at: what takes more is left to the engine, which can be stopped.
const MOST_CELLS: u64 = 500_000_000;
/// How many formulas may be waited for at once.
const MOST_WAITING: usize = 1 << 22;
/// After how many cells the clock is looked at.
const CLOCK_CELLS: u64 = 1 << 20;

/// Calculates all formulas; none if one gives something else than a number, or needs itself, or if
/// it takes longer than this.
pub(super) fn calculate(grid: &mut Grid, program: &Program, most: Duration) -> Option<()> {
    let start = Instant::now();
    let mut next_look = 0;
    let mut run = Run { grid, program, numbers: Vec::new(), totals: Vec::new(), seen: 0 };
    let mut stack = Vec::new();
    for first in 0..program.len() {
        stack.push(first);
        while let Some(formula) = stack.last().copied() {
            let place = program.place(formula);
            if run.grid.get(place).0 == Slot::Number {
                stack.pop();
                continue;
            }
            run.grid.open(place);
            let before = stack.len();
            run.needs(formula, &mut stack)?;
            if stack.len() > MOST_WAITING {
                return None;
            }
            // The first ones first: mostly the others need them.
            stack[before..].reverse();
            if stack.len() == before {
                let value = run.evaluate(formula)?;
                run.grid.settle(place, value);
                stack.pop();
            }
            if run.seen >= next_look {
                next_look = run.seen + CLOCK_CELLS;
                if run.seen > MOST_CELLS || start.elapsed() >= most {
                    return None;
                }
            }
        }
    }
    Some(())
}

struct Run<'r> {
    grid: &'r mut Grid,
    program: &'r Program,
    numbers: Vec<f64>,
    totals: Vec<Total>,
    /// How many cells were looked at.
    seen: u64,
}

/// What an aggregate has taken.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    sum: f64,
    count: u64,
    least: f64,
    most: f64,
}

impl Total {
    fn take(&mut self, number: f64) {
        self.sum += number;
        if self.count == 0 || number < self.least {
            self.least = number;
        }
        if self.count == 0 || number > self.most {
            self.most = number;
        }
        self.count += 1;
    }

    #[allow(clippy::cast_precision_loss, reason = "there are fewer cells")]
    fn end(self, aggregate: Aggregate) -> Option<f64> {
        match aggregate {
            Aggregate::Average => (self.count > 0).then(|| self.sum / self.count as f64),
            Aggregate::Count => Some(self.count as f64),
            Aggregate::Max => Some(self.most),
            Aggregate::Min => Some(self.least),
            Aggregate::Sum => Some(self.sum),
        }
    }
}

impl Run<'_> {
    /// Puts the formulas on the stack that have to be calculated before this one; none if it
    /// needs itself. Both ways of a condition count, whichever is taken.
    fn needs(&mut self, formula: u32, stack: &mut Vec<u32>) -> Option<()> {
        let (from, to) = self.program.bounds(formula);
        let mut is_circle = false;
        let mut need = |slot: Slot, value: f64| match slot {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is one")]
            Slot::Waiting => stack.push(value as u32),
            Slot::Open => is_circle = true,
            Slot::Empty | Slot::Number | Slot::Other => {}
        };
        for step in &self.program.steps[from..to] {
            match *step {
                Step::Cell(place) | Step::TakeCell(place) => {
                    let (slot, value) = self.grid.get(place);
                    need(slot, value);
                }
                Step::TakeBlock(block) => {
                    self.seen += self.grid.unsettled(self.program.block(block), &mut need);
                    if self.seen > MOST_CELLS {
                        return None;
                    }
                }
                _ => {}
            }
        }
        (!is_circle).then_some(())
    }

    /// The value of a formula, if it is a number.
    fn evaluate(&mut self, formula: u32) -> Option<f64> {
        let (mut at, to) = self.program.bounds(formula);
        self.numbers.clear();
        self.totals.clear();
        self.seen += (to - at) as u64;
        while at < to {
            let step = self.program.steps[at];
            at += 1;
            match step {
                Step::Unless(next) => {
                    if self.pop()? == 0.0 {
                        at = next as usize;
                    }
                }
                Step::Go(next) => at = next as usize,
                step => self.step(step)?,
            }
        }
        // There is only one zero.
        Some(self.pop()? + 0.0)
    }

    fn step(&mut self, step: Step) -> Option<()> {
        let number = match step {
            Step::Number(number) => number,
            Step::Cell(place) => self.operand(place)?,
            Step::Binary(binary) => {
                let (right, left) = (self.pop()?, self.pop()?);
                binary.of(left, right)?
            }
            Step::Compare(comparison) => {
                let (right, left) = (self.pop()?, self.pop()?);
                f64::from(comparison.holds(left, right))
            }
            Step::Negate => -self.pop()?,
            Step::Percent => self.pop()? / 100.0,
            Step::Absolute => self.pop()?.abs(),
            Step::Round(digits) => rounded(self.pop()?, digits)?,
            Step::Not => f64::from(self.pop()? == 0.0),
            Step::All(count) => f64::from(self.popped(count)?.iter().all(|it| *it != 0.0)),
            Step::Any(count) => f64::from(self.popped(count)?.iter().any(|it| *it != 0.0)),
            Step::Begin => {
                self.totals.push(Total::default());
                return Some(());
            }
            Step::TakeNumber => {
                let number = self.pop()?;
                self.totals.last_mut()?.take(number);
                return Some(());
            }
            Step::TakeCell(place) => {
                let (slot, number) = self.grid.get(place);
                return match slot {
                    Slot::Number => {
                        self.totals.last_mut()?.take(number);
                        Some(())
                    }
                    Slot::Empty => Some(()),
                    Slot::Other | Slot::Waiting | Slot::Open => None,
                };
            }
            Step::TakeBlock(block) => {
                let block = self.program.block(block);
                if self.seen + self.grid.size(block) > MOST_CELLS {
                    return None;
                }
                let total = self.totals.last_mut()?;
                self.seen += self.grid.each(block, |it| total.take(it));
                return Some(());
            }
            Step::End(aggregate) => self.totals.pop()?.end(aggregate)?,
            Step::Unless(_) | Step::Go(_) => return None,
        };
        self.numbers.push(number);
        number.is_finite().then_some(())
    }

    fn pop(&mut self) -> Option<f64> {
        self.numbers.pop()
    }

    fn popped(&mut self, count: u32) -> Option<Vec<f64>> {
        let from = self.numbers.len().checked_sub(count as usize)?;
        Some(self.numbers.split_off(from))
    }

    /// What a cell is where a number is needed. An empty one is zero.
    fn operand(&self, place: Place) -> Option<f64> {
        match self.grid.get(place) {
            (Slot::Number, number) => Some(number),
            (Slot::Empty, _) => Some(0.0),
            (Slot::Other | Slot::Waiting | Slot::Open, _) => None,
        }
    }
}

impl Binary {
    fn of(self, left: f64, right: f64) -> Option<f64> {
        match self {
            Self::Add => Some(left + right),
            Self::Subtract => Some(left - right),
            Self::Multiply => Some(left * right),
            Self::Divide => (right != 0.0).then(|| left / right),
            // Of zero and of roots of what is below zero the engine knows more.
            Self::Power => (left > 0.0).then(|| left.powf(right)),
        }
    }
}

impl Comparison {
    #[allow(clippy::float_cmp, reason = "the engine compares all digits, too")]
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Unequal => left != right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::More => left > right,
            Self::AtLeast => left >= right,
        }
    }
}
