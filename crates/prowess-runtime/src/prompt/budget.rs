//! How much a listing may cost.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What a listing may cost: characters, tokens, or a share of a context window.
///
/// | window | listing | loaded skills |
/// |---|---|---|
/// | 200K (default) | 16,000 characters | 10 |
/// | 128K | 10,000 characters | 6 |
/// | 32K | 4,000 characters | 3 |
///
/// ```
/// use prowess_runtime::Budget;
///
/// assert_eq!("16000".parse(), Ok(Budget::Characters(16_000)));
/// assert_eq!("4000 tokens".parse(), Ok(Budget::Tokens(4_000)));
/// assert_eq!("2% of 200000".parse(), Ok(Budget::Tokens(4_000)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "String")]
pub enum Budget {
    /// So many characters.
    Characters(usize),
    /// So many tokens.
    Tokens(usize),
}

impl Default for Budget {
    fn default() -> Self {
        Self::Characters(16_000)
    }
}

impl Budget {
    /// A share of a context window of so many tokens.
    pub fn share(window: usize, percent: f64) -> Self {
        Self::Tokens((window as f64 * percent.clamp(0.0, 100.0) / 100.0) as usize)
    }

    /// The number, of whatever it is.
    pub fn amount(self) -> usize {
        match self {
            Self::Characters(amount) | Self::Tokens(amount) => amount,
        }
    }

    /// `characters` or `tokens`.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Characters(_) => "characters",
            Self::Tokens(_) => "tokens",
        }
    }

    /// What a text costs.
    pub(crate) fn cost(self, text: &str, counter: &dyn TokenCounter) -> usize {
        match self {
            Self::Characters(_) => text.chars().count(),
            Self::Tokens(_) => counter.count(text),
        }
    }

    /// Whether a text of at least so many characters costs more than there is room for, for sure.
    pub(crate) fn surely_exceeds(self, least: u32, room: usize) -> bool {
        match self {
            Self::Characters(_) => least as usize > room,
            // Longer tokens are no words that people write.
            Self::Tokens(_) => least as usize / 64 > room,
        }
    }
}

/// The least number of characters of a text once it stands on one line: blanks are joined,
/// everything else stays, or grows. A text that would be cut has none.
pub(crate) fn least_characters(text: &str) -> u32 {
    if text.len() > super::MAX_DESCRIPTION {
        return 0;
    }
    let words = text.split_whitespace();
    let (count, characters) =
        words.fold((0, 0), |(count, all), word| (count + 1, all + word.chars().count()));
    u32::try_from((characters + count).saturating_sub(1)).unwrap_or(u32::MAX)
}

impl fmt::Display for Budget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.amount(), self.unit())
    }
}

/// The text is no budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no budget: write `16000`, `4000 tokens` or `2% of 200000`")]
pub struct InvalidBudget(String);

impl FromStr for Budget {
    type Err = InvalidBudget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidBudget(text.to_owned());
        let number = |text: &str| text.replace('_', "").parse::<usize>().ok();
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [amount] | [amount, "characters" | "chars"] => number(amount).map(Self::Characters),
            [amount, "tokens"] => number(amount).map(Self::Tokens),
            [percent, "of", window] => percent
                .strip_suffix('%')
                .and_then(|percent| percent.parse::<f64>().ok())
                .filter(|percent| percent.is_finite() && *percent >= 0.0)
                .zip(number(window))
                .map(|(percent, window)| Self::share(window, percent)),
            _ => None,
        }
        .ok_or_else(invalid)
    }
}

/// A number or a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(usize),
    Text(String),
}

impl TryFrom<Written> for Budget {
    type Error = InvalidBudget;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Number(characters) => Ok(Self::Characters(characters)),
            Written::Text(text) => text.parse(),
        }
    }
}

impl From<Budget> for String {
    fn from(budget: Budget) -> Self {
        budget.to_string()
    }
}

/// Counts tokens as a model does.
pub trait TokenCounter: Send + Sync + 'static {
    /// How many tokens a text is.
    fn count(&self, text: &str) -> usize;
}

impl<F: Fn(&str) -> usize + Send + Sync + 'static> TokenCounter for F {
    fn count(&self, text: &str) -> usize {
        self(text)
    }
}

/// Four characters are a token, about; rounded up, so that a budget is not exceeded by much.
pub fn estimate_tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

/// The counter of a host that has none.
pub(crate) fn default_counter() -> Arc<dyn TokenCounter> {
    Arc::new(estimate_tokens as fn(&str) -> usize)
}
