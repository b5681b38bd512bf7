//! What the description says of all operations.

use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::schema::{
    AllOfBuilder, AnyOfBuilder, ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder, SecurityRequirement};

use super::skills::{CHANGE_EXTRA, DOCUMENT_EXTRA};
use crate::condition::IF_MATCH_PATTERN;
use crate::problem::PROBLEM_JSON;

/// What ids of sessions are like.
const SESSION_ID: &str = r"^[^/\s\x00-\x1f\x7f-\x9f][^/\x00-\x1f\x7f-\x9f]{0,127}$";

/// Adds what all operations have in common: keys, and how they fail.
pub(super) fn complete(description: &mut OpenApi) {
    let components = description.components.get_or_insert_default();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A key that `prowess keys create` has made, or a token of the provider in `[server.jwt]`"))
        .build();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    let header = ApiKey::Header(ApiKeyValue::new("X-API-Key"));
    components.add_security_scheme("api_key", SecurityScheme::ApiKey(header));
    let with_id: Vec<&str> = CHANGE_EXTRA.iter().copied().chain(["id"]).collect();
    for (name, extra) in [("SkillDocument", DOCUMENT_EXTRA), ("DocumentChange", &with_id)] {
        if let Some(RefOr::T(Schema::Object(schema))) = components.schemas.get_mut(name) {
            allow(schema, extra);
        }
    }
    if let Some(schema) = components.schemas.get_mut("NewCalls") {
        need_calls(schema);
    }
    for (path, item) in &mut description.paths.paths {
        for operation in operations(item) {
            narrow(operation);
            if !path.ends_with("/health") && !path.ends_with("/ready") {
                let keys = ["bearer", "api_key"];
                let requirement = |name: &str| SecurityRequirement::new(name, Vec::<String>::new());
                let mut all: Vec<_> = keys.map(requirement).into();
                all.push(SecurityRequirement::default());
                operation.security = Some(all);
                add_problem(operation, "401", "A key or a token is needed, or it is not good");
                add_problem(operation, "403", "The role or the web site may not do this");
            }
            add_problem(operation, "429", "Too many requests; see Retry-After");
            add_problem(operation, "503", "The store or the engine cannot do it now");
            add_problem(operation, "default", "Any other failure");
        }
    }
}

/// Says that there are calls: in a list, or in a message that has parts.
fn need_calls(schema: &mut RefOr<Schema>) {
    let calls = ArrayBuilder::new().items(Ref::from_schema_name("CallBody")).min_items(Some(1));
    let parts = ArrayBuilder::new().items(Ref::from_schema_name("PartBody")).min_items(Some(1));
    let message = ObjectBuilder::new().property("parts", parts).required("parts");
    let either = AnyOfBuilder::new()
        .item(ObjectBuilder::new().property("calls", calls).required("calls"))
        .item(ObjectBuilder::new().property("message", message).required("message"));
    let all = AllOfBuilder::new().item(schema.clone()).item(either);
    *schema = RefOr::T(all.build().into());
}

/// Says that an object may have these too.
fn allow(schema: &mut Object, names: &[&str]) {
    for name in names {
        let property = match *name {
            "id" => ObjectBuilder::new()
                .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
                .description(Some("As `GET` says it: no change changes it")),
            _ => ObjectBuilder::new()
                .schema_type(SchemaType::AnyValue)
                .description(Some("As `GET` says it: not taken")),
        };
        schema.properties.insert((*name).to_owned(), RefOr::T(property.build().into()));
    }
}

/// What all parameters of a kind have in common: a header that is absent is not `null`, `If-Match` has
/// tags, and ids of sessions are like all names of the engine.
fn narrow(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema else { continue };
        match parameter.parameter_in {
            ParameterIn::Header => {
                let kind = match &schema.schema_type {
                    SchemaType::Array(kinds) => kinds.iter().find(|it| **it != Type::Null).cloned(),
                    _ => None,
                };
                if let Some(kind) = kind {
                    schema.schema_type = SchemaType::Type(kind);
                }
                if parameter.name == "If-Match" {
                    schema.pattern = Some(IF_MATCH_PATTERN.to_owned());
                }
            }
            ParameterIn::Path if parameter.name == "session_id" => {
                schema.pattern = Some(SESSION_ID.to_owned());
            }
            _ => {}
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let methods = [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.delete,
        &mut item.patch,
        &mut item.head,
    ];
    methods.into_iter().filter_map(Option::as_mut)
}

/// Says that an operation may fail so, unless it says more itself.
fn add_problem(operation: &mut Operation, status: &str, description: &str) {
    let schema = RefOr::Ref(Ref::from_schema_name("Problem"));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response =
        ResponseBuilder::new().description(description).content(PROBLEM_JSON, content).build();
    let responses = &mut operation.responses.responses;
    responses.entry(status.to_owned()).or_insert(RefOr::T(response));
}
