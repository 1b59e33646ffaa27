//! Machines that exist only here, with clocks of their own, and the real script on a real server.
//!
//! Time is the model's: the script reads it from two more arguments, so half an hour passes in seconds and a run can
//! be repeated.

use discnice_fleet::node::Node;
use discnice_fleet::script::{self, Ask, Keys, Reply};
use discnice_fleet::settings;
use discnice_fleet::{Fault, Settings};
use discnice_units::{Moment, Nanos};
use redis::Connection;

use super::server::Server;

/// Replaces the server's clock by the model's.
const CLOCK: (&str, &str) = ("redis.call('TIME')", "{ARGV[8], ARGV[9]}");

pub const SECOND: u64 = Nanos::SECOND.0;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is answered.
    Answered,
    /// It never arrives.
    Lost,
    /// It arrives, and its reply does not.
    Unanswered,
    /// It arrives later, when nothing waits for its reply any more ([`Model::deliver`]).
    Late,
}

/// A machine.
pub struct Machine {
    pub name: String,
    pub node: Node,
    /// How fast its clock runs.
    pub speed: f64,
    /// Which server it calls.
    pub server: usize,
    pub wants: u64,
    /// Machines that ended have no rate.
    pub lives: bool,
    /// Nothing but its members runs until then.
    pub stopped_until: Moment,
    /// No call of it arrives until then.
    pub cut_until: Moment,
    /// How often it was told that there are too many.
    pub refused: u32,
}

/// A server, in one of its lives.
pub struct Master {
    pub connection: Option<Connection>,
    pub run: String,
    /// By how much its clock was set, in milliseconds.
    pub set_by: i64,
}

/// The server in one of its lives, and its clock right.
pub fn master(server: &Server, life: u64) -> Master {
    Master { connection: Some(server.connect()), run: format!("life{life}"), set_by: 0 }
}

/// All of it.
pub struct Model {
    pub settings: Settings,
    pub keys: Keys,
    pub now: Moment,
    pub machines: Vec<Machine>,
    pub masters: Vec<Master>,
    /// Calls on their way: machine, server and its life, call.
    late: Vec<(usize, usize, String, Ask)>,
    script: redis::Script,
    born: u64,
    pub calls: u64,
}

/// The script with the model's clock, and each of `changes` made to it.
pub fn script(changes: &[(&str, &str)]) -> redis::Script {
    let text = std::iter::once(&CLOCK).chain(changes).fold(
        script::LEASE.to_owned(),
        |text, (from, to)| {
            assert!(text.contains(from), "the script has no {from}");
            text.replace(from, to)
        },
    );
    redis::Script::new(&text)
}

impl Model {
    pub fn new(settings: Settings, masters: Vec<Master>, script: redis::Script) -> Self {
        settings.check().unwrap();
        let mut model = Self {
            settings,
            keys: Keys::of("model"),
            now: Moment(1_000 * Nanos::SECOND.0),
            machines: Vec::new(),
            masters,
            late: Vec::new(),
            script,
            born: 0,
            calls: 0,
        };
        (0..model.masters.len()).for_each(|place| model.set(place));
        model
    }

    /// What `fleet set` writes.
    pub fn set(&mut self, place: usize) {
        let Settings { cap, floor, nodes, lease } = self.settings;
        let Some(connection) = &mut self.masters[place].connection else { return };
        let mut command = redis::cmd("HSET");
        command.arg(&self.keys.class).arg("version").arg(settings::VERSION);
        let (cap, floor) = (cap.get(), floor.get());
        for (name, value) in
            [("cap", cap), ("floor", floor), ("nmax", nodes), ("lease", lease), ("longest", lease)]
        {
            command.arg(name).arg(value);
        }
        command.query::<()>(connection).unwrap();
    }

    pub fn add(&mut self, speed: f64, wants: u64) -> usize {
        self.machines.push(Machine {
            name: String::new(),
            node: Node::new(100, (0, Moment::FIRST)),
            speed,
            server: 0,
            wants,
            lives: false,
            stopped_until: Moment::FIRST,
            cut_until: Moment::FIRST,
            refused: 0,
        });
        let place = self.machines.len() - 1;
        self.start(place);
        place
    }

    /// A machine starts, or starts again after it ended: its class is a new one.
    pub fn start(&mut self, place: usize) {
        self.born += 1;
        let machine = &mut self.machines[place];
        machine.name = format!("machine-{place}-{}", self.born);
        machine.node = Node::new(100, (0, Moment::FIRST));
        machine.lives = true;
    }

    /// The machine's clock.
    pub fn local(&self, place: usize) -> Moment {
        Moment((self.now.0 as f64 * self.machines[place].speed) as u64)
    }

    /// When the machine's clock shows this.
    pub fn true_time(&self, place: usize, local: Moment) -> Nanos {
        Nanos((local.0 as f64 / self.machines[place].speed).ceil() as u64)
    }

    /// Bytes a second in force on all machines now.
    pub fn in_force(&self) -> u64 {
        let lives = |place: &usize| self.machines[*place].lives;
        let floor = self.settings.floor.get();
        let rate = |place: usize| floor + self.machines[place].node.has(self.local(place));
        (0..self.machines.len()).filter(lives).map(rate).sum()
    }

    pub fn granted(&self) -> u64 {
        self.in_force()
            - self.settings.floor.get()
                * self.machines.iter().filter(|one| one.lives).count() as u64
    }

    /// A machine calls its server.
    pub fn call(&mut self, place: usize, way: Way, chance: u64) -> Option<Reply> {
        let (sent, now) = (self.local(place), self.now);
        let machine = &mut self.machines[place];
        let ask = machine.node.ask(sent, machine.wants);
        let server = machine.server;
        let way = if machine.cut_until > now { Way::Lost } else { way };
        match way {
            Way::Lost => None,
            Way::Late => {
                let run = self.masters[server].run.clone();
                self.late.push((place, server, run, ask));
                None
            }
            Way::Unanswered => self.arrive(place, server, &ask).map(|_| Reply::Stale),
            Way::Answered => {
                let reply = self.arrive(place, server, &ask)?;
                if let Reply::Granted(granted) = reply {
                    self.machines[place].node.take(&ask, sent, &granted, chance);
                }
                Some(reply)
            }
        }
    }

    /// A machine says that it leaves.
    pub fn leave(&mut self, place: usize, way: Way) {
        let local = self.local(place);
        let server = self.machines[place].server;
        let ask = self.machines[place].node.leave(local);
        if way == Way::Answered {
            let _ = self.arrive(place, server, &ask);
        }
        self.machines[place].lives = false;
    }

    /// One of the calls that are late arrives.
    pub fn deliver(&mut self, which: usize) {
        if self.late.is_empty() {
            return;
        }
        let (place, server, run, ask) = self.late.swap_remove(which % self.late.len());
        // With the server's life its connections ended.
        if self.masters[server].run == run {
            let _ = self.arrive(place, server, &ask);
        }
    }

    pub fn is_any_late(&self) -> bool {
        !self.late.is_empty()
    }

    fn arrive(&mut self, place: usize, server: usize, ask: &Ask) -> Option<Reply> {
        let master = &mut self.masters[server];
        let wall = 1_700_000_000_000 + self.now.0 / 1_000_000;
        let wall = wall.saturating_add_signed(master.set_by);
        let time = [wall / 1000, wall % 1000 * 1000];
        let connection = master.connection.as_mut()?;
        let names = (&self.keys, &*self.machines[place].name, &*master.run);
        self.calls += 1;
        match script::call(connection, &self.script, names, ask, &time) {
            Ok(reply) => Some(reply),
            Err(Fault::Full(_)) => {
                self.machines[place].refused += 1;
                None
            }
            Err(fault) => panic!("{fault}"),
        }
    }
}
