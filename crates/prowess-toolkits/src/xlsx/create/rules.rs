//! Rules of a sheet that is made: what may be put into cells, and how they look for it.

use rust_xlsxwriter::{
    Color, ConditionalFormat2ColorScale, ConditionalFormat3ColorScale, ConditionalFormatBlank,
    ConditionalFormatCell, ConditionalFormatCellRule, ConditionalFormatDataBar,
    ConditionalFormatDuplicate, ConditionalFormatError, ConditionalFormatFormula,
    ConditionalFormatText, ConditionalFormatTextRule, DataValidation, DataValidationRule,
    ExcelDateTime, Format, Formula, Worksheet,
};
use serde_json::Value as Json;

use super::super::arguments::Arguments;
use super::super::error::XlsxError;
use super::super::guard::check_formula;
use super::not_made;
use super::sheet::{area, corners, each};

/// Rules for what may be put into cells.
pub(super) fn validations(
    sheet: &mut Worksheet,
    described: Arguments<'_>,
) -> Result<(), XlsxError> {
    for (at, rule) in each(&described.list("validations")?, &described.at("validations")) {
        let rule = Arguments::of(rule, &at)?;
        rule.only(&["range", "type", "list", "min", "max", "formula", "message"])?;
        let range = area(rule.required("range")?, &rule.at("range"))?;
        let failed = |why: rust_xlsxwriter::XlsxError| not_made(&at, &why);
        let mut made = match rule.text("type")?.unwrap_or("list") {
            "list" => match rule.get("list") {
                Some(Json::String(range)) => {
                    check_formula(range, &rule.at("list"))?;
                    DataValidation::new().allow_list_formula(Formula::new(range.as_str()))
                }
                _ => {
                    let texts = rule.list("list")?.into_iter().map(|it| match it {
                        Json::String(text) => text,
                        other => other.to_string(),
                    });
                    let texts: Vec<String> = texts.collect();
                    if texts.is_empty() {
                        let why = "it must hold texts, or be a range such as =Lists!$A$1:$A$9";
                        return Err(XlsxError::invalid(rule.at("list"), why));
                    }
                    DataValidation::new().allow_list_strings(&texts).map_err(failed)?
                }
            },
            "whole" => DataValidation::new().allow_whole_number(between(rule, whole)?),
            "decimal" => DataValidation::new().allow_decimal_number(between(rule, decimal)?),
            "length" => DataValidation::new().allow_text_length(between(rule, length)?),
            "date" => DataValidation::new().allow_date(between(rule, date)?),
            "custom" => {
                let formula = rule.required("formula")?;
                check_formula(formula, &rule.at("formula"))?;
                DataValidation::new().allow_custom(Formula::new(formula))
            }
            _ => {
                let why = "it must be list, whole, decimal, length, date or custom";
                return Err(XlsxError::invalid(rule.at("type"), why));
            }
        };
        if let Some(message) = rule.text("message")? {
            made = made.set_error_message(message).map_err(failed)?;
        }
        let (r1, c1, r2, c2) = corners(range);
        sheet.add_data_validation(r1, c1, r2, c2, &made).map_err(failed)?;
    }
    Ok(())
}

/// `min`, `max`, or both.
fn between<T: rust_xlsxwriter::IntoDataValidationValue>(
    rule: Arguments<'_>,
    read: impl Fn(&Json) -> Option<T>,
) -> Result<DataValidationRule<T>, XlsxError> {
    let get = |name: &str| match rule.get(name) {
        None => Ok(None),
        Some(value) => match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(XlsxError::invalid(rule.at(name), "it does not fit the type")),
        },
    };
    match (get("min")?, get("max")?) {
        (Some(min), Some(max)) => Ok(DataValidationRule::Between(min, max)),
        (Some(min), None) => Ok(DataValidationRule::GreaterThanOrEqualTo(min)),
        (None, Some(max)) => Ok(DataValidationRule::LessThanOrEqualTo(max)),
        (None, None) => Err(XlsxError::invalid(rule.at("min"), "min or max is required")),
    }
}

fn whole(value: &Json) -> Option<i32> {
    value.as_i64().and_then(|it| i32::try_from(it).ok())
}

fn decimal(value: &Json) -> Option<f64> {
    value.as_f64()
}

fn length(value: &Json) -> Option<u32> {
    value.as_u64().and_then(|it| u32::try_from(it).ok())
}

fn date(value: &Json) -> Option<ExcelDateTime> {
    ExcelDateTime::parse_from_str(value.as_str()?).ok()
}

/// Rules for how cells look.
pub(super) fn conditional_formats(
    sheet: &mut Worksheet,
    described: Arguments<'_>,
) -> Result<(), XlsxError> {
    let key = "conditional_formats";
    for (at, rule) in each(&described.list(key)?, &described.at(key)) {
        let rule = Arguments::of(rule, &at)?;
        let known = ["range", "type", "rule", "value", "max", "formula", "text", "color"];
        rule.only(&known)?;
        let (r1, c1, r2, c2) = corners(area(rule.required("range")?, &rule.at("range"))?);
        let look = look(rule)?;
        let added = match rule.required("type")? {
            "cell" => {
                let made = ConditionalFormatCell::new().set_rule(comparison(rule)?);
                sheet.add_conditional_format(r1, c1, r2, c2, &made.set_format(look))
            }
            "text" => {
                let text = rule.required("text")?.to_owned();
                let made = ConditionalFormatText::new()
                    .set_rule(ConditionalFormatTextRule::Contains(text))
                    .set_format(look);
                sheet.add_conditional_format(r1, c1, r2, c2, &made)
            }
            "formula" => {
                let formula = rule.required("formula")?;
                check_formula(formula, &rule.at("formula"))?;
                let made = ConditionalFormatFormula::new().set_rule(formula);
                sheet.add_conditional_format(r1, c1, r2, c2, &made.set_format(look))
            }
            "duplicates" => {
                let made = ConditionalFormatDuplicate::new().set_format(look);
                sheet.add_conditional_format(r1, c1, r2, c2, &made)
            }
            "blanks" => {
                let made = ConditionalFormatBlank::new().set_format(look);
                sheet.add_conditional_format(r1, c1, r2, c2, &made)
            }
            "errors" => {
                let made = ConditionalFormatError::new().set_format(look);
                sheet.add_conditional_format(r1, c1, r2, c2, &made)
            }
            "bar" => {
                let made = ConditionalFormatDataBar::new();
                sheet.add_conditional_format(r1, c1, r2, c2, &made)
            }
            "scale2" => {
                let made = ConditionalFormat2ColorScale::new();
                sheet.add_conditional_format(r1, c1, r2, c2, &made)
            }
            "scale3" => {
                let made = ConditionalFormat3ColorScale::new();
                sheet.add_conditional_format(r1, c1, r2, c2, &made)
            }
            _ => {
                let why = "it must be cell, text, formula, duplicates, blanks, errors, bar, \
                           scale2 or scale3";
                return Err(XlsxError::invalid(rule.at("type"), why));
            }
        };
        added.map_err(|why| not_made(&at, &why))?;
    }
    Ok(())
}

fn comparison(rule: Arguments<'_>) -> Result<ConditionalFormatCellRule<f64>, XlsxError> {
    let Some(value) = rule.number("value")? else {
        return Err(XlsxError::invalid(rule.at("value"), "it is required"));
    };
    Ok(match (rule.required("rule")?, rule.number("max")?) {
        (">", _) => ConditionalFormatCellRule::GreaterThan(value),
        (">=", _) => ConditionalFormatCellRule::GreaterThanOrEqualTo(value),
        ("<", _) => ConditionalFormatCellRule::LessThan(value),
        ("<=", _) => ConditionalFormatCellRule::LessThanOrEqualTo(value),
        ("=", _) => ConditionalFormatCellRule::EqualTo(value),
        ("<>", _) => ConditionalFormatCellRule::NotEqualTo(value),
        ("between", Some(max)) => ConditionalFormatCellRule::Between(value, max),
        _ => {
            let why = "it must be >, >=, <, <=, =, <> or between, the last with max";
            return Err(XlsxError::invalid(rule.at("rule"), why));
        }
    })
}

/// `green`, `yellow`, `red`, or six digits such as `FFC7CE`.
fn look(rule: Arguments<'_>) -> Result<Format, XlsxError> {
    let (background, font) = match rule.text("color")? {
        None | Some("red") => (0x00FF_C7CE, Some(0x009C_0006)),
        Some("yellow") => (0x00FF_EB9C, Some(0x009C_5700)),
        Some("green") => (0x00C6_EFCE, Some(0x0000_6100)),
        Some(code) => match u32::from_str_radix(code.trim_start_matches('#'), 16) {
            Ok(color) if code.trim_start_matches('#').len() == 6 => (color, None),
            _ => {
                let why = "it must be red, yellow, green or six digits such as FFC7CE";
                return Err(XlsxError::invalid(rule.at("color"), why));
            }
        },
    };
    let format = Format::new().set_background_color(Color::RGB(background));
    Ok(match font {
        Some(font) => format.set_font_color(Color::RGB(font)),
        None => format,
    })
}
