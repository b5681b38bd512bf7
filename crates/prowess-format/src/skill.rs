//! A skill, from text and back.

use crate::diagnostic::Diagnostic;
use crate::frontmatter::Frontmatter;
use crate::lint::{self, Checker, Document, Profile};
use crate::name::SkillName;
use crate::yaml::{self, Limits};

/// A skill: frontmatter and body.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Skill {
    /// The frontmatter.
    pub frontmatter: Frontmatter,
    /// Everything below the frontmatter, every byte of it.
    pub body: String,
    name: SkillName,
}

/// How to read a skill.
///
/// ```
/// use prowess_format::{Options, Profile};
///
/// let options = Options::new().in_folder("pdf-forms").with_profile(Profile::Spec);
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    pub(crate) folder: Option<&'a str>,
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) without_body: bool,
    pub(crate) file_exists: Option<&'a dyn Fn(&str) -> bool>,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Options")
            .field("folder", &self.folder)
            .field("profile", &self.profile)
            .field("limits", &self.limits)
            .field("checks_links", &self.file_exists.is_some())
            .finish()
    }
}

impl<'a> Options<'a> {
    /// The default profile and limits, in no folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// The name of the folder that holds the file. A skill without a name takes this one.
    pub fn in_folder(mut self, folder: &'a str) -> Self {
        self.folder = Some(folder);
        self
    }

    /// Whose rules apply.
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Other limits than the default ones.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Leaves [`Skill::body`] empty, for whoever reads many skills to list them.
    /// [`Parsed::body_chars`] says how long it is.
    pub fn without_body(mut self) -> Self {
        self.without_body = true;
        self
    }

    /// Also checks that relative links in the body lead to files of the skill.
    pub fn checking_links(mut self, file_exists: &'a dyn Fn(&str) -> bool) -> Self {
        self.file_exists = Some(file_exists);
        self
    }
}

/// What came of a text: a skill if it can be used, and everything there is to say about it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parsed {
    /// The skill; `None` if it cannot be loaded. An error alone does not prevent that.
    pub skill: Option<Skill>,
    /// What there is to say, in the order of the rules.
    pub diagnostics: Vec<Diagnostic>,
    /// The length of the body in characters.
    pub body_chars: usize,
}

impl Skill {
    /// Reads a `SKILL.md` and checks it against all rules of the profile.
    ///
    /// ```
    /// use prowess_format::{Options, Skill};
    ///
    /// let text = "---\nname: hello\ndescription: Says hello. Use it to greet.\n---\n# Hello\n";
    /// let parsed = Skill::parse(text, &Options::new());
    /// let skill = parsed.skill.unwrap();
    /// assert_eq!(skill.name(), "hello");
    /// assert_eq!(skill.body, "# Hello\n");
    /// assert!(parsed.diagnostics.is_empty());
    /// ```
    pub fn parse(text: &str, options: &Options<'_>) -> Parsed {
        let mut checker = Checker::new(text, options.profile);
        let Some(document) = Document::read(text, options, &mut checker) else {
            return Parsed { skill: None, diagnostics: checker.finish(), body_chars: 0 };
        };
        lint::check(&document, &mut checker);
        let name = document.name();
        let body_chars = document.body().chars().count();
        let body = match options.without_body {
            true => String::new(),
            false => document.body().to_owned(),
        };
        let frontmatter = Frontmatter::new(document.mapping);
        let described = frontmatter.description().is_some_and(|text| !text.is_empty());
        let skill = name.filter(|_| described).map(|name| Self { frontmatter, body, name });
        Parsed { skill, diagnostics: checker.finish(), body_chars }
    }

    /// Reads a `SKILL.md` that may not even be text.
    pub fn parse_bytes(bytes: &[u8], options: &Options<'_>) -> Parsed {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(text, options),
            Err(error) => {
                let diagnostic = lint::not_utf8(bytes, error, options.profile);
                let diagnostics = diagnostic.into_iter().collect();
                Parsed { skill: None, diagnostics, body_chars: 0 }
            }
        }
    }

    /// The name that identifies the skill: `id` where there is one, else `name`, else the
    /// folder's name; in Unicode form NFKC, without the blanks around it.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// [`Skill::name`] as a value that is known to be safe.
    pub fn skill_name(&self) -> &SkillName {
        &self.name
    }

    /// The description, without the blanks around it.
    pub fn description(&self) -> &str {
        self.frontmatter.description().unwrap_or_default()
    }

    /// Writes the skill as a `SKILL.md` that reads back as the same skill.
    pub fn to_markdown(&self) -> String {
        format!("---\n{}---\n{}", yaml::write(self.frontmatter.raw()), self.body)
    }
}
