//! The policy of a class: chosen by the user, shown, kept, and told by how calls wait.

use discnice_tests::class::Class;
use discnice_tests::cold;
use discnice_tests::process::run;
use discnice_tests::product;

/// Reads a cold file of `size` bytes in a class with these options; returns how long calls of the class waited.
fn waited(class: &Class, options: &[&str], size: usize) -> f64 {
    // What is loaded, and the library's copy, may be on the disk only.
    run(&mut Class::new("unlimited").command(["cat", "/dev/null"])).succeeded();
    let folder = product::folder();
    let file = folder.path().join("cold");
    run(product::discnice(["class", "set", class.name()]).args(options)).succeeded();
    cold::make(&file, size).expect("a file");
    let mut read = product::discnice(["run", "--class", class.name(), "--", "cat"]);
    run(read.arg(&file)).succeeded();
    class.show()["waited_seconds"].as_f64().expect("seconds")
}

//= discnice/4.1-own-policy
//= discnice/5.3-function
#[test]
fn sleep_lets_a_second_s_worth_pass_where_the_window_makes_it_wait() {
    let (window, sleep) = (Class::new("8M"), Class::new("8M"));
    let smooth = waited(&window, &["--disk-read", "8M"], 6 << 20);
    let bursts = waited(&sleep, &["--disk-read", "8M", "--policy", "sleep"], 6 << 20);
    assert!(smooth > 0.4, "6 MiB at 8 MiB/s waited {smooth} s");
    assert!(bursts < smooth / 2.0, "{bursts} s, and with the rate window {smooth} s");
}

//= discnice/5.3-n
#[test]
fn sleep_holds_the_threshold_over_seconds() {
    let class = Class::new("8M");
    let waits = waited(&class, &["--disk-read", "8M", "--policy", "sleep"], 24 << 20);
    assert!(waits > 1.5, "24 MiB at 8 MiB/s waited {waits} s");
}

//= discnice/4.1-own-policy
#[test]
fn a_policy_and_its_window_are_kept_and_shown() {
    let class = Class::new("8M");
    let set = |options: &[&str]| {
        run(product::discnice(["class", "set", class.name()]).args(options)).succeeded();
        let shown = class.show();
        (shown["policy"].clone(), shown["window_seconds"].as_f64().expect("seconds"))
    };
    assert_eq!(set(&["--disk", "8M"]), ("window".into(), 5.0));
    assert_eq!(set(&["--window", "2s"]), ("window".into(), 2.0));
    assert_eq!(set(&["--disk", "9M"]), ("window".into(), 2.0), "kept");
    assert_eq!(set(&["--policy", "sleep"]), ("sleep".into(), 1.0), "its own");
    assert_eq!(set(&["--policy", "sleep", "--window", "300ms"]), ("sleep".into(), 0.3));
    let explained = run(&mut product::discnice(["explain", class.name()])).succeeded().text();
    assert!(explained.contains("policy: sleep, over 300.0 ms"), "{explained}");
    for (options, why) in [
        (["--window", "5s"], "100 to 4900 ms"),
        (["--window", "1ms"], "100 to 4900 ms"),
        (["--policy", "fast"], "give window, sleep or program"),
    ] {
        let refused = run(product::discnice(["class", "set", class.name()]).args(options));
        assert_eq!(refused.status, Some(125), "{refused:?}");
        assert!(refused.complaint().contains(why), "{refused:?}");
    }
    assert_eq!(class.show()["window_seconds"], 0.3, "a refused change leaves it");
}
