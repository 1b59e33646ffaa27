use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::*;

#[test]
fn the_kernels_formats() {
    let stat = "cpu  100 5 200 9000 77 3 4 8 50 0\ncpu0 1 2 3\n";
    assert_eq!(busy_in(stat), Some(3.2));
    assert_eq!(busy_in(""), None);
    let totals = disks(
        "254 0 vda 9 0 10 0 9 0 20 0 0 3000 1\n254 1 vda1 9 0 10 0 9 0 20 0 0 9 1\n\
         7 0 loop0 9 0 10 0 9 0 20 0 0 9000 1\n\
         7 1 loop0p1 9 0 10 0 9 0 20 0 0 9 1\n259 0 nvme0n1 1 0 2 0 1 0 2 0 0 1 1\n",
    );
    assert!((totals.disks.read - 12.0 * 512.0).abs() < 1e-9, "{totals:?}");
    assert!((totals.loops.written - 20.0 * 512.0).abs() < 1e-9, "{totals:?}");
    assert!((totals.busiest_disk - 9.0).abs() < 1e-9);
}

fn c_string(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// What the disks of a list have done; `nvme0n1` counts what passes its paths.
fn disks(list: &str) -> Totals {
    let folder = tempfile::tempdir().unwrap();
    let (file, block) = (folder.path().join("diskstats"), folder.path().join("nvme0n1"));
    std::fs::write(&file, list).unwrap();
    std::fs::create_dir(&block).unwrap();
    std::fs::write(block.join("stat"), "9 0 10 0 9 0 20 0 0 3000 1\n").unwrap();
    let blocks = [folder.path().as_os_str().as_bytes(), b"/"].concat();
    let mut totals = Totals::default();
    traffic::disks_in(&c_string(&file), &blocks, |disk| totals.add(&disk)).unwrap();
    totals
}

#[test]
fn what_passes_a_path_of_a_disk_or_lies_on_another_counts_once() {
    for other in ["0 0 nvme0c0n1", "253 0 dm-0", "9 0 md0", "252 0 zram0", "11 0 sr0"] {
        let numbers = "9 0 10 0 9 0 20 0 0 3000 1";
        let totals = disks(&format!("{other} {numbers}\n259 0 nvme0n1 {numbers}\n"));
        assert!((totals.disks.read - 10.0 * 512.0).abs() < 1e-9, "{other}: {totals:?}");
    }
}

/// What the interfaces of these names have moved, 100 bytes each.
fn interfaces(names: &[&str]) -> f64 {
    let lines = names.iter().map(|name| format!("{name:>6}: 70 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n"));
    let list = tempfile::NamedTempFile::new().unwrap();
    let head = "Inter-| Receive\n face |bytes\n".to_owned();
    std::fs::write(list.path(), head + &lines.collect::<String>()).unwrap();
    both_ways(&traffic::network_in(&c_string(list.path())).unwrap())
}

#[test]
fn what_passes_two_interfaces_counts_once() {
    assert!((interfaces(&["eth0", "wlan0", "lo"]) - 200.0).abs() < 1e-9);
    for passed_on in ["bond0", "br0", "eth0.100", "tun0", "wg0", "docker0"] {
        assert!((interfaces(&["lo", "eth0", passed_on]) - 100.0).abs() < 1e-9, "{passed_on}");
    }
}

#[test]
fn own_work_is_not_others() {
    let mut watch = Watch::default();
    let was = Totals::default();
    let disks = Traffic { read: 2e6, written: 5e6 };
    let now = Totals { cpu: 1.0, disks, busiest_disk: 0.9, ..was };
    let own = Usage { cpu: 0.9, read: 2e6, written: 8e6 };
    let signals = watch.rates(1.0, &was, &now, &Usage::default(), &own);
    assert!((signals.cpu - 0.1).abs() < 1e-9 && signals.disk.abs() < 1e-9, "{signals:?}");
    // The rest of what the job dirtied is written while it is suspended, and 1 MB more.
    let later = Totals { disks: Traffic { written: 9e6, ..disks }, ..now };
    let signals = watch.rates(1.0, &now, &later, &own, &own);
    assert!((signals.disk - 1e6).abs() < 1e-9, "{signals:?}");
}

#[test]
fn what_the_job_asked_for_before_the_look_and_got_after_it_is_not_others() {
    let mut watch = Watch::default();
    assert!(watch.read_by_others(9e6, 10e6).abs() < 1e-9);
    assert!(watch.read_by_others(11e6, 10e6).abs() < 1e-9);
    assert!((watch.read_by_others(11e6, 10e6) - 1e6).abs() < 1e-9);
    // What comes from memory or a network never reaches a disk, and hides no other program for
    // long.
    (0..100).for_each(|_| assert!(watch.read_by_others(0.0, 10e6).abs() < 1e-9));
    assert!((watch.read_by_others(30e6, 10e6) - 10e6).abs() < 1e-9);
}

#[test]
fn a_disk_beneath_a_loop_device_counts_once_and_a_file_server_too() {
    let was = Totals::default();
    let of = |read| Traffic { read, written: 0.0 };
    for (disks, loops) in [(5e6, 4e6), (5e6, 5e6), (0.0, 5e6)] {
        let now = Totals { disks: of(disks), loops: of(loops), ..was };
        assert!((now.traffic_since(&was).read - 5e6).abs() < 1e-9, "{disks} {loops}");
    }
}

#[test]
fn a_real_look_sees_a_real_spinner() {
    let mut watch = Watch::default();
    let mut child =
        std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    assert!(watch.look(crate::testpoint::clock::now(), Usage::own(), Pose::Running).is_none());
    crate::testpoint::clock::sleep(Nanos::from_millis(600));
    let signals = watch.look(crate::testpoint::clock::now(), Usage::own(), Pose::Running);
    // Pressure is told from the second look of a suspension on.
    let mut pose = |millis| {
        crate::testpoint::clock::sleep(Nanos::from_millis(millis));
        watch.look(crate::testpoint::clock::now(), Usage::own(), Pose::Suspended)
    };
    assert!(pose(0).is_none() && pose(300).is_none());
    assert!(pose(300).is_some_and(|signals| signals.cpu > 0.3));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(signals.unwrap().cpu > 0.3, "{signals:?}");
}

//= ms-manners/3-external-resources
#[test]
fn a_wait_for_a_processor_is_a_stall_of_this_machine() {
    let mut watch = Watch::default();
    let processors = std::thread::available_parallelism().unwrap().get();
    let mut spinners: Vec<_> = (0..2 * processors)
        .map(|_| {
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap()
        })
        .collect();
    assert_eq!(watch.stalled_frac(crate::testpoint::clock::now()), None, "nothing to compare with");
    // The kernel adds up at intervals of up to two seconds.
    let stalled = (0..5).any(|_| {
        crate::testpoint::clock::sleep(Nanos::SECOND);
        watch.stalled_frac(crate::testpoint::clock::now()) > Some(0.3)
    });
    for spinner in &mut spinners {
        spinner.kill().unwrap();
        spinner.wait().unwrap();
    }
    assert_eq!(stalled, stalls().is_some(), "nothing is told without the kernel's account");
}
