//! The site's settings, and login sessions: two ordinary users of a machine with `/etc/discnice/config.toml`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use discnice_tests::process::{Outcome, run};
use discnice_tests::{product, skip};
use tempfile::TempDir;

/// The first of those users, which no system has: each test has two of its own.
const FIRST: u32 = 61_011;
static USED: AtomicU32 = AtomicU32::new(FIRST);
const SITE: &str = "locked = [\"class.session\"]\n\
                    [class.session]\ndisk-write = \"4M\"\nmessage = \"Copy by dtn.example\"\n\
                    [class.free]\ndisk = \"3M\"\nmeta-ops = 700\n";

/// A machine with those settings: namespaces of its own, with another `/etc`.
struct Machine(TempDir, [u32; 2]);

impl Machine {
    fn new(settings: &str) -> Self {
        let folder = product::folder();
        let etc = folder.path().join("etc");
        fs::create_dir_all(etc.join("discnice")).unwrap();
        fs::create_dir_all(etc.join("profile.d")).unwrap();
        fs::write(etc.join("discnice/config.toml"), settings).unwrap();
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/profile.d/discnice.sh");
        fs::copy(script, etc.join("profile.d/discnice.sh")).unwrap();
        let programs = product::program();
        let programs = programs.parent().unwrap().display();
        let profile = format!("PATH={programs}:$PATH\nPS1=\n. /etc/profile.d/discnice.sh\n");
        fs::write(etc.join("profile"), profile).unwrap();
        fs::write(etc.join("bash.bashrc"), "").unwrap();
        let first = USED.fetch_add(2, Ordering::Relaxed);
        let users = [first, first + 1];
        for user in users {
            let home = folder.path().join(user.to_string());
            for part in ["", "run", ".config", ".config/discnice"] {
                fs::create_dir(home.join(part)).unwrap();
                fs::set_permissions(home.join(part), fs::Permissions::from_mode(0o700)).unwrap();
                chown(home.join(part), Some(user), Some(user)).unwrap();
            }
        }
        Self(folder, users)
    }

    fn home(&self, user: u32) -> String {
        format!("{}/{user}", self.0.path().display())
    }

    /// The user's own settings.
    fn set(&self, user: u32, settings: &str) {
        let path = format!("{}/.config/discnice/config.toml", self.home(user));
        fs::write(&path, settings).unwrap();
        chown(path, Some(user), Some(user)).unwrap();
    }

    fn by(&self, user: u32, words: &[&str]) -> Command {
        let etc = self.0.path().join("etc");
        let lay = format!(
            "mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work && cp -a {etc}/. /mnt/upper && \
             mount -t overlay none -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work /etc && exec \"$@\"",
            etc = etc.display()
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &lay, "sh", "setpriv"]);
        command.args(["--reuid", &user.to_string(), "--regid", &user.to_string()]);
        command.args(["--clear-groups", "--"]).args(words);
        let home = self.home(user);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
        command
            .env("HOME", &home)
            .env("XDG_RUNTIME_DIR", format!("{home}/run"))
            .env("SHELL", "/bin/bash");
        command.current_dir(home);
        command
    }

    fn discnice(&self, user: u32, words: &[&str]) -> Outcome {
        let program = product::program();
        run(&mut self.by(user, &[&[program.to_str().unwrap()], words].concat()))
    }

    /// What a login shell at a terminal shows, in which these lines are typed.
    fn log_in(&self, user: u32, typed: &str) -> String {
        let mut command = self.by(user, &["script", "-qec", "bash -l", "/dev/null"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let typed = format!("stty -echo\n{typed}\nexit\n");
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// All that is known of a class.
fn shown(machine: &Machine, user: u32, class: &str) -> String {
    machine.discnice(user, &["class", "show", class, "--json"]).succeeded().text()
}

#[test]
fn each_users_logins_are_one_class_and_are_told() {
    if !product::is_root() {
        skip!("the superuser, who alone makes mounts and acts as other users");
    }
    let machine = Machine::new(SITE);
    let [one, other] = machine.1;
    machine.set(one, "[class.session]\ndisk-write = \"2M\"\n");
    machine.set(other, "[class.session]\ndisk-write = \"1G\"\n");
    for (user, rate, told) in [(one, 2 << 20, "2 MiB/s"), (other, 4 << 20, "4 MiB/s")] {
        let dd = "dd if=/dev/zero of=file bs=64k count=96 conv=fsync 2>&1";
        let typed = format!("{dd}\n__discnice_at=-100\necho in=$DISCNICE_SESSION");
        let screen = machine.log_in(user, &typed);
        assert!(screen.contains("your logins on this machine share"), "{screen}");
        assert!(screen.contains(told) && screen.contains("Copy by dtn.example"), "{screen}");
        assert!(screen.contains("in=session"), "{screen}");
        assert!(screen.contains("your programs have waited"), "{screen}");
        let seconds = screen.split(" copied, ").nth(1).and_then(|rest| rest.split(' ').next());
        let seconds: f64 = seconds.unwrap().parse().unwrap();
        // 6 MiB, of which no more than a little passes at once.
        let least = 0.8 * f64::from(6 << 20) / f64::from(rate);
        assert!(seconds > least, "{user}: {seconds} s, not {least}: {screen}");
        assert!(shown(&machine, user, "session").contains(&rate.to_string()));
    }
    // A session that began before, and now has less work, holds no other user's.
    assert!(shown(&machine, one, "session").contains(&(2 << 20).to_string()));
}

#[test]
fn what_is_locked_is_only_tightened_and_the_rest_is_the_users() {
    if !product::is_root() {
        skip!("the superuser, who alone makes mounts and acts as other users");
    }
    let machine = Machine::new(SITE);
    let [user, _] = machine.1;
    let wide =
        machine.discnice(user, &["class", "set", "session", "--disk-write", "1G"]).succeeded();
    assert!(wide.complaint().contains("/etc/discnice/config.toml permits no more"), "{wide:?}");
    assert!(shown(&machine, user, "session").contains(&(4 << 20).to_string()));
    let job = machine.discnice(user, &["run", "-c", "session", "--disk-write", "9M", "true"]);
    assert!(job.succeeded().complaint().contains("permits no more"));
    machine.set(user, "[class.free]\ndisk = \"9M\"\n");
    machine.discnice(user, &["run", "-c", "free", "true"]).succeeded();
    let free = shown(&machine, user, "free");
    assert!(free.contains(&(9 << 20).to_string()) && free.contains("700"), "{free}");
}

#[test]
fn whatever_is_wrong_the_login_goes_on() {
    if !product::is_root() {
        skip!("the superuser, who alone makes mounts and acts as other users");
    }
    let machine = Machine::new("[class.session]\ndisk = \"5 quick\"\n");
    let [user, other] = machine.1;
    let screen = machine.log_in(user, "echo in=${DISCNICE_SESSION-none}.");
    assert!(screen.contains("in=."), "{screen}");
    let told = screen.matches("the site's settings are not used: /etc/discnice/config.toml:2:8:");
    assert_eq!(told.count(), 1, "{screen}");
    machine.set(other, "no configuration");
    assert!(machine.log_in(other, "echo here").contains("here"));
    let etc = machine.0.path().join("etc/discnice/config.toml");
    fs::write(&etc, SITE).unwrap();
    fs::set_permissions(&etc, fs::Permissions::from_mode(0o666)).unwrap();
    let open = machine.discnice(user, &["run", "-c", "session", "true"]).succeeded();
    assert!(open.complaint().contains("others than its owner may write it"), "{open:?}");
    fs::set_permissions(&etc, fs::Permissions::from_mode(0o644)).unwrap();
    // A command of ssh, by ForceCommand.
    let program = product::program();
    let mut ordered = machine.by(user, &[program.to_str().unwrap(), "enter"]);
    let outcome = run(ordered.env("SSH_ORIGINAL_COMMAND", "echo $DISCNICE_SESSION; exit 3"));
    assert_eq!((outcome.text().trim(), outcome.status), ("session", Some(3)), "{outcome:?}");
}
