//! A skill as files.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_TYPE, VARY};
use axum::response::{IntoResponse, Response};
use prowess_catalog::pack;
use prowess_store::{DocumentError, SKILL_FILE};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::extract::{Path, Query, Whole};
use crate::heavy::json_of;
use crate::identity::Identity;
use crate::problem::Problem;
use crate::routes::skills::seen;

/// What is exported.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WhichExport {
    /// `json` (the `SKILL.md` in a JSON object), `md` (the `SKILL.md` itself; also `markdown` and
    /// `skill.md`) or `zip` (all files). Without it, what `Accept` names first of these, else `json`.
    #[param(inline)]
    format: Option<ExportFormat>,
    /// The number of a version; without it, the active one.
    version: Option<Whole>,
}

/// How a skill is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ExportFormat {
    Json,
    Md,
    /// The same as `md`.
    Markdown,
    /// The same as `md`.
    #[serde(rename = "skill.md")]
    SkillMd,
    Zip,
}

/// The `SKILL.md` of a skill.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Exported {
    skill_id: String,
    /// Always `skill.md`.
    format: &'static str,
    version_number: u64,
    content: String,
}

/// A skill as files: its `SKILL.md`, or all of them as a zip archive, byte for byte as they are
/// stored.
#[utoipa::path(
    get, path = "/skills/{skill_id}/export", tag = "skills", operation_id = "export_skill",
    params(("skill_id" = String, Path, description = "The id of the skill"), WhichExport),
    responses((status = 200, description = "The skill", content(
        (Exported = "application/json"), (String = "text/markdown"), (Vec<u8> = "application/zip")
    )))
)]
pub(super) async fn export(
    State(app): State<App>,
    identity: Identity,
    Path(id): Path<String>,
    Query(which): Query<WhichExport>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let version = seen(&app, &id, &identity).await?.version(&app, which.version).await?;
    let contents = app.registry().store().contents(&version).await?;
    let named = |name: String| (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""));
    let text = || {
        let file = contents.file(SKILL_FILE).ok_or(DocumentError::NoSkillFile)?;
        Ok::<_, Problem>(String::from_utf8_lossy(&file.bytes).into_owned())
    };
    let format = which.format.or_else(|| accepted(&headers)).unwrap_or(ExportFormat::Json);
    let exported = match format {
        ExportFormat::Json => {
            let (content, version_number) = (text()?, version.number);
            let bytes = content.len();
            let exported = Exported { skill_id: id, format: "skill.md", version_number, content };
            json_of(bytes, exported).await?
        }
        ExportFormat::Md | ExportFormat::Markdown | ExportFormat::SkillMd => {
            let kind = (CONTENT_TYPE, "text/markdown; charset=utf-8".to_owned());
            ([kind, named(SKILL_FILE.to_owned())], text()?).into_response()
        }
        ExportFormat::Zip => {
            let packed =
                tokio::task::spawn_blocking(move || pack(&contents, &id).map(|zip| (zip, id)));
            let (zip, id) = packed.await.map_err(Problem::broken)?.map_err(Problem::broken)?;
            let kind = (CONTENT_TYPE, "application/zip".to_owned());
            ([kind, named(format!("{id}-{}.zip", version.number))], zip).into_response()
        }
    };
    Ok(([(VARY, "accept")], exported).into_response())
}

/// What whoever asks would rather have, if they say so.
fn accepted(headers: &HeaderMap) -> Option<ExportFormat> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut best: Option<(f32, ExportFormat)> = None;
    for range in values.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "application/json" | "application/*" | "*/*" => ExportFormat::Json,
            "text/markdown" | "text/*" => ExportFormat::Md,
            "application/zip" => ExportFormat::Zip,
            _ => continue,
        };
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
        if weight > 0.0 && best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, format));
        }
    }
    best.map(|(_, format)| format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_first_is_given() {
        let of = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            accepted(&headers)
        };
        for (accept, expected) in [
            ("application/zip", Some(ExportFormat::Zip)),
            ("text/markdown, */*;q=0.1", Some(ExportFormat::Md)),
            ("text/markdown;q=0.5, Application/Zip", Some(ExportFormat::Zip)),
            ("application/zip;q=0, text/*", Some(ExportFormat::Md)),
            ("text/html, */*", Some(ExportFormat::Json)),
            ("image/png", None),
        ] {
            assert_eq!(of(accept), expected, "{accept}");
        }
        assert_eq!(accepted(&HeaderMap::new()), None);
    }
}
