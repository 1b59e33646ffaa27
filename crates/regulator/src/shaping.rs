//! The kernel's read-ahead: switched off for the descriptors of a held process (`POSIX_FADV_RANDOM`: exactly what is asked
//! for is read), and given back.

use crate::host::{Advice, Host};
use crate::{File, Regulator};

impl<H: Host> Regulator<'_, H> {
    /// Returns true if a limit is in force and the descriptor can reach a disk; undoes our shaping
    /// otherwise.
    pub(crate) fn is_regulated(&self, fd: i32, file: &File) -> bool {
        if self.class.is_limited() {
            self.classify(fd, file);
            return !file.is_other();
        }
        self.unshape(fd, file);
        false
    }

    /// Finds out what the descriptor can reach, unless that is known.
    pub fn classify(&self, fd: i32, file: &File) {
        if !file.is_classified()
            && let Some(status) = self.host.status(fd)
        {
            file.classify(&status);
            self.identify(fd, file, status);
        }
    }

    /// Looks again what the descriptor is; the program may have replaced it unseen.
    pub fn reclassify(&self, fd: i32, file: &File) {
        file.forget();
        self.classify(fd, file);
    }

    //= discnice/4-read-ahead
    pub(crate) fn shape(&self, fd: i32, file: &File) {
        if !file.is_shaped() && self.reads_ahead_for(fd, file) {
            self.halve(fd, file);
            self.host.advise(fd, Advice::Random);
            file.set_shaped(true);
        }
    }

    /// Takes back that the program doubled the windows: they stay so even where read-ahead is off, and page faults read by
    /// them (mm/fadvise.c, mm/filemap.c).
    fn halve(&self, fd: i32, file: &File) {
        let may = file.is_regular() && self.modules().read_size;
        if may && file.wants_sequential() && !file.is_halved() {
            self.host.advise(fd, Advice::Normal);
            file.set_halved(true);
        }
    }

    /// Prepares a descriptor for reads that will not be reported to us.
    pub fn expect_reads(&self, fd: i32, file: &File) {
        if self.is_regulated(fd, file) {
            self.shape(fd, file);
        }
    }

    /// Gives the kernel's read-ahead back, as the program had it.
    pub fn unshape(&self, fd: i32, file: &File) {
        if file.is_shaped() || file.is_halved() {
            let sequential = file.wants_sequential();
            self.host.advise(fd, if sequential { Advice::Sequential } else { Advice::Normal });
            file.set_shaped(false);
            file.set_halved(false);
        }
        file.end_stream();
    }

    /// The program gave advice of its own about the whole file, which the kernel has taken.
    pub fn program_advised(&self, fd: i32, file: &File, advice: Advice) {
        file.program_wants(advice == Advice::Random, advice == Advice::Sequential);
        let was_shaped = file.is_shaped();
        file.set_shaped(false);
        file.set_halved(false);
        if self.is_regulated(fd, file) {
            self.halve(fd, file);
            // Others read without being seen (io_uring).
            if was_shaped || file.wants_sequential() && self.faults_burst() {
                self.shape(fd, file);
            }
        }
    }
}
