//! Whether a request was meant for this server, and which web site made it.

use std::net::IpAddr;

use axum::http::header::{HOST, HeaderMap, ORIGIN};
use axum::http::{Method, Uri};

use crate::problem::Problem;

/// The names that a server has.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    bound: IpAddr,
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// Which web site made a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// None, or this server's own.
    Own,
    /// Another one, which may.
    Allowed(String),
}

impl Names {
    pub(crate) fn new(bound: IpAddr, hosts: &[String], origins: &[String]) -> Self {
        let lower = |names: &[String]| {
            names.iter().map(|name| name.trim_end_matches('/').to_ascii_lowercase()).collect()
        };
        Self { bound, hosts: lower(hosts), origins: lower(origins) }
    }

    /// The authority that a request is for, if it is this server's. A web site that lets its own
    /// name lead here (DNS rebinding) is refused.
    pub(crate) fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<String, Problem> {
        let mut named = headers.get_all(HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(Problem::new(400, "invalid_host", "a request needs one Host header"));
        };
        let host = host.to_str().unwrap_or_default().to_ascii_lowercase();
        let target = uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
        let is_ours = |authority: &str| name_of(authority).is_some_and(|name| self.is_ours(name));
        if is_ours(&host) && target.as_deref().is_none_or(is_ours) {
            return Ok(target.unwrap_or(host));
        }
        let shown: String = host.chars().take(80).collect();
        Err(Problem::new(
            421,
            "wrong_host",
            format!(
                "'{}' is no name of this server; if it should be, add it to allowed_hosts in [server] of prowess.toml",
                shown.escape_debug()
            ),
        ))
    }

    fn is_ours(&self, name: &str) -> bool {
        if name == "localhost" || self.hosts.iter().any(|host| host == name) {
            return true;
        }
        let literal = name.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(name);
        // An address is no name that somebody could lead elsewhere.
        literal.parse::<IpAddr>().is_ok_and(|address| {
            address.is_loopback() || address == self.bound || self.bound.is_unspecified()
        })
    }

    /// Which web site made a request, if it may. Browsers say so, and others do not matter.
    pub(crate) fn site(
        &self,
        authority: &str,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Site, Problem> {
        let Some(origin) = headers.get(ORIGIN) else {
            return match is_from_elsewhere(method, headers) {
                true => Err(refused("another site")),
                false => Ok(Site::Own),
            };
        };
        let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if own == Some(authority) {
            return Ok(Site::Own);
        }
        if self.origins.contains(&origin) {
            return Ok(Site::Allowed(origin));
        }
        let shown: String = origin.chars().take(80).collect();
        Err(refused(&shown.escape_debug().to_string()))
    }
}

fn refused(who: &str) -> Problem {
    Problem::new(
        403,
        "origin_not_allowed",
        format!(
            "requests of {who} are refused; if they are wanted, add it to allowed_origins in [server] of prowess.toml"
        ),
    )
}

/// Whether a browser says that another site made a request which is no visit of a page.
fn is_from_elsewhere(method: &Method, headers: &HeaderMap) -> bool {
    let says = |name: &str| headers.get(name).map(axum::http::HeaderValue::as_bytes);
    let is_elsewhere =
        matches!(says("sec-fetch-site"), Some(site) if site != b"same-origin" && site != b"none");
    let is_visit = method == Method::GET && says("sec-fetch-mode") == Some(b"navigate".as_slice());
    is_elsewhere && !is_visit
}

/// The name in `name:port`, if it is one.
fn name_of(authority: &str) -> Option<&str> {
    let end = match authority.starts_with('[') {
        true => authority.find(']')? + 1,
        false => authority.find(':').unwrap_or(authority.len()),
    };
    let (name, port) = authority.split_at(end);
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    (!name.is_empty() && has_port).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bound: &str) -> Names {
        let hosts = ["skills.example.com".to_owned()];
        let origins = ["https://app.example.com/".to_owned()];
        Names::new(bound.parse().unwrap(), &hosts, &origins)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_server_knows_its_names() {
        let path = Uri::from_static("/health");
        let table = [
            ("127.0.0.1", "localhost", true),
            ("127.0.0.1", "LocalHost:7171", true),
            ("127.0.0.1", "127.0.0.1:7171", true),
            ("127.0.0.1", "[::1]:7171", true),
            ("127.0.0.1", "skills.example.com", true),
            ("127.0.0.1", "evil.example.com", false),
            ("127.0.0.1", "evil.example.com:7171", false),
            ("127.0.0.1", "localhost.evil.com", false),
            ("127.0.0.1", "127.0.0.1.evil.com", false),
            ("127.0.0.1", "192.168.0.9", false),
            ("127.0.0.1", "localhost:evil", false),
            ("127.0.0.1", "localhost:", false),
            ("127.0.0.1", "", false),
            ("192.168.0.9", "192.168.0.9:7171", true),
            ("192.168.0.9", "192.168.0.8", false),
            ("0.0.0.0", "192.168.0.8", true),
            ("0.0.0.0", "evil.example.com", false),
        ];
        for (bound, host, expected) in table {
            let found = names(bound).host(&path, &headers(&[("host", host)]));
            assert_eq!(found.is_ok(), expected, "{host} at {bound}");
            assert!(found.is_ok() || found.unwrap_err().status() == 421);
        }
        let none = names("127.0.0.1").host(&path, &headers(&[])).unwrap_err();
        let two = headers(&[("host", "localhost"), ("host", "evil")]);
        let two = names("127.0.0.1").host(&path, &two).unwrap_err();
        assert_eq!((none.status(), two.status()), (400, 400));
        let absolute = Uri::from_static("http://evil.example.com/health");
        let absolute = names("127.0.0.1").host(&absolute, &headers(&[("host", "localhost")]));
        assert_eq!(absolute.unwrap_err().status(), 421);
    }

    #[test]
    fn other_web_sites_are_refused_unless_they_are_allowed() {
        let names = names("127.0.0.1");
        let own = |pairs: &[(&'static str, &str)]| {
            names.site("localhost:7171", &Method::GET, &headers(pairs)).map_err(|it| it.status())
        };
        assert_eq!(own(&[]), Ok(Site::Own));
        assert_eq!(own(&[("origin", "http://localhost:7171")]), Ok(Site::Own));
        let allowed = "https://app.example.com";
        assert_eq!(own(&[("origin", allowed)]), Ok(Site::Allowed(allowed.into())));
        for origin in
            ["http://evil.com", "null", "http://localhost:7172", "http://localhost", "file://", ""]
        {
            assert_eq!(own(&[("origin", origin)]), Err(403), "{origin}");
        }
        assert_eq!(own(&[("sec-fetch-site", "cross-site")]), Err(403));
        assert_eq!(own(&[("sec-fetch-site", "same-site")]), Err(403));
        assert_eq!(own(&[("sec-fetch-site", "same-origin")]), Ok(Site::Own));
        let visit = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(own(&visit), Ok(Site::Own));
        let post = names.site("localhost:7171", &Method::POST, &headers(&visit));
        assert_eq!(post.unwrap_err().status(), 403);
    }
}
