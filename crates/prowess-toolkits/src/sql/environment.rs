//! What the environment says about databases.

use std::ffi::OsString;
use std::path::Path;

use super::address::{Address, InvalidAddress};
use super::invalid::InvalidSqlSettings;
use super::settings::{DEFAULT_CONNECTION, DEMO_URL, SqlMode, SqlSettings};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
}

/// A clear yes or no.
fn clear(value: &str) -> Option<Answer> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(Answer::Yes),
        "false" | "no" | "off" | "0" => Some(Answer::No),
        _ => None,
    }
}

impl SqlSettings {
    /// With what the variables say: `DATABASE_URL`, `SQL_READ_ONLY`, and those that hold addresses.
    /// Where nothing names a database, there is the demo. What says something and changes nothing is
    /// in the [warnings](SqlSettings::warnings).
    pub fn with_environment(
        mut self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, InvalidSqlSettings> {
        let read_only = match variable("SQL_READ_ONLY") {
            Some(value) => {
                let answer = value.to_str().and_then(clear);
                let value = || value.to_string_lossy().into_owned();
                Some(answer.ok_or_else(|| InvalidSqlSettings::ReadOnly { value: value() })?)
            }
            None => None,
        };
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        for (name, connection) in &mut self.connections {
            if !connection.url_env.is_empty() {
                let wanted = std::mem::take(&mut connection.url_env);
                let name = || name.clone();
                connection.url = match given(&wanted).map(OsString::into_string) {
                    Some(Ok(url)) => url,
                    Some(Err(_)) => {
                        let (connection, variable) = (name(), wanted);
                        return Err(InvalidSqlSettings::NotText { connection, variable });
                    }
                    None => {
                        let (connection, variable) = (name(), wanted);
                        return Err(InvalidSqlSettings::Variable { connection, variable });
                    }
                };
            }
        }
        let url = match given("DATABASE_URL").map(OsString::into_string).transpose() {
            Ok(Some(url)) => Address::parse(&url, Path::new("/")).map(|_| Some(url)),
            Ok(None) => Ok(None),
            Err(_) => Err(InvalidAddress::Invalid("it is no text in UTF-8".to_owned())),
        };
        let url = url.map_err(|cause| InvalidSqlSettings::DatabaseUrl { cause })?;
        let is_own = url.is_some() || self.connections.is_empty();
        if is_own {
            let own = self.connections.entry(DEFAULT_CONNECTION.to_owned()).or_default();
            own.url = url.unwrap_or_else(|| DEMO_URL.to_owned());
        }
        match read_only {
            Some(Answer::No) => self.allow_writes(is_own),
            Some(Answer::Yes) => {
                self.connections.values_mut().for_each(|connection| connection.mode = SqlMode::Ro);
            }
            None => {}
        }
        if !self.connections.contains_key(&self.default_connection)
            && self.default_connection == DEFAULT_CONNECTION
            && let Some(first) = self.connections.keys().next()
        {
            self.default_connection.clone_from(first);
        }
        self.check()?;
        if !self.connections.contains_key(&self.default_connection) {
            let name = self.default_connection.clone();
            return Err(InvalidSqlSettings::DefaultConnection { name });
        }
        for (name, connection) in &self.connections {
            Address::parse(&connection.url, Path::new("/")).map_err(|cause| {
                InvalidSqlSettings::Address { place: format!("[sql.connections.{name}]"), cause }
            })?;
        }
        Ok(self)
    }

    /// `SQL_READ_ONLY` is no: the connection of `DATABASE_URL` and of the demo may write, unless
    /// somebody wrote down that it may not.
    fn allow_writes(&mut self, is_own: bool) {
        let is_decided = self.decided.contains(DEFAULT_CONNECTION);
        match self.connections.get_mut(DEFAULT_CONNECTION) {
            Some(own) if is_own && !is_decided => own.mode = SqlMode::Rw,
            Some(own) if is_own && own.mode == SqlMode::Rw => {}
            Some(_) if is_own => self.warnings.push(format!(
                "SQL_READ_ONLY is no, and [sql.connections.{DEFAULT_CONNECTION}] has mode = \"ro\": \
                 it only reads"
            )),
            _ => self.warnings.push(
                "SQL_READ_ONLY is no, which is about the database of DATABASE_URL, and that names \
                 none: the connections have the modes of [sql.connections]"
                    .to_owned(),
            ),
        }
    }
}
