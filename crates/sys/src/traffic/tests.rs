use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use super::*;

#[test]
fn dirty_pages_and_those_under_writeback_are_unwritten() {
    assert_eq!(unwritten_part(b"Dirty:              1234 kB"), Some(1234 * 1024));
    assert_eq!(unwritten_part(b"Writeback:             8 kB"), Some(8 * 1024));
    assert_eq!(unwritten_part(b"WritebackTmp:          3 kB"), None);
    assert_eq!(unwritten_part(b"Dirty:"), None);
}

#[test]
fn what_is_dirty_is_unwritten() {
    let file = std::env::temp_dir().join(std::format!("unwritten-{}", std::process::id()));
    std::fs::write(&file, std::vec![1; 8 << 20]).unwrap();
    let bytes = unwritten();
    std::fs::remove_file(&file).unwrap();
    // Unless another process has everything written just then, or the folder lies in memory.
    assert!(bytes.is_some_and(|bytes| bytes < 1 << 40), "{bytes:?}");
}

#[test]
fn partitions_belong_to_their_disk() {
    for (name, disk) in [
        ("sda", "sda"),
        ("sda3", "sda"),
        ("xvdb12", "xvdb"),
        ("nvme0n1", "nvme0n1"),
        ("nvme0n1p2", "nvme0n1"),
        ("mmcblk0p1", "mmcblk0"),
        ("rbd0", "rbd0"),
        ("rbd12p3", "rbd12"),
        ("pmem1", "pmem1"),
        ("pmem1p2", "pmem1"),
        ("loop7", "loop7"),
        ("dm-3", "dm-3"),
        ("sr0", "sr0"),
    ] {
        assert_eq!(whole(name.as_bytes()), disk.as_bytes(), "{name}");
    }
}

#[test]
fn a_line_of_diskstats() {
    let line = b" 254       1 vda1 7 1 4096 5 9 2 1024 3 0 1 2 0 0 0 0 4 5";
    let disk = Disk::parse(line).expect("a disk");
    assert_eq!((disk.id, disk.is_physical()), (254 << 32 | 1, false));
    assert_eq!(disk.busy, Nanos::from_millis(1));
    assert_eq!((disk.requests, disk.waited, disk.in_flight), (16, Nanos::from_millis(8), 0));
    assert_eq!(disk.moved, TrafficCounters { inward: 4096 * 512, outward: 1024 * 512 });
    assert!(Disk::parse(b"junk").is_none() && Disk::parse(b"").is_none());
}

#[test]
fn this_machine_answers() {
    let mut count = 0;
    disks(|_| count += 1).expect("/proc/diskstats");
    let namespace = network().expect("/proc/net/dev").namespace;
    let link = std::fs::read_link("/proc/self/ns/net").expect("a link");
    assert_eq!(link.to_str(), Some(format!("net:[{namespace}]").as_str()));
    assert!(id_of(0x801) == 8 << 32 | 1 && count < 10_000);
}

/// What the disk 259:1 and all physical disks have read, of a list in which it is a namespace with two paths, which count
/// what passes them; it counts so many sectors itself.
fn read_by_paths(own: u64) -> [u64; 2] {
    let folder = tempfile::tempdir().unwrap();
    let (list, block) = (folder.path().join("diskstats"), folder.path().join("nvme0n1"));
    let counters = format!("{own} 0 {own} 0 0 0 0 0 0 0 0");
    let lines = [
        String::from("   0       0 nvme0c0n1 30 0 300 9 0 0 0 0 0 9 9"),
        format!(" 259       1 nvme0n1 {counters}"),
        format!(" 259       2 nvme0n1p1 {counters}"),
        String::from("   0       0 nvme0c12n1 10 0 100 9 0 0 0 0 0 9 9"),
        String::new(),
    ];
    std::fs::write(&list, lines.join("\n")).unwrap();
    std::fs::create_dir(&block).unwrap();
    std::fs::write(block.join("dev"), "259:1\n").unwrap();
    std::fs::write(block.join("stat"), format!("  {counters}\n")).unwrap();
    let c_string = |path: &std::path::Path| CString::new(path.as_os_str().as_bytes()).unwrap();
    let blocks = [folder.path().as_os_str().as_bytes(), b"/"].concat();
    let (mut of_disk, mut of_all) = (0, 0);
    disks_in(&c_string(&list), &blocks, |disk| {
        assert_eq!(disk.is_path(), disk.name().starts_with(b"nvme0c"), "{disk:?}");
        let sectors = disk.moved.inward / SECTOR;
        of_disk += if disk.id == 259 << 32 | 1 { sectors } else { 0 };
        of_all += if disk.is_physical() { sectors } else { 0 };
    })
    .unwrap();
    [of_disk, of_all]
}

#[test]
fn what_passes_a_path_of_a_disk_is_the_disk_s_and_counts_once() {
    assert_eq!(read_by_paths(0), [400, 400], "where the kernel counts paths alone");
    assert_eq!(read_by_paths(400), [400, 400], "where it counts the disk as well");
}
