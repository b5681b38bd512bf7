//! Globs over paths.

use globset::{GlobBuilder, GlobMatcher};

use super::FileError;

/// A glob over paths below a folder: `*` and `?` stay within a name, `**` does not, `{a,b}` and
/// `[a-z]` are choices.
#[derive(Clone, Debug)]
pub struct PathGlob {
    matcher: GlobMatcher,
    /// Whether it is matched with the last name of a path only.
    is_name: bool,
}

impl PathGlob {
    /// The most bytes of a glob.
    pub const MAX_BYTES: usize = 1024;

    /// A glob that is matched with whole paths below the folder that is searched.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let refused = |cause: String| FileError::InvalidGlob { glob: text.to_owned(), cause };
        if text.len() > Self::MAX_BYTES {
            return Err(FileError::InvalidGlob {
                glob: text.chars().take(64).collect(),
                cause: format!("it is longer than {} bytes", Self::MAX_BYTES),
            });
        }
        let relative = text.trim_start_matches('/').trim_start_matches("./");
        if relative.is_empty() {
            return Err(refused("it is empty".to_owned()));
        }
        if relative.split('/').any(|name| name == "..") {
            return Err(refused("it leads out of the folder".to_owned()));
        }
        let glob =
            GlobBuilder::new(relative).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| refused(error.kind().to_string()))?;
        Ok(Self { matcher: glob.compile_matcher(), is_name: false })
    }

    /// A glob that is matched with names of files in whichever folder, if it has no slash.
    pub fn parse_filter(text: &str) -> Result<Self, FileError> {
        let glob = Self::parse(text)?;
        Ok(Self { is_name: !text.contains('/'), ..glob })
    }

    /// Whether it matches a path below the folder that is searched.
    pub fn matches(&self, path: &str) -> bool {
        let matched = match self.is_name {
            true => path.rsplit('/').next().unwrap_or_default(),
            false => path,
        };
        self.matcher.is_match(matched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_what_they_should() {
        let table = [
            // Glob, path, as a path, as a filter.
            ("*.md", "a.md", true, true),
            ("*.md", "b/a.md", false, true),
            ("**/*.md", "b/a.md", true, true),
            ("**/*.md", "a.md", true, true),
            ("/b/*.md", "b/a.md", true, true),
            ("./b/*.md", "b/a.md", true, true),
            ("b/**", "b/c/a.md", true, true),
            ("{a,b}.md", "b.md", true, true),
            ("[!a].md", "a.md", false, false),
            ("?.md", "ab.md", false, false),
            ("*", ".hidden", true, true),
        ];
        for (glob, path, whole, filter) in table {
            assert_eq!(PathGlob::parse(glob).unwrap().matches(path), whole, "{glob} {path}");
            let found = PathGlob::parse_filter(glob).unwrap().matches(path);
            assert_eq!(found, filter, "{glob} {path} as a filter");
        }
    }

    #[test]
    fn globs_that_mean_nothing_or_lead_out_are_refused() {
        let most = "a".repeat(PathGlob::MAX_BYTES);
        assert!(PathGlob::parse(&most).is_ok());
        for glob in ["", "/", "../a", "a/../b", "[", "{a", &format!("{most}a")] {
            assert_eq!(PathGlob::parse(glob).unwrap_err().code(), "invalid_glob", "{glob}");
        }
    }
}
