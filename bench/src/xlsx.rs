//! `xlsx`: formulas recalculated as LibreOffice does it, and a large workbook inspected.

use std::fs;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use prowess_catalog::{Catalog, DirectorySource};
use prowess_runtime::{AgentName, Runtime, SessionKey, ToolCall};
use prowess_toolkits::XlsxToolkit;
use prowess_workspace::{WorkspaceId, Workspaces};
use rust_xlsxwriter::Workbook as Writer;
use serde_json::json;
use tempfile::TempDir;

use crate::results::Row;

/// How many formulas are recalculated.
const FORMULAS: u32 = 100_000;
/// How many of them a row has.
const PER_ROW: u32 = 5;
/// How often.
const ROUNDS: usize = 7;
/// How large the workbook is that is inspected.
const LARGE: u64 = 50 << 20;
/// How much memory that may take, against its size.
const MEMORY: f64 = 0.5;
/// The part with the cells of a workbook of one sheet.
const SHEET: &str = "xl/worksheets/sheet1.xml";
/// The part with the texts that cells share.
const STRINGS: &str = "xl/sharedStrings.xml";

pub(crate) fn run() -> Result<Vec<Row>> {
    // First, while this process is small.
    let mut rows = inspect()?;
    rows.extend(recalc()?);
    Ok(rows)
}

/// A workbook with formulas of five kinds, each over the numbers of its row and the row before.
fn formulas() -> Result<Vec<u8>> {
    let mut workbook = Writer::new();
    let sheet = workbook.add_worksheet();
    for row in 0..FORMULAS / PER_ROW {
        let (this, before) = (row + 1, row.max(1));
        sheet.write_number(row, 0, f64::from(row % 97))?;
        sheet.write_number(row, 1, f64::from(row % 31) + 0.5)?;
        sheet.write_number(row, 2, f64::from(row))?;
        for (column, formula) in [
            (3, format!("=A{this}*B{this}")),
            (4, format!("=D{this}+C{before}")),
            (5, format!("=IF(A{this}>50,B{this},C{this})")),
            (6, format!("=ROUND(E{this}/7,2)")),
            (7, format!("=SUM(A{this}:C{this})-AVERAGE(D{this}:F{this})")),
        ] {
            sheet.write_formula(row, column, formula.as_str())?;
        }
    }
    Ok(workbook.save_to_buffer()?)
}

/// What the rows of recalculation time, exactly.
const PURE: &str = "recalculating 100,000 formulas of a workbook that was just loaded: seconds of \
                    LibreOffice's calculateAll in a process that has started, to seconds of \
                    xlsx_recalc's calculation";
const ENGINE: &str = "the same by the engine, which calculates workbooks with anything else than \
                      plain formulas over numbers";
const WHOLE: &str = "recalculating a file with 100,000 formulas: seconds of loading, calculateAll \
                     and storing in a LibreOffice that has started, to seconds of xlsx_recalc's \
                     function, which reads, checks, calculates and writes";

fn recalc() -> Result<Vec<Row>> {
    let folder = TempDir::new()?;
    let book = folder.path().join("formulas.xlsx");
    fs::write(&book, formulas()?)?;
    let Some(mut office) = Calculator::libreoffice(&book)? else {
        let why = "LibreOffice and its Python bridge are not there (PROWESS_TEST_SOFFICE, \
                   PROWESS_PEERS_UNO)";
        return Ok([PURE, WHOLE].map(|what| Row::not_measured(what, "≥ 1×", why)).into());
    };
    let mut own = Calculator::own(&book)?;
    let stored = folder.path().join("stored.xlsx");
    let whole = format!("whole {}", stored.display());
    let mut sums = Vec::new();
    // Ours and theirs, calculated alone and from file to file; then the engine's, and theirs once
    // more.
    let mut seconds: [Vec<f64>; 6] = Default::default();
    for _ in 0..ROUNDS {
        let mut both = Vec::new();
        for (whose, calculator) in [("xlsx_recalc", &mut own), ("LibreOffice", &mut office)] {
            both.push(calculator.number("calculate")?);
            sums.push((whose, calculator.number("sum")?));
            both.push(calculator.number(&whole)?);
            sums.push((whose, sum_of_caches(&fs::read(&stored)?)?));
        }
        both.push(own.number("engine")?);
        sums.push(("the engine", own.number("sum")?));
        both.push(office.number("again")?);
        for (samples, one) in seconds.iter_mut().zip(both) {
            samples.push(one);
        }
    }
    own.end()?;
    office.end()?;
    let wanted = sums.first().map_or(0.0, |it| it.1);
    for (whose, sum) in sums {
        let is_same = (sum - wanted).abs() <= 1e-9 * wanted.abs();
        ensure!(is_same, "the values of {whose} differ: {sum} to {wanted}");
    }
    let [evaluated, whole, their_evaluated, their_whole, engine, again] = seconds.map(median);
    let detail = |theirs: f64, ours: f64, what: &str| {
        format!("{:.0} ms to {:.1} ms; the sums of all {what} agree", theirs * 1e3, ours * 1e3)
    };
    let of_cells = detail(their_evaluated, evaluated, "cells");
    let of_cells = format!(
        "{of_cells}; LibreOffice takes {:.0} ms when it calculates the same workbook again",
        again * 1e3
    );
    let of_caches = detail(their_whole, whole, "values in the written files");
    let of_engine = detail(their_evaluated, engine, "cells");
    Ok(vec![
        Row::at_least(PURE, their_evaluated / evaluated, 1.0, &of_cells),
        Row::bound(ENGINE, their_evaluated / engine, &of_engine),
        Row::at_least(WHOLE, their_whole / whole, 1.0, &of_caches),
    ])
}

/// The sum of the values that a file holds; all its cells are numbers.
fn sum_of_caches(bytes: &[u8]) -> Result<f64> {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes))?;
    let mut xml = String::new();
    archive.by_name(SHEET)?.read_to_string(&mut xml)?;
    let values = xml.split("<v>").skip(1).map(|it| it.split('<').next().unwrap_or_default());
    let mut sum = 0.0;
    for value in values {
        sum += value.parse::<f64>().with_context(|| format!("no number: {value}"))?;
    }
    Ok(sum)
}

/// A process that has started, and calculates a workbook when it is told to.
struct Calculator {
    name: &'static str,
    process: Child,
    asked: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Calculator {
    /// The engine, in the program beside this one.
    fn own(book: &Path) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("prowess-bench-xlsx");
        ensure!(program.exists(), "{} is not built", program.display());
        let mut command = Command::new(program);
        command.arg(book).arg(FORMULAS.to_string());
        Self::start("prowess-bench-xlsx", command)
    }

    fn libreoffice(book: &Path) -> Result<Option<Self>> {
        let (Ok(office), Ok(python)) =
            (std::env::var("PROWESS_TEST_SOFFICE"), std::env::var("PROWESS_PEERS_UNO"))
        else {
            return Ok(None);
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/libreoffice/calculate.py");
        let mut command = Command::new(python);
        command.arg(script).arg(office).arg(book);
        Self::start("the bridge of LibreOffice", command).map(Some)
    }

    fn start(name: &'static str, mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context(name)?;
        let asked = process.stdin.take();
        let answers = process.stdout.take().context("it says nothing")?;
        let mut started = Self { name, process, asked, answers: BufReader::new(answers) };
        let said = started.line()?;
        ensure!(said == "ready", "{name}: {said}");
        Ok(started)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line)?;
        ensure!(read > 0, "{} ended; what it said stands above", self.name);
        Ok(line.trim().to_owned())
    }

    fn number(&mut self, command: &str) -> Result<f64> {
        let asked = self.asked.as_mut().context("it has ended")?;
        writeln!(asked, "{command}")?;
        asked.flush()?;
        let line = self.line()?;
        line.parse().with_context(|| format!("{}: {line}", self.name))
    }

    fn end(mut self) -> Result<()> {
        drop(self.asked.take());
        let status = self.process.wait()?;
        ensure!(status.success(), "{}: {status}", self.name);
        Ok(())
    }
}

impl Drop for Calculator {
    /// Without input it ends, and what it started with it.
    fn drop(&mut self) {
        drop(self.asked.take());
        let _ = self.process.wait();
    }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Inspects a workbook of 50 MB through the tool.
fn inspect() -> Result<Vec<Row>> {
    let what = "memory that inspecting a 50 MB workbook takes, half of it numbers, half shared \
                strings, to its size";
    if let Err(why) = forget_peak() {
        let why = format!("the peak of memory cannot be reset (/proc/self/clear_refs: {why})");
        return Ok(vec![Row::not_measured(what, &format!("≤ {MEMORY}×"), &why)]);
    }
    let folder = TempDir::new()?;
    let workspaces = Workspaces::new(folder.path().join("workspaces"));
    let session: SessionKey = "bench".parse()?;
    let id = WorkspaceId::new(session.app(), session.user(), session.session());
    let place = workspaces.open(&id)?.path().join("work/large.xlsx");
    let (cells, strings) = large(&place)?;
    let size = fs::metadata(&place)?.len();
    let skills = Path::new(env!("CARGO_MANIFEST_DIR")).join("../skills");
    let catalog = Catalog::builder().source(DirectorySource::new(skills)).build();
    let xlsx = XlsxToolkit::new(workspaces);
    let runtime = Runtime::builder(catalog).toolkit(Arc::new(xlsx)).build()?;
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let call = async |id: &str, tool: &str, arguments| {
        let call = ToolCall::new(id, tool, arguments);
        let outcome = runtime.dispatch(&session, &AgentName::default(), call).await?;
        ensure!(!outcome.is_error, "{tool}: {}", outcome.content);
        Ok(outcome)
    };
    let (seconds, grown, data) = tokio.block_on(async {
        call("1", "load_skill", json!({"skill": "xlsx"})).await?;
        // The peak counts from here.
        forget_peak()?;
        let before = memory("VmRSS")?;
        let start = Instant::now();
        let outcome = call("2", "xlsx_inspect", json!({"path": "work/large.xlsx"})).await?;
        let seconds = start.elapsed().as_secs_f64();
        anyhow::Ok((seconds, memory("VmHWM")?.saturating_sub(before), outcome.data))
    })?;
    ensure!(data["cells"] == json!(cells), "{} cells of {cells}", data["cells"]);
    let found = &data["shared_strings"];
    ensure!(*found == json!(strings), "{found} shared strings of {strings}");
    let expanded = data["expanded_bytes"].as_u64().unwrap_or_default();
    #[allow(clippy::cast_precision_loss, reason = "a ratio")]
    let ratio = grown as f64 / size as f64;
    let mib = |bytes: u64| bytes >> 20;
    let detail = format!(
        "{} KiB more at the peak for a file of {} MiB, {} MiB unpacked, {cells} cells, {strings} \
         shared strings, {seconds:.1} s",
        grown >> 10,
        mib(size),
        mib(expanded)
    );
    Ok(vec![Row::at_most(what, ratio, MEMORY, &detail)])
}

/// Writes a workbook of at least 50 MB, row by row, half of it numbers and half shared strings;
/// says how many cells and how many shared strings it has.
fn large(place: &Path) -> Result<(u64, u64)> {
    let mut template = Writer::new();
    template.add_worksheet().write_string(0, 0, "shared")?;
    let mut template = zip::ZipArchive::new(std::io::Cursor::new(template.save_to_buffer()?))?;
    let mut writer = zip::ZipWriter::new(BufWriter::new(fs::File::create(place)?));
    for index in 0..template.len() {
        let file = template.by_index_raw(index)?;
        if ![SHEET, STRINGS].contains(&file.name()?.as_ref()) {
            writer.raw_copy_file(file)?;
        }
    }
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
        state >> 1
    };
    // How much was written is known when the buffers are.
    let is_beyond = |bytes: u64| Ok::<_, std::io::Error>(fs::metadata(place)?.len() > bytes);
    let options = zip::write::SimpleFileOptions::default();
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    writer.start_file(STRINGS, options)?;
    write!(writer, "<?xml version=\"1.0\"?><sst xmlns=\"{main}\">")?;
    let mut strings = 0_u64;
    while !strings.is_multiple_of(20_000) || !is_beyond(LARGE / 2)? {
        write!(writer, "<si><t>text {:019} {:019}</t></si>", random(), random())?;
        strings += 1;
    }
    write!(writer, "</sst>")?;
    writer.start_file(SHEET, options)?;
    write!(writer, "<?xml version=\"1.0\"?><worksheet xmlns=\"{main}\"><sheetData>")?;
    let mut cells = 0;
    // Numbers with this many digits shrink to about four tenths with their tags around them.
    for row in 1..=1_000_000_u32 {
        write!(writer, "<row r=\"{row}\">")?;
        for column in ["A", "B", "C", "D"] {
            write!(writer, "<c r=\"{column}{row}\"><v>0.{:019}</v></c>", random())?;
        }
        for column in ["E", "F", "G", "H"] {
            let number = random() % strings;
            write!(writer, "<c r=\"{column}{row}\" t=\"s\"><v>{number}</v></c>")?;
        }
        write!(writer, "</row>")?;
        cells += 8;
        if row % 20_000 == 0 && is_beyond(LARGE)? {
            break;
        }
    }
    write!(writer, "</sheetData></worksheet>")?;
    writer.finish()?.flush()?;
    Ok((cells, strings))
}

/// Lets the peak of memory count from here.
fn forget_peak() -> std::io::Result<()> {
    fs::write("/proc/self/clear_refs", "5")
}

/// Bytes of memory of this process.
fn memory(key: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(key)).context("no such key")?;
    let kib = line.split_whitespace().nth(1).context("no number")?.parse::<u64>()?;
    Ok(kib << 10)
}
