use super::*;

#[test]
fn annotations_are_limits_or_refused() {
    let held = |key: &str, value: &str| {
        held(&[(key.to_owned(), value.to_owned())], "container-a", &["runc".into()])
    };
    for (key, value) in
        [("disk", "5M"), ("meta-ops", "100"), ("class", "shared"), ("strict", "true")]
    {
        assert!(held(key, value).is_ok(), "{key}={value}");
    }
    let shared = format!("{:?}", held("class", "nightly").unwrap());
    assert!(shared.contains(r#""containers-nightly""#), "another class of runc's user: {shared}");
    for (key, value, why) in [
        ("disk", "quick", "not a number"),
        ("disk", "", "annotation io.discnice.disk"),
        ("dsik", "5M", "annotation io.discnice.dsik"),
        ("strict", "very", "true or false"),
        ("class", "a/b", "no class name"),
        ("disk", "5M --strict", "annotation io.discnice.disk"),
        ("only-when", "cmd:true", "io.discnice.only-when: it is no limit"),
        ("report", "/report.svg", "io.discnice.report: it is no limit"),
        ("report=/a", ".svg", "it is no limit"),
        ("until", "+2h", "io.discnice.until: it is no limit"),
        ("mechanism", "preload", "io.discnice.mechanism: it is no limit"),
    ] {
        let error = format!("{:#}", held(key, value).unwrap_err());
        assert!(
            error.contains(why) && error.contains("not started") && !error.contains('\n'),
            "{error}"
        );
    }
}
