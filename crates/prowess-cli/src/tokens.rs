//! Tokens as the newer models of `OpenAI` count them (`o200k_base`).

/// The tokens of a text.
pub(crate) fn encode(text: &str) -> Vec<u32> {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text)
}

/// How many tokens a text is.
pub(crate) fn count(text: &str) -> usize {
    encode(text).len()
}
