//! The arguments of a call.

use serde_json::{Map, Value};

use super::error::XlsxError;

/// The arguments of a call, or an object in them.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a> {
    values: &'a Map<String, Value>,
    /// Where it is: empty, or such as `sheets[0]`.
    at: &'a str,
}

impl<'a> Arguments<'a> {
    pub(super) fn of(value: &'a Value, at: &'a str) -> Result<Self, XlsxError> {
        match value {
            Value::Object(values) => Ok(Self { values, at }),
            _ => {
                let at = if at.is_empty() { "arguments" } else { at };
                Err(XlsxError::invalid(at, "it must be an object"))
            }
        }
    }

    pub(super) fn at(&self, name: &str) -> String {
        match self.at.is_empty() {
            true => name.to_owned(),
            false => format!("{}.{name}", self.at),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.values.get(name).filter(|it| !it.is_null())
    }

    fn wrong(&self, name: &str, must: &str) -> XlsxError {
        XlsxError::invalid(self.at(name), format!("it must be {must}"))
    }

    /// Nothing but these may be given.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), XlsxError> {
        match self.values.keys().find(|it| !known.contains(&it.as_str())) {
            Some(unknown) => {
                let why = format!("it is not known; there are {}", known.join(", "));
                Err(XlsxError::invalid(self.at(&super::error::shown(unknown)), why))
            }
            None => Ok(()),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, XlsxError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a text")),
        }
    }

    pub(super) fn required(&self, name: &str) -> Result<&'a str, XlsxError> {
        match self.text(name)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            _ => Err(XlsxError::invalid(self.at(name), "it is required")),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, XlsxError> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(is)) => Ok(*is),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, XlsxError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(_) => Err(self.wrong(name, "a number")),
        }
    }

    /// A list; a text that holds one as JSON is one, too.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Value>, XlsxError> {
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => Ok(list.clone()),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Array(list)) => Ok(list),
                Ok(_) => Err(self.wrong(name, "a list")),
                Err(why) => Err(XlsxError::invalid(self.at(name), format!("no JSON: {why}"))),
            },
            Some(_) => Err(self.wrong(name, "a list")),
        }
    }
}
