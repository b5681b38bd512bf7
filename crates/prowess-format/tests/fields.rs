//! Every field of every runtime (S01, 3).

use prowess_format::{
    ArgumentKind, Code, Context, Effort, FIELDS, Level, Options, Origin, Parsed, Profile, Shell,
    Skill,
};

fn parse_as(profile: Profile, fields: &str) -> Parsed {
    let text = format!("---\nname: a\ndescription: d\n{fields}\n---\nx");
    Skill::parse(&text, &Options::new().in_folder("a").with_profile(profile))
}

fn parse(fields: &str) -> Parsed {
    parse_as(Profile::Prowess, fields)
}

fn skill(fields: &str) -> Skill {
    let parsed = parse(fields);
    assert_eq!(codes(&parsed), [""; 0], "{fields}");
    parsed.skill.unwrap()
}

/// What was found, except the remark that a field is not portable.
fn codes(parsed: &Parsed) -> Vec<&'static str> {
    let codes = parsed.diagnostics.iter().map(|diagnostic| diagnostic.code);
    codes.filter(|code| *code != Code::NotPortable).map(Code::as_str).collect()
}

#[test]
fn the_table_has_the_six_of_the_specification_and_fourteen_of_claude_code() {
    let of = |origin: Origin| FIELDS.iter().filter(|field| field.origin == origin).count();
    assert_eq!(
        (of(Origin::Spec), of(Origin::ClaudeCode), of(Origin::LangchainDocker)),
        (6, 14, 10)
    );
    assert!(FIELDS.is_sorted_by_key(|field| field.key));
}

#[test]
fn fields_of_the_specification() {
    let skill = skill(
        "license: MIT\ncompatibility: Needs git\nallowed-tools: Bash(git:*) Read\n\
         metadata:\n  title: A Skill\n  include_tools: grep find",
    );
    let frontmatter = &skill.frontmatter;
    assert_eq!(frontmatter.license(), Some("MIT"));
    assert_eq!(frontmatter.compatibility(), Some("Needs git"));
    assert_eq!(frontmatter.title(), Some("A Skill"));
    assert_eq!(frontmatter.include_tools(), ["grep", "find"]);
    let tools = frontmatter.allowed_tools().unwrap();
    assert_eq!((tools[0].tool.as_str(), tools[0].scope.as_deref()), ("Bash", Some("git:*")));
}

#[test]
fn fields_of_claude_code_and_eino() {
    let skill = skill(
        "when_to_use: Often\nargument-hint: \"[file]\"\narguments: [file, mode]\n\
         disable-model-invocation: Yes\nuser-invocable: off\ndisallowed-tools: Write, Edit\n\
         model: small\neffort: xhigh\ncontext: fork_with_context\nagent: reviewer\nbackground: 0\n\
         hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n\
         paths: \"src/**, *.rs\"\nshell: powershell",
    );
    let frontmatter = &skill.frontmatter;
    assert_eq!(frontmatter.when_to_use(), Some("Often"));
    assert_eq!(frontmatter.argument_hint().as_deref(), Some("[file]"));
    assert_eq!(frontmatter.arguments(), ["file", "mode"]);
    assert!(frontmatter.disable_model_invocation());
    assert!(!frontmatter.user_invocable());
    assert_eq!(frontmatter.disallowed_tools().len(), 2);
    assert_eq!(frontmatter.model(), Some("small"));
    assert_eq!(frontmatter.effort(), Some(Effort::XHigh));
    assert_eq!(frontmatter.context(), Some(Context::ForkWithContext));
    assert_eq!(frontmatter.agent(), Some("reviewer"));
    assert_eq!(frontmatter.background(), Some(false));
    assert_eq!(frontmatter.paths(), ["src/**", "*.rs"]);
    assert_eq!(frontmatter.shell(), Some(Shell::PowerShell));
    assert_eq!(frontmatter.hooks().unwrap().len(), 1);
}

#[test]
fn what_is_absent_has_a_default() {
    let skill = skill("license: MIT");
    let frontmatter = &skill.frontmatter;
    assert!(!frontmatter.disable_model_invocation());
    assert!(frontmatter.user_invocable());
    assert_eq!(frontmatter.context(), None);
    assert_eq!(frontmatter.effort(), None);
    assert_eq!(frontmatter.shell(), None);
    assert_eq!(frontmatter.background(), None);
    assert_eq!(frontmatter.allowed_tools(), None);
    assert!(frontmatter.tool_configs().is_empty() && frontmatter.paths().is_empty());
}

#[test]
fn every_effort_and_shell_has_its_word() {
    for (word, effort) in [
        ("low", Effort::Low),
        ("medium", Effort::Medium),
        ("high", Effort::High),
        ("xhigh", Effort::XHigh),
        ("max", Effort::Max),
    ] {
        assert_eq!(skill(&format!("effort: {word}")).frontmatter.effort(), Some(effort));
    }
    assert_eq!(skill("shell: bash").frontmatter.shell(), Some(Shell::Bash));
    assert_eq!(skill("context: fork").frontmatter.context(), Some(Context::Fork));
}

#[test]
fn a_typo_in_context_is_reported_and_not_inline() {
    for typo in ["Fork", "forks", "inline", "isolated", "true"] {
        let parsed = parse(&format!("context: {typo}"));
        assert_eq!(codes(&parsed), ["invalid-value"], "{typo}");
        let context = parsed.skill.unwrap().frontmatter.context();
        assert_eq!(context, Some(Context::Unknown(typo.to_owned())));
    }
    let parsed = parse("context: [fork]");
    assert_eq!(codes(&parsed), ["wrong-type"]);
    assert!(matches!(parsed.skill.unwrap().frontmatter.context(), Some(Context::Unknown(_))));
}

#[test]
fn a_typo_in_a_boolean_does_not_open_what_was_closed() {
    let parsed = parse("disable-model-invocation: ture");
    assert_eq!(codes(&parsed), ["invalid-value"]);
    assert!(parsed.skill.unwrap().frontmatter.disable_model_invocation());
    for word in ["true", "yes", "ON", "1", "\"true\""] {
        assert!(
            skill(&format!("disable-model-invocation: {word}"))
                .frontmatter
                .disable_model_invocation()
        );
    }
    for word in ["false", "No", "off", "0"] {
        assert!(
            !skill(&format!("disable-model-invocation: {word}"))
                .frontmatter
                .disable_model_invocation()
        );
    }
}

#[test]
fn fields_of_langchain_docker() {
    let skill = skill(
        "category: database\nversion: \"2.0.0\"\nauthor: us\nrequired_by_tools: [sql_query]\n\
         tool_configs:\n\
         \x20 - name: sql_query\n    description: Runs it\n    method: execute_query\n    args:\n\
         \x20     - name: query\n        type: string\n        description: The SQL\n        required: true\n\
         \x20     - name: limit\n        type: int\n        default: 10\n\
         \x20 - name: sql_list_tables\n    method: list_tables\n    args: []\n    requires_skill_loaded: false\n\
         resource_configs:\n\
         \x20 - name: samples\n    dynamic: true\n    method: get_sample_rows\n\
         \x20 - name: examples\n    description: Examples\n    file: examples.md\n\
         \x20 - name: inline\n    content: text\n\
         mcp_tool_configs:\n  - server: db\n    tools: [a, b]\n  - server: all\n    load_all: true\n\
         resources:\n  - name: Guide\n    description: How to\n    file: docs/guide.md\n\
         scripts:\n  - name: run.py\n    language: python",
    );
    let frontmatter = &skill.frontmatter;
    assert_eq!(frontmatter.category(), Some("database"));
    assert_eq!(frontmatter.version(), Some("2.0.0"));
    assert_eq!(frontmatter.author(), Some("us"));
    assert_eq!(frontmatter.required_by_tools(), ["sql_query"]);
    let tools = frontmatter.tool_configs();
    assert_eq!((tools[0].name.as_str(), tools[0].method.as_str()), ("sql_query", "execute_query"));
    assert!(tools[0].requires_skill_loaded && !tools[1].requires_skill_loaded);
    assert!(tools[0].args[0].required);
    let limit = &tools[0].args[1];
    // As the seed says: an argument is optional unless it says otherwise.
    assert!(!limit.required);
    assert_eq!(limit.kind, ArgumentKind::Integer);
    assert_eq!(limit.default.as_ref().unwrap().as_text(), Some("10"));
    let resources = frontmatter.resource_configs();
    assert!(resources[0].dynamic);
    assert_eq!(resources[1].file.as_deref(), Some("examples.md"));
    assert_eq!(resources[2].content.as_deref(), Some("text"));
    let servers = frontmatter.mcp_tool_configs();
    assert_eq!((servers[0].tools.len(), servers[0].load_all), (2, false));
    assert_eq!((servers[1].tools.len(), servers[1].load_all), (0, true));
    let files = frontmatter.resource_entries();
    assert_eq!((files[0].name.as_str(), files[0].description.as_str()), ("Guide", "How to"));
    assert_eq!((files[0].file.as_deref(), &files[0].language), (Some("docs/guide.md"), &None));
    let scripts = frontmatter.script_entries();
    assert_eq!((scripts[0].name.as_str(), &scripts[0].file), ("run.py", &None));
    assert_eq!(scripts[0].language.as_deref(), Some("python"));
}

#[test]
fn configurations_that_cannot_be_used_are_reported_one_by_one() {
    for (fields, message) in [
        ("tool_configs: foo", "tool_configs must be a list of mappings, not text"),
        ("tool_configs: [x]", "tool_configs[0] must be a mapping, not text"),
        ("tool_configs: [{method: m}]", "tool_configs[0] has no 'name'"),
        (
            "tool_configs: [{name: t}, {name: t}]",
            "tool_configs[1] declares the tool 't' a second time",
        ),
        (
            "tool_configs: [{name: t, requires_skill_loaded: maybe}]",
            "tool_configs[0].requires_skill_loaded must be true or false, not text",
        ),
        ("tool_configs: [{name: t, args: [{type: int}]}]", "tool_configs[0].args[0] has no 'name'"),
        (
            "tool_configs: [{name: t, args: [{name: x, type: tuple}]}]",
            "tool_configs[0].args[0].type: there is no type 'tuple'; there are string, integer, number, boolean, array and object",
        ),
        (
            "tool_configs: [{name: t, args: [{name: x, type: array, items: tuple}]}]",
            "tool_configs[0].args[0].items: there is no type 'tuple'; there are string, integer, number, boolean, array and object",
        ),
        (
            "tool_configs: [{name: t, args: [{name: x, items: string}]}]",
            "tool_configs[0].args[0] has 'items' and is no array but of type string",
        ),
        (
            "tool_configs: [{name: t, args: [{name: x, type: int, enum: [1, two]}]}]",
            "tool_configs[0].args[0] has a choice in 'enum' that is no integer",
        ),
        (
            "tool_configs: [{name: t, args: [{name: x, type: int, default: 1.5}]}]",
            "tool_configs[0].args[0] has a default that is no integer",
        ),
        (
            "tool_configs: [{name: t, args: [{name: x, enum: [a, b], default: c}]}]",
            "tool_configs[0].args[0] has a default that is not in 'enum'",
        ),
        (
            "tool_configs: [{name: t, method: m, script: s.py}]",
            "tool_configs[0] has a method and a script: leave out one of them",
        ),
        (
            "resource_configs: [{name: r, file: a.md, content: b}]",
            "resource_configs[0] has a file and a content: leave out one of them",
        ),
        (
            "resource_configs: [{name: r, file: a.md, method: m}]",
            "resource_configs[0] has a method, which is used only with 'dynamic: true'",
        ),
        (
            "tool_configs: [{name: t, args: [{name: x, enum: a}]}]",
            "tool_configs[0].args[0].enum must be a list, not text",
        ),
        (
            "tool_configs: [{name: t, args: [{name: x}, {name: x}]}]",
            "tool_configs[0].args[1] declares the argument 'x' a second time",
        ),
        (
            "resource_configs: [{name: r}]",
            "resource_configs[0] gives 'r' no content: set file, content or dynamic",
        ),
        ("resource_configs: [{name: [r]}]", "resource_configs[0].name must be text, not a list"),
        ("mcp_tool_configs: [{tools: [a]}]", "mcp_tool_configs[0] has no 'server'"),
        ("resources: [guide.md]", "resources[0] must be a mapping, not text"),
        ("scripts: [{file: run.py}]", "scripts[0] has no 'name'"),
        (
            "scripts: [{name: run, fil: run.py}]",
            "scripts[0] has an unknown key 'fil'; did you mean 'file'?",
        ),
    ] {
        let parsed = parse(fields);
        let messages: Vec<&str> =
            parsed.diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
        assert!(messages.contains(&message), "{fields}: {messages:?}");
        assert!(parsed.skill.is_some(), "{fields}");
    }
}

#[test]
fn unknown_fields_and_typos_are_told_apart() {
    let parsed = parse("alowed-tools: Read\nallowed_tools: Read\nDescription: x\nfavourite: blue");
    let found: Vec<(&str, &str)> = parsed
        .diagnostics
        .iter()
        .map(|found| (found.code.as_str(), found.help.as_deref().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ("misspelled-field", "did you mean 'allowed-tools'?"),
            ("misspelled-field", "did you mean 'allowed-tools'?"),
            ("misspelled-field", "did you mean 'description'?"),
            (
                "unknown-field",
                "it is kept, but means nothing here; put your own data under 'metadata'"
            ),
        ]
    );
}

#[test]
fn each_profile_knows_its_own_fields() {
    let fields = "license: MIT\nmodel: x\nversion: \"1\"";
    let count = |profile| codes(&parse_as(profile, fields)).len();
    assert_eq!(count(Profile::Prowess), 0);
    assert_eq!(codes(&parse_as(Profile::ClaudeCode, fields)), ["unknown-field"]);
    assert_eq!(codes(&parse_as(Profile::DeepAgents, fields)), ["unknown-field"; 2]);
    let spec = parse_as(Profile::Spec, fields);
    assert_eq!(
        spec.diagnostics[0].message,
        "Unexpected fields in frontmatter: model, version. Only ['allowed-tools', 'compatibility', \
         'description', 'license', 'metadata', 'name'] are allowed."
    );
}

#[test]
fn hooks_are_checked_against_the_events_that_exist() {
    let parsed = parse("hooks:\n  PreTooluse:\n    - hooks: []");
    assert_eq!(codes(&parsed), ["unknown-hook-event"]);
    assert_eq!(parsed.diagnostics[0].help.as_deref(), Some("the nearest is 'PreToolUse'"));
    for shape in ["x", "[x]", "[{matcher: y}]", "[{hooks: x}]", "[{hooks: [x]}]"] {
        assert_eq!(codes(&parse(&format!("hooks:\n  Stop: {shape}"))), ["wrong-type"], "{shape}");
    }
}

#[test]
fn values_of_the_wrong_type_are_reported() {
    for (fields, message) in [
        ("license: [MIT]", "Field 'license' must be a string"),
        ("compatibility: {a: b}", "Field 'compatibility' must be a string"),
        ("model: true", "Field 'model' must be a string"),
        ("allowed-tools: 3", "Field 'allowed-tools' must be a string or a list of strings"),
        ("allowed-tools: [Read, 3]", "Field 'allowed-tools' must be a list of strings"),
        ("arguments: {a: b}", "Field 'arguments' must be a string or a list of strings"),
        ("user-invocable: []", "Field 'user-invocable' must be true or false"),
        ("hooks: x", "Field 'hooks' must be a mapping"),
        ("metadata: [a]", "Field 'metadata' must be a mapping"),
        ("license:", "Field 'license' must be a string"),
    ] {
        let parsed = parse(fields);
        assert_eq!(codes(&parsed), ["wrong-type"], "{fields}");
        assert_eq!(parsed.diagnostics[0].message, message);
    }
}

#[test]
fn scalars_that_others_read_differently_are_reported() {
    for (fields, code) in [
        ("version: 1.10", "unquoted-number"),
        ("author: no", "ambiguous-scalar"),
        ("version: 2024-01-01", "ambiguous-scalar"),
        ("version: 1_000", "ambiguous-scalar"),
        ("author: 1:30", "ambiguous-scalar"),
        ("metadata:\n  version: 1.10", "unquoted-number"),
        ("metadata:\n  released: 2024-01-01", "ambiguous-scalar"),
    ] {
        assert_eq!(codes(&parse(fields)), [code], "{fields}");
    }
    // Nobody reads these differently.
    for fields in [
        "version: \"1.10\"",
        "author: 'no'",
        "author: |-\n  no",
        "author: yEs",
        "metadata:\n  version: 1.5\n  count: 3\n  flag: true",
    ] {
        assert_eq!(codes(&parse(fields)), [""; 0], "{fields}");
    }
}

#[test]
fn invisible_characters_are_reported() {
    for (fields, point) in [
        ("license: \"a\\eb\"", "U+001B"),
        ("license: a\u{202e}b", "U+202E"),
        ("metadata:\n  x: \"\\u0007\"", "U+0007"),
    ] {
        let parsed = parse(fields);
        assert_eq!(codes(&parsed), ["control-characters"], "{fields}");
        assert!(parsed.diagnostics[0].message.contains(point));
    }
}

#[test]
fn tool_lists_are_checked_per_profile() {
    assert_eq!(codes(&parse("allowed-tools: Bash(git add Read")), ["malformed-tool"]);
    let list = "allowed-tools:\n  - Read";
    assert_eq!(codes(&parse_as(Profile::Spec, list)), ["tool-list-form"]);
    assert_eq!(codes(&parse(list)), [""; 0]);
    let scoped = "allowed-tools: Bash(git add *) Read";
    assert_eq!(codes(&parse_as(Profile::DeepAgents, scoped)), ["tool-pattern-split"]);
    assert_eq!(codes(&parse(scoped)), [""; 0]);
}

#[test]
fn claude_code_does_not_know_einos_context() {
    let parsed = parse_as(Profile::ClaudeCode, "context: fork_with_context");
    assert_eq!(codes(&parsed), ["unsupported-value"]);
}

#[test]
fn an_argument_hint_in_brackets_is_text() {
    for (written, expected) in [
        ("[issue-number]", "[issue-number]"),
        ("[file, mode]", "[file, mode]"),
        ("\"[a] [b]\"", "[a] [b]"),
        ("<file>", "<file>"),
    ] {
        let skill = skill(&format!("argument-hint: {written}"));
        assert_eq!(skill.frontmatter.argument_hint().as_deref(), Some(expected));
    }
    assert_eq!(codes(&parse("argument-hint: {a: b}")), ["wrong-type"]);
}

#[test]
fn fields_of_other_runtimes_are_not_portable() {
    let parsed = parse("license: MIT\nmodel: x\nversion: \"1\"");
    assert_eq!(
        parsed.diagnostics[0].message,
        "claude.ai refuses a skill with these fields on upload: model, version"
    );
    assert!(parse("license: MIT").diagnostics.is_empty());
}

#[test]
fn nothing_in_a_configuration_is_dropped_without_a_word() {
    for (fields, message) in [
        (
            "tool_configs: [{name: t, args: [{name: x, requird: true}]}]",
            "tool_configs[0].args[0] has an unknown key 'requird'; did you mean 'required'?",
        ),
        (
            "resource_configs: [{name: r, file: f, colour: x}]",
            "resource_configs[0] has an unknown key 'colour'",
        ),
        (
            "mcp_tool_configs: [{server: x, tools: {a: b}}]",
            "mcp_tool_configs[0].tools must be a list of names, not a mapping",
        ),
        (
            "metadata: {include_tools: [a, {b: c}]}",
            "Field 'metadata.include_tools' must name tools",
        ),
        ("metadata: {title: [x]}", "Field 'metadata.title' must be a string"),
        ("id: \"\"", "Field 'id' must be a non-empty string"),
    ] {
        let parsed = parse(fields);
        let found = parsed.diagnostics.iter().any(|found| found.message == message);
        assert!(found, "{fields}: {:?}", parsed.diagnostics);
    }
    let text = "---\nid: a\nname: [b]\ndescription: d\n---\nx";
    let parsed = Skill::parse(text, &Options::new().in_folder("a"));
    assert_eq!(codes(&parsed), ["empty-name"]);
}

#[test]
fn deepagents_wants_include_tools_separated_by_spaces() {
    for (written, expected) in [("a b", 0), ("\"a, b\"", 1), ("[a, b]", 1)] {
        let parsed =
            parse_as(Profile::DeepAgents, &format!("metadata:\n  include_tools: {written}"));
        assert_eq!(codes(&parsed).len(), expected, "{written}");
    }
}

#[test]
fn the_spec_profile_refuses_what_its_library_refuses() {
    for fields in [
        "metadata: {a: b}",
        "metadata:\n  a: [1, 2]",
        "license: &a x",
        "license: !!str x",
        "license: ! x",
    ] {
        let parsed = parse_as(Profile::Spec, fields);
        let errors = parsed.diagnostics.iter().filter(|found| found.level == Level::Error);
        assert_eq!(errors.count(), 1, "{fields}");
    }
    for fields in ["license:", "compatibility:", "metadata:", "allowed-tools:", "license: \"x\""] {
        assert_eq!(parse_as(Profile::Spec, fields).diagnostics, [], "{fields}");
    }
}

#[test]
fn a_word_behind_an_ampersand_is_not_lost_without_a_word() {
    assert_eq!(codes(&parse("license: &foo bar")), ["yaml-anchor"]);
    assert_eq!(codes(&parse("license: ! do this")), ["ignored-tag"]);
}

#[test]
fn quotes_around_the_entries_of_a_tool_string_are_not_meant() {
    let parsed = parse("allowed-tools: \"Bash(git add *)\", \"Read\"");
    assert_eq!(codes(&parsed), ["repaired-value"]);
    let tools = parsed.skill.unwrap().frontmatter.allowed_tools().unwrap();
    let tools: Vec<String> = tools.iter().map(ToString::to_string).collect();
    assert_eq!(tools, ["Bash(git add *)", "Read"]);
}
