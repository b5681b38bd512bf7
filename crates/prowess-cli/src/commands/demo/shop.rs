//! The shop that the demo plays in: its skills, its orders, its books.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prowess_catalog::{Catalog, MemoryFile, MemorySource};
use prowess_runtime::{Tool, ToolDeclaration, ToolOutcome, tool_fn};
use prowess_toolkits::BuiltInSkill;
use serde_json::{Value, json};

/// The skill that the demo is about…
pub(super) const REFUNDS: &str = "refunds";
/// …and its doc.
pub(super) const DOC: &str = "references/limits.md";
/// The skill that has something to run.
pub(super) const NUMBERS: &str = "python-math";
/// Skills that come with the program, with tools of their own.
pub(super) const SQL: &str = "write_sql";
pub(super) const SHEETS: &str = "xlsx";

/// A file that stands among the examples.
macro_rules! example {
    ($path:literal) => {
        include_str!(concat!("../../../../../examples/skills/", $path))
    };
}

/// The files of the skills: folder, path, text.
const FILES: [(&str, &str, &str); 7] = [
    (REFUNDS, "SKILL.md", include_str!("../../../demo/refunds/SKILL.md")),
    (REFUNDS, DOC, include_str!("../../../demo/refunds/references/limits.md")),
    ("late-parcels", "SKILL.md", include_str!("../../../demo/late-parcels/SKILL.md")),
    (NUMBERS, "SKILL.md", example!("python-math/SKILL.md")),
    (NUMBERS, "scripts/fib.py", example!("python-math/scripts/fib.py")),
    ("thank-you-notes", "SKILL.md", include_str!("../../../demo/thank-you-notes/SKILL.md")),
    ("weekly-report", "SKILL.md", include_str!("../../../demo/weekly-report/SKILL.md")),
];

/// Orders: number, item, price in cents.
const ORDERS: [(u64, &str, u64); 3] =
    [(1042, "stoneware teapot", 6_400), (1051, "bread knife", 3_950), (1057, "sugar bowl", 2_800)];

/// The skills of the shop.
pub(super) fn catalog() -> Catalog {
    let add = |source: MemorySource, (folder, path, text): (&str, &str, &str)| {
        source.with_file(folder, path, MemoryFile::new(text))
    };
    let built_in: Vec<BuiltInSkill> = built_in().copied().collect();
    Catalog::builder()
        .source(BuiltInSkill::source(&built_in))
        .source(FILES.into_iter().fold(MemorySource::new("demo"), add))
        .build()
}

/// The skills of the program that the demo uses.
fn built_in() -> impl Iterator<Item = &'static BuiltInSkill> {
    BuiltInSkill::ALL.iter().filter(|skill| [SQL, SHEETS].contains(&skill.name))
}

/// A line by which one knows that the text of a skill is there.
pub(super) fn telltale(skill: &str) -> &'static str {
    let own = FILES.iter().find(|(folder, path, _)| (*folder, *path) == (skill, "SKILL.md"));
    let of_program = || {
        let skill = built_in().find(|it| it.name == skill)?;
        skill.files.first().and_then(|(_, bytes)| std::str::from_utf8(bytes).ok())
    };
    let text = own.map(|(_, _, text)| *text).or_else(of_program);
    text.and_then(|text| text.lines().rfind(|line| !line.is_empty())).unwrap_or_default()
}

/// What the shop has paid, and what it has been asked to pay.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Cents that were paid out.
    pub(super) paid: u64,
    /// Cents that wait for somebody to agree, by order.
    pub(super) proposed: BTreeMap<u64, u64>,
}

/// The books, for several tools.
#[derive(Clone, Debug, Default)]
pub(super) struct Shop(Arc<Mutex<Books>>);

impl Shop {
    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools of the shop.
    pub(super) fn tools(&self) -> [Arc<dyn Tool>; 3] {
        let of_order = json!({
            "type": "object",
            "properties": {"order": {"type": "integer", "description": "Number of the order."}},
            "required": ["order"],
        });
        let mut with_cause = of_order.clone();
        with_cause["properties"]["cause"] = json!({
            "type": "string",
            "enum": ["broken", "wrong", "missing", "late"],
            "description": "Why the customer gets money back.",
        });
        let tool = |name: &str, about: &str, parameters: &Value, act: Act| {
            let declaration = ToolDeclaration::new(name, about, parameters.clone());
            let shop = self.clone();
            tool_fn(declaration, move |arguments| {
                let outcome = shop.on_order(&arguments, act);
                async move { outcome }
            })
        };
        [
            tool("find_order", "Look an order up: item, price, state.", &of_order, find),
            tool(
                "propose_refund",
                "Propose to pay an order back. Nothing is paid before a person agrees.",
                &with_cause,
                propose,
            ),
            tool("pay_refund", "Pay an order back to the customer, at once.", &of_order, pay),
        ]
    }

    fn on_order(&self, arguments: &Value, act: Act) -> ToolOutcome {
        let asked = &arguments["order"];
        let is_meant = |(number, ..): &(u64, &str, u64)| asked.as_u64() == Some(*number);
        match ORDERS.into_iter().find(is_meant) {
            Some(order) => act(&mut self.books(), order, arguments),
            None => ToolOutcome::error("unknown_order", format!("There is no order {asked}.")),
        }
    }
}

/// What a tool does with an order.
type Act = fn(&mut Books, (u64, &str, u64), &Value) -> ToolOutcome;

fn find(_: &mut Books, (number, item, cents): (u64, &str, u64), _: &Value) -> ToolOutcome {
    let price = euros(cents);
    ToolOutcome::text(format!("Order {number}: {item}, {price}, paid, delivered."))
}

fn propose(
    books: &mut Books,
    (number, _, cents): (u64, &str, u64),
    arguments: &Value,
) -> ToolOutcome {
    if books.proposed.contains_key(&number) {
        let message = format!("A refund of order {number} is proposed already.");
        return ToolOutcome::error("already_proposed", message);
    }
    books.proposed.insert(number, cents);
    let (at, amount) = (books.proposed.len(), euros(cents));
    let cause = arguments["cause"].as_str().unwrap_or("no cause");
    ToolOutcome::text(format!("Proposal {at}: {amount} for order {number} ({cause}). Not paid."))
}

fn pay(books: &mut Books, (number, _, cents): (u64, &str, u64), _: &Value) -> ToolOutcome {
    books.paid += cents;
    ToolOutcome::text(format!("Paid {} for order {number}.", euros(cents)))
}

/// `64.00 EUR`
pub(super) fn euros(cents: u64) -> String {
    format!("{}.{:02} EUR", cents / 100, cents % 100)
}

/// A tool to read files of skills with, where a dialect leaves that to the host.
pub(super) fn reading_tool() -> Arc<dyn Tool> {
    let parameters = json!({
        "type": "object",
        "properties": {"file_path": {"type": "string", "description": "Path of the file."}},
        "required": ["file_path"],
    });
    tool_fn(ToolDeclaration::new("read_file", "Read a file.", parameters), |arguments| {
        let asked = arguments["file_path"].as_str().unwrap_or_default().to_owned();
        let is_meant =
            |(folder, path, _): &(&str, &str, &str)| asked.ends_with(&format!("{folder}/{path}"));
        let found = FILES.into_iter().find(is_meant);
        async move {
            match found {
                Some((_, _, text)) => ToolOutcome::text(text),
                None => ToolOutcome::error("not_found", format!("There is no file {asked}.")),
            }
        }
    })
}
