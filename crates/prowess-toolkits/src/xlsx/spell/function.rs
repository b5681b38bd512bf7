//! The function that spells numbers, for the engine.

use std::sync::{Arc, Once};

use formualizer_common::{DateSystem, ExcelError, LiteralValue};
use formualizer_eval::args::{ArgSchema, ShapeKind};
use formualizer_eval::engine::range_view::RangeView;
use formualizer_eval::function::{FnCaps, Function};
use formualizer_eval::traits::{ArgumentHandle, CalcValue, FunctionContext};

use super::SPELLED;
use super::general::general;

/// The value with its number spelled; none if the engine spells it the same way.
fn respelled(value: &LiteralValue, dates: DateSystem) -> Option<LiteralValue> {
    let number = match value {
        LiteralValue::Number(number) => *number,
        #[allow(clippy::cast_precision_loss, reason = "a cell holds no more")]
        LiteralValue::Int(number) => *number as f64,
        LiteralValue::Date(_)
        | LiteralValue::DateTime(_)
        | LiteralValue::Time(_)
        | LiteralValue::Duration(_) => {
            return Some(LiteralValue::Text(general(value.as_serial_number_for(dates)?)));
        }
        _ => return None,
    };
    let text = general(number);
    (text != number.to_string()).then_some(LiteralValue::Text(text))
}

fn respelled_rows(rows: &[Vec<LiteralValue>], dates: DateSystem) -> Option<Vec<Vec<LiteralValue>>> {
    let is_same = |it: &LiteralValue| respelled(it, dates).is_none();
    if rows.iter().flatten().all(is_same) {
        return None;
    }
    let spell = |it: &LiteralValue| respelled(it, dates).unwrap_or_else(|| it.clone());
    Some(rows.iter().map(|row| row.iter().map(spell).collect()).collect())
}

/// Our function: gives back what it is given, and numbers as texts where the engine would spell
/// them otherwise than Excel.
#[derive(Debug)]
struct Spelled;

impl Function for Spelled {
    fn caps(&self) -> FnCaps {
        FnCaps::PURE
    }

    fn name(&self) -> &'static str {
        SPELLED
    }

    fn min_args(&self) -> usize {
        1
    }

    fn arg_schema(&self) -> &'static [ArgSchema] {
        static SCHEMA: std::sync::LazyLock<Vec<ArgSchema>> = std::sync::LazyLock::new(|| {
            let mut schema = ArgSchema::any();
            schema.shape = ShapeKind::Range;
            vec![schema]
        });
        &SCHEMA
    }

    fn eval<'a, 'b, 'c>(
        &self,
        args: &'c [ArgumentHandle<'a, 'b>],
        ctx: &dyn FunctionContext<'b>,
    ) -> Result<CalcValue<'b>, ExcelError> {
        let [argument] = args else { return Err(ExcelError::new_value()) };
        let dates = ctx.date_system();
        let value = argument.value()?;
        let new = match &value {
            CalcValue::Scalar(LiteralValue::Array(rows)) => {
                respelled_rows(rows, dates).map(|rows| CalcValue::Scalar(LiteralValue::Array(rows)))
            }
            CalcValue::Scalar(one) | CalcValue::AnnotatedScalar(one, _) => {
                respelled(one, dates).map(CalcValue::Scalar)
            }
            CalcValue::Range(view) => {
                let mut rows = Vec::new();
                view.for_each_row(&mut |row| {
                    rows.push(row.to_vec());
                    Ok(())
                })?;
                let rows = respelled_rows(&rows, dates);
                rows.map(|rows| CalcValue::Range(RangeView::from_owned_rows(rows, dates)))
            }
            CalcValue::Callable(_) => None,
        };
        Ok(new.unwrap_or(value))
    }
}

/// Makes our function known to the engine.
pub(in crate::xlsx) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| formualizer_workbook::register_function_dynamic(Arc::new(Spelled)));
}
