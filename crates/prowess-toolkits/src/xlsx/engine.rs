//! The engine that calculates formulas, run within limits.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::Duration;

use formualizer_workbook::{
    CancelToken, ExternalLinkPolicy, IoError, LiteralValue, LoadStrategy, NativeXlsxAdapter,
    Workbook, WorkbookConfig, XlsxLoadLimits, XlsxRecalculateLimits, XlsxRecalculateOptions,
    XlsxRecalculateResult, recalculate_xlsx_bytes,
};

use super::book::{Book, SheetKind};
use super::package::Package;
use super::recalc::{RecalcErrors, note};
use super::render::capped;
use super::settings::XlsxSettings;
use super::sheet::{self, Item};
use super::spell;

/// Formulas may be nested deeply.
const STACK_BYTES: usize = 64 << 20;
/// How long the engine may take to notice that it is to stop.
const GRACE: Duration = Duration::from_secs(5);

/// How many bytes of new values the engine keeps beside a sheet's columns at least, and how many
/// for each formula.
const KEPT_BYTES: usize = 128 << 10;
const KEPT_BYTES_EACH: usize = 1;

/// How many bytes of new values the engine keeps beside a sheet's columns before it puts them
/// into them. Formulas that read many of them are calculated much faster afterwards. To put them
/// there costs time as well, so it does that a few times, however many formulas there are.
#[doc(hidden)]
pub fn kept_bytes(formulas: u64) -> usize {
    let formulas = usize::try_from(formulas).unwrap_or(usize::MAX);
    formulas.saturating_mul(KEPT_BYTES_EACH).max(KEPT_BYTES)
}

/// Why there is no result.
pub(super) enum Stopped {
    By(IoError),
    Late,
    Broken,
}

/// Runs the engine where it may take its time, and no longer.
pub(super) fn run(
    bytes: &[u8],
    formulas: u64,
    settings: &XlsxSettings,
) -> Result<XlsxRecalculateResult, Stopped> {
    let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX >> 1);
    let cancel = CancelToken::new();
    let limits = XlsxRecalculateLimits {
        max_input_bytes: size(settings.max_file_bytes),
        max_entries: size(settings.max_parts),
        max_expanded_bytes: size(settings.max_expanded_bytes),
        max_worksheet_bytes: size(settings.max_edited_bytes),
        max_formula_cells: size(settings.max_formulas),
        max_output_bytes: size(settings.max_file_bytes),
        max_xml_depth: size(settings.max_xml_depth),
        max_cells: size(settings.max_recalc_cells),
        max_columns: super::address::LAST_COLUMN,
    };
    let mut options = XlsxRecalculateOptions {
        cancel: Some(cancel.clone()),
        error_location_limit: settings.max_locations,
        external_links: ExternalLinkPolicy::Refuse,
        limits,
        ..XlsxRecalculateOptions::default()
    };
    options.eval_config.max_overlay_memory_bytes = Some(kept_bytes(formulas));
    let bytes = bytes.to_vec();
    spell::register();
    aside(settings, &cancel, move || recalculate_xlsx_bytes(&bytes, options))?.map_err(Stopped::By)
}

/// Does something with room for deep formulas, and within the time that there is.
fn aside<T: Send + 'static>(
    settings: &XlsxSettings,
    cancel: &CancelToken,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stopped> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name("xlsx-recalc".to_owned());
    let thread = thread.stack_size(STACK_BYTES).spawn(move || drop(sender.send(work())));
    if thread.is_err() {
        return Err(Stopped::Broken);
    }
    match receiver.recv_timeout(Duration::from_secs(settings.max_recalc_seconds)) {
        Ok(done) => Ok(done),
        // What panics sends nothing.
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(Stopped::Broken),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            cancel.cancel();
            let _ = receiver.recv_timeout(GRACE);
            Err(Stopped::Late)
        }
    }
}

/// Which limit the engine means.
pub(super) fn limit_of(feature: &str, settings: &XlsxSettings) -> Option<String> {
    if !feature.contains("limit") {
        return None;
    }
    let (name, most) = match feature {
        "formula cell count limit" => ("max_formulas", settings.max_formulas),
        "input byte limit" | "output byte limit" => ("max_file_bytes", settings.max_file_bytes),
        it if it.contains("worksheet byte") || it.contains("part byte") => {
            ("max_edited_bytes", settings.max_edited_bytes)
        }
        it if it.contains("expan") => ("max_expanded_bytes", settings.max_expanded_bytes),
        it if it.contains("entry") => ("max_parts", settings.max_parts),
        it if it.contains("depth") => ("max_xml_depth", settings.max_xml_depth),
        _ => ("max_recalc_cells", settings.max_recalc_cells),
    };
    Some(format!("`{name}` = {most}"))
}

/// The cells of formulas that need themselves.
pub(super) fn circles(bytes: &[u8], book: &Book, settings: &XlsxSettings) -> RecalcErrors {
    let (own_bytes, own_book, own_settings) = (bytes.to_vec(), book.clone(), settings.clone());
    spell::register();
    let cancel = CancelToken::new();
    let token = cancel.clone();
    let find = move || find_circles(&own_bytes, &own_book, &own_settings, token);
    aside(settings, &cancel, find).ok().flatten().unwrap_or_default()
}

fn find_circles(
    bytes: &[u8],
    book: &Book,
    settings: &XlsxSettings,
    cancel: CancelToken,
) -> Option<RecalcErrors> {
    let limits = XlsxLoadLimits::default();
    let reader = NativeXlsxAdapter::open_bytes_with_limits(bytes.to_vec(), limits).ok()?;
    let config = WorkbookConfig::ephemeral();
    let mut workbook = Workbook::from_reader(reader, LoadStrategy::EagerAll, config).ok()?;
    workbook.evaluate_all_cancellable(cancel).ok()?;
    let mut package =
        Package::open(Box::new(std::io::Cursor::new(bytes.to_vec())), settings).ok()?;
    let mut errors = RecalcErrors::default();
    for sheet in book.sheets.iter().filter(|it| it.kind == SheetKind::Cells) {
        let stream = package.stream(&sheet.part).ok()?;
        let found = sheet::scan(stream, &sheet.part, settings, &mut |item| {
            if let Item::Cell(raw) = item
                && let (Some(at), Some(_)) = (raw.at, &raw.formula)
                && let Some(LiteralValue::Error(error)) =
                    workbook.get_value(&sheet.name, at.row, at.column)
                && error.kind.to_string() == "#CIRC!"
            {
                note(&mut errors, format!("{}!{at}", capped(&sheet.name)), settings.max_locations);
            }
            Ok(ControlFlow::Continue(()))
        });
        found.ok()?;
    }
    Some(errors)
}
