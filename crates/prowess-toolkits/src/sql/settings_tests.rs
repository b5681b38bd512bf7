use super::*;
use crate::sql::invalid::InvalidSqlSettings;

fn read(text: &str) -> Result<SqlSettings, InvalidSqlSettings> {
    SqlSettings::from_table(toml::from_str(text).unwrap())
}

fn with(text: &str, variables: &[(&str, &str)]) -> Result<SqlSettings, InvalidSqlSettings> {
    read(text)?.with_environment(|name| {
        variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).into())
    })
}

#[test]
fn every_key_of_the_documentation_is_known_and_has_its_default() {
    assert_eq!(read("").unwrap(), SqlSettings::default());
    let lines = include_str!("settings.rs").lines();
    let section = lines
        .filter_map(|line| line.strip_prefix("/// "))
        .skip_while(|line| *line != "```toml")
        .skip(1)
        .take_while(|line| *line != "```");
    let section: Vec<&str> = section.collect();
    let mut file: toml::Table = toml::from_str(&section.join("\n")).unwrap();
    let Some(toml::Value::Table(mut table)) = file.remove("sql") else { panic!("{file}") };
    let Some(toml::Value::Table(mut connections)) = table.remove("connections") else { panic!() };
    let Some(toml::Value::Table(mut sales)) = connections.remove("sales") else { panic!() };
    let mut own = toml::Table::try_from(SqlSettings::default()).unwrap();
    own.remove("connections");
    assert_eq!(table, own, "the documentation and the settings differ");
    sales.insert("url".to_owned(), "".into());
    let own = toml::Table::try_from(SqlConnectionSettings::default()).unwrap();
    assert_eq!(sales, own, "the documentation and the settings differ");
}

/// R-08: what is not clear is no start.
#[test]
fn only_a_clear_yes_or_no_is_taken() {
    let url = ("DATABASE_URL", "sqlite:///x.db");
    for yes in ["true", "TRUE", "yes", "Yes", "1", "on"] {
        let settings = with("", &[url, ("SQL_READ_ONLY", yes)]).unwrap();
        assert_eq!(settings.connections["default"].mode, SqlMode::Ro, "{yes}");
    }
    for no in ["false", "no", "NO", "0", "off"] {
        let settings = with("", &[url, ("SQL_READ_ONLY", no)]).unwrap();
        assert_eq!(settings.connections["default"].mode, SqlMode::Rw, "{no}");
    }
    for neither in ["", " ", "maybe", "2", "tru", "y", "-", "true false"] {
        let error = with("", &[url, ("SQL_READ_ONLY", neither)]).unwrap_err();
        assert!(error.to_string().contains("clear yes or no"), "{neither}: {error}");
        assert_eq!(error.code(), "invalid_sql_settings");
    }
    let settings = with("", &[url]).unwrap();
    assert_eq!(settings.connections["default"].mode, SqlMode::Ro);
    // A yes holds for all.
    let text = "[connections.a]\nurl = \"sqlite:///x.db\"\nmode = \"rw\"";
    assert_eq!(with(text, &[]).unwrap().connections["a"].mode, SqlMode::Rw);
    let settings = with(text, &[("SQL_READ_ONLY", "yes")]).unwrap();
    assert_eq!(settings.connections["a"].mode, SqlMode::Ro);
}

#[test]
fn a_variable_that_is_no_text_is_an_error() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let no_text = || OsString::from_vec(vec![b'n', b'o', 0xff]);
    let only = |wanted: &'static str| move |name: &str| (name == wanted).then(no_text);
    let error = SqlSettings::default().with_environment(only("SQL_READ_ONLY")).unwrap_err();
    assert!(error.to_string().contains("clear yes or no"), "{error}");
    let error = SqlSettings::default().with_environment(only("DATABASE_URL")).unwrap_err();
    assert!(error.to_string().contains("no text"), "{error}");
    let own = read("[connections.a]\nurl_env = \"A_URL\"").unwrap();
    let error = own.with_environment(only("A_URL")).unwrap_err();
    assert!(error.to_string().contains("the variable A_URL is no text"), "{error}");
}

#[test]
fn a_no_that_changes_nothing_is_told() {
    let no = ("SQL_READ_ONLY", "no");
    let url = ("DATABASE_URL", "sqlite:///x.db");
    // Section, variables, mode of the connection, what is told.
    for (text, variables, mode, told) in [
        ("", &[no, url][..], SqlMode::Rw, None),
        ("", &[no], SqlMode::Rw, None),
        ("[connections.default]\nurl = \"sqlite:y\"", &[no, url], SqlMode::Rw, None),
        ("[connections.default]\nurl = \"sqlite:y\"\nmode = \"rw\"", &[no, url], SqlMode::Rw, None),
        (
            "[connections.default]\nurl = \"sqlite:y\"\nmode = \"ro\"",
            &[no, url],
            SqlMode::Ro,
            Some("[sql.connections.default] has mode = \"ro\""),
        ),
        (
            "[connections.default]\nurl = \"sqlite:y\"",
            &[no],
            SqlMode::Ro,
            Some("the database of DATABASE_URL"),
        ),
    ] {
        let settings = with(text, variables).unwrap();
        assert_eq!(settings.connections["default"].mode, mode, "{text}");
        match (settings.warnings(), told) {
            ([], None) => {}
            ([warning], Some(told)) => assert!(warning.contains(told), "{warning}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let text = "[connections.a]\nurl = \"sqlite:y\"";
    let settings = with(text, &[no]).unwrap();
    assert_eq!((settings.connections["a"].mode, settings.warnings().len()), (SqlMode::Ro, 1));
    assert!(with(text, &[("SQL_READ_ONLY", "yes")]).unwrap().warnings().is_empty());
}

#[test]
fn where_nothing_names_a_database_there_is_the_demo() {
    let settings = with("", &[]).unwrap();
    assert_eq!(settings.connections["default"].url, DEMO_URL);
    let text = "[connections.a]\nurl_env = \"A_URL\"";
    let settings = with(text, &[("A_URL", "postgresql://h/d")]).unwrap();
    assert_eq!(settings.default_connection, "a");
    assert_eq!(settings.connections["a"].url, "postgresql://h/d");
    assert_eq!(settings.connections.len(), 1);
}

#[test]
fn wrong_settings_are_named() {
    for (text, variables, expected) in [
        ("tables = 1", &[][..], "[sql]: unknown field `tables`"),
        ("[connections.a]\nurl = \"sqlite:x\"\nmode = \"write\"", &[], "unknown variant `write`"),
        ("[connections.a]\nmode = \"ro\"", &[], "[sql.connections.a]: give one of `url`"),
        ("[connections.a]\nurl = \"x\"\nurl_env = \"Y\"", &[], "[sql.connections.a]: give one of"),
        ("[connections.a]\nurl_env = \"Y\"", &[], "[sql.connections.a]: the variable Y is not set"),
        (
            "[connections.a]\nurl = \"oracle://h/d\"",
            &[],
            "[sql.connections.a]: 'oracle' is no kind",
        ),
        ("[connections.a]\nurl = \"nothing\"", &[], "[sql.connections.a]: "),
        (
            "[connections.a]\nurl = \"sqlite:x\"\nmax_rows = 0",
            &[],
            "[sql.connections.a]: max_rows must be from 1 to 100000, and is 0",
        ),
        (
            "[connections.a]\nurl = \"sqlite:x\"\ntimeout_seconds = 86401",
            &[],
            "timeout_seconds must be from 1 to 86400, and is 86401",
        ),
        (
            "[connections.a]\nurl = \"sqlite:x\"\nmax_value_bytes = 1073741825",
            &[],
            "max_value_bytes must be from 1 to 1073741824, and is 1073741825",
        ),
        (
            "[connections.a]\nurl = \"sqlite:x\"\nmax_columns = 2001",
            &[],
            "max_columns must be from 1 to 2000, and is 2001",
        ),
        (
            "[connections.a]\nurl = \"sqlite:x\"\nmax_lost_threads = 0",
            &[],
            "max_lost_threads must be from 1 to 1000, and is 0",
        ),
        (
            "default_connection = \"b\"\n[connections.a]\nurl = \"sqlite:x\"",
            &[],
            "default_connection is 'b', and there is no [sql.connections.b]",
        ),
        ("", &[("DATABASE_URL", "postgres//x")], "DATABASE_URL: the address must begin"),
    ] {
        let error = with(text, variables).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn no_password_is_shown() {
    let settings = with("", &[("DATABASE_URL", "postgresql://u:hidden@h/d")]).unwrap();
    assert!(!format!("{settings:?}").contains("hidden"));
    let error = with("", &[("DATABASE_URL", "oracle://u:hidden@h/d")]).unwrap_err();
    assert!(!error.to_string().contains("hidden"), "{error}");
}
