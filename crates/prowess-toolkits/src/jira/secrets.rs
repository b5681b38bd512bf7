//! Secrets: in a variable, or in a file that a variable names.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::settings::InvalidJiraSettings;

/// No secret is longer.
const LONGEST: u64 = 64 << 10;

/// A secret by the name of its variable, and of the one that names its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Secret {
    pub(super) name: &'static str,
    file: &'static str,
}

pub(super) const BEARER_TOKEN: Secret =
    Secret { name: "JIRA_BEARER_TOKEN", file: "JIRA_BEARER_TOKEN_FILE" };
pub(super) const API_TOKEN: Secret = Secret { name: "JIRA_API_TOKEN", file: "JIRA_API_TOKEN_FILE" };
pub(super) const REFRESH_TOKEN: Secret =
    Secret { name: "JIRA_REFRESH_TOKEN", file: "JIRA_REFRESH_TOKEN_FILE" };
pub(super) const CLIENT_SECRET: Secret =
    Secret { name: "JIRA_CLIENT_SECRET", file: "JIRA_CLIENT_SECRET_FILE" };

impl Secret {
    /// The secret, if either variable is set. Both are an error.
    pub(super) fn find(
        self,
        set: &impl Fn(&str) -> Option<String>,
    ) -> Result<Option<String>, InvalidJiraSettings> {
        match (set(self.name), set(self.file)) {
            (Some(_), Some(_)) => Err(InvalidJiraSettings::Conflict {
                one: self.name,
                other: self.file,
                remedy: "set one of them only",
            }),
            (Some(secret), None) => Ok(Some(secret)),
            (None, Some(path)) => read(self.file, Path::new(&path)).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// What a file holds, without the space around it.
fn read(name: &'static str, path: &Path) -> Result<String, InvalidJiraSettings> {
    let unreadable = |source| InvalidJiraSettings::SecretFile { name, source };
    let unusable = |problem| InvalidJiraSettings::Unusable { name, problem };
    // On a pipe or a device a read may wait for ever.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(unusable("names no regular file; name one"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST {
        return Err(unusable("names a file of more than 64 KiB, which no secret has"));
    }
    let text = String::from_utf8(bytes).ok();
    let text = text.ok_or_else(|| unusable("names a file that is no text in UTF-8"))?;
    match text.trim() {
        "" => Err(unusable("names a file that is empty; write the secret into it")),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Result<Option<String>, InvalidJiraSettings> {
        API_TOKEN.find(&|name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_secret_is_in_a_variable_or_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let name = path.to_str().unwrap();
        let in_file = [("JIRA_API_TOKEN_FILE", name)];
        std::fs::write(&path, " s3cret\r\n").unwrap();
        assert_eq!(find(&[]).unwrap(), None);
        assert_eq!(find(&[("JIRA_API_TOKEN", "abcd")]).unwrap().as_deref(), Some("abcd"));
        assert_eq!(find(&in_file).unwrap().as_deref(), Some("s3cret"));
        let both = find(&[("JIRA_API_TOKEN", "abcd"), in_file[0]]).unwrap_err();
        assert_eq!(both.code(), "jira_contradiction");
        assert!(both.to_string().contains("JIRA_API_TOKEN and JIRA_API_TOKEN_FILE"), "{both}");

        // At the edge.
        std::fs::write(&path, "x".repeat(64 << 10)).unwrap();
        assert_eq!(find(&in_file).unwrap().unwrap().len(), 64 << 10);
        let table: [(&[u8], &str); 4] = [
            (&[b'x'; (64 << 10) + 1], "more than 64 KiB"),
            (b"s3cret\xff", "is no text in UTF-8"),
            (b" \n", "that is empty"),
            (b"", "that is empty"),
        ];
        for (bytes, expected) in table {
            std::fs::write(&path, bytes).unwrap();
            let wrong = find(&in_file).unwrap_err();
            assert_eq!(wrong.code(), "jira_unusable_variable");
            assert!(wrong.to_string().starts_with("JIRA_API_TOKEN_FILE names"), "{wrong}");
            assert!(wrong.to_string().contains(expected), "{wrong}");
            assert!(!format!("{wrong:?}").contains("s3cret"));
        }
        std::fs::remove_file(&path).unwrap();
        let gone = find(&in_file).unwrap_err();
        assert_eq!(gone.code(), "jira_secret_file");
        assert!(gone.to_string().starts_with("JIRA_API_TOKEN_FILE names a file that cannot"));
        let is_folder = [("JIRA_API_TOKEN_FILE", folder.path().to_str().unwrap())];
        assert!(find(&is_folder).unwrap_err().to_string().contains("names no regular file"));
        assert!(find(&[("JIRA_API_TOKEN_FILE", "/dev/zero")]).is_err());
    }
}
