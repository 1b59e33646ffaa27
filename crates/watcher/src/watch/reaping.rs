//! Members that have ended, or were detached: what they leave, and to which process.

use discnice_sys::{process, procfs};

use super::{Ended, Watch};
use crate::member::{Gone, Watched};

impl Watch {
    /// Takes leave of a member.
    pub(super) fn part(&mut self, id: u32, gone: Gone) {
        let living = match gone {
            Gone::Ended => self.close_account(id),
            Gone::Detached => Vec::new(),
        };
        let Some(member) = self.members.all.remove(&id) else { return };
        if gone == Gone::Detached {
            self.network.leave(&member);
        }
        self.discovery.namespaces.forget(member.number());
        if gone == Gone::Ended {
            let (parent, left) = (reaper(&member), member.left());
            match self.members.all.get_mut(&parent) {
                Some(parent) => parent.inherit(left),
                None => self.apart.note_ended(self.class, Ended { parent, left }),
            }
            for child in living {
                if let Some(child) = self.members.all.get_mut(&child) {
                    child.parent = reaper(child);
                }
            }
            // It no longer gives its slot back: a process with its number would be taken for it.
            member.free_slot();
        }
        // Of one that was let go later children are as free as it is.
        if gone == Gone::Detached || !process::group_exists(id) {
            self.disown(id);
        }
        self.members.leave(member);
    }

    /// Charges the rest of a member that has ended, after its children that ended before it: the kernel may have added
    /// these to its account. Returns the children that live on, with another parent now.
    fn close_account(&mut self, id: u32) -> Vec<u32> {
        let Some(born) = self.members.all.get(&id).map(Watched::birth) else { return Vec::new() };
        // Its number may be that of an earlier process, which is the parent of one that is older than it.
        let is_child = |member: &Watched| member.parent == id && member.birth() > born;
        let children = self.members.all.iter().filter(|(_, other)| is_child(other));
        let (ended, living): (Vec<_>, Vec<_>) = children
            .map(|(child, other)| (*child, other.has_ended()))
            .partition(|(_, ended)| *ended);
        for (child, _) in ended {
            self.part(child, Gone::Ended);
        }
        // What came to it from children with classes of their own may be charged there.
        let separates = self.separates();
        if let Some(member) = self.members.all.get_mut(&id) {
            member.end(!separates);
        }
        living.into_iter().map(|(child, _)| child).collect()
    }
}

/// The process that waits for a member, or will: its parent, or the one that took the place of that.
pub(super) fn reaper(member: &Watched) -> u32 {
    let found = procfs::stat(member.id()).filter(|stat| stat.started == member.birth().0);
    found.map_or(member.parent, |stat| stat.parent)
}
