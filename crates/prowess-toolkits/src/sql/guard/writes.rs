//! Which tables a write touches. What else it does, the host sees before it approves it.

use std::ops::ControlFlow;

use sqlparser::ast::{
    CascadeOption, ObjectName, Query, SetExpr, Statement, TableFactor, Truncate, Visitor,
};

use super::refusal::Refusal;
use super::visit::{Reader, flow};

/// Holds every table of a write against the lists, and stops at the first that is not in them.
pub(super) struct Writer<'g>(pub(super) Reader<'g>);

/// Statements whose tables are all seen. Over a connection with lists no other can be approved.
fn is_seen(statement: &Statement) -> bool {
    match statement {
        Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Merge(_) => true,
        Statement::Truncate(Truncate { cascade, .. }) => *cascade != Some(CascadeOption::Cascade),
        _ => false,
    }
}

/// Without tables that the parser does not tell.
fn is_told(body: &SetExpr) -> bool {
    match body {
        SetExpr::Table(_) => false,
        SetExpr::SetOperation { left, right, .. } => is_told(left) && is_told(right),
        _ => true,
    }
}

impl Visitor for Writer<'_> {
    type Break = Refusal;

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<Refusal> {
        flow(match is_seen(statement) {
            true => Ok(()),
            false => Err(Refusal::Listed),
        })
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Refusal> {
        self.0.enter(query);
        flow(match is_told(&query.body) {
            true => Ok(()),
            false => Err(Refusal::Construct { what: "TABLE inside a query" }),
        })
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Refusal> {
        self.0.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Refusal> {
        match factor {
            TableFactor::Table { name, args: Some(_), .. } => {
                self.0.skip_relation();
                flow(self.0.table_function(name))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Refusal> {
        flow(self.0.relation(relation))
    }
}
