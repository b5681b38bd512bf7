//! Which parameters an address takes behind its `?`.

use std::collections::{BTreeSet, HashMap};

use axum::http::Method;
use serde_json::json;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{OpenApi, RefOr};

use crate::problem::Problem;
use crate::trace::Routes;

/// The parameters of every operation that is described, health excepted: whoever watches a server
/// asks as they like.
#[derive(Debug)]
pub(crate) struct Parameters {
    known: HashMap<(Method, String), BTreeSet<String>>,
}

impl Parameters {
    /// Those of a description.
    pub(crate) fn new(description: &OpenApi) -> Self {
        let mut known = HashMap::new();
        for (path, item) in &description.paths.paths {
            let operations = [
                (Method::GET, &item.get),
                (Method::PUT, &item.put),
                (Method::POST, &item.post),
                (Method::DELETE, &item.delete),
            ];
            for (method, operation) in operations {
                if let Some(operation) = operation.as_ref().filter(|it| !is_watched(it)) {
                    known.insert((method, path.clone()), names(operation));
                }
            }
        }
        Self { known }
    }

    /// Whether a query has only parameters that are known; else 422, which names the others.
    pub(crate) fn check(
        &self,
        routes: &Routes,
        method: &Method,
        path: &str,
        query: &str,
    ) -> Result<(), Problem> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let Some(route) = routes.of(path) else { return Ok(()) };
        let Some(known) = self.known.get(&(method.clone(), route.to_owned())) else {
            return Ok(());
        };
        let given = url::form_urlencoded::parse(query.as_bytes());
        let unknown: BTreeSet<String> = given
            .map(|(name, _)| name.into_owned())
            .filter(|name| !known.contains(name))
            .map(|name| name.chars().take(80).collect())
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let there_are = match known.is_empty() {
            true => "there are none".to_owned(),
            false => format!("there are {}", list(known)),
        };
        let details: Vec<_> = unknown
            .iter()
            .map(|name| json!({"loc": ["query", name], "msg": there_are, "type": "unknown_parameter"}))
            .collect();
        let message = format!("unknown query parameters: {}; {there_are}", list(&unknown));
        Err(Problem::new(422, "invalid_request", message).with_details(json!(details)))
    }
}

fn list(names: &BTreeSet<String>) -> String {
    let names: Vec<String> = names.iter().map(|name| name.escape_debug().to_string()).collect();
    names.join(", ")
}

fn is_watched(operation: &Operation) -> bool {
    let mut tags = operation.tags.iter().flatten();
    tags.any(|tag| tag == "health")
        || operation.operation_id.as_deref() == Some("prometheus_metrics")
}

fn names(operation: &Operation) -> BTreeSet<String> {
    let described = operation.parameters.iter().flatten().filter_map(|it| match it {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    });
    let in_query = described.filter(|it| it.parameter_in == ParameterIn::Query);
    in_query.map(|it| it.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_that_is_not_described_is_named() {
        let description = crate::routes::openapi();
        let parameters = Parameters::new(&description);
        let routes = Routes::new(description.paths.paths.into_keys());
        let check = |method: Method, path: &str, query: &str| {
            let checked = parameters.check(&routes, &method, path, query);
            checked.map_err(|problem| serde_json::to_value(problem).unwrap()["detail"].clone())
        };
        assert_eq!(check(Method::GET, "/api/v1/skills", "q=a&limit=1&cursor=b"), Ok(()));
        assert_eq!(check(Method::HEAD, "/api/v1/skills", "q=a"), Ok(()));
        let refused = check(Method::GET, "/api/v1/skills", "x=1&q=a&Limit=2&x=3").unwrap_err();
        assert_eq!(
            refused,
            "unknown query parameters: Limit, x; there are category, cursor, limit, origin, q, status"
        );
        let refused = check(Method::DELETE, "/api/v1/skills/a", "force=1").unwrap_err();
        assert_eq!(refused, "unknown query parameters: force; there are none");
        for path in ["/health", "/api/v1/ready", "/metrics", "/docs/", "/nothing"] {
            assert_eq!(check(Method::GET, path, "x=1"), Ok(()), "{path}");
        }
        assert_eq!(check(Method::PATCH, "/api/v1/skills", "x=1"), Ok(()), "405 says more");
    }
}
