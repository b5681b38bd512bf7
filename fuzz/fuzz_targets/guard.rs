#![no_main]

#[path = "../guard_checks.rs"]
mod guard_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| guard_checks::guard(data));
