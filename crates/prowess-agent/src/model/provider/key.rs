//! Keys, which nobody sees.

use std::sync::Arc;

use super::name::Provider;

/// A key of a provider. It shows itself to nobody.
///
/// ```
/// let key = prowess_agent::ApiKey::new("secret");
/// assert_eq!(format!("{key:?}"), "[key]");
/// ```
#[derive(Clone)]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// This key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into().trim().into())
    }

    /// The key of a provider in the environment.
    pub fn of(provider: Provider) -> Option<Self> {
        let set = |name: &&str| std::env::var(name).ok().filter(|key| !key.trim().is_empty());
        provider.key_variables().iter().find_map(set).map(Self::new)
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text without the key.
    pub(super) fn hidden_in(&self, text: &str) -> String {
        match self.0.is_empty() {
            true => text.to_owned(),
            false => text.replace(&*self.0, "[key]"),
        }
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[key]")
    }
}
