//! Workbooks that are edited more than once, or that another program made in its own way.

use serde_json::{Value, json};

use crate::support::{World, pack, parts, with_part};

const SHEET: &str = "xl/worksheets/sheet1.xml";
const TYPES: &str = "[Content_Types].xml";
const PLAIN: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml";

async fn edit(world: &World, path: &str, operation: Value) -> Value {
    world.ok("xlsx_edit", json!({"path": path, "operations": [operation]})).await
}

fn text(bytes: &[u8], part: &str) -> String {
    String::from_utf8(parts(bytes)[part].clone()).unwrap()
}

#[tokio::test]
async fn a_second_edit_is_done_after_any_first_one() {
    let firsts = [
        json!({"op": "clear", "range": "C1"}),
        json!({"op": "format", "range": "D10", "format": "0.00"}),
        json!({"op": "set", "cell": "F1", "value": "far"}),
        json!({"op": "clear", "range": "A1:C1"}),
    ];
    for first in firsts {
        let world = World::new().await;
        world.book(json!([[1, "=A2*2", 3], [4, 5, "=A1"]])).await;
        edit(&world, "work/book.xlsx", first.clone()).await;
        for value in [5, 6] {
            let second = json!({"op": "set", "cell": "A2", "value": value});
            let done = edit(&world, "work/book.xlsx", second).await;
            assert_eq!(done["recalc"]["status"], "success", "{first}: {done}");
        }
        let sheet = text(&world.bytes("work/book.xlsx"), SHEET);
        assert!(!sheet.contains("<c r=\"C1\"/>"), "an empty cell is not written: {sheet}");
    }
}

#[tokio::test]
async fn merged_cells_beside_the_rows_do_not_stop_an_edit() {
    let world = World::new().await;
    let sheets = json!([{"rows": [["a", "b"], [1, "=A2*2"]], "merges": [{"range": "A5:D6", "text": "note"}]}]);
    world.ok("xlsx_create", json!({"path": "work/a.xlsx", "sheets": sheets})).await;
    edit(&world, "work/a.xlsx", json!({"op": "set", "cell": "A2", "value": 4})).await;
    edit(&world, "work/a.xlsx", json!({"op": "set", "cell": "A2", "value": 5})).await;
    assert_eq!(world.value("work/a.xlsx", "B2").await, 10);
}

/// A formula over numbers alone, and one that only the engine knows.
const WAYS: [(&str, &str); 2] = [("=A2*2", "prowess"), ("=VALUE(A2&\"\")*2", "formualizer 0.13")];

#[tokio::test]
async fn a_sheet_that_says_its_size_wrong_is_calculated() {
    for (formula, engine) in WAYS {
        let world = World::new().await;
        world.book(json!([[1, "=A1*2"], [3, formula]])).await;
        let book = world.bytes("work/book.xlsx");
        let right = "<dimension ref=\"A1:B2\"/>";
        assert!(text(&book, SHEET).contains(right));
        for wrong in ["A1", "$A$1:$B$2", "nonsense", "B2"] {
            let new = format!("<dimension ref=\"{wrong}\"/>");
            let same = with_part(&book, SHEET, |xml| xml.replace(right, &new));
            world.put("work/book.xlsx", &same);
            let done = world.ok("xlsx_recalc", json!({"path": "work/book.xlsx"})).await;
            assert_eq!((&done["status"], &done["changed_cells"]), (&json!("success"), &json!(0)));
            assert_eq!(done["engine"], engine);
            assert_eq!(world.bytes("work/book.xlsx"), same, "{wrong}: nothing was to be changed");
            let other = with_part(&same, SHEET, |xml| xml.replace("<v>6</v>", "<v>0</v>"));
            world.put("work/book.xlsx", &other);
            let done = world.ok("xlsx_recalc", json!({"path": "work/book.xlsx"})).await;
            assert_eq!((&done["status"], &done["changed_cells"]), (&json!("success"), &json!(1)));
            assert_eq!(world.value("work/book.xlsx", "B2").await, 6);
            assert!(text(&world.bytes("work/book.xlsx"), SHEET).contains(right), "{wrong}");
        }
    }
}

#[tokio::test]
async fn a_sheet_that_does_not_say_its_size_stays_so() {
    for (formula, engine) in WAYS {
        let world = World::new().await;
        world.book(json!([[1, "=A1*2"], [3, formula]])).await;
        let silent = with_part(&world.bytes("work/book.xlsx"), SHEET, |xml| {
            xml.replace("<dimension ref=\"A1:B2\"/>", "<!--<dimension ref=\"A1:B2\"/>-->")
                .replace("<v>6</v>", "<v>0</v>")
        });
        world.put("work/book.xlsx", &silent);
        let done = world.ok("xlsx_recalc", json!({"path": "work/book.xlsx"})).await;
        assert_eq!((&done["engine"], &done["changed_cells"]), (&json!(engine), &json!(1)));
        let expected = text(&silent, SHEET).replace("<v>0</v>", "<v>6</v>");
        assert_eq!(text(&world.bytes("work/book.xlsx"), SHEET), expected);
    }
}

/// A workbook of another kind, with a part that is its own.
fn of_kind(bytes: &[u8], kind: &str) -> Vec<u8> {
    let mut book = parts(bytes);
    book.insert("xl/vbaProject.bin".to_owned(), b"\xD0\xCF\x11\xE0 macros".to_vec());
    let add = |part: &str, end: &str, new: &str| {
        text(bytes, part).replacen(end, &format!("{new}{end}"), 1)
    };
    let relation = "<Relationship Id=\"rId98\" Type=\"http://schemas.microsoft.com/office/2006/relationships/vbaProject\" Target=\"vbaProject.bin\"/>";
    let relations = add("xl/_rels/workbook.xml.rels", "</Relationships>", relation);
    book.insert("xl/_rels/workbook.xml.rels".to_owned(), relations.into_bytes());
    let default =
        "<Default Extension=\"bin\" ContentType=\"application/vnd.ms-office.vbaProject\"/>";
    let types = add(TYPES, "<Override ", default).replace(PLAIN, kind);
    book.insert(TYPES.to_owned(), types.into_bytes());
    pack(&book)
}

#[tokio::test]
async fn macros_are_kept_and_never_run() {
    let kinds = [
        ("book.xlsm", "application/vnd.ms-excel.sheet.macroEnabled.main+xml"),
        (
            "book.xltx",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.template.main+xml",
        ),
        ("book.xltm", "application/vnd.ms-excel.template.macroEnabled.main+xml"),
    ];
    for rows in [json!([[1, 2]]), json!([[1, "=A1*2"]])] {
        for (name, kind) in kinds {
            let world = World::new().await;
            world.book(rows.clone()).await;
            let before = of_kind(&world.bytes("work/book.xlsx"), kind);
            let path = format!("work/{name}");
            world.put(&path, &before);
            let found = world.ok("xlsx_inspect", json!({"path": path})).await;
            assert_eq!(found["macros"], true);
            let set = json!({"op": "set", "cell": "A1", "value": 5});
            let done = edit(&world, &path, set.clone()).await;
            assert_eq!((&done["stale"], &done["changed_parts"]), (&json!(false), &json!([SHEET])));
            edit(&world, &path, set).await;
            let (before, after) = (parts(&before), parts(&world.bytes(&path)));
            for part in ["xl/vbaProject.bin", TYPES, "xl/_rels/workbook.xml.rels"] {
                assert_eq!(after[part], before[part], "{name}: {part}");
            }
            assert_eq!(world.value(&path, "A1").await, 5);
            let second = if rows[0][1].is_number() { 2 } else { 10 };
            assert_eq!(world.value(&path, "B1").await, second, "{name}");
            let again = world.ok("xlsx_recalc", json!({"path": path})).await;
            assert_eq!(again["status"], "success", "{name}: {again}");
        }
    }
}

#[tokio::test]
async fn texts_with_codes_in_them_come_back() {
    let world = World::new().await;
    let texts = ["_x000A_", "a_x005F_b", "two\nlines", "\u{b}x", "_x00_ _xZZZZ_"];
    let row: Vec<Value> = texts.iter().map(|it| json!({"text": it})).collect();
    world.book(json!([row])).await;
    let operation = json!({"op": "set", "cell": "A2", "rows": [row]});
    edit(&world, "work/book.xlsx", operation).await;
    let read = world.ok("xlsx_read_range", json!({"path": "work/book.xlsx"})).await;
    assert_eq!(read["rows"], json!([texts, texts]));
    let coded = with_part(&world.bytes("work/book.xlsx"), "xl/sharedStrings.xml", |xml| {
        xml.replace("two\nlines", "two_x000D_lines")
    });
    world.put("work/coded.xlsx", coded);
    assert_eq!(world.value("work/coded.xlsx", "C1").await, "two\rlines");
}
