//! Which names classes may have.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Longest name, in bytes.
pub const NAME_MAX: usize = discnice_ledger::layout::NAME_MAX;

/// Marks the names of classes that `run` makes by itself, which no user can type.
const AUTOMATIC: char = '@';

//= rate-windows/3.2-any-classes
/// Accepts a name that a person typed.
///
/// # Errors
/// What names look like.
pub fn check(name: &OsStr) -> Result<String, String> {
    let bad = name.is_empty()
        || name.len() > NAME_MAX
        || name.as_bytes().starts_with(b".")
        || name.as_bytes().starts_with(&[AUTOMATIC as u8]);
    if !name.is_empty() && name.as_bytes().iter().all(u8::is_ascii_digit) {
        let number = name.display();
        return Err(format!(
            "{number} is no class name but a PID to other commands; add a letter, such as c{number}"
        ));
    }
    match name.to_str() {
        Some(text) if !bad && !text.contains(|c: char| c == '/' || c.is_control()) => {
            Ok(text.into())
        }
        _ => Err(format!(
            "{name:?} is no class name; give 1 to {NAME_MAX} bytes of text without `/` and control \
             characters that does not begin with `@` or `.`"
        )),
    }
}

/// The automatic name of a command's class.
#[must_use]
pub fn automatic(command: &str, process: u32) -> String {
    let end = command.floor_char_boundary(120);
    format!("{AUTOMATIC}{}-{process}", &command[..end])
}

/// The automatic name of the class of a child, by the name of its parent's.
#[must_use]
pub fn of_child(parent: &str, process: u32) -> String {
    let parent = parent.strip_prefix(AUTOMATIC).unwrap_or(parent);
    let end = parent.floor_char_boundary(100);
    automatic(&format!("{}:child", &parent[..end]), process)
}

/// Returns true if `run` made up the name.
#[must_use]
pub fn is_automatic(name: &str) -> bool {
    name.starts_with(AUTOMATIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_refused() {
        for name in ["", "a/b", "..", ".", "@auto", "new\nline", &"x".repeat(300)] {
            assert!(check(OsStr::new(name)).is_err(), "{name:?}");
        }
        assert!(check(OsStr::from_bytes(b"\xff")).is_err());
        assert!(check(OsStr::new("8525")).is_err(), "`pause 8525` would be a process");
        for name in ["backup", "näme", "a b", "7z", "-1", &"x".repeat(255)] {
            assert!(check(OsStr::new(name)).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn no_user_can_type_a_name_that_run_makes_up() {
        let name = automatic(&"ä".repeat(200), 7);
        assert!(is_automatic(&name) && name.len() < NAME_MAX);
        assert!(check(OsStr::new(&name)).is_err());
        assert_eq!(of_child("@make-7", 9), "@make-7:child-9");
        assert_eq!(of_child("nightly", 9), "@nightly:child-9");
        let long = of_child(&"ä".repeat(120), u32::MAX);
        assert!(long.len() < NAME_MAX && long.ends_with(":child-4294967295"));
    }
}
