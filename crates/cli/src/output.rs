//! What the program says. `println!` and `eprintln!` panic when their stream is full or closed;
//! these do not.

/// Writes a line to standard output; `?` it: a full disk is an error, and a reader who has seen
/// enough (`| head`) ends the program quietly.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        writeln!(std::io::stdout(), $($text)*).map_err($crate::output::Unsaid)
    }};
}
pub use say;

/// Writes a line to standard error. If that fails there is nobody left to tell.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
pub use tell;

/// Standard output could not be written.
#[derive(Debug)]
pub struct Unsaid(pub std::io::Error);

impl Unsaid {
    /// The reader closed the pipe.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.0.kind() == std::io::ErrorKind::BrokenPipe
    }
}

impl std::fmt::Display for Unsaid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write to standard output: {}", self.0)
    }
}

impl std::error::Error for Unsaid {}
