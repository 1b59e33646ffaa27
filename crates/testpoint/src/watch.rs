//! Looks at the machine: what do others do right now?
//!
//! Everything comes from files that any user may read: `/proc/stat`, `/proc/diskstats`,
//! `/proc/net/dev` and `/proc/pressure` (proc(5)). What cannot be read counts as zero, except that
//! without `/proc/stat` nobody can say anything. A look costs about a tenth of a millisecond.

use std::ffi::CStr;

use discnice_manners::Signals;
use discnice_sys::{file, process, procfs};
use discnice_units::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Clock ticks a second in `/proc/stat`; 100 on every Linux that user space can see.
const TICKS: f64 = 100.0;
/// Sectors of `/proc/diskstats` are 512 bytes whatever the device.
const SECTOR: f64 = 512.0;
/// Block devices whose traffic shows again on the device beneath.
const STACKED: [&str; 6] = ["loop", "ram", "zram", "dm-", "md", "sr"];

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
    /// The calling process's own, with all of its threads.
    #[must_use]
    pub fn own() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        let [read, written] = procfs::io(process::id()).unwrap_or_default().bytes;
        Self { cpu, read: read as f64, written: written as f64 }
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

/// The machine's totals since boot, in seconds and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Totals {
    cpu: f64,
    read: f64,
    written: f64,
    /// The largest of all disks' times with requests in flight.
    busiest_disk: f64,
    network: f64,
    cpu_stalled: f64,
    io_stalled: f64,
    memory_stalled: f64,
}

impl Totals {
    /// `None` where not even `/proc/stat` can be read.
    fn now(text: &mut Text) -> Option<Self> {
        let mut totals = Self { cpu: busy_cpu(text.read(c"/proc/stat"))?, ..Self::default() };
        totals.disks(text.read(c"/proc/diskstats"));
        totals.network = network(text.read(c"/proc/net/dev"));
        totals.cpu_stalled = stalled(text.read(c"/proc/pressure/cpu"));
        totals.io_stalled = stalled(text.read(c"/proc/pressure/io"));
        totals.memory_stalled = stalled(text.read(c"/proc/pressure/memory"));
        Some(totals)
    }

    fn disks(&mut self, text: &str) {
        for line in text.lines() {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let number = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok());
            let Some(name) = fields.get(2) else { continue };
            // A partition follows its disk, whose name it begins with.
            if STACKED.iter().any(|stacked| name.starts_with(stacked)) || is_partition(name) {
                continue;
            }
            self.read += number(5).unwrap_or(0.0) * SECTOR;
            self.written += number(9).unwrap_or(0.0) * SECTOR;
            self.busiest_disk = self.busiest_disk.max(number(12).unwrap_or(0.0) / 1e3);
        }
    }
}

/// `sda1`, `vda15`, `nvme0n1p2`, `mmcblk0p1` are partitions; `sda`, `nvme0n1`, `mmcblk0` are not.
fn is_partition(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == name.len() {
        return false;
    }
    let numbered = name.starts_with("nvme") || name.starts_with("mmcblk");
    if numbered { stem.ends_with('p') } else { true }
}

/// Busy processor seconds in the first line of `/proc/stat`: all but idle, iowait and guest.
fn busy_cpu(text: &str) -> Option<f64> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_ascii_whitespace().filter_map(|f| f.parse().ok()).collect();
    let busy: f64 =
        ticks.iter().take(8).enumerate().filter(|(i, _)| *i != 3 && *i != 4).map(|t| t.1).sum();
    (ticks.len() >= 5).then_some(busy / TICKS)
}

/// Bytes over all interfaces but the loopback, both ways.
fn network(text: &str) -> f64 {
    let interfaces = text.lines().filter_map(|line| line.split_once(':'));
    interfaces
        .filter(|(name, _)| name.trim() != "lo")
        .map(|(_, counters)| {
            let fields: Vec<f64> =
                counters.split_ascii_whitespace().filter_map(|f| f.parse().ok()).collect();
            fields.first().unwrap_or(&0.0) + fields.get(8).unwrap_or(&0.0)
        })
        .sum()
}

/// Seconds in which some task was stalled, from a file of `/proc/pressure`.
fn stalled(text: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with("some"));
    let total = line.and_then(|line| line.split_once("total=")).map(|(_, total)| total);
    total.and_then(|total| total.trim().parse::<f64>().ok()).unwrap_or(0.0) / 1e6
}

/// Room for the longest of the files on a large machine; what is beyond it is not looked at.
const ROOM: usize = 64 * 1024;

/// Where files are read to, over and over.
#[derive(Debug, Clone, Default)]
struct Text(Vec<u8>);

impl Text {
    /// Empty where the file cannot be read.
    fn read(&mut self, path: &CStr) -> &str {
        self.0.resize(ROOM, 0);
        let length = file::read_all(path, &mut self.0).unwrap_or(0);
        std::str::from_utf8(&self.0[..length]).unwrap_or_default()
    }
}

/// Turns totals into rates of what others do.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    text: Text,
    last: Option<(Nanos, Totals, Usage)>,
    signals: Option<Signals>,
    /// Bytes that the job dirtied and that no disk has seen yet: their writing is the job's.
    owed: f64,
}

/// Two looks closer than this give the first one's result: processor ticks are 10 ms.
const SHORTEST: Nanos = Nanos(200_000_000);

impl Watch {
    /// What others did since the last look; `own` is what the job used so far. `None` at first, and
    /// where nobody can say.
    pub fn look(&mut self, at: Nanos, own: Usage) -> Option<Signals> {
        if let Some((last, ..)) = self.last
            && at.minus(last) < SHORTEST
        {
            return self.signals;
        }
        let totals = Totals::now(&mut self.text)?;
        self.signals = self.last.map(|(last, was, used)| {
            self.rates(at.minus(last).as_secs_f64(), &was, &totals, &used, &own)
        });
        self.last = Some((at, totals, own));
        self.signals
    }

    /// When the last look was taken.
    #[must_use]
    pub fn looked_at(&self) -> Nanos {
        self.last.map_or(Nanos(0), |(at, ..)| at)
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
        let written = (now.written - was.written).max(0.0);
        let paid = written.min(self.owed);
        self.owed -= paid;
        let read = (now.read - was.read - (own.read - used.read)).max(0.0);
        // While the job's own data is being written, a busy disk says nothing of others.
        let busy = if paid > 0.0 { 0.0 } else { rate(now.busiest_disk, was.busiest_disk) };
        Signals {
            cpu: rate(now.cpu - own.cpu, was.cpu - used.cpu),
            disk: (read + written - paid) / seconds,
            disk_busy_frac: busy,
            network: rate(now.network, was.network),
            cpu_pressure_frac: rate(now.cpu_stalled, was.cpu_stalled),
            io_pressure_frac: rate(now.io_stalled, was.io_stalled),
            memory_pressure_frac: rate(now.memory_stalled, was.memory_stalled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_formats() {
        let stat = "cpu  100 5 200 9000 77 3 4 8 50 0\ncpu0 1 2 3\n";
        assert_eq!(busy_cpu(stat), Some(3.2));
        assert_eq!(busy_cpu(""), None);
        let dev = "Inter-| Receive\n face |bytes\n  lo: 9 0 0 0 0 0 0 0 9 0\neth0: 70 1 0 0 0 0 0 0 30 1\n";
        assert!((network(dev) - 100.0).abs() < 1e-9);
        let some = "some avg10=0.72 avg60=1.82 avg300=3.14 total=2500000\nfull avg10=0 total=9\n";
        assert!((stalled(some) - 2.5).abs() < 1e-9);
        let mut totals = Totals::default();
        totals.disks(
            "254 0 vda 9 0 10 0 9 0 20 0 0 3000 1\n254 1 vda1 9 0 10 0 9 0 20 0 0 9 1\n\
             7 0 loop0 9 0 10 0 9 0 20 0 0 9000 1\n259 0 nvme0n1 1 0 2 0 1 0 2 0 0 1 1\n",
        );
        assert!((totals.read - 12.0 * 512.0).abs() < 1e-9, "{totals:?}");
        assert!((totals.busiest_disk - 3.0).abs() < 1e-9);
    }

    #[test]
    fn own_work_is_not_others() {
        let mut watch = Watch::default();
        let was = Totals::default();
        let now = Totals { cpu: 1.0, written: 5e6, read: 2e6, busiest_disk: 0.9, ..was };
        let own = Usage { cpu: 0.9, read: 2e6, written: 8e6 };
        let signals = watch.rates(1.0, &was, &now, &Usage::default(), &own);
        assert!((signals.cpu - 0.1).abs() < 1e-9 && signals.disk.abs() < 1e-9, "{signals:?}");
        // The rest of what the job dirtied is written while it is suspended, and 1 MB more.
        let later = Totals { written: 9e6, ..now };
        let signals = watch.rates(1.0, &now, &later, &own, &own);
        assert!((signals.disk - 1e6).abs() < 1e-9, "{signals:?}");
    }

    #[test]
    fn a_real_look_sees_a_real_spinner() {
        let mut watch = Watch::default();
        let mut child =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        assert!(watch.look(crate::clock::now(), Usage::own()).is_none());
        crate::clock::sleep(Nanos::from_millis(600));
        let signals = watch.look(crate::clock::now(), Usage::own());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(signals.unwrap().cpu > 0.3, "{signals:?}");
    }
}
