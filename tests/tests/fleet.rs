//! Budgets that many machines share, on a real server. Each class here is a machine: only the address is common.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_tests::process::{Outcome, run, send};
use discnice_tests::{product, skip};
use serde_json::Value;

const CAP: u64 = 6 << 20;
const FLOOR: u64 = 200 << 10;
/// Seconds.
const LEASE: u64 = 2;

/// What is killed and waited for when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server, a policyd, and folders of their own.
struct Scene {
    folder: tempfile::TempDir,
    port: u16,
    server: Option<Killed>,
    policyd: Option<Killed>,
    classes: Vec<String>,
}

impl Scene {
    /// `None` where there is no server.
    fn new(name: &str) -> Option<Self> {
        let version = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
        version.ok().filter(std::process::ExitStatus::success)?;
        let folder = product::folder();
        for part in ["run", "config"] {
            let mut made = product::as_user("mkdir");
            assert!(
                made.args(["-m", "700"]).arg(folder.path().join(part)).status().unwrap().success()
            );
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let classes = (1..=3).map(|one| format!("{name}-{}-{one}", std::process::id())).collect();
        let mut scene = Self { folder, port, server: None, policyd: None, classes };
        scene.configure();
        scene.start_server();
        scene.start_policyd();
        Some(scene)
    }

    fn address(&self) -> String {
        format!("redis://127.0.0.1:{}/backup", self.port)
    }

    fn configure(&self) {
        let mut text = String::new();
        for class in &self.classes {
            writeln!(text, "[class.{class}]\nfleet = \"{}\"", self.address()).unwrap();
        }
        let place = self.folder.path().join("config/discnice");
        fs::create_dir_all(&place).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(place.join("config.toml"), text).unwrap();
    }

    /// A command of the product's, here.
    fn command<A: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = A>) -> Command {
        let mut command = product::discnice(words);
        command.env("XDG_RUNTIME_DIR", self.folder.path().join("run"));
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        command
    }

    fn start_server(&mut self) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "redis-server", "--save", "", "--port"]);
        command.arg(self.port.to_string()).arg("--dir").arg(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(Killed(command.spawn().unwrap()));
        let (cap, floor, lease) = (CAP.to_string(), FLOOR.to_string(), format!("{LEASE}s"));
        let set = [
            "fleet",
            "set",
            &self.address(),
            "--cap",
            &cap,
            "--floor",
            &floor,
            "--nodes",
            "3",
            "--lease",
        ];
        self.until("the server answers", || {
            let mut set = self.command(set);
            run(set.arg(&lease)).status == Some(0)
        });
    }

    fn start_policyd(&mut self) {
        let mut command = self.command(["policyd", "--idle", "60"]);
        self.policyd = Some(Killed(command.stdin(Stdio::null()).spawn().unwrap()));
        // Else the first command starts another one.
        let is_socket = |name: &OsStr| name.to_string_lossy().ends_with(".sock");
        let place = self.folder.path().join("run/discnice");
        self.until("policyd listens", || {
            let mut names = fs::read_dir(&place).into_iter().flatten().flatten();
            names.any(|entry| is_socket(&entry.file_name()))
        });
    }

    /// The process that watches: the daemon's only child.
    fn worker(&self) -> Option<i32> {
        let id = self.policyd.as_ref()?.0.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Writes without end in one of the classes.
    fn writer(&self, class: &str) -> Killed {
        let file = format!("of={}", self.folder.path().join(class).display());
        let words = [
            "run",
            "--class",
            class,
            "--",
            "dd",
            "if=/dev/zero",
            "bs=64k",
            "oflag=direct",
            "count=16000",
        ];
        let mut command = self.command(words);
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Killed(command.spawn().unwrap())
    }

    fn show(&self, class: &str) -> Value {
        let shown = run(&mut self.command(["class", "show", class, "--json"]));
        serde_json::from_slice::<Value>(&shown.output).map_or(Value::Null, |all| all[0].clone())
    }

    fn allowed(&self, class: &str) -> u64 {
        self.show(class)["fleet"]["allowed"].as_u64().unwrap_or(0)
    }

    fn written(&self) -> Vec<u64> {
        self.classes.iter().map(|class| self.show(class)["written"].as_u64().unwrap_or(0)).collect()
    }

    /// Bytes a second of each class in the next seconds.
    fn rates(&self, seconds: u64) -> Vec<f64> {
        let (begun, before) = (Instant::now(), self.written());
        std::thread::sleep(Duration::from_secs(seconds));
        let after = self.written();
        let time = begun.elapsed().as_secs_f64();
        before.iter().zip(after).map(|(before, after)| (after - before) as f64 / time).collect()
    }

    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            let classes: Vec<Value> =
                self.classes.iter().map(|one| self.show(one)["fleet"].clone()).collect();
            assert!(Instant::now() < deadline, "{what}: never; {classes:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn until_each_has(&self, what: &str, least: u64, most: u64) {
        self.until(what, || {
            self.classes.iter().all(|class| (least..=most).contains(&self.allowed(class)))
        });
    }

    fn status(&self, arguments: &[&str]) -> Outcome {
        let mut status = self.command(["fleet", "status"]);
        run(status.args(arguments))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for class in &self.classes {
            let _ = run(&mut self.command(["class", "rm", "--force", class]));
        }
        if let Some(worker) = self.worker() {
            send(worker, 18);
            send(worker, 15);
        }
    }
}

/// Jain's index.
fn fairness(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    sum * sum / (values.len() as f64 * values.iter().map(|one| one * one).sum::<f64>())
}

#[test]
fn machines_share_a_budget_through_failures() {
    let Some(mut scene) = Scene::new("fleet") else { skip!("no redis-server") };
    let writers: Vec<Killed> = scene.classes.iter().map(|class| scene.writer(class)).collect();
    let third = CAP / 3;
    scene.until_each_has("equal parts", third * 95 / 100, third);
    let rates = scene.rates(5);
    let sum: f64 = rates.iter().sum();
    assert!(sum <= CAP as f64 * 1.02, "{rates:?}");
    assert!(sum >= CAP as f64 * 0.85 && fairness(&rates) >= 0.98, "{rates:?}");

    // kill -9 of the server: nothing for a lease, then the floor.
    scene.server = None;
    scene.until_each_has("the floor, by policyd", FLOOR, FLOOR);
    let status = scene.status(&[]);
    assert_eq!(status.status, Some(125), "{status:?}");
    assert!(status.text().contains("cannot reach its server"), "{status:?}");
    let slow: f64 = scene.rates(3).iter().sum();
    assert!(slow <= 3.0 * FLOOR as f64 * 1.5, "{slow}");

    // It comes back with nothing.
    scene.start_server();
    scene.until_each_has("equal parts again", third * 95 / 100, third);

    // The process that holds the leases is stopped: the members themselves fall to the floor.
    let worker = scene.worker().expect("a process that watches");
    send(worker, 19);
    std::thread::sleep(Duration::from_millis(LEASE * 1000 + 500));
    let slow: f64 = scene.rates(3).iter().sum();
    assert!(slow <= 3.0 * FLOOR as f64 * 1.5, "{slow}");
    send(worker, 18);
    scene.until_each_has("equal parts after a stop", third * 95 / 100, third);

    // It is killed: the next one goes on with the leases.
    send(worker, 9);
    scene.until("another process watches", || scene.worker().is_some_and(|next| next != worker));
    scene.until_each_has("equal parts after a kill", third * 95 / 100, third);

    // All of policyd is killed, and another one begins with what it left.
    scene.policyd = None;
    scene.start_policyd();
    std::thread::sleep(Duration::from_millis(LEASE * 1000 + 500));
    scene.until_each_has("equal parts with another policyd", third * 95 / 100, third);

    // Two end, and one gets what they had.
    let mut writers = writers;
    writers.truncate(1);
    let all = CAP - 2 * FLOOR;
    scene.until("all for one", || scene.allowed(&scene.classes[0]) >= all * 9 / 10);
    scene.until("the others have left", || {
        let status = scene.status(&["--json", &scene.classes[0]]).succeeded();
        let told: Value = serde_json::from_slice(&status.output).unwrap();
        let nodes = told[0]["nodes"].as_array().unwrap();
        nodes.len() == 1 && nodes[0]["cut_off"].as_bool() == Some(false)
    });
}

/// One line on standard error or output, and status 125.
fn refused(outcome: &Outcome, names: &str) {
    let complaint = outcome.complaint();
    assert_eq!(outcome.status, Some(125), "{outcome:?}");
    assert_eq!(complaint.lines().count(), 1, "{outcome:?}");
    assert!(complaint.starts_with("discnice: ") && complaint.contains(names), "{complaint}");
}

#[test]
fn wrong_settings_are_refused_in_one_line() {
    let Some(scene) = Scene::new("settings") else { skip!("no redis-server") };
    let address = scene.address();
    let set = |words: &[&str]| run(scene.command(["fleet", "set"]).args(words));
    for (words, names) in [
        (&["backup", "--cap", "1M"][..], "no class backup"),
        (&["http://h/a", "--cap", "1M"], "redis://"),
        (&["redis://127.0.0.1:1/a", "--cap", "1M"], "no answer"),
        (&[&address, "--cap", "0"], "--cap"),
        (&[&address, "--cap", "100B"], "cap must be"),
        (&[&address, "--cap", "1M", "--floor", "100K", "--nodes", "50"], "leave nothing"),
        (&[&address, "--floor", "1B"], "below"),
        (&[&address, "--nodes", "0"], "number of nodes"),
        (&[&address, "--lease", "1ms"], "from 1 second"),
        (&[&format!("{address}-other")], "needs a cap"),
    ] {
        refused(&set(words), names);
    }
    let told = scene.status(&[&address, "--json"]).succeeded();
    let told: Value = serde_json::from_slice(&told.output).unwrap();
    assert_eq!(told[0]["cap"].as_u64(), Some(CAP), "nothing was changed");
    assert_eq!(told[0]["nodes_max"].as_u64(), Some(3));

    // What is not given stays.
    set(&[&address, "--cap", "9M"]).succeeded();
    let told = scene.status(&[&address]).succeeded().text();
    assert!(
        told.contains("of 9 MiB/s")
            && told.contains("of 3 machines")
            && told.contains("floor 200 KiB/s"),
        "{told}"
    );
}

#[test]
fn a_job_starts_without_its_server_and_says_so() {
    let Some(mut scene) = Scene::new("alone") else { skip!("no redis-server") };
    scene.server = None;
    let class = scene.classes[0].clone();
    let ran = run(&mut scene.command(["run", "--class", &class, "--", "echo", "ran"])).succeeded();
    assert_eq!(ran.text(), "ran\n");
    let complaint = ran.complaint();
    let line = complaint.lines().find(|line| line.contains("cannot reach its server"));
    assert!(line.is_some_and(|line| line.contains("4 KiB/s")), "{complaint}");
    assert_eq!(scene.allowed(&class), 4096);

    // Without a fleet the budget is this machine's alone.
    let path: PathBuf = scene.folder.path().join("config/discnice/config.toml");
    fs::write(&path, format!("[class.{class}]\ndisk = \"5M\"\n")).unwrap();
    assert!(scene.status(&[]).succeeded().text().contains("this machine's alone"));
    run(&mut scene.command(["run", "--class", &class, "--", "true"])).succeeded();
    assert_eq!(scene.show(&class)["fleet"], Value::Null);
}

#[test]
fn up_starts_a_server_that_ends_with_it() {
    let Some(scene) = Scene::new("up") else { skip!("no redis-server") };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let output = scene.folder.path().join("up");
    let mut up = scene.command(["fleet", "up", "--cap", "20M", "--port", &port]);
    up.stdin(Stdio::null()).stdout(fs::File::create(&output).unwrap());
    let mut up = Killed(up.spawn().unwrap());
    let told = || fs::read_to_string(&output).unwrap();
    scene.until("it tells how to change it", || told().contains("To change it"));
    let text = told();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("fleet = "))
        .expect("a line for config.toml");
    let address = line.trim_matches('"');
    let status = scene.status(&[address]).succeeded().text();
    assert!(status.contains("of 20 MiB/s"), "{status}");
    let refused = run(&mut scene.command(["fleet", "set", address, "--cap", "1G"]));
    assert!(refused.complaint().contains("may not do that"), "{refused:?}");
    let admin = text.lines().find_map(|line| line.split("fleet set ").nth(1)?.split(' ').next());
    run(&mut scene.command(["fleet", "set", admin.unwrap(), "--cap", "1G"])).succeeded();

    let password = address.split("password-file=").nth(1).unwrap().to_owned();
    send(up.0.id() as i32, 15);
    assert!(up.0.wait().unwrap().success());
    assert!(!Path::new(&password).exists(), "nothing is left");
    assert_eq!(scene.status(&[address]).status, Some(125));
}
