//! Documents as GET gives them, sent back.

use std::fmt;
use std::marker::PhantomData;

use prowess_store::{DocumentChange, SkillDocument};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What an answer of GET or PUT has beyond the document of a new skill. It is passed over.
pub(in crate::routes) const DOCUMENT_EXTRA: &[&str] = &[
    "is_builtin",
    "has_custom_content",
    "active_version",
    "version_number",
    "version_count",
    "revision",
    "tree_digest",
    "created_by",
    "created_at",
    "updated_at",
    "findings",
    "pending_version",
    "change_summary",
];
/// What it has beyond a change, besides `id`: all but the last one. It is passed over.
pub(in crate::routes) const CHANGE_EXTRA: &[&str] =
    DOCUMENT_EXTRA.split_at(DOCUMENT_EXTRA.len() - 1).0;

/// A new skill. What GET says beyond a document may stand there, and is not taken.
#[derive(Debug)]
pub(super) struct NewSkill(pub(super) SkillDocument);

/// A change of a skill. What GET says beyond that may stand there, and is not taken.
#[derive(Debug)]
pub(super) struct Change {
    /// The skill that it says it is of.
    pub(super) id: Option<String>,
    pub(super) change: DocumentChange,
}

impl<'de> Deserialize<'de> for NewSkill {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let own = Own { extra: DOCUMENT_EXTRA, id: None, kind: PhantomData };
        deserializer.deserialize_map(own).map(Self)
    }
}

impl<'de> Deserialize<'de> for Change {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut id = None;
        let own = Own { extra: CHANGE_EXTRA, id: Some(&mut id), kind: PhantomData };
        let change = deserializer.deserialize_map(own)?;
        Ok(Self { id, change })
    }
}

/// Reads a value of the fields that are not extra. The id is put aside where there is a place.
struct Own<'a, T> {
    extra: &'a [&'a str],
    id: Option<&'a mut Option<String>>,
    kind: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Own<'_, T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<T, M::Error> {
        let fields = Fields { map, extra: self.extra, id: self.id };
        T::deserialize(MapAccessDeserializer::new(fields))
    }
}

struct Fields<'a, M> {
    map: M,
    extra: &'a [&'a str],
    id: Option<&'a mut Option<String>>,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for Fields<'_, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        while let Some(name) = self.map.next_key::<String>()? {
            match &mut self.id {
                Some(Some(_)) if name == "id" => return Err(Error::duplicate_field("id")),
                Some(id) if name == "id" => **id = self.map.next_value()?,
                _ if self.extra.contains(&name.as_str()) => {
                    self.map.next_value::<IgnoredAny>()?;
                }
                _ => return seed.deserialize(name.into_deserializer()).map(Some),
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.map.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::routes::skills::SkillInfo;

    #[test]
    fn whatever_an_answer_has_is_taken_back() {
        let schema = serde_json::to_value(<SkillInfo as utoipa::PartialSchema>::schema()).unwrap();
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let own = serde_json::to_value(SkillDocument::new("n", "d", "c")).unwrap();
        for name in names {
            let is_own = own.get(name).is_some() || name == "id";
            assert!(is_own || DOCUMENT_EXTRA.contains(&name.as_str()), "{name}");
        }
    }

    #[test]
    fn what_is_extra_is_passed_over_and_what_is_unknown_refused() {
        let text = json!({"id": "a", "name": "A", "revision": {"x": [1]}, "change_summary": "why"});
        let Change { id, change } = serde_json::from_value(text).unwrap();
        assert_eq!((id.as_deref(), change.name.as_deref()), (Some("a"), Some("A")));
        assert_eq!(change.change_summary.as_deref(), Some("why"));
        let error = serde_json::from_str::<Change>("{\n\"revison\": 1}").unwrap_err();
        assert!(error.to_string().starts_with("unknown field `revison`, expected"), "{error}");
        assert_eq!(error.line(), 2);
        assert!(serde_json::from_str::<Change>(r#"{"id": "a", "id": "b"}"#).is_err());
        let text = r#"{"id": "a", "name": "A", "description": "d", "core_content": "c",
            "tree_digest": "v1:0", "change_summary": null}"#;
        let NewSkill(document) = serde_json::from_str(text).unwrap();
        assert_eq!((document.id.as_deref(), document.core_content.as_str()), (Some("a"), "c"));
    }
}
