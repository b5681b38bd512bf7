//! Values of sessions as stores keep them: as JSON that can be read again.

use prowess_runtime::{SessionKey, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The reader of JSON takes no value that is nested deeper.
const MAX_DEPTH: usize = 127;

/// A value as it is stored, if it can be read again.
pub(crate) fn write(key: &SessionKey, value: &impl Serialize) -> Result<String, StoreError> {
    let unstorable = |cause| StoreError::Unstorable { key: key.clone(), cause };
    let text = serde_json::to_string(value).map_err(|error| unstorable(error.to_string()))?;
    match depth(&text) {
        0..=MAX_DEPTH => Ok(text),
        depth => {
            Err(unstorable(format!("a value is nested {depth} deep, the most is {MAX_DEPTH}")))
        }
    }
}

/// How deep arrays and objects are nested in a JSON text.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Goes behind the quote that ends a string.
fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

/// A stored value.
pub(crate) fn read<T: DeserializeOwned>(key: &SessionKey, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Corrupt { key: key.clone(), cause: error.to_string() })
}
