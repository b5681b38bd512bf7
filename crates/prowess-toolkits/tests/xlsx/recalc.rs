//! `xlsx_recalc`.

use prowess_toolkits::XlsxSettings;
use serde_json::{Value, json};

use crate::support::{World, pack, parts, with_part};

async fn recalc(world: &World) -> Value {
    world.ok("xlsx_recalc", json!({"path": "work/book.xlsx"})).await
}

/// Puts a workbook there whose formulas all say 0.
async fn stale(world: &World, rows: Value) -> Vec<u8> {
    let sheets = json!([{"name": "Data", "rows": rows}]);
    let call =
        json!({"path": "work/book.xlsx", "sheets": sheets, "allow_stale": true, "overwrite": true});
    world.ok("xlsx_create", call).await;
    let bytes = with_part(&world.bytes("work/book.xlsx"), "xl/worksheets/sheet1.xml", |xml| {
        let mut out = String::new();
        for (number, piece) in xml.split("</f>").enumerate() {
            if number == 0 {
                out.push_str(piece);
                continue;
            }
            let end = piece.find("</c>").unwrap();
            out.push_str("</f><v>0</v>");
            out.push_str(&piece[end..]);
        }
        out.replace(" t=\"e\"><f>", "><f>").replace(" t=\"str\"><f>", "><f>")
    });
    world.put("work/book.xlsx", &bytes);
    bytes
}

#[tokio::test]
async fn stale_values_become_true_ones() {
    let world = World::new().await;
    stale(&world, json!([[2, "=A1*3"], [4, "=B1+A2"]])).await;
    assert_eq!(world.value("work/book.xlsx", "B2").await, 0);
    let done = recalc(&world).await;
    assert_eq!(done["status"], "success");
    assert_eq!(
        (&done["total_formulas"], &done["total_errors"], &done["error_summary"]),
        (&json!(2), &json!(0), &json!({}))
    );
    assert_eq!((&done["unsupported"], &done["refused_reason"]), (&json!([]), &json!(null)));
    assert_eq!(done["changed_cells"], 2);
    assert_eq!(world.value("work/book.xlsx", "B2").await, 10);
    // Once more changes nothing.
    let before = world.bytes("work/book.xlsx");
    assert_eq!(recalc(&world).await["changed_cells"], 0);
    assert_eq!(world.bytes("work/book.xlsx"), before);
}

#[tokio::test]
async fn errors_are_counted_and_located_and_texts_about_errors_are_not() {
    let world = World::new().await;
    stale(
        &world,
        json!([
            [0, "=1/A1", "see #REF! note"],
            [1, "=1/A1", "=\"#N/A is text\""],
            [2, "=VLOOKUP(9,A1:A3,1,FALSE)", "=UPPER(C1)"]
        ]),
    )
    .await;
    let done = recalc(&world).await;
    assert_eq!(done["status"], "errors_found");
    assert_eq!((&done["total_formulas"], &done["total_errors"]), (&json!(5), &json!(3)));
    let expected = json!({
        "#DIV/0!": {"count": 2, "locations": ["Data!B1", "Data!B2"]},
        "#N/A": {"count": 1, "locations": ["Data!B3"]},
    });
    assert_eq!(done["error_summary"], expected);
    assert_eq!(world.value("work/book.xlsx", "B3").await, "#N/A");
}

#[tokio::test]
async fn at_most_so_many_locations_are_named() {
    let world = World::new().await;
    let rows: Vec<Value> = (0..25).map(|_| json!(["=1/0"])).collect();
    stale(&world, json!(rows)).await;
    let done = recalc(&world).await;
    assert_eq!(done["error_summary"]["#DIV/0!"]["count"], 25);
    assert_eq!(done["error_summary"]["#DIV/0!"]["locations"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn a_function_that_is_not_known_is_a_status_and_the_original_stays() {
    let world = World::new().await;
    let before = stale(&world, json!([["=NOSUCHFN(1)", "=1+1"]])).await;
    let done = recalc(&world).await;
    assert_eq!(done["status"], "unsupported");
    assert_eq!(done["unsupported"], json!(["NOSUCHFN"]));
    assert_eq!(done["error_summary"]["#NAME?"]["locations"], json!(["Data!A1"]));
    assert!(done["refused_reason"].as_str().unwrap().contains("NOSUCHFN"));
    assert_eq!(world.bytes("work/book.xlsx"), before);
}

#[tokio::test]
async fn a_step_that_may_be_negative_is_not_calculated_wrong() {
    let world = World::new().await;
    let before = stale(&world, json!([[-2, "=CEILING(-2.5,A1)", "=FLOOR(A1,0)"]])).await;
    let done = recalc(&world).await;
    assert_eq!(done["status"], "unsupported");
    assert_eq!(done["unsupported"], json!(["CEILING", "FLOOR"]));
    assert!(done["refused_reason"].as_str().unwrap().contains("positive number"), "{done}");
    assert_eq!(world.bytes("work/book.xlsx"), before);
    stale(&world, json!([[7, "=CEILING(A1,5)", "=FLOOR(A1,2)"]])).await;
    assert_eq!(recalc(&world).await["status"], "success");
    assert_eq!(world.value("work/book.xlsx", "B1").await, 10);
}

#[tokio::test]
async fn a_circle_is_refused_with_its_cells_and_the_original_stays() {
    let world = World::new().await;
    let before = stale(&world, json!([["=B1", "=C1+1", "=A1"], [1, "=A2", 3]])).await;
    let done = recalc(&world).await;
    assert_eq!(done["status"], "refused");
    let reason = done["refused_reason"].as_str().unwrap();
    for cell in ["Data!A1", "Data!B1", "Data!C1"] {
        assert!(reason.contains(cell), "{reason}");
    }
    assert!(!reason.contains("Data!B2"), "{reason}");
    assert_eq!(done["total_formulas"], 4);
    assert_eq!(world.bytes("work/book.xlsx"), before);
}

#[tokio::test]
async fn links_to_other_workbooks_are_not_followed() {
    let world = World::new().await;
    world.book(json!([[1, "=A1+1"]])).await;
    let mut book = parts(&world.bytes("work/book.xlsx"));
    let text = |book: &std::collections::BTreeMap<String, Vec<u8>>, name: &str| {
        String::from_utf8(book[name].clone()).unwrap()
    };
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let link = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><externalLink xmlns=\"{main}\"><externalBook xmlns:r=\"{rel}\" r:id=\"rId1\"><sheetNames><sheetName val=\"Other\"/></sheetNames><sheetDataSet><sheetData sheetId=\"0\"><row r=\"1\"><cell r=\"A1\"><v>41</v></cell></row></sheetData></sheetDataSet></externalBook></externalLink>"
    );
    book.insert("xl/externalLinks/externalLink1.xml".to_owned(), link.into_bytes());
    book.insert("xl/externalLinks/_rels/externalLink1.xml.rels".to_owned(), format!("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"rId1\" Type=\"{rel}/externalLinkPath\" Target=\"file:///secret/other.xlsx\" TargetMode=\"External\"/></Relationships>").into_bytes());
    let types = text(&book, "[Content_Types].xml").replace("</Types>", "<Override PartName=\"/xl/externalLinks/externalLink1.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.externalLink+xml\"/></Types>");
    let relations = text(&book, "xl/_rels/workbook.xml.rels").replace("</Relationships>", &format!("<Relationship Id=\"rId77\" Type=\"{rel}/externalLink\" Target=\"externalLinks/externalLink1.xml\"/></Relationships>"));
    let workbook = text(&book, "xl/workbook.xml").replace(
        "</sheets>",
        "</sheets><externalReferences><externalReference r:id=\"rId77\"/></externalReferences>",
    );
    let sheet =
        text(&book, "xl/worksheets/sheet1.xml").replace("<f>A1+1</f>", "<f>[1]Other!A1+1</f>");
    for (name, content) in [
        ("[Content_Types].xml", types),
        ("xl/_rels/workbook.xml.rels", relations),
        ("xl/workbook.xml", workbook),
        ("xl/worksheets/sheet1.xml", sheet),
    ] {
        book.insert(name.to_owned(), content.into_bytes());
    }
    let before = pack(&book);
    world.put("work/book.xlsx", &before);
    let done = recalc(&world).await;
    assert_eq!(done["status"], "unsupported", "{done}");
    assert!(done["refused_reason"].as_str().unwrap().contains("external link"), "{done}");
    assert_eq!(world.bytes("work/book.xlsx"), before);
    let found = world.ok("xlsx_inspect", json!({"path": "work/book.xlsx"})).await;
    assert_eq!(found["external_links"], json!(["file:///secret/other.xlsx"]));
    let checked = world.ok("xlsx_check", json!({"path": "work/book.xlsx"})).await;
    assert_eq!(checked["counts"]["external_link"], 1, "{checked}");
    assert_eq!(checked["counts"]["external_reference"], 1, "{checked}");
}

#[tokio::test]
async fn volatile_functions_are_told() {
    let world = World::new().await;
    stale(&world, json!([["=NOW()", "=TODAY()+RAND()", "=\"NOW()\""]])).await;
    let done = recalc(&world).await;
    assert_eq!(done["volatile"], json!({"NOW": 1, "TODAY": 1, "RAND": 1}));
}

#[tokio::test]
async fn the_limit_of_formulas_holds_at_the_edge() {
    let world = World::with(XlsxSettings::default().with_max_formulas(2)).await;
    stale(&world, json!([["=1", "=2"]])).await;
    assert_eq!(recalc(&world).await["status"], "success");
    let world = World::with(XlsxSettings::default().with_max_formulas(1)).await;
    let before = stale(&world, json!([["=1", "=2"]])).await;
    let done = recalc(&world).await;
    assert_eq!(done["status"], "refused");
    assert!(done["refused_reason"].as_str().unwrap().contains("`max_formulas` = 1"), "{done}");
    assert_eq!(world.bytes("work/book.xlsx"), before);
}

#[tokio::test]
async fn what_takes_too_long_is_refused() {
    let world = World::with(XlsxSettings::default().with_max_recalc_seconds(0)).await;
    let before = stale(&world, json!([["=1"]])).await;
    let done = recalc(&world).await;
    assert_eq!(done["status"], "refused");
    assert!(
        done["refused_reason"].as_str().unwrap().contains("`max_recalc_seconds` = 0"),
        "{done}"
    );
    assert_eq!(world.bytes("work/book.xlsx"), before);
}

#[tokio::test]
async fn an_output_leaves_the_original_alone() {
    let world = World::new().await;
    let before = stale(&world, json!([[1, "=A1*2"]])).await;
    let call = json!({"path": "work/book.xlsx", "output": "out/new.xlsx"});
    assert_eq!(world.ok("xlsx_recalc", call).await["written"], "workspace://out/new.xlsx");
    assert_eq!(world.bytes("work/book.xlsx"), before);
    assert_eq!(world.value("out/new.xlsx", "B1").await, 2);
}

#[tokio::test]
async fn deep_formulas_do_not_break_the_program() {
    let world = World::new().await;
    for depth in [60, 2000] {
        let formula = format!("={}1{}", "(".repeat(depth), ")".repeat(depth));
        let sheets = json!([{"rows": [[formula]]}]);
        let call = json!({"path": "out/deep.xlsx", "sheets": sheets, "overwrite": true});
        // It is calculated, or it is refused.
        let outcome = world.call("xlsx_create", call).await;
        assert!(["ok", "not_recalculated"].contains(&outcome.code.as_ref()), "{}", outcome.content);
    }
}

#[tokio::test]
async fn numbers_become_texts_with_the_digits_that_excel_writes() {
    let world = World::new().await;
    let rows = json!([
        ["=0.1*3&\"\""],
        ["=1/3&\"\""],
        ["=1E20&\"\""],
        ["=CONCATENATE(\"a\",2/3)"],
        ["=LEN(1/3&\"\")"],
        ["=IF(A1=\"0.3\",LEN(A1),0)"],
        ["=TEXTJOIN(\",\",TRUE,A1:A6)"]
    ]);
    stale(&world, rows).await;
    let before = parts(&world.bytes("work/book.xlsx"));
    let done = recalc(&world).await;
    assert_eq!(done["status"], "success", "{done}");
    let read = world.ok("xlsx_read_range", json!({"path": "work/book.xlsx"})).await;
    let expected = json!([
        ["0.3"],
        ["0.333333333333333"],
        ["1E+20"],
        ["a0.666666666666667"],
        [17],
        [3],
        ["0.3,0.333333333333333,1E+20,a0.666666666666667,17,3"]
    ]);
    assert_eq!(read["rows"], expected);
    // Nothing but values changed: the formulas stand there as they stood.
    let after = parts(&world.bytes("work/book.xlsx"));
    let formulas = |xml: &[u8]| {
        let xml = String::from_utf8(xml.to_vec()).unwrap();
        let pieces = xml.split("<f>").skip(1).map(|it| it.split("</f>").next().unwrap().to_owned());
        pieces.collect::<Vec<String>>()
    };
    for (name, old) in &before {
        match name.ends_with("sheet1.xml") {
            true => assert_eq!(formulas(old), formulas(&after[name])),
            false => assert_eq!(old, &after[name], "{name}"),
        }
    }
    let bytes = world.bytes("work/book.xlsx");
    assert_eq!(recalc(&world).await["changed_cells"], 0);
    assert_eq!(world.bytes("work/book.xlsx"), bytes);
}

#[tokio::test]
async fn what_the_engine_calculates_otherwise_is_not_written() {
    let world = World::new().await;
    let table = [
        ("=TEXT(0.25,\"# ?/?\")", "TEXT"),
        ("=TEXT(\"a\",\"@@\")", "TEXT"),
        ("=VALUE(\"1,234\")", "number in a text"),
        ("=\"$5\"+0", "number in a text"),
        ("=CELL(\"width\",A1)", "CELL"),
        ("=SUMPRODUCT(LEN(A1:A3))", "LEN"),
        ("=SUMPRODUCT(--ISNUMBER(A1:A3))", "ISNUMBER"),
        ("=CEILING(A1,-2)", "CEILING"),
    ];
    for (formula, name) in table {
        let before = stale(&world, json!([["ab", formula], [1.5, null], ["x", null]])).await;
        let done = recalc(&world).await;
        assert_eq!(done["status"], "unsupported", "{formula}: {done}");
        assert_eq!(done["unsupported"], json!([name]), "{formula}");
        let why = done["refused_reason"].as_str().unwrap();
        assert!(why.ends_with("(Data!B1)"), "{why}");
        assert_eq!(world.bytes("work/book.xlsx"), before, "{formula}");
    }
}
