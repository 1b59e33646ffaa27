//! The commands of the book's recipes are run as they are written, by the real programs.
//!
//! A recipe is a block that begins with three backquotes and `sh`. One that cannot be run here has a comment before it
//! with the reason: `<!-- not run: needs an account -->`. The blocks of a page run one after the other in one home.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use discnice_tests::process::{Outcome, run};
use discnice_tests::{product, skip};
use serde_json::Value;

/// Begins a recipe, and ends one.
const BEGIN: &str = "```sh";
const END: &str = "```";
/// Begins a comment that says why the next recipe is not run.
const NOT_RUN: &str = "<!-- not run: ";

/// What the recipes find in their home.
const HOME: &str = r#"
mkdir -p documents photos backup restored scratch/old src/project/parts
for file in 1 2 3 4 5 6 7 8; do
    head -c 200000 /dev/urandom > documents/$file.txt
    head -c 400000 /dev/urandom > photos/$file.jpg
    echo "int part_$file(void) { return $file; }" > src/project/parts/part$file.c
    echo old > scratch/old/$file
done
cd src/project
echo 'int main(void) { return 0; }' > main.c
printf 'objects = $(patsubst %%.c,%%.o,main.c $(wildcard parts/*.c))\nall: $(objects)\n\tcc -o program $(objects)\n' > Makefile
printf 'clean:\n\trm -f program $(objects)\ntest: all\n\t./program\n' >> Makefile
git init -q
git add .
git -c user.name=A -c user.email=a@example.com commit -q -m first
"#;

/// A recipe, and the line of its first command.
#[derive(Debug, PartialEq, Eq)]
struct Recipe {
    line: usize,
    commands: String,
}

/// The recipes of a page that are to be run.
fn recipes(page: &str) -> Vec<Recipe> {
    let mut found = Vec::new();
    let mut lines = page.lines().enumerate();
    let mut is_left_out = false;
    while let Some((number, line)) = lines.next() {
        if line == BEGIN {
            let block = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != END);
            let commands = block.collect::<Vec<_>>().join("\n");
            if !is_left_out {
                found.push(Recipe { line: number + 2, commands });
            }
        }
        if !line.trim().is_empty() {
            is_left_out = is_reason(line);
        }
    }
    found
}

/// True of a comment that gives a reason not to run the next recipe.
fn is_reason(line: &str) -> bool {
    let reason = line.strip_prefix(NOT_RUN).and_then(|rest| rest.strip_suffix("-->"));
    reason.is_some_and(|reason| !reason.trim().is_empty())
}

fn book() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// The home of one page's recipes.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn prepare() -> Self {
        let home = Self { folder: product::folder() };
        run(home.shell("mkdir -m 700 home runtime").current_dir(home.folder.path())).succeeded();
        run(&mut home.shell(HOME)).succeeded();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A shell that stops at the first command that fails, with `discnice` where it finds programs.
    fn shell(&self, commands: &str) -> Command {
        let mut path = OsString::from(product::program().parent().expect("a folder"));
        path.push(":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        let mut shell = product::as_user("sh");
        shell.args(["-euc", commands]).env("PATH", path).env("HOME", self.path("home"));
        // Classes of one page have names that another page may use.
        shell.env("XDG_RUNTIME_DIR", self.path("runtime")).env_remove("XDG_CONFIG_HOME");
        if self.path("home").exists() {
            shell.current_dir(self.path("home"));
        }
        shell
    }

    /// Bytes that were charged to all classes together.
    fn charged(&self) -> u64 {
        let status = run(&mut self.shell("discnice status --json")).succeeded();
        let status: Value = serde_json::from_slice(&status.output).expect("JSON");
        let classes = status["classes"].as_array().expect("classes");
        let of = |class: &Value, field: &str| class[field].as_u64().unwrap_or_default();
        classes.iter().map(|class| of(class, "read") + of(class, "written")).sum()
    }
}

/// Checks that a recipe did what it is for.
fn check(page: &str, recipe: &Recipe, outcome: &Outcome) {
    let place = format!("docs/{page}:{}\n{}\n{outcome:?}", recipe.line, recipe.commands);
    assert_eq!(outcome.status, Some(0), "{place}");
    assert!(!outcome.complaint().to_lowercase().contains("not limited"), "{place}");
}

/// Runs all recipes of a page, which need these programs.
fn run_page(page: &str, programs: &[&str]) {
    let has = |program: &str| {
        run(product::as_user("sh").args(["-c", &format!("command -v {program}")])).status == Some(0)
    };
    if let Some(missing) = programs.iter().find(|program| !has(program)) {
        skip!("no {missing}");
    }
    let text = fs::read_to_string(book().join(page)).expect("the page");
    let home = Home::prepare();
    let found = recipes(&text);
    assert!(!found.is_empty(), "{page} has no recipe");
    for recipe in &found {
        check(page, recipe, &run(&mut home.shell(&recipe.commands)));
    }
    assert!(home.charged() > 0, "{page}: nothing was charged to any class");
}

macro_rules! pages {
    ($($test:ident: $page:literal, $programs:expr;)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(
            #[test]
            fn $test() {
                run_page($page, &$programs);
            }
        )*
    };
}

pages! {
    the_quick_start: "quick-start.md", ["rsync", "tar", "gzip", "git"];
    backups_and_copies: "recipes/backup.md", ["rsync", "tar", "git", "restic", "borg", "rclone", "sqlite3"];
    jobs_on_a_schedule: "recipes/schedule.md", ["rsync", "tar", "git"];
    builds: "recipes/build.md", ["make", "gcc", "git"];
    coding_agents: "recipes/agents.md", ["make", "gcc", "git"];
    servers_of_media: "recipes/nas.md", ["rsync", "git"];
    programs_of_the_desktop: "recipes/desktop.md", ["grep"];
    login_nodes: "recipes/login-nodes.md", ["rsync", "tar", "find", "git"];
}

#[test]
fn every_page_of_recipes_is_run() {
    for entry in fs::read_dir(book().join("recipes")).expect("a folder").flatten() {
        let name = format!("recipes/{}", entry.file_name().to_string_lossy());
        let text = fs::read_to_string(entry.path()).expect("a page");
        assert!(recipes(&text).is_empty() || PAGES.contains(&name.as_str()), "{name} is not run");
    }
}

#[test]
fn recipes_are_found_and_left_out_with_a_reason() {
    let page = "# A\n```sh\na\nb\n```\n```text\nc\n```\n\n<!-- not run: needs d -->\n```sh\nd\n```\n\n```sh\ne\n```\n";
    let recipe = |line, commands: &str| Recipe { line, commands: commands.into() };
    assert_eq!(recipes(page), [recipe(3, "a\nb"), recipe(16, "e")]);
    assert_eq!(recipes("<!-- not run:  -->\n```sh\na\n```"), [recipe(3, "a")]);
    assert_eq!(recipes("<!-- not run: a -->\n\ntext\n```sh\nb\n```"), [recipe(5, "b")]);
}
