//! Charts of a sheet that is made.

use rust_xlsxwriter::{Chart, ChartType, Worksheet};

use super::super::address::{Area, split_sheet};
use super::super::arguments::Arguments;
use super::super::error::XlsxError;
use super::super::guard::check_formula;
use super::not_made;
use super::sheet::{area, cell, column_number, corners, each};

/// Charts over cells, of this sheet unless they say otherwise.
pub(super) fn charts(
    sheet: &mut Worksheet,
    name: &str,
    described: Arguments<'_>,
) -> Result<(), XlsxError> {
    for (at, chart) in each(&described.list("charts")?, &described.at("charts")) {
        let chart = Arguments::of(chart, &at)?;
        let known = ["type", "title", "at", "series", "x_axis", "y_axis", "width", "height"];
        chart.only(&known)?;
        let mut made = Chart::new(kind(chart)?);
        if let Some(title) = title(chart, "title")? {
            made.title().set_name(title);
        }
        if let Some(axis) = title(chart, "x_axis")? {
            made.x_axis().set_name(axis);
        }
        if let Some(axis) = title(chart, "y_axis")? {
            made.y_axis().set_name(axis);
        }
        size(&mut made, chart)?;
        let series = chart.list("series")?;
        if series.is_empty() {
            return Err(XlsxError::invalid(chart.at("series"), "there must be one at least"));
        }
        for (at, one) in each(&series, &chart.at("series")) {
            let one = Arguments::of(one, &at)?;
            one.only(&["name", "categories", "values"])?;
            let added = made.add_series();
            let (own, (r1, c1, r2, c2)) = range(one, "values", name)?;
            added.set_values((own.as_str(), r1, c1, r2, c2));
            if one.get("categories").is_some() {
                let (own, (r1, c1, r2, c2)) = range(one, "categories", name)?;
                added.set_categories((own.as_str(), r1, c1, r2, c2));
            }
            if let Some(name) = title(one, "name")? {
                added.set_name(name);
            }
        }
        let place = cell(chart.required("at")?, &chart.at("at"))?;
        let inserted = sheet.insert_chart(place.row - 1, column_number(place.column - 1), &made);
        inserted.map_err(|why| not_made(&at, &why))?;
    }
    Ok(())
}

/// A title: a text, or a cell such as `=Data!B1`. What begins with `=` is a formula to Excel.
fn title<'a>(one: Arguments<'a>, key: &str) -> Result<Option<&'a str>, XlsxError> {
    let Some(text) = one.text(key)? else { return Ok(None) };
    let Some(formula) = text.strip_prefix('=') else { return Ok(Some(text)) };
    check_formula(formula, &one.at(key))?;
    match split_sheet(formula) {
        Some((Some(_), rest)) if Area::parse(rest).is_some() => Ok(Some(text)),
        _ => {
            let why = "what begins with = must be a cell like =Data!B1";
            Err(XlsxError::invalid(one.at(key), why))
        }
    }
}

fn size(made: &mut Chart, chart: Arguments<'_>) -> Result<(), XlsxError> {
    for (name, is_width) in [("width", true), ("height", false)] {
        let Some(pixels) = chart.number(name)? else { continue };
        if !(50.0..=4000.0).contains(&pixels) {
            return Err(XlsxError::invalid(chart.at(name), "it is from 50 to 4000 pixels"));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it fits")]
        let pixels = pixels as u32;
        match is_width {
            true => made.set_width(pixels),
            false => made.set_height(pixels),
        };
    }
    Ok(())
}

fn kind(chart: Arguments<'_>) -> Result<ChartType, XlsxError> {
    Ok(match chart.text("type")?.unwrap_or("column") {
        "column" => ChartType::Column,
        "stacked_column" => ChartType::ColumnStacked,
        "bar" => ChartType::Bar,
        "stacked_bar" => ChartType::BarStacked,
        "line" => ChartType::Line,
        "area" => ChartType::Area,
        "pie" => ChartType::Pie,
        "doughnut" => ChartType::Doughnut,
        "scatter" => ChartType::Scatter,
        _ => {
            let why = "it must be column, stacked_column, bar, stacked_bar, line, area, pie, \
                       doughnut or scatter";
            return Err(XlsxError::invalid(chart.at("type"), why));
        }
    })
}

type Corners = (u32, u16, u32, u16);

fn range(one: Arguments<'_>, key: &str, sheet: &str) -> Result<(String, Corners), XlsxError> {
    let text = one.required(key)?.trim_start_matches('=');
    check_formula(text, &one.at(key))?;
    let wrong = || XlsxError::invalid(one.at(key), "it must be a range like B2:B9");
    let (own, rest) = split_sheet(text).ok_or_else(wrong)?;
    let corners = corners(area(rest, &one.at(key))?);
    Ok((own.unwrap_or_else(|| sheet.to_owned()), corners))
}
