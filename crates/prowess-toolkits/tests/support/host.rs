//! A program of a host that is its own supervisor, for tests.

fn main() {
    prowess_workspace::supervise_if_asked();
}
