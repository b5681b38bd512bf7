//! What goes wrong with Jira, in words that the model can act on.

use prowess_runtime::ToolOutcome;

use super::credentials::Scheme;

/// Why there is no answer of Jira, or none that can be used. Whatever it quotes of an answer is on
/// one line, short, and without our secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum JiraError {
    #[error("Jira not configured. Set JIRA_URL and JIRA_BEARER_TOKEN environment variables.")]
    Unconfigured { missing: String },
    #[error("Jira not configured: {why}")]
    Unusable { why: String },
    #[error("'{name}' must be {must}")]
    Argument { name: &'static str, must: String },
    #[error(
        "Jira authentication failed (401). Your OAuth token may be expired. Please refresh it."
    )]
    Unauthorized,
    #[error(
        "Jira forbidden (403). Your token may lack required scopes (read:jira-work, read:jira-user)."
    )]
    Forbidden,
    #[error("Jira API error ({status}): {message}")]
    Status { status: u16, message: String, retry_after: Option<u64> },
    #[error("Jira cannot be reached: {cause}")]
    Unreachable { cause: String },
    #[error("requests to Jira cannot be made here: {cause}")]
    NoClient { cause: String },
    #[error("Jira's access token could not be renewed: {cause}")]
    RefreshFailed { cause: String, retry_after: Option<u64> },
    #[error("Jira's access token was refused a renewal: {cause}")]
    RefreshRefused { cause: String },
    #[error("Jira did not answer within {seconds} s ({limit})")]
    TooSlow { limit: &'static str, seconds: u64 },
    #[error("Jira's answer is larger than {most} ({limit})")]
    TooLarge { limit: &'static str, most: u64 },
    #[error("Jira's answer cannot be used: {cause}")]
    InvalidAnswer { cause: String },
    #[error("Jira sends us to {to}, which is not followed: {why}")]
    Redirected { to: String, why: &'static str },
}

impl JiraError {
    pub(super) fn argument(name: &'static str, must: impl Into<String>) -> Self {
        Self::Argument { name, must: must.into() }
    }

    pub(super) fn invalid(cause: impl Into<String>) -> Self {
        Self::InvalidAnswer { cause: cause.into() }
    }

    pub(super) fn refresh_failed(cause: impl Into<String>) -> Self {
        Self::RefreshFailed { cause: cause.into(), retry_after: None }
    }

    pub(super) fn refresh_refused(cause: impl Into<String>) -> Self {
        Self::RefreshRefused { cause: cause.into() }
    }

    /// Whether Jira has taken away what was asked for.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Status { status: 410, .. })
    }

    /// The stable name.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Unconfigured { .. } | Self::Unusable { .. } => "jira_unconfigured",
            Self::Argument { .. } => "invalid_arguments",
            Self::Unauthorized => "jira_unauthorized",
            Self::Forbidden => "jira_forbidden",
            Self::Status { status, .. } => match status {
                400 => "jira_bad_request",
                404 => "jira_not_found",
                410 => "jira_gone",
                429 => "jira_rate_limited",
                500..=599 => "jira_unavailable",
                _ => "jira_error",
            },
            Self::Unreachable { .. } => "jira_unreachable",
            Self::NoClient { .. } => "jira_no_client",
            Self::RefreshFailed { .. } => "jira_refresh_failed",
            Self::RefreshRefused { .. } => "jira_refresh_refused",
            Self::TooSlow { .. } => "jira_timeout",
            Self::TooLarge { .. } => "jira_too_large",
            Self::InvalidAnswer { .. } => "jira_invalid_answer",
            Self::Redirected { .. } => "jira_redirected",
        }
    }

    /// What to do about it.
    fn hint(&self, scheme: Option<Scheme>) -> String {
        let fixed = match self {
            Self::Unconfigured { missing } => {
                return format!(
                    "Whoever runs this must set {missing}. You cannot do it; tell the user."
                );
            }
            Self::Unusable { .. } => {
                "Whoever runs this must correct that. You cannot do it; tell the user."
            }
            Self::Argument { .. } => "Correct the argument and call again.",
            Self::Unauthorized => match scheme {
                Some(Scheme::Basic) => {
                    "Whoever runs this must check JIRA_EMAIL or JIRA_USERNAME, and JIRA_API_TOKEN."
                }
                Some(Scheme::OAuth) => {
                    "The token was renewed and is still not accepted. Whoever runs this must check \
                     JIRA_CLOUD_ID, and allow the app again on that site."
                }
                _ => "Whoever runs this must set a fresh JIRA_BEARER_TOKEN or JIRA_PAT.",
            },
            Self::Forbidden => {
                "The account may not see this. Ask for something else, or tell the user."
            }
            Self::Status { status, retry_after, .. } => match (status, retry_after) {
                (429, Some(seconds)) => {
                    return format!(
                        "Jira asks to wait {seconds} s. Ask for less, or again after that."
                    );
                }
                (429, None) => "Jira limits how often it is asked. Ask for less, or later.",
                (400, _) => {
                    "Check the JQL: fields, values and quotes. jira_jql_reference says how."
                }
                (404, _) => {
                    "It does not exist, or the account may not see it. Search for it with \
                     jira_search, or look at jira_list_projects and jira_get_boards."
                }
                (410, _) => {
                    "This Jira has removed the endpoint: Jira Cloud answers /rest/api/2/search no \
                     more, and /rest/api/3/search/jql is in its place. Whoever runs this must unset \
                     JIRA_API_VERSION, so that the edition is found out, or set it to 3."
                }
                (500..=599, _) => "Jira has a problem of its own. Try again later.",
                _ => "Change the call, or tell the user.",
            },
            Self::Unreachable { .. } => {
                "Whoever runs this must check JIRA_URL and the network. Try again later."
            }
            Self::NoClient { .. } => {
                "Whoever runs this must check that the system has certificates to trust (such as \
                 the package ca-certificates) and start the program again."
            }
            Self::RefreshFailed { .. } => {
                "Whoever runs this must check token_url and the network. Try again later."
            }
            Self::RefreshRefused { .. } => {
                "Whoever runs this must allow the app again (with the scope offline_access), set \
                 the new JIRA_REFRESH_TOKEN, and check JIRA_CLIENT_ID, JIRA_CLIENT_SECRET and \
                 token_url."
            }
            Self::TooSlow { .. } => "Ask for less, with a smaller limit or a narrower query.",
            Self::TooLarge { .. } => "Ask for less, with a smaller limit.",
            Self::InvalidAnswer { .. } => {
                "Whoever runs this must check that JIRA_URL is the address of Jira with its \
                 context path, and that no login page stands before it."
            }
            Self::Redirected { .. } => {
                "Whoever runs this must set JIRA_URL to the address that Jira itself uses."
            }
        };
        fixed.to_owned()
    }

    /// What a call comes to.
    pub(super) fn outcome(&self, scheme: Option<Scheme>) -> ToolOutcome {
        let outcome =
            ToolOutcome::error(self.code(), self.to_string()).with_hint(self.hint(scheme));
        match self {
            Self::Status { status, retry_after, .. } => {
                let outcome = outcome.with_data("status", *status);
                match retry_after {
                    Some(seconds) => outcome.with_data("retry_after", *seconds),
                    None => outcome,
                }
            }
            _ => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_cannot_be_made_has_a_name_and_a_remedy() {
        let error = JiraError::NoClient { cause: "no native certs found".into() };
        let outcome = error.outcome(None);
        assert_eq!((outcome.code.as_ref(), outcome.is_error), ("jira_no_client", true));
        assert_eq!(outcome.content, "requests to Jira cannot be made here: no native certs found");
        assert!(outcome.hint.unwrap().contains("ca-certificates"));
    }
}
