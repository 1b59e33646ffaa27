//! The script that grants leases: what it is asked, and what it answers.

use redis::{ConnectionLike, RedisResult, Value};

use crate::fault::Fault;
use crate::settings::VERSION;

/// The script itself; its head says what it promises.
pub const LEASE: &str = include_str!("lease.lua");
/// A longer reply is not the script's.
const LONGEST_REPLY: usize = 8;
/// Amounts that a sum of many is exact of.
const GREATEST: u64 = 1 << 50;

/// Keys of one class.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Settings, which `fleet set` alone writes.
    pub class: String,
    /// Sums.
    pub state: String,
    /// What each node has.
    pub nodes: String,
    /// When each node is forgotten.
    pub expiry: String,
}

impl Keys {
    /// Returns the keys of a class; all are in one slot of a cluster.
    #[must_use]
    pub fn of(class: &str) -> Self {
        let key = |part: &str| format!("discnice:{{{class}}}:{part}");
        Self {
            class: key("class"),
            state: key("lease:state"),
            nodes: key("lease:nodes"),
            expiry: key("lease:expiry"),
        }
    }
}

/// What a machine's user needs on the server, as an access list has it: leases to read and write, settings to read.
#[must_use]
pub fn permissions(class: &str) -> String {
    const COMMANDS: [&str; 17] = [
        "evalsha",
        "script|load",
        "info",
        "select",
        "ping",
        "time",
        "exists",
        "del",
        "hget",
        "hset",
        "hmget",
        "hdel",
        "hvals",
        "zadd",
        "zrem",
        "zcard",
        "zrangebyscore",
    ];
    const SHOWING: [&str; 2] = ["hgetall", "hscan"];
    let commands: Vec<String> =
        COMMANDS.iter().chain(&SHOWING).map(|command| format!("+{command}")).collect();
    let prefix = format!("discnice:{{{class}}}");
    format!("resetchannels ~{prefix}:lease:* %R~{prefix}:class -@all {}", commands.join(" "))
}

/// One call of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Rises with each call of a node.
    pub sequence: u64,
    /// Bytes a second of the node's lease now, beyond the floor.
    pub has: u64,
    /// Bytes a second that it could use, beyond the floor.
    pub wants: u64,
    /// Its part relative to others'; zero when it leaves.
    pub weight: u32,
}

/// A lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    /// Bytes a second beyond the floor.
    pub grant: u64,
    /// Bytes a second that any node of the fleet may always move.
    pub floor: u64,
    /// Milliseconds from when the call was made.
    pub lease: u64,
    /// Bytes a second of all nodes together.
    pub cap: u64,
    /// Nodes with a lease.
    pub nodes: u64,
    /// Bytes a second that the node would have were all others' shrinks free.
    pub entitled: u64,
    /// Milliseconds for which the server only renews what nodes report to have; zero usually.
    pub learning: u64,
}

/// What the script answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// A lease.
    Granted(Granted),
    /// A later call was answered already.
    Stale,
    /// The node is no longer of the fleet.
    Left,
}

/// Calls `script`, which is [`LEASE`] outside of tests, with `more` arguments after the usual ones.
///
/// # Errors
/// The server's, or what it answered is no lease.
pub fn call(
    connection: &mut impl ConnectionLike,
    script: &redis::Script,
    (keys, node, run): (&Keys, &str, &str),
    ask: &Ask,
    more: &[u64],
) -> Result<Reply, Fault> {
    let mut call = script.key(&keys.state);
    call.key(&keys.nodes).key(&keys.expiry);
    call.arg(VERSION).arg(node).arg(ask.sequence).arg(run);
    call.arg(ask.has.min(GREATEST)).arg(ask.wants.min(GREATEST)).arg(ask.weight);
    for one in more {
        call.arg(*one);
    }
    let reply: RedisResult<Value> = call.invoke(connection);
    parse(&reply.map_err(|error| Fault::of(&error))?)
}

/// What a reply of the script means. It is the server's word, so everything about it is checked.
///
/// # Errors
/// It says why there is no lease, or is no reply of the script.
pub fn parse(reply: &Value) -> Result<Reply, Fault> {
    let Value::Array(parts) = reply else { return Err(Fault::NotOurs) };
    if parts.len() > LONGEST_REPLY {
        return Err(Fault::NotOurs);
    }
    let word = parts.first().and_then(text).ok_or(Fault::NotOurs)?;
    let number = |place: usize| match parts.get(place) {
        Some(Value::Int(number)) => u64::try_from(*number).ok(),
        _ => None,
    };
    match word {
        "ok" => granted(number).map(Reply::Granted).ok_or(Fault::NotOurs),
        "stale" => Ok(Reply::Stale),
        "left" => Ok(Reply::Left),
        "unknown" => Err(Fault::NoClass),
        "full" => Err(Fault::Full(number(1).unwrap_or_default())),
        "version" => {
            let version = parts.get(1).and_then(text).and_then(|version| version.parse().ok());
            Err(Fault::OtherVersion(version.unwrap_or_default()))
        }
        _ => Err(Fault::NotOurs),
    }
}

fn granted(number: impl Fn(usize) -> Option<u64>) -> Option<Granted> {
    let granted = Granted {
        grant: number(1)?,
        floor: number(2)?,
        lease: number(3)?,
        cap: number(4)?,
        nodes: number(5)?,
        entitled: number(6)?,
        learning: number(7)?,
    };
    let within =
        granted.grant.checked_add(granted.floor)? <= granted.cap && granted.cap <= GREATEST;
    let lease = crate::settings::LEASES.contains(&granted.lease);
    (within && lease && granted.floor >= crate::settings::LEAST.get()).then_some(granted)
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(word: &str, numbers: &[i64]) -> Value {
        let word = Value::BulkString(word.as_bytes().to_vec());
        Value::Array([word].into_iter().chain(numbers.iter().copied().map(Value::Int)).collect())
    }

    #[test]
    fn only_a_possible_lease_is_believed() {
        let good = [500_000, 4096, 30_000, 1_000_000, 3, 700_000, 0];
        let parsed = parse(&reply("ok", &good)).unwrap();
        let Reply::Granted(granted) = parsed else { panic!("{parsed:?}") };
        assert_eq!((granted.grant, granted.entitled, granted.learning), (500_000, 700_000, 0));
        for (place, value) in
            [(0, -1), (0, 1_000_001), (1, 0), (2, 0), (2, i64::MAX), (3, i64::MAX)]
        {
            let mut bad = good;
            bad[place] = value;
            assert_eq!(parse(&reply("ok", &bad)), Err(Fault::NotOurs), "{bad:?}");
        }
        assert_eq!(parse(&reply("ok", &good[..6])), Err(Fault::NotOurs));
        assert_eq!(parse(&reply("ok", &[1; 100])), Err(Fault::NotOurs));
        for other in [Value::Nil, Value::Okay, Value::Int(3), Value::Array(Vec::new())] {
            assert_eq!(parse(&other), Err(Fault::NotOurs));
        }
    }

    #[test]
    fn refusals_have_reasons() {
        assert_eq!(parse(&reply("unknown", &[])), Err(Fault::NoClass));
        assert_eq!(parse(&reply("full", &[100])), Err(Fault::Full(100)));
        assert_eq!(parse(&reply("foreign", &[])), Err(Fault::NotOurs));
        assert_eq!(parse(&reply("stale", &[])), Ok(Reply::Stale));
    }
}
