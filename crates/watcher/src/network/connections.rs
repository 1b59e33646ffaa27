//! The TCP connections of the members of a class.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::Path;

use discnice_sys::deadline;
use discnice_units::{Moment, Nanos};

use super::connection::{Connection, Kind};
use super::diag::{Diag, Told};
use super::paths::Paths;
use super::rules::Rules;
use super::shares::Shares;
use crate::member::Watched;
use crate::process::descriptors;
use crate::tuning;

/// Those of a class, by the inode of the socket.
#[derive(Debug, Default)]
pub(super) struct Connections {
    known: HashMap<u64, Connection>,
    /// Those that were lost sight of, with a process or a descriptor that has gone: the next search may find them elsewhere.
    lost: HashMap<u64, Connection>,
    /// Sockets that are none.
    others: HashSet<u64>,
    /// Members that were searched: connections that are found there later began after that.
    searched: HashSet<u32>,
    /// Whether those within the machine count.
    loopback: bool,
    /// What tells of those with descriptors that cannot be borrowed.
    diag: Option<Diag>,
}

/// What a look has found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Set if a connection has moved bytes of late.
    pub(super) lively: bool,
    /// Set if the kernel cannot be told about a connection of a program that has the library.
    pub(super) members_tell: bool,
    /// What members without the library have sent and received since the last look.
    pub(super) moved: HashMap<u32, [u64; 2]>,
}

impl Connections {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Looks through the descriptors of the members; returns how many things were looked at.
    pub(super) fn search(&mut self, members: &HashMap<u32, Watched>, rules: &Rules) -> u64 {
        if std::mem::replace(&mut self.loopback, rules.loopback) != rules.loopback {
            self.others.clear();
            self.known.retain(|_, one| !one.is_local());
        }
        let (mut seen, mut told) = (HashSet::new(), None);
        let mut links = 0;
        let concerned = members.values().filter(|member| rules.concern(member));
        for member in concerned.take(tuning::network::PROCESSES) {
            for link in descriptors::of(member.id(), tuning::network::DESCRIPTORS) {
                links += 1;
                let Some(inode) = descriptors::socket(&link) else { continue };
                if seen.insert(inode) && !self.others.contains(&inode) {
                    self.meet(inode, member, &link, &mut told);
                }
            }
        }
        // To be told of all takes as long as to look at as many descriptors.
        links += told.map_or(0, |told: HashMap<_, _>| told.len() as u64);
        self.lost.clear();
        self.others.retain(|inode| seen.contains(inode));
        self.searched = members.keys().copied().collect();
        links
    }

    /// Takes in a connection, if the socket is one and is not known yet.
    fn meet(
        &mut self,
        inode: u64,
        member: &Watched,
        link: &Path,
        told: &mut Option<HashMap<u64, Told>>,
    ) {
        if self.known.contains_key(&inode) || self.known.len() >= tuning::network::CONNECTIONS {
            return;
        }
        let (id, loopback) = (member.id(), self.loopback);
        let is_new = self.searched.contains(&id) || member.is_young();
        let borrowed =
            descriptors::number(link).and_then(|number| Some((number, member.borrow(number)?)));
        let kind = match borrowed {
            Some((number, borrowed)) => Connection::of((id, number), &borrowed, is_new, loopback),
            None if descriptors::is_tcp(link) == Some(false) => Kind::Other,
            None => {
                let told = told.get_or_insert_with(|| self.ask_for_all());
                told.get(&inode)
                    .map_or(Kind::Unconnected, |told| Connection::told(id, told, is_new, loopback))
            }
        };
        match kind {
            Kind::Connected(found) => {
                let found = match self.lost.remove(&inode) {
                    Some(lost) => found.resume(&lost),
                    None => found,
                };
                self.known.insert(inode, found);
            }
            Kind::Other => {
                self.others.insert(inode);
            }
            Kind::Unconnected => {}
        }
    }

    /// All connections that the kernel tells of; none where it does not.
    fn ask_for_all(&mut self) -> HashMap<u64, Told> {
        if self.diag.is_none() {
            self.diag = Diag::open().ok();
        }
        self.diag.as_mut().map(Diag::all).unwrap_or_default()
    }

    /// Looks at all, has the paths decide, and tells each connection its share.
    pub(super) fn look(
        &mut self,
        now: Moment,
        members: &HashMap<u32, Watched>,
        paths: &mut Paths,
        rules: &Rules,
    ) -> Found {
        paths.begin(now);
        let mut found = Found::default();
        let (shares, borrowed) = self.see(now, members, (paths, rules), &mut found);
        paths.decide(now);
        for (inode, one) in &mut self.known {
            if let Some((descriptor, trip)) = borrowed.get(inode) {
                one.tell(descriptor, *trip, paths, &shares);
            }
        }
        found.moved.retain(|_, moved| *moved != [0; 2]);
        found
    }

    /// Notes what all have moved; returns the shares of the limits, and the descriptors of those that can be told theirs, with
    /// their round trips.
    fn see(
        &mut self,
        now: Moment,
        members: &HashMap<u32, Watched>,
        (paths, rules): (&mut Paths, &Rules),
        found: &mut Found,
    ) -> (Shares, HashMap<u64, (OwnedFd, Nanos)>) {
        let (mut shares, mut borrowed) = (Shares::of(rules), HashMap::new());
        for (inode, mut one) in std::mem::take(&mut self.known) {
            deadline::renew();
            let member = members.get(&one.process());
            let diag = &mut self.diag;
            let there = member.and_then(|member| Some((member, one.see(member, diag)?)));
            let Some((member, (descriptor, info))) = there else {
                self.lost.insert(inode, one);
                continue;
            };
            let new = one.note(now, &info);
            one.limited = member.is_without_library();
            // Otherwise nothing would come of what is decided.
            if rules.yields && (descriptor.is_some() || !one.limited) {
                one.add_to(paths, now, new, &info);
                found.members_tell |= descriptor.is_none();
            }
            if one.limited {
                shares.add(one.is_active(now));
                let sum = found.moved.entry(one.process()).or_default();
                *sum = [sum[0] + new[0], sum[1] + new[1]];
            }
            found.lively |= one.is_active(now) != [false; 2];
            if info.is_open {
                let trip = info.trip_to_receiver();
                borrowed.extend(descriptor.map(|descriptor| (inode, (descriptor, trip))));
                self.known.insert(inode, one);
            }
        }
        (shares, borrowed)
    }

    /// Leaves those of a process as they were.
    pub(super) fn leave(&mut self, member: &Watched) {
        for (_, mut one) in self.known.extract_if(|_, one| one.process() == member.id()) {
            if let Some(descriptor) = one.borrow(member) {
                one.release(&descriptor);
            }
        }
    }

    /// Leaves all as they were.
    pub(super) fn release(&mut self, members: &HashMap<u32, Watched>) {
        for (_, mut one) in self.known.drain() {
            let member = members.get(&one.process());
            if let Some(descriptor) = member.and_then(|member| one.borrow(member)) {
                one.release(&descriptor);
            }
        }
    }
}
