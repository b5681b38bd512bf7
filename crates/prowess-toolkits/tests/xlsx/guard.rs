//! Formulas that reach out of their workbook.

use serde_json::{Value, json};

use crate::support::{World, with_part};

const OUT: [(&str, &str); 6] = [
    ("=WEBSERVICE (\"http://x\")", "fetching_function"),
    ("=IMAGE(\"http://x\")", "fetching_function"),
    ("=CUBEVALUE(\"c\",\"m\")", "fetching_function"),
    ("=cmd|' /C calc'!A0", "dde_link"),
    ("=[other.xlsx]Rate", "external_link"),
    ("='[other.xlsx]Data'!A1", "external_link"),
];

/// A sheet that says the formula in each place that takes one.
fn places(formula: &str) -> [(&'static str, Value, Value); 7] {
    let sheet = |key: &str, value: Value| json!([{"rows": [[1]], key: value}]);
    let chart = |title: &str, name: &str| {
        let series = json!([{"values": "A1:A2", "name": name}]);
        sheet("charts", json!([{"at": "C1", "title": title, "series": series}]))
    };
    let custom = |kind: &str| json!([{"range": "A1", "type": kind, "formula": formula}]);
    let list = json!([{"range": "A1", "type": "list", "list": formula}]);
    [
        ("rows[0][0]", json!([{"rows": [[formula]]}]), json!([])),
        ("refers_to", json!([{}]), json!([{"name": "N", "refers_to": formula}])),
        ("validations[0].formula", sheet("validations", custom("custom")), json!([])),
        ("validations[0].list", sheet("validations", list), json!([])),
        (
            "conditional_formats[0].formula",
            sheet("conditional_formats", custom("formula")),
            json!([]),
        ),
        ("charts[0].title", chart(formula, "plain"), json!([])),
        ("series[0].name", chart("plain", formula), json!([])),
    ]
}

#[tokio::test]
async fn a_formula_that_reaches_out_is_written_nowhere() {
    let world = World::new().await;
    world.book(json!([[1]])).await;
    for (formula, reason) in OUT {
        for (place, sheets, names) in places(formula) {
            let call = json!({"path": "out/a.xlsx", "sheets": sheets, "names": names});
            let refused = world.call("xlsx_create", call).await;
            assert_eq!(refused.code, "operation_refused", "{formula} {}", refused.content);
            assert_eq!(refused.data["reason"], reason, "{formula} {place}");
            assert!(refused.content.contains(place), "{place}: {}", refused.content);
            assert!(refused.hint.is_some());
        }
        for operation in [
            json!({"op": "set", "cell": "A1", "value": formula}),
            json!({"op": "append_rows", "rows": [[formula]]}),
            json!({"op": "define_name", "name": "N", "refers_to": formula}),
        ] {
            let call = json!({"path": "work/book.xlsx", "operations": [operation]});
            let refused = world.call("xlsx_edit", call).await;
            assert_eq!(refused.data["reason"], reason, "{operation}: {}", refused.content);
        }
    }
    let titled = |title: &str| {
        let series = json!([{"values": "A1:A2", "name": title}]);
        let charts = json!([{"at": "C1", "title": title, "series": series}]);
        let sheets = json!([{"name": "Data", "rows": [["x"], [1]], "charts": charts}]);
        json!({"path": "out/a.xlsx", "sheets": sheets, "overwrite": true})
    };
    world.ok("xlsx_create", titled("=Data!$A$1")).await;
    world.ok("xlsx_create", titled("a = b")).await;
    let (code, said) = world.refused("xlsx_create", titled("=1+1")).await;
    assert!(code == "invalid_arguments" && said.contains("=Data!B1"), "{said}");
}

#[tokio::test]
async fn a_check_names_what_reaches_out() {
    let world = World::new().await;
    let rows = json!([[1, "=A1+1", "=A1+2", "=A1+3"]]);
    let sheets = json!([{"name": "Data", "rows": rows}]);
    let names = json!([{"name": "Rate", "refers_to": "=Data!$A$1"}]);
    let call = json!({"path": "work/book.xlsx", "sheets": sheets, "names": names});
    world.ok("xlsx_create", call).await;
    let bytes = with_part(&world.bytes("work/book.xlsx"), "xl/worksheets/sheet1.xml", |xml| {
        xml.replace("A1+1", "_xlfn.WEBSERVICE(\"http://x\")")
            .replace("A1+2", "cmd|' /C calc'!A0")
            .replace("A1+3", "HYPERLINK(\"http://x\")")
    });
    let bytes = with_part(&bytes, "xl/workbook.xml", |xml| {
        xml.replace("Data!$A$1", "IMPORTDATA(\"http://x\")")
    });
    world.put("work/book.xlsx", bytes);
    let found = world.ok("xlsx_check", json!({"path": "work/book.xlsx"})).await;
    let at = |kind: &str| -> Vec<&str> {
        let findings = found["findings"].as_array().unwrap().iter();
        findings.filter(|it| it["kind"] == kind).map(|it| it["at"].as_str().unwrap()).collect()
    };
    assert_eq!(at("fetching_function"), ["Rate", "Data!B1"], "{found}");
    assert_eq!(at("dde_link"), ["Data!C1"], "{found}");
    assert_eq!(at("hyperlink_function"), ["Data!D1"], "{found}");
}
