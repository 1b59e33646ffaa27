//! Looks at the machine: what do others do right now?
//!
//! Everything comes from files that any user may read: `/proc/stat`, `/proc/pressure` (proc(5)), and what
//! [`traffic`] reads. What cannot be read counts as zero, except that without `/proc/stat` nothing can be told. A look
//! costs about a tenth of a millisecond; half of that while the job runs.

use discnice_sys::pressure::{self, PressureResource};
use discnice_sys::traffic::{self, Disk, Interfaces};
use discnice_sys::{file, process, procfs};
use discnice_units::{Moment, Nanos};
use rustix::time::{ClockId, clock_gettime};

use crate::model::Signals;

/// What the job itself has used since it started; subtracted from the machine's totals.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Processor time in seconds.
    pub cpu: f64,
    /// Bytes read from disks.
    pub read: f64,
    /// Bytes dirtied, which will be written some time.
    pub written: f64,
}

impl Usage {
    /// The calling process's own, with all of its threads; of the disks' bytes also what children did
    /// that it has waited for.
    #[must_use]
    pub fn own() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        let (own, children) = (process::usage(), process::children_usage());
        let read = own.read as f64 + children.read as f64;
        Self { cpu, read, written: own.written as f64 + children.written as f64 }
    }

    /// What was used since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu - earlier.cpu,
            read: self.read - earlier.read,
            written: self.written - earlier.written,
        }
    }
}

/// Bytes of block devices.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Traffic {
    read: f64,
    written: f64,
}

/// The machine's totals since boot, in seconds and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Totals {
    cpu: f64,
    disks: Traffic,
    loops: Traffic,
    /// The largest of all disks' times with requests in flight.
    busiest_disk: f64,
}

/// What a job raises that runs, so that it tells of others only while the job is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Rest {
    network: f64,
    cpu_stalled: f64,
    io_stalled: f64,
    memory_stalled: f64,
}

impl Rest {
    fn now() -> Self {
        let network = traffic::network().map_or(0.0, |seen| both_ways(&seen));
        let [cpu_stalled, io_stalled, memory_stalled] = stalls().unwrap_or_default();
        Self { network, cpu_stalled, io_stalled, memory_stalled }
    }

    /// Adds to `signals` what happened in the `seconds` since `was`.
    fn tell(&self, was: &Self, seconds: f64, signals: Signals) -> Signals {
        let rate = |of: fn(&Self) -> f64| ((of(self) - of(was)) / seconds).max(0.0);
        Signals {
            network: rate(|one| one.network),
            cpu_pressure_frac: rate(|one| one.cpu_stalled),
            io_pressure_frac: rate(|one| one.io_stalled),
            memory_pressure_frac: rate(|one| one.memory_stalled),
            ..signals
        }
    }
}

/// For how long some task of the machine has waited since boot, in seconds: for processors, disks, memory.
type Stalls = [f64; 3];

/// `None` where the kernel keeps no such account.
fn stalls() -> Option<Stalls> {
    let total = |resource| pressure::of(resource).map(|pressure| pressure.total.as_secs_f64());
    Some([
        total(PressureResource::Cpu)?,
        total(PressureResource::Io)?,
        total(PressureResource::Memory)?,
    ])
}

/// What the job does at a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pose {
    /// The job runs: network traffic and pressure stay zero in the signals.
    Running,
    /// The job does nothing.
    Suspended,
}

impl Totals {
    /// `None` where not even `/proc/stat` can be read.
    fn now() -> Option<Self> {
        let mut totals = Self { cpu: busy_cpu()?, ..Self::default() };
        let _ = traffic::disks(|disk| totals.add(&disk));
        Some(totals)
    }

    /// Adds a disk; neither partitions nor what lies on other disks. What is beneath a loop device may be no disk of this
    /// machine, but a file that a file server or a program keeps; or a disk, where its traffic shows again.
    fn add(&mut self, disk: &Disk<'_>) {
        let traffic = match (disk.is_physical(), disk.is_loop()) {
            (true, _) => &mut self.disks,
            (_, true) => &mut self.loops,
            _ => return,
        };
        traffic.read += disk.moved.inward as f64;
        traffic.written += disk.moved.outward as f64;
        self.busiest_disk = self.busiest_disk.max(disk.busy.as_secs_f64());
    }

    /// What was read and written since `was`: by disks, or by loop devices where those moved more,
    /// beneath which then is no disk.
    fn traffic_since(&self, was: &Self) -> Traffic {
        let moved = |of: fn(&Traffic) -> f64| {
            let since = |now: &Traffic, was: &Traffic| (of(now) - of(was)).max(0.0);
            since(&self.disks, &was.disks).max(since(&self.loops, &was.loops))
        };
        Traffic { read: moved(|one| one.read), written: moved(|one| one.written) }
    }
}

/// Longer than the first line of `/proc/stat`.
const LINE: usize = 256;

/// Processor seconds that the machine was busy for; `None` if it does not tell.
fn busy_cpu() -> Option<f64> {
    let mut line = [0; LINE];
    let length = file::read_small(c"/proc/stat", &mut line).ok()?;
    busy_in(str::from_utf8(line.get(..length)?).ok()?)
}

/// Busy processor seconds in the first line of `/proc/stat`: all but idle, iowait and guest.
fn busy_in(text: &str) -> Option<f64> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_ascii_whitespace().filter_map(|f| f.parse().ok()).collect();
    let busy: f64 =
        ticks.iter().take(8).enumerate().filter(|(i, _)| *i != 3 && *i != 4).map(|t| t.1).sum();
    (ticks.len() >= 5).then_some(busy / f64::from(procfs::TICKS))
}

fn both_ways(seen: &Interfaces) -> f64 {
    seen.bytes.inward as f64 + seen.bytes.outward as f64
}

/// Turns totals into rates of what others do.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    last: Option<(Moment, Totals, Usage)>,
    rest: Option<(Moment, Rest)>,
    signals: Option<(Pose, Signals)>,
    /// What was waited for at the last of [`Watch::stalled_frac`].
    stalled: Option<(Moment, Stalls)>,
    /// Bytes that the job dirtied and that no disk has seen yet: their writing is the job's.
    owed: f64,
    /// Bytes that the job's account has and that the disk had not read at the last look.
    in_flight: f64,
}

/// Two looks closer than this give the first one's result: processor ticks are 10 ms.
const SHORTEST: Nanos = Nanos(200_000_000);
/// What was waited for over longer times is no answer to what slows the job down now.
const LONGEST_STALL: Nanos = Nanos(5 * Nanos::SECOND.0);
/// What was looked at longer ago than this is of before the suspension.
const LONGEST: Nanos = Nanos::SECOND;

impl Watch {
    /// Returns what others did since the last look; `own` is what the job used so far. `None` at
    /// first, at the first look of a suspension, and where it cannot be told.
    pub fn look(&mut self, at: Moment, own: Usage, pose: Pose) -> Option<Signals> {
        if let Some((last, ..)) = self.last
            && at.since(last) < SHORTEST
        {
            // A suspended thread's look has what a running one asks for, and more.
            let serves = |(of, _): &(Pose, _)| *of == pose || pose == Pose::Running;
            return self.signals.filter(serves).map(|(_, signals)| signals);
        }
        let totals = Totals::now()?;
        let mut signals = self.last.map(|(last, was, used)| {
            self.rates(at.since(last).as_secs_f64(), &was, &totals, &used, &own)
        });
        if pose == Pose::Suspended {
            signals = signals.and_then(|signals| self.look_at_the_rest(at, signals));
        }
        self.last = Some((at, totals, own));
        self.signals = signals.map(|signals| (pose, signals));
        signals
    }

    fn look_at_the_rest(&mut self, at: Moment, signals: Signals) -> Option<Signals> {
        let rest = Rest::now();
        let (last, was) = self.rest.replace((at, rest))?;
        let since = at.since(last);
        (since < LONGEST).then(|| rest.tell(&was, since.as_secs_f64(), signals))
    }

    /// Returns for which share of the time since the last call some task waited for a processor, a disk or memory, whichever it
    /// was longest. `None` if that call was long ago, or where the kernel keeps no such account.
    pub fn stalled_frac(&mut self, at: Moment) -> Option<f64> {
        let now = stalls()?;
        let (last, was) = self.stalled.replace((at, now))?;
        let time = at.since(last);
        let longest = now.iter().zip(was).map(|(now, was)| now - was).fold(0.0, f64::max);
        (time > Nanos(0) && time < LONGEST_STALL).then(|| longest / time.as_secs_f64())
    }

    /// When the last look was taken.
    #[must_use]
    pub fn looked_at(&self) -> Moment {
        self.last.map_or(Moment::FIRST, |(at, ..)| at)
    }

    fn rates(
        &mut self,
        seconds: f64,
        was: &Totals,
        now: &Totals,
        used: &Usage,
        own: &Usage,
    ) -> Signals {
        let rate = |now: f64, was: f64| ((now - was) / seconds).max(0.0);
        self.owed += (own.written - used.written).max(0.0);
        let Traffic { read, written } = now.traffic_since(was);
        let paid = written.min(self.owed);
        self.owed -= paid;
        let read = self.read_by_others(read, (own.read - used.read).max(0.0));
        // While the job's own data is being written, a busy disk says nothing of others.
        let busy = if paid > 0.0 { 0.0 } else { rate(now.busiest_disk, was.busiest_disk) };
        Signals {
            cpu: rate(now.cpu - own.cpu, was.cpu - used.cpu),
            disk: (read + written - paid) / seconds,
            disk_busy_frac: busy,
            ..Signals::default()
        }
    }

    /// Returns the bytes that disks have read and the job did not ask for. The job's account counts
    /// a request when it is made, the disk when it is done: one window of read-ahead at a look
    /// would count as others'. What is older than a look was read from what is no disk here.
    fn read_by_others(&mut self, read: f64, own: f64) -> f64 {
        let due = self.in_flight + own;
        self.in_flight = (due - read).clamp(0.0, own);
        (read - due).max(0.0)
    }
}

#[cfg(test)]
mod tests;
