//! What is told of wrong input, word for word: `snapshots/wrong_inputs__transcript.snap` has each command line of
//! `wrong_inputs.txt` with its exit status and its one line. Review changes with `cargo insta review`.

use discnice_tests::process::run;
use discnice_tests::product;

/// Text that says nothing to a person: numbers of errors, and words of libraries.
const TECHNICAL: [&str; 5] =
    ["os error", "entity not found", "invalid digit", "ParseIntError", "number would be zero"];

/// What is left of a sentence around a name if the name is empty.
const NAMELESS: [&str; 3] = ["  ", " ;", " :"];

/// Words as sh(1) divides them, of lines that know no other quotes than `""` and a pair around a whole word.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    parts
        .flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[test]
fn each_is_refused_with_one_line_and_a_remedy() {
    let lines: Vec<&str> = include_str!("wrong_inputs.txt").lines().collect();
    assert!(lines.len() >= 80);
    let folder = product::folder();
    let mut transcript = String::new();
    for line in lines {
        let mut command = product::discnice(words(line));
        // Files that are named are none, and no setting of this user's has a say.
        command.current_dir(folder.path()).env("PATH", "/usr/bin:/bin").env("HOME", folder.path());
        let outcome = run(&mut command);
        let complaint = outcome.complaint();
        assert_eq!(complaint.lines().count(), 1, "{line}: one line: {outcome:?}");
        assert!(
            complaint.starts_with("discnice: ") && outcome.output.is_empty(),
            "{line}: {outcome:?}"
        );
        assert!(matches!(outcome.status, Some(125..=127)), "{line}: {outcome:?}");
        let technical = TECHNICAL.iter().find(|word| complaint.contains(**word));
        assert_eq!(technical, None, "{line}: {complaint}");
        let nameless = NAMELESS.iter().find(|rest| complaint.contains(**rest));
        assert_eq!(nameless, None, "{line}: an empty name: {complaint}");
        let status = outcome.status.unwrap_or_default();
        transcript += &format!("$ discnice {line}\n{status} {complaint}");
    }
    insta::assert_snapshot!("transcript", transcript);
    let left = run(&mut product::discnice(["class", "list", "--json"])).succeeded();
    assert!(!left.text().contains("nosuch"), "{}", left.text());
}
