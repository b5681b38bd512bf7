use super::*;

fn read(text: &str) -> Result<ExecSettings, InvalidExecSettings> {
    ExecSettings::from_table(toml::from_str(text).unwrap())
}

#[test]
fn nothing_said_is_the_default() {
    assert_eq!(read("").unwrap(), ExecSettings::default());
    let (limits, is_cut) = ExecSettings::default().run_limits(None);
    assert_eq!((limits, is_cut), (Limits::default(), false));
}

#[test]
fn every_key_of_the_documentation_is_known() {
    let text = r#"
        require_skill_loaded = true
        default_timeout = 300
        max_timeout = 600
        shown_output_bytes = 16384
        primary_output_bytes = 32768
        max_inline_bytes = 65536
        max_output_files = 100
        max_output_file_bytes = 4194304
        max_output_total_bytes = 67108864
        max_output_depth = 32
        max_output_entries = 200000
        max_output_globs = 64
        max_output_refused = 100
        max_delivered_files = 10000
        max_delivered_bytes = 1073741824
        max_inputs = 100
        max_skill_bytes = 268435456
        allow_unsandboxed = false
        host_inputs = []
        network = []
        require = []
        allowed_commands = []
        denied_commands = []
        interactive = false
        workspace_exec = false
        [env]
        [limits]
        [sessions]
    "#;
    assert_eq!(read(text).unwrap(), ExecSettings::default());
    let text = r#"
        host_inputs = ["/srv/shared"]
        network = ["web-research"]
        require = ["fs_write", "net"]
        [env]
        deploy = ["DEPLOY_TOKEN"]
        [limits]
        grace_ms = 1
        cpu_seconds = 2
        memory_bytes = 3
        processes = 4
        file_bytes = 5
        open_files = 6
        disk_bytes = 7
        disk_files = 8
        output_bytes = 9
        stdin_bytes = 10
    "#;
    let settings = read(text).unwrap();
    assert_eq!(settings.require, [Capability::FsWrite, Capability::Net].into());
    let (limits, _) = settings.run_limits(None);
    let counts = [limits.cpu_seconds, limits.memory_bytes, limits.processes, limits.file_bytes];
    assert_eq!((limits.grace, counts), (Duration::from_millis(1), [2, 3, 4, 5]));
    let counts = [limits.open_files, limits.disk_bytes, limits.disk_files];
    assert_eq!((counts, limits.output_bytes), ([6, 7, 8], 9));
    assert_eq!(limits.stdin_bytes, 10);
}

#[test]
fn wrong_settings_are_named() {
    let table = [
        ("timeout = 3", "unknown field `timeout`"),
        ("require = [\"gravity\"]", "unknown variant `gravity`"),
        ("host_inputs = [\"shared\"]", "'shared' is not absolute"),
        ("[env]\ndemo = [\"A-B\"]", "[exec.env] demo: 'A-B' is no name of a variable"),
        ("[limits]\nwall = 1", "unknown field `wall`"),
        (
            "allowed_commands = [\"ls -l\"]",
            "[exec] allowed_commands: 'ls -l' is no name of a command",
        ),
        ("denied_commands = [\"\"]", "[exec] denied_commands: '' is no name of a command"),
        ("max_output_depth = -1", "max_output_depth"),
        ("max_output_globs = \"all\"", "max_output_globs"),
        ("interactive = 1", "interactive"),
        ("[sessions]\nmax = 1", "unknown field `max`"),
        (
            "[limits]\nstdin_bytes = 4294967296",
            "[exec.limits] stdin_bytes: 4294967296 is too much; write at most 4294967295",
        ),
    ];
    for (text, expected) in table {
        let error = read(text).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
        assert_eq!(error.code(), "invalid_exec_settings");
    }
}

#[test]
fn what_is_collected_has_the_limits_that_are_set() {
    let settings = ExecSettings::default();
    assert_eq!(settings.collect_limits(), CollectLimits::default());
    let text = "max_output_files = 1\nmax_output_file_bytes = 2\nmax_output_total_bytes = 3\n\
                max_output_depth = 4\nmax_output_entries = 5\nmax_output_globs = 6\n\
                max_output_refused = 7\nmax_delivered_files = 8\nmax_delivered_bytes = 9";
    let settings = read(text).unwrap();
    let sizes = |it: &CollectLimits| [it.max_files, it.max_file_bytes, it.max_total_bytes];
    let rest = |it: &CollectLimits| [it.max_depth, it.max_entries, it.max_globs, it.max_refused];
    let (collect, deliver) = (settings.collect_limits(), settings.delivery_limits());
    assert_eq!((sizes(&collect), rest(&collect)), ([1, 2, 3], [4, 5, 6, 7]));
    assert_eq!((sizes(&deliver), rest(&deliver)), ([8, 9, 9], [4, 5, 6, 7]));
}

#[test]
fn a_call_gets_the_time_that_it_asks_for_up_to_the_most() {
    let settings = ExecSettings::default().with_default_timeout(20).with_max_timeout(30);
    for (asked, seconds, is_cut) in
        [(None, 20, false), (Some(5), 5, false), (Some(30), 30, false), (Some(31), 30, true)]
    {
        let (limits, cut) = settings.run_limits(asked.map(Duration::from_secs));
        assert_eq!((limits.wall, cut), (Duration::from_secs(seconds), is_cut), "{asked:?}");
    }
}

#[test]
fn grants_for_a_bare_name_are_for_trusted_skills_only() {
    let settings = read(
        r#"
        network = ["demo", "other@vendor"]
        require = ["net", "fs_read"]
        allow_unsandboxed = true
        [env]
        demo = ["A"]
        "demo@vendor" = ["B"]
    "#,
    )
    .unwrap();
    let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
    let trusted = settings.grants_of("demo", "demo@project", true);
    assert_eq!((trusted.network, trusted.env), (Network::Host, names(&["A"])));
    assert_eq!(trusted.require, [Capability::FsRead].into());
    assert_eq!(trusted.unsandboxed, Unsandboxed::Allow);
    // The same name from anywhere else gets nothing that was meant for the trusted one.
    let untrusted = settings.grants_of("demo", "demo@web", false);
    assert_eq!((untrusted.network, untrusted.env), (Network::None, names(&[])));
    assert_eq!(untrusted.require, [Capability::FsRead, Capability::Net].into());
    assert_eq!(untrusted.unsandboxed, Unsandboxed::Refuse);
    // Named with its source it gets what it is granted, but never a run without a sandbox.
    let named = settings.grants_of("demo", "demo@vendor", false);
    assert_eq!((named.network, named.env), (Network::None, names(&["B"])));
    let named = settings.grants_of("other", "other@vendor", false);
    assert_eq!((named.network, named.unsandboxed), (Network::Host, Unsandboxed::Refuse));
}

#[test]
fn every_key_of_containers_is_documented_with_its_default() {
    let documentation = include_str!("../../../prowess-workspace/src/executor/settings.rs").lines();
    let section = documentation
        .filter_map(|line| line.strip_prefix("/// "))
        .skip_while(|line| *line != "```toml")
        .skip(1)
        .take_while(|line| *line != "```");
    let section = section.collect::<Vec<_>>().join("\n");
    let mut file: toml::Table = toml::from_str(&section).unwrap();
    let Some(toml::Value::Table(exec)) = file.remove("exec") else { panic!("{file}") };
    let own = toml::Table::try_from(ExecSettings::default().container).unwrap();
    assert_eq!(exec["container"], toml::Value::Table(own));
    assert_eq!(ExecSettings::from_table(exec).unwrap(), ExecSettings::default());
    for (text, said) in [
        ("executor = \"docker\"", "unknown variant `docker`, expected `local` or `container`"),
        ("[container]\nimages = \"x\"", "unknown field `images`"),
        ("[container]\nreuse = \"always\"", "unknown variant `always`"),
        ("[container]\ncpus = -1", "cpus"),
    ] {
        let error = ExecSettings::from_table(toml::from_str(text).unwrap()).unwrap_err();
        assert!(error.to_string().contains(said), "{text}: {error}");
    }
}
