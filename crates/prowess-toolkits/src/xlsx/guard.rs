//! Formulas that reach out of their workbook: they are not written, and a check names them.

use super::error::{XlsxError, shown};
use super::formula::{Kind, functions, tokens};

/// Functions that fetch something, or run something, when a workbook is opened.
const FETCHING: [&str; 12] = [
    "WEBSERVICE",
    "RTD",
    "DDE",
    "CALL",
    "EXEC",
    "IMAGE",
    "STOCKHISTORY",
    "SQL.REQUEST",
    "COPILOT",
    "PY",
    "TRANSLATE",
    "DETECTLANGUAGE",
];
/// How the names of more of them begin.
const FETCHING_KINDS: [&str; 3] = ["CUBE", "IMPORT", "REGISTER"];
/// Functions to which others can be given by their names.
const TAKING: [&str; 8] = ["LET", "LAMBDA", "MAP", "REDUCE", "SCAN", "BYROW", "BYCOL", "MAKEARRAY"];

/// How a formula reaches out of its workbook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Into another workbook: what names it.
    Workbook(String),
    /// To another program, by DDE.
    Program,
    /// By a function.
    Function(String),
}

impl Reach {
    /// How a formula, without its `=`, reaches out; none if it stays inside.
    pub(super) fn of(formula: &str) -> Option<Self> {
        let tokens = tokens(formula);
        // `'app|topic'!item` as well as `app|topic!item`; no operator is written like this.
        let is_program = tokens.iter().any(|it| match it.kind {
            Kind::Other | Kind::Sheet => it.text.contains('|'),
            _ => false,
        });
        if is_program {
            return Some(Self::Program);
        }
        let outside = tokens.iter().find(|it| match it.kind {
            Kind::Sheet => it.text.contains('[') || names_a_file(it.text),
            // `'file:///x.ods'#$Sheet1.A1`
            Kind::Other => it.text.starts_with('\'') && it.text.contains("://"),
            Kind::Name => it.text.starts_with('['),
            _ => false,
        });
        if let Some(outside) = outside {
            return Some(Self::Workbook(shown(outside.text)));
        }
        let called = functions(formula);
        if let Some(name) = called.iter().find(|it| is_fetching(it)) {
            return Some(Self::Function(name.clone()));
        }
        if !called.iter().any(|it| TAKING.contains(&it.as_str())) {
            return None;
        }
        let names = tokens.iter().filter(|it| it.kind == Kind::Name);
        let mut names = names.map(|it| super::functions::plain_function(it.text));
        names.find(|it| is_fetching(it)).map(Self::Function)
    }
}

/// Whether what stands before `!` is a file: no sheet's name has `/` or `\`, or an ending.
fn names_a_file(sheet: &str) -> bool {
    let name = sheet.trim_end_matches('!').trim_matches('\'').to_ascii_lowercase();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let is_spreadsheet = ending.is_some_and(|it| {
        it == "ods"
            || (it.starts_with("xl") && it.len() <= 4 && it.chars().all(char::is_alphanumeric))
    });
    name.contains(['/', '\\']) || is_spreadsheet
}

fn is_fetching(name: &str) -> bool {
    FETCHING.contains(&name) || FETCHING_KINDS.iter().any(|it| name.starts_with(it))
}

/// Whether a formula is written as files hold it, and stays inside of its workbook: what names
/// another file, another program or an address would reach it when the workbook is opened.
pub(super) fn check_formula(text: &str, at: &str) -> Result<(), XlsxError> {
    let text = text.trim_start();
    let text = text.strip_prefix('=').unwrap_or(text);
    let (reason, why) = match Reach::of(text) {
        None => return check_signs(text, at),
        Some(Reach::Workbook(outside)) => {
            let why =
                format!("'{outside}' refers to another workbook; copy the values into this one");
            ("external_link", why)
        }
        Some(Reach::Program) => {
            let why = "'|' asks another program for a value (DDE) and is not written; a text is \
                       given as {\"text\": …}";
            ("dde_link", why.to_owned())
        }
        Some(Reach::Function(name)) => {
            let why = format!("{} reaches out of the workbook and is not written", shown(&name));
            ("fetching_function", why)
        }
    };
    Err(XlsxError::Refused { at: at.to_owned(), reason, why })
}

/// Whether a formula, without its `=`, has signs that Excel shows and files hold otherwise.
fn check_signs(text: &str, at: &str) -> Result<(), XlsxError> {
    let invalid = |why: &str| Err(XlsxError::invalid(at, why));
    if text.trim_start().starts_with('=') {
        return invalid("a formula begins with one =");
    }
    let mut signs = tokens(text).into_iter().filter(|it| it.kind == Kind::Other);
    match signs.find_map(|it| it.text.chars().find(|sign| "@#".contains(*sign))) {
        Some('@') => invalid("leave out @: a formula refers to one cell by naming it"),
        Some(_) => invalid("'#' is not written here; name the cells, as in A1:A9"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_out_is_refused_however_it_is_written() {
        let table = [
            ("external_link", "[1]Other!A1"),
            ("external_link", "'[other.xlsx]Data'!A1"),
            ("external_link", "SUM('C:\\x\\[o.xlsx]D'!A1:A3)"),
            ("external_link", "[1]!Rate"),
            ("external_link", "[other.xlsx]Rate"),
            ("external_link", "book.xlsx!Rate"),
            ("external_link", "SUM(book.XLSM!Rate)"),
            ("external_link", "'my book.xls'!Rate"),
            ("external_link", "'http://127.0.0.1/x.xlsx'!Rate"),
            ("external_link", "'http://127.0.0.1/x'!Rate"),
            ("external_link", "'\\\\host\\share\\x'!Rate"),
            ("external_link", "'C:\\x\\y.ods'!Rate"),
            ("external_link", "http://127.0.0.1/x.xlsx!Rate"),
            ("external_link", "'file:///x.ods'#$Sheet1.A1"),
            ("fetching_function", "COPILOT(\"x\",A1)"),
            ("fetching_function", "_xlfn._xlws.PY(0,1,A1)"),
            ("fetching_function", "TRANSLATE(A1,\"en\",\"fr\")"),
            ("fetching_function", "_xlfn.DETECTLANGUAGE(A1)"),
            ("dde_link", "cmd|' /C calc'!A0"),
            ("dde_link", "'cmd|/C calc'!A0"),
            ("dde_link", "1+MSEXCEL|'\\..\\..\\cmd.exe'!''"),
            ("fetching_function", "WEBSERVICE(\"http://x\")"),
            ("fetching_function", "webservice (\"http://x\")"),
            ("fetching_function", "WEBSERVICE\n\t(\"http://x\")"),
            ("fetching_function", "_xlfn.WEBSERVICE(\"http://x\")"),
            ("fetching_function", "_xlws._xlfn._xlfn.WEBSERVICE(\"http://x\")"),
            ("fetching_function", "IF(1,IMAGE(\"http://x\"),2)"),
            ("fetching_function", "CUBEVALUE(\"c\",\"m\")"),
            ("fetching_function", "CUBEMEMBER(\"c\",\"m\")"),
            ("fetching_function", "STOCKHISTORY(\"X\",1)"),
            ("fetching_function", "IMPORTXML(\"http://x\",\"//a\")"),
            ("fetching_function", "IMPORTDATA(\"http://x\")"),
            ("fetching_function", "REGISTER(\"a\",\"b\")"),
            ("fetching_function", "REGISTER.ID(\"a\",\"b\")"),
            ("fetching_function", "SQL.REQUEST(\"a\")"),
            ("fetching_function", "CALL(\"a\",\"b\")"),
            ("fetching_function", "RTD(\"a\",,\"b\")"),
            ("fetching_function", "LET(f,WEBSERVICE,f(\"http://x\"))"),
        ];
        for (reason, formula) in table {
            for formula in [formula.to_owned(), format!("={formula}"), format!(" = {formula}")] {
                match check_formula(&formula, "x") {
                    Err(XlsxError::Refused { reason: own, .. }) => assert_eq!(own, reason),
                    other => panic!("{formula}: {other:?}"),
                }
            }
        }
        for inside in [
            "A1*2",
            "\"cmd|' /C calc'!A0\"",
            "\"WEBSERVICE(1)\"",
            "'My sheet'!A1",
            "Table1[Price]+Table1[[#This Row],[Tax]]",
            "Image+Call*2",
            "CUBIC(1)",
            "LET(x,A1,x*2)",
            "Data.2024!A1",
            "'v1.xlsx draft'!A1",
            "'Jan:Mar'!B2",
            "Orders[@Price]*2",
            "#REF!+1",
            "\"a@b #1\"",
            "\"==1\"",
            "A1=B1",
        ] {
            assert!(check_formula(inside, "x").is_ok(), "{inside}");
        }
    }

    #[test]
    fn what_files_hold_otherwise_is_not_written() {
        for formula in ["==1", "= =1", "=@A1", "=SUM(@A1:A3)", "=A1#", "=SUM(A1#)", "@A1", "=A1 #"]
        {
            let error = check_formula(formula, "x").unwrap_err();
            assert_eq!(error.code(), "invalid_arguments", "{formula}");
        }
    }
}
