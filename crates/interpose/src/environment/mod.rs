//! How the library gets from a program into its children, unseen by both.
//!
//! Two variables carry it: `LD_PRELOAD`, for the dynamic linker, and `DISCNICE`, which names the
//! class. When a program starts they are taken out of its environment, so that it finds just
//! what its parent gave it; when it starts another program they are put back, whatever
//! environment it passes, `env -i` included.
//!
//! - `take`: out of the environment of this program;
//! - `extend`: into that of another one;
//! - `text`: paths and texts in memory of ours.

mod extend;
mod take;
mod text;

pub use extend::Scratch;

use discnice_ledger::token;
use discnice_sys::block::FILE_NAME;
use discnice_sys::execution;
use discnice_sys::opened::Opened;

use text::{PATH_MAX, PathBuffer, Writer};

const PRELOAD: &[u8] = b"LD_PRELOAD=";

/// What of ours a program finds in its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carry {
    /// Both variables: the dynamic linker loads the library, which takes them out.
    Library,
    /// The class alone, by which the watcher recognises the program's descendants.
    Class,
    /// Nothing.
    Nothing,
}

/// What is known of our two variables, once they have been taken out of the environment: programs may overwrite their environment's
/// memory, so it is copied.
#[derive(Debug)]
pub struct Variables {
    /// Path of the library; empty while nothing was taken.
    library: PathBuffer,
    /// The directory of blocks that are files; empty where none of the class's is.
    directory: PathBuffer,
}

/// Longest path of a block: the directory, a slash, the file's name and its end.
pub const BLOCK_PATH: usize = PATH_MAX + 1 + FILE_NAME.len() + 16 + 1;

impl Variables {
    /// Nothing is known.
    #[allow(clippy::new_without_default, reason = "only statics hold it")]
    pub const fn new() -> Self {
        Self { library: PathBuffer::new(), directory: PathBuffer::new() }
    }

    /// Writes the path of the block that is the file of this number, with the zero at its end; `false` where the
    /// directory is not known.
    pub fn block_path(&self, number: u64, to: &mut [u8; BLOCK_PATH]) -> bool {
        let mut writer = Writer { text: to, length: 0 };
        self.directory.write(&mut writer);
        writer.bytes(b"/");
        writer.bytes(FILE_NAME.as_bytes());
        token::hexadecimal(number, &mut |part| writer.bytes(part));
        writer.bytes(b"\0");
        self.directory.length() > 0
    }

    /// Returns true if the dynamic linker would find the library from here, and may map it: a program
    /// may have changed its root directory or its mounts since it loaded it.
    pub fn is_reachable(&self) -> bool {
        if self.library.length() == 0 {
            return false;
        }
        let library = Opened::open(libc::AT_FDCWD, self.library.bytes.as_ptr().cast());
        library.is_ok_and(|library| !execution::is_forbidden(library.fd()))
    }
}
