//! What all threads of a process share: targets, their file, and the look at the machine.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use discnice_units::{Moment, Nanos};

use crate::model::{BadSetting, Config, Setting, Signals, Targets, settings};
use crate::testpoint::arbiter::Seat;
use crate::testpoint::store::Store;
use crate::testpoint::watch::{Pose, Usage, Watch};
use crate::testpoint::{at_exit, clock, paths};

/// Targets are saved this often, and at exit.
const SAVE_EVERY: Nanos = Nanos(60 * Nanos::SECOND.0);
/// While the job runs, the machine is looked at this often.
const LOOK_EVERY: Nanos = Nanos(2 * Nanos::SECOND.0);
/// Until it is this old, a job looks more often, to start its calibration with what is known.
const EARLY_LIFE: Nanos = Nanos(10 * Nanos::SECOND.0);
const LOOK_SOON: Nanos = Nanos(250_000_000);

/// What a program may set before its first testpoint.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Parameters of the regulation.
    pub config: Config,
    //= ms-manners/4.1-frequency
    /// Testpoints closer together than this return at once; default 100 ms.
    pub interval: Nanos,
    /// Set if polite threads of this user take turns; default true.
    pub take_turns: bool,
    /// Directory for targets; `None` keeps none. Default [`paths::targets`].
    pub targets: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config: Config::default(),
            interval: Nanos::from_millis(100),
            take_turns: true,
            targets: paths::targets(),
        }
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();
/// Set apart from [`SETTINGS`], which a job's name needs already.
static CONFIG: OnceLock<Config> = OnceLock::new();
static JOB: Mutex<Option<Job>> = Mutex::new(None);
/// The process that has locked [`JOB`] last.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Sets `settings` for this process.
///
/// # Errors
/// Gives them back where a testpoint has been made already or `configure` called before, and
/// where the parameters would not make a stable system.
pub fn configure(settings: Settings) -> Result<(), Box<Settings>> {
    if settings.config.check().is_err() {
        return Err(Box::new(settings));
    }
    SETTINGS.set(settings).map_err(Box::new)
}

/// Why [`set`] refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotSet {
    /// A setting cannot be used.
    Bad(BadSetting),
    /// A testpoint has been made already, or the settings were made before.
    TooLate,
}

impl fmt::Display for NotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bad(error) => error.fmt(f),
            Self::TooLate => f.write_str("set once, before the first testpoint"),
        }
    }
}

impl std::error::Error for NotSet {}

/// Sets parameters of the regulation for this process, once and before the first testpoint; all of
/// them or none.
///
/// # Errors
/// As [`NotSet`] says.
pub fn set(wanted: &[Setting]) -> Result<(), NotSet> {
    let mut config = settings().config.clone();
    settings::apply(&mut config, wanted).map_err(NotSet::Bad)?;
    CONFIG.set(config).map_err(|_| NotSet::TooLate)
}

/// The parameters of the regulation, fixed by the first testpoint.
pub(crate) fn config() -> &'static Config {
    CONFIG.get_or_init(|| settings().config.clone())
}

pub(crate) fn settings() -> &'static Settings {
    SETTINGS.get_or_init(Settings::default)
}

pub(crate) struct Job {
    pub(crate) targets: Targets,
    store: Option<Store>,
    watch: Watch,
    saved_at: Moment,
    notices: Vec<String>,
    name: String,
    pid: u32,
    started: Moment,
    /// What of this process's usage has been added to that of all polite jobs.
    published: Usage,
}

impl Job {
    fn start(name: String) -> Self {
        let executable = std::env::current_exe().unwrap_or_default();
        let identity = format!("{}\0{name}", executable.display());
        let store = settings().targets.clone().map(|directory| Store::new(directory, identity));
        let (targets, notice) = store.as_ref().map(Store::begin).unwrap_or_default();
        Self {
            targets,
            store,
            watch: Watch::default(),
            saved_at: clock::now(),
            notices: notice.into_iter().collect(),
            name,
            pid: std::process::id(),
            started: clock::now(),
            published: Usage::own(),
        }
    }

    fn save(&mut self) {
        self.saved_at = clock::now();
        // A forked child that only calls exit(3) has nothing new to say.
        if self.pid != std::process::id() || self.targets.iter().next().is_none() {
            return;
        }
        if let Some(store) = &self.store
            && let Err(error) = store.save(&self.targets)
        {
            self.notices.truncate(100);
            self.notices.push(format!("targets not saved: {error}"));
        }
    }

    //= ms-manners/7.1-file
    /// Saves when it is time to.
    pub(crate) fn tend(&mut self, now: Moment) {
        if now.since(self.saved_at) >= SAVE_EVERY {
            self.pid = std::process::id();
            self.save();
        }
    }

    /// A look at the machine if what the calling thread saw `last` is old enough, for one that runs. If it is
    /// `urgent`, because progress lags, that is old soon.
    pub(crate) fn look_while_running(
        &mut self,
        now: Moment,
        last: Moment,
        seat: Option<&Seat>,
        urgent: bool,
    ) -> Option<Signals> {
        let young = now.since(self.started) < EARLY_LIFE;
        let every = if young || urgent { LOOK_SOON } else { LOOK_EVERY };
        let due = now.since(last) >= every;
        due.then(|| self.look(now, seat, Pose::Running)).flatten()
    }

    /// For which share of the time since the last such call some task of the machine waited; [`Watch::stalled_frac`].
    pub(crate) fn stalled_frac(&mut self, now: Moment) -> Option<f64> {
        self.watch.stalled_frac(now)
    }

    /// A look at the machine.
    pub(crate) fn look(&mut self, now: Moment, seat: Option<&Seat>, pose: Pose) -> Option<Signals> {
        let polite = self.publish(seat);
        self.watch.look(now, polite, pose)
    }

    /// Tells the other polite jobs what this process used; returns what all of them used.
    pub(crate) fn publish(&mut self, seat: Option<&Seat>) -> Usage {
        let own = Usage::own();
        let Some(seat) = seat else { return own };
        let used = own.since(self.published);
        self.published = own;
        seat.publish(used)
    }
}

/// Works on the job, started on first use; `None` where [`lock`] can have none.
pub(crate) fn with<T>(work: impl FnOnce(&mut Job) -> T) -> Option<T> {
    let mut guard = lock()?;
    let job = guard.get_or_insert_with(|| {
        at_exit::register(flush_at_exit);
        Job::start(String::new())
    });
    Some(work(job))
}

/// `None` in a child that was forked while another thread had the lock: that thread is not there to give it back.
fn lock() -> Option<MutexGuard<'static, Option<Job>>> {
    let here = std::process::id();
    let guard = match JOB.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) if ![0, here].contains(&OWNER.load(Ordering::Relaxed)) => {
            return None;
        }
        Err(TryLockError::WouldBlock) => JOB.lock().unwrap_or_else(PoisonError::into_inner),
    };
    OWNER.store(here, Ordering::Relaxed);
    Some(guard)
}

/// Names the job, where one executable runs many: a script's path for an interpreter. Targets of
/// that job are loaded; those of the unnamed one are saved.
pub fn set_job_name(name: &str) {
    let Some(mut guard) = lock() else { return };
    match &mut *guard {
        Some(job) if job.name == name => {}
        Some(job) => {
            job.save();
            *job = Job::start(name.to_owned());
        }
        None => {
            at_exit::register(flush_at_exit);
            *guard = Some(Job::start(name.to_owned()));
        }
    }
}

/// Saves the targets now, for a program that ends without exit(3).
pub fn flush() {
    if let Some(mut guard) = lock()
        && let Some(job) = &mut *guard
    {
        job.pid = std::process::id();
        job.save();
    }
}

/// What went wrong without stopping the job: a damaged target file, a directory not writable.
#[must_use]
pub fn notices() -> Vec<String> {
    lock().and_then(|guard| Some(guard.as_ref()?.notices.clone())).unwrap_or_default()
}

extern "C" fn flush_at_exit() {
    // Another thread may be in the middle of a testpoint; the end does not wait for it.
    if let Ok(mut guard) = JOB.try_lock()
        && let Some(job) = &mut *guard
    {
        job.save();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_sees_the_machine_whatever_another_one_looks_at() {
        let mut job = Job::start("a job of this test".into());
        let seen = (0..10).any(|_| {
            // The other one is suspended, or makes more testpoints.
            let _ = job.look(clock::now(), None, Pose::Suspended);
            clock::sleep(Nanos::from_millis(100));
            let seen = job.look_while_running(clock::now(), Moment::FIRST, None, true);
            clock::sleep(Nanos::from_millis(150));
            seen.is_some()
        });
        assert!(seen);
    }
}
