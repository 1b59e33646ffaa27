//! The classes of this user.
//!
//! A class is a System V shared-memory segment. There is no directory of classes besides the
//! kernel's own list: the name stands in the segment, and the segment's key follows from name
//! and user, so that two commands that name the same class at once get the same one.

#![allow(unsafe_code, reason = "shared memory is mapped here and nowhere else in the program")]

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::ptr::NonNull;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::builder::{OsStringValueParser, TypedValueParser};
use discnice_budget::Class;
use discnice_sys::{Errno, process, shm};

use crate::boards;

/// Keys that are tried for one name, should other segments have taken the first.
pub const KEYS: u32 = 16;

/// An automatic class that nobody has used for this long is removed. Long enough for a slow disk
/// to load a program: while a class's only process executes one, nobody has it mapped.
const ABANDONED: Duration = Duration::from_secs(60);
/// The same when so many classes lie around that the system's limit comes near.
const ABANDONED_IN_CROWD: Duration = Duration::from_secs(5);
const CROWD: usize = 1024;
/// Looking for abandoned classes costs the kernel a line for each; one command in so many does it.
const SWEEPERS: u32 = 16;

/// Longest name, in bytes.
pub const NAME_MAX: usize = discnice_budget::layout::NAME_MAX;

/// Marks the names of classes that `run` makes by itself, which no user can type.
const AUTOMATIC: char = '@';

/// A class and where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The mapped class.
    pub class: &'static Class,
    /// Its segment's number.
    pub segment: i32,
}

impl Found {
    /// The class's name.
    pub fn name(&self) -> String {
        let bytes = self.class.name();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// Unmaps the class, for who looks at many of them again and again: `top` and `metrics`.
    pub(crate) fn let_go(self) {
        // SAFETY: both copy what they show before they call this.
        unsafe { self.unmap() };
    }

    /// Takes what this process has touched of the class out of its memory, until it is touched again.
    pub(crate) fn let_pages_go(&self) {
        // SAFETY: `attach` and `create` mapped the segment, which is at least as long as a class.
        unsafe { shm::let_pages_go(NonNull::from(self.class).cast(), Class::SIZE) };
    }

    /// Unmaps the class.
    ///
    /// # Safety
    /// No copy of this value, and no reference to the class that was taken from one, is used again.
    pub unsafe fn unmap(self) {
        // SAFETY: the caller vouches for it; each value that `attach` returns has its own mapping.
        unsafe { shm::detach(NonNull::from(self.class).cast()) };
    }

    /// Whether `run` made it by itself.
    pub fn is_automatic(&self) -> bool {
        self.name().starts_with(AUTOMATIC)
    }

    /// Destroys the class; processes that are in it keep it until they end.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn remove(&self) -> anyhow::Result<()> {
        shm::remove(self.segment).map_err(explain).context("cannot remove the class")
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A kernel error for people.
pub fn explain(errno: Errno) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno.0)
}

/// Parses a name that a person typed.
pub fn name_parser() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().try_map(|name| check_name(&name))
}

/// Accepts a name that a person typed.
pub fn check_name(name: &OsStr) -> Result<String, String> {
    let bad = name.is_empty()
        || name.len() > NAME_MAX
        || name.as_bytes().starts_with(b".")
        || name.as_bytes().starts_with(&[AUTOMATIC as u8]);
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
pub fn automatic_name(command: &str, process: u32) -> String {
    let end = command.floor_char_boundary(100);
    format!("{AUTOMATIC}{}-{process}", &command[..end])
}

/// The key of a segment's `attempt`th choice.
pub fn key(name: &str, attempt: u32) -> i32 {
    // FNV-1a: every version of this program must find the same key.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let user = process::user().to_le_bytes();
    for byte in user.iter().chain(name.as_bytes()).chain(&attempt.to_le_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // Zero means a private segment, and the sign bit confuses ipcs(1).
    i32::try_from((hash >> 33) | 1).unwrap_or(1)
}

/// Whether a segment is this user's alone, of this size, and not about to go.
pub fn is_mine(segment: i32, size: usize) -> bool {
    shm::inspect(segment).is_ok_and(|facts| {
        let private = facts.mode & (0o077 | shm::REMOVED) == 0;
        private && facts.owner == process::user() && facts.size == size
    })
}

/// The class in this segment, if it is one of this user's.
pub fn attach(segment: i32) -> Option<Found> {
    if !is_mine(segment, Class::SIZE) {
        return None;
    }
    let start = shm::attach(segment).ok()?;
    // SAFETY: the kernel mapped so many bytes at a page's start; we never detach an adopted one.
    match unsafe { Class::adopt(start, Class::SIZE, None) } {
        Ok(class) => Some(Found { class, segment }),
        Err(_) => {
            // SAFETY: nothing refers to the mapping.
            unsafe { shm::detach(start) };
            None
        }
    }
}

/// The class of this name, if there is one.
pub fn find(name: &str) -> Option<Found> {
    (0..KEYS)
        .map_while(|attempt| match shm::find(key(name, attempt), Class::SIZE) {
            Err(Errno::NOENT) => None,
            other => Some(other),
        })
        .filter_map(|segment| attach(segment.ok()?))
        .find(|found| found.name() == name)
}

/// The class of this name, made if need be; the second value tells whether it was.
///
/// # Errors
/// Shared memory is not to be had.
pub fn find_or_create(name: &str) -> anyhow::Result<(Found, bool)> {
    if process::id().is_multiple_of(SWEEPERS) {
        sweep_quietly(Sweep::Passing);
    }
    for attempt in 0..KEYS {
        if let Some(found) = find(name) {
            return Ok((found, false));
        }
        match shm::create(key(name, attempt), Class::SIZE) {
            Ok(segment) => return Ok((create(segment, name)?, true)),
            Err(Errno::EXIST) => {
                // Somebody else's segment, or a class that is just being made: look once more.
                std::thread::sleep(Duration::from_millis(2));
            }
            // The system's limit: perhaps of abandoned classes.
            Err(Errno::NOSPC) if attempt + 1 < KEYS => sweep_quietly(Sweep::Pressed),
            Err(errno) => {
                return Err(explain(errno))
                    .context("no shared memory for the class (see `discnice doctor`)");
            }
        }
    }
    if let Some(found) = find(name) {
        return Ok((found, false));
    }
    bail!(
        "no shared memory for class {name}: other programs hold all its keys; choose another name"
    )
}

fn create(segment: i32, name: &str) -> anyhow::Result<Found> {
    let start = shm::attach(segment).map_err(explain)?;
    let nonce = RandomState::new().build_hasher().finish();
    // SAFETY: a new segment is zeroed, `Class::SIZE` bytes long, and nobody else's yet.
    let class = unsafe { Class::create(start, Class::SIZE, nonce, name.as_bytes(), now()) };
    match class {
        Ok(class) => {
            // Without a board its traffic is taken for others' by classes that give way.
            if let Ok(found) = boards::find_or_create() {
                class.set_board(found.segment);
            }
            Ok(Found { class, segment })
        }
        Err(foreign) => bail!("the kernel's shared memory is {foreign}"),
    }
}

/// A line of the kernel's list of segments (proc_sysvipc_shm(5)) that may be a class of ours.
struct Listed {
    segment: i32,
    attached: u64,
    /// When a process last took or let go of it, or it was made; seconds since 1970.
    touched: u64,
}

impl Listed {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let ours = number(7)? == u64::from(process::user()) && number(3)? == Class::SIZE as u64;
        let touched = number(11)?.max(number(12)?).max(number(13)?);
        let segment = fields.get(1)?.parse().ok()?;
        ours.then_some(Self { segment, attached: number(6)?, touched })
    }

    fn all() -> anyhow::Result<Vec<Self>> {
        let list = fs::read_to_string("/proc/sysvipc/shm").context("cannot list shared memory")?;
        Ok(list.lines().skip(1).filter_map(Self::parse).collect())
    }
}

/// Why abandoned classes are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sweep {
    /// A command passes by.
    Passing,
    /// Somebody looks at all classes. That touches them, so it goes by what stands in each: since
    /// when nobody used it.
    Looking,
    /// The system has no room for another class.
    Pressed,
}

/// Removes automatic classes that nobody uses any more.
fn sweep(listed: &[Listed], why: Sweep) {
    let crowded = why == Sweep::Pressed || listed.len() > CROWD;
    let patience = if crowded { ABANDONED_IN_CROWD } else { ABANDONED };
    let old = |since: u64| now() > since + patience.as_secs();
    let unused = listed.iter().filter(|one| one.attached == 0);
    for one in unused.filter(|one| why != Sweep::Passing || old(one.touched)) {
        let Some(found) = attach(one.segment).filter(Found::is_automatic) else { continue };
        if old(found.class.idle_since(one.touched)) {
            // Another command may have been first.
            let _ = found.remove();
        }
        // Removed or not, a mapping of ours would keep it.
        // SAFETY: `found` goes no further than this, and each of its kind has its own mapping.
        unsafe { shm::detach(NonNull::from(found.class).cast()) };
    }
}

/// The same where nobody would be helped by hearing that the list cannot be read.
fn sweep_quietly(why: Sweep) {
    if let Ok(listed) = Listed::all() {
        sweep(&listed, why);
    }
}

/// All classes of this user.
///
/// # Errors
/// The kernel's list cannot be read.
pub fn all() -> anyhow::Result<Vec<Found>> {
    let listed = Listed::all()?;
    sweep(&listed, Sweep::Looking);
    let mut classes: Vec<Found> = listed.iter().filter_map(|one| attach(one.segment)).collect();
    classes.sort_by_cached_key(Found::name);
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_refused() {
        for name in ["", "a/b", "..", ".", "@auto", "new\nline", &"x".repeat(300)] {
            assert!(check_name(OsStr::new(name)).is_err(), "{name:?}");
        }
        assert!(check_name(OsStr::from_bytes(b"\xff")).is_err());
        for name in ["backup", "näme", "a b", &"x".repeat(255)] {
            assert!(check_name(OsStr::new(name)).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn keys_are_positive_and_differ() {
        assert!(key("a", 0) > 0 && key("a", 0) != key("a", 1) && key("a", 0) != key("b", 0));
    }

    #[test]
    fn a_class_is_found_again_and_removed() {
        let name = format!("test-{}", std::process::id());
        let (made, new) = find_or_create(&name).unwrap();
        assert!(new);
        let (again, new) = find_or_create(&name).unwrap();
        assert!(!new && again.segment == made.segment && again.name() == name);
        assert!(all().unwrap().iter().any(|found| found.segment == made.segment));
        made.remove().unwrap();
        assert!(find(&name).is_none());
    }
}
