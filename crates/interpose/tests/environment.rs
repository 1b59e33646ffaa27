//! The variables that carry the library into children: added to any environment, and taken out without a trace.
#![allow(unsafe_code, reason = "environment blocks are raw pointers")]

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use discnice_interpose::environment::{BLOCK_PATH, Carry, Scratch, Variables};
use discnice_ledger::{MemberId, Token};
use discnice_sys::block::BlockId;
use proptest::prelude::*;

const LIBRARY: &str = "/run/user/1/libdiscnice.so";
const NAMES: &str = "DISCNICE=2a:7";

fn token() -> Token<'static> {
    Token { block: BlockId::from_claim(0x2a), nonce: 7, member: None, directory: None }
}

/// An environment block in writable memory of its own.
struct Block {
    texts: Vec<Vec<u8>>,
    pointers: Vec<*mut c_char>,
}

impl Block {
    fn of<T: AsRef<[u8]>>(entries: &[T]) -> Self {
        let zero_ended = |entry: &T| [entry.as_ref(), b"\0"].concat();
        let mut texts: Vec<_> = entries.iter().map(zero_ended).collect();
        let mut pointers: Vec<_> = texts.iter_mut().map(|text| text.as_mut_ptr().cast()).collect();
        pointers.push(ptr::null_mut());
        Self { texts, pointers }
    }

    fn entries(&self) -> Vec<String> {
        // SAFETY: ended by null, of C strings.
        unsafe { entries(self.pointers.as_ptr().cast()) }
    }

    fn start(&self) -> *const *const c_char {
        self.pointers.as_ptr().cast()
    }

    /// Takes our variables out of it.
    fn give_to(&mut self, variables: &Variables) -> Option<Token<'static>> {
        // SAFETY: all of it is writable.
        unsafe { variables.take(self.pointers.as_mut_ptr()) }
    }
}

/// # Safety
/// The block ends with null.
unsafe fn entries(mut at: *const *const c_char) -> Vec<String> {
    let mut all = Vec::new();
    // SAFETY: the caller vouches for the block.
    unsafe {
        while !(*at).is_null() {
            all.push(CStr::from_ptr(*at).to_string_lossy().into_owned());
            at = at.add(1);
        }
    }
    all
}

/// Variables that know the library, and nothing else.
fn known() -> Variables {
    let variables = Variables::new();
    let mut block = Block::of(&[format!("LD_PRELOAD={LIBRARY}"), NAMES.into()]);
    assert_eq!(block.give_to(&variables), Some(token()));
    variables
}

/// The block with what is carried; `None` where it stays as it is.
fn extended<T: AsRef<[u8]>>(block: &[T], carry: Carry) -> Option<Vec<String>> {
    let (block, scratch) = (Block::of(block), Scratch::default());
    // SAFETY: a block in memory of this test.
    unsafe {
        let block = known().with_ours(block.start(), &scratch, &token(), carry)?;
        Some(entries(block))
    }
}

#[test]
fn taken_variables_leave_no_trace() {
    let variables = Variables::new();
    let ours = format!("LD_PRELOAD={LIBRARY}");
    let mut block = Block::of(&["A=1", &ours, "B=", "DISCNICE=2a:7:1:2:/run/user/1", "C"]);
    let member = Some(MemberId { index: 1, generation: 2 });
    assert_eq!(block.give_to(&variables), Some(Token { member, ..token() }));
    assert_eq!(block.entries(), ["A=1", "B=", "C"]);
    assert!(block.texts.iter().flatten().filter(|byte| **byte != 0).count() == "A=1B=C".len());
    let mut path = [0; BLOCK_PATH];
    assert!(variables.block_path(0xbeef, &mut path));
    let path = CStr::from_bytes_until_nul(&path).expect("an end").to_str().expect("text");
    assert!(path.starts_with("/run/user/1/") && path.ends_with("beef"), "{path}");
}

#[test]
fn the_programs_own_libraries_stay() {
    for (list, rest) in [
        (format!("{LIBRARY}:/a.so:/b.so"), Some("/a.so:/b.so")),
        (format!("{LIBRARY} /a.so"), Some("/a.so")),
        (format!("{LIBRARY}:"), None),
        (LIBRARY.to_owned(), None),
        ("/a.so:/b.so".to_owned(), Some("/a.so:/b.so")),
        (String::new(), Some("")),
        // Only in the first place it is ours.
        (format!("/a.so:{LIBRARY}"), Some(&*format!("/a.so:{LIBRARY}"))),
    ] {
        let mut block = Block::of(&["A=1".into(), format!("LD_PRELOAD={list}"), NAMES.into()]);
        assert_eq!(block.give_to(&Variables::new()), Some(token()), "{list}");
        let kept = rest.map(|rest| format!("LD_PRELOAD={rest}"));
        let expected: Vec<_> = ["A=1".to_owned()].into_iter().chain(kept).collect();
        assert_eq!(block.entries(), expected, "{list}");
    }
}

#[test]
fn where_nothing_is_ours_nothing_changes() {
    let names = ["A=1", "LD_PRELOADED=x", "DISCNICEST=1", "=", "", "LD_PRELOAD=/other.so"];
    let mut block = Block::of(&names);
    let before = block.pointers.clone();
    assert_eq!(block.give_to(&Variables::new()), None);
    assert_eq!((block.entries(), block.pointers), (names.map(str::to_owned).to_vec(), before));
}

#[test]
fn a_token_that_is_none_is_taken_but_not_believed() {
    for text in ["", "2a", "2a:7:1", "x:y", "2a:7:1:2:3"] {
        let mut block = Block::of(&[format!("DISCNICE={text}"), "A=1".into()]);
        assert_eq!(block.give_to(&Variables::new()), None, "{text}");
        assert_eq!(block.entries(), ["A=1"]);
    }
}

#[test]
fn both_variables_are_added_in_the_place_of_another_list() {
    let ours = |others: &str| vec![format!("LD_PRELOAD={LIBRARY}{others}"), NAMES.to_owned()];
    for (block, kept, others) in [
        (vec![], vec![], ""),
        (vec!["A=1", "A=2", ""], vec!["A=1", "A=2", ""], ""),
        (vec!["LD_PRELOAD=/a.so /b.so", "A=1"], vec!["A=1"], ":/a.so /b.so"),
        (vec!["LD_PRELOAD=", "LD_PRELOADED=1"], vec!["LD_PRELOADED=1"], ""),
        // Without a value it asks for nothing.
        (vec!["LD_TRACE_LOADED_OBJECTS="], vec!["LD_TRACE_LOADED_OBJECTS="], ""),
        // The dynamic linker takes the last.
        (vec!["LD_PRELOAD=/first.so", "LD_PRELOAD=/last.so"], vec![], ":/last.so"),
        (vec!["LD_PRELOAD=/first.so", "LD_PRELOAD="], vec![], ""),
    ] {
        let expected: Vec<_> = kept.into_iter().map(str::to_owned).chain(ours(others)).collect();
        assert_eq!(extended(&block, Carry::Library), Some(expected), "{block:?}");
    }
}

#[test]
fn the_class_alone_leaves_the_list_of_libraries_alone() {
    let with_class = extended(&["LD_PRELOAD=/a.so", "A=1"], Carry::Class);
    let expected = ["LD_PRELOAD=/a.so", "A=1", NAMES].map(str::to_owned);
    assert_eq!(with_class, Some(expected.to_vec()));
}

#[test]
fn blocks_that_are_not_to_be_changed_are_left_alone() {
    assert_eq!(extended(&["A=1"], Carry::Nothing), None);
    assert_eq!(extended(&["DISCNICE=1:2"], Carry::Library), None);
    assert_eq!(extended(&["DISCNICE="], Carry::Class), None);
    assert_eq!(extended(&["LD_TRACE_LOADED_OBJECTS=1"], Carry::Library), None);
    let (block, scratch) = (Block::of(&["A=1"]), Scratch::default());
    // SAFETY: a block in memory of this test.
    let unknown =
        unsafe { Variables::new().with_ours(block.start(), &scratch, &token(), Carry::Library) };
    assert_eq!(unknown, None);
}

/// Two pages, of which the second cannot be read.
fn half_readable() -> *mut u8 {
    // SAFETY: fresh memory.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start =
            libc::mmap(ptr::null_mut(), 8192, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(start.byte_add(4096), 4096, libc::PROT_NONE), 0);
        start.cast()
    }
}

#[test]
fn what_the_kernel_would_refuse_is_left_to_it() {
    let (variables, scratch) = (known(), Scratch::default());
    // SAFETY: none of it is looked through where it cannot be read.
    let with_ours = |block: *const *const c_char| unsafe {
        variables.with_ours(block, &scratch, &token(), Carry::Library)
    };
    let pages = half_readable();
    // SAFETY: within the two pages.
    let (end, middle) = unsafe { (pages.add(4096), pages.add(4088).cast::<*const c_char>()) };
    assert_eq!(with_ours(ptr::without_provenance(8)), None, "no block");
    assert_eq!(with_ours([ptr::without_provenance(1), ptr::null()].as_ptr()), None, "no text");
    // SAFETY: within the first page.
    unsafe { middle.write(c"A=1".as_ptr()) };
    assert_eq!(with_ours(middle), None, "a block without an end");
    // SAFETY: as above.
    unsafe { pages.write_bytes(b'x', 4096) };
    assert_eq!(
        with_ours([pages.cast_const().cast(), ptr::null()].as_ptr()),
        None,
        "an endless text"
    );
    assert_eq!(with_ours(end.wrapping_sub(4).cast()), None, "a pointer across the end");
    assert!(with_ours(ptr::null()).is_some(), "no block at all is an empty one");
}

#[test]
fn blocks_of_any_size_fit() {
    let scratch = Scratch::default();
    let huge =
        [format!("LD_PRELOAD={}", "x".repeat(2 << 20)), "B=".to_owned() + &"y".repeat(1 << 20)];
    let many: Vec<_> = (0..100_000).map(|number| format!("N{number}={number}")).collect();
    for block in [&huge[..], &many, &["A=1".to_owned()], &huge] {
        let block = Block::of(block);
        // SAFETY: a block in memory of this test.
        let written = unsafe {
            let with = known().with_ours(block.start(), &scratch, &token(), Carry::Library);
            entries(with.expect("memory"))
        };
        let (theirs, ours) = written.split_at(written.len() - 2);
        let mut before = block.entries();
        let list = before.iter().position(|entry| entry.starts_with("LD_PRELOAD="));
        let list = list.map(|at| before.remove(at).replace("LD_PRELOAD=", ":")).unwrap_or_default();
        assert!(theirs == before && ours == [format!("LD_PRELOAD={LIBRARY}{list}"), NAMES.into()]);
    }
}

#[test]
fn paths_that_are_too_long_are_not_ours() {
    let long = format!("/{}{LIBRARY}", "x".repeat(1100));
    let variables = Variables::new();
    let list = format!("LD_PRELOAD={long}");
    let mut block = Block::of(&[list.clone(), format!("{NAMES}:/{}", "y".repeat(1100))]);
    assert_eq!(block.give_to(&variables), Some(token()));
    assert_eq!(block.entries(), [list]);
    assert!(!variables.is_reachable() && !variables.block_path(1, &mut [0; BLOCK_PATH]));
}

/// A shorter path in the place of a longer one: the name of a block ends where it should.
#[test]
fn the_library_can_move() {
    let library = std::env::temp_dir().join(format!("{}-libdiscnice.so", std::process::id()));
    std::fs::write(&library, "").expect("room");
    let variables = Variables::new();
    for (path, is_there) in [
        (format!("/nowhere/{}/libdiscnice.so", "x".repeat(300)), false),
        (library.display().to_string(), true),
    ] {
        Block::of(&[format!("LD_PRELOAD={path}")]).give_to(&variables);
        assert_eq!(variables.is_reachable(), is_there, "{path}");
    }
    std::fs::remove_file(&library).expect("ours");
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z_]{0,4}=[a-z/:= ]{0,8}",
        "LD_PRELOAD=[a-z/]{0,6}(:[a-z/]{1,6})?",
        "LD_PRELOAD",
        "[a-z]{0,3}"
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_carried_is_taken_again(
        block in prop::collection::vec(texts(), 0..12),
        nonce: u64,
        member in prop::option::of((any::<u32>(), any::<u32>())),
        directory in prop::option::of("/[a-z/]{0,40}"),
    ) {
        let variables = Variables::new();
        let directory = directory.map(|path| format!(":{path}")).unwrap_or_default();
        Block::of(&[format!("LD_PRELOAD={LIBRARY}"), format!("{NAMES}{directory}")]).give_to(&variables);
        let member = member.map(|(index, generation)| MemberId { index, generation });
        let asked = Token { nonce, member, ..token() };
        let (given, scratch) = (Block::of(&block), Scratch::default());
        // SAFETY: a block in memory of this test.
        let written = unsafe {
            let with = variables.with_ours(given.start(), &scratch, &asked, Carry::Library);
            let texts = entries(with.expect("memory"));
            texts.into_iter().map(|text| CString::new(text).expect("no zero").into_bytes()).collect::<Vec<_>>()
        };
        let (mut next, child) = (Block::of(&written), Variables::new());
        prop_assert_eq!(next.give_to(&child), Some(asked));
        let list = block.iter().rev().find(|text| text.starts_with("LD_PRELOAD="));
        let list = list.filter(|text| *text != "LD_PRELOAD=").cloned();
        let others = block.iter().filter(|text| !text.starts_with("LD_PRELOAD=")).cloned();
        prop_assert_eq!(next.entries(), others.chain(list).collect::<Vec<_>>());
    }
}
