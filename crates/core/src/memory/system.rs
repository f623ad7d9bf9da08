//! The memory that the system leaves to this process: every look at `/proc` and at the cgroups' files.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The memory that is left, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    /// The bytes.
    pub bytes: u64,
    /// The name of the limit.
    pub of: &'static str,
}

/// The least of what the machine, the cgroups and the process's own limits leave; `None` where none of them tells.
#[must_use]
pub fn free() -> Option<Free> {
    static LEVELS: OnceLock<Vec<Level>> = OnceLock::new();
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    least(LEVELS.get_or_init(|| levels(read)), read)
}

/// The memory that this process holds; 0 where the system does not tell.
pub(super) fn held_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status");
    status.ok().and_then(|status| kilobytes(&status, "VmRSS:")).unwrap_or_default()
}

fn least(levels: &[Level], read: impl Fn(&Path) -> Option<String>) -> Option<Free> {
    let proc = |name: &str| read(&Path::new("/proc").join(name));
    let limits = proc("self/limits").zip(proc("self/status"));
    let own =
        |limit, used| limits.as_ref().and_then(|(limits, status)| own_left(limits, status, limit, used));
    let found = [
        ("the machine", proc("meminfo").as_deref().and_then(machine_left)),
        ("the limit on address space (ulimit -v)", own("Max address space", "VmSize:")),
        ("the limit on data (ulimit -d)", own("Max data size", "VmData:")),
        ("the cgroup", levels.iter().filter_map(|level| level.left(&read)).min()),
    ];
    let told = found.into_iter().filter_map(|(of, bytes)| Some(Free { bytes: bytes?, of }));
    told.min_by_key(|free| free.bytes)
}

/// `MemAvailable`, and the swap that is free.
fn machine_left(meminfo: &str) -> Option<u64> {
    let swap = kilobytes(meminfo, "SwapFree:").unwrap_or_default();
    Some(kilobytes(meminfo, "MemAvailable:")?.saturating_add(swap))
}

/// The memory that a soft limit of `/proc/self/limits` leaves beyond the use that `/proc/self/status` tells.
fn own_left(limits: &str, status: &str, limit: &str, used: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(limit))?;
    let most: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(most.saturating_sub(kilobytes(status, used)?))
}

/// The number of a line `Name:   123 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// One cgroup that this process is in.
#[derive(Debug, PartialEq, Eq)]
struct Level {
    folder: PathBuf,
    names: &'static Names,
}

/// The names of the two versions of cgroups for their files.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    limit: &'static str,
    used: &'static str,
    /// Lines of `memory.stat`: what is given up before anything is killed.
    reclaimable: &'static [&'static str],
}

const SECOND: Names = Names {
    limit: "memory.max",
    used: "memory.current",
    reclaimable: &["inactive_file ", "active_file ", "slab_reclaimable "],
};

const FIRST: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    reclaimable: &["total_inactive_file ", "total_active_file "],
};

impl Level {
    /// The memory that the cgroup leaves; `None` where it has no limit.
    fn left(&self, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
        let number = |name: &str| read(&self.folder.join(name))?.trim().parse::<u64>().ok();
        let most = number(self.names.limit)?;
        let used = number(self.names.used)?;
        let stat = read(&self.folder.join("memory.stat")).unwrap_or_default();
        let line = |name: &&str| stat.lines().find_map(|line| line.strip_prefix(*name));
        let cache =
            self.names.reclaimable.iter().filter_map(line).filter_map(|text| text.parse::<u64>().ok());
        Some(most.saturating_sub(used.saturating_sub(cache.sum())))
    }
}

/// The cgroups that bound this process's memory, from its own up.
fn levels(read: impl Fn(&Path) -> Option<String>) -> Vec<Level> {
    let (Some(own), Some(mounts)) =
        (read(Path::new("/proc/self/cgroup")), read(Path::new("/proc/self/mountinfo")))
    else {
        return Vec::new();
    };
    let mut levels = Vec::new();
    for line in own.lines() {
        // hierarchy:controllers:path
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let names = match controllers {
            "" => &SECOND,
            some if some.split(',').any(|name| name == "memory") => &FIRST,
            _ => continue,
        };
        let Some((root, mount)) = mounts.lines().find_map(|line| mount(line, names)) else { continue };
        // In a container the path may be the host's, of which nothing is mounted but the container's own.
        let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or_default();
        let folder = Path::new(mount).join(below.trim_start_matches('/'));
        let folder = if read(&folder.join("memory.stat")).is_some() { folder } else { mount.into() };
        let above = folder.ancestors().take_while(|folder| folder.starts_with(mount));
        levels.extend(above.map(|folder| Level { folder: folder.into(), names }));
    }
    levels
}

/// The root and the mount point of a line of `/proc/self/mountinfo` that mounts the cgroups which have such `names`.
fn mount<'a>(line: &'a str, names: &Names) -> Option<(&'a str, &'a str)> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let mut after = after.split(' ');
    let (kind, _, options) = (after.next()?, after.next(), after.next()?);
    let fits = match kind {
        "cgroup2" => names == &SECOND,
        "cgroup" => names == &FIRST && options.split(',').any(|option| option == "memory"),
        _ => false,
    };
    fits.then_some((before.next()?, before.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tpython3\nVmPeak:\t  910000 kB\nVmSize:\t  900000 kB\nVmData:\t  300000 kB\n";

    fn limits(address_space: &str, data: &str) -> String {
        format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max data size             {data}            unlimited            bytes     \n\
             Max address space         {address_space}            unlimited            bytes     \n"
        )
    }

    fn files<'a>(files: &'a [(&'a str, &'a str)]) -> impl Fn(&Path) -> Option<String> + Copy + 'a {
        move |path| files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
    }

    fn left_of(given: &[(&str, &str)]) -> Option<Free> {
        least(&levels(files(given)), files(given))
    }

    #[test]
    fn the_machine_leaves_what_is_available_and_its_swap() {
        let meminfo =
            "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    700 kB\nSwapFree:   24 kB\n";
        let unlimited = limits("unlimited", "unlimited");
        let given =
            [("/proc/meminfo", meminfo), ("/proc/self/limits", &unlimited), ("/proc/self/status", STATUS)];
        assert_eq!(left_of(&given), Some(Free { bytes: 724 << 10, of: "the machine" }));
        assert_eq!(left_of(&[]), None);
    }

    #[test]
    fn the_limits_of_the_process_leave_what_it_has_not_taken() {
        let both = limits("1024000000", "307200001");
        let given = [("/proc/self/limits", both.as_str()), ("/proc/self/status", STATUS)];
        assert_eq!(left_of(&given), Some(Free { bytes: 1, of: "the limit on data (ulimit -d)" }));
        let one = limits("1024000000", "unlimited");
        let given = [("/proc/self/limits", one.as_str()), ("/proc/self/status", STATUS)];
        let left =
            Free { bytes: 1_024_000_000 - 900_000 * 1024, of: "the limit on address space (ulimit -v)" };
        assert_eq!(left_of(&given), Some(left));
    }

    #[test]
    fn the_least_of_all_cgroups_above_counts_and_their_cache_is_free() {
        let given = [
            ("/proc/self/cgroup", "0::/user.slice/job.scope\n"),
            (
                "/proc/self/mountinfo",
                "24 30 0:22 / /proc rw - proc proc rw\n\
                 35 25 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
            ),
            ("/sys/fs/cgroup/user.slice/job.scope/memory.max", "max\n"),
            ("/sys/fs/cgroup/user.slice/job.scope/memory.stat", "anon 5\n"),
            ("/sys/fs/cgroup/user.slice/memory.max", "1000\n"),
            ("/sys/fs/cgroup/user.slice/memory.current", "900\n"),
            (
                "/sys/fs/cgroup/user.slice/memory.stat",
                "anon 500\nfile 400\ninactive_file 300\nactive_file 30\nslab_reclaimable 20\n",
            ),
        ];
        assert_eq!(left_of(&given), Some(Free { bytes: 450, of: "the cgroup" }));
    }

    #[test]
    fn a_container_of_the_first_version_sees_its_own_cgroup_alone() {
        let given = [
            (
                "/proc/self/cgroup",
                "7:cpu:/docker/abc\n5:memory,hugetlb:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n",
            ),
            (
                "/proc/self/mountinfo",
                "90 80 0:40 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n\
                 91 80 0:41 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory,hugetlb\n",
            ),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "500000000\n"),
            (
                "/sys/fs/cgroup/memory/memory.stat",
                "cache 9\ntotal_inactive_file 100000000\ntotal_active_file 0\n",
            ),
        ];
        assert_eq!(left_of(&given), Some(Free { bytes: 136_870_912, of: "the cgroup" }));
    }

    #[test]
    fn no_limit_of_the_first_version_is_a_number_beyond_every_other() {
        let level = Level { folder: "/m".into(), names: &FIRST };
        let given =
            [("/m/memory.limit_in_bytes", "9223372036854771712\n"), ("/m/memory.usage_in_bytes", "4096\n")];
        assert!(level.left(files(&given)).is_some_and(|left| left > 1 << 62));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_system_tells() {
        assert!(free().is_some_and(|free| free.bytes > 0));
    }
}
