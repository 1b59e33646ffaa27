use std::path::Path;

use discnice_ledger::policy::{Limits, Resource, When};
use discnice_progress::model::Parameter;
use discnice_units::Rate;

use super::*;

fn parse(text: &str) -> anyhow::Result<File> {
    File::parse(text, Path::new("config.toml"))
}

#[test]
fn classes_and_the_default() {
    let text = "strict = true\n[default]\ndisk = \"20M\"\nwhen = \"busy\"\nper-child = true\n\n[class.\"two words\"]\n\
                meta-ops = 1000\nweight = 50\nguest = true\nnet-loopback = true\n";
    let config = parse(text).unwrap();
    assert_eq!((config.strict(), parse("").unwrap().strict()), (Some(true), None));
    let default = config.unnamed().unwrap().over(Limits::UNLIMITED).unwrap();
    assert_eq!(default.rate(Resource::Total), Rate::per_second(20 << 20));
    assert!(default.when() == When::Busy && default.per_child());
    let class = config.class("two words").unwrap().over(Limits::UNLIMITED).unwrap();
    assert_eq!(class.rate(Resource::Metadata), Rate::per_second(1000));
    assert!(class.weight() == 50 && class.guest() && class.loopback());
    assert!(config.class("none").is_none());
    let shared = parse("[class.a]\nfleet = \"redis://h/b\"\n[class.c]\ndisk = \"1M\"\n").unwrap();
    assert_eq!(shared.fleets().collect::<Vec<_>>(), [("a", "redis://h/b")]);
    assert!(shared.fleet("c").is_none() && shared.fleet("a").is_some());
}

#[test]
fn parameters_of_progress() {
    let config = parse("[polite]\nalpha = 0.02\nhung = 60\n").unwrap();
    let said: Vec<_> = config.progress().iter().map(|one| (one.parameter, one.value)).collect();
    assert_eq!(said, [(Parameter::Alpha, 0.02), (Parameter::Hung, 60.0)]);
    assert!(parse("").unwrap().progress().is_empty());
}

#[test]
fn what_is_no_text_is_said_where() {
    let error = File::parse_bytes(b"[default]\n# \xff\n", Path::new("config.toml"));
    assert_eq!(error.unwrap_err().to_string(), "config.toml:2:3: not UTF-8");
}

#[test]
fn errors_say_where() {
    for (text, place, why) in [
        ("[default]\ndisk = \"5Q\"\n", "config.toml:2:8: disk: ", "unknown unit"),
        (
            "[default]\n  dick = \"5M\"\n",
            "config.toml:2:3: no key \"dick\"; ",
            "did you mean disk?",
        ),
        ("[class]\ndisk = \"5M\"\n", "config.toml:2:8: disk: ", "[class.NAME]"),
        (
            "[class.a]\nat-least = \"unlimited\"\n",
            "config.toml:1:1: class a: ",
            "give a rate, or none",
        ),
        ("[class.a]\nnet = \"10%\"\n", "config.toml:1:1: class a: ", "No network is measured"),
        ("\n[classes.a]\n", "config.toml:2:2: ", "did you mean class?"),
        ("[default]\ndisk = 5 M\n", "config.toml:2:", ""),
        ("strict = 1\n", "config.toml:1:10: strict: ", "true or false"),
        ("[default]\nmeta-ops = 0\n", "config.toml:2:12: ", "from 1 on"),
        ("[default]\nwhen = \"idle\"\n", "config.toml:2:8: ", "always or busy"),
        ("[default]\nweight = 0\n", "config.toml:2:10: ", "1 to 10000"),
        ("[polite]\nbeta = 0.3\nalpha = 0.4\n", "config.toml:3:1: ", "polite: alpha must be"),
        ("[polite]\nhung = 0.5\nalpha = 0.1\n", "config.toml:2:1: ", "polite: hung must be"),
        (
            "[polite]\nalpha = 0.1\naverage-over = 1\n",
            "config.toml:3:1: ",
            "polite: average-over must be",
        ),
        ("[polite]\n gamma = 1\n", "config.toml:2:2: ", "polite: no parameter \"gamma\""),
        ("[polite]\nhung = \"long\"\n", "config.toml:2:8: hung: ", "give a number"),
        ("[class.a]\npolicy = \"fast\"\n", "config.toml:2:10: ", "give window, sleep"),
        ("[class.a]\npolicy = []\n", "config.toml:2:10: ", "give window, sleep"),
        ("[class.a]\npolicy = 3\n", "config.toml:2:10: ", "text in quotes"),
        ("[class.a]\npolicy = [\"/bin/a\", \"b\\u0000\"]\n", "config.toml:1:", "zero byte"),
        ("[default]\npolicy = \"/bin/a\"\n", "config.toml:1:", "only a named class"),
        ("[default]\nwindow = \"1h\"\n", "config.toml:1:", "--window 1 h is not possible"),
        ("[class.a]\npolicy = \"sleep\"\nwindow = 5\n", "config.toml:1:", "100 to 4900 ms"),
        ("[class.\"a/b\"]\ndisk = \"5M\"\n", "config.toml:1:8: ", "no class name"),
        ("[default]\nfleet = \"redis://h/a\"\n", "config.toml:1:", "only a named class"),
        ("[default]\nmessage = \"a\"\n", "config.toml:1:", "only a named class"),
        ("locked = [\"class.a\"]\n", "config.toml:1:11: ", "class.a is not set"),
        ("locked = [\"default\"]\n", "config.toml:1:11: ", "default is not set"),
        ("locked = [\"polite\"]\n", "config.toml:1:11: ", "strict, default, rules or class.NAME"),
        ("busy = 5\n", "config.toml:1:8: busy: ", "give a section, [busy]"),
        ("[[rule]]\nmatch = 5\n", "config.toml:2:9: match: ", "give conditions, such as {"),
        ("[[rule]]\nmatch = { exe = 5 }\n", "config.toml:2:", "give a pattern as text in quotes"),
        ("rule = [5]\n", "config.toml:1:9: ", "give a section that begins with [[rule]]"),
        ("[class.a]\nfleet = \"h/a\"\n", "config.toml:1:", "no address of a fleet"),
        ("[class.a]\nfleet = \"redis://h\"\n", "config.toml:1:", "no class behind the host"),
        ("[class.a]\ndisk = \"5M\"\ndisk-read = \"6M\"\n", "config.toml:1:", "lower --disk-read"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with(place), "{text:?}: {error}");
        assert!(error.contains(why) && !error.contains('\n'), "{text:?}: {error}");
    }
}
