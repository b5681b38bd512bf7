//! The table of findings: every code, what it is about, and how much it counts per profile.

use std::fmt;

use crate::diagnostic::Level;
use crate::lint::Profile;

/// A finding that counts as an error, a warning, an information or not at all.
const E: Option<Level> = Some(Level::Error);
const W: Option<Level> = Some(Level::Warning);
const I: Option<Level> = Some(Level::Info);
const O: Option<Level> = None;

macro_rules! codes {
    ($($variant:ident $name:literal [$($level:ident)+] $about:literal;)+) => {
        /// The stable name of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $about] $variant,)+
        }

        impl Code {
            /// All codes, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name, as it is printed: stable across releases.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What the finding is about, in one sentence.
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)+ }
            }

            /// How much it counts under a profile; `None` if not at all.
            pub fn level(self, profile: Profile) -> Option<Level> {
                let levels: [Option<Level>; 4] = match self { $(Self::$variant => [$($level,)+],)+ };
                levels[profile as usize]
            }
        }
    };
}

codes! {
    // The file.                                 prowess spec claude-code deepagents
    PathNotFound        "path-not-found"         [E E E E] "The path does not exist.";
    NotADirectory       "not-a-directory"        [E E E E] "The path is neither a skill folder nor a SKILL.md.";
    MissingSkillFile    "missing-skill-file"     [E E E E] "The folder has no SKILL.md.";
    UnreadableFile      "unreadable-file"        [E E E E] "The file cannot be read.";
    FileTooLarge        "file-too-large"         [E E E E] "The file is larger than the limit.";
    ScanLimit           "scan-limit"             [W W W W] "A folder was not searched to its end.";
    ScanDepth           "scan-depth"             [I I I I] "Folders are too deep to be searched.";
    KeptFiles           "kept-files"             [I I I I] "A text came without the files of its skill; those of before stay.";
    DanglingLink        "dangling-link"          [W W W W] "A link leads nowhere.";
    LeftOutFile         "left-out-file"          [W W W W] "A file in the skill's folder is no resource of it.";
    NotUtf8             "not-utf8"               [E E E E] "The file is not UTF-8 text.";
    PathNotUtf8         "path-not-utf8"          [W W W W] "The path is not UTF-8, and is not shown as it is.";
    FileNameCase        "file-name-case"         [W I W E] "The file is named skill.md instead of SKILL.md.";

    ShadowedSkill       "shadowed-skill"         [W W W W] "Another skill of the same name hides this one.";
    AmbiguousName       "ambiguous-name"         [E E E E] "Several skills have this name, and none of them is preferred.";

    // Sources.
    SourceUnavailable   "source-unavailable"     [E E E E] "A source cannot be fetched or unpacked.";
    SourceOffline       "source-offline"         [W W W W] "A source cannot be fetched; what was fetched before is used.";
    SourceNotEncrypted  "source-not-encrypted"   [W W W W] "A source is fetched without encryption, and is not pinned.";
    IndexEntry          "index-entry"            [W W W W] "An entry in an index of skills cannot be used as it is.";

    // The fences.
    MissingFrontmatter  "missing-frontmatter"    [E E E E] "The file does not begin with frontmatter.";
    UnclosedFrontmatter "unclosed-frontmatter"   [E E E E] "The frontmatter has no closing fence.";
    FrontmatterTooLarge "frontmatter-too-large"  [E E E E] "The frontmatter is larger than the limit.";
    ByteOrderMark       "byte-order-mark"        [W E W E] "A byte order mark stands before the frontmatter.";
    LeadingBlankLines   "leading-blank-lines"    [W E W E] "Blank lines stand before the frontmatter.";
    FenceAtEndOfFile    "fence-at-end-of-file"   [O O O E] "The file ends with the closing fence and no line break.";

    // The YAML.
    InvalidYaml         "invalid-yaml"           [E E E E] "The frontmatter is not YAML.";
    NotAMapping         "not-a-mapping"          [E E E E] "The frontmatter is YAML, but not a mapping.";
    DuplicateKey        "duplicate-key"          [E E E E] "A key stands twice in one mapping.";
    YamlTooComplex      "yaml-too-complex"       [E E E E] "The frontmatter exceeds a limit on depth, values or aliases.";
    RepairedValue       "repaired-value"         [W E W E] "A value is not YAML and was read as plain text.";
    IgnoredTag          "ignored-tag"            [W E W W] "A YAML tag has no meaning here and was passed over.";
    Anchor              "yaml-anchor"            [I E I I] "A YAML anchor or alias stands in the frontmatter.";
    StrictYaml          "strict-yaml"            [O E O O] "The reference library refuses this form of YAML.";
    MergeKey            "merge-key"              [W W W I] "A merge key is kept as an ordinary key, not merged.";
    CommentInValue      "comment-in-value"       [W W W W] "Text behind ` #` is a YAML comment, not part of the value.";
    AmbiguousScalar     "ambiguous-scalar"       [W W W W] "A value is text to us and something else to YAML 1.1 readers.";
    UnquotedNumber      "unquoted-number"        [W O I W] "A number stands where text is expected.";
    ControlCharacters   "control-characters"     [W W W W] "A text holds control or bidirectional formatting characters.";

    // Fields.
    MissingName         "missing-name"           [E E O E] "There is no name.";
    EmptyName           "empty-name"             [E E W E] "The name is empty or not text.";
    UnsafeName          "unsafe-name"            [E E E E] "The name cannot be part of a path or a URI.";
    NameTooLong         "name-too-long"          [E E I W] "The name is longer than 64 characters.";
    NameNotLowercase    "name-not-lowercase"     [E E I W] "The name has uppercase letters.";
    NameHyphenEdge      "name-hyphen-edge"       [E E I W] "The name begins or ends with a hyphen.";
    NameDoubleHyphen    "name-double-hyphen"     [E E I W] "The name has two hyphens in a row.";
    NameCharacters      "name-characters"        [E E I W] "The name has characters other than letters, digits and hyphens.";
    NameFolderMismatch  "name-folder-mismatch"   [W E I W] "The name is not that of the folder.";
    MissingDescription  "missing-description"    [E E W E] "There is no description.";
    EmptyDescription    "empty-description"      [E E W E] "The description is empty or not text.";
    DescriptionTooLong  "description-too-long"   [E E I W] "The description is longer than 1024 characters.";
    ListingTooLong      "listing-too-long"       [O O W O] "Description and when_to_use exceed what Claude Code lists.";
    AngleBrackets       "angle-brackets"         [I I I I] "The description has angle brackets, which claude.ai refuses on upload.";
    CompatibilityTooLong "compatibility-too-long" [E E I W] "The compatibility note is longer than 500 characters.";
    WrongType           "wrong-type"             [E E W W] "A field has a value of the wrong type.";
    InvalidValue        "invalid-value"          [E O E O] "A field has a value that does not exist.";
    UnsupportedValue    "unsupported-value"      [O O W O] "A field has a value that this runtime does not know.";
    UnknownField        "unknown-field"          [W E I I] "A field is not known.";
    MisspelledField     "misspelled-field"       [E E W W] "A field is not known, but its name is close to one that is.";
    MalformedTool       "malformed-tool"         [W W W W] "An entry of a tool list has unbalanced parentheses.";
    ToolListForm        "tool-list-form"         [O W O O] "The specification wants allowed-tools as a string.";
    ToolPatternSplit    "tool-pattern-split"     [O O O W] "DeepAgents splits this tool pattern at its spaces.";
    IncludeToolsForm    "include-tools-form"     [O O O W] "DeepAgents wants metadata.include_tools as names separated by spaces.";
    InvalidToolConfig   "invalid-tool-config"    [E O O O] "An entry of tool_configs cannot be used as it is.";
    UnknownHandler      "unknown-handler"        [E O O O] "A tool or resource is bound to a function that nobody offers.";
    HandlerMismatch     "handler-mismatch"       [E O O O] "The arguments of a tool do not fit what it is bound to.";
    MissingConfigFile   "missing-config-file"    [E O O O] "A tool or resource is in a file that the skill does not have.";
    InvalidResourceConfig "invalid-resource-config" [E O O O] "An entry of resource_configs, mcp_tool_configs, resources or scripts cannot be used.";
    MissingFile         "missing-file"           [W O O O] "An entry of resources or scripts names a file that the skill does not have.";
    NotPortable         "not-portable"           [I O I O] "Fields of other runtimes are refused by claude.ai on upload.";
    UnknownHookEvent    "unknown-hook-event"     [W O W O] "A hook is bound to an event that does not exist.";

    // The body.
    EmptyBody           "empty-body"             [I I I I] "There are no instructions below the frontmatter.";
    LongBody            "long-body"              [W W W W] "The file is longer than the 500 lines that the specification advises.";
    BrokenLink          "broken-link"            [W W W W] "The body refers to a file of the skill that does not exist.";
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
