//! The supervisor of sandboxed runs.

fn main() -> std::process::ExitCode {
    prowess_workspace::supervise()
}
