//! What the library knows of a call when it is made: the conditions of its decision.
//!
//! Each answer is read where it is asked for, so that a decision costs no more than its questions.

use discnice_ledger::Class;
use discnice_ledger::policy::Resource;
use discnice_regulator::decision::{Conditions, SHORT};
use discnice_regulator::{File, Flow, Thread};

use crate::{engine, faults, files};

#[inline(always)]
fn class_says(predicate: impl FnOnce(&Class) -> bool) -> bool {
    engine::class().is_some_and(predicate)
}

/// A call of which only the class is known.
#[derive(Debug, Clone, Copy)]
pub struct Anything;

impl Conditions for Anything {
    #[inline(always)]
    fn is_unlimited(&self) -> bool {
        class_says(Class::is_unheld)
    }
}

/// A call that is known by its descriptor's number alone.
#[derive(Debug, Clone, Copy)]
pub struct Numbered(pub i32);

impl Conditions for Numbered {
    #[inline(always)]
    fn is_unlimited(&self) -> bool {
        class_says(Class::is_unheld)
    }
    #[inline(always)]
    fn was_never_shaped(&self) -> bool {
        files::was_never_shaped(self.0)
    }
}

/// A call on names, inodes or directories, or one that starts I/O.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    /// What is known of the thread.
    pub thread: &'static Thread,
}

impl Conditions for Named {
    #[inline(always)]
    fn is_free(&self) -> bool {
        class_says(Class::is_free)
    }
    #[inline(always)]
    fn is_limited(&self) -> bool {
        class_says(Class::is_limited)
    }
    #[inline(always)]
    fn is_held_on_disk_alone(&self) -> bool {
        class_says(Class::is_held_on_disk_alone)
    }
    #[inline(always)]
    fn limits_names(&self) -> bool {
        class_says(|class| class.is_limited_in(Resource::Metadata.only()))
    }
    #[inline(always)]
    fn owes_for_faults(&self) -> bool {
        faults::any()
    }
    #[inline(always)]
    fn missed(&self) -> bool {
        self.thread.cache.missed()
    }
}

/// A read or write through a descriptor.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// The class.
    pub class: &'static Class,
    /// What is known of the descriptor.
    pub file: &'static File,
    /// What is known of the thread.
    pub thread: &'static Thread,
    /// The direction, which decides what is to be known of the file.
    pub flow: Flow,
    /// Bytes that it asks for.
    pub count: usize,
    /// Offset, unless it is the descriptor's own.
    pub at: Option<u64>,
}

impl Transfer {
    /// Makes one of a call at a descriptor's own offset, if the number is low.
    #[inline(always)]
    pub fn near(thread: &'static Thread, fd: i32, flow: Flow, count: usize) -> Option<Self> {
        let (file, class) = (files::near(fd)?, engine::class()?);
        Some(Self { class, file, thread, flow, count, at: None })
    }
}

impl Conditions for Transfer {
    #[inline(always)]
    fn is_unlimited(&self) -> bool {
        self.class.is_unheld()
    }
    #[inline(always)]
    fn is_free(&self) -> bool {
        self.class.is_free()
    }
    #[inline(always)]
    fn is_limited(&self) -> bool {
        self.class.is_limited()
    }
    #[inline(always)]
    fn is_held_on_disk_alone(&self) -> bool {
        self.class.is_held_on_disk_alone()
    }
    #[inline(always)]
    fn is_calm(&self) -> bool {
        self.class.is_calm()
    }
    #[inline(always)]
    fn predicts(&self) -> bool {
        self.class.predicts()
    }
    #[inline(always)]
    fn minds_traffic(&self) -> bool {
        engine::minds_traffic_of(self.class)
    }
    #[inline(always)]
    fn is_traced(&self) -> bool {
        self.class.is_traced()
    }
    #[inline(always)]
    fn owes_for_faults(&self) -> bool {
        faults::any()
    }
    #[inline(always)]
    fn is_blank(&self) -> bool {
        self.file.is_blank()
    }
    #[inline(always)]
    fn is_other(&self) -> bool {
        self.file.is_other()
    }
    #[inline(always)]
    fn is_socket(&self) -> bool {
        self.file.is_socket()
    }
    #[inline(always)]
    fn is_untouched(&self) -> bool {
        self.file.is_untouched()
    }
    #[inline(always)]
    fn is_predicted(&self) -> bool {
        self.file.is_predicted()
    }
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.file.is_plain()
    }
    #[inline(always)]
    fn is_known(&self) -> bool {
        match self.flow {
            Flow::Down => self.file.knows_cached(self.count, self.at),
            Flow::Up => self.file.knows_dirty(self.count, self.at),
        }
    }
    #[inline(always)]
    fn passes_unprobed(&self) -> bool {
        self.file.passes_unprobed()
    }
    #[inline(always)]
    fn rewrites(&self) -> bool {
        self.file.rewrites()
    }
    #[inline(always)]
    fn is_short(&self) -> bool {
        self.count as u64 <= SHORT
    }
    #[inline(always)]
    fn missed(&self) -> bool {
        self.thread.cache.missed()
    }
    #[inline(always)]
    fn finds_all(&self) -> bool {
        self.thread.cache.finds_all()
    }
    #[inline(always)]
    fn deletions_cover(&self) -> bool {
        self.thread.deletions.cover(self.count)
    }
}
