//! Limits for all processes of a run together, where this machine lets us set them.
//!
//! Both hierarchies are known: version 2, where a group below our own is made, and version 1, with a
//! group for memory and one for processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::order::Groups;
use crate::executor::{LimitHit, Limits};

/// The groups of a run. Those that were made for it go when this does.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    memory: Option<Cgroup>,
    pids: Option<Cgroup>,
    owner: Owner,
    /// How often memory and processes had been refused before.
    before: [u64; 2],
}

/// Who made groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owner {
    #[default]
    Us,
    /// The engine of the container that we are in, which has set their limits, too.
    Engine,
}

#[derive(Debug)]
struct Cgroup {
    path: PathBuf,
    hierarchy: Hierarchy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hierarchy {
    V1,
    V2,
}

const PREFIX: &str = "prowess-";

impl Cgroups {
    /// Makes groups, as far as that is possible.
    pub(crate) fn new() -> Self {
        let name = format!("{PREFIX}{}-{}", std::process::id(), start_time(std::process::id()));
        let places = Places::find();
        let (memory, pids) = (places.of("memory"), places.of("pids"));
        for place in [&memory, &pids].into_iter().flatten() {
            remove_abandoned(&place.path);
        }
        let make = |place: Option<Place>| place.and_then(|place| place.make(&name));
        Self { memory: make(memory), pids: make(pids), ..Self::default() }
    }

    /// Those of the container that this process is in: every process of it is in them.
    pub(crate) fn of_container() -> Self {
        let places = Places::find();
        let (memory, pids) = (places.existing("memory"), places.existing("pids"));
        let mut groups = Self { memory, pids, owner: Owner::Engine, before: [0, 0] };
        groups.before = groups.counts();
        groups
    }

    /// Sets limits. A group that does not take them is none.
    pub(crate) fn limit(&mut self, limits: &Limits) {
        if self.owner == Owner::Engine {
            return;
        }
        let memory = |group: &Cgroup| match group.hierarchy {
            Hierarchy::V1 => {
                group.write("memory.limit_in_bytes", limits.memory_bytes)?;
                // Not every kernel counts what is swapped out.
                let _ = group.write("memory.memsw.limit_in_bytes", limits.memory_bytes);
                Ok(())
            }
            Hierarchy::V2 => {
                group.write("memory.max", limits.memory_bytes)?;
                let _ = group.write("memory.swap.max", 0);
                Ok(())
            }
        };
        keep_if(&mut self.memory, memory);
        keep_if(&mut self.pids, |group| group.write("pids.max", limits.processes));
    }

    pub(crate) fn groups(&self) -> Groups {
        Groups { memory: self.memory.is_some(), pids: self.pids.is_some() }
    }

    pub(crate) fn entrances(&self) -> Entrances {
        let ours = self.all().filter(|_| self.owner == Owner::Us);
        Entrances(ours.map(Cgroup::entrance).collect())
    }

    /// At which limits processes were killed or refused.
    pub(crate) fn limits_hit(&self) -> Vec<LimitHit> {
        let [memory, pids] = self.counts();
        let killed = (memory > self.before[0]).then_some(LimitHit::Memory);
        let refused = (pids > self.before[1]).then_some(LimitHit::Processes);
        killed.into_iter().chain(refused).collect()
    }

    /// How often a process was killed for memory, and how often one was refused.
    fn counts(&self) -> [u64; 2] {
        let count = |group: &Option<Cgroup>, files: [&str; 2], word: &str| {
            let group = group.as_ref()?;
            let text =
                files.iter().find_map(|file| fs::read_to_string(group.path.join(file)).ok())?;
            let line = text.lines().find_map(|line| line.strip_prefix(word))?;
            line.trim().parse::<u64>().ok()
        };
        let killed = count(&self.memory, ["memory.events", "memory.oom_control"], "oom_kill ");
        let refused = count(&self.pids, ["pids.events", "pids.events.local"], "max ");
        [killed.unwrap_or(0), refused.unwrap_or(0)]
    }

    fn all(&self) -> impl Iterator<Item = &Cgroup> {
        let pids = self.pids.as_ref().filter(|pids| {
            // In version 2 it is one group for both.
            self.memory.as_ref().is_none_or(|memory| memory.path != pids.path)
        });
        self.memory.iter().chain(pids)
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for group in self.all().filter(|_| self.owner == Owner::Us) {
            remove(&group.path);
        }
    }
}

/// Where a process of one thread writes a zero to be in the groups.
pub(crate) struct Entrances(Vec<PathBuf>);

impl Entrances {
    /// Takes this process, which must have one thread, into the groups.
    pub(crate) fn join(&self) -> io::Result<()> {
        self.0.iter().try_for_each(|entrance| fs::write(entrance, "0"))
    }
}

impl Cgroup {
    fn write(&self, file: &str, value: u64) -> io::Result<()> {
        fs::write(self.path.join(file), value.to_string())
    }

    /// For whole processes the kernel first waits until nobody on this machine is forking, which
    /// takes milliseconds; for a thread that moves itself it need not.
    fn entrance(&self) -> PathBuf {
        self.path.join(match self.hierarchy {
            Hierarchy::V1 => "tasks",
            Hierarchy::V2 => "cgroup.procs",
        })
    }
}

/// Kills what is in a group, and removes it.
fn remove(path: &Path) {
    let begun = Instant::now();
    while fs::remove_dir(path).is_err() && path.exists() && begun.elapsed() < Duration::from_secs(2)
    {
        let _ = fs::write(path.join("cgroup.kill"), "1");
        let processes = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        for pid in processes.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes groups whose supervisor is gone.
fn remove_abandoned(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| {
            let (pid, started) = name.strip_prefix(PREFIX)?.split_once('-')?;
            Some((pid.parse::<u32>().ok()?, started.to_owned()))
        });
        if owner.is_some_and(|(pid, started)| start_time(pid) != started) {
            remove(&entry.path());
        }
    }
}

/// When a process began, in the kernel's ticks; empty if there is none.
pub(crate) fn start_time(pid: u32) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, in parentheses, may hold anything.
    let fields = text.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    fields.split_whitespace().nth(19).unwrap_or_default().to_owned()
}

/// Where groups can be made.
struct Places {
    mounts: String,
    own: String,
}

/// A place where a group can be made.
struct Place {
    path: PathBuf,
    hierarchy: Hierarchy,
}

impl Places {
    fn find() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self { mounts: read("/proc/self/mounts"), own: read("/proc/self/cgroup") }
    }

    /// The group that we are in, whoever made it.
    fn existing(&self, controller: &str) -> Option<Cgroup> {
        let v1 = || self.v1(controller).map(|it| (it.path, it.hierarchy));
        let v2 = || Some((self.v2_path()?, Hierarchy::V2));
        let has = |file: &str, path: &Path| path.join(file).is_file();
        let is_there = |(path, hierarchy): &(PathBuf, Hierarchy)| match (hierarchy, controller) {
            (Hierarchy::V1, _) => true,
            (Hierarchy::V2, "memory") => has("memory.events", path),
            (Hierarchy::V2, _) => has("pids.events", path),
        };
        let (path, hierarchy) = v2().filter(is_there).or_else(v1)?;
        Some(Cgroup { path, hierarchy })
    }

    fn of(&self, controller: &str) -> Option<Place> {
        self.v2(controller).or_else(|| self.v1(controller))
    }

    /// Below the group that we are in, if a file in it can be written.
    fn place(&self, mount: &str, is_ours: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
        let own = self.own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            is_ours(id, controllers).then_some(path)
        })?;
        let below = Path::new(mount).join(own.trim_start_matches('/'));
        // In a container the path is that of the host, which is not there.
        Some(if below.is_dir() { below } else { PathBuf::from(mount) })
    }

    fn mount(&self, wanted: impl Fn(&str, &str) -> bool) -> Option<&str> {
        self.mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (path, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
            wanted(kind, options).then_some(path)
        })
    }

    fn v1(&self, controller: &str) -> Option<Place> {
        let has = |list: &str| list.split(',').any(|word| word == controller);
        let mount = self.mount(|kind, options| kind == "cgroup" && has(options))?;
        let path = self.place(mount, |_, controllers| has(controllers))?;
        Some(Place { path, hierarchy: Hierarchy::V1 })
    }

    fn v2_path(&self) -> Option<PathBuf> {
        let mount = self.mount(|kind, _| kind == "cgroup2")?;
        self.place(mount, |id, controllers| id == "0" && controllers.is_empty())
    }

    fn v2(&self, controller: &str) -> Option<Place> {
        let path = self.v2_path()?;
        let has = |file: &str| {
            let text = fs::read_to_string(path.join(file)).unwrap_or_default();
            text.split_whitespace().any(|word| word == controller)
        };
        let is_passed_on = || {
            fs::write(path.join("cgroup.subtree_control"), format!("+{controller}")).is_ok()
                || has("cgroup.subtree_control")
        };
        (has("cgroup.controllers") && is_passed_on())
            .then_some(Place { path, hierarchy: Hierarchy::V2 })
    }
}

impl Place {
    fn make(&self, name: &str) -> Option<Cgroup> {
        let group = Cgroup { path: self.path.join(name), hierarchy: self.hierarchy };
        match fs::create_dir(&group.path) {
            Ok(()) => Some(group),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Some(group),
            Err(_) => None,
        }
    }
}

fn keep_if(group: &mut Option<Cgroup>, limit: impl Fn(&Cgroup) -> io::Result<()>) {
    if let Some(refusing) = group.take_if(|group| limit(group).is_err()) {
        remove(&refusing.path);
    }
}
