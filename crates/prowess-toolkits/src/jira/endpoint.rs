//! What can be asked of Jira: reading, and nothing else. A request that changes something cannot be
//! written down with these types.

use serde_json::json;
use url::Url;

use super::access::ApiVersion;
use super::key::{IssueKey, ProjectKey};

/// What an issue in a list is shown with. Cloud gives nothing but ids without it.
const LIST_FIELDS: &str = "key,summary,status,assignee,priority,issuetype";
/// What one issue is shown with.
const ISSUE_FIELDS: &str = "key,summary,description,status,assignee,reporter,priority,issuetype,\
                            created,updated,labels";

/// One request that reads.
#[derive(Clone, Debug)]
pub(super) struct Read {
    segments: Vec<String>,
    query: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
}

/// From where on, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: u64,
    pub(super) limit: u64,
}

/// How it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb<'a> {
    Get,
    /// The one question that Jira takes by POST only.
    PostCount(&'a [u8]),
}

impl ApiVersion {
    fn segment(self) -> &'static str {
        match self {
            Self::Two => "2",
            Self::Three => "3",
        }
    }
}

impl Read {
    fn new<const N: usize>(segments: [&str; N]) -> Self {
        let segments = ["rest"].into_iter().chain(segments).map(str::to_owned).collect();
        Self { segments, query: Vec::new(), body: None }
    }

    fn api<const N: usize>(version: ApiVersion, segments: [&str; N]) -> Self {
        let mut read = Self::new(["api", version.segment()]);
        read.segments.extend(segments.map(str::to_owned));
        read
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    fn within(self, window: Window) -> Self {
        self.with("startAt", window.start.to_string()).with("maxResults", window.limit.to_string())
    }

    /// Which edition it is.
    pub(super) fn server_info() -> Self {
        Self::api(ApiVersion::Two, ["serverInfo"])
    }

    /// Issues, on Cloud. Without a token from the beginning.
    pub(super) fn search_by_token(jql: &str, limit: u64, token: Option<&str>) -> Self {
        let read = Self::api(ApiVersion::Three, ["search", "jql"])
            .with("jql", jql)
            .with("fields", LIST_FIELDS)
            .with("maxResults", limit.to_string());
        match token {
            Some(token) => read.with("nextPageToken", token),
            None => read,
        }
    }

    /// Issues, on Data Center.
    pub(super) fn search_by_offset(jql: &str, window: Window) -> Self {
        Self::api(ApiVersion::Two, ["search"])
            .with("jql", jql)
            .with("fields", LIST_FIELDS)
            .within(window)
    }

    /// How many issues there are about, on Cloud.
    pub(super) fn approximate_count(jql: &str) -> Self {
        let mut read = Self::api(ApiVersion::Three, ["search", "approximate-count"]);
        read.body = Some(json!({"jql": jql}).to_string().into_bytes());
        read
    }

    /// One issue.
    pub(super) fn issue(version: ApiVersion, key: &IssueKey) -> Self {
        Self::api(version, ["issue", key.as_str()]).with("fields", ISSUE_FIELDS)
    }

    /// All that has changed in an issue, on Data Center.
    pub(super) fn whole_changelog(key: &IssueKey) -> Self {
        Self::api(ApiVersion::Two, ["issue", key.as_str()])
            .with("fields", "key")
            .with("expand", "changelog")
    }

    /// What has changed in an issue, on Cloud, the oldest first.
    pub(super) fn changelog(key: &IssueKey, window: Window) -> Self {
        Self::api(ApiVersion::Three, ["issue", key.as_str(), "changelog"]).within(window)
    }

    /// Comments, the newest first.
    pub(super) fn comments(version: ApiVersion, key: &IssueKey, window: Window) -> Self {
        let read = Self::api(version, ["issue", key.as_str(), "comment"]).within(window);
        read.with("orderBy", "-created")
    }

    /// Work that was logged, the oldest first.
    pub(super) fn worklogs(version: ApiVersion, key: &IssueKey, window: Window) -> Self {
        Self::api(version, ["issue", key.as_str(), "worklog"]).within(window)
    }

    /// Projects: in pages on Cloud, all of them on Data Center.
    pub(super) fn projects(version: ApiVersion, window: Window) -> Self {
        match version {
            ApiVersion::Three => {
                Self::api(version, ["project", "search"]).within(window).with("orderBy", "key")
            }
            ApiVersion::Two => Self::api(version, ["project"]),
        }
    }

    /// Boards.
    pub(super) fn boards(project: Option<&ProjectKey>, kind: Option<&str>, window: Window) -> Self {
        let mut read = Self::new(["agile", "1.0", "board"]).within(window);
        if let Some(project) = project {
            read = read.with("projectKeyOrId", project.as_str());
        }
        match kind {
            Some(kind) => read.with("type", kind),
            None => read,
        }
    }

    /// Sprints of a board.
    pub(super) fn sprints(board: u64, states: Option<&str>, window: Window) -> Self {
        let read = Self::new(["agile", "1.0", "board", &board.to_string(), "sprint"]);
        let read = read.within(window);
        match states {
            Some(states) => read.with("state", states),
            None => read,
        }
    }

    /// Issues of a sprint.
    pub(super) fn sprint_issues(sprint: u64, window: Window) -> Self {
        let read = Self::new(["agile", "1.0", "sprint", &sprint.to_string(), "issue"]);
        read.within(window).with("fields", LIST_FIELDS)
    }

    /// How it is sent.
    pub(super) fn verb(&self) -> Verb<'_> {
        self.body.as_deref().map_or(Verb::Get, Verb::PostCount)
    }

    /// Its address below the one of Jira, whose own path stays.
    pub(super) fn url(&self, base: &Url) -> Url {
        let mut url = base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // Every segment is encoded: none of them is two.
            segments.pop_if_empty().extend(&self.segments);
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        url
    }

    /// What it is called in logs: no queries and no keys.
    pub(super) fn name(&self) -> &'static str {
        match self.segments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [.., "serverInfo"] => "server_info",
            [.., "project"] | [.., "project", "search"] => "projects",
            [.., "search"] | [.., "search", "jql"] => "search",
            [.., "approximate-count"] => "approximate_count",
            [.., "changelog"] => "changelog",
            [.., "comment"] => "comments",
            [.., "worklog"] => "worklogs",
            [.., "board"] => "boards",
            [.., "sprint"] => "sprints",
            _ => "issue",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn base() -> Url {
        Url::parse("https://jira.example.com/context/path/").unwrap()
    }

    #[test]
    fn addresses_are_below_the_one_of_jira() {
        let key = IssueKey::parse("PROJ-1").unwrap();
        let window = Window { start: 0, limit: 2 };
        let table = [
            (Read::server_info(), "api/2/serverInfo"),
            (Read::issue(ApiVersion::Three, &key), "api/3/issue/PROJ-1?fields=key%2C"),
            (
                Read::comments(ApiVersion::Two, &key, window),
                "api/2/issue/PROJ-1/comment?startAt=0&maxResults=2&orderBy=-created",
            ),
            (Read::sprints(7, Some("active"), window), "agile/1.0/board/7/sprint?startAt=0"),
            (
                Read::search_by_token("a = \"b&c\" #/../", 2, Some("x&y")),
                "api/3/search/jql?jql=a+%3D+%22b%26c%22+%23%2F..%2F&fields=key%2C",
            ),
            (Read::projects(ApiVersion::Two, window), "api/2/project"),
        ];
        for (read, expected) in table {
            let url = read.url(&base()).to_string();
            let expected = format!("https://jira.example.com/context/path/rest/{expected}");
            assert!(url.starts_with(&expected), "{url}\n{expected}");
            assert_eq!(read.verb(), Verb::Get);
        }
        let count = Read::approximate_count("a = \"b\"");
        assert_eq!(count.verb(), Verb::PostCount(br#"{"jql":"a = \"b\""}"#));
    }

    #[test]
    fn every_question_has_a_name_for_logs() {
        let key = IssueKey::parse("PROJ-1").unwrap();
        let window = Window { start: 3, limit: 2 };
        let (two, three) = (ApiVersion::Two, ApiVersion::Three);
        let table = [
            (Read::server_info(), "server_info"),
            (Read::projects(two, window), "projects"),
            (Read::projects(three, window), "projects"),
            (Read::search_by_offset("a", window), "search"),
            (Read::search_by_token("a", 2, None), "search"),
            (Read::approximate_count("a"), "approximate_count"),
            (Read::changelog(&key, window), "changelog"),
            (Read::comments(two, &key, window), "comments"),
            (Read::worklogs(two, &key, window), "worklogs"),
            (Read::boards(None, None, window), "boards"),
            (Read::sprints(1, None, window), "sprints"),
            (Read::issue(two, &key), "issue"),
        ];
        for (read, name) in table {
            assert_eq!(read.name(), name, "{read:?}");
        }
        // What filters is part of the address, and what does not is not.
        let project = ProjectKey::parse("PROJ").unwrap();
        let boards = Read::boards(Some(&project), Some("scrum"), window).url(&base());
        let query = "startAt=3&maxResults=2&projectKeyOrId=PROJ&type=scrum";
        assert_eq!(boards.query(), Some(query));
        let none = Read::boards(None, None, window).url(&base());
        assert_eq!(none.query(), Some("startAt=3&maxResults=2"));
        assert_eq!(Read::server_info().url(&base()).query(), None);
    }

    proptest! {
        /// Whatever is taken as a key, and whatever is a segment, stays in its place.
        #[test]
        fn no_issue_key_leads_outside_of_the_issue(
            text in "[A-Z./%?#a-z0-9\\\\_@:;-]{0,20}|\\PC{0,20}|[A-Z]{1,4}-[0-9]{1,4}.{0,4}",
        ) {
            // Without the check: one segment all the same, or none.
            let naive = Read::api(ApiVersion::Two, ["issue", &text]).url(&base());
            let prefix = "/context/path/rest/api/2/issue";
            let rest = naive.path().strip_prefix(prefix).unwrap();
            prop_assert!(rest.matches('/').count() <= 1, "{naive}");
            prop_assert!(naive.query().is_none() && naive.fragment().is_none());
            if let Ok(key) = IssueKey::parse(&text) {
                let url = Read::issue(ApiVersion::Two, &key).url(&base());
                prop_assert_eq!(url.path(), format!("{prefix}/{text}"));
                prop_assert_eq!(url.host_str(), Some("jira.example.com"));
            }
        }
    }
}
