//! A connection to a class's server.

use std::collections::HashMap;

use redis::{FromRedisValue, RedisResult, Value};

use crate::address::Address;
use crate::fault::Fault;
use crate::script::{self, Ask, Keys, Reply};
use crate::settings::{NODES_MAX, Settings, VERSION};
use crate::table::{self, NodeRow, Table};
use crate::transport::Connection;

/// Nodes that are read at once.
const PAGE: usize = 1000;
/// As often as that for the most nodes, with places of ten times as many.
const PAGES: usize = 10 * NODES_MAX as usize / PAGE;
/// Bytes of the names of the most nodes.
const LONGEST_TABLE: u64 = 1 << 24;

/// A node's name, and what the script keeps of it.
type Entry = (Vec<u8>, Vec<u8>);

/// A connection.
pub struct Link {
    connection: Connection,
    keys: Keys,
    script: redis::Script,
    /// Tells one life of the server from the next.
    run: String,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({:?})", self.keys)
    }
}

impl Link {
    /// Connects.
    ///
    /// # Errors
    /// Why not.
    pub fn open(address: &Address) -> Result<Self, Fault> {
        let connection = address.connect()?;
        let (keys, script) = (Keys::of(address.class()), redis::Script::new(script::LEASE));
        let mut link = Self { connection, keys, script, run: String::new() };
        let told: String = link.query(redis::cmd("INFO").arg("server"))?;
        link.run = run_of(&told).ok_or(Fault::NotOurs)?;
        Ok(link)
    }

    fn query<T: FromRedisValue>(&mut self, command: &redis::Cmd) -> Result<T, Fault> {
        command.query(&mut self.connection).map_err(|error| Fault::of(&error))
    }

    /// Makes one call of a node. After an error the link is of no use: a reply may still come.
    ///
    /// # Errors
    /// Why there is no lease.
    pub fn ask(&mut self, node: &str, ask: &Ask) -> Result<Reply, Fault> {
        script::call(&mut self.connection, &self.script, (&self.keys, node, &self.run), ask, &[])
    }

    /// The class's settings; `None` if the server has no such class.
    ///
    /// # Errors
    /// The server's, or they are of another version or program.
    pub fn settings(&mut self) -> Result<Option<Settings>, Fault> {
        let fields: HashMap<String, String> =
            self.query(redis::cmd("HGETALL").arg(&self.keys.class))?;
        if fields.is_empty() {
            return Ok(None);
        }
        let version = fields.get("version").and_then(|version| version.parse().ok());
        match version {
            Some(VERSION) => Settings::parse(&fields).map(Some).ok_or(Fault::NotOurs),
            Some(other) => Err(Fault::OtherVersion(other)),
            None => Err(Fault::NotOurs),
        }
    }

    /// Makes the class, or changes its settings. A lowered cap holds once the leases before have ended.
    ///
    /// # Errors
    /// The settings contradict each other, or the server's.
    pub fn set(&mut self, settings: &Settings) -> Result<(), Fault> {
        settings.check().map_err(Fault::Settings)?;
        let longest = match self.settings() {
            // A server that is restarted waits for the longest lease that may be out.
            Ok(Some(before)) => before.lease.max(settings.lease),
            Ok(None) | Err(Fault::OtherVersion(_)) => settings.lease,
            Err(fault) => return Err(fault),
        };
        let mut command = redis::cmd("HSET");
        command.arg(&self.keys.class).arg("version").arg(VERSION);
        for (name, value) in [
            ("cap", settings.cap.get()),
            ("floor", settings.floor.get()),
            ("nmax", settings.nodes),
            ("lease", settings.lease),
            ("longest", longest),
        ] {
            command.arg(name).arg(value);
        }
        self.query::<Value>(&command).map(drop)
    }

    /// Has the server write its data to its disk, so that a restart does not lose the settings.
    ///
    /// # Errors
    /// The server's.
    pub fn save(&mut self) -> Result<(), Fault> {
        let saved: RedisResult<Value> = redis::cmd("BGSAVE").query(&mut self.connection);
        match saved {
            // It is saving already, and will do so again: the settings are a change.
            Err(error) if error.to_string().contains("in progress") => Ok(()),
            Err(error) => Err(Fault::of(&error)),
            Ok(_) => Ok(()),
        }
    }

    /// All nodes with their leases.
    ///
    /// # Errors
    /// The server's, or the class is of another version or program.
    pub fn table(&mut self) -> Result<Table, Fault> {
        let settings = self.settings()?.ok_or(Fault::NoClass)?;
        let state: HashMap<String, String> =
            self.query(redis::cmd("HGETALL").arg(&self.keys.state))?;
        let clock = state.get("clock").and_then(|clock| clock.parse().ok()).unwrap_or(0);
        let learn: u64 = state.get("learn").and_then(|learn| learn.parse().ok()).unwrap_or(0);
        let mut nodes = self.nodes(clock)?;
        nodes.sort_by(|one, two| one.name.cmp(&two.name));
        nodes.dedup_by(|one, two| one.name == two.name);
        Ok(Table { settings, learning: learn.saturating_sub(clock), nodes })
    }

    fn nodes(&mut self, clock: u64) -> Result<Vec<NodeRow>, Fault> {
        let mut all = redis::cmd("ZRANGEBYSCORE");
        all.arg(&self.keys.expiry).arg("-inf").arg("+inf").arg("WITHSCORES");
        self.connection.allow(LONGEST_TABLE);
        let expires: HashMap<Vec<u8>, f64> = self.query(&all)?;
        let mut nodes = Vec::new();
        let mut cursor = 0u64;
        for _ in 0..PAGES {
            let mut command = redis::cmd("HSCAN");
            command.arg(&self.keys.nodes).arg(cursor).arg("COUNT").arg(PAGE);
            let (next, page): (u64, Vec<Entry>) = self.query(&command)?;
            nodes.extend(page.iter().filter_map(|(name, entry)| {
                table::row(name, entry, expires.get(name).copied(), clock)
            }));
            cursor = next;
            if cursor == 0 || nodes.len() > NODES_MAX as usize {
                break;
            }
        }
        Ok(nodes)
    }
}

fn run_of(told: &str) -> Option<String> {
    let run = told.lines().find_map(|line| line.trim_end().strip_prefix("run_id:"))?;
    let plain =
        !run.is_empty() && run.len() <= 64 && run.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then(|| run.to_owned())
}
