//! Formulas that refer to themselves in a circle, found in their texts.

use std::collections::BTreeMap;

use super::address::{Area, Cell, split_sheet};
use super::book::{Book, same_name};
use super::findings::{Findings, Level};
use super::formula::{Kind, Token, tokens};
use super::functions::plain_function;

/// Functions that ask where a cell is, and not what it holds.
const PLACES: [&str; 9] =
    ["COLUMN", "COLUMNS", "FORMULATEXT", "ISFORMULA", "ISREF", "ROW", "ROWS", "SHEET", "SHEETS"];

/// How many cells of a circle are named.
const NAMED: usize = 8;

/// The formulas of a workbook, and what they refer to.
pub(super) struct References {
    formulas: Vec<Formula>,
    /// By sheet and column, the rows with formulas.
    places: BTreeMap<(usize, u32), Vec<(u32, usize)>>,
    /// How many references may still be followed.
    left: u64,
    is_whole: bool,
}

struct Formula {
    sheet: usize,
    cell: Cell,
    needs: Vec<(usize, Area)>,
}

/// What was found.
pub(super) struct Found {
    /// Of each circle its cells, by the number of their sheet.
    circles: Vec<Vec<(usize, Cell)>>,
    /// Whether all references were followed.
    is_whole: bool,
}

impl Found {
    /// Adds the circles to what a check finds, each at its first cell.
    pub(super) fn tell(self, book: &Book, findings: &mut Findings) {
        for circle in self.circles {
            let place = |(sheet, cell): &(usize, Cell)| {
                let name = book.sheets.get(*sheet).map_or("", |it| it.name.as_str());
                format!("{name}!{cell}")
            };
            let mut cells: Vec<String> = circle.iter().take(NAMED).map(place).collect();
            let first = cells.first().cloned().unwrap_or_default();
            if circle.len() > NAMED {
                cells.push(format!("{} more", circle.len() - NAMED));
            }
            let detail = format!("formulas refer to themselves in a circle: {}", cells.join(", "));
            findings.add("circular_reference", Level::Error, first, &detail);
        }
        if !self.is_whole {
            let detail = "there are more references than `max_references`; circles may be left";
            findings.add("circles_not_checked", Level::Info, "workbook", detail);
        }
    }
}

impl References {
    /// Follows so many references, and no more.
    pub(super) fn new(most: u64) -> Self {
        Self { formulas: Vec::new(), places: BTreeMap::new(), left: most, is_whole: true }
    }

    /// Takes a formula, without its `=`, of a cell of a sheet.
    pub(super) fn add(&mut self, book: &Book, sheet: usize, cell: Cell, formula: &str) {
        let needs = needs(book, sheet, formula);
        if !self.follow(needs.len() as u64) {
            return;
        }
        let place = self.places.entry((sheet, cell.column)).or_default();
        place.push((cell.row, self.formulas.len()));
        self.formulas.push(Formula { sheet, cell, needs });
    }

    /// The circles. A formula is in one of them at most.
    pub(super) fn find(mut self) -> Found {
        for rows in self.places.values_mut() {
            rows.sort_unstable();
        }
        let mut state = vec![State::New; self.formulas.len()];
        let mut circles = Vec::new();
        for first in 0..self.formulas.len() {
            if state[first] == State::New && !self.walk(first, &mut state, &mut circles) {
                break;
            }
        }
        Found { circles, is_whole: self.is_whole }
    }

    /// Goes from formula to formula; false if there are too many references.
    fn walk(
        &mut self,
        first: usize,
        state: &mut [State],
        circles: &mut Vec<Vec<(usize, Cell)>>,
    ) -> bool {
        let Some(targets) = self.targets(first) else { return false };
        let mut way = vec![(first, targets)];
        state[first] = State::Open;
        while let Some((formula, targets)) = way.last_mut() {
            let Some(next) = targets.pop() else {
                state[*formula] = State::Done;
                way.pop();
                continue;
            };
            match state[next] {
                State::New => {
                    let Some(targets) = self.targets(next) else { return false };
                    state[next] = State::Open;
                    way.push((next, targets));
                }
                State::Open => {
                    let from = way.iter().position(|(it, _)| *it == next).unwrap_or(0);
                    let circle: Vec<usize> = way[from..].iter().map(|(it, _)| *it).collect();
                    circles.push(circle.iter().map(|it| self.place(*it)).collect());
                    // Another circle through the same cells tells nothing new.
                    for formula in circle {
                        state[formula] = State::Circular;
                    }
                }
                State::Done | State::Circular => {}
            }
        }
        true
    }

    fn place(&self, formula: usize) -> (usize, Cell) {
        let formula = &self.formulas[formula];
        (formula.sheet, formula.cell)
    }

    /// The formulas that one needs; none if these are too many.
    fn targets(&mut self, formula: usize) -> Option<Vec<usize>> {
        let mut found = Vec::new();
        for (sheet, area) in &self.formulas[formula].needs {
            let columns = (*sheet, area.first.column)..=(*sheet, area.last.column);
            for rows in self.places.range(columns).map(|(_, rows)| rows) {
                let from = rows.partition_point(|(row, _)| *row < area.first.row);
                let to = rows.partition_point(|(row, _)| *row <= area.last.row);
                found.extend(rows[from..to].iter().map(|(_, formula)| *formula));
                if found.len() as u64 > self.left {
                    break;
                }
            }
        }
        self.follow(found.len() as u64).then_some(found)
    }

    /// Whether so many more references may be followed.
    fn follow(&mut self, count: u64) -> bool {
        let left = self.left.checked_sub(count);
        self.is_whole &= left.is_some();
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Circular,
    Done,
}

/// The cells whose values a formula needs, as far as it names them.
fn needs(book: &Book, own: usize, formula: &str) -> Vec<(usize, Area)> {
    let tokens = tokens(formula);
    let mut found = Vec::new();
    // Whether the function asks for a place, for each bracket that is open.
    let mut asks: Vec<bool> = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match (token.kind, token.text) {
            (Kind::Other, "(") => {
                let before = at.checked_sub(1).and_then(|it| tokens.get(it));
                let is_place = before.is_some_and(|it| {
                    it.kind == Kind::Function && PLACES.contains(&plain_function(it.text).as_str())
                });
                asks.push(is_place || asks.last() == Some(&true));
            }
            (Kind::Other, ")") => {
                asks.pop();
            }
            (Kind::Cell | Kind::Lines, _) if asks.last() != Some(&true) => {
                let sheet = sheet_of(book, own, &tokens, at);
                let (area, length) = area_of(&tokens[at..]);
                if let (Some(sheet), Some(area)) = (sheet, area) {
                    found.push((sheet, area));
                }
                at += length - 1;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The sheet that is meant by a reference.
fn sheet_of(book: &Book, own: usize, tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).and_then(|it| tokens.get(it));
    let Some(qualifier) = before.filter(|it| it.kind == Kind::Sheet) else { return Some(own) };
    let (named, _) = split_sheet(qualifier.text)?;
    let named = named?;
    book.sheets.iter().position(|it| same_name(&it.name, &named))
}

/// The area that begins there, and how many pieces it is written with.
fn area_of(tokens: &[Token<'_>]) -> (Option<Area>, usize) {
    match tokens {
        [from, colon, to, ..] if colon.text == ":" && to.kind == Kind::Cell => {
            (Area::parse(&format!("{}:{}", from.text, to.text)), 3)
        }
        [one, ..] => (Area::parse(one.text), 1),
        [] => (None, 1),
    }
}
