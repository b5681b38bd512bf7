//! From the text of a formula to its steps. What is not plain has none.

use super::super::address::{Cell, LAST_COLUMN, LAST_ROW};
use super::super::book::same_name;
use super::grid::{Block, Place};
use super::program::{Aggregate, Binary, Comparison, Program, Step};

/// How deep formulas may be nested.
const DEEPEST: u32 = 64;
/// How many arguments a function may have. Excel takes as many.
const MOST_ARGUMENTS: u32 = 255;
/// To how many digits numbers are rounded, before and after the point.
const MOST_DIGITS: i32 = 15;

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Number,
    /// A cell, which an aggregate takes otherwise than the number in it.
    Cell,
    Logical,
}

#[derive(Clone, Copy)]
enum Operator {
    Binary(Binary),
    Compare(Comparison),
}

/// Compiles formulas of a sheet.
pub(super) struct Compiler<'a> {
    /// The sheets with cells, by their numbers.
    names: &'a [Option<String>],
    sheet: usize,
    program: &'a mut Program,
    /// How far references move that are not fixed.
    rows: i64,
    columns: i64,
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(names: &'a [Option<String>], sheet: usize, program: &'a mut Program) -> Self {
        Self { names, sheet, program, rows: 0, columns: 0, text: "", at: 0, depth: 0 }
    }

    /// Takes formulas as they are meant in another cell than theirs.
    pub(super) fn moved(mut self, from: Cell, to: Cell) -> Self {
        self.rows = i64::from(to.row) - i64::from(from.row);
        self.columns = i64::from(to.column) - i64::from(from.column);
        self
    }

    /// Adds the steps of a formula, without its `=`; none if it is not plain.
    pub(super) fn compile(mut self, text: &'a str) -> Option<()> {
        self.text = text;
        self.value()?;
        self.blanks();
        (self.at == text.len()).then_some(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Goes over a character, if it is this one.
    fn eat(&mut self, wanted: u8) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn add(&mut self, step: Step) {
        self.program.steps.push(step);
    }

    /// Operands and operators that bind at least so strongly.
    fn expression(&mut self, least: u8) -> Option<Type> {
        let mut left = self.operand()?;
        loop {
            self.blanks();
            let Some((operator, strength, length)) = self.operator() else { return Some(left) };
            if strength < least {
                return Some(left);
            }
            self.at += length;
            let right = self.expression(strength + 1)?;
            if left == Type::Logical || right == Type::Logical {
                return None;
            }
            left = match operator {
                Operator::Binary(binary) => {
                    self.add(Step::Binary(binary));
                    Type::Number
                }
                Operator::Compare(comparison) => {
                    self.add(Step::Compare(comparison));
                    Type::Logical
                }
            };
        }
    }

    /// The operator that comes next, how strongly it binds, and how long it is.
    fn operator(&self) -> Option<(Operator, u8, usize)> {
        let rest = &self.text.as_bytes()[self.at..];
        let compare = |it, length| Some((Operator::Compare(it), 0, length));
        let binary = |it, strength| Some((Operator::Binary(it), strength, 1));
        match rest {
            [b'<', b'>', ..] => compare(Comparison::Unequal, 2),
            [b'<', b'=', ..] => compare(Comparison::AtMost, 2),
            [b'>', b'=', ..] => compare(Comparison::AtLeast, 2),
            [b'<', ..] => compare(Comparison::Less, 1),
            [b'>', ..] => compare(Comparison::More, 1),
            [b'=', ..] => compare(Comparison::Equal, 1),
            [b'+', ..] => binary(Binary::Add, 1),
            [b'-', ..] => binary(Binary::Subtract, 1),
            [b'*', ..] => binary(Binary::Multiply, 2),
            [b'/', ..] => binary(Binary::Divide, 2),
            [b'^', ..] => binary(Binary::Power, 3),
            _ => None,
        }
    }

    /// One value, with the signs before it and the `%` after it.
    fn operand(&mut self) -> Option<Type> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        self.blanks();
        let mut kind = match self.peek()? {
            sign @ (b'-' | b'+') => {
                self.at += 1;
                let mut kind = self.operand()?;
                if sign == b'-' && kind != Type::Logical {
                    self.add(Step::Negate);
                    kind = Type::Number;
                }
                self.depth -= 1;
                return (kind != Type::Logical).then_some(kind);
            }
            b'(' => {
                self.at += 1;
                let kind = self.expression(0)?;
                self.close()?;
                kind
            }
            b'0'..=b'9' | b'.' => {
                let number = self.number()?;
                self.add(Step::Number(number));
                Type::Number
            }
            _ => match self.function() {
                Some(name) => self.call(name)?,
                None => {
                    let place = self.reference()?;
                    self.add(Step::Cell(place));
                    Type::Cell
                }
            },
        };
        self.blanks();
        while self.eat(b'%') {
            if kind == Type::Logical {
                return None;
            }
            self.add(Step::Percent);
            kind = Type::Number;
            self.blanks();
        }
        self.depth -= 1;
        Some(kind)
    }

    fn close(&mut self) -> Option<()> {
        self.blanks();
        self.eat(b')').then_some(())
    }

    fn comma(&mut self) -> Option<()> {
        self.blanks();
        self.eat(b',').then_some(())
    }

    fn number(&mut self) -> Option<f64> {
        let bytes = self.text.as_bytes();
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9' | b'.')) {
            self.at += 1;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(self.at + 1), Some(b'+' | b'-')));
            if matches!(bytes.get(self.at + 1 + sign), Some(b'0'..=b'9')) {
                self.at += 1 + sign;
                while matches!(self.peek(), Some(b'0'..=b'9')) {
                    self.at += 1;
                }
            }
        }
        let number = self.text[from..self.at].parse().ok();
        number.filter(|it: &f64| it.is_finite())
    }

    /// The name of a function, if one is called here; the bracket is gone over.
    fn function(&mut self) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        if rest.as_bytes().get(length) != Some(&b'(') {
            return None;
        }
        self.at += length + 1;
        Some(&rest[..length])
    }

    fn call(&mut self, name: &str) -> Option<Type> {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        if is("IF") {
            return self.condition();
        }
        if is("ROUND") {
            self.value()?;
            self.comma()?;
            let digits = self.digits()?;
            self.add(Step::Round(digits));
        } else if is("ABS") {
            self.value()?;
            self.add(Step::Absolute);
        } else if is("NOT") {
            self.logical()?;
            self.add(Step::Not);
            self.close()?;
            return Some(Type::Logical);
        } else if is("AND") || is("OR") {
            let count = self.logicals()?;
            self.add(if is("AND") { Step::All(count) } else { Step::Any(count) });
            self.close()?;
            return Some(Type::Logical);
        } else {
            let known = [
                ("SUM", Aggregate::Sum),
                ("AVERAGE", Aggregate::Average),
                ("MIN", Aggregate::Min),
                ("MAX", Aggregate::Max),
                ("COUNT", Aggregate::Count),
            ];
            let aggregate = known.into_iter().find(|it| is(it.0))?.1;
            self.aggregate()?;
            self.add(Step::End(aggregate));
        }
        self.close()?;
        Some(Type::Number)
    }

    /// A number, or a cell with one.
    fn value(&mut self) -> Option<Type> {
        self.expression(0).filter(|it| *it != Type::Logical)
    }

    fn logical(&mut self) -> Option<()> {
        (self.expression(0)? == Type::Logical).then_some(())
    }

    fn logicals(&mut self) -> Option<u32> {
        for count in 1..=MOST_ARGUMENTS {
            self.logical()?;
            if self.comma().is_none() {
                return Some(count);
            }
        }
        None
    }

    /// Digits to round to, as they are written.
    fn digits(&mut self) -> Option<i32> {
        self.blanks();
        let is_negative = self.eat(b'-');
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        let digits: i32 = self.text[from..self.at].parse().ok()?;
        let digits = if is_negative { -digits } else { digits };
        (-MOST_DIGITS..=MOST_DIGITS).contains(&digits).then_some(digits)
    }

    /// A condition and what is given if it is true and if it is not.
    fn condition(&mut self) -> Option<Type> {
        self.expression(0)?;
        self.comma()?;
        let unless = self.program.steps.len();
        self.add(Step::Unless(0));
        let first = self.value()?;
        self.comma()?;
        let go = self.program.steps.len();
        self.add(Step::Go(0));
        self.program.steps[unless] = Step::Unless(self.program.here()?);
        let second = self.value()?;
        self.program.steps[go] = Step::Go(self.program.here()?);
        self.close()?;
        Some(if first == Type::Cell { first } else { second })
    }

    /// The arguments of an aggregate, without the bracket at the end.
    fn aggregate(&mut self) -> Option<()> {
        self.add(Step::Begin);
        for _ in 0..MOST_ARGUMENTS {
            match self.referred() {
                Some(step) => self.add(step),
                None if self.expression(0)? == Type::Number => self.add(Step::TakeNumber),
                None => return None,
            }
            if self.comma().is_none() {
                return Some(());
            }
        }
        None
    }

    /// An argument that is a reference, and nothing else.
    fn referred(&mut self) -> Option<Step> {
        let from = self.at;
        let step = self.referred_step();
        self.blanks();
        if step.is_none() || !matches!(self.peek(), Some(b',' | b')')) {
            self.at = from;
            return None;
        }
        step
    }

    fn referred_step(&mut self) -> Option<Step> {
        self.blanks();
        let place = self.reference()?;
        if !self.eat(b':') {
            return Some(Step::TakeCell(place));
        }
        let last = Place::of(place.sheet(), self.cell()?)?;
        self.program.add_block(Block::between(place, last)?)
    }

    /// A cell, of this sheet or of another one.
    fn reference(&mut self) -> Option<Place> {
        let sheet = match self.qualifier() {
            Some((name, length)) => {
                let is_it = |it: &&Option<String>| {
                    it.as_deref().is_some_and(|it| it == name || same_name(it, &name))
                };
                let sheet = self.names.iter().position(|it| is_it(&it))?;
                self.at += length;
                sheet
            }
            None => self.sheet,
        };
        Place::of(sheet, self.cell()?)
    }

    /// The sheet that is named here, and how long that is with its `!`.
    fn qualifier(&self) -> Option<(std::borrow::Cow<'a, str>, usize)> {
        let rest = &self.text[self.at..];
        if let Some(quoted) = rest.strip_prefix('\'') {
            let end = quoted.find("'!")?;
            let name = &quoted[..end];
            // An apostrophe within the name is doubled; that, and several sheets, are rare.
            let is_plain = !name.is_empty() && !name.contains(['\'', '[', ':']);
            return is_plain.then_some((name.into(), end + 3));
        }
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let end = rest.find(|c| !is_word(c))?;
        (end > 0 && rest[end..].starts_with('!')).then(|| (rest[..end].into(), end + 1))
    }

    fn cell(&mut self) -> Option<Cell> {
        let is_column_fixed = self.eat(b'$');
        let mut column = 0_u32;
        while let Some(letter) = self.peek().filter(u8::is_ascii_alphabetic) {
            column = column * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1;
            if column > LAST_COLUMN {
                return None;
            }
            self.at += 1;
        }
        let is_row_fixed = self.eat(b'$');
        if self.peek() == Some(b'0') {
            return None;
        }
        let mut row = 0_u32;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            row = row * 10 + u32::from(digit - b'0');
            if row > LAST_ROW {
                return None;
            }
            self.at += 1;
        }
        // What goes on is a name, a table or a range that spills.
        let goes_on =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | '(' | '!' | '#');
        if self.text[self.at..].starts_with(goes_on) {
            return None;
        }
        let moved = |value: u32, by: i64, is_fixed: bool| {
            let by = if is_fixed { 0 } else { by };
            u32::try_from(i64::from(value) + by).ok()
        };
        if row == 0 || column == 0 {
            return None;
        }
        Cell::new(
            moved(row, self.rows, is_row_fixed)?,
            moved(column, self.columns, is_column_fixed)?,
        )
    }
}
