//! What is read of a request.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use bytes::Bytes;
use http_body_util::BodyExt;
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::room::Room;
use crate::settings::ServerSettings;

/// A body in JSON, not deeper and not larger than it may be.
#[derive(Clone, Debug)]
pub(crate) struct Json<T>(pub(crate) T);

/// The same, or nothing at all.
#[derive(Clone, Debug)]
pub(crate) struct JsonOrDefault<T>(pub(crate) T);

/// A body of any kind, not larger than it may be.
#[derive(Clone, Debug)]
pub(crate) struct Raw(pub(crate) Bytes);

/// What stands behind the `?`.
#[derive(Clone, Debug)]
pub(crate) struct Query<T>(pub(crate) T);

/// What stands in the path.
#[derive(Clone, Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        check_content_type(&parts.headers)?;
        let bytes = read(body, &parts.extensions, app).await?;
        parsed(bytes, app.settings().max_json_depth).await.map(Self)
    }
}

impl<T: DeserializeOwned + Default + Send + 'static> FromRequest<App> for JsonOrDefault<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, &parts.extensions, app).await?;
        if matches!(bytes.trim_ascii(), b"" | b"null") {
            return Ok(Self(T::default()));
        }
        check_content_type(&parts.headers)?;
        parsed(bytes, app.settings().max_json_depth).await.map(Self)
    }
}

impl FromRequest<App> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        read(body, &parts.extensions, app).await.map(Self)
    }
}

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let found = axum::extract::Query::try_from_uri(&parts.uri);
        found
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(|error| Problem::invalid(&["query"], error.body_text()))
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = axum::extract::Path::from_request_parts(parts, state).await;
        found
            .map(|axum::extract::Path(path)| Self(path))
            .map_err(|error| Problem::invalid(&["path"], error.body_text()))
    }
}

/// The whole body, if it is not too large, does not take too long, and there is room for it.
pub(crate) async fn read(body: Body, extensions: &Extensions, app: &App) -> Result<Bytes, Problem> {
    let settings = app.settings();
    let room = extensions.get::<Room>().cloned().unwrap_or_else(|| app.bodies().room());
    match tokio::time::timeout(settings.body_time(), whole(body, &room, settings)).await {
        Ok(read) => read,
        Err(_) => {
            let seconds = settings.body_seconds;
            let message = format!("the body did not come within {seconds} seconds (body_seconds)");
            Err(Problem::new(408, "slow_body", message))
        }
    }
}

async fn whole(mut body: Body, room: &Room, settings: &ServerSettings) -> Result<Bytes, Problem> {
    let mut parts: Vec<Bytes> = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let broken = |_| Problem::new(400, "broken_body", "the body did not come as a whole");
        // What follows a body is not read.
        let Ok(part) = frame.map_err(broken)?.into_data() else { continue };
        length += part.len();
        if length > settings.max_body_bytes {
            return Err(too_large(settings));
        }
        room.take(part.len())?;
        parts.push(part);
    }
    Ok(match parts.len() {
        1 => parts.swap_remove(0),
        _ => parts.concat().into(),
    })
}

/// A body is larger than it may be.
pub(crate) fn too_large(settings: &ServerSettings) -> Problem {
    let most = settings.max_body_bytes;
    let message = format!("the body has more than {most} bytes (max_body_bytes)");
    Problem::new(413, "body_too_large", message)
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json =
        kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json");
    match is_json {
        true => Ok(()),
        false => Err(Problem::new(
            415,
            "unsupported_media_type",
            "the body must be JSON: `Content-Type: application/json`",
        )),
    }
}

/// A number that every store can hold: 0 to 2^63 - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(value_type = i64, minimum = 0)]
pub(crate) struct Whole(pub(crate) u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        match i64::try_from(number) {
            Ok(_) => Ok(Self(number)),
            Err(_) => Err(serde::de::Error::custom("it must be 0 to 9223372036854775807")),
        }
    }
}

/// Yes or no: `true` or `false`, in whichever case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AsFlag)
    }
}

struct AsFlag;

impl Visitor<'_> for AsFlag {
    type Value = Flag;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("`true` or `false`")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Flag, E> {
        Ok(Flag(value))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Flag, E> {
        match text {
            _ if text.eq_ignore_ascii_case("true") => Ok(Flag(true)),
            _ if text.eq_ignore_ascii_case("false") => Ok(Flag(false)),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }
}

/// JSON, or where it is wrong; others do not wait for it.
async fn parsed<T: DeserializeOwned + Send + 'static>(
    bytes: Bytes,
    max_depth: usize,
) -> Result<T, Problem> {
    heavy(bytes.len(), move || parse(&bytes, max_depth)).await?
}

/// JSON, or where it is wrong.
fn parse<T: DeserializeOwned>(bytes: &[u8], max_depth: usize) -> Result<T, Problem> {
    if let Some((line, column)) = too_deep(bytes, max_depth) {
        let message = format!("it is nested deeper than {max_depth} (max_json_depth)");
        return Err(placed(422, "json_too_deep", &message, line, column));
    }
    // A list would be taken for the fields of a structure, one by one.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(placed(422, "invalid_request", "it must be an object, not a list", 1, 1));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let (status, code) = match error.classify() {
            serde_json::error::Category::Data => (422, "invalid_request"),
            _ => (400, "invalid_json"),
        };
        let text = error.to_string();
        let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
        placed(status, code, message, error.line(), error.column())
    })
}

fn placed(status: u16, code: &'static str, message: &str, line: usize, column: usize) -> Problem {
    let details = json!([{
        "loc": ["body"], "msg": message, "type": code, "line": line, "column": column,
    }]);
    let message =
        format!("the body is not as it should be: {message} (line {line}, column {column})");
    Problem::new(status, code, message).with_details(details)
}

/// Where JSON is nested deeper than it may be.
fn too_deep(json: &[u8], most: usize) -> Option<(usize, usize)> {
    let (mut depth, mut line, mut begin) = (0_usize, 1, 0);
    let mut bytes = json.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > most {
                    return Some((line, at + 1 - begin));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'\n' => (line, begin) = (line + 1, at + 1),
            b'"' => {
                while let Some((_, byte)) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        #[allow(dead_code)]
        name: String,
    }

    #[test]
    fn wrong_json_is_placed() {
        let fail = |text: &str| {
            let problem = parse::<Wanted>(text.as_bytes(), 64).unwrap_err();
            let value = serde_json::to_value(&problem).unwrap();
            let at = &value["details"][0];
            (problem.status(), at["line"].as_u64().unwrap(), at["column"].as_u64().unwrap())
        };
        assert_eq!(fail("{\n  \"name\": }"), (400, 2, 11));
        assert_eq!(fail("{\"name\": 1}"), (422, 1, 10));
        assert_eq!(fail("{\"nam\": \"x\"}").0, 422);
        assert_eq!(fail("").0, 400);
        assert!(parse::<Wanted>(br#"{"name": "x"}"#, 64).is_ok());
    }

    #[test]
    fn a_flag_is_written_in_whichever_case() {
        let flag = |text: &str| serde_json::from_str::<Flag>(text).ok().map(|flag| flag.0);
        for (text, expected) in [
            ("true", Some(true)),
            ("\"True\"", Some(true)),
            ("\"FALSE\"", Some(false)),
            ("\"\"", None),
            ("\"1\"", None),
            ("1", None),
            ("null", None),
        ] {
            assert_eq!(flag(text), expected, "{text}");
        }
    }

    #[test]
    fn json_may_be_as_deep_as_the_limit_and_no_deeper() {
        let nested = |depth: usize| format!("\n{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(too_deep(nested(64).as_bytes(), 64), None);
        assert_eq!(too_deep(nested(65).as_bytes(), 64), Some((2, 65)));
        assert_eq!(too_deep(br#"["[[[[", "\"[[["]"#, 1), None);
        let broad = format!("[{}]", "[],".repeat(1000));
        assert_eq!(too_deep(broad.as_bytes(), 2), None);
    }
}
