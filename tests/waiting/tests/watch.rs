//! `top` and `metrics`: what they show, what they refuse, and that the terminal is given back.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use discnice_tests::process::{Outcome, run};
use discnice_tests::{product, skip};

/// What xterm's programs say to take and to give back the other screen.
const TAKEN: &str = "\u{1b}[?1049h";
const GIVEN_BACK: &str = "\u{1b}[?1049l";

fn refused(outcome: &Outcome, names: &str) {
    let complaint = outcome.complaint();
    assert_eq!(outcome.status, Some(125), "{outcome:?}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.starts_with("discnice: ") && complaint.contains(names), "{complaint}");
    assert_eq!(outcome.text(), "");
}

/// Runs a shell script on a terminal of its own (script(1)), in which `top` is ours.
fn on_a_terminal(before: &str, script: &str) -> Outcome {
    let folder = product::folder();
    let words = ["sh", "-c", "eval \"$1\" | script -qec \"$2\" /dev/null", "sh", before, script];
    let mut command = product::as_user(words[0]);
    let program = product::program();
    command.args(&words[1..]).current_dir(folder.path());
    run(command.env("TERM", "xterm").env("DISCNICE", "").env("top", program).env("LANG", "C.UTF-8"))
}

#[test]
fn top_needs_a_terminal() {
    refused(&run(&mut product::discnice(["top"])), "terminal");
    for interval in ["0", "-1", "x", "nan", "1e9"] {
        refused(&run(&mut product::discnice(["top", "--interval", interval])), "0.1");
    }
    let dumb = on_a_terminal("sleep 1", "TERM=dumb \"$top\" top; echo status $?");
    assert!(dumb.text().contains("needs a terminal") && dumb.text().contains("status 125"));
}

#[test]
fn a_key_ends_top_and_gives_the_terminal_back() {
    let shown = on_a_terminal(
        "sleep 1; printf q; sleep 1",
        "stty rows 24 cols 80; \"$top\" top; echo status $?; stty -a",
    );
    let text = shown.text();
    assert!(text.contains(TAKEN) && text.contains("classes"), "{text:?}");
    let (_, after) = text.rsplit_once(GIVEN_BACK).expect("given back");
    assert!(after.contains("status 0") && after.contains(" icanon"), "{after:?}");
}

/// As with `ssh -t`: stopped, it would never go on.
#[test]
fn top_does_not_stop_where_no_shell_would_continue_it() {
    let keys = "sleep 1; printf '\\032'; sleep 1; printf q; sleep 1";
    let shown =
        on_a_terminal(keys, "stty rows 24 cols 80; (sleep 8; kill -9 $$) & exec \"$top\" top");
    assert_eq!(shown.status, Some(0), "{:?}", shown.text());
}

/// Nothing answers here where the cursor is, as on a serial line.
#[test]
fn top_goes_on_when_the_shell_continues_it() {
    let keys = "sleep 1; printf '\\032'; sleep 2; printf q; sleep 2";
    let script = "stty rows 24 cols 80; set -m; \"$top\" top; fg; echo status $?";
    let text = on_a_terminal(keys, script).text();
    assert_eq!(text.matches(TAKEN).count(), 2, "{text:?}");
    assert!(text.contains("status 0"), "{text:?}");
}

#[test]
fn keys_of_top_pause_and_end_a_class() {
    let run = "\"$top\" run --class topkeys --disk 5M sleep 60 & job=$!";
    let top = "stty rows 24 cols 80; \"$top\" top; wait $job; echo ended $?";
    let filter = "sleep 3; printf '/topkeys\\r'";
    let keys = format!(
        "{filter}; sleep 1; printf z; sleep 3; printf Ky; sleep 2; printf q; sleep 2; printf q"
    );
    let text = on_a_terminal(&keys, &format!("{run}; sleep 1; {top}")).text();
    // Only what differs from the line before is drawn.
    assert!(text.contains("is paused") && text.contains("stop"), "{text:?}");
    assert!(text.contains("asked") && text.contains("(SIGTERM)"), "{text:?}");
    assert!(text.contains("ended 143"), "{text:?}");
}

#[test]
fn signals_end_top_and_give_the_terminal_back() {
    let asking = [("TERM", 143), ("INT", 130), ("HUP", 129), ("QUIT", 131), ("ABRT", 134)];
    let others =
        [("USR1", 138), ("USR2", 140), ("ALRM", 142), ("XCPU", 152), ("34", 162), ("64", 192)];
    let ends = |(signal, status)| {
        // Those that are ignored here, as below nohup(1), would not end it.
        let script =
            format!("(sleep 1; kill -{signal} $$) & exec env --default-signal \"$top\" top");
        let script = format!("ulimit -c 0; sh -c '{script}'; echo status $?; stty -a");
        let text = on_a_terminal("sleep 3", &script).text();
        let (_, after) = text.rsplit_once(GIVEN_BACK).expect("given back");
        assert!(after.contains(&format!("status {status}")), "{signal}: {after:?}");
        assert!(after.contains(" icanon"), "{signal}: {after:?}");
    };
    std::thread::scope(|scope| {
        for case in asking.into_iter().chain(others) {
            scope.spawn(move || ends(case));
        }
    });
}

/// As Alt-[ types, or a letter in another character set.
#[test]
fn half_a_key_does_not_keep_top_from_noticing_signals() {
    for half in ["\\033[", "\\303"] {
        let ends = "(sleep 2; kill -TERM $$; sleep 5; kill -KILL $$)";
        let script = format!("sh -c '{ends} & exec \"$top\" top'; echo status $?; stty -a");
        let text = on_a_terminal(&format!("sleep 1; printf '{half}'; sleep 4"), &script).text();
        let (_, after) = text.rsplit_once(GIVEN_BACK).expect("given back");
        assert!(after.contains("status 143") && after.contains(" icanon"), "{half}: {after:?}");
    }
}

#[test]
fn the_key_after_half_a_key_counts() {
    for half in ["\\033[", "\\033O", "\\033[1;", "\\303"] {
        let keys = format!("sleep 1; printf '{half}'; sleep 1; printf q; sleep 2");
        let script = "(sleep 6; kill -KILL $$) & \"$top\" top; echo status $?";
        let text = on_a_terminal(&keys, script).text();
        assert!(text.contains("status 0"), "{half}: {text:?}");
    }
}

/// As a slow line splits it.
#[test]
fn a_key_that_comes_in_parts_is_one_key() {
    let keys = "sleep 1; printf '?\\033'; sleep 0.03; printf '['; sleep 0.03; printf F; sleep 1; printf q; sleep 1; printf q";
    let script = "stty rows 10 cols 80; \"$top\" top; echo status $?";
    let text = on_a_terminal(&format!("{keys}; sleep 1"), script).text();
    assert!(text.contains("(used)") && text.contains("status 0"), "{text:?}");
}

#[test]
fn a_signal_that_is_ignored_does_not_end_top() {
    let script =
        "trap '' USR1; sh -c '(sleep 1; kill -USR1 $$) & exec \"$top\" top'; echo status $?";
    let text = on_a_terminal("sleep 3; printf q; sleep 1", script).text();
    assert!(text.contains("status 0"), "{text:?}");
}

#[test]
fn what_is_pasted_does_not_keep_top_from_noticing_keys() {
    let pasted = "sleep 1; head -c 3000 /dev/zero | tr '\\0' j; sleep 1; printf q; sleep 2";
    let script = "(sleep 8; kill -KILL $$) & \"$top\" top; echo status $?";
    let text = on_a_terminal(pasted, script).text();
    assert!(text.contains("status 0"), "{text:?}");
}

#[test]
fn tiny_terminals_are_told() {
    let script = "stty cols 30 rows 4; \"$top\" top";
    let text = on_a_terminal("sleep 1; printf q; sleep 1", script).text();
    assert!(text.contains("60") && text.contains("columns"), "{text:?}");
}

#[test]
fn metrics_tell_every_class() {
    let class = format!("metrics-{}", std::process::id());
    let _ = run(&mut product::discnice(["class", "set", &class, "--disk", "5M"])).succeeded();
    let shown = run(&mut product::discnice(["metrics"])).succeeded().text();
    let _ = run(&mut product::discnice(["class", "rm", &class])).succeeded();
    let limit = format!("discnice_class_limit{{class=\"{class}\",resource=\"total\"}} 5242880.0");
    assert!(shown.lines().any(|line| line == limit), "{shown}");
    assert!(shown.ends_with("# EOF\n"));
}

/// A scraper's target that ends with the test.
struct Served(Child);

impl Served {
    /// For all users: the test may run as another one than the product.
    fn at(address: &str) -> Self {
        Self::to(&["--public"], address)
    }

    fn to(audience: &[&str], address: &str) -> Self {
        let mut command = product::discnice(["metrics", "--listen", address]);
        command.args(audience);
        Self(command.spawn().expect("the program starts"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn scrape<S: Read + Write>(connect: impl Fn() -> std::io::Result<S>) -> String {
    let begun = Instant::now();
    let mut stream = loop {
        match connect() {
            Ok(stream) => break stream,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(20), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("it reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it answers");
    reply
}

#[test]
fn scrapers_find_a_port_or_a_socket() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("a free port").port();
    let served = Served::at(&port.to_string());
    let reply = scrape(|| TcpStream::connect(("127.0.0.1", port)));
    assert!(reply.contains("application/openmetrics-text") && reply.ends_with("# EOF\n"));
    refused(&run(&mut product::discnice(["metrics", "--listen", &port.to_string()])), "in use");
    drop(served);
    let folder = product::folder();
    let path = folder.path().join("socket");
    let _served = Served::at(path.to_str().expect("UTF-8"));
    assert!(scrape(|| UnixStream::connect(&path)).ends_with("# EOF\n"));
}

/// What another user hears: the first line and the rest. `setpriv` makes the scraper one.
fn scrape_as(user: &str, words: &[&str]) -> String {
    let identity = ["--reuid", user, "--regid", user, "--clear-groups"];
    let scraper = "import socket, sys\n\
        kind = socket.AF_INET if sys.argv[1].isdigit() else socket.AF_UNIX\n\
        s = socket.socket(kind)\n\
        s.connect(('127.0.0.1', int(sys.argv[1])) if kind == socket.AF_INET else sys.argv[1])\n\
        s.sendall(b'GET /metrics HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n\
        while part := s.recv(65536): sys.stdout.write(part.decode())\n";
    let mut command = Command::new("setpriv");
    let command = command.args(identity).args(["/usr/bin/python3", "-c", scraper]).args(words);
    run(command).succeeded().text()
}

#[test]
fn only_the_same_user_hears_names_of_classes() {
    if !product::is_root() || !std::path::Path::new("/usr/bin/python3").exists() {
        skip!("two users are needed, which only root makes, and python3");
    }
    let class = format!("secret-{}", std::process::id());
    let _ = run(&mut product::discnice(["class", "set", &class, "--disk", "5M"])).succeeded();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("a free port").port();
    let folder = product::folder();
    let path = folder.path().join("socket");
    let (port, path) = (port.to_string(), path.to_str().expect("UTF-8").to_owned());
    for address in [&port, &path] {
        for (audience, others) in [(&[][..], false), (&["--public"], true)] {
            let served = Served::to(audience, address);
            let begun = Instant::now();
            let waits = || match address.parse::<u16>() {
                Ok(port) => TcpStream::connect(("127.0.0.1", port)).is_err(),
                Err(_) => UnixStream::connect(address).is_err(),
            };
            while waits() && begun.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(10));
            }
            if address == &path {
                // Otherwise the mode of the socket keeps others off before we do.
                std::fs::set_permissions(&path, Permissions::from_mode(0o777))
                    .expect("it is there");
            }
            for (user, same) in [("65534", true), ("65533", false), ("0", false)] {
                let reply = scrape_as(user, &[address]);
                let heard = reply.contains(&class);
                assert_eq!(heard, same || others, "{user} {audience:?} {address}: {reply}");
                let status = if heard { "HTTP/1.1 200 OK" } else { "HTTP/1.1 403 Forbidden" };
                assert!(reply.starts_with(status), "{user} {audience:?} {address}: {reply}");
            }
            drop(served);
        }
    }
    let _ = run(&mut product::discnice(["class", "rm", &class])).succeeded();
}

#[test]
fn addresses_that_are_none() {
    for address in ["", "localhost", "70000", "1.2.3.4", "/no/such/folder/socket", "/etc/passwd"] {
        refused(&run(&mut product::discnice(["metrics", "--listen", address])), "");
    }
}
