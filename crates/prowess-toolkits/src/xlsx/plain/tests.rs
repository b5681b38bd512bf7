use proptest::prelude::*;
use rust_xlsxwriter::{Formula as Written, Workbook};

use super::super::address::Area;
use super::super::engine;
use super::super::functions::VOLATILE;
use super::super::recalc::recalculate;
use super::super::sheet::Formula;
use super::super::spell::may_spell;
use super::*;

/// A workbook of one sheet `Data` and one `My data`, both with the same cells.
fn plain(cells: &[(&str, &str)]) -> Option<Plain> {
    let names = ["Data", "My data"].map(|it| Some(it.to_owned())).to_vec();
    let (grid, program) = (Grid::new(names.len(), 10_016), Program::new(99_999));
    let mut plain = Plain { names, grid, program, shared: BTreeMap::new() };
    for sheet in 0..2 {
        for (at, content) in cells {
            let mut raw = Raw { at: Cell::parse(at), ..Raw::default() };
            match (content.strip_prefix('='), content.parse::<f64>()) {
                (Some(text), _) => {
                    raw.formula = Some(Formula { text: text.to_owned(), ..Formula::default() });
                }
                (None, Ok(_)) => raw.value = Some((*content).to_owned()),
                (None, Err(_)) => raw.kind = Kind::Text,
            }
            plain.take(sheet, &raw)?;
        }
    }
    Some(plain)
}

/// The value of a formula in a sheet with A1 = 2, A2 = 3.5, A3 = -4, B1 empty, B2 = 10, B3 a text.
fn value(formula: &str) -> Option<f64> {
    let formula = format!("={formula}");
    let cells = [("A1", "2"), ("A2", "3.5"), ("A3", "-4"), ("B2", "10"), ("B3", "x")];
    let cells: Vec<_> = cells.into_iter().chain([("D1", formula.as_str())]).collect();
    let mut plain = plain(&cells)?;
    plain.calculate(Duration::MAX)?;
    Some(plain.grid.number(Place::of(0, Cell::parse("D1")?)?))
}

#[test]
fn plain_formulas_are_calculated() {
    let table = [
        ("1+2*3", 7.0),
        ("(1+2)*3", 9.0),
        ("2^3^2", 64.0),
        ("10-4-3", 3.0),
        ("-A1", -2.0),
        ("--A1", 2.0),
        ("+A1%", 0.02),
        ("50%*2", 1.0),
        ("1E2+.5+1.e1", 110.5),
        (" A1 *\n$A$2 ", 7.0),
        ("Data!A1+'My data'!A2+DATA!$A3", 1.5),
        ("B1+1", 1.0),
        ("SUM(A1:B3)", 11.5),
        ("SUM(A1,A2:A3,1,A1*2)", 6.5),
        ("SUM('My data'!A1:A2)", 5.5),
        ("AVERAGE(A1:A3)", 0.5),
        ("AVERAGE(A1,B1)", 2.0),
        ("COUNT(A1:B3)", 4.0),
        ("COUNT(-B1,B1%,B1+0,IF(A1>1,2,3),B1)", 4.0),
        ("MAX(A1:B3)", 10.0),
        ("MIN(A1:B3,-7)", -7.0),
        ("MAX(Z1:Z9)", 0.0),
        ("SUM(Z1:Z9)", 0.0),
        ("ABS(A3)", 4.0),
        ("ROUND(A2,0)", 4.0),
        ("ROUND(-A2,0)", -4.0),
        ("ROUND(A1/3,2)", 0.67),
        ("ROUND(1250,-2)", 1300.0),
        ("ROUND(1.005,2)", 1.01),
        ("ROUND(2.5-4.4E-16,0)", 3.0),
        ("ROUND(76766761.8,5)", 76_766_761.8),
        ("IF(A1>1,10,20)", 10.0),
        ("IF(A1<>2,10,20)", 20.0),
        ("IF(B1,10,20)", 20.0),
        ("IF(A1=0,0,1/A1)", 0.5),
        ("IF(B1=0,0,1/B1)", 0.0),
        ("IF(AND(A1>1,A2<=3.5),1,2)+IF(OR(A1>5,NOT(A2>5)),10,20)", 11.0),
        ("if(A1>=2,sum(A1:A2),0)", 5.5),
        ("IF(IF(A1>1,A3,A2)<0,A1,A2)", 2.0),
    ];
    for (formula, expected) in table {
        assert_eq!(value(formula), Some(expected), "{formula}");
    }
}

#[test]
fn what_is_not_plain_is_left_to_the_engine() {
    for formula in [
        "",
        "1+",
        "(1",
        "1)",
        "\"x\"",
        "A1&A2",
        "A1>1",
        "TRUE",
        "A1+TRUE",
        "Rate",
        "A1 A2",
        "A1:A2",
        "A1:A2+1",
        "SUM(A:A)",
        "SUM(B3:A1)",
        "SUM(1:2)",
        "SUM((A1,A2))",
        "SUM()",
        "SUM(A1,)",
        "SUM(A1:A2 A2:A3)",
        "SUM(A1>1)",
        "COUNT((B1))",
        "COUNT(+B1)",
        "COUNT(IF(A1>1,B1,1))",
        "COUNT(IF(A1>1,1,B1))",
        "SUM(Data!A1:Data!A2)",
        "SUM(Data:Other!A1)",
        "[1]Data!A1",
        "'It''s'!A1",
        "Other!A1",
        "A1#",
        "A1.5",
        "A1_",
        "A0",
        "A1048577",
        "XFE1",
        "Table[Sum]",
        "_xlfn.SUM(A1)",
        "LEN(A1)",
        "IF(A1>1,2)",
        "IF(A1>1,2,A1>1)",
        "IF(A1>1,\"x\",2)",
        "AND(A1,A2)",
        "ROUND(A1,A2)",
        "ROUND(A1,16)",
        "ROUND(76766761.8,6)",
        "ROUND(51.5445029,12)",
        "''!A1+1",
        "!A1",
        "ROUND(A1)",
        "A1>1>0",
        "{1,2}",
        "@A1",
        "#REF!",
        // Their values are no numbers, or the engine knows better.
        "1/0",
        "1/B1",
        "B3+1",
        "-B3",
        "IF(B3,1,2)",
        "SUM(B3,1)",
        "AVERAGE(Z1:Z9)",
        "0^0",
        "(-8)^(1/3)",
        "1E300*1E300",
        "D1",
        "SUM(D1:D2)",
        "IF(A1>1,1,D1)",
    ] {
        assert_eq!(value(formula), None, "{formula}");
    }
    let deep = format!("{}1{}", "(".repeat(70), ")".repeat(70));
    assert_eq!(value(&deep), None);
}

#[test]
fn formulas_wait_for_those_that_they_need() {
    let mut cells: Vec<(String, String)> = Vec::new();
    // Each needs the one below it, and all of them another column.
    for row in 1..500 {
        cells.push((format!("A{row}"), format!("=A{}+B{row}", row + 1)));
        cells.push((format!("B{row}"), "=SUM(C1:C9)".to_owned()));
    }
    cells.push(("A500".to_owned(), "1".to_owned()));
    cells.extend((1..10).map(|row| (format!("C{row}"), format!("=D1*{row}"))));
    cells.push(("D1".to_owned(), "2".to_owned()));
    let cells: Vec<_> = cells.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
    let mut book = plain(&cells).unwrap();
    book.calculate(Duration::MAX).unwrap();
    let first = Place::of(0, Cell::parse("A1").unwrap()).unwrap();
    assert_eq!(book.grid.number(first), 1.0 + 499.0 * 90.0);
    for circle in [
        &[("A1", "=B1"), ("B1", "=C1"), ("C1", "=A1")][..],
        &[("A1", "=SUM(A2:A9)"), ("A3", "=A1")],
        &[("A1", "=IF(1>0,1,A2)"), ("A2", "=A1")],
    ] {
        assert_eq!(plain(circle).unwrap().calculate(Duration::MAX), None, "{circle:?}");
    }
}

/// The total stands above what it is the total of, and each of these needs all before it.
#[test]
fn what_is_waited_for_is_not_waited_for_twice() {
    let mut cells = vec![("A1".to_owned(), "=SUM(B1:B3000)".to_owned())];
    cells.push(("B1".to_owned(), "1".to_owned()));
    cells.extend((2..=3000).map(|row| (format!("B{row}"), format!("=MAX(B1:B{})+1", row - 1))));
    let cells: Vec<_> = cells.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
    let mut book = plain(&cells).unwrap();
    book.calculate(Duration::MAX).unwrap();
    let first = Place::of(0, Cell::parse("A1").unwrap()).unwrap();
    assert_eq!(book.grid.number(first), 3000.0 * 3001.0 / 2.0);
}

#[test]
fn what_takes_too_long_is_left_to_the_engine() {
    let cells = [("A1", "1"), ("A2", "=A1")];
    assert_eq!(plain(&cells).unwrap().calculate(Duration::ZERO), None);
    assert_eq!(plain(&cells).unwrap().calculate(Duration::MAX), Some(()));
}

#[test]
fn a_cell_is_there_once_and_within_the_room() {
    assert!(plain(&[("A1", "1"), ("A1", "2")]).is_none());
    assert!(plain(&[("A5000", "1")]).is_some());
    assert!(plain(&[("A5001", "1")]).is_none());
    assert!(plain(&[("XFD1", "1")]).is_none());
}

#[test]
fn a_cell_that_says_two_things_is_left_to_the_engine() {
    let mut plain = plain(&[]).unwrap();
    let (at, value) = (Cell::parse("A1"), Some("5".to_owned()));
    let raw = Raw { at, value, is_odd: true, ..Raw::default() };
    assert_eq!(plain.take(0, &raw), None);
    assert_eq!(plain.take(0, &Raw { is_odd: false, ..raw }), Some(()));
}

#[test]
fn more_cells_than_can_be_looked_at_are_left_to_the_engine() {
    let far = |at| Place::of(0, Cell::parse(at).unwrap()).unwrap();
    let mut grid = Grid::new(1, 2_000_000);
    for at in ["A1048576", "XFD1"] {
        grid.put(far(at), Slot::Number, 1.0).unwrap();
    }
    let names = [Some("Data".to_owned())];
    let mut program = Program::new(9_999);
    let number = program.begin(far("B1")).unwrap();
    Compiler::new(&names, 0, &mut program).compile("SUM(C1:XFD1048576)").unwrap();
    grid.put(far("B1"), Slot::Waiting, f64::from(number)).unwrap();
    assert_eq!(calculate::calculate(&mut grid, &program, Duration::MAX), Some(()));
    let number = program.begin(far("B2")).unwrap();
    Compiler::new(&names, 0, &mut program).compile("SUM(A1:XFD1048576)").unwrap();
    grid.put(far("B2"), Slot::Waiting, f64::from(number)).unwrap();
    assert_eq!(calculate::calculate(&mut grid, &program, Duration::MAX), None);
}

#[test]
fn shared_formulas_move_and_are_counted() {
    let mut plain = plain(&[("A1", "1"), ("A2", "2"), ("A3", "3")]).unwrap();
    let shared = |at: &str, text: &str, area: Option<&str>| {
        let area = area.and_then(Area::parse);
        let (text, sharing) = (text.to_owned(), Sharing::Shared(0));
        let formula = Some(Formula { text, sharing, area });
        Raw { at: Cell::parse(at), formula, ..Raw::default() }
    };
    // The first of them is not there yet; it has to say where the others are.
    assert_eq!(plain.take(0, &shared("B2", "", None)), None);
    assert_eq!(plain.take(0, &shared("C1", "A1*10", None)), None);
    let master = shared("B1", "A1*10+$A$1", Some("B1:B3"));
    assert_eq!(plain.take(1, &master), Some(()));
    assert_eq!(plain.take(1, &shared("B3", "", None)), Some(()));
    assert_eq!(plain.take(0, &shared("B3", "", None)), None, "of another sheet");
    assert_eq!(plain.take(1, &shared("D1", "A1", Some("D1:D3"))), None, "twice");
    let long = vec!["1"; 200].join("+");
    let mut program = Program::new(9_999);
    let place = Place::of(0, Cell::parse("A1").unwrap()).unwrap();
    let mut begun = 0;
    while program.begin(place).is_some() {
        Compiler::new(&plain.names, 0, &mut program).compile(&long).unwrap();
        begun += 1;
    }
    assert_eq!(begun, 26, "of 399 steps each");
}

#[test]
fn shared_formulas_give_what_they_mean_in_their_cells() {
    let mut plain = plain(&[("A1", "1"), ("A2", "2"), ("A3", "3")]).unwrap();
    for (at, text, area) in [("B1", "A1*10+$A$1", Area::parse("B1:B3")), ("B3", "", None)] {
        let formula = Formula { text: text.to_owned(), sharing: Sharing::Shared(0), area };
        let raw = Raw { at: Cell::parse(at), formula: Some(formula), ..Raw::default() };
        plain.take(0, &raw).unwrap();
    }
    plain.calculate(Duration::MAX).unwrap();
    let place = Place::of(0, Cell::parse("B3").unwrap()).unwrap();
    assert_eq!(plain.grid.number(place), 31.0);
}

#[test]
fn values_agree_in_fifteen_digits() {
    for (old, new, expected) in [
        (1.0, 1.0, true),
        (0.1 + 0.2, 0.3, true),
        (0.333_333_333_333_333, 1.0 / 3.0, true),
        (123_456_789_012_345.0, 123_456_789_012_346.0, true),
        (123_456_789_012_345.0, 123_456_789_012_347.0, false),
        (1.0, 1.000_000_000_000_02, false),
        (0.0, -0.0, true),
        (0.0, 1e-300, false),
        (1e-300, -1e-300, false),
        (f64::NAN, 1.0, false),
    ] {
        assert_eq!(write::agree(old, new), expected, "{old} {new}");
    }
}

/// What the writer makes of a sheet.
fn written(cells: &str, values: &[f64]) -> Option<(String, u64)> {
    let limits = XlsxSettings::default();
    let sheet = |cells: &str| format!("<worksheet><row r=\"1\">{cells}</row></worksheet>");
    let new = write::with_values(&sheet(cells), "sheet", values, &limits).unwrap()?;
    let start = new.xml.strip_prefix("<worksheet><row r=\"1\">").unwrap();
    Some((start.strip_suffix("</row></worksheet>").unwrap().to_owned(), new.changed_cells))
}

#[test]
fn only_values_are_written() {
    let table = [
        ("<c r=\"A1\"><f>B1</f><v>0</v></c>", "<c r=\"A1\"><f>B1</f><v>1.5</v></c>"),
        ("<c r='A1' s=\"3\"><f>B1</f></c>", "<c r='A1' s=\"3\"><f>B1</f><v>1.5</v></c>"),
        ("<c r=\"A1\"><f>B1</f><v/></c>", "<c r=\"A1\"><f>B1</f><v>1.5</v></c>"),
        ("<c r=\"A1\"><f>B1</f><v></v></c>", "<c r=\"A1\"><f>B1</f><v>1.5</v></c>"),
        (
            "<c><f>B1</f><v xml:space=\"preserve\">7</v></c>",
            "<c><f>B1</f><v xml:space=\"preserve\">1.5</v></c>",
        ),
        ("<c t=\"n\"><f>B1</f><v>x</v></c>", "<c t=\"n\"><f>B1</f><v>1.5</v></c>"),
        (
            "<c r=\"A1\" s=\"1\" t=\"str\"><f>B1</f><v>1.5</v></c>",
            "<c r=\"A1\" s=\"1\"><f>B1</f><v>1.5</v></c>",
        ),
        (
            "<c t=\"e\"><f t=\"shared\" si=\"0\"/><v>#N/A</v></c>",
            "<c><f t=\"shared\" si=\"0\"/><v>1.5</v></c>",
        ),
    ];
    let other =
        "<c r=\"B1\"><v>7</v></c><c r=\"C1\" t=\"inlineStr\"><is><t>a</t></is></c><c r=\"D1\"/>";
    for (before, after) in table {
        let expected = (format!("{other}{after}"), 1);
        assert_eq!(written(&format!("{other}{before}"), &[1.5]), Some(expected), "{before}");
    }
    let current = "<c r=\"A1\"><f>B1</f> <v> 1.50 </v></c>";
    assert_eq!(written(current, &[1.5]), Some((current.to_owned(), 0)));
    for unexpected in [
        "<c r=\"A1\" cm=\"1\"><f>B1</f><v>0</v></c>",
        "<c r=\"A1\" vm=\"1\"><f>B1</f><v>0</v></c>",
        "<c r=\"A1\"><v>0</v><f>B1</f></c>",
        "<c r=\"A1\" t=\"inlineStr\"><f>B1</f><is><t>a</t></is></c>",
        "<x:c r=\"A1\"><x:f>B1</x:f></x:c>",
        "<c r=\"A1\"><x:f>B1</x:f></c>",
        "<c r=\"A1\"><v>0</v></c>",
        "<c><f>B1</f></c><c><f>B1</f></c>",
    ] {
        assert_eq!(written(unexpected, &[1.5]), None, "{unexpected}");
    }
}

const COLUMNS: u32 = 6;
const ROWS: u32 = 8;

/// A workbook with numbers, blanks and texts in its left half and formulas in its right half, as
/// bytes without any value, and how many formulas it has.
fn book(numbers: &[Option<f64>], formulas: &[String]) -> (Vec<u8>, u64) {
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet().set_name("Data").unwrap();
    for (number, row) in numbers.iter().zip(0..) {
        let (row, column) = (row / COLUMNS, u16::try_from(row % COLUMNS).unwrap());
        match number {
            Some(number) => drop(sheet.write_number(row, column, *number).unwrap()),
            None if (row + u32::from(column)) % 3 == 0 => {
                sheet.write_string(row, column, "text").unwrap();
            }
            None => {}
        }
    }
    for (formula, at) in formulas.iter().zip(0..) {
        let (row, column) = (at % ROWS, u16::try_from(COLUMNS + at / ROWS).unwrap());
        let formula = Written::new(format!("={formula}")).set_result("stale");
        sheet.write_formula(row, column, formula).unwrap();
    }
    (workbook.save_to_buffer().unwrap(), formulas.len() as u64)
}

/// The values of formulas in a workbook, as they are written.
fn caches(bytes: &[u8]) -> Vec<f64> {
    let settings = XlsxSettings::default();
    let mut package =
        Package::open(Box::new(std::io::Cursor::new(bytes.to_vec())), &settings).unwrap();
    let xml = package.text("xl/worksheets/sheet1.xml", &settings).unwrap();
    let formulas = xml.split("</f>").skip(1);
    let values = formulas.map(|it| it.split("<v>").nth(1).unwrap().split('<').next().unwrap());
    values.map(|it| it.parse().unwrap()).collect()
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-50..50_i32).prop_map(f64::from),
        (-5000..5000_i32).prop_map(|it| f64::from(it) / 8.0),
        (-99_999..99_999_i32).prop_map(|it| f64::from(it) / 1000.0),
        -1e12..1e12,
        Just(0.0),
    ]
}

fn cell() -> impl Strategy<Value = String> {
    // Mostly numbers, and formulas beyond them.
    let column = prop_oneof![6 => 0..6_u8, 1 => 6..9_u8];
    (column, 1..=ROWS, any::<(bool, bool)>()).prop_map(|(column, row, (a, b))| {
        let dollar = |it| if it { "$" } else { "" };
        format!("{}{}{}{row}", dollar(a), char::from(b'A' + column), dollar(b))
    })
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => cell(),
        1 => (0..20_u8).prop_map(|it| it.to_string()),
        1 => (0..999_u16).prop_map(|it| format!("{}.{}", it / 100, it % 100)),
        1 => cell().prop_map(|it| format!("Data!{it}")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let argument = prop_oneof![
            2 => inner.clone(),
            3 => (0..6_u8, 1..=ROWS, 0..3_u8, 0..4_u32).prop_map(|(column, row, wide, high)| {
                let letter = |it: u8| char::from(b'A' + it);
                format!("{}{row}:{}{}", letter(column), letter(column + wide), row + high)
            }),
        ];
        let aggregate = prop::sample::select(vec!["SUM", "AVERAGE", "MIN", "MAX", "COUNT"]);
        let operator = prop::sample::select(vec!["+", "-", "*", "/", "+", "-", "*", "^"]);
        let comparison = prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
        let test = (inner.clone(), comparison, inner.clone()).prop_map(|(a, it, b)| format!("{a}{it}{b}"));
        let test = prop_oneof![
            4 => test.clone(),
            1 => (test.clone(), test.clone()).prop_map(|(a, b)| format!("AND({a},{b})")),
            1 => (test.clone(), test.clone()).prop_map(|(a, b)| format!("OR({a},NOT({b}))")),
            1 => inner.clone(),
        ];
        prop_oneof![
            4 => (inner.clone(), operator, inner.clone()).prop_map(|(a, it, b)| format!("{a}{it}{b}")),
            1 => inner.clone().prop_map(|it| format!("({it})")),
            1 => inner.clone().prop_map(|it| format!("-{it}")),
            1 => inner.clone().prop_map(|it| format!("+{it}")),
            1 => inner.clone().prop_map(|it| format!("{it}%")),
            1 => inner.clone().prop_map(|it| format!("ABS({it})")),
            1 => (inner.clone(), -3..14_i32).prop_map(|(it, digits)| format!("ROUND({it},{digits})")),
            2 => (aggregate, prop::collection::vec(argument, 1..4))
                .prop_map(|(name, arguments)| format!("{name}({})", arguments.join(","))),
            2 => (test, inner.clone(), inner).prop_map(|(test, a, b)| format!("IF({test},{a},{b})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_engine_gives_the_same(
        numbers in prop::collection::vec(prop::option::weighted(0.9, number()), 48),
        formulas in prop::collection::vec(expression(), 1..6),
    ) {
        let settings = XlsxSettings::default();
        let (bytes, count) = book(&numbers, &formulas);
        let report = recalculate(&bytes, &settings).unwrap();
        prop_assume!(report.engine == "prowess");
        prop_assert_eq!(report.changed_cells, count);
        let ours = caches(&report.bytes.unwrap());
        let Ok(theirs) = engine::run(&bytes, count, &settings) else {
            return Err(TestCaseError::fail("the engine refuses it"));
        };
        prop_assert_eq!(theirs.cache_cells_changed as u64, count);
        prop_assert_eq!(ours, caches(&theirs.bytes), "{:?}", formulas);
    }

    #[test]
    fn about_what_is_plain_there_is_no_doubt(formula in expression()) {
        let names = [Some("Data".to_owned())];
        let mut program = Program::new(9_999);
        if Compiler::new(&names, 0, &mut program).compile(&formula).is_some() {
            prop_assert!(!may_spell(&formula));
            prop_assert!(crate::xlsx::doubt::doubts(&formula).is_empty());
            prop_assert!(!VOLATILE.iter().any(|it| formula.contains(it)));
        }
    }

    #[test]
    fn any_text_is_plain_or_not(formula in "[-A-C1-9$:!'\"(),.%^*/<>= SUMIFx]{0,40}") {
        let names = [Some("Data".to_owned())];
        let mut program = Program::new(9_999);
        let _ = Compiler::new(&names, 0, &mut program).compile(&formula);
    }
}
