//! libc's buffered streams on a connection that is held.

use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{product, skip};

/// Limits that also hold what stays within the machine.
const HELD: [&str; 4] = ["run", "--net", "1M", "--net-loopback"];

/// What the guest prints that goes this way, bare and held; `None` without a compiler.
fn print(way: &str) -> Option<[String; 2]> {
    let folder = product::folder();
    let guest = Compiler::new(folder.path())?.compile("streams.c");
    let bare = run(product::as_user(&guest).arg(way)).succeeded();
    let held = run(product::discnice(HELD).arg("--").arg(guest).arg(way)).succeeded();
    Some([bare.text(), held.text()])
}

#[test]
fn a_refused_stream_says_so_and_sends_its_own_bytes_alone() {
    for way in ["waiting", "non-blocking"] {
        let Some([bare, held]) = print(way) else { skip!("no compiler") };
        assert_eq!(
            bare, "0 without an error, 0 with another\nthe other end: ended, exit 0, signal 0\n",
            "{way}"
        );
        assert_eq!(held, bare, "{way}");
    }
}

#[test]
fn a_pipe_with_the_number_of_a_closed_stream_is_no_connection() {
    let Some(printed) = print("reused") else { skip!("no compiler") };
    for (how, seconds) in ["bare", "held"].into_iter().zip(printed) {
        let seconds: f64 = seconds.trim().parse().expect("seconds");
        assert!(seconds < 0.5, "{how}: {seconds}");
    }
}
