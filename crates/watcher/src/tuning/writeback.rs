//! Write-back of what held processes dirtied.

use std::time::Duration;

use discnice_units::Nanos;

use crate::tuning::tuning;

tuning! {
    "Write-back of what held processes dirtied":

    /// Descriptors of a process that are looked at for files to write back.
    DESCRIPTORS: usize = 1024, Count, adr 13;
    /// Time without a newly dirtied portion after which no folder is watched any more.
    FOLDERS_QUIET: Duration = Duration::from_secs(5), Time, adr 13;
    /// Folders that are watched for closed files.
    FOLDERS: usize = 4096, Count, adr 13;
    /// Entries of a folder that are looked at.
    ENTRIES: usize = 4096, Count, adr 13;
    /// Files that were created and not closed yet that are remembered.
    OPEN_FILES: usize = 4096, Count, adr 13;
    /// Files that were closed while nothing held their class, and that nothing has waited for yet, that are remembered.
    CLOSED_FILES: usize = 1024, Count, adr 20;
    /// Folders above one in which a process writes that are watched, too, if they have the same
    /// owner.
    FOLDERS_ABOVE: usize = 4, Count, adr 13;
    /// Age up to which a change, in a folder that is looked at for the first time, is taken for a
    /// member's.
    NEW_FOLDER_AGE: Duration = Duration::from_secs(2), Time, adr 13;
    /// Portions of a file that are written back at once; of more one is written after the other.
    PORTIONS_AT_ONCE: u64 = 2, Count, adr 13;
    /// Interval of looks at files that a process of a yielding class waits for.
    IN_FLIGHT_LOOK: Nanos = Nanos::from_millis(2), Time, adr 20;
    /// Longest time for which a process waits for what it has on its way to a disk.
    IN_FLIGHT_LONGEST: Nanos = Nanos::from_millis(1_000), Time, adr 20;
    /// Descriptors of a process that are looked at for /dev/fuse, which daemons open first.
    FUSE_DESCRIPTORS: usize = 32, Count, adr 11;
    /// Interval of looks through all processes for new FUSE daemons.
    FUSE_SEARCH: Nanos = Nanos(10 * Nanos::SECOND.0), Time, adr 11;
    /// Interval of looks for the small files that a FUSE daemon has open for a millisecond.
    FUSE_LOOK: Nanos = Nanos::from_millis(10), Time, adr 11;
    /// Time after a class wrote through FUSE daemons for which they are looked at.
    FUSE_WRITING_FOR: Nanos = Nanos::from_millis(500), Time, adr 11;
    /// Interval of looks at what a class wrote through FUSE daemons.
    FUSE_CLASS_LOOK: Nanos = Nanos::from_millis(100), Time, adr 11;
}
