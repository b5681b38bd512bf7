//! Files that are made to do harm, and files of other kinds.

use std::io::{Cursor, Write};
use std::os::unix::fs::symlink;

use prowess_toolkits::XlsxSettings;
use serde_json::{Value, json};

use crate::support::{World, pack, parts, with_part};

const SHEET: &str = "xl/worksheets/sheet1.xml";

/// All that read a workbook.
const READERS: [&str; 5] =
    ["xlsx_inspect", "xlsx_read_range", "xlsx_check", "xlsx_recalc", "xlsx_export_csv"];

async fn all_refuse(world: &World, bytes: &[u8], code: &str, said: &str) {
    world.put("work/bad.xlsx", bytes);
    let edit = json!([{"op": "set", "cell": "A1", "value": 1}]);
    for tool in READERS.into_iter().chain(["xlsx_edit"]) {
        let mut call = json!({"path": "work/bad.xlsx"});
        if tool == "xlsx_edit" {
            call["operations"] = edit.clone();
        }
        let outcome = world.call(tool, call).await;
        assert_eq!(outcome.code, code, "{tool}: {}", outcome.content);
        assert!(outcome.content.contains(said), "{tool}: {}", outcome.content);
    }
    assert_eq!(world.bytes("work/bad.xlsx"), bytes);
}

async fn small(world: &World) -> Vec<u8> {
    world.book(json!([[1, "x"], [2, "=A1+A2"]])).await;
    world.bytes("work/book.xlsx")
}

#[tokio::test]
async fn other_kinds_of_files_are_named_with_a_remedy() {
    let world = World::new().await;
    let book = small(&world).await;
    let mut old = vec![0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];
    old.resize(4096, 0);
    all_refuse(&world, &old, "unsupported_format", "Excel 97 to 2003 (.xls)").await;
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    // The name lies across two of the pieces that are read.
    let mut encrypted = old.clone();
    encrypted.resize((64 << 10) - 5, 0);
    encrypted.extend(name);
    all_refuse(&world, &encrypted, "encrypted_workbook", "password").await;
    let one = |name: &str| pack(&[(name.to_owned(), b"x".to_vec())].into());
    all_refuse(&world, &one("xl/workbook.bin"), "unsupported_format", ".xlsb").await;
    let mut ods = parts(&one("mimetype"));
    ods.insert("content.xml".to_owned(), b"<x/>".to_vec());
    all_refuse(&world, &pack(&ods), "unsupported_format", ".ods").await;
    all_refuse(&world, &one("a.txt"), "not_a_workbook", "without a workbook").await;
    all_refuse(&world, b"a,b\n1,2\n", "not_a_workbook", "no ZIP file").await;
    all_refuse(&world, b"", "not_a_workbook", "it is empty").await;
    all_refuse(&world, &book[..book.len() / 2], "malformed_workbook", "(ZIP)").await;
    let outcome = world.call("xlsx_inspect", json!({"path": "work/bad.xlsx"})).await;
    assert!(outcome.hint.is_some());
}

#[tokio::test]
async fn bombs_do_not_go_off() {
    let world = World::new().await;
    let book = small(&world).await;
    // The control: as many bytes that do not shrink are read.
    let filler = |count: usize| {
        let mut state = 1_u64;
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes
    };
    let mut control = parts(&book);
    control.insert("xl/media/image1.png".to_owned(), filler(4 << 20));
    world.put("work/control.xlsx", pack(&control));
    world.ok("xlsx_inspect", json!({"path": "work/control.xlsx"})).await;
    let mut bomb = parts(&book);
    bomb.insert("xl/media/image1.png".to_owned(), vec![0; 4 << 20]);
    all_refuse(&world, &pack(&bomb), "limit_exceeded", "`max_ratio` = 250").await;
    let entity = with_part(&book, SHEET, |xml| {
        xml.replacen("<worksheet", "<!DOCTYPE w [<!ENTITY a \"aaaa\">]><worksheet", 1)
    });
    all_refuse(&world, &entity, "malformed_workbook", "document type").await;
    let deep = with_part(&book, SHEET, |xml| {
        let (open, close) = ("<x>".repeat(70), "</x>".repeat(70));
        xml.replacen("<sheetData>", &format!("{open}{close}<sheetData>"), 1)
    });
    all_refuse(&world, &deep, "limit_exceeded", "`max_xml_depth` = 64").await;
    let cut = with_part(&book, SHEET, |xml| xml[..xml.len() - 20].to_owned());
    all_refuse(&world, &cut, "malformed_workbook", SHEET).await;
    let outside = with_part(&book, SHEET, |xml| xml.replace("r=\"A1\"", "r=\"XFE1\""));
    all_refuse(&world, &outside, "malformed_workbook", "XFE1").await;
    let mut out = parts(&book);
    out.insert("../evil.xml".to_owned(), b"x".to_vec());
    all_refuse(&world, &pack(&out), "malformed_workbook", "leads out").await;
}

#[tokio::test]
async fn a_part_that_is_longer_than_it_says_is_seen() {
    let world = World::new().await;
    let book = small(&world).await;
    // The size in the directory of the archive is made a smaller one.
    let name = SHEET.as_bytes();
    let mut lying = book.clone();
    let place = lying.windows(name.len()).rposition(|it| it == name).unwrap();
    let size = place - 46 + 24;
    lying[size..size + 4].copy_from_slice(&10_u32.to_le_bytes());
    world.put("work/bad.xlsx", &lying);
    let (code, said) = world.refused("xlsx_inspect", json!({"path": "work/bad.xlsx"})).await;
    assert_eq!(code, "malformed_workbook", "{said}");
}

#[tokio::test]
async fn a_text_in_many_pieces_is_one_text() {
    let world = World::with(XlsxSettings::default().with_max_token_bytes(100_000)).await;
    let book = small(&world).await;
    let long = "<r><t>aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa</t></r>".repeat(2001);
    let shared = with_part(&book, "xl/sharedStrings.xml", |xml| {
        xml.replace("<si><t>x</t></si>", &format!("<si>{long}</si>"))
    });
    let inline = with_part(&book, SHEET, |xml| {
        let cell = format!("<c r=\"C1\" t=\"inlineStr\"><is>{long}</is></c></row>");
        xml.replacen("</row>", &cell, 1)
    });
    let entities = with_part(&book, SHEET, |xml| {
        let cell = format!("<c r=\"C1\" t=\"str\"><v>{}</v></c></row>", "&amp;".repeat(100_001));
        xml.replacen("</row>", &cell, 1)
    });
    let name = with_part(&book, "xl/workbook.xml", |xml| {
        let names = format!(
            "<definedNames><definedName name=\"N\">{}</definedName></definedNames><calcPr",
            "&amp;".repeat(100_001)
        );
        xml.replacen("<calcPr", &names, 1)
    });
    for bytes in [shared, inline, entities, name] {
        world.put("work/a.xlsx", bytes);
        let outcome = world.call("xlsx_inspect", json!({"path": "work/a.xlsx"})).await;
        assert_eq!(outcome.data["limit"], "max_token_bytes", "{}", outcome.content);
    }
}

#[tokio::test]
async fn the_parts_are_counted_before_they_are_listed() {
    let world = World::new().await;
    let mut book = small(&world).await;
    let end = book.windows(4).rposition(|it| it == b"PK\x05\x06").unwrap();
    for at in [end + 8, end + 10] {
        book[at..at + 2].copy_from_slice(&10_001_u16.to_le_bytes());
    }
    all_refuse(&world, &book, "limit_exceeded", "`max_parts` = 10000").await;
}

#[tokio::test]
async fn every_limit_of_reading_holds_at_the_edge() {
    type Set = fn(XlsxSettings, u64) -> XlsxSettings;
    let world = World::new().await;
    let book = small(&world).await;
    let sizes: Vec<u64> = parts(&book).values().map(|it| it.len() as u64).collect();
    let (count, total) = (sizes.len() as u64, sizes.iter().sum::<u64>());
    let largest = *sizes.iter().max().unwrap();
    let table: [(&str, Set, u64); 6] = [
        ("max_file_bytes", XlsxSettings::with_max_file_bytes, book.len() as u64),
        ("max_parts", XlsxSettings::with_max_parts, count),
        ("max_part_bytes", XlsxSettings::with_max_part_bytes, largest),
        ("max_expanded_bytes", XlsxSettings::with_max_expanded_bytes, total),
        ("max_cells", XlsxSettings::with_max_cells, 4),
        ("max_shared_strings", XlsxSettings::with_max_shared_strings, 1),
    ];
    for (name, set, edge) in table {
        let world = World::with(set(XlsxSettings::default(), edge)).await;
        world.put("work/a.xlsx", &book);
        world.ok("xlsx_inspect", json!({"path": "work/a.xlsx"})).await;
        let world = World::with(set(XlsxSettings::default(), edge - 1)).await;
        world.put("work/a.xlsx", &book);
        let outcome = world.call("xlsx_inspect", json!({"path": "work/a.xlsx"})).await;
        assert_eq!(outcome.code, "limit_exceeded", "{name}: {}", outcome.content);
        assert_eq!(outcome.data["limit"], name);
    }
    let world = World::with(XlsxSettings::default().with_max_token_bytes(1000)).await;
    let long = with_part(&book, SHEET, |xml| {
        xml.replacen("<sheetData>", &format!("<x a=\"{}\"/><sheetData>", "a".repeat(200_000)), 1)
    });
    world.put("work/a.xlsx", &long);
    let outcome = world.call("xlsx_inspect", json!({"path": "work/a.xlsx"})).await;
    assert_eq!(outcome.data["limit"], "max_token_bytes", "{}", outcome.content);
    let world = World::with(XlsxSettings::default().with_max_edited_bytes(10)).await;
    world.put("work/a.xlsx", &book);
    let operations = json!([{"op": "set", "cell": "A1", "value": 1}]);
    let call = json!({"path": "work/a.xlsx", "operations": operations});
    let outcome = world.call("xlsx_edit", call).await;
    assert_eq!(outcome.data["limit"], "max_edited_bytes", "{}", outcome.content);
    let world = World::with(XlsxSettings::default().with_max_listed(1)).await;
    world.ok("xlsx_create", json!({"path": "work/a.xlsx", "sheets": [{}, {}]})).await;
    let told = world.call("xlsx_inspect", json!({"path": "work/a.xlsx"})).await;
    assert!(told.content.contains("[1 more sheets; `max_listed`]"), "{}", told.content);
}

#[tokio::test]
async fn paths_do_not_lead_out_and_links_are_not_followed() {
    let world = World::new().await;
    let book = small(&world).await;
    let outside = world.folder.path().join("outside.xlsx");
    std::fs::write(&outside, &book).unwrap();
    symlink(&outside, world.path("work/link.xlsx")).unwrap();
    // The control: whoever follows links gets there.
    assert_eq!(world.bytes("work/link.xlsx"), book);
    let table = [
        ("work/link.xlsx", "is_link"),
        ("../../outside.xlsx", "invalid_arguments"),
        ("/etc/passwd", "invalid_arguments"),
        ("file:///etc/passwd", "invalid_arguments"),
        ("work", "not_a_file"),
    ];
    for (path, code) in table {
        for tool in READERS {
            let outcome = world.call(tool, json!({"path": path})).await;
            assert_eq!(outcome.code, code, "{tool} {path}: {}", outcome.content);
        }
    }
    let sheets: Value = json!([{"rows": [[1]]}]);
    for path in ["../x.xlsx", "/tmp/x.xlsx", "runs/x.xlsx", "skills/x.xlsx"] {
        let outcome = world.call("xlsx_create", json!({"path": path, "sheets": sheets})).await;
        assert!(outcome.is_error, "{path}: {}", outcome.content);
    }
    let call = json!({"path": "work/link.xlsx", "sheets": sheets, "overwrite": true});
    let _ = world.call("xlsx_create", call).await;
    assert_eq!(std::fs::read(&outside).unwrap(), book, "what the link leads to stays");
}

#[tokio::test]
async fn an_encrypted_part_is_refused() {
    let world = World::new().await;
    let book = small(&world).await;
    let mut flagged = book.clone();
    // Bit 0 of the flags of the first entry, in its header and in the directory.
    flagged[6] |= 1;
    let directory = flagged.windows(4).position(|it| it == b"PK\x01\x02").unwrap();
    flagged[directory + 8] |= 1;
    all_refuse(&world, &flagged, "encrypted_workbook", "password").await;
}

#[tokio::test]
async fn a_workbook_of_any_bytes_never_breaks_the_program() {
    let world = World::new().await;
    let book = small(&world).await;
    let mut state = 7_usize;
    for round in 0..60 {
        let mut bytes = book.clone();
        for _ in 0..=round % 5 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let at = (state >> 20) % bytes.len();
            bytes[at] ^= u8::try_from(state >> 7 & 0xFF).unwrap() | 1;
        }
        world.put("work/bad.xlsx", &bytes);
        for tool in ["xlsx_inspect", "xlsx_recalc", "xlsx_read_range"] {
            let outcome = world.call(tool, json!({"path": "work/bad.xlsx"})).await;
            assert_ne!(outcome.code, "workspace_io", "{tool} broke down: {}", outcome.content);
        }
    }
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("xl/x", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(b"x").unwrap();
    let empty = zip.finish().unwrap().into_inner();
    all_refuse(&world, &empty, "not_a_workbook", "without a workbook").await;
}
