//! What the user and the model say in the demo.
//!
//! The words are written beforehand. What the model does is not quite: like any model it looks at
//! what it is sent, and where the text of the skill is gone it loads the skill again.

use std::sync::{Mutex, PoisonError};

use prowess_agent::{ModelError, ModelRequest, ModelResponse, Reply, ScriptedModel};
use prowess_runtime::{Dialect, Message, Part, Role, ToolCall};
use serde_json::{Map, Value, json};

use super::meter::Meter;
use super::ran::told;
use super::shop::{DOC, NUMBERS, REFUNDS, SHEETS, SQL, telltale};

/// What the user says, a turn each.
pub(super) const TURNS: [&str; 5] = [
    "Order 1042 came in pieces. Please pay it back.",
    "1057 as well: its lid is missing. That was the last refund for today.",
    "For the quiz on our parcels: what are the first ten Fibonacci numbers?",
    "How many customers do we have?",
    "Please put that into a spreadsheet.",
];

/// What the model is told first.
pub(super) const SYSTEM: &str = "You help the staff of a small kitchenware shop.";

/// What the model does in one step.
#[derive(Clone, Copy)]
enum Act {
    Find(u64),
    ReadDoc,
    Pay(u64),
    Propose(u64, &'static str),
    /// If there is something to unload.
    Unload,
    Load(&'static str),
    Run,
    Query,
    Sheet,
    /// Its last word of a turn.
    Answer,
    /// The same, about what has come of a run.
    Tell,
    /// The same, about what the database has answered.
    Count,
    /// The same, about the workbook.
    Hand,
}

impl Act {
    /// The skill whose text says how that is done.
    fn skill(self) -> Option<&'static str> {
        match self {
            Self::Find(_) | Self::Pay(_) | Self::Propose(..) => Some(REFUNDS),
            Self::Load(skill) => Some(skill),
            Self::Run => Some(NUMBERS),
            Self::Query => Some(SQL),
            Self::Sheet => Some(SHEETS),
            Self::ReadDoc | Self::Unload | Self::Answer | Self::Tell | Self::Count | Self::Hand => {
                None
            }
        }
    }
}

/// The steps of all turns.
const STEPS: [(&str, Act); 18] = [
    ("A refund: there is a skill for that.", Act::Find(1042)),
    ("The skill points to a doc. I read only that one.", Act::ReadDoc),
    ("It is not much money. I simply pay it.", Act::Pay(1042)),
    ("Not allowed. Then I propose it, as the skill says.", Act::Propose(1042, "broken")),
    ("Order 1042 is proposed. The shift lead has to agree.", Act::Answer),
    ("The same for the next one.", Act::Find(1057)),
    ("It was paid, so it can be paid back.", Act::Propose(1057, "missing")),
    ("No more refunds: the skill can go.", Act::Unload),
    ("Both are proposed, and nothing is paid yet.", Act::Answer),
    ("I could guess them. There is a skill, too.", Act::Load(NUMBERS)),
    ("It says what to run. The sandbox is the place for it.", Act::Run),
    ("", Act::Tell),
    ("The database knows. There is a skill for it.", Act::Load(SQL)),
    ("Its text shows the tables. One query is enough.", Act::Query),
    ("", Act::Count),
    ("A workbook: that is a skill as well.", Act::Load(SHEETS)),
    ("One sheet, with the question and the answer.", Act::Sheet),
    ("", Act::Hand),
];

const LOAD_AGAIN: &str = "The skill's text is gone, so I load it again.";

/// The model of the demo. It tells what a request costs, as a provider does: tokens are counted,
/// and taken from an ideal prefix cache.
pub(super) fn model(dialect: Dialect) -> ScriptedModel {
    let player = Mutex::new(Player::new(dialect));
    ScriptedModel::deciding(move |request| {
        let mut player = player.lock().unwrap_or_else(PoisonError::into_inner);
        player.reply(request).unwrap_or_else(Reply::error)
    })
}

struct Player {
    dialect: Dialect,
    /// Which step comes next.
    at: usize,
    /// How many calls were made.
    calls: usize,
    /// The skills that were loaded at some time.
    loaded: Vec<&'static str>,
    /// What the database has answered.
    customers: Option<u64>,
    meter: Meter,
}

impl Player {
    fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            at: 0,
            calls: 0,
            loaded: Vec::new(),
            customers: None,
            meter: Meter::default(),
        }
    }

    fn reply(&mut self, request: &ModelRequest) -> Result<Reply, ModelError> {
        let (said, act) = self.next_step(holds(request, REFUNDS))?;
        let mut parts = Vec::new();
        let mut calls = Vec::new();
        if let Some(skill) = act.skill().filter(|skill| !holds(request, skill)) {
            let again = self.loaded.contains(&skill);
            if again {
                parts.push(Part::Text { text: format!("{LOAD_AGAIN} ") });
            }
            calls.push(self.load(skill, again));
            self.loaded.push(skill);
        }
        let text = match act {
            Act::Tell => last_result(request).map(told).unwrap_or_default(),
            Act::Count => {
                self.customers = last_result(request).and_then(counted);
                match self.customers {
                    Some(customers) => format!("You have {customers} customers in the database."),
                    None => "The database has not told how many there are.".to_owned(),
                }
            }
            Act::Hand => match last_result(request) {
                Some(made) if made.starts_with("Created ") => {
                    format!("It is in {SHEET} until this demo ends.")
                }
                _ => "There is no workbook: the tool says why.".to_owned(),
            },
            _ => said.to_owned(),
        };
        parts.push(Part::Text { text });
        match act {
            Act::Find(order) => calls.push(("find_order".to_owned(), json!({"order": order}))),
            Act::Pay(order) => calls.push(("pay_refund".to_owned(), json!({"order": order}))),
            Act::Propose(order, cause) => {
                let arguments = json!({"order": order, "cause": cause});
                calls.push(("propose_refund".to_owned(), arguments));
            }
            Act::ReadDoc => calls.push(self.read_doc()),
            Act::Unload => calls.extend(self.own("unload_skill", &json!({"skill": REFUNDS}))),
            Act::Run => calls.push(run()),
            Act::Query => {
                calls.push((
                    "sql_query".to_owned(),
                    json!({"query": "SELECT COUNT(*) FROM customers"}),
                ));
            }
            Act::Sheet => calls.push(sheet(self.customers)),
            Act::Load(_) | Act::Answer | Act::Tell | Act::Count | Act::Hand => {}
        }
        for (tool, arguments) in calls {
            self.calls += 1;
            let call = ToolCall::new(format!("call-{}", self.calls), tool, arguments);
            parts.push(Part::ToolCall(call));
        }
        let message = Message::new(Role::Assistant, parts);
        let usage = self.meter.usage(request, &message)?;
        Ok(Reply::response(ModelResponse::new(message).with_usage(usage)))
    }

    /// The next step that has something to do.
    fn next_step(&mut self, is_there: bool) -> Result<(&'static str, Act), ModelError> {
        let can_unload = is_there && self.dialect.tool("unload_skill").is_some();
        while let Some(step) = STEPS.get(self.at) {
            self.at += 1;
            if can_unload || !matches!(step.1, Act::Unload) {
                return Ok(*step);
            }
        }
        let message = "the demo has no more steps".to_owned();
        Err(ModelError::Unscripted { message })
    }

    /// A call of a load tool in the words of the dialect; what it has no word for is left out.
    fn own(&self, tool: &str, arguments: &Value) -> Option<(String, Value)> {
        let name = self.dialect.tool(tool)?.to_owned();
        let mut renamed = Map::new();
        for (own, value) in arguments.as_object().into_iter().flatten() {
            if let Some(parameter) = self.dialect.parameter(tool, own) {
                renamed.insert(parameter.to_owned(), value.clone());
            }
        }
        Some((name, Value::Object(renamed)))
    }

    fn load(&self, skill: &str, again: bool) -> (String, Value) {
        let arguments = match again && skill == REFUNDS {
            true => json!({"skill": skill, "docs": [DOC]}),
            false => json!({"skill": skill}),
        };
        // Every dialect has this tool.
        self.own("load_skill", &arguments).unwrap_or_default()
    }

    /// Reads the doc: with the tool for docs, with that for any resource, or with the host's own.
    fn read_doc(&self) -> (String, Value) {
        self.own("skill_select_docs", &json!({"skill": REFUNDS, "docs": [DOC]}))
            .or_else(|| self.own("load_skill_detail", &json!({"skill": REFUNDS, "resource": DOC})))
            .unwrap_or_else(|| {
                ("read_file".to_owned(), json!({"file_path": format!("{REFUNDS}/{DOC}")}))
            })
    }
}

/// The script of [`NUMBERS`], as its text says.
fn run() -> (String, Value) {
    let arguments = json!({
        "skill": NUMBERS,
        "command": "python3 scripts/fib.py 10 out/fib.txt",
        "output_files": ["out/fib.txt"],
    });
    ("skill_run".to_owned(), arguments)
}

/// Where the workbook is put.
const SHEET: &str = "out/customers.xlsx";

/// A workbook of the question and the answer.
fn sheet(customers: Option<u64>) -> (String, Value) {
    let rows = json!([["Question", "Answer"], ["How many customers do we have?", customers]]);
    let sheets = json!([{"name": "Customers", "header": true, "rows": rows}]);
    ("xlsx_create".to_owned(), json!({"path": SHEET, "sheets": sheets}))
}

/// The number in a table of one row and one column.
fn counted(content: &str) -> Option<u64> {
    let cell = |line: &str| line.trim().trim_matches('|').trim().parse().ok();
    content.lines().find_map(cell)
}

/// Whether the text of a skill is in a request, wherever it stands.
fn holds(request: &ModelRequest, skill: &str) -> bool {
    let line = telltale(skill);
    let mut results = request.messages.iter().flat_map(Message::tool_results);
    request.system.contains(line)
        || results.any(|result| result.content.contains(line))
        || request.messages.iter().any(|message| message.text().contains(line))
}

/// What the last call has brought.
fn last_result(request: &ModelRequest) -> Option<&str> {
    request.messages.iter().flat_map(Message::tool_results).last().map(|it| it.content.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_known_by_a_line_of_its_body() {
        let request = |system: &str| ModelRequest::new([]).with_system(system);
        for skill in [REFUNDS, NUMBERS, SQL, SHEETS] {
            assert!(telltale(skill).len() > 20, "{}", telltale(skill));
            assert!(holds(&request(&format!("# Text\n{}\n", telltale(skill))), skill));
            assert!(!holds(&request("loaded: refunds, python-math"), skill));
        }
        assert!(!holds(&request(telltale(REFUNDS)), NUMBERS));
    }
}
