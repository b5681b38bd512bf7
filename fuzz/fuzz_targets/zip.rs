#![no_main]

#[path = "../archive_checks.rs"]
mod archive_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| archive_checks::zip(data));
