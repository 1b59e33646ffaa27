//! What is known of the machine: on the system's bus, and where there is none or it does not know, in /sys and /proc.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::bus::{self, BusMember};

/// UPower, NetworkManager and logind.
const ON_BATTERY: BusMember<'_> = BusMember {
    service: "org.freedesktop.UPower",
    object: "/org/freedesktop/UPower",
    interface: "org.freedesktop.UPower",
    name: "OnBattery",
};
const METERED: BusMember<'_> = BusMember {
    service: "org.freedesktop.NetworkManager",
    object: "/org/freedesktop/NetworkManager",
    interface: "org.freedesktop.NetworkManager",
    name: "Metered",
};
const IDLE: BusMember<'_> = BusMember {
    service: "org.freedesktop.login1",
    object: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager",
    name: "IdleHint",
};
const IDLE_SINCE: BusMember<'_> = BusMember { name: "IdleSinceHint", ..IDLE };
/// What NetworkManager says of a network that is metered, for sure or as it guesses.
const YES: u64 = 1;
const GUESS_YES: u64 = 3;

/// Where it is looked for.
#[derive(Debug, Clone)]
pub struct Sources {
    bus: PathBuf,
    power: PathBuf,
    net: PathBuf,
    routes: PathBuf,
    load: PathBuf,
    terminals: PathBuf,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            bus: bus::system(),
            power: "/sys/class/power_supply".into(),
            net: "/sys/class/net".into(),
            routes: "/proc/net/route".into(),
            load: "/proc/loadavg".into(),
            terminals: "/dev".into(),
        }
    }
}

impl Sources {
    /// Whether there is mains power. A machine that shows no battery has it.
    pub fn has_mains(&self) -> bool {
        if let Some(on_battery) = bus::get(&self.bus, &ON_BATTERY) {
            return on_battery == 0;
        }
        let mut has_battery = false;
        for supply in fs::read_dir(&self.power).into_iter().flatten().flatten() {
            let say = |what: &str| fs::read_to_string(supply.path().join(what)).unwrap_or_default();
            let (kind, scope) = (say("type"), say("scope"));
            if scope.trim() == "Device" {
                // The battery of a mouse.
                continue;
            }
            has_battery |= kind.trim() == "Battery";
            let gives = matches!(kind.trim(), "Mains" | "USB" | "Wireless");
            if gives && say("online").trim() == "1" {
                return true;
            }
        }
        !has_battery
    }

    /// Whether the network may be used freely. Without NetworkManager, one by way of a mobile network or a modem may not.
    pub fn is_unmetered(&self) -> bool {
        if let Some(metered) = bus::get(&self.bus, &METERED) {
            return metered != YES && metered != GUESS_YES;
        }
        let routes = fs::read_to_string(&self.routes).unwrap_or_default();
        let interfaces = routes.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let (interface, to) = (words.next()?, words.next()?);
            (to == "00000000").then(|| interface.to_owned())
        });
        let is_mobile = |interface: String| {
            let event = fs::read_to_string(self.net.join(&interface).join("uevent"));
            event.is_ok_and(|event| event.lines().any(|line| line == "DEVTYPE=wwan"))
                || interface.starts_with("ppp")
        };
        !interfaces.into_iter().any(is_mobile)
    }

    /// For how long the machine has not been used. Without logind, for how long no terminal was typed at.
    pub fn idle(&self) -> Duration {
        let now = SystemTime::now();
        match bus::get(&self.bus, &IDLE) {
            Some(0) => Duration::ZERO,
            Some(_) => {
                let since = bus::get(&self.bus, &IDLE_SINCE).map(Duration::from_micros);
                let since = since.and_then(|since| UNIX_EPOCH.checked_add(since));
                since.map_or(Duration::ZERO, |since| now.duration_since(since).unwrap_or_default())
            }
            None => self.untouched(now),
        }
    }

    /// For how long no terminal was read from: the kernel notes that as its time of access.
    fn untouched(&self, now: SystemTime) -> Duration {
        let folders = [self.terminals.clone(), self.terminals.join("pts")];
        let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
        let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let touched = entries.flatten().filter_map(|entry| {
            let name = entry.file_name();
            let name = name.to_str()?;
            let number = name.strip_prefix("tty").unwrap_or(name);
            let is_terminal =
                number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty();
            let touched = u64::try_from(entry.metadata().ok()?.atime()).ok()?;
            is_terminal.then_some(touched)
        });
        Duration::from_secs(seconds.saturating_sub(touched.max().unwrap_or(0)))
    }

    /// The average number of tasks that ran or wanted to in the last minute.
    pub fn load(&self) -> Option<f64> {
        fs::read_to_string(&self.load).ok()?.split_whitespace().next()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn scene() -> (TempDir, Sources) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let sources = Sources {
            bus: at("bus"),
            power: at("power"),
            net: at("net"),
            routes: at("routes"),
            load: at("load"),
            terminals: at("dev"),
        };
        (folder, sources)
    }

    fn supply(folder: &TempDir, name: &str, facts: &[(&str, &str)]) {
        let supply = folder.path().join("power").join(name);
        fs::create_dir_all(&supply).unwrap();
        facts
            .iter()
            .for_each(|(name, fact)| fs::write(supply.join(name), format!("{fact}\n")).unwrap());
    }

    #[test]
    fn power_by_the_kernel() {
        let (folder, sources) = scene();
        assert!(sources.has_mains(), "nothing is shown");
        supply(&folder, "hidpp", &[("type", "Battery"), ("scope", "Device")]);
        assert!(sources.has_mains(), "the battery of a mouse");
        supply(&folder, "BAT0", &[("type", "Battery"), ("status", "Discharging")]);
        assert!(!sources.has_mains());
        supply(&folder, "AC", &[("type", "Mains"), ("online", "0")]);
        assert!(!sources.has_mains());
        supply(&folder, "AC", &[("type", "Mains"), ("online", "1")]);
        assert!(sources.has_mains());
    }

    #[test]
    fn the_network_by_the_kernel() {
        let (folder, sources) = scene();
        assert!(sources.is_unmetered(), "nothing is shown");
        let route = |interface: &str| {
            let text =
                format!("Iface\tDestination\tGateway\nlo\t0000007F\t0\n{interface}\t00000000\t0\n");
            fs::write(folder.path().join("routes"), text).unwrap();
            sources.is_unmetered()
        };
        for (interface, kind) in [("eth0", ""), ("wwan0", "DEVTYPE=wwan\n")] {
            let place = folder.path().join("net").join(interface);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("uevent"), format!("{kind}INTERFACE={interface}\n")).unwrap();
        }
        assert!(route("eth0") && !route("wwan0") && !route("ppp0"));
    }

    #[test]
    fn idling_and_load_by_the_kernel() {
        let (folder, sources) = scene();
        assert_eq!(sources.load(), None);
        fs::write(folder.path().join("load"), "1.75 0.50 0.25 2/300 4711\n").unwrap();
        assert_eq!(sources.load(), Some(1.75));
        assert!(sources.idle() > Duration::from_secs(1 << 20), "no terminal");
        fs::create_dir_all(folder.path().join("dev/pts")).unwrap();
        let touch = |name: &str, ago: u64| {
            let file = fs::File::create(folder.path().join("dev").join(name)).unwrap();
            let then = SystemTime::now() - Duration::from_secs(ago);
            file.set_times(fs::FileTimes::new().set_accessed(then)).unwrap();
        };
        touch("tty1", 900);
        touch("pts/3", 300);
        touch("null", 0);
        touch("pts/ptmx", 0);
        assert!((295..=305).contains(&sources.idle().as_secs()), "{:?}", sources.idle());
    }
}
