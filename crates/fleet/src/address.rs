//! Where a class's budget is: `rediss://USER@HOST:PORT/CLASS?password-file=PATH&ca=PATH&db=N`.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use discnice_escape::Foreign;
use rustls::RootCertStore;
use url::Url;

use crate::fault::Fault;
use crate::transport::{self, Connection};

/// Port of a server if the address names none.
const PORT: u16 = 6379;
/// A longer name of a class is refused.
const NAME_MAX: usize = 64;
/// A longer file is no password, or no certificate.
const FILE_MAX: u64 = 1 << 16;
/// Others may read.
const READABLE: u32 = 0o077;

/// A server and the class on it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    tls: bool,
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
    password_file: Option<PathBuf>,
    authority: Option<PathBuf>,
    database: i64,
    class: String,
}

impl Address {
    /// Parses an address.
    ///
    /// # Errors
    /// What is wrong with it; never the password.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let wrong = |why: &str| Fault::Address(why.to_owned());
        let url = Url::parse(text).map_err(|error| Fault::Address(error.to_string()))?;
        let tls = match url.scheme() {
            "redis" => false,
            "rediss" => true,
            _ => return Err(wrong("it begins with neither redis:// nor rediss://")),
        };
        let host =
            url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("no host"))?;
        let class = url.path().trim_start_matches('/');
        check_name(class).map_err(wrong)?;
        let decoded = |text: &str| {
            percent_encoding::percent_decode_str(text).decode_utf8().map(|text| text.into_owned())
        };
        let user = Some(url.username()).filter(|user| !user.is_empty()).map(decoded).transpose();
        let password = url.password().map(decoded).transpose();
        let mut address = Self {
            tls,
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port().unwrap_or(PORT),
            user: user.map_err(|_| wrong("the user name is not UTF-8"))?,
            password: password.map_err(|_| wrong("the password is not UTF-8"))?,
            password_file: None,
            authority: None,
            database: 0,
            class: class.to_owned(),
        };
        for (name, value) in url.query_pairs() {
            match &*name {
                "password-file" => address.password_file = Some(absolute(&value).map_err(wrong)?),
                "ca" if tls => address.authority = Some(absolute(&value).map_err(wrong)?),
                "ca" => return Err(wrong("ca= is of use with rediss:// only")),
                "db" => {
                    let number = value.parse().ok().filter(|number| (0..=1023).contains(number));
                    address.database = number.ok_or_else(|| wrong("db= is a number from 0 on"))?;
                }
                _ => return Err(wrong("it knows password-file=, ca= and db= only")),
            }
        }
        Ok(address)
    }

    /// Name of the class on the server.
    #[must_use]
    pub fn class(&self) -> &str {
        &self.class
    }

    /// Returns this server with another class.
    ///
    /// # Errors
    /// It is no name.
    pub fn with_class(mut self, class: &str) -> Result<Self, Fault> {
        check_name(class).map_err(|why| Fault::Address(why.to_owned()))?;
        class.clone_into(&mut self.class);
        Ok(self)
    }

    /// Connects to the server, and logs in.
    ///
    /// # Errors
    /// A file that the address names cannot be used, or the server's.
    pub(crate) fn connect(&self) -> Result<Connection, Fault> {
        let password = self.password()?;
        let roots = if self.tls { Some(self.authorities()?) } else { None };
        let mut connection = Connection::open(&self.host, self.port)?;
        if let Some(roots) = roots {
            connection = connection.encrypt(&self.host, roots)?;
        }
        if let Some(password) = password {
            let mut command = redis::cmd("AUTH");
            command.arg(self.user.as_deref()).arg(password);
            command.exec(&mut connection).map_err(|error| Fault::of(&error))?;
        }
        if self.database != 0 {
            let mut command = redis::cmd("SELECT");
            command.arg(self.database);
            command.exec(&mut connection).map_err(|error| Fault::of(&error))?;
        }
        Ok(connection)
    }

    fn password(&self) -> Result<Option<String>, Fault> {
        let Some(path) = &self.password_file else { return Ok(self.password.clone()) };
        let unusable = |why: String| Fault::File(format!("{}: {why}", Foreign::path(path)));
        let bytes = read(path)?;
        let mode = std::fs::metadata(path).map_err(|error| unusable(error.to_string()))?.mode();
        if mode & READABLE != 0 {
            return Err(unusable("others may read the password; say chmod 600".to_owned()));
        }
        let text = String::from_utf8(bytes).map_err(|_| unusable("not UTF-8".to_owned()))?;
        Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
    }

    fn authorities(&self) -> Result<RootCertStore, Fault> {
        let Some(path) = &self.authority else {
            let none = "this machine has no certificates of authorities; name one by ca=PATH";
            return transport::authorities(None).ok_or_else(|| Fault::File(none.to_owned()));
        };
        let bytes = read(path)?;
        let none =
            || Fault::File(format!("{} has no certificate in PEM form", Foreign::path(path)));
        transport::authorities(Some(&bytes)).ok_or_else(none)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    discnice_paths::read_own(path, FILE_MAX).map_err(|error: io::Error| {
        Fault::File(format!("cannot read {}: {error}", Foreign::path(path)))
    })
}

fn absolute(path: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(path);
    if path.is_absolute() { Ok(path) } else { Err("a file is named by its full path") }
}

/// Checks the name of a class on the server.
///
/// # Errors
/// Why it is none.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() {
        return Err("no class behind the host");
    }
    if name.len() > NAME_MAX || !name.bytes().all(plain) {
        return Err("a class's name has at most 64 letters, digits, dots, dashes and underscores");
    }
    Ok(())
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let colons = self.host.contains(':');
        let host = if colons { format!("[{}]", self.host) } else { self.host.clone() };
        write!(f, "{scheme}://{host}:{}/{}", self.port, self.class)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let address =
            Address::parse("rediss://node:p%40ss@files.example:7000/backup?db=3").unwrap();
        assert_eq!(address.to_string(), "rediss://files.example:7000/backup");
        assert_eq!(address.password().unwrap().as_deref(), Some("p@ss"));
        assert!(!format!("{address:?}").contains("p@ss"));
        assert_eq!(address.database, 3);
        let short = Address::parse("redis://[::1]/a").unwrap();
        assert_eq!(short.to_string(), "redis://[::1]:6379/a");
        assert_eq!(short.with_class("b").unwrap().class(), "b");
    }

    #[test]
    fn what_is_no_address() {
        for (text, why) in [
            ("", "relative URL"),
            ("backup", "relative URL"),
            ("http://h/a", "neither redis"),
            ("redis:///a", "host"),
            ("redis://h", "no class"),
            ("redis://h/", "no class"),
            ("redis://h/a/b", "letters"),
            ("redis://h/a%20b", "letters"),
            ("redis://h/a?x=1", "knows"),
            ("redis://h/a?db=x", "number"),
            ("redis://h/a?ca=/x", "rediss"),
            ("rediss://h/a?ca=x", "full path"),
            ("redis://h:99999/a", "port"),
        ] {
            let fault = Address::parse(text).unwrap_err();
            let said = fault.to_string();
            assert!(matches!(fault, Fault::Address(_)) && said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn a_password_that_others_may_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        std::fs::write(&path, "secret\n").unwrap();
        let text = format!("redis://h/a?password-file={}", path.display());
        let address = Address::parse(&text).unwrap();
        let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode));
        mode(0o644).unwrap();
        assert!(matches!(address.password(), Err(Fault::File(why)) if why.contains("chmod 600")));
        mode(0o600).unwrap();
        assert_eq!(address.password().unwrap().as_deref(), Some("secret"));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(address.password(), Err(Fault::File(_))));
    }
}
