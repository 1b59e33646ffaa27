use std::path::Path;

use discnice_ledger::policy::{Resource, When};
use discnice_units::{Bytes, Rate};

use super::*;
use crate::presets;

const SITE: &str = "strict = true\nlocked = [\"class.held\", \"class.each\", \"default\", \"strict\"]\n\
    [default]\ndisk = \"20M\"\nguest = true\n\
    [class.held]\ndisk = \"10M\"\ndisk-total = \"5G\"\nmeta-ops = 100\nwhen = \"always\"\nmessage = \"slowly\"\nfleet = \"redis://h/a\"\n\
    [class.each]\ndisk = \"10M\"\nwhen = \"busy\"\nper-child = true\n\
    [class.free]\ndisk = \"10M\"\nmeta-ops = 100\nfleet = \"redis://h/b\"\n";

fn config(own: &str) -> ConfigFiles {
    let parse = |text| File::parse(text, Path::new("config.toml")).unwrap();
    ConfigFiles { own: parse(own), site: Arc::new(parse(SITE)) }
}

#[test]
fn presets_are_ours_or_the_user_s() {
    let config = config("[preset.scan]\nmeta-ops = 7\n[preset.mine]\ndisk = \"9M\"\n");
    let limits = |name| presets::limits(&config, name);
    let seven = Rate::per_second(7);
    assert_eq!(limits("scan").unwrap().rate(Resource::Metadata), seven, "instead of ours");
    let mine = limits("mine").unwrap();
    assert_eq!(mine.rate(Resource::Total), Rate::per_second(9 * MIB));
    assert_eq!(mine.when(), When::Busy, "over the polite default");
    let why = limits("bakup").unwrap_err().to_string();
    assert!(
        why.contains("did you mean backup? there are agent, backup,") && why.contains("mine"),
        "{why}"
    );
    let wrong = File::parse("[preset.a]\nfleet = \"redis://h/a\"\n", Path::new("c"));
    assert!(wrong.unwrap_err().to_string().starts_with("c:1:9: preset a: only limits"));
}

fn rates(limits: Limits) -> (Rate, Rate, Rate) {
    (limits.rate(Resource::Total), limits.rate(Resource::Read), limits.rate(Resource::Metadata))
}

const MIB: u64 = 1 << 20;

#[test]
fn users_change_what_is_not_locked_key_by_key() {
    let own = "[class.free]\ndisk-read = \"30M\"\nmeta-ops = 500\nfleet = \"redis://h/c\"\n[class.mine]\ndisk = \"1G\"\n";
    let config = config(own);
    let free = config.class("free").unwrap().unwrap();
    let ten = Rate::per_second(10 * MIB);
    assert_eq!(rates(free), (ten, ten, Rate::per_second(500)), "no part above the whole");
    assert_eq!(config.fleet("free"), Some("redis://h/c"));
    assert_eq!(config.message("held"), Some("slowly"));
    let all: Vec<_> = config.fleets().collect();
    assert_eq!(all, [("free", "redis://h/c"), ("held", "redis://h/a")]);
    assert_eq!(config.class("none").unwrap(), None);
}

#[test]
fn users_only_tighten_what_is_locked() {
    let loose = "strict = false\n[class.held]\ndisk = \"1G\"\nmeta-ops = 50\nwhen = \"busy\"\nfleet = \"redis://h/mine\"\n";
    let config = config(loose);
    assert!(config.strict());
    let held = config.class("held").unwrap().unwrap();
    assert_eq!(held.rate(Resource::Total), Rate::per_second(10 * MIB));
    assert_eq!(held.rate(Resource::Metadata), Rate::per_second(50));
    assert_eq!(held.when(), When::Always);
    assert_eq!(config.fleet("held"), Some("redis://h/a"));
    let gib = |many: u64| Some(Bytes::new(many << 30));
    let total =
        |many| bound(&config.site, "held", Limits::UNLIMITED.with_disk_total(many)).disk_total();
    assert_eq!([total(None), total(gib(9)), total(gib(1))], [gib(5), gib(5), gib(1)]);
    // What the site does not name has the default's lock.
    let wide = Limits::UNLIMITED.with(Resource::Write, Rate::per_second(90 * MIB));
    let bounded = bound(&config.site, "mine", wide);
    let twenty = Rate::per_second(20 * MIB);
    assert_eq!((bounded.rate(Resource::Total), bounded.rate(Resource::Write)), (twenty, twenty));
    assert!(bounded.guest());
    // Neither holds less often, nor for each child, unless the site says so.
    let busy = Limits::UNLIMITED.with_when(When::Busy).with_per_child(true);
    let loosened = |name| {
        let bounded = bound(&config.site, name, busy);
        (bounded.when(), bounded.per_child())
    };
    assert_eq!(loosened("mine"), (When::Always, false));
    assert_eq!(loosened("each"), (When::Busy, true));
    assert_eq!(loosened("free"), (When::Busy, true));
    assert_eq!(bound(&config.site, "free", wide), wide);
}
