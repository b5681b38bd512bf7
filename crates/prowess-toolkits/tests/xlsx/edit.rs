//! `xlsx_edit`.

use std::collections::BTreeSet;

use prowess_toolkits::XlsxSettings;
use serde_json::{Value, json};

use crate::support::{World, pack, packed, parts, rich, with_part};

async fn rich_world() -> World {
    let world = World::new().await;
    world.ok("xlsx_create", rich()).await;
    world
}

async fn edit(world: &World, operations: Value) -> Value {
    world.ok("xlsx_edit", json!({"path": "work/rich.xlsx", "operations": operations})).await
}

#[tokio::test]
async fn untouched_parts_stay_byte_for_byte() {
    let world = rich_world().await;
    let before = world.bytes("work/rich.xlsx");
    let done =
        edit(&world, json!([{"op": "set", "sheet": "Orders", "cell": "B2", "value": 10}])).await;
    let after = world.bytes("work/rich.xlsx");
    let (before, after) = (packed(&before), packed(&after));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    // The second sheet depends on the first: its values are new.
    let changed: BTreeSet<&str> =
        before.iter().filter(|(name, old)| after[*name] != **old).map(|it| it.0.as_str()).collect();
    let expected = ["xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"];
    assert_eq!(changed, expected.into());
    assert_eq!(done["changed_parts"], json!(expected), "and this is what is said");
    assert!(before.keys().any(|it| it.starts_with("xl/charts/")), "{:?}", before.keys());
    assert_eq!(world.value("work/rich.xlsx", "Orders!D2").await, 15);
    assert_eq!(world.value("work/rich.xlsx", "'My totals'!B1").await, 36.5);
    let found = world.ok("xlsx_inspect", json!({"path": "work/rich.xlsx"})).await;
    let counts = ["formulas", "charts", "validations", "conditional_formats"];
    assert_eq!(counts.map(|it| found[it].as_u64().unwrap()), [5, 1, 1, 1]);
}

#[tokio::test]
async fn every_operation_does_what_it_says() {
    let world = rich_world().await;
    let done = edit(
        &world,
        json!([
            {"op": "set", "sheet": "My totals", "cell": "D1", "rows": [[1, "x <&>"], [true, {"date": "2026-02-28"}]]},
            {"op": "set", "cell": "'My totals'!A5", "formula": "SUM(D1,B3)", "format": "0.00"},
            {"op": "set", "sheet": "My totals", "cell": "A6", "value": 5, "bold": true},
            {"op": "clear", "sheet": "My totals", "range": "A6"},
            {"op": "format", "sheet": "My totals", "range": "B1:B2", "format": "#,##0.000"},
            {"op": "append_rows", "sheet": "My totals", "rows": [["last", "=B1"]]},
            {"op": "append_rows", "table": "Orders", "rows": [["d", 5, 1], ["e", 6, 2, 99]]},
            {"op": "add_sheet", "name": "New & old", "rows": [["=Rate*2"]]},
            {"op": "rename_sheet", "sheet": "Orders", "name": "All orders"},
            {"op": "set", "sheet": "All orders", "cell": "B2", "value": 7},
            {"op": "column_width", "sheet": "All orders", "column": "B:D", "width": 22.5},
            {"op": "define_name", "name": "First", "refers_to": "'All orders'!$B$2"},
            {"op": "set", "sheet": "My totals", "cell": "E5", "value": "=First+1"}
        ]),
    )
    .await;
    assert_eq!(done["recalc"]["status"], "success", "{done}");
    let expected = [
        ("'My totals'!D1", json!(1)),
        ("'My totals'!E1", json!("x <&>")),
        ("'My totals'!D2", json!(true)),
        ("'My totals'!E2", json!("2026-02-28")),
        ("'My totals'!A5", json!(1.2)),
        // What was cleared is not used; the next row goes there.
        ("'My totals'!A6", json!("last")),
        ("'My totals'!B6", json!(32)),
        ("'My totals'!E5", json!(8)),
        ("'New & old'!A1", json!(0.4)),
        ("'All orders'!A5", json!("d")),
        ("'All orders'!B2", json!(7)),
    ];
    for (cell, value) in expected {
        assert_eq!(world.value("work/rich.xlsx", cell).await, value, "{cell}");
    }
    let sum = world.formula("work/rich.xlsx", "'My totals'!B1").await;
    assert_eq!(sum, "=SUM('All orders'!D2:D4)");
    let found = world.ok("xlsx_inspect", json!({"path": "work/rich.xlsx"})).await;
    assert_eq!(found["tables"][0]["range"], "A1:D6", "{found}");
    let book = parts(&world.bytes("work/rich.xlsx"));
    let sheet = String::from_utf8(book["xl/worksheets/sheet1.xml"].clone()).unwrap();
    let columns = sheet.split_once("<cols>").unwrap().1.split_once("</cols>").unwrap().0;
    assert_eq!(columns.matches("width=\"22.5\"").count(), columns.matches("<col ").count() - 1);
    assert!(columns.contains("min=\"3\" max=\"3\""), "{columns}");
    let chart = book.iter().find(|(name, _)| name.starts_with("xl/charts/chart")).unwrap().1;
    let chart = String::from_utf8(chart.clone()).unwrap();
    assert!(chart.contains("'All orders'!$B$2:$B$4"), "{chart}");
    assert!(!chart.contains("<c:f>Orders!"), "{chart}");
    let formats = world
        .ok("xlsx_read_range", json!({"path": "work/rich.xlsx", "range": "'My totals'!A1:E5"}))
        .await;
    assert_eq!(formats["number_formats"]["B1"], "#,##0.000");
    assert_eq!(formats["number_formats"]["A5"], "0.00");
    assert_eq!(formats["number_formats"]["E2"], "yyyy-mm-dd");
}

#[tokio::test]
async fn appended_rows_look_like_the_one_above_and_tables_fill_their_columns() {
    let world = World::new().await;
    world
        .book(json!([["n", "half"], [{"value": 1, "format": "0.0%"}, 2], [{"value": 3, "format": "0.0%"}, 4]]))
        .await;
    let operations = json!([{"op": "append_rows", "rows": [[5, 6]]}]);
    world.ok("xlsx_edit", json!({"path": "work/book.xlsx", "operations": operations})).await;
    let read =
        world.ok("xlsx_read_range", json!({"path": "work/book.xlsx", "range": "A4:B4"})).await;
    assert_eq!(read["rows"], json!([[5, 6]]));
    assert_eq!(read["number_formats"]["A4"], "0.0%");
}

#[tokio::test]
async fn a_shared_formula_survives_the_loss_of_its_first_cell() {
    let world = World::new().await;
    world.book(json!([[1, "=A1*2"], [2, "=A2*2"], [3, "=A3*2"]])).await;
    let shared = with_part(&world.bytes("work/book.xlsx"), "xl/worksheets/sheet1.xml", |xml| {
        xml.replace("<f>A1*2</f>", "<f t=\"shared\" ref=\"B1:B3\" si=\"0\">A1*2</f>")
            .replace("<f>A2*2</f>", "<f t=\"shared\" si=\"0\"/>")
            .replace("<f>A3*2</f>", "<f t=\"shared\" si=\"0\"/>")
    });
    world.put("work/book.xlsx", &shared);
    assert_eq!(world.formula("work/book.xlsx", "B3").await, "=A3*2");
    let operations =
        json!([{"op": "set", "cell": "B1", "value": 0}, {"op": "set", "cell": "A3", "value": 9}]);
    world.ok("xlsx_edit", json!({"path": "work/book.xlsx", "operations": operations})).await;
    let read = world.ok("xlsx_read_range", json!({"path": "work/book.xlsx"})).await;
    assert_eq!(read["rows"], json!([[1, 0], [2, 4], [9, 18]]));
    assert_eq!(read["formulas"], json!({"B2": "=A2*2", "B3": "=A3*2"}));
}

#[tokio::test]
async fn the_chain_of_calculation_goes_only_if_formulas_change() {
    let world = World::new().await;
    world.book(json!([[1, "=A1*2"]])).await;
    let mut book = parts(&world.bytes("work/book.xlsx"));
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let chain = format!("<calcChain xmlns=\"{main}\"><c r=\"B1\" i=\"1\"/></calcChain>");
    book.insert("xl/calcChain.xml".to_owned(), chain.into_bytes());
    let add = |text: &[u8], end: &str, new: &str| {
        String::from_utf8(text.to_vec()).unwrap().replace(end, &format!("{new}{end}")).into_bytes()
    };
    let types = add(
        &book["[Content_Types].xml"],
        "</Types>",
        "<Override PartName=\"/xl/calcChain.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.calcChain+xml\"/>",
    );
    book.insert("[Content_Types].xml".to_owned(), types);
    let relations = add(
        &book["xl/_rels/workbook.xml.rels"],
        "</Relationships>",
        "<Relationship Id=\"rId99\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/calcChain\" Target=\"calcChain.xml\"/>",
    );
    book.insert("xl/_rels/workbook.xml.rels".to_owned(), relations);
    world.put("work/book.xlsx", pack(&book));
    let edit = async |operation: Value| {
        let call = json!({"path": "work/book.xlsx", "operations": [operation]});
        world.ok("xlsx_edit", call).await
    };
    edit(json!({"op": "set", "cell": "A1", "value": 3})).await;
    assert!(parts(&world.bytes("work/book.xlsx")).contains_key("xl/calcChain.xml"));
    edit(json!({"op": "set", "cell": "C1", "value": "=A1+1"})).await;
    let after = parts(&world.bytes("work/book.xlsx"));
    assert!(!after.contains_key("xl/calcChain.xml"));
    for part in ["[Content_Types].xml", "xl/_rels/workbook.xml.rels"] {
        assert!(!String::from_utf8_lossy(&after[part]).contains("calcChain"), "{part}");
    }
    assert_eq!(world.value("work/book.xlsx", "C1").await, 4);
}

#[tokio::test]
async fn what_would_break_something_is_refused_by_name_and_nothing_is_written() {
    let world = World::new().await;
    let mut described = rich();
    described["sheets"][1]["merges"] = json!([{"range": "D1:E2", "text": "both"}]);
    described["sheets"][1]["rows"].as_array_mut().unwrap().push(json!(["=SEQUENCE(3)"]));
    world.ok("xlsx_create", described).await;
    let before = world.bytes("work/rich.xlsx");
    let table = [
        (
            json!({"op": "insert_rows", "sheet": "Orders", "row": 2}),
            "insert_rows",
            "use append_rows",
        ),
        (json!({"op": "delete_sheet", "sheet": "Orders"}), "delete_sheet", "would break"),
        (json!({"op": "run_macro"}), "run_macro", "never run"),
        (
            json!({"op": "set", "sheet": "Orders", "cell": "A1", "value": 1}),
            "table_header",
            "names a column",
        ),
        (
            json!({"op": "set", "sheet": "My totals", "cell": "E2", "value": 1}),
            "merged_cells",
            "set D1",
        ),
        (
            json!({"op": "set", "sheet": "My totals", "cell": "A5", "value": 1}),
            "array_formula",
            "A4:A6",
        ),
        (
            json!({"op": "set", "sheet": "Orders", "cell": "H9", "value": "=UNIQUE(A2:A4)"}),
            "spilling_formula",
            "UNIQUE",
        ),
        (
            json!({"op": "set", "sheet": "Orders", "cell": "H9", "value": "=[1]X!A1"}),
            "external_link",
            "another workbook",
        ),
    ];
    for (operation, reason, said) in table {
        // The first one would be done; all are done, or none.
        let operations =
            json!([{"op": "set", "sheet": "Orders", "cell": "B2", "value": 77}, operation]);
        let outcome = world
            .call("xlsx_edit", json!({"path": "work/rich.xlsx", "operations": operations}))
            .await;
        assert_eq!(outcome.code, "operation_refused", "{operation}: {}", outcome.content);
        assert_eq!(outcome.data["reason"], reason, "{operation}: {}", outcome.content);
        assert!(outcome.content.contains(said), "{operation}: {}", outcome.content);
        assert!(outcome.content.contains("operations[1]"), "{}", outcome.content);
        assert_eq!(world.bytes("work/rich.xlsx"), before, "{operation}");
    }
    let invalid = [
        (json!([]), "operations: there must be one at least"),
        (json!([{"op": "fly"}]), "there is no 'fly'; there are set, clear"),
        (json!([{"op": "set", "cell": "B2"}]), "value, formula, date, text or rows is required"),
        (json!([{"op": "set", "cell": "A1:B2", "value": 1}]), "it must be one cell"),
        (
            json!([{"op": "set", "sheet": "None", "cell": "A1", "value": 1}]),
            "there is no sheet 'None'; there are 'Orders', 'My totals'",
        ),
        (json!([{"op": "add_sheet", "name": "orders"}]), "there is a sheet 'orders' already"),
        (
            json!([{"op": "append_rows", "table": "None", "rows": [[1]]}]),
            "there is no table 'None'",
        ),
        (json!([{"op": "define_name", "name": "A1", "refers_to": "Orders!$A$1"}]), "is no cell"),
        (json!([{"op": "set", "cell": "XFD1", "rows": [[1, 2]]}]), "a sheet has 1048576 rows"),
    ];
    for (operations, expected) in invalid {
        let call = json!({"path": "work/rich.xlsx", "operations": operations});
        let (_, said) = world.refused("xlsx_edit", call).await;
        assert!(said.contains(expected), "{operations}: {said}");
        assert_eq!(world.bytes("work/rich.xlsx"), before);
    }
}

#[tokio::test]
async fn an_edit_that_makes_a_circle_is_not_written_unless_it_is_allowed() {
    let world = World::new().await;
    world.book(json!([[1, "=A1*2"]])).await;
    let before = world.bytes("work/book.xlsx");
    let call = |stale: bool| {
        let operations = json!([{"op": "set", "cell": "A1", "value": "=B1"}]);
        json!({"path": "work/book.xlsx", "operations": operations, "allow_stale": stale})
    };
    let refused = world.call("xlsx_edit", call(false)).await;
    assert_eq!(refused.code, "not_recalculated");
    assert_eq!(refused.data["recalc"]["status"], "refused");
    assert_eq!(world.bytes("work/book.xlsx"), before);
    let allowed = world.ok("xlsx_edit", call(true)).await;
    assert_eq!(allowed["stale"], true);
    let book = parts(&world.bytes("work/book.xlsx"));
    assert!(String::from_utf8_lossy(&book["xl/workbook.xml"]).contains("fullCalcOnLoad=\"1\""));
}

#[tokio::test]
async fn an_output_leaves_the_original_alone() {
    let world = rich_world().await;
    let before = world.bytes("work/rich.xlsx");
    let operations = json!([{"op": "set", "sheet": "Orders", "cell": "B2", "value": 1}]);
    let call =
        json!({"path": "work/rich.xlsx", "operations": operations, "output": "out/new.xlsx"});
    world.ok("xlsx_edit", call.clone()).await;
    assert_eq!(world.bytes("work/rich.xlsx"), before);
    assert_eq!(world.value("out/new.xlsx", "Orders!B2").await, 1);
    assert_eq!(world.refused("xlsx_edit", call).await.0, "already_exists");
}

#[tokio::test]
async fn limits_of_an_edit_hold_at_the_edge() {
    let settings = XlsxSettings::default().with_max_operations(2).with_max_written_cells(3);
    let world = World::with(settings).await;
    world.book(json!([[1]])).await;
    let edit = |operations| json!({"path": "work/book.xlsx", "operations": operations});
    let one = json!({"op": "set", "cell": "A1", "value": 1});
    world.ok("xlsx_edit", edit(json!([one, one]))).await;
    let (_, said) = world.refused("xlsx_edit", edit(json!([one, one, one]))).await;
    assert!(said.contains("`max_operations` = 2"), "{said}");
    let rows = |cells| json!([{"op": "set", "cell": "A1", "rows": [cells]}]);
    world.ok("xlsx_edit", edit(rows(json!([1, 2, 3])))).await;
    let (_, said) = world.refused("xlsx_edit", edit(rows(json!([1, 2, 3, 4])))).await;
    assert!(said.contains("`max_written_cells` = 3"), "{said}");
}

#[tokio::test]
async fn many_edits_in_any_order_give_what_a_plain_table_gives() {
    let world = World::new().await;
    world.book(json!([[0]])).await;
    let mut model = std::collections::BTreeMap::new();
    model.insert((1, 1), json!(0));
    let mut state = 3_usize;
    let mut random = move |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
        (state >> 33) % most
    };
    for _ in 0..12 {
        let mut operations = Vec::new();
        for _ in 0..8 {
            let (row, column) = (random(30) + 1, random(6) + 1);
            let cell = format!("{}{row}", char::from(b'@' + u8::try_from(column).unwrap()));
            let value = match random(5) {
                0 => Value::Null,
                1 => json!(random(1000)),
                2 => json!(format!("text {} <&>\"'", random(1000))),
                3 => json!(random(2) == 0),
                _ => json!(random(1000) as f64 / 8.0 - 50.0),
            };
            match value {
                Value::Null => operations.push(json!({"op": "clear", "range": cell})),
                ref value => operations.push(json!({"op": "set", "cell": cell, "value": value})),
            }
            model.insert((row, column), value);
        }
        world.ok("xlsx_edit", json!({"path": "work/book.xlsx", "operations": operations})).await;
        let read =
            world.ok("xlsx_read_range", json!({"path": "work/book.xlsx", "range": "A1:F30"})).await;
        for row in 1..=30 {
            for column in 1..=6 {
                let expected = model.get(&(row, column)).cloned().unwrap_or_default();
                assert_eq!(read["rows"][row - 1][column - 1].as_f64(), expected.as_f64());
                if !expected.is_number() {
                    assert_eq!(read["rows"][row - 1][column - 1], expected, "{row} {column}");
                }
            }
        }
    }
}
