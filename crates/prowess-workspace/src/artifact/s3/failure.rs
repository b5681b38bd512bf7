//! What failures of a bucket are called.

use std::error::Error;

use object_store::client::{HttpError, HttpErrorKind};

use crate::artifact::StoreTrouble;

/// Why a bucket did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) trouble: StoreTrouble,
    pub(super) cause: String,
    /// Whether what was asked may have been done all the same.
    pub(super) is_uncertain: bool,
    /// Whether the server says that there is no such object, and nothing worse.
    pub(super) is_missing: bool,
}

impl Failure {
    pub(super) fn new(trouble: StoreTrouble, cause: impl Into<String>) -> Self {
        let is_uncertain = trouble == StoreTrouble::Unavailable;
        Self { trouble, cause: cause.into(), is_uncertain, is_missing: false }
    }
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        match in_chain(&error) {
            Some(http) => Self::new(transport(http.kind()), innermost(http)),
            None => answered(&error),
        }
    }
}

fn transport(kind: HttpErrorKind) -> StoreTrouble {
    match kind {
        HttpErrorKind::Decode => StoreTrouble::Refused,
        _ => StoreTrouble::Unavailable,
    }
}

fn in_chain(error: &object_store::Error) -> Option<&HttpError> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// What happened at last. The errors around it repeat the address.
fn innermost(error: &HttpError) -> String {
    let mut last: &(dyn Error + 'static) = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

/// What a server's answer means. Only its code is taken over: the rest of a body may repeat keys
/// and what was signed.
fn answered(error: &object_store::Error) -> Failure {
    let text = error.to_string();
    let status = status(&text);
    let code = code(&text);
    let is_missing = match code.as_deref() {
        Some(code) => code == "NoSuchKey",
        None => status == Some(404),
    };
    let trouble = match (code.as_deref(), status) {
        (Some("NoSuchBucket"), _) => StoreTrouble::NoBucket,
        (Some("NotImplemented"), _) | (_, Some(501)) => StoreTrouble::Unsafe,
        // The last is what versitygw says of a key that it does not know.
        (_, Some(401 | 403)) | (Some("AuthorizationHeaderMalformed" | "XAdminUserNotFound"), _) => {
            StoreTrouble::Denied
        }
        (_, Some(408 | 429 | 500..)) => StoreTrouble::Unavailable,
        _ => StoreTrouble::Refused,
    };
    let cause = match (code, status) {
        (Some(code), Some(status)) => format!("the server says {code} ({status})"),
        (Some(code), None) => format!("the server says {code}"),
        (None, Some(status)) => format!("the server says {status}"),
        (None, None) => "the server's answer cannot be understood".to_owned(),
    };
    Failure { is_missing, ..Failure::new(trouble, cause) }
}

/// The status in a text of `object_store`, which has no other way to tell it.
fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// The code in an answer of a server: of all it was asked, or of one object of many.
fn code(text: &str) -> Option<String> {
    let between = |before, behind| text.split_once(before)?.1.split_once(behind);
    let (code, _) = between("<Code>", "</Code>").or_else(|| between("(code: ", ")"))?;
    let is_word = !code.is_empty() && code.len() <= 64 && code.chars().all(char::is_alphanumeric);
    is_word.then(|| code.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> Failure {
        let source = Box::<dyn Error + Send + Sync>::from(text.to_owned());
        object_store::Error::Generic { store: "S3", source }.into()
    }

    #[test]
    fn answers_have_names_and_bodies_are_not_repeated() {
        let body = |status: &str, code: &str| {
            format!(
                "Server returned non-2xx status code: {status}: <Error><Code>{code}</Code>\
                 <AWSAccessKeyId>AKIASECRET</AWSAccessKeyId></Error>"
            )
        };
        let table = [
            ("403 Forbidden", "SignatureDoesNotMatch", StoreTrouble::Denied),
            ("403 Forbidden", "InvalidAccessKeyId", StoreTrouble::Denied),
            ("400 Bad Request", "AuthorizationHeaderMalformed", StoreTrouble::Denied),
            ("404 Not Found", "XAdminUserNotFound", StoreTrouble::Denied),
            ("404 Not Found", "NoSuchBucket", StoreTrouble::NoBucket),
            ("501 Not Implemented", "NotImplemented", StoreTrouble::Unsafe),
            ("503 Service Unavailable", "SlowDown", StoreTrouble::Unavailable),
            ("400 Bad Request", "EntityTooLarge", StoreTrouble::Refused),
        ];
        for (status, code, trouble) in table {
            let failure = generic(&body(status, code));
            assert_eq!(failure.trouble, trouble, "{code}");
            assert_eq!(failure.cause, format!("the server says {code} ({})", &status[..3]));
        }
        let of_many = generic("DeleteObjects request failed for key a: Gone (code: NoSuchKey)");
        assert!(of_many.is_missing);
        assert_eq!(of_many.cause, "the server says NoSuchKey");
        for text in ["", "<Code>", "<Code></Code>", "<Code>a b</Code>", "status code: x"] {
            assert_eq!(generic(text).cause, "the server's answer cannot be understood");
        }
    }
}
