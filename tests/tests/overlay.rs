//! Programs on an overlayfs that they have mounted themselves are charged for what lies below.

use discnice_tests::class::Class;
use discnice_tests::process::run;
use discnice_tests::{cold, product, skip};

const SIZE: u64 = 4 << 20;
/// What starting programs and mounting may cost besides.
const BESIDES: u64 = SIZE / 2;

/// Mounts the layers that lie in the current folder, for itself and its children, and does what it is told there.
const MOUNT: &str =
    "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged && eval \"$0\"";

/// What a class is charged for a script beside a cold file in the lower layer, run by a user that
/// may mount; `None` where that is forbidden.
fn charged(estimator: &'static str, script: &str) -> Option<(u64, u64)> {
    let words = |script| ["unshare", "-Urm", "sh", "-c", MOUNT, script];
    let folder = product::folder();
    let layers = ["mkdir", "lower", "upper", "work", "merged"];
    let _ = run(product::as_user(layers[0]).args(&layers[1..]).current_dir(&folder)).succeeded();
    let bare = words("true");
    if run(product::as_user(bare[0]).args(&bare[1..]).current_dir(&folder)).status != Some(0) {
        return None;
    }
    let file = folder.path().join("lower/data");
    let _ = run(product::as_user("touch").arg(&file)).succeeded();
    cold::make(&file, SIZE as usize).expect("a file");
    let class = Class::estimated("50M", estimator);
    let _ = run(class.command(words(script)).current_dir(&folder)).succeeded();
    Some(class.charged())
}

#[test]
fn what_is_read_is_charged_once() {
    for estimator in ["account", "predict", "auto"] {
        let Some((read, _)) = charged(estimator, "cat merged/data merged/data > /dev/null") else {
            skip!("no overlayfs in namespaces of an ordinary user here")
        };
        // The kernel does not drop every page that it is asked to drop.
        assert!((SIZE / 2..SIZE + BESIDES).contains(&read), "{estimator}: {read}");
    }
}

#[test]
fn what_is_opened_to_be_written_is_charged_as_copied() {
    for estimator in ["account", "predict", "auto"] {
        let Some((_, written)) = charged(estimator, "printf more >> merged/data") else {
            skip!("no overlayfs in namespaces of an ordinary user here")
        };
        assert!((SIZE..SIZE + BESIDES).contains(&written), "{estimator}: {written}");
    }
}
