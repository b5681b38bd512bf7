//! Where skills are looked for (S02, 2).

mod support;

use std::fs;

use prowess_catalog::{
    Config, Environment, Precedence, Root, RootOrigin, default_roots, label_of, variable_roots,
};
use support::Tree;

fn paths(tree: &Tree, roots: &[Root]) -> Vec<String> {
    let relative = |root: &Root| root.path.strip_prefix(tree.path()).unwrap().display().to_string();
    roots.iter().map(relative).collect()
}

fn folders(tree: &Tree, paths: &[&str]) {
    for path in paths {
        fs::create_dir_all(tree.at(path)).unwrap();
    }
}

#[test]
fn project_roots_go_from_the_repository_down_and_the_users_come_first() {
    let tree = Tree::new();
    folders(
        &tree,
        &[
            "home/.agents/skills",
            "home/.claude/skills",
            "home/.config/agents/skills",
            "home/.prowess/skills",
            "above/.agents/skills",
            "above/repo/.git",
            "above/repo/.agents/skills",
            "above/repo/.claude/skills",
            "above/repo/sub/here/.prowess/skills",
            "above/repo/sub/here/.agents/skills",
        ],
    );
    let environment =
        Environment::in_folder(tree.at("above/repo/sub/here")).with_home(tree.at("home"));
    assert_eq!(
        paths(&tree, &default_roots(&environment)),
        [
            "home/.config/agents/skills",
            "home/.agents/skills",
            "home/.claude/skills",
            "home/.prowess/skills",
            "above/repo/.agents/skills",
            "above/repo/.claude/skills",
            "above/repo/sub/here/.agents/skills",
            "above/repo/sub/here/.prowess/skills",
        ]
    );
}

#[test]
fn without_a_marker_there_is_no_walking_up() {
    let tree = Tree::new();
    folders(&tree, &["a/.agents/skills", "a/b/.agents/skills"]);
    let roots = default_roots(&Environment::in_folder(tree.at("a/b")));
    assert_eq!(paths(&tree, &roots), ["a/b/.agents/skills"]);
    // A worktree's marker is a file.
    tree.write("a/.git", "gitdir: elsewhere");
    let roots = default_roots(&Environment::in_folder(tree.at("a/b")));
    assert_eq!(paths(&tree, &roots), ["a/.agents/skills", "a/b/.agents/skills"]);
}

#[test]
fn the_same_folder_is_one_root() {
    let tree = Tree::new();
    folders(&tree, &["home/.agents/skills"]);
    tree.link("../.agents/skills", "home/.claude/skills");
    let environment = Environment::in_folder(tree.at("home")).with_home(tree.at("home"));
    let roots = default_roots(&environment);
    assert_eq!(paths(&tree, &roots), ["home/.agents/skills"]);
    assert_eq!(roots[0].origin, RootOrigin::User);
}

#[test]
fn variables_name_roots_that_need_not_exist() {
    let tree = Tree::new();
    let environment = Environment::in_folder(tree.path())
        .with_skills_root("file:///srv/skills")
        .with_home("/home/me")
        .with_prowess_skills("one::/abs/two:file:///three:~/four");
    let roots: Vec<String> =
        variable_roots(&environment).iter().map(|root| root.path.display().to_string()).collect();
    let one = tree.at("one").display().to_string();
    assert_eq!(roots, ["/srv/skills", one.as_str(), "/abs/two", "/three", "/home/me/four"]);
}

#[test]
fn what_is_there_but_no_folder_is_a_root_too() {
    let tree = Tree::new();
    tree.link("nowhere", "home/.agents/skills");
    tree.write("home/.claude/skills", "a file");
    let roots = default_roots(&Environment::in_folder(tree.path()).with_home(tree.at("home")));
    assert_eq!(paths(&tree, &roots), ["home/.agents/skills", "home/.claude/skills"]);
}

#[test]
fn the_nearest_configuration_counts() {
    let tree = Tree::new();
    folders(&tree, &["repo/.git", "repo/sub", "home/.prowess"]);
    let environment = Environment::in_folder(tree.at("repo/sub")).with_home(tree.at("home"));
    assert_eq!(Config::find(&environment).unwrap(), Config::default());
    tree.write("home/.prowess/prowess.toml", "[skills]\nprecedence = \"first-wins\"\n");
    assert_eq!(Config::find(&environment).unwrap().precedence, Precedence::FirstWins);
    tree.write(
        "repo/prowess.toml",
        "[skills]\nsources = [\"./skills\", \"~/mine\", \"/abs\"]\ndefault_roots = false\n\
         precedence = \"refuse-ambiguous\"\n[scan]\ndepth = 1\nfile_bytes = 5\n",
    );
    let config = Config::find(&environment).unwrap();
    assert_eq!(config.path, Some(tree.at("repo/prowess.toml")));
    assert_eq!(config.precedence, Precedence::RefuseAmbiguous);
    assert_eq!(config.default_roots, Some(false));
    assert_eq!(
        (config.limits.depth, config.limits.file_bytes, config.limits.entries),
        (1, 5, 500_000)
    );
    let sources: Vec<_> = config.sources.iter().map(|root| root.path.clone()).collect();
    assert_eq!(sources, [tree.at("repo/./skills"), tree.at("home/mine"), "/abs".into()]);
}

#[test]
fn a_mistake_in_the_configuration_names_the_line() {
    let tree = Tree::new();
    tree.write("prowess.toml", "[skills]\nsource = [\"x\"]\n");
    let error = Config::find(&Environment::in_folder(tree.path())).unwrap_err().to_string();
    assert!(error.contains("prowess.toml") && error.contains("line 2"), "{error}");
    assert!(error.contains("unknown field `source`"), "{error}");
}

#[test]
fn labels_are_as_deepagents_derives_them() {
    for (path, label) in [
        ("~/.claude/skills", "Claude"),
        ("~/.deepagents/agent/skills", "Agent"),
        ("/x/my-team_tools/skills/", "My Team Tools"),
        ("C:\\Users\\me\\.agents\\skills", "Agents"),
        ("built_in_skills", "Built-in"),
        ("/x/Built_In_Skills", "Built-in"),
        ("skills", "Skills"),
        ("/skills", "Skills"),
        ("/x/Skills", "X"),
        ("/my.team/skills", "My.Team"),
        ("/my2team/skills", "My2Team"),
        ("/", "Unnamed"),
        ("", "Unnamed"),
        ("/srv/KITCHEN", "Kitchen"),
    ] {
        assert_eq!(label_of(path.as_ref()), label, "{path}");
    }
}
