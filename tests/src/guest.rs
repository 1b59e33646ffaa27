//! Small programs of one concern each, in `guests/`, compiled when they are needed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles guests into a folder.
#[derive(Debug)]
pub struct Compiler {
    folder: PathBuf,
}

impl Compiler {
    /// A compiler that puts programs into `folder`; `None` without `cc` and `c++`.
    #[must_use]
    pub fn new(folder: &Path) -> Option<Self> {
        let there =
            ["cc", "c++"].iter().all(|name| Command::new(name).arg("--version").output().is_ok());
        there.then(|| Self { folder: folder.to_owned() })
    }

    /// The program made of `guests/SOURCE`.
    ///
    /// # Panics
    /// It does not compile.
    #[must_use]
    pub fn compile(&self, source: &str) -> PathBuf {
        self.compile_with(source, &[]).unwrap_or_else(|errors| panic!("{source}: {errors}"))
    }

    /// The program or library made of `guests/SOURCE` with further options behind it.
    ///
    /// # Errors
    /// What the compiler said, for options that not every machine's compiler can do.
    pub fn compile_with(&self, source: &str, options: &[&str]) -> Result<PathBuf, String> {
        let stem = Path::new(source).file_stem().expect("a file name");
        let shared = options.contains(&"-shared");
        let name = if shared {
            format!("lib{}.so", stem.display())
        } else {
            stem.to_string_lossy().into_owned()
        };
        let to = self.folder.join(name);
        let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
        let made = Command::new(compiler)
            .args(["-O1", "-Wall", "-Wno-nonnull", "-Wno-unused-result", "-D_GNU_SOURCE"])
            .args(["-pthread", "-o"])
            .arg(&to)
            .arg(path(source))
            .args(options)
            .output()
            .map_err(|error| error.to_string())?;
        if made.status.success() {
            Ok(to)
        } else {
            Err(String::from_utf8_lossy(&made.stderr).into_owned())
        }
    }
}

/// The program made of `guests/SOURCE` in the folder, which another libc's dynamic linker loads; `None` without `musl-gcc`.
#[must_use]
pub fn musl(folder: &Path, source: &str) -> Option<PathBuf> {
    let to = folder.join("musl");
    let mut compiler = Command::new("musl-gcc");
    compiler.args(["-D_GNU_SOURCE", "-o"]).arg(&to).arg(path(source));
    compiler.output().is_ok_and(|output| output.status.success()).then_some(to)
}

/// Where a source lies.
fn path(source: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests").join(source)
}
