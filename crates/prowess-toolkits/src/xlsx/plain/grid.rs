//! The cells of a workbook, by columns.

use super::super::address::Cell;

/// Where a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    sheet: u16,
    column: u16,
    row: u32,
}

impl Place {
    pub(super) fn of(sheet: usize, cell: Cell) -> Option<Self> {
        let (sheet, column) = (u16::try_from(sheet).ok()?, u16::try_from(cell.column).ok()?);
        Some(Self { sheet, column: column.checked_sub(1)?, row: cell.row.checked_sub(1)? })
    }

    pub(super) fn sheet(self) -> usize {
        usize::from(self.sheet)
    }
}

/// Cells from one place to another of the same sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    first: Place,
    last: Place,
}

impl Block {
    /// The cells between two, if they stand in their order.
    pub(super) fn between(first: Place, last: Place) -> Option<Self> {
        let is_ordered = first.column <= last.column && first.row <= last.row;
        is_ordered.then_some(Self { first, last })
    }
}

/// What a cell holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Slot {
    #[default]
    Empty,
    Number,
    /// A text or a logical value.
    Other,
    /// A formula; its number stands where its value will.
    Waiting,
    /// A formula that needs others, which are calculated now.
    Open,
}

#[derive(Clone, Debug, Default)]
struct Column {
    slots: Vec<Slot>,
    values: Vec<f64>,
    /// How many formulas have no value yet.
    waiting: usize,
}

/// How many cells a column takes the room of.
const COLUMN_CELLS: u64 = 8;

/// All cells.
#[derive(Debug)]
pub(super) struct Grid {
    sheets: Vec<Vec<Column>>,
    /// How many more cells there is room for.
    room: u64,
}

impl Grid {
    pub(super) fn new(sheets: usize, room: u64) -> Self {
        Self { sheets: vec![Vec::new(); sheets], room }
    }

    /// Puts something into a cell; none if something is there, or if there is no room.
    pub(super) fn put(&mut self, place: Place, slot: Slot, value: f64) -> Option<()> {
        let columns = self.sheets.get_mut(place.sheet())?;
        let (column, row) = (usize::from(place.column), place.row as usize);
        if columns.len() <= column {
            let more = (column + 1 - columns.len()) as u64;
            self.room = self.room.checked_sub(more * COLUMN_CELLS)?;
            columns.resize_with(column + 1, Column::default);
        }
        let column = &mut columns[column];
        if column.slots.len() <= row {
            let more = row + 1 - column.slots.len();
            self.room = self.room.checked_sub(more as u64)?;
            column.slots.resize(row + 1, Slot::Empty);
            column.values.resize(row + 1, 0.0);
        }
        if column.slots[row] != Slot::Empty {
            return None;
        }
        column.slots[row] = slot;
        column.values[row] = value;
        column.waiting += usize::from(slot == Slot::Waiting);
        Some(())
    }

    fn column(&self, sheet: u16, column: u16) -> Option<&Column> {
        self.sheets.get(usize::from(sheet))?.get(usize::from(column))
    }

    pub(super) fn get(&self, place: Place) -> (Slot, f64) {
        let row = place.row as usize;
        let column = self.column(place.sheet, place.column);
        match column.filter(|it| row < it.slots.len()) {
            Some(column) => (column.slots[row], column.values[row]),
            None => (Slot::Empty, 0.0),
        }
    }

    pub(super) fn number(&self, place: Place) -> f64 {
        self.get(place).1
    }

    /// Says that a formula needs others.
    pub(super) fn open(&mut self, place: Place) {
        let column = &mut self.sheets[place.sheet()][usize::from(place.column)];
        column.slots[place.row as usize] = Slot::Open;
    }

    /// Gives a formula its value.
    pub(super) fn settle(&mut self, place: Place, value: f64) {
        let column = &mut self.sheets[place.sheet()][usize::from(place.column)];
        column.slots[place.row as usize] = Slot::Number;
        column.values[place.row as usize] = value;
        column.waiting -= 1;
    }

    /// Calls a function for every formula of a block that has no value yet, and says how many
    /// cells were looked at.
    pub(super) fn unsettled(&self, block: Block, mut call: impl FnMut(Slot, f64)) -> u64 {
        let mut seen = 0;
        for column in block.first.column..=block.last.column {
            let Some(column) = self.column(block.first.sheet, column) else { break };
            if column.waiting == 0 {
                continue;
            }
            let (slots, values) = column.rows(block);
            seen += slots.len() as u64;
            for (slot, value) in slots.iter().zip(values) {
                if matches!(slot, Slot::Waiting | Slot::Open) {
                    call(*slot, *value);
                }
            }
        }
        seen
    }

    /// The columns of a block that there are, and the row where the last of them ends.
    fn within(&self, block: Block) -> (&[Column], usize) {
        let columns = self.sheets.get(block.first.sheet()).map_or(&[][..], Vec::as_slice);
        let from = usize::from(block.first.column).min(columns.len());
        let to = (usize::from(block.last.column) + 1).min(columns.len());
        let columns = &columns[from..to];
        let longest = columns.iter().map(|it| it.slots.len()).max().unwrap_or(0);
        (columns, (block.last.row as usize + 1).min(longest))
    }

    /// How many cells of a block are looked at.
    pub(super) fn size(&self, block: Block) -> u64 {
        let (columns, to) = self.within(block);
        (to.saturating_sub(block.first.row as usize) * columns.len().max(1)) as u64
    }

    /// Calls a function for every number of a block, row by row, and says how many cells were
    /// looked at.
    pub(super) fn each(&self, block: Block, mut call: impl FnMut(f64)) -> u64 {
        if block.first.column == block.last.column {
            let column = self.column(block.first.sheet, block.first.column);
            let Some((slots, values)) = column.map(|it| it.rows(block)) else { return 1 };
            for (slot, value) in slots.iter().zip(values) {
                if *slot == Slot::Number {
                    call(*value);
                }
            }
            return slots.len() as u64;
        }
        let (columns, to) = self.within(block);
        for row in block.first.row as usize..to {
            for column in columns {
                if column.slots.get(row) == Some(&Slot::Number) {
                    call(column.values[row]);
                }
            }
        }
        (to.saturating_sub(block.first.row as usize) * columns.len()) as u64
    }

    /// All numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = f64> {
        self.sheets.iter().flatten().flat_map(|column| {
            let cells = column.slots.iter().zip(&column.values);
            cells.filter(|it| *it.0 == Slot::Number).map(|it| *it.1)
        })
    }
}

impl Column {
    fn rows(&self, block: Block) -> (&[Slot], &[f64]) {
        let to = (block.last.row as usize + 1).min(self.slots.len());
        let from = (block.first.row as usize).min(to);
        (&self.slots[from..to], &self.values[from..to])
    }
}
