//! Whole columns, columns that a formula fills, sheets that others name, days before the first.

use prowess_toolkits::XlsxSettings;
use serde_json::{Value, json};

use crate::support::{World, pack, parts, rich, with_part};

const SHEET: &str = "xl/worksheets/sheet1.xml";

async fn refused(world: &World, path: &str, operation: Value) -> (Value, String) {
    let before = world.bytes(path);
    let call = json!({"path": path, "operations": [operation], "allow_stale": true});
    let outcome = world.call("xlsx_edit", call).await;
    assert!(outcome.is_error, "{operation}: {}", outcome.content);
    assert_eq!(world.bytes(path), before, "{operation}");
    (outcome.data["reason"].clone(), outcome.content)
}

#[tokio::test]
async fn a_whole_column_with_nothing_in_it_has_no_rows() {
    let world = World::new().await;
    world.book(json!([[1, 2], [3, 4]])).await;
    for range in ["Z:Z", "500:501", "Z1:AA1048576"] {
        let call = json!({"path": "work/book.xlsx", "range": range});
        let read = world.call("xlsx_read_range", call).await;
        assert_eq!((&read.data["rows"], &read.data["truncated"]), (&json!([]), &json!(false)));
        assert!(read.content.ends_with("is empty.") && read.content.len() < 80, "{}", read.content);
        let call = json!({"path": "work/book.xlsx", "range": range, "output": "out/a.csv",
            "overwrite": true});
        let written = world.ok("xlsx_export_csv", call).await;
        assert_eq!((&written["rows"], &written["size_bytes"]), (&json!(0), &json!(0)));
    }
}

#[tokio::test]
async fn of_whole_columns_only_what_is_used_counts() {
    let world = World::with(XlsxSettings::default().with_max_written_cells(4)).await;
    world.book(json!([[1, 2], [3, 4]])).await;
    let edit = |operation: Value| json!({"path": "work/book.xlsx", "operations": [operation]});
    world.ok("xlsx_edit", edit(json!({"op": "format", "range": "B:B", "format": "0.00"}))).await;
    let read = world.ok("xlsx_read_range", json!({"path": "work/book.xlsx"})).await;
    assert_eq!(read["number_formats"], json!({"B1": "0.00", "B2": "0.00"}));
    let wide = json!({"op": "format", "range": "A1:E1", "bold": true});
    let (_, said) = refused(&world, "work/book.xlsx", wide).await;
    assert!(said.contains("`max_written_cells` = 4"), "{said}");
    world.ok("xlsx_edit", edit(json!({"op": "format", "range": "Z:Z", "bold": true}))).await;
    world.ok("xlsx_edit", edit(json!({"op": "clear", "range": "A:C"}))).await;
    let read = world.ok("xlsx_read_range", json!({"path": "work/book.xlsx"})).await;
    assert_eq!(read["rows"], json!([]));
}

#[tokio::test]
async fn a_column_that_a_formula_fills_is_left_to_it() {
    let world = World::new().await;
    world.ok("xlsx_create", rich()).await;
    let bytes = with_part(&world.bytes("work/rich.xlsx"), "xl/tables/table1.xml", |xml| {
        let (from, formula) = ("name=\"Sum\"/>", "B2*C2");
        assert!(xml.contains(from), "{xml}");
        let to = format!(
            "name=\"Sum\"><calculatedColumnFormula>{formula}</calculatedColumnFormula></tableColumn>"
        );
        xml.replace(from, &to)
    });
    world.put("work/rich.xlsx", bytes);
    for operation in [
        json!({"op": "set", "sheet": "Orders", "cell": "D2", "value": 5}),
        json!({"op": "set", "sheet": "Orders", "cell": "B3", "rows": [[1, 2, 3]]}),
        json!({"op": "append_rows", "table": "Orders", "rows": [["d", 5, 1, 99]]}),
    ] {
        let (reason, said) = refused(&world, "work/rich.xlsx", operation).await;
        assert_eq!(reason, "calculated_column", "{said}");
        assert!(said.contains("'Sum'") && said.contains("Orders"), "{said}");
    }
    let operations = json!([
        {"op": "set", "sheet": "Orders", "cell": "B2", "value": 7},
        {"op": "append_rows", "table": "Orders", "rows": [["d", 5, 2], ["e", 6, 3, null]]}
    ]);
    world.ok("xlsx_edit", json!({"path": "work/rich.xlsx", "operations": operations})).await;
    assert_eq!(world.value("work/rich.xlsx", "Orders!D5").await, 10);
    assert_eq!(world.formula("work/rich.xlsx", "Orders!D6").await, "=B6*C6");
}

#[tokio::test]
async fn a_sheet_that_something_else_names_keeps_its_name() {
    let world = World::new().await;
    world.ok("xlsx_create", rich()).await;
    let book = world.bytes("work/rich.xlsx");
    let drawing = "xl/drawings/drawing1.xml";
    let with = |name: &str, text: &str| {
        let mut parts = parts(&book);
        parts.insert(name.to_owned(), text.as_bytes().to_vec());
        pack(&parts)
    };
    let linked = with_part(&book, drawing, |xml| {
        assert!(xml.contains("<xdr:graphicFrame macro=\"\""), "{xml}");
        xml.replace(
            "<xdr:graphicFrame macro=\"\"",
            "<xdr:graphicFrame macro=\"\" textlink=\"orders!$A$1\"",
        )
    });
    let control = |key: &str| format!("<formControlPr {key}=\"Orders!$A$1\"/>");
    let table = [
        (linked, "text_link"),
        (with("xl/ctrlProps/ctrlProp1.xml", &control("fmlaLink")), "control_link"),
        (with("xl/ctrlProps/ctrlProp1.xml", &control("fmlaRange")), "control_link"),
        (
            with(
                "xl/drawings/vmlDrawing1.vml",
                "<xml><x:FmlaLink>Orders!$A$1</x:FmlaLink><br></xml>",
            ),
            "control_link",
        ),
        (
            with_part(&book, "xl/worksheets/sheet2.xml", |xml| {
                xml.replace("SUM(Orders!D2:D4)", "SUM('Orders:My totals'!D2)")
            }),
            "reference_to_several_sheets",
        ),
    ];
    let rename = json!({"op": "rename_sheet", "sheet": "Orders", "name": "All"});
    for (bytes, reason) in table {
        world.put("work/rich.xlsx", bytes);
        let (own, said) = refused(&world, "work/rich.xlsx", rename.clone()).await;
        assert_eq!(own, reason, "{said}");
        assert!(said.contains("Orders"), "{said}");
    }
    // The control: without any of these it is done.
    world.put("work/rich.xlsx", with("xl/drawings/vmlDrawing1.vml", "<xml>Orders</xml>"));
    let call = json!({"path": "work/rich.xlsx", "operations": [rename], "allow_stale": true});
    world.ok("xlsx_edit", call).await;
}

#[tokio::test]
async fn a_day_that_a_workbook_cannot_count_is_refused() {
    let world = World::new().await;
    world.book(json!([[1]])).await;
    let bytes = with_part(&world.bytes("work/book.xlsx"), "xl/workbook.xml", |xml| {
        xml.replace("<workbookPr ", "<workbookPr date1904=\"1\" ")
    });
    world.put("work/book.xlsx", bytes);
    let early = json!({"op": "set", "cell": "A1", "date": "1903-12-31"});
    let (reason, said) = refused(&world, "work/book.xlsx", early).await;
    assert_eq!(reason, "date_before_1904", "{said}");
    let operations = json!([{"op": "set", "cell": "A1", "date": "1904-01-01"}]);
    world.ok("xlsx_edit", json!({"path": "work/book.xlsx", "operations": operations})).await;
    assert_eq!(world.value("work/book.xlsx", "A1").await, "1904-01-01");
}

#[tokio::test]
async fn a_shared_string_that_is_not_there_is_damage() {
    let world = World::new().await;
    world.book(json!([["x"]])).await;
    let book = world.bytes("work/book.xlsx");
    for number in ["1", "4294967295", "99999999999", "-1", "x"] {
        let bytes = with_part(&book, SHEET, |xml| {
            xml.replace("t=\"s\"><v>0</v>", &format!("t=\"s\"><v>{number}</v>"))
        });
        world.put("work/book.xlsx", bytes);
        let call = json!({"path": "work/book.xlsx"});
        let (code, said) = world.refused("xlsx_read_range", call).await;
        assert_eq!(code, "malformed_workbook", "{number}: {said}");
    }
}

#[tokio::test]
async fn numbers_of_a_file_do_not_overflow() {
    let world = World::new().await;
    world.book(json!([["x", 1], ["y", 2]])).await;
    let book = world.bytes("work/book.xlsx");
    let last = u32::MAX.to_string();
    let row = |xml: String| {
        xml.replace("<row r=\"1\"", &format!("<row r=\"{last}\""))
            .replace(" r=\"A1\"", "")
            .replace("<row r=\"2\"", "<row")
            .replace(" r=\"A2\"", "")
    };
    world.put("work/row.xlsx", with_part(&book, SHEET, row));
    let sheet = |xml: String| xml.replace("sheetId=\"1\"", &format!("sheetId=\"{last}\""));
    world.put("work/sheet.xlsx", with_part(&book, "xl/workbook.xml", sheet));
    let format = format!(
        "<numFmts count=\"1\"><numFmt numFmtId=\"{last}\" formatCode=\"0.0\"/></numFmts><fonts"
    );
    let style = |xml: String| xml.replacen("<fonts", &format, 1);
    world.put("work/style.xlsx", with_part(&book, "xl/styles.xml", style));
    let operations = json!([
        {"op": "add_sheet", "name": "New"},
        {"op": "set", "cell": "A1", "value": 1, "format": "0.0000"}
    ]);
    for name in ["row", "sheet", "style"] {
        let path = format!("work/{name}.xlsx");
        for tool in ["xlsx_inspect", "xlsx_read_range"] {
            world.call(tool, json!({"path": path})).await;
        }
        // It is done, or it is refused; the program goes on.
        let outcome =
            world.call("xlsx_edit", json!({"path": path, "operations": operations})).await;
        assert_ne!(outcome.code, "workspace_io", "{name}: {}", outcome.content);
    }
    let (code, _) = world.refused("xlsx_inspect", json!({"path": "work/row.xlsx"})).await;
    assert_eq!(code, "malformed_workbook");
}
