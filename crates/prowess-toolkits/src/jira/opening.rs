//! What is known only when the skill is loaded: whether Jira is there, and which projects it has.

use prowess_runtime::ToolOutcome;

use super::access::ApiVersion;
use super::client::{Client, Deadline, Patience};
use super::credentials::Scheme;
use super::endpoint::Window;
use super::error::JiraError;
use super::listed::UNTRUSTED;
use super::places::listed_project;
use super::text::line;

impl Client {
    /// Level 2: never a failure, so that the skill can be loaded and says what is wrong.
    pub(super) async fn opening(&self) -> ToolOutcome {
        let mut out = "## Jira Skill Activated\n\n### Configuration\n".to_owned();
        let Some(place) = &self.access.place else {
            let lack = self.access.lack();
            out.push_str(&match &lack {
                JiraError::Unusable { why } => format!("- Status: not configured: {why}\n"),
                JiraError::Unconfigured { missing } => {
                    format!("- Status: not configured\n- {lack}\n- Missing: {missing}\n")
                }
                lack => format!("- Status: not configured: {lack}\n"),
            });
            return ToolOutcome::text(out).with_data("configured", false);
        };
        let deadline = Deadline::new("opening_seconds", self.settings.opening_seconds);
        let window = Window { start: 0, limit: self.settings.opening_projects.max(1) };
        let projects = self.projects(window, deadline, Patience::Once).await;
        let version = match &projects {
            Ok(_) => self.version(deadline).await.ok(),
            Err(_) => None,
        };
        let edition = match version {
            Some(ApiVersion::Three) => "Cloud (API version 3)",
            Some(ApiVersion::Two) if self.is_version_set() => "not asked (API version 2, as set)",
            Some(ApiVersion::Two) => "Data Center (API version 2)",
            None => "not known yet",
        };
        let scheme = match place.credentials.scheme {
            Scheme::Basic => "Basic (user and API token)",
            Scheme::Bearer => "Bearer token",
            Scheme::OAuth => "OAuth (renewed with a refresh token)",
        };
        out.push_str(&format!(
            "- Status: configured\n- URL: {}\n- Edition: {edition}\n- Authentication: {scheme}\n\
             - Access: read only\n",
            line(place.base.as_str(), self.settings.field()),
        ));
        if place.base.scheme() == "http" {
            out.push_str("- Warning: plain http; the token can be read on the way\n");
        }
        out.push_str("\n### Projects\n");
        let (is_reached, count) = match projects {
            Ok(page) if page.items.is_empty() => {
                out.push_str("No projects found or accessible.\n");
                (true, 0)
            }
            Ok(mut page) => {
                let lines = page.items.iter().map(|it| listed_project(it, &self.settings).0 + "\n");
                let mut left = self.settings.opening_bytes;
                let lines: Vec<String> = lines
                    .take_while(|line| {
                        let fits = line.len() <= left;
                        left = left.saturating_sub(line.len());
                        fits
                    })
                    .collect();
                page.keep(lines.len());
                out.push_str(&lines.concat());
                out.push_str(&format!("\nShowing {}.", page.showing()));
                if page.next.is_some() {
                    out.push_str(" jira_list_projects lists all of them.");
                }
                out.push_str(&format!("\n\n{UNTRUSTED}\n"));
                (true, page.items.len())
            }
            Err(error) => {
                out.push_str(&format!("The projects could not be listed: {error}\n"));
                (false, 0)
            }
        };
        ToolOutcome::text(out)
            .with_data("configured", true)
            .with_data("reached", is_reached)
            .with_data("projects", count)
    }
}
