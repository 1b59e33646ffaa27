//! policyd answers a client that says its line, beside any number of connections that say nothing.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Daemon(Child);

impl Daemon {
    fn start(scene: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
        command.args(["policyd", "--idle", "20"]).env("XDG_RUNTIME_DIR", scene);
        Self(command.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where it listens: the name tells the layout of classes.
fn socket(scene: &Path) -> io::Result<PathBuf> {
    let entries = fs::read_dir(scene.join("discnice"))?.flatten().map(|entry| entry.path());
    let mut sockets = entries.filter(|path| path.extension().is_some_and(|kind| kind == "sock"));
    sockets.next().ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn connect(scene: &Path) -> UnixStream {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match socket(scene).and_then(UnixStream::connect) {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What it says to a line, and how long that took. One that has not spoken before sixty-four others came is hung up on, and
/// asks again, as `discnice` does.
fn ask(scene: &Path, line: &[u8]) -> (String, Duration) {
    let begun = Instant::now();
    loop {
        let mut stream = connect(scene);
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut reply = String::new();
        let asked = stream.write_all(line);
        let heard = asked.and_then(|()| BufReader::new(stream).read_line(&mut reply));
        if !reply.is_empty() {
            return (reply, begun.elapsed());
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{heard:?}");
    }
}

#[test]
fn an_honest_client_is_answered_beside_a_thousand_silent_ones() {
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let _daemon = Daemon::start(scene.path());
    let (reply, _) = ask(scene.path(), b"watch 7fffffff\n");
    assert_eq!(reply, "no class in block 7fffffff\n");
    // Threads connect and stay silent; each holds as many as a process may have of descriptors here.
    let path = socket(scene.path()).unwrap();
    let script = "import socket, sys, time\n\
                  kept = []\n\
                  for number in range(500):\n\
                  \x20   one = socket.socket(socket.AF_UNIX)\n\
                  \x20   one.settimeout(60)\n\
                  \x20   one.connect(sys.argv[1])\n\
                  \x20   kept.append(one)\n\
                  \x20   if number == 100: print('silent', flush=True)\n\
                  time.sleep(60)";
    let mut silent: Vec<Child> = (0..2)
        .map(|_| {
            let mut python = Command::new("python3");
            let python = python.args(["-c", script]).arg(&path).stdout(Stdio::piped());
            python.spawn().unwrap()
        })
        .collect();
    for one in &mut silent {
        let mut line = String::new();
        BufReader::new(one.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "silent\n");
    }
    let asked: Vec<(String, Duration)> =
        (0..5).map(|_| ask(scene.path(), b"watch 7fffffff\n")).collect();
    let wrong = ask(scene.path(), b"\0\0\0\n");
    for one in &mut silent {
        one.kill().unwrap();
        one.wait().unwrap();
    }
    for (reply, took) in asked {
        assert!(took < Duration::from_millis(500), "{took:?}");
        assert_eq!(reply, "no class in block 7fffffff\n");
    }
    assert_eq!(wrong.0, "say: watch BLOCK\n");
}
