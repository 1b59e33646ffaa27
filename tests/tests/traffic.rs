//! Programs see the same of their sockets under network limits as without.

use discnice_tests::bare::assert_same;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{product, skip};

/// Tests of one way of the guest each, bare and under these limits.
macro_rules! ways {
    ($($(#[doc = $doc:literal])+ $name:ident: $way:literal, $limits:expr;)+) => {
        $(
            $(#[doc = $doc])+
            #[test]
            fn $name() {
                let folder = product::folder();
                let Some(compiler) = Compiler::new(folder.path()) else { skip!("no C compiler") };
                let guest = compiler.compile("traffic.c");
                let bare = run(product::as_user(&guest).arg($way));
                assert_eq!(bare.status, Some(0), "the guest itself: {bare:?}");
                assert!(!bare.output.is_empty(), "a silent guest shows nothing");
                let mut held = product::discnice(["run"]);
                held.args($limits).arg("--").arg(&guest).arg($way);
                assert_same(&bare, &run(&mut held), $way);
            }
        )+
    };
}

ways! {
    /// No more of a source address is read than the program has room for.
    source_addresses_may_be_cut: "cut-sources", ["--net", "1M", "--net-loopback"];
    /// One call is one number, in the order of the calls.
    sends_without_copies_are_numbered_by_call: "without-copies", ["--net-up", "1M", "--net-loopback"];
    /// The first instance reports what it was asked for.
    sockets_in_two_epoll_instances_are_reported: "two-instances", ["--net-down", "1M", "--net-loopback"];
    /// What was moved is the result.
    splice_ends_with_its_pipe: "pipes", ["--net", "100K", "--net-loopback"];
    /// A time that the kernel refuses is refused.
    times_that_are_none_are_refused: "wrong-times", ["--net", "1M"];
    /// One write is one message.
    long_messages_stay_whole: "long-messages", ["--disk", "256K"];
}
