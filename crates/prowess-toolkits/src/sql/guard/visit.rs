//! Every part of a statement is looked at, however deep.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, ObjectName, ObjectNamePart, Query, Select, SetExpr, Statement,
    TableFactor, UtilityOption, Visitor,
};

use super::functions;
use super::refusal::Refusal;
use super::scope::TableScope;
use crate::sql::dialect::SqlDialect;

/// Looks at every part of a statement, and stops at the first that is not allowed.
pub(super) struct Reader<'g> {
    pub(super) dialect: SqlDialect,
    pub(super) functions: &'g BTreeSet<String>,
    pub(super) tables: &'g TableScope,
    depth: usize,
    /// The names that `WITH` gives, for each query around.
    scopes: Vec<BTreeSet<String>>,
    /// The same for queries that are still to come, by where they are.
    ahead: HashMap<*const Query, BTreeSet<String>>,
    /// The table that comes next is a function.
    skips_relation: bool,
}

impl<'g> Reader<'g> {
    pub(super) fn new(
        dialect: SqlDialect,
        functions: &'g BTreeSet<String>,
        tables: &'g TableScope,
    ) -> Self {
        Self {
            dialect,
            functions,
            tables,
            depth: 0,
            scopes: Vec::new(),
            ahead: HashMap::new(),
            skips_relation: false,
        }
    }

    fn function(&self, name: &ObjectName) -> Result<(), Refusal> {
        functions::check(self.dialect, self.functions, name)
    }

    /// A function that gives rows and does not tell of tables that may not be read, as those of
    /// SQLite do that begin with `pragma_`.
    pub(super) fn table_function(&self, name: &ObjectName) -> Result<(), Refusal> {
        let written = name.to_string().to_ascii_lowercase();
        let written = written.trim_matches(['"', '`', '[', ']', '\'']);
        let tells_of_all = self.dialect == SqlDialect::Sqlite && written.starts_with("pragma_");
        match tells_of_all && !self.tables.is_open() && !self.functions.contains(written) {
            true => Err(Refusal::Table { name: name.to_string() }),
            false => Ok(()),
        }
    }

    fn statement(&self, statement: &Statement) -> Result<(), Refusal> {
        if self.depth > 1 {
            return Err(write(statement));
        }
        match statement {
            Statement::Explain { .. } if self.depth > 0 => Err(write(statement)),
            Statement::Explain { analyze: true, .. } => Err(analyze()),
            Statement::Explain { options: Some(options), .. }
                if !options.iter().all(is_harmless) =>
            {
                Err(analyze())
            }
            // What is explained is looked at next.
            Statement::Query(_) | Statement::Explain { .. } => Ok(()),
            Statement::ExplainTable { .. }
            | Statement::ShowTables { .. }
            | Statement::ShowColumns { .. }
                if self.depth == 0
                    && self.dialect == SqlDialect::Mysql
                    && self.tables.is_open() =>
            {
                Ok(())
            }
            _ => Err(write(statement)),
        }
    }

    fn query(&mut self, query: &Query) -> Result<(), Refusal> {
        if !query.locks.is_empty() {
            return Err(Refusal::Write { keyword: "SELECT FOR UPDATE".to_owned() });
        }
        let is_plain = query.for_clause.is_none()
            && query.settings.is_none()
            && query.format_clause.is_none()
            && query.pipe_operators.is_empty();
        if !is_plain {
            return Err(Refusal::Construct { what: "a clause of another database" });
        }
        set_expr(&query.body)
    }

    /// Which names mean what `WITH` says, and which mean tables.
    pub(super) fn enter(&mut self, query: &Query) {
        let around = self.ahead.remove(&std::ptr::from_ref(query));
        let mut scope = around.or_else(|| self.scopes.last().cloned()).unwrap_or_default();
        if let Some(with) = &query.with {
            let given = with.cte_tables.iter();
            let names: Vec<String> =
                given.map(|cte| self.dialect.folded(&cte.alias.name)).collect();
            for (at, cte) in with.cte_tables.iter().enumerate() {
                // A query that is not recursive does not see itself: its name is a table's. MySQL
                // sees no further than itself even then.
                let visible = match (with.recursive, self.dialect) {
                    (false, _) => at,
                    (true, SqlDialect::Mysql) => at + 1,
                    (true, _) => names.len(),
                };
                let mut seen = scope.clone();
                seen.extend(names[..visible].iter().cloned());
                self.ahead.insert(std::ptr::from_ref(cte.query.as_ref()), seen);
            }
            scope.extend(names);
        }
        self.scopes.push(scope);
    }

    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// The table that comes next is a function.
    pub(super) fn skip_relation(&mut self) {
        self.skips_relation = true;
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<(), Refusal> {
        match factor {
            TableFactor::Table { name, args: Some(args), .. } => {
                self.skip_relation();
                if args.settings.is_some() {
                    return Err(Refusal::Construct { what: "a clause of another database" });
                }
                self.function(name)?;
                self.table_function(name)
            }
            TableFactor::Table { with_hints, json_path, .. } => {
                match with_hints.is_empty() && json_path.is_none() {
                    true => Ok(()),
                    false => Err(Refusal::Construct { what: "a clause of another database" }),
                }
            }
            TableFactor::Function { name, .. } => {
                self.function(name)?;
                self.table_function(name)
            }
            TableFactor::Derived { .. }
            | TableFactor::NestedJoin { .. }
            | TableFactor::UNNEST { .. }
            | TableFactor::JsonTable { .. }
            | TableFactor::XmlTable { .. } => Ok(()),
            _ => Err(Refusal::Construct { what: "a table of another database" }),
        }
    }

    pub(super) fn relation(&mut self, name: &ObjectName) -> Result<(), Refusal> {
        if std::mem::take(&mut self.skips_relation) {
            return Ok(());
        }
        let mut parts = Vec::with_capacity(2);
        for part in &name.0 {
            match part {
                ObjectNamePart::Identifier(ident) => parts.push(self.dialect.folded(ident)),
                ObjectNamePart::Function(_) => {
                    return Err(Refusal::Construct { what: "a table that a function names" });
                }
            }
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        // Pages of the file, past everything that is said about tables.
        let is_raw = |name: &&str| name.eq_ignore_ascii_case("sqlite_dbpage");
        if self.dialect == SqlDialect::Sqlite && parts.last().is_some_and(is_raw) {
            return Err(Refusal::Table { name: name.to_string() });
        }
        let is_given = |name: &str| self.scopes.last().is_some_and(|scope| scope.contains(name));
        match parts.as_slice() {
            [name] if is_given(name) => Ok(()),
            parts if self.tables.allows(parts) => Ok(()),
            _ => Err(Refusal::Table { name: name.to_string() }),
        }
    }

    fn expression(&self, expression: &Expr) -> Result<(), Refusal> {
        match expression {
            Expr::Function(function) => self.function(&function.name),
            Expr::BinaryOp { op, .. } => operator(op),
            Expr::AnyOp { compare_op, .. } | Expr::AllOp { compare_op, .. } => operator(compare_op),
            Expr::Lambda(_)
            | Expr::Dictionary(_)
            | Expr::Struct { .. }
            | Expr::Map(_)
            | Expr::OuterJoin(_)
            | Expr::Prior(_)
            | Expr::Named { .. }
            | Expr::JsonAccess { .. } => {
                Err(Refusal::Construct { what: "an expression of another database" })
            }
            _ => Ok(()),
        }
    }
}

fn operator(operator: &BinaryOperator) -> Result<(), Refusal> {
    match operator {
        BinaryOperator::Assignment => {
            Err(Refusal::Construct { what: "an assignment to a variable" })
        }
        BinaryOperator::PGCustomBinaryOperator(names)
            if names.len() != 2 || !names[0].eq_ignore_ascii_case("pg_catalog") =>
        {
            Err(Refusal::Construct { what: "an operator that is not the database's own" })
        }
        _ => Ok(()),
    }
}

/// Only queries, at every depth.
fn set_expr(body: &SetExpr) -> Result<(), Refusal> {
    let keyword = match body {
        SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Query(_) => return Ok(()),
        // The parser takes it for two words, whatever comes after them.
        SetExpr::Table(_) => return Err(Refusal::Construct { what: "TABLE inside a query" }),
        SetExpr::SetOperation { left, right, .. } => {
            set_expr(left)?;
            return set_expr(right);
        }
        SetExpr::Insert(_) => "INSERT",
        SetExpr::Update(_) => "UPDATE",
        SetExpr::Delete(_) => "DELETE",
        SetExpr::Merge(_) => "MERGE",
    };
    Err(Refusal::Write { keyword: keyword.to_owned() })
}

fn analyze() -> Refusal {
    Refusal::Write { keyword: "EXPLAIN ANALYZE".to_owned() }
}

/// Options of `EXPLAIN` that do not run what is explained.
fn is_harmless(option: &UtilityOption) -> bool {
    let name = option.name.value.to_ascii_lowercase();
    let harmless =
        ["verbose", "costs", "settings", "buffers", "summary", "format", "generic_plan", "memory"];
    harmless.contains(&name.as_str())
}

/// A statement that is not a query.
pub(super) fn write(statement: &Statement) -> Refusal {
    Refusal::Write { keyword: keyword(statement) }
}

/// The word that a statement begins with, or, after `WITH`, that of what it does.
pub(super) fn keyword(statement: &Statement) -> String {
    if let Statement::Query(query) = statement {
        return match set_expr(&query.body) {
            Err(Refusal::Write { keyword }) => keyword,
            _ => "SELECT".to_owned(),
        };
    }
    let text = statement.to_string();
    let word = text.split(|it: char| !it.is_ascii_alphabetic()).find(|word| !word.is_empty());
    word.unwrap_or("STATEMENT").to_ascii_uppercase()
}

pub(super) fn flow(result: Result<(), Refusal>) -> ControlFlow<Refusal> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(refusal) => ControlFlow::Break(refusal),
    }
}

impl Visitor for Reader<'_> {
    type Break = Refusal;

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<Refusal> {
        let result = self.statement(statement);
        self.depth += 1;
        flow(result)
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Refusal> {
        self.enter(query);
        flow(self.query(query))
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Refusal> {
        self.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Refusal> {
        flow(match &select.into {
            Some(_) => Err(Refusal::Write { keyword: "SELECT INTO".to_owned() }),
            None => Ok(()),
        })
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Refusal> {
        flow(self.factor(factor))
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Refusal> {
        flow(self.relation(relation))
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Refusal> {
        flow(self.expression(expression))
    }
}
