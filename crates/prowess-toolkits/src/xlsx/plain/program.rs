//! What formulas are compiled to: steps over a stack of numbers.

use super::grid::{Block, Place};

/// A step of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Number(f64),
    Cell(Place),
    Binary(Binary),
    Compare(Comparison),
    Negate,
    Percent,
    Absolute,
    Round(i32),
    Not,
    /// Takes so many logical values: whether all are true, whether any is.
    All(u32),
    Any(u32),
    /// Takes a condition, and goes on at another step unless it is true.
    Unless(u32),
    /// Goes on at another step.
    Go(u32),
    /// Begins an aggregate, gives it a number, a cell, a block, and ends it.
    Begin,
    TakeNumber,
    TakeCell(Place),
    TakeBlock(u32),
    End(Aggregate),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Average,
    Count,
    Max,
    Min,
    Sum,
}

/// All formulas, in the order in which they were found.
#[derive(Debug)]
pub(super) struct Program {
    formulas: Vec<(Place, u32)>,
    /// How many steps all formulas but the last may have.
    most_steps: usize,
    pub(super) steps: Vec<Step>,
    blocks: Vec<Block>,
}

impl Program {
    pub(super) fn new(most_steps: usize) -> Self {
        Self { formulas: Vec::new(), most_steps, steps: Vec::new(), blocks: Vec::new() }
    }

    /// Begins a formula, and gives its number; none if there are too many steps.
    pub(super) fn begin(&mut self, place: Place) -> Option<u32> {
        if self.steps.len() > self.most_steps {
            return None;
        }
        let number = u32::try_from(self.formulas.len()).ok()?;
        self.formulas.push((place, self.here()?));
        Some(number)
    }

    /// Where the next step will be.
    pub(super) fn here(&self) -> Option<u32> {
        u32::try_from(self.steps.len()).ok()
    }

    pub(super) fn add_block(&mut self, block: Block) -> Option<Step> {
        let number = u32::try_from(self.blocks.len()).ok()?;
        self.blocks.push(block);
        Some(Step::TakeBlock(number))
    }

    pub(super) fn block(&self, number: u32) -> Block {
        self.blocks[number as usize]
    }

    /// Where the formulas are.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.formulas.iter().map(|it| it.0)
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.formulas.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn place(&self, formula: u32) -> Place {
        self.formulas[formula as usize].0
    }

    /// The first step of a formula, and the one after its last.
    pub(super) fn bounds(&self, formula: u32) -> (usize, usize) {
        let from = self.formulas[formula as usize].1;
        let to = self.formulas.get(formula as usize + 1).map(|it| it.1 as usize);
        (from as usize, to.unwrap_or(self.steps.len()))
    }
}
