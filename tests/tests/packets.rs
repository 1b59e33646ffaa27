//! What a connection sends below a limit is spread by the kernel, and the program finds its own setting.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;
use std::thread;

use discnice_tests::class::Class;
use discnice_tests::guest::Compiler;
use discnice_tests::process::run;
use discnice_tests::{product, skip};

/// A server that receives; its port.
fn server() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || while stream.read(&mut [0; 65536]).is_ok_and(|read| read > 0) {});
        }
    });
    port
}

/// Whether a rate is up to a third above the limit, which is what the kernel is to have.
fn is_above(rate: i64, limit: i64) -> bool {
    (limit + limit / 5..limit + limit / 3).contains(&rate)
}

//= rate-windows/5.2-packets
#[test]
fn a_connection_is_paced_below_the_limit_and_finds_its_own_setting() {
    let folder = product::folder();
    let Some(compiler) = Compiler::new(folder.path()) else { skip!("no C compiler") };
    let Ok(guest) = compiler.compile_with("pacing.c", &[]) else { skip!("another processor") };
    let class = Class::new("unlimited");
    let mut command = product::discnice(["run", "--class", class.name(), "--net-up", "2MB"]);
    command.args(["--net-loopback", "--"]).arg(guest).arg(server().to_string());
    let mut job = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(job.stdout.take().expect("a pipe")).lines();
    let mut next = |what: &str| -> i64 {
        let line = said.next().and_then(Result::ok).unwrap_or_default();
        let rest = line.strip_prefix(what).unwrap_or_else(|| panic!("{line:?} instead of {what}"));
        let number = rest.trim_start_matches([':', '=', ' ']).split(',').next();
        number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    };
    let mut asked = job.stdin.take().expect("a pipe");
    let mut set = |limit: &str| {
        let set = ["class", "set", class.name(), "--net-up", limit];
        run(&mut product::discnice(set)).succeeded();
        asked.write_all(b"\n").expect("it reads");
    };
    let paced = next("paced");
    assert!(is_above(paced, 2_000_000), "{paced}");
    assert_eq!(next("found"), -1, "nothing, as without us");
    let bad = next("getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, NULL, NULL)");
    assert_eq!(bad, -1, "EFAULT, from the kernel");
    assert!(is_above(next("paced again"), 2_000_000));
    assert_eq!(next("setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate)"), 0);
    assert_eq!([next("found"), next("its own")], [5_000_000; 2]);
    next("setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate)");
    assert!(is_above(next("paced again"), 2_000_000));
    set("8MB");
    assert!(is_above(next("changed"), 8_000_000));
    set("unlimited");
    assert_eq!(next("without a limit"), -1);
    assert!(job.wait().expect("it ends").success());
}
