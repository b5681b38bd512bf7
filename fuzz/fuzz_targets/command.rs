#![no_main]

#[path = "../command_checks.rs"]
mod command_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| command_checks::command(data));
