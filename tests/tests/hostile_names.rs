//! Names that others chose reach people as text: no subcommand hands a terminal control characters,
//! changes of direction or broken UTF-8 that stand in the name of a class, a program or a file.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use discnice_tests::process::{Outcome, run};
use discnice_tests::{product, skip};
use serde_json::Value;

/// Sets a terminal's title, forges a line, turns the direction, begins a sequence by one character and by one
/// byte, and is no UTF-8.
const HOSTILE: &[u8] = b"\x1b]0;t\x07\r\nfg\xe2\x80\xae\xc2\x9b\x9b\x7f";

/// Whether a terminal takes it for something else than a printed character.
fn is_acted_upon(c: char) -> bool {
    let direction = |c| matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c != '\n' && c.is_control() || direction(c)
}

fn assert_tame(what: &str, bytes: &[u8]) {
    let text = str::from_utf8(bytes);
    let text = text.unwrap_or_else(|error| panic!("{what}: {error}: {}", bytes.escape_ascii()));
    let bad: Vec<char> = text.chars().filter(|c| is_acted_upon(*c)).collect();
    assert!(bad.is_empty(), "{what}: {bad:?} in {}", bytes.escape_ascii());
    let forged = text.lines().any(|line| line.starts_with("fg"));
    assert!(!forged, "{what}: a name begins a line of its own: {}", bytes.escape_ascii());
}

/// Both streams are tame, and the status is this.
fn assert_told(what: &str, outcome: &Outcome, status: i32) {
    assert_eq!(outcome.status, Some(status), "{what}: {outcome:?}");
    assert_tame(what, &outcome.output);
    assert_tame(what, &outcome.errors);
}

fn join(folder: &Path, name: &[u8]) -> PathBuf {
    folder.join(OsStr::from_bytes(name))
}

/// A program of a hostile name that sleeps, in a class that is named after it.
struct Sleeper(Child);

impl Sleeper {
    fn start(folder: &Path) -> Self {
        let program = join(folder, HOSTILE);
        product::copy_program("/bin/sleep", &program);
        let mut run = product::discnice(["run", "--disk", "5M", "--"]);
        run.arg(&program).arg("60").stdin(Stdio::null()).stdout(Stdio::null());
        Self(run.spawn().expect("discnice runs"))
    }

    /// The name of its class, once the program runs.
    fn class(&self) -> String {
        let end = format!("-{}", self.0.id());
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let classes = json(&run_words(&["class", "list", "--json"]).output);
            let ours =
                |class: &&Value| class["name"].as_str().is_some_and(|name| name.ends_with(&end));
            let found = classes.as_array().expect("an array").iter().find(ours).cloned();
            if let Some(class) = found.filter(|class| class["members"][0]["name"].is_string()) {
                return class["name"].as_str().expect("as before").to_owned();
            }
            assert!(Instant::now() < deadline, "no class");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run_words(words: &[&str]) -> Outcome {
    run(&mut product::discnice(words)).succeeded()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()))
}

/// Runs `discnice` with words of which `HOSTILE` may be one.
fn with_hostile(words: &[&OsStr]) -> Outcome {
    // Without folders that may not be searched, for which exec has another answer.
    run(product::discnice(words).env("PATH", "/usr/bin:/bin"))
}

#[test]
fn status_and_its_kin_show_names_of_classes_and_programs() {
    let folder = product::folder();
    let sleeper = Sleeper::start(folder.path());
    // As the kernel has it, what is no UTF-8 replaced.
    let class = sleeper.class();
    assert!(class.contains('\u{1b}'), "{class:?}");
    for words in [&["status"][..], &["class", "list"], &["metrics"]] {
        let told = run_words(words);
        assert_told(&format!("{words:?}"), &told, 0);
        let shown = told.text();
        assert!(shown.contains("0;t"), "{words:?} does not show it: {shown}");
    }
    for words in [&["status", "--json"][..], &["class", "list", "--json"]] {
        let told = run_words(words);
        assert_told(&format!("{words:?}"), &told, 0);
        let all = json(&told.output);
        let classes = all.get("classes").unwrap_or(&all).as_array().expect("an array").clone();
        let ours = classes.iter().find(|one| one["name"] == class.as_str());
        let ours = ours.unwrap_or_else(|| panic!("{words:?} changed the name: {classes:?}"));
        if words[0] == "status" {
            let name = ours["members"][0]["name"].as_str().expect("a name");
            assert!(name.starts_with("\u{1b}]0;t\u{7}\r\nfg"), "{name:?}");
        }
    }
}

#[test]
fn named_classes_may_turn_no_direction() {
    let name = format!("test-{}-\u{202e}fg", std::process::id());
    for (words, status) in [
        (&["class", "set", &name, "--disk", "5M"][..], 0),
        (&["class", "show", &name], 0),
        (&["class", "show", &name, "--json"], 0),
        (&["class", "rm", &name], 0),
        (&["class", "show", &name], 125),
        (&["class", "set", &name], 125),
    ] {
        let told = run(&mut product::discnice(words));
        assert_told(&format!("{words:?}"), &told, status);
    }
}

#[test]
fn arguments_are_echoed_as_text() {
    let hostile = OsStr::from_bytes(HOSTILE);
    let words = |words: &[&str]| -> Vec<OsString> {
        let word =
            |word: &&str| if *word == "@" { hostile.to_owned() } else { OsString::from(word) };
        words.iter().map(word).collect()
    };
    for (line, status) in [
        (&["@"][..], 127),
        (&["run", "--class", "@", "--", "true"], 125),
        (&["run", "--disk", "@", "--", "true"], 125),
        (&["run", "--disk", "5M", "--", "@"], 127),
        (&["run", "--polite", "--metric", "@", "--", "true"], 125),
        (&["run", "--report", "@", "--", "true"], 125),
        (&["run", "--report", "/no/such/@.json", "--", "true"], 125),
        (&["class", "show", "@"], 125),
        (&["class", "rm", "@"], 125),
        (&["attach", "@"], 125),
        (&["detach", "@"], 125),
        (&["doctor", "@"], 125),
        (&["order", "@"], 1),
        (&["order", "--cat", "@"], 1),
        (&["cached", "@"], 1),
        (&["cached", "--json", "@"], 1),
        (&["refresh", "@"], 125),
        (&["refresh", "--order", "@", "/var/tmp"], 125),
        (&["metrics", "--listen", "/no/such/@"], 125),
        (&["admit", "--min", "1M", "--max", "1M", "--", "@"], 127),
        (&["admit", "--min", "@", "--max", "1M", "--", "true"], 125),
    ] {
        let arguments = words(line);
        let told = with_hostile(&arguments.iter().map(OsString::as_os_str).collect::<Vec<_>>());
        assert_told(&format!("{line:?}"), &told, status);
        assert!(!told.errors.is_empty(), "{line:?} says nothing");
        assert_eq!(told.complaint().lines().count(), 1, "{line:?}: {}", told.complaint());
    }
}

#[test]
fn files_are_shown_as_text() {
    let folder = product::folder();
    let dir = join(folder.path(), HOSTILE);
    fs::create_dir(&dir).expect("a folder");
    let file = join(&dir, HOSTILE);
    // A child that another test forks at this moment would have the file open for a while, were it written by this process.
    product::copy_program("/bin/true", &file);
    let own = Command::new("chown").args(["-R", "65534:65534"]).arg(&dir).status();
    assert!(!product::is_root() || own.expect("chown").success());
    let [cached, json_option, refresh, dry] =
        ["cached", "--json", "refresh", "--dry-run"].map(OsStr::new);
    let told = with_hostile(&[cached, file.as_os_str()]);
    assert_told("cached", &told, 0);
    let told = with_hostile(&[cached, json_option, file.as_os_str()]);
    assert_told("cached --json", &told, 0);
    let all = json(&told.output);
    let bytes: Vec<u8> = serde_json::from_value(all[0]["path_bytes"].clone()).expect("bytes");
    assert_eq!(OsString::from_vec(bytes), file.as_os_str(), "{all}");
    assert_told("refresh --dry-run", &with_hostile(&[refresh, dry, dir.as_os_str()]), 0);
    assert_told("refresh", &with_hostile(&[refresh, dir.as_os_str()]), 0);
    fs::remove_file(&file).expect("it is ours");
    let fifo = Command::new("mkfifo").arg(&file).status().expect("mkfifo");
    assert!(fifo.success());
    assert_told("cached of a fifo", &with_hostile(&[cached, file.as_os_str()]), 1);
}

#[test]
fn a_program_is_told_of_as_text() {
    let folder = product::folder();
    let program = join(folder.path(), HOSTILE);
    product::copy_program("/sbin/ldconfig", &program);
    let words = |words: &[&str]| {
        let mut all: Vec<OsString> = words.iter().map(OsString::from).collect();
        all.push(program.clone().into_os_string());
        all.push("--version".into());
        run(&mut product::discnice(all))
    };
    let told = words(&["run", "--disk", "5M", "--mechanism", "preload", "--summary", "--"]);
    assert_tame("a warning", &told.errors);
    assert!(told.complaint().contains("not limited"), "{told:?}");
    let doctor = run(&mut product::discnice([OsStr::new("doctor"), program.as_os_str()]));
    assert_tame("doctor", &doctor.output);
    assert!(doctor.text().contains("statically linked"), "{doctor:?}");
}

#[test]
fn reports_hold_text() {
    let folder = product::folder();
    let program = join(folder.path(), HOSTILE);
    product::copy_program("/bin/true", &program);
    for end in ["html", "svg", "json"] {
        let report = folder.path().join(format!("report.{end}"));
        let mut command = product::discnice(["run", "--disk", "5M", "--report"]);
        command
            .arg(&report)
            .arg("--")
            .arg(&program)
            .arg(OsStr::from_bytes(HOSTILE))
            .arg("<script>'");
        assert_told(end, &run(&mut command), 0);
        let written = fs::read(&report).expect("a report");
        assert_tame(end, &written);
        match end {
            "json" => {
                let command = json(&written)["command"][1].as_str().expect("a word").to_owned();
                assert!(command.starts_with("\u{1b}]0;t\u{7}\r\nfg"), "{command:?}");
            }
            _ => assert!(!String::from_utf8_lossy(&written).contains("<script")),
        }
    }
}

/// What a command prints on a terminal, which turns line ends into `\r\n`.
fn on_a_terminal(command: &str) -> Option<Vec<u8>> {
    let mut script = product::as_user("script");
    script.args(["-qec", command, "/dev/null"]).stdin(Stdio::null());
    let output = script.output().ok()?;
    let text: Vec<u8> = output.stdout;
    Some(text.iter().copied().filter(|byte| *byte != b'\r').collect())
}

#[test]
fn ordered_names_are_exact_on_a_pipe_and_text_on_a_terminal() {
    let folder = product::folder();
    let name = [&HOSTILE[..4], &HOSTILE[8..]].concat();
    assert!(!name.contains(&b'\n') && !name.contains(&b'\r'));
    let file = join(folder.path(), &name);
    fs::write(&file, "x").expect("a file");
    let hostile = join(folder.path(), HOSTILE);
    fs::write(&hostile, "x").expect("a file");
    let gbp = product::program().with_file_name("gbp");
    for (program, words) in [(product::program(), "order"), (gbp, "")] {
        let words =
            |more: &'static str| words.split(' ').chain([more]).filter(|word| !word.is_empty());
        let mut piped = product::as_user(&program);
        let told = run(piped.args(words("")).arg(&file)).succeeded();
        assert_eq!(told.output, [file.as_os_str().as_bytes(), b"\n"].concat(), "{program:?}");
        let mut piped = product::as_user(&program);
        let told = run(piped.args(words("-0")).arg(&hostile)).succeeded();
        assert_eq!(told.output, [hostile.as_os_str().as_bytes(), b"\0"].concat(), "{program:?}");
        let mut piped = product::as_user(&program);
        let told = run(piped.args(words("")).arg(join(folder.path(), b"no\x1b[m\xff\x9b")));
        assert_told("a file that is not there", &told, 1);
        let line = |more: &'static str| {
            let words: Vec<&str> = words(more).collect();
            format!("{} {} {}/*", program.display(), words.join(" "), folder.path().display())
        };
        let Some(shown) = on_a_terminal(&line("")) else { skip!("script(1) is needed") };
        assert_tame("order on a terminal", &shown);
        assert_eq!(shown.split(|byte| *byte == b'\n').count(), 3, "{}", shown.escape_ascii());
        let shown = on_a_terminal(&line("-0")).expect("as before");
        let shown: Vec<u8> = shown.into_iter().filter(|byte| *byte != 0).collect();
        assert_tame("order -0 on a terminal", &shown);
    }
}
