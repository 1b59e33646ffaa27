//! Files that members made, counted in the folders that are watched ([`crate::closed`]).
//!
//! What a file system writes for them besides (journal, inode tables) the kernel charges to nobody. Our library counts
//! them where it is; here they are counted from outside, by the process that writes back, which does not share the
//! class's memory: it tells through a socket. Whoever else makes files in such a folder is counted with them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};

use discnice_budget::Class;

/// Files made, by the nonce of a class and the device number of their file system, that were not told yet.
#[derive(Debug, Default)]
pub(crate) struct Made(HashMap<(u64, u64), u64>);

const MESSAGE: usize = 24;

impl Made {
    /// One more.
    pub(crate) fn note(&mut self, class: u64, device: u64) {
        self.add((class, device), 1);
    }

    fn add(&mut self, key: (u64, u64), files: u64) {
        let known = self.0.entry(key).or_default();
        *known = known.saturating_add(files);
    }

    /// Tells through a socket that is not waited for; what does not fit is told the next time.
    pub(crate) fn tell(&mut self, socket: &mut File) {
        self.0.retain(|(class, device), files| {
            let mut message = [0; MESSAGE];
            let (places, _) = message.as_chunks_mut();
            let numbers = [*class, *device, *files];
            places.iter_mut().zip(numbers).for_each(|(place, one)| *place = u64::to_ne_bytes(one));
            socket.write_all(&message).is_err()
        });
    }

    /// Adds what was told.
    pub(crate) fn hear(&mut self, socket: &mut File) {
        let mut message = [0; MESSAGE];
        while socket.read_exact(&mut message).is_ok() {
            let (places, _) = message.as_chunks();
            if let [class, device, files] = *places {
                let number = u64::from_ne_bytes;
                self.add((number(class), number(device)), number(files));
            }
        }
    }

    /// Of a class, on all file systems.
    #[cfg(test)]
    pub(crate) fn files(&self, class: u64) -> u64 {
        self.0.iter().filter(|((whose, _), _)| *whose == class).map(|(_, files)| files).sum()
    }

    /// Enters those of a class with its file systems. What it writes through daemons was counted where it did so.
    pub(crate) fn enter(&mut self, class: &Class) {
        let file_systems = class.estimation().file_systems();
        let by_daemons = file_systems.iter().any(|fs| fs.served().is_some());
        self.0.retain(|(whose, device), files| {
            let own = *whose == class.nonce();
            if own
                && !by_daemons
                && let Some(fs) = file_systems.get(file_systems.slot(*device))
            {
                fs.made_outside(*files);
            }
            !own
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn what_was_made_is_told_as_far_as_the_socket_takes_it() {
        let kind = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK);
        let (reader, writer) = socketpair(kind.0, kind.1, kind.2, None).unwrap();
        let (mut reader, mut writer) = (File::from(reader), File::from(writer));
        let (mut here, mut there) = (Made::default(), Made::default());
        (0..10_000).for_each(|device| here.note(1, device));
        (0..10_000).for_each(|device| here.note(2, device));
        while !here.0.is_empty() {
            let before = here.0.len();
            here.tell(&mut writer);
            assert!(here.0.len() < before, "an empty one takes some");
            there.hear(&mut reader);
        }
        here.note(1, 5);
        here.tell(&mut writer);
        there.hear(&mut reader);
        assert_eq!(there.0.len(), 20_000);
        assert_eq!((there.files(1), there.files(2)), (10_001, 10_000));
    }
}
