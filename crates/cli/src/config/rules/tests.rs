use std::sync::Arc;

use discnice_ledger::policy::{Resource, When};
use discnice_units::Rate;
use discnice_watcher::daemon::rules::first;
use discnice_watcher::daemon::rules::subject::Subject;

use super::*;
use crate::polite;

const MIB: u64 = 1 << 20;

fn parse(text: &str) -> anyhow::Result<File> {
    File::parse(text, Path::new("config.toml"))
}

fn rules(own: &str, site: &str) -> Vec<Rule> {
    let config = ConfigFiles { own: parse(own).unwrap(), site: Arc::new(parse(site).unwrap()) };
    all(&config, &mut Vec::new()).unwrap()
}

fn named(name: &str) -> Subject {
    Subject::new(&format!("/usr/bin/{name}"), name, "/", name)
}

const OWN: &str = "[class.b]\ndisk = \"7M\"\n\
    [[rule]]\nmatch = { exe = \"one\" }\nclass = \"a\"\nlimits = { disk = \"2M\" }\n\
    [[rule]]\nmatch = { name = \"two\" }\nclass = \"b\"\nlimits = { disk = \"2M\" }\n\
    [[rule]]\nmatch = { name = \"three\" }\nclass = \"c\"\nlimits = { weight = 7 }\n\
    [[rule]]\nmatch = { name = \"four\" }\nclass = \"d\"\n\
    [[rule]]\nmatch = { name = \"free\" }\nexcept = true\n";
const SITE: &str = "[[rule]]\nmatch = { name = \"*\" }\nclass = \"all\"\n";

#[test]
fn a_class_has_its_section_s_limits_else_the_rule_s_else_the_default() {
    let rules = rules(OWN, "");
    let limits = |name: &str| match &first(&rules, &named(name)).unwrap().outcome {
        Outcome::Enter(class, limits) => (class.clone(), **limits),
        other => panic!("{other:?}"),
    };
    let (class, own) = limits("one");
    assert_eq!((class.as_str(), own.when()), ("a", When::Always), "as of `run --disk 2M`");
    assert_eq!(own.rate(Resource::Total), Rate::per_second(2 * MIB));
    let (class, settings) = limits("three");
    assert_eq!((class.as_str(), settings.when()), ("c", When::Busy));
    assert_eq!(settings, polite::limits().with_weight(7));
    assert_eq!(limits("four").1, polite::limits());
    let (class, section) = limits("two");
    assert_eq!((class.as_str(), section.when()), ("b", When::Always));
    assert_eq!(section.rate(Resource::Total), Rate::per_second(7 * MIB));
    assert_eq!(rules[1].place, "config.toml:8");
}

#[test]
fn the_site_s_rules_come_last_unless_they_are_locked() {
    let decides = |rules: &[Rule]| first(rules, &named("free")).unwrap().outcome.clone();
    assert_eq!(decides(&rules(OWN, SITE)), Outcome::LeaveAlone);
    let locked = format!("locked = [\"rules\"]\n{SITE}");
    assert!(matches!(decides(&rules(OWN, &locked)), Outcome::Enter(class, _) if class == "all"));
}

#[test]
fn wrong_rules_are_said_where() {
    for (text, place, why) in [
        ("[[rule]]\nclass = \"a\"\n", "config.toml:1:", "`match` is missing"),
        ("[[rule]]\nmatch = {}\nclass = \"a\"\n", "config.toml:2:9: ", "no condition"),
        ("[[rule]]\nmatch = { user = \"me\" }\n", "config.toml:2:11: ", "no key \"user\""),
        ("[[rule]]\nmatch = { exe = \"[\" }\n", "config.toml:2:17: ", "is no pattern"),
        ("[[rule]]\nmatch = { exe = \"a\" }\n", "config.toml:2:9: ", "no class"),
        ("[[rule]]\nmatch = { exe = \"a\" }\nclass = \"\"\n", "config.toml:3:9: ", "class name"),
        ("[[rule]]\nmatch = { exe = \"a\" }\nclas = \"b\"\n", "config.toml:3:1: ", "clas"),
        (
            "[[rule]]\nmatch = { exe = \"a\" }\nclass = \"b\"\nexcept = true\n",
            "config.toml:2:9: ",
            "leave out one",
        ),
        (
            "[[rule]]\nmatch = { exe = \"a\" }\nclass = \"b\"\nlimits = { net = \"5M\", meta-ops = 9 }\n",
            "config.toml:4:10: ",
            "--meta-ops does not hold for a running process",
        ),
        (
            "[[rule]]\nmatch = { exe = \"a\" }\nclass = \"b\"\nlimits = { disk = \"5Q\" }\n",
            "config.toml:4:19: ",
            "unknown unit",
        ),
        ("include = [\"a/b\"]\n", "config.toml:1:12: ", "a name or an absolute path"),
        ("locked = [\"rules\"]\n", "config.toml:1:11: ", "rules is not set"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with(place), "{text:?}: {error}");
        assert!(error.contains(why) && !error.contains('\n'), "{text:?}: {error}");
    }
    let other = File::parse_rules(b"strict = true\n", Path::new("a.toml")).unwrap_err();
    assert!(other.to_string().starts_with("a.toml:1:1: no key \"strict\""), "{other}");
}

#[test]
fn what_is_included_is_found_by_name_and_by_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "[[rule]]\nmatch = { name = \"x\" }\nclass = \"y\"\n").unwrap();
    let folders = vec![folder.path().join("none"), folder.path().to_owned()];
    let reader = Reader { trust: discnice_paths::read_own, folders };
    let mut files = Vec::new();
    let file = parse(&format!("include = [\"mine\", \"{}\"]", path.display())).unwrap();
    assert_eq!(reader.included(&file, &mut files).unwrap().len(), 2);
    assert_eq!(files.len(), 3, "also one that may be made later");
    let missing = parse("include = [\"other\"]").unwrap();
    let error = reader.included(&missing, &mut files).unwrap_err().to_string();
    assert!(error.contains("none/other.toml or "), "{error}");
}

#[test]
fn each_file_that_is_shipped_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/rules");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let entries = File::parse_rules(&std::fs::read(&path).unwrap(), &path).unwrap();
        let config = ConfigFiles { own: File::default(), site: Arc::default() };
        for entry in &entries {
            entry.rule(&config).unwrap();
        }
        names.push(path.file_stem().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, ["compilers", "indexers", "sync", "thumbnailers", "updaters"]);
}
