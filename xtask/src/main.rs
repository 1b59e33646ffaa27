//! `cargo xtask CHECK`: checks of the workspace that are neither compiler nor tests.
fn main() {
    println!("nothing yet");
}
