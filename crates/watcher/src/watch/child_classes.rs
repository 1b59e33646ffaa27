//! Children that get classes of their own.
//!
//! The kernel adds the account of a child to that of the parent that waits for it. Parent and child are of different
//! classes here, so that one watch is told by the other.

use discnice_ledger::Class;
use discnice_sys::procfs::Stat;

use super::Watch;
use crate::accounting::Io;
use crate::discovery::newcomer::Newcomer;
use crate::process::{Pinned, pin_now};

/// A child that is to have a class of its own, and its parent.
#[derive(Debug)]
pub struct Child {
    /// The child.
    pub pinned: Pinned,
    /// Its parent's process id.
    pub parent: u32,
}

/// A process that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// The process id of the parent that inherits its account.
    pub parent: u32,
    /// What it leaves to that account.
    pub left: Io,
}

/// What the watches of a class and of those of its members' children tell each other.
#[derive(Debug, Default)]
pub(super) struct ChildClasses {
    /// Whether there is anything that makes classes for children.
    pub(super) is_served: bool,
    children: Vec<Child>,
    ended: Vec<Ended>,
    inquiry: Inquiry,
}

/// Whether the classes of children are to be looked at for those that have ended, before what a member's account got from
/// none that is known is its own.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Inquiry {
    /// Nothing is open.
    #[default]
    Answered,
    /// A member may have waited for a child.
    Wanted,
    /// They are being looked at.
    Asked,
}

impl ChildClasses {
    /// A member may have waited for a child; returns whether that may have a class of its own, which is to be looked at
    /// first.
    pub(super) fn inquire(&mut self, is_apart: bool) -> bool {
        if is_apart {
            self.inquiry = Inquiry::Wanted;
        }
        is_apart
    }

    /// Whether the classes of children are yet to be looked at.
    pub(super) fn is_open(&self) -> bool {
        self.inquiry != Inquiry::Answered
    }

    /// A member without a parent among the members has ended.
    pub(super) fn note_ended(&mut self, class: &Class, ended: Ended) {
        if class.parent().is_some() {
            self.ended.push(ended);
        }
    }
}

impl Watch {
    /// From now on classes are made for the children of members, if the limits say so.
    pub fn serve_children(&mut self) {
        self.apart.is_served = true;
    }

    /// The children that were found and are in no class yet: each is to get one, or to be made a member by
    /// [`super::enlist`].
    pub fn take_children(&mut self) -> Vec<Child> {
        let children = std::mem::take(&mut self.apart.children);
        for child in &children {
            if let Some(parent) = self.members.all.get_mut(&child.parent) {
                parent.expect_children();
            }
        }
        children
    }

    /// The members that have ended, with parents in another class.
    pub fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.apart.ended)
    }

    /// Whether a member may have waited for a child of another class. These are to be looked at now; what has ended in them
    /// is then told by [`Watch::inherit`], and that this is all by [`Watch::answered`].
    pub fn inquires(&mut self) -> bool {
        let is_wanted = self.apart.inquiry == Inquiry::Wanted;
        if is_wanted {
            self.apart.inquiry = Inquiry::Asked;
        }
        is_wanted
    }

    /// All classes of children, if `there_are` any, have been looked at since [`Watch::inquires`].
    pub fn answered(&mut self, there_are: bool) {
        if self.apart.inquiry == Inquiry::Asked || !there_are {
            self.apart.inquiry = Inquiry::Answered;
        }
    }

    /// A child of a member has ended in another class.
    pub fn inherit(&mut self, ended: &Ended) {
        if let Some(parent) = self.members.all.get_mut(&ended.parent) {
            parent.inherit(ended.left);
        }
    }

    /// Looks at all members at the next step.
    pub fn look_at_all(&mut self) {
        self.look_now(|_| ());
    }

    /// Whether children get classes of their own.
    pub(super) fn separates(&self) -> bool {
        self.apart.is_served && self.class.is_per_child()
    }

    /// Keeps a newcomer for a class of its own, if that is what the class does with children.
    pub(super) fn sets_apart(&mut self, stat: &Stat) -> bool {
        let separates = self.separates();
        if separates && let Ok(pinned) = pin_now(stat.id.cast_signed()) {
            self.apart.children.push(Child { pinned, parent: stat.parent });
        }
        separates
    }

    /// Whether a newcomer of a group of members' is none of theirs, as its parent is a child that has, or gets, a class of
    /// its own.
    pub(super) fn is_anothers(&self, newcomer: &Newcomer) -> bool {
        let parent = newcomer.stat.parent;
        let is_apart = || self.apart.children.iter().any(|child| child.pinned.id() == parent);
        self.separates()
            && !self.members.all.contains_key(&parent)
            && (is_apart() || !self.bore(newcomer) && self.helpers.lineage.has(parent))
    }
}
