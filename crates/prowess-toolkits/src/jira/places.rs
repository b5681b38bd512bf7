//! `list_projects`, `get_boards`, `get_sprints`.

use prowess_runtime::ToolOutcome;
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::client::{Client, Deadline, Patience};
use super::endpoint::{Read, Window};
use super::error::JiraError;
use super::fields::{id, text};
use super::listed::Listed;
use super::page::Page;
use super::settings::JiraSettings;
use super::text::{cell, datum, line};

const STATES: &[&str] = &["active", "future", "closed", "all"];
const BOARD_TYPES: &[&str] = &["scrum", "kanban", "simple", "all"];

/// `all` is no filter.
fn filter(word: &'static str) -> Option<&'static str> {
    Some(word).filter(|word| *word != "all")
}

fn shown_id(value: &Value) -> String {
    id(value).map_or("?".to_owned(), |id| id.to_string())
}

pub(super) fn listed_project(project: &Value, settings: &JiraSettings) -> (String, Value) {
    let most = settings.field();
    let key = text(project, "/key").unwrap_or("?");
    let name = text(project, "/name").unwrap_or("(no name)");
    let shown = format!("- **{}**: {}", line(key, most), line(name, most));
    (shown, json!({"key": datum(key, most), "name": datum(name, most), "id": id(project)}))
}

impl Client {
    /// Projects, by key.
    pub(super) async fn projects(
        &self,
        window: Window,
        deadline: Deadline,
        patience: Patience,
    ) -> Result<Page, JiraError> {
        let version = self.version_with(deadline, patience).await?;
        let answer = self.read(&Read::projects(version, window), deadline, patience).await?;
        Page::by_offset(answer, "values", window)
    }

    pub(super) async fn list_projects(
        &self,
        arguments: Arguments<'_>,
    ) -> Result<ToolOutcome, JiraError> {
        let window = arguments.window()?;
        let page = self.projects(window, self.deadline(), Patience::Retry).await?;
        let entries = page.items.iter().map(|project| listed_project(project, &self.settings));
        let listed = Listed {
            entries: entries.collect(),
            name: "projects",
            between: "\n",
            none: "No projects found or accessible.".to_owned(),
            page,
        };
        Ok(listed.tell(&self.settings, |_, _| "**Available Projects:**".to_owned()))
    }

    pub(super) async fn get_boards(
        &self,
        arguments: Arguments<'_>,
    ) -> Result<ToolOutcome, JiraError> {
        let project = arguments.project_key()?;
        let kind = filter(arguments.word("board_type", "scrum", BOARD_TYPES)?);
        let window = arguments.window()?;
        let read = Read::boards(project.as_ref(), kind, window);
        let answer = self.read(&read, self.deadline(), Patience::Retry).await?;
        let page = Page::by_offset(answer, "values", window)?;
        let most = self.settings.field();
        let entry = |board: &Value| {
            let name = text(board, "/name").unwrap_or("(no name)");
            let kind = text(board, "/type").unwrap_or("unknown");
            let project = ["/location/projectName", "/location/displayName", "/location/name"];
            let project = project.into_iter().find_map(|pointer| text(board, pointer));
            let shown = format!(
                "- **{}** (ID: {})\n  Type: {} | Project: {}",
                line(name, most),
                shown_id(board),
                cell(kind, most),
                cell(project.unwrap_or("N/A"), most),
            );
            let short = |text: &str| datum(text, most);
            let data = json!({
                "id": id(board), "name": short(name), "type": short(kind),
                "project": project.map(short),
                "project_key": text(board, "/location/projectKey").map(short),
            });
            (shown, data)
        };
        let listed = Listed {
            entries: page.items.iter().map(entry).collect(),
            name: "boards",
            between: "\n",
            none: "No boards found.".to_owned(),
            page,
        };
        Ok(listed.tell(&self.settings, |_, _| "**Available Boards:**".to_owned()))
    }

    pub(super) async fn get_sprints(
        &self,
        arguments: Arguments<'_>,
    ) -> Result<ToolOutcome, JiraError> {
        let board = arguments.id("board_id")?;
        let state = arguments.word("state_filter", "active", STATES)?;
        let window = arguments.window()?;
        let read = Read::sprints(board, filter(state), window);
        let answer = self.read(&read, self.deadline(), Patience::Retry).await?;
        let page = Page::by_offset(answer, "values", window)?;
        let most = self.settings.field();
        let entry = |sprint: &Value| {
            let name = text(sprint, "/name").unwrap_or("(no name)");
            let state = text(sprint, "/state").unwrap_or("unknown");
            let (start, end) = (text(sprint, "/startDate"), text(sprint, "/endDate"));
            let shown = format!(
                "- **{}** (ID: {})\n  State: {} | Start: {} | End: {}",
                line(name, most),
                shown_id(sprint),
                cell(state, most),
                cell(start.unwrap_or("N/A"), most),
                cell(end.unwrap_or("N/A"), most),
            );
            let goal = text(sprint, "/goal");
            let short = |text: &str| datum(text, most);
            let data = json!({
                "id": id(sprint), "name": short(name), "state": short(state),
                "start": start.map(short), "end": end.map(short), "goal": goal.map(short),
            });
            match goal {
                Some(goal) => (format!("{shown}\n  Goal: {}", line(goal, most)), data),
                None => (shown, data),
            }
        };
        let none = match state {
            "all" => format!("No sprints found for board {board}."),
            state => format!("No {state} sprints found for board {board}."),
        };
        let listed = Listed {
            entries: page.items.iter().map(entry).collect(),
            name: "sprints",
            between: "\n",
            none,
            page,
        };
        let (first, rest) = state.split_at(1);
        let state = format!("{}{rest}", first.to_ascii_uppercase());
        let heading = format!("**{state} Sprints for Board {board}:**");
        Ok(listed.tell(&self.settings, |_, _| heading))
    }
}
