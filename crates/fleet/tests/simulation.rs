//! A thousand machines, faults all the time, and one thing that must hold after each step: what all of them may move
//! together is at most the cap.

mod common;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use common::model::{Master, Model, SECOND, Way, master, script};
use common::server::{self, Server};
use discnice_fleet::Settings;
use discnice_requirements::skip;
use discnice_units::{Moment, Nanos, Rate};
use fastrand::Rng;

const MACHINES: usize = 1000;
const CAP: u64 = 1_000_000_000;
/// Minutes for which rounds are made, by the environment.
const MINUTES: &str = "DISCNICE_FLEET_MINUTES";

fn settings(lease: u64) -> Settings {
    let (cap, floor) = (Rate::per_second(CAP), Rate::per_second(100_000));
    Settings::new(cap, Some(floor), Some(MACHINES as u64), Some(lease)).unwrap()
}

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A machine calls its server, unless another call was planned since.
    Call(usize, u64),
    Arrival,
    Fault,
    Restart,
}

struct World {
    model: Model,
    server: Server,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    planned: Vec<u64>,
    count: u64,
    random: Rng,
    life: u64,
    highest: u64,
    faults: u64,
    restarts: u64,
}

impl World {
    fn new(seed: u64, lease: u64) -> Self {
        let server = Server::start(&[]);
        let mut model = Model::new(settings(lease), vec![master(&server, 0)], script(&[]));
        let mut random = Rng::with_seed(seed);
        for place in 0..MACHINES {
            // Two clocks differ by at most 4 %.
            let speed = [0.98, 1.0, 1.02][place % 3];
            model.add(speed, random.u64(0..4 * CAP / MACHINES as u64));
        }
        let (events, planned) = (BinaryHeap::new(), vec![0; MACHINES]);
        let mut world = Self {
            model,
            server,
            events,
            planned,
            count: 0,
            random,
            life: 0,
            highest: 0,
            faults: 0,
            restarts: 0,
        };
        for place in 0..MACHINES {
            let at = world.random.u64(0..lease * 1_000_000 / 6);
            world.plan_call(place, world.model.now.0 + at);
        }
        world.plan(world.model.now.0 + SECOND, Event::Fault);
        world
    }

    fn plan(&mut self, at: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, event)));
    }

    fn plan_call(&mut self, place: usize, at: u64) {
        self.planned[place] += 1;
        self.plan(at, Event::Call(place, self.planned[place]));
    }

    fn run(&mut self, seconds: u64) {
        let end = self.model.now.0 + seconds * SECOND;
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > end {
                break;
            }
            self.model.now = Moment(at);
            match event {
                Event::Call(place, planned) if self.planned[place] == planned => self.call(place),
                Event::Call(..) => {}
                Event::Arrival => {
                    let which = self.random.usize(..);
                    self.model.deliver(which);
                }
                Event::Fault => self.fault(),
                Event::Restart => self.restart(),
            }
            let sum = self.model.in_force();
            self.highest = self.highest.max(sum);
            assert!(
                sum <= CAP,
                "{sum} of {CAP} at {} s after {event:?}",
                at as f64 / SECOND as f64
            );
        }
    }

    fn call(&mut self, place: usize) {
        let machine = &self.model.machines[place];
        if !machine.lives {
            return;
        }
        if machine.stopped_until > self.model.now {
            let then = machine.stopped_until.0;
            return self.plan_call(place, then);
        }
        let way = match self.random.u32(0..100) {
            0..5 => Way::Unanswered,
            5..7 => Way::Lost,
            7..9 => Way::Late,
            _ => Way::Answered,
        };
        let chance = self.random.u64(..);
        self.model.call(place, way, chance);
        if way == Way::Late && self.model.is_any_late() {
            let at = self.model.now.0 + self.random.u64(SECOND / 10..4 * SECOND);
            self.plan(at, Event::Arrival);
        }
        let due = self.model.true_time(place, self.model.machines[place].node.due());
        self.plan_call(place, due.0.max(self.model.now.0 + 1));
    }

    /// One of what goes wrong.
    fn fault(&mut self) {
        self.faults += 1;
        let (now, lease) = (self.model.now, self.model.settings.lease * 1_000_000);
        let place = self.random.usize(..MACHINES);
        match self.random.u32(0..100) {
            // A machine ends, and another one starts; it is a new node.
            0..30 => {
                let way = if self.random.bool() { Way::Answered } else { Way::Lost };
                self.model.leave(place, way);
                self.model.start(place);
                self.plan_call(place, now.0 + SECOND);
            }
            // The process that holds the lease is stopped for up to a minute.
            30..50 => {
                let until = now.plus(Nanos(self.random.u64(0..60 * SECOND)));
                self.model.machines[place].stopped_until = until;
            }
            // A part of the network is cut off.
            50..60 => {
                let until = now.plus(Nanos(self.random.u64(0..2 * lease)));
                let (first, many) = (place, self.random.usize(1..MACHINES / 5));
                for one in first..(first + many).min(MACHINES) {
                    self.model.machines[one].cut_until = until;
                }
            }
            60..90 => {
                for _ in 0..MACHINES / 10 {
                    let place = self.random.usize(..MACHINES);
                    let greedy = self.random.bool();
                    let wants = if greedy { CAP } else { self.random.u64(0..CAP / 500) };
                    self.model.machines[place].wants = wants;
                }
            }
            // The server's clock is set back.
            90..97 => self.model.masters[0].set_by -= self.random.i64(0..3_600_000),
            _ => self.kill(),
        }
        // As many in a lease, however long that is; else the server would learn all the time.
        let next = now.0 + self.random.u64(0..lease / 6);
        self.plan(next, Event::Fault);
    }

    /// kill -9; it comes back with nothing, or with what it had some time ago.
    fn kill(&mut self) {
        if self.model.masters[0].connection.is_none() {
            return;
        }
        match self.random.u32(0..3) {
            0 => self.server.lose_disk(),
            1 => {
                let connection = self.model.masters[0].connection.as_mut().unwrap();
                redis::cmd("SAVE").query::<()>(connection).unwrap();
            }
            _ => {}
        }
        self.model.masters[0].connection = None;
        self.server.kill();
        let lease = self.model.settings.lease * 1_000_000;
        let at = self.model.now.0 + self.random.u64(0..lease + lease / 2);
        self.plan(at, Event::Restart);
    }

    fn restart(&mut self) {
        self.server.restart();
        self.life += 1;
        self.restarts += 1;
        let set_by = self.model.masters[0].set_by;
        self.model.masters[0] = Master { set_by, ..master(&self.server, self.life) };
        // Settings are kept on disk; here they may be lost as well.
        self.model.set(0);
    }

    fn tell(&mut self, took: Duration) {
        let cost = self.server_time();
        println!(
            "{} calls, {} faults, {} restarts of the server, highest {:.4} of the cap, {cost}, {:.1} s",
            self.model.calls,
            self.faults,
            self.restarts,
            self.highest as f64 / CAP as f64,
            took.as_secs_f64()
        );
    }

    /// Processor time of the server for each call since it was started.
    fn server_time(&mut self) -> String {
        let Some(connection) = &mut self.model.masters[0].connection else {
            return "server down".into();
        };
        let told: String = redis::cmd("INFO").arg("commandstats").query(connection).unwrap();
        let line = told.lines().find(|line| line.starts_with("cmdstat_evalsha"));
        let each = line.and_then(|line| line.split("usec_per_call=").nth(1)?.split(',').next());
        format!("{} us of the server a call", each.unwrap_or("?"))
    }
}

#[test]
fn a_thousand_machines_never_exceed_the_cap() {
    if !server::is_there() {
        skip!("no redis-server, or no setpriv");
    }
    let minutes = std::env::var(MINUTES).ok().map(|minutes| minutes.parse::<u64>().unwrap());
    let begun = Instant::now();
    let mut seed = 1;
    loop {
        // Leases of 30 s as usual where there is time, else of 6 s, of which many end in half a minute.
        let (lease, seconds) = if minutes.is_some() { (30_000, 600) } else { (6_000, 30) };
        let round = Instant::now();
        let mut world = World::new(seed, lease);
        println!("seed {seed}");
        world.run(seconds);
        world.tell(round.elapsed());
        assert!(world.highest > CAP / 2, "most of it was in use at times");
        seed += 1;
        if begun.elapsed() >= Duration::from_secs(minutes.unwrap_or(0) * 60) {
            break;
        }
    }
}
