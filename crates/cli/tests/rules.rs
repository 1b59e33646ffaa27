//! Rules: programs that no command of ours started enter classes.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use discnice_requirements::skip;

/// Longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A user's home and private directory, with what was started there.
struct Scene {
    folder: tempfile::TempDir,
    started: Vec<Child>,
    /// Classes that are made here.
    classes: &'static [&'static str],
}

/// A class of this test's own, whatever else this user runs.
fn own(name: &str) -> String {
    format!("rules-{}-{name}", std::process::id())
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::create_dir_all(folder.path().join("config/discnice")).unwrap();
        Self { folder, started: Vec::new(), classes: &[] }
    }

    fn settings(&self) -> PathBuf {
        self.folder.path().join("config/discnice/config.toml")
    }

    fn set(&self, settings: &str) {
        let new = self.folder.path().join("new.toml");
        fs::write(&new, settings).unwrap();
        fs::rename(new, self.settings()).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_discnice"));
        command.args(words).env("XDG_RUNTIME_DIR", self.folder.path());
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        command.stdin(Stdio::null());
        command
    }

    fn said(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn daemon(&mut self, idle: &str) {
        let mut command = self.command(&["policyd", "--idle", idle]);
        self.started.push(command.stderr(Stdio::null()).spawn().unwrap());
    }

    /// Starts a program of this name that sleeps.
    fn start(&mut self, name: &str) -> u32 {
        self.start_as(name, None)
    }

    fn start_as(&mut self, name: &str, user: Option<u32>) -> u32 {
        self.start_program(name, "/bin/sleep", &["100"], user)
    }

    /// Starts a copy of a program under this name.
    fn start_program(
        &mut self,
        name: &str,
        program: &str,
        words: &[&str],
        user: Option<u32>,
    ) -> u32 {
        let path = self.folder.path().join(name);
        if !path.exists() {
            // By a process of its own: children that other tests fork must not have it open for writing (`ETXTBSY`).
            let copied = Command::new("cp").arg(program).arg(&path).status();
            assert!(copied.unwrap().success());
        }
        let mut command = Command::new(path);
        user.map(|user| command.uid(user).gid(user));
        self.started.push(command.args(words).spawn().unwrap());
        self.started.last().unwrap().id()
    }

    fn members(&self, class: &str) -> Vec<u64> {
        let shown = self.said(&["class", "show", &own(class), "--json"]);
        let json: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        let members = json[0]["members"].as_array().cloned().unwrap_or_default();
        members.iter().filter_map(|one| one["process"].as_u64()).collect()
    }

    fn await_member(&self, class: &str, id: u32) {
        let deadline = Instant::now() + PATIENCE;
        while !self.members(class).contains(&u64::from(id)) {
            assert!(Instant::now() < deadline, "{id} in {class}: {:?}", self.members(class));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in &mut self.started {
            let _ = child.kill();
            let _ = child.wait();
        }
        for class in self.classes {
            let _ = self.said(&["class", "rm", "--force", &own(class)]);
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_a_rule_names_enters_its_class_and_nothing_else_does() {
    let mut scene = Scene::new();
    scene.classes = &["hits", "own", "late"];
    scene.daemon("20s");
    let (late, attached, before) = (scene.start("late"), scene.start("hit1"), scene.start("hit2"));
    let class = own("own");
    let words = ["attach", "--class", &class, "--disk", "9M", "--background"];
    assert!(scene.said(&[&words[..], &[&attached.to_string()]].concat()).status.success());
    let rules = format!(
        "[[rule]]\nmatch = {{ exe = \"hit3\", cmdline = \"* 100\" }}\nexcept = true\n\
         [[rule]]\nmatch = {{ name = \"hit*\" }}\nclass = {:?}\nlimits = {{ disk = \"3M\" }}\n",
        own("hits")
    );
    scene.set(&rules);
    scene.await_member("hits", before);
    let (left, other) = (scene.start("hit3"), scene.start("miss"));
    let begun = Instant::now();
    let after = scene.start("hit4");
    scene.await_member("hits", after);
    // Half a second as a rule; a second is what is promised, on a machine that is not loaded.
    assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
    let mut expected = vec![u64::from(before), u64::from(after)];
    let mut members = scene.members("hits");
    members.sort_unstable();
    expected.sort_unstable();
    assert_eq!(members, expected, "not {attached}, which has a class, nor {left} nor {other}");
    assert_eq!(scene.members("own"), [u64::from(attached)]);
    let shown = text(&scene.said(&["class", "show", &own("hits"), "--json"]));
    assert!(shown.contains("\"limit_total\": 3145728"), "{shown}");
    // What the user has detached stays so, whatever is read anew.
    assert!(scene.said(&["detach", &before.to_string()]).status.success());
    scene.set(&format!(
        "{rules}[[rule]]\nmatch = {{ exe = \"late\" }}\nclass = {:?}\n",
        own("late")
    ));
    scene.await_member("late", late);
    assert_eq!(scene.members("hits"), [u64::from(after)]);
}

#[test]
fn rules_are_followed_in_a_home_on_a_file_system_that_may_hang() {
    let mut scene = Scene::new();
    scene.classes = &["far", "later"];
    // What lies behind a link of /proc may lie anywhere.
    let home = format!("/proc/self/root{}/config", scene.folder.path().display());
    let mut daemon = scene.command(&["policyd", "--idle", "20s"]);
    daemon.env("XDG_CONFIG_HOME", home);
    scene.started.push(daemon.stderr(Stdio::null()).spawn().unwrap());
    let rule =
        |name: &str| format!("[[rule]]\nmatch = {{ name = {name:?} }}\nclass = {:?}\n", own(name));
    let (far, later) = (scene.start("far"), scene.start("later"));
    scene.set(&rule("far"));
    scene.await_member("far", far);
    scene.set(&(rule("far") + &rule("later")));
    scene.await_member("later", later);
}

#[test]
fn a_rule_limits_the_network_traffic_of_its_class() {
    const LIMIT: u64 = 2 << 20;
    let mut scene = Scene::new();
    scene.classes = &["net"];
    scene.set(&format!(
        "[[rule]]\nmatch = {{ name = \"uploader\" }}\nclass = {:?}\nlimits = {{ net = \"2M\", net-loopback = true }}\n",
        own("net")
    ));
    scene.daemon("20s");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let uploads = "exec 3<> /dev/tcp/127.0.0.1/$0; while printf '%65536s'; do :; done >&3";
    let port = listener.local_addr().unwrap().port().to_string();
    let id = scene.start_program("uploader", "/bin/bash", &["-c", uploads, &port], None);
    let (stream, _) = listener.accept().unwrap();
    scene.await_member("net", id);
    let moved = |for_this_long: Duration| {
        let (deadline, mut piece, mut moved) = (Instant::now() + for_this_long, [0; 65536], 0);
        while Instant::now() < deadline {
            moved += (&stream).read(&mut piece).unwrap() as u64;
            // 100 MB/s at most: loopback at full speed leaves the daemon no processor.
            std::thread::sleep(Duration::from_micros(500));
        }
        moved
    };
    // What has passed before it is held is paid for first.
    moved(Duration::from_secs(2));
    let seconds = 3;
    let moved = moved(Duration::from_secs(seconds));
    assert!((LIMIT / 2..LIMIT * 2).contains(&(moved / seconds)), "{moved} bytes in {seconds} s");
}

#[test]
fn a_rule_reaches_no_process_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        skip!("the superuser, who alone starts processes of other users");
    }
    let mut scene = Scene::new();
    scene.classes = &["reach"];
    scene.set(&format!("[[rule]]\nmatch = {{ name = \"reach*\" }}\nclass = {:?}\n", own("reach")));
    fs::set_permissions(scene.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let theirs = scene.start_as("reach1", Some(61_077));
    let ours = scene.start("reach2");
    let id = theirs.to_string();
    let told = text(&scene.said(&["rules", "test", &id]));
    assert!(told.contains("but not now: it is another user's"), "{told}");
    scene.daemon("20s");
    scene.await_member("reach", ours);
    // Those before it, in the order in which they are looked at: the first of all comes last.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(scene.members("reach"), [u64::from(ours)], "not {theirs}");
}

#[test]
fn policyd_stays_as_long_as_there_are_rules() {
    let mut scene = Scene::new();
    scene.set("[[rule]]\nmatch = { exe = \"nothing-of-this-name\" }\nclass = \"hits\"\n");
    scene.daemon("100ms");
    let follows = || text(&scene.said(&["rules"])).contains("policyd follows them");
    let deadline = Instant::now() + PATIENCE;
    while !follows() {
        assert!(Instant::now() < deadline, "{:?}", scene.said(&["rules"]));
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    assert!(follows(), "five times what it would wait for without rules");
    fs::remove_file(scene.settings()).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while scene.started[0].try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it goes on without rules");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The last line of what is said.
fn verdict(scene: &Scene, words: &[&str]) -> (Option<i32>, String) {
    let said = scene.said(&[&["rules", "test"], words].concat());
    let lines = text(&said);
    (said.status.code(), lines.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn a_test_says_which_rule_decides_and_why_the_others_do_not() {
    let mut scene = Scene::new();
    let id = scene.start("hit").to_string();
    scene.set(
        "[[rule]]\nmatch = { name = \"other\" }\nclass = \"late\"\n\
         [[rule]]\nmatch = { exe = \"hit\" }\nclass = \"hits\"\n\
         [[rule]]\nmatch = { cmdline = \"* 100\" }\nclass = \"late\"\n",
    );
    let place = format!("{}:5", scene.settings().display());
    let decides = (Some(0), format!("class hits, by {place}"));
    assert_eq!(verdict(&scene, &[&id]), decides);
    let path = scene.folder.path().join("hit");
    assert_eq!(verdict(&scene, &[path.to_str().unwrap(), "100"]), decides);
    assert_eq!(verdict(&scene, &["/bin/sleep", "7"]), (Some(1), "no rule matches".into()));
    assert_eq!(verdict(&scene, &["/bin/sleep", "100"]).0, Some(0), "with its arguments");
    let all = text(&scene.said(&["rules", "test", &id]));
    assert!(all.contains("-> late: no: its name is not other"), "{all}");
    assert!(all.contains("-> late: yes, but an earlier one decides"), "{all}");
    let json = scene.said(&["rules", "test", "--json", &id]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["decides"]["class"], "hits");
    assert_eq!(json["rules"][0]["conditions"][0]["holds"], false);
    assert_eq!(verdict(&scene, &["2147483647"]).0, Some(125));
}

#[test]
fn wrong_rules_are_refused_in_one_line() {
    let scene = Scene::new();
    for (settings, why) in [
        ("[[rule]]\nmatch = { exe = \"[\" }\nclass = \"a\"\n", ":2:17: exe: \"[\" is no pattern"),
        ("[[rule]]\nmatch = { exe = \"a\" }\n", "rule: no class; add class = \"NAME\""),
        (
            "[[rule]]\nmatch = { user = \"a\" }\nclass = \"a\"\n",
            "no key \"user\"; there are exe, name, cgroup, cmdline",
        ),
        ("include = [\"nothing\"]\n", "include: there is no "),
        (
            "[rule]\nmatch = { exe = \"a\" }\n",
            ":1:1: give a list, such as [\"a\", \"b\"]; a rule begins with [[rule]]",
        ),
    ] {
        scene.set(settings);
        let refused = scene.said(&["rules"]);
        let line = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((refused.status.code(), line.lines().count()), (Some(125), 1), "{line}");
        assert!(line.starts_with("discnice: ") && line.contains(why), "{settings}: {line}");
    }
    fs::remove_file(scene.settings()).unwrap();
    let listed = scene.said(&["rules"]);
    assert!(listed.status.success() && text(&listed).starts_with("no rules;"), "{listed:?}");
}
